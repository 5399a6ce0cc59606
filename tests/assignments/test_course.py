"""A course from the source to the feedback pages: nbgrader as the frame, without running a student's code."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from nbformat import NotebookNode

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("nbgrader")

from assignments import course as courses
from assignments.course import grade, release, solution, study
from assignments.export import export
from assignments.feedback import feedback
from assignments.leaks import LeakError
from assignments.nbgrader_bridge import NbGraderError, gradebook, settings
from assignments.options import options_of
from assignments.totals import totals_of
from tests.notebooks import node, read, write

NAME = "pointing"
SECRET = "hidden_marker_5309"  # in hidden tests
ANSWER = "answer_marker_8128"  # in solutions
GRADED = {"add-check": 4.0, "size-check": 3.0, "question-why": 5.0}


def cell(
    kind: str, name: str, text: str, *, points: int | None = None, solution: bool = False
) -> Any:
    """A cell that nbgrader knows, unless its name is `title` or `imports`: graded, solution or locked."""
    about: dict[str, Any] = {"grade": points is not None, "grade_id": name, "locked": not solution}
    about |= {"schema_version": 3, "solution": solution, "task": False}
    about |= {} if points is None else {"points": points}
    metadata = {} if name in ("title", "imports") else {"nbgrader": about}
    made = {"cell_type": kind, "id": name, "metadata": metadata, "source": text}
    return made | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def source() -> NotebookNode:
    """A small source in the conventions of the real ones."""
    add = f"def add(a, b):\n    ### BEGIN SOLUTION\n    {ANSWER} = a + b\n    return {ANSWER}\n    ### END SOLUTION"
    size = (
        f"def size(x):\n    ### BEGIN SOLUTION\n    return len(x)  # {ANSWER}\n    ### END SOLUTION"
    )
    hidden = (
        f"### BEGIN HIDDEN TESTS\n{SECRET} = add(2, 2)\nassert {SECRET} == 4\n### END HIDDEN TESTS"
    )
    cells = [
        cell("markdown", "title", "# Pointing\n\nTwo functions, $a_i \\le b$."),
        cell("code", "imports", "import os"),
        cell("code", "add", add, solution=True),
        cell("code", "add-check", f"assert add(1, 2) == 3, 'expected 3'\n{hidden}", points=4),
        cell("code", "given-unit", "UNIT = 7"),
        cell("code", "size", size, solution=True),
        cell("code", "size-check", "assert size([1]) == 1, 'expected 1'", points=3),
        cell("markdown", "rubric-why", "Five points for a reason."),
        cell("markdown", "question-why", f"Because of {ANSWER}.", points=5, solution=True),
    ]
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return node(
        {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    )


Change = Callable[[NotebookNode], None]
RIGHT = "def add(a, b):\n    return a + b"


def cell_of(notebook: NotebookNode, grade_id: str) -> NotebookNode:
    return next(
        c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id
    )


def write_answers(add: str = RIGHT, why: str = "Since it is so.") -> Change:
    """A student who answers everything."""

    def change(notebook: NotebookNode) -> None:
        cell_of(notebook, "add").source = add
        cell_of(notebook, "size").source = "size = len"
        cell_of(notebook, "question-why").source = why

    return change


def hand_in(course: Path, student: str, *changes: Change) -> Path:
    """Put the release, changed, where submissions are."""
    notebook = read(course / "release" / NAME / f"{NAME}.ipynb")
    for change in changes:
        change(notebook)
    path = course / "submitted" / student / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not as it should be stored: a broken notebook stays as broken as it is.
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def fake_batch(
    course: Path, name: str, *, students: Sequence[str] = (), **options: object
) -> list[Path]:
    """In place of the sandbox: a question is right if its answer stands in the file."""
    written = []
    for student in students:
        path = course / "submitted" / student / name / f"{name}.ipynb"
        data = path.read_bytes() if path.is_file() else b""
        right = {"add": b"return a + b" in data, "size": b"size = len" in data}
        marks = [
            {
                "question": question,
                "points": GRADED[f"{question}-check"] * fits,
                "out_of": GRADED[f"{question}-check"],
                "settings": {},
                "advice": "Correct." if fits else f"{question}: look at the <b>sum</b>.",
                "flags": [],
            }
            for question, fits in right.items()
        ]
        record = {
            "student": student,
            "assignment": name,
            "seed": 0,
            "notebook sha256": hashlib.sha256(data).hexdigest(),
            "questions": marks,
            "remark": "" if data.endswith(b"}") else "The file is not a notebook.",
        }
        path = course / "grading" / name / f"{student}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record), encoding="utf-8")
        written.append(path)
    return written


def scores(course: Path, student: str) -> dict[str, tuple[float | None, bool]]:
    """For each question the score in the gradebook, None if there is none, and whether to look at it."""
    with gradebook(course) as book:
        grades = book.find_submission_notebook(NAME, NAME, student).grades
        return {
            grade.name: (
                grade.auto_score if grade.manual_score is None else grade.manual_score,
                grade.needs_manual_grade,
            )
            for grade in grades
        }


def mark_by_hand(course: Path, student: str, points: float, comment: str) -> None:
    """What Formgrader does when the instructor types points and a comment."""
    with gradebook(course) as book:
        given = book.find_grade("question-why", NAME, NAME, student)
        given.manual_score, given.needs_manual_grade = points, False
        book.find_comment("question-why", NAME, NAME, student).manual_comment = comment
        book.db.commit()


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `sources` and a released course, whose name is a difficult one."""
    folder = tmp_path_factory.mktemp("released")
    (folder / "sources").mkdir()
    write(folder / "sources" / f"{NAME}.ipynb", source())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(courses, "SOURCES", folder / "sources")
        release(folder / "Kurs é 1", NAME)
    return folder


