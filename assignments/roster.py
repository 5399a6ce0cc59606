"""Which row of a list of students belongs to whom."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from .csv_file import CsvFile

NUMBERED = re.compile(r"(?P<name>.+)_(?P<number>\d+)")
# Titles as Canvas and Moodle have them, the latter in English, German and French.
IDS = ("SIS Login ID", "SIS User ID", "Integration ID", "ID number", "ID-Nummer", "Username", "ID")
MAILS = (
    *("Email", "Email address", "E-mail", "E-Mail-Adresse", "Adresse de courriel"),
    *("Adresse e-mail", "SIS Login ID"),
)
NUMBERS = ("ID", "Identifier", "Identifiant")
NAMES = ("Student", "Full name", "Name", "Vollständiger Name", "Nom complet")
FIRST, LAST = ("First name", "Vorname", "Prénom"), ("Last name", "Surname", "Nachname", "Nom")


@dataclass(frozen=True)
class Person:
    """What a row says of a student: ids, the number that Canvas or Moodle gave, names without spaces.

    sure: the number is Moodle's, as in "Participant 4711", and nobody else's.
    """

    row: int
    ids: frozenset[str]
    mails: frozenset[str]
    number: str
    sure: bool
    names: frozenset[str]


def placed(students: Iterable[str], sheet: CsvFile) -> tuple[dict[str, int], dict[str, str]]:
    """The row of each student, and for each without one the reason.

    An id or an address counts before the system's number, and that before the name alone. Moodle's
    number needs no name beside it: marked blind, there is none. Nobody gets a row that also fits another.
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
        fits = [one for one in people if one.number == numbered["number"]]
        yield [one.row for one in fits if one.sure or name in one.names]
    yield [one.row for one in people if key in {mail.split("@")[0] for mail in one.mails}]
    yield [one.row for one in people if name and name in one.names]


def _person(sheet: CsvFile, row: int) -> Person:
    def texts(titles: Iterable[str]) -> list[str]:
        found = (sheet.text(row, sheet.column(title)).strip() for title in titles)
        return [text for text in found if text]

    keys = {unicodedata.normalize("NFC", text).casefold() for text in texts(IDS)}
    mails = {text.casefold() for text in texts(MAILS) if "@" in text}
    number = next(iter(texts(NUMBERS)), "")
    first, last = " ".join(texts(FIRST)), " ".join(texts(LAST))
    full = [*texts(NAMES), *([f"{last}, {first}"] if first and last else [])]
    parts = [text.partition(",") for text in full]
    names = {squashed(one + two) for a, _, b in parts for one, two in ((a, b), (b, a))}
    sure = re.fullmatch(r"[^\W\d].*?\d+", number) is not None
    digits = re.sub(r"\D", "", number)
    return Person(row, frozenset(keys), frozenset(mails), digits, sure, frozenset(names - {""}))


def squashed(name: str) -> str:
    """A name's letters and digits only, without accents, in small letters."""
    apart = unicodedata.normalize("NFKD", name).casefold()
    return "".join(letter for letter in apart if letter.isalnum())
