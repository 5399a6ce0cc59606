"""Marks that are older than the work they are for, so that nobody gets them unnoticed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from .folders import LinkError, handed_in, records, submission


def leave_out(
    course: Path, name: str, students: Iterable[str], *, outdated: bool = False
) -> set[str]:
    """Of students with marks those whose marks are for other work than what is handed in now.

    They are told with the reason, and so is who has handed in and has no marks. outdated: tell, and
    leave nobody out.
    """
    students = sorted(students)
    marked = {one: found.get("notebook sha256") for one, found in records(course, name).items()}
    old = {one: why for one in students if (why := _why(course, name, one, marked.get(one)))}
    unmarked = [one for one in handed_in(course, name) if one not in students]
    if old:
        done = (
            "counted all the same" if outdated else "left out; --outdated counts them all the same"
        )
        print(f"Marks that are not for what is handed in now ({done}):")
        for student, why in old.items():
            print(f"  {student}: {why}")
    if unmarked:
        print(f"Handed in and not marked yet: {', '.join(unmarked)}")
    return set() if outdated else {*old}


def _why(course: Path, name: str, student: str, marked: str | None) -> str:
    """Why the marks are old, "" if they are not. marked: the sum over the bytes that were marked."""
    if student not in handed_in(course, name):
        return "nothing is handed in any more"
    try:
        now = hashlib.sha256(submission(course, name, student).read_bytes()).hexdigest()
    except (OSError, LinkError):
        now = ""
    changed = marked is not None and now != marked
    return f"the hand-in has changed: python -m assignments grade {name}" if changed else ""
