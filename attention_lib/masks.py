"""Which query may see which key: one predicate a mask, True = may look.

The same meaning as in F.scaled_dot_product_attention and ONNX. torch.nn.MultiheadAttention uses the
opposite: there True hides. Positions are counted from the lower right corner: with fewer queries
than keys the last query is the last key, as a decoder with cached keys needs.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .shapes import (
    Mask,
    Shape,
    ShapeError,
    as_array,
    check_count,
    check_flag,
    check_size,
    describe,
    is_array,
)

__all__ = [
    "block_mask",
    "causal_mask",
    "document_mask",
    "global_window_mask",
    "padding_mask",
    "sliding_window_mask",
    "strided_mask",
]

Align = Literal["lower-right", "upper-left"]


def positions(
    T: Any, S: Any, align: Align = "lower-right", arange: Callable[[Any, Any], Any] = np.arange
) -> tuple[Any, Any]:
    """The positions i of the queries, (T, 1), and j of the keys, (1, S), as `arange` makes them."""
    T = check_size("T", T)
    S = T if S is None else check_size("S", S)
    if not isinstance(align, str) or align not in ("lower-right", "upper-left"):
        raise ValueError(f"align must be 'lower-right' or 'upper-left': found {align!r}")
    first = S - T if align == "lower-right" else 0
    return arange(first, first + T)[:, None], arange(0, S)[None, :]


def causal_mask(T: int, S: int | None = None, *, align: Align = "lower-right") -> Mask:
    """No query sees a later key: (T, S), True where j <= i.

    With T != S, `align` says which corner is on the diagonal: "lower-right" makes the last query the
    last key; "upper-left" makes the first query the first key. With T > S and lower right, the first
    T - S rows see nothing. Raises ValueError for another `align` or a negative size.
    """
    i, j = positions(T, S, align)
    allowed: Mask = j <= i
    return allowed


def sliding_window_mask(
    T: int, window: int | None, S: int | None = None, *, causal: bool = True
) -> Mask:
    """Each query sees `window` keys, itself counted: (T, S).

    Causal: True where i - window < j <= i. Otherwise: where |i - j| < window. i is counted from the
    lower right. `None` is no window. Raises ValueError for a window below 1.
    Source: Beltagy et al. 2020, section 3.1.
    """
    allowed: Mask = sees_near(*positions(T, S), window, causal)
    return allowed


def strided_mask(T: int, stride: int, S: int | None = None) -> Mask:
    """Each query sees the last `stride` keys, itself counted, and every `stride`-th before: (T, S).

    True where j <= i and either i - j < stride or stride divides i - j. i is counted from the lower
    right. Raises ValueError for a stride below 1. Source: Child et al. 2019, section 4.2, "strided".
    """
    allowed: Mask = sees_strided(*positions(T, S), stride)
    return allowed


def global_window_mask(
    T: int, window: int | None, global_tokens: int, S: int | None = None, *, causal: bool = True
) -> Mask:
    """A sliding window, and the first `global_tokens` tokens, which see all and are seen by all.

    (T, S), True where |i - j| < window or j < global_tokens or 0 <= i < global_tokens. Causal: and
    j <= i, so that global tokens are seen by all, but see no later key. i is counted from the lower
    right. Raises ValueError for a window below 1 or a number of tokens below 0.
    Source: Beltagy et al. 2020, section 3.1.
    """
    allowed: Mask = sees_global(*positions(T, S), window, global_tokens, causal)
    return allowed


def block_mask(
    T: int, blocks: Mask, S: int | None = None, *, block_size: int, causal: bool = False
) -> Mask:
    """Every pair of each block of `block_size` queries and keys that `blocks` allows: (..., T, S).

    `blocks` (..., ceil(T / block_size), ceil(S / block_size)) are booleans, True = may look; the last
    blocks may be smaller. Causal: and j <= i, i counted from the lower right. Raises TypeError if
    they are no booleans, ShapeError if their number is another, ValueError for a size below 1.
    """
    check_blocks(blocks)
    allowed: Mask = sees_block(*positions(T, S), blocks, block_size, causal, np.arange)
    return allowed


def check_blocks(blocks: Any) -> None:
    """Raise TypeError unless `blocks` is an array of booleans."""
    if not is_array(blocks):
        raise TypeError(f"blocks must be a NumPy array of booleans: found {describe(blocks)}")
    if blocks.dtype != bool:
        raise TypeError(f"blocks must be boolean, True = may look: found {blocks.dtype}")


def check_block_shape(shape: Shape, T: int, S: int, block_size: Any) -> int:
    """The size of a block, at most all there is. Raises ShapeError unless blocks cover T and S."""
    size = min(check_count("block_size", block_size, least=1), max(T, S, 1))
    expected = (-(-T // size), -(-S // size))
    if tuple(shape[-2:]) != expected:
        raise ShapeError(
            f"blocks must be (..., ceil(T / block_size), ceil(S / block_size)) = {expected}: "
            f"blocks {tuple(shape)}, T {T}, S {S}, block_size {block_size}"
        )
    return size


def padding_mask(lengths: npt.ArrayLike, S: int | None = None) -> Mask:
    """Hide what only fills a batch up: (B, 1, 1, S), True where the key index is below its length.

    `lengths` (B,) are integers from 0 to S; S defaults to the longest. Raises TypeError if they are
    no integers, ShapeError if they have not one axis, ValueError if one is below 0 or above S.
    """
    sizes = as_array("lengths", lengths)
    if sizes.ndim != 1:
        raise ShapeError(f"lengths must have one axis (B,): lengths {sizes.shape}")
    if sizes.size and sizes.dtype.kind not in "iu":
        raise TypeError(f"lengths must be integers: found {sizes.dtype}")
    longest = int(sizes.max(initial=0))
    S = check_size("S", longest if S is None else S)
    if longest > S or (sizes < 0).any():
        raise ValueError(f"lengths must lie between 0 and S = {S}: found {sizes.tolist()}")
    return np.arange(S) < sizes[:, None, None, None]


def document_mask(documents_T: npt.ArrayLike, documents_S: npt.ArrayLike | None = None) -> Mask:
    """A query sees the keys of its own document: (..., T, S), True where the two numbers are equal.

    `documents_T` (..., T) numbers the document of each query, `documents_S` (..., S) of each key, by
    default the same. Of a batch (B, T) it is (B, T, T); for heads pass documents[:, None], which
    gives (B, 1, T, T). Raises ShapeError for a number without an axis.
    """
    of_query = as_array("documents", documents_T)
    of_key = of_query if documents_S is None else as_array("documents", documents_S)
    return np.asarray(sees_same(of_query, of_key))


# The predicates, of positions or numbers in arrays of NumPy or in tensors of torch.


def sees_near(i: Any, j: Any, window: int | None, causal: bool) -> Any:
    """Keys less than `window` away; see `sliding_window_mask`."""
    most = i.shape[0] + j.shape[1]  # no two are further apart
    window = most if window is None else min(check_count("window", window, least=1), most)
    near = abs(i - j) < window
    return near & (j <= i) if check_flag("causal", causal) else near


def sees_strided(i: Any, j: Any, stride: int) -> Any:
    """Keys that are near, and every so many before; see `strided_mask`."""
    stride = min(check_count("stride", stride, least=1), i.shape[0] + j.shape[1] + 1)
    return (j <= i) & ((i - j < stride) | ((i - j) % stride == 0))


def sees_global(i: Any, j: Any, window: int | None, tokens: int, causal: bool) -> Any:
    """Keys that are near, and those of or for global tokens; see `global_window_mask`."""
    tokens = min(check_count("global_tokens", tokens), i.shape[0] + j.shape[1])
    wide = (j < tokens) | ((i >= 0) & (i < tokens)) | sees_near(i, j, window, False)
    return wide & (j <= i) if check_flag("causal", causal) else wide


def sees_block(i: Any, j: Any, blocks: Any, block_size: int, causal: bool, arange: Any) -> Any:
    """Keys of the blocks that are allowed; see `block_mask`."""
    size = check_block_shape(blocks.shape, i.shape[0], j.shape[1], block_size)
    rows = arange(0, i.shape[0]) // size
    allowed = blocks[..., rows[:, None], j[0] // size]
    return allowed & (j <= i) if check_flag("causal", causal) else allowed


def sees_same(of_query: Any, of_key: Any) -> Any:
    """Keys of the same document; see `document_mask`."""
    if of_query.ndim == 0 or of_key.ndim == 0:
        raise ShapeError(
            f"documents need an axis: found {tuple(of_query.shape)} and {tuple(of_key.shape)}"
        )
    try:
        np.broadcast_shapes(of_query.shape[:-1], of_key.shape[:-1])
    except ValueError:
        raise ShapeError(
            f"leading axes must broadcast: documents {tuple(of_query.shape)} and "
            f"{tuple(of_key.shape)}"
        ) from None
    return of_query[..., :, None] == of_key[..., None, :]
