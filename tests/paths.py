"""Every way to compute attention here, library × dtype, behind one interface of float64 arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import attention_lib
import attention_lib.torch

from .reference import Bools, Floats


@dataclass(frozen=True)
class Path:
    """One library and one dtype."""

    library: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.library}-{self.dtype}"

    @property
    def lib(self) -> Any:
        """The module with the names."""
        return attention_lib if self.library == "numpy" else attention_lib.torch

    @property
    def native(self) -> Any:
        """The dtype as the library names it."""
        return np.dtype(self.dtype) if self.library == "numpy" else getattr(torch, self.dtype)

    @property
    def eps(self) -> float:
        """The rounding step at 1."""
        return float(torch.finfo(getattr(torch, self.dtype)).eps)

    @property
    def lowest(self) -> float:
        """The most negative finite number."""
        return float(torch.finfo(getattr(torch, self.dtype)).min)

    def array(self, x: Any) -> Any:
        """`x` as the library's own kind of array; booleans stay what they are."""
        x = np.asarray(x)
        kind = self.native
        if self.library == "numpy":
            return x if x.dtype == bool else x.astype(kind)
        return torch.as_tensor(x.copy(), dtype=None if x.dtype == bool else kind)

    def rounded(self, x: Floats) -> Floats:
        """What is left of float64 numbers in this dtype."""
        return to_float64(self.array(x))


NUMPY = [Path("numpy", name) for name in ("float16", "float32", "float64")]
TORCH = [Path("torch", name) for name in ("float16", "bfloat16", "float32", "float64")]
PATHS = NUMPY + TORCH
DOUBLE = [Path("numpy", "float64"), Path("torch", "float64")]


def to_float64(x: Any) -> Floats:
    """Any array or tensor as float64 NumPy."""
    if isinstance(x, torch.Tensor):
        return np.asarray(x.detach().double().numpy())
    return np.asarray(x, dtype=np.float64)


def allowed_pairs(
    shape: tuple[int, ...], mask: Bools | None, bias: Floats | None, causal: bool
) -> Bools:
    """The pairs (..., T, S) that mask, bias and causal allow, spelled out."""
    allowed = np.ones(shape, dtype=bool)
    if mask is not None:
        allowed = allowed & mask
    if bias is not None:
        allowed = allowed & (bias > -np.inf)
    if causal:
        T, S = shape[-2:]
        allowed = allowed & (np.arange(S) <= np.arange(T)[:, None] + S - T)
    return allowed


def naive(
    path: Path,
    q: Floats,
    k: Floats,
    v: Floats,
    mask: Bools | None = None,
    *,
    bias: Floats | None = None,
    causal: bool = False,
    scale: float | None = None,
    d_out: Floats | None = None,
) -> tuple[Floats, tuple[Floats, ...]]:
    """Output and gradients of the textbook formula, every step in the dtype of the path.

    It is the yardstick for rounding errors, so it takes no care of anything but dead rows.
    """
    dtype = getattr(torch, path.dtype)
    q_, k_, v_ = (torch.tensor(x, dtype=dtype, requires_grad=True) for x in (q, k, v))
    repeats = q.shape[-3] // k.shape[-3] if min(q.ndim, k.ndim) > 2 else 1
    keys = k_.repeat_interleave(repeats, -3) if repeats > 1 else k_
    values = v_.repeat_interleave(repeats, -3) if repeats > 1 else v_
    scores = q_ @ keys.mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if bias is not None:
        scores = scores + torch.tensor(np.maximum(bias, -100), dtype=dtype)
    allowed = torch.tensor(allowed_pairs(tuple(scores.shape), mask, bias, causal))
    alive = allowed.any(-1, keepdim=True)
    scores = scores.masked_fill(~allowed & alive, -math.inf)
    top = scores.amax(-1, keepdim=True)
    powers = (scores - top).exp()
    out = (powers / powers.sum(-1, keepdim=True) * alive) @ values
    gradients: tuple[Floats, ...] = ()
    if d_out is not None:
        found = torch.autograd.grad((out * torch.tensor(d_out, dtype=dtype)).sum(), (q_, k_, v_))
        gradients = tuple(map(to_float64, found))
    return to_float64(out), gradients
