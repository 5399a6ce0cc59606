"""The site for every reader: by axe-core, by keyboard, on a narrow screen and a wide one, in the light and the dark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .book_helpers import ROOT, SCHEMES, all_live, built_site, chapter_pages, pages, watched
from .live_helpers import painted

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.needs("chromium")]

# What a reader looks at first, and one page of each other kind.
SHOWN = ["index.html", *chapter_pages(), "run.html", "glossary.html", "bibliography.html"]
SHOWN += ["search.html", "api.html", "api/attention_lib.html"]
WIDTHS = (375, 768, 1440)
SCREENSHOTS = ROOT / "build" / "screenshots"
each_scheme = pytest.mark.parametrize("scheme", SCHEMES)
each_chapter = pytest.mark.parametrize("name", chapter_pages(), ids=lambda name: name[9:11])
each_shown = pytest.mark.parametrize("name", SHOWN)


@pytest.fixture(scope="module")
def site() -> Path:
    return built_site()


def open_all(page: Page) -> None:
    """Open everything that is folded, so that it is looked at too."""
    page.evaluate("document.querySelectorAll('main details').forEach(it => it.open = true)")


@each_scheme
@each_shown
def test_axe_finds_nothing(browser: Browser, site: Path, name: str, scheme: str) -> None:
    """No rule of axe-core is broken, by our content or by the theme's: none is excepted.

    In the dark only colours differ. Coloured code is looked at on one page: all others have the same few colours.
    """
    import axe_playwright_python

    axe = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    rules = {} if scheme == "light" else {"runOnly": ["color-contrast"]}
    left_out = [] if name.startswith("chapters/00") else [[".highlight"]]
    with watched(browser, site.as_uri(), scheme=scheme) as seen:
        seen.page.goto((site / name).as_uri())
        all_live(seen.page)
        open_all(seen.page)
        seen.page.evaluate(axe)
        found = seen.page.evaluate(
            "([exclude, options]) => axe.run({include: [['html']], exclude}, {...options, resultTypes: ['violations']})",
            [left_out, rules],
        )
    broken = [
        f"{rule['id']}: {node['target']}: {node['html'][:120]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]
    assert broken == []
    assert found["testEngine"]["name"] == "axe-core"


@each_scheme
def test_no_page_scrolls_sideways(browser: Browser, site: Path, scheme: str) -> None:
    """At any width, with everything open; wide formulas, code and tables scroll in boxes of their own."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with watched(browser, site.as_uri(), scheme=scheme) as seen:
        for name in SHOWN if scheme == "dark" else pages(site):
            seen.page.set_viewport_size({"width": 320, "height": 800})
            seen.page.goto((site / name).as_uri())
            all_live(seen.page)
            widths = (320, *WIDTHS) if name in SHOWN else (320, 1440)
            for width in widths:
                seen.page.set_viewport_size({"width": width, "height": 800})
                painted(seen.page)
                if name in SHOWN and width in WIDTHS:
                    picture = f"{name.replace('/', '-').removesuffix('.html')}-{width}-{scheme}.jpg"
                    seen.page.screenshot(path=SCREENSHOTS / picture, type="jpeg", quality=60)
                found = seen.page.evaluate("document.documentElement.scrollWidth")
                assert (name, width, found) == (name, width, width)


@each_scheme
def test_figures_have_opaque_grounds(browser: Browser, site: Path, scheme: str) -> None:
    """A still picture, whose ink is dark, stands on white in the light and in the dark."""
    with watched(browser, site.as_uri(), scheme=scheme) as seen:
        for name in chapter_pages():
            seen.page.goto((site / name).as_uri())
            for picture in seen.page.locator(".still-figure img").all():
                ground = picture.evaluate("el => getComputedStyle(el).backgroundColor")
                assert ground == "rgb(255, 255, 255)"


def test_every_slider_has_a_name_and_focus_is_seen(browser: Browser, site: Path) -> None:
    """What Tab reaches first, and every control of a live figure, looks otherwise while it has the focus."""
    controls, live = 0, ""
    with watched(browser, site.as_uri()) as seen:
        for name in ("index.html", *chapter_pages()):
            seen.page.goto((site / name).as_uri())
            all_live(seen.page)
            for slider in seen.page.locator("input[type=range]").all():
                assert slider.evaluate("el => el.labels[0]?.innerText || el.ariaLabel"), name
            for _ in range(12):
                seen.page.keyboard.press("Tab")
                assert seen.page.evaluate(UNSEEN, None) == [], name
            assert seen.page.evaluate(UNSEEN, CONTROLS) == [], name
            here = seen.page.locator(CONTROLS).count()
            controls, live = controls + here, name if here else live
        assert controls > 50
        seen.page.goto((site / live).as_uri())
        all_live(seen.page)
        seen.page.add_style_tag(
            content="html:root body * { outline: 0 !important; box-shadow: none !important }"
        )
        assert len(seen.page.evaluate(UNSEEN, CONTROLS)) > 3


