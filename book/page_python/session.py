"""Runs the reader's code in the page and tells what it prints, shows and breaks.

One Session lives in a worker. It hears requests as JSON and answers by calls of `tell(kind, ...)`:
tell("above", number, of) before each cell that is run first, tell("running") before the reader's own,
tell("text", text), tell("picture", svg, alt), tell("error", text).
"""

import ast
import builtins
import contextlib
import io
import json
import linecache
import re
import sys
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from types import CodeType, ModuleType
from typing import Any

from .names import Piece, needed, pieces, read

Tell = Callable[..., None]
FILE = "<your code>"
HEAD, TAIL, LONGEST = 300, 20, 2000  # lines that are shown, and characters of one
DRAWS = re.compile(r"^\s*(?:import|from) +(?:figures|matplotlib|mpl_toolkits)\b", re.MULTILINE)


class Session:
    """The reader's Python on one page."""

    def __init__(self, tell: Tell) -> None:
        self.tell = tell
        _prepare(self._display)
        self.quiet = False

    def run(self, asked: str) -> None:
        """Run a cell: {"id": …, "source": …, "above": [[id, source], …]}, after those of `above` that it needs."""
        request = json.loads(asked)
        name, source = request["id"], request["source"]
        try:
            own = read(name, source)
            above = needed(pieces(request["above"]), own.uses)
        except (SyntaxError, ValueError, RecursionError) as error:
            self.tell("error", told(error, source))
            return
        namespace: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
        if self._run_above(above, namespace):
            self.tell("running")
            printed = Printed(lambda text: self.tell("text", text))
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                try:
                    run(source, FILE, namespace, show_last=True)
                    self._show_open_figures()
                except BaseException as error:
                    printed.end()
                    self.tell("error", told(error, source))
            printed.end()

    def draws(self, asked: str) -> bool:
        """Whether a request imports what draws, or a cell above that it needs does."""
        request = json.loads(asked)
        try:
            own = read(request["id"], request["source"])
            above = needed(pieces(request["above"]), own.uses)
        except (SyntaxError, ValueError, RecursionError):
            return False
        return any(DRAWS.search(piece.source) for piece in [*above, own] if piece.imported)

    def _run_above(self, above: Sequence[Piece], namespace: dict[str, Any]) -> bool:
        """Whether all of it ran."""
        cells = list(dict.fromkeys(piece.cell for piece in above if piece.cell != "imports"))
        for piece in above:
            if piece.cell in cells:
                self.tell("above", cells.index(piece.cell) + 1, len(cells))
            self.quiet = True
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    run(piece.source, f"<cell {piece.cell}>", namespace)
            except BaseException as error:
                where = (
                    "an import" if piece.cell == "imports" else "a cell above, which is run first"
                )
                self.tell("error", f"This comes from {where}.\n{told(error, piece.source)}")
                return False
            finally:
                self.quiet = False
        return True

    def _display(
        self, data: object, metadata: Mapping[str, Any] | None = None, raw: bool = False
    ) -> None:
        """What IPython's display does with what `figures.show` gives it, and with a value."""
        if self.quiet:
            return
        if not raw or not isinstance(data, dict):
            print(repr(data))
        elif "image/svg+xml" in data:
            self.tell("picture", data["image/svg+xml"], data.get("text/plain", ""))
        else:
            print(data.get("text/plain", ""))

    def _show_open_figures(self) -> None:
        pyplot: Any = sys.modules.get("matplotlib.pyplot")
        for number in pyplot.get_fignums() if pyplot else ():
            file = io.StringIO()
            pyplot.figure(number).savefig(file, format="svg")
            pyplot.close(number)
            self.tell("picture", file.getvalue(), "A figure that your code drew.")


