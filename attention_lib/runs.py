"""Small blocks that are alike, side by side: one product for many of them."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from numpy.lib.stride_tricks import as_strided

from .blocks import Block, Indices


def runs(blocks: Iterable[Block], heads: int, most: int) -> Iterator[list[Block]]:
    """The blocks in their order; those that are alike and lie at equal distances together.

    A run has at most `most` scores in all heads, unless it is of one block.
    """
    run: list[Block] = []
    for block in blocks:
        scores = math.prod(block.shape) * heads * (len(run) + 1)
        if run and (scores > most or not _continues(run, block)):
            yield run
            run = []
        run.append(block)
    if run:
        yield run


def _continues(run: list[Block], block: Block) -> bool:
    """Whether `block` follows the last as that one followed the one before, and no row is there twice."""
    first, last = run[0], run[-1]
    if not (isinstance(first.columns, range) and isinstance(block.columns, range)):
        return False
    step, down = first.rows.step, block.rows.start - last.rows.start
    return (
        block.shape == first.shape
        and block.allowed is first.allowed
        and first.bias is None
        and (block.rows.step, block.columns.step) == (step, first.columns.step)
        and (len(run) == 1 or _apart(last, block) == _apart(run[-2], last))
        and (down >= step * len(block.rows) or 0 < down * len(run) < step)
    )


def _apart(one: Block, other: Block) -> tuple[int, int]:
    return other.rows[0] - one.rows[0], int(other.columns[0] - one.columns[0])


def part_of(x: Any, axes: Sequence[range | Indices]) -> Any:
    """The rows of `x` that one block names, (..., rows, d), or each of a run, (..., blocks, rows, d).

    A view, unless the one block names them by an array.
    """
    first = axes[0]
    if not isinstance(first, range):
        return x[..., first, :]
    part = x[..., first.start : first.stop : first.step, :]
    if len(axes) == 1:
        return part
    *leading, down, right = part.strides
    return as_strided(
        part,
        (*part.shape[:-2], len(axes), *part.shape[-2:]),
        (*leading, (axes[1][0] - first[0]) * x.strides[-2], down, right),
    )
