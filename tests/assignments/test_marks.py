"""The marks reach Canvas, Moodle and Gradescope, and the report counts mistakes without a name."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignments import nbgrader_bridge, report, report_chart
from assignments.__main__ import main
from assignments.collect import collect
from assignments.course import gradebook, make_course
from assignments.csv_file import CsvFile, quoted, written
from assignments.export import export
from assignments.folders import marks, released, submission, write
from assignments.grader.grade import KINDS
from assignments.gradescope import remember
from assignments.repair import repaired, to_bytes
from assignments.roster import placed
from assignments.tally import OTHERS, Mistake, Question, tally
from assignments.tasks import assignments
from assignments.totals import totals_of
from tests.assignments.handins import course_with_release, perfect, text_of

Mark = dict[str, Any]


def mark(
    question: str, points: float, advice: str = "Correct.", kind: str = "values", **settings: str
) -> Mark:
    """One question's mark, as the grader writes it."""
    return {
        "question": question,
        "points": points,
        "out_of": 4.0,
        "kind": "right" if points else "known" if settings else kind,
        "settings": settings,
        "advice": advice,
        "flags": [],
    }


def graded(course: Path, students: Mapping[str, list[Mark]], name: str = "pointing") -> Path:
    """A course in which the sandbox has marked these students."""
    folder = course / "grading" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "seed.json").write_text('{"seed": 1}')
    for student, questions in students.items():
        work = write(submission(course, name, student), student.encode()).read_bytes()
        record = {"questions": questions, "notebook sha256": hashlib.sha256(work).hexdigest()}
        text = json.dumps({"student": student, **record}, ensure_ascii=False)
        (folder / f"{student}.json").write_text(text, encoding="utf-8")
    return course


def renamed(course: Path, student: str, name: str) -> None:
    """The same student under another name."""
    for path in (course / "grading/pointing" / f"{student}.json", course / "submitted" / student):
        path.rename(path.with_name(name + path.suffix))


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Four students, marked by the sandbox alone."""
    formula = "=cmd|' /C calc'!A0, \"quoted\""
    return graded(
        course_with_release(tmp_path / "course"),
        {
            "jdoe": [mark("double", 4.0), mark("halve", 0.0, formula)],
            "doejim_77": [mark("double", 4.0), mark("halve", 3.5)],
            "Zoé van Dam": [mark("double", 0.0, "No."), mark("halve", 0.0, "No.")],
            "ghost": [mark("double", 4.0), mark("halve", 4.0)],
        },
    )


def cells(path: Path) -> list[list[str]]:
    """A CSV file as a spreadsheet reads it."""
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))


CANVAS = (
    "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Essay (12),Who looks where (345),Final Total\r\n"
    "    Points Possible,,,,,10,20,(read only)\r\n"
    '"Doe, Jane",11,S1,JDoe,"One, ""two""",7.50,,88\r\n'
    '"Doe, Jim",77,S2,jim,One, 8 ,EX?,\r\n'
    '"van Dam, Zoé",12,S3,zvd,One,"",3,\r\n'
    '"Nobody, Else",13,S4,else,One,1,2,3\r\n'
    "\r\n"
)


