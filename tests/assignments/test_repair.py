"""Hand-ins of every kind of brokenness come out well-formed, with the answers where they belong."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from nbformat import NotebookNode

from assignments.folders import ours
from assignments.repair import belongs, repair, repair_submissions, repaired, to_bytes, unmarked
from assignments.sanitise import MOST_CELLS, MOST_OUTPUT, MOST_TEXT, bound, node, read
from tests.assignments.handins import (
    ANSWERS,
    HELPER,
    WORDS,
    blank,
    cell,
    course_with_release,
    perfect,
    release,
    source,
    text_of,
)
from tests.notebooks import ROOT

Notebook = dict[str, Any]
SOURCES = sorted(ROOT.glob("assignments/sources/*.ipynb"))


def labels(notebook: NotebookNode | Notebook) -> list[str]:
    """The nbgrader ids in order."""
    return [one["metadata"]["nbgrader"]["grade_id"] for one in notebook["cells"] if one["metadata"]]


def text(notebook: NotebookNode, label: str) -> str:
    """The text of a labelled cell; there must be one of it."""
    (found,) = [
        one for one in notebook.cells if one.metadata.get("nbgrader", {}).get("grade_id") == label
    ]
    return found.source


def by_id(notebook: Notebook, name: str) -> dict[str, Any]:
    """A cell of a hand-in by its id."""
    return next(one for one in notebook["cells"] if one["id"] == name)


def ran(notebook: NotebookNode) -> dict[str, Any]:
    """What the code cells define, run as the grader runs them: a cell that fails stops no other."""
    names: dict[str, Any] = {}
    for one in notebook.cells:
        if one.cell_type == "code":
            try:
                exec(one.source, names)
            except Exception:
                continue
    return names


def well_formed(notebook: NotebookNode) -> None:
    """A valid notebook with each label of the release once and the given cells as they were."""
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    given = release()
    assert sorted(labels(notebook)) == sorted(labels(given))
    assert len({one.id for one in notebook.cells}) == len(notebook.cells)
    for one in given.cells:
        about = one.metadata.get("nbgrader")
        if about and not about.solution:
            assert text(notebook, about.grade_id) == one.source
    kinds = {one.id: (one.cell_type, one.metadata) for one in given.cells}
    for one in notebook.cells:
        if one.metadata:
            assert (one.cell_type, one.metadata) == kinds[one.id]
    assert "SECRET" not in to_bytes(notebook).decode()


def answers_stand(notebook: NotebookNode) -> None:
    """Every answer of the perfect hand-in is under its label and in force."""
    for label, answer in ANSWERS.items():
        assert text(notebook, label) == answer
    names = ran(notebook)
    assert names["double"](3) == 6
    assert names["halve"](3) == 1.5
    assert names["predicted"] == names["measured"] == (7 + len("Zoé 李")) / 2


def sound(notebook: Notebook) -> tuple[NotebookNode, list[str]]:
    """The repaired notebook, checked; a second repair finds nothing more to do."""
    before = deepcopy(notebook)
    made, remarks = repair(notebook, source())
    assert notebook == before
    well_formed(made)
    again, more = repair(made, release())
    assert (again, more) == (made, [])
    return made, remarks


@pytest.mark.parametrize("give", [release, source])
def test_nothing_is_changed_in_a_sound_hand_in(give: Callable[[], NotebookNode]) -> None:
    made, remarks = repair(perfect(), give())
    assert remarks == []
    assert made == node(perfect())


def test_a_blank_hand_in_is_sound_and_blank() -> None:
    made, remarks = sound(release())
    assert remarks == []
    assert made == release()


def test_given_cells_that_were_changed_are_restored() -> None:
    """R1: the test cell becomes `assert True`, the import goes, a given text is edited."""
    notebook = perfect()
    by_id(notebook, "double-check")["source"] = "assert True"
    by_id(notebook, "imports")["source"] = "import math"
    by_id(notebook, "given-number")["source"] = "number = 2"
    made, remarks = sound(notebook)
    answers_stand(made)
    assert ran(made)["np"]
    assert remarks == [
        "Given cells that were changed have their text again: `double-check`, `given-number`.",
        "Missing cells were put back: `imports`.",
    ]
    sources = [one.source for one in made.cells]
    assert {"assert True", "import math", "number = 2"} < set(sources)


def test_what_was_added_to_a_given_cell_stays_after_it() -> None:
    notebook = perfect()
    by_id(notebook, "given-number")["source"] += "\nmore = number + 1"
    made, _ = sound(notebook)
    answers_stand(made)
    assert ran(made)["more"] == 7 + len("Zoé 李") + 1


def test_of_many_cells_the_remark_names_the_first() -> None:
    notebook = perfect()
    for one in notebook["cells"]:
        one["metadata"] = {}
    _, remarks = sound(notebook)
    (remark,) = remarks
    assert remark.endswith(
        "back: `text-title`, `text-double`, `double`, `double-check`, `halve` and 8 more."
    )


def test_words_written_into_the_rubric_stay() -> None:
    notebook = perfect()
    notebook["cells"].pop()
    by_id(notebook, "rubric-why")["source"] += "\n\nBecause."
    made, _ = sound(notebook)
    assert text(made, "question-why").endswith("Because.")


def test_an_answer_beside_the_stub_of_the_question_counts() -> None:
    notebook = perfect()
    notebook["cells"][-1]["source"] = "YOUR ANSWER HERE"
    notebook["cells"].append(cell("markdown", "zz", WORDS))
    made, remarks = sound(notebook)
    answers_stand(made)
    assert remarks[0] == "Lost or exchanged labels are back: `question-why`."


@pytest.mark.parametrize("first", [True, False])
def test_a_stub_beside_the_answer_does_not_undo_it(first: bool) -> None:
    notebook = perfect()
    stub = next(one for one in release().cells if one.id == "halve")
    at = notebook["cells"].index(by_id(notebook, "halve"))
    notebook["cells"].insert(at + (not first), dict(stub))
    made, remarks = sound(notebook)
    answers_stand(made)
    assert remarks == ["Copies of cells as they were given out were left out: `halve`."]


def test_of_two_answers_the_first_has_the_label_and_the_last_definition_counts() -> None:
    notebook = perfect()
    other = {**by_id(notebook, "halve"), "source": "def halve(x):\n    return 0"}
    notebook["cells"].append(other)
    made, remarks = sound(notebook)
    assert text(made, "halve") == ANSWERS["halve"]
    assert made.cells[-1].source == other["source"]
    assert ran(made)["halve"](3) == 0
    assert remarks == [
        "Of code that came more than once all runs, and the last definition counts, as in Jupyter: `halve`."
    ]


def test_of_two_answers_in_words_the_first_counts() -> None:
    notebook = perfect()
    notebook["cells"].append({**by_id(notebook, "question-why"), "source": "No, because."})
    made, remarks = sound(notebook)
    assert text(made, "question-why") == WORDS
    assert remarks == ["Of several answers in words the first counts: `question-why`."]


STATEMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "of another assignment": lambda: deepcopy(ours()["scaling"].cells[-2]),
    "of another, edited": lambda: ours()["scaling"].cells[-2] | {"source": "In words, of mine."},
    "of another, stripped": lambda: cell("markdown", "z", ours()["scaling"].cells[-2].source),
    "of another version": lambda: cell(
        "markdown", "z", "## Why?\n\n5 points for one reason.", "text", grade_id="rubric-why"
    ),
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_statement_is_no_answer_in_words(kind: str) -> None:
    """After the rubric, before a question that nobody has answered."""
    notebook = perfect()
    stub = release().cells[-1].source
    notebook["cells"][-1]["source"] = stub
    notebook["cells"].insert(-1, json.loads(text_of(STATEMENTS[kind]())))
    made, _ = repair(notebook, source())
    well_formed(made)
    assert text(made, "question-why") == stub
    notebook["cells"][-1]["source"] = WORDS
    assert text(repair(notebook, source())[0], "question-why") == WORDS


def test_a_copy_under_the_label_of_a_missing_cell_leaves_nothing() -> None:
    notebook = perfect()
    copied = deepcopy(by_id(notebook, "halve-check"))
    copied["metadata"] = by_id(notebook, "double-check")["metadata"]
    notebook["cells"][notebook["cells"].index(by_id(notebook, "double-check"))] = copied
    made, _ = sound(notebook)
    assert len(made.cells) == len(perfect()["cells"])


def test_two_functions_in_one_cell_both_stand() -> None:
    notebook = perfect()
    by_id(notebook, "double")["source"] += "\n\n" + ANSWERS["halve"]
    notebook["cells"].remove(by_id(notebook, "halve"))
    made, remarks = sound(notebook)
    assert ran(made)["halve"](3) == 1.5
    assert text(made, "halve") == "# halve is defined in another cell."
    assert remarks == ["Missing cells were put back: `halve`."]


def test_a_cell_that_repeats_another_function_stays_the_answer_to_its_own() -> None:
    notebook = perfect()
    stub = next(one.source for one in release().cells if one.id == "double")
    by_id(notebook, "double")["source"] = stub
    by_id(notebook, "halve")["source"] += "\n\n" + ANSWERS["double"]
    made, remarks = sound(notebook)
    assert text(made, "double") == stub
    assert text(made, "halve") == by_id(notebook, "halve")["source"]
    assert ran(made)["double"](3) == 6
    assert remarks == []


def test_a_missing_answer_is_a_stub_in_its_place() -> None:
    notebook = perfect()
    notebook["cells"].remove(by_id(notebook, "halve"))
    made, remarks = sound(notebook)
    assert text(made, "halve") == text(release(), "halve")
    assert labels(made) == labels(release())
    assert remarks == ["Missing cells were put back: `halve`."]


def test_an_answer_under_another_name_is_told() -> None:
    notebook = perfect()
    by_id(notebook, "halve")["source"] = "def half(x):\n    return x / 2"
    made, remarks = sound_but_for_names(notebook)
    assert text(made, "halve").startswith("def half(")
    assert remarks == ["Nothing in the notebook defines `halve`."]


def sound_but_for_names(notebook: Notebook) -> tuple[NotebookNode, list[str]]:
    """As `sound`, for a remark that stays true."""
    made, remarks = repair(notebook, source())
    well_formed(made)
    assert repair(made, release()) == (made, remarks)
    return made, remarks


@pytest.mark.parametrize(
    "broken", ["def halve(x:\n    return 1", "halve = lambda x: (", "\tx\n halve"]
)
def test_code_that_is_no_python_keeps_its_label(broken: str) -> None:
    notebook = perfect()
    by_id(notebook, "halve")["source"] = broken
    made, _ = sound_but_for_names(notebook)
    assert text(made, "halve") == broken


def test_code_with_magics_and_warnings_is_read() -> None:
    assert bound("%matplotlib inline\nif 1:\n    !ls\n    def f(): pass\nx = '\\d'") == frozenset(
        "fx"
    )
    assert bound("def f(:") is None
    assert bound("\0") is None
    assert bound("-" * 100_000 + "1") is None
    assert bound("a, (b, *c) = 1, (2, 3)\nimport d.e, f as g\nfor h in []: pass") == frozenset(
        "abcdgh"
    )


# --- damage, to a perfect hand-in of the small assignment and of the real ones


@dataclass(frozen=True)
class Task:
    """An assignment as students get it, and the answers of the perfect hand-in by label."""

    release: NotebookNode
    answers: dict[str, str]

    @property
    def others(self) -> list[str]:
        """The texts of the cells that are no answers."""
        return [one.source for one in self.release.cells if one.id not in self.answers]


Damage = Callable[[Notebook, random.Random, Task], None]


def answers_of(source: NotebookNode) -> dict[str, str]:
    """The solution in each cell that a student writes, by its label."""
    return {
        one.id: "\n".join(line for line in one.source.splitlines() if "SOLUTION" not in line)
        for one in source.cells
        if one.metadata.get("nbgrader", {}).get("solution")
    }


def delete(notebook: Notebook, rng: random.Random, task: Task) -> None:
    """A cell of the release that is no answer goes."""
    free = [one for one in notebook["cells"] if one["source"] in task.others]
    if free:
        notebook["cells"].remove(rng.choice(free))


def duplicate(notebook: Notebook, rng: random.Random, task: Task) -> None:
    """A cell comes twice, label and id included."""
    at = rng.randrange(len(notebook["cells"]))
    notebook["cells"].insert(at + 1, deepcopy(notebook["cells"][at]))


def unsolved(notebook: Notebook, rng: random.Random, task: Task) -> None:
    """The stub of an answer comes back, after the answer."""
    stub = rng.choice([one for one in task.release.cells if one.id in task.answers])
    texts = [one["source"] for one in notebook["cells"]]
    notebook["cells"].insert(texts.index(task.answers[stub.id]) + 1, json.loads(text_of(stub)))


def retype(notebook: Notebook, rng: random.Random, task: Task) -> None:
    """A cell becomes one of another type."""
    one = rng.choice([one for one in notebook["cells"] if one["source"] != HELPER])
    kind = rng.choice(["code", "markdown", "raw"])
    outputs: Notebook = {"outputs": [], "execution_count": None} if kind == "code" else {}
    kept = {key: one[key] for key in ("id", "metadata", "source") if key in one}
    one.clear()
    one.update(kept | outputs, cell_type=kind)


def rename(notebook: Notebook, rng: random.Random, task: Task) -> None:
    """A label is another word."""
    labelled = [one for one in notebook["cells"] if "nbgrader" in one["metadata"]]
    if labelled:
        rng.choice(labelled)["metadata"]["nbgrader"]["grade_id"] = f"cell-{rng.random()}"


def strip(notebook: Notebook, rng: random.Random, task: Task) -> None:
    """All metadata go, the ids too, as some editors do."""
    notebook["metadata"] = {}
    for one in notebook["cells"]:
        one["metadata"] = {}
        one.pop("id", None)
    notebook["nbformat_minor"] = 0


def exchange(notebook: Notebook, rng: random.Random, task: Task) -> None:
    """The labels and ids are dealt out anew among the cells that have them."""
    for key in ("id", "metadata"):
        cells = [one for one in notebook["cells"] if one["source"] != HELPER and key in one]
        values = [one[key] for one in cells]
        rng.shuffle(values)
        for one, value in zip(cells, values, strict=True):
            one[key] = deepcopy(value)


def claims(notebook: Notebook, rng: random.Random, task: Task) -> None:
    """The metadata say other points, and that what is locked is not."""
    for one in notebook["cells"]:
        about = one["metadata"].get("nbgrader", {})
        about.update(points=1000, locked=False, grade=rng.random() < 0.5)


DAMAGES: list[Damage] = [delete, duplicate, unsolved, retype, rename, strip, exchange, claims]
damages = st.lists(st.sampled_from(DAMAGES), min_size=1, max_size=6)


@settings(max_examples=80, deadline=None)
@drawn(damages, st.integers(0, 2**32))
def test_no_damage_loses_an_answer(damages: list[Damage], seed: int) -> None:
    rng = random.Random(seed)
    notebook = perfect()
    for damage in damages:
        damage(notebook, rng, Task(release(), ANSWERS))
    made, _ = sound(notebook)
    answers_stand(made)


@settings(max_examples=40, deadline=None)
@drawn(st.sampled_from(SOURCES), damages, st.integers(0, 2**32))
def test_no_damage_loses_an_answer_to_a_real_assignment(
    path: Path, damages: list[Damage], seed: int
) -> None:
    rng = random.Random(seed)
    source = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    given, answers = blank(source), answers_of(source)
    notebook = json.loads(text_of(given))
    for one in notebook["cells"]:
        one["source"] = answers.get(one["id"], one["source"])
    notebook["cells"].insert(2, json.loads(text_of(cell("code", "a1b2c3", HELPER))))
    for damage in damages:
        damage(notebook, rng, Task(given, answers))
    made, _ = repair(notebook, source)
    nbformat.validate(made)
    assert sorted(labels(made)) == sorted(labels(given))
    for one in given.cells:
        if one.metadata:
            label = one.metadata.nbgrader.grade_id
            assert text(made, label) == answers.get(one.id, one.source)
    assert [one.id for one in made.cells if one.cell_type == "code" and one.source == HELPER]
    sources = [one.source for one in made.cells if one.cell_type == "code"]
    for one in given.cells:
        if one.cell_type == "code" and one.id in answers:
            assert one.source not in sources


leaf = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
junk = st.recursive(
    leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
KEYS = ["cell_type", "source", "metadata", "outputs", "execution_count", "id", "attachments"]
junk_cells = st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, junk))


@settings(max_examples=40, deadline=None)
@drawn(st.lists(junk_cells | junk, max_size=4), st.integers(0, 2**32), junk)
def test_junk_among_the_cells_breaks_nothing(cells: list[Any], seed: int, value: object) -> None:
    """Cells of any content, and any value for any part of the good ones but their text."""
    rng = random.Random(seed)
    notebook = perfect()
    one = rng.choice([one for one in notebook["cells"] if one["source"] not in (HELPER, WORDS)])
    one[rng.choice(["metadata", "outputs", "execution_count", "id", "attachments"])] = value
    notebook["metadata"] = value
    for extra in cells:
        notebook["cells"].insert(rng.randrange(len(notebook["cells"]) + 1), extra)
    made, _ = repair(notebook, source())
    well_formed(made)
    for label in set(ANSWERS) - {"question-why"}:
        assert text(made, label) == ANSWERS[label]


OUTPUTS: list[dict[str, Any]] = [
    {"output_type": "stream", "name": "stdout", "text": ["1\n", "2"]},
    {"output_type": "error", "ename": "E", "evalue": "no", "traceback": ["a", "b"]},
    {
        "output_type": "execute_result",
        "execution_count": 3,
        "metadata": {},
        "data": {"text/plain": "4"},
    },
]
ACTIVE: dict[str, Any] = {
    "output_type": "display_data",
    "metadata": {},
    "data": {"text/html": "<script>alert(1)</script>"},
}


def test_outputs_stay_unless_a_browser_would_run_them() -> None:
    notebook = perfect()
    by_id(notebook, "halve")["outputs"] = [*OUTPUTS, ACTIVE, {"output_type": "stream"}, 7]
    made, remarks = sound(notebook)
    (halve,) = [one for one in made.cells if one.id == "halve"]
    assert [one.output_type for one in halve.outputs] == ["stream", "error", "execute_result"]
    assert "<script>" not in to_bytes(made).decode()
    assert remarks == ["Outputs that are large, broken or active (HTML) were left out."]


def test_huge_outputs_are_left_out_and_the_others_stay() -> None:
    notebook = perfect()
    huge = {"output_type": "stream", "name": "stdout", "text": "x" * (MOST_OUTPUT + 1)}
    by_id(notebook, "double")["outputs"] = [huge]
    by_id(notebook, "halve")["outputs"] = OUTPUTS
    made, remarks = sound(notebook)
    assert len(to_bytes(made)) < MOST_OUTPUT
    assert [len(one.get("outputs", [])) for one in made.cells if one.id in ("double", "halve")] == [
        0,
        3,
    ]
    assert len(remarks) == 1


def test_pasted_pictures_stay_in_the_words() -> None:
    notebook = perfect()
    notebook["cells"][-1]["attachments"] = {"a.png": {"image/png": "AAAA", "text/html": "<script>"}}
    made, _ = sound(notebook)
    assert made.cells[-1].attachments == {"a.png": {"image/png": "AAAA"}}


def test_a_notebook_of_format_3_is_brought_up_to_date() -> None:
    old = nbformat.convert(nbformat.from_dict(perfect()), 3)  # type: ignore[no-untyped-call]
    made, _ = sound(json.loads(json.dumps(old)))
    answers_stand(made)


def test_text_that_utf_8_cannot_hold_is_replaced() -> None:
    notebook = perfect()
    by_id(notebook, "a1b2c3")["source"] += "\nx = '\ud800'"
    made, _ = sound(notebook)
    assert "x = '?'" in to_bytes(made).decode()


HOPELESS = {
    "empty": (b"", "empty"),
    "blank": (b" \n", "empty"),
    "no text": (b"\x89PNG\xff\xfe", "no text"),
    "web page": (b"<html></html>", "no JSON"),
    "deep": (b"[" * 100_000, "no JSON"),
    "list": (b"[]", "no object"),
    "no cells": (b"{}", "no list of cells"),
    "format 3, broken": (b'{"worksheets": 7}', "old format"),
    "many cells": (text_of({"cells": [{}] * (MOST_CELLS + 1)}).encode(), "more than 2,000 cells"),
    "long": (
        text_of({"cells": [{"cell_type": "code", "source": "x" * (MOST_TEXT + 1)}]}).encode(),
        "characters",
    ),
}


@pytest.mark.parametrize("name", HOPELESS)
def test_a_hopeless_file_gives_a_notebook_without_answers(name: str) -> None:
    data, reason = HOPELESS[name]
    with pytest.raises(ValueError, match=reason):
        repair(read(data), release())
    made, (remark,) = repaired(data, source())
    well_formed(made)
    assert reason in remark
    assert made.cells[0].source.startswith("**What you handed in could not be marked**: the ")
    assert unmarked(to_bytes(made)) in made.cells[0].source
    assert reason in unmarked(to_bytes(made))
    assert made.cells[1:] == release().cells
    assert repair(made, release()) == (made, [])
    assert unmarked(data) == unmarked(text_of(perfect()).encode()) == ""


def another(name: str) -> Notebook:
    """The notebook of another assignment, with answers."""
    path = ROOT / "assignments" / "sources" / f"{name}.ipynb"
    answers = answers_of(nbformat.read(path, as_version=4))  # type: ignore[no-untyped-call]
    notebook: Notebook = json.loads(text_of(ours()[name]))
    for one in notebook["cells"]:
        one["source"] = answers.get(one["id"], one["source"])
    return notebook


def without(notebook: Notebook, *keys: str) -> Notebook:
    """Its cells without these."""
    cells = [{key: one[key] for key in one if key not in keys} for one in notebook["cells"]]
    return notebook | {"cells": cells}


@pytest.mark.parametrize("keys", [(), ("metadata", "id")])
@pytest.mark.parametrize("name", ["scaling", "order", "heads", "cost"])
def test_the_notebook_of_another_assignment_is_told(name: str, keys: tuple[str, ...]) -> None:
    """By its functions, and where they are gone by what it gives to read."""
    whole = without(another(name), *keys)
    read_only = whole | {"cells": [one for one in whole["cells"] if one["cell_type"] == "markdown"]}
    strangers = {other: made for other, made in ours().items() if other != "pointing"}
    for notebook in (whole, read_only):
        data = text_of(notebook).encode()
        made, remarks = repaired(data, source(), strangers)
        well_formed(made)
        assert remarks == [f"This is the notebook of {name}. A blank notebook stands for it."]
        assert unmarked(to_bytes(made)) == f"this is the notebook of {name}"
        assert made.cells[1:] == release().cells
        assert not belongs(data, source(), strangers)


def test_a_notebook_with_a_function_or_the_text_of_its_own_assignment_is_its_own() -> None:
    mixed = another("scaling")
    mixed["cells"].append(by_id(perfect(), "double"))
    bare = perfect()
    bare["cells"] = [one for one in bare["cells"] if one["id"] not in ("double", "halve")]
    for notebook in (perfect(), mixed, bare, json.loads(text_of(release()))):
        data = text_of(notebook).encode()
        assert belongs(data, source(), ours())
        assert repaired(data, source(), ours())[0] == repair(notebook, source())[0]


def test_a_repair_tells_and_changes_nothing_unless_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = course_with_release(tmp_path)
    bad = perfect()
    by_id(bad, "double-check")["source"] = "assert True"
    files = {
        "Zoé 李": text_of(perfect()),
        "bob": text_of(bad),
        "eve": "",
        "tom": text_of(perfect()),
    }
    for student, content in files.items():
        path = course / "submitted" / student / "pointing" / "pointing.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(content, encoding="utf-8")
    tom = course / "submitted" / "tom" / "pointing"
    (tom / "pointing.ipynb").rename(tom / "Kopie von pointing (1).ipynb")
    before = {path: path.read_bytes() for path in course.rglob("*.ipynb")}
    found = repair_submissions(course, "pointing")
    assert {path: path.read_bytes() for path in course.rglob("*.ipynb")} == before
    assert found["Zoé 李"] == []
    assert found["bob"] == ["Given cells that were changed have their text again: `double-check`."]
    assert "The file is empty" in found["eve"][0]
    assert found["tom"] == [
        "The notebook is called Kopie von pointing (1).ipynb, not pointing.ipynb."
    ]
    assert "Zoé 李: sound.\n" in capsys.readouterr().out

    repair_submissions(course, "pointing", save=True)
    assert (course / "received/pointing/bob/1.ipynb").read_text(encoding="utf-8") == files["bob"]
    assert not (course / "received/pointing/Zoé 李").exists()
    assert (tom / "pointing.ipynb").is_file()
    again = repair_submissions(course, "pointing", save=True)
    assert {student: said for student, said in again.items() if said} == {
        "eve": ["The file is empty. A blank notebook stands for it."]
    }
    assert len(list((course / "received/pointing/eve").iterdir())) == 1


def test_a_repair_needs_a_release_and_says_when_nobody_came(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(FileNotFoundError, match="not released"):
        repair_submissions(tmp_path, "pointing")
    assert repair_submissions(course_with_release(tmp_path), "pointing") == {}
    assert "Nobody" in capsys.readouterr().out
