"""Python in the static book: from the press of *Check* to the reply, cold, on a second visit, and from then on; and what is sent for it.

The site is served as `make read` serves it; each cold visit is that of a new browser.
"""

from __future__ import annotations

import functools
import http.server
import statistics
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import BrowserContext, Playwright

from book.serve import Handler

from .harness import Result

ROUNDS, CHECKS = 3, 21
COLD, AGAIN, CHECK = 7.0, 4.0, 0.15  # seconds
SENT = 9.0  # millions of bytes
PAGE, CELL = "chapters/01_queries_keys_values.html", "exercise-attend-one"

# Presses Check, and gives the seconds until something is said.
REPLY = """() => new Promise((done) => {
  const box = document.querySelector(".python-cell"), start = performance.now();
  const look = () => {
    const over = !box.querySelector(".python-stage") && box.querySelector(".python-said")?.innerText.includes("not written yet");
    if (over) done((performance.now() - start) / 1000); else requestAnimationFrame(look);
  };
  box.querySelector(".python-said")?.remove();
  box.querySelector(".python-main").click();
  look();
})"""


def run(playwright: Playwright, chromium: str, site: Path) -> Iterator[Result]:
    """Four rows; none for a site without Python."""
    if not (site / "_static" / "python").is_dir():
        return
    sent: Counter[str] = Counter()

    class Counting(Handler):
        def send(self, data: bytes) -> None:
            sent[self.path] += len(data)
            super().send(data)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Counting, directory=str(site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/{PAGE}"
    cold, again, later = [], [], []
    with server:
        for _ in range(ROUNDS):
            sent.clear()
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                context = playwright.chromium.launch_persistent_context(
                    folder, executable_path=chromium, args=["--no-sandbox"]
                )
                first, _ = visit(context, url, 1)
                asked = sum(size for path, size in sent.items() if "python" in path)
                second, checks = visit(context, url, CHECKS)
                context.close()
            cold.append(first)
            again.append(second)
            later += checks
        server.shutdown()
    for name, times, limit in (
        ("the first reply, cold", cold, COLD),
        ("the first reply of a second visit", again, AGAIN),
        ("a check", later, CHECK),
    ):
        median = statistics.median(times)
        yield Result(f"Python in the page: {name}", median, limit, median / limit, 1.0)
    size = asked / 1e6
    yield Result("Python in the page: sent for exercises", size, SENT, size / SENT, 1.0, unit="B")


def visit(context: BrowserContext, url: str, checks: int) -> tuple[float, list[float]]:
    """Seconds to the first reply on the page, and to each of `checks` later ones."""
    page = context.new_page()
    page.goto(url)
    page.locator(f"button[data-cell={CELL}]").click()
    page.locator(".cm-content").wait_for()
    first: float = page.evaluate(REPLY)
    later = [page.evaluate(REPLY) for _ in range(checks)]
    page.close()
    return first, later
