"""Sentences on why a case has no output, from the reports of a driver that nobody trusts."""

import re
from collections.abc import Sequence
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np

from attention_lib.checks import Exercise
from attention_lib.checks.engine import Case
from attention_lib.checks.hints import hint

LONGEST_LINE, LONGEST_MESSAGE, LONGEST_NAME = 100, 200, 60
SEARCHED, SEARCHED_CODE = 2000, 5000  # characters of a message, and of code


class Trouble(NamedTuple):
    """Why a case has no output: one of the kinds of `grade.KINDS`, and one to three sentences."""

    kind: str
    text: str


NONE = Trouble("", "")


def trouble(
    report: Any, exercise: Exercise, case: Case, cells: Sequence[str], errors: Sequence[Any]
) -> Trouble:
    """Why a case has no output; NONE if the report says nothing sensible.

    report: what the driver says of the case. errors: what it says of the cells that failed.
    """
    kind = _get(report, "kind", str)
    if kind == "raised":
        return _raised(report, exercise, case, cells, errors)
    if kind == "blank":
        return Trouble("blank", "It is not written yet.")
    if kind == "missing":
        names = [_name(name) for name in _get(report, "names", list)[:5]]
        why = _failed_cell(exercise.returns or (exercise.name,), cells, errors)
        return Trouble("blank", " ".join([_missing(exercise, names), *why]))
    return Trouble("shape", _misfit(report, exercise)) if kind == "misfit" else NONE


def changed(report: Any, exercise: Exercise) -> list[str]:
    """The names of the arguments that the function changed in place."""
    names = dict(enumerate(exercise.names()))
    found = _get(report, "changed", list)
    return [names[at] for at in found if isinstance(at, int) and at in names]


def plain(text: str, most: int) -> str:
    """A student's text in one line, cut, without what a terminal or a page would act on."""
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", text[: 10 * most])
    printable = "".join(sign if sign.isprintable() else " " for sign in text)
    return shorten(printable, most, placeholder=" …")


def _get(report: Any, key: str, kind: type) -> Any:
    """An entry of the right type, or an empty one."""
    value = report.get(key) if isinstance(report, dict) else None
    return value if isinstance(value, kind) else kind()


def _name(value: object) -> str:
    return plain(value, LONGEST_NAME) if isinstance(value, str) else "?"


def _missing(exercise: Exercise, names: Sequence[str]) -> str:
    if names == [exercise.name]:
        return f"There is no function {exercise.name} in the notebook."
    return f"There is no {' and no '.join(names)} in the notebook."


def _failed_cell(
    names: Sequence[str], cells: Sequence[str], errors: Sequence[Any], *, any_other: bool = True
) -> list[str]:
    """What stopped the cell that should define one of the names, or else the first that failed."""
    found = [error for error in errors if isinstance(error, dict)]
    wanted = "|".join(map(re.escape, names))
    for error in found:
        number = _cell(error, cells)
        if number is not None and re.search(rf"\b({wanted})\b", cells[number]):
            return [_what_raised(error, cells, "Its cell raises")]
    return [_what_raised(error, cells, "An earlier cell raises") for error in found[:any_other]]


def _misfit(report: Any, exercise: Exercise) -> str:
    types = [_name(name) for name in _get(report, "types", list)[:10]]
    if exercise.returns and _get(report, "tuple", bool):
        found = f"The result holds {len(types)} parts ({', '.join(types)})"
    else:
        found = f"The result is of type {', '.join(types[:1])}"
    if not exercise.returns:
        return f"{found}, expected one array of numbers."
    return f"{found}, expected {len(exercise.returns)} arrays: {', '.join(exercise.returns)}."


def _raised(
    report: Any, exercise: Exercise, case: Case, cells: Sequence[str], errors: Sequence[Any]
) -> Trouble:
    kind, message = (_get(report, key, str)[:SEARCHED] for key in ("type", "message"))
    if kind == "NotImplementedError" and "attention_lib" not in message:
        return Trouble("blank", "It is not written yet.")
    if kind == "EOFError":
        return Trouble("raised", "It waits for input, and nobody answers while it is marked.")
    code, product = (text[-SEARCHED_CODE:] for text in _code(report, cells))
    axes = max(map(np.ndim, case), default=0)
    heads = dict(zip(exercise.names(), case, strict=False)).get("heads", 0)
    lost = re.match(r"name '(\w+)' is not defined", message) if kind == "NameError" else None
    why = _failed_cell(lost.groups(), cells, errors, any_other=False) if lost else []
    sentences = (
        _what_raised(report, cells, "It raises"),
        *why,
        f"This was for {exercise.shapes(case)}." if not why else "",
        hint(message, code, axes, heads if isinstance(heads, int) else 0, product),
    )
    return Trouble("raised", " ".join(filter(None, sentences)))


def _what_raised(report: Any, cells: Sequence[str], begin: str) -> str:
    number, line = _cell(report, cells), _get(report, "line", int)
    place = ""
    if number is not None:
        lines = cells[number].split("\n")
        place = f" in line {line}" if 0 < line <= len(lines) else ""
        text = plain(lines[line - 1], LONGEST_LINE) if place else ""
        place += f", `{text}`" if text else ""
    message = plain(_get(report, "message", str), LONGEST_MESSAGE).rstrip(".") or "no message"
    kind = _name(report.get("type"))
    only = " Only NumPy and torch are there." if kind == "ModuleNotFoundError" else ""
    return f"{begin} {kind}{place}: {message}.{only}"


def _cell(report: Any, cells: Sequence[str]) -> int | None:
    found = re.fullmatch(r"<cell (\d{1,6})>", _get(report, "file", str))
    number = int(found[1]) if found else len(cells)
    return number if number < len(cells) else None


def _code(report: Any, cells: Sequence[str]) -> tuple[str, str]:
    """The function's lines up to the one that raised, and the expression that raised."""
    number = _cell(report, cells)
    if number is None:
        return "", ""
    lines = cells[number].split("\n")
    first, last = _get(report, "function", int), _get(report, "line", int)
    place = _get(report, "place", list)
    if len(place) != 4 or not all(isinstance(at, int) and at >= 0 for at in place):
        return "\n".join(lines[max(first - 1, 0) : max(last, 0)]), ""
    start, end, left, right = place
    part = [line.encode(errors="replace") for line in lines[max(start - 1, 0) : end]] or [b""]
    part[-1] = part[-1][:right]  # columns count bytes
    part[0] = part[0][left:]
    product = b"\n".join(part).decode(errors="replace")
    return "\n".join(lines[max(first - 1, 0) : max(last, end)]), product
