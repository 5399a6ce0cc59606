"""The rules that a stored chapter keeps. Each is a function from a notebook to the sentences that
say where it is broken.

`RULES` lists them for one notebook, `repeated_functions` looks at all chapters together, and
`broken_links` at any Markdown. CONTRIBUTING.md explains them.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from nbformat import NotebookNode
from nbformat.validator import iter_validate

from tests.notebooks import CLOCK, ID, VIEW

TAGS = {
    "exercise": "a stub that the reader fills in, and its check",
    "solution": "a folded answer to the exercise above it",
    "quiz": "multiple-choice questions",
    "further": "below the line of the core beats: may be left out",
    "hide-input": "the book folds the code",
    "hide-output": "the book folds the output",
    "hide-cell": "the book folds both",
    "remove-input": "the book shows the output only",
    "raises-exception": "the cell ends in an error, and shows it",
    CLOCK: "the output comes off a clock; it is stored once and not compared",
}
LONG = {"exercise", "solution", "quiz"}
LINES = 8
GENERATOR = re.compile(
    r"^(\w+) = .*(?:default_rng\([^()]*\)|Generator\(\)(?:\.manual_seed\(\w*\))?)$", re.MULTILINE
)
BYTES = 200_000
Rule = Callable[[NotebookNode], Iterator[str]]


def tags(cell: NotebookNode) -> set[str]:
    """The tags of a cell."""
    return set(cell.metadata.get("tags", []))


def code_cells(nb: NotebookNode) -> Iterator[tuple[str, NotebookNode]]:
    """Each code cell with the name a reader finds it by: `cell 3`, all cells counted from 1."""
    for number, cell in enumerate(nb.cells, 1):
        if cell.cell_type == "code":
            yield f"cell {number}", cell


def outputs(nb: NotebookNode) -> Iterator[tuple[str, str, str]]:
    """Every stored text: where, its kind (a MIME type or `stream`), the text itself."""
    for where, cell in code_cells(nb):
        for output in cell.outputs:
            if output.output_type == "stream":
                yield where, "stream", joined(output.text)
            for kind, value in output.get("data", {}).items():
                yield where, kind, joined(value)


def joined(value: object) -> str:
    """The text of a MIME bundle's value, which may be stored as a list of lines or as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    return json.dumps(value)


def tree(cell: NotebookNode) -> ast.Module:
    """The syntax tree of a code cell; lines that are for IPython (`%`, `!`) count as empty."""
    lines = joined(cell.source).splitlines()
    return ast.parse("\n".join("pass" if re.match(r"[%!]", line) else line for line in lines))


# --- rules for one notebook


def format_valid(nb: NotebookNode) -> Iterator[str]:
    """The notebook follows the format's schema, version 4.5 or later 4."""
    for error in iter_validate(nb):  # type: ignore[no-untyped-call]
        yield f"not a valid notebook: {str(error).splitlines()[0]}"
    if (nb.nbformat, nb.nbformat_minor) < (4, 5):
        yield f"format {nb.nbformat}.{nb.nbformat_minor} is older than 4.5, which knows cell ids"


def ids_unique(nb: NotebookNode) -> Iterator[str]:
    """Every cell has an id of its own."""
    names = [cell.get("id") for cell in nb.cells]
    for number, name in enumerate(names, 1):
        if not isinstance(name, str) or not ID.fullmatch(name):
            yield f"cell {number}: no cell id"
    for name, count in Counter(filter(None, names)).items():
        if count > 1:
            yield f"{count} cells share the id {name}"


def counted(nb: NotebookNode) -> Iterator[str]:
    """The code cells were run once each, from top to bottom: 1, 2, 3, …"""
    for expected, (where, cell) in enumerate(code_cells(nb), 1):
        if cell.get("execution_count") != expected:
            yield f"{where}: execution count {cell.get('execution_count')}, expected {expected}"


def no_widget_state(nb: NotebookNode) -> Iterator[str]:
    """No widget state is left in the metadata: it is random, and GitHub refuses half of it."""
    if "widgets" in nb.metadata:
        yield "widget state in the metadata"


def widgets_have_fallback(nb: NotebookNode) -> Iterator[str]:
    """A widget stores a picture or text in `text/html`: on opening again its model is gone."""
    for where, cell in code_cells(nb):
        if any(VIEW in output.get("data", {}) for output in cell.outputs):
            yield f"{where}: a widget's view is stored instead of text/html"


def tags_known(nb: NotebookNode) -> Iterator[str]:
    """Only tags of TAGS."""
    for number, cell in enumerate(nb.cells, 1):
        for tag in sorted(tags(cell) - set(TAGS)):
            yield f"cell {number}: unknown tag {tag}"


