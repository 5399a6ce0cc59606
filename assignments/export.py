"""The marks of an assignment in the form that Canvas, Moodle or Gradescope take."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from .csv_file import CsvFile, written
from .folders import write
from .gradescope import as_table, remembered, results
from .outdated import leave_out
from .roster import NUMBERED, placed
from .tasks import NAMES, assignments
from .totals import Total, totals_of

NUMBER = re.compile(r" \(\d+\)$")  # that Canvas puts behind an assignment's title
# Moodle's titles in English, German and French.
GRADE, MAXIMUM = ("Grade", "Bewertung", "Note"), ("Maximum grade", "Bestwertung", "Note maximale")
COMMENTS = ("Feedback comments", "Feedback als Kommentar", "Feedback par commentaires")
CHANGES = "Grade can be changed", "Bewertung kann geändert werden", "La note peut être modifiée"
NO = ("no", "nein", "non")
Fill = Callable[[CsvFile, Mapping[int, Total], Sequence[str]], dict[int, str]]


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
    totals = totals_of(course, name)
    old = leave_out(course, name, [total.student for total in totals], outdated=outdated)
    totals = [total for total in totals if total.student not in old]
    titles = [column] if column else _titles(name)
    path = course / "export" / f"{name}-{to}.csv"
    waiting = [total for total in totals if total.open]
    ready = [total for total in totals if not (only_complete and total.open)]
    said = ""
    if to == "gradescope":
        folder = path.with_suffix("")
        for student in [*old, *(total.student for total in totals)]:
            (folder / student / "results.json").unlink(missing_ok=True)
        table = as_table(totals, remembered(course, name), only_complete=only_complete)
        paths = [*results(folder, ready), write(path, table)]
        said = f", and for each a results.json in {folder}"
    elif roster is not None:
        fill = partial(_canvas, new=column is not None) if to == "canvas" else _moodle
        paths = [write(path, _filled(roster, totals, titles, fill, only_complete))]
    else:
        new = _new_canvas(ready, titles[0]) if to == "canvas" else _new_moodle(ready)
        paths = [write(path, written(new))]
    print(f"The marks of {len(ready)} students: {path}{said}")
    for total in waiting:
        print(f"  {total.student} waits for a mark by hand: {', '.join(total.open)}")
    if waiting:
        lack = "they have no total here" if only_complete else "their totals lack it"
        print(f"{len(waiting)} students wait for a mark by hand; {lack}.")
    return paths


def _titles(name: str) -> list[str]:
    """What a column of the assignment may be called; the first is what we call it."""
    return [assignments()[name].title, name] if name in NAMES else [name]


def _filled(
    roster: Path, totals: Sequence[Total], titles: Sequence[str], fill: Fill, only_complete: bool
) -> bytes:
    """The roster with the marks in it. Prints who has no row and how many rows nobody fills."""
    sheet = CsvFile(roster.read_bytes())
    rows, reasons = placed([total.student for total in totals], sheet)
    found = {rows[total.student]: total for total in totals if total.student in rows}
    for row, total in list(found.items()):
        if only_complete and total.open:
            reasons[found.pop(row).student] = "it waits for a mark by hand"
    for row, reason in fill(sheet, found, titles).items():
        reasons[found.pop(row).student] = reason
    print(f"{roster}: {len(found)} of {len(totals)} students found.")
    for student, reason in sorted(reasons.items()):
        print(f"  {student} is not filled in: {reason}")
    return sheet.to_bytes()


def _canvas(
    sheet: CsvFile, found: Mapping[int, Total], titles: Sequence[str], *, new: bool
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


def _moodle(sheet: CsvFile, found: Mapping[int, Total], titles: Sequence[str]) -> dict[int, str]:
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
        total = found[row]
        points = f"{total.points:g}"
        sheet.put(row, grade, points.replace(".", ",") if decimal else points)
        if said is not None:
            sheet.put(row, said, total.said)
    ours = {f"{total.out_of:g}" for total in found.values()}
    theirs = {re.sub(r"\.0*$", "", text.replace(",", ".")) for text in maxima}
    if found and theirs and theirs != ours:
        print(f"  Moodle's maximum is {', '.join(sorted(theirs))}, ours {', '.join(sorted(ours))}.")
    return locked


def _new_canvas(totals: Sequence[Total], title: str) -> list[list[str]]:
    rows = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", title]]
    rows += [["    Points Possible", "", "", "", "", f"{total.out_of:g}"] for total in totals[:1]]
    for total in totals:
        numbered = NUMBERED.fullmatch(total.student)
        who = (
            [numbered["name"], numbered["number"], "", ""] if numbered else [total.student, "", ""]
        )
        rows.append([*who, *([] if numbered else [total.student]), "", f"{total.points:g}"])
    return rows


def _new_moodle(totals: Sequence[Total]) -> list[list[str]]:
    rows = [[total.student, f"{total.points:g}", total.said] for total in totals]
    return [["ID number", "Grade", "Feedback"], *rows]
