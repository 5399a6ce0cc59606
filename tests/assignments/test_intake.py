"""Whatever Canvas, Moodle, Gradescope or a plain folder give is taken in safely, and nothing is lost."""

from __future__ import annotations

import json
import os
import stat
import unicodedata
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignments import unpack
from assignments.__main__ import main
from assignments.collect import Row, collect, fit
from assignments.folders import keep, ours
from assignments.gradescope import LARGEST, people, remembered
from assignments.repair import repair_submissions, unmarked
from assignments.sanitise import bound
from tests.assignments.handins import cell, course_with_release, perfect, release, text_of

GOOD = text_of(perfect()).encode()
Member = tuple[str | zipfile.ZipInfo, bytes]


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course with one release."""
    return course_with_release(tmp_path / "course")


def zipped(path: Path, members: Iterable[Member]) -> Path:
    """A zip of these members, in order."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def laid(folder: Path, files: dict[str, bytes]) -> Path:
    """A folder of these files."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def taken(rows: Iterable[Row]) -> dict[str, str]:
    """The student of each path that was taken."""
    return {row.path: row.student for row in rows if row.student}


def refused(rows: Iterable[Row]) -> dict[str, str]:
    """The reason for each path that was not."""
    return {row.path: row.said.removesuffix(".") for row in rows if not row.student}


def answered(course: Path, student: str) -> str:
    """The answer to `halve` that the grader will find, in a valid notebook."""
    path = course / "submitted" / student / "pointing" / "pointing.ipynb"
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    (found,) = [one for one in notebook.cells if one.id == "halve"]
    return str(found.source)


def answering(line: str) -> bytes:
    """A hand-in with this answer to `halve`."""
    notebook = perfect()
    next(one for one in notebook["cells"] if one["id"] == "halve")["source"] = line
    return text_of(notebook).encode()


PLACES = {
    "doejane_1234_5678_pointing.ipynb": "doejane_1234",
    "doejim_LATE_77_5679_pointing-2.ipynb": "doejim_77",
    "李小明_9_5680_Kopie von pointing (1).ipynb": "李小明_9",
    "Zoé van Dam_4321_assignsubmission_file_/my work.ipynb": "Zoé van Dam_4321",
    "Ann Lee_4322_assignsubmission_file_pointing.ipynb": "Ann Lee_4322",
    "assignment_5_export/submission_123/pointing.ipynb": "submission_123",
    "anna/pointing.ipynb": "anna",
    "Bo Li/pointing/deeper/Kopie von pointing (1).ipynb": "Bo Li",
    "pointing/carl/x.ipynb.txt": "carl",
    "dora/try_2_1_x.ipynb": "dora",
}


@pytest.mark.parametrize("kind", ["zip", "folder"])
def test_every_source_is_understood(course: Path, tmp_path: Path, kind: str) -> None:
    if kind == "zip":
        source = zipped(tmp_path / "all.zip", [(name, GOOD) for name in PLACES])
    else:
        source = laid(tmp_path / "all", dict.fromkeys(PLACES, GOOD))
    rows = collect(course, "pointing", [source])
    assert taken(rows) == PLACES
    assert refused(rows) == {}
    for student in PLACES.values():
        assert "return half" in answered(course, student)
        assert (course / "received/pointing" / student / "1.ipynb").read_bytes() == GOOD


def test_late_work_is_called_late(course: Path, tmp_path: Path) -> None:
    names = ["doejim_LATE_77_5679_pointing.ipynb", "ann_78_5680_pointing.ipynb"]
    rows = collect(
        course, "pointing", [zipped(tmp_path / "a.zip", [(name, GOOD) for name in names])]
    )
    assert {row.student: "late" in row.said for row in rows} == {"doejim_77": True, "ann_78": False}


def test_a_folder_around_all_students_is_no_student(course: Path, tmp_path: Path) -> None:
    names = [
        "all of them/anna/x.ipynb",
        "all of them/bob/x.ipynb",
        "__MACOSX/all of them/._x.ipynb",
    ]
    rows = collect(
        course, "pointing", [zipped(tmp_path / "a.zip", [(name, GOOD) for name in names])]
    )
    assert sorted(taken(rows).values()) == ["anna", "bob"]
    assert len(rows) == 2


def test_a_single_file_is_called_after_its_folder(course: Path, tmp_path: Path) -> None:
    folder = laid(tmp_path, {"anna/any name.ipynb": GOOD})
    assert taken(collect(course, "pointing", [folder / "anna" / "any name.ipynb"])) == {
        "anna/any name.ipynb": "anna"
    }


def test_a_pattern_says_whose_it_is(course: Path, tmp_path: Path) -> None:
    files = dict.fromkeys(["hw-bob.ipynb", "other.ipynb", "hw-.ipynb"], GOOD)
    rows = collect(course, "pointing", [laid(tmp_path / "a", files)], r"hw-(?P<student>\w*)\.")
    assert taken(rows) == {"hw-bob.ipynb": "bob"}
    assert refused(rows) == {
        "other.ipynb": "its path does not fit the pattern",
        "hw-.ipynb": "the student's id is empty",
    }


@pytest.mark.parametrize("pattern", ["(", "(?P<who>.*)"])
def test_a_pattern_that_cannot_be_used_is_refused(course: Path, pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        collect(course, "pointing", [], pattern)


def test_an_assignment_that_is_not_released_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="not released"):
        collect(tmp_path, "pointing", [])


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("flagged", [True, False])
def test_names_in_any_encoding_of_a_zip(
    course: Path, tmp_path: Path, form: Literal["NFC", "NFD"], flagged: bool
) -> None:
    """With the flag for UTF-8, and as the bytes that a program wrote without it."""
    name = unicodedata.normalize(form, "Zoé 李/pointing.ipynb")
    path = zipped(tmp_path / "a.zip", [(name, GOOD)])
    if not flagged:
        path.write_bytes(_without_flag(path.read_bytes()))
    rows = collect(course, "pointing", [path])
    assert [(row.student, row.path) for row in rows] == [("Zoé 李", "Zoé 李/pointing.ipynb")]
    assert "return half" in answered(course, "Zoé 李")


def _without_flag(data: bytes) -> bytes:
    """The zip with the flag for UTF-8 taken from both headers of its member."""
    changed = bytearray(data)
    for start, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        changed[data.index(start) + at + 1] &= ~0x08
    return bytes(changed)


def test_an_old_name_in_cp437_stays_readable(course: Path, tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", [("Zo?/pointing.ipynb", GOOD)])
    path.write_bytes(path.read_bytes().replace(b"Zo?/", b"Zo\x82/"))
    assert [row.student for row in collect(course, "pointing", [path])] == ["Zoé"]


def link(name: str, mode: int = stat.S_IFLNK) -> zipfile.ZipInfo:
    """A member of a zip that is a link, or something else that is no file."""
    member = zipfile.ZipInfo(name)
    member.create_system = 3
    member.external_attr = (mode | 0o777) << 16
    return member


REFUSED: list[tuple[str, Member]] = [
    ("link", (link("anna/a.ipynb"), b"/etc/passwd")),
    ("no ordinary file", (link("anna/b.ipynb", stat.S_IFIFO), b"")),
    ("out of the folder", ("../../anna/c.ipynb", GOOD)),
    ("out of the folder", ("anna/../../d.ipynb", GOOD)),
    ("out of the folder", ("..\\anna\\e.ipynb", GOOD)),
    ("out of the folder", ("/etc/f.ipynb", GOOD)),
    ("out of the folder", ("C:/g.ipynb", GOOD)),
    ("archive inside", ("anna/h.zip", b"PK")),
    ("archive inside", ("anna/i.tar.gz", b"")),
    ("no notebook", ("anna/j.py", b"")),
    ("Jupyter made", ("anna/.ipynb_checkpoints/k.ipynb", GOOD)),
    ("whose it is", ("pointing.ipynb", GOOD)),
    ("starts with a dot", (".hidden/l.ipynb", GOOD)),
    ("holds", ("a\u202eb/m.ipynb", GOOD)),
    ("too long", ("x" * 201 + "/n.ipynb", GOOD)),
    ("ask for it without outputs", ("anna/o.ipynb", b"0" * (unpack.MOST_BYTES + 1))),
]


@pytest.mark.parametrize(("reason", "member"), REFUSED, ids=lambda value: str(value)[:30])
def test_what_is_dangerous_is_not_taken_and_the_rest_is(
    course: Path, tmp_path: Path, reason: str, member: Member, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(course)}
    source = zipped(tmp_path / "a.zip", [member, ("bob/pointing.ipynb", GOOD)])
    rows = collect(course, "pointing", [source])
    assert list(taken(rows).values()) == ["bob"]
    (why,) = refused(rows).values()
    assert reason in why
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(course)} == {
        *before,
        source,
    }
    assert os.listdir(course / "submitted") == ["bob"]
    printed = capsys.readouterr().out
    assert "Not taken: 1 files." in printed
    assert all(letter.isprintable() or letter == "\n" for letter in printed)


def test_a_size_that_lies_is_found_out(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = zipped(tmp_path / "a.zip", [("anna/a.ipynb", b" " * 5000)])
    monkeypatch.setattr(unpack, "MOST_BYTES", 4000)
    monkeypatch.setattr(unpack, "_refuse", lambda *said: "")
    (entry,) = unpack.entries(source)
    assert "larger" in entry.refused
    assert entry.data == b""


def test_a_bomb_of_many_files_is_refused(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "MOST_FILES", 10)
    members: list[Member] = [(f"s{number}/a.ipynb", GOOD) for number in range(11)]
    rows = collect(course, "pointing", [zipped(tmp_path / "a.zip", members)])
    assert [(row.student, "more than 10 files" in row.said) for row in rows] == [("", True)]
    folder = laid(tmp_path / "a", {str(name): data for name, data in members})
    rows = collect(course, "pointing", [folder])
    assert len(taken(rows)) == 10
    assert len(refused(rows)) == 1


def test_a_bomb_of_many_bytes_is_refused(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "MOST_ALL", 2 * len(GOOD))
    members: list[Member] = [(f"s{number}/a.ipynb", GOOD) for number in range(9)]
    rows = collect(course, "pointing", [zipped(tmp_path / "a.zip", members)])
    assert len(taken(rows)) == 2
    assert list(refused(rows)) == ["s2/a.ipynb"]


def test_a_hundred_thousand_entries_are_refused_at_once(course: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("s/a", b"")
        archive.filelist *= 100_000  # the same member, written into the directory again and again
        archive._didModify = True  # type: ignore[attr-defined]
    (row,) = collect(course, "pointing", [path])
    assert "more than 20,000 files" in row.said


@pytest.mark.parametrize("data", [b"", b"no zip", b"PK\x05\x06" + b"\0" * 17])
def test_a_zip_that_is_none_is_told(course: Path, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    (row,) = collect(
        course,
        "pointing",
        [
            path,
        ],
    )
    assert "zip cannot be read" in row.said


def test_damaged_and_locked_members_are_told(course: Path, tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "a.zip", [("anna/a.ipynb", GOOD), ("bob/b.ipynb", GOOD), ("c/c.ipynb", GOOD)]
    )
    data = bytearray(path.read_bytes())
    data[60] ^= 0xFF
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1)
    data[second + 8] |= 1
    path.write_bytes(bytes(data))
    rows = collect(course, "pointing", [path])
    assert list(taken(rows).values()) == ["c"]
    assert "cannot be read" in refused(rows)["anna/a.ipynb"]
    assert "password" in refused(rows)["bob/b.ipynb"]


def test_links_in_a_folder_are_not_followed(course: Path, tmp_path: Path) -> None:
    secret = laid(tmp_path / "secret", {"x/a.ipynb": GOOD})
    folder = laid(tmp_path / "a", {"bob/b.ipynb": GOOD})
    (folder / "anna").symlink_to(secret / "x")
    (folder / "bob" / "c.ipynb").symlink_to(secret / "x" / "a.ipynb")
    os.mkfifo(folder / "bob" / "d.ipynb")
    rows = collect(course, "pointing", [folder, tmp_path / "nothing"])
    assert taken(rows) == {"bob/b.ipynb": "bob"}
    assert refused(rows) == {
        "anna": "it is a link",
        "bob/c.ipynb": "it is a link",
        "bob/d.ipynb": "it is no ordinary file",
        str(tmp_path / "nothing"): "there is no such file or folder",
    }


def test_a_source_that_is_a_link_is_not_followed(course: Path, tmp_path: Path) -> None:
    laid(tmp_path / "solution", {"pointing.ipynb": GOOD})
    (tmp_path / "lou").symlink_to(tmp_path / "solution")
    (tmp_path / "single.ipynb").symlink_to(tmp_path / "solution" / "pointing.ipynb")
    zipped(tmp_path / "real.zip", [("anna/a.ipynb", GOOD)]).rename(tmp_path / "real")
    (tmp_path / "a.zip").symlink_to(tmp_path / "real")
    names = ("lou", "lou/pointing.ipynb", "single.ipynb", "a.zip")
    rows = collect(course, "pointing", [tmp_path / name for name in names])
    assert taken(rows) == {}
    assert {*refused(rows).values()} == {"it is a link", "its folder is a link"}


@pytest.mark.parametrize("depth", [0, 1, 2], ids=["notebook", "folder", "student"])
@pytest.mark.parametrize("folder", ["submitted", "received"])
def test_nothing_is_written_through_a_link_in_the_course(
    course: Path, tmp_path: Path, folder: str, depth: int
) -> None:
    """What a link leads to, the solution say, stays as it is, and nobody is marked for it."""
    solution = laid(course, {"solution/lou/pointing/pointing.ipynb": b"{}"}) / "solution"
    place = course / folder / "lou" / "pointing" / "pointing.ipynb"
    if folder == "received":
        place = course / folder / "pointing" / "lou" / "1.ipynb"
    link = [place, *place.parents][depth]
    link.parent.mkdir(parents=True)
    link.symlink_to(
        [
            solution / "lou/pointing/pointing.ipynb",
            *solution.glob("lou/pointing"),
            solution / "lou",
        ][depth]
    )
    said = repair_submissions(course, "pointing", save=True)
    assert all("is a link, and links are not followed." in one[0] for one in said.values())
    rows = collect(course, "pointing", [laid(tmp_path / "came", {"lou/pointing.ipynb": GOOD})])
    assert [row.said.split(" is ")[-1] for row in rows] == ["a link, and links are not followed."]
    assert [path.read_bytes() for path in solution.rglob("*.ipynb")] == [b"{}"]


@pytest.mark.parametrize(
    "student", ["", "  ", ".", "..", "../x", "a/b", "a\\b", "a\0b", "a\x1b[2J", "a*", "C:x", "seed"]
)
def test_ids_that_could_climb_or_mislead_are_refused(student: str) -> None:
    with pytest.raises(ValueError, match="student"):
        fit(student)


@pytest.mark.parametrize(
    ("student", "fits"),
    [
        ("Zoe\u0301  李 ", "Zoé 李"),
        ("o'neill, jr.", "o'neill, jr."),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)
def test_ids_with_any_letters_are_kept_in_one_spelling(student: str, fits: str) -> None:
    assert fit(student) == fits


def test_a_second_hand_in_keeps_the_first_and_counts(course: Path, tmp_path: Path) -> None:
    first, second = answering("def halve(x): return 1"), answering("def halve(x): return 2")
    source = laid(tmp_path / "a", {"anna/pointing.ipynb": first})
    for data, number, said in (
        (first, 1, "kept as 1.ipynb, counts."),
        (first, 1, "was there already."),
        (second, 2, "kept as 2.ipynb, counts."),
        (first, 3, "kept as 3.ipynb, counts."),
    ):
        laid(source, {"anna/pointing.ipynb": data})
        (row,) = collect(course, "pointing", [source])
        assert row.said == said
        folder = course / "received/pointing/anna"
        assert len(os.listdir(folder)) == number
        assert (folder / f"{number}.ipynb").read_bytes() == data
        assert answered(course, "anna").encode() in data


def test_a_submission_changed_by_hand_stays_until_something_new_comes(
    course: Path, tmp_path: Path
) -> None:
    source = laid(tmp_path / "a", {"anna/pointing.ipynb": GOOD})
    collect(course, "pointing", [source])
    path = course / "submitted/anna/pointing/pointing.ipynb"
    path.write_text("changed by hand")
    collect(course, "pointing", [source])
    assert path.read_text() == "changed by hand"
    laid(source, {"anna/pointing.ipynb": answering("x = 1")})
    collect(course, "pointing", [source])
    assert answered(course, "anna") == "x = 1"


def test_of_several_the_newest_of_this_assignment_counts(course: Path, tmp_path: Path) -> None:
    """Older work, the newest, another assignment's notebook and a broken file, in this order of time."""
    other = text_of(
        {
            "cells": [
                cell("code", "z", "def other(): pass", "answer"),
                cell("code", "s", 'STUDENT = "x"'),
            ]
        }
    )
    files = {
        "b.ipynb": answering("def halve(x): return 1"),
        "a.ipynb": answering("def halve(x): return 2"),
        "other.ipynb": other.encode(),
        "broken.ipynb": b"",
    }
    folder = laid(tmp_path / "a", {f"anna/{name}": data for name, data in files.items()})
    for number, name in enumerate(files):
        os.utime(folder / "anna" / name, (1e9 + number, 1e9 + number))
    rows = collect(course, "pointing", [folder])
    assert [(row.path, row.said) for row in rows] == [
        ("anna/b.ipynb", "kept as 1.ipynb, does not count."),
        ("anna/a.ipynb", "kept as 2.ipynb, counts."),
        ("anna/other.ipynb", "kept as 3.ipynb, does not count."),
        ("anna/broken.ipynb", "kept as 4.ipynb, does not count."),
    ]
    assert answered(course, "anna") == "def halve(x): return 2"


