"""The figure "why divide by sqrt(d_k)": its numbers are the library's, and keys drive it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attention_lib import attention_gradient
from attention_lib.models.saturation.measure import (
    DRAWS,
    KINDS,
    WIDTHS,
    measure_medians,
    stored_medians,
)
from figures.explore_scaling import ExploreScaling
from figures.live import page

from . import live_helpers
from .live_helpers import data, node
from .live_reference import Measured, draw_vectors, measure, normals

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page


def compute(cases: dict[str, Any]) -> dict[str, Any]:
    """What the modules in figures/js make of the cases."""
    done = node("vectors_scaling.mjs", stdin=json.dumps(cases, default=np.ndarray.tolist))
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.needs("node")
def test_gradient_agrees() -> None:
    rng = np.random.default_rng(0)
    cases: list[dict[str, Any]] = []
    for T, S, d_k, d_v in ((1, 5, 2, 2), (3, 7, 5, 11), (7, 3, 1, 5)):
        shapes = {"q": (T, d_k), "k": (S, d_k), "v": (S, d_v), "d_out": (T, d_v)}
        arrays = {name: rng.normal(size=shape) for name, shape in shapes.items()}
        mask = rng.random((T, S)) < 0.6
        mask[T // 2] = False
        for seen, scale in ((None, None), (mask, None), (mask, 0.7), (None, 0.0)):
            cases.append({**arrays, "mask": seen, "scale": scale})
    for case, got in zip(cases, compute({"gradient": cases})["gradient"], strict=True):
        expected = attention_gradient(**case)
        for name, gradient in zip(("d_q", "d_k", "d_v"), expected, strict=True):
            np.testing.assert_allclose(got[name], gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.needs("node")
def test_the_page_draws_the_same_numbers() -> None:
    cases = [{"seed": seed, "count": count} for seed, count in ((0, 7), (66, 1000), (999, 64))]
    for case, got in zip(cases, compute({"numbers": cases})["numbers"], strict=True):
        np.testing.assert_allclose(got, normals(**case), rtol=1e-12, atol=1e-14)


def test_the_numbers_are_normal() -> None:
    z = np.concatenate([normals(seed, 17 * 4096) for seed in range(20)])
    n = len(z)
    assert abs(z.mean()) < 4 / n**0.5
    assert abs((z**2).mean() - 1) < 4 * (2 / n) ** 0.5
    assert abs((z**4).mean() - 3) < 4 * (96 / n) ** 0.5
    assert abs((z[:-1] * z[1:]).mean()) < 4 / n**0.5
    one, other = normals(1, 10_000), normals(2, 10_000)
    assert abs((one * other).mean()) < 0.04


@pytest.mark.needs("node")
def test_what_the_page_measures_agrees() -> None:
    cases: list[dict[str, Any]] = [
        {"seed": seed, "d_k": d_k, "scaled": scaled}
        for seed in (0, 66)
        for d_k in (1, 8, 64, 512, 4096)
        for scaled in (True, False)
    ]
    for case, got in zip(cases, compute({"draws": cases})["draws"], strict=True):
        expected = measure(draw_vectors(case["seed"]), case["d_k"], case["scaled"])
        for name in ("scores", "weights", *KINDS):
            # A gradient of a saturated softmax is a difference of equal numbers: 1e-16 is its noise.
            np.testing.assert_allclose(
                got[name], getattr(expected, name), rtol=1e-9, atol=1e-13, err_msg=f"{case} {name}"
            )


@pytest.mark.needs("node")
def test_javascript_tests_pass() -> None:
    done = node("--test", "scaling.test.mjs")
    assert done.returncode == 0, done.stdout + done.stderr


def check_medians(widths: tuple[int, ...]) -> None:
    """What is stored is what is measured, but for rounding."""
    stored, measured = stored_medians(), measure_medians(widths)
    assert stored["widths"] == list(WIDTHS)
    assert stored["draws"] == measured["draws"] == DRAWS
    where = [WIDTHS.index(d_k) for d_k in widths]
    for name in ("scaled", "unscaled"):
        for kind in KINDS:
            kept = np.array(stored[name][kind])[where]
            np.testing.assert_allclose(measured[name][kind], kept, rtol=0.011, err_msg=kind)


def test_the_medians_are_measured() -> None:
    check_medians((1, 4, 16, 64, 128))


@pytest.mark.slow
def test_all_the_medians_are_measured() -> None:
    check_medians(WIDTHS)


def test_the_medians_tell_the_story() -> None:
    at = WIDTHS.index(512)
    medians = stored_medians()
    assert medians["unscaled"]["largest"][at] > 0.99
    assert medians["scaled"]["largest"][at] < 0.3
    assert medians["unscaled"]["q"][at] < medians["scaled"]["q"][at] / 25
    assert medians["unscaled"]["v"][at] > medians["scaled"]["v"][at]
    assert medians["unscaled"]["q"][WIDTHS.index(16)] > medians["scaled"]["q"][WIDTHS.index(16)]


def test_what_a_notebook_stores() -> None:
    live_helpers.check_stored(ExploreScaling(), ExploreScaling())


@pytest.mark.needs("node")
def test_bundle_is_one_module() -> None:
    live_helpers.check_bundle("scaling")


def test_it_refuses_what_is_not_there() -> None:
    figure = ExploreScaling()
    with pytest.raises(ValueError, match="power of two from 1 to 4096: found 48"):
        figure.d_k = 48
    with pytest.raises(ValueError, match="power of two"):
        ExploreScaling(8192)
    with pytest.raises(ValueError, match="draw must be from 0 to 999: found 1000"):
        ExploreScaling(draw=1000)


def measured(figure: ExploreScaling) -> tuple[Measured, Measured]:
    """What the library computes for the draw on show, with the scale and without."""
    vectors = draw_vectors(figure.draw)
    return measure(vectors, figure.d_k, True), measure(vectors, figure.d_k, False)


@pytest.fixture(scope="module")
def notebook(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    pytest.importorskip("jupyterlab")
    cells = ("from figures.explore_scaling import ExploreScaling\nExploreScaling()",)
    with live_helpers.live_notebook(browser, tmp_path_factory.mktemp("lab"), cells) as opened:
        yield opened


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_by_keyboard_in_jupyterlab(notebook: Page) -> None:
    figure = notebook.locator(".live-scaling")
    expected = measured(ExploreScaling())[1]
    assert [data(figure, name) for name in ("width", "scaled")] == ["128", "false"]
    assert float(data(figure, "gradient")) == pytest.approx(expected.q, rel=1e-3)
    slider = figure.get_by_role("slider", name="d_k")
    slider.focus()
    for _ in range(2):
        notebook.keyboard.press("ArrowRight")
    assert data(figure, "width") == "512"
    assert slider.get_attribute("aria-valuetext") == "512"
    off = measured(ExploreScaling(512))[1]
    assert float(data(figure, "entropy")) == pytest.approx(off.entropy, abs=1e-4)
    assert "Without the scale, at d_k 512 one key takes" in figure.locator(".says").inner_text()
    figure.get_by_role("radio", name="no").focus()
    notebook.keyboard.press("ArrowLeft")
    on = measured(ExploreScaling(512, scaled=True))[0]
    assert data(figure, "scaled") == "true"
    assert float(data(figure, "largest")) == pytest.approx(on.largest, abs=1e-4)
    assert figure.locator(".says").inner_text().startswith("Divided by √512")
    figure.get_by_role("button", name="another draw").focus()
    notebook.keyboard.press("Enter")
    other = measured(ExploreScaling(512, draw=67))[0]
    assert float(data(figure, "gradient")) == pytest.approx(other.q, rel=1e-3)
    assert figure.get_by_role("slider", name="d_k").input_value() == "9"
    assert "of 16 weights" in (figure.locator(".scores").get_attribute("aria-label") or "")


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_the_pointer_chooses_d_k(notebook: Page) -> None:
    figure = notebook.locator(".live-scaling")
    chart = figure.locator(".chart").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    elements = figure.locator("*").count()
    for share, width in ((0.13, "1"), (0.81, "4096")):
        notebook.mouse.click(box["x"] + share * box["width"], box["y"] + 0.5 * box["height"])
        assert data(figure, "width") == width
    assert figure.locator("*").count() == elements


@pytest.mark.browser
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_from_the_file_system(browser: Browser, tmp_path: Path, scheme: str) -> None:
    path = tmp_path / "scaling.html"
    scaling = ExploreScaling()
    path.write_text(page(scaling), encoding="utf-8")
    with live_helpers.checked_page(browser, path.as_uri(), "scaling", scheme) as figure:
        figure.get_by_role("radio", name="yes").check()
        assert data(figure, "scaled") == "true"
        assert live_helpers.left_behind(figure.page, scaling) == [0, 0]
