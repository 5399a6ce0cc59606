"""The NumPy names for torch tensors: same meanings, any device, differentiable."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import masks
from .. import positions as numpy_positions
from ..masks import Align
from ..positions import Pairing, rotary_pairs, rotation
from ..shapes import ShapeError, check_axis, check_mask_dtype, check_options, check_shapes, describe
from .visibility import accumulator, compare, no_autocast, prepare, read_values

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


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
            fastest of them that keeps all this (`chosen_backend` says which and why); the others are
            differentiable once, and hidden NaN and infinity may pass through sdpa

    A query that may see nothing gets zeros, and gradients stay finite. What is hidden from a query is
    read neither for its output nor for its gradients. The output has the dtype of q; float16 and
    bfloat16 are added up in float32, under autocast too. Raises ShapeError or TypeError with what
    was found, ValueError for no backend, RuntimeError for one that cannot run, with an alternative.
    Source: Vaswani et al. 2017, equation 1.
    """
    from .backends import attend_by  # which needs this module

    check_attention(q, k, v, mask, bias, causal, scale)
    return attend_by(backend, q, k, v, mask, bias, causal, scale, return_weights)


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
    """Output and weights of `attention`; `drop` changes the weights by which the values are added."""
    dtype, factor = q.dtype, 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    factor = factor.reshape(()).to(q.device) if isinstance(factor, Tensor) else float(factor)
    q, k, v, allowed = prepare(q, k, v, mask, bias, causal)
    with no_autocast(q.device):
        scores_TS = compare(q * factor, k, allowed)
        if bias is not None:
            scores_TS = scores_TS + bias
        if allowed is None:
            weights_TS = scores_TS.softmax(-1)
        else:
            empty = ~allowed.any(
                -1, keepdim=True
            )  # finite first, or softmax has NaN gradients there
            scores_TS = scores_TS.where(allowed, -math.inf).masked_fill(empty, 0)
            weights_TS = scores_TS.softmax(-1).where(allowed, 0)
        del scores_TS  # as large as the weights
        kept_TS = weights_TS if drop is None else drop(weights_TS)
        out = read_values(kept_TS, v, allowed)
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


def check_tensor(name: str, x: Any) -> None:
    """Raise TypeError unless `x` is a torch tensor of real floats."""
    if not isinstance(x, Tensor):
        advice = "torch.as_tensor(...) makes one"
        if isinstance(x, np.ndarray):
            advice = "torch.from_numpy(...) makes one; attention_lib has the same names for arrays"
        raise TypeError(f"{name} must be a torch tensor ({advice}): found {describe(x)}")
    if x.dtype not in FLOATS:
        raise TypeError(
            f"{name} must hold float16, bfloat16, float32 or float64: found {_name(x.dtype)}"
        )
    check_dense(name, x)


def check_dense(name: str, x: Tensor) -> None:
    """Raise TypeError if `x` is a sparse tensor."""
    if x.layout != torch.strided:
        raise TypeError(f"{name} must be dense (to_dense() makes it so): found {_name(x.layout)}")


def _name(kind: torch.dtype | torch.layout) -> str:
    return str(kind).removeprefix("torch.")


def check_attention(q: Any, k: Any, v: Any, mask: Any, bias: Any, causal: Any, scale: Any) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        check_tensor(name, x)
    if not q.dtype == k.dtype == v.dtype:
        found = ", ".join(_name(x.dtype) for x in (q, k, v))
        raise TypeError(f"q, k and v must share one dtype: found {found}")
    if mask is not None:
        if not isinstance(mask, Tensor):
            raise TypeError(f"mask must be a torch tensor of booleans: found {describe(mask)}")
        check_mask_dtype(_name(mask.dtype))
        check_dense("mask", mask)
    if bias is not None:
        check_tensor("bias", bias)
        wide = accumulator(q.dtype)
        if torch.promote_types(bias.dtype, wide) != wide:
            raise TypeError(
                f"bias must be no wider than {_name(wide)}, in which scores are added up: "
                f"found {_name(bias.dtype)}; use bias.to({wide})"
            )
    learned = isinstance(scale, Tensor) and scale.numel() == 1 and scale.dtype in FLOATS
    check_options(causal, None if learned else scale)
    where = {x.device for x in (q, k, v, mask, bias) if x is not None}
    if learned and scale.device.type != "cpu":  # from there one number goes anywhere
        where.add(scale.device)
    if len(where) > 1:
        devices = ", ".join(sorted(map(str, where)))
        raise TypeError(f"q, k, v, mask, bias and scale must be on one device: found {devices}")
    check_shapes(
        tuple(q.shape),
        tuple(k.shape),
        tuple(v.shape),
        None if mask is None else tuple(mask.shape),
        None if bias is None else tuple(bias.shape),
    )


