"""The pictures at rest of live figures, drawn by the figures' own JavaScript in headless Chromium."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .live import WIDTH, add_picture, page_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_TAKE = "figure => ({picture: figure.picture(['light', 'dark']), words: figure.says()})"


@contextmanager
def running_browser() -> Iterator["Browser | None"]:
    """Headless Chromium, or None where it, or playwright, is not installed."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        yield None
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def draw(stored: str, browser: "Browser") -> tuple[str, str]:
    """The SVG of a figure at rest, and what it shows in a sentence. stored: its HTML in a notebook."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figure.html"
        path.write_text(page_of(stored), encoding="utf-8")
        context = browser.new_context(
            viewport={"width": WIDTH, "height": 900}, reduced_motion="reduce"
        )
        page = context.new_page()
        page.goto(path.as_uri())
        page.add_style_tag(content="body{margin:0!important}")
        figure = page.locator(".live")
        figure.wait_for()
        taken = figure.evaluate(_TAKE)
        context.close()
    return taken["picture"], taken["words"]


def redraw(stored: str, browser: "Browser") -> str:
    """A figure's HTML with the picture that its JavaScript draws now."""
    return add_picture(stored, *draw(stored, browser))
