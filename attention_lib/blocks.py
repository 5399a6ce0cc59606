"""Which blocks of the scores each sparse method multiplies; their pairs are all the work it does.

Positions i of queries and j of keys are counted from the lower right, as in `masks`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .masks import check_block_shape, check_blocks, global_window_mask
from .shapes import Array, Mask, as_generator, check_count

ROWS, COLUMNS = 128, 1024  # of the largest block of a sparse method
QUERIES, KEYS = 768, 256  # of a tile, where every pair counts

Indices = npt.NDArray[np.intp]


class Block(NamedTuple):
    """Rows and columns of the scores that are multiplied; `allowed` hides single pairs (None: none).

    The blocks of a method share no visible pair and hold all of them, and no column of a block is
    hidden from all its rows. `bias` is added to the scores; both may have an axis of heads.
    """

    rows: range
    columns: range | Indices
    allowed: Mask | None = None
    bias: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.rows), len(self.columns)


def block_pairs(blocks: Iterable[Block]) -> int:
    """Pairs in all blocks; each takes d_k + d_v multiply-adds a head, for its score and its value."""
    return sum(len(block.rows) * len(block.columns) for block in blocks)


@dataclass(frozen=True)
class Tiles:
    """Every pair, in blocks of QUERIES × KEYS; causal: none above the diagonal, and small ones on it."""

    T: int
    S: int
    causal: bool = False

    def __iter__(self) -> Iterator[Block]:
        T, S = self.T, self.S
        for i in _parts(range(S - T, S), QUERIES):
            for j in _parts(range(S), KEYS):
                if not self.causal:
                    yield _block(i, j, T, S)
                    continue
                see_one, see_all = (min(max(key, i.start), i.stop) for key in (j.start, j.stop))
                for part in (range(see_one, see_all), range(see_all, i.stop)):
                    if part:
                        yield _block(part, j, T, S, least=0)


def restrict(blocks: Iterable[Block], mask: Mask | None, bias: Array | None) -> Iterator[Block]:
    """The blocks, whose columns are ranges, under `mask` and `bias` (heads, T, S); none hidden whole."""
    for block in blocks:
        where = ..., _slice(block.rows), _slice(block.columns)
        rules = [] if block.allowed is None else [block.allowed]
        rules += [] if mask is None else [mask[where]]
        rules += [] if bias is None else [~np.isneginf(bias[where])]
        shown = reduce(np.logical_and, rules)
        if shown.any():
            allowed = None if shown.all() else shown
            yield Block(block.rows, block.columns, allowed, None if bias is None else bias[where])


def window_blocks(T: int, S: int, window: int | None, causal: bool = False) -> Iterator[Block]:
    """Strips of queries, each with the keys between the first that one sees and the last."""
    return _near(T, S, window, causal, range(S - T, S))


def strided_blocks(T: int, S: int, stride: int) -> Iterator[Block]:
    """Strips of a window, then the earlier keys of each remainder of the position by the stride."""
    stride = check_count("stride", stride, least=1)
    yield from _near(T, S, stride, True, range(S - T, S), strip=min(stride, ROWS))
    first = max(stride, S - T)
    for remainder in range(min(stride, S)):
        queries = range(first + (remainder - first) % stride, S, stride)
        for i in _parts(queries, ROWS):
            for j in _parts(range(remainder, i[-1] - stride + 1, stride), COLUMNS):
                yield _block(i, j, T, S, least=stride)


def global_window_blocks(
    T: int, S: int, window: int | None, global_tokens: int, causal: bool = False
) -> Iterator[Block]:
    """Strips of the window without the global tokens; the global keys; the global queries."""
    tokens = min(check_count("global_tokens", global_tokens), S)
    queries = range(max(S - T, 0) if causal else S - T, S)
    for others in (range(S - T, 0), range(max(S - T, tokens), S)):
        yield from _near(T, S, window, causal, others, left=tokens)
    for i in _parts(queries, ROWS):
        for j in _parts(range(min(tokens, i[-1] + 1) if causal else tokens), COLUMNS):
            yield _block(i, j, T, S, least=0 if causal else None)
    if not causal:
        for i in _parts(range(max(S - T, 0), tokens), ROWS):
            for j in _parts(range(tokens, S), COLUMNS):
                yield _block(i, j, T, S)


def block_sparse_blocks(
    T: int, S: int, blocks: Mask, block_size: int, causal: bool = False
) -> Iterator[Block]:
    """Each row of `blocks`, which has two axes here, with the keys that it may see."""
    check_blocks(blocks)
    block_size = check_block_shape(blocks.shape, T, S, block_size)
    block_of_key = np.arange(S) // block_size
    for seen, i in zip(blocks, _parts(range(S - T, S), block_size), strict=True):
        keys = np.flatnonzero(seen[block_of_key])
        for part in _parts(range(max(i.start, 0), i.stop) if causal else i, ROWS):
            for j in _parts(keys[keys < part.stop] if causal else keys, COLUMNS):
                yield _block(part, j, T, S, least=0 if causal else None)


def bigbird_blocks(
    n: int, *, window: int, global_blocks: int, random_blocks: int, rng: "int | np.random.Generator"
) -> Mask:
    """Blocks (n, n) that are near, global, or drawn: True = may look.

    Each block sees those less than `window` away, the first `global_blocks` see all and are seen by
    all, and `random_blocks` more are drawn for each row among those it does not see yet. Window 2, the
    block and one on each side, 2 global and 3 random ones are the paper's (there "window 3"). `rng` is
    a seed or a Generator.
    Raises ValueError for a window below 1 or a negative number. Source: Zaheer et al. 2020, section 2.
    """
    tokens = check_count("global_blocks", global_blocks)
    blocks = global_window_mask(n, window, tokens, causal=False)
    wanted = check_count("random_blocks", random_blocks)
    rng = as_generator(rng)
    for row in blocks:
        others = np.flatnonzero(~row)
        row[rng.choice(others, min(wanted, len(others)), replace=False)] = True
    return blocks


def _near(
    T: int,
    S: int,
    window: int | None,
    causal: bool,
    queries: range,
    *,
    left: int = 0,
    strip: int | None = None,
) -> Iterator[Block]:
    """The window of the queries at these positions, without the keys before `left`."""
    width = T + S if window is None else min(check_count("window", window, least=1), T + S)
    ahead = 1 if causal else width  # query i sees keys below i + ahead
    first = max(queries.start, left - ahead + 1)
    for i in _parts(range(first, queries.stop), strip or ROWS):
        for j in _parts(range(max(i[0] - width + 1, left), min(i[-1] + ahead, S)), COLUMNS):
            yield _block(i, j, T, S, least=1 - ahead, most=width - 1)


def _slice(axis: Any) -> slice:
    return slice(axis.start, axis.stop, axis.step)


def _parts(whole: Any, size: int) -> Iterator[Any]:
    """A range or an array cut into parts of `size`; the last may be shorter."""
    return (whole[start : start + size] for start in range(0, len(whole), size))


def _block(
    i: range,
    j: range | Indices,
    T: int,
    S: int,
    *,
    least: int | None = None,
    most: int | None = None,
) -> Block:
    """Queries at positions i and keys at positions j, visible where least <= i - j <= most."""
    rows = range(i.start - S + T, i.stop - S + T, i.step)
    least = i[0] - j[-1] if least is None else least
    most = i[-1] - j[0] if most is None else most
    if len(j) == j[-1] - j[0] + 1:
        j = range(j[0], j[-1] + 1)
    if least <= i[0] - j[-1] and i[-1] - j[0] <= most:
        return Block(rows, j)
    if isinstance(j, range):
        least, most = least - i[0] + j[0], most - i[0] + j[0]
        return Block(rows, j, _band(len(i), len(j), i.step, j.step, least, most))
    distance = np.array(i)[:, None] - j
    return Block(rows, j, (distance >= least) & (distance <= most))


@lru_cache(maxsize=8)
def _band(rows: int, columns: int, down: int, right: int, least: int, most: int) -> Mask:
    """(rows, columns), True where least <= down · row - right · column <= most; read-only."""
    distance = np.arange(rows)[:, None] * down - np.arange(columns) * right
    allowed = (distance >= least) & (distance <= most)
    allowed.flags.writeable = False
    return allowed
