"""Which of the ways to compute attention answers a call, and why."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F

from .attention import attend, check_attention
from .visibility import no_autocast, repeat_heads, traced, transformed

NAMES = ("auto", "dense", "tiled", "triton", "sdpa")
MANY = 2**20  # pairs of all heads, from which tiles are mostly faster on a CPU than all at once
LONG = 128  # queries, and keys, of which there must be as many too where nothing is hidden


class Backend(NamedTuple):
    """The name of a way to compute attention, and the reason for it in a sentence."""

    name: str
    reason: str


def chosen_backend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | Tensor | None = None,
    return_weights: bool = False,
) -> Backend:
    """What `attention` with backend="auto" uses for these arguments, here and now, and why.

    It goes by sizes, so it is usually the fastest, not always.
    Any choice keeps what `attention` promises, gradients of any order and transforms of torch.func
    included: what a fast one has not, dense attention does. Raises what `attention` raises.
    """
    check_attention(q, k, v, mask, bias, causal, scale)
    return _choose(q, k, v, mask, bias, causal, scale, return_weights)


def attend_by(
    name: Any,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    causal: bool,
    scale: float | Tensor | None,
    return_weights: bool,
) -> Tensor | tuple[Tensor, Tensor]:
    """`attention`, checked already, by the backend of this name."""
    if name not in NAMES:
        raise ValueError(f"backend must be one of {', '.join(NAMES)}: found {name!r}")
    given = q, k, v, mask, bias, causal, scale
    auto, causal = name == "auto", bool(causal)
    if auto:
        name = _choose(*given, return_weights).name
    elif (reason := _why_not(name, *given, return_weights)) is not None:
        instead = _choose(*given, return_weights).name
        raise RuntimeError(f"backend={name!r} cannot run here: {reason}; use {instead!r} or 'auto'")
    if q.device.type == "mps" and name != "dense":
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    if name == "dense":
        out, weights = attend(q, k, v, mask, bias, causal, scale)
        return (out, weights) if return_weights else out
    if name == "tiled":
        from .tiled import attend_tiled

        return attend_tiled(q, k, v, mask, bias, causal, scale, again=auto)[0]
    number = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    if name == "triton":
        from .kernels.operators import flash_attention

        return flash_attention(q, k, v, causal, number)[0]
    return _sdpa(q, k, v, mask, bias, causal, number)


def _choose(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    causal: bool,
    scale: float | Tensor | None,
    return_weights: bool,
) -> Backend:
    """Usually the fastest backend that is sure to be right. The reasons are constants, for torch.compile."""
    given = q, k, v, mask, bias, causal, scale
    tensors = [x for x in given if isinstance(x, Tensor)]
    if return_weights:
        return Backend("dense", "only dense attention holds the weights")
    if transformed() or forward_ad._current_level >= 0:
        return Backend("dense", "only dense attention has forward mode and torch.func's transforms")
    if any(type(x) not in (Tensor, nn.Parameter) for x in tensors):
        return Backend("dense", "tensors of a class of their own may not be cut into tiles")
    if q.device.type == "cuda" and _why_not("triton", *given, False) is None:
        return Backend("triton", "a GPU that the kernel is made for, and nothing it lacks is asked")
    if traced() or q.is_meta:
        return Backend("dense", "what is traced has no numbers, on which tiles depend")
    shapes = [x.shape[:-2] for x in (q, mask, bias) if x is not None]
    shapes += [torch.Size((*x.shape[:-3], 1)) for x in (k, v)]
    heads = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    if math.prod(heads) * q.shape[-2] * k.shape[-2] < MANY:
        return Backend("dense", "few pairs, which are fastest all at once")
    shows_all = mask is None and bias is None and (not causal or q.shape[-2] == 1)
    differentiated = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
    if (
        q.device.type == "cuda"
        and shows_all
        and not differentiated
        and not isinstance(scale, Tensor)
    ):
        return Backend("sdpa", "a GPU without the kernel, nothing hidden, no gradients")
    if shows_all and min(q.shape[-2], k.shape[-2]) < LONG:
        return Backend("dense", "few queries or few keys, which are fastest all at once")
    return Backend("tiled", "many pairs, of which a block at a time fits the cache")


def _why_not(
    name: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    causal: bool,
    scale: float | Tensor | None,
    return_weights: bool,
) -> str | None:
    """Why a backend cannot run for these arguments; None if it can."""
    if name == "dense":
        return None
    if return_weights:
        return "it holds no weights to return"
    if name == "tiled":
        return None
    if isinstance(scale, Tensor):
        return "it takes a scale that is a number, not a tensor"
    if name == "sdpa":
        if bias is not None and bias.dtype != q.dtype:
            return f"it takes a bias of the dtype of q: found {bias.dtype}"
        if forward_ad._current_level >= 0:
            return "it has no forward mode"
        return None
    if mask is not None or bias is not None:
        return f"the kernel takes no {'bias' if mask is None else 'mask'}"
    if transformed() or forward_ad._current_level >= 0:
        return "the kernel has no forward mode and none of torch.func's transforms"
    from .kernels.launch import why_not

    return why_not(q, v)


def _sdpa(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    causal: bool,
    scale: float,
) -> Tensor:
    """torch's own, kept from what it does its own way.

    Its is_causal lines up the first query with the first key, an empty row is NaN or a mean, and
    fewer key heads are taken by some kernels only.
    """
    T, S, d_v = q.shape[-2], k.shape[-2], v.shape[-1]
    shapes = [x.shape[:-2] for x in (q, mask, bias) if x is not None]
    heads = q.shape[-3] if q.ndim > 2 else 1
    k, v = repeat_heads(k, heads), repeat_heads(v, heads)
    shapes += [k.shape[:-2], v.shape[:-2]]
    leading = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    if not math.prod(leading) * T * S * d_v:
        return attend(q, k, v, mask, bias, causal, scale)[0]
    lower_right = causal and T > 1  # one query sees all keys
    flag = lower_right and T == S and mask is None and bias is None
    allowed = mask
    if lower_right and not flag:
        below = torch.ones(T, S, dtype=torch.bool, device=q.device).tril(S - T)
        allowed = below if allowed is None else allowed & below
    if bias is not None:
        shown = ~bias.isneginf()
        allowed = shown if allowed is None else allowed & shown
    added, empty = allowed, None
    if allowed is not None:
        allowed = allowed.expand(*allowed.shape[:-2], T, S)
        empty = ~allowed.any(-1, keepdim=True)
        seen = allowed.any(-2)[..., None]
        q, k, v = q.where(~empty, 0), k.where(seen, 0), v.where(seen, 0)
        added = allowed | empty
        if bias is not None:
            added = bias.where(allowed, -math.inf).masked_fill(empty, 0)
    four = (*(1,) * (2 - len(leading)), *leading)
    q, k, v = (x.expand(*leading, *x.shape[-2:]).reshape(*four, *x.shape[-2:]) for x in (q, k, v))
    with no_autocast(q.device):
        out = F.scaled_dot_product_attention(q, k, v, added, is_causal=flag, scale=scale)
    out = out.reshape(*leading, T, d_v)
    return out if empty is None else out.masked_fill(empty, 0)