CONTROLS = ".live :is(input, select, button, [tabindex='0']):not(:disabled)"
# What has the focus, or else each that the selector finds, and looks the same with it and without; what is drawn in
# its place counts, such as a hidden radio button's label, if it can be seen.
UNSEEN = """(selector) => {
  const look = (element) => {
    const around = [element, element.previousElementSibling, element.nextElementSibling, element.parentElement, element.closest("label")];
    const seen = around.filter((node) => node?.checkVisibility({ opacityProperty: true, visibilityProperty: true })
      && node.getBoundingClientRect().width > 4);
    return JSON.stringify(seen.map((node) => {
      const style = getComputedStyle(node);
      const outline = style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 1 ? "" :
        [style.outlineStyle, style.outlineWidth, style.outlineColor];
      return [outline, style.boxShadow, style.borderColor, style.backgroundColor, style.stroke, style.strokeWidth];
    }));
  };
  const same = (element) => {
    element.focus();
    if (document.activeElement !== element) return false;
    const focused = look(element);
    element.blur();
    const left = look(element);
    element.focus();
    return focused === left;
  };
  const all = selector ? [...document.querySelectorAll(selector)].filter((el) => el.checkVisibility())
    : [document.activeElement].filter((element) => element !== document.body);
  return all.filter(same).map((element) => element.outerHTML.slice(0, 120));
}"""


@each_chapter
def test_without_scripts_a_page_says_so_and_has_no_holes(
    browser: Browser, site: Path, name: str
) -> None:
    with watched(browser, site.as_uri(), scripts=False) as seen:
        seen.page.goto((site / name).as_uri())
        said = seen.page.locator("article noscript").all()
        assert all(note.is_visible() for note in said)
        assert any("The questions need JavaScript" in note.inner_text() for note in said)
        for figure in seen.page.locator(".explore").all():
            holds = [part.bounding_box() for part in figure.locator("> *:visible").all()]
            box = figure.bounding_box()
            assert box is not None
            assert box["height"] - sum(part["height"] for part in holds if part) < 60


def test_questions_are_read_from_the_left_and_print_whole(browser: Browser, site: Path) -> None:
    with watched(browser, site.as_uri()) as seen:
        seen.page.goto((site / chapter_pages()[1]).as_uri())
        gaps = seen.page.eval_on_selector_all(".MCButton", GAPS)
        assert len(gaps) >= 10
        for before, between in gaps:
            assert before <= 14
            assert 6 <= between <= 16
        seen.page.emulate_media(media="print")
        for kept in (".Quiz", ".cell_input", "figure", ".equation"):
            breaks = seen.page.eval_on_selector_all(
                kept, "all => all.map(one => getComputedStyle(one).breakInside)"
            )
            assert set(breaks) == {"avoid"}, kept


# From an answer's edge to its circle, and from there to its words.
GAPS = """all => all.map(answer => {
  const [input, words] = answer.children;
  const [edge, circle] = [answer, input].map(el => el.getBoundingClientRect());
  const range = document.createRange();
  range.selectNodeContents(words);
  return [circle.left - edge.left, range.getBoundingClientRect().left - circle.right];
})"""


@pytest.mark.parametrize("name", ["index.html", "chapters/01_queries_keys_values.html"])
def test_text_can_be_read_on_the_narrowest_screen(browser: Browser, site: Path, name: str) -> None:
    """At 320 px prose keeps its size, and a still picture scrolls in its box instead of shrinking away."""
    with watched(browser, site.as_uri(), width=320, height=640) as seen:
        seen.page.goto((site / name).as_uri())
        all_live(seen.page)
        sizes = seen.page.eval_on_selector_all(
            "article p",
            "all => all.filter(p => p.offsetParent).map(p => parseFloat(getComputedStyle(p).fontSize))",
        )
        assert min(sizes) >= 13
        for box in seen.page.locator(".scroll").all():
            wide, shown = box.evaluate(
                "el => [el.querySelector('img').clientWidth, el.querySelector('img').width]"
            )
            assert wide >= min(shown, 300)
