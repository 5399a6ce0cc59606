"""Both live figures under the reader's hand: in real JupyterLab, and on a page without a kernel."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attention_lib.models.encoder import Encoder
from figures.explore_plane import VALUES, ExplorePlane
from figures.explore_sentence import ExploreSentence
from figures.live import LiveFigure, page

from . import live_helpers
from .live_helpers import data

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytest.importorskip("playwright")
pytest.importorskip("jupyterlab")
pytestmark = [pytest.mark.browser, pytest.mark.needs("chromium")]

CELLS = (
    "import figures\nfigures.ExploreSentence()",
    "plane = figures.ExplorePlane()\nplane",
    "if plane.query == [0, 0]:\n    plane.query = [3.0, 0.0]",
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live_helpers.Lab]:
    folder = tmp_path_factory.mktemp("lab")
    live_helpers.write_notebook(folder / "live.ipynb", CELLS)
    with live_helpers.running_lab(folder) as running:
        yield running


@pytest.fixture(scope="module")
def errors() -> list[str]:
    """What the notebook's page complained about, over all tests."""
    return []


@pytest.fixture(scope="module")
def notebook(browser: Browser, lab: live_helpers.Lab, errors: list[str]) -> Iterator[Page]:
    """The notebook with both figures, run once."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    opened = context.new_page()
    live_helpers.listen(opened, errors)
    opened.goto(lab.url("live.ipynb"))
    live_helpers.run_all(opened)
    opened.locator(".live-plane").wait_for()
    yield opened
    context.close()


@pytest.fixture
def sentence(notebook: Page) -> Locator:
    """The sentence figure, at rest."""
    figure = notebook.locator(".live-sentence")
    layer, head = Encoder.load("pronoun-0").pointing_head or (1, 0)
    figure.get_by_role("button", name="reset", exact=True).click()
    for group, name in (
        ("last word", "tired"),
        ("layer", str(layer + 1)),
        ("head", str(head + 1)),
        ("looks", "it"),
    ):
        figure.get_by_role("group", name=group).get_by_role("radio", name=name, exact=True).check()
    return figure


def weights_of(figure: Locator) -> list[str]:
    """The weights that stand below the words."""
    return figure.locator(".word .weight").all_inner_texts()


def test_at_rest_it_looks_at_animal(sentence: Locator, notebook: Page) -> None:
    seen = [data(sentence, name) for name in ("query", "strongest", "answer")]
    assert seen == ["it", "animal", "animal"]
    says = sentence.locator(".says").inner_text()
    assert re.search(r"“it” looks (mostly )?at “animal” .* The model answers: animal", says)
    assert not any(picture.is_visible() for picture in notebook.locator(".explore").all())


def test_wide_by_keyboard_moves_the_line(sentence: Locator, notebook: Page) -> None:
    sentence.get_by_role("radio", name="tired").first.focus()
    notebook.keyboard.press("ArrowRight")
    assert sentence.get_by_role("radio", name="wide", exact=True).first.is_checked()
    assert data(sentence, "strongest") == "street"
    assert data(sentence, "answer") == "street"
    says = sentence.locator(".says").inner_text()
    assert re.search(r"“it” looks (mostly )?at “street” .* The model answers: street", says)
    assert notebook.locator(".jp-Notebook .jp-Cell").count() == len(CELLS)


def test_a_noun_is_swapped_by_keyboard(sentence: Locator, notebook: Page) -> None:
    sentence.get_by_label("swap “animal”").focus()
    notebook.keyboard.type("wolf")
    assert data(sentence, "strongest") == "wolf"
    sentence.get_by_label("swap “wolf”").select_option("animal")
    assert data(sentence, "strongest") == "animal"


def test_exchanged_values_leave_the_weights_and_change_the_answer(
    sentence: Locator, notebook: Page
) -> None:
    before = weights_of(sentence)
    sentence.get_by_role("button", name="exchange the nouns’ values").focus()
    notebook.keyboard.press("Enter")
    assert data(sentence, "answer") == "street"
    assert weights_of(sentence) == before
    assert data(sentence, "strongest") == "animal"
    sentence.get_by_role("button", name="remove: value").click()
    assert data(sentence, "answer") == "animal"


def test_exchanged_keys_move_the_weights(sentence: Locator) -> None:
    sentence.get_by_role("button", name="exchange the nouns’ keys").click()
    assert data(sentence, "answer") == "street"
    assert data(sentence, "strongest") == "street"


def test_a_line_is_cut_by_mouse_and_restored_by_keyboard(sentence: Locator, notebook: Page) -> None:
    label = "“it” cannot see “animal” · layer 2, every head"
    sentence.get_by_role("group", name="head").get_by_role("radio", name="all").check()
    lines = sentence.locator('.arc[stroke="var(--teal)"]')
    place = lines.first.evaluate(
        "path => { const p = path.getPointAtLength(path.getTotalLength() * 0.6);"
        "const at = new DOMPoint(p.x, p.y).matrixTransform(path.getScreenCTM()); return [at.x, at.y] }"
    )
    notebook.mouse.click(*place)
    assert sentence.locator(".edits li").all_inner_texts() == [f"{label}\n×"]
    assert data(sentence, "strongest") != "animal"
    assert data(sentence, "answer") != "animal"
    sentence.get_by_text("By hand").click()
    sentence.get_by_role("button", name="cut “it” to “animal”").focus()
    notebook.keyboard.press("Space")
    assert sentence.locator(".edits li").count() == 0
    assert data(sentence, "answer") == "animal"
    sentence.get_by_text("By hand").click()


def test_a_vector_is_taken_from_the_twin(sentence: Locator) -> None:
    sentence.get_by_role("group", name="head").get_by_role("radio", name="all").check()
    sentence.get_by_text("By hand").click()
    sentence.get_by_label("which vector").select_option("value")
    sentence.get_by_label("of which word").select_option(label="animal")
    sentence.get_by_label("with that of").select_option(label="street (twin)")
    assert sentence.get_by_role("button", name="exchange", exact=True).is_disabled()
    sentence.get_by_role("button", name="take only").click()
    assert "“animal” has the value of “street” from the twin" in sentence.inner_text()
    assert data(sentence, "answer") == "street"
    sentence.get_by_text("By hand").click()


def test_any_word_is_chosen_by_keyboard(sentence: Locator, notebook: Page) -> None:
    sentence.get_by_role("group", name="looks").get_by_role("radio", name="it").focus()
    notebook.keyboard.press("ArrowRight")
    assert data(sentence, "query") == "was"
    matrix = sentence.locator(".attention [role=img]")
    assert "“was” looks" in (matrix.get_attribute("aria-label") or "")


def test_plane_by_keyboard(notebook: Page) -> None:
    plane = notebook.locator(".live-plane")
    assert data(plane, "strongest") == "A"
    elements = plane.locator("*").count()
    plane.get_by_role("slider", name="query", exact=True).focus()
    for _ in range(25):
        notebook.keyboard.press("ArrowLeft")
    assert data(plane, "query") == "-1.20,1.20"
    assert data(plane, "strongest") == "C"
    handle = plane.get_by_role("slider", name="query", exact=True)
    assert handle.get_attribute("aria-valuetext") == "x −1.20, y 1.20"
    assert plane.locator("*").count() == elements
    plane.get_by_role("slider", name="query, y").focus()
    notebook.keyboard.press("ArrowUp")
    assert data(plane, "query") == "-1.20,1.25"
    plane.get_by_role("button", name="q = 0").focus()
    notebook.keyboard.press("Enter")
    means = [sum(value[axis] for value in VALUES) / len(VALUES) for axis in (0, 1)]
    assert [float(x) for x in data(plane, "output").split(",")] == pytest.approx(means, abs=1e-4)
    assert "plain average of the values" in plane.locator(".says").inner_text()
    plane.get_by_role("slider", name="key A").focus()
    notebook.keyboard.press("Shift+ArrowDown")
    assert plane.get_by_role("slider", name="key A").get_attribute("aria-valuetext") == (
        "x 1.90, y 0.20"
    )


def test_plane_by_pointer(notebook: Page) -> None:
    plane = notebook.locator(".live-plane")
    plane.scroll_into_view_if_needed()
    box = plane.locator(".keys svg").bounding_box()
    assert box is not None
    notebook.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    notebook.mouse.down()
    notebook.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + box["height"] * 0.75, steps=3)
    notebook.mouse.up()
    notebook.mouse.move(box["x"], box["y"])
    x, y = map(float, data(plane, "query").split(","))
    assert (x, y) == pytest.approx((1.6, -1.6), abs=0.05)
    assert data(plane, "strongest") == "E"


def test_the_kernel_sees_and_sets(notebook: Page) -> None:
    plane = notebook.locator(".live-plane")
    plane.get_by_role("button", name="q = 0").click()
    notebook.locator(".jp-Notebook .jp-Cell").last.locator(".cm-content").click()
    notebook.keyboard.press("Control+Enter")
    notebook.wait_for_function(
        "document.querySelector('.live-plane').dataset.query === '3.00,0.00'"
    )


def test_running_again_leaves_one_figure(notebook: Page) -> None:
    notebook.locator(".live-plane").first.evaluate("element => { element.dataset.old = 'yes' }")
    live_helpers.run_all(notebook)
    notebook.wait_for_function(
        "!document.querySelector('[data-old]') && document.querySelector('.live-plane')"
    )
    assert notebook.locator(".live-sentence").count() == 1
    assert notebook.locator(".live-plane").count() == 1


def test_no_error_in_the_console(notebook: Page, errors: list[str]) -> None:
    notebook.locator(".live-plane").wait_for()
    assert errors == []


@pytest.fixture(scope="module")
def saved(notebook: Page, lab: live_helpers.Lab) -> str:
    """What JupyterLab stored of the notebook."""
    notebook.wait_for_function("document.querySelectorAll('.explore img').length === 2")
    notebook.keyboard.press("Control+s")
    notebook.wait_for_function("!document.querySelector('.jp-mod-dirty')")
    return (lab.folder / "live.ipynb").read_text(encoding="utf-8")


@pytest.mark.parametrize("trusted", [True, False], ids=["run here", "from elsewhere"])
def test_opened_again_without_its_kernel(
    browser: Browser, lab: live_helpers.Lab, saved: str, trusted: bool
) -> None:
    lab.stop_kernels()
    name = "live.ipynb"
    if not trusted:
        notebook = json.loads(saved)
        notebook["cells"][0]["source"] = "# not what was signed"
        name = "strange.ipynb"
        (lab.folder / name).write_text(json.dumps(notebook), encoding="utf-8")
    context = browser.new_context()
    opened = context.new_page()
    opened.goto(lab.url(name))
    pictures = opened.locator(".explore img")
    pictures.nth(1).wait_for()
    assert pictures.count() == 2
    assert pictures.first.evaluate("image => image.complete && image.naturalWidth") > 600
    assert "“it” looks" in (pictures.first.get_attribute("alt") or "")
    assert opened.get_by_text("Run this cell").count() == 2
    failed = opened.get_by_text("Error displaying widget")
    assert not any(message.is_visible() for message in failed.all())
    context.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Pages without a kernel or a server, by the name of their figure."""
    folder = tmp_path_factory.mktemp("pages")
    figures: tuple[LiveFigure, ...] = (ExploreSentence(), ExplorePlane())
    for figure in figures:
        (folder / f"{figure.name}.html").write_text(page(figure), encoding="utf-8")
    return {figure.name: (folder / f"{figure.name}.html").as_uri() for figure in figures}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["sentence", "plane"])
