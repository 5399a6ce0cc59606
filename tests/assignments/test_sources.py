"""The source notebooks of the assignments: their form, that they run, and what a release of them holds."""

import ast
import contextlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from assignments.folders import given
from assignments.tasks import NAMES, Task, assignments
from tests.notebooks import GUARD, KERNEL, ROOT, read

SOURCES = ROOT / "assignments" / "sources"
ASSIGNMENTS = assignments()
STUDENTS = ("solution", "", "é 李 x", "Ana Müller", "s1234567", "O'Neil, J.")
MOST_LINES, LONGEST_LINE, LONGEST_TEXT, TELLING = 30, 100, 3000, 20
REGION = re.compile(r"### BEGIN (SOLUTION|HIDDEN TESTS)\n(.*?)### END \1", re.DOTALL)
FLAGS = ("solution", "grade", "locked")

per_name = pytest.mark.parametrize("name", NAMES)


def source(name: str) -> NotebookNode:
    return read(SOURCES / f"{name}.ipynb")


def cells(name: str, kind: str = "") -> dict[str, NotebookNode]:
    """The cells by their ids, in order."""
    found = source(name).cells
    return {cell.id: cell for cell in found if kind in ("", cell.cell_type)}


def graded(cell: NotebookNode) -> dict[str, Any]:
    return cast(dict[str, Any], cell.metadata.get("nbgrader", {}))


def of_kind(name: str, start: str) -> list[NotebookNode]:
    return [cell for cell in source(name).cells if cell.id.startswith(start)]


def last(name: str) -> Task:
    """The question with numbers."""
    return ASSIGNMENTS[name].tasks[-1]


def released(name: str) -> NotebookNode:
    """What nbgrader's preprocessors leave for students."""
    return given(source(name))


def run(cell: NotebookNode, names: dict[str, Any]) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(cell.source, cell.id, "exec"), names)


# Form


def test_there_is_one_source_for_each_assignment() -> None:
    assert sorted(path.stem for path in SOURCES.glob("*.ipynb")) == sorted(NAMES)
    assert {path.suffix for path in SOURCES.iterdir() if path.is_file()} == {".ipynb"}


