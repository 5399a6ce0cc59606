"""The names of `attention_lib` for torch tensors: same meanings, any device, differentiable."""

from ..heads import merge_heads, split_heads
from ..shapes import ShapeError
from . import masks, positions
from .backends import Backend, attention, chosen_backend
from .core import softmax
from .masks import *  # noqa: F403 - each module names what it gives
from .modules import MultiHeadAttention, TransformerBlock
from .positions import *  # noqa: F403
from .tiled import tiled_attention

__all__ = [
    "Backend",
    "MultiHeadAttention",
    "ShapeError",
    "TransformerBlock",
    "attention",
    "chosen_backend",
    "merge_heads",
    "softmax",
    "split_heads",
    "tiled_attention",
]
__all__ += [*masks.__all__, *positions.__all__]
