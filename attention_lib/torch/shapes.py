"""The checks of `attention_lib.shapes` for tensors, and what dense, tiled and Triton attention share."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..shapes import Library, check_arguments, describe, scale_or_default

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


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
    """Raise TypeError if `x` is a sparse or a nested tensor."""
    if x.is_nested:
        raise TypeError(
            f"{name} must be one tensor (to_padded_tensor(0.0) makes it so): found a nested tensor"
        )
    if x.layout != torch.strided:
        raise TypeError(f"{name} must be dense (to_dense() makes it so): found {_name(x.layout)}")


def check_numbers(name: str, x: Tensor) -> None:
    """Raise TypeError unless `x` is a dense tensor that holds numbers."""
    check_dense(name, x)
    if x.is_meta:
        raise TypeError(
            f"{name} must be numbers: found a tensor on the device meta, which has none"
        )


def check_dtype(dtype: Any) -> None:
    """Raise TypeError unless `dtype` is that of real floats."""
    if dtype not in FLOATS:
        floats = "torch.float16, bfloat16, float32 or float64"
        raise TypeError(f"dtype must be {floats}: found {dtype!r}")


def check_attention(q: Any, k: Any, v: Any, mask: Any, bias: Any, causal: Any, scale: Any) -> None:
    """Raise TypeError or ShapeError, in one sentence, unless torch attention can take these."""
    learned = isinstance(scale, Tensor) and scale.numel() == 1 and scale.dtype in FLOATS
    check_arguments(TORCH, q, k, v, mask, bias, causal, None if learned else scale)
    if mask is not None:
        check_dense("mask", mask)
    where = {x.device for x in (q, k, v, mask, bias) if x is not None}
    if learned and scale.device.type != "cpu":  # from there one number goes anywhere
        where.add(scale.device)
    if len(where) > 1:
        devices = ", ".join(sorted(map(str, where)))
        raise TypeError(f"q, k, v, mask, bias and scale must be on one device: found {devices}")


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which sums over `dtype` are made: float32 for the half precisions."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def scale_for(q: Tensor, scale: float | Tensor | None) -> float | Tensor:
    """What q is multiplied by: `scale`, if it is a tensor on the device of q; 1/sqrt(d_k) for None."""
    if isinstance(scale, Tensor):
        return scale.reshape(()).to(q.device)
    return scale_or_default(scale, q.shape[-1])


def repeat_heads(x: Tensor, heads: int) -> Tensor:
    """Repeat the key or value heads of `x`, so that query head h reads head h // (heads // Hk).

    The gradients of repeated heads are added up in the accumulator of their dtype.
    """
    if x.ndim < 3 or x.shape[-3] in (1, heads):
        return x
    group = heads // x.shape[-3]
    return x.unsqueeze(-3).expand(*x.shape[:-2], group, *x.shape[-2:]).flatten(-4, -3)


def leading_axes(*tensors: Tensor | None) -> torch.Size:
    """What the axes before the last two broadcast to."""
    shapes = (x.shape[:-2] for x in tensors if x is not None)
    return torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]


def _name(kind: torch.dtype | torch.layout) -> str:
    return str(kind).removeprefix("torch.")


TORCH = Library(
    array="a torch tensor",
    is_array=lambda x: isinstance(x, Tensor),
    check_array=check_tensor,
    accumulator=accumulator,
    promote=torch.promote_types,
    name=_name,
    cast="to(torch.{})",
)
