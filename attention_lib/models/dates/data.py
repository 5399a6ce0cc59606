"""Dates as people write them, each with its ISO form and with the characters it is made of.

    tuesday, 3 march 1987     →     1987-03-03

Which characters of the text decide each character of the result is known beforehand, so that a
learned alignment can be held against it. Some days of a month and some months of a year are held
out: no training date holds them together.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

from ..corpus import Split

MONTHS = tuple(
    "january february march april may june july august september october november december".split()
)
WEEKDAYS = tuple("monday tuesday wednesday thursday friday saturday sunday".split())
FORMS = (
    "{day} {month} {year}",
    "{month} {day}, {year}",
    "{day} {mon} {year}",
    "{mon} {day}, {year}",
    "{weekday}, {day} {month} {year}",
    "the {nth} of {month}, {year}",
    "{year}, {month} {day}",
)
FIRST, LAST = date(1900, 1, 1), date(2029, 12, 31)
DATES_ALPHABET = " ,0123456789abcdefghijklmnopqrstuvwxyz"
ISO_ALPHABET = "-0123456789"
MAX_TEXT = 28  # characters of "wednesday, 10 september 1987"


@dataclass(frozen=True)
class WrittenDate:
    """A text, its ISO form, and (start, stop) of the characters of the text that say each part."""

    text: str
    iso: str
    year: tuple[int, int]
    month: tuple[int, int]
    day: tuple[int, int]

    @property
    def sources(self) -> tuple[tuple[int, int] | None, ...]:
        """For each character of `iso` the part of the text that decides it.

        None for what stands nowhere in the text: the hyphens, and the 0 before a day below 10.
        """
        tens = None if self.iso[8] == "0" else self.day
        return (*[self.year] * 4, None, *[self.month] * 2, None, tens, self.day)


def write_date(day: date, form: str = FORMS[0]) -> WrittenDate:
    """Write a date in one of FORMS. Raises ValueError for a form without a year, month and day."""
    parts = {
        "day": str(day.day),
        "nth": f"{day.day}{_ending(day.day)}",
        "month": MONTHS[day.month - 1],
        "mon": MONTHS[day.month - 1][:3],
        "year": str(day.year),
        "weekday": WEEKDAYS[day.weekday()],
    }
    text, spans = "", {}
    for piece in re.split(r"(\{\w+\})", form):
        name = piece.strip("{}")
        start = len(text)
        text += parts[name] if piece.startswith("{") else piece
        spans[{"nth": "day", "mon": "month"}.get(name, name)] = start, len(text)
    if not {"year", "month", "day"} <= spans.keys():
        raise ValueError(f"a form needs a year, a month and a day: found {form!r}")
    return WrittenDate(text, day.isoformat(), spans["year"], spans["month"], spans["day"])


def _ending(day: int) -> str:
    if day in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


class Calendar:
    """Draws dates, and keeps some combinations out of those for training.

    held_out_days: 73 of the 366 days of a month, as (month, day).
    held_out_months: 312 of the 1,560 months from 1900 to 2029, as (year, month).
    3 March and March 1987 are always among them.
    """

    def __init__(self, seed: int = 0) -> None:
        rng = Random(seed)
        leap_year = [date(2000, 1, 1) + timedelta(i) for i in range(366)]
        days = [(day.month, day.day) for day in leap_year]
        months = [(y, m) for y in range(FIRST.year, LAST.year + 1) for m in range(1, 13)]
        self.held_out_days = _sample(rng, days, (3, 3), 73)
        self.held_out_months = _sample(rng, months, (1987, 3), 312)

    def date(self, rng: Random, split: Split) -> WrittenDate:
        """Draw one date in one of FORMS.

        split "train": nothing that is held out. "test": both its day of the month and its month of
        the year are. Raises ValueError for another split.
        """
        if split not in ("train", "test"):
            raise ValueError(f"split must be 'train' or 'test', not {split!r}")
        while True:
            day = FIRST + timedelta(rng.randrange((LAST - FIRST).days + 1))
            held_out = (
                (day.month, day.day) in self.held_out_days,
                (day.year, day.month) in self.held_out_months,
            )
            if not any(held_out) if split == "train" else all(held_out):
                return write_date(day, rng.choice(FORMS))


def _sample(
    rng: Random, pairs: Sequence[tuple[int, int]], always: tuple[int, int], size: int
) -> frozenset[tuple[int, int]]:
    others = [pair for pair in pairs if pair != always]
    return frozenset([always, *rng.sample(others, size - 1)])
