"""softmax and dense attention for tensors: what every other way to compute attention has to give."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ..shapes import check_axis
from .shapes import accumulator, check_tensor, scale_for
from .visibility import multiply, prepare


def softmax(scores: Tensor, axis: int = -1) -> Tensor:
    """Turn scores into weights that are positive and sum to 1 along `axis`; same shape and dtype.

    Where every score is -inf the weights are 0, and so are the gradients. float16 and bfloat16 are
    added up in float32. Raises TypeError for anything but a tensor of floats.
    """
    check_tensor("scores", scores)
    axis = check_axis("scores", tuple(scores.shape), axis)
    wide = scores.to(accumulator(scores.dtype))
    empty = torch.isneginf(wide).all(axis, keepdim=True)
    return wide.masked_fill(empty, 0).softmax(axis).masked_fill(empty, 0).to(scores.dtype)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    causal: bool,
    scale: float | Tensor | None,
    drop: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Output and weights of attention, all pairs at once; `drop` changes the weights that are used.

    Plain operations of torch, so it has derivatives of any order, forward mode and every transform.
    """
    dtype, scale = q.dtype, scale_for(q, scale)
    q, k, v, allowed = prepare(q, k, v, mask, bias, causal)
    scores_TS = multiply(q * scale, k.mT)
    if bias is not None:
        scores_TS = scores_TS + bias
    if allowed is None:
        weights_TS = scores_TS.softmax(-1)
    else:
        empty = ~allowed.any(-1, keepdim=True)  # finite first, or softmax has NaN gradients there
        scores_TS = scores_TS.where(allowed, -math.inf).masked_fill(empty, 0)
        weights_TS = scores_TS.softmax(-1).where(allowed, 0)
    del scores_TS  # as large as the weights
    out = multiply(weights_TS if drop is None else drop(weights_TS), v)
    if allowed is not None:
        out = out.masked_fill(empty, 0)
    return out.to(dtype), weights_TS.to(dtype)


def dense_gradients(
    d_out: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    causal: bool,
    scale: float,
) -> tuple[Tensor | None, ...]:
    """The gradients of `attend` for q, k, v and bias, by autograd, so that they have gradients too."""
    create_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        # Views, for q, k and v may be one tensor or be made of one another.
        own = [x.view_as(x) if x is not None and x.requires_grad else x for x in (q, k, v, bias)]
        wanted = [x for x in own if x is not None and x.requires_grad]
        out, _ = attend(own[0], own[1], own[2], mask, own[3], causal, scale)  # type: ignore[arg-type]
        found = iter(torch.autograd.grad(out, wanted, d_out, create_graph=create_graph))
    return tuple(next(found) if x is not None and x.requires_grad else None for x in own)
