"""The static book in headless Chromium, by the clock on the wall: beside each median stands its limit as the peer.

A page counts as answering when a choice made, or a slider moved, in its first live figure has changed what the figure says. A slider's move
counts as repainted when the frame after it has been painted. On a slow line (400 kbit/s, 400 ms, nothing cached or compressed) the first paint
and the first answer have limits of their own, and so have the bytes of a page without its live figures.
"""

from __future__ import annotations

import functools
import http.server
import shutil
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from . import page_python
from .harness import Result

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "book" / "_build" / "html"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ROUNDS, MOVES = 11, 51
FIRST, REPAINT = 1.5, 0.05  # seconds
SLOW = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
PAINT, ANSWER = 6.0, 12.0  # seconds on the slow line
HOME, CHAPTER = 0.4, 0.7  # millions of bytes

ANSWERING = """() => new Promise((done) => {
  const look = () => {
    const figure = document.querySelector(".live");
    const says = figure?.querySelector("[role=status], output");
    if (!says) return requestAnimationFrame(look);
    const before = figure.innerText;
    const choice = figure.querySelector("input[type=radio]:not(:checked)");
    const slider = figure.querySelector("input[type=range]");
    const down = slider?.value === slider?.max;
    const wait = () => {
      if (figure.innerText !== before) return done(performance.now());
      if (!choice) {
        if (down) slider.stepDown(); else slider.stepUp();
        slider.dispatchEvent(new Event("input", { bubbles: true }));
      }
      requestAnimationFrame(wait);
    };
    choice?.click();
    wait();
  };
  look();
})"""
# Whether a page that is still being read holds a live figure.
HAS_FIGURE = """() => new Promise((done) => {
  const ready = () => done(document.querySelector(".explore") !== null);
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", ready); else ready();
})"""
WEIGHT = """() => [performance.getEntriesByType("navigation")[0], ...performance.getEntriesByType("resource")]
  .filter((entry) => !entry.name.includes("/live/")).reduce((sum, entry) => sum + entry.decodedBodySize, 0)"""
MOVED = """(moves) => new Promise(async (done) => {
  const slider = document.querySelector(".live input[type=range]");
  const times = [];
  for (let i = 0; i < moves; i++) {
    await new Promise((next) => setTimeout(next, 20 + 7 * (i % 5)));
    const start = performance.now();
    if (i % 2) slider.stepDown(); else slider.stepUp();
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((painted) => requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = painted;
      port2.postMessage(0);
    }));
    times.push(performance.now() - start);
  }
  done(times);
})"""


def run() -> Iterator[Result]:
    """The home page and every chapter by its first live figure, and every chapter with a slider by that.

    Builds the site first if that was not done. Raises RuntimeError without a Chromium.
    """
    chromium = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if chromium is None:
        raise RuntimeError("the pages are measured in Chromium, which this machine lacks")
    if not (SITE / "index.html").exists():
        command = f"-m sphinx -EWq -d {SITE.parent / 'doctrees'} -b html book {SITE}"
        subprocess.run([sys.executable, *command.split()], cwd=ROOT, check=True)
    handler = functools.partial(Quiet, directory=str(SITE))
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        sync_playwright() as playwright,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        chapters = sorted(path.stem for path in (SITE / "chapters").glob("[0-9][0-9]_*.html"))
        for name in ("index", *(f"chapters/{stem}" for stem in chapters)):
            times = [answering(browser, f"{address}{name}.html") for _ in range(ROUNDS)]
            yield result(f"{name}: the first live figure answers", times, FIRST)
        for name in ("index", *(f"chapters/{stem}" for stem in chapters)):
            painted, answered, weight = slow_visit(browser, f"{address}{name}.html")
            yield result(f"{name}: painted, on a slow line", [painted], PAINT)
            if answered:
                yield result(f"{name}: answers, on a slow line", [answered], ANSWER)
            limit = HOME if name == "index" else CHAPTER
            yield Result(
                f"{name}: bytes before its figures", weight, limit, weight / limit, 1.0, unit="B"
            )
        for stem in chapters:
            times = moves(browser, f"{address}chapters/{stem}.html")
            if times:
                yield result(f"chapters/{stem}: a slider's move is painted", times, REPAINT)
        browser.close()
        server.shutdown()
        yield from page_python.run(playwright, chromium, SITE)


def answering(browser: Browser, url: str) -> float:
    """Seconds from the start of loading a page, nothing of it cached, until its first live figure answers."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(url, wait_until="commit")
    took: float = page.evaluate(ANSWERING)
    context.close()
    return took / 1000


def slow_visit(browser: Browser, url: str) -> tuple[float, float, float]:
    """Seconds until a page is painted, and until its first live figure answers, on the slow line; millions of bytes without the figures."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(60_000)
    line = context.new_cdp_session(page)
    line.send("Network.enable")
    line.send("Network.emulateNetworkConditions", SLOW)
    page.goto(url, wait_until="commit")
    answered = page.evaluate(ANSWERING) if page.evaluate(HAS_FIGURE) else 0.0
    page.wait_for_load_state("networkidle")
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    weight = page.evaluate(WEIGHT)
    context.close()
    return painted / 1000, answered / 1000, weight / 1e6


def moves(browser: Browser, url: str) -> list[float]:
    """Seconds that each of MOVES moves of the page's first slider took to be painted; none without a slider."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(url)
    if page.locator(".explore").count():
        page.wait_for_function("!document.querySelector('.explore:not(:has(.live))')")
    slider = page.locator(".live input[type=range]").first
    times: list[float] = []
    if slider.count():
        slider.scroll_into_view_if_needed()
        times = [took / 1000 for took in page.evaluate(MOVED, MOVES)]
    context.close()
    return times


def result(name: str, times: list[float], limit: float) -> Result:
    """The median beside its limit."""
    median = statistics.median(times)
    return Result(name, median, limit, median / limit, 1.0)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A file server that says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
