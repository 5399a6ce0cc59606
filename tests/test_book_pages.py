"""What the pages do besides their figures: bar, drawers, search, paper, weight, and each by touch."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from book import printing

from .book_helpers import all_live, built_site, chapter_pages, pages, served, watched
from .live_helpers import painted

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

pytestmark = [pytest.mark.browser, pytest.mark.needs("chromium")]
FIRST = chapter_pages()[1]


@pytest.fixture(scope="module")
def site() -> Path:
    return built_site()


def test_a_page_says_what_it_is(site: Path) -> None:
    """One viewport, a title that names the book once, a description of its own, and the same for who links to it."""
    seen = set()
    for name in pages(site):
        html = (site / name).read_text(encoding="utf-8")
        assert html.count('name="viewport"') == 1, name
        title = re.findall(r"<title>(.*?)</title>", html)
        assert len(title) == 1
        assert title[0].count("Self-attention, measured") == 1, name
        (said,) = re.findall(r'<meta name="description" content="([^"]*)"', html)
        assert 40 <= len(said) <= 170, (name, said)
        assert "<" not in said
        assert re.findall(r'property="og:description" content="([^"]*)"', html) == [said]
        assert 'property="og:title"' in html
        if name in chapter_pages():
            seen.add(said)
    assert len(seen) == len(chapter_pages())


def test_the_home_page_says_what_each_chapter_gives(site: Path) -> None:
    html = (site / "index.html").read_text(encoding="utf-8")
    entries = re.findall(
        r"(?s)<li><a href=\"(chapters/[^\"]+)\">(.*?)</a>(.*?)<p>(.*?)</p></li>", html
    )
    assert [href for href, *_ in entries] == chapter_pages()
    assert all(len(promise.split()) >= 8 for *_, promise in entries)
    assert sum("minutes" in time for _, _, time, _ in entries) >= 7


@pytest.mark.parametrize("width", [375, 1440])
def test_contents_follow_the_reader(browser: Browser, site: Path, width: int) -> None:
    """Also after a jump to the end and back; a drawer closes when a place is chosen in it."""
    with watched(browser, site.as_uri(), width=width) as seen:
        page = seen.page
        page.goto((site / FIRST).as_uri())
        all_live(page)
        contents = page.get_by_role("navigation", name="On this page")
        if width < 1000:
            assert not contents.is_visible()
            page.get_by_role("button", name="On this page").click()
        contents.get_by_role("link", name="Part 4").click()
        page.wait_for_function("scrollY > 5000")
        here = page.locator(".contents [aria-current]")
        page.wait_for_function(
            "document.querySelector('.contents [aria-current]')?.innerText.startsWith('Part 4')"
        )
        assert contents.is_visible() == (width > 1000)
        for place, words in (("document.documentElement.scrollHeight", "References"), ("0", None)):
            page.evaluate(f"scrollTo(0, {place})")
            page.wait_for_function(
                "words => (document.querySelector('.contents [aria-current]')?.innerText ?? null) === words",
                arg=words,
            )
        assert here.count() == 0
        if width < 1000:
            page.get_by_role("button", name="Chapters").click()
            chapters = page.get_by_role("navigation", name="Chapters")
            chapters.get_by_role("link", name="2 Why").click()
            page.wait_for_url("**/02_scaling.html")
            assert not chapters.is_visible()
            page.go_back()
            assert not chapters.is_visible()
        assert seen.errors == []


# Controls and links that stand alone, lower or narrower than a thumb needs; links within a sentence are as high as it is.
SMALL = """() => [...document.querySelectorAll(":is(a, button, summary, input, select, label, [tabindex='0']):not(.live *)")]
  .filter((el) => el.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !el.closest("label:not(:scope)")
    && !el.matches(".scroll, .formula, .skip-link, pre, .cell_output *") && getComputedStyle(el).display !== "inline")
  .map((el) => [el.closest("label") ?? el, el.getBoundingClientRect()])
  .filter(([el, box]) => Math.min(el.getBoundingClientRect().height, 44) < 44 || el.getBoundingClientRect().width < 44)
  .map(([el]) => el.outerHTML.slice(0, 120))"""


def test_a_thumb_finds_its_targets(browser: Browser, site: Path) -> None:
    context = browser.new_context(
        viewport={"width": 375, "height": 664}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    for name in (FIRST, "index.html", "search.html", "glossary.html"):
        page.goto((site / name).as_uri())
        all_live(page)
        for button in ("Chapters", "On this page"):
            if page.get_by_role("button", name=button).count():
                page.get_by_role("button", name=button).tap()
                assert page.evaluate(SMALL) == [], (name, button)
                page.keyboard.press("Escape")
    context.close()


def test_paper_is_light_and_says_all_without_grounds(browser: Browser, site: Path) -> None:
    """Printed from the dark: every word is dark, no background is needed to read it, nothing of the frame is left."""
    with watched(browser, site.as_uri(), scheme="dark") as seen:
        page = seen.page
        page.goto((site / FIRST).as_uri())
        all_live(page)
        for answer in page.locator(".Quiz label").all()[:2]:
            answer.click()
            answer.locator("xpath=..").get_by_role("button").click()
        assert page.evaluate(LIGHT_WORDS) != []
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        painted(page)
        assert page.evaluate(LIGHT_WORDS) == []
        assert (
            not page.locator(".page-bar, .drawer, footer, .headerlink")
            .locator("visible=true")
            .count()
        )


# Words too light for white paper: those with a contrast below 4.5 on white.
LIGHT_WORDS = """() => {
  const light = [];
  const paint = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const luminance = (colour) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const text = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const seen = new Map();
  while (text.nextNode()) {
    const el = text.currentNode.parentElement;
    if (!text.currentNode.data.trim() || el.closest("script, style, noscript, svg") || !el.checkVisibility()) continue;
    const colour = getComputedStyle(el).color;
    if (!seen.has(colour)) seen.set(colour, luminance(colour));
    if (1.05 / (seen.get(colour) + 0.05) < 4.5) light.push([colour, text.currentNode.data.trim().slice(0, 40)]);
  }
  return light;
}"""


def test_search_finds_sections_and_marks_the_place(browser: Browser, site: Path) -> None:
    """Chapters before the reference, by other names too; the hit is on the screen, and marked. The index is no burden of other pages."""
    pytest.importorskip("pagefind_bin")
    with served(site) as server, watched(browser, server.address) as seen:
        page = seen.page
        for words, chapter, part in (
            ("RoPE", "01_", "Part 4"), ("sliding window", "05_", "Part 4"), ("flash attention", "05_", "Tiles"),
        ):  # fmt: skip
            page.goto(f"{server.address}search.html?q={words.replace(' ', '+')}")
            page.locator("#search-summary", has_text="stands in").wait_for()
            groups = page.locator("#search-results h2").all_inner_texts()
            assert groups[0] == "Chapters"
            assert groups == [
                g for g in ("Chapters", "To look things up", "Reference") if g in groups
            ]
            hit = page.locator(
                f"#search-results a[href*='chapters/{chapter}']", has_text=part
            ).first
            assert hit.locator("xpath=..").locator("mark").count(), words
        hit.click()
        page.wait_for_function("CSS.highlights.get('found')?.size && scrollY > 1000")
        shown = page.evaluate(
            "[...CSS.highlights.get('found')].map(r => r.getBoundingClientRect()).filter(b => b.top > 50 && b.bottom < innerHeight).length"
        )
        assert shown >= 1
        page.goto(f"{server.address}search.html?q=zyzzyva")
        page.locator("#search-summary", has_text="Nothing in the book").wait_for()
        assert (seen.errors, seen.elsewhere) == ([], [])
        server.sent.clear()
        page.goto(server.address + FIRST)
        all_live(page)
        assert not [path for path in server.sent if "search" in path or "pagefind" in path]


@pytest.mark.parametrize(
    ("name", "most"), [("index.html", 400_000), *((n, 700_000) for n in chapter_pages())]
)
def test_a_page_weighs_little_before_its_figures(
    browser: Browser, site: Path, name: str, most: int
) -> None:
    """Uncompressed, all that comes of one visit but the live figures' modules and weights; and what stands before the first paint."""
    with served(site) as server, watched(browser, server.address) as seen:
        seen.page.goto(server.address + name)
        all_live(seen.page)
        sent = {path: size for path, size in server.sent.items() if "/live/" not in path}
        assert sum(sent.values()) <= most, sent
        blocking = seen.page.evaluate(
            "performance.getEntriesByType('resource').filter(r => r.renderBlockingStatus === 'blocking').map(r => r.name)"
        )
        styles = sum(
            server.sent[path] for path in server.sent if any(path in url for url in blocking)
        )
        assert styles < 60_000


