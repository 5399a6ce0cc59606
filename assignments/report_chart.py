"""The picture of a report: for each question a bar of right answers, and under it the mistakes."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .tally import Question

INK, GREY, FAINT, BLUE, BRICK, STONE = "#1f2933 #52606d #e4e7eb #2f6690 #c8553d #9aa5b1".split()
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "assignments",
    "text.parse_math": False,
    "font.family": "sans-serif",
}
# Inches: the whole, before the bars, after them, at the sides, above; of a line, between rows.
WIDTH, LEFT, RIGHT, EDGE, TOP = 9.0, 4.8, 1.2, 0.3, 0.8
LINE, GAP, SPACE = 0.19, 0.09, 0.3
MOST = 5  # mistakes of one question that have a bar of their own
LETTERS, NAME = 56, 44  # in a line of a label, of a question's name
NOTHING = "Nothing is marked yet."


def drawn(title: str, questions: Sequence[Question]) -> bytes:
    """The picture as SVG, with its contents in words for who does not see it."""
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        file = io.BytesIO()
        figure(title, questions).savefig(
            file, format="svg", metadata={"Date": None, "Creator": None}
        )
    words = f"<title>{escape(title)}: mistakes by question</title><desc>{escape(described(questions))}</desc>"
    head, mark, rest = file.getvalue().decode().partition("<svg ")
    start, close, body = rest.partition(">")
    return f'{head}{mark}role="img" {start}{close}\n {words}{body}'.encode()


def described(questions: Sequence[Question]) -> str:
    """What the picture shows, in sentences."""
    if not any(question.of for question in questions):
        return NOTHING
    said = []
    for question in questions:
        said.append(f"{question.name}: {question.right} of {question.of} right.")
        said += [f"{count} times: {label}" for label, count, _ in shown(question)]
    return " ".join(said)


def shown(question: Question) -> list[tuple[str, int, str]]:
    """The rows under a question: label, number and colour. Rare mistakes share the last."""
    most = MOST if len(question.mistakes) > MOST + 1 else MOST + 1
    often, seldom = question.mistakes[:most], question.mistakes[most:]
    times = Counter(one.short for one in often)
    rows = [
        (
            one.short if times[one.short] == 1 else f"{one.short} ({one.setting})",
            one.count,
            BRICK if one.setting else STONE,
        )
        for one in often
    ]
    if seldom:
        rows.append((f"{len(seldom)} rarer mistakes.", sum(one.count for one in seldom), STONE))
    return rows


def figure(title: str, questions: Sequence[Question]) -> Figure:
    """The picture; one unit of its only Axes is an inch, counted from the top left."""
    most = max((question.of for question in questions), default=0)
    rows = [row for question in questions for row in _rows(question) if most]
    height = TOP + sum(map(_height, rows)) + (SPACE if rows else LINE)
    made = Figure(figsize=(WIDTH, height), facecolor="white")
    ax = made.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0))
    ax.set_axis_off()
    students = f"{most} student{'s' * (most != 1)}. Blue: right answers. Red: what was done instead. Grey: the rest."
    ax.text(EDGE, 0.36, title, fontsize=14, fontweight="bold", color=INK, va="center")
    ax.text(EDGE, 0.66, students if most else NOTHING, fontsize=9.5, color=GREY, va="center")
    y = TOP
    for row in rows:
        y += _height(row)
        _draw(ax, row, y)
    return made


@dataclass(frozen=True)
class _Row:
    """One bar: of a question, or of a mistake under it."""

    lines: list[str]
    count: int
    of: int
    colour: str

    @property
    def whole(self) -> bool:
        return self.colour == BLUE


def _rows(question: Question) -> list[_Row]:
    first = _Row(wrap(question.name, NAME), question.right, question.of, BLUE)
    under = ((wrap(label, LETTERS), count, colour) for label, count, colour in shown(question))
    return [first, *(_Row(lines, count, question.of, colour) for lines, count, colour in under)]


def _height(row: _Row) -> float:
    return (SPACE if row.whole else GAP) + LINE * len(row.lines)


def _draw(ax: Axes, row: _Row, bottom: float) -> None:
    """One row, its last line of text ending at `bottom`."""
    middle = bottom - LINE * len(row.lines) / 2
    big = row.whole
    label: dict[str, Any] = {
        "fontsize": 11 if big else 9.5,
        "fontweight": "bold" if big else "normal",
    }
    x, base = EDGE if big else EDGE + 0.2, middle + 0.05
    if len(row.lines) == 1:
        ax.text(x, base, row.lines[0], color=INK if big else GREY, **label)
    else:
        text = "\n".join(row.lines)
        ax.text(x, middle, text, color=INK if big else GREY, va="center", linespacing=1.25, **label)
    length, thick = WIDTH - LEFT - RIGHT, 0.17 if big else 0.11
    share = row.count / row.of if row.of else 0.0
    for part, colour in ((1.0, FAINT), (share, row.colour)):
        corner = (LEFT, middle - thick / 2)
        ax.add_patch(Rectangle(corner, part * length, thick, color=colour, linewidth=0))
    for x, number in ((WIDTH - RIGHT + 0.42, str(row.count)), (WIDTH - EDGE, f"{share:.0%}")):
        ax.text(x, base, number, fontsize=9.5, ha="right", color=INK if big else GREY)
