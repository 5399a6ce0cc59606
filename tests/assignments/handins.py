"""A small assignment in the conventions of assignments/sources, and hand-ins to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from assignments.folders import given
from assignments.sanitise import node

LABELS: dict[str, dict[str, Any]] = {
    "text": {"locked": True},
    "answer": {"solution": True},
    "check": {"grade": True, "locked": True},
    "words": {"grade": True, "solution": True},
}
HELPER = "def twice(x):\n    return x + x"
WORDS = "Both grow, and the second one faster: see the ratio above."
ANSWERS = {
    "double": "def double(x):\n    return twice(x)",
    "halve": "def halve(x):\n    half = x / 2\n    return half",
    "student": 'STUDENT = "Zoé 李"',
    "ratio": "predicted = number / 2",
    "ratio-measure": "measured = halve(number)",
    "question-why": WORDS,
}


def cell(kind: str, name: str, source: str, label: str = "", **more: object) -> NotebookNode:
    """One cell; `label` is a key of LABELS, "" for a cell without nbgrader's metadata."""
    about: dict[str, object] = {
        "grade": False,
        "locked": False,
        "solution": False,
        "task": False,
        "schema_version": 3,
    }
    about |= {"grade_id": name, **LABELS.get(label, {}), **more}
    metadata = {"nbgrader": about} if label else {}
    made = {"cell_type": kind, "id": name, "metadata": metadata, "source": source}
    return node(made | ({"outputs": [], "execution_count": None} if kind == "code" else {}))


def check(name: str, visible: str, points: int) -> NotebookNode:
    """A graded cell with a hidden test."""
    hidden = f"### BEGIN HIDDEN TESTS\nfrom assignments.verify import verify\nverify({name})\n### END HIDDEN TESTS"
    return cell("code", f"{name}-check", f"{visible}\n{hidden}", "check", points=points)


def solved(stub: str, solution: str, indent: str = "") -> str:
    """The text of a solution cell."""
    return f"{stub}\n{indent}### BEGIN SOLUTION\n{indent}{solution}\n{indent}### END SOLUTION"


def source() -> NotebookNode:
    """The source: two functions, a prediction and a measurement, a question in words."""
    cells = [
        cell("markdown", "text-title", "# Doubling\n\nTwo functions and a question.", "text"),
        cell("code", "imports", "import numpy as np"),
        cell("markdown", "text-double", "## Double\n\n`double(x)` is twice `x`.", "text"),
        cell("code", "double", solved("def double(x):", "return 2 * x", "    "), "answer"),
        check("double", "assert double(2) == 4, 'expected 4'", 4),
        cell("code", "halve", solved("def halve(x):", "return 0.5 * x", "    "), "answer"),
        check("halve", "assert halve(2) == 1, 'expected 1'", 4),
        cell("code", "student", solved('STUDENT = ""', 'STUDENT = "solution"'), "answer"),
        cell("code", "given-number", "number = 7 + len(STUDENT)", "text"),
        cell("code", "ratio", solved("predicted = ...", "predicted = number * 0.5"), "answer"),
        cell("code", "ratio-measure", solved("measured = ...", "measured = number / 2"), "answer"),
        check("ratio", "print(predicted, measured)", 3),
        cell("markdown", "rubric-why", "## Why?\n\n5 points for a reason.", "text"),
        cell("markdown", "question-why", "Because the SECRET says so.", "words", points=5),
    ]
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel}
    return node({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells})


def blank(source: NotebookNode) -> NotebookNode:
    """What students get of a source."""
    return given(source)


def release() -> NotebookNode:
    """What students get of the small assignment."""
    return blank(source())


def perfect() -> dict[str, Any]:
    """The JSON of a hand-in with every answer, and a helper in a cell of its own."""
    made = release()
    for one in made.cells:
        one.source = ANSWERS.get(one.id, one.source)
    made.cells.insert(2, cell("code", "a1b2c3", HELPER))
    plain: dict[str, Any] = json.loads(text_of(made))
    return plain


def text_of(notebook: dict[str, Any]) -> str:
    """The file of a notebook, whether it is valid or not."""
    return json.dumps(notebook, ensure_ascii=False, indent=1)


def course_with_release(folder: Path, name: str = "pointing") -> Path:
    """A course in which the small assignment is given out."""
    path = folder / "release" / name / f"{name}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(release(), path)  # type: ignore[no-untyped-call]
    return folder
