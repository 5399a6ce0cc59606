"""Attention from scratch, in NumPy. `attention_lib.torch` has most of it for tensors.

Importing this loads neither torch nor matplotlib.
"""

from . import masks, positions
from .blocks import bigbird_blocks
from .core import attention, softmax
from .gradient import attention_gradient
from .heads import MultiHeadAttention, merge_heads, split_heads
from .linear import linear_attention, linear_attention_scan
from .masks import *  # noqa: F403 - each module names what it gives
from .positions import *  # noqa: F403
from .shapes import ShapeError
from .sparse import (
    block_sparse_attention,
    global_window_attention,
    strided_attention,
    window_attention,
)
from .tiled import tiled_attention

__all__ = [
    "MultiHeadAttention",
    "ShapeError",
    "attention",
    "attention_gradient",
    "bigbird_blocks",
    "block_sparse_attention",
    "global_window_attention",
    "linear_attention",
    "linear_attention_scan",
    "merge_heads",
    "softmax",
    "split_heads",
    "strided_attention",
    "tiled_attention",
    "window_attention",
]
__all__ += [*masks.__all__, *positions.__all__]
