"""The names of `attention_lib` for torch tensors: same meanings, any device, differentiable."""

from ..heads import merge_heads, split_heads
from ..shapes import ShapeError
from .attention import (
    alibi_bias,
    attention,
    causal_mask,
    document_mask,
    padding_mask,
    rotary,
    sinusoids,
    sliding_window_mask,
    softmax,
)
from .backends import Backend, chosen_backend
from .modules import MultiHeadAttention, TransformerBlock
from .tiled import tiled_attention

__all__ = [
    "Backend",
    "MultiHeadAttention",
    "ShapeError",
    "TransformerBlock",
    "alibi_bias",
    "attention",
    "causal_mask",
    "chosen_backend",
    "document_mask",
    "merge_heads",
    "padding_mask",
    "rotary",
    "sinusoids",
    "sliding_window_mask",
    "softmax",
    "split_heads",
    "tiled_attention",
]
