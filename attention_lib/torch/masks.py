"""The masks of `attention_lib.masks` as tensors; what each means is said there, once.

Made of torch's own operations, so torch.compile takes them, for many lengths at once.
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..masks import (
    Align,
    positions,
    sees_block,
    sees_global,
    sees_near,
    sees_same,
    sees_strided,
)
from ..shapes import ShapeError, as_array, check_size, describe
from .shapes import check_dense, check_numbers
from .visibility import has_numbers

__all__ = [
    "block_mask",
    "causal_mask",
    "document_mask",
    "global_window_mask",
    "padding_mask",
    "sliding_window_mask",
    "strided_mask",
]

Device = torch.device | str | None


def causal_mask(
    T: int, S: int | None = None, *, align: Align = "lower-right", device: Device = None
) -> Tensor:
    """No query sees a later key, (T, S): see `attention_lib.causal_mask`."""
    i, j = positions(T, S, align, _arange(device))
    allowed: Tensor = j <= i
    return allowed


def sliding_window_mask(
    T: int,
    window: int | None,
    S: int | None = None,
    *,
    causal: bool = True,
    device: Device = None,
) -> Tensor:
    """Each query sees `window` keys, itself counted, (T, S): `attention_lib.sliding_window_mask`."""
    allowed: Tensor = sees_near(*positions(T, S, arange=_arange(device)), window, causal)
    return allowed


def strided_mask(T: int, stride: int, S: int | None = None, *, device: Device = None) -> Tensor:
    """The last `stride` keys and every `stride`-th before, (T, S): `attention_lib.strided_mask`."""
    allowed: Tensor = sees_strided(*positions(T, S, arange=_arange(device)), stride)
    return allowed


def global_window_mask(
    T: int,
    window: int | None,
    global_tokens: int,
    S: int | None = None,
    *,
    causal: bool = True,
    device: Device = None,
) -> Tensor:
    """A window, and tokens that see all and are seen by all: `attention_lib.global_window_mask`."""
    i, j = positions(T, S, arange=_arange(device))
    allowed: Tensor = sees_global(i, j, window, global_tokens, causal)
    return allowed


def block_mask(
    T: int, blocks: Tensor, S: int | None = None, *, block_size: int, causal: bool = False
) -> Tensor:
    """Every pair of each block that `blocks` allows, (..., T, S): see `attention_lib.block_mask`.

    The mask lies on the device of `blocks`.
    """
    if not isinstance(blocks, Tensor):
        raise TypeError(f"blocks must be a torch tensor of booleans: found {describe(blocks)}")
    check_dense("blocks", blocks)
    if blocks.dtype != torch.bool:
        found = str(blocks.dtype).removeprefix("torch.")
        raise TypeError(f"blocks must be boolean, True = may look: found {found}")
    arange = _arange(blocks.device)
    i, j = positions(T, S, arange=arange)
    allowed: Tensor = sees_block(i, j, blocks, block_size, causal, arange)
    return allowed


def padding_mask(lengths: Any, S: int | None = None, *, device: Device = None) -> Tensor:
    """Hide what only fills a batch up, (B, 1, 1, S): see `attention_lib.padding_mask`.

    The mask lies on the device of `lengths` if that is a tensor and no other is named. Under
    torch.compile S must be given, and the lengths are not checked.
    """
    sizes = _as_tensor("lengths", lengths, device)
    if sizes.ndim != 1:
        raise ShapeError(f"lengths must have one axis (B,): lengths {tuple(sizes.shape)}")
    if sizes.dtype == torch.bool or sizes.is_floating_point() or sizes.is_complex():
        found = str(sizes.dtype).removeprefix("torch.")
        if sizes.numel():
            raise TypeError(f"lengths must be integers: found {found}")
    known = has_numbers(sizes)
    if S is None and not known:
        raise TypeError("S must be given where lengths are traced and have no numbers: found None")
    longest = int(sizes.max()) if S is None and sizes.numel() else 0
    S = check_size("S", longest if S is None else S)
    if known and bool(((sizes < 0) | (sizes > S)).any()):
        raise ValueError(f"lengths must lie between 0 and S = {S}: found {sizes.tolist()}")
    return torch.arange(S, device=sizes.device) < sizes[:, None, None, None]


def document_mask(documents_T: Any, documents_S: Any = None, *, device: Device = None) -> Tensor:
    """A query sees the keys of its own document, (..., T, S): see `attention_lib.document_mask`."""
    if not any(isinstance(x, Tensor) for x in (documents_T, documents_S)):  # perhaps strings
        of_query = as_array("documents", documents_T)
        of_key = of_query if documents_S is None else as_array("documents", documents_S)
        return torch.as_tensor(np.asarray(sees_same(of_query, of_key)), device=device)
    if device is None:
        device = next(x.device for x in (documents_T, documents_S) if isinstance(x, Tensor))
    number = _as_tensor("documents", documents_T, device)
    other = number if documents_S is None else _as_tensor("documents", documents_S, device)
    allowed: Tensor = sees_same(number, other)
    return allowed


def _arange(device: Device) -> Any:
    return partial(torch.arange, device=device)


def _as_tensor(name: str, x: Any, device: Device) -> Tensor:
    """A tensor of numbers, on the device named, or on its own."""
    if isinstance(x, Tensor):
        check_numbers(name, x)
        return x if device is None else x.to(device)
    array = as_array(name, x)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"{name} must be numbers: found {array.dtype}")
    if array.dtype.kind == "u":
        most = np.uint64(np.iinfo(np.int64).max)
        array = np.minimum(array.astype(np.uint64), most).astype(np.int64)
    return torch.as_tensor(array, device=device)
