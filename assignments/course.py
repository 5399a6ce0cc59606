"""A course's folder, in nbgrader's layout, and what is made in it: releases, solutions, marks."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbgrader.api import MissingEntry
from nbgrader.converters import Autograde, GenerateAssignment
from nbgrader.preprocessors import ClearHiddenTests
from tqdm import tqdm

from .folders import given, handed_in, released, write
from .grader.grade import grade_batch
from .grader.plugin import read_marks
from .leaks import LeakError, refuse_leaks
from .nbgrader_bridge import GradebookBusyError, OneFolder, converting, settings
from .nbgrader_bridge import gradebook as gradebook  # also for those who read marks
from .options import options_of

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "assignments" / "sources"
FOLDERS = "source release study solution submitted received autograded feedback export grading"
CONFIG = """\
# nbgrader's settings for this course. Add yours at the end.
import os
import sys

sys.path.insert(0, {root!r})
from assignments.grader.plugin import configure

c = get_config()
configure(c)
c.CourseDirectory.root = os.path.dirname(os.path.abspath(__file__))
"""


@dataclass
class Graded:
    """What came of a batch: the students with marks, and those without, each with the reason.

    namesakes: the names in notebooks that more than one student gives, and with them these students.
    """

    marked: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    namesakes: dict[str, list[str]] = field(default_factory=dict)


def make_course(course: Path) -> None:
    """Make the folder of a course with its nbgrader_config.py; what is there stays as it is.

    Raises ValueError for a path that nbgrader would take for a pattern: then it gives out files that
    it should leave.
    """
    if set(str(course.resolve())) & set("*?["):
        raise ValueError(f"choose another folder than {course}: its path must not hold *, ? or [")
    for folder in FOLDERS.split():
        (course / folder).mkdir(parents=True, exist_ok=True)
    config = course / "nbgrader_config.py"
    if not config.exists():
        config.write_text(CONFIG.format(root=str(ROOT)), encoding="utf-8")


def release(course: Path, name: str) -> Path:
    """Make the notebook for students and enter the assignment into the gradebook.

    The source in the course is ours, brought up to date, unless the instructor has changed it.
    Raises LeakError if the release would hold hidden material, NbGraderError if nbgrader refuses.
    """
    make_course(course)
    source = _source(course, name)
    path = course / "release" / name / f"{name}.ipynb"
    with converting(course, name, _Release, student=".") as converter:
        converter.start()
    try:
        refuse_leaks(_read(source), _read(path))
    except LeakError:
        path.unlink()
        raise
    return path


def study(course: Path, name: str) -> Path:
    """Make the notebook for study without marks: no solutions, no hidden tests, no gradebook.

    Raises LeakError as `release` does.
    """
    make_course(course)
    source = _read(_source(course, name))
    notebook = given(source)
    refuse_leaks(source, notebook)
    return _store(course, "study", name, notebook)


def solution(course: Path, name: str) -> Path:
    """Make the solution with its outputs, for the instructor.

    The hidden tests run too, and are taken out afterwards. Raises what nbclient raises if a cell fails.
    """
    make_course(course)
    source = _source(course, name)
    notebook = _read(source)
    client = NotebookClient(
        notebook,
        timeout=1800,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=40"],
        resources={"metadata": {"path": str(source.parent)}},
        record_timing=False,
    )
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    notebook, _ = ClearHiddenTests().preprocess(notebook, {})
    return _store(course, "solution", name, notebook)


def grade(
    course: Path,
    name: str,
    *,
    seed: int | None = None,
    students: Sequence[str] = (),
    sandboxed: bool = True,
    workers: int | None = None,
) -> Graded:
    """Mark the submissions in the sandbox and enter the marks into the gradebook.

    students: only these; none means all. A submission that cannot be entered is reported with the
    reason and has no marks in the gradebook; the others go on. Manual marks stay, and one that was
    settled stays so while the answer is the same.
    """
    released(course, name)
    students = sorted({*students} or handed_in(course, name))
    options = options_of(settings(course))
    grade_batch(
        course,
        name,
        seed=seed,
        students=students,
        sandboxed=sandboxed,
        workers=workers,
        partial=options.partial_credit,
    )
    if name in options.due:
        due = datetime.fromisoformat(options.due[name]).astimezone(UTC).replace(tzinfo=None)
        with gradebook(course) as book:
            book.find_assignment(name).duedate = due
            book.db.commit()
    graded = Graded()
    for student in tqdm(students, desc="gradebook", unit="submission"):
        try:
            _enter(course, name, student)
            graded.marked.append(student)
        except GradebookBusyError:
            raise
        except Exception as error:  # one broken submission must not end the batch
            graded.failed[student] = str(error)
            _withdraw(course, name, student)
    graded.namesakes = _namesakes(course, name)
    return graded


def _namesakes(course: Path, name: str) -> dict[str, list[str]]:
    """The names under which more than one student has drawn numbers."""
    named: dict[str, list[str]] = {}
    for path in sorted((course / "grading" / name).glob("*.json")):
        if path.stem != "seed":
            questions = json.loads(path.read_bytes())["questions"]
            one = next((mark["named"] for mark in questions if mark.get("named")), "")
            named.setdefault(one, []).append(path.stem)
    return {one: students for one, students in named.items() if one and len(students) > 1}


class _Release(OneFolder, GenerateAssignment):  # type: ignore[misc]
    """The release of an assignment."""


class _Autograde(OneFolder, Autograde):  # type: ignore[misc]
    """One submission into the gradebook."""


def _enter(course: Path, name: str, student: str) -> None:
    read_marks(course, name, student)  # a reason of its own is better than nbgrader's
    before = _settled(course, name, student)
    with converting(course, name, _Autograde, student=student) as converter:
        converter.start()
    answers = _answers(course, name, student)
    with gradebook(course) as book:
        for question, answer in before.items():
            if answers.get(question) == answer:
                book.find_grade(question, name, name, student).needs_manual_grade = False
        book.db.commit()


def _settled(course: Path, name: str, student: str) -> dict[str, str]:
    """The questions with a manual mark that nobody needs to look at again, and what it was given for."""
    answers = _answers(course, name, student)
    with gradebook(course) as book:
        try:
            grades = book.find_submission_notebook(name, name, student).grades
        except MissingEntry:
            return {}
        return {
            grade.name: answers[grade.name]
            for grade in grades
            if grade.manual_score is not None
            and not grade.needs_manual_grade
            and grade.name in answers
        }


def _answers(course: Path, name: str, student: str) -> dict[str, str]:
    """What each graded cell of the autograded copy was marked for: its text, or its outputs."""
    path = course / "autograded" / student / name / f"{name}.ipynb"
    if not path.is_file():
        return {}
    graded = [cell for cell in _read(path).cells if cell.metadata.get("nbgrader", {}).get("grade")]
    return {
        cell.metadata.nbgrader.grade_id: str(cell.get("outputs") or cell.source) for cell in graded
    }


def _withdraw(course: Path, name: str, student: str) -> None:
    """Leave nothing of a submission that failed, but the marks that the instructor gave."""
    for folder in ("autograded", "feedback"):
        shutil.rmtree(course / folder / student / name, ignore_errors=True)
    with gradebook(course) as book:
        try:
            grades = book.find_submission_notebook(name, name, student).grades
        except MissingEntry:
            return
        if any(grade.manual_score is not None for grade in grades):
            for grade in grades:
                grade.auto_score, grade.needs_manual_grade = None, True
            book.db.commit()
        else:
            book.remove_submission(name, student)


def _source(course: Path, name: str) -> Path:
    """The source in the course, copied from ours unless the instructor has changed it there."""
    ours = SOURCES / f"{name}.ipynb"
    theirs = course / "source" / name / f"{name}.ipynb"
    copied = course / "grading" / name / "source.sha256"
    if theirs.exists() and not (
        copied.exists() and copied.read_text(encoding="utf-8") == _digest(theirs)
    ):
        return theirs
    if ours.exists():
        write(theirs, ours.read_bytes())
        write(copied, _digest(theirs).encode())
    elif not theirs.exists():
        raise FileNotFoundError(f"there is no source of {name}, neither {ours} nor {theirs}")
    return theirs


def _digest(path: Path) -> str:
    """A sum over what the cells say; JupyterLab changes the rest of a file that is only looked at."""
    cells = [
        (cell.cell_type, cell.source, cell.metadata.get("nbgrader")) for cell in _read(path).cells
    ]
    return hashlib.sha256(json.dumps(cells, sort_keys=True).encode()).hexdigest()


def _store(course: Path, folder: str, name: str, notebook: NotebookNode) -> Path:
    """Store a notebook that nbgrader has nothing more to do with."""
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
    text = nbformat.writes(notebook)  # type: ignore[no-untyped-call]
    return write(course / folder / name / f"{name}.ipynb", f"{text}\n".encode())


def _read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
