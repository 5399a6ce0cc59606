"""What `python -m benchmarks.gpu` measured on a GPU, if somebody has: read, checked, and put into words.

The file is `cost/gpu.json`. No machine that this book was made on had a GPU unless it is there.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PATH = Path(__file__).parent / "gpu.json"
OURS = "this book's kernel"


@dataclass(frozen=True)
class Row:
    """One way to compute attention, timed; or refused, with the reason in place of a time.

    way           OURS, or a backend of torch's scaled_dot_product_attention
    backward      the gradients, without the forward pass before them
    milliseconds  the median
    tflops        10¹² operations a second: 4 n² d a head forward, 10 n² d backward, causal half of it
    """

    way: str
    width: int
    n: int
    causal: bool
    backward: bool
    milliseconds: float | None = None
    tflops: float | None = None
    refused: str = ""


@dataclass(frozen=True)
class TileRow:
    """The shipped tile of a kernel (queries, keys, warps, stages) beside the fastest that was tried."""

    kernel: str
    width: int
    shipped: tuple[int, ...]
    best: tuple[int, ...]
    ratio: float  # time of the shipped one by that of the best


@dataclass(frozen=True)
class Results:
    """A run of the benchmark: where and when, how many cases were right first, and what was timed.

    machine  device, driver, versions, date and commit, by name
    matmul   10¹² operations a second of the best product of two matrices, the ceiling
    """

    machine: Mapping[str, str]
    dtype: str
    correct: int
    matmul: float
    rows: list[Row] = field(default_factory=list)
    tiles: list[TileRow] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def write(results: Results, path: Path = PATH) -> None:
    """Store `results`, a row a line."""
    found = asdict(results)
    lists = {name: found.pop(name) for name in ("rows", "tiles", "left_out")}
    head = [f'"{name}": {json.dumps(value)}' for name, value in found.items()]
    for name, rows in lists.items():
        lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        head.append(f'"{name}": [\n{lines}\n]' if rows else f'"{name}": []')
    path.write_text("{\n" + ",\n".join(head) + "\n}\n", encoding="utf-8")


def stored(path: Path = PATH) -> Results | None:
    """What is stored at `path`; None if nothing is. Raises ValueError for a file of another form."""
    if not path.exists():
        return None
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found["rows"] = [Row(**row) for row in found["rows"]]
        tiles = [
            {**row, "shipped": tuple(row["shipped"]), "best": tuple(row["best"])}
            for row in found["tiles"]
        ]
        return Results(**{**found, "tiles": [TileRow(**row) for row in tiles]})
    except (TypeError, KeyError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path.name} is not what benchmarks.gpu writes: {error}") from error


def told(results: Results | None) -> str:
    """`results` as text, line by line: the machine, then for each pass and width a table of all ways and sizes."""
    if results is None:
        return (
            "Not measured: no GPU was at hand.\n"
            "With one, `python -m benchmarks.gpu` measures, and this cell tells."
        )
    lines = [
        ", ".join(results.machine.values()),
        f"{results.correct} cases were right before anything was timed.",
        f"TFLOP/s, and the share of what a product of matrices reaches: {results.matmul:.0f}.",
    ]
    for backward in (False, True):
        for width in sorted({row.width for row in results.rows}):
            rows = [r for r in results.rows if (r.backward, r.width) == (backward, width)]
            lines += _table(rows, backward, width, results.matmul)
    refused = {f"{row.way}: {row.refused}": None for row in results.rows if row.refused}
    return "\n".join([*lines, *(["", "Refused:"] if refused else []), *refused])


def _table(rows: list[Row], backward: bool, width: int, matmul: float) -> list[str]:
    sizes = sorted({(row.n, row.causal) for row in rows})
    heads = "".join(f"{f'{n:,}' + ' causal' * causal:>16}" for n, causal in sizes)
    lines = ["", f"{'backward' if backward else 'forward'}, width {width}".ljust(20) + heads]
    for way in {row.way: None for row in rows}:
        cells = {(row.n, row.causal): row.tflops for row in rows if row.way == way}
        found = (cells.get(size) for size in sizes)
        speeds = ("-" if x is None else f"{x:.0f} ({x / matmul:4.0%})" for x in found)
        lines.append(f"{way:20}" + "".join(f"{speed:>16}" for speed in speeds))
    return lines
