"""What the book makes of a notebook, and the notebooks that it refuses."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sphinx.errors import ConfigError

import attention_lib
import attention_lib.torch
from book import printing
from book._ext import links, offers
from book._ext.api import _block
from book._ext.bibliography import find_work, read_works
from book._ext.chapters import Chapter
from book._ext.faults import faults, shown_by
from book._ext.formulas import FormulaError, to_mathml, typeset
from book._ext.shelf import Shelf
from book._ext.translation import translate

from .book_helpers import ROOT, build
from .rules import broken_links
from .samples import code, notebook, printed, shown, text

Notebook = dict[str, Any]
PLAIN = "-D", "book_pyodide=none"  # faster
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
    assert re.match(r"cell 'c\d': ", shelf.faults[0][1])


def test_what_a_citation_names_is_the_works_own(tmp_path: Path) -> None:
    """Equation 1 of the paper is not equation 1.1, and its figure 9 need not be ours."""
    said, shelf = translated(
        tmp_path,
        text("# 1 T\n\nSee [1, equation 1], [1, figure 9 and\nchapter 8], figure 7 of the paper."),
        text("$$x$$"),
        text(REFERENCES),
    )
    assert '<span class="cite">[<a href="#reference-1">1</a>, equation 1]</span>' in said
    assert "figure 9 and\nchapter 8]</span>, figure 7 of the paper." in said
    assert shelf.faults == []


@pytest.mark.parametrize(
    "words",
    [
        "chapter 9",
        "chapters 1 to 9",
        "exercise 3",
        "figure 1.9",
        "figure 1.12",
        "part 2",
        "Equation 1.1",
        "exercise 1 of chapter 9",
        "the figure below",
        "the figure above",
    ],
)
def test_words_that_lead_nowhere_are_a_fault(tmp_path: Path, words: str) -> None:
    for gap in (" ", "\n"):
        _, shelf = translated(
            tmp_path, text(f"# 1 T\n\n### Exercise 1\n\nSee {words.replace(' ', gap)}.")
        )
        assert shelf.faults == [
            ("01_name", f"cell 'c0': says {words!r}, which is nowhere in the book")
        ]


def test_parts_exercises_figures_and_formulas_are_numbered_and_found(tmp_path: Path) -> None:
    said, shelf = translated(
        tmp_path,
        text(
            "# 1 T\n\nAs part 2, exercise 1, equation 1.1, figure 1.1, exercise 1 of chapter 2 and chapter 2 say."
        ),
        text("The figure below, chapters 0 to\n2.\n\n## Part 2: more\n\n### Exercise 1\n\n$$x$$"),
        code("figures.show(ax)", picture()),
        _00_first=(text("# 0 F"),),
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
    assert 'chapters <a href="00_first.html">0</a> to\n<a href="02_other.html">2</a>.' in said
    assert shelf.faults == []
    assert "(part-1-2)=\n\n## Part 2: more" in said
    assert "(exercise-1-1)=\n\n### Exercise 1.1" in said
    assert "$$x$$ (eq-1-1)" in said
    assert '<figure class="still-figure" id="figure-1-1"' in said
    assert '<div class="scroll" tabindex="0" role="group" aria-label="Figure 1.1">' in said
    assert 'src="../_images/figure-1-1.svg" alt="Weights of three queries over five keys."' in said
    assert 'width="96" height="48"' in said


@pytest.mark.parametrize(
    ("said", "set_as"),
    [
        ("Here\n$$a_1=b_1$$\nis one.", "Here\n\n\n$$a_1=b_1$$ (eq-1-1)\n\n\nis one."),
        ("Here $$a$$", "Here \n\n$$a$$ (eq-1-1)"),
        ("- a\n\n  $$a$$\n- b", "  $$a$$ (eq-1-1)\n"),
        ("\\begin{align}\na&=b\n\\end{align}", "$$\\begin{align}\na&=b\n\\end{align}$$ (eq-1-1)"),
        ("$$\na\n\nb\n$$", "$$\na\nb\n$$ (eq-1-1)"),
        ("Code: `$$a$$` and `\\(a\\)`.", "Code: `$$a$$` and `\\(a\\)`."),
    ],
)
def test_a_formula_is_set_as_jupyterlab_sets_it(tmp_path: Path, said: str, set_as: str) -> None:
    """Beside text, in a list, without dollars; not in code."""
    made, shelf = translated(tmp_path, text(f"# 1 T\n\n{said}"))
    assert set_as in made
    assert shelf.faults == []


def test_symbols_in_prose_are_set_as_displayed_ones_are() -> None:
    """As one types them; not in names of files and modules, nor a letter that is a word."""
    for typed, latex in (
        ("of W_Q, W_K and d_model.", r"of $W_Q$, $W_K$ and $d_{\text{model}}$."),
        ("cost 2 n² d, then 2 n d².", "cost $2 n^2 d$, then $2 n d^2$."),
        ("H · n² · d/H is n² d again", r"$H \cdot n^2 \cdot d/H$ is $n^2 d$ again"),
        ("position / 10000^(2i/d):", "position / $10000^{2i/d}$:"),
        ("at d_k 512", "at $d_k$ 512"),
        ("attention_lib.cost, x_1.py, I have 4 n", "attention_lib.cost, x_1.py, I have 4 n"),
    ):
        assert typeset(typed) == latex


@pytest.mark.parametrize(
    "said",
    [
        "$$a$$ and more",
        "- $$a$$",
        "| $$a$$ | b |",
        "\\(a\\)",
        "\\\\[a\\\\]",
        "\\begin{align} a",
        "so $$ it",
    ],
)
def test_a_formula_that_cannot_be_set_is_refused_with_its_cell(tmp_path: Path, said: str) -> None:
    _, shelf = translated(tmp_path, text(f"# 1 T\n\n{said}"))
    assert [name for name, _ in shelf.faults] == ["01_name"]
    assert re.match(r"cell 'c0': .*(displayed formula|no formula)", shelf.faults[0][1])


def test_a_live_figure_loses_what_is_for_jupyterlab(tmp_path: Path) -> None:
    said, shelf = translated(
        tmp_path, text("# 1 T"), code("figures.ExplorePlane()", shown(text_html=LIVE))
    )
    assert 'id="figure-1-1"' in said
    assert "Figure 1.1, live" in said
    assert "Run this cell in JupyterLab" not in said
    assert ".jp{}" not in said
    assert '{"weights":"pronoun-0"}' in said
    assert shelf.by_number(1).live_figures() == {"c1": LIVE}  # type: ignore[union-attr]


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
    assert said.count("<noscript>The questions need JavaScript") == 1
    assert "cells run in JupyterLab" in said.split("\n\n")[1]
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
        ("q = 1\nq @ k.T  # a value", {"value"}),
        ("q", {"value"}),
        ("f'{q}'", {"value"}),
        ("q;", set()),
        ("q = 1", set()),
        ("None", set()),
        ("rng.shuffle(q)", set()),
        ("# nothing", set()),
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
        code("q.shape", shown(text_plain="(3, 5)") | {"output_type": "execute_result"}),
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


def without_value(nb: Notebook) -> None:
    nb["cells"][1] |= {"source": "q = 1\nq", "outputs": [printed("1\n")]}


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
        (without_value, "no value is stored"),
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


def test_formulas_are_mathml_and_an_unknown_command_is_an_error() -> None:
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


@pytest.mark.parametrize(
    "address", ["", "https://github.com/owner/na.me", "https://github.com/o-w/n/"]
)
def test_a_repository_is_on_github(address: str) -> None:
    config: Any = SimpleNamespace(book_repository=address)
    offers.check_repository(None, config)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "address",
    [
        "owner/name",
        "https://github.com/owner",
        "https://gitlab.com/o/n",
        "git@github.com:o/n.git",
        "https://github.com/o/n/tree/main",
        "http://github.com/o/n",
    ],
)
def test_another_address_is_refused_in_a_sentence(address: str) -> None:
    config: Any = SimpleNamespace(book_repository=address)
    with pytest.raises(ConfigError, match=r"book_repository is to be .* and is ") as refused:
        offers.check_repository(None, config)  # type: ignore[arg-type]
    assert address in str(refused.value)


def test_names_in_both_libraries_mean_the_same() -> None:
    """What book/api.md says of them: shared names take the same arguments, and neither has all of the other's."""
    here, there = set(attention_lib.__all__), set(attention_lib.torch.__all__)
    assert here - there
    assert there - here
    for name in here & there - {"ShapeError"}:
        ours = inspect.signature(getattr(attention_lib, name)).parameters
        theirs = inspect.signature(getattr(attention_lib.torch, name)).parameters
        assert set(ours) <= set(theirs), name
    assert "has the same names" not in (ROOT / "book" / "api.md").read_text(encoding="utf-8")


