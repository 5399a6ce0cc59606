"""The last look at a notebook before students get it: nothing hidden may be left in it."""

import re

from nbformat import NotebookNode

REGION = re.compile(r"(BEGIN|END) (SOLUTION|HIDDEN TESTS|MARK SCHEME)")
MARKER = re.compile(r"^\s*#+\s*(BEGIN|END)\b|assignments\.verify", re.MULTILINE)
TELLING = 20  # characters


class LeakError(RuntimeError):
    """A notebook for students would hold hidden material."""


def refuse_leaks(source: NotebookNode, given: NotebookNode) -> None:
    """Raise LeakError if `given` shows a hidden line of `source`, an output, or a marker.

    A line counts as hidden in its own cell, and elsewhere too if it is long enough to tell something.
    """
    hidden = {cell.get("id"): _hidden(cell) for cell in source.cells}
    everywhere = {line for lines in hidden.values() for line in lines if len(line) >= TELLING}
    for cell in given.cells:
        lines = set(_lines(cell.source))
        leaks = lines & (hidden.get(cell.get("id"), set()) | everywhere)
        leaks.update(match[0].strip() for match in MARKER.finditer(cell.source))
        if leaks:
            raise LeakError(f"a hidden line would be given out: {min(leaks)!r}")
        if cell.get("outputs"):
            raise LeakError(f"outputs would be given out, of {cell.source[:40]!r}")


def _hidden(cell: NotebookNode) -> set[str]:
    """The lines of a source cell that students must not see. Raises LeakError for a stray marker."""
    secret: set[str] = set()
    region = ""
    regions = set()
    for line in _lines(cell.source):
        marker = REGION.search(line)
        if marker:
            opens = marker[1] == "BEGIN"
            if region != ("" if opens else marker[2]):
                raise LeakError(f"the marker {line!r} is out of place")
            region = marker[2] if opens else ""
            regions.add(marker[2])
        elif MARKER.match(line):
            raise LeakError(f"the marker {line!r} is misspelt")
        elif region and re.search(r"\w", line):
            secret.add(line)
    if region:
        raise LeakError(f"a region of {region} has no end")
    if cell.metadata.get("nbgrader", {}).get("solution") and "SOLUTION" not in regions:
        secret.update(_lines(cell.source))  # nbgrader replaces the whole cell
    return secret


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
