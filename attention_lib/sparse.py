"""Exact attention over a part of the pairs: window, strided, global + window, any pattern of blocks.

`blocks` says which blocks of the scores a method multiplies, and `blockwise` attends over them, as it
does for tiled attention; no pair outside is ever made.
"""

from collections.abc import Iterable

import numpy as np

from .blocks import (
    Block,
    block_sparse_blocks,
    global_window_blocks,
    strided_blocks,
    window_blocks,
)
from .blockwise import attend_blocks
from .masks import check_block_shape, check_blocks
from .shapes import Array, Mask, ShapeError, check_attention, repeat_heads


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
    heads = q.shape[-3] if q.ndim > 2 else 1
    k, v = repeat_heads(k, heads), repeat_heads(v, heads)
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
    out = np.empty((*leading, T, v.shape[-1]), q.dtype)
    for head in np.ndindex(leading):
        visible = block_sparse_blocks(T, S, blocks[head], block_size, causal)
        out[head] = _attend(q[head], k[head], v[head], visible, scale)
    return out


def _attend(q: Array, k: Array, v: Array, blocks: Iterable[Block], scale: float | None) -> Array:
    return attend_blocks(q, k, v, list(blocks), scale)[0]
