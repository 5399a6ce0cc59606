"""Which mistakes a class made and how often, counted without anybody's name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .tasks import NAMES, Task, assignments

# What a wrong answer without a known mistake is counted under, by its kind.
OTHERS = {
    "nameless": "The name is missing.",
    "blank": "It is not written.",
    "time": "It did not come to an end.",
    "stopped": "It was stopped: too much memory, too many processes, or the end of Python.",
    "raised": "It raised an error.",
    "changed": "The values are right, but an argument was changed in place.",
    "shape": "The result has another shape or type.",
    "unread": "What was handed in could not be read as this assignment.",
    "values": "Something else.",
}


@dataclass(frozen=True)
class Mistake:
    """A mistake in one question: its setting, e.g. "scale: none" ("" if it is no known one), the
    advice that it earns, and how many made it."""

    setting: str
    advice: str
    count: int

    @property
    def short(self) -> str:
        """What was done, without what to do."""
        return re.split(r"(?<=[.:])\s", self.advice, maxsplit=1)[0].rstrip(":.") + "."


@dataclass(frozen=True)
class Question:
    """How one question went: how many of `of` answers are right, and the mistakes, frequent ones first."""

    name: str
    right: int
    of: int
    mistakes: tuple[Mistake, ...]


def tally(name: str, found: Sequence[Sequence[Mapping[str, Any]]]) -> list[Question]:
    """The questions of an assignment in order, from the marks of each student."""
    tasks = {task.name: task for task in assignments()[name].tasks} if name in NAMES else {}
    others = (mark["question"] for questions in found for mark in questions)
    return [
        _question(
            question,
            tasks.get(question),
            [m for s in found for m in s if m["question"] == question],
        )
        for question in dict.fromkeys([*tasks, *others])
    ]


def _question(name: str, task: Task | None, answers: Sequence[Mapping[str, Any]]) -> Question:
    known = task.exercise.settings if task else {}
    wrong = [mark for mark in answers if mark["points"] < mark["out_of"]]
    counts = Counter(made for mark in wrong for made in _made(mark, known))
    mistakes = [Mistake(*made, count) for made, count in counts.items()]
    mistakes.sort(key=lambda one: (-one.count, not one.setting, one.setting, one.advice))
    return Question(name, len(answers) - len(wrong), len(answers), tuple(mistakes))


def _made(mark: Mapping[str, Any], known: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str]]:
    """The mistakes in one answer: setting and advice, never what was said to the student."""
    if mark["settings"]:
        return [
            (f"{knob}: {setting}", known.get(knob, {}).get(setting, f"{knob}: {setting}"))
            for knob, setting in mark["settings"].items()
        ]
    return [("", OTHERS.get(mark.get("kind", ""), OTHERS["values"]))]
