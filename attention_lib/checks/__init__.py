"""Instant checks of the exercises: `check(fn)` says whether `fn` is right and, if not, why.

`exercises()` gives the same table of reference functions and known mistakes to tests and graders,
`diagnose` judges outputs that were computed elsewhere.
"""

import contextlib
import sys
from typing import TextIO

from . import chapter01, chapter02, chapter03, chapter04, chapter05, chapter06, chapter07
from .engine import Diagnosis, Exercise, diagnose
from .runner import examine

__all__ = ["Diagnosis", "Exercise", "check", "diagnose", "exercises"]


def exercises() -> dict[str, Exercise]:
    """Every exercise of the book by its name."""
    chapters = (chapter01, chapter02, chapter03, chapter04, chapter05, chapter06, chapter07)
    return {exercise.name: exercise for chapter in chapters for exercise in chapter.EXERCISES}


def check(fn: object, task: str | None = None) -> None:
    """Print in one paragraph whether `fn` solves its exercise and, if not, which mistake it makes.

    fn: the function itself. task: the exercise's name, if `fn` has another one.
    Never raises, whatever `fn` does, but for KeyboardInterrupt. The text is the same on every run.
    """
    stream = sys.stdout
    try:
        text = _report(fn, task)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        text = f"This could not be checked: {type(error).__name__}."
    finally:
        sys.stdout = stream
    _say(text, stream)


def _say(text: str, stream: TextIO) -> None:
    """Print to the stream or, if that is closed, to the process's own; else not at all."""
    for target in (stream, sys.__stdout__):
        with contextlib.suppress(Exception):
            print(text, file=target)
            return


def _report(fn: object, task: str | None) -> str:
    known = exercises()
    name = task if task is not None else getattr(fn, "__name__", "that")
    if not callable(fn):
        return f"check takes the function itself, without a call, as in check({next(iter(known))})."
    if not isinstance(name, str) or name not in known:
        return f"There is no exercise called {name}. The exercises are: {', '.join(known)}."
    return f"{name}: {examine(known[name], fn)}"
