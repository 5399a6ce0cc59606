"""What the live figures share: one ES module each, a picture at rest, and a page without a kernel."""

import base64
import html
import json
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

import anywidget

from attention_lib.models import stored_files

from .show import FITS, svg_uri

JS = Path(str(resources.files(__package__))) / "js"
# These stand out on light and on dark ground; the front end has a set for each.
COLOURS = ("#2a86c4", "#d9691e", "#1f9484", "#d6478b", "#a8851a")
VIEW = "application/vnd.jupyter.widget-view+json"

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(?P<name>\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const|function|class)", re.MULTILINE)

# Beside a live figure its picture at rest is hidden; without one (a notebook opened again, no kernel),
# the empty or failed output after the picture is.
_STYLE = (
    "<style>body[data-jp-theme-light=false] .explore{color-scheme:dark}"
    ".jp-OutputArea-child:has(.explore):has(+ .jp-OutputArea-child .live),"
    ".jp-OutputArea-child:has(.explore) + .jp-OutputArea-child:not(:has(.jp-OutputArea-output *))"
    "{display:none}</style>"
)


def bundle(name: str) -> str:
    """The front end js/<name>.js as one module, its relative imports written into it.

    Modules that are written in share one scope, so their top-level names must differ.
    Raises ValueError for an import that is not of the form `import { a, b } from "./name.js";`.
    """
    order: list[str] = []
    sources: dict[str, str] = {}

    def visit(module: str) -> None:
        if module in sources:
            return
        source = (JS / f"{module}.js").read_text(encoding="utf-8")
        sources[module] = _IMPORT.sub("", source)
        if re.search(r"^import\b", sources[module], re.MULTILINE):
            raise ValueError(f"js/{module}.js has an import that the bundler cannot read")
        for match in _IMPORT.finditer(source):
            visit(match["name"])
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
    """A figure whose arithmetic runs in the page.

    A subclass gives `name` (of its module in js/), `state()` (small, JSON, floats rounded to 4
    digits), `summary()` (what is seen at rest, in a sentence) and `resting_svg()`.
    """

    name: ClassVar[str]
    width: ClassVar[int] = 760

    def state(self) -> Mapping[str, Any]:
        """The traits that the front end starts from."""
        raise NotImplementedError

    def summary(self) -> str:
        """What the picture at rest shows, in words."""
        raise NotImplementedError

    def resting_svg(self) -> str:
        """The picture at rest, one `<svg role="img">`, made by `svg`."""
        raise NotImplementedError

    def svg(self, height: int, title: str, *parts: str) -> str:
        """An SVG document, self.width wide, that says what it shows and is at home in the dark."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{self.width}" '
            f'height="{height}" viewBox="0 0 {self.width} {height}" text-anchor="middle" '
            'font-family="system-ui,sans-serif" font-size="15" fill="currentColor">'
            f"<title>{escape(title)}</title><desc>{escape(self.summary())}</desc>"
            "<style>svg{color:#1d2330}.card{fill:#fff}@media (prefers-color-scheme:dark)"
            "{svg{color:#e7e9ee}.card{fill:#14171d}}</style>"
            f'<rect class="card" width="100%" height="100%" rx="10"/>{"".join(parts)}</svg>'
        )

    def to_html(self) -> str:
        """The picture at rest with the state from which mount.js brings it to life.

        The SVG is an image, not a part of the page: JupyterLab takes the elements of SVG out of a
        notebook that was not run here, and leaves their text in a heap.
        """
        picture = svg_uri(self.resting_svg())
        state = json_for_html(self.state())
        return (
            f'<div class="explore" data-figure="{self.name}">'
            f'<script type="application/json">{state}</script>'
            f'<img alt="{escape(self.summary())}" src="{picture}" width="{self.width}" '
            f'style="{FITS}">'
            f"<p><small>{escape(self.summary())} Run this cell in JupyterLab to bring the figure "
            "to life.</small></p></div>"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary()!r})"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**data, "text/html": self.to_html()}, metadata

    def _ipython_display_(self) -> None:
        """Show the picture at rest, and the live figure in its place.

        JupyterLab prefers a widget's view over everything else in the same output, and for a view
        whose kernel is gone it has only an error; hence two outputs.
        """
        from IPython.display import display

        data, metadata = self._repr_mimebundle_()
        view = {VIEW: data.pop(VIEW), "text/html": "<!-- the figure above, live -->"}
        data["text/html"] += _STYLE
        display(data, metadata=metadata, raw=True)  # type: ignore[no-untyped-call]
        display(view, raw=True)  # type: ignore[no-untyped-call]


def page(figure: LiveFigure) -> str:
    """One HTML page that holds `figure`, live, without a kernel, a server or a network."""
    laid = module_script(figure.name)
    if weights := figure.state().get("weights"):
        laid += weights_script(weights)
    mount = (JS / "mount.js").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(type(figure).__name__)}</title>"
        "<style>:root{color-scheme:light dark}body{margin:1rem}</style>"
        f"{figure.to_html()}<script>globalThis.liveFigures = {{modules: {{}}, weights: {{}}}};\n{laid}</script>"
        f"<script>{mount}</script></html>\n"
    )


def json_for_html(value: Any) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")


def escape(text: str) -> str:
    """Text for SVG."""
    return html.escape(text, quote=True)
