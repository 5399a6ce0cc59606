"""What it means that a key is hidden from a query, for tensors, their gradients and any transform."""

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor


def prepare(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Widen half precision, repeat grouped heads, and put 0 where nothing may look.

    Returns q, k, v and the allowed pairs (..., T, S), None where nothing is hidden.
    """
    heads, T, S = q.shape[-3] if q.ndim > 2 else 1, q.shape[-2], k.shape[-2]
    wide = accumulator(q.dtype)
    q, k, v = q.to(wide), repeat_heads(k.to(wide), heads), repeat_heads(v.to(wide), heads)
    allowed = mask
    if causal:
        causal_TS = torch.ones(T, S, dtype=torch.bool, device=q.device).tril(S - T)
        allowed = causal_TS if allowed is None else allowed & causal_TS
    if bias is not None:
        shown = ~torch.isneginf(bias)
        allowed = shown if allowed is None else allowed & shown
    if allowed is None and not q.is_meta and torch.is_autocast_enabled(q.device.type):
        # The products below stay out of autocast in the backward pass too, which @ does not.
        allowed = torch.ones(T, S, dtype=torch.bool, device=q.device)
    if allowed is not None:
        allowed = allowed.expand(*allowed.shape[:-2], T, S)
        q = q.where(allowed.any(-1)[..., None], 0)
        k_seen = allowed.any(-2)[..., None]
        k, v = k.where(k_seen, 0), v.where(k_seen, 0)
    return q, k, v, allowed


def compare(q: Tensor, k: Tensor, allowed: Tensor | None) -> Tensor:
    """q kᵀ; its gradients read a query and a key only where the pair is allowed."""
    return q @ k.mT if allowed is None else _compare(*_expand(q, k, allowed))


def read_values(weights_TS: Tensor, v: Tensor, allowed: Tensor | None) -> Tensor:
    """weights @ v, in which a NaN or infinity of `v` reaches just the rows that may see it.

    The weights of hidden pairs must be 0. The same holds for the gradients.
    """
    return weights_TS @ v if allowed is None else _read(*_expand(weights_TS, v, allowed))


def _expand(x: Tensor, y: Tensor, allowed: Tensor) -> tuple[Tensor, ...]:
    """Give all three the same leading axes."""
    shapes = (a.shape[:-2] for a in (x, y, allowed))
    leading = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    return tuple(a.expand(*leading, *a.shape[-2:]) for a in (x, y, allowed))


class _Product(torch.autograd.Function):
    """A product whose gradients are products of the two kinds below, to any order.

    Reverse mode only: torch.compile takes no function that also has a forward mode.
    """

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @classmethod
    def vmap(cls, info: Any, in_dims: Any, *inputs: Tensor) -> tuple[Tensor, int]:
        """The batch becomes one more leading axis."""
        batched = (
            x.expand(info.batch_size, *x.shape) if axis is None else x.movedim(axis, 0)
            for x, axis in zip(inputs, in_dims, strict=True)
        )
        return cls.apply(*batched), 0  # type: ignore[no-untyped-call]


class _Compare(_Product):
    @staticmethod
    def forward(q: Tensor, k: Tensor, allowed: Tensor) -> Tensor:
        return q @ k.mT

    @staticmethod
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor, Tensor, None]:
        q, k, allowed = ctx.saved_tensors
        with no_autocast(q.device):
            return _read(d_scores, k, allowed), _read(d_scores.mT, q, allowed.mT), None


class _Read(_Product):
    @staticmethod
    def forward(weights: Tensor, v: Tensor, allowed: Tensor) -> Tensor:
        # A traced graph has no branches, nor have many gradients at once, and a meta tensor cannot
        # choose one; a finite sum says that all is finite.
        branches = not traced() and not torch._C._functorch.is_legacy_batchedtensor(v)
        if v.is_meta or (branches and v.sum().isfinite()):
            return weights @ v
        finite = v.isfinite()
        out = weights @ v.where(finite, 0)
        # The rest by counting, as floats add up: weight · ∞ is ±∞ by the signs, 0 · ∞ and ∞ - ∞ NaN.
        infinite = v.sign().where(v.isinf(), 0)
        total, count = weights.sign() @ infinite, weights.sign().abs() @ infinite.abs()
        seen = allowed.to(v.dtype) @ (~finite).to(v.dtype)
        agree = (total.abs() == count) & (count == seen)
        return out.where(seen == 0, out + torch.where(agree, total * math.inf, math.nan))

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, Tensor, None]:
        weights, v, allowed = ctx.saved_tensors
        with no_autocast(v.device):
            return _compare(d_out, v, allowed), _read(weights.mT, d_out, allowed.mT), None


_compare: Any = _Compare.apply
_read: Any = _Read.apply


def repeat_heads(x: Tensor, heads: int) -> Tensor:
    """Repeat the key or value heads of `x`, so that query head h reads head h // (heads // Hk)."""
    if x.ndim < 3 or x.shape[-3] in (1, heads):
        return x
    return x.repeat_interleave(heads // x.shape[-3], dim=-3)


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which sums over `dtype` are made: float32 for the half precisions."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def transformed(*tensors: Tensor) -> bool:
    """Whether torch.func (vmap, grad, jvp) is at work, or many gradients are asked for at once."""
    batched = any(map(torch._C._functorch.is_legacy_batchedtensor, tensors))
    return batched or bool(torch._C._are_functorch_transforms_active())


def traced() -> bool:
    """Whether calls are recorded, to be made again for other numbers: compile, make_fx or jit.trace."""
    if torch.compiler.is_compiling() or torch._C._is_tracing():
        return True
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.PROXY) is not None


def no_autocast(device: torch.device) -> AbstractContextManager[Any]:
    """Where products are not cast to half precision, whatever the caller has asked for."""
    if not torch.amp.is_autocast_available(device.type):
        return nullcontext()
    return torch.autocast(device.type, enabled=False)