def test_the_time_of_what_counts_is_kept_for_nbgrader(course: Path, tmp_path: Path) -> None:
    folder = laid(tmp_path / "a", {"bob/b.ipynb": GOOD, "bob/a.ipynb": GOOD + b" "})
    os.utime(folder / "bob" / "a.ipynb", (0, 1_772_370_000))
    os.utime(folder / "bob" / "b.ipynb", (0, 1_772_370_060))
    collect(course, "pointing", [folder])
    stamp = course / "submitted" / "bob" / "pointing" / "timestamp.txt"
    assert stamp.read_text("utf-8") == "2026-03-01T13:01:00+00:00"


def test_times_in_a_zip_order_the_hand_ins(course: Path, tmp_path: Path) -> None:
    members: list[Member] = []
    for name, year in (("anna/a.ipynb", 2025), ("anna/b.ipynb", 2024)):
        member = zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0))
        members.append((member, answering(f"def halve(x): return {year}")))
    collect(course, "pointing", [zipped(tmp_path / "a.zip", members)])
    assert "2025" in answered(course, "anna")


def test_the_notebook_of_another_assignment_is_kept_and_not_taken_for_this_one(
    course: Path, tmp_path: Path
) -> None:
    """As this course has released it, and as our source has it; something of its own comes before it."""
    laid(course, {"release/order/order.ipynb": _renamed("order", "retention", "kept")})
    other = text_of(ours()["scaling"]).encode()
    files = {
        "eve/pointing.ipynb": other,
        "bob/1.ipynb": GOOD,
        "bob/2.ipynb": other,
        "zoe/x.ipynb": text_of({"cells": [cell("code", "z", "def kept(): pass")]}).encode(),
    }
    rows = collect(course, "pointing", [laid(tmp_path / "a", files)])
    said = {row.path: row.said for row in rows}
    assert said["eve/pointing.ipynb"].startswith(
        "kept as 1.ipynb, counts. This is the notebook of scaling."
    )
    assert "This is the notebook of order." in said["zoe/x.ipynb"]
    assert (course / "received/pointing/eve/1.ipynb").read_bytes() == other
    path = course / "submitted/eve/pointing/pointing.ipynb"
    assert unmarked(path.read_bytes()) == "this is the notebook of scaling"
    assert "return half" in answered(course, "bob")


