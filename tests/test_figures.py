"""Static figures draw what they are given, say it in words, and leave nothing open."""

from __future__ import annotations

import re
import sys
import urllib.parse
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch

import figures
from attention_lib.models.encoder import Encoder
from figures.flip import ALT, PATH, draw_flip
from figures.quiz import quiz
from figures.show import to_svg

if TYPE_CHECKING:
    from playwright.sync_api import Browser

matplotlib.use("agg")

WORDS = ("it", "was", "too", "wide", "today")
WEIGHTS = np.array([0.05, 0.1, 0.02, 0.8, 0.03])
SENTENCE = "A picture of a test, which nobody but the test will ever see."
DRAWN: dict[str, Callable[[], Axes]] = {
    "lines": lambda: figures.draw_lines(WORDS, WEIGHTS, query=1),
    "weights": lambda: figures.draw_weights(np.eye(3, 5), values=True),
    "many weights": lambda: figures.draw_weights(np.eye(30, 31)),
    "scores": lambda: figures.draw_scores(np.arange(-7.0, 8).reshape(3, 5)),
    "curves": lambda: figures.draw_curves(
        np.arange(5), {"up": np.arange(5), "down": -np.arange(5)}, xlabel="x", ylabel="y"
    ),
    "roofline": lambda: figures.draw_roofline(
        2.0 ** np.arange(3, 12), {"A": np.arange(10, 19)}, {"one": (16.0, 12.0)}
    ),
    "bars": lambda: figures.draw_bars(["a", "b"], {"one": [1, 2], "two": [3, 4]}, ylabel="y"),
    "heads": lambda: figures.draw_heads(
        np.arange(24.0).reshape(2, 3, 4) - 2, np.full((2, 3, 4), 0.5), relations="abcd"
    ),
    "shares": lambda: figures.draw_shares(["a", "b"], [0.2, 1], [[0.1, 0.3], [0.9, 1]], xlabel="x"),
}


@pytest.fixture(autouse=True)
def no_figure_stays_open() -> Any:
    yield
    plt.close("all")


@pytest.mark.parametrize("name", DRAWN)
def test_the_svg_says_what_it_shows_and_is_the_same_each_time(name: str) -> None:
    svg = to_svg(DRAWN[name](), alt=SENTENCE)
    assert svg == to_svg(DRAWN[name](), alt=SENTENCE)
    root = ET.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    assert root.get("role") == "img"
    assert root.get("aria-label") == SENTENCE
    assert root.findtext(f"{space}title")
    assert root.findtext(f"{space}desc") == SENTENCE
    assert "<dc:date>" not in svg
    assert len(svg) < 60_000
    assert plt.get_fignums() == []


def test_a_shown_figure_is_an_image_with_words_that_shrinks(monkeypatch: Any) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(sys.modules["figures.show"], "display", lambda *a, **kw: shown.append(a[0]))
    alt = 'A bar "a" that is shorter than a bar b & so on.'
    figures.show(DRAWN["bars"](), alt=alt)
    picture = ET.fromstring(shown[0]["text/html"].replace('">', '"/>'))
    assert picture.get("alt") == alt
    assert "max-width:100%" in str(picture.get("style"))
    start, _, svg = str(picture.get("src")).partition(",")
    assert start == "data:image/svg+xml"
    assert urllib.parse.unquote(svg) == shown[0]["image/svg+xml"]


def test_the_style_is_the_books_whatever_the_readers_is() -> None:
    with plt.rc_context({"axes.spines.top": True, "svg.fonttype": "path"}):
        ax = DRAWN["curves"]()
        assert not ax.spines["top"].get_visible()
        assert "<text" in to_svg(ax, alt=SENTENCE)
        assert plt.rcParams["svg.fonttype"] == "path"


@pytest.mark.parametrize("alt", ["", "Image", "weights.png"])
def test_a_figure_needs_a_sentence(alt: str) -> None:
    with pytest.raises(ValueError, match="alt must say in a sentence"):
        to_svg(DRAWN["bars"](), alt=alt)


