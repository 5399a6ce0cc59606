"""attention(..., backend=...): which of the ways to compute it answers a call, and why."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .core import attend
from .kernels import operators
from .kernels.launch import why_not as why_not_triton
from .sdpa import attend_sdpa
from .sdpa import why_not as why_not_sdpa
from .shapes import check_attention, scale_for
from .tiled import attend_tiled
from .visibility import in_forward_mode, traced, transformed

NAMES = ("auto", "dense", "tiled", "triton", "sdpa")
MANY = 2**20  # pairs of all heads, from which tiles are mostly faster on a CPU than all at once
LONG = 128  # queries, and keys, of which there must be as many too where nothing is hidden


class Backend(NamedTuple):
    """The name of a way to compute attention, and the reason for it in a sentence."""

    name: str
    reason: str


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | Tensor | None = None,
    return_weights: bool = False,
    backend: str = "auto",
) -> Tensor | tuple[Tensor, Tensor]:
    """Scaled dot-product attention: softmax(q kᵀ · scale + bias) v, as `attention_lib.attention`.

    q (..., Hq, T, d_k), k (..., Hk, S, d_k), v (..., Hk, S, d_v) give (..., Hq, T, d_v), and with
    `return_weights` also the weights (..., Hq, T, S). Hq is a multiple of Hk; leading axes broadcast.

    mask    booleans (..., T, S), True = may look (torch.nn.MultiheadAttention: True hides)
    bias    floats (..., T, S) added to the scaled scores; -inf hides
            (more leading axes in mask or bias widen the output: all must broadcast)
    causal  no query sees a later key; the last query is the last key; intersects `mask`
    scale   a number or a tensor of one (which may be learned), 1/sqrt(d_k) by default
    backend the way to compute it: dense, tiled, triton, sdpa (torch's own), or auto, usually the
            fastest of them that keeps all this (`chosen_backend` says which and why). dense has
            derivatives of any order and forward mode; the others are differentiable once

    A query that may see nothing gets zeros, and gradients stay finite. What no query may see reaches
    neither the output nor a gradient, NaN included; a NaN that some queries may see may reach the
    others. The output has the dtype of q; float16 and bfloat16 are added up in float32, under autocast
    too. Raises ShapeError or TypeError with what was found, ValueError for an unknown backend,
    RuntimeError for one that cannot run here, with an alternative.
    Source: Vaswani et al. 2017, equation 1.
    """
    check_attention(q, k, v, mask, bias, causal, scale)
    if backend not in NAMES:
        raise ValueError(f"backend must be one of {', '.join(NAMES)}: found {backend!r}")
    given = q, k, v, mask, bias, bool(causal), scale
    name = backend
    if name == "auto":
        name = _choose(*given, return_weights).name
    elif (reason := _why_not(name, *given, return_weights)) is not None:
        instead = _choose(*given, return_weights).name
        raise RuntimeError(f"backend={name!r} cannot run here: {reason}; use {instead!r} or 'auto'")
    if q.device.type == "mps" and name != "dense":
        given = q.contiguous(), k.contiguous(), v.contiguous(), *given[3:]
    if name == "tiled":
        return attend_tiled(*given, again=backend == "auto")[0]
    if name == "triton":
        return operators.flash_attention(q, k, v, bool(causal), float(scale_for(q, scale)))[0]
    if name == "sdpa":
        return attend_sdpa(*given)  # type: ignore[arg-type]  # the scale is no tensor: _why_not
    out, weights = attend(*given)
    return (out, weights) if return_weights else out


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

    It goes by sizes, so it is usually the fastest, not always. Any choice keeps what `attention`
    promises, derivatives of any order, forward mode and the transforms of torch.func included: where
    a fast backend lacks one of them, the answer is dense. Raises what `attention` raises.
    """
    check_attention(q, k, v, mask, bias, causal, scale)
    return _choose(q, k, v, mask, bias, causal, scale, return_weights)


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
    if transformed() or in_forward_mode():
        return Backend("dense", "only dense attention has forward mode and torch.func's transforms")
    if any(type(x) not in (Tensor, nn.Parameter) for x in tensors):
        return Backend("dense", "tensors of a class of their own may not be cut into tiles")
    if q.device.type == "cuda" and _why_not("triton", *given, False) is None:
        return Backend("triton", "the kernel is made for this GPU and takes all these arguments")
    if traced() or q.is_meta:
        return Backend("dense", "what is traced has no numbers, on which tiles depend")
    shapes = [x.shape[:-2] for x in (q, mask, bias) if x is not None]
    shapes += [torch.Size((*x.shape[:-3], 1)) for x in (k, v)]
    heads = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    if math.prod(heads) * q.shape[-2] * k.shape[-2] < MANY:
        return Backend("dense", "few pairs, which are fastest all at once")
    shows_all = mask is None and bias is None and (not causal or q.shape[-2] == 1)
    differentiated = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
    number = not isinstance(scale, Tensor)
    if q.device.type == "cuda" and shows_all and not differentiated and number:
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
        return why_not_sdpa(q, bias)
    if mask is not None or bias is not None:
        return f"the kernel takes no {'bias' if mask is None else 'mask'}"
    if transformed() or in_forward_mode():
        return "the kernel has no forward mode and none of torch.func's transforms"
    return why_not_triton(q, v)
