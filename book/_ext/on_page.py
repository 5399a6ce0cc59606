"""Python in the pages: which cells can run there, what lies beside the pages for them, and what the pages say of it."""

import hashlib
import io
import json
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from book.page_python.names import Piece, needed, pieces
from book.pyodide import LISTED, VERSION, Pyodide

from .chapters import Chapter, figure_kind
from .imports import Imports

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 10  # without an answer, after which the page ends Python
WEIGHTS = "attention_lib/**/weights/*"  # each is fetched when it is read
# What our code imports that is not NumPy, and page_python stands in for.
STAND_INS = {"IPython", "safetensors"}
# Of the standard library what no browser has.
NOWHERE = {
    "multiprocessing",
    "subprocess",
    "tkinter",
    "curses",
    "ssl",
    "sqlite3",
    "lzma",
    "resource",
}
# Runs once, before the page has any content: where a worker can run, the page says what it can do.
SCRIPT = """if (location.protocol.startsWith("http") && window.Worker) {
  document.documentElement.classList.add("python");
  const page = () => import("PATH/page_python/page.js");
  const say = (button) => button.append(" (not loaded: try again)");
  addEventListener("click", ({ target }) => {
    const button = target.closest?.("button.opens-python");
    if (button) page().then((it) => it.open(button), () => say(button));
  });
  addEventListener("DOMContentLoaded", () => {
    try {
      if (Object.keys(localStorage).some((key) => key.startsWith("book ") && key.includes(" CHAPTER "))) page().then((it) => it.restore());
    } catch {}
  });
}"""


@dataclass(frozen=True)
class Place:
    """Where a cell runs. kind: "exercise", "runs", "needs" (the module `missing`), or "stays" as it is.

    above: how many cells run before it.
    """

    kind: str
    above: int = 0
    missing: str = ""


@dataclass
class OnPage:
    """The cells of all chapters that run on their pages, with the files of Pyodide that are there."""

    pyodide: Pyodide
    imports: Imports = field(default_factory=lambda: Imports((ROOT, ROOT / "book")))

    def sort(self, chapter: Chapter) -> dict[str, Place]:
        """The place of each code cell, by its id."""
        cells = list(_code(chapter))
        units = pieces([(cell["id"], "".join(cell["source"])) for cell in cells])
        places = {}
        for cell in cells:
            own = [at for at, unit in enumerate(units) if unit.cell == cell["id"]]
            uses = set().union(*(units[at].uses for at in own)) if own else set()
            above = needed(units[: own[0]], uses) if own else []
            places[cell["id"]] = self._place(cell, [units[at] for at in own], above)
        return places

    def _place(self, cell: dict[str, Any], own: Sequence[Piece], above: Sequence[Piece]) -> Place:
        tags = cell["metadata"].get("tags", [])
        count = len({piece.cell for piece in above if piece.cell != "imports"})
        if "exercise" in tags:
            return Place("exercise", count)
        if "quiz" in tags or "solution" in tags or any(map(_is_live, cell["outputs"])):
            return Place("stays", count)
        missing = self.missing([*above, *own])
        return Place("needs", count, missing) if missing else Place("runs", count)

    def missing(self, found: Sequence[Piece]) -> str:
        """The first module that these need and the page has not, or ""."""
        importing = (piece.source for piece in found if piece.imported)
        others = self.imports.of("\n".join(importing)).others
        absent = (
            others - STAND_INS - {"numpy"} - ({"matplotlib"} if self.pyodide.pictures else set())
        )
        return min((name for name in absent if not _is_standard(name)), default="")

    def archive(self, chapters: Sequence[Chapter]) -> bytes:
        """A zip of our own modules that a check, or a cell that runs on a page, imports."""
        sources = ["import attention_lib.checks, page_python.session, page_python.safetensors"]
        for chapter in chapters:
            places = self.sort(chapter)
            units = pieces([(cell["id"], "".join(cell["source"])) for cell in _code(chapter)])
            for at, unit in enumerate(units):
                if places[unit.cell].kind == "runs":
                    sources += [piece.source for piece in [*needed(units[:at], unit.uses), unit]]
        files = {
            path.relative_to(ROOT / "book" if name.startswith("page_python") else ROOT): path
            for name, path in self.imports.of("\n".join(sources)).own.items()
        }
        if self.pyodide.pictures:
            files |= {path.relative_to(ROOT): path for path in ROOT.glob("figures/*.mplstyle")}
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
            for inside, path in sorted(files.items()):
                entry = zipfile.ZipInfo(inside.as_posix())
                entry.compress_type = zipfile.ZIP_DEFLATED
                packed.writestr(entry, path.read_bytes())
        return made.getvalue()

    def lay(self, chapters: Sequence[Chapter], static: Path) -> None:
        """Write Python, the book's library and the cells of each chapter below `static`. Raises PyodideError."""
        folder = static / "python" / VERSION
        sizes = self.pyodide.lay(folder)
        library = self.archive(chapters)
        first = {file: size for file, size in sizes.items() if file not in LISTED["matplotlib"]}
        name = f"book-{hashlib.sha256(library).hexdigest()[:12]}.zip"
        (folder / name).write_bytes(library)
        weights = [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob(WEIGHTS))]
        for path in weights:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes((ROOT / path).read_bytes())
        python = {
            "folder": f"../python/{VERSION}/",
            "files": first | {name: (len(library), len(library))},
            "pictures": {file: size for file, size in sizes.items() if file not in first},
            "book": name,
            "weights": weights,
            "seconds": SECONDS,
        }
        (static / "page_python" / "cells").mkdir(parents=True, exist_ok=True)
        for chapter in chapters:
            places = self.sort(chapter)
            told = {
                "python": python,
                "cells": [[cell["id"], "".join(cell["source"])] for cell in _code(chapter)],
                "places": {cell: [p.kind, p.above, p.missing] for cell, p in places.items()},
            }
            cells = static / "page_python" / "cells" / f"{chapter.path.stem}.json"
            cells.write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")


def offer(cell: str, place: Place, notebook: str) -> str:
    """What stands under a cell: how to answer or run it; `notebook` is what was said where Python is not in the page."""
    button = f'<button type="button" class="opens-python" data-cell="{cell}"'
    if place.kind == "exercise":
        return (
            f'<div class="offer"><p class="in-notebook">{notebook}</p>'
            f'<p class="on-page">{button} data-exercise>Write your answer here</button></p></div>'
        )
    if place.kind == "runs":
        return f'<div class="offer on-page">{button}>Edit and run</button></div>'
    if place.kind == "needs":
        return f'<p class="offer on-page">Runs in JupyterLab: needs {escape(place.missing)}.</p>'
    return ""


def script(up: str, chapter: str) -> str:
    """What a page runs first; `up` leads to _static."""
    return SCRIPT.replace("PATH", up).replace("CHAPTER", chapter)


def _code(chapter: Chapter) -> Iterator[dict[str, Any]]:
    return (cell for cell in chapter.notebook["cells"] if cell["cell_type"] == "code")


def _is_live(output: dict[str, Any]) -> bool:
    return figure_kind(output) == "live"


def _is_standard(name: str) -> bool:
    return name in sys.stdlib_module_names and name not in NOWHERE