def test_page_from_the_file_system(
    browser: Browser, pages: dict[str, str], name: str, scheme: str
) -> None:
    with live_helpers.checked_page(browser, pages[name], name, scheme) as figure:
        if name == "sentence":
            figure.get_by_role("radio", name="wide").first.check()
            assert data(figure, "strongest") == "street"
        else:
            figure.get_by_role("button", name="q = 0").click()
            assert data(figure, "query") == "0.00,0.00"


def test_several_figures_on_a_page_do_not_meddle(browser: Browser, tmp_path: Path) -> None:
    text = page(ExploreSentence())
    figure = text[text.index('<div class="explore"') : text.index("<script>globalThis")]
    path = tmp_path / "two.html"
    path.write_text(text.replace(figure, figure + figure), encoding="utf-8")
    opened = browser.new_page()
    opened.goto(path.as_uri())
    both = opened.locator(".live-sentence")
    both.nth(1).wait_for()
    both.nth(1).get_by_role("radio", name="wide").first.check()
    assert [data(both.nth(i), "answer") for i in (0, 1)] == ["animal", "street"]
    assert both.nth(0).get_by_role("radio", name="tired").first.is_checked()
    opened.close()


def test_cleaning_up_leaves_nothing(browser: Browser, pages: dict[str, str]) -> None:
    opened = browser.new_page()
    opened.goto(pages["plane"])
    opened.locator(".live-plane").wait_for()
    left = opened.evaluate(
        """() => {
          const figure = globalThis.liveFigures.modules.plane();
          const listeners = new Set();
          const state = { query: [1, 0], key_vectors: [[1, 0]], value_vectors: [[0, 1]], labels: ["A"], sharpness: 1 };
          const model = { get: (name) => state[name], set() {}, save_changes() {},
            on: (name, f) => listeners.add(name), off: (name, f) => listeners.delete(name) };
          const el = document.createElement("div");
          document.body.append(el);
          const clean = figure.render({ model, el });
          const during = [listeners.size, el.childElementCount];
          clean();
          return [...during, listeners.size, el.childElementCount];
        }"""
    )
    assert left == [3, 2, 0, 0]
    opened.close()


def test_the_words_come_back_and_no_question_is_without_an_answer(sentence: Locator) -> None:
    swap = sentence.get_by_label("swap “street”")
    places = swap.locator("optgroup", has=sentence.page.locator("option[value=animal]"))
    assert places.is_disabled()
    swap.select_option("river")
    sentence.get_by_role("radio", name="river").press("Space")
    assert sentence.get_attribute("data-query") == "river"
    sentence.get_by_role("button", name="reset all").click()
    assert sentence.get_attribute("data-query") == "street"


def test_the_plane_can_be_reset(notebook: Page) -> None:
    plane = notebook.locator(".live-plane")
    plane.get_by_role("button", name="reset").click()
    before = plane.get_attribute("data-query")
    plane.get_by_role("button", name="q = 0").click()
    assert plane.get_attribute("data-query") != before
    plane.get_by_role("button", name="reset").click()
    assert plane.get_attribute("data-query") == before
