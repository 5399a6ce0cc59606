"""The rules for notebooks: every chapter keeps them, and each rule refuses what it is for."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from nbformat import NotebookNode

from tests import rules
from tests.notebooks import ROOT, VIEW, chapters, read
from tests.samples import code, notebook, printed, shown, text

SVG = '<svg role="img"><title>Weights</title><desc>It looks at the animal.</desc><path/></svg>'
PAGES = sorted(ROOT.glob("*.md"))


def good() -> NotebookNode:
    """A notebook that keeps every rule."""
    return notebook(
        text("# A title\n\n![the word it looks at the animal](figure.svg) and `![](x.png)`"),
        code("import numpy as np\n\nx = np.arange(3)"),
        code("x", shown(text_plain="array([0, 1, 2])")),
        code("draw(x)", {**shown(), "data": {"image/svg+xml": SVG, "text/plain": "<figure>"}}),
        code("def attend_one():\n    ...", printed("not written yet\n"), tags=["exercise"]),
        code("attend = 1", tags=["solution"], jupyter={"source_hidden": True}),
        code("1 / 0", {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "division"}
             | {"traceback": []}, tags=["raises-exception"]),
        code("quiz()", shown(application_javascript="a = 1"), tags=["quiz"]),
        code("%matplotlib inline\nlive", shown(text_html=f"<div>{SVG}<a href='https://x'>x</a></div>")),
    )  # fmt: skip


def test_a_good_notebook_keeps_every_rule() -> None:
    nb = good()
    assert [sentence for rule in rules.RULES for sentence in rule(nb)] == []


def without_id(nb: NotebookNode) -> None:
    del nb.cells[1]["id"]


def same_id(nb: NotebookNode) -> None:
    nb.cells[1].id = nb.cells[2].id


def not_run(nb: NotebookNode) -> None:
    nb.cells[2].execution_count = None


def run_twice(nb: NotebookNode) -> None:
    nb.cells[2].execution_count = 7


def with_widget_state(nb: NotebookNode) -> None:
    nb.metadata["widgets"] = {}


def older_format(nb: NotebookNode) -> None:
    nb.nbformat_minor = 4


def unknown_field(nb: NotebookNode) -> None:
    nb.cells[1]["prompt_number"] = 1


def with_cell(*arguments: object, **options: object) -> Callable[[NotebookNode], None]:
    """A change that adds one code cell."""

    def change(nb: NotebookNode) -> None:
        number = sum(cell.cell_type == "code" for cell in nb.cells) + 1
        new = notebook(code(*arguments, **options, count=number)).cells[0]  # type: ignore[arg-type]
        new["id"] = "added"
        nb.cells.append(new)

    return change


def with_shared_generator(nb: NotebookNode) -> None:
    with_cell("rng = np.random.default_rng(0)\nx = rng.normal()")(nb)
    nb.cells[-1].id = "first"
    with_cell("y = rng.normal()")(nb)


def with_text(source: str) -> Callable[[NotebookNode], None]:
    """A change that adds one Markdown cell."""

    def change(nb: NotebookNode) -> None:
        new = notebook(text(source)).cells[0]
        new["id"] = "added"
        nb.cells.append(new)

    return change


def showing(kind: str, value: str) -> Callable[[NotebookNode], None]:
    """A change that adds a cell with one output of that kind."""
    return with_cell("y", {"output_type": "display_data", "data": {kind: value}, "metadata": {}})


def with_quiz(*answers: str) -> Callable[[NotebookNode], None]:
    """A change that adds three questions with these answers."""
    asked = {question: dict.fromkeys(answers, "Because.") for question in ("Who?", "When?", "Why?")}
    return with_cell(f"questions = {asked}", tags=["quiz"])


ERROR = {"output_type": "error", "ename": "ValueError", "evalue": "", "traceback": []}
LONG = "\n".join(f"a{i} = {i}" for i in range(9))
BAD: list[tuple[rules.Rule, Callable[[NotebookNode], None], str]] = [
    (rules.format_valid, older_format, "older than 4.5"),
    (rules.format_valid, unknown_field, "not a valid notebook"),
    (rules.format_valid, without_id, "not a valid notebook"),
    (rules.ids_unique, without_id, "cell 2: no cell id"),
    (rules.ids_unique, same_id, "2 cells share the id c2"),
    (rules.counted, not_run, "cell 3: execution count None, expected 2"),
    (rules.counted, run_twice, "cell 3: execution count 7, expected 2"),
    (rules.no_widget_state, with_widget_state, "widget state"),
    (rules.widgets_have_fallback, showing(VIEW, "model"), "cell 10: a widget's view"),
    (rules.tags_known, with_cell("y", tags=["skip"]), "cell 10: unknown tag skip"),
    (rules.tags_known, with_cell("y", tags=["nbval-skip"]), "unknown tag nbval-skip"),
    (rules.solutions_folded, with_cell("y", tags=["solution"]), "cell 10: a solution in plain"),
    (rules.no_error, with_cell("y", ERROR), "cell 10: stored error ValueError"),
    (rules.no_warning, with_cell("y", printed("Warning: old", "stderr")), "Warning: old"),
    (rules.short, with_cell(LONG), "cell 10: 9 lines of code"),
    (rules.one_import_cell, with_cell("if x:\n    import torch"), "cell 10: an import"),
    (rules.one_import_cell, with_cell("from numpy import exp"), "cell 10: an import"),
    (rules.one_import_cell, with_cell("for"), "cell 10: not Python"),
    (rules.own_generators, with_shared_generator, "cell 11: draws from rng, the Generator of"),
    (rules.figures_described, showing("image/svg+xml", "<svg><path/></svg>"), "no alternative"),
    (rules.figures_described, showing("image/svg+xml", "<svg><title/></svg>"), "no alternative"),
    (rules.figures_described, showing("image/png", "iVBO"), "image/png: no alternative text"),
    (rules.figures_described, showing("text/html", '<img src="a" alt="Image">'), "'Image' does"),
    (rules.figures_described, showing("text/html", '<img src="a">'), "<img>: no alternative"),
    (rules.figures_described, showing("text/html", f"{SVG}<svg></svg>"), "<svg>: no alternative"),
    (rules.figures_described, with_text("![plot](p.png)"), "'plot' does not say"),
    (rules.figures_described, with_text("![heads_3.png](p.png)"), "is the name of a file"),
    (rules.figures_described, with_text('<img src="p.png" alt="">'), "no alternative text"),
    (rules.no_machine, with_cell("y", printed("/home/me/book/x.py:3")), "path of one machine"),
    (rules.no_machine, with_cell("y", printed(r"C:\Users\me")), "path of one machine"),
    (rules.no_machine, showing("text/plain", "<F object at 0x7f00aa11bb22>"), "address"),
    (rules.no_network, showing("text/html", '<script src="https://a.org/b.js">'), "network"),
    (rules.no_network, showing("text/html", '<img alt="a b c" src="//a.org/b.png">'), "network"),
    (rules.no_network, showing("text/html", '<link rel=stylesheet href="https://a.org">'), "net"),
    (rules.no_network, showing("application/javascript", 'import("https://a.org/b")'), "network"),
    (rules.no_network, showing("application/javascript", "u = 'https://cdn.a.org/b'"), "network"),
    (rules.small, showing("text/plain", "x" * 200_001), "bytes of output"),
    (
        rules.time_stated,
        with_text("## Part 1: a word (5 minutes)"),
        "the chapter states no minutes",
    ),
    (rules.time_stated, with_text("## Part 1: a (10 minutes)\n" + "word " * 3000), "gives 20"),
    (rules.answers_even, with_quiz("+ right", "- no"), "3 of 3 right answers are the longest"),
    (rules.answers_even, with_quiz("- no", "+ so"), "3 of 3 right answers are number 2"),
    (rules.few_predictions, with_text("**Predict** " * 7), "7 predictions, at most 6"),
]


@pytest.mark.parametrize(("rule", "change", "sentence"), BAD)
def test_each_rule_refuses_what_it_is_for(
    rule: rules.Rule, change: Callable[[NotebookNode], None], sentence: str
) -> None:
    nb = copy.deepcopy(good())
    change(nb)
    assert sentence in "\n".join(rule(nb))


def test_minutes_count_what_a_reader_reads_and_does() -> None:
    cells = notebook(
        text("word " * 300 + "\n## References\n" + "name " * 900),
        code("import numpy as np"),
        code("x\n" * 16),
        code("figures.ExploreTiles()"),
        code("def f(): ...", tags=["exercise"]),
        code("def f():\n" + "    ...\n" * 80, tags=["solution"]),
        code('q = {\n    "Why?": {\n        "+ yes": "Yes.",\n    },\n}', tags=["quiz"]),
    ).cells
    cells[1]["id"] = "imports"
    assert rules.minutes(cells) == 2 + 2 + 3 + 1 / 8 + 6 + 0.75


def test_no_rule_is_untested() -> None:
    assert {rule for rule, _, _ in BAD} == set(rules.RULES)


@pytest.mark.parametrize("tag", sorted(rules.LONG))
def test_exercises_may_be_longer(tag: str) -> None:
    nb = good()
    with_cell(LONG, tags=[tag])(nb)
    assert list(rules.short(nb)) == []


def test_comments_and_empty_lines_are_not_code() -> None:
    nb = good()
    with_cell("# why\n\n" + LONG.rsplit("\n", 1)[0])(nb)
    assert list(rules.short(nb)) == []


def test_alternative_text_of_a_raster_picture_counts_where_it_is_stored() -> None:
    alt = "weights of six heads"
    of_output = {**shown(), "data": {"image/png": "iVBO"}, "metadata": {"image/png": {"alt": alt}}}
    of_book = {**shown(), "data": {"image/png": "iVBO"}}
    nb = notebook(code("a", of_output), code("b", of_book, mystnb={"image": {"alt": alt}}))
    assert list(rules.figures_described(nb)) == []


def test_what_readers_of_the_page_do_not_hear_needs_no_alternative_text() -> None:
    html = '<svg aria-hidden="true"><path/></svg><svg aria-label="a line to animal"><svg/></svg>'
    assert list(rules.faults_of_html(html)) == []


def test_a_function_lives_in_one_chapter() -> None:
    one, two = notebook(code("def f():\n    ...")), notebook(code("def g():\n    ..."))
    assert list(rules.repeated_functions({"1": one, "2": two})) == []
    assert list(rules.repeated_functions({"1": one, "2": one})) == ["f is defined in 1 and 2"]


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "with space.md").write_text("# Keys and *values*\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "# A b\n[ok](with%20space.md#keys-and-values) [web](https://a.org) [here](#a-b)\n"
        "`[code](no)` [gone](gone.md) [no heading](#c) <img src='none.png'>\n\n[ref]: lost.md\n",
        encoding="utf-8",
    )
    assert [line.split()[1].rstrip(":") for line in rules.broken_links(page)] == [
        "gone.md",
        "#c",
        "none.png",
        "lost.md",
    ]


# --- the book itself


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_chapter(path: Path, rule: rules.Rule) -> None:
    assert list(rule(read(path))) == []


@pytest.mark.parametrize("path", [*PAGES, *chapters()], ids=lambda path: path.name)
def test_links_and_pictures(path: Path) -> None:
    assert list(rules.broken_links(path)) == []
    if path.suffix == ".md":
        page = notebook(text(path.read_text(encoding="utf-8")))
        assert list(rules.figures_described(page)) == []


def test_chapters_share_no_function() -> None:
    assert list(rules.repeated_functions({path.name: read(path) for path in chapters()})) == []


def test_the_map_of_the_chapters_states_their_minutes() -> None:
    rows = re.findall(r"\((\d\d_\w+\.ipynb)\).*\| (\d+) min", rules.markdown_of(chapters()[0]))
    first = {path.name: read(path).cells[0].source for path in chapters()[1:]}
    stated = {
        name: found[1]
        for name, source in first.items()
        if (found := re.search(r"about (\d+) minutes", source))
    }
    assert dict(rows) == stated
    assert stated.keys() == first.keys()


def test_every_tag_is_explained() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [tag for tag in rules.TAGS if f"`{tag}`" not in guide] == []
