"""The site for every reader: by axe-core, by keyboard, on a narrow screen and a wide one, in the light and the dark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .book_helpers import ROOT, SCHEMES, all_live, built_site, chapter_pages, pages, watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.needs("chromium")]

# What a reader looks at first, and one page of each other kind.
SHOWN = ["index.html", *chapter_pages(), "run.html", "glossary.html", "bibliography.html"]
SHOWN += ["search.html", "api.html", "api/attention_lib.html"]
WIDTHS = (375, 768, 1440)
SCREENSHOTS = ROOT / "build" / "screenshots"
each_scheme = pytest.mark.parametrize("scheme", SCHEMES)
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
                seen.page.wait_for_timeout(50)
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
    """What Tab reaches has an outline or a shadow while it has the focus."""
    with watched(browser, site.as_uri()) as seen:
        for name in ("index.html", *chapter_pages()):
            seen.page.goto((site / name).as_uri())
            all_live(seen.page)
            for slider in seen.page.locator("input[type=range]").all():
                assert slider.evaluate("el => el.labels[0]?.innerText || el.ariaLabel"), name
            seen.page.evaluate("document.body.focus()")
            for _ in range(25):
                seen.page.keyboard.press("Tab")
                assert seen.page.evaluate(FOCUS_IS_SEEN), name


# The element, or what is drawn in its place: a hidden radio button's label.
FOCUS_IS_SEEN = """() => {
  const element = document.activeElement;
  if (element === document.body) return true;
  const marked = (node) => {
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(node);
    return (outlineStyle !== "none" && parseFloat(outlineWidth) >= 1) || boxShadow !== "none";
  };
  const around = [element, element.nextElementSibling, element.parentElement, element.closest("label")];
  return around.filter(Boolean).some(marked);
}"""


@pytest.mark.parametrize("name", ["index.html", "chapters/01_queries_keys_values.html"])
def test_text_can_be_read_on_the_narrowest_screen(browser: Browser, site: Path, name: str) -> None:
    """At 320 px prose keeps its size, and a still picture scrolls in its box instead of shrinking away."""
    with watched(browser, site.as_uri(), width=320, height=640) as seen:
        seen.page.goto((site / name).as_uri())
        all_live(seen.page)
        sizes = seen.page.eval_on_selector_all(
            "main .bd-article p",
            "all => all.filter(p => p.offsetParent).map(p => parseFloat(getComputedStyle(p).fontSize))",
        )
        assert min(sizes) >= 13
        for box in seen.page.locator(".scroll").all():
            wide, shown = box.evaluate(
                "el => [el.querySelector('img').clientWidth, el.querySelector('img').width]"
            )
            assert wide >= min(shown, 300)