def roster(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    """A list of students as a file."""
    path = folder / "roster.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_canvas_is_filled_in_and_the_rest_stays(
    course: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("assignments.export._titles", lambda name: ["Who looks where", "pointing"])
    (path,) = export(course, "pointing", "canvas", roster(tmp_path, CANVAS))
    filled = (
        CANVAS.replace('"",7.50,,88'[3:], "7.50,4,88")
        .replace("EX?", "7.5")
        .replace('"",3,', '"",0,')
    )
    assert path.read_bytes().decode() == filled
    printed = capsys.readouterr().out
    assert "3 of 4 students found" in printed
    assert "ghost is not filled in: no row fits" in printed
    assert "jdoe waits for a mark by hand: question-why" in printed


def test_a_new_column_for_canvas_comes_last_with_its_points(course: Path, tmp_path: Path) -> None:
    (path,) = export(course, "pointing", "canvas", roster(tmp_path, CANVAS), column="Week 1")
    lines, before = path.read_bytes().decode().split("\r\n"), CANVAS.split("\r\n")
    ends = [",Week 1", ",13", ",4", ",7.5", ",0", ",", "", ""]
    assert lines == [line + end for line, end in zip(before, ends, strict=True)]


@pytest.mark.parametrize("column", [None, "HW1 pointing (88124)"])
def test_no_second_assignment_is_made_in_canvas_unasked(
    course: Path, tmp_path: Path, column: str | None
) -> None:
    text = CANVAS.replace("Who looks where (345)", "HW1 pointing (88124)").replace("EX?", "EX")
    source = roster(tmp_path, text)
    if column is None:
        candidates = r"--column; there are Essay \(12\), HW1 pointing \(88124\)"
        with pytest.raises(ValueError, match=candidates):
            export(course, "pointing", "canvas", source)
        assert not (course / "export").exists()
        return
    (path,) = export(course, "pointing", "canvas", source, column=column)
    assert cells(path)[0] == cells(source)[0]
    assert [row[6] for row in cells(path)[2:4]] == ["4", "EX"]


def test_a_new_column_is_told_where_canvas_has_none(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = roster(tmp_path, 'Student,ID\r\n"Doe, Jim",77\r\n')
    (path,) = export(course, "pointing", "canvas", source)
    assert cells(path) == [["Student", "ID", "Who looks where"], ["Doe, Jim", "77", "7.5"]]
    said = "No column of the roster is called Who looks where or pointing; a new one was added."
    assert said in capsys.readouterr().out


def test_the_help_says_which_titles_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["export", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "title (Who looks where) and its short name (pointing) are known" in printed


def settle(course: Path, student: str) -> None:
    """Give a student the mark by hand, 5 points, in the gradebook."""
    make_course(course)
    with gradebook(course) as book:
        if not book.assignments:
            book.add_assignment("pointing")
            book.add_notebook("pointing", "pointing")
            book.add_grade_cell(
                "question-why", "pointing", "pointing", max_score=5, cell_type="markdown"
            )
            book.add_solution_cell("question-why", "pointing", "pointing")
        book.add_student(student)
        (grade,) = book.add_submission("pointing", student).notebooks[0].grades
        grade.manual_score, grade.needs_manual_grade = 5.0, False
        book.db.commit()


def test_totals_that_lack_a_mark_are_told_or_left_out(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settle(course, "jdoe")
    last = "3 students wait for a mark by hand; their totals lack it."
    source = roster(tmp_path, CANVAS)
    for to, listed in (("canvas", source), ("gradescope", None)):
        export(course, "pointing", to, listed, column="Who looks where")
        assert capsys.readouterr().out.splitlines()[-1] == last
    options = ["--course", str(course), "export", "pointing", "--only-complete", "--to"]
    assert main([*options, "canvas", "--roster", str(source)]) == 0
    printed = capsys.readouterr().out
    assert "doejim_77 is not filled in: it waits for a mark by hand" in printed
    assert (
        printed.splitlines()[-1] == "3 students wait for a mark by hand; they have no total here."
    )
    rows = cells(course / "export/pointing-canvas.csv")
    assert [row[6] for row in rows[2:5]] == ["5", "EX?", "3"]
    assert main([*options, "moodle"]) == main([*options, "gradescope"]) == 0
    rows = cells(course / "export/pointing-moodle.csv")
    assert [row[:2] for row in rows[1:]] == [["jdoe", "5"]]
    rows = cells(course / "export/pointing-gradescope.csv")
    assert {row[0]: row[-1] for row in rows[1:]} == {
        "Zoé van Dam": "",
        "doejim": "",
        "ghost": "",
        "jdoe": "5",
    }
    found = (course / "export/pointing-gradescope").glob("*/results.json")
    assert [path.parent.name for path in found] == ["jdoe"]


def test_old_marks_are_told_and_left_out(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """New work of one, the work of one removed, and somebody who is not marked."""
    settle(course, "Zoé van Dam")
    settle(course, "ghost")
    write(submission(course, "pointing", "jdoe"), b"a blank notebook")
    shutil.rmtree(course / "submitted" / "ghost")
    write(submission(course, "pointing", "eve"), b"new")
    begin = ["--course", str(course)]
    export_ = [*begin, "export", "pointing", "--to"]
    assert main([*export_, "canvas", "--roster", str(roster(tmp_path, CANVAS))]) == 0
    printed = capsys.readouterr().out
    assert "(left out; --outdated counts them all the same)" in printed
    assert "  ghost: nothing is handed in any more\n" in printed
    assert "  jdoe: the hand-in has changed: python -m assignments grade pointing\n" in printed
    assert "Handed in and not marked yet: eve" in printed
    assert [row[6] for row in cells(course / "export/pointing-canvas.csv")[2:5]] == ["", "7.5", "5"]
    assert main([*export_, "gradescope"]) == main([*begin, "report", "pointing"]) == 0
    printed = capsys.readouterr().out
    assert "double: 1 of 2 right" in printed
    assert printed.count("jdoe: the hand-in has changed") == 2
    assert not list(course.glob("export/pointing-gradescope/jdoe/*"))
    assert main([*export_, "canvas", "--outdated"]) == 0
    assert "(counted all the same)" in capsys.readouterr().out
    students = {row[0] for row in cells(course / "export/pointing-canvas.csv")[2:]}
    assert students == {"Zoé van Dam", "doejim", "ghost", "jdoe"}
    assert main([*begin, "report", "pointing", "--outdated"]) == 0
    assert "double: 3 of 4 right" in capsys.readouterr().out


LOCALES = {
    "a terminal": {"PYTHONIOENCODING": "cp1252"},
    "a locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


@pytest.mark.parametrize("where", LOCALES)
def test_any_name_is_taken_where_utf_8_is_not_spoken(tmp_path: Path, where: str) -> None:
    course = course_with_release(tmp_path / "course")
    for name in (names := ("Größe_Łukasz", "Zoë_李")):
        write(tmp_path / "came" / name / "pointing.ipynb", text_of(perfect()).encode())

    def said(*words: str) -> str:
        command = [sys.executable, "-m", "assignments", "--course", str(course), *words]
        done = subprocess.run(command, capture_output=True, env={**os.environ, **LOCALES[where]})
        assert done.returncode == 0, done.stderr
        return done.stdout.decode("cp1252")

    assert "Taken: 2 notebooks of 2 students." in said(
        "collect", "pointing", str(tmp_path / "came")
    )
    assert sorted(one.name for one in (course / "submitted").iterdir()) == sorted(names)
    if where == "a terminal":
        graded(course, {name: [mark("double", 1.5, "Łukasz: 李")] for name in names})
        assert "Größe_?ukasz waits" in said("export", "pointing", "--to", "moodle")
        found = cells(course / "export/pointing-moodle.csv")
        assert [row[0] for row in found[1:]] == sorted(names)


def held(course: Path, *, seconds: float) -> subprocess.Popen[bytes]:
    """Another process that keeps the gradebook to itself for so long."""
    code = "import sqlite3, sys, time; book = sqlite3.connect(sys.argv[1]); "
    code += "book.execute('BEGIN EXCLUSIVE'); print(1, flush=True); time.sleep(float(sys.argv[2]))"
    command = [sys.executable, "-c", code, str(course / "gradebook.db"), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"1\n"
    return process


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_a_gradebook_in_use_is_waited_for_and_then_told(
    course: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    patience: float,
) -> None:
    settle(course, "jdoe")
    monkeypatch.setattr(nbgrader_bridge, "WAITING", patience)
    with held(course, seconds=2 if patience else 99) as process:
        status = main(["--course", str(course), "export", "pointing", "--to", "canvas"])
        process.kill()
    waits = "gradebook.db is in use by another process; waiting.\n"
    assert capsys.readouterr().err == waits + f"export: {nbgrader_bridge.BUSY}\n" * (not patience)
    assert status == (not patience)


def test_canvas_keeps_who_is_excused(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = roster(tmp_path, CANVAS.replace("EX?", "EX"))
    (path,) = export(course, "pointing", "canvas", source, column="Who looks where")
    assert cells(path)[3][6] == "EX"
    assert "doejim_77 is not filled in: is excused" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Name,ID\r\nx,1\r\n", "no column Student"),
        ("Student,pointing (1),pointing (2)\r\nx,1,2\r\n", "2 columns"),
        ('Student,ID\r\n"x"y,1\r\n', "row 2 of the file has quotes"),
        ('Student,ID\r\n"x,1\r\n', "quotes"),
        ("", "no header"),
    ],
)
def test_a_roster_that_is_none_is_refused(
    course: Path, tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        export(course, "pointing", "canvas", roster(tmp_path, text), column="pointing")
    assert not (course / "export").exists()


MOODLE = (
    "Identifier,Full name,ID number,Email address,Status,Grade,Maximum Grade,Feedback comments\n"
    "Participant 5,Jane Doe,x1,jdoe@uni.example,ok,,20.00,\n"
    "Participant 77,Jim Doe,x2,j2@uni.example,ok,,20.00,\n"
    'Participant 6,"Zoe\u0301 van Dam",x3,z@uni.example,ok,1.00,20.00,"old, text"\n'
)


def test_moodle_is_filled_in_with_comments(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renamed(course, "doejim_77", "Jim Doe_77")
    (path,) = export(course, "pointing", "moodle", roster(tmp_path, MOODLE))
    rows = cells(path)
    assert [row[5] for row in rows] == ["Grade", "4", "7.5", "0"]
    assert rows[1][7].splitlines()[:2] == [
        "double: 4 of 4. Correct.",
        "halve: 0 of 4. =cmd|' /C calc'!A0, \"quoted\"",
    ]
    assert rows[3][7] == "double: 0 of 4. No.\nhalve: 0 of 4. No.\nquestion-why: not marked yet."
    assert [row[:5] for row in rows] == [row[:5] for row in csv.reader(io.StringIO(MOODLE))]
    assert "Moodle's maximum is 20, ours 13." in capsys.readouterr().out


def test_a_grade_that_moodle_has_locked_is_not_filled_in(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head, *rows = MOODLE.splitlines()
    answers = ["Yes", "Yes", "No"]
    lines = [f"{row},{yes}" for row, yes in zip(rows, answers, strict=True)]
    text = "\n".join([f"{head},Grade can be changed", *lines, ""])
    (path,) = export(course, "pointing", "moodle", roster(tmp_path, text))
    assert [row[5:8:2] for row in cells(path)[3:]] == [["1.00", "old, text"]]
    assert cells(path)[1][5] == "4"
    said = "Zoé van Dam is not filled in: Moodle says that the grade cannot be changed"
    assert said in capsys.readouterr().out


def test_moodle_with_commas_in_its_numbers(course: Path, tmp_path: Path) -> None:
    text = "Identifier;Full name;Arvosana;Maximum Grade\r\nOsallistuja77;Jim Doe;;13,00\r\n"
    renamed(course, "doejim_77", "Jim Doe_77")
    (path,) = export(course, "pointing", "moodle", roster(tmp_path, text), column="Arvosana")
    assert path.read_bytes().decode() == text.replace(";;", ";7,5;")
    with pytest.raises(ValueError, match="no column Grade, but: Identifier, Full name, Arvosana"):
        export(course, "pointing", "moodle", roster(tmp_path, text))


def test_without_a_roster_new_files_are_made(course: Path) -> None:
    (canvas,) = export(course, "pointing", "canvas", column="Week 1")
    rows = cells(canvas)
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Week 1"]
    assert rows[1] == ["    Points Possible", "", "", "", "", "13"]
    assert ["doejim", "77", "", "", "", "7.5"] in rows
    assert ["jdoe", "", "", "jdoe", "", "4"] in rows
    (moodle,) = export(course, "pointing", "moodle", column="x")
    assert cells(moodle)[0] == ["ID number", "Grade", "Feedback"]
    assert [row[:2] for row in cells(moodle)[1:]] == [
        ["Zoé van Dam", "0"],
        ["doejim_77", "7.5"],
        ["ghost", "8"],
        ["jdoe", "4"],
    ]


def test_gradescope_gets_one_file_for_each(course: Path) -> None:
    jane = {"name": "=Jane", "sid": "007", "email": "j@x.example"}
    remember(course, "pointing", {"jdoe": jane})
    *paths, table = export(course, "pointing", "gradescope", column="x")
    assert [path.parent.name for path in paths] == ["Zoé van Dam", "doejim_77", "ghost", "jdoe"]
    assert cells(table) == [
        ["Name", "SID", "Email", "double", "halve", "question-why", "Total"],
        ["Zoé van Dam", "", "", "0", "0", "", "0"],
        ["doejim", "", "", "4", "3.5", "", "7.5"],
        ["ghost", "", "", "4", "4", "", "8"],
        ["'=Jane", "007", "j@x.example", "4", "0", "", "4"],
    ]
    found = json.loads(paths[1].read_text(encoding="utf-8"))
    assert found["score"] == 7.5
    assert found["output"] == "Not marked yet: question-why."
    assert found["tests"][1] == {
        "name": "halve",
        "score": 3.5,
        "max_score": 4.0,
        "output": "Correct.",
        "visibility": "visible",
    }


def test_what_cannot_be_exported_is_refused(tmp_path: Path, course: Path) -> None:
    with pytest.raises(ValueError, match="not to blackboard"):
        export(course, "pointing", "blackboard")
    with pytest.raises(FileNotFoundError, match="nothing is marked"):
        export(course_with_release(tmp_path / "other"), "pointing", "canvas", column="x")
    (course / "grading/pointing/eve.json").write_text("{")
    with pytest.raises(ValueError, match=r"eve\.json holds no marks"):
        export(course, "pointing", "canvas", column="x")


def test_the_gradebook_counts_where_there_is_one(course: Path) -> None:
    """Manual points and extra points are in it, lateness costs, and one student is only in the sandbox."""
    make_course(course)
    with gradebook(course) as book:
        book.add_assignment("pointing")
        book.add_notebook("pointing", "pointing")
        for question, kind, most in (
            ("double-check", "code", 4),
            ("halve-check", "code", 4),
            ("question-why", "markdown", 5),
        ):
            book.add_grade_cell(question, "pointing", "pointing", max_score=most, cell_type=kind)
        book.add_solution_cell("question-why", "pointing", "pointing")
        for student in ("jdoe", "doejim_77", "Zoé van Dam"):
            book.add_student(student)
            submission = book.add_submission("pointing", student)
            for grade in submission.notebooks[0].grades:
                grade.auto_score = None if grade.name == "question-why" else 2.5
                grade.needs_manual_grade = grade.auto_score is None
                if student == "jdoe" and grade.auto_score is None:
                    grade.manual_score, grade.extra_credit = 4.0, 0.5
                    grade.needs_manual_grade = False
            submission.notebooks[0].late_submission_penalty = 1.0 * (student == "doejim_77")
            submission.notebooks[0].comments[0].manual_comment = "Good."
        book.db.commit()
    scores = {score.student: score for score in totals_of(course, "pointing")}
    assert {student: (score.points, score.out_of) for student, score in scores.items()} == {
        "jdoe": (9.5, 13.0),
        "doejim_77": (4.0, 13.0),
        "Zoé van Dam": (5.0, 13.0),
        "ghost": (8.0, 13.0),
    }
    assert {student: score.open for student, score in scores.items()} == {
        "jdoe": (),
        "doejim_77": ("question-why",),
        "Zoé van Dam": ("question-why",),
        "ghost": ("question-why",),
    }
    lines = sorted(scores["jdoe"].said.splitlines())
    assert lines[0] == "double: 2.5 of 4. Correct."
    assert lines[2] == "question-why: 4.5 of 5. Good."


BLIND = "Identifier,Status,Grade,Maximum Grade\nParticipant 4711,ok,,20.00\n"
GERMAN = (
    "ID,Vollständiger Name,E-Mail-Adresse,Status,Bewertung,Bestwertung,"
    "Bewertung kann geändert werden,Feedback als Kommentar\n"
    '"Teilnehmer/in4711","Ann Lee",a@x.example,ok,,"20,00",Ja,\n'
    '"Teilnehmer/in4712","Bo Li",b@x.example,ok,"1,00","20,00",Nein,\n'
)
FRENCH = (
    "Identifiant,Nom complet,Adresse de courriel,Statut,Note,Note maximale,"
    "La note peut être modifiée,Feedback par commentaires\n"
    'Participant4711,"Ann Lee",a@x.example,ok,,"20,00",Oui,\n'
    'Participant4712,"Bo Li",b@x.example,ok,"1,00","20,00",Non,\n'
)


@pytest.mark.parametrize("folder", ["Participant_4711", "Tutorial 1-Ann Lee_4711"])
@pytest.mark.parametrize("text", [BLIND, GERMAN, FRENCH], ids=["blind", "German", "French"])
def test_moodles_number_alone_is_a_row(tmp_path: Path, folder: str, text: str) -> None:
    course = course_with_release(tmp_path / "course")
    came = tmp_path / f"{folder}_assignsubmission_file_" / "pointing.ipynb"
    collect(course, "pointing", [write(came, text_of(perfect()).encode())])
    assert [path.parent.name for path in course.glob("submitted/*/pointing")] == [folder]
    graded(course, {folder: [mark("double", 3.5)], "Bo Li_4712": [mark("double", 1.5)]})
    (path,) = export(course, "pointing", "moodle", roster(tmp_path, text))
    before, after = list(csv.reader(io.StringIO(text))), cells(path)
    at = 2 if text == BLIND else 4
    assert [row[at] for row in after[1:]] == ["3.5" if text == BLIND else "3,5", "1,00"][
        : len(after) - 1
    ]
    assert [row[:at] for row in after] == [row[:at] for row in before]
    if text != BLIND:
        assert after[1][7].startswith("double: 3.5 of 4")
        assert after[2] == before[2]


PEOPLE = (
    "Student,ID,SIS Login ID,Email\n"
    '"Li, Bo",1,bli,bo.li@x.example\n'
    '"Li, Bo",2,bli2,bo2@x.example\n'
    '"Müller, Jörg",3,jm@x.example,jm@x.example\n'
    '"李, 小明",4,xm,xm@y.example\n'
)


@pytest.mark.parametrize(
    ("student", "row"),
    [
        ("BLI", 1),
        ("2", 2),
        ("libo_2", 2),
        ("bo.li", 1),
        ("jm@x.example", 3),
        ("mullerjorg_3", 3),
        ("Jo\u0308rg Müller", 3),
        ("李小明_4", 4),
        ("Bo Li", "2 rows fit"),
        ("libo_9", "2 rows fit"),
        ("mueller_1", "no row fits"),
        ("someone_2", "no row fits"),
        ("", "no row fits"),
    ],
)
def test_a_row_belongs_to_one_student_or_to_nobody(student: str, row: int | str) -> None:
    rows, reasons = placed([student], CsvFile(PEOPLE.encode()))
    assert {**rows, **reasons} == {student: row}


def test_two_hand_ins_of_one_person_are_told() -> None:
    rows, reasons = placed(["bli", "libo_1", "xm"], CsvFile(PEOPLE.encode()))
    assert rows == {"xm": 4}
    assert set(reasons.values()) == {"row 2 fits another hand-in too"}


FORMULAS = ["=1", "+1", "-1", "@x", " =1", "\t=1", "\r=1", "\n=1", "＝1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_ours_is_a_formula(text: str) -> None:
    assert quoted(text).lstrip('"').startswith("'")
    (row,) = csv.reader(io.StringIO(written([[text, "x"]]).decode(), newline=""))
    assert row == [f"'{text}", "x"]


def test_ordinary_cells_stay_as_they_are() -> None:
    assert [quoted(text) for text in ("", "a-b", "1.5", "Zoé 李", "a,b", 'a"b')] == [
        "",
        "a-b",
        "1.5",
        "Zoé 李",
        '"a,b"',
        '"a""b"',
    ]


table = st.lists(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=5),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=5,
)


@given(
    table, st.sampled_from(",;\t"), st.sampled_from(["\r\n", "\n"]), st.booleans(), st.booleans()
)
def test_a_sheet_stays_byte_for_byte_and_reads_as_csv_does(
    rows: list[list[str]], comma: str, end: str, mark: bool, every: bool
) -> None:
    file = io.StringIO(newline="")
    titles = [f"title {number}" for number in range(max(2, *map(len, rows)))]
    csv.writer(file, delimiter=comma, lineterminator=end, quoting=1 if every else 0).writerows(
        [titles, *rows]
    )
    data = (("\ufeff" if mark else "") + file.getvalue()).encode()
    sheet = CsvFile(data)
    assert sheet.to_bytes() == data
    assert [sheet.header] == [titles]
    for number, row in enumerate(rows, 1):
        assert [sheet.text(number, at) for at in range(len(row))] == row
    sheet.put(1, 1, "new")
    assert sheet.text(1, 1) == "new"
    assert sheet.text(1, 0) == rows[0][0]


def test_a_cell_may_hold_lines() -> None:
    sheet = CsvFile(b'a,b\r\n"x\r\ny\rz","""q"""\rlast,')
    assert [sheet.text(row, at) for row in (1, 2) for at in (0, 1)] == [
        "x\r\ny\rz",
        '"q"',
        "last",
        "",
    ]


def test_a_sheet_that_is_not_utf_8_stays_too() -> None:
    data = "Student,ID\r\nZoé,1\r\n".encode("latin-1")
    sheet = CsvFile(data)
    sheet.put(1, sheet.add("Points"), "3")
    assert sheet.to_bytes() == "Student,ID,Points\r\nZoé,1,3\r\n".encode("latin-1")


# --- the report


@pytest.mark.parametrize("kind", OTHERS)
def test_wrong_answers_without_a_known_mistake_are_counted_by_their_kind(kind: str) -> None:
    (question,) = tally("another", [[mark("double", 0.0, "Zoé's own words", kind)]])
    assert question.mistakes == (Mistake("", OTHERS[kind], 1),)


def test_every_kind_of_a_wrong_answer_has_its_words() -> None:
    assert {*OTHERS, "right", "known"} == {*KINDS}


def test_a_blank_notebook_that_stands_for_a_file_counts_as_not_read(course: Path) -> None:
    data, _ = repaired(b"", released(course, "pointing"))
    write(submission(course, "pointing", "Zoé van Dam"), to_bytes(data))
    write(submission(course, "pointing", "jdoe"), to_bytes(released(course, "pointing")))
    _, _, text = report.report(course, "pointing", outdated=True)
    assert [line.split("%  ")[-1] for line in text.splitlines() if "%" in line] == [
        "What was handed in could not be read as this assignment.",
        "Something else.",
        "What was handed in could not be read as this assignment.",
    ]


def batch(students: int) -> dict[str, list[Mark]]:
    """Marks of a class: one in three is right; the names are to be found nowhere in a report."""
    task = assignments()["pointing"].tasks[0]
    known = [(knob, value) for knob, values in task.exercise.settings.items() for value in values]
    answers = [mark(task.name, 4.0)]
    answers += [
        mark(task.name, 0.0, "Name9", **dict([made])) for made in (known[0], known[0], known[-1])
    ]
    answers += [
        mark(task.name, 0.0, "Name9", **dict([known[0], known[-1]])),
        mark(task.name, 0.0, "x"),
    ]
    return {f"Name{number}": [answers[number % 6]] for number in range(students)}


@pytest.mark.parametrize("students", [0, 1, 300])
def test_the_report_counts_and_names_nobody(tmp_path: Path, students: int) -> None:
    course = graded(tmp_path, batch(students))
    tasks = assignments()["pointing"].tasks
    table, image, text = report.report(course, "pointing")
    questions = {
        one.name: one for one in tally("pointing", list(marks(course, "pointing").values()))
    }
    assert list(questions) == [task.name for task in tasks]
    first = questions[tasks[0].name]
    assert (first.right, first.of) == ({0: 0, 1: 1, 300: 50}[students], students)
    rows = cells(table)
    assert rows[0] == ["question", "what", "answers", "of", "share", "advice"]
    svg = image.read_text(encoding="utf-8")
    for content in (text, table.read_text(encoding="utf-8"), svg):
        assert "Name" not in content.replace("Namespace", "")
    if students == 300:
        knob, values = next(iter(tasks[0].exercise.settings.items()))
        value, advice = next(iter(values.items()))
        assert [first.mistakes[0].setting, first.mistakes[0].count] == [f"{knob}: {value}", 150]
        assert [tasks[0].name, f"{knob}: {value}", "150", "300", "0.500", advice] in rows
        assert sum(one.count for one in first.mistakes if not one.setting) == 50
        assert f"{tasks[0].name}: 50 of 300 right\n   150   50%  " in text
    elif students == 0:
        assert text == "Nothing of pointing is marked yet."
        assert "Nothing is marked yet." in svg


def test_the_picture_says_in_words_what_it_shows() -> None:
    often = [Mistake(f"scale: {n}", f"You did {n}, <&> $x$. Do not.", 20 - n) for n in range(9)]
    questions = [Question("double", 3, 100, tuple(often)), Question("halve", 0, 0, ())]
    root = ElementTree.fromstring(report_chart.drawn("A & B", questions))
    names = [child.tag.split("}")[1] for child in root][:2]
    assert (root.get("role"), names) == ("img", ["title", "desc"])
    assert root[0].text == "A & B: mistakes by question"
    words = root[1].text or ""
    assert words.startswith("double: 3 of 100 right. 20 times: You did 0, <&> $x$. 19 times: ")
    assert "54 times: 4 rarer mistakes. halve: 0 of 0 right." in words
    drawn = " ".join(
        "".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")
    )
    for label in ("double", "You did 4, <&> $x$.", "4 rarer mistakes.", "20%", "halve"):
        assert label in drawn
    assert report_chart.drawn("A & B", questions) == report_chart.drawn("A & B", questions)


def test_no_label_of_the_picture_runs_into_its_bar() -> None:
    """Long names, and advice as long as the longest of any task."""
    long = Mistake("a: b", "You do this " + "and W that " * 20 + "here. No.", 100)
    questions = [Question("attention_" * 9, 3, 100, (long, Mistake("a: c", "Short. No.", 3)))]
    settings = [
        values.values()
        for one in assignments().values()
        for task in one.tasks
        for values in task.exercise.settings.values()
    ]
    made = [Mistake("", advice, 1) for values in settings for advice in values]
    made.sort(key=lambda one: -len(one.short))
    questions += [Question("q", 1, 9, tuple(made[at : at + 6])) for at in range(0, 36, 6)]
    figure = report_chart.figure("A title", questions)
    figure.draw_without_rendering()
    texts = figure.axes[0].texts
    boxes = [text.get_window_extent() for text in texts]
    for text, box in zip(texts[2:], boxes[2:], strict=True):
        if text.get_horizontalalignment() == "left":
            assert box.x1 < report_chart.LEFT * figure.dpi, text.get_text()
        assert box.y0 > 0
    labels = sorted(
        (box.y0, box.y1)
        for text, box in zip(texts, boxes, strict=True)
        if text.get_horizontalalignment() == "left"
    )
    assert all(low[1] <= high[0] + 1 for low, high in pairwise(labels))


def test_two_mistakes_with_one_sentence_are_told_apart() -> None:
    made = tuple(Mistake(f"a: {name}", f"The same. {name}", 2) for name in "bc")
    rows = report_chart.shown(Question("double", 0, 4, made))
    assert [label for label, _, _ in rows] == ["The same. (a: b)", "The same. (a: c)"]
