"""A chapter as the book shows it: numbers, links between the parts of the book, figures, folded solutions.

The notebooks stay as they are. What is made here is a copy of one, in which what JupyterLab has no name for is said in the
words of MyST and HTML.
"""

import copy
import re
from collections.abc import Iterator
from html import escape

from .bibliography import find_work
from .chapters import FORMULA, LISTED, Cell, Chapter, Notebook, figure_kind
from .formulas import typeset
from .glossary import Marker
from .on_page import offer
from .shelf import Shelf

# Where nothing is changed: code, formulas, links, elements of HTML, headings.
_KEPT = re.compile(
    r"(?ms)```.*?```|`[^`\n]*`|\$\$.*?\$\$|\\begin\{(?P<kind>\w+\*?)\}.*?\\end\{(?P=kind)\}|\$(?:[^$\n]|\n(?!\s*\n))+\$|!?\[[^\]]*\]\([^)]*\)|<summary>.*?</summary>|</?[a-zA-Z][^>]*>|^#+ [^\n]*$"
)
# A citation comes first: the numbers in it, and those "of the paper", are the cited work's own.
_LEADS = re.compile(
    r"\[(?P<numbers>\d+(?:, ?\d+)*)(?P<where>, [a-z][^\]]*)?\]"
    r"|\b(?P<kind>part|exercise|figure|equation)\s(?P<number>\d+(?:\.\d+)?+)(?:\sof\schapter\s(?P<of>\d+))?\b(?!\sof\sthe\spaper)"
    r"|\bchapters?\s(?P<chapter>\d+)\b(?:\s(?:and|or|to)\s(?P<last>\d+)\b)?"
    r"|\bthe\sfigure\s(?P<place>below|above)\b",
    re.IGNORECASE,
)
_NO_SCRIPT = "<div><noscript>The questions need JavaScript to be checked; without it each answer is folded under its question.</noscript></div>"


def translate(shelf: Shelf, chapter: Chapter) -> tuple[Notebook, dict[str, str]]:
    """The chapter for the book, and its pictures: SVG by file name.

    What cannot be resolved is added to shelf.faults: (name of the chapter, sentence).
    """
    return _Translation(shelf, chapter).run()