def _renamed(name: str, old: str, new: str) -> bytes:
    return text_of(ours()[name]).replace(old, new).encode()


METADATA = """\
submission_7:
  :submitters:
  - :name: Jane Doe
    :sid: 00123
    :email: jane@x.example
  :score: !ruby/object:X {a: 1}
submission_8:
  :submitters: [{":name": "Bo Li", ":sid": null}, {":name": "../Ann [x]"}]
submission_9:
  :submitters: [{":name": "BO LI", ":email": "b@x.example"}]
submission_10:
  :submitters: [{":name": seed}, {":name": Al}]
submission_11:
  :submitters: [{":name": submission_9}]
"""
WHOSE = {
    7: ["Jane Doe_00123"],
    8: ["-Ann -x-", "Bo Li (8)"],
    9: ["BO LI (9)"],
    10: ["Al", "submission_10"],
    11: ["submission_9 (11)"],
    12: ["submission_12"],
}


def test_gradescope_says_whose_a_submission_is(course: Path, tmp_path: Path) -> None:
    """A group, two of one name, names that no folder can have, and one of whom nothing is said."""
    members = [(f"assignment_5_export/submission_{number}/x.ipynb", GOOD) for number in WHOSE]
    about = ("assignment_5_export/submission_metadata.yml", METADATA.encode())
    rows = collect(course, "pointing", [zipped(tmp_path / "a.zip", [*members, about])])
    assert {
        path: sorted(row.student for row in rows if row.path == path) for path, _ in members
    } == {f"assignment_5_export/submission_{number}/x.ipynb": who for number, who in WHOSE.items()}
    assert refused(rows) == {}
    known = remembered(course, "pointing")
    assert known["Jane Doe_00123"] == {
        "name": "Jane Doe",
        "sid": "00123",
        "email": "jane@x.example",
    }
    assert known["-Ann -x-"]["name"] == "../Ann [x]"
    with_pattern = collect(course, "pointing", [tmp_path / "a.zip"], r"(?P<student>submission_7)/")
    assert list(taken(with_pattern).values()) == ["submission_7"]