def test_an_address_that_is_not_there_leads_home(browser: Browser, site: Path) -> None:
    """The page for it is whole wherever it is shown: styled, and its links lead into the book."""
    with served(site) as server, watched(browser, server.address) as seen:
        for lost in ("nowhere.html", "chapters/nowhere.html", "api/deep/nowhere"):
            answer = seen.page.goto(server.address + lost)
            assert answer is not None
            assert answer.status == 404
            assert seen.page.locator("h1").inner_text().startswith("No such page")
            assert (
                seen.page.locator("header.page-bar").evaluate("el => getComputedStyle(el).position")
                == "sticky"
            )
            seen.page.locator("article").get_by_role("link", name="home page").click()
            assert seen.page.url == server.address + "index.html"
        assert [said for said in seen.errors if "404" not in said] == []


def test_a_word_of_the_glossary_shows_its_entry(browser: Browser, site: Path) -> None:
    """By hover, focus and tap, once a part; it can be reached and dismissed, and a tap leaves the page where it is."""
    for touch in (False, True):
        context = browser.new_context(
            viewport={"width": 375, "height": 700}, has_touch=touch, is_mobile=touch
        )
        page = context.new_page()
        page.goto((site / FIRST).as_uri())
        all_live(page)
        part = page.locator("section:has(> h2#part-1-2)")
        words = part.locator("a.term").all_inner_texts()
        assert len(words) >= 3
        assert len({word.lower().removesuffix("s") for word in words}) == len(words)
        softmax = part.locator("a.term", has_text="softmax").first
        entry = page.locator(".meaning")
        softmax.scroll_into_view_if_needed()
        assert not entry.is_visible()
        if touch:
            softmax.tap()
        else:
            softmax.hover()
        assert "positive numbers that sum to 1" in entry.inner_text()
        box, width = entry.bounding_box(), page.evaluate("document.documentElement.clientWidth")
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert page.url.endswith(FIRST)
        page.keyboard.press("Escape")
        assert not entry.is_visible()
        softmax.blur()
        softmax.focus()
        assert entry.is_visible()
        entry.get_by_role("link").click()
        assert page.url.endswith("glossary.html#term-softmax")
        context.close()


