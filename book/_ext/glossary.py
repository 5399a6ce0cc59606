"""The glossary's entries: what a word means, and what else it is called."""

import re
from dataclasses import dataclass
from pathlib import Path

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
