"""What the live figures share: one ES module each, the picture at rest that it drew, and a page without a kernel."""

import base64
import html
import json
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

import anywidget
from ipywidgets import CallbackDispatcher  # type: ignore[import-untyped]

from attention_lib.models import stored_files

from .show import FITS, svg_uri

JS = Path(str(resources.files(__package__))) / "js"
LANGUAGE = (
    "en"  # what figures say is in js/en; a translation is a folder beside it, with the same files
)
WIDTH = 760  # px of a picture at rest
RUN = "Run this cell in JupyterLab to bring the figure to life."
# In what a notebook stores of a figure: its name, that of its weights, and the picture at rest with its words.
NAME = re.compile(r'class="explore" data-figure="(\w+)"')
WEIGHTS_NAME = re.compile(r'"weights":"([^"]+)"')
_AT_REST = re.compile(r"(?s)(<img [^>]*>)?<p><small>.*?</small></p></div>")
VIEW = "application/vnd.jupyter.widget-view+json"

_IMPORT = re.compile(r'^import \{[^}]*\} from "(?P<name>\.\.?/(?:\w+/)?\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const|function|class)", re.MULTILINE)

# Beside a live figure its picture at rest is hidden; without one (a notebook opened again, no kernel),
# the empty or failed output after the picture is.
_STYLE = (
    "<style>body[data-jp-theme-light=false] .explore{color-scheme:dark}"
    ".jp-OutputArea-child:has(.explore):has(+ .jp-OutputArea-child .live),"
    ".jp-OutputArea-child:has(.explore) + .jp-OutputArea-child:not(:has(.jp-OutputArea-output *))"
    "{display:none}</style>"
)


def bundle(name: str, language: str = LANGUAGE) -> str:
    """The front end js/<name>.js as one module, its relative imports written into it.

    language: the folder of js/ whose words it says. Modules that are written in share one scope, so their
    top-level names must differ. Raises ValueError for an import that is not of the form
    `import { a, b } from "./name.js";`.
    """
    order: list[str] = []
    sources: dict[str, str] = {}

    def visit(module: str) -> None:
        if module in sources:
            return
        path = JS / f"{module}.js"
        source = path.read_text(encoding="utf-8")
        sources[module] = _IMPORT.sub("", source)
        if re.search(r"^import\b", sources[module], re.MULTILINE):
            raise ValueError(f"js/{module}.js has an import that the bundler cannot read")
        for match in _IMPORT.finditer(source):
            asked = match["name"].replace("./en/", f"./{language}/")
            visit((path.parent / asked).resolve().relative_to(JS.resolve()).as_posix())
        if module != name:
            sources[module] = _EXPORT.sub("", sources[module])
        order.append(module)

    visit(name)
    return "\n".join(sources[module] for module in order)


def module_script(name: str) -> str:
    """A classic script that lays the front end js/<name>.js where mount.js looks for it."""
    source = bundle(name).replace("\nexport default ", "\nreturn ")
    source = _EXPORT.sub("", source)
    return f'liveFigures.modules["{name}"] = () => {{\n"use strict";\n{source}}};\n'


def weights_script(name: str) -> str:
    """A classic script that lays shipped weights where mount.js looks for them."""
    encoded = base64.b64encode(load_weights(name)).decode()
    return f"liveFigures.weights[{json.dumps(name)}] = {json.dumps(encoded)};\n"


def load_weights(name: str) -> bytes:
    """The bytes of shipped weights by name, such as "pronoun-0", or of a .safetensors file by path."""
    file = f"{name.removesuffix('.safetensors')}.safetensors"
    return stored_files().get(file, Path(file)).read_bytes()


class LiveFigure(anywidget.AnyWidget):
    """A figure that is drawn, and whose arithmetic runs, in the page.

    A subclass gives `name` (of its module in js/) and `state()` (small, JSON, floats rounded to 4
    digits). Python draws nothing: the picture at rest is what the page drew, in a notebook that is
    stored (`tests.notebooks`) and in one that is run here.
    """

    name: ClassVar[str]
    _handle: Any = None  # of the display that holds the picture at rest

    def state(self) -> Mapping[str, Any]:
        """The traits that the front end starts from."""
        raise NotImplementedError

    def to_html(self, picture: str = "", words: str = "") -> str:
        """The state from which mount.js brings the figure to life, and its picture at rest where there is one.

        picture: an SVG, as js/snapshot.js makes it; words: what it shows, in a sentence.
        """
        state = json_for_html(self.state())
        html = f'<div class="explore" data-figure="{self.name}"><script type="application/json">{state}</script>'
        return add_picture(f"{html}<p><small>{RUN}</small></p></div>", picture, words)

    def __repr__(self) -> str:
        short = {name: f"{value!r}" for name, value in self.state().items()}
        shown = (f"{name}={value}" for name, value in short.items() if len(value) < 30)
        return f"{type(self).__name__}({', '.join(shown)})"

    def open(self) -> None:
        """Meet the page, once the figure is shown: what is never shown goes with its name."""

    def close(self) -> None:
        """Leave the page, with all that is kept there; the figure may be shown again."""
        self.layout.close()
        super().close()
        self.__dict__.pop("_repr_mimebundle_", None)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        self.layout.open()
        super().open()
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**data, "text/html": self.to_html()}, metadata

    def _ipython_display_(self) -> None:
        """Show the picture at rest, and the live figure in its place.

        JupyterLab prefers a widget's view over everything else in the same output, and for a view
        whose kernel is gone it has only an error; hence two outputs. The page sends the picture when it
        has drawn it, so that it is there when the notebook is opened again.
        """
        from IPython.display import DisplayHandle, display

        close_earlier(self)
        data, metadata = self._repr_mimebundle_()
        view = {VIEW: data.pop(VIEW), "text/html": "<!-- the figure above, live -->"}
        html = data["text/html"] + _STYLE
        self._handle = DisplayHandle()  # type: ignore[no-untyped-call]
        self._handle.display({**data, "text/html": html}, metadata=metadata, raw=True)
        display(view, raw=True)  # type: ignore[no-untyped-call]

        def keep(_: object, message: Any, buffers: object) -> None:
            if set(message) == {"picture", "words"}:
                html = self.to_html(message["picture"], message["words"]) + _STYLE
                self._handle.update({**data, "text/html": html}, raw=True)

        self._msg_callbacks = CallbackDispatcher()
        self.on_msg(keep)


