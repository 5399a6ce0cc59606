"""Count what a call does: floating-point operations, and the bytes of tensors alive at once.

Both see every operation that torch dispatches, in the forward and the backward pass, on any device.
They see shapes only, so on `meta` tensors a call of any size is counted without being computed.
"""

import gc
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode
from torch.utils.weak import WeakIdKeyDictionary

from ..shapes import describe

ATEN = torch.ops.aten


def count_flops(call: Callable[[], Any]) -> int:
    """Floating-point operations of the matrix products that `call` makes: two a multiply-add.

    What is done number by number, such as the exp of a softmax, is not counted; the products of a
    backward pass are, if `call` makes one. F.scaled_dot_product_attention counts all its pairs, also
    those that a kernel skips under is_causal, and its backward five products, one of them made again.
    Not seen is what runs outside torch's operators: NumPy, and kernels of one's own without a formula.
    Raises TypeError unless `call` can be called.
    """
    _check_call(call)
    with FlopCounterMode(display=False, custom_mapping=_FORMULAS) as counter:
        call()
    return int(counter.get_total_flops())


def peak_live_bytes(call: Callable[[], Any]) -> int:
    """The most bytes of tensors made by `call` that are alive at once, its results included.

    The sizes of the storages are added up after every operation, so that views count once and the
    count is exact and the same on every run; what was alive before, and what it frees of that, does
    not count. Cyclic garbage stays alive until the end. A NumPy array counts once it is made a
    tensor. Not seen is what an operator uses inside and gives back, such as the tiles of the fused
    F.scaled_dot_product_attention or a copy that makes its input contiguous.
    Raises TypeError unless `call` can be called.
    """
    _check_call(call)
    collecting = gc.isenabled()
    gc.disable()
    try:
        with _Live() as live:
            call()
    finally:
        if collecting:
            gc.enable()
    return live.peak


class _Live(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows storages: those that are no operator's input before they are one's output are new."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = 0
        self.is_new: MutableMapping[torch.UntypedStorage, bool] = WeakIdKeyDictionary()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        kwargs = kwargs or {}
        if func is not ATEN.lift_fresh.default:  # its input is a tensor just made from numbers
            for storage in _storages((args, kwargs)):
                self.is_new.setdefault(storage, False)
        out = func(*args, **kwargs)
        for storage in _storages(out):
            self.is_new.setdefault(storage, True)
        alive = sum(storage.nbytes() for storage, new in self.is_new.items() if new)
        self.peak = max(self.peak, alive)
        return out


def _storages(tree: Any) -> Iterator[torch.UntypedStorage]:
    return (leaf.untyped_storage() for leaf in tree_leaves(tree) if isinstance(leaf, Tensor))


def _check_call(call: Any) -> None:
    if not callable(call):
        raise TypeError(
            f"call must be a function without arguments (lambda: ...): found {describe(call)}"
        )


def _vector_flops(first: Any, second: Any, **kwargs: Any) -> int:
    """Of a matrix or a vector times a vector: each number of the first is used once."""
    return 2 * int(torch.Size(first).numel())


def _attention_flops(q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> int:
    return 2 * _pairs(q, k) * (q[-1] + v[-1])


def _attention_backward_flops(d_out: Any, q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> int:
    """The scores again, and from the weights' gradient those of q and k; that gradient, and v's."""
    return 2 * _pairs(q, k) * (3 * q[-1] + 2 * v[-1])


def _pairs(q: Any, k: Any) -> int:
    return int(torch.Size(q[:-1]).numel()) * int(k[-2])


# What torch's own table (2.13) leaves out, and would count as 0.
_FORMULAS = {
    ATEN.mv: _vector_flops,
    ATEN.dot: _vector_flops,
    ATEN._scaled_dot_product_flash_attention_for_cpu: _attention_flops,
    ATEN._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward_flops,
}