def program(folder: Path, script: str) -> str:
    """A browser that is a script of the shell, with the arguments' folder and file in $profile and $made."""
    path = folder / "google-chrome"
    read = "for a; do case $a in --user-data-dir=*) profile=${a#*=};; --print-to-pdf=*) made=${a#*=};; esac; done"
    path.write_text(f"#!/bin/sh\n{read}\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def a_site(folder: Path) -> Path:
    """A site of one chapter."""
    (folder / "site" / "chapters").mkdir(parents=True)
    (folder / "site" / "chapters" / "01_small.html").touch()
    return folder / "site"


def test_a_browser_that_sees_the_site_alone_can_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ubuntu's, which has a /tmp of its own; and nothing is left beside the PDF."""
    site = a_site(tmp_path)
    program(
        tmp_path, f'case $profile$made in {site}/*{site}/*) echo "%PDF" >"$made";; *) exit 1;; esac'
    )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert printing.browser() == str(tmp_path / "google-chrome")
    assert printing.main(site) == 0
    assert sorted(path.name for path in (site / "download").iterdir()) == [
        "01_small.pdf",
        "self-attention-book.pdf",
    ]
    assert sorted(path.name for path in site.iterdir()) == ["chapters", "download"]


@pytest.mark.parametrize(
    ("script", "said"), [("echo no display >&2; exit 3", "no display"), ("true", "no PDF")]
)
def test_a_browser_that_does_not_print_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    script: str,
    said: str,
) -> None:
    name = program(tmp_path, script)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert printing.main(a_site(tmp_path)) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"{name} did not print 01_small.html: ")
    assert said in told
    assert "put another browser on the PATH" in told


