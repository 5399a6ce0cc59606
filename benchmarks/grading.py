"""A batch of submissions marked in the sandbox, by the clock on the wall, and the memory that the grader gains.

The table has seconds where it says so, beside the limit as the peer, and for memory megabytes (its µs are MB).
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import psutil

from assignments.grader.grade import SOURCES, grade_batch

from .harness import Result

NAME = "pointing"
FIRST, ALL = 10, 100  # submissions
SECONDS, MEGABYTES = 180.0, 20.0
# What every fifth does besides its right answers; one of them is stopped by the clock.
OTHERS = (
    "held = bytearray(100 << 30)",
    "import os\nos._exit(0)",
    "def {task}(*case): return case[0] * 0",
    "def {task}(*case): raise ValueError('a mistake')",
    "import torch",
)
ENDLESS = "def {task}(*case):\n    while True: pass"


def run() -> Iterator[Result]:
    """A batch of ALL submissions on two workers: how long it takes, and what it leaves in memory.

    Raises SandboxMissing without bubblewrap.
    """
    with tempfile.TemporaryDirectory() as folder:
        seconds, megabytes = measure(Path(folder))
    what = f"{ALL} submissions of {NAME}"
    yield Result(f"{what}: s", seconds, SECONDS, seconds / SECONDS, 1.0)
    gained = f"{what}: MB gained since {FIRST}"
    yield Result(gained, megabytes / 1e6, MEGABYTES / 1e6, megabytes / MEGABYTES, 1.0)


def measure(course: Path, name: str = NAME) -> tuple[float, float]:
    """Seconds for all submissions, and megabytes gained between the first few and all."""
    students = hand_in(course, name)
    process = psutil.Process()
    start = time.perf_counter()
    grade_batch(course, name, seed=1, students=students[:FIRST], workers=2)
    few = process.memory_info().rss
    grade_batch(course, name, seed=1, students=students[FIRST:], workers=2)
    return time.perf_counter() - start, (process.memory_info().rss - few) / 1e6


def hand_in(course: Path, name: str) -> list[str]:
    """Submissions made from the source's solutions; returns the students."""
    source = nbformat.read(SOURCES / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    checks = [cell.metadata.get("nbgrader", {}).get("grade_id", "") for cell in source.cells]
    task = next(check for check in checks if check.endswith("-check")).removesuffix("-check")
    whole = json.dumps(source)
    students = [f"student {number:03}" for number in range(ALL)]
    for number, student in enumerate(students):
        notebook = json.loads(whole.replace('\\"solution\\"', f'\\"{student}\\"'))
        if number % 5 == 4:
            cell = ENDLESS if number == ALL // 2 + 4 else OTHERS[number // 5 % len(OTHERS)]
            notebook["cells"].append(
                nbformat.v4.new_code_cell(cell.format(task=task))  # type: ignore[no-untyped-call]
            )
        path = course / "submitted" / student / name / f"{name}.ipynb"
        os.makedirs(path.parent)
        path.write_text(json.dumps(notebook), encoding="utf-8")
    return students