def test_lines_are_as_thick_as_their_weights() -> None:
    before = WEIGHTS.copy()
    ax = DRAWN["lines"]()
    arcs = [patch for patch in ax.patches if isinstance(patch, PathPatch)]
    drawn = np.delete(WEIGHTS, 1)  # the query has no line to itself
    assert len(arcs) == len(drawn)
    widths = np.array([arc.get_linewidth() for arc in arcs])
    np.testing.assert_allclose(np.diff(widths) / np.diff(drawn), 7.0)
    assert {text.get_text() for text in ax.texts} >= {*WORDS, "0.80", "0.10"}
    assert "0.05" not in {text.get_text() for text in ax.texts}
    np.testing.assert_array_equal(before, WEIGHTS)


def test_rows_are_queries_from_the_top() -> None:
    ax = figures.draw_weights([[1, 0, 0], [0, 0, 1]], queries="qr", keys="abc", values=True)
    assert ax.yaxis_inverted()
    cells = {(t.get_position(), t.get_text()) for t in ax.texts}
    assert ((0.5, 0.5), "1.00") in cells
    assert ((2.5, 1.5), "1.00") in cells
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: figures.draw_lines(WORDS, WEIGHTS[:4], query=0), r"must be \(5,\).*\(4,\)"),
        (lambda: figures.draw_weights(np.ones((2, 3, 3))), r"one head at a time.*\(2, 3, 3\)"),
    ],
)
def test_wrong_shapes(draw: Callable[[], Axes], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()


STRANGE = ("$$", r"$\bad$", "水", "<b>&", "a$b")
NAMED: dict[str, Callable[[Any], Axes]] = {
    "lines": lambda names: figures.draw_lines(names, WEIGHTS[: len(names)], query=1),
    "weights": lambda names: figures.draw_weights(np.eye(5), keys=names, queries=names),
    "scores": lambda names: figures.draw_scores(np.eye(5), keys=names),
    "bars": lambda names: figures.draw_bars(names, {names[1]: range(5)}, ylabel="y"),
    "shares": lambda names: figures.draw_shares(names, np.full(5, 0.5), xlabel="x"),
    "heads": lambda names: figures.draw_heads(
        np.ones((2, 3, 5)), np.ones((2, 3, 5)), relations=names
    ),
    "curves": lambda names: figures.draw_curves(
        [0, 1], {name: [0, i] for i, name in enumerate(names)}, xlabel="x", ylabel="y"
    ),
    "roofline": lambda names: figures.draw_roofline(
        2.0 ** np.arange(3, 12),
        {names[0]: np.arange(10, 19)},
        dict.fromkeys(names[1:], (16.0, 12.0)),
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_any_word_is_shown_as_it_is(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        root = ET.fromstring(to_svg(NAMED[name](STRANGE), alt=SENTENCE))
    shown = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert set(STRANGE) <= set(shown)


@pytest.mark.parametrize("name", ["weights", "scores", "bars", "shares", "heads"])
def test_names_that_do_not_fit_are_counted(name: str) -> None:
    with pytest.raises(ValueError, match="found"):
        NAMED[name](STRANGE[:4])


@pytest.mark.parametrize("query", [-1, 5])
def test_a_query_is_one_of_the_words(query: int) -> None:
    with pytest.raises(ValueError, match=f"query must be from 0 to 4: found {query}"):
        figures.draw_lines(WORDS, WEIGHTS, query=query)


def test_names_at_the_ends_of_curves_do_not_overlap() -> None:
    near = {name: np.linspace(0, 1 + i * 0.001, 9) for i, name in enumerate("abc")}
    ax = figures.draw_curves(np.arange(9), near, xlabel="x", ylabel="y")
    heights = sorted(text.xy[1] for text in ax.texts)  # type: ignore[attr-defined]
    low, high = ax.get_ylim()
    assert min(np.diff(heights)) > 0.07 * (high - low)


def test_the_picture_of_the_readme_shows_the_shipped_weights(root: Path) -> None:
    encoder = Encoder.load("pronoun-0")
    layer, head = encoder.pointing_head or (0, 0)
    stored = PATH.read_text(encoding="utf-8")
    for last in ("tired", "wide"):
        run = encoder(f"the animal did not cross the street because it was too {last}")
        best = run.weights[layer][head, run.words.index("it")].max()
        assert f">{best:.2f}<" in stored
    assert ALT in stored
    assert PATH.relative_to(root).as_posix() in (root / "README.md").read_text(encoding="utf-8")
    assert re.findall(r">(\d\.\d\d)<", stored) == re.findall(
        r">(\d\.\d\d)<", to_svg(draw_flip(), alt=ALT)
    )


QUESTIONS = {"Two and two?": {"- 5": "One less.", "+ 4": "Yes."}}


def collect(
    monkeypatch: pytest.MonkeyPatch, name: str, questions: Any = QUESTIONS
) -> dict[str, str]:
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(
        sys.modules["figures.quiz"], "display", lambda data, raw: shown.append(data)
    )
    quiz(name, questions)
    (one,) = shown
    return one


def test_a_quiz_fetches_nothing_and_is_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    page = collect(monkeypatch, "one")
    assert page == collect(monkeypatch, "one")
    assert not re.search(r"https?://", page["text/html"])
    assert not re.search(r"\bid=", page["text/html"])
    assert page["text/plain"] == "1. Two and two?"


@pytest.mark.parametrize(
    "answers",
    [{"+ 4": "Yes.", "+ 5": "Yes."}, {"- 5": "No."}, {"4": "Yes."}, {"+ 4": "", "- 5": "No."}],
)
def test_a_question_needs_one_right_answer_and_replies(answers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="Two and two"):
        quiz("q", {"Two and two?": answers})


ODD = {
    "What is a<b<c & <s>?": {
        "- <img src=x onerror=document.title='run'>": "No <b>mark</b>.",
        "+ A chain & a tag": "Yes, </script> too.",
        "- <!--<script>": "No.",
    },
    "Two and two?": {
        f"{'+' if n == 4 else '-'} {n}": f"It is {n - 4} too large." for n in range(9)
    },
}


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_a_quiz_under_the_hand(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    once = collect(monkeypatch, "one", ODD)["text/html"]
    file = tmp_path / "quiz.html"
    # Twice on one page, as JupyterLab shows a notebook in two views.
    file.write_text(
        f"<!doctype html><meta charset=utf-8><div>{once}</div><div>{once}</div>", "utf-8"
    )
    tab = browser.new_page()
    tab.goto(file.as_uri())
    views = tab.locator(".questions")
    assert [view.locator(".Quiz").count() for view in views.all()] == [2, 2]
    first, numbers = views.first.locator(".Quiz").all()
    assert first.locator("legend").inner_text() == "What is a<b<c & <s>?"
    answers = [text[2:] for text in next(iter(ODD.values()))]
    assert sorted(first.locator("label").all_inner_texts()) == sorted(answers)
    assert tab.title() != "run"
    orders = {
        tuple(view.locator(".Quiz").nth(1).locator("label").all_inner_texts())
        for view in views.all()
    }
    tab.reload()
    orders.add(tuple(numbers.locator("label").all_inner_texts()))
    assert len(orders) > 1  # nine answers in one order three times: 1 in 10¹¹
    group = tab.get_by_role("group", name="Two and two?").first
    check, reply = group.get_by_role("button", name="Check"), group.locator(".Feedback")
    check.click()
    assert reply.inner_text() == "Choose an answer first."
    group.get_by_role("radio", name="5").focus()
    tab.keyboard.press("Space")
    assert reply.inner_text() == ""
    check.focus()
    tab.keyboard.press("Enter")
    assert reply.inner_text() == "Not yet. It is 1 too large."
    group.get_by_role("radio", name="4").check()
    assert reply.inner_text() == ""
    check.click()
    assert reply.inner_text() == "Right. It is 0 too large."
    tab.get_by_role("group", name="a<b<c").first.get_by_role("radio", name="onerror").check()
    tab.get_by_role("group", name="a<b<c").first.get_by_role("button").click()
    assert "No <b>mark</b>." in tab.locator(".Feedback").first.inner_text()
    tab.reload()
    assert group.get_by_role("radio", name="4").is_checked()
    assert reply.inner_text().startswith("Right.")
    views.first.get_by_role("button", name="Forget my answers").click()
    tab.reload()
    assert tab.locator("input:checked").count() == 0
    tab.close()


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_a_quiz_without_script_is_a_list_with_folded_answers(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "quiz.html"
    file.write_text(collect(monkeypatch, "one", ODD)["text/html"], "utf-8")
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(file.as_uri())
    assert "What is a<b<c & <s>?" in tab.locator("ol").inner_text()
    assert tab.locator("ul li").count() == 12
    assert tab.locator("details p").first.text_content() == "A chain & a tag. Yes, </script> too."
    context.close()


def test_a_head_without_which_nothing_is_lost_has_no_dot() -> None:
    rise = np.zeros((2, 3, 4))
    rise[1, 2, 3], rise[0, 1, 0] = 2, 0.5
    ax = figures.draw_heads(rise, np.ones_like(rise), relations="abcd")
    dots = ax.collections[-1]
    assert isinstance(dots, PathCollection)
    assert np.asarray(dots.get_offsets()).tolist() == [[0, 1], [3, 5]]
    assert dots.get_sizes()[1] == pytest.approx(4 * dots.get_sizes()[0])


@pytest.mark.parametrize("layers", [1, 2, 3, 5])
def test_a_line_between_each_pair_of_layers(layers: int) -> None:
    rise = np.ones((layers, 3, 4))
    ax = figures.draw_heads(rise, rise, relations="abcd")
    heights = [float(np.asarray(line.get_ydata())[0]) for line in ax.lines]
    assert heights == [3 * layer - 0.5 for layer in range(1, layers)]


def test_panels_of_heads_share_one_scale() -> None:
    one = np.zeros((2, 3, 4))
    one[1, 2, 3] = 2
    panels = figures.panels(1, 2)
    sizes = []
    for rise, ax in zip((one, 3 * one), panels, strict=True):
        figures.draw_heads(rise, np.ones_like(rise), relations="abcd", largest=6, ax=ax)
        dots = ax.collections[-1]
        assert isinstance(dots, PathCollection)
        sizes.append(dots.get_sizes()[0])
    assert sizes[1] == pytest.approx(3 * sizes[0])
    assert not panels[0].figure.legends


@pytest.mark.parametrize(("width", "columns"), [(9, 6), (3, 2)])
def test_the_legend_of_heads_shows_what_is_drawn(width: float, columns: int) -> None:
    rise = np.ones((2, 3, 4))
    ax = figures.panels(1, 1, width=width)
    figures.draw_heads(rise, rise, relations="abcd", largest=4, legend=True, ax=ax)
    [legend] = ax.figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["0.25", "1", "4 nats lost", "weight 0", "0.5", "1"]
    assert legend._ncols == columns
    marks = [line for line in legend.legend_handles if isinstance(line, Line2D)]
    dots = ax.collections[-1]
    assert isinstance(dots, PathCollection)
    ax.figure.canvas.draw()
    # One nat has the size in the legend that it has in the picture, and weight 1 its colour.
    assert marks[1].get_markersize() ** 2 == pytest.approx(dots.get_sizes()[0])
    assert to_rgba(marks[5].get_markerfacecolor()) == tuple(np.asarray(dots.get_facecolor())[0])


HEADS = np.ones((2, 3, 4))
HOLED = np.where(np.indices(HEADS.shape).sum(0) == 2, np.nan, HEADS)


@pytest.mark.parametrize(
    ("rise", "weight", "options", "complaint"),
    [
        (HEADS[0], HEADS[0], {}, r"rise must be \(layers, heads, relations\): found \(3, 4\)"),
        (HEADS, HEADS[:1], {}, r"must share a shape: rise \(2, 3, 4\), weight \(1, 3, 4\)"),
        (HEADS, HEADS, {"relations": "abc"}, r"last axis of rise \(2, 3, 4\): found 3 names"),
        (HOLED, HEADS, {}, "rise must be finite: found NaN or infinity"),
        (HEADS, np.inf * HEADS, {}, "weight must be finite: found NaN or infinity"),
        (HEADS, HEADS, {"largest": 0.5}, "at least the largest rise, 1: found 0.5"),
        (HEADS, HEADS, {"largest": float("nan")}, "at least the largest rise, 1: found nan"),
    ],
)
def test_heads_that_cannot_be_drawn(
    rise: Any, weight: Any, options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        figures.draw_heads(rise, weight, **{"relations": "abcd", **options})
