"""Which mistakes a class made and how often, as text, table and picture, without anybody's name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

from .doctor import unmarked
from .outdated import leave_out
from .picture import drawn
from .sheet import written
from .shelf import LinkError, marks, submission, write
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


def report(course: Path, name: str, *, outdated: bool = False) -> tuple[Path, Path, str]:
    """Write COURSE/export/<name>-report.csv and .svg, print the table; returns both paths and the text.

    An answer with two mistakes counts under both. Questions that are marked by hand are not in it.
    Where a blank notebook stands for what came, the report says that it could not be read. outdated:
    count also marks that are not for what is handed in now.
    """
    found = marks(course, name)
    for student in leave_out(course, name, found, outdated=outdated):
        del found[student]
    for student, answers in found.items():
        try:
            data = submission(course, name, student).read_bytes()
        except (OSError, LinkError):
            continue
        if unmarked(data):
            found[student] = [one | {"kind": "unread", "settings": {}} for one in answers]
    questions = tally(name, list(found.values()))
    text = as_text(name, questions)
    print(text)
    folder = course / "export"
    table = write(folder / f"{name}-report.csv", written(as_rows(questions)))
    title = assignments()[name].title if name in NAMES else name
    picture = write(folder / f"{name}-report.svg", drawn(title, questions))
    return table, picture, text


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


def as_text(name: str, questions: Sequence[Question]) -> str:
    """The table for a terminal."""
    if not any(question.of for question in questions):
        return f"Nothing of {name} is marked yet."
    blocks = []
    for question in questions:
        lines = [f"{question.name}: {question.right} of {question.of} right"]
        for one in question.mistakes:
            begin = f"{one.count:6} {one.count / question.of:5.0%}  "
            lines.append(
                fill(one.advice, 100, initial_indent=begin, subsequent_indent=" " * len(begin))
            )
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def as_rows(questions: Sequence[Question]) -> list[list[str]]:
    """The table for a spreadsheet."""
    rows = [["question", "what", "answers", "of", "share", "advice"]]
    for question in questions:
        whole = Mistake("right", "", question.right)
        for one in (whole, *question.mistakes):
            share = f"{one.count / question.of:.3f}" if question.of else ""
            what = one.setting or "no known mistake"
            rows.append([question.name, what, str(one.count), str(question.of), share, one.advice])
    return rows
