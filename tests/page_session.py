"""The page's Python, without a browser: `python -m tests.page_session` runs requests, one a line, and prints what is told of each.

Nothing can be imported that no page has: torch, widgets, safetensors.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ABSENT = "torch triton anywidget ipywidgets IPython safetensors tqdm scipy".split()


class Nowhere(MetaPathFinder):
    """Hides what a page has not."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """Raises ModuleNotFoundError, as the page does."""
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(
                f"{name} is not on this page: open the chapter in JupyterLab."
            )


def answers(requests: list[dict[str, Any]], timeout: float = 600) -> list[list[list[Any]]]:
    """What a session tells of each request, [[kind, ...], ...], in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.page_session"],
        input="\n".join(map(json.dumps, requests)),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def said(told: list[list[Any]]) -> str:
    """All that was printed."""
    return "".join(text for kind, text, *_ in ([*one, ""] for one in told) if kind == "text")


def main() -> None:
    """Answer the requests on standard input."""
    from book.page_python.session import Session

    told: list[list[Any]] = []
    session = Session(lambda *said: told.append(list(said)))
    sys.meta_path.insert(0, Nowhere())
    importlib.import_module("attention_lib.checks")
    out = sys.stdout
    for line in sys.stdin.read().splitlines():  # exit() closes it
        session.run(line)
        print(json.dumps(told), file=out)
        told.clear()


if __name__ == "__main__":
    main()