NAMED = b"submission_7: {':submitters': [{':name': x}]}\n"


@pytest.mark.parametrize(
    "data",
    [b"", b"- a", b"a: [", b"\xff\xfe\0", b"{" * 5000, NAMED + b"#" * LARGEST, b"&a [*a]"],
)
def test_names_that_cannot_be_read_are_told_and_nothing_is_lost(
    course: Path, tmp_path: Path, data: bytes
) -> None:
    members: list[Member] = [("submission_7/x.ipynb", GOOD), ("submission_metadata.yml", data)]
    rows = collect(course, "pointing", [zipped(tmp_path / "a.zip", members)])
    assert taken(rows) == {"submission_7/x.ipynb": "submission_7"}
    assert "it names nobody" in refused(rows)["submission_metadata.yml"]


leaf = st.none() | st.booleans() | st.integers() | st.text()
shapes = st.recursive(
    leaf | st.just({":submitters": [{":name": "x"}]}),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["submission_7", "submission_8", ":submitters", ":name", ":sid", ":email"]
            ),
            inner,
            max_size=3,
        )
    ),
)


@given(st.dictionaries(st.sampled_from(["submission_7", "submission_8"]), shapes) | shapes)
def test_names_of_any_shape_give_each_student_one_folder(shape: object) -> None:
    found = people(json.dumps(shape).encode())
    ids = [student.casefold() for students in found.values() for student in students]
    assert len(ids) == len(set(ids))
    assert all("/" not in student and student == student.strip() != "" for student in ids)


