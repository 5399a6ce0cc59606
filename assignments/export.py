"""The marks of an assignment in the form that Canvas, Moodle or Gradescope take."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .roster import NUMBERED, placed
from .scores import Score, scores_of
from .sheet import Sheet, written
from .shelf import write
from .tasks import NAMES, assignments

Fill = Callable[[Sheet, Mapping[int, Score], Sequence[str]], dict[int, str]]


def export(
    course: Path,
    name: str,
    to: str,
    roster: Path | None = None,
    *,
    column: str | None = None,
) -> list[Path]:
    """Write the marks into COURSE/export for `to`: canvas, moodle or gradescope; returns the files.

    roster: the CSV that Canvas or Moodle exported, to be filled in; all else in it stays byte for
    byte. column: the title of the column for the marks, where it is called neither like the
    assignment nor, in Moodle, "Grade". Prints who has no row, with the reason, and whose questions
    wait for a mark by hand.

    Raises FileNotFoundError if nothing is marked, ValueError for a roster that cannot be filled.
    """
    if to not in ("canvas", "moodle", "gradescope"):
        raise ValueError(f"marks go to canvas, moodle or gradescope, not to {to}")
    scores = scores_of(course, name)
    titles = [column] if column else _titles(name)
    path = course / "export" / f"{name}-{to}.csv"
    if to == "gradescope":
        paths = _gradescope(course / "export" / f"{name}-gradescope", scores)
    elif roster is not None:
        paths = [
            write(path, _filled(roster, scores, titles, _canvas if to == "canvas" else _moodle))
        ]
    else:
        new = _new_canvas(scores, titles[0]) if to == "canvas" else _new_moodle(scores)
        paths = [write(path, written(new))]
    print(
        f"The marks of {len(scores)} students: {path if paths == [path] else paths[0].parents[1]}"
    )
    for score in scores:
        if score.open:
            print(f"  {score.student} waits for a mark by hand: {', '.join(score.open)}")
    return paths


def _titles(name: str) -> list[str]:
    """What a column of the assignment may be called; the first is what we call it."""
    return [assignments()[name].title, name] if name in NAMES else [name]


def _filled(roster: Path, scores: Sequence[Score], titles: Sequence[str], fill: Fill) -> bytes:
    """The roster with the marks in it. Prints who has no row and how many rows nobody fills."""
    sheet = Sheet(roster.read_bytes())
    rows, reasons = placed([score.student for score in scores], sheet)
    found = {rows[score.student]: score for score in scores if score.student in rows}
    for row, reason in fill(sheet, found, titles).items():
        reasons[found.pop(row).student] = reason
    print(f"{roster}: {len(found)} of {len(scores)} students found.")
    for student, reason in sorted(reasons.items()):
        print(f"  {student} is not filled in: {reason}")
    return sheet.to_bytes()


def _canvas(sheet: Sheet, found: Mapping[int, Score], titles: Sequence[str]) -> dict[int, str]:
    """Fill the assignment's column of Canvas's gradebook, the last if it is new; returns who was left out."""
    student = sheet.column("Student")
    if student is None:
        raise ValueError("the roster has no column Student: export the gradebook from Canvas")
    plain = [re.sub(r" \(\d+\)$", "", title).casefold() for title in sheet.header]
    fits = [at for at, title in enumerate(plain) if title in [one.casefold() for one in titles]]
    fits = [at for at, title in enumerate(sheet.header) if title in titles] or fits
    if len(fits) > 1:
        raise ValueError(f"the roster has {len(fits)} columns called {sheet.header[fits[0]]}")
    column = fits[0] if fits else sheet.add(titles[0])
    for row in sheet.rows:
        if not fits and sheet.text(row, student).strip() == "Points Possible" and found:
            sheet.put(row, column, f"{next(iter(found.values())).out_of:g}")
    excused = {row: "is excused" for row in found if sheet.text(row, column).strip() == "EX"}
    for row in found.keys() - excused.keys():
        sheet.put(row, column, f"{found[row].points:g}")
    return excused


def _moodle(sheet: Sheet, found: Mapping[int, Score], titles: Sequence[str]) -> dict[int, str]:
    """Fill grade and comments of Moodle's grading worksheet."""
    grade, most = sheet.column(*titles, "Grade"), sheet.column("Maximum grade")
    said = sheet.column("Feedback comments")
    if grade is None:
        raise ValueError(f"the roster has no column Grade, but: {', '.join(sheet.header)}")
    maxima = {sheet.text(row, most).strip() for row in sheet.rows} - {""}
    decimal = any("," in text for text in maxima)
    for row, score in found.items():
        points = f"{score.points:g}"
        sheet.put(row, grade, points.replace(".", ",") if decimal else points)
        if said is not None:
            sheet.put(row, said, score.said)
    ours = {f"{score.out_of:g}" for score in found.values()}
    theirs = {re.sub(r"\.0*$", "", text.replace(",", ".")) for text in maxima}
    if found and theirs and theirs != ours:
        print(f"  Moodle's maximum is {', '.join(sorted(theirs))}, ours {', '.join(sorted(ours))}.")
    return {}


def _new_canvas(scores: Sequence[Score], title: str) -> list[list[str]]:
    rows = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", title]]
    rows.append(["    Points Possible", "", "", "", "", f"{scores[0].out_of:g}"])
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


def _gradescope(folder: Path, scores: Sequence[Score]) -> list[Path]:
    """A results.json for each student, in a folder of the student's own."""
    paths = []
    for score in scores:
        tests = [
            {
                "name": one.question,
                "score": one.points,
                "max_score": one.out_of,
                "output": one.said,
                "visibility": "visible",
            }
            for one in score.results
            if one.points is not None
        ]
        waiting = f"Not marked yet: {', '.join(score.open)}." if score.open else ""
        results = {
            "score": score.points,
            "output": waiting,
            "visibility": "visible",
            "tests": tests,
        }
        text = json.dumps(results, indent=1, ensure_ascii=False) + "\n"
        paths.append(write(folder / score.student / "results.json", text.encode()))
    return paths
