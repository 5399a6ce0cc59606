"""Attention from scratch, in NumPy. `attention_lib.torch` has most of it for tensors.

Importing this loads neither torch nor matplotlib.
"""

from .blocks import bigbird_blocks
from .core import attention, softmax
from .gradient import attention_gradient
from .heads import MultiHeadAttention, merge_heads, split_heads
from .linear import linear_attention, linear_attention_scan
from .masks import (
    block_mask,
    causal_mask,
    document_mask,
    global_window_mask,
    padding_mask,
    sliding_window_mask,
    strided_mask,
)
from .positions import alibi_bias, rotary, sinusoids
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
    "alibi_bias",
    "attention",
    "attention_gradient",
    "bigbird_blocks",
    "block_mask",
    "block_sparse_attention",
    "causal_mask",
    "document_mask",
    "global_window_attention",
    "global_window_mask",
    "linear_attention",
    "linear_attention_scan",
    "merge_heads",
    "padding_mask",
    "rotary",
    "sinusoids",
    "sliding_window_mask",
    "softmax",
    "split_heads",
    "strided_attention",
    "strided_mask",
    "tiled_attention",
    "window_attention",
]
