"""All live figures on one page without a kernel: under a finger, at any width, in forced colours, read aloud, by address."""

from __future__ import annotations

import itertools
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import figures
from figures import look
from figures.live import JS, bundle, module_script, page_of

from .live_helpers import data, listen, painted

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytest.importorskip("playwright")

LIVE = ("Plane", "Sentence", "Scaling", "Cost", "Tiles", "Steps", "Cheating", "Heads")
NAMES = [name.lower() for name in LIVE]


@pytest.fixture(scope="module")
def stored() -> str:
    return "".join(getattr(figures, f"Explore{name}")().to_html() for name in LIVE)


@pytest.fixture(scope="module")
def address(stored: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page that holds one of each."""
    path = tmp_path_factory.mktemp("all") / "all.html"
    path.write_text(page_of(stored), encoding="utf-8")
    return path.as_uri()


def opened(browser: Browser, address: str, **options: Any) -> Page:
    """The page, all its figures live."""
    context = browser.new_context(**{"reduced_motion": "reduce", **options})
    page = context.new_page()
    page.goto(address)
    page.locator(".live").nth(len(re.findall('class="explore"', page.content())) - 1).wait_for()
    return page


@pytest.fixture(scope="module")
def phone(browser: Browser, address: str) -> Iterator[Page]:
    page = opened(
        browser, address, viewport={"width": 375, "height": 664}, has_touch=True, is_mobile=True
    )
    yield page
    page.context.close()


@pytest.fixture(scope="module")
def desk(browser: Browser, address: str) -> Iterator[Page]:
    page = opened(browser, address, viewport={"width": 1440, "height": 900})
    yield page
    page.context.close()


def states(page: Page) -> list[dict[str, str]]:
    """What every figure says of itself."""
    found: list[dict[str, str]] = page.locator(".live").evaluate_all(
        "figures => figures.map(figure => ({...figure.dataset}))"
    )
    return found


def touch(page: Page, points: Sequence[tuple[float, float]]) -> None:
    """A finger that comes down at the first point, goes along the others, and is lifted."""
    session = page.context.new_cdp_session(page)
    for kind, place in [("touchStart", points[0]), *(("touchMove", at) for at in points[1:])]:
        at = [{"x": place[0], "y": place[1]}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()


def within(drawing: Locator, x: float, y: float) -> tuple[float, float]:
    """A place in a drawing, by shares of its width and height."""
    drawing.evaluate("node => node.scrollIntoView({block: 'center'})")
    box = drawing.bounding_box()
    assert box is not None
    return box["x"] + x * box["width"], box["y"] + y * box["height"]


# Each drawing that chooses something, a place in it, and what a tap there changes.
CHOOSES = {
    ".live-plane .keys .board svg": ((0.92, 0.65), "query"),
    ".live-scaling .chart": ((0.25, 0.5), "width"),
    ".live-cost .shares": ((0.8, 0.5), "n"),
    ".live-cheating .chart": ((0.3, 0.5), "step"),
    ".live-tiles .board": ((0.5, 0.2), "query"),
    ".live-sentence .matrix": ((0.6, 0.4), "query"),
}


@pytest.mark.browser
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("drawing", CHOOSES)
def test_a_swipe_scrolls_and_a_tap_chooses(phone: Page, drawing: str) -> None:
    place, name = CHOOSES[drawing]
    before = states(phone)
    x, y = within(phone.locator(drawing).first, *place)
    top = phone.evaluate("scrollY")
    touch(phone, [(x, y - 12 * i) for i in range(9)])
    phone.wait_for_function(f"scrollY !== {top}")
    assert states(phone) == before
    x, y = within(phone.locator(drawing).first, *place)
    phone.mouse.click(x, y, button="right")
    assert states(phone) == before
    phone.wait_for_timeout(350)  # a tap just after a swipe would stop the page, not choose
    touch(phone, [(x, y)])
    figure = NAMES.index(drawing[6:].split(" ")[0])
    painted(phone)
    after = states(phone)
    assert after[figure][name] != before[figure][name]
    assert after[:figure] + after[figure + 1 :] == before[:figure] + before[figure + 1 :]


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_a_finger_drawn_across_chooses_all_the_way(phone: Page) -> None:
    shares = phone.locator(".live-cost .shares")
    x, y = within(shares, 0.3, 0.5)
    touch(phone, [(x + 15 * i, y) for i in range(8)])
    first = int(data(phone.locator(".live-cost"), "n"))
    touch(phone, [(x + 105 - 15 * i, y) for i in range(8)])
    assert int(data(phone.locator(".live-cost"), "n")) < first


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_on_a_phone_hand_picture_and_sentence_are_on_one_screen(phone: Page) -> None:
    found = phone.locator(".live").evaluate_all(
        """figures => figures.map(figure => {
          const stage = figure.querySelector(".stage");
          const boxes = [".sentence", "svg:not(.look-of), .board", ".controls, .handle"].map((what) => {
            const { top, bottom } = stage.querySelector(what).getBoundingClientRect();
            return [top, bottom];
          }).flat();
          return [figure.dataset.figure, Math.max(...boxes) - Math.min(...boxes)];
        })"""
    )
    assert [name for name, _ in found] == NAMES
    assert [(name, height) for name, height in found if height > 664 - 16] == []


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_on_a_phone_a_finger_hits_what_it_aims_at(phone: Page) -> None:
    for summary in phone.locator("summary").all():
        summary.click()
    small = phone.locator(".live :is(button, select, input, summary)").evaluate_all(
        """controls => controls.filter(control => control.checkVisibility()).map(control => {
          const target = control.type === "radio" ? control.closest("label") : control;
          const { width, height } = target.getBoundingClientRect();
          return [control.closest(".live").dataset.figure, target.textContent.trim(), width, height];
        }).filter(([, , width, height]) => width < 43.5 || height < 43.5)"""
    )
    assert small == []
    for summary in phone.locator("summary").all():
        summary.click()


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_nothing_is_clipped_at_any_width_or_size_of_text(browser: Browser, address: str) -> None:
    page = opened(browser, address)
    for summary in page.locator("summary").all():
        summary.click()
    # The longest numbers there are.
    for slider in page.locator(".live-cost input").all():
        slider.press("End")
    for size, width in itertools.product((16, 32), range(320, 1601, 80)):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(f"document.documentElement.style.fontSize = '{size}px'")
        page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)))")
        found = page.locator(".live").evaluate_all(
            """figures => figures.flatMap(figure => {
              const { right } = figure.getBoundingClientRect();
              const seen = [...figure.querySelectorAll("*")].filter((part) => part.checkVisibility()
                && !part.closest(".sr") && (part.tagName === "svg" || !part.closest("svg")));
              const over = seen.filter((part) => part.getBoundingClientRect().right > right + 2
                || (part.scrollWidth > part.clientWidth + 2 && getComputedStyle(part).overflowX === "hidden"
                    && part.clientWidth > 1));
              return over.map((part) => `${figure.dataset.figure} ${part.tagName} ${part.className}`);
            })"""
        )
        assert found == [], (width, size)
        assert page.evaluate("document.documentElement.scrollWidth") == width
    page.context.close()


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_bars_are_there_in_forced_colours(browser: Browser, address: str) -> None:
    page = opened(browser, address, forced_colors="active")
    bars = ".live :is(.track b, .bar b, .dot, .gauge b):not(:is([style*='width: 0'], [style*='width:0']))"
    gone = page.locator(bars).evaluate_all(
        """bars => bars.filter(bar => bar.getBoundingClientRect().width > 2).map(bar => {
          const ground = getComputedStyle(document.body).backgroundColor;
          const behind = getComputedStyle(bar.parentElement).backgroundColor;
          const own = getComputedStyle(bar).backgroundColor;
          return [bar.closest(".live").dataset.figure, own, behind, ground];
        }).filter(([, own, behind, ground]) => own === behind || own === ground)"""
    )
    assert page.locator(bars).count() > 20
    assert gone == []
    page.context.close()


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_one_sentence_is_read_out_when_the_hand_has_rested(desk: Page) -> None:
    assert desk.locator("output, [aria-live]").count() == 0
    desk.evaluate(
        """() => {
          globalThis.heard = [];
          for (const region of document.querySelectorAll(".live [role=status]"))
            new MutationObserver(() => heard.push(region.textContent)).observe(region, {childList: true, characterData: true});
        }"""
    )
    slider = desk.locator(".live-cost").get_by_role("slider", name="tokens")
    slider.focus()
    for _ in range(12):
        desk.keyboard.press("ArrowRight")
    assert desk.evaluate("heard") == []
    says = desk.locator(".live-cost .says").inner_text()
    desk.wait_for_function("heard.length > 0")
    desk.wait_for_timeout(100)
    assert [" ".join(text.split()) for text in desk.evaluate("heard")] == [" ".join(says.split())]


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_few_stops_and_arrow_keys(desk: Page) -> None:
    figure = desk.locator(".live-sentence")
    figure.get_by_text("By hand").click()
    figure.get_by_role("radio", name="it", exact=True).focus()
    figure.get_by_text("last word").first.click()
    stops = figure.evaluate(
        """figure => {
          const groups = new Set();
          return [...figure.querySelectorAll("button, select, input, summary")].filter((one) => {
            if (!one.checkVisibility() || one.tabIndex < 0 || one.disabled) return false;
            if (one.type !== "radio") return true;
            return !groups.has(one.name) && groups.add(one.name);
          }).length;
        }"""
    )
    assert stops <= 20
    first = figure.get_by_role("button", name="exchange the nouns’ values")
    first.focus()
    desk.keyboard.press("ArrowRight")
    assert figure.get_by_role("button", name="exchange the nouns’ keys").evaluate(
        "button => button === document.activeElement && button.tabIndex === 0"
    )
    figure.get_by_text("By hand").click()


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_a_changed_word_moves_its_line_and_an_exchanged_value_leaves_a_mark(
    browser: Browser, address: str
) -> None:
    page = opened(
        browser, address, reduced_motion="no-preference", viewport={"width": 1200, "height": 900}
    )
    figure = page.locator(".live-sentence")
    ends = page.evaluate(
        """async () => {
          const figure = document.querySelector(".live-sentence");
          const strongest = () => [...figure.querySelectorAll("circle.end")]
            .sort((a, b) => b.r.baseVal.value - a.r.baseVal.value)[0].cx.baseVal.value;
          const seen = [strongest()];
          figure.querySelector(".choice input:not(:checked)").click();
          for (let i = 0; i < 60; i++) {
            await new Promise(requestAnimationFrame);
            seen.push(strongest());
          }
          return seen;
        }"""
    )
    assert len({round(at) for at in ends}) > 5
    assert ends == sorted(ends)
    assert ends[-1] - ends[0] > 200
    assert figure.locator(".mark").all_inner_texts() == [""] * 12
    figure.get_by_role("button", name="exchange the nouns’ values").click()
    marks = [text for text in figure.locator(".mark").all_inner_texts() if text]
    assert marks == ["value of street", "value of animal"]
    typed = figure.get_by_label("your own sentence")
    typed.fill("The wolf did not enter the forest because it was too blorp")
    typed.press("Enter")
    assert figure.get_by_text("does not know “blorp”").is_visible()
    typed.fill("The wolf did not enter the forest because it was too hungry.")
    typed.press("Enter")
    assert data(figure, "answer") in ("wolf", "forest")
    assert figure.locator(".word label").all_inner_texts()[1] == "wolf"
    page.context.close()


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_a_state_has_an_address(browser: Browser, address: str) -> None:
    page = opened(browser, address, viewport={"width": 1200, "height": 900})
    complaints: list[str] = []
    listen(page, complaints)
    page.locator(".live-plane").get_by_role("button", name="2 q").click()
    page.locator(".live-sentence").get_by_role("button", name="exchange the nouns’ keys").click()
    page.locator(".live-tiles").get_by_role("button", name="step").click()
    links = {}
    for name in NAMES:
        page.locator(f".live-{name}").get_by_role("button", name="copy link").click()
        page.locator(f".live-{name} .said").get_by_text("what you see").wait_for()
        links[name] = page.url
        assert f"#fig={name}&" in page.url
    wanted = states(page)
    for name, link in links.items():
        other = browser.new_page()
        other.goto("about:blank")
        other.goto(link)
        other.locator(".live").nth(len(NAMES) - 1).wait_for()
        assert states(other)[NAMES.index(name)] == wanted[NAMES.index(name)]
        other.close()
    rest = states(page)
    for bad in (
        "fig=plane&query=9,9",
        "fig=tiles&query=99",
        "fig=heads&off=[[7,7]]",
        "fig=%&=",
        "fig=cost&d=7",
        "fig=sentence&words=a+b",
        "fig=sentence&edits=[{%22cut%22:{}}]",
        "fig=scaling&d_k=3",
    ):
        page.goto(f"{address}#{bad}")
        painted(page)
        assert states(page) == rest
    page.goto(f"{address}#fig=plane&query=0,0")
    page.wait_for_function("document.querySelector('.live-plane').dataset.query === '0.00,0.00'")
    page.locator(".live-plane").get_by_role("button", name="reset").click()
    assert states(page)[0]["query"] == "1.30,1.20"
    assert complaints == []
    page.context.close()


@pytest.mark.browser
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("name", NAMES)
def test_what_is_seen_is_saved_as_an_svg(desk: Page, name: str) -> None:
    figure = desk.locator(f".live-{name}")
    with desk.expect_download() as download:
        figure.get_by_role("button", name="save as SVG").click()
    assert download.value.suggested_filename == f"{name}.svg"
    text = Path(download.value.path()).read_text(encoding="utf-8")
    space = "{http://www.w3.org/2000/svg}"
    picture = ET.fromstring(text)
    assert picture.findtext(f"{space}desc") == figure.evaluate("figure => figure.says()")
    assert len(list(picture.iter(f"{space}text"))) >= 8
    assert "foreignObject" not in text
    assert "light-dark" not in text
    assert "var(--" not in text


def test_every_front_end_is_in_order() -> None:
    for name in NAMES:
        assert "export default" in bundle(name)
        assert f'liveFigures.modules["{name}"]' in module_script(name)


# A language without letters: each word that a figure says in it is one that its words do not hold.
SILENT = """
const silent = (said) => {
  if (typeof said === "string") return said.replace(/\\p{L}{2,}/gu, "¤");
  if (typeof said === "function") return (...given) => silent(said(...given));
  if (Array.isArray(said)) return said.map(silent);
  return said && typeof said === "object" ? Object.fromEntries(Object.entries(said).map(([k, v]) => [k, silent(v)])) : said;
};
"""


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_all_words_are_in_one_place(
    browser: Browser, stored: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in JS.rglob("*.js"):
        copy = tmp_path / "js" / path.relative_to(JS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "js" / "xx").mkdir()
    for path in (JS / "en").glob("*.js"):
        source = path.read_text(encoding="utf-8")
        name = re.search(r"export const (\w+Words) = \{", source)
        assert name, path.name
        source = source.replace(f"export const {name[1]} = {{", f"const {name[1]}Said = {{")
        ending = f"\nexport const {name[1]} = silent({name[1]}Said);\n"
        silence = (
            SILENT.replace("const silent", "export const silent")
            if path.name == "common.js"
            else ""
        )
        if path.name != "common.js":
            source = f'import {{ silent }} from "./common.js";\n{source}'
        (tmp_path / "js" / "xx" / path.name).write_text(silence + source + ending, encoding="utf-8")
    monkeypatch.setattr("figures.live.JS", tmp_path / "js")
    monkeypatch.setattr(bundle, "__defaults__", ("xx",))
    file = tmp_path / "silent.html"
    file.write_text(page_of(stored), encoding="utf-8")
    page = opened(browser, file.as_uri())
    said = page.locator(".live").evaluate_all(
        """figures => figures.map(figure => [figure.dataset.figure, [...figure.querySelectorAll("*")].flatMap((part) => [
            ...[...part.childNodes].filter((node) => node.nodeType === 3 && part.tagName !== "STYLE").map((node) => node.data),
            ...["aria-label", "aria-valuetext", "aria-roledescription", "title"].map((name) => part.getAttribute(name) ?? ""),
          ]).join(" ")])"""
    )
    encoder = figures.ExploreSentence()._encoder
    heads = figures.ExploreHeads()._encoder
    # The words of the sentences, the models' answers, and names of quantities are no language of ours.
    given = {*encoder.words, *heads.words, *heads.answers, *encoder.answers, "start"}
    given |= set(re.findall(r"[a-z]+", " ".join(heads.answers)))
    for name, text in said:
        words = set(re.findall(r"[A-Za-z]{2,}", text))
        assert words - given == set(), name
    page.context.close()


def linear(colour: str) -> Any:
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def oklab(rgb: Any) -> Any:
    """Ottosson 2020."""
    to_cones = [
        [0.4122214708, 0.2119034982, 0.0883024619],
        [0.5363325363, 0.6806995451, 0.2817188376],
        [0.0514459929, 0.1073969566, 0.6299787005],
    ]
    to_lab = [
        [0.2104542553, 1.9779984951, 0.0259040371],
        [0.7936177850, -2.4285922050, 0.7827717662],
        [-0.0040720468, 0.4505937099, -0.8086757660],
    ]
    return np.cbrt(np.clip(rgb @ np.array(to_cones), 0, None)) @ np.array(to_lab)


# Without green cones, by Machado et al. 2009.
DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
)


def test_one_palette_told_apart_by_everyone() -> None:
    source = (JS / "look.js").read_text(encoding="utf-8")
    light, dark = zip(
        *(
            re.search(rf"--{name}: light-dark\((#\w+), (#\w+)\)", source).groups()  # type: ignore[union-attr]
            for name in ("blue", "orange", "teal", "wine", "gold")
        ),
        strict=True,
    )
    assert light == (look.BLUE, look.ORANGE, look.TEAL, look.WINE, look.GOLD)
    style = look.STYLE.read_text(encoding="utf-8")
    assert re.findall(r"'(\w{6})'", style) == [colour[1:] for colour in light]
    for colours, ground in ((light, "#ffffff"), (dark, "#232833")):
        for seen in (np.eye(3), DEUTERANOPIA):
            labs = [oklab(np.clip(linear(colour) @ seen.T, 0, 1)) for colour in colours]
            apart = min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(labs, 2))
            assert apart > 0.1
        for colour in colours:
            one, other = sorted(
                float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (colour, ground)
            )
            assert (other + 0.05) / (one + 0.05) >= 4.5, colour


def test_what_is_not_a_number_never_reaches_the_page() -> None:
    for arguments in (
        {"query": (float("nan"), 0)},
        {"sharpness": float("inf")},
        {"keys": [[0, float("inf")]], "values": [[0, 0]]},
    ):
        with pytest.raises(ValueError, match="must be finite"):
            figures.ExplorePlane(**arguments)


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_labels_that_look_like_markup_are_shown_as_they_are(
    browser: Browser, tmp_path: Path
) -> None:
    labels = ["<!--<script>", "</script><b>x", "&amp;", "$$", "水"]
    path = tmp_path / "labels.html"
    path.write_text(page_of(figures.ExplorePlane(labels=labels).to_html()), encoding="utf-8")
    page = opened(browser, path.as_uri())
    assert page.locator(".weight-row:not(.head) > :first-child").all_inner_texts() == labels
    picture = page.locator(".live").evaluate("figure => figure.picture()")
    texts = [text.text for text in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert set(labels) <= set(texts)
    assert json.loads(re.search(r'json">(.*?)</script>', path.read_text())[1])["labels"] == labels  # type: ignore[index]
    page.context.close()
