"""What keeps a stored chapter out of the book: cells not run, outputs missing, pictures without words."""

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

SHOWS = {"print": "text", "check": "text", "figures.show": "picture", "figures.quiz": "quiz"}
LIVE = re.compile(r"Explore[A-Z]\w*")
NAME_OF_A_FILE = re.compile(r"\S+\.(svg|png|jpe?g|gif|webp)", re.IGNORECASE)


def faults(notebook: dict[str, Any]) -> Iterator[str]:
    """A sentence for each cell that cannot be shown as it is stored, with the id of the cell."""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            found: Iterator[str] = _pictures_in(source)
        elif cell["cell_type"] == "code" and source.strip():
            found = _of_code(cell, source)
        else:
            continue
        yield from (f"cell {cell.get('id')!r}: {fault}" for fault in found)


def _of_code(cell: dict[str, Any], source: str) -> Iterator[str]:
    outputs = cell["outputs"]
    if cell["execution_count"] is None:
        yield "was not run; `make notebooks` runs and stores it"
        return
    if "raises-exception" not in cell["metadata"].get("tags", []):
        for output in outputs:
            if output["output_type"] == "error":
                yield f"failed: {output['ename']}: {output['evalue']}"
            if output.get("name") == "stderr":
                yield f"wrote on standard error: {''.join(output['text']).strip()[:80]}"
    stored = {kind for output in outputs for kind in _kinds(output)}
    for kind in sorted(shown_by(source) - stored):
        yield f"its output is missing: no {kind} is stored"
    for output in outputs:
        for mime, value in output.get("data", {}).items():
            if mime.startswith("image/"):
                alt = output.get("metadata", {}).get(mime, {}).get("alt", "")
                yield from _poor(alt, mime)
            elif mime == "text/html":
                yield from _pictures_in("".join(value))


def shown_by(source: str) -> set[str]:
    """What a cell's code displays, as far as its own statements call for it: text, picture, live figure, quiz, value."""
    code = "\n".join("pass" if re.match(r"[%!]", line) else line for line in source.splitlines())
    waiting: list[ast.AST] = list(ast.parse(code).body)
    kinds = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            continue  # what it does is done elsewhere
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            kinds |= {SHOWS[name]} if name in SHOWS else set()
        waiting.extend(ast.iter_child_nodes(node))
        last = node.value if isinstance(node, ast.Expr) else None
        if isinstance(last, ast.Call) and LIVE.fullmatch(getattr(last.func, "attr", "")):
            kinds.add("live figure")
    return kinds | ({"value"} if _ends_in_value(code) else set())


def _ends_in_value(code: str) -> bool:
    """Whether the last line is a value to be shown; a call is not taken for one, as it may return None."""
    last = [None, *ast.parse(code).body][-1]
    shown = isinstance(last, ast.Expr) and not isinstance(
        last.value, ast.Call | ast.Await | ast.Yield
    )
    silent = (
        code.rstrip().endswith(";") or getattr(getattr(last, "value", None), "value", "") is None
    )
    return shown and not silent


def _kinds(output: dict[str, Any]) -> Iterator[str]:
    if output["output_type"] in ("stream", "error"):
        yield "text"
    if "data" in output or output["output_type"] == "error":
        yield "value"
    for mime, value in output.get("data", {}).items():
        if mime.startswith("image/"):
            yield "picture"
        elif mime == "text/html" and 'class="questions"' in "".join(value):
            yield "quiz"
        elif mime == "text/html" and 'class="explore"' in "".join(value):
            yield "live figure"


def _pictures_in(text: str) -> Iterator[str]:
    text = re.sub(r"(?s)```.*?```|`[^`\n]*`", "", text)
    for alt in re.findall(r"!\[([^\]]*)\]\(", text):
        yield from _poor(alt, "picture")
    reader = _Images()
    reader.feed(text)
    for alt in reader.alts:
        yield from _poor(alt, "<img>")


def _poor(alt: str, what: str) -> Iterator[str]:
    """What is wrong with an alternative text."""
    if not alt.strip():
        yield f"{what} without alternative text"
    elif NAME_OF_A_FILE.fullmatch(alt.strip()):
        yield f"{what}: alternative text {alt!r} is the name of a file"
    elif len(alt.split()) < 3:
        yield f"{what}: alternative text {alt!r} does not say what is seen"


class _Images(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.alts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.alts.append(dict(attrs).get("alt") or "")
