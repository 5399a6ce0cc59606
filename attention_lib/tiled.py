"""Attention over blocks: exact, though of the T × S scores only one block exists at a time.

`online_attention` is the method, to be read. `tiled_attention` is the same, fast and with every option
of `attention`: it goes through `blocks.Tiles` with the loop of `blockwise`.
"""

import numpy as np

from .blocks import Tiles
from .blockwise import attend_blocks
from .core import attention
from .counting import multiply
from .shapes import Array, Mask, check_attention, check_count, scale_or_default
from .visibility import prepare, read_values

# Pairs of a head up to which `attention`, all at once, is faster.
SMALL = 64 * 64


@np.errstate(invalid="ignore", under="ignore")
def online_attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Mask | None = None,
    *,
    scale: float | None = None,
    block_size: int = 128,
) -> Array:
    """What `attention` gives, by the online softmax: to be read, while `tiled_attention` is fast.

    For `block_size` queries at a time, and block after block of keys, three things are kept: the
    largest score so far, the sum of the weights exp(score - largest), and the sum of the values times
    their weights. A larger score in a later block rescales both sums.
    Source: Milakov and Gimelshein 2018, algorithm 3; Dao et al. 2022, algorithm 1.
    """
    check_attention(q, k, v, mask, None, False, scale)
    step = check_count("block_size", block_size, least=1)
    dtype, scale = q.dtype, scale_or_default(scale, q.shape[-1])
    q, k, v, allowed = prepare(q, k, v, mask, None, False)
    leading = np.broadcast_shapes(*(x.shape[:-2] for x in (q, k, v, allowed) if x is not None))
    out = np.zeros((*leading, q.shape[-2], v.shape[-1]), q.dtype)
    for i in range(0, q.shape[-2], step):
        rows, shown = q[..., i : i + step, :] * scale, None
        largest, total, summed = np.finfo(q.dtype).min, 0.0, 0.0
        for j in range(0, k.shape[-2], step):
            keys, values = k[..., j : j + step, :], v[..., j : j + step, :]
            scores = multiply(rows, keys.swapaxes(-1, -2))
            if allowed is not None:
                shown = allowed[..., i : i + step, j : j + step]
                scores = np.where(shown, scores, -np.inf)
            new = np.maximum(largest, scores.max(-1, keepdims=True))
            rescale, weights = np.exp(largest - new), np.exp(scores - new)
            largest = new
            total = total * rescale + weights.sum(-1, keepdims=True)
            summed = summed * rescale + read_values(weights, values, shown)
        out[..., i : i + step, :] = summed / np.where(total == 0, 1, total)
    return out.astype(dtype, copy=False)


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
    blocks = Tiles(q.shape[-2], k.shape[-2], bool(causal))
    out, lse = attend_blocks(q, k, v, blocks, scale, mask, bias)
    return (out, lse) if return_lse else out
