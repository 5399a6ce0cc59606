"""The book's Sphinx extension: what it adds to Sphinx, MyST-NB and the theme is in the modules here.

Everything is settled before Sphinx reads its first page: the notebooks are copied to book/chapters, what the site shows
of them is kept in a Shelf, and takes the place of each notebook's text when Sphinx reads it.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ConfigError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from book import pyodide

from . import api, formulas, links, live, offers, on_page, pages, search
from .bibliography import read_works
from .chapters import Chapter
from .faults import faults
from .glossary import read_terms
from .shelf import Shelf
from .translation import translate

LOGGER = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the parts."""
    formulas.setup(app)
    app.add_config_value("book_repository", "", "env", str)
    app.add_config_value("book_branch", "main", "env", str)
    app.add_config_value("book_description", "", "env", str)
    app.add_config_value("book_printed", False, "env", bool)
    app.add_config_value("book_pyodide", "", "env", str)
    app.add_directive("live-figure", LiveFigure)
    app.add_directive("chapter-list", ChapterList)
    app.add_directive("works-cited", WorksCited)
    app.add_directive("run-elsewhere", RunElsewhere)
    app.connect("config-inited", offers.check_repository)
    app.connect("builder-inited", gather)
    app.connect("source-read", replace)
    app.connect("autodoc-process-docstring", api.to_rst)
    app.connect("html-collect-pages", pages.embedded)
    app.connect("html-page-context", pages.fill)
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}


def gather(app: Sphinx) -> None:
    """Read and translate all chapters; write what goes beside the pages."""
    book, out = Path(app.srcdir), Path(app.outdir)
    folder = book / "chapters"
    folder.mkdir(exist_ok=True)
    paths = sorted((book.parent / "chapters").glob("[0-9][0-9]_*.ipynb"))
    for path in folder.glob("*.ipynb"):
        if path.name not in {source.name for source in paths}:
            path.unlink()
    for path in paths:
        copied = folder / path.name
        if not copied.exists() or copied.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copied)

    def ways(file: str, up: str = "../") -> dict[str, str]:
        return offers.ways(file, up, app.config.book_repository, app.config.book_branch)

    try:
        found = pyodide.find(app.config.book_pyodide)
    except pyodide.PyodideError as error:
        raise ConfigError(str(error)) from None
    shelf = Shelf(
        chapters=[Chapter.read(path) for path in paths],
        works=read_works(book / "references.bib"),
        terms=read_terms(book / "glossary.md"),
        offers=ways,
        printed=app.config.book_printed,
        heights=json.loads((book / "heights.json").read_text(encoding="utf-8")),
        on_page=on_page.OnPage(found) if found else None,
    )
    translated = {}
    laid = out / "_static" / "live"
    live.lay_mount(laid)
    (out / "_images").mkdir(parents=True, exist_ok=True)
    for chapter in shelf.chapters:
        for sentence in faults(chapter.notebook):
            shelf.faults.append((chapter.path.stem, sentence))
        notebook, pictures = translate(shelf, chapter)
        translated[f"chapters/{chapter.path.stem}"] = json.dumps(notebook)
        for cell, stored in chapter.live_figures().items():
            try:
                live.lay(stored, laid)
            except (OSError, ValueError) as error:
                sentence = f"cell {cell!r}: its live figure cannot move: {error}"
                shelf.faults.append((chapter.path.stem, sentence))
        for name, svg in pictures.items():
            (out / "_images" / name).write_text(svg, encoding="utf-8")
    for name, sentence in shelf.faults:
        LOGGER.warning("chapters/%s.ipynb: %s", name, sentence, type="book")
    if shelf.on_page:
        try:
            shelf.on_page.lay(shelf.chapters, out / "_static")
        except pyodide.PyodideError as error:
            raise ConfigError(str(error)) from None
    api.write_pages(book / "api")
    app.book_shelf, app.book_pages = shelf, translated  # type: ignore[attr-defined]


def replace(app: Sphinx, name: str, source: list[str]) -> None:
    """A chapter's text is what was made of it."""
    source[0] = app.book_pages.get(name, source[0])  # type: ignore[attr-defined]


