"""The marks of an assignment in the form that Canvas, Moodle or Gradescope take."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from .gradescope import as_table, remembered, results
from .outdated import leave_out
from .roster import NUMBERED, placed
from .scores import Score, scores_of
from .sheet import Sheet, written
from .shelf import write
from .tasks import NAMES, assignments

NUMBER = re.compile(r" \(\d+\)$")  # that Canvas puts behind an assignment's title
# Moodle's titles in English, German and French.
GRADE, MAXIMUM = ("Grade", "Bewertung", "Note"), ("Maximum grade", "Bestwertung", "Note maximale")
COMMENTS = ("Feedback comments", "Feedback als Kommentar", "Feedback par commentaires")
CHANGES = "Grade can be changed", "Bewertung kann geändert werden", "La note peut être modifiée"
NO = ("no", "nein", "non")
Fill = Callable[[Sheet, Mapping[int, Score], Sequence[str]], dict[int, str]]


def export(
    course: Path,
    name: str,
    to: str,
    roster: Path | None = None,
    *,
    column: str | None = None,
    only_complete: bool = False,
    outdated: bool = False,
) -> list[Path]:
    """Write the marks into COURSE/export for `to`: canvas, moodle or gradescope; returns the files.

    roster: the CSV that Canvas or Moodle exported, to be filled in; all else in it stays byte for
    byte. column: the title of the column for the marks, where it is called neither like the
    assignment nor, in Moodle, "Grade"; a new one if Canvas has none of this title. only_complete:
    leave out the totals that lack a mark by hand. outdated: take also marks that are not for what is
    handed in now. For Gradescope, a results.json a student and one
    CSV. Prints who has no row, with the reason, and whose questions wait for a mark by hand.

    Raises FileNotFoundError if nothing is marked, ValueError for a roster that cannot be filled.
    """
    if to not in ("canvas", "moodle", "gradescope"):
        raise ValueError(f"marks go to canvas, moodle or gradescope, not to {to}")
    scores = scores_of(course, name)
    old = leave_out(course, name, [score.student for score in scores], outdated=outdated)
    scores = [score for score in scores if score.student not in old]
    titles = [column] if column else _titles(name)
    path = course / "export" / f"{name}-{to}.csv"
    waiting = [score for score in scores if score.open]
    ready = [score for score in scores if not (only_complete and score.open)]
    said = ""
    if to == "gradescope":
        folder = path.with_suffix("")
        for student in [*old, *(score.student for score in scores)]:
            (folder / student / "results.json").unlink(missing_ok=True)
        table = as_table(scores, remembered(course, name), only_complete=only_complete)
        paths = [*results(folder, ready), write(path, table)]
        said = f", and for each a results.json in {folder}"
    elif roster is not None:
        fill = partial(_canvas, new=column is not None) if to == "canvas" else _moodle
        paths = [write(path, _filled(roster, scores, titles, fill, only_complete))]
    else:
        new = _new_canvas(ready, titles[0]) if to == "canvas" else _new_moodle(ready)
        paths = [write(path, written(new))]
    print(f"The marks of {len(ready)} students: {path}{said}")
    for score in waiting:
        print(f"  {score.student} waits for a mark by hand: {', '.join(score.open)}")
    if waiting:
        totals = "they have no total here" if only_complete else "their totals lack it"
        print(f"{len(waiting)} students wait for a mark by hand; {totals}.")
    return paths


def _titles(name: str) -> list[str]:
    """What a column of the assignment may be called; the first is what we call it."""
    return [assignments()[name].title, name] if name in NAMES else [name]


def _filled(
    roster: Path, scores: Sequence[Score], titles: Sequence[str], fill: Fill, only_complete: bool
) -> bytes:
    """The roster with the marks in it. Prints who has no row and how many rows nobody fills."""
    sheet = Sheet(roster.read_bytes())
    rows, reasons = placed([score.student for score in scores], sheet)
    found = {rows[score.student]: score for score in scores if score.student in rows}
    for row, score in list(found.items()):
        if only_complete and score.open:
            reasons[found.pop(row).student] = "it waits for a mark by hand"
    for row, reason in fill(sheet, found, titles).items():
        reasons[found.pop(row).student] = reason
    print(f"{roster}: {len(found)} of {len(scores)} students found.")
    for student, reason in sorted(reasons.items()):
        print(f"  {student} is not filled in: {reason}")
    return sheet.to_bytes()


def _canvas(
    sheet: Sheet, found: Mapping[int, Score], titles: Sequence[str], *, new: bool
) -> dict[int, str]:
    """Fill the assignment's column of Canvas's gradebook; returns who was left out.

    Without such a column, a new one comes last, if `new` or if Canvas knows no assignment at all.
    """
    student = sheet.column("Student")
    if student is None:
        raise ValueError("the roster has no column Student: export the gradebook from Canvas")
    plain = [NUMBER.sub("", title).casefold() for title in sheet.header]
    fits = [at for at, title in enumerate(plain) if title in [one.casefold() for one in titles]]
    fits = [at for at, title in enumerate(sheet.header) if title in titles] or fits
    if len(fits) > 1:
        raise ValueError(f"the roster has {len(fits)} columns called {sheet.header[fits[0]]}")
    if not fits:
        called = " or ".join(titles)
        there = [title for title in sheet.header if NUMBER.search(title)]
        if there and not new:
            raise ValueError(
                f"no column of the roster is called {called}: name yours with --column; "
                f"there are {', '.join(there)}. A title that is not among them makes a new assignment"
            )
        print(f"No column of the roster is called {called}; a new one was added.")
    column = fits[0] if fits else sheet.add(titles[0])
    for row in sheet.rows:
        if not fits and sheet.text(row, student).strip() == "Points Possible" and found:
            sheet.put(row, column, f"{next(iter(found.values())).out_of:g}")
    excused = {row: "is excused" for row in found if sheet.text(row, column).strip() == "EX"}
    for row in found.keys() - excused.keys():
        sheet.put(row, column, f"{found[row].points:g}")
    return excused


def _moodle(sheet: Sheet, found: Mapping[int, Score], titles: Sequence[str]) -> dict[int, str]:
    """Fill grade and comments of Moodle's grading worksheet; returns who was left out."""
    grade, most = sheet.column(*titles, *GRADE), sheet.column(*MAXIMUM)
    said = sheet.column(*COMMENTS)
    if grade is None:
        raise ValueError(f"the roster has no column Grade, but: {', '.join(sheet.header)}")
    maxima = {sheet.text(row, most).strip() for row in sheet.rows} - {""}
    decimal = any("," in text for text in maxima)
    changes = sheet.column(*CHANGES)
    locked = {
        row: "Moodle says that the grade cannot be changed"
        for row in found
        if sheet.text(row, changes).strip().casefold() in NO
    }
    for row in found.keys() - locked.keys():
        score = found[row]
        points = f"{score.points:g}"
        sheet.put(row, grade, points.replace(".", ",") if decimal else points)
        if said is not None:
            sheet.put(row, said, score.said)
    ours = {f"{score.out_of:g}" for score in found.values()}
    theirs = {re.sub(r"\.0*$", "", text.replace(",", ".")) for text in maxima}
    if found and theirs and theirs != ours:
        print(f"  Moodle's maximum is {', '.join(sorted(theirs))}, ours {', '.join(sorted(ours))}.")
    return locked


def _new_canvas(scores: Sequence[Score], title: str) -> list[list[str]]:
    rows = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", title]]
    rows += [["    Points Possible", "", "", "", "", f"{score.out_of:g}"] for score in scores[:1]]
    for score in scores:
        numbered = NUMBERED.fullmatch(score.student)
        who = (
            [numbered["name"], numbered["number"], "", ""] if numbered else [score.student, "", ""]
        )
        rows.append([*who, *([] if numbered else [score.student]), "", f"{score.points:g}"])
    return rows


def _new_moodle(scores: Sequence[Score]) -> list[list[str]]:
    rows = [[score.student, f"{score.points:g}", score.said] for score in scores]
    return [["ID number", "Grade", "Feedback"], *rows]
