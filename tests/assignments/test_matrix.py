"""Every mistake costs the points of its own question and of no other, in the sandbox as in a course."""

from __future__ import annotations

import importlib
import re
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from assignments.grader.grade import SOURCES, Mark, grade_notebook
from assignments.tasks import Assignment, Task, assignments
from tests import answers
from tests.answers import Answer

pytestmark = pytest.mark.needs("bubblewrap")

FEW = 3  # mistakes of a task in every run, 60 in all; `make test-slow` takes every one
STUDENT, SEED = "solution", 11


class Attempt(NamedTuple):
    """One of the answers in tests/assignments/mutants_<assignment>.py, by its number."""

    assignment: Assignment
    task: Task
    number: int
    answer: Answer

    def __str__(self) -> str:
        return f"{self.task.name}, {self.answer.settings or 'right'}"


def attempts() -> list[Attempt]:
    """Every answer of every assignment."""
    found = []
    for assignment in assignments().values():
        mutants = importlib.import_module(f"tests.assignments.mutants_{assignment.name}")
        tasks = {task.name: task for task in assignment.tasks}
        for number, answer in enumerate(mutants.ANSWERS):
            found.append(Attempt(assignment, tasks[answer.task], number, answer))
    return found


def some(every: list[Attempt]) -> list[Attempt]:
    """FEW mistakes of each task, from the first to the last."""
    chosen = []
    for task in (task for assignment in assignments().values() for task in assignment.tasks):
        wrong = [one for one in every if one.task is task and one.answer.settings]
        chosen += [wrong[i * (len(wrong) - 1) // (FEW - 1)] for i in range(FEW)]
    return chosen


def solved(name: str) -> NotebookNode:
    """The source with its solutions, as a student could have written them."""
    return nbformat.read(SOURCES / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call]


def with_answer(attempt: Attempt) -> NotebookNode:
    """The solutions, but for one question the answer of the attempt."""
    notebook = deepcopy(solved(attempt.assignment.name))
    task, answer = attempt.task, attempt.answer
    if task.numbers is not None:
        numbers = answer.fn(*task.numbers(STUDENT))
        text = "\n".join(
            f"{name} = {float(number)!r}"
            for name, number in zip(task.exercise.returns, numbers, strict=True)
        )
    else:
        mutants = Path(__file__).with_name(f"mutants_{attempt.assignment.name}.py")
        text = "\n".join(path.read_text("utf-8") for path in (Path(answers.__file__), mutants))
        text = re.sub(r"^from tests.*$", "", text, flags=re.MULTILINE)
        text = re.sub(r"^import (torch\S*)(?: as (\w+))?$", lazily, text, flags=re.MULTILINE)
        # In a dictionary of its own: its names are not to meet those of the notebook.
        text = f"from __future__ import annotations\n{text}"
        text = f"mutants = {{'__name__': '__main__'}}\nexec({text!r}, mutants)\n"
        text += f"{task.name} = mutants['ANSWERS'][{attempt.number}].fn"
    notebook.cells.append(new_code_cell(text))  # type: ignore[no-untyped-call]
    return notebook


def lazily(statement: re.Match[str]) -> str:
    """The import of torch, which takes longer than all the rest, made when it is used."""
    module, name = statement[1], statement[2] or statement[1]
    return (
        f"{name} = type('', (), {{'__getattr__': lambda self, name: "
        f"getattr(__import__('importlib').import_module('{module}'), name)}})()"
    )


def graded(attempt: Attempt, slot: int) -> list[Mark]:
    return grade_notebook(
        with_answer(attempt), attempt.assignment, seed=SEED, student=STUDENT, slot=slot
    )


def misjudged(attempts: list[Attempt]) -> list[str]:
    """What is said of each answer that does not lose its own points, or loses others, or is not named."""
    with ThreadPoolExecutor(2) as pool:
        marks = list(pool.map(lambda pair: graded(pair[1], pair[0] % 2), enumerate(attempts)))
    wrong = []
    for attempt, found in zip(attempts, marks, strict=True):
        for mark in found:
            own = mark.question == attempt.task.name
            settings = attempt.answer.settings if own else {}
            expected = 0 if settings else mark.out_of
            if (mark.points, mark.settings) != (expected, settings):
                wrong.append(f"{attempt}: {mark}")
    return wrong


def test_each_mistake_costs_its_own_question_alone() -> None:
    chosen = some(attempts())
    assert len(chosen) >= 60
    assert misjudged(chosen) == []


def test_right_answers_of_another_kind_cost_nothing() -> None:
    right = [one for one in attempts() if not one.answer.settings]
    assert len(right) >= 12
    assert misjudged(right[::3]) == []


@pytest.mark.slow
def test_every_mistake_costs_its_own_question_alone() -> None:
    assert misjudged(attempts()) == []


@pytest.mark.parametrize("name", assignments())
def test_the_solution_earns_all_and_nothing_earns_nothing(name: str) -> None:
    assignment = assignments()[name]
    whole = solved(name)
    marks = grade_notebook(whole, assignment, seed=SEED, student=STUDENT)
    assert [(mark.points, mark.advice) for mark in marks] == [
        (mark.out_of, "Correct.") for mark in marks
    ]
    assert sum(mark.points for mark in marks) == 15
    nothing = grade_notebook(
        nbformat.v4.new_notebook(),  # type: ignore[no-untyped-call]
        assignment,
        seed=SEED,
        student=STUDENT,
    )
    assert [mark.points for mark in nothing] == [0, 0, 0, 0]