def rotary(
    x: Tensor,
    positions: Any = None,
    *,
    base: float = 10000.0,
    pairing: Pairing = "half",
) -> Tensor:
    """Rotate pairs of features by an angle that grows with the position, as `attention_lib.rotary`.

    x (..., T, d); positions (..., T), 0 to T - 1 by default. Angles are made in float64, so positions
    of a million stay exact in half precision. Source: Su et al. 2021, equation 34.
    """
    check_tensor("x", x)
    if x.ndim < 2:
        raise ShapeError(f"x must be (..., T, d): x {tuple(x.shape)}")
    if isinstance(positions, Tensor):
        positions, _ = _to_numpy("positions", positions, None)
    wide = accumulator(x.dtype)
    cos, sin = (
        torch.as_tensor(a, dtype=wide, device=x.device)
        for a in rotation(tuple(x.shape), positions, base)
    )
    first, second = rotary_pairs(x.shape[-1], pairing)
    a, b = x[..., first].to(wide), x[..., second].to(wide)
    turned = a * cos - b * sin, b * cos + a * sin
    if pairing == "half":
        return torch.cat(turned, -1).to(x.dtype)
    return torch.stack(turned, -1).flatten(-2).to(x.dtype)


def causal_mask(
    T: int,
    S: int | None = None,
    *,
    align: Align = "lower-right",
    device: torch.device | str | None = None,
) -> Tensor:
    """No query sees a later key, (T, S): see `attention_lib.causal_mask`."""
    return torch.as_tensor(masks.causal_mask(T, S, align=align), device=device)


def sliding_window_mask(
    T: int,
    window: int | None,
    S: int | None = None,
    *,
    causal: bool = True,
    device: torch.device | str | None = None,
) -> Tensor:
    """Each query sees `window` keys, itself counted, (T, S): `attention_lib.sliding_window_mask`."""
    return torch.as_tensor(masks.sliding_window_mask(T, window, S, causal=causal), device=device)


def padding_mask(
    lengths: Any, S: int | None = None, *, device: torch.device | str | None = None
) -> Tensor:
    """Hide what only fills a batch up, (B, 1, 1, S): see `attention_lib.padding_mask`.

    The mask lies on the device of `lengths` if that is a tensor and no other is named.
    """
    lengths, device = _to_numpy("lengths", lengths, device)
    return torch.as_tensor(masks.padding_mask(lengths, S), device=device)


def document_mask(
    documents_T: Any,
    documents_S: Any = None,
    *,
    device: torch.device | str | None = None,
) -> Tensor:
    """A query sees the keys of its own document, (..., T, S): see `attention_lib.document_mask`."""
    documents_T, device = _to_numpy("documents", documents_T, device)
    documents_S, device = _to_numpy("documents", documents_S, device)
    return torch.as_tensor(masks.document_mask(documents_T, documents_S), device=device)


def sinusoids(
    T: int,
    d_model: int,
    *,
    base: float = 10000.0,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """Sines and cosines of growing wavelength, (T, d_model): see `attention_lib.sinusoids`."""
    _check_dtype(dtype)
    table = numpy_positions.sinusoids(T, d_model, base=base, dtype=np.float64)
    return torch.as_tensor(table, dtype=dtype, device=device)


def alibi_bias(
    heads: int,
    T: int,
    S: int | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """A penalty that grows with the distance, (H, T, S): see `attention_lib.alibi_bias`."""
    _check_dtype(dtype)
    table = numpy_positions.alibi_bias(heads, T, S, dtype=np.float64)
    return torch.as_tensor(table, dtype=dtype, device=device)


def _check_dtype(dtype: Any) -> None:
    if dtype not in FLOATS:
        floats = "torch.float16, bfloat16, float32 or float64"
        raise TypeError(f"dtype must be {floats}: found {dtype!r}")


def _to_numpy(name: str, x: Any, device: Any) -> tuple[Any, Any]:
    if not isinstance(x, Tensor):
        return x, device
    check_dense(name, x)
    if x.is_meta:
        raise TypeError(
            f"{name} must be numbers: found a tensor on the device meta, which has none"
        )
    device = x.device if device is None else device
    x = x.detach().cpu()
    return (x.float() if x.dtype == torch.bfloat16 else x).numpy(), device