def finish(app: Sphinx, error: Exception | None) -> None:
    """Lay the downloads beside the pages, and look where every page leads.

    Without .nojekyll some hosts leave out _static. After a warning the next build starts anew: else it would be silent about
    pages that it has no reason to write again.
    """
    if error is None:
        out = Path(app.outdir)
        (out / ".nojekyll").touch()
        offers.write_downloads(Path(app.srcdir).parent, out / "download")
        for page, target in links.dead(out, sorted(app.env.found_docs)):
            LOGGER.warning("%s leads to %s, which is not there", page, target, type="book")
        search.write_index(out)
    if app._warncount:
        (Path(app.doctreedir) / "environment.pickle").unlink(missing_ok=True)


class LiveFigure(SphinxDirective):
    """`live-figure` <chapter> <cell>: the live figure that this cell of a chapter stores."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        """The figure, without a number."""
        name, cell_id = self.arguments
        shelf: Shelf = self.env.app.book_shelf  # type: ignore[attr-defined]
        try:
            shown = shelf.live_html(name, cell_id, cell_id)
        except KeyError:
            sentence = f"chapters/{name}.ipynb stores no live figure in cell {cell_id!r}"
            raise self.error(sentence) from None
        self.env.note_dependency(str(Path(self.env.srcdir) / "chapters" / f"{name}.ipynb"))
        figure = f'<div class="live-figure" id="{cell_id}">{shown}</div>'
        return [nodes.raw("", figure, format="html")]


class ChapterList(SphinxDirective):
    """`chapter-list`: every chapter, how long it takes, and the first thing that it promises."""

    def run(self) -> list[nodes.Node]:
        """A list of entries."""
        shelf: Shelf = self.env.app.book_shelf  # type: ignore[attr-defined]
        self.env.note_reread()
        entries = []
        for chapter in shelf.chapters:
            time = f" <small>{chapter.minutes} minutes</small>" if chapter.minutes else ""
            entries.append(
                f'<li><a href="chapters/{chapter.page}">{formulas.typeset_html(chapter.title)}</a>{time}'
                f"<p>{formulas.typeset_html(chapter.promise)}</p></li>"
            )
        paper = '<p class="offer">Print: <a href="download/self-attention-book.pdf">the whole book</a> as a PDF.</p>'
        shown = f'<ul class="chapter-list">{"".join(entries)}</ul>{paper if shelf.printed else ""}'
        return [nodes.raw("", shown, format="html")]


class WorksCited(SphinxDirective):
    """`works-cited`: every work that a chapter cites, and where it does."""

    def run(self) -> list[nodes.Node]:
        """A list of entries."""
        shelf: Shelf = self.env.app.book_shelf  # type: ignore[attr-defined]
        self.env.note_reread()
        lines = []
        for work in shelf.works:
            places = []
            for number, entry in shelf.cited.get(work.key, []):
                chapter = shelf.by_number(number)
                assert chapter is not None
                href = f"chapters/{chapter.page}#reference-{entry}"
                places.append(f'<a href="{href}">chapter {number} [{entry}]</a>')
            if places:
                cited = f'<span class="cited">Cited in {", ".join(places)}.</span>'
                lines.append(f'<li id="{work.key}">{work.html()} {cited}</li>')
        return [nodes.raw("", f'<ul class="works">{"".join(lines)}</ul>', format="html")]


class RunElsewhere(SphinxDirective):
    """`run-elsewhere`: how to run a chapter on a hired machine, where the book's repository has an address."""

    def run(self) -> list[nodes.Node]:
        """A section's worth of sentences, or none."""
        repository = self.config.book_repository
        if not repository:
            return []
        requirement = f"self-attention-book[study] @ git+{repository}"
        return self.parse_text_to_nodes(
            "Each chapter also offers *Binder*, which needs nothing and takes some minutes to start, and *Colab*. In Colab, run this "
            f'before the first cell:\n\n```\n%pip install "{requirement}"\n```\n'
        )
