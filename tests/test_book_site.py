"""The site as a reader gets it: from a server under a sub-path, from the file system, without a network."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from tests.live_helpers import data, painted

from .book_helpers import all_live, built_site, chapter_pages, pages, served, watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Route

pytestmark = [pytest.mark.browser, pytest.mark.needs("chromium")]
each_chapter = pytest.mark.parametrize("name", chapter_pages(), ids=lambda name: name[9:11])


@pytest.fixture(scope="module")
def site() -> Path:
    return built_site()


class Links(HTMLParser):
    """Collects where a page leads (`to`), its ids, and pictures without alternative text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.to: list[str] = []
        self.ids: list[str] = []
        self.bare: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids += filter(None, [values.get("id")])
        self.to += filter(None, [values.get("href"), values.get("src")])
        if tag == "img" and len((values.get("alt") or "").split()) < 3:
            self.bare.append(values.get("src") or "")


@pytest.fixture(scope="module")
def links(site: Path) -> dict[str, Links]:
    return {name: Links((site / name).read_text(encoding="utf-8")) for name in pages(site)}


def test_no_link_is_broken(site: Path, links: dict[str, Links]) -> None:
    broken = []
    for name, found in links.items():
        for target in found.to:
            parts = urlsplit(target)
            if parts.scheme in ("http", "https", "data", "mailto"):
                continue
            path = unquote(urljoin(f"/{name}", parts.path or f"/{name}"))[1:]
            if not (site / path).is_file():
                broken.append(f"{name}: {target}")
            elif (
                parts.fragment and path in links and unquote(parts.fragment) not in links[path].ids
            ):
                broken.append(f"{name}: {target} (no such place)")
    assert broken == []
    assert sum(len(found.to) for found in links.values()) > 500


def test_ids_are_unique_and_pictures_have_words(links: dict[str, Links]) -> None:
    for name, found in links.items():
        assert len(found.ids) == len(set(found.ids)), name
        assert found.bare == [], name


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """No page or style sheet names a script, a style or a font of another host; links may lead there."""
    loads = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=[\"'](?:https?:)?//[^\"']+")
    for name in pages(site):
        assert loads.findall((site / name).read_text(encoding="utf-8")) == [], name
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", text), path.name


def test_every_page_has_its_icon(site: Path, links: dict[str, Links]) -> None:
    """Without one a browser asks for /favicon.ico, which no page under a sub-path can answer."""
    for name, found in links.items():
        assert any(to.endswith("_static/favicon.svg") for to in found.to), name
    assert (site / "_static" / "favicon.svg").stat().st_size < 1000


def test_hosts_publish_it_whole_and_it_takes_little_room(site: Path) -> None:
    assert (site / ".nojekyll").exists()
    python = site / "_static" / "python"
    assert sum(p.stat().st_size for p in site.rglob("*") if not p.is_relative_to(python)) < 30e6
    assert sum(p.stat().st_size for p in python.rglob("*")) < 25e6


def test_every_page_from_a_server_under_a_sub_path(browser: Browser, site: Path) -> None:
    with served(site) as server, watched(browser, server.address) as seen:
        for name in pages(site):
            seen.page.goto(server.address + name)
            all_live(seen.page)
            assert (name, seen.errors, seen.elsewhere) == (name, [], [])


def test_every_page_from_the_file_system(browser: Browser, site: Path) -> None:
    with watched(browser, site.as_uri()) as seen:
        for name in pages(site):
            seen.page.goto((site / name).as_uri())
            all_live(seen.page)
            assert (name, seen.errors, seen.elsewhere) == (name, [], [])


@each_chapter
def test_every_live_figure_is_moved_by_keyboard(browser: Browser, site: Path, name: str) -> None:
    """Some key on its first controls changes both what the figure says and its picture."""
    with watched(browser, site.as_uri()) as seen:
        seen.page.goto((site / name).as_uri())
        count = all_live(seen.page)
        assert count == len(re.findall('class="explore"', (site / name).read_text("utf-8")))
        assert "Run this cell in JupyterLab" not in seen.page.inner_text("main")
        for figure in seen.page.locator(".explore .live").all():
            assert moved(figure), f"{data(figure, 'figure')}: no key moves it"
        assert seen.errors == []


def moved(figure: Locator) -> bool:
    """Whether keys on one of the figure's controls change its text and its picture."""
    look = """el => [el.innerText, [...el.querySelectorAll('svg, canvas, [style*="--"], .strip')]
      .map(node => node.outerHTML).join()]"""
    for control in figure.locator("input, select, button").all():
        if not control.is_enabled() or not control.is_visible():
            continue
        before = figure.evaluate(look)
        kind = control.get_attribute("type") or control.evaluate("el => el.tagName")
        control.focus()
        for key in (
            ("Space",)
            if kind in ("checkbox", "submit", "button", "BUTTON")
            else ("ArrowRight", "ArrowLeft")
        ):
            figure.page.keyboard.press(key)
            painted(figure.page)
            after = figure.evaluate(look)
            if before[0] != after[0] and before[1] != after[1]:
                return True
    return False