def test_what_ends_without_a_notebook_ends_with_status_1(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = laid(tmp_path / "a", {"anna/pointing.ipynb": GOOD})
    (tmp_path / "empty").mkdir()
    missing = tmp_path / "missing.zip"

    def status(*sources: Path) -> tuple[int, str]:
        ended = main(["--course", str(course), "collect", "pointing", *map(str, sources)])
        return ended, capsys.readouterr().err

    assert status(missing) == (1, f"collect: there is no {missing}\n")
    assert status(tmp_path / "empty") == (1, "collect: nothing was taken\n")
    assert status(good, missing) == (1, f"collect: there is no {missing}\n")
    assert answered(course, "anna")
    assert status(good) == (0, "")


@pytest.mark.parametrize("data", [b"", b"<html>", b"[]", b"\xff\xfe"])
def test_a_hopeless_file_leaves_a_notebook_without_answers(
    course: Path, tmp_path: Path, data: bytes
) -> None:
    (row,) = collect(course, "pointing", [laid(tmp_path / "a", {"eve/pointing.ipynb": data})])
    assert "A blank notebook stands for it." in row.said
    assert (course / "received/pointing/eve/1.ipynb").read_bytes() == data
    stub = next(one.source for one in release().cells if one.id == "halve")
    assert answered(course, "eve") == stub


def test_what_was_kept_is_never_kept_twice_in_a_row(tmp_path: Path) -> None:
    def names(*came: bytes) -> list[str]:
        return [path.name for path in keep(tmp_path, "pointing", "anna", came)]

    assert names(b"a", b"b") == ["1.ipynb", "2.ipynb"]
    assert names(b"a", b"b") == ["1.ipynb", "2.ipynb"]
    assert names(b"a", b"b", b"c") == ["1.ipynb", "2.ipynb", "3.ipynb"]
    assert names(b"b") == ["4.ipynb"]
    assert names() == []
    assert (tmp_path / "received/pointing/anna/4.ipynb").read_bytes() == b"b"


@pytest.mark.parametrize(
    "file",
    ["leezoe_1235_5679_pointing.ipynb", "Zoe Lee_1235_assignsubmission_file_pointing.ipynb"],
)
def test_nobody_takes_anothers_place_by_the_name_of_a_file(
    course: Path, tmp_path: Path, file: str
) -> None:
    theirs, own = answering("def halve(x):\n    return 1"), answering("def halve(x):\n    return 2")
    source = zipped(tmp_path / "all.zip", [(f"anna/{file}", theirs), (file, own)])
    rows = collect(course, "pointing", [source])
    student = file.split("_")[0] + "_1235"
    assert taken(rows) == {f"anna/{file}": "anna", file: student}
    assert "return 2" in answered(course, student)


def test_a_folder_around_files_of_canvas_is_no_student(course: Path, tmp_path: Path) -> None:
    names = [f"submissions/{who}_5679_pointing.ipynb" for who in ("leezoe_1235", "doejim_1236")]
    rows = collect(course, "pointing", [zipped(tmp_path / "all.zip", [(n, GOOD) for n in names])])
    assert set(taken(rows).values()) == {"leezoe_1235", "doejim_1236"}


def test_one_students_files_never_end_the_run(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take(course: Path, name: str, student: str, *more: object) -> list[Row]:
        if student == "anna":
            raise RuntimeError("thought of by nobody")
        return [Row("b", student, "counts")]

    monkeypatch.setattr("assignments.collect._take", take)
    source = laid(tmp_path / "all", {"anna/x.ipynb": GOOD, "bo/x.ipynb": GOOD})
    rows = collect(course, "pointing", [source])
    assert list(taken(rows).values()) == ["bo"]
    assert "anna: it could not be taken in: RuntimeError: thought" in refused(rows)["anna/x.ipynb"]


def test_half_a_character_in_a_picture_is_left_out(course: Path, tmp_path: Path) -> None:
    notebook = perfect()
    words = next(one for one in notebook["cells"] if one["id"] == "question-why")
    words["attachments"] = {"a.png": {"image/png": "\ud800"}}
    data = json.dumps(notebook).encode()
    rows = collect(course, "pointing", [laid(tmp_path / "all", {"anna/x.ipynb": data})])
    assert taken(rows) == {"anna/x.ipynb": "anna"}


def test_endless_cells_are_not_read_as_python() -> None:
    """The first would take a minute if white space were looked through from every line."""
    assert bound("\n" * 100_000 + "x = 1") == frozenset({"x"})
    assert bound("a\n" * 1_000_000) is None
