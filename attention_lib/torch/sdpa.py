"""torch's own F.scaled_dot_product_attention, kept from what it does its own way."""

import math

from torch import Tensor
from torch.nn import functional as F

from .core import attend
from .shapes import leading_axes, repeat_heads, scale_for
from .visibility import allowed_pairs, in_forward_mode, no_autocast


def why_not(q: Tensor, bias: Tensor | None) -> str | None:
    """Why it cannot run for these tensors; None if it can."""
    if bias is not None and bias.dtype != q.dtype:
        return f"it takes a bias of the dtype of q: found {bias.dtype}"
    if in_forward_mode():
        return "it has no forward mode"
    return None


def attend_sdpa(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    causal: bool,
    scale: float | None,
) -> Tensor:
    """The output of attention by torch's own.

    Its is_causal lines up the first query with the first key and wants a scale above 0, an empty row
    is NaN or a mean, and fewer key heads are taken by some kernels only.
    """
    T, S, d_v, heads = q.shape[-2], k.shape[-2], v.shape[-1], q.shape[-3] if q.ndim > 2 else 1
    k, v = repeat_heads(k, heads), repeat_heads(v, heads)
    leading = leading_axes(q, k, v, mask, bias)
    if not math.prod(leading) * T * S * d_v:
        return attend(q, k, v, mask, bias, causal, scale)[0]
    lower_right = causal and T > 1  # one query sees all keys
    flag = lower_right and T == S and mask is None and bias is None
    allowed = allowed_pairs(T, S, mask, bias, lower_right and not flag, q.device)
    added, empty = allowed, None
    if allowed is not None:
        empty = ~allowed.any(-1, keepdim=True)
        seen = allowed.any(-2)[..., None]
        q, k, v = q.where(~empty, 0), k.where(seen, 0), v.where(seen, 0)
        added = allowed | empty
        if bias is not None:
            added = bias.where(allowed, -math.inf).masked_fill(empty, 0)
    factor = float(scale_for(q, scale))
    if not factor > 0:  # hidden scores of -inf times it
        q, factor = q * factor, 1.0
    four = (*(1,) * (2 - len(leading)), *leading)
    q, k, v = (x.expand(*leading, *x.shape[-2:]).reshape(*four, *x.shape[-2:]) for x in (q, k, v))
    with no_autocast(q.device):
        out = F.scaled_dot_product_attention(q, k, v, added, is_causal=flag, scale=factor)
    out = out.reshape(*leading, T, d_v)
    return out if empty is None else out.masked_fill(empty, 0)
