"""The works that the chapters cite: references.bib, and the entry that a line of a list means."""

import html
import re
from dataclasses import dataclass
from pathlib import Path

from pybtex.database import Entry, Person, parse_file


@dataclass(frozen=True)
class Work:
    """One entry of references.bib."""

    key: str
    authors: tuple[str, ...]
    year: str
    title: str
    place: str
    arxiv: str
    doi: str
    url: str

    def html(self) -> str:
        """The entry in full, with links."""
        names = ", ".join(self.authors)
        parts = [f"{html.escape(names)} ({self.year}). <em>{html.escape(self.title)}</em>"]
        parts[0] += "" if self.title[-1] in ".?" else "."
        if self.place not in ("", "arXiv"):
            parts.append(f"{html.escape(self.place)}.")
        if self.arxiv:
            parts.append(f'<a href="https://arxiv.org/abs/{self.arxiv}">arXiv:{self.arxiv}</a>.')
        if self.doi:
            parts.append(f'<a href="https://doi.org/{self.doi}">doi:{self.doi}</a>.')
        if self.url:
            parts.append(f'<a href="{html.escape(self.url)}">To read</a>.')
        return " ".join(parts)


def read_works(path: Path) -> tuple[Work, ...]:
    """The entries of a .bib file, by first author and year."""
    entries = parse_file(str(path), bib_format="bibtex").entries
    works = [_work(key, entry) for key, entry in entries.items()]
    return tuple(sorted(works, key=lambda work: (work.authors[0].casefold(), work.year)))


def find_work(line: str, works: tuple[Work, ...]) -> Work | None:
    """The work that a line of a list of references means: by arXiv id or DOI, else by title and year."""
    if found := re.search(r"arXiv:(\d{4}\.\d{4,5})", line):
        return next((work for work in works if work.arxiv == found[1]), None)
    if found := re.search(r"\b10\.\d{4,}/\S+\w", line):
        return next((work for work in works if work.doi == found[0]), None)
    words = _plain(line)
    return next((w for w in works if _plain(w.title) in words and w.year in line), None)


def _work(key: str, entry: Entry) -> Work:
    fields = {name: _text(value) for name, value in entry.fields.items()}
    names = ("booktitle", "journal", "institution", "howpublished", "publisher")
    place = next((fields[name] for name in names if name in fields), "")
    return Work(
        key=key,
        authors=tuple(map(_name, entry.persons["author"])),
        year=fields["year"],
        title=fields["title"],
        place=" ".join(filter(None, [place, fields.get("volume", "")])),
        arxiv=fields.get("eprint", ""),
        doi=fields.get("doi", ""),
        url=fields.get("url", ""),
    )


def _name(person: Person) -> str:
    if str(person) == "others":
        return "and others"
    given = [*person.first_names, *person.middle_names]
    letters = " ".join("-".join(f"{part[0]}." for part in name.split("-")) for name in given)
    return f"{_text(' '.join([*person.prelast_names, *person.last_names]))}, {letters}"


def _text(field: str) -> str:
    return re.sub(r"[{}]", "", field)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
