"""Which row of a list of students belongs to whom."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from .sheet import Sheet

NUMBERED = re.compile(r"(?P<name>.+)_(?P<number>\d+)")
IDS = ("SIS Login ID", "SIS User ID", "Integration ID", "ID number", "Username", "ID")
MAILS = ("Email", "Email address", "E-mail", "SIS Login ID")
NUMBERS = ("ID", "Identifier")
NAMES = ("Student", "Full name", "Name")


@dataclass(frozen=True)
class Person:
    """What a row says of a student: ids, the number that Canvas or Moodle gave, names without spaces."""

    row: int
    ids: frozenset[str]
    mails: frozenset[str]
    number: str
    names: frozenset[str]


def placed(students: Iterable[str], sheet: Sheet) -> tuple[dict[str, int], dict[str, str]]:
    """The row of each student, and for each without one the reason.

    An id or an address counts before the system's number with the name, and that before the name
    alone. Nobody gets a row that also fits another.
    """
    people = [_person(sheet, row) for row in sheet.rows]
    rows: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for student in students:
        fits = next(filter(None, _fits(student, people)), [])
        if len(fits) == 1:
            rows[student] = fits[0]
        else:
            reasons[student] = f"{len(fits)} rows fit" if fits else "no row fits"
    shared = {row for row, times in Counter(rows.values()).items() if times > 1}
    for student in [student for student, row in rows.items() if row in shared]:
        reasons[student] = f"row {rows.pop(student) + 1} fits another hand-in too"
    return rows, reasons


def _fits(student: str, people: list[Person]) -> Iterable[list[int]]:
    """The rows that fit, by what counts most first."""
    key = student.casefold()
    yield [one.row for one in people if key in one.ids | one.mails]
    numbered = NUMBERED.fullmatch(student)
    name = squashed(numbered["name"] if numbered else student)
    if numbered:
        yield [one.row for one in people if one.number == numbered["number"] and name in one.names]
    yield [one.row for one in people if key in {mail.split("@")[0] for mail in one.mails}]
    yield [one.row for one in people if name and name in one.names]


def _person(sheet: Sheet, row: int) -> Person:
    def texts(titles: Iterable[str]) -> list[str]:
        found = (sheet.text(row, sheet.column(title)).strip() for title in titles)
        return [text for text in found if text]

    keys = {unicodedata.normalize("NFC", text).casefold() for text in texts(IDS)}
    mails = {text.casefold() for text in texts(MAILS) if "@" in text}
    numbers = [re.sub(r"\D", "", text) for text in texts(NUMBERS)]
    first = " ".join(texts(["First name"]))
    last = " ".join(texts(["Last name", "Surname"]))
    full = [*texts(NAMES), *([f"{last}, {first}"] if first and last else [])]
    parts = [text.partition(",") for text in full]
    names = {squashed(one + two) for a, _, b in parts for one, two in ((a, b), (b, a))}
    return Person(
        row, frozenset(keys), frozenset(mails), (numbers or [""])[0], frozenset(names - {""})
    )


def squashed(name: str) -> str:
    """A name's letters and digits only, without accents, in small letters."""
    apart = unicodedata.normalize("NFKD", name).casefold()
    return "".join(letter for letter in apart if letter.isalnum())