class Printed(io.TextIOBase):
    """What is printed: its first lines and its last ones, and how many are left out between them."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._part = ""  # of a line that has not ended
        self._tail: deque[str] = deque(maxlen=TAIL)
        self._count = 0

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, text: str) -> int:
        """Keep what is to be shown."""
        if not isinstance(text, str):
            raise TypeError(f"what is printed is text: found {type(text).__name__}")
        *whole, part = text.split("\n")
        for line in whole:
            self._line(self._part + line)
            self._part = ""
        self._part = (self._part + part)[: LONGEST + 1]
        return len(text)

    def end(self) -> None:
        """Tell the rest, once nothing more comes."""
        part, self._part = self._part, ""
        if part:
            self._line(part)
        tail = list(self._tail)
        out = self._count - HEAD - len(tail)
        if out > 0:
            self._tell(f"… {out:,} lines are left out here …\n")
        if tail:
            self._tell("\n".join([*tail, ""]))
        self._tail.clear()
        self._count = 0

    def _line(self, line: str) -> None:
        if len(line) > LONGEST:
            line = f"{line[:LONGEST]} …"
        self._count += 1
        if self._count > HEAD:
            self._tail.append(line)
        else:
            self._tell(f"{line}\n")  # at once: the next line may never come


def run(source: str, file: str, namespace: dict[str, Any], *, show_last: bool = False) -> None:
    """Run code as a cell does: the value of its last line is shown, and errors know its lines."""
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    tree = ast.parse(source, file)
    last = tree.body[-1] if tree.body else None
    shown = None
    if show_last and isinstance(last, ast.Expr) and not source.rstrip().endswith(";"):
        shown = ast.Expression(last.value)
        tree.body.pop()
    exec(_compiled(tree, file, "exec"), namespace)
    if shown is not None:
        value = eval(_compiled(shown, file, "eval"), namespace)
        if value is not None:
            print(repr(value))


def _compiled(tree: ast.Module | ast.Expression, file: str, mode: str) -> CodeType:
    code: CodeType = compile(tree, file, mode)
    return code


def told(error: BaseException, source: str) -> str:
    """An error in the reader's words: the line of their own code, then what Python says."""
    said = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    if isinstance(error, SystemExit):
        return "The code ended itself with exit(). On this page nothing more happens."
    if isinstance(error, MemoryError):
        said = "MemoryError: there is no more memory for Python on this page"
    if isinstance(error, SyntaxError) and error.lineno is not None:
        number: int | None = error.lineno
    else:
        steps = traceback.extract_tb(error.__traceback__)
        number = next((s.lineno for s in reversed(steps) if _is_own(s.filename)), None)
    if number is None:
        return said
    lines = source.splitlines()
    line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    line = line if len(line) <= 100 else f"{line[:100]} …"
    return f"Line {number}: {line}\n{said}" if line else f"Line {number}\n{said}"


def _is_own(file: str) -> bool:
    return file == FILE or file.startswith("<cell ")


class Absent(MetaPathFinder):
    """Says of each module that is nowhere that it is not on this page."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        """Raises ModuleNotFoundError for a module that is not part of a package."""
        if path is None:
            sentence = f"{name} is not on this page: open the chapter in JupyterLab."
            raise ModuleNotFoundError(sentence, name=name)


def _prepare(display: Callable[..., None]) -> None:
    """Lay out what notebooks have and the browser has not, and refuse what cannot be."""

    def no_keyboard(prompt: object = "") -> str:
        raise RuntimeError("input() has no keyboard on this page: write the value into the code.")

    builtins.input = no_keyboard
    module = ModuleType("IPython.display")
    module.display = display  # type: ignore[attr-defined]
    sys.modules["IPython"] = ModuleType("IPython")
    sys.modules["IPython"].get_ipython = lambda: None  # type: ignore[attr-defined]
    sys.modules["IPython.display"] = module
    sys.modules["safetensors"] = import_module(".safetensors", __package__)
    names = [type(finder).__name__ for finder in sys.meta_path]
    place = next((i for i, name in enumerate(names) if "Unvendored" in name), len(names))
    sys.meta_path.insert(place, Absent())
