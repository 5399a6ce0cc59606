"""Where the hand-ins of a course lie, and how they get there."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import ClearHiddenTests, ClearSolutions

from .tasks import NAMES

SOURCES = Path(__file__).with_name("sources")

# In the place of a solution. nbgrader's own raises an error, which would stop a notebook whose numbers
# are filled in above it.
STUB = {"python": "# YOUR CODE HERE\n..."}


def given(source: NotebookNode) -> NotebookNode:
    """A copy of a source as students get it, without the solutions and the hidden tests."""
    made = deepcopy(source)
    for clear in (ClearSolutions(code_stub=STUB), ClearHiddenTests()):
        made, _ = clear.preprocess(made, {})
    return made


def released(course: Path, name: str) -> NotebookNode:
    """The notebook that students got. Raises FileNotFoundError with what to do if there is none."""
    path = course / "release" / name / f"{name}.ipynb"
    if not path.is_file():
        raise FileNotFoundError(f"{name} is not released: python -m assignments release {name}")
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


@cache
def ours() -> dict[str, NotebookNode]:
    """What students get of each of our own sources, by name. Not to be modified."""
    paths = {name: SOURCES / f"{name}.ipynb" for name in NAMES}
    return {
        name: given(nbformat.read(path, as_version=4))  # type: ignore[no-untyped-call]
        for name, path in paths.items()
        if path.is_file()
    }


def others(course: Path, name: str) -> dict[str, NotebookNode]:
    """The notebooks of all other assignments: as released in this course, else of our own sources."""
    found = {}
    for other in ours().keys() - {name}:
        path = course / "release" / other / f"{other}.ipynb"
        found[other] = released(course, other) if path.is_file() else ours()[other]
    return found


class LinkError(ValueError):
    """A link lies where a hand-in should."""


def below(course: Path, *names: str) -> Path:
    """A path in the course. Raises LinkError if any part of it below the course is a link: a
    student's folder that leads to the solution, or to another's work, is neither read nor written."""
    path = course
    for name in names:
        path = path / name
        if path.is_symlink():
            raise LinkError(f"{path.relative_to(course)} is a link, and links are not followed")
    return path


def handed_in(course: Path, name: str) -> list[str]:
    """The students who have a folder of the assignment in COURSE/submitted, or a link to one."""
    return sorted(one.parent.name for one in course.glob(f"submitted/*/{name}") if one.is_dir())


def submission(course: Path, name: str, student: str) -> Path:
    """Where a student's notebook lies for the grader. Raises LinkError where a link leads to it."""
    return below(course, "submitted", student, name, f"{name}.ipynb")


def write(path: Path, data: bytes) -> Path:
    """Put `data` at `path`, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(data)
    os.replace(part, path)
    return path


def received(course: Path, name: str, student: str) -> list[Path]:
    """What a student has handed in, byte for byte, oldest first: 1.ipynb, 2.ipynb, …."""
    folder = below(course, "received", name, student)
    kept = (path for path in folder.glob("*.ipynb") if path.stem.isdecimal())
    return [below(folder, path.name) for path in sorted(kept, key=lambda path: int(path.stem))]


def keep(course: Path, name: str, student: str, came: Sequence[bytes]) -> list[Path]:
    """Keep what came from a student, oldest first, after what is there; returns where each lies.

    What the student's folder ends in already is not kept twice.
    """
    paths = received(course, name, student)
    had = [path.read_bytes() for path in paths[-len(came) :]] if came else []
    known = max(n for n in range(len(had) + 1) if had[len(had) - n :] == list(came[:n]))
    for data in came[known:]:
        number = int(paths[-1].stem) + 1 if paths else 1
        paths.append(write(course / "received" / name / student / f"{number}.ipynb", data))
    return paths[len(paths) - len(came) :]


def records(course: Path, name: str) -> dict[str, dict[str, Any]]:
    """What `grade` wrote of each student: the sandbox's marks, and what they were given for.

    Raises ValueError for a file that somebody has broken.
    """
    found = {}
    for path in sorted((course / "grading" / name).glob("*.json")):
        if path.name != "seed.json":
            try:
                record = json.loads(path.read_bytes())
                found[path.stem] = {**record, "questions": list(record["questions"])}
            except (ValueError, KeyError, TypeError):
                raise ValueError(f"{path} holds no marks: grade {name} again") from None
    return found


def marks(course: Path, name: str) -> dict[str, list[dict[str, Any]]]:
    """The sandbox's marks of each student; none if nothing is marked. Raises ValueError as above."""
    return {student: record["questions"] for student, record in records(course, name).items()}
