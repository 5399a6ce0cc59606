"""The one loop over blocks of scores under tiled and sparse attention, and what makes it fast.

It is the online softmax of `online_attention` in `tiled`, over any blocks, and with

    no maximum   where no score can be large, `_bounded`: then exp needs none, and nothing is rescaled
    powers of 2  there, where the processor makes them faster than powers of e: `processor`
    blocks       whose scores stay in the processor's cache, as many heads at once as fill it
    few rows     in a product, where the processor multiplies small matrices faster: `_Room`
    runs         small blocks that are alike in one product: `runs`
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from .blocks import COLUMNS, KEYS, QUERIES, Block, Indices, restrict
from .counting import multiply
from .processor import exponential, small_products
from .runs import part_of, runs
from .shapes import Array, Mask, Shape, accumulator, repeat_heads, scale_or_default
from .visibility import read_values

# |score| + |log of the values' norm|, below which weights and sums fit float32 without a largest score.
BOUND = 40.0
GROUP, SMALL = 32, 10**6  # rows in a small product, and the multiply-adds up to which it is one
CACHED = QUERIES * KEYS  # scores that stay in the processor's cache


@np.errstate(all="ignore")
def attend_blocks(
    q: Array,
    k: Array,
    v: Array,
    blocks: Iterable[Block],
    scale: float | None,
    mask: Mask | None = None,
    bias: Array | None = None,
) -> tuple[Array, Array]:
    """Output and log-sum-exp of attention over the pairs of the blocks, as `tiled_attention` returns them.

    The blocks are gone through once for each part of the heads. Those that `mask` or the -inf of `bias`
    hide whole are skipped; then all columns must be ranges.
    """
    heads, T, S = q.shape[-3] if q.ndim > 2 else 1, q.shape[-2], k.shape[-2]
    arrays = [q, repeat_heads(k, heads), repeat_heads(v, heads), mask, bias]
    leading = np.broadcast_shapes(*(x.shape[:-2] for x in arrays if x is not None))
    pairs = [None] * 3 + [(T, S)] * 2
    whole: list[Any] = [
        x if x is None else np.broadcast_to(x, (*leading, *(axes or x.shape[-2:])))
        for x, axes in zip(arrays, pairs, strict=True)
    ]
    out = np.zeros((*leading, T, v.shape[-1]), accumulator(q.dtype))
    lse = np.empty((*leading, T, 1), out.dtype)
    scale = scale_or_default(scale, q.shape[-1])
    for part, count in parts(leading, CACHED // max(1, min(T, QUERIES) * min(S, KEYS))):
        taken: list[Any] = [
            x if x is None else x[part].reshape(count, *x.shape[-2:]) for x in (*whole, out, lse)
        ]
        _attend(blocks, scale, *taken)
    return out.astype(q.dtype, copy=False), lse[..., 0]


def _attend(
    blocks: Iterable[Block],
    scale: float,
    q: Array,
    k: Array,
    v: Array,
    mask: Mask | None,
    bias: Array | None,
    out: Array,
    lse: Array,
) -> None:
    """Fill `out` and `lse` of some heads, all arrays (heads, T or S, ...)."""
    q, k, v = (x.astype(out.dtype, copy=False) for x in (q, k, v))
    bounded = bias is None and _bounded(q, k, v, scale)
    exp, unit = exponential(out.dtype) if bounded else (np.exp, 1.0)
    v, shrunk = (v, 1.0) if bounded else shrink(v)
    finite = bounded or bool(np.isfinite(v).all())
    q = q * (scale * unit)
    top = np.full_like(lse, 0 if bounded else np.finfo(out.dtype).min)
    total, sees = np.zeros_like(lse), np.zeros(lse.shape, bool)
    keys, ones = _Keys(k), np.ones((max(COLUMNS, KEYS), 1), out.dtype)
    queries = len(q) * min(q.shape[1], QUERIES)
    scores = _Room(queries * min(k.shape[1], KEYS), out.dtype)
    products = _Room(queries * v.shape[2], out.dtype)
    if not (mask is None and bias is None):
        blocks = restrict(blocks, mask, bias)
    for run in runs(blocks, len(q), CACHED):
        rows, columns = [block.rows for block in run], [block.columns for block in run]
        shown, added = run[0].allowed, run[0].bias
        values, out_i, total_i = part_of(v, columns), part_of(out, rows), part_of(total, rows)
        weights = scores.product(part_of(q, rows), keys.turned(columns))
        if bounded:
            exp(weights, out=weights)
            if shown is not None:
                weights *= shown
        else:
            if added is not None:
                weights += added
            if shown is not None:
                np.copyto(weights, -np.inf, where=~shown)
            _absorb(weights, part_of(top, rows), total_i, out_i)
            sees_i = part_of(sees, rows)
            sees_i |= True if shown is None else shown.any(-1, keepdims=True)
        total_i += weights @ ones[: values.shape[-2]]
        if finite:
            out_i += products.product(weights, values)
        else:
            out_i += read_values(weights, values, shown)
    out /= np.where(sees | (total > 0), total, 1)
    if shrunk != 1:
        out *= shrunk
    np.add(top, np.log(total), out=lse)


def _absorb(scores: Array, top: Array, total: Array, out: Array) -> None:
    """Raise `top` to the scores of a block; these become the weights exp(scores - top).

    What `total` and `out` have summed so far is rescaled to the new top. All in place.
    """
    new = np.maximum(top, scores.max(-1, keepdims=True))
    rescale = np.exp(top - new)
    top[...] = new
    total *= rescale
    out *= rescale
    scores -= new
    np.exp(scores, out=scores)


def _bounded(q: Array, k: Array, v: Array, scale: float) -> bool:
    """Whether exp(score) and its products with values neither overflow nor vanish: |q·k| <= |q||k|."""
    lengths = (math.sqrt(np.vecdot(x, x).max(initial=0)) for x in (q, k))
    return abs(scale) * math.prod(lengths) + abs(float(np.log(np.vdot(v, v)))) / 2 < BOUND


def shrink(v: Array) -> tuple[Array, float]:
    """Values whose sum over the S keys is finite, if they are: v over a power of 2, and that power."""
    S = v.shape[-2]
    if not np.abs(v).max(initial=0, where=np.isfinite(v)) > np.finfo(v.dtype).max / max(S, 1):
        return v, 1.0
    power = 2.0 ** S.bit_length()
    return v / v.dtype.type(power), power


def parts(leading: Shape, most: int) -> Iterator[tuple[tuple[slice, ...], int]]:
    """Cut the leading axes into parts of at most `most` heads, or of one: where, and how many."""
    steps: list[int] = []
    for size in reversed(leading):
        steps.insert(0, max(1, min(size, most)))
        most //= steps[0]
    for part in product(*map(cut, leading, steps)):
        yield part, math.prod(axis.stop - axis.start for axis in part)


def cut(size: int, step: int) -> list[slice]:
    """The slices of `step` that make up `size`; the last may be shorter."""
    return [slice(i, min(i + step, size)) for i in range(0, size, step)]


class _Keys:
    """Keys (heads, S, d_k), turned for the products; for small ones copies, no more than there are keys."""

    def __init__(self, k: Array) -> None:
        self.k = k
        self.copies: dict[range, Array] = {}

    def turned(self, columns: Sequence[range | Indices]) -> Array:
        """(..., d_k, columns), of one block or of each of a run."""
        where, view = columns[0], part_of(self.k, columns).swapaxes(-1, -2)
        if len(columns) > 1 or not isinstance(where, range) or not _small(view):
            return view
        if where not in self.copies:
            if sum(map(len, self.copies)) + len(where) > self.k.shape[1]:
                self.copies.clear()
            self.copies[where] = np.ascontiguousarray(view)
        return self.copies[where]


class _Room:
    """Memory for products, in which each is written over the one before."""

    def __init__(self, size: int, dtype: np.dtype[Any]) -> None:
        self.numbers = np.empty(size, dtype)

    def product(self, a: Array, b: Array) -> Array:
        """a @ b, GROUP rows at a time where that is faster."""
        *leading, rows, inner = a.shape
        columns = b.shape[-1]
        size = math.prod(leading) * rows * columns
        if self.numbers.size < size:
            self.numbers = np.empty(size, self.numbers.dtype)
        out = self.numbers[:size].reshape(*leading, rows, columns)
        if rows % GROUP or not _small(b):
            return multiply(a, b, out)
        groups = *leading, rows // GROUP, GROUP
        multiply(a.reshape(*groups, inner), b[..., None, :, :], out.reshape(*groups, columns))
        return out


def _small(b: Array) -> bool:
    """Whether GROUP rows times `b` are a small product, and those are fast here."""
    return GROUP * b.shape[-2] * b.shape[-1] <= SMALL and small_products(b.dtype)
