"""JupyterLab and headless Chromium for the tests of the live figures; both end with the test."""

from __future__ import annotations

import contextlib
import json
import os
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

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
# No dialogue about kernels or news stands in the way.
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"autoStartDefaultKernel": True},
}


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
            urllib.request.Request(url, method=method), timeout=20
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

    Raises RuntimeError with its last lines if it does not answer within a minute.
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


def _wait(process: subprocess.Popen[bytes], url: str, log: Path, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            urllib.request.urlopen(url, timeout=5).close()
            return
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not answer: {log.read_text()[-2000:]}")


@contextlib.contextmanager
def running_chromium(executable: str) -> Iterator[Browser]:
    """Headless Chromium that reaches nothing but this machine."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM)
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
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