def test_a_book_on_paper_has_its_solutions_and_answers_at_the_back(
    browser: Browser, site: Path, tmp_path: Path
) -> None:
    """Of all chapters, each under its own running head; whatever is linked is on paper too, or elsewhere."""
    for path in site.iterdir():  # the site itself is read by other tests
        (tmp_path / path.name).symlink_to(path)
    folder = tmp_path / "paper"
    folder.mkdir()
    chapters = [site / name for name in chapter_pages()]
    (folder / "sheet.html").write_text(printing.sheet(chapters), encoding="utf-8")
    with watched(browser, tmp_path.as_uri()) as seen:
        page = seen.page
        page.goto(f"{(folder / 'sheet.html').as_uri()}?print")
        page.emulate_media(media="print")
        assert page.locator("article:not(#back) .tag_solution").count() == 0
        solutions, answers = page.locator("#back > section").all()
        for path in chapters:
            html = path.read_text(encoding="utf-8")
            title = re.findall(r"<title>(.*?) — ", html)[0]
            assert f'@top-right {{ content: "{title}"' in page.content()
        assert (
            solutions.locator(".tag_solution").count()
            == page.get_by_text("The solution is at the back.").count()
            > 10
        )
        assert solutions.locator("pre").first.is_visible()
        assert answers.locator("h2").count() == len(chapters)
        questions = page.locator(".questions > ol > li").count()
        assert answers.locator("li").count() == questions > 40
        assert (
            page.evaluate(
                "[...document.querySelectorAll('[id]')].filter(el => document.getElementById(el.id) !== el).map(el => el.id)"
            )
            == []
        )
        assert page.locator("a[href$='.html'], a[href*='.html#']").count() == 0
        assert seen.errors == []
    names = {path.name for path in (site / "download").glob("*.pdf")}
    assert names == {f"{path.stem}.pdf" for path in chapters} | {"self-attention-book.pdf"}


def test_progress_is_kept_in_the_browser_and_can_be_erased(browser: Browser, site: Path) -> None:
    """Parts whose end was looked at, not those that were jumped over; questions answered; the way on."""
    with served(site) as server, watched(browser, server.address) as seen:
        page = seen.page
        page.goto(server.address + FIRST)
        all_live(page)
        assert page.locator(".progress, a.read").count() == 0
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        page.locator("section:has(> h2#part-1-1) > :last-child").scroll_into_view_if_needed()
        page.locator(".contents a.read").wait_for()
        page.locator(".Quiz label").first.click()
        page.locator(".Quiz").first.get_by_role("button", name="Check").click()
        page.goto(server.address + "index.html")
        said = page.locator(".chapter-list .progress")
        assert said.count() == 1
        assert re.match(
            r"1 of 5 parts read, 1 of \d+ questions answered · Go on at Part 2", said.inner_text()
        )
        said.get_by_role("link").click()
        page.wait_for_url("**/01_queries_keys_values.html#part-1-2")
        assert page.locator(".contents a.read").all_inner_texts()[0].startswith("Part 1")
        page.goto(server.address + "index.html")
        page.get_by_role("button", name="Erase").click()
        page.reload()
        assert page.locator(".progress, .erase").count() == 0
        assert (
            page.evaluate("Object.keys(localStorage).filter(key => key.startsWith('progress'))")
            == []
        )
        assert seen.errors == []


