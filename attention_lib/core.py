"""softmax and scaled dot-product attention: the heart of the library."""

import numpy as np

from .counting import multiply
from .shapes import (
    Array,
    Mask,
    accumulator,
    check_array,
    check_attention,
    check_axis,
    scale_or_default,
)
from .visibility import prepare, read_values


@np.errstate(invalid="ignore", under="ignore")
def softmax(scores: Array, axis: int = -1) -> Array:
    """Turn scores into weights that are positive and sum to 1 along `axis`; same shape and dtype.

    The maximum is subtracted first, so that scores of 1e4 do not overflow. Where every score is -inf
    the weights are 0. Raises TypeError for anything but a NumPy array of floats.
    """
    check_array("scores", scores)
    axis = check_axis("scores", scores.shape, axis)
    wide = scores.astype(accumulator(scores.dtype), copy=False)
    empty = np.isneginf(wide).all(axis=axis, keepdims=True)
    return np.where(empty, 0, _normalise(wide, axis)).astype(scores.dtype, copy=False)


def _normalise(scores: Array, axis: int = -1) -> Array:
    """exp(scores) over its sum along `axis`; NaN where every score is -inf."""
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True, initial=-np.inf))
    weights /= weights.sum(axis=axis, keepdims=True)
    return weights


@np.errstate(invalid="ignore", under="ignore")
def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Mask | None = None,
    *,
    bias: Array | None = None,
    causal: bool = False,
    scale: float | None = None,
    return_weights: bool = False,
) -> Array | tuple[Array, Array]:
    """Scaled dot-product attention: softmax(q kᵀ · scale + bias) v.

    q (..., Hq, T, d_k), k (..., Hk, S, d_k), v (..., Hk, S, d_v) give (..., Hq, T, d_v), and with
    `return_weights` also the weights (..., Hq, T, S). Hq is a multiple of Hk; leading axes broadcast.

    mask    booleans (..., T, S), True = may look (torch.nn.MultiheadAttention: True hides)
    bias    floats (..., T, S) added to the scaled scores; -inf hides
            (more leading axes in mask or bias widen the output: all must broadcast)
    causal  no query sees a later key; the last query is the last key; intersects `mask`
    scale   a number, 1/sqrt(d_k) by default

    A query that may see nothing gets zeros. What no query may see is never read. The output has the
    dtype of q; float16 is added up in float32. Raises ShapeError or TypeError with what was found.
    Source: Vaswani et al. 2017, equation 1.
    """
    check_attention(q, k, v, mask, bias, causal, scale)
    dtype, scale = q.dtype, scale_or_default(scale, q.shape[-1])
    out, weights = attend(*prepare(q, k, v, mask, bias, causal), bias, scale)
    out = out.astype(dtype, copy=False)
    return (out, weights.astype(dtype, copy=False)) if return_weights else out


def attend(
    q: Array, k: Array, v: Array, allowed: Mask | None, bias: Array | None, scale: float
) -> tuple[Array, Array]:
    """Output and weights of `attention`, of what `prepare` returns."""
    scores_TS = multiply(q * scale, k.swapaxes(-1, -2))
    if bias is not None:
        scores_TS = scores_TS + bias
    if allowed is not None:
        scores_TS = np.where(allowed, scores_TS, -np.inf)
    weights_TS = _normalise(scores_TS)
    if allowed is not None:
        weights_TS = np.where(allowed, weights_TS, 0)
    return read_values(weights_TS, v, allowed), weights_TS
