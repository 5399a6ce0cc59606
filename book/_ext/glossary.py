"""The glossary's entries: what a word means, and what else it is called."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .formulas import typeset_html

_LIST = re.compile(r"(?s)```\{glossary\}\n(.*?)```")
_ALSO = re.compile(r"\s*Also called (?P<names>.+)\.$")


@dataclass(frozen=True)
class Term:
    """An entry of the glossary, as it is typed there."""

    name: str
    meaning: str
    also: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """The id that Sphinx gives the entry."""
        return "term-" + re.sub(r"[^\w-]+", "-", self.name)

    @property
    def html(self) -> str:
        """What it means."""
        return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", typeset_html(self.meaning))


def read_terms(path: Path) -> tuple[Term, ...]:
    """The entries of a page with a glossary: a line each for the name, and indented lines that say what it is.

    What an entry ends with as "Also called x, y." are its other names.
    """
    found = _LIST.search(path.read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{path.name} has no glossary")
    return tuple(_term(*entry.split("\n", 1)) for entry in found[1].strip().split("\n\n"))


def _term(name: str, lines: str) -> Term:
    meaning = " ".join(lines.split())
    also = _ALSO.search(meaning)
    if also is None:
        return Term(name, meaning)
    return Term(name, meaning[: also.start()], tuple(also["names"].split(", ")))


def synonyms(terms: tuple[Term, ...]) -> dict[str, str]:
    """What each entry is called otherwise, in small letters, and its name."""
    return {also.lower(): term.name for term in terms for also in term.also}


class Marker:
    """Makes a link to its entry of a word of the glossary, where it first stands in each part of a chapter.

    used: the entries so far, each once.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self.used: dict[str, Term] = {}
        self._here: set[str] = set()  # anchors met in this part
        self._by_name = {term.name.lower(): term for term in terms}
        names = "|".join(re.escape(name) for name in sorted(self._by_name, key=len, reverse=True))
        self._word = re.compile(rf"\$[^$]+\$|(?<![\w-])(?P<name>{names})s?(?![\w-])", re.IGNORECASE)

    def begin_part(self) -> None:
        """Words count as new again."""
        self._here.clear()

    def mark(self, text: str) -> str:
        """The text with its links; formulas in it stay as they are."""
        return self._word.sub(self._link, text) if self._by_name else text

    def _link(self, found: re.Match[str]) -> str:
        term = self._by_name.get((found["name"] or "").lower())
        if term is None or term.anchor in self._here:
            return found[0]
        self._here.add(term.anchor)
        self.used[term.anchor] = term
        about = f'aria-describedby="{term.anchor}"'
        return f'<a class="term" href="../glossary.html#{term.anchor}" {about}>{found[0]}</a>'

    def entries(self) -> str:
        """What the words mean, out of sight, for who hears the page and for the script that shows them."""
        items = (f'<p id="{anchor}">{term.html}</p>' for anchor, term in self.used.items())
        return f'<div class="meanings" hidden>{"".join(items)}</div>' if self.used else ""
