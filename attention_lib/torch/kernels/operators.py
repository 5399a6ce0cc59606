"""The Triton kernels as operators of torch: autograd, torch.compile and meta tensors know them.

Importing this needs no Triton; running an operator does.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..core import dense_gradients
from ..shapes import accumulator
from ..visibility import no_autocast, transformed
from . import launch


@torch.library.custom_op("attention_lib::flash", mutates_args=())
def flash(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp of q (B, H, T, d_k), k (B, Hk, S, d_k) and v (B, Hk, S, d_v)."""
    return launch.forward(q, k, v, causal, scale)


@torch.library.custom_op("attention_lib::flash_backward", mutates_args=())
def flash_backward(
    d_out: Tensor,
    d_lse: Tensor | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of q, k and v."""
    with no_autocast(q.device):
        return launch.backward(d_out, d_lse, q, k, v, out, lse, causal, scale)


@flash.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    shape = q.shape[:3]
    return q.new_empty(*shape, v.shape[3]), q.new_empty(shape, dtype=accumulator(q.dtype))


@flash_backward.register_fake
def _(
    d_out: Tensor, d_lse: Tensor | None, q: Tensor, k: Tensor, v: Tensor, *rest: Any
) -> tuple[Tensor, ...]:
    return tuple(x.new_empty(x.shape) for x in (q, k, v))


def _save(ctx: Any, inputs: Sequence[Any], output: Sequence[Tensor]) -> None:
    q, k, v, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(q, k, v, *output)
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, d_out: Tensor | None, d_lse: Tensor | None) -> tuple[Any, ...]:
    """One derivative by the kernels. For the next ones the first is dense attention's."""
    q, k, v, out, lse = ctx.saved_tensors
    if torch.is_grad_enabled() or (d_out is not None and transformed(d_out)):
        if d_out is None or d_lse is not None:
            raise RuntimeError("the log-sum-exp of the Triton kernel is differentiable once")
        gradients = dense_gradients(d_out, q, k, v, None, None, ctx.causal, ctx.scale)[:3]
    else:
        d_out = torch.zeros_like(out) if d_out is None else d_out
        gradients = flash_backward(d_out, d_lse, q, k, v, out, lse, ctx.causal, ctx.scale)
    return *gradients, None, None


flash.register_autograd(_differentiate, setup_context=_save)


def flash_attention(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    """`flash` for any leading axes that `attention` takes: output and log-sum-exp."""
    leading = torch.broadcast_shapes(  # type: ignore[no-untyped-call]
        *(x.shape[:-3] for x in (q, k, v))
    )
    heads = q.shape[-3] if q.ndim > 2 else 1
    if accumulator(q.dtype) == q.dtype:  # scaled before the product, where nothing is lost by it
        q, scale = q * scale, 1.0
    flat = []
    for x in (q, k, v):
        x = x if x.ndim > 2 else x[None]
        x = x.expand(*leading, *x.shape[-3:])
        flat.append(x.reshape(math.prod(leading), *x.shape[-3:]))
    out, lse = flash(*flat, causal, scale)
    own = (*leading, heads) if max(x.ndim for x in (q, k, v)) > 2 else ()
    return out.reshape(*own, *out.shape[2:]), lse.reshape(*own, q.shape[-2])