def test_a_lecture_sees_one_part_at_a_time(browser: Browser, site: Path) -> None:
    """Larger, by arrow keys, figures alive; solutions wait until they are asked for."""
    with watched(browser, site.as_uri()) as seen:
        page = seen.page
        page.goto((site / FIRST).as_uri() + "?slides")
        all_live(page)
        heads = page.locator("article :is(h1, h2)")
        assert heads.locator("visible=true").count() == 1
        assert page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") >= 20
        assert not page.locator(".page-bar").is_visible()
        page.keyboard.press("ArrowRight")
        assert heads.locator("visible=true").inner_text().startswith("Part 1")
        figure = page.locator(".live").first.bounding_box()
        assert figure is not None
        assert figure["width"] > 700
        assert figure["height"] > 300
        page.keyboard.press("ArrowRight")
        solutions = page.locator(".tag_solution").locator("visible=true")
        assert solutions.count() == 0
        page.keyboard.press("a")
        assert solutions.count() >= 2
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Escape")
        page.wait_for_url(f"**/{FIRST}#part-1-1")
        assert heads.locator("visible=true").count() > 5
        assert seen.errors == []


def test_a_figure_stands_alone_in_another_sites_frame(browser: Browser, site: Path) -> None:
    """Also sandboxed, in a narrow frame; and each live figure of the chapters has such a page."""
    cells = {
        cell
        for name in chapter_pages()
        for cell in re.findall(
            r'class="live-figure"[^>]* data-cell="([^"]+)"', (site / name).read_text("utf-8")
        )
    }
    assert {path.stem for path in (site / "embed").iterdir()} == cells
    assert len(cells) >= 8
    with served(site) as server, watched(browser, server.address) as seen:
        page = seen.page
        page.goto(server.address + "index.html")
        page.evaluate(
            "([src]) => document.body.replaceChildren(Object.assign(document.createElement('iframe'), {src, width: 340, height: 900, sandbox: 'allow-scripts'}))",
            [server.address + "embed/plane.html"],
        )
        frame = page.frame_locator("iframe")
        frame.locator(".live-plane").wait_for()
        assert frame.locator("html").evaluate("el => el.scrollWidth") <= 340
        assert (
            frame.get_by_role("link", name="Queries, keys and values").get_attribute("target")
            == "_top"
        )
        assert [said for said in seen.errors if "favicon" not in said] == []


def test_the_pages_style_leaves_live_figures_alone(browser: Browser, site: Path) -> None:
    """No rule for a class of the page meets an element within a figure, whose classes have the same names."""
    with served(site) as server, watched(browser, server.address) as seen:
        for name in ("index.html", *chapter_pages()):
            seen.page.goto(server.address + name)
            if all_live(seen.page):
                assert seen.page.evaluate(MEETS) == [], name


MEETS = """() => {
  const rules = (list) => [...list].flatMap((rule) => rule.cssRules?.length ? rules(rule.cssRules) : rule.selectorText ? [rule.selectorText] : []);
  const sheet = [...document.styleSheets].find(({ href }) => href?.includes("book.css"));
  const inside = [...document.querySelectorAll(".live *")];
  return rules(sheet.cssRules).flatMap((list) => list.split(/,(?![^(]*\\))/)).filter((selector) => /\\.[a-z]/.test(selector.replace(/:not\\([^)]*\\)/g, "")) && !selector.includes("::"))
    .filter((selector) => inside.some((el) => el.matches(selector)));
}"""


def test_under_a_strict_policy_a_page_says_what_does_not_run(browser: Browser, site: Path) -> None:
    """Figures, which need styles of their own, and questions; theme and contents work."""
    with served(site) as server, watched(browser, server.address) as seen:

        def strict(route: Route) -> None:
            got = route.fetch()
            route.fulfill(
                response=got,
                headers=got.headers | {"content-security-policy": "default-src 'self'"},
            )

        seen.page.route("**/*.html", strict)
        seen.page.goto(server.address + FIRST)
        for words in (
            "it cannot run in this browser (the host refuses its styles)",
            "The questions do not run here",
        ):
            seen.page.locator(".failed", has_text=words).first.wait_for()
        assert seen.page.locator(".live").count() == 0
        seen.page.get_by_role("button", name="Light or dark").click()
        assert seen.page.locator("html").get_attribute("data-theme") == "dark"
