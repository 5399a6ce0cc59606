"""Which mistakes a class made and how often, as text, table and picture, without anybody's name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from .csv_file import written
from .folders import LinkError, marks, submission, write
from .outdated import leave_out
from .repair import unmarked
from .report_chart import drawn
from .tally import Mistake, Question, tally
from .tasks import NAMES, assignments


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
