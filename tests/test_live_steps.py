"""The figures of chapter 3, "the two machines step by step" and "the cheating model"."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from attention_lib.cost import layer_costs
from figures.explore_cheating import RECORD, ExploreCheating
from figures.explore_steps import ExploreSteps
from figures.live import LiveFigure, page

from . import live_helpers
from .live_helpers import data, node

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

# Made up, to see what the figure makes of it; what readers see was recorded in training.
MADE_UP: dict[str, Any] = {
    "steps": [0, 10, 20, 30],
    "masked": {
        "loss": [5.0, 2.0, 1.5, 1.2],
        "samples": [[0, "b a a b"], [15, "a b b"], [40, "a b c"]],
        "alone": [[0, 5.1], [15, 2.1], [40, 1.3]],
        "accepted": [[0, 0.0], [15, 0.25], [40, 0.9]],
    },
    "unmasked": {
        "loss": [5.0, 1.0, 0.1, 0.002],
        "samples": [[0, "b a a b"], [15, "b b"], [40, "c < c"]],
    },
}


def made_up(**changes: Any) -> dict[str, Any]:
    """A copy of MADE_UP in which the run without a mask has other entries; None takes one out."""
    run = {**MADE_UP["unmasked"], **changes}
    return {**MADE_UP, "unmasked": {name: x for name, x in run.items() if x is not None}}


@pytest.mark.needs("node")
def test_javascript_tests_pass() -> None:
    done = node("--test", "steps.test.mjs")
    assert done.returncode == 0, done.stdout + done.stderr


def make_cheating() -> LiveFigure:
    return ExploreCheating(MADE_UP)


@pytest.mark.parametrize("make", [ExploreSteps, make_cheating])
def test_what_a_notebook_stores(make: Any) -> None:
    live_helpers.check_stored(make(), make())


@pytest.mark.needs("node")
@pytest.mark.parametrize("name", ["steps", "cheating"])
def test_bundle_is_one_module(name: str) -> None:
    live_helpers.check_bundle(name)


@pytest.mark.needs("node")
def test_the_page_counts_as_the_library_does() -> None:
    sizes = [2, 12, 32, 100]
    code = (
        'import { cost } from "../../figures/js/steps.js";'
        f"console.log(JSON.stringify({json.dumps(sizes)}.map(cost)))"
    )
    done = node("--input-type=module", stdin=code)
    assert done.returncode == 0, done.stderr
    for n, counted in zip(sizes, json.loads(done.stdout), strict=True):
        costs = layer_costs(n, 64)
        for name, row in (("recurrent", "recurrent"), ("attention", "self-attention")):
            cost = costs[row]
            assert counted[name] == {"steps": cost.sequential, "path": cost.path}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"tokens": 1}, "tokens must be from 2 to 32: found 1"),
        ({"tokens": 33}, "tokens must be from 2 to 32: found 33"),
        ({"tokens": 5, "step": 6}, "step must be from 0 to 5: found 6"),
    ],
)
def test_machines_refuse_what_is_not_there(arguments: dict[str, int], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ExploreSteps(**arguments)


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ({}, "record needs steps, masked and unmasked"),
        (made_up(loss=None), "each of the two loss and samples: KeyError 'loss'"),
        (made_up(samples=[3]), "TypeError"),
        (made_up(loss=[1.0]), "one number for each of 4 steps"),
        (made_up(samples=[[0, "a"]]), "samples after the same steps"),
    ],
)
def test_cheating_refuses_half_a_record(record: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ExploreCheating(record)


def test_cheating_refuses_a_step_without_a_sample() -> None:
    with pytest.raises(ValueError, match="step must be one of 0, 15, 40: found 20"):
        ExploreCheating(MADE_UP, step=20)


def test_the_stored_record_tells_the_story() -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    figure = ExploreCheating()
    live_helpers.check_stored(figure, ExploreCheating())
    assert figure.record["unmasked"]["loss"] == record["unmasked"]["loss"]
    assert record["unmasked"]["loss"][-1] < 0.05 < 0.5 < record["masked"]["loss"][-1]
    assert dict(record["unmasked"]["accepted"])[figure.step] < 0.05
    assert dict(record["masked"]["accepted"])[figure.step] > 0.5


@pytest.fixture(scope="module")
def notebook(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    pytest.importorskip("jupyterlab")
    load = "from figures.explore_cheating import ExploreCheating"
    cells = (
        "from figures.explore_steps import ExploreSteps\nExploreSteps(5, step=0)",
        f"{load}\nExploreCheating({MADE_UP!r}, masked=True)",
    )
    with live_helpers.live_notebook(browser, tmp_path_factory.mktemp("lab"), cells) as opened:
        yield opened


def lit(figure: Locator) -> list[int]:
    """How many cells of each machine are lit."""
    machines = figure.locator(".machine")
    return [machines.nth(i).locator(".cell.lit").count() for i in (0, 1)]


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_machines_by_keyboard_in_jupyterlab(notebook: Page) -> None:
    figure = notebook.locator(".live-steps")
    assert lit(figure) == [0, 0]
    figure.get_by_role("button", name="step").focus()
    for key, cells in (("Enter", [1, 0]), ("Space", [2, 5]), ("Enter", [3, 5])):
        notebook.keyboard.press(key)
        assert lit(figure) == cells
    counts = figure.locator(".counts").all_inner_texts()
    assert counts[0] == "step 3 of 5, state 3; path from first to last: 4 links"
    assert counts[1] == "step 2 of 2, done; path from first to last: 1 link"
    assert "the recurrent network has 2 of 5 steps left" in figure.locator(".says").inner_text()
    figure.get_by_role("slider", name="tokens").focus()
    notebook.keyboard.press("ArrowRight")
    assert (data(figure, "tokens"), lit(figure)) == ("6", [3, 6])
    lines = figure.locator(".machine").last.locator(".web").get_attribute("d") or ""
    assert lines.count("M") == 36
    figure.get_by_role("button", name="play").focus()
    notebook.keyboard.press("Enter")
    notebook.wait_for_function("document.querySelector('.live-steps').dataset.step === '4'")
    assert figure.get_by_role("button", name="pause").is_visible()
    notebook.wait_for_function("document.querySelector('.live-steps').dataset.step === '6'")
    figure.get_by_role("button", name="play").wait_for()
    assert "the recurrent network after 6" in figure.locator(".says").inner_text()
    figure.get_by_role("button", name="reset").press("Enter")
    assert lit(figure) == [0, 0]


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_cheating_by_keyboard_in_jupyterlab(notebook: Page) -> None:
    figure = notebook.locator(".live-cheating")
    assert figure.locator(".mask .unseen").count() == 21 + 7
    assert figure.locator("blockquote").inner_text() == "a b c"
    assert "Of the sentences that it writes, 90 % fit" in figure.locator(".says").inner_text()
    figure.get_by_role("radio", name="on").focus()
    notebook.keyboard.press("ArrowRight")
    assert data(figure, "masked") == "false"
    assert figure.locator(".mask .unseen").count() == 0
    assert figure.locator(".mask .answer").count() == 7
    assert figure.locator("blockquote").inner_text() == "c < c"
    assert "the training loss is 0.0020 nats a word." in figure.locator(".says").inner_text()
    figure.get_by_role("slider", name="after step").focus()
    notebook.keyboard.press("ArrowLeft")
    assert [data(figure, name) for name in ("step", "loss")] == ["15", "1"]
    assert figure.locator("blockquote").inner_text() == "b b"
    chart = figure.locator(".chart")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    notebook.mouse.click(box["x"] + 0.14 * box["width"], box["y"] + 0.5 * box["height"])
    assert data(figure, "step") == "0"
    assert "Training loss against steps" in (chart.get_attribute("aria-label") or "")


@pytest.mark.browser
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("make", [ExploreSteps, make_cheating])
def test_page_from_the_file_system(
    browser: Browser, tmp_path: Path, make: Any, scheme: str
) -> None:
    path = tmp_path / "page.html"
    figure = make()
    path.write_text(page(figure), encoding="utf-8")
    with live_helpers.checked_page(browser, path.as_uri(), figure.name, scheme) as live:
        if figure.name == "steps":
            # Nothing moves for a reader who asked for that: play shows the end at once.
            live.get_by_role("button", name="play").click()
            assert data(live, "step") == "12"
        else:
            live.get_by_role("radio", name="on").check()
            assert data(live, "masked") == "true"
        assert live_helpers.left_behind(live.page, figure) == [0, 0]
