"""The backward pass of attention, derived by hand."""

import numpy as np

from .core import attend
from .shapes import Array, Mask, Shape, ShapeError, check_array, check_attention, scale_or_default
from .visibility import prepare, read_values


@np.errstate(invalid="ignore", under="ignore")
def attention_gradient(
    q: Array,
    k: Array,
    v: Array,
    d_out: Array,
    mask: Mask | None = None,
    *,
    bias: Array | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> tuple[Array, Array, Array]:
    """Gradients of sum(attention(q, k, v, ...) * d_out) with respect to q, k and v.

    `d_out` has the shape and dtype of the output (..., Hq, T, d_v); the other arguments are those of
    `attention`. Returns (d_q, d_k, d_v) with the shapes and dtype of q, k and v. All three are
    finite where a query sees nothing. Raises ShapeError or TypeError with what was found.

    With W the weights, S the scores and dO = d_out (Dao et al. 2022, appendix B.4):

        dV = Wᵀ dO      dW = dO Vᵀ      dS = W ∘ (dW - rowsum(W ∘ dW))
        dQ = scale · dS K               dK = scale · dSᵀ Q
    """
    check_attention(q, k, v, mask, bias, causal, scale)
    check_array("d_out", d_out)
    if d_out.dtype != q.dtype:
        raise TypeError(f"d_out must have the dtype of q, {q.dtype}: found {d_out.dtype}")
    shapes, dtype = (q.shape, k.shape, v.shape), q.dtype
    factor = scale_or_default(scale, q.shape[-1])
    q, k, v, allowed = prepare(q, k, v, mask, bias, causal)
    out, W_TS = attend(q, k, v, allowed, bias, factor)
    if d_out.shape != out.shape:
        raise ShapeError(f"d_out must have the output's shape {out.shape}: d_out {d_out.shape}")
    allowed_ST = None if allowed is None else allowed.swapaxes(-1, -2)

    dW_TS = d_out @ v.swapaxes(-1, -2)
    if allowed is not None:
        dW_TS = np.where(allowed, dW_TS, 0)
    dS_TS = W_TS * (dW_TS - (W_TS * dW_TS).sum(-1, keepdims=True))
    if allowed is not None:
        dS_TS = np.where(allowed, dS_TS, 0)
    d_q = factor * read_values(dS_TS, k, allowed)
    d_k = factor * read_values(dS_TS.swapaxes(-1, -2), q, allowed_ST)
    d_v = read_values(W_TS.swapaxes(-1, -2), d_out, allowed_ST)
    d_q, d_k, d_v = (
        _collect(d, shape).astype(dtype, copy=False)
        for d, shape in zip((d_q, d_k, d_v), shapes, strict=True)
    )
    return d_q, d_k, d_v


def _collect(gradient: Array, shape: Shape) -> Array:
    """Add up what flowed to one entry through broadcast axes and grouped heads."""
    if gradient.ndim > 2 and len(shape) > 2 and shape[-3] not in (gradient.shape[-3], 1):
        *leading, heads, T, width = gradient.shape
        group = heads // shape[-3]
        gradient = gradient.reshape(*leading, shape[-3], group, T, width).sum(-3)
    gradient = gradient.sum(tuple(range(gradient.ndim - len(shape))))
    stretched = tuple(
        axis for axis, size in enumerate(shape) if size == 1 and gradient.shape[axis] != 1
    )
    return gradient.sum(stretched, keepdims=True)
