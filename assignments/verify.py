"""The check inside the source notebooks, for the instructor who runs one; no release holds it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from attention_lib.checks.runner import examine

from .tasks import Task, assignments


def verify(
    fn: Callable[..., Any] | None = None, *, task: str = "", student: str = "", **found: object
) -> None:
    """Nothing if the answer is right. Raises AssertionError with the diagnosis if not.

    A function is compared by `verify(fn)`, as the task called fn.__name__ or `task`. The two variables
    of a question whose numbers each student draws are compared together, as in
    `verify(task="spread", student=STUDENT, predicted=predicted, measured=measured)`.
    Raises LookupError for a task that no assignment has. This runs in the notebook's own process: it
    tells an instructor that a source is sound, and is no grader.
    """
    name = task or getattr(fn, "__name__", "")
    asked = _task(name)
    exercise, numbers = asked.exercise, asked.numbers
    if numbers is not None:
        exercise = replace(exercise, inputs=lambda rng, trial: numbers(student), trials=1)
    said = examine(exercise, fn or (lambda *case: [found.get(part) for part in exercise.returns]))
    if not said.startswith("correct"):
        raise AssertionError(f"{name}: {said}")


def _task(name: str) -> Task:
    for assignment in assignments().values():
        for task in assignment.tasks:
            if task.name == name:
                return task
    raise LookupError(f"no assignment has a task called {name!r}")