@pytest.fixture
def course(released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the released course for one test."""
    monkeypatch.setattr(courses, "SOURCES", released / "sources")
    monkeypatch.setattr(courses, "grade_batch", fake_batch)
    return shutil.copytree(released, tmp_path / "copy") / "Kurs é 1"


def texts(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every file under `folder`, as text."""
    for path in folder.rglob("*"):
        if path.is_file():
            yield path, path.read_text(encoding="utf-8")


def test_round_trip(course: Path) -> None:
    zoe, blank, wrong, broken = "Zoé 李", "o'neil", "wrong {0}", "broken [a]*"
    hand_in(course, zoe, write_answers())
    hand_in(course, blank)
    hand_in(course, wrong, write_answers("def add(a, b):\n    return a - b"))
    hand_in(course, broken).write_text('{"cells": [')

    graded = grade(course, NAME)
    assert graded.marked == sorted([zoe, blank, wrong])
    assert graded.failed == {broken: "The file is not a notebook."}
    assert not list(texts(course / "autograded" / broken))
    with gradebook(course) as book, pytest.raises(ValueError, match="No such"):
        book.find_submission_notebook(NAME, NAME, broken)

    perfect = {"add-check": (4, False), "size-check": (3, False), "question-why": (None, True)}
    assert scores(course, zoe) == perfect
    assert scores(course, blank) == dict.fromkeys(GRADED, (0, False))
    assert scores(course, wrong) == perfect | {"add-check": (0, False)}

    mark_by_hand(course, zoe, 4.5, "A **good** reason.")
    pages = feedback(course, NAME)
    assert [page.parent.parent.name for page in pages] == graded.marked
    page = pages[graded.marked.index(zoe)].read_text(encoding="utf-8")
    assert "11.5 of 12" in page
    assert "4.5 of 5" in page
    assert "A <strong>good</strong> reason." in page
    assert zoe in page
    assert "<math" in page
    page = pages[graded.marked.index(wrong)].read_text(encoding="utf-8")
    assert "0 of 4 points" in page
    assert "add: look at the &lt;b&gt;sum&lt;/b&gt;." in page
    assert "not marked yet" in page
    assert zoe not in page

    before = {student: scores(course, student) for student in graded.marked}
    again = grade(course, NAME)
    assert again == graded
    assert {student: scores(course, student) for student in graded.marked} == before
    assert before[zoe]["question-why"] == (4.5, False)


def test_a_new_answer_is_looked_at_again_and_keeps_its_mark(course: Path) -> None:
    hand_in(course, "a", write_answers())
    grade(course, NAME)
    mark_by_hand(course, "a", 2, "")
    hand_in(course, "a", write_answers(why="No, since it is otherwise."))
    grade(course, NAME)
    assert scores(course, "a")["question-why"] == (2, True)


def test_a_failed_second_submission_leaves_no_marks_of_the_first(course: Path) -> None:
    for student in "ab":
        hand_in(course, student, write_answers())
    grade(course, NAME)
    mark_by_hand(course, "b", 2, "")
    for student in "ab":
        hand_in(course, student).write_text("")
    assert sorted(grade(course, NAME).failed) == ["a", "b"]
    with gradebook(course) as book, pytest.raises(ValueError, match="No such"):
        book.find_submission_notebook(NAME, NAME, "a")
    assert scores(course, "b") == {
        "add-check": (None, True),
        "size-check": (None, True),
        "question-why": (2, True),
    }


def test_what_is_not_marked_as_it_is_fails(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for student in "ab":
        hand_in(course, student, write_answers())
    assert grade(course, NAME).failed == {}
    monkeypatch.setattr(courses, "grade_batch", lambda *a, **k: [])
    hand_in(course, "a")
    link = course / "submitted" / "b" / NAME / f"{NAME}.ipynb"
    link.symlink_to(link.rename(course / "outside.ipynb"))
    (course / "submitted" / "c" / NAME).mkdir(parents=True)
    failed = grade(course, NAME).failed
    assert "was changed" in failed["a"]
    assert failed["b"].endswith(f"{NAME}.ipynb is a link, and links are not followed")
    assert "not marked yet" in failed["c"]
    assert not list(texts(course / "autograded"))


@pytest.mark.parametrize("beyond", [False, True])
def test_points_by_hand_are_held_to_what_a_question_is_worth(
    course: Path, beyond: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if beyond:
        with (course / "nbgrader_config.py").open("a", encoding="utf-8") as file:
            file.write("\nc.Marks.beyond_maximum = True\n")
    for student in "ab":
        hand_in(course, student, write_answers())
    grade(course, NAME)
    mark_by_hand(course, "a", 6, "More than there is.")
    mark_by_hand(course, "b", -1, "Less than nothing.")
    export(course, NAME, "canvas")
    printed = capsys.readouterr().out
    text = (course / "export" / f"{NAME}-canvas.csv").read_text("utf-8")
    totals = [line.rpartition(",")[2] for line in text.splitlines()[2:]]
    assert totals == (["13", "6"] if beyond else ["12", "7"])
    told = ["a: question-why has 6 of 5 in the gradebook; 5 count.\n"]
    told += ["b: question-why has -1 of 5 in the gradebook; 0 count.\n"]
    assert [one in printed for one in told] == [not beyond] * 2
    pages = [page.read_text("utf-8") for page in feedback(course, NAME)]
    assert [
        f": {total} of 12 points" in page for total, page in zip(totals, pages, strict=True)
    ] == [True] * 2
    assert ("6 of 5" in pages[0]) == beyond


@pytest.mark.parametrize("per_day", [0, 2])
def test_each_day_late_costs_points_if_the_course_says_so(course: Path, per_day: float) -> None:
    with (course / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write('\nc.Marks.due = {"pointing": "2026-03-01 12:00+00:00"}\n')
        file.write(f"c.Marks.late_points_per_day = {per_day}\n" * bool(per_day))
    for student, time in (("early", "2026-03-01T11:59"), ("late", "2026-03-02T12:30")):
        came = hand_in(course, student, write_answers()).parent / "timestamp.txt"
        came.write_text(f"{time}:00+00:00", encoding="utf-8")
    grade(course, NAME)
    assert [total.points for total in totals_of(course, NAME)] == [7, 7 - 2 * per_day]
    early, late = (page.read_text("utf-8") for page in feedback(course, NAME))
    assert "handed in late" not in early
    assert ("handed in late</td><td>minus 4 points" in late) == bool(per_day)


def test_an_option_that_there_is_not_is_told(course: Path) -> None:
    with (course / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write("\nc.Marks.partial = True\n")
    with pytest.raises(ValueError, match=r"there is no c\.Marks\.partial, but beyond_maximum"):
        options_of(settings(course))


@pytest.mark.parametrize("depth", [1, 2])
def test_a_folder_that_is_a_link_has_no_marks(course: Path, depth: int) -> None:
    theirs = hand_in(course, "other", write_answers())
    place = course / "submitted" / "lou" / NAME / f"{NAME}.ipynb"
    place.parents[depth].mkdir(parents=True, exist_ok=True)
    place.parents[depth - 1].symlink_to(theirs.parents[depth - 1])
    graded = grade(course, NAME)
    assert graded.marked == ["other"]
    assert graded.failed["lou"].endswith("is a link, and links are not followed")
    assert not list((course / "autograded").glob("lou/*/*"))


def test_what_nbgrader_refuses_fails_with_its_reason(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assignments.grader.plugin.repair", lambda notebook, source: (notebook, []))

    def old(notebook: NotebookNode) -> None:
        cell_of(notebook, "add").metadata.nbgrader.schema_version = 1

    hand_in(course, "a", write_answers(), old)
    hand_in(course, "b", write_answers(), without("question-why", "rubric-why"))
    hand_in(course, "c", write_answers())
    graded = grade(course, NAME)
    assert graded.marked == ["c"]
    assert "old version of the nbgrader metadata" in graded.failed["a"]
    assert "rubric-why" in graded.failed["b"]


def test_nothing_hidden_reaches_a_student(course: Path) -> None:
    hand_in(course, "a", write_answers())
    hand_in(course, "b", write_answers("def add(a, b):\n    raise SystemExit"))
    (course / "submitted" / "a" / NAME / "notes.txt").symlink_to(course / "gradebook.db")
    study(course, NAME)
    grade(course, NAME)
    feedback(course, NAME)
    for folder in ("release", "study", "autograded", "feedback"):
        found = list(texts(course / folder))
        assert found, folder
        for path, text in found:
            assert path.suffix in (".ipynb", ".html"), path
            assert SECRET not in text, path
            assert ANSWER not in text, path
            assert "HIDDEN TESTS" not in text, path
    for _, text in texts(course / "study"):
        assert "nbgrader" not in text
        assert "expected 3" in text
    for path, text in texts(course / "feedback"):
        assert "://" not in text.replace("http://www.w3.org/1998/Math/MathML", ""), path
        assert "<script" not in text, path


def test_the_solution_is_run_and_holds_no_hidden_test(course: Path) -> None:
    text = solution(course, NAME).read_text(encoding="utf-8")
    assert ANSWER in text
    assert SECRET not in text
    assert '"execution_count": 1' in text


@pytest.mark.parametrize(
    ("changed", "old", "new"),
    [
        ("add", "### END SOLUTION", f"### END SOLUTION\n    return {ANSWER}"),
        ("add", "### END SOLUTION", "    return a\n    ### END SOLUTION\n    return a"),
        ("add", "### BEGIN SOLUTION", "### BEGIN SOLUTON"),
        ("add", " SOLUTION", " SOLUTON"),
        ("add", "### END SOLUTION", ""),
        ("add-check", "### BEGIN HIDDEN TESTS", "### BEGIN HIDDEN TEST"),
        ("add-check", "### BEGIN HIDDEN TESTS\n", ""),
        ("imports", "import os", f"{ANSWER} = a + b"),
        ("imports", "import os", "from assignments.verify import verify"),
        ("imports", "import os", "### BEGIN SOLUTION\nimport os\n### END SOLUTION"),
    ],
)
def test_a_leak_is_refused(course: Path, changed: str, old: str, new: str) -> None:
    path = course / "source" / NAME / f"{NAME}.ipynb"
    notebook = read(path)
    one = next(one for one in notebook.cells if one.id == changed)
    one.source = one.source.replace(old, new)
    write(path, notebook)
    with pytest.raises((LeakError, NbGraderError)):
        release(course, NAME)
    with pytest.raises(RuntimeError):
        study(course, NAME)
    for folder in ("release", "study"):
        assert not (course / folder / NAME / f"{NAME}.ipynb").exists()


def test_the_instructors_source_is_kept_and_ours_is_brought_up_to_date(
    course: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    newer = source()
    newer.cells[0].source = "# Newer"
    (tmp_path / "new").mkdir()
    write(tmp_path / "new" / f"{NAME}.ipynb", newer)
    monkeypatch.setattr(courses, "SOURCES", tmp_path / "new")
    opened = read(course / "source" / NAME / f"{NAME}.ipynb")
    opened.cells[1].execution_count = 1
    write(course / "source" / NAME / f"{NAME}.ipynb", opened)  # and saved, no more
    assert read(release(course, NAME)).cells[0].source == "# Newer"
    newer.cells[0].source = "# The instructor's"
    write(course / "source" / NAME / f"{NAME}.ipynb", newer)
    assert read(release(course, NAME)).cells[0].source == "# The instructor's"
    assert read(study(course, NAME)).cells[0].source == "# The instructor's"
    with pytest.raises(FileNotFoundError, match="no source of other"):
        release(course, "other")


def test_a_course_keeps_its_settings_and_ours_hold_in_it(tmp_path: Path) -> None:
    own = tmp_path / "nbgrader_config.py"
    own.write_text("c = get_config()\nc.CourseDirectory.course_id = 'mine'\n", encoding="utf-8")
    courses.make_course(tmp_path)
    found = settings(tmp_path)
    assert found.CourseDirectory.course_id == "mine"
    assert "Execute" not in [one.__name__ for one in found.Autograde.autograde_preprocessors]


def test_a_path_that_nbgrader_takes_for_a_pattern_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="another folder"):
        courses.make_course(tmp_path / "course [2026]")
    assert not list(tmp_path.iterdir())


def without(*names: str) -> Change:
    def change(notebook: NotebookNode) -> None:
        notebook.cells = [one for one in notebook.cells if one.id not in names]

    return change


def duplicate(notebook: NotebookNode) -> None:
    """Every cell twice, with its label; the copies are left as they came."""
    blank = [dict(one, source="pass", id=f"{one.id}-2") for one in notebook.cells]
    notebook.cells += [node(one) for one in blank]


def retype(notebook: NotebookNode) -> None:
    """The checks as text, the written answer as code."""
    for one in notebook.cells:
        if one.id in ("add-check", "size-check"):
            one.cell_type = "markdown"
            del one["outputs"], one["execution_count"]
        elif one.id == "question-why":
            one.cell_type = "code"
            one.update(outputs=[], execution_count=None)


def strip(notebook: NotebookNode) -> None:
    """No labels and no ids, as after a detour through another editor."""
    for one in notebook.cells:
        one.metadata = {}
        del one["id"]
    notebook.nbformat_minor = 4


def cheat(notebook: NotebookNode) -> None:
    """More points, other checks, marks already in the outputs."""
    for one in notebook.cells:
        if one.id in ("add-check", "size-check"):
            one.source = "100.0"
            one.metadata.nbgrader.update(points=100, locked=False)
            one.outputs = [node({"output_type": "stream", "name": "stdout", "text": "100"})]


@pytest.mark.parametrize(
    "damage",
    [
        without("add-check", "size-check"),
        without("given-unit", "rubric-why"),
        without("title", "imports", "add-check", "given-unit", "size-check", "rubric-why"),
        duplicate,
        retype,
        strip,
        cheat,
    ],
)
def test_damage_costs_nothing_and_gains_nothing(course: Path, damage: Change) -> None:
    hand_in(course, "right", write_answers(), damage)
    hand_in(course, "wrong", write_answers("add = None"), damage)
    graded = grade(course, NAME)
    assert graded.failed == {}
    perfect = {"add-check": (4, False), "size-check": (3, False), "question-why": (None, True)}
    assert scores(course, "right") == perfect
    assert scores(course, "wrong") == perfect | {"add-check": (0, False)}


def test_a_deleted_written_answer_is_no_answer(course: Path) -> None:
    hand_in(course, "a", write_answers(), without("question-why", "rubric-why"))
    assert grade(course, NAME).failed == {}
    assert scores(course, "a")["question-why"] == (0, False)


def test_a_page_that_cannot_be_made_does_not_stop_the_others(course: Path) -> None:
    for student in ("a", "b [1]"):
        hand_in(course, student, write_answers())
    grade(course, NAME)
    with gradebook(course) as book:
        book.remove_submission(NAME, "a")
    with pytest.raises(NbGraderError, match=r"a: .*No such"):
        feedback(course, NAME)
    pages = [path for path, _ in texts(course / "feedback")]
    assert pages == [course / "feedback" / "b [1]" / NAME / f"{NAME}.html"]


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_a_page_fits_a_telephone_and_asks_nothing_of_the_network(
    course: Path, browser: Browser
) -> None:
    long = (
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n$$" + "x + " * 60 + "x$$\n\n`" + "long_name_" * 30 + "`"
    )
    hand_in(course, "a", write_answers("def add(a, b):\n    return " + "a * " * 60 + "b", why=long))
    grade(course, NAME)
    page = browser.new_page(viewport={"width": 375, "height": 700})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(feedback(course, NAME)[0].as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        assert page.locator("math").count() >= 2
        assert page.get_by_role("link", name="question-why").count() == 1
        assert len(asked) == 1
    finally:
        page.close()


def test_a_formula_without_math_core_is_shown_as_it_was_typed(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assignments.feedback.find_spec", lambda name: None)
    hand_in(course, "a", write_answers())
    grade(course, NAME)
    assert r"<code>a_i \le b</code>" in feedback(course, NAME)[0].read_text(encoding="utf-8")


def test_a_picture_in_an_answer_is_drawn(course: Path) -> None:
    def attach(notebook: NotebookNode) -> None:
        cell = cell_of(notebook, "question-why")
        cell["attachments"] = {"sketch.png": {"image/png": "iVBORw0KGgo="}}

    hand_in(course, "a", write_answers(why="Look: ![a sketch](attachment:sketch.png)"), attach)
    grade(course, NAME)
    page = feedback(course, NAME)[0].read_text(encoding="utf-8")
    (picture,) = re.findall(r"<img[^>]*>", page)
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in picture
    assert 'alt="a sketch"' in picture


def test_a_total_says_whether_it_is_final(course: Path) -> None:
    hand_in(course, "a", write_answers())
    grade(course, NAME)
    assert "7 of 12 points so far</h1>" in feedback(course, NAME)[0].read_text(encoding="utf-8")
    mark_by_hand(course, "a", 5, "Good.")
    assert "12 of 12 points</h1>" in feedback(course, NAME)[0].read_text(encoding="utf-8")


def test_a_formula_too_deep_to_set_is_shown_as_it_was_typed(course: Path) -> None:
    for student, depth in (("a", 400), ("b", 4_000), ("c", 9_000)):
        hand_in(course, student, write_answers(why="$" + "{" * depth + "}" * depth + "$"))
    grade(course, NAME)
    pages = [page.read_text(encoding="utf-8") for page in feedback(course, NAME)]
    assert len(pages) == 3
    assert "<math" in pages[0]
    assert all("{" * 1_000 in page for page in pages[1:])


def test_a_student_cannot_reach_the_browser_of_a_reader(course: Path) -> None:
    bad = "<script>alert(1)</script> <img src=x onerror=alert(1)> [a](javascript:alert(1))"
    worse = "![b](http://x.invalid/a.png) ![c](attachment:none) $\\href{x}{y}$ " + "[" * 30_000
    for student, text in (("a", bad), ("b", worse)):
        hand_in(course, student, write_answers(why=text))
    grade(course, NAME)
    for page in feedback(course, NAME):
        tags = re.findall(r"<[^>]*>", page.read_text(encoding="utf-8"))
        assert "<main>" in tags
        assert not [tag for tag in tags if re.search(r"script|<img|onerror|\.invalid", tag)]


@pytest.mark.needs("bubblewrap")
def test_round_trip_with_the_sandbox(tmp_path: Path) -> None:
    name, zoe = "cost", "Zoé 李"
    released = release(tmp_path, name)
    solved = read(tmp_path / "source" / name / f"{name}.ipynb")
    for one in solved.cells:
        one.source = re.sub(
            r"### BEGIN HIDDEN.*### END HIDDEN TESTS", "", one.source, flags=re.DOTALL
        )
        one.source = one.source.replace('"solution"', repr(zoe))
    right = tmp_path / "submitted" / zoe / name / f"{name}.ipynb"
    blank = tmp_path / "submitted" / "blank" / name / f"{name}.ipynb"
    copied = tmp_path / "submitted" / "copy_12" / name / f"{name}.ipynb"
    for path in (right, blank, copied):
        path.parent.mkdir(parents=True)
    write(right, solved)
    write(copied, solved)
    shutil.copy(released, blank)
    expected = courses.Graded([zoe, "blank", "copy_12"], {}, {zoe: [zoe, "copy_12"]})
    assert grade(tmp_path, name) == expected
    earned = []
    for student in (zoe, "blank", "copy_12"):
        with gradebook(tmp_path) as book:
            found = book.find_submission_notebook(name, name, student)
            earned.append((found.score, found.max_score, found.needs_manual_grade))
    assert earned == [(15, 20, True), (0, 20, False), (15, 20, True)]
    pages = feedback(tmp_path, name)
    assert len(pages) == 3
    for _, text in [*texts(tmp_path / "autograded"), *texts(tmp_path / "feedback")]:
        assert "verify" not in text
