"""A notebook's file as it came, read into cells that are sound whatever the file held."""

from __future__ import annotations

import json
import re
import symtable
import warnings
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import nbformat
from nbformat import NotebookNode

MOST_CELLS = 2_000
MOST_CODE = 200_000  # characters of a cell that is read as Python
MOST_TEXT = 2_000_000  # characters in the cells
MOST_OUTPUT = 5_000_000  # characters in the outputs
# What a page may show of a student's outputs: nothing that a browser would run.
SHOWN = ("text/plain", "text/latex", "image/png", "image/jpeg")
IMAGES = ("image/png", "image/jpeg", "image/gif")
KINDS = ("code", "markdown", "raw")


@dataclass
class Found:
    """A cell of a hand-in, without its metadata; `label` is the nbgrader id that it came with."""

    kind: str
    source: str
    label: str = ""
    id: str = ""
    count: int | None = None
    outputs: list[dict[str, Any]] = field(default_factory=list)
    attachments: dict[str, dict[str, str]] = field(default_factory=dict)

    @cached_property
    def names(self) -> frozenset[str] | None:
        """What the text binds at the top as Python: functions, variables, imports; None if it is none."""
        return bound(self.source)

    def defines(self, names: frozenset[str]) -> bool:
        """Whether the cell binds all of `names`, also as code with an error in it; never for none."""
        if not names or self.names is not None:
            return bool(names) and names <= (self.names or frozenset())
        return self.kind == "code" and all(
            re.search(rf"^(?:def|class)\s+{name}\b|^{name}\s*=", self.source, re.MULTILINE)
            for name in names
        )

    def cell(self, kind: str = "") -> NotebookNode:
        """The cell as one of nbformat 4.5, of another kind if asked."""
        made: dict[str, Any] = {
            "cell_type": kind or self.kind,
            "id": self.id,
            "metadata": {},
            "source": self.source,
        }
        if made["cell_type"] == "code":
            made |= {"outputs": self.outputs, "execution_count": self.count}
        elif self.attachments:
            made |= {"attachments": self.attachments}
        return node(made)


def node(value: Mapping[str, Any]) -> NotebookNode:
    """A copy of a part of a notebook, in nbformat's type."""
    return nbformat.from_dict(deepcopy(dict(value)))  # type: ignore[no-untyped-call]


@lru_cache(maxsize=256)
def bound(text: str) -> frozenset[str] | None:
    """The names that `text` binds at the top as Python, IPython's own lines left out; None if it is none."""
    if len(text) > MOST_CODE:
        return None
    plain = re.sub(r"^([^\S\n]*)[%!].*", r"\1pass", text, flags=re.MULTILINE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            symbols = symtable.symtable(plain, "cell", "exec").get_symbols()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return frozenset(one.get_name() for one in symbols if one.is_assigned() or one.is_imported())


def read(data: bytes) -> dict[str, Any]:
    """The JSON object in a notebook's file. Raises ValueError with the reason if there is none."""
    if not data.strip():
        raise ValueError("the file is empty")
    try:
        raw = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("the file is no text") from None
    except (ValueError, RecursionError):
        raise ValueError("the file is no notebook: its text is no JSON") from None
    if not isinstance(raw, dict):
        raise ValueError("the file is no notebook: it holds no object")
    return raw


def sanitise(raw: Mapping[str, Any]) -> tuple[list[Found], list[str]]:
    """The cells of a notebook's JSON, and sentences on what was left out of them.

    Raises ValueError with the reason if it has no cells that can be read, or too many.
    """
    found, broken, dropped = [], False, False
    room = MOST_OUTPUT
    for one in _cells(raw):
        source = _text(one.get("source")) if isinstance(one, dict) else None
        if source is None:
            broken = True
            continue
        kind = one.get("cell_type") if one.get("cell_type") in KINDS else "raw"
        outputs = list(_outputs(one)) if kind == "code" else []
        kept = [output for output in outputs if output is not None]
        room -= (size := len(json.dumps(kept)) if kept else 0)
        dropped |= len(kept) < len(outputs) or room < 0
        if room < 0:
            kept, room = [], room + size
        found.append(
            Found(
                kind, source, _label(one), str(one.get("id", "")), _count(one), kept, _images(one)
            )
        )
    if sum(len(one.source) for one in found) > MOST_TEXT:
        raise ValueError(f"the cells hold more than {MOST_TEXT:,} characters")
    said = ["Cells that could not be read were left out."] * broken
    return found, said + [
        "Outputs that are large, broken or active (HTML) were left out."
    ] * dropped


def _cells(raw: Mapping[str, Any]) -> list[Any]:
    """The list of cells, from older formats too."""
    if "worksheets" in raw:
        try:
            raw = nbformat.convert(node(raw), 4)  # type: ignore[no-untyped-call]
        except Exception:  # the converters trust what they read
            raise ValueError("the notebook is of an old format and broken") from None
    cells = raw.get("cells")
    if not isinstance(cells, list):
        raise ValueError("the file is no notebook: it holds no list of cells")
    if len(cells) > MOST_CELLS:
        raise ValueError(f"the notebook has more than {MOST_CELLS:,} cells")
    return cells


def _text(value: object) -> str | None:
    """A string, which may be stored as a list of lines, without what UTF-8 cannot hold."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "".join(value)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _label(cell: dict[str, Any]) -> str:
    metadata = cell.get("metadata")
    ours = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    label = ours.get("grade_id") if isinstance(ours, dict) else None
    return label if isinstance(label, str) else ""


def _count(cell: dict[str, Any]) -> int | None:
    count = cell.get("execution_count")
    return count if type(count) is int and count >= 0 else None


def _images(cell: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The pictures pasted into a cell of text."""
    given = cell.get("attachments")
    pasted = given.items() if isinstance(given, dict) else ()
    return {
        _text(name) or "": {kind: _text(data[kind]) or "" for kind in IMAGES if kind in data}
        for name, data in pasted
        if isinstance(data, dict) and all(isinstance(text, str) for text in data.values())
    }


def _outputs(cell: dict[str, Any]) -> Iterator[dict[str, Any] | None]:
    """Each output made anew from what may be shown of it; None for one with nothing to show."""
    given = cell.get("outputs", [])
    for one in given if isinstance(given, list) else [None]:
        yield _output(one) if isinstance(one, dict) else None


def _output(one: dict[str, Any]) -> dict[str, Any] | None:
    kind, text = one.get("output_type"), _text(one.get("text"))
    if kind == "stream" and text is not None:
        return {"output_type": kind, "name": _text(one.get("name")) or "stdout", "text": text}
    if kind == "error":
        trace = one.get("traceback")
        lines = [_text(line) or "" for line in trace] if isinstance(trace, list) else []
        named = {key: _text(one.get(key)) or "" for key in ("ename", "evalue")}
        return {"output_type": kind, **named, "traceback": lines}
    if kind not in ("display_data", "execute_result") or not isinstance(one.get("data"), dict):
        return None
    data = {mime: text for mime in SHOWN if (text := _text(one["data"].get(mime))) is not None}
    more = {"execution_count": _count(one)} if kind == "execute_result" else {}
    return {"output_type": kind, "metadata": {}, "data": data, **more} if data else None
