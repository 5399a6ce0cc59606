"""What it means that a key is hidden from a query, for the forward and the backward pass.

A hidden key has weight 0, and what it holds is never read: 0 · NaN would be NaN.
"""

from typing import Any

import numpy as np

from .counting import multiply
from .masks import causal_mask
from .shapes import Array, Mask, accumulator, repeat_heads


def prepare(
    q: Array, k: Array, v: Array, mask: Mask | None, bias: Array | None, causal: bool
) -> tuple[Array, Array, Array, Mask | None]:
    """Widen float16, repeat grouped heads, and put 0 where nothing may look.

    Returns q, k, v and the allowed pairs (..., T, S), None where nothing is hidden. The queries that
    see nothing and the keys and values that no query sees are 0.
    """
    wide: np.dtype[Any] = accumulator(q.dtype)
    heads = q.shape[-3] if q.ndim > 2 else 1
    q = q.astype(wide, copy=False)
    k = repeat_heads(k.astype(wide, copy=False), heads)
    v = repeat_heads(v.astype(wide, copy=False), heads)
    allowed = allowed_pairs(q.shape[-2], k.shape[-2], mask, bias, causal)
    if allowed is not None:
        q_sees = allowed.any(-1, keepdims=True)
        k_seen = np.swapaxes(allowed.any(-2, keepdims=True), -1, -2)
        if not q_sees.all():
            q = np.where(q_sees, q, 0)
        if not k_seen.all():
            k, v = np.where(k_seen, k, 0), np.where(k_seen, v, 0)
    return q, k, v, allowed


def allowed_pairs(
    T: int, S: int, mask: Mask | None, bias: Array | None, causal: bool
) -> Mask | None:
    """The pairs that `mask`, `causal` and the -inf of `bias` all allow, (..., T, S); None for all."""
    parts = [] if mask is None else [mask]
    if causal:
        parts.append(causal_mask(T, S))
    if bias is not None and np.isneginf(bias).any():
        parts.append(~np.isneginf(bias))
    if not parts:
        return None
    allowed = parts[0]
    for part in parts[1:]:
        allowed = allowed & part
    return np.broadcast_to(allowed, (*allowed.shape[:-2], T, S))


def read_values(weights_TS: Array, v: Array, allowed: Mask | None) -> Array:
    """weights @ v, in which a NaN or infinity of `v` reaches just the rows that may see it.

    There it is added up as floats are: 0 · ∞ is NaN, also where a weight was rounded to 0.
    """
    finite = np.isfinite(v)
    if allowed is None or finite.all():
        return multiply(weights_TS, v)
    out = multiply(weights_TS, np.where(finite, v, 0))
    for j in np.flatnonzero(~finite.all(axis=(*range(v.ndim - 2), -1))):
        rest = np.where(finite[..., j, :], 0, v[..., j, :])[..., None, :]
        may_see = allowed[..., j, None] & ~finite[..., None, j, :]
        out += np.where(may_see, weights_TS[..., j, None] * rest, 0)
    return out
