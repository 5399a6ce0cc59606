"""Who Gradescope's submissions belong to, and the marks in the form in which it shows them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from .csv_file import written
from .folders import write
from .roster import NUMBERED
from .totals import Total

LARGEST = 8_000_000  # bytes of it that are read
ABOUT = ("name", "sid", "email")
Person = dict[str, str]  # the keys ABOUT, each "" if it is not known
LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # of all YAML, it makes texts, lists, dicts


def people(data: bytes) -> dict[str, dict[str, Person]]:
    """The students of each submission, by their ids, from Gradescope's submission_metadata.yml.

    A student's id is `name_sid`, or what is known of the two, or the address; two submissions that
    would share an id have their numbers behind it in brackets, which no other id has. What cannot be
    the name of a folder becomes a hyphen. A group's submission has several students. A file that
    cannot be read has nobody, and a submission of which nothing is known is not in it. Nothing is
    raised, whatever the file holds.
    """
    found = {
        f"submission_{match[1]}": persons
        for key, value in _mapping(_loaded(data)).items()
        if isinstance(key, str) and (match := re.fullmatch(r"submission_(\d{1,20})", key))
        if (persons := _persons(value))
    }
    counts = Counter(_id(one).casefold() for persons in found.values() for one in persons)

    def unique(one: Person, key: str) -> str:
        text = _id(one)
        shared = counts[text.casefold()] > 1 or re.fullmatch(r"submission_\d+", text)
        return f"{text} ({key.removeprefix('submission_')})" if shared else text

    return {key: {unique(one, key): one for one in persons} for key, persons in found.items()}


def _loaded(data: bytes) -> Any:
    if len(data) > LARGEST:
        return None
    try:
        return yaml.load(data, Loader=LOADER)
    except Exception:  # somebody else's file may break the parser in any way
        return None


def _mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _persons(submission: Any) -> list[Person]:
    """What is known of those who handed in together; Gradescope writes keys as `:name`."""
    listed = _mapping(submission).get(":submitters")
    made = [
        {key: _clean(_mapping(one).get(f":{key}")) for key in ABOUT}
        for one in (listed[:100] if isinstance(listed, list) else [])
    ]
    return [one for one in made if _id(one)]


def _clean(value: Any) -> str:
    """A text in one line, without what a terminal would act on."""
    text = unicodedata.normalize("NFC", value[:200]) if isinstance(value, str) else ""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return "" if text in ("~", "null") else " ".join(shown.split())


def _id(one: Person) -> str:
    text = "_".join(filter(None, (one["name"][:40], one["sid"][:40]))) or one["email"][:40]
    return re.sub(r'[/\\:*?"<>|\[\]()]', "-", text).strip(" .")


def remember(course: Path, name: str, known: Mapping[str, Person]) -> None:
    """Keep what is known of the students of an assignment, beside what they handed in."""
    if known:
        text = json.dumps(remembered(course, name) | dict(known), indent=1, ensure_ascii=False)
        write(_place(course, name), f"{text}\n".encode("utf-8", "replace"))


def remembered(course: Path, name: str) -> dict[str, Person]:
    """What `remember` kept, by student; nothing if there is none."""
    with suppress(OSError, ValueError):
        return dict(_mapping(json.loads(_place(course, name).read_bytes())))
    return {}


def _place(course: Path, name: str) -> Path:
    return course / "received" / f"{name}-people.json"


def results(folder: Path, totals: Sequence[Total]) -> list[Path]:
    """A results.json for each student, in a folder of the student's own."""
    paths = []
    for total in totals:
        tests = [
            {
                "name": one.question,
                "score": one.points,
                "max_score": one.out_of,
                "output": one.said,
                "visibility": "visible",
            }
            for one in total.results
            if one.points is not None
        ]
        waiting = f"Not marked yet: {', '.join(total.open)}." if total.open else ""
        made = {
            "score": total.points,
            "output": waiting,
            "visibility": "visible",
            "tests": tests,
        }
        text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
        paths.append(write(folder / total.student / "results.json", text.encode()))
    return paths


def as_table(
    totals: Sequence[Total], known: Mapping[str, Person], *, only_complete: bool = False
) -> bytes:
    """A CSV of all students: name, SID and address where they are known, each question, the total."""
    questions = list(dict.fromkeys(one.question for total in totals for one in total.results))
    rows = [["Name", "SID", "Email", *questions, "Total"]]
    for total in totals:
        numbered = NUMBERED.fullmatch(total.student)
        person = _mapping(known.get(total.student)) or {
            "name": numbered["name"] if numbered else total.student
        }
        points = {one.question: one.points for one in total.results}
        marks = [_number(points.get(question)) for question in questions]
        whole = "" if only_complete and total.open else _number(total.points)
        rows.append([*(str(person.get(key, "")) for key in ABOUT), *marks, whole])
    return written(rows)


def _number(points: float | None) -> str:
    return "" if points is None else f"{points:g}"
