"""Exact attention over a part of the pairs: window, strided, global + window, any pattern of blocks.

`blocks` says which blocks of the scores a method multiplies, and one loop attends over them; no pair
outside is ever made. A query that lies in several blocks keeps a running sum, and where its scores
are large a running maximum, as tiled attention does.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .blocks import (
    Block,
    Indices,
    block_sparse_blocks,
    global_window_blocks,
    strided_blocks,
    window_blocks,
)
from .counting import multiply
from .masks import check_block_shape, check_blocks
from .shapes import Array, Mask, ShapeError, check_attention, scale_or_default
from .tiled import shrink
from .visibility import prepare, read_values

SMALL = 20  # scores whose exp needs no maximum subtracted
AT_ONCE = 2**18  # scores of small blocks that are made at once


def window_attention(
    q: Array,
    k: Array,
    v: Array,
    window: int | None,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> Array:
    """`attention` under `sliding_window_mask`, with work n · window instead of n².

    Shapes, dtypes and errors are those of `attention`; `None` is no window. Raises ValueError for a
    window below 1. Source: Beltagy et al. 2020, section 3.1.
    """
    check_attention(q, k, v, None, None, causal, scale)
    return _attend(q, k, v, window_blocks(q.shape[-2], k.shape[-2], window, causal), scale)


def strided_attention(
    q: Array, k: Array, v: Array, stride: int, *, scale: float | None = None
) -> Array:
    """`attention` under `strided_mask`, with work n (stride + n / stride): n^1.5 at its best, sqrt(n).

    A query sees the last `stride` keys, itself counted, and every `stride`-th key before; it is always
    causal. Shapes, dtypes and errors are those of `attention`. Raises ValueError for a stride below 1.
    Source: Child et al. 2019, section 4.2, "strided".
    """
    check_attention(q, k, v, None, None, True, scale)
    return _attend(q, k, v, strided_blocks(q.shape[-2], k.shape[-2], stride), scale)


def global_window_attention(
    q: Array,
    k: Array,
    v: Array,
    window: int | None,
    global_tokens: int,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> Array:
    """`attention` under `global_window_mask`, with work n (window + global_tokens).

    The first `global_tokens` tokens see all and are seen by all; causal, they are only seen. Shapes,
    dtypes and errors are those of `attention`. Raises ValueError for a window below 1 or a number of
    tokens below 0. Source: Beltagy et al. 2020, section 3.1.
    """
    check_attention(q, k, v, None, None, causal, scale)
    blocks = global_window_blocks(q.shape[-2], k.shape[-2], window, global_tokens, causal)
    return _attend(q, k, v, blocks, scale)


def block_sparse_attention(
    q: Array,
    k: Array,
    v: Array,
    blocks: Mask,
    *,
    block_size: int,
    causal: bool = False,
    scale: float | None = None,
) -> Array:
    """`attention` under `block_mask`: only the blocks that `blocks` allows are multiplied.

    `blocks` (..., ceil(T / block_size), ceil(S / block_size)) are booleans, True = may look; their
    leading axes broadcast against (..., Hq). Causal: no block is read beyond the last query's
    position. Shapes, dtypes and errors are those of `attention`, and of `block_mask`.
    """
    check_attention(q, k, v, None, None, causal, scale)
    T, S = q.shape[-2], k.shape[-2]
    check_blocks(blocks)
    block_size = check_block_shape(blocks.shape, T, S, block_size)
    if blocks.ndim == 2:
        return _attend(q, k, v, block_sparse_blocks(T, S, blocks, block_size, causal), scale)
    dtype = q.dtype
    q, k, v, _ = prepare(q, k, v, None, None, False)
    shapes = [x.shape[:-2] for x in (q, k, v, blocks)]
    try:
        leading = np.broadcast_shapes(*shapes)
    except ValueError:
        raise ShapeError(
            f"leading axes of blocks must broadcast against (..., Hq): blocks {blocks.shape}, "
            f"q {q.shape}, k {k.shape}"
        ) from None
    q, k, v = (np.broadcast_to(x, (*leading, *x.shape[-2:])) for x in (q, k, v))
    blocks = np.broadcast_to(blocks, (*leading, *blocks.shape[-2:]))
    out = np.empty((*leading, T, v.shape[-1]), dtype)
    for head in np.ndindex(leading):
        visible = block_sparse_blocks(T, S, blocks[head], block_size, causal)
        out[head] = _attend(q[head], k[head], v[head], visible, scale)
    return out


@np.errstate(invalid="ignore", under="ignore", over="ignore")
def _attend(q: Array, k: Array, v: Array, blocks: Iterable[Block], scale: float | None) -> Array:
    """Attention over the pairs of the blocks."""
    dtype, T = q.dtype, q.shape[-2]
    scale = scale_or_default(scale, q.shape[-1])
    q, k, v, _ = prepare(q, k, v, None, None, False)
    leading = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    largest = np.maximum(v.max(initial=0), -v.min(initial=0))
    small = 1e-20 < largest < 1e20 and abs(scale) * _longest(q) * _longest(k) < SMALL
    v, shrunk = (v, 1.0) if small else shrink(v)
    factor = scale / math.log(2) if small else scale  # powers of 2 are faster than those of e
    out = np.zeros((*np.broadcast_shapes(leading, v.shape[:-2]), T, v.shape[-1]), q.dtype)
    total, sees = np.zeros((*leading, T, 1), q.dtype), np.zeros((T, 1), dtype=bool)
    top = np.full_like(total, -np.inf)
    for run in _runs(blocks, math.prod(leading)):
        rows, columns = [block.rows for block in run], [block.columns for block in run]
        allowed, values = run[0].allowed, _part(v, columns)
        weights = multiply(_part(q, rows) * factor, _part(k, columns).swapaxes(-1, -2))
        out_, total_ = _part(out, rows), _part(total, rows)  # views
        if small:
            np.exp2(weights, out=weights)
            if allowed is not None:
                weights *= allowed
        else:
            if allowed is not None:
                np.copyto(weights, -np.inf, where=~allowed)
            top_, sees_ = _part(top, rows), _part(sees, rows)
            new = np.maximum(top_, weights.max(-1, keepdims=True))
            shift = np.where(np.isneginf(new), 0, new)  # a row may see nothing in this block
            np.exp(np.subtract(weights, shift, out=weights), out=weights)
            rescale = np.exp(top_ - shift)
            total_ *= rescale
            out_ *= rescale
            top_[...] = new
            sees_ |= True if allowed is None else allowed.any(-1, keepdims=True)
        total_ += np.einsum("...TS->...T", weights)[..., None]
        if np.isfinite(largest):
            out_ += multiply(weights, values)
        else:
            out_ += read_values(weights, values, allowed)
    np.divide(out, total, out=out, where=sees | (total > 0))
    if shrunk != 1:
        out *= shrunk
    return out.astype(dtype, copy=False)


def _longest(x: Array) -> float:
    """Length of the longest row of `x`: two such lengths multiplied bound every score."""
    return math.sqrt(np.vecdot(x, x).max(initial=0))


def _runs(blocks: Iterable[Block], heads: int) -> Iterator[list[Block]]:
    """The blocks in their order; small ones that are alike and lie at equal distances together."""
    run: list[Block] = []
    for block in blocks:
        scores = math.prod(block.shape) * heads * (len(run) + 1)
        if run and (scores > AT_ONCE or not _continues(run, block)):
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
        and (block.rows.step, block.columns.step) == (step, first.columns.step)
        and (len(run) == 1 or _apart(last, block) == _apart(run[-2], last))
        and (down >= step * len(block.rows) or 0 < down * len(run) < step)
    )


def _apart(one: Block, other: Block) -> tuple[int, int]:
    return other.rows[0] - one.rows[0], int(other.columns[0] - one.columns[0])


def _part(x: Any, axes: Sequence[range | Indices]) -> Any:
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