def test_dead_links_of_a_page_are_found(tmp_path: Path) -> None:
    (tmp_path / "there.html").write_text('<p id="here">', encoding="utf-8")
    (tmp_path / "page.html").write_text(
        '<a href="there.html#here"></a><a href="there.html#lost"></a><a href="no.html"></a><img src="no.svg">'
        '<a href="https://no.example/x"></a><a href="#"></a><a href="download/1.pdf"></a><a href="#lost"></a>'
        "<script>'<a href=\"$1\">'</script>",
        encoding="utf-8",
    )
    lost = ["there.html#lost", "no.html", "no.svg", "#lost"]
    assert list(links.dead(tmp_path, ["page", "there"])) == [("page.html", to) for to in lost]


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
    assert not [name for name in names if "assignments" in name]
    assert (tmp_path / f"{offers.NAME}.zip").stat().st_size < 8e6


def unpacked(folder: Path) -> Path:
    """The book as its zip has it."""
    offers.write_downloads(ROOT, folder)
    with zipfile.ZipFile(folder / f"{offers.NAME}.zip") as archive:
        archive.extractall(folder)
    return folder / offers.NAME


def test_the_zip_of_the_book_neither_needs_nor_holds_assignments(tmp_path: Path) -> None:
    """Nothing in it asks for them, and it has no right answers to what is marked."""
    whole = unpacked(tmp_path)
    asking = re.compile(
        r"^(from|import) assignments\b|\b(from|import) tests\.assignments", re.MULTILINE
    )
    asks = [path for path in whole.rglob("*.py") if asking.search(path.read_text(encoding="utf-8"))]
    assert [str(path.relative_to(whole)) for path in asks] == []
    marked = [path.stem for path in (ROOT / "assignments" / "sources").glob("*.ipynb")]
    assert not [name for name in marked if [*whole.rglob(f"mutants_{name}*")]]
    files = tomllib.loads((whole / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]["files"]
    assert all([*whole.glob(name)] for name in files)
    pages = ("README.md", "CONTRIBUTING.md")
    assert [fault for page in pages for fault in broken_links(whole / page)] == []


@pytest.mark.slow
def test_the_zip_of_the_book_passes_its_own_checks(tmp_path: Path) -> None:
    whole = unpacked(tmp_path)
    tests = "--co", "tests/test_imports.py tests/test_rules.py tests/test_setup.py"
    for what in (
        ["mypy"],
        *(["pytest", "-q", "-p", "no:cacheprovider", *one.split()] for one in tests),
    ):
        done = subprocess.run(
            [sys.executable, "-m", *what], cwd=whole, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


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
    weights = Path("models", "pronoun", "weights")
    (library / weights.parent).mkdir(parents=True)
    (library / weights).symlink_to(ROOT / "attention_lib" / weights)
    shutil.copy(ROOT / "attention_lib" / "models" / "__init__.py", library / "models")
    for name in offers.TOP:
        if not (folder / name).exists():
            (folder / name).touch()
    opening = json.loads((ROOT / "chapters" / "00_start_here.ipynb").read_text(encoding="utf-8"))
    opening["cells"] = [*opening["cells"][:2], text("[Next](01_small.ipynb)") | {"id": "next"}]
    small = notebook(
        text(
            "# 1 Small\n\nSee [1]: here\n$$a_1=b_1$$\nis one.\n\n\\begin{align}\na&=b\\\\\nc&=d\n\\end{align}"
        ),
        code("print(1)", printed("1\n")),
        code("figures.show(ax)", picture()),
        text(REFERENCES),
    )
    for name, nb in (("00_start_here", opening), ("01_small", small)):
        (folder / "chapters" / f"{name}.ipynb").write_text(json.dumps(nb), encoding="utf-8")
    return folder


def test_a_sound_copy_is_built(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = build(
        copied(tmp_path), out, "-D", "book_repository=https://github.com/owner/name", *PLAIN
    )
    assert (done.returncode, done.stderr) == (0, "")
    page = (out / "html" / "chapters" / "01_small.html").read_text(encoding="utf-8")
    assert "https://mybinder.org/v2/gh/owner/name/main?" in page
    assert re.findall(r'<div class="equation" id="([^"]+)">.*?<math', page) == ["eq-1-1", "eq-1-2"]
    assert not re.findall(
        r"\$\$|begin\{align|\(eq-", re.sub(r"<annotation.*?</annotation>", "", page)
    )
    assert "git+https://github.com/owner/name" in (out / "html" / "run.html").read_text("utf-8")


# Cells, and what a build says of them: a warning each, which is an error by -W.
BROKEN: dict[str, tuple[Any, str]] = {
    "failed": (code("1 / 0", {"output_type": "error", "ename": "E", "evalue": "no", "traceback": []}), "failed: E: no"),
    "no-picture": (code("figures.show(ax)"), "its output is missing: no picture"),
    "no-value": (code("q = 1\nq"), "its output is missing: no value"),
    "no-alt": (code("figures.show(ax)", picture("")), "without alternative text"),
    "cites": (text("See [4]."), "cites [4]"),
    "words": (text("See chapter 9."), "says 'chapter 9'"),
    "module": (code("figures.ExploreNo()", shown(text_html=LIVE.replace('"plane"', '"nosuch"'))), "nosuch.js"),
    "weights": (code("figures.ExplorePlane()", shown(text_html=LIVE.replace("pronoun-0", "lost-0"))), "lost-0.safetensors"),
}  # fmt: skip
# Of a page, these are found by its address in the source or in the site.
LOST: dict[str, tuple[str, str]] = {
    "file": ("[chapter 7](07_missing.ipynb)", r"01_small\.ipynb:\d+: .*07_missing"),
    "anchor": ("[there](#nowhere)", r"01_small\.ipynb:\d+: .*nowhere"),
    "html": ('<a href="nowhere.html">there</a>', r"01_small\.html leads to nowhere\.html"),
    "formula": ("Inline $\\sofmax{x}$.", r"01_small\.ipynb:\d+: .*sofmax.* cannot be set"),
    "formulas": ("$$\n\\frak{x\n$$", r"01_small\.ipynb:\d+: .*frak.* cannot be set"),
}


def test_a_broken_copy_is_not_built_and_every_fault_is_told(tmp_path: Path) -> None:
    """Nor at the second try, when no page has changed; and none of it ends in a traceback."""
    root = copied(tmp_path)
    cells = [cell | {"id": name} for name, (cell, _) in BROKEN.items()]
    cells += [text(said) | {"id": name} for name, (said, _) in LOST.items()]
    nb = notebook(text("# 1 Small"), *cells)
    (root / "chapters" / "01_small.ipynb").write_text(json.dumps(nb), encoding="utf-8")
    for _ in range(2):
        done = build(root, tmp_path / "out", *PLAIN)
        assert done.returncode == 1
        for name, (_, sentence) in BROKEN.items():
            line = rf"WARNING: chapters/01_small\.ipynb: cell '{name}': .*{re.escape(sentence)}"
            assert re.search(line, done.stderr), f"{name}\n{done.stderr}"
        for name, (_, pattern) in LOST.items():
            assert re.search(pattern, done.stderr), f"{name}\n{done.stderr}"
        assert "most recent call" not in done.stderr


def test_a_wrong_repository_stops_the_build_in_a_sentence(tmp_path: Path) -> None:
    done = build(copied(tmp_path), tmp_path / "out", "-D", "book_repository=owner/name", *PLAIN)
    assert done.returncode == 2
    assert 'book_repository is to be "https://github.com/owner/name" or empty' in done.stderr
    assert "most recent call" not in done.stderr
