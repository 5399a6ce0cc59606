"""What the book makes of a notebook, and the notebooks that it refuses."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from book._ext import offers
from book._ext.api import _block
from book._ext.bibliography import find_work, read_works
from book._ext.chapters import Chapter, Shelf
from book._ext.faults import faults, shown_by
from book._ext.formulas import FormulaError, to_mathml
from book._ext.translation import translate

from .book_helpers import ROOT, build
from .samples import code, notebook, printed, shown, text

Notebook = dict[str, Any]
SVG = '<svg viewBox="0 0 72 36"><title>Weights</title></svg>'
LIVE = (
    '<div class="explore" data-figure="plane"><script type="application/json">{"weights":"pronoun-0"}</script>'
    '<img alt="five keys and a query" src="data:,"><p><small>Run this cell in JupyterLab.</small></p></div>'
    "<style>.jp{}</style>"
)


def picture(alt: str = "Weights of three queries over five keys.") -> dict[str, Any]:
    """The output of a cell that shows a still figure."""
    return shown() | {"data": {"image/svg+xml": SVG}, "metadata": {"image/svg+xml": {"alt": alt}}}


def translated(tmp_path: Path, *cells: Any, number: str = "01", **others: Any) -> tuple[str, Shelf]:
    """The text of a chapter of these cells, as the book has it, and the shelf that it stands on."""
    (tmp_path / f"{number}_name.ipynb").write_text(json.dumps(notebook(*cells)), encoding="utf-8")
    for name, other in others.items():
        (tmp_path / f"{name.removeprefix('_')}.ipynb").write_text(
            json.dumps(notebook(*other)), encoding="utf-8"
        )
    shelf = Shelf(
        [Chapter.read(path) for path in sorted(tmp_path.glob("*.ipynb"))],
        read_works(ROOT / "book" / "references.bib"),
        lambda file: {"this notebook": f"../download/{file}"},
    )
    chapter = shelf.by_number(number)
    assert chapter is not None
    book, _ = translate(shelf, chapter)
    parts = []
    for cell in book["cells"]:
        parts.append("".join(cell["source"]))
        parts += ["".join(o.get("data", {}).get("text/html", "")) for o in cell.get("outputs", [])]
    return "\n\n".join(parts), shelf


REFERENCES = "## References\n\n1. Vaswani, A. et al. (2017). Attention is all you need. NeurIPS. arXiv:1706.03762."


def test_citations_lead_to_the_list_and_on_to_the_bibliography(tmp_path: Path) -> None:
    said, shelf = translated(
        tmp_path, text("# 1 T\n\nSee [1, table 1], not `x[1]` or $w[1]$."), text(REFERENCES)
    )
    assert '[<a href="#reference-1">1</a>, table 1]' in said
    assert "`x[1]` or $w[1]$" in said
    assert '<span id="reference-1">' in said
    assert "../bibliography.html#vaswani2017" in said
    assert shelf.cited == {"vaswani2017": [(1, "1")]}
    assert shelf.faults == []


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (
            (text("# 1 T\n\nSee [2]."), text(REFERENCES)),
            "cites [2], which its References do not list",
        ),
        ((text("# 1 T\n\nSee [1]."),), "cites [1]"),
        ((text("## References\n\n1. Nobody (1900). On nothing."),), "not in references.bib"),
    ],
)
def test_a_dead_citation_is_a_fault(tmp_path: Path, cells: tuple[Any, ...], sentence: str) -> None:
    _, shelf = translated(tmp_path, *cells)
    assert [name for name, _ in shelf.faults] == ["01_name"]
    assert sentence in shelf.faults[0][1]


def test_parts_exercises_figures_and_formulas_are_numbered_and_found(tmp_path: Path) -> None:
    said, _ = translated(
        tmp_path,
        text(
            "# 1 T\n\nAs part 2, exercise 1, equation 1.1, figure 1.1, exercise 1 of chapter 2 and chapter 2 say."
        ),
        text("The figure below, part 7, chapter 9.\n\n## Part 2: more\n\n### Exercise 1\n\n$$x$$"),
        code("figures.show(ax)", picture()),
        _02_other=(text("# 2 O\n\n### Exercise 1\n\nSee chapter 2."),),
    )
    for link in (
        '<a href="#part-1-2">part 2</a>',
        '<a href="#exercise-1-1">exercise 1</a>',
        '<a href="#eq-1-1">equation 1.1</a>',
        '<a href="#figure-1-1">figure 1.1</a>',
        '<a href="02_other.html#exercise-2-1">exercise 1 of chapter 2</a>',
        '<a href="02_other.html">chapter 2</a>',
        '<a href="#figure-1-1">The figure below</a>',
    ):
        assert link in said
    assert "part 7, chapter 9." in said
    assert "(part-1-2)=\n\n## Part 2: more" in said
    assert "(exercise-1-1)=\n\n### Exercise 1.1" in said
    assert "$$x$$ (eq-1-1)" in said
    assert '<figure class="still-figure" id="figure-1-1"' in said
    assert 'src="../_images/figure-1-1.svg" alt="Weights of three queries over five keys."' in said
    assert 'width="96" height="48"' in said


def test_a_live_figure_loses_what_is_for_jupyterlab(tmp_path: Path) -> None:
    said, shelf = translated(
        tmp_path, text("# 1 T"), code("figures.ExplorePlane()", shown(text_html=LIVE))
    )
    assert 'id="figure-1-1"' in said
    assert "Figure 1.1, live" in said
    assert "JupyterLab" not in said
    assert ".jp{}" not in said
    assert '{"weights":"pronoun-0"}' in said
    assert shelf.live_figures() == [LIVE]


def test_solutions_fold_questions_hide_and_checks_say_what_they_need(tmp_path: Path) -> None:
    cells = (
        text("# 1 T"),
        code("check(f)", printed("f: not written yet.\n"), tags=["exercise"]),
        code("check(g)", printed("ok\n"), tags=["solution"]),
        code("q = 1", tags=["quiz"]),
    )
    said, shelf = translated(tmp_path, *cells)
    book, _ = translate(shelf, shelf.chapters[0])
    by_tag = {
        cell["metadata"]["tags"][0]: cell for cell in book["cells"] if cell["metadata"].get("tags")
    }
    assert "hide-cell" in by_tag["solution"]["metadata"]["tags"]
    assert by_tag["solution"]["metadata"]["mystnb"]["code_prompt_show"] == "Show the solution"
    assert "remove-input" in by_tag["quiz"]["metadata"]["tags"]
    assert "This check runs in Python" in said
    assert said.count("../download/01_name.ipynb") == 2


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("print(1)", {"text"}),
        ("for x in y:\n    print(x)", {"text"}),
        ("def f():\n    print(1)", set()),
        ("figures.show(ax, alt='x')", {"picture"}),
        ("figures.ExplorePlane()", {"live figure"}),
        ("figures.quiz('a', q)", {"quiz"}),
        ("show(1)\n%time x", set()),
    ],
)
def test_what_a_cell_shows_is_read_from_its_code(source: str, kinds: set[str]) -> None:
    assert shown_by(source) == kinds


def test_good_cells_have_no_fault() -> None:
    error = {"output_type": "error", "ename": "E", "evalue": "e", "traceback": []}
    nb = notebook(
        text("# T\n\n![five words in a row](x.svg)"),
        code("print(1)", printed("1\n")),
        code("figures.show(ax)", picture()),
        code("figures.ExplorePlane()", shown(text_html=LIVE)),
        code("1 / 0", error, tags=["raises-exception"]),
    )
    assert list(faults(nb)) == []


def failed(nb: Notebook) -> None:
    nb["cells"][1]["outputs"] = [
        {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []}
    ]


def warned(nb: Notebook) -> None:
    nb["cells"][1]["outputs"].append(printed("careful\n") | {"name": "stderr"})


def never_run(nb: Notebook) -> None:
    nb["cells"][1]["execution_count"] = None


def without_text(nb: Notebook) -> None:
    nb["cells"][1]["outputs"] = []


def without_picture(nb: Notebook) -> None:
    nb["cells"][2]["outputs"] = [printed("no picture\n")]


def without_alt(nb: Notebook) -> None:
    nb["cells"][2]["outputs"][0]["metadata"] = {}


def named_after_its_file(nb: Notebook) -> None:
    nb["cells"][2]["outputs"][0]["metadata"]["image/svg+xml"]["alt"] = "figure_1.svg"


def bare_markdown(nb: Notebook) -> None:
    nb["cells"][0]["source"] = "# T\n\n![](x.svg)"


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (failed, "failed: ValueError: no"),
        (warned, "standard error: careful"),
        (never_run, "was not run"),
        (without_text, "no text is stored"),
        (without_picture, "no picture is stored"),
        (without_alt, "without alternative text"),
        (named_after_its_file, "is the name of a file"),
        (bare_markdown, "without alternative text"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_fault_is_found(harm: Callable[[Notebook], None], sentence: str) -> None:
    nb = notebook(
        text("# T"), code("print(1)", printed("1\n")), code("figures.show(ax)", picture())
    )
    harm(nb)
    found = list(faults(nb))
    assert len(found) == 1
    assert sentence in found[0]
    assert found[0].startswith("cell ")


def test_works_are_found_by_arxiv_id_doi_or_title() -> None:
    works = read_works(ROOT / "book" / "references.bib")
    assert len({work.key for work in works}) == len(works) > 20
    for line, key in (
        ("Anybody (2017). Anything. arXiv:1706.03762.", "vaswani2017"),
        ("S. Hochreiter. doi:10.1162/neco.1997.9.8.1735", "hochreiter1997"),
        ("Watson, G. S. (1964). Smooth regression analysis. Sankhya A 26.", "watson1964"),
    ):
        work = find_work(line, works)
        assert work is not None
        assert work.key == key
    assert find_work("Watson (1965). Smooth regression analysis.", works) is None
    assert find_work("Vaswani (2017). Attention is all you need. arXiv:1706.99999", works) is None


def test_a_work_is_written_out_with_its_links() -> None:
    works = {work.key: work.html() for work in read_works(ROOT / "book" / "references.bib")}
    assert works["hochreiter1997"] == (
        "Hochreiter, S., Schmidhuber, J. (1997). <em>Long short-term memory</em>. Neural Computation 9. "
        '<a href="https://doi.org/10.1162/neco.1997.9.8.1735">doi:10.1162/neco.1997.9.8.1735</a>.'
    )


def test_formulas_are_mathml_and_an_unknown_command_stops_the_build() -> None:
    math = to_mathml(r"\mathrm{softmax}(QK^{\top})", display=True)
    assert "<mi>softmax</mi>" in math
    assert 'display="block"' in math
    with pytest.raises(FormulaError, match="Unknown command"):
        to_mathml(r"\sofmax{x}")


def test_docstrings_keep_their_columns() -> None:
    assert _block("q * k_ gives `a_b`") == r"q \* k\_ gives `a_b`"
    assert _block("mask    booleans\nbias    floats").startswith("::\n\n   mask    booleans")
    assert (
        _block("fn: a function.\ntask: its name,\n    if any.")
        == "- fn: a function.\n- task: its name, if any."
    )
    assert _block(">>> f(*x)\n3") == ">>> f(*x)\n3"


def test_ways_to_run_follow_from_the_repository() -> None:
    file = "01_name.ipynb"
    assert list(offers.ways(file, "../", "", "main")) == ["this notebook", "the whole book"]
    ways = offers.ways(file, "../", "https://github.com/owner/name.git", "main")
    assert ways["Binder"] == (
        "https://mybinder.org/v2/gh/owner/name/main?urlpath=lab/tree/chapters/01_name.ipynb"
    )
    assert ways["Colab"].endswith("/github/owner/name/blob/main/chapters/01_name.ipynb")


def test_the_whole_book_is_packed_as_it_is(tmp_path: Path) -> None:
    offers.write_downloads(ROOT, tmp_path)
    with zipfile.ZipFile(tmp_path / f"{offers.NAME}.zip") as archive:
        names = {name.removeprefix(f"{offers.NAME}/") for name in archive.namelist()}
        run = archive.getinfo(f"{offers.NAME}/.ci/run")
    assert {
        "Makefile",
        "chapters/00_start_here.ipynb",
        "attention_lib/core.py",
        "book/conf.py",
    } <= names
    assert not [name for name in names if "__pycache__" in name or "/_build/" in name]
    assert not [name for name in names if name.startswith(("book/chapters/", "book/api/"))]
    assert run.external_attr >> 16 & 0o111
    assert (tmp_path / f"{offers.NAME}.zip").stat().st_size < 8e6


# --- whole builds of small, broken copies


def copied(folder: Path) -> Path:
    """A book of two chapters with a library that has no more than its weights."""
    shutil.copytree(
        ROOT / "book",
        folder / "book",
        ignore=shutil.ignore_patterns("_build", "chapters", "api", "__pycache__"),
    )
    (folder / "chapters").mkdir()
    (folder / "figures").symlink_to(ROOT / "figures")
    library = folder / "attention_lib"
    for package in ("", "torch", "checks"):
        (library / package).mkdir()
        (library / package / "__init__.py").write_text('"""Nothing."""\n__all__ = []\n', "utf-8")
    (library / "more.py").write_text('def f() -> None:\n    """Nothing."""\n', encoding="utf-8")
    (library / "weights").symlink_to(ROOT / "attention_lib" / "weights")
    for name in offers.TOP:
        if not (folder / name).exists():
            (folder / name).touch()
    opening = json.loads((ROOT / "chapters" / "00_start_here.ipynb").read_text(encoding="utf-8"))
    opening["cells"] = [*opening["cells"][:2], text("[Next](01_small.ipynb)") | {"id": "next"}]
    small = notebook(
        text("# 1 Small\n\nSee [1]."),
        code("print(1)", printed("1\n")),
        code("figures.show(ax)", picture()),
        text(REFERENCES),
    )
    for name, nb in (("00_start_here", opening), ("01_small", small)):
        (folder / "chapters" / f"{name}.ipynb").write_text(json.dumps(nb), encoding="utf-8")
    return folder


def cites_nothing(nb: Notebook) -> None:
    nb["cells"][0]["source"] = "# 1 Small\n\nSee [4]."


def links_nowhere(nb: Notebook) -> None:
    nb["cells"][0]["source"] = "# 1 Small\n\nSee [chapter 7](07_missing.ipynb)."


def sound(nb: Notebook) -> None:
    pass


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (sound, ""),
        (failed, "cell 'c1': failed: ValueError: no"),
        (without_picture, "its output is missing"),
        (without_alt, "without alternative text"),
        (cites_nothing, "cites [4]"),
        (links_nowhere, "07_missing"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_broken_copy_is_not_built(
    tmp_path: Path, harm: Callable[[Notebook], None], sentence: str
) -> None:
    root = copied(tmp_path)
    path = root / "chapters" / "01_small.ipynb"
    nb = json.loads(path.read_text(encoding="utf-8"))
    harm(nb)
    path.write_text(json.dumps(nb), encoding="utf-8")
    out = tmp_path / "out"
    done = build(root, out, "-D", "book_repository=https://github.com/owner/name")
    assert (done.returncode == 0) == (harm is sound), done.stderr[-2000:]
    assert sentence in done.stderr
    assert ("01_small" in done.stderr) == (harm is not sound)
    if harm is sound:
        page = (out / "html" / "chapters" / "01_small.html").read_text(encoding="utf-8")
        assert "https://mybinder.org/v2/gh/owner/name/main?" in page
        assert "git+https://github.com/owner/name" in (out / "html" / "run.html").read_text("utf-8")
