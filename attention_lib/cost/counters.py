"""Count what a call does: floating-point operations, and the bytes of tensors alive at once.

Both see every operation that torch dispatches, in the forward and the backward pass, on any device.
They see shapes only, so on `meta` tensors a call of any size is counted without being computed.
"""

import gc
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
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
    Recurrent layers, nn.MultiheadAttention and nn.TransformerEncoderLayer run without the kernels that
    do a whole layer in one operator. A sparse matrix counts as a dense one. Not seen are solves and
    decompositions, and what runs outside torch's own operators: NumPy, quantized layers, and kernels
    of one's own without a formula. Raises TypeError unless `call` can be called, NotImplementedError
    for a product of torch's whose operations no formula gives.
    """
    _check_call(call)
    with _product_by_product(), FlopCounterMode(display=False, custom_mapping=_FORMULAS) as counter:
        call()
    return int(counter.get_total_flops())


def peak_live_bytes(call: Callable[[], Any]) -> int:
    """The most bytes of tensors made by `call` that are alive at once, its results included.

    The sizes of the storages are added up after every operation, so that views count once and the
    count is exact and the same on every run; what was alive before, and what it frees of that, does
    not count. Cyclic garbage stays alive until the end. A NumPy array counts once it is made a
    tensor. Not seen is what an operator uses inside and gives back, such as the tiles of the fused
    F.scaled_dot_product_attention or a copy that makes its input contiguous, and what other threads
    make. Raises TypeError unless `call` can be called, NotImplementedError for a sparse tensor.
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


def count_sent_bytes(call: Callable[[], Any]) -> int:
    """Bytes of tensors that `call` sends from this process to another by torch.distributed.

    What is sent in a backward pass counts if `call` makes one; collectives, such as all_reduce, do not.
    Raises TypeError unless `call` can be called.
    """
    _check_call(call)
    with _Sent() as sent:
        call()
    return sent.bytes


class _Sent(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        if func.name() == "c10d::send":
            self.bytes += sum(x.nbytes for x in args[0])
        return func(*args, **(kwargs or {}))


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
    for leaf in tree_leaves(tree):
        if isinstance(leaf, Tensor):
            if leaf.layout is not torch.strided:
                raise NotImplementedError(
                    f"peak_live_bytes counts dense tensors: found one with layout {leaf.layout}"
                )
            yield leaf.untyped_storage()


@contextmanager
def _product_by_product() -> Iterator[None]:
    """Without the kernels that hide the products of a layer in one operator."""
    switches: tuple[Any, ...] = (torch.backends.mkldnn, torch.backends.cudnn)
    before = [switch.enabled for switch in switches]
    fast = torch.backends.mha.get_fastpath_enabled()
    try:
        for switch in switches:
            switch.enabled = False
        torch.backends.mha.set_fastpath_enabled(False)
        yield
    finally:
        for switch, enabled in zip(switches, before, strict=True):
            switch.enabled = enabled
        torch.backends.mha.set_fastpath_enabled(fast)


def _check_call(call: Any) -> None:
    if not callable(call):
        raise TypeError(
            f"call must be a function without arguments (lambda: ...): found {describe(call)}"
        )


def _vector_flops(first: Any, second: Any, **kwargs: Any) -> int:
    """Of a matrix or a vector times a vector: each number of the first is used once."""
    return 2 * int(torch.Size(first).numel())


def _sum_flops(out: Any, first: Any, second: Any, **kwargs: Any) -> int:
    """Of matrix products (..., rows, inner) @ (..., inner, columns) added to what there is."""
    return 2 * int(torch.Size(first).numel()) * int(second[-1])


def _vector_sum_flops(out: Any, first: Any, second: Any, **kwargs: Any) -> int:
    return _vector_flops(first, second)


def _attention_flops(q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> int:
    return 2 * _pairs(q, k) * (q[-1] + v[-1])


def _attention_backward_flops(d_out: Any, q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> int:
    """The scores again, and from the weights' gradient those of q and k; that gradient, and v's."""
    return 2 * _pairs(q, k) * (3 * q[-1] + 2 * v[-1])


def _pairs(q: Any, k: Any) -> int:
    return int(torch.Size(q[:-1]).numel()) * int(k[-2])


def _refuse(name: str) -> Callable[..., int]:
    def formula(*args: Any, **kwargs: Any) -> int:
        raise NotImplementedError(f"count_flops has no formula for torch.ops.aten.{name}")

    return formula


def _formulas() -> dict[Any, Callable[..., int]]:
    """What torch's own table (2.13) leaves out, and would count as 0."""
    formulas: dict[str, Callable[..., int]] = {
        **dict.fromkeys(("mv", "dot", "vdot"), _vector_flops),
        **dict.fromkeys(("addmv", "addmv_"), _vector_sum_flops),
        **dict.fromkeys(
            ("addmm_", "_addmm_activation", "addbmm", "addbmm_", "baddbmm_"), _sum_flops
        ),
        "_scaled_dot_product_flash_attention_for_cpu": _attention_flops,
        "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward_flops,
    }
    formulas |= {name: _refuse(name) for name in _WITHOUT_FORMULA}
    return {
        getattr(ATEN, name): formula for name, formula in formulas.items() if hasattr(ATEN, name)
    }


# Layers in one operator, for whoever calls them by name; sparse, small-integer and grouped products.
_WITHOUT_FORMULA = """
    _transformer_encoder_layer_fwd _native_multi_head_attention _triton_multi_head_attention
    _triton_scaled_dot_attention _scaled_dot_product_attention_math_for_mps
    _scaled_dot_product_fused_attention_overrideable
    _scaled_dot_product_fused_attention_overrideable_backward
    _flash_attention_forward_no_dropout_inplace _cudnn_attention_forward _cudnn_attention_backward
    mkldnn_rnn_layer mkldnn_rnn_layer_backward _cudnn_rnn _cudnn_rnn_backward miopen_rnn
    miopen_rnn_backward _lstm_mps lstm_mps_backward quantized_lstm quantized_gru
    mkldnn_linear mkldnn_linear_backward mkldnn_linear_backward_input mkldnn_linear_backward_weights
    linear_backward matmul_backward _euclidean_dist _trilinear linalg_matrix_exp linalg_pinv
    conv_tbc cudnn_convolution_relu cudnn_convolution_add_relu miopen_convolution_relu
    miopen_convolution_add_relu miopen_convolution mkldnn_convolution
    _sparse_addmm _sparse_sparse_matmul _sparse_mm_reduce_impl _sparse_mm_reduce_impl_backward
    sparse_sampled_addmm sspaddmm hspmm _sparse_semi_structured_mm _sparse_semi_structured_addmm
    _sparse_semi_structured_linear _cslt_sparse_mm _int_mm _mixed_dtypes_linear _weight_int8pack_mm
    _weight_int4pack_mm _weight_int4pack_mm_for_cpu _weight_int4pack_mm_with_scales_and_zeros
    _dyn_quant_matmul_4bit _grouped_mm _scaled_grouped_mm _scaled_grouped_mm_v2 _scaled_mm_v2
    _foreach_mm
""".split()
_FORMULAS = _formulas()
