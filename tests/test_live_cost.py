"""The figures of chapter 5, "where does the cost go" and "the tiles in motion"."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attention_lib import attention
from attention_lib.cost import crossover, layer_flops
from attention_lib.tiled import tiled_attention
from figures.explore_cost import MOST, WIDTHS, ExploreCost
from figures.explore_tiles import SEED, SIDE, TOKENS, ExploreTiles, last_tile
from figures.live import page

from . import live_helpers
from .live_helpers import data, node
from .live_reference import draw_example, keep

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

HARD_SPACE = "\u00a0"


def compute(cases: dict[str, Any]) -> dict[str, Any]:
    """What the modules in figures/js make of the cases."""
    done = node("vectors_cost.mjs", stdin=json.dumps(cases))
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def online(
    scores: list[float | None], values: list[list[float]], size: int
) -> list[dict[str, Any]]:
    """What is kept before the first tile and after each, key by key; a hidden score is None."""
    m, l, o = -math.inf, 0.0, [0.0] * len(values[0])  # noqa: E741
    states: list[dict[str, Any]] = [
        {"tile": -1, "m": m, "factor": 0.0, "added": 0.0, "l": l, "o": o}
    ]
    for tile in range(math.ceil(len(scores) / size)):
        keys = range(tile * size, min(len(scores), (tile + 1) * size))
        seen = [(score, key) for key in keys if (score := scores[key]) is not None]
        if not seen:
            continue
        before, m = m, max(m, *(score for score, _ in seen))
        factor = math.exp(before - m)
        added = sum(math.exp(score - m) for score, _ in seen)
        l = factor * l + added  # noqa: E741
        o = [
            factor * x + sum(math.exp(score - m) * values[key][c] for score, key in seen)
            for c, x in enumerate(o)
        ]
        states.append({"tile": tile, "m": m, "factor": factor, "added": added, "l": l, "o": o})
    return states


@pytest.mark.needs("node")
def test_javascript_tests_pass() -> None:
    done = node("--test", "cost.test.mjs")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("make", [ExploreCost, ExploreTiles])
def test_what_a_notebook_stores(make: Any) -> None:
    live_helpers.check_stored(make(), make())


@pytest.mark.needs("node")
@pytest.mark.parametrize("name", ["cost", "tiles"])
def test_bundle_is_one_module(name: str) -> None:
    live_helpers.check_bundle(name)


@pytest.mark.needs("node")
def test_the_page_counts_as_the_library_does() -> None:
    sizes = [(100, 128), (2000, 512), (2048, 12288), (3072, 512), (131_071, 1536), (MOST, 16384)]
    for (n, d), counted in zip(sizes, compute({"bills": sizes})["bills"], strict=True):
        once, twice = layer_flops(n, d), layer_flops(2 * n, d)
        for part in ("projections", "feed_forward", "scores", "total"):
            # The page counts in doubles: exact up to 2^53, then to their rounding.
            assert counted[part] == pytest.approx(getattr(once, part), rel=2.0**-52)
            assert once.total > 2**53 or counted[part] == getattr(once, part)
        assert counted["growth"] == pytest.approx(twice.total / once.total, rel=1e-15)
        assert counted["even"] == crossover(d)


@pytest.mark.needs("node")
def test_the_page_draws_the_same_example() -> None:
    for seed, got in zip((SEED, 3), compute({"seeds": [SEED, 3]})["seeds"], strict=True):
        for name, expected in zip("qkv", draw_example(seed), strict=True):
            np.testing.assert_allclose(got[name], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.needs("node")
def test_each_step_is_that_of_online_softmax() -> None:
    rng = np.random.default_rng(0)
    cases = []
    for keys, width, size, spread in (
        (7, 3, 3, 1.0),
        (11, 5, 4, 5.0),
        (5, 1, 7, 1.0),
        (13, 3, 1, 9.0),
    ):
        scores: list[float | None] = list(rng.normal(size=keys) * spread)
        values = rng.normal(size=(keys, width)).tolist()
        hidden: list[float | None] = list(scores)
        hidden[2] = hidden[keys - 1] = None
        if keys > 2 * size:
            hidden[size : 2 * size] = [None] * size
        cases += [{"scores": s, "values": values, "size": size} for s in (scores, hidden)]
    skipped = 0
    for case, got in zip(cases, compute({"walks": cases})["walks"], strict=True):
        expected = online(**case)
        skipped += math.ceil(len(case["scores"]) / case["size"]) + 1 - len(expected)
        assert [state["tile"] for state in got] == [state["tile"] for state in expected]
        assert (got[0]["m"], got[0]["l"]) == (None, 0)
        for one, other in zip(got[1:], expected[1:], strict=True):
            for name in ("m", "factor", "added", "l", "o"):
                np.testing.assert_allclose(one[name], other[name], rtol=1e-12, atol=1e-15)
        # The last state is what the library makes of all scores at once.
        visible = [score is not None for score in case["scores"]]
        bias = [[score or 0.0 for score in case["scores"]]]
        q, k, v = np.zeros((1, 1)), np.zeros((len(visible), 1)), np.array(case["values"])
        mask = np.array([visible])
        out = np.array(got[-1]["o"]) / got[-1]["l"]
        np.testing.assert_allclose(
            out, attention(q, k, v, mask, bias=np.array(bias))[0], rtol=1e-12, atol=1e-14
        )
    assert skipped >= 5


@pytest.mark.needs("node")
@pytest.mark.parametrize("causal", [False, True])
def test_every_query_ends_at_the_dense_answer(causal: bool) -> None:
    q, k, v = draw_example()
    dense = attention(q, k, v, causal=causal)
    tiled, lse = tiled_attention(q[None], k[None], v[None], causal=causal, return_lse=True)
    rows = [{"seed": SEED, "query": query, "causal": causal} for query in range(TOKENS)]
    for query, got in enumerate(compute({"rows": rows})["rows"]):
        states = got["states"]
        assert len(states) == 1 + last_tile(query + 1, causal)
        assert got["apart"] < 1e-14
        np.testing.assert_allclose(got["out"], dense[query], rtol=1e-12, atol=1e-14)
        answer = np.array(states[-1]["o"]) / states[-1]["l"]
        np.testing.assert_allclose(answer, tiled[0, query], rtol=1e-12, atol=1e-14)
        assert states[-1]["m"] + math.log(states[-1]["l"]) == pytest.approx(lse[0, query])
        for step, state in enumerate(states[1:], 1):
            kept = keep(query + 1, step, causal)
            assert (kept.m, kept.l) == pytest.approx((state["m"], state["l"]), rel=1e-12)
            np.testing.assert_allclose(kept.answer, np.array(state["o"]) / state["l"], rtol=1e-11)
            assert kept.powers.sum() == pytest.approx(kept.l)


def test_they_open_on_nothing_that_the_chapter_asks() -> None:
    """It asks for the share at 2,000 tokens, and before each tile from the second for a rescaling."""
    assert (ExploreCost().n, ExploreCost().d) == (500, 512)
    assert (ExploreTiles().query, ExploreTiles().step, ExploreTiles().causal) == (14, 1, False)


def test_tiles_never_stand_beyond_the_last() -> None:
    figure = ExploreTiles(step=6)
    figure.causal = True
    assert figure.step == 4
    figure.query = 1
    assert figure.step == 1
    figure.causal = False
    assert figure.step == 1
    figure.set_state({"query": 3, "step": 6})  # as the page sends them, together
    assert (figure.query, figure.step) == (3, 6)
    for name, value in (("step", 7), ("query", 25)):
        with pytest.raises(ValueError, match=f"{name} must be from . to .*: found {value}"):
            setattr(figure, name, value)
    assert (figure.query, figure.step) == (3, 6)


@pytest.mark.parametrize(
    ("make", "arguments", "complaint"),
    [
        (ExploreCost, {"n": 2.5}, "n must be an integer: found 2.5"),
        (ExploreCost, {"n": "x"}, "n must be an integer: found 'x'"),
        (ExploreCost, {"d": 512.0}, "d must be an integer: found 512.0"),
        (ExploreTiles, {"query": "a"}, "query must be an integer: found 'a'"),
        (ExploreTiles, {"step": 1.5}, "step must be an integer: found 1.5"),
        (ExploreTiles, {"causal": "yes"}, "causal must be True or False: found str"),
    ],
)
def test_they_refuse_what_is_of_another_type(
    make: Any, arguments: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(TypeError, match=complaint):
        make(**arguments)


@pytest.mark.parametrize(
    ("make", "arguments", "complaint"),
    [
        (ExploreCost, {"n": 99}, "n must be from 100 to 1,000,000: found 99"),
        (ExploreCost, {"n": MOST + 1}, "found 1000001"),
        (ExploreCost, {"d": 500}, "d must be one of 128, 192, 256, .*, 16384: found 500"),
        (ExploreTiles, {"query": 0}, "query must be from 1 to 24: found 0"),
        (ExploreTiles, {"query": 25}, "found 25"),
        (ExploreTiles, {"step": 7}, "step must be from 0 to 6: found 7"),
        (ExploreTiles, {"step": 5, "causal": True}, "step must be from 0 to 4: found 5"),
    ],
)
def test_they_refuse_what_is_not_there(
    make: Any, arguments: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        make(**arguments)


def test_the_page_has_the_same_widths() -> None:
    source = (live_helpers.ROOT / "figures" / "js" / "cost.js").read_text(encoding="utf-8")
    assert f"const WIDTHS = {list(WIDTHS)};" in source


@pytest.fixture(scope="module")
def notebook(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    pytest.importorskip("jupyterlab")
    cells = (
        "from figures.explore_cost import ExploreCost\nExploreCost()",
        "from figures.explore_tiles import ExploreTiles\nExploreTiles(step=0)",
    )
    with live_helpers.live_notebook(browser, tmp_path_factory.mktemp("lab"), cells) as opened:
        yield opened


def rows(page: Page) -> list[list[str]]:
    """The cells of the cost's table."""
    lines = page.locator(".live-cost tr").all()
    return [[text.strip() for text in line.locator("th, td").all_inner_texts()] for line in lines]


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_bill_by_keyboard_in_jupyterlab(notebook: Page) -> None:
    figure = notebook.locator(".live-cost")
    once = layer_flops(500, 512)
    assert [data(figure, name) for name in ("n", "d", "total")] == ["500", "512", str(once.total)]
    assert float(data(figure, "growth")) == pytest.approx(2.2800, abs=1e-4)
    tokens = figure.get_by_role("slider", name="tokens")
    tokens.focus()
    for _ in range(16):
        notebook.keyboard.press("ArrowRight")
    assert data(figure, "n") == str(crossover(512))
    assert tokens.get_attribute("aria-valuetext") == "3,072"
    label = figure.locator(".shares").get_attribute("aria-label") or ""
    assert "scores and sum cost as much as all the rest" in label
    figure.get_by_role("slider", name="width").focus()
    notebook.keyboard.press("End")
    once, twice = layer_flops(3072, 16384), layer_flops(6144, 16384)
    assert data(figure, "d") == "16384"
    assert data(figure, "total") == str(once.total)
    head, scores, *_, together = rows(notebook)
    assert head[1:] == ["3,072", "6,144", "times"]
    assert scores[1:3] == [f"618{HARD_SPACE}G", f"2.47{HARD_SPACE}T"]
    assert [f"{cost.scores:.2e}" for cost in (once, twice)] == ["6.18e+11", "2.47e+12"]
    assert scores[3] == f"×{HARD_SPACE}4"
    assert together[3] == f"×{HARD_SPACE}{twice.total / once.total:.2f}"
    words = figure.locator(".word").all_text_contents()
    assert words[2] == f"scores and sum {100 * once.share:.1f}{HARD_SPACE}%"
    widths = (
        figure.locator(".track")
        .last.locator("b")
        .evaluate_all("bars => bars.map(bar => bar.getBoundingClientRect().width)")
    )
    assert widths[2] / sum(widths) == pytest.approx(twice.share, abs=0.01)
    says = figure.locator(".says").inner_text().replace(HARD_SPACE, " ")
    assert f"costs {once.total / 1e12:.1f} trillion FLOPs" in says


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_the_pointer_chooses_the_tokens(notebook: Page) -> None:
    figure = notebook.locator(".live-cost")
    chart = figure.locator(".shares")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    for share, n in ((0.05, "100"), (0.99, str(MOST))):
        notebook.mouse.click(box["x"] + share * box["width"], box["y"] + 0.5 * box["height"])
        assert data(figure, "n") == n


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_tiles_by_keyboard_in_jupyterlab(notebook: Page) -> None:
    figure = notebook.locator(".live-tiles")
    says = figure.locator(".says")
    time = figure.get_by_role("slider", name="tiles read")
    assert says.inner_text().startswith("Nothing of query 14 has been read")
    time.focus()
    for _ in range(3):
        notebook.keyboard.press("ArrowRight")
    kept = keep(14, 3, False)
    assert [float(data(figure, name)) for name in "ml"] == pytest.approx([kept.m, kept.l], abs=1e-4)
    assert time.get_attribute("aria-valuetext") == "3 of 6"
    assert figure.locator(".power.now").count() == SIDE
    assert figure.locator(".tile.now").count() == 1
    assert figure.locator(".rescaled .number").inner_text() == "= 0.46"
    answers = figure.locator(".gauge .number").all_inner_texts()
    assert answers == [f"{x:.2f}".replace("-", "−") for x in kept.answer]
    figure.get_by_role("radio", name="off").focus()
    notebook.keyboard.press("ArrowRight")
    assert data(figure, "causal") == "true"
    assert figure.locator(".tile.skipped").count() == 15
    assert time.get_attribute("max") == "4"
    figure.get_by_role("button", name="step").focus()
    notebook.keyboard.press("Enter")
    assert "Tiles 5 and 6 hold later keys only: skipped" in says.inner_text()
    assert says.inner_text().endswith("o / ℓ differs from softmax at once by 0.0000.")
    q, k, v = draw_example()
    dense = np.asarray(attention(q, k, v, causal=True))[13]
    answers = figure.locator(".gauge .number").all_inner_texts()
    assert answers == [f"{x:.2f}".replace("-", "−") for x in dense]
    query = figure.get_by_role("slider", name="query")
    query.focus()
    notebook.keyboard.press("Home")
    assert [data(figure, name) for name in ("query", "step")] == ["1", "1"]
    figure.get_by_role("button", name="play").focus()
    notebook.keyboard.press("Enter")
    assert data(figure, "step") == "0"
    figure.get_by_role("button", name="pause").wait_for()
    notebook.wait_for_function("document.querySelector('.live-tiles').dataset.step === '1'")
    figure.get_by_role("button", name="play").wait_for()
    assert "Scores in tiles" in (figure.locator(".board").get_attribute("aria-label") or "")


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_the_pointer_chooses_query_and_tile(notebook: Page) -> None:
    figure = notebook.locator(".live-tiles")
    figure.get_by_role("radio", name="off").check(force=True)
    board = figure.locator(".board")
    elements = figure.locator("*").count()
    for row, column, expected in ((5, 2, ["21", "3"]), (0, 5, ["1", "6"])):
        rim = board.locator(".rim").nth(row * TOKENS // SIDE + column)
        rim.scroll_into_view_if_needed()
        box = rim.bounding_box()
        assert box is not None
        notebook.mouse.click(box["x"] + 6, box["y"] + 6)
        assert [data(figure, name) for name in ("query", "step")] == expected
    assert figure.locator("*").count() == elements


@pytest.mark.browser
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("make", [ExploreCost, ExploreTiles])
def test_page_from_the_file_system(
    browser: Browser, tmp_path: Path, make: Any, scheme: str
) -> None:
    path = tmp_path / "page.html"
    figure = make()
    path.write_text(page(figure), encoding="utf-8")
    with live_helpers.checked_page(browser, path.as_uri(), figure.name, scheme) as live:
        if figure.name == "tiles":
            # Nothing moves for a reader who asked for that: play shows the end at once.
            live.get_by_role("button", name="play").click()
            assert data(live, "step") == "6"
        else:
            # The longest numbers, too, fit a narrow screen.
            for slider in live.get_by_role("slider").all():
                slider.press("End")
            assert [data(live, name) for name in "nd"] == [str(MOST), str(WIDTHS[-1])]
            live.page.set_viewport_size({"width": 320, "height": 640})
            assert live.page.evaluate("document.documentElement.scrollWidth") == 320
        assert live_helpers.left_behind(live.page, figure) == [0, 0]