def add_picture(html: str, picture: str, words: str) -> str:
    """A figure's HTML with its picture at rest, in place of one that it has; without a picture as it is.

    The SVG is an image, not a part of the page: JupyterLab takes the elements of SVG out of a notebook
    that was not run here, and leaves their text in a heap.
    """
    if not picture:
        return html
    image = f'<img alt="{escape(words)}" src="{svg_uri(picture)}" width="{WIDTH}" style="{FITS}">'
    after = f"{image}<p><small>{escape(words)} {RUN}</small></p></div>"
    return _AT_REST.sub(lambda _: after, html, count=1)


# What was shown by the last run of each cell: cell -> (run, figures).
_shown: dict[str, tuple[str, list[LiveFigure]]] = {}


def close_earlier(figure: LiveFigure) -> None:
    """Close what earlier runs of this cell showed: their places on the page are gone."""
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    cell, run = parent.get("metadata", {}).get("cellId"), parent.get("header", {}).get("msg_id")
    if cell is None:
        return
    before, figures = _shown.get(cell, (run, []))
    elsewhere = [other for at, (_, shown) in _shown.items() if at != cell for other in shown]
    if before != run:
        for old in figures:
            if not any(old is kept for kept in (figure, *elsewhere)):
                old.close()
        figures = []
    _shown[cell] = (run, [*figures, figure])


def page(figure: LiveFigure) -> str:
    """One HTML page that holds `figure`, live, without a kernel, a server or a network."""
    return page_of(figure.to_html())


def page_of(stored: str) -> str:
    """The same of a figure as a notebook stores it."""
    names, weights = NAME.findall(stored), WEIGHTS_NAME.findall(stored)
    laid = "".join([*map(module_script, names), *map(weights_script, weights)])
    mount = (JS / "mount.js").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(', '.join(names))}</title>"
        "<style>:root{color-scheme:light dark}body{margin:1rem}</style>"
        f"{stored}<script>globalThis.liveFigures = {{modules: {{}}, weights: {{}}}};\n{laid}</script>"
        f"<script>{mount}</script></html>\n"
    )


def json_for_html(value: Any) -> str:
    """JSON that may stand inside a script element. Raises ValueError for NaN and infinity, which JSON has not."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def escape(text: str) -> str:
    """Text for SVG."""
    return html.escape(text, quote=True)
