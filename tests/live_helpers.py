"""JupyterLab and headless Chromium for the tests of the live figures; both end with the test."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures.live import LiveFigure, bundle

from .programs import program

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

ROOT = Path(__file__).resolve().parent.parent
GUARD = 600.0  # seconds on the clock until what does not answer is given up, on a busy machine too
CHROMIUM = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
# No dialogue about kernels or news stands in the way.
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"autoStartDefaultKernel": True},
}

# The contrast of each text with what is painted behind it, by the formula of WCAG 2.
CONTRASTS = """root => {
  const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const paint = colours => {
    context.clearRect(0, 0, 1, 1);
    for (const colour of colours) { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); }
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map(c => c / 255);
  };
  const light = rgb => rgb.map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const found = [];
  for (const element of root.querySelectorAll("*")) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest("svg, style, option, :disabled")) continue;
    const layers = [];
    for (let up = element; up; up = up.parentElement) layers.unshift(getComputedStyle(up).backgroundColor);
    const page = matchMedia("(prefers-color-scheme: dark)").matches ? "#121212" : "#ffffff";
    const behind = light(paint([page, ...layers]));
    const text = light(paint([page, ...layers, getComputedStyle(element).color]));
    const [low, high] = [behind, text].sort((a, b) => a - b);
    found.push([element.textContent.trim().slice(0, 30), (high + 0.05) / (low + 0.05)]);
  }
  return found;
}"""


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab: where it listens, and the folder it shows."""

    address: str
    token: str
    folder: Path

    def url(self, notebook: str) -> str:
        """The page that holds one notebook and nothing else of the last session."""
        return f"{self.address}/lab/tree/{notebook}?token={self.token}&reset"

    def stop_kernels(self) -> None:
        """End every session with its kernel."""
        for session in json.loads(self._ask("GET", "sessions")):
            self._ask("DELETE", f"sessions/{session['id']}")

    def _ask(self, method: str, what: str) -> bytes:
        url = f"{self.address}/api/{what}?token={self.token}"
        with urllib.request.urlopen(
            urllib.request.Request(url, method=method), timeout=GUARD
        ) as answer:
            return bytes(answer.read())


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def running_lab(folder: Path) -> Iterator[Lab]:
    """JupyterLab without settings of the user's, showing `folder`; its kernels end with it.

    Raises RuntimeError with its last lines if it does not answer.
    """
    home = folder / ".home"
    home.mkdir()
    environment = os.environ | {
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
    }
    for plugin, settings in SETTINGS.items():
        file = home / "settings" / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings), encoding="utf-8")
    port, token = free_port(), secrets.token_hex(16)
    command = (
        f"-m jupyterlab --no-browser --allow-root --ip=127.0.0.1 --port={port} "
        f"--IdentityProvider.token={token} --ServerApp.port_retries=0 "
        f"--LabApp.extension_manager=readonly --ServerApp.root_dir={folder}"
    ).split()
    log = (home / "log").open("w+")
    process = subprocess.Popen(
        [sys.executable, *command],
        env=environment,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    lab = Lab(f"http://127.0.0.1:{port}", token, folder)
    try:
        _wait(process, f"{lab.address}/api/status?token={token}", home / "log")
        yield lab
    finally:
        # The server ends its kernels on SIGTERM; whatever is left of its group is killed.
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        log.close()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + GUARD
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            urllib.request.urlopen(url, timeout=GUARD).close()
            return
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not answer: {log.read_text()[-2000:]}")


@contextlib.contextmanager
def running_chromium(executable: str) -> Iterator[Browser]:
    """Headless Chromium that reaches nothing but this machine."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=CHROMIUM, timeout=1e3 * GUARD
        )
        new_context = browser.new_context

        def patient(**options: Any) -> BrowserContext:
            context = new_context(**options)
            context.set_default_timeout(1e3 * GUARD)
            return context

        setattr(browser, "new_context", patient)  # noqa: B010
        try:
            yield browser
        finally:
            browser.close()


def listen(page: Page, errors: list[str]) -> None:
    """Add each error that the page reports to `errors`."""
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda message: errors.append(message.text) if message.type == "error" else None,
    )


@contextlib.contextmanager
def checked_page(browser: Browser, uri: str, name: str, scheme: str) -> Iterator[Locator]:
    """The figure `name` on a page of its own, in the light or the dark, fit to be read.

    Live, legible, and no wider than a narrow screen (or a wide one at 200 % and more); nothing moves
    for a reader who wants it still, and the page reports no error.
    """
    context = browser.new_context(
        viewport={"width": 320, "height": 640},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    opened = context.new_page()
    complaints: list[str] = []
    listen(opened, complaints)
    opened.goto(uri)
    figure = opened.locator(f".live-{name}")
    figure.wait_for()
    assert opened.locator("img").count() == 0
    for summary in figure.locator("summary").all():
        summary.click()
    for width in (320, 640, 768, 1440):
        opened.set_viewport_size({"width": width, "height": 640})
        assert opened.evaluate("document.documentElement.scrollWidth") == width
    contrasts = figure.evaluate(CONTRASTS)
    assert len(contrasts) > 10
    assert [found for found in contrasts if found[1] < 4.5] == []
    yield figure
    assert complaints == []
    context.close()


def left_behind(page: Page, figure: LiveFigure) -> list[int]:
    """Listeners and elements that are left of a figure on its page when it is taken down again."""
    found: list[int] = page.evaluate(
        """([name, state]) => {
          const figure = globalThis.liveFigures.modules[name]();
          let listeners = 0;
          const model = { get: (name) => state[name], set() {}, save_changes() {},
            on: () => (listeners += 1), off: () => (listeners -= 1) };
          const el = document.createElement("div");
          document.body.append(el);
          const clean = figure.render({ model, el });
          if (!listeners || !el.childElementCount) return [-1, -1];
          clean();
          return [listeners, el.childElementCount];
        }""",
        [figure.name, dict(figure.state())],
    )
    return found


@contextlib.contextmanager
def live_notebook(browser: Browser, folder: Path, cells: Sequence[str]) -> Iterator[Page]:
    """A notebook of these cells in JupyterLab, run, with a live figure for each; no error is said."""
    write_notebook(folder / "live.ipynb", cells)
    with running_lab(folder) as lab:
        context = browser.new_context(viewport={"width": 1280, "height": 1000})
        opened = context.new_page()
        complaints: list[str] = []
        listen(opened, complaints)
        opened.goto(lab.url("live.ipynb"))
        run_all(opened)
        opened.locator(".live").nth(len(cells) - 1).wait_for()
        yield opened
        assert complaints == []
        context.close()


def write_notebook(path: Path, cells: Sequence[str]) -> None:
    """A notebook of code cells, none of them run."""
    notebook: dict[str, Any] = {
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell-{i}",
                "metadata": {},
                "execution_count": None,
                "outputs": [],
                "source": source,
            }
            for i, source in enumerate(cells)
        ],
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(notebook), encoding="utf-8")


def run_all(page: Page) -> None:
    """Run every cell of the notebook on the page, once its kernel is there."""
    page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def painted(page: Page) -> None:
    """Wait until the page has shown what it has done so far, however long that takes."""
    page.evaluate("new Promise(next => requestAnimationFrame(() => requestAnimationFrame(next)))")


def data(figure: Locator, name: str) -> str:
    """What the figure says of itself in an attribute data-name."""
    return figure.get_attribute(f"data-{name}") or ""


def node(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run node in the tests' folder of JavaScript."""
    executable = program("node")
    assert executable is not None
    return subprocess.run(
        [executable, *arguments],
        input=stdin,
        cwd=Path(__file__).parent / "js",
        capture_output=True,
        text=True,
        timeout=GUARD,
    )


def check_stored(figure: LiveFigure, again: LiveFigure) -> None:
    """What a notebook stores of a figure, `again` made like it, is small, whole, and the same."""
    stored, _ = figure._repr_mimebundle_()
    html = str(stored["text/html"])
    assert html == again._repr_mimebundle_()[0]["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in stored
    assert stored["text/plain"] == repr(figure) == repr(again)
    assert " at 0x" not in repr(figure)
    assert len(html.encode()) < 12_000
    assert "export default" not in html
    state = re.search(r'<script type="application/json">(.*?)</script>', html)
    assert state is not None
    assert json.loads(state[1]) == figure.state()
    assert not re.search(r"\bid=", html)


def check_bundle(name: str) -> None:
    """The front end of a figure is one module, which node can read."""
    source = bundle(name)
    assert not re.search(r"^import\b", source, re.MULTILINE)
    assert len(re.findall(r"^export default", source, re.MULTILINE)) == 1
    done = node("--input-type=module", "--check", stdin=source)
    assert done.returncode == 0, done.stderr