def test_the_strongest_line_moves_from_animal_to_street(browser: Browser, site: Path) -> None:
    name = "chapters/01_queries_keys_values.html"
    with watched(browser, site.as_uri()) as seen:
        seen.page.goto((site / name).as_uri())
        figure = seen.page.locator("#figure-1-1 .live-sentence")
        figure.wait_for()
        assert (data(figure, "query"), data(figure, "strongest")) == ("it", "animal")
        figure.get_by_role("group", name="last word").get_by_role("radio", name="tired").focus()
        seen.page.keyboard.press("ArrowRight")
        seen.page.wait_for_function(
            "document.querySelector('.live-sentence').dataset.strongest == 'street'"
        )
        assert "“it” looks at “street”" in figure.inner_text()


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 800)])
def test_the_home_page_shows_the_sentence_above_the_fold(
    browser: Browser, site: Path, width: int, height: int
) -> None:
    with watched(browser, site.as_uri(), width=width, height=height) as seen:
        seen.page.goto((site / "index.html").as_uri())
        figure = seen.page.locator(".live-sentence")
        figure.wait_for()
        for part in (
            figure.locator(".controls"),
            figure.locator(".picture"),
            figure.locator(".says"),
        ):
            box = part.bounding_box()
            assert box is not None
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= height
        figure.get_by_role("group", name="last word").get_by_role("radio", name="wide").check()
        seen.page.wait_for_function(
            "document.querySelector('.live-sentence').dataset.strongest == 'street'"
        )


@each_chapter
def test_questions_answer_without_a_kernel(browser: Browser, site: Path, name: str) -> None:
    with watched(browser, site.as_uri()) as seen:
        seen.page.goto((site / name).as_uri())
        questions = seen.page.locator(".Quiz")
        assert questions.count() >= 5
        for question in questions.all():
            question.locator("label").first.click()
            assert not question.locator(".Feedback").inner_text().strip()
            question.get_by_role("button", name="Check").click()
            assert question.locator(".Feedback").inner_text().strip()
        assert seen.errors == []


@pytest.mark.parametrize(
    ("words", "title"),
    [("softmax", "Why divide by the square root"), ("online softmax", "The quadratic cost")],
)
def test_search_works_without_a_server(
    browser: Browser, site: Path, words: str, title: str
) -> None:
    with watched(browser, site.as_uri()) as seen:
        seen.page.goto(f"{(site / 'search.html').as_uri()}?q={words.replace(' ', '+')}")
        seen.page.locator("#search-results li a").first.wait_for()
        seen.page.wait_for_function(
            "title => document.querySelector('#search-results').innerText.includes(title)",
            arg=title,
        )
        found = seen.page.locator("#search-results li a").all_inner_texts()
        assert len(found) < len(pages(site))
        assert seen.errors == []


@each_chapter
def test_what_needs_a_kernel_says_so_and_offers_a_way(site: Path, name: str) -> None:
    html = (site / name).read_text(encoding="utf-8")
    exercises = len(re.findall(r'class="[^"]*\btag_exercise\b', html))
    assert html.count("This check runs in Python") == exercises
    assert html.count("Show the solution") == len(re.findall(r'class="[^"]*\btag_solution\b', html))
    notebook = site / "download" / f"{Path(name).stem}.ipynb"
    source = Path(__file__).parent.parent / "chapters" / notebook.name
    assert notebook.read_bytes() == source.read_bytes()
    paper = notebook.with_suffix(".pdf").read_bytes()
    assert paper.startswith(b"%PDF")
    assert len(paper) > 50_000


@pytest.mark.parametrize("name", ["index.html", *chapter_pages()])
def test_a_page_is_light_and_lies_still(browser: Browser, site: Path, name: str) -> None:
    """Under 2.5 MB as sent, and nothing shifts by more than 0.1, though modules come late."""
    for width in (1280, 375):
        with served(site) as server, watched(browser, server.address, width=width) as seen:
            seen.page.route("**/modules/*.js", late)
            seen.page.add_init_script(SHIFTS)
            seen.page.goto(server.address + name)
            all_live(seen.page)
            painted(seen.page)
            assert seen.page.evaluate("globalThis.shifts") <= 0.1
            assert sum(server.sent.values()) < 2_500_000


def test_each_live_figure_stands_alone(browser: Browser, site: Path) -> None:
    """Without one file the figure that needs it keeps its picture and says so; the next one is live."""
    for lost, said in (("weights/pronoun-0.js", "pronoun-0.js could not be loaded"),
                       ("modules/sentence.js", "sentence.js could not be loaded")):  # fmt: skip
        with watched(browser, site.as_uri()) as seen:
            seen.page.route(f"**/{lost}", lambda route: route.abort())
            seen.page.goto((site / chapter_pages()[1]).as_uri())
            seen.page.locator(".live-plane").wait_for()
            still = seen.page.locator(".explore:not(:has(.live))")
            assert still.get_by_role("img").first.is_visible()
            assert said in still.get_by_role("status").inner_text()
            high = still.evaluate("el => el.offsetHeight - el.querySelector('img').offsetHeight")
            assert 0 < high < 120  # no hole is left where the live one would have been


def late(route: Route) -> None:
    """Answer after the page has been painted."""
    time.sleep(0.4)
    route.continue_()


SHIFTS = """
globalThis.shifts = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) globalThis.shifts += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""