@per_name
def test_it_is_a_valid_notebook_that_was_not_run(name: str) -> None:
    notebook = json.loads((SOURCES / f"{name}.ipynb").read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    nbformat.validate(notebook)
    assert notebook["metadata"]["kernelspec"] == KERNEL
    for cell in notebook["cells"]:
        assert re.fullmatch(r"[a-z][a-z0-9_-]{2,40}", cell["id"])
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
        assert set(cell["metadata"]) <= {"nbgrader"}
    assert (SOURCES / f"{name}.ipynb").read_bytes().endswith(b"}\n")


@per_name
def test_nbgraders_marks_are_those_of_the_conventions(name: str) -> None:
    for cell in source(name).cells:
        marks = graded(cell)
        assert marks, cell.id  # a cell without them is not locked
        assert marks["schema_version"] == 3
        assert marks["grade_id"] == cell.id
        assert not marks.get("task", False)
        flags = {flag for flag in FLAGS if marks[flag]}
        assert ("points" in marks) == ("grade" in flags)
        if cell.id.endswith("-check"):
            assert flags == {"grade", "locked"}
        elif cell.id.startswith("question-"):
            assert (cell.cell_type, flags) == ("markdown", {"grade", "solution"})
        elif cell.id.startswith(("given-", "rubric-")):
            assert flags == {"locked"}
        else:
            assert flags in ({"solution"}, {"locked"})
            assert cell.cell_type == "code" or flags == {"locked"}


@per_name
def test_points_add_up_to_20(name: str) -> None:
    points = {
        cell.id: graded(cell)["points"] for cell in source(name).cells if "points" in graded(cell)
    }
    functions = [f"{task.name}-check" for task in ASSIGNMENTS[name].tasks]
    questions = [cell.id for cell in of_kind(name, "question-")]
    assert list(points) == functions + questions
    assert list(points.values()) == [4, 4, 4, 3, 5]


@per_name
def test_cells_stand_in_the_order_of_the_conventions(name: str) -> None:
    ids = [i for i, cell in cells(name).items() if cell.cell_type == "code" or i[:7] != "text-"]
    *functions, numbers = [task.name for task in ASSIGNMENTS[name].tasks]
    places = [ids.index(i) for f in functions for i in (f, f"{f}-check")]
    later = ("student", numbers, f"{numbers}-measure", f"{numbers}-check")
    places += [ids.index(i) for i in later]
    assert places == sorted(places)
    for function in functions:
        assert ids.index(f"{function}-check") == ids.index(function) + 1
    given = [place for place, i in enumerate(ids) if i.startswith("given-")]
    assert given
    assert any(ids.index("student") < place < ids.index(numbers) for place in given)
    (question,) = of_kind(name, "question-")
    assert ids[-2:] == [question.id.replace("question", "rubric"), question.id]
    first = source(name).cells[0]
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")
    code = list(cells(name, "code").values())
    assert code[0].source.split("\n")[0] == "import numpy as np"


@per_name
def test_the_title_says_how_long_it_takes_and_what_it_counts(name: str) -> None:
    title = source(name).cells[0].source
    assert f"about {ASSIGNMENTS[name].minutes} minutes" in title
    assert "20 points" in title
    assert f"hapter {ASSIGNMENTS[name].chapter}" in title


@per_name
def test_the_title_says_what_may_be_returned_and_what_stops_run_all(name: str) -> None:
    one, rest = (
        read(path / file).cells[0].source.split("\n", 4)[4]
        for path, file in (
            (ROOT / "assignments/sources", "pointing.ipynb"),
            (SOURCES, f"{name}.ipynb"),
        )
    )
    assert rest == one
    assert "return arrays, lists or tensors (without gradient: `.detach()`)" in rest
    assert 'not solved stops "run all" there: run the cells below it by hand' in rest


@per_name
def test_the_question_with_numbers_says_whose_they_are_and_what_counts_as_right(name: str) -> None:
    ids = list(cells(name))
    before = cells(name)[ids[ids.index("student") - 1]].source
    assert before.endswith("Put **your full name, as in your course's list**, between the quotes.")
    text = cells(name)["text-predict"].source
    assert "hat lies within 1 % counts as right. The prediction comes first, by formula" in text
    assert last(name).exercise.rtol == 0.01


@per_name
def test_a_function_is_defined_with_a_docstring_around_its_solution(name: str) -> None:
    for task in ASSIGNMENTS[name].tasks[:3]:
        cell = cells(name)[task.name]
        assert len(REGION.findall(cell.source)) == 1
        for text in (cell.source, {c.id: c for c in released(name).cells}[task.name].source):
            (function,) = [
                step
                for step in ast.parse(text).body
                if isinstance(step, ast.FunctionDef) and step.name == task.name
            ]
            assert ast.get_docstring(function)
            most = max(map(len, task.cases(0, "")))
            assert [arg.arg for arg in function.args.args] == task.exercise.names()[:most]


@per_name
def test_a_check_asserts_with_words_and_calls_verify_out_of_sight(name: str) -> None:
    for task in ASSIGNMENTS[name].tasks:
        cell = cells(name)[f"{task.name}-check"]
        ((kind, hidden),) = REGION.findall(cell.source)
        assert kind == "HIDDEN TESTS"
        assert "from assignments.verify import verify" in hidden
        assert (f"verify({task.name})" in hidden) == (task.numbers is None)
        asserts = [
            step for step in ast.walk(ast.parse(cell.source)) if isinstance(step, ast.Assert)
        ]
        assert asserts
        assert all(step.msg is not None for step in asserts)


@per_name
def test_the_rubric_has_a_level_for_each_number_of_points(name: str) -> None:
    (rubric,) = of_kind(name, "rubric-")
    (question,) = of_kind(name, "question-")
    levels = [int(level) for level in re.findall(r"^\|\s*(\d)\s*\|", rubric.source, re.MULTILINE)]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] == graded(question)["points"] == 5
    assert levels[-1] == 0
    assert len(levels) >= 4
    assert "measured" in rubric.source


@per_name
def test_texts_are_short_and_name_no_place(name: str) -> None:
    for cell in source(name).cells:
        for place in ("../", "/home", "/work", "/tmp", "C:\\", "shared/", "http:", "<script", "\t"):
            assert place not in cell.source, (cell.id, place)
        lines = cell.source.split("\n")
        assert not any(line != line.rstrip() for line in lines), cell.id
        if cell.cell_type == "code":
            assert len(lines) <= MOST_LINES, cell.id
            assert max(map(len, lines)) <= LONGEST_LINE, cell.id
        else:
            assert len(cell.source) <= LONGEST_TEXT, cell.id


# Running


@per_name
def test_it_runs_from_top_to_bottom_and_its_checks_are_content(name: str) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells(name, "code").values():
        run(cell, names)
    assert names["STUDENT"] == "solution"


