"""What the template of every page is given: the page's own contents, a description, and only the files that it needs."""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from figures.live import json_for_html

from . import on_page
from .glossary import synonyms
from .shelf import Shelf

# A section bears the id; Pagefind looks for it at the heading.
SECTION = re.compile(
    r'<section(?P<rest>[^>]*) id="(?P<id>[^"]+)"(?P<more>[^>]*)>(?P<spans>(?:\s*<span id="[^"]+"></span>)*)\s*<(?P<h>h\d)>'
)
# What Sphinx and MyST-NB would have every page load, and book.css and search.js stand in for.
SPARE = re.compile(
    r"basic\.css|pygments\.css|mystnb\..*\.css|documentation_options\.js|doctools\.js|sphinx_highlight\.js"
)
ENOUGH = 150  # characters of a description


def fill(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Add to a page's context."""
    context["contents"] = contents(context["toc"]) if context.get("display_toc") else ""
    context["title"] = plain(context.get("title", ""))
    for way in ("prev", "next"):
        if context.get(way):
            context[way]["title"] = plain(context[way]["title"])
    context["indexed"] = tree is not None and page != app.config.root_doc
    context["description"] = description(tree) if tree else app.config.book_description
    if page.startswith("chapters/") or page == app.config.root_doc:
        app.add_js_file("progress.js", defer="defer")
    if page.startswith("chapters/"):
        app.add_js_file("slides.js", defer="defer")
    if 'class="term"' in (context.get("body") or ""):
        app.add_js_file("glossary.js", defer="defer")
    if 'class="explore"' in (context.get("body") or ""):
        app.add_js_file("live/mount.js", loading_method="defer")
    context["synonyms"] = json_for_html(synonyms(app.book_shelf.terms))  # type: ignore[attr-defined]
    if app.book_shelf.on_page:  # type: ignore[attr-defined]
        up = "../" * page.count("/") + "_static"
        context["python"] = on_page.script(up, page.rpartition("/")[2])
    heading = r'<section\g<rest>\g<more>>\g<spans><\g<h> id="\g<id>">'
    context["body"] = SECTION.sub(heading, context.get("body") or "")
    for files in (context["css_files"], context["script_files"]):
        files[:] = [file for file in files if not SPARE.fullmatch(PurePath(file.filename).name)]


def embedded(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page embed/<cell>.html for each live figure, which another site may show in a frame."""
    shelf: Shelf = app.book_shelf  # type: ignore[attr-defined]
    for chapter in shelf.chapters:
        for cell in chapter.live_figures():
            yield (
                f"embed/{cell}",
                {
                    "title": f"Live figure: {cell.replace('-', ' ')}",
                    "body": shelf.live_html(chapter.path.stem, cell, cell),
                    "anchor": cell,
                    "chapter": f"chapters/{chapter.path.stem}",
                    "chapter_title": chapter.title,
                },
                "embed.html",
            )


def plain(title: str) -> str:
    """A title without elements, its symbols as they are typed."""
    title = re.sub(
        r"<msub>(.*?)</msub>", lambda found: "_".join(re.findall(r">([^<]+)<", found[1])), title
    )
    return re.sub(r"<[^>]+>", "", title)


def contents(toc: str) -> str:
    """The list of a page's sections, without the page itself."""
    return toc.partition("</a>")[2].rpartition("</li>")[0].strip()


def description(tree: nodes.document) -> str:
    """The first sentences of a page, and what they introduce, up to about ENOUGH characters."""
    said = ""
    for paragraph in tree.findall(nodes.paragraph):
        words = (
            t.astext() for t in paragraph.findall(nodes.Text) if not isinstance(t.parent, nodes.raw)
        )
        said = " ".join([said, *" ".join(words).split()]).strip()
        if len(said) >= ENOUGH:
            break
    if len(said) <= ENOUGH + 10:
        return said
    return f"{said[: said.rindex(' ', 0, ENOUGH)].rstrip(',;: ')} …"
