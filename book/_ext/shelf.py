"""All chapters together, with what belongs to none of them alone."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .bibliography import Work
from .chapters import Chapter
from .glossary import Term
from .on_page import OnPage

# How high a live figure is in a box at most so wide: [[width, height], …] in pixels, the widest last.
Steps = list[list[int]]
_SAYS_SCRIPT = "<noscript><p>The figure moves where JavaScript is switched on.</p></noscript>"
_SAYS_RUN = re.compile(r"(?s)<p><small>.*?</small></p>")


@dataclass
class Shelf:
    """All chapters, and what they need to know of one another.

    offers: the ways to run a chapter's file, as offers.ways gives them. printed: whether there are PDFs.
    heights: how much room live figures need, by "<chapter>#<cell>". on_page: what runs in the pages, if Python does.
    """

    chapters: Sequence[Chapter]
    works: tuple[Work, ...]
    offers: Callable[[str], dict[str, str]]
    printed: bool = False
    heights: dict[str, Steps] = field(default_factory=dict)
    terms: tuple[Term, ...] = ()
    on_page: OnPage | None = None
    faults: list[tuple[str, str]] = field(default_factory=list)
    cited: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def live_html(self, name: str, cell_id: str, anchor: str) -> str:
        """The live figure that a cell of a chapter stores, for the element with the id `anchor`.

        Without what is for JupyterLab, and with room for it until it is live. Raises KeyError if there is none.
        """
        stored = {c.path.stem: c.live_figures() for c in self.chapters}[name][cell_id]
        stored = _SAYS_RUN.sub(_SAYS_SCRIPT, re.sub(r"(?s)<style>.*?</style>", "", stored))
        return stored + _room(anchor, self.heights.get(f"{name}#{cell_id}", []))

    def by_number(self, number: str | int) -> Chapter | None:
        """The chapter of that number, if there is one."""
        return next((c for c in self.chapters if c.number == int(number)), None)


def _room(anchor: str, steps: Steps) -> str:
    """A style that keeps as much room for a figure as it will need when it is live."""
    if not steps:
        return ""
    resting = f"#{anchor} .explore:not(:has(.live, .failed))"
    rules = [f"{resting}{{min-height:{steps[-1][1]}px}}"]
    for width, height in reversed(steps[:-1]):
        rules.append(f"@container live (width<={width}px){{{resting}{{min-height:{height}px}}}}")
    return f"<style>{''.join(rules)}</style>"