def solutions_folded(nb: NotebookNode) -> Iterator[str]:
    """A solution is folded away until the reader opens it."""
    for where, cell in code_cells(nb):
        folded = cell.metadata.get("jupyter", {}).get("source_hidden", False)
        if "solution" in tags(cell) and not folded:
            yield f"{where}: a solution in plain sight (metadata jupyter.source_hidden)"


def no_error(nb: NotebookNode) -> Iterator[str]:
    """No error is stored, save in a cell tagged raises-exception."""
    for where, cell in code_cells(nb):
        if "raises-exception" not in tags(cell):
            for output in cell.outputs:
                if output.output_type == "error":
                    yield f"{where}: stored error {output.get('ename')}"


def no_warning(nb: NotebookNode) -> Iterator[str]:
    """Nothing was printed on standard error: warnings are mended, not stored."""
    for where, cell in code_cells(nb):
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr":
                yield f"{where}: standard error: {joined(output.text).strip()[:80]}"


def short(nb: NotebookNode) -> Iterator[str]:
    """A cell holds at most eight lines of code, without comments and empty lines.

    The first code cell, exercises, solutions and questions may be longer.
    """
    for position, (where, cell) in enumerate(code_cells(nb)):
        lines = [line.strip() for line in joined(cell.source).splitlines()]
        count = sum(bool(line) and not line.startswith("#") for line in lines)
        if count > LINES and position > 0 and not tags(cell) & LONG:
            yield f"{where}: {count} lines of code, at most {LINES}"


def one_import_cell(nb: NotebookNode) -> Iterator[str]:
    """Only the first code cell imports."""
    for position, (where, cell) in enumerate(code_cells(nb)):
        try:
            nodes = list(ast.walk(tree(cell)))
        except SyntaxError as error:
            if "raises-exception" not in tags(cell):
                yield f"{where}: not Python: {error.msg}"
            continue
        if position > 0 and any(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes):
            yield f"{where}: an import outside the first code cell"


def own_generators(nb: NotebookNode) -> Iterator[str]:
    """A cell that draws makes its Generator: so it draws the same numbers when it is run again."""
    made: set[str] = set()
    for where, cell in code_cells(nb):
        own = set(GENERATOR.findall(joined(cell.source)))
        made |= own
        if made - own and "raises-exception" not in tags(cell):
            nodes = list(ast.walk(tree(cell)))
            bound = own | {node.arg for node in nodes if isinstance(node, ast.arg)}
            names = {node.id for node in nodes if isinstance(node, ast.Name)}
            for name in sorted(made & names - bound):
                yield f"{where}: draws from {name}, the Generator of another cell"


def figures_described(nb: NotebookNode) -> Iterator[str]:
    """Every figure, in outputs and in Markdown, has alternative text that says what is seen."""
    for where, cell in code_cells(nb):
        for output in cell.outputs:
            for kind, value in output.get("data", {}).items():
                if kind.startswith("image/") and kind != "image/svg+xml":
                    alt = picture_alt(cell, output, kind)
                    yield from (f"{where}: {kind}: {fault}" for fault in faults_of_alt(alt))
                elif kind in ("image/svg+xml", "text/html"):
                    yield from (f"{where}: {fault}" for fault in faults_of_html(joined(value)))
    for number, cell in enumerate(nb.cells, 1):
        if cell.cell_type == "markdown":
            text = without_code(joined(cell.source))
            for alt in re.findall(r"!\[([^\]]*)\]\(", text):
                yield from (f"cell {number}: picture: {fault}" for fault in faults_of_alt(alt))
            yield from (f"cell {number}: {fault}" for fault in faults_of_html(text))


def picture_alt(cell: NotebookNode, output: NotebookNode, kind: str) -> str:
    """The alternative text of a raster picture: from the output's metadata or the cell's."""
    of_output = output.get("metadata", {})
    of_book = cell.metadata.get("mystnb", {}).get("image", {})
    found = of_output.get(kind, {}).get("alt") or of_output.get("alt") or of_book.get("alt")
    return str(found or "")


def faults_of_alt(alt: str) -> Iterator[str]:
    """What is wrong with an alternative text: empty, a mere label, or the name of a file."""
    words = alt.split()
    if not words:
        yield "no alternative text"
    elif re.fullmatch(r"\S+\.(png|svg|jpe?g|gif|webp)", alt.strip(), re.IGNORECASE):
        yield f"alternative text {alt!r} is the name of a file"
    elif len(words) < 3:
        yield f"alternative text {alt!r} does not say what is seen"


def faults_of_html(html: str) -> Iterator[str]:
    """What is wrong with the alternative texts of all <svg> and <img> in a piece of HTML or SVG."""
    reader = AltReader()
    reader.feed(html)
    reader.close()
    for name, alt in reader.found:
        yield from (f"<{name}>: {fault}" for fault in faults_of_alt(alt))


