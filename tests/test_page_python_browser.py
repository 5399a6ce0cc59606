"""Python in the pages, as a reader meets it in Chromium: every exercise, mishaps, what is kept, the line, who sees and hears it."""

from __future__ import annotations

import contextlib
import functools
import http.server
import itertools
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from book._ext.chapters import Chapter
from book.serve import Handler

from .book_helpers import ROOT, UNDER, Watched, built_site, watched
from .page_session import answers, said

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.needs("chromium", "pyodide")]

CHAPTERS = {
    chapter.number: chapter
    for chapter in map(Chapter.read, sorted((ROOT / "chapters").glob("0[1-5]_*.ipynb")))
}
ONE = "exercise-attend-one"
SCREENSHOTS = ROOT / "build" / "screenshots"


class Line:
    """A server of the site: packed and cached as a host's, as slow as `rate` says, broken off where `breaks` says."""

    def __init__(self, site: Path) -> None:
        line = self
        self.rate, self.breaks, self.sent = 0.0, "", {}  # type: float, str, dict[str, int]

        class Host(Handler):
            def translate_path(self, path: str) -> str:
                inside = path.removeprefix(UNDER) if path.startswith(UNDER) else "nowhere"
                return super().translate_path(f"/{inside}")

            def send(self, data: bytes) -> None:
                line.sent[self.path] = line.sent.get(self.path, 0) + len(data)
                if line.breaks and line.breaks in self.path:
                    line.breaks = ""
                    self.wfile.write(data[: len(data) // 2])
                    self.close_connection = True
                    return
                step = int(line.rate / 10) if line.rate else len(data)
                for start in range(0, len(data), step or 1):
                    self.wfile.write(data[start : start + step])
                    time.sleep(0.1 if line.rate else 0)

            def handle(self) -> None:
                with contextlib.suppress(ConnectionError):
                    super().handle()

            def log_message(self, format: str, *args: object) -> None:
                pass

        handler = functools.partial(Host, directory=str(site))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}{UNDER}"


@pytest.fixture(scope="module")
def site() -> Path:
    return built_site()


@pytest.fixture
def line(site: Path) -> Iterator[Line]:
    """The site behind a server of its own."""
    found = Line(site)
    thread = threading.Thread(target=found.server.serve_forever, daemon=True)
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


@contextlib.contextmanager
def opened(browser: Browser, line: Line, number: int = 1, **how: Any) -> Iterator[Watched]:
    """A chapter's page, with nothing of Python loaded."""
    with watched(browser, line.address, **how) as seen:
        seen.page.goto(address(line, number))
        yield seen


def address(line: Line, number: int = 1) -> str:
    return f"{line.address}chapters/{CHAPTERS[number].path.stem}.html"


def editor(page: Page, cell: str) -> Locator:
    """The editor of a cell and what belongs to it, opened if it is not yet."""
    box = page.locator(f".cell:has(+ .offer [data-cell={cell}]) .python-cell")
    if not box.count():
        page.locator(f"button[data-cell={cell}]").click()
        box.locator(".cm-content").wait_for()
    return box


def write(page: Page, cell: str, text: str) -> Locator:
    """Write over what the editor holds."""
    box = editor(page, cell)
    box.locator(".cm-content").focus()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.insert_text(text)
    return box


def reply(box: Locator, button: str = "Check") -> str:
    """What is said when the button is pressed."""
    box.get_by_role("button", name=button, exact=True).click()
    return heard(box)


def heard(box: Locator) -> str:
    box.locator(".python-reply:not(:has(.python-stage)) .python-said").wait_for()
    return box.locator(".python-said").inner_text().strip()


# --- every exercise


# What a reader may write in the place of a part of the solution.
MISTAKES = {
    "attend_one": ("/ len(query) ** 0.5", ""),
    "scaled_dot_product_attention": ("-np.inf", "0"),
    "cross_attention": ("x @ W_Q, context @ W_K", "context @ W_Q, x @ W_K"),
    "rotate": ("first * cos - second", "first * cos + second"),
    "softmax_jacobian": ("np.diag(weights) - ", "-"),
    "scaled_scores": (" / math.sqrt(k.shape[-1])", ""),
    "stable_softmax": (" - scores.max(axis=-1, keepdims=True)", ""),
    "run_rnn": (" + b", ""),
    "additive_scores": ("np.tanh(query @ W_q + keys @ W_k)", "(query @ W_q + keys @ W_k)"),
    "causal_mask": ("j <= i", "j < i"),
    "cached_step": ("[cache_v, v_t]", "[v_t, cache_v]"),
    "split_heads": ("x.reshape(len(x), heads, -1).swapaxes(0, 1)", "x.reshape(heads, len(x), -1)"),
    "merge_heads": ("x.swapaxes(0, 1)", "x"),
    "multi_head_attention": (" @ W_O", ""),
    "grouped_attention": (
        "np.repeat(a, len(q) // len(a), axis=0)",
        "np.tile(a, (len(q) // len(a), 1, 1))",
    ),
    "absorb_block": ("factor * l + weights.sum()", "l + weights.sum()"),
    "window_mask": (" & (j <= i)", ""),
    "linear_step": (" / (query @ total)", ""),
}


def code(chapter: Chapter) -> list[dict[str, Any]]:
    return [cell for cell in chapter.notebook["cells"] if cell["cell_type"] == "code"]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def attempts(number: int) -> list[dict[str, Any]]:
    """For each exercise of a chapter the stub, a wrong answer and the solution, as requests."""
    cells = code(CHAPTERS[number])
    asked = []
    for at, cell in enumerate(cells):
        if "exercise" in cell["metadata"].get("tags", []):
            name = re.findall(r"check\((\w+)\)", source(cell))[-1]
            above = [[before["id"], source(before)] for before in cells[:at]]
            right = source(cells[at + 1])
            wrong = right.replace(*MISTAKES[name])
            assert wrong != right
            for text in (source(cell), wrong, right):
                asked.append({"id": cell["id"], "source": text, "above": above})
    return asked


@pytest.mark.parametrize("number", CHAPTERS)
def test_every_exercise_is_answered_on_the_page(browser: Browser, line: Line, number: int) -> None:
    """The stub, a mistake, the solution: the page says what the check says in JupyterLab, word for word."""
    asked = attempts(number)
    right = [said(told).strip() for told in answers(asked)]
    with opened(browser, line, number) as seen:
        found = []
        for one in asked:
            box = write(seen.page, one["id"], one["source"])
            found.append(reply(box))
        assert found == right
        assert seen.errors == []
        assert seen.elsewhere == []
    for stub, wrong, solution in zip(found[::3], found[1::3], found[2::3], strict=True):
        assert "not written yet" in stub
        assert "not yet." in wrong
        assert "correct on" in solution


# --- mishaps


@pytest.fixture(scope="module")
def impatient(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cells of chapter 1, with two seconds of patience."""
    stored = site / "_static" / "page_python" / "cells" / f"{CHAPTERS[1].path.stem}.json"
    told = json.loads(stored.read_text(encoding="utf-8"))
    told["python"]["seconds"] = 2
    path = tmp_path_factory.mktemp("cells") / stored.name
    path.write_text(json.dumps(told), encoding="utf-8")
    return path


MISHAPS = {
    "def attend_one(query, keys, values):\n    return values[0]": "Nothing was checked: end your answer with the line check(…)",
    "input('name? ')": "input() has no keyboard on this page",
    "for i in range(1_000_000):\n    print(i)": "… 999,680 lines are left out here …",
    "y = (1,\n": "Line 1: y = (1,\nSyntaxError: '(' was never closed",
    "def f():\n    return f()\n\n\nf()": "RecursionError",
    "import torch": "torch is not on this page: open the chapter in JupyterLab.",
    "x = []\nwhile True:\n    x.append(bytearray(10**8))": "MemoryError: there is no more memory",
    "1 / 0": "Line 1: 1 / 0\nZeroDivisionError: division by zero",
    "exit()": "The code ended itself",
    "import js\njs.fetch('http://127.0.0.1:9/')": "Error",
    "from pyodide.http import open_url\nopen_url('http://127.0.0.1:9/')": "Error",
    "print('<img src=x onerror=alert(1)>')": "<img src=x onerror=alert(1)>",
}


def test_mishaps_get_a_sentence_and_the_next_check_works(
    browser: Browser, line: Line, impatient: Path
) -> None:
    with opened(browser, line) as seen:
        seen.page.route("**/cells/*.json", lambda route: route.fulfill(path=impatient))
        box = write(seen.page, ONE, "print('begun')\nwhile True:\n    pass")
        assert "No answer in 2 seconds, so Python was stopped" in reply(box)
        box.get_by_role("button", name="Run it for up to 60 seconds").click()
        box.locator(".python-said", has_text="begun").wait_for()
        box.get_by_role("button", name="Stop").click()
        assert "Stopped. What you wrote is kept" in heard(box)
        assert "while True" in box.locator(".cm-content").inner_text()
        for text, sentence in MISHAPS.items():
            assert sentence in reply(write(seen.page, ONE, text)), text
            assert reply(write(seen.page, ONE, "print(6 * 7)")) == "42", text
        assert seen.elsewhere == []
        assert seen.page.locator(".python-said img").count() == 0


def test_cells_are_edited_and_run(browser: Browser, line: Line) -> None:
    """What they need runs first; pictures are drawn; what they print is what is stored."""
    cells = {cell["id"]: cell for cell in code(CHAPTERS[1])}
    with opened(browser, line) as seen:
        page = seen.page
        for name in ("matrix", "two-sentences", "nothing-relevant"):
            stored = "".join("".join(output["text"]) for output in cells[name]["outputs"])
            assert reply(editor(page, name), "Run") == stored.strip()
        assert "Needs 3 cells above: run first." in editor(page, "nothing-relevant").inner_text()
        box = editor(page, "weights-figure")
        reply(box, "Run")
        picture = box.locator(".python-said img")
        alt = picture.get_attribute("alt") or ""
        assert alt.startswith("Weights of three queries over five keys.")
        assert picture.evaluate("it => it.decode().then(() => it.naturalWidth)") > 100
        assert page.locator("button[data-cell=plane], button[data-cell=questions]").count() == 0
        changed = "query = np.array([9.0, 0, 9, 0])\nprint(query)"
        write(page, "by-hand", changed)
        reply(write(page, "loop", "print(query.sum())"), "Run")
        assert "18.0" in editor(page, "loop").locator(".python-said").inner_text()
        assert seen.errors == []


# --- what is kept


def test_what_is_written_stays(browser: Browser, line: Line) -> None:
    """After a reload, in a second tab, there and back; and what was written for another version of the cell is offered."""
    with opened(browser, line) as seen:
        page = seen.page
        write(page, ONE, "mine = 1")
        page.reload()
        text = page.locator(".cm-content")
        assert text.inner_text() == "mine = 1"
        assert page.locator(".python-cell").count() == 1
        second = page.context.new_page()
        second.goto(address(line))
        assert second.locator(".cm-content").inner_text() == "mine = 1"
        write(second, ONE, "mine = 2")
        page.wait_for_function("document.querySelector('.cm-content').innerText == 'mine = 2'")
        page.goto(f"{line.address}index.html")
        page.go_back()
        assert text.inner_text() == "mine = 2"
        page.evaluate(
            """() => { const [key] = Object.keys(localStorage).filter(it => it.startsWith("book "));
            localStorage.setItem(key + "-of-old", localStorage.getItem(key)); localStorage.removeItem(key); }"""
        )
        page.reload()
        page.locator(".python-note", has_text="has changed since you wrote in it").wait_for()
        assert "def attend_one" in text.inner_text()
        page.get_by_role("button", name="Put back what you wrote").click()
        assert text.inner_text() == "mine = 2"
        editor(page, ONE).get_by_role("button", name="Start again").click()
        assert "def attend_one" in text.inner_text()
        assert page.evaluate("Object.keys(localStorage).filter(it => it.startsWith('book '))") == []
        assert seen.errors == []


def test_a_browser_that_keeps_nothing_says_so(browser: Browser, line: Line) -> None:
    with watched(browser, line.address) as seen:
        seen.page.add_init_script(
            "Object.defineProperty(window, 'localStorage', { get() { throw new Error('refused'); } })"
        )
        seen.page.goto(address(line))
        box = write(seen.page, ONE, "print(6 * 7)")
        assert "This browser keeps nothing for this page" in box.inner_text()
        assert box.locator(".cm-content").inner_text() == "print(6 * 7)"


# --- the line


def test_a_page_on_which_nobody_asks_loads_no_python(browser: Browser, line: Line) -> None:
    with opened(browser, line) as seen:
        seen.page.wait_for_load_state("networkidle")
        assert [path for path in line.sent if "python" in path] == []
        inline = seen.page.evaluate(
            "[...document.scripts].find(it => it.text.includes('opens-python')).text.length"
        )
        assert inline < 1100


def test_a_slow_line_shows_progress_and_a_broken_one_says_so(browser: Browser, line: Line) -> None:
    with opened(browser, line) as seen:
        box = write(seen.page, ONE, "print(6 * 7)")
        line.rate = 1e6 / 8
        box.get_by_role("button", name="Check").click()
        stage = box.locator(".python-stage")
        seen.page.wait_for_function(
            "(() => { const bar = document.querySelector('.python-stage progress'); return bar && bar.value > 1e5 && bar.value < bar.max; })()"
        )
        assert re.search(r"Loading Python: \d\.\d of \d\.\d MB", stage.inner_text())
        box.get_by_role("button", name="Stop").click()
        assert "Stopped" in heard(box)
        line.rate, line.breaks = 0, "numpy"
        assert "Python could not be loaded" in reply(box)
        assert reply(box) == "42"


def test_from_files_and_without_scripts_the_page_says_what_it_said(
    browser: Browser, site: Path, line: Line
) -> None:
    page_file = site / "chapters" / f"{CHAPTERS[1].path.stem}.html"
    for where, scripts in ((page_file.as_uri(), True), (address(line), False)):
        with watched(browser, where.partition("chapters/")[0], scripts=scripts) as seen:
            seen.page.goto(where)
            assert (
                seen.page.get_by_text("This check runs in Python, with the notebook").count() == 4
            )
            assert seen.page.locator("button.opens-python:visible").count() == 0
            assert seen.page.locator(".on-page:visible").count() == 0


# --- every reader


def test_by_keyboard_alone(browser: Browser, line: Line) -> None:
    with opened(browser, line) as seen:
        page = seen.page
        page.locator(f"[data-cell={ONE}]").focus()
        page.keyboard.press("Enter")
        page.wait_for_function("document.activeElement.matches('.cm-content')")
        page.keyboard.press("ControlOrMeta+A")
        page.keyboard.type("if 8 / 4:\nprint(8 / 4)")
        text = page.locator(".cm-content").inner_text()
        assert text == "if 8 / 4:\n    print(8 / 4)"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.matches('.cm-content')")
        page.keyboard.press("Escape")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Check"
        page.keyboard.press("Enter")
        box = editor(page, ONE)
        assert heard(box) == "2.0"
        assert box.locator(".python-said").get_attribute("role") == "status"
        assert page.evaluate("document.activeElement.textContent") == "Check"
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("ControlOrMeta+A")
        page.keyboard.insert_text("print(3)")
        page.keyboard.press("Shift+Enter")
        box.locator(".python-said", has_text="3").wait_for()


def test_on_every_screen_and_on_paper(browser: Browser, line: Line) -> None:
    import axe_playwright_python

    axe = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    with opened(browser, line) as seen:
        page = seen.page
        wrong = '"""A text."""\nfor x in range(2):  # a comment\n    print(x, None)\nprint("y" * 200)\n1 / 0'
        box = write(page, ONE, wrong)
        assert "ZeroDivisionError" in reply(box)
        editor(page, "matrix")
        page.evaluate(axe)
        for scheme, width in itertools.product(("light", "dark"), (375, 1440)):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") == width
            found = page.evaluate("axe.run('.python-cell', { resultTypes: ['violations'] })")
            assert [(v["id"], v["nodes"][0]["html"][:90]) for v in found["violations"]] == []
            box.scroll_into_view_if_needed()
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=SCREENSHOTS / f"editor-{scheme}-{width}.png")
        page.emulate_media(media="print")
        assert not box.locator(".python-editor, .python-buttons").first.is_visible()
        printed = page.locator(f".cell:has(+ .offer [data-cell={ONE}]) .cell_input pre").first
        assert printed.is_visible()
        assert printed.inner_text().strip() == wrong
        assert seen.errors == []
