"""The names of `attention_lib` for torch tensors: same meanings, any device, differentiable."""

from ..heads import merge_heads, split_heads
from ..shapes import ShapeError
from .backends import Backend, attention, chosen_backend
from .core import softmax
from .masks import (
    block_mask,
    causal_mask,
    document_mask,
    global_window_mask,
    padding_mask,
    sliding_window_mask,
    strided_mask,
)
from .modules import MultiHeadAttention, TransformerBlock
from .positions import alibi_bias, rotary, sinusoids
from .tiled import tiled_attention

__all__ = [
    "Backend",
    "MultiHeadAttention",
    "ShapeError",
    "TransformerBlock",
    "alibi_bias",
    "attention",
    "block_mask",
    "causal_mask",
    "chosen_backend",
    "document_mask",
    "global_window_mask",
    "merge_heads",
    "padding_mask",
    "rotary",
    "sinusoids",
    "sliding_window_mask",
    "softmax",
    "split_heads",
    "strided_mask",
    "tiled_attention",
]
