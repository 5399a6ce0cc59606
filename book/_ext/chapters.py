"""The notebooks as they are stored: what in them has a number, and what they need to know of one another."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]
Cell = dict[str, Any]

# A displayed formula that ends its line, as JupyterLab sets it; and an entry of a list of references.
FORMULA = re.compile(
    r"(?ms)(?:\$\$(?P<inner>.+?)\$\$|(?P<bare>\\begin\{(?P<kind>(?:align|alignat|equation|gather|multline)\*?)\}.*?\\end\{(?P=kind)\}))(?=[ \t]*$)"
)
LISTED = re.compile(r"(?m)^(?P<number>\d+)\. (?P<line>.+)$")


@dataclass
class Chapter:
    """A notebook, and what in it can be referred to, by its anchor."""

    path: Path
    notebook: Notebook
    anchors: set[str] = field(default_factory=set)
    references: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Chapter":
        """Read a notebook NN_name.ipynb and number its figures, formulas, parts and exercises."""
        chapter = cls(path, json.loads(path.read_text(encoding="utf-8")))
        for cell in chapter.notebook["cells"]:
            if cell["cell_type"] == "markdown":
                chapter._index_text("".join(cell["source"]))
            for _ in filter(figure_kind, cell.get("outputs", [])):
                known = sum(anchor.startswith("figure-") for anchor in chapter.anchors)
                chapter.anchors.add(chapter.anchor("figure", known + 1))
        return chapter

    def _index_text(self, text: str) -> None:
        for kind, number in re.findall(r"(?m)^#+ (Part|Exercise) (\d+)\b", text):
            self.anchors.add(self.anchor(kind.lower(), number))
        for _ in FORMULA.finditer(text):
            known = sum(anchor.startswith("eq-") for anchor in self.anchors)
            self.anchors.add(self.anchor("equation", known + 1))
        if "## References" in text:
            listed = text.partition("## References")[2]
            self.references = {m["number"]: m["line"] for m in LISTED.finditer(listed)}

    def live_figures(self) -> dict[str, str]:
        """The stored HTML of its live figures, by cell."""
        return {
            cell["id"]: "".join(output["data"]["text/html"])
            for cell in self.notebook["cells"]
            for output in cell.get("outputs", [])
            if figure_kind(output) == "live"
        }

    @property
    def number(self) -> int:
        """The number in the file's name."""
        return int(self.path.name[:2])

    @property
    def opening(self) -> str:
        """The text of its first cell."""
        return "".join(self.notebook["cells"][0]["source"])

    @property
    def title(self) -> str:
        """Its title, as it is typed."""
        return self.opening.partition("\n")[0].removeprefix("# ")

    @property
    def minutes(self) -> str:
        """How many minutes it says that it takes, or ""."""
        found = re.search(r"about (\d+) minutes", self.opening)
        return found[1] if found else ""

    @property
    def promise(self) -> str:
        """The first thing that its reader can do after it; without a list of such things, its first sentence."""
        found = re.search(r"(?m)^- (?P<point>.+?)[;.]$", self.opening)
        if found is None:
            text = self.opening.partition("\n\n")[2]
            found = re.match(r"(?s)(?P<point>.+?)\.\s", text)
        said = found["point"] if found else ""
        return said[:1].upper() + said[1:] + "."

    @property
    def page(self) -> str:
        """The file name of its page."""
        return f"{self.path.stem}.html"

    def anchor(self, kind: str, number: int | str) -> str:
        """The anchor of a part, exercise, figure or equation, which is there or not."""
        return f"{'eq' if kind == 'equation' else kind}-{self.number}-{number}"


def figure_kind(output: Cell) -> str:
    """Whether an output is a "live" figure, a "still" one, or none ("")."""
    data = output.get("data", {})
    if 'class="explore"' in "".join(data.get("text/html", "")):
        return "live"
    return "still" if "image/svg+xml" in data else ""