class AltReader(HTMLParser):
    """Collects `found`: each outer <svg> and each <img> with its alternative text.

    An SVG's is its aria-label, <title> and <desc> together. What is aria-hidden, and scripts, are
    passed over.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.depth = 0
        self.hidden = False
        self.words: list[str] = []
        self.reading = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "img" and values.get("aria-hidden") != "true":
            self.found.append(("img", values.get("alt") or ""))
        elif tag == "svg":
            if self.depth == 0:
                self.hidden = values.get("aria-hidden") == "true"
                self.words = [values.get("aria-label") or ""]
            self.depth += 1
        elif tag in ("title", "desc") and self.depth:
            self.reading = True

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag in ("svg", "title", "desc"):
            self.handle_endtag(tag)

    def handle_data(self, data: str) -> None:
        if self.reading:
            self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("title", "desc"):
            self.reading = False
        elif tag == "svg" and self.depth:
            self.depth -= 1
            if self.depth == 0 and not self.hidden:
                self.found.append(("svg", " ".join(self.words)))


PATHS = re.compile(
    r"(?<![\w/.:<])/(?:home|root|Users|tmp|var|opt|mnt|private|usr|workspace?|content|app)/\w"
    r"|\b[A-Za-z]:\\{1,2}[A-Za-z]"
)
NETWORK = re.compile(
    r"""\b(?:src|srcset|data)\s*=\s*\\?["']?(?:https?:)?//   # an element that loads
    |<link\b[^>]*\bhref\s*=\s*\\?["']?(?:https?:)?//          # a style sheet
    |\b(?:import|fetch|url|from|require)\b\s*\(?\s*\\?["']?https?://
    |\b(?:src|href)\s*=\s*\\?["']https?://
    |//[\w.-]*\bcdn\b""",
    re.VERBOSE | re.IGNORECASE,
)


def no_machine(nb: NotebookNode) -> Iterator[str]:
    """No output names a folder or an address in memory of the machine that stored it."""
    for where, kind, text in outputs(nb):
        if found := PATHS.search(text):
            yield f"{where}: {kind} names a path of one machine: {around(text, found)}"
        if found := re.search(r"\b0x[0-9a-f]{6,}", text):
            yield f"{where}: {kind} holds an object's address: {around(text, found)}"


def no_network(nb: NotebookNode) -> Iterator[str]:
    """No output loads anything over the network."""
    for where, kind, text in outputs(nb):
        if found := NETWORK.search(without_links(text)):
            yield f"{where}: {kind} loads from the network: {around(without_links(text), found)}"


def small(nb: NotebookNode) -> Iterator[str]:
    """No cell stores more than 200 kB of output."""
    for where, cell in code_cells(nb):
        size = len(json.dumps(cell.outputs).encode())
        if size > BYTES:
            yield f"{where}: {size:,} bytes of output, at most {BYTES:,}"


PART = re.compile(r"(?m)^## Part \d+: .*?\((\d+) minutes\)$")
SECTION = re.compile(r"(?m)^## .*$")


def minutes(cells: Iterable[NotebookNode]) -> float:
    """How long a reader needs: 150 words or 8 lines of code a minute, 6 minutes for an exercise, 45
    seconds for a question, 3 minutes for a live figure. Imports, solutions and References are free.
    """
    total = 0.0
    for cell in cells:
        source = joined(cell.source)
        if cell.cell_type == "markdown":
            total += len(source.partition("## References")[0].split()) / 150
        elif "exercise" in tags(cell):
            total += 6
        elif "quiz" in tags(cell):
            total += 0.75 * len(re.findall(r'(?m)^    "', source))
        elif cell.get("id") != "imports" and "solution" not in tags(cell):
            lines = sum(bool(line.strip()) for line in source.splitlines())
            total += lines / 8 + 3 * source.count("figures.Explore")
    return total


def time_stated(nb: NotebookNode) -> Iterator[str]:
    """The minutes that a chapter states, for itself and for each part, are those of its count."""
    parts = [(at, found) for at, cell in enumerate(nb.cells) if (found := PART.search(cell.source))]
    if not parts:
        return
    first = joined(nb.cells[0].source)
    stated = [("the chapter", re.search(r"about (\d+) minutes", first), nb.cells)]
    ends = [
        at
        for at, cell in enumerate(nb.cells)
        if cell.cell_type == "markdown" and SECTION.search(cell.source)
    ]
    for at, found in parts:
        end = next((other for other in ends if other > at), len(nb.cells))
        stated.append((found[0].partition(":")[0].strip("# "), found, nb.cells[at:end]))
    for name, found, cells in stated:
        count = minutes(cells)
        if not found or int(found[1]) % 5 or abs(int(found[1]) - count) > 5:
            yield f"{name} states {found[1] if found else 'no'} minutes, its count gives {count:.0f}"


def few_predictions(nb: NotebookNode) -> Iterator[str]:
    """A chapter asks for at most six predictions: those whose answer surprises."""
    text = "\n".join(joined(cell.source) for cell in nb.cells if cell.cell_type == "markdown")
    if (count := text.count("**Predict")) > 6:
        yield f"{count} predictions, at most 6"


def questions(nb: NotebookNode) -> Iterator[tuple[str, list[str]]]:
    """Each multiple-choice question with its answers, as written: "+ right", "- wrong"."""
    for _, cell in code_cells(nb):
        for node in ast.walk(tree(cell)) if "quiz" in tags(cell) else ():
            if isinstance(node, ast.Dict) and node.values and isinstance(node.values[0], ast.Dict):
                for question, answers in ast.literal_eval(node).items():
                    yield question, list(answers)


def answers_even(nb: NotebookNode) -> Iterator[str]:
    """A right answer gives itself away neither by its place nor by its length."""
    asked = [
        (answers, [answer[0] for answer in answers].index("+")) for _, answers in questions(nb)
    ]
    longest = sum(
        len(answers[at]) > max(len(each) for each in answers if each != answers[at])
        for answers, at in asked
    )
    if longest > len(asked) / 2:
        yield f"{longest} of {len(asked)} right answers are the longest, at most half"
    for place, count in Counter(at for _, at in asked).items():
        if len(asked) > 2 and count > 0.6 * len(asked):
            yield f"{count} of {len(asked)} right answers are number {place + 1}, at most 60 %"


RULES: tuple[Rule, ...] = (
    format_valid,
    ids_unique,
    counted,
    no_widget_state,
    widgets_have_fallback,
    tags_known,
    solutions_folded,
    no_error,
    no_warning,
    short,
    one_import_cell,
    own_generators,
    figures_described,
    no_machine,
    no_network,
    small,
    time_stated,
    few_predictions,
    answers_even,
)


def around(text: str, found: re.Match[str]) -> str:
    """The place of a match, on one line."""
    return " ".join(text[max(0, found.start() - 20) : found.end() + 30].split())


def without_links(html: str) -> str:
    """HTML without its <a href> targets, which load nothing until the reader follows them."""
    return re.sub(r"<a\b[^>]*>", "<a>", html)


def without_code(markdown: str) -> str:
    """Markdown without its code, fenced or within a line."""
    return re.sub(r"(?s)```.*?```|~~~.*?~~~|`[^`\n]*`", "", markdown)


# --- rules for several files


def repeated_functions(chapters: Mapping[str, NotebookNode]) -> Iterator[str]:
    """No function is defined in two chapters: it belongs in the library or in `figures`."""
    homes: dict[str, set[str]] = defaultdict(set)
    for name, nb in chapters.items():
        for _, cell in code_cells(nb):
            try:
                nodes = tree(cell).body
            except SyntaxError:
                continue  # one_import_cell reports it
            for node in nodes:
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    homes[node.name].add(name)
    for function, names in sorted(homes.items()):
        if len(names) > 1:
            yield f"{function} is defined in {' and '.join(sorted(names))}"


def markdown_of(path: Path) -> str:
    """The text of a Markdown file, or of a notebook's Markdown cells."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    return "\n\n".join(joined(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def broken_links(path: Path) -> Iterator[str]:
    """Every local link and picture of a Markdown file or notebook leads to a file, and its
    #anchor to a heading there."""
    text = without_code(markdown_of(path))
    targets = re.findall(r"\]\(\s*<?([^\s)>]+)", text)
    targets += re.findall(r"""\b(?:href|src)\s*=\s*["']([^"']+)""", text)
    targets += re.findall(r"(?m)^\[[^\]]+\]:\s*(\S+)", text)
    for target in targets:
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        file, _, anchor = target.partition("#")
        goal = (path.parent / unquote(file)) if file else path
        if not goal.exists():
            yield f"{path.name}: {target} leads nowhere"
        elif anchor and goal.suffix in (".md", ".ipynb") and anchor not in anchors(goal):
            yield f"{path.name}: {target}: no such heading"


def anchors(path: Path) -> set[str]:
    """The anchors of a file's headings, as GitHub and JupyterLab spell them, and its HTML ids."""
    text = markdown_of(path)
    names = set(re.findall(r"""\bid\s*=\s*["']([^"']+)""", text))
    for heading in re.findall(r"(?m)^#{1,6}\s+(.+?)\s*#*$", without_code(text)):
        plain = re.sub(r"[*_`]|\]\([^)]*\)|\[", "", heading)
        names.add(plain.replace(" ", "-"))
        names.add(re.sub(r"[^\w -]", "", plain.lower()).replace(" ", "-"))
    return names