@pytest.mark.slow
@per_name
def test_it_runs_in_a_kernel_of_its_own(name: str, tmp_path: Path) -> None:
    client = NotebookClient(
        source(name), timeout=GUARD, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})


def with_numbers(name: str, student: str) -> dict[str, Any]:
    """What the solution's part with numbers makes for another student; `verify` has the last word."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found = cells(name, "code")
    ids = list(found)
    run(next(iter(found.values())), names)
    for i in ids[ids.index("student") : ids.index(f"{last(name).name}-check") + 1]:
        run(found[i], names)
        if i == "student":
            names["STUDENT"] = student
    return names


@pytest.mark.parametrize("student", STUDENTS)
@per_name
def test_every_student_has_numbers_of_the_same_kind_that_the_grader_knows(
    name: str, student: str
) -> None:
    numbers = with_numbers(name, student)["my_numbers"](student)
    assert all(type(number) in (int, float) for number in numbers)
    (case,) = last(name).cases(0, student)
    assert case[: len(numbers)] == tuple(numbers)


@per_name
def test_verify_refuses_the_numbers_of_another_student(name: str) -> None:
    """Else the two tests before would say nothing."""
    mine = with_numbers(name, "one")
    check = cells(name)[f"{last(name).name}-check"]
    refused = 0
    for student in STUDENTS:
        mine["STUDENT"] = student
        try:
            run(check, mine)
        except AssertionError as error:
            refused += "not yet" in str(error)
    assert refused >= 3


@per_name
def test_a_wrong_function_is_refused_by_the_visible_example(name: str) -> None:
    notebook = released(name)
    for task in ASSIGNMENTS[name].tasks[:3]:
        names: dict[str, Any] = {"np": np, task.name: lambda *case: np.full((2, 2), 0.123)}
        check = next(cell for cell in notebook.cells if cell.id == f"{task.name}-check")
        with pytest.raises((AssertionError, ValueError)):
            run(check, names)


# What students get


def hidden_lines(name: str) -> Iterator[tuple[str, str]]:
    """Each line of a region with the id of its cell."""
    for cell in source(name).cells:
        for _, region in REGION.findall(cell.source):
            for line in region.split("\n"):
                if re.search(r"\w", line):
                    yield cell.id, line.strip()


@per_name
def test_a_release_holds_no_solution_and_no_hidden_test(name: str) -> None:
    given = {cell.id: cell.source for cell in released(name).cells}
    assert list(given) == list(cells(name))
    hidden = list(hidden_lines(name))
    assert len({i for i, _ in hidden}) >= 10  # 3 functions, a name, 2 numbers, 4 checks
    for i, line in hidden:
        assert line not in [visible.strip() for visible in given[i].split("\n")]
        if len(line) >= TELLING:
            assert all(line not in text for text in given.values()), line
    whole = "\n".join(given.values())
    for word in ("SOLUTION", "HIDDEN", "verify", "import assignments", "Exercise"):
        assert word not in whole


@per_name
def test_a_release_that_nobody_filled_in_fails_in_its_checks_alone(name: str) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    raised: dict[str, str] = {}
    for cell in released(name).cells:
        if cell.cell_type == "code":
            try:
                run(cell, names)
            except AssertionError as error:
                raised[cell.id] = str(error)
    *functions, numbers = (task.name for task in ASSIGNMENTS[name].tasks)
    assert raised == {
        **{f"{function}-check": f"{function}: not written yet" for function in functions},
        f"{numbers}-check": "predicted: not filled in yet",
    }


# The tests above refuse what they are for


def first_check(notebook: NotebookNode) -> NotebookNode:
    return next(cell for cell in notebook.cells if cell.id.endswith("-check"))


def keep_output(notebook: NotebookNode) -> None:
    notebook.cells[1].outputs = [{"output_type": "stream", "name": "stdout", "text": "1"}]


def repeat_an_id(notebook: NotebookNode) -> None:
    notebook.cells[2].id = notebook.cells[0].id


def unlock_a_check(notebook: NotebookNode) -> None:
    graded(first_check(notebook))["locked"] = False


def unlock_the_imports(notebook: NotebookNode) -> None:
    next(cell for cell in notebook.cells if cell.id == "imports").metadata.clear()


def say_less(notebook: NotebookNode) -> None:
    notebook.cells[0].source = notebook.cells[0].source.replace("(without gradient", "(")


def leave_out_the_tolerance(notebook: NotebookNode) -> None:
    cell = next(cell for cell in notebook.cells if cell.id == "text-predict")
    cell.source = cell.source.replace("1 %", "a bit")


def look_at_nothing_first(notebook: NotebookNode) -> None:
    cell = first_check(notebook)
    cell.source = re.sub(r"assert mask is not None.*\n", "", cell.source)


def give_a_point_more(notebook: NotebookNode) -> None:
    graded(first_check(notebook))["points"] = 5


def move_the_question_up(notebook: NotebookNode) -> None:
    notebook.cells.insert(1, notebook.cells.pop())


def solve_in_sight(notebook: NotebookNode) -> None:
    cell = next(cell for cell in notebook.cells if cell.id == "merge_parts")
    cell.source = re.sub(r" *### (BEGIN|END) SOLUTION\n?", "", cell.source)


def show_a_line_elsewhere(notebook: NotebookNode) -> None:
    cell = next(cell for cell in notebook.cells if cell.id == "merge_parts")
    notebook.cells[0].source += "\n" + REGION.findall(cell.source)[0][1].split("\n")[2]


def verify_in_sight(notebook: NotebookNode) -> None:
    cell = first_check(notebook)
    cell.source = re.sub(r"### (BEGIN|END) HIDDEN TESTS\n?", "", cell.source)


def assert_without_words(notebook: NotebookNode) -> None:
    first_check(notebook).source += "\nassert True"


def name_a_folder(notebook: NotebookNode) -> None:
    notebook.cells[0].source += " See ../shared."


def draw_other_numbers(notebook: NotebookNode) -> None:
    cell = next(cell for cell in notebook.cells if cell.id == "given-numbers")
    cell.source = cell.source.replace("student.encode()", "student.upper().encode()")


def spoil_a_solution(notebook: NotebookNode) -> None:
    cell = next(cell for cell in notebook.cells if cell.id == "visited_blocks")
    cell.source = cell.source.replace("window + 1", "window")


def check_nothing(notebook: NotebookNode) -> None:
    cell = next(cell for cell in notebook.cells if cell.id == "visited_blocks-check")
    cell.source = cell.source[cell.source.index("### BEGIN") :]


@pytest.mark.parametrize(
    ("damage", "test"),
    [
        (keep_output, test_it_is_a_valid_notebook_that_was_not_run),
        (repeat_an_id, test_it_is_a_valid_notebook_that_was_not_run),
        (unlock_a_check, test_nbgraders_marks_are_those_of_the_conventions),
        (unlock_the_imports, test_nbgraders_marks_are_those_of_the_conventions),
        (say_less, test_the_title_says_what_may_be_returned_and_what_stops_run_all),
        (
            leave_out_the_tolerance,
            test_the_question_with_numbers_says_whose_they_are_and_what_counts_as_right,
        ),
        (look_at_nothing_first, test_a_release_that_nobody_filled_in_fails_in_its_checks_alone),
        (give_a_point_more, test_points_add_up_to_20),
        (move_the_question_up, test_cells_stand_in_the_order_of_the_conventions),
        (solve_in_sight, test_a_function_is_defined_with_a_docstring_around_its_solution),
        (show_a_line_elsewhere, test_a_release_holds_no_solution_and_no_hidden_test),
        (verify_in_sight, test_a_check_asserts_with_words_and_calls_verify_out_of_sight),
        (verify_in_sight, test_a_release_holds_no_solution_and_no_hidden_test),
        (assert_without_words, test_a_check_asserts_with_words_and_calls_verify_out_of_sight),
        (name_a_folder, test_texts_are_short_and_name_no_place),
        (draw_other_numbers, test_it_runs_from_top_to_bottom_and_its_checks_are_content),
        (spoil_a_solution, test_it_runs_from_top_to_bottom_and_its_checks_are_content),
        (check_nothing, test_a_wrong_function_is_refused_by_the_visible_example),
        (check_nothing, test_a_release_that_nobody_filled_in_fails_in_its_checks_alone),
    ],
)
def test_damage_is_noticed(
    damage: Callable[[NotebookNode], None],
    test: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notebook = source("cost")
    damage(notebook)
    text = json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"
    (tmp_path / "cost.ipynb").write_text(text, "utf-8")
    test("cost")
    monkeypatch.setattr("tests.assignments.test_sources.SOURCES", tmp_path)
    with pytest.raises((AssertionError, ValueError, pytest.fail.Exception)):
        test("cost")
