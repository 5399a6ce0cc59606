"""Pictures at rest: each is what the figure's own JavaScript draws, stored with the notebook, and Python draws none."""

from __future__ import annotations

import ast
import gc
import html
import json
import re
import urllib.parse
import weakref
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import figures
from attention_lib.models.encoder import Encoder
from figures import rest
from figures.live import RUN, LiveFigure, add_picture

from . import notebooks
from .live_reference import keep

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SPACE = "{http://www.w3.org/2000/svg}"
LIVE = ("Cost", "Cheating", "Heads", "Steps", "Plane", "Scaling", "Sentence", "Tiles")


def make(name: str, *args: Any, **options: Any) -> LiveFigure:
    figure: LiveFigure = getattr(figures, f"Explore{name}")(*args, **options)
    return figure


def words_of(svg: str) -> list[str]:
    """The texts of a picture, in the order in which they are drawn."""
    return [text.text or "" for text in ET.fromstring(svg).iter(f"{SPACE}text")]


def stored_figures() -> list[tuple[str, str]]:
    """The chapter and the HTML of each live figure that is stored."""
    return [
        (path.name, output["data"]["text/html"])
        for path in notebooks.chapters()
        for cell in notebooks.read(path).cells
        for output in cell.get("outputs", [])
        if 'class="explore"' in output.get("data", {}).get("text/html", "")
    ]


def test_figures_compute_no_attention(root: Path) -> None:
    kept = {"attention", "attention_gradient", "softmax", "multi_head_attention"}
    for path in (root / "figures").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        assert not imported & kept, path.name
        assert path.name == "flip.py" or "__main__" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", LIVE)
def test_without_a_renderer_a_sentence_stands_there(name: str) -> None:
    stored = make(name).to_html()
    assert stored.endswith(f"<p><small>{RUN}</small></p></div>")
    assert "<img" not in stored


def test_a_picture_takes_the_place_of_another() -> None:
    bare = make("Steps").to_html()
    one = add_picture(bare, "<svg/>", 'One "a" & <b>.')
    assert f"<small>{html.escape('One')} &quot;a&quot; &amp; &lt;b&gt;. {RUN}</small>" in one
    other = add_picture(one, "<svg></svg>", "Two.")
    assert other.count("<img") == other.count("<p>") == 1
    assert other == add_picture(bare, "<svg></svg>", "Two.")
    assert add_picture(one, "", "") == one


@pytest.mark.browser
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("name", LIVE)
def test_the_page_draws_its_picture(browser: Browser, name: str) -> None:
    stored = make(name).to_html()
    svg, words = rest.draw(stored, browser)
    assert (svg, words) == rest.draw(stored, browser)
    picture = ET.fromstring(svg)
    assert picture.findtext(f"{SPACE}desc") == words
    assert len(words.split()) > 5
    assert len(words_of(svg)) > 8
    assert len(rest.redraw(stored, browser).encode()) < 60_000
    assert "prefers-color-scheme:dark" in svg
    assert not re.search(r"NaN|undefined|Infinity|https?://(?!www.w3.org)", svg)


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_the_pictures_show_the_library_s_numbers(browser: Browser) -> None:
    encoder = Encoder.load("pronoun-0")
    layer, head = encoder.pointing_head or (1, 0)
    sentence = make("Sentence")
    run = encoder(sentence.words)
    svg, words = rest.draw(sentence.to_html(), browser)
    weight = run.weights[layer][head, 8].max()
    assert f"Layer {layer + 1}, head {head + 1}: “it” looks at “animal” ({weight:.2f})" in words
    assert f"answers: animal ({run.probabilities(8).max():.2f})" in words
    assert f"{weight:.2f}" in words_of(svg)

    svg, words = rest.draw(make("Tiles", step=3).to_html(), browser)
    now, before = keep(14, 3, False), keep(14, 2, False)
    assert f"= {np.exp(before.m - now.m):.2f}, then the tile is added" in words
    for answer in now.answer:
        assert f"{answer:.2f}".replace("-", "−") in words_of(svg)


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_each_chapter_stores_what_its_figures_draw(browser: Browser) -> None:
    """Letters differ in width from machine to machine, so that it is the words that are compared."""
    stored = stored_figures()
    assert len(stored) >= 10
    for chapter, text in stored:
        where = f"{chapter}: run `python -m tests.notebooks --pictures chapters/{chapter}`"
        image = re.search(r'<img alt="([^"]*)" src="data:image/svg\+xml,([^"]*)"', text)
        assert image, where
        svg, words = rest.draw(text, browser)
        assert html.unescape(image[1]) == words, where
        assert words_of(urllib.parse.unquote(image[2])) == words_of(svg), where
        assert json.loads(re.search(r'json">(.*?)</script>', text)[1]), where  # type: ignore[index]


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A notebook's cell that is run again and again: `run(code)` gives what it shows."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()  # type: ignore[no-untyped-call]
    run = 0
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: shell)
    monkeypatch.setattr("IPython.display.display", lambda *_, **__: None)
    shell.get_parent = lambda: {"metadata": {"cellId": "one"}, "header": {"msg_id": str(run)}}  # type: ignore[attr-defined]

    def execute(name: str) -> LiveFigure:
        nonlocal run
        run += 1
        figure = make(name)
        figure._ipython_display_()
        return figure

    yield execute
    shell.history_manager.end_session()  # type: ignore[union-attr]


def test_what_is_never_shown_is_freed_and_a_cell_run_again_keeps_one(cell: Any) -> None:
    from ipywidgets.widgets import widget  # type: ignore[import-untyped]

    before = len(widget._instances)
    figure = None
    for _ in range(20):
        figure = make("Heads")
    assert len(widget._instances) == before
    kept = weakref.ref(figure) if figure is not None else None
    del figure
    gc.collect()
    assert kept is not None
    assert kept() is None
    shown = [cell("Heads") for _ in range(10)]
    # One model and its layout: what JupyterLab saves with the notebook if it is asked to.
    assert len(widget._instances) == before + 2
    assert shown[-1].comm is not None
    assert shown[0].comm is None
    assert "application/vnd.jupyter.widget-view+json" in shown[0]._repr_mimebundle_()[0]
    for figure in shown:
        figure.close()
    assert len(widget._instances) == before