class _Translation:
    def __init__(self, shelf: Shelf, chapter: Chapter) -> None:
        self.shelf, self.chapter = shelf, chapter
        self.pictures: dict[str, str] = {}
        self.shown = 0  # figures so far
        self.formulas = 0
        self.words = Marker(shelf.terms)
        self.cell = ""
        self.places = shelf.on_page.sort(chapter) if shelf.on_page else {}

    def run(self) -> tuple[Notebook, dict[str, str]]:
        notebook = copy.deepcopy(self.chapter.notebook)
        cells: list[Cell] = []
        for cell in notebook["cells"]:
            self.cell = cell["id"]
            if cell["cell_type"] == "markdown":
                cell["source"] = self.text("".join(cell["source"]))
                cells.append(cell)
                if len(cells) == 1:
                    cells.append(self.head())
            elif cell["cell_type"] == "code":
                cells += self.code(cell)
        if entries := self.words.entries():
            cells.append(_markdown("meanings", entries))
        notebook["cells"] = cells
        return notebook, self.pictures

    def complain(self, sentence: str) -> None:
        self.shelf.faults.append((self.chapter.path.stem, f"cell {self.cell!r}: {sentence}"))

    # --- text

    def text(self, source: str) -> str:
        body, heading, listed = source.partition("## References")
        parts, end = [], 0
        for kept in _KEPT.finditer(body):
            parts += [self.prose(body[end : kept.start()]), self.keep(kept)]
            end = kept.end()
        parts.append(self.prose(body[end:]))
        return "".join(parts) + heading + LISTED.sub(self.reference, listed)

    def keep(self, kept: re.Match[str]) -> str:
        """What is not prose; headings and formulas get their numbers, named places an anchor for MyST."""
        piece = kept[0]
        if piece.startswith("## "):
            self.words.begin_part()
        if found := re.fullmatch(r"(#+) (Part|Exercise) (\d+)(.*)", piece):
            marks, kind, number, rest = found.groups()
            anchor = self.chapter.anchor(kind.lower(), number)
            if kind == "Exercise":
                number = f"{self.chapter.number}.{number}"
            return f"({anchor})=\n\n{marks} {kind} {number}{rest}"
        if piece.startswith("#"):
            return typeset(piece)
        if found := re.fullmatch(r'<a id="([\w-]+)">', piece):
            return f"\n({found[1]})=\n<a>"
        if formula := FORMULA.match(kept.string, kept.start()):
            return self.formula(formula)
        if piece.startswith(("$$", "\\begin")):
            self.complain(f"{_short(piece)} is a displayed formula that does not end its line")
        return piece

    def formula(self, found: re.Match[str]) -> str:
        """A displayed formula with its number, in a paragraph of its own: beside text MyST would show its number as text."""
        self.formulas += 1
        before = found.string[: found.start()].rpartition("\n")[2]
        if re.match(r"\s*([-*+>|#]|\d+[.)])", before):
            self.complain(f"{_short(found[0])} is a displayed formula that does not begin its line")
        indent = before if before.isspace() else ""
        inner = re.sub(r"\n\s*\n", "\n", found["inner"] or found["bare"])
        return f"\n\n{indent}$${inner}$$ ({self.chapter.anchor('equation', self.formulas)})\n\n"

    def prose(self, text: str) -> str:
        for mark in re.findall(
            r"\$\$|\\begin\{\w+\*?\}|\\end\{\w+\*?\}|\\\\?[(\[](?=[^\n]*\\\\?[)\]])", text
        ):
            self.complain(f"{mark} begins or ends no formula that the book can set")
        parts, end = [], 0
        for found in _LEADS.finditer(text):
            lead = self.citation if found["numbers"] else self.named
            parts += [self.plain(text[end : found.start()]), lead(found)]
            end = found.end()
        return "".join([*parts, self.plain(text[end:])])

    def plain(self, text: str) -> str:
        """Text in which nothing leads within the book but words of the glossary."""
        return self.words.mark(typeset(text))

    def citation(self, found: re.Match[str]) -> str:
        numbers = re.split(", ?", found["numbers"])
        for number in numbers:
            if number not in self.chapter.references:
                self.complain(f"cites [{number}], which its References do not list")
        links = (f'<a href="#reference-{number}">{number}</a>' for number in numbers)
        return f'<span class="cite">[{", ".join(links)}{found["where"] or ""}]</span>'

    def reference(self, found: re.Match[str]) -> str:
        number, line = found["number"], found["line"]
        work = find_work(line, self.shelf.works)
        if work is None:
            self.complain(f"reference {number} is not in references.bib: {line}")
            return found[0]
        self.shelf.cited.setdefault(work.key, []).append((self.chapter.number, number))
        line = re.sub(
            r"arXiv:(\d{4}\.\d{4,5})", r'<a href="https://arxiv.org/abs/\1">arXiv:\1</a>', line
        )
        every = f'<a class="more" href="../bibliography.html#{work.key}">in the bibliography</a>'
        return f'{number}. <span id="reference-{number}">{line}</span> {every}'

    def named(self, found: re.Match[str]) -> str:
        """A link to the part, exercise, figure, equation or chapter that the words name."""
        if found["chapter"]:
            return self.chapters(found)
        if found["place"]:
            step = 1 if found["place"].lower() == "below" else 0
            goal, anchor = self.chapter, self.chapter.anchor("figure", self.shown + step)
        else:
            chapter, _, number = found["number"].rpartition(".")
            other = self.shelf.by_number(found["of"] or chapter or self.chapter.number)
            if other is None:
                return self.nowhere(found[0])
            goal, anchor = other, other.anchor(found["kind"].lower(), number)
        if anchor not in goal.anchors:
            return self.nowhere(found[0])
        page = "" if goal is self.chapter else goal.page
        return f'<a href="{page}#{anchor}">{found[0]}</a>'

    def chapters(self, found: re.Match[str]) -> str:
        """A link to "chapter 5", or two in "chapters 1 to 4"; none to the chapter that says so."""
        first, last = map(
            self.shelf.by_number, (found["chapter"], found["last"] or found["chapter"])
        )
        if first is None or last is None:
            return self.nowhere(found[0])
        if not found["last"]:
            return self.linked(first, found[0])
        word, numbers = found[0].split(maxsplit=1)
        middle = numbers[len(found["chapter"]) : -len(found["last"])]
        ends = self.linked(first, found["chapter"]), self.linked(last, found["last"])
        return f"{word} {middle.join(ends)}"

    def linked(self, chapter: Chapter, words: str) -> str:
        return words if chapter is self.chapter else f'<a href="{chapter.page}">{words}</a>'

    def nowhere(self, words: str) -> str:
        self.complain(f"says {' '.join(words.split())!r}, which is nowhere in the book")
        return words

    # --- code

    def code(self, cell: Cell) -> Iterator[Cell]:
        metadata = cell["metadata"]
        tags = metadata.setdefault("tags", [])
        cell["outputs"] = [self.output(cell, o) for o in cell["outputs"] if not _is_empty(o)]
        if cell["id"] == "imports":
            tags.append("hide-input")
            metadata["mystnb"] = {"code_prompt_show": "Imports", "code_prompt_hide": "Imports"}
        if "quiz" in tags:
            tags.append("remove-input")
        if "solution" in tags:
            tags.append("hide-cell")
            metadata["mystnb"] = {
                "code_prompt_show": "Show the solution",
                "code_prompt_hide": "Hide the solution",
            }
        yield cell
        if "quiz" in tags:
            yield _markdown(f"without-script-{cell['id']}", _NO_SCRIPT)
        says = f'This check runs in Python, with the notebook: {self.ways()}. <a href="../run.html">How</a>'
        offered = f'<p class="offer">{says}</p>' if "exercise" in tags else ""
        if self.places:
            offered = offer(cell["id"], self.places[cell["id"]], says)
        if offered:
            yield _markdown(f"offer-{cell['id']}", offered)

    def output(self, cell: Cell, output: Cell) -> Cell:
        """An output as it is, or as the figure that it holds."""
        kind = figure_kind(output)
        if not kind:
            return output
        self.shown += 1
        anchor = self.chapter.anchor("figure", self.shown)
        if kind == "live":
            inner = self.shelf.live_html(self.chapter.path.stem, cell["id"], anchor)
        else:
            inner = self.picture(anchor, output)
        name = _name(anchor) + (", live" if kind == "live" else "")
        shown = figure_html(anchor, kind, inner, name, cell["id"])
        return output | {"data": {"text/html": shown}, "metadata": {}}

    def picture(self, anchor: str, output: Cell) -> str:
        svg = "".join(output["data"]["image/svg+xml"])
        alt = output.get("metadata", {}).get("image/svg+xml", {}).get("alt", "")
        name = f"{anchor}.svg"
        self.pictures[name] = svg
        width, height = _size(svg)
        return (
            f'<div class="scroll" tabindex="0" role="group" aria-label="{_name(anchor)}"><img src="../_images/{name}" alt="{escape(alt)}" '
            f'width="{width}" height="{height}" loading="lazy"></div>'
        )

    def head(self) -> Cell:
        """Under the title: what this page can do, how to run the chapter, and its printed version."""
        paper = ""
        if self.shelf.printed:
            paper = (
                f' <span>Print: <a href="../download/{self.chapter.path.stem}.pdf">PDF</a></span>'
            )
        return _markdown(
            "offer-head",
            f'<p class="offer head"><span>{self.says_where()} (<a href="../run.html">how</a>): {self.ways()}</span>{paper} '
            '<span>For a lecture: <a href="?slides">slides</a></span></p>',
        )

    def says_where(self) -> str:
        """What can be done on the page, and what in JupyterLab."""
        notebook = "On this page the figures and questions answer; cells run in JupyterLab"
        kinds = {place.kind for place in self.places.values()}
        if not kinds & {"exercise", "runs"}:
            return notebook
        exercises = ", questions and exercises" if "exercise" in kinds else " and questions"
        rest = "the others run in JupyterLab" if "needs" in kinds else "all run in JupyterLab too"
        page = (
            f"On this page the figures{exercises} answer, and cells can be edited and run; {rest}"
        )
        return f'<span class="in-notebook">{notebook}</span><span class="on-page">{page}</span>'

    def ways(self) -> str:
        offers = self.shelf.offers(self.chapter.path.name)
        return " · ".join(f'<a href="{href}">{name}</a>' for name, href in offers.items())


def figure_html(anchor: str, kind: str, inner: str, name: str, cell: str) -> str:
    """A figure with its number; a live one has a page of its own, too."""
    own = f' · <a href="../embed/{cell}.html">alone</a>' if kind == "live" else ""
    return (
        f'<figure class="{kind}-figure" id="{anchor}" data-cell="{cell}">{inner}'
        f'<figcaption><a href="#{anchor}">{name}</a>{own}</figcaption></figure>'
    )


def _name(anchor: str) -> str:
    return f"Figure {anchor.removeprefix('figure-').replace('-', '.')}"


def _short(formula: str) -> str:
    """A formula's beginning, on one line."""
    return repr(" ".join(formula.split())[:40])


def _is_empty(output: Cell) -> bool:
    """Whether an output only holds the place of something that runs in JupyterLab."""
    return bool(re.fullmatch(r"<!--.*-->", "".join(output.get("data", {}).get("text/html", ""))))


def _markdown(name: str, source: str) -> Cell:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


def _size(svg: str) -> tuple[int, int]:
    """Width and height of an SVG in pixels."""
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    if found is None:
        raise ValueError("a stored SVG has no viewBox")
    width, height = (round(float(number) * 4 / 3) for number in found.groups())
    return width, height
