"""What it means that a key is hidden from a query, for tensors; and what may be asked of a tensor."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .shapes import accumulator, leading_axes, repeat_heads


def prepare(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Widen half precision, repeat grouped heads, and put 0 where nothing may look.

    Returns q, k, v and the allowed pairs (..., T, S), None where nothing is hidden. The queries that
    see nothing and the keys and values that no query sees are 0, and so are their gradients.
    """
    heads, wide = q.shape[-3] if q.ndim > 2 else 1, accumulator(q.dtype)
    q, k, v = q.to(wide), repeat_heads(k.to(wide), heads), repeat_heads(v.to(wide), heads)
    allowed = allowed_pairs(q.shape[-2], k.shape[-2], mask, bias, causal, q.device)
    if allowed is not None:
        q = q.where(allowed.any(-1)[..., None], 0)
        k_seen = allowed.any(-2)[..., None]
        k, v = k.where(k_seen, 0), v.where(k_seen, 0)
    return q, k, v, allowed


def allowed_pairs(
    T: int,
    S: int,
    mask: Tensor | None,
    bias: Tensor | None,
    causal: bool,
    device: torch.device,
) -> Tensor | None:
    """The pairs that `mask`, `causal` and the -inf of `bias` all allow, (..., T, S); None for all."""
    allowed = mask
    if causal:
        causal_TS = torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)
        allowed = causal_TS if allowed is None else allowed & causal_TS
    if bias is not None:
        shown = ~torch.isneginf(bias)
        allowed = shown if allowed is None else allowed & shown
    return None if allowed is None else allowed.expand(*allowed.shape[:-2], T, S)


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """a @ b in their own dtype, under autocast too: there its backward pass is kept from it as well."""
    kind = a.device.type
    if not (torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)):
        return a @ b
    leading = leading_axes(a, b)
    a, b = (x.expand(*leading, *x.shape[-2:]) for x in (a, b))
    product: Tensor = _Product.apply(a, b)  # type: ignore[no-untyped-call]
    return product


class _Product(torch.autograd.Function):
    """A product of two tensors with the same leading axes that autocast never rounds."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a: Tensor, b: Tensor) -> Tensor:
        with no_autocast(a.device):
            return a @ b

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, Tensor]:
        a, b = ctx.saved_tensors
        return multiply(d_out, b.mT), multiply(a.mT, d_out)


def no_autocast(device: torch.device) -> AbstractContextManager[Any]:
    """Where products are not cast to half precision, whatever the caller has asked for."""
    if not torch.amp.is_autocast_available(device.type):
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def read_values(weights_TS: Tensor, v: Tensor, allowed: Tensor) -> Tensor:
    """weights @ v, in which values that no row may see count as 0, whatever they hold."""
    if not has_numbers(v) or v.sum().isfinite():
        return weights_TS @ v
    return weights_TS @ v.where(allowed.any(-2)[..., None], 0)


# Of what follows torch has no public account.


def transformed(*tensors: Tensor) -> bool:
    """Whether torch.func (vmap, grad, jvp) is at work, or many gradients are asked for at once."""
    batched = any(map(torch._C._functorch.is_legacy_batchedtensor, tensors))
    return batched or bool(torch._C._are_functorch_transforms_active())


def in_forward_mode() -> bool:
    """Whether derivatives are carried along, in forward mode."""
    return forward_ad._current_level >= 0


def traced() -> bool:
    """Whether calls are recorded, to be made again for other numbers: compile, make_fx or jit.trace."""
    if torch.compiler.is_compiling() or torch._C._is_tracing():
        return True
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.PROXY) is not None


def has_numbers(x: Tensor) -> bool:
    """Whether what to do may depend on the numbers in `x`: there are some, and they are not traced."""
    if x.is_meta or traced():
        return False
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is None
