"""Attention over blocks: exact, though of the T × S scores only one block exists at a time.

The online softmax: each query keeps the largest score it has met, the sum of the weights exp(score -
largest), and the sum of the values times the weights. A larger score in a later block rescales both.
Source: Milakov and Gimelshein 2018, algorithm 3; Dao et al. 2022, algorithm 1.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from .core import attention
from .counting import multiply
from .shapes import Array, Mask, Shape, accumulator, check_attention, repeat_heads, scale_or_default
from .visibility import read_values

# A block's scores stay in the processor's cache. OpenBLAS multiplies so few queries by so many keys
# without copying them first.
QUERIES, KEYS, GROUP = 1024, 128, 64
# Pairs of a head up to which `attention`, all at once, is faster.
SMALL = 64 * 64
# |score| + |log of the values' norm|, below which weights and sums fit float32 without a largest score.
BOUND = 40.0


@np.errstate(all="ignore")
def tiled_attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Mask | None = None,
    *,
    bias: Array | None = None,
    causal: bool = False,
    scale: float | None = None,
    return_lse: bool = False,
) -> Array | tuple[Array, Array]:
    """What `attention` gives, from the same arguments, in memory that grows with T + S, not T · S.

    With `return_lse` also log(sum(exp(score))) over the keys that each query may see, (..., Hq, T),
    in the dtype of the sums (float32 for float16); -inf where it may see nothing.
    Blocks that `mask`, `causal` or the -inf of `bias` hide whole are skipped.
    """
    check_attention(q, k, v, mask, bias, causal, scale)
    if q.shape[-2] * k.shape[-2] <= SMALL and not return_lse:
        return attention(q, k, v, mask, bias=bias, causal=causal, scale=scale)
    scale = scale_or_default(scale, q.shape[-1])
    heads, T, S = q.shape[-3] if q.ndim > 2 else 1, q.shape[-2], k.shape[-2]
    k, v = repeat_heads(k, heads), repeat_heads(v, heads)
    leading = np.broadcast_shapes(*(x.shape[:-2] for x in (q, k, v, mask, bias) if x is not None))
    out = np.zeros((*leading, T, v.shape[-1]), accumulator(q.dtype))
    lse = np.empty((*leading, T, 1), out.dtype)
    whole: list[Any] = [
        x if x.shape[:-2] == leading else np.broadcast_to(x, (*leading, *x.shape[-2:]))
        for x in (q, k, v)
    ]
    whole += [None if x is None else np.broadcast_to(x, (*leading, T, S)) for x in (mask, bias)]
    at_once = QUERIES * KEYS // max(1, min(T, QUERIES) * min(S, KEYS))
    for part, heads in parts(leading, at_once):
        taken: list[Any] = [
            None if x is None else x[part].reshape(heads, *x.shape[-2:]) for x in (*whole, out, lse)
        ]
        _attend(*taken, causal=causal, scale=scale)
    out = out.astype(q.dtype, copy=False)
    return (out, lse[..., 0]) if return_lse else out


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


def shrink(v: Array) -> tuple[Array, float]:
    """Values whose sum over the S keys is finite, if they are: v over a power of 2, and that power."""
    S = v.shape[-2]
    if not np.abs(v).max(initial=0, where=np.isfinite(v)) > np.finfo(v.dtype).max / max(S, 1):
        return v, 1.0
    power = 2.0 ** S.bit_length()
    return v / v.dtype.type(power), power


def _attend(
    q: Array,
    k: Array,
    v: Array,
    mask: Mask | None,
    bias: Array | None,
    out: Array,
    lse: Array,
    *,
    causal: bool,
    scale: float,
) -> None:
    """Fill `out` and `lse` of some heads, all arrays (heads, T or S, ...)."""
    (heads, T, d_v), S, wide = out.shape, k.shape[1], out.dtype
    q, k, v = (x.astype(wide, copy=False) for x in (q, k, v))
    bounded = bias is None and _bounded(q, k, v, scale)
    v, shrunk = (v, 1.0) if bounded else shrink(v)
    finite = bounded or bool(np.isfinite(v).all())
    q = q * (scale / math.log(2) if bounded else scale)
    keys = [np.ascontiguousarray(k[:, columns].swapaxes(1, 2)) for columns in cut(S, KEYS)]
    top, total = np.full_like(lse, 0 if bounded else np.finfo(wide).min), np.zeros_like(lse)
    sees, ones = np.zeros(lse.shape, bool), np.ones((KEYS, 1), wide)
    room = heads * min(T, QUERIES)
    scores_room, added_room = np.empty(room * min(S, KEYS), wide), np.empty(room * d_v, wide)
    for rows, columns in _blocks(T, S, causal):
        shown = _shown(mask, bias, causal, rows, columns, S - T)
        if shown is not None and not shown.any():
            continue
        scores = _multiply(q[:, rows], keys[columns.start // KEYS], scores_room)
        if bounded:  # powers of 2 are faster, unless they vanish
            weights = np.exp2(scores, out=scores)
            if shown is not None:
                weights *= shown
        else:
            if bias is not None:
                scores += bias[:, rows, columns]
            if shown is not None:
                np.copyto(scores, -np.inf, where=~shown)
            weights = _absorb(scores, top[:, rows], total[:, rows], out[:, rows])
            sees[:, rows] |= True if shown is None else shown.any(-1, keepdims=True)
        values = v[:, columns]
        total[:, rows] += weights @ ones[: values.shape[1]]
        if finite:
            out[:, rows] += _multiply(weights, values, added_room)
        else:
            out[:, rows] += read_values(weights, values, shown)
    out /= np.where(sees | (total > 0), total, 1)
    if shrunk != 1:
        out *= shrunk
    np.add(top, np.log(total), out=lse)


def _absorb(scores: Array, top: Array, total: Array, out: Array) -> Array:
    """The weights exp(scores - top) of a block, after `top` is raised to its scores.

    `scores` become the weights; what `total` and `out` have summed so far is rescaled to the new top.
    """
    new = np.maximum(top, scores.max(-1, keepdims=True))
    rescale = np.exp(top - new)
    top[...] = new
    total *= rescale
    out *= rescale
    scores -= new
    return np.exp(scores, out=scores)


def _blocks(T: int, S: int, causal: bool) -> Iterator[tuple[slice, slice]]:
    """Queries and keys of each block; causal: none above the diagonal, and small ones on it."""
    for rows in cut(T, QUERIES):
        for columns in cut(S, KEYS):
            if not causal:
                yield rows, columns
                continue
            see_one, see_all = (
                min(max(key - (S - T), rows.start), rows.stop)
                for key in (columns.start, columns.stop)
            )
            for part in (slice(see_one, see_all), slice(see_all, rows.stop)):
                if part.start < part.stop:
                    yield part, columns


def _shown(
    mask: Mask | None,
    bias: Array | None,
    causal: bool,
    rows: slice,
    columns: slice,
    ahead: int,
) -> Mask | None:
    """The pairs of a block that may look, (heads or 1, queries, keys); None if all may."""
    shown: Mask | None = None
    if causal and columns.stop - 1 > rows.start + ahead:
        size = rows.stop - rows.start, columns.stop - columns.start
        shown = _below_diagonal(*size, rows.start + ahead - columns.start)
    if mask is not None:
        shown = mask[:, rows, columns] if shown is None else shown & mask[:, rows, columns]
    if bias is not None:
        finite = ~np.isneginf(bias[:, rows, columns])
        shown = finite if shown is None else shown & finite
    return None if shown is None or shown.all() else shown


@lru_cache(maxsize=8)
def _below_diagonal(queries: int, keys: int, ahead: int) -> Mask:
    return np.tri(queries, keys, ahead, dtype=bool)[None]


def _bounded(q: Array, k: Array, v: Array, scale: float) -> bool:
    """Whether exp(score) and its products with values neither overflow nor vanish: |q·k| <= |q||k|."""
    lengths = (math.sqrt(np.vecdot(x, x).max(initial=0)) for x in (q, k))
    return abs(scale) * math.prod(lengths) + abs(float(np.log(np.vdot(v, v)))) / 2 < BOUND


def _multiply(a: Array, b: Array, room: Array) -> Array:
    """a @ b, (heads, rows, inner) @ (heads, inner, columns), GROUP rows at a time if they divide."""
    heads, rows, inner = a.shape
    group = rows if rows % GROUP else GROUP
    groups, columns = rows // group, b.shape[2]
    out = room[: heads * rows * columns].reshape(heads, groups, group, columns)
    multiply(a.reshape(heads, groups, group, inner), b[:, None], out)
    return out.reshape(heads, rows, columns)
