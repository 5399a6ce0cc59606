"""The built site for the tests of the book: built once, served under a sub-path, watched in Chromium."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from book import serve

from .once import once

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request, Route

ROOT = Path(__file__).resolve().parent.parent
UNDER = "/books/attention/"
SCHEMES = ("light", "dark")


def build(root: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the build of `make book` on the book that lies in `root`."""
    command = "-m sphinx -EW --keep-going -q -b html".split()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [
            sys.executable,
            *command,
            "-d",
            str(out / "doctrees"),
            *options,
            "book",
            str(out / "html"),
        ],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
    )


def _make(folder: Path) -> None:
    """Build the site into `folder`/html and print it; `folder`/fault says why it could not be."""
    done = build(ROOT, folder)
    if done.returncode == 0:
        command = [sys.executable, "-m", "book.printing", str(folder / "html")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    fault = (done.stderr.strip() or "it failed without a word") if done.returncode else ""
    (folder / "fault").write_text(fault, encoding="utf-8")


def built_site() -> Path:
    """The folder of the site, built and printed once for all tests of this run."""
    folder = once("site", _make)
    lines = (folder / "fault").read_text(encoding="utf-8").splitlines()
    if lines:
        pytest.fail(f"the site was not built ({len(lines)} lines): {lines[0]}", pytrace=False)
    return folder / "html"


def pages(site: Path) -> list[str]:
    """Every page, by its path in the site."""
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))


def chapter_pages() -> list[str]:
    """The pages of the chapters, before anything is built."""
    paths = sorted((ROOT / "chapters").glob("[0-9][0-9]_*.ipynb"))
    return [f"chapters/{path.stem}.html" for path in paths]


@dataclass
class Served:
    """A site behind a server: its address, and how many bytes were sent for each path."""

    address: str
    sent: dict[str, int] = field(default_factory=dict)


@contextlib.contextmanager
def served(site: Path) -> Iterator[Served]:
    """The site under UNDER on a port of its own; anything else there is 404."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            inside = urlsplit(path).path.removeprefix(UNDER)
            return super().translate_path(inside if path.startswith(UNDER) else "/nowhere")

        def send_error(
            self, code: int, message: str | None = None, explain: str | None = None
        ) -> None:
            if code == 404 and self.path.startswith(UNDER):
                serve.answer_lost(self)
            else:
                super().send_error(code, message, explain)

        def copyfile(self, source: object, outputfile: object) -> None:
            data = source.read()  # type: ignore[attr-defined]
            here.sent[self.path.partition("?")[0]] = len(data)
            outputfile.write(data)  # type: ignore[attr-defined]

        def log_message(self, format: str, *args: object) -> None:
            pass

    handler = functools.partial(Handler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        here = Served(f"http://127.0.0.1:{server.server_port}{UNDER}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield here
        server.shutdown()
        thread.join()


@dataclass
class Watched:
    """What a page complained about, and the addresses that it wanted elsewhere."""

    page: Page
    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)


@contextlib.contextmanager
def watched(
    browser: Browser,
    address: str,
    *,
    width: int = 1280,
    height: int = 900,
    scheme: str = "light",
    scripts: bool = True,
) -> Iterator[Watched]:
    """A page that may load what begins with `address` and nothing else, and run scripts or not."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
        java_script_enabled=scripts,
    )
    found = Watched(context.new_page())

    def refuse(route: Route) -> None:
        found.elsewhere.append(route.request.url)
        route.abort()

    context.route(lambda url: not url.startswith((address, "blob:", "data:")), refuse)
    found.page.on("pageerror", lambda error: found.errors.append(str(error)))
    found.page.on(
        "console",
        lambda said: found.errors.append(said.text) if said.type in ("error", "warning") else None,
    )

    def failed(asked: Request) -> None:
        if asked.failure != "net::ERR_ABORTED":  # given up for the next page, as an icon may be
            found.errors.append(f"failed: {asked.url}")

    found.page.on("requestfailed", failed)
    found.page.on(
        "response",
        lambda got: found.errors.append(f"{got.status}: {got.url}") if got.status >= 400 else None,
    )
    yield found
    context.close()


def all_live(page: Page) -> int:
    """Wait until every live figure of the page is live; how many there are."""
    count = page.locator(".explore").count()
    if count:
        page.wait_for_function("!document.querySelector('.explore:not(:has(.live))')")
    return count
