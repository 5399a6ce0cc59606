"""Run the chapters, bring them into one lasting form, and save them: `make notebooks`.

    python -m tests.notebooks [--measure | --pictures] [PATH ...]

Without a path, every chapter. A chapter that fails is left as it was, the others are still run, and
the exit status is 1. The rules that a stored chapter must keep are in `tests/rules.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import reads
from tqdm import tqdm

from figures import rest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = ROOT / "chapters"
CELL_LIMIT = 120.0  # seconds of CPU time for a cell
GUARD = 1800.0  # seconds on the clock, for a cell that waits and does not end

# IPython runs this in the kernel before the first cell: CPU time has a limit that no busy machine brings nearer. A new process of a cell
# inherits it and is ended by it.
LIMIT = """
def _limit(seconds):
    try:
        import resource, signal, time
    except ImportError:  # Windows
        return

    def begin(*_):
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds + 1), most))

    def end(*_):
        raise TimeoutError(f"the cell took more than {seconds:g} s of CPU time")

    signal.signal(signal.SIGXCPU, end)
    get_ipython().events.register("pre_run_cell", begin)

_limit(float(SECONDS))
del _limit
"""

VIEW = "application/vnd.jupyter.widget-view+json"
CLOCK = "nbval-ignore-output"

# What a notebook may keep of its metadata; an editor's own marks would come and go with the editor.
NOTEBOOK_KEYS = {"title", "authors", "mystnb"}
CELL_KEYS = {"tags", "jupyter", "editable", "deletable", "mystnb", "jp-MarkdownHeadingCollapsed"}
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class NotebookError(Exception):
    """A notebook did not run to its end; the message names the notebook and the cell."""


def chapters() -> list[Path]:
    """Every chapter, in reading order."""
    return sorted(CHAPTERS.glob("*.ipynb"))


def node(value: dict[str, Any]) -> NotebookNode:
    """A dictionary, and all within it, with its keys as attributes."""
    return cast(NotebookNode, nbformat.from_dict(value))  # type: ignore[no-untyped-call]


def read(path: Path) -> NotebookNode:
    """The notebook as it is stored, not repaired on the way."""
    return cast(NotebookNode, reads(path.read_text(encoding="utf-8")))  # type: ignore[no-untyped-call]


def text_of(nb: NotebookNode) -> str:
    """The notebook as it is stored: in JupyterLab's own layout, keys sorted, one last newline."""
    text: str = nbformat.writes(nb, version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
    return text.rstrip("\n") + "\n"


def write(path: Path, nb: NotebookNode) -> bool:
    """Store `nb` in one step; returns whether the file changed."""
    text = text_of(nb)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8", newline="\n")
    os.replace(partial, path)
    return True


@contextlib.contextmanager
def kernel_environment(
    limit: float = CELL_LIMIT, probe: str = "", **extra: str
) -> Iterator[dict[str, str]]:
    """The environment of a kernel for a run that is stored or compared.

    One thread, and IPython's own settings instead of the user's. A cell has `limit` seconds of CPU time; `probe` is run before the first.
    `extra` adds variables or replaces them.
    """
    with tempfile.TemporaryDirectory(prefix="ipython-") as profile:
        startup = Path(profile, "profile_default", "startup")
        startup.mkdir(parents=True)
        first = LIMIT.replace("SECONDS", repr(limit)) + probe
        (startup / "00-first.py").write_text(first, encoding="utf-8")
        yield {**os.environ, "OMP_NUM_THREADS": "1", "IPYTHONDIR": profile, **extra}


def run(
    path: Path,
    *,
    limit: float = CELL_LIMIT,
    twice: bool = False,
    progress: Callable[[], object] = lambda: None,
) -> NotebookNode:
    """Execute a notebook in a fresh kernel, in its own folder, and return it with its new outputs.

    `limit` is in seconds of CPU time, per cell. `twice` runs each code cell two times in a row, as an
    impatient reader does. `progress` is called after each cell. Raises NotebookError when a cell
    raises, does not end in time, or ends the kernel.
    """
    nb = read(path)
    if twice:
        doubled = [cell for cell in nb.cells for _ in range(1 + (cell.cell_type == "code"))]
        nb.cells = [copy.deepcopy(cell) for cell in doubled]
        repair_ids(nb)
    at = 0

    def started(cell: NotebookNode, cell_index: int) -> None:
        nonlocal at
        at = cell_index

    client = NotebookClient(
        nb,
        timeout=GUARD,
        kernel_name=KERNEL["name"],
        store_widget_state=False,
        record_timing=False,
        extra_arguments=["--IPKernelApp.log_level=40"],
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_start=started,
        on_cell_executed=lambda **_: progress(),
    )
    try:
        # No progress bars: their rates would differ on each run.
        with kernel_environment(limit, TQDM_DISABLE="1") as environment:
            client.execute(env=environment)
    except CellTimeoutError as error:
        raise NotebookError(f"{place(path, nb, at)} did not end in {GUARD:g} s") from error
    except DeadKernelError as error:
        raise NotebookError(f"{place(path, nb, at)} ended the kernel") from error
    except CellExecutionError as error:
        raise NotebookError(f"{place(path, nb, at)} raised:\n{error}") from error
    return nb


def place(path: Path, nb: NotebookNode, index: int) -> str:
    """Where a reader finds a cell: `01_x.ipynb, cell 3 (id abc)`, all cells counted from 1."""
    return f"{path.name}, cell {index + 1} (id {nb.cells[index].get('id', 'missing')})"


def normalise(nb: NotebookNode) -> NotebookNode:
    """The same notebook in the form that is stored: equal runs give equal text.

    Removes what is random or belongs to an editor (widget state, model ids, timing, foreign
    metadata), repairs missing and repeated cell ids, joins the pieces of a printed stream, and
    counts the code cells from 1. A widget that also has `text/html` keeps only that, so that a
    stored notebook shows its resting picture instead of a widget whose model is gone.
    """
    nb = copy.deepcopy(nb)
    nb.nbformat, nb.nbformat_minor = 4, 5
    repair_ids(nb)
    kept = {key: value for key, value in nb.metadata.items() if key in NOTEBOOK_KEYS}
    nb.metadata = node({**kept, "kernelspec": KERNEL, "language_info": {"name": "python"}})
    models: dict[str, str] = {}
    count = 0
    for cell in nb.cells:
        kept = {key: value for key, value in cell.metadata.items() if key in CELL_KEYS}
        cell.metadata = node({key: value for key, value in kept.items() if value != []})
        if cell.cell_type != "code":
            continue
        count += 1
        cell.execution_count = count
        cell.outputs = joined(cell.outputs)
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count
            output.pop("transient", None)
            settle_widget(output.get("data", {}), models)
    return nb


def repair_ids(nb: NotebookNode) -> None:
    """Give each cell an id of its own; one that has a good id keeps it."""
    taken = {str(cell.get("id", "")) for cell in nb.cells}
    seen: set[str] = set()
    for number, cell in enumerate(nb.cells, 1):
        name = str(cell.get("id", ""))
        if not ID.fullmatch(name) or name in seen:
            name = f"cell-{number}"
            while name in taken | seen:
                name += "-"
            cell["id"] = name
        seen.add(name)


def joined(outputs: Sequence[NotebookNode]) -> list[NotebookNode]:
    """Outputs with the pieces of each stream in one: where a stream is cut depends on the clock.

    Standard output and standard error reach the notebook in no fixed order, so each is joined over
    the whole cell, as nbval does.
    """
    whole: dict[str, NotebookNode] = {}
    result = []
    for output in outputs:
        if output.output_type == "stream" and output.name in whole:
            whole[output.name].text += output.text
        else:
            result.append(output)
            if output.output_type == "stream":
                whole[output.name] = output
    return result


def settle_widget(data: dict[str, Any], models: dict[str, str]) -> None:
    """Drop a widget's view beside `text/html`; elsewhere number its model by its place."""
    if VIEW not in data:
        return
    if "text/html" in data:
        del data[VIEW]
    else:
        old = data[VIEW]["model_id"]
        data[VIEW]["model_id"] = models.setdefault(old, f"{len(models) + 1:032x}")


def keep_measured(new: NotebookNode, stored: NotebookNode) -> None:
    """Give the cells of `new` that read a clock the outputs that they have in `stored`."""
    outputs = {cell.get("id"): cell.outputs for cell in stored.cells if cell.cell_type == "code"}
    for cell in new.cells:
        if CLOCK in cell.metadata.get("tags", []):
            cell.outputs = outputs.get(cell.id) or cell.outputs


def remake(
    path: Path,
    *,
    measure: bool = False,
    limit: float = CELL_LIMIT,
    browser: Browser | None = None,
) -> bool:
    """Run a notebook and store it; returns whether the file changed.

    Outputs of cells tagged `nbval-ignore-output` stay as they are stored unless `measure`. Live figures
    are stored with their pictures at rest if there is a browser to draw them.
    """
    stored = read(path)
    cells = tqdm(total=len(stored.cells), desc=path.name, unit="cell", leave=False)
    with cells:
        nb = run(path, limit=limit, progress=cells.update)
    repair_ids(stored)
    repair_ids(nb)
    if not measure:
        keep_measured(nb, stored)
    nb = normalise(nb)
    if browser is not None:
        redraw(nb, browser)
    return write(path, nb)


def redraw(nb: NotebookNode, browser: Browser) -> None:
    """Give each live figure of a notebook the picture at rest that its JavaScript draws now."""
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            html = output.get("data", {}).get("text/html", "")
            if 'class="explore"' in html:
                output.data["text/html"] = rest.redraw(html, browser)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.notebooks", description="Rerun the chapters and store their outputs."
    )
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks (default: every chapter)")
    parser.add_argument(
        "--measure", action="store_true", help=f"also store new outputs of cells tagged {CLOCK}"
    )
    parser.add_argument(
        "--limit", type=float, default=CELL_LIMIT, help="seconds of CPU time for a cell"
    )
    parser.add_argument(
        "--pictures", action="store_true", help="run nothing; draw live figures at rest anew"
    )
    options = parser.parse_args(arguments)
    with rest.running_browser() as browser:
        if browser is None:
            print("No Chromium here: live figures are stored without a picture.", file=sys.stderr)
        return remake_all(options, browser)


def remake_all(options: argparse.Namespace, browser: Browser | None) -> int:
    """Remake the notebooks that the command line names; returns the exit status."""
    failed = 0
    for path in options.paths or chapters():
        start = time.perf_counter()
        try:
            if not options.pictures:
                changed = remake(
                    path, measure=options.measure, limit=options.limit, browser=browser
                )
            else:
                nb = read(path)
                if browser is not None:
                    redraw(nb, browser)
                changed = write(path, nb)
        except (NotebookError, OSError, ValueError) as error:
            failed += 1
            print(f"{path.name}: FAILED, left as it was\n{error}", file=sys.stderr)
        else:
            state = "stored anew" if changed else "unchanged"
            print(f"{path.name}: {state} ({time.perf_counter() - start:.1f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
