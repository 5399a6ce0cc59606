"""Attention from scratch, in NumPy. `attention_lib.torch` has the same names for tensors.

Importing this loads neither torch nor matplotlib.
"""

from .core import attention, softmax
from .gradient import attention_gradient
from .heads import MultiHeadAttention, merge_heads, split_heads
from .masks import causal_mask, document_mask, padding_mask, sliding_window_mask
from .positions import alibi_bias, rotary, sinusoids
from .shapes import ShapeError

__all__ = [
    "MultiHeadAttention",
    "ShapeError",
    "alibi_bias",
    "attention",
    "attention_gradient",
    "causal_mask",
    "document_mask",
    "merge_heads",
    "padding_mask",
    "rotary",
    "sinusoids",
    "sliding_window_mask",
    "softmax",
    "split_heads",
]
