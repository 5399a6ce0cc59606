"""The Transformer of Vaswani et al. 2017, whole: encoder and decoder, at every size of its table 3."""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..shapes import ShapeError, check_count, describe
from .masks import padding_mask
from .modules import FeedForward, MultiHeadAttention, Rng, as_generator, check_words
from .positions import sinusoids
from .shapes import check_tensor


@dataclass(frozen=True)
class Sizes:
    """What the number of parameters depends on; the defaults are the paper's base.

    layers        of the encoder, and of the decoder: the paper's N
    d_model       width of a token; `feed_forward` of the feed-forward's hidden layer: d_ff
    heads         h; d_k and d_v are the widths of one, d_model // heads by default
    words         of the vocabulary that source, target and output share
    bias          whether the attention's projections add vectors; the feed-forward always does
    """

    layers: int = 6
    d_model: int = 512
    feed_forward: int = 2048
    heads: int = 8
    d_k: int | None = None
    d_v: int | None = None
    words: int = 37_000
    bias: bool = False


BASE = Sizes()
BIG = Sizes(d_model=1024, feed_forward=4096, heads=16)

# The rows of table 3, with the millions of parameters that are printed there, None where none are.
# Left out: (D), dropout and label smoothing, and (E), learned positions.
TABLE_3: dict[str, tuple[Sizes, int | None]] = {
    "base": (BASE, 65),
    "(A) h 1, d_k = d_v = 512": (replace(BASE, heads=1), None),
    "(A) h 4, d_k = d_v = 128": (replace(BASE, heads=4), None),
    "(A) h 16, d_k = d_v = 32": (replace(BASE, heads=16), None),
    "(A) h 32, d_k = d_v = 16": (replace(BASE, heads=32), None),
    "(B) d_k 16": (replace(BASE, d_k=16), 58),
    "(B) d_k 32": (replace(BASE, d_k=32), 60),
    "(C) N 2": (replace(BASE, layers=2), 36),
    "(C) N 4": (replace(BASE, layers=4), 50),
    "(C) N 8": (replace(BASE, layers=8), 80),
    "(C) d_model 256, d_k = d_v = 32": (replace(BASE, d_model=256), 28),
    "(C) d_model 1024, d_k = d_v = 128": (replace(BASE, d_model=1024), 168),
    "(C) d_ff 1024": (replace(BASE, feed_forward=1024), 53),
    "(C) d_ff 4096": (replace(BASE, feed_forward=4096), 90),
    "big": (BIG, 213),
}


class Layer(nn.Module):
    """A layer of the encoder; with `cross`, of the decoder, which also looks at the encoder's output.

    Each of its two or three parts adds to the tokens, and a norm follows: x = norm(x + part(x)).
    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, sizes: Sizes, *, cross: bool, rng: torch.Generator) -> None:
        super().__init__()
        d_model, heads = sizes.d_model, sizes.heads
        options: dict[str, Any] = {
            "d_k": sizes.d_k,
            "d_v": sizes.d_v,
            "bias": sizes.bias,
            "rng": rng,
        }
        self.attention = MultiHeadAttention(d_model, heads, **options)
        self.cross = MultiHeadAttention(d_model, heads, **options) if cross else None
        width = check_count("feed_forward", sizes.feed_forward, least=1)
        self.feed_forward = FeedForward(d_model, width, norm=False, rng=rng)
        self.norm = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3 if cross else 2))

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        *,
        causal: bool = False,
    ) -> Tensor:
        """Tokens (B, T, d_model) to tokens of the same shape.

        memory (B, S, d_model)   the encoder's output, for a layer with `cross`
        mask                     what may be seen of the memory, or without `cross` of x itself
        causal                   no token looks at a later one of x
        """
        own = None if self.cross is not None else mask
        x = self.norm[0](x + self.attention(x, mask=own, causal=causal))
        if self.cross is not None:
            x = self.norm[1](x + self.cross(x, memory, mask))
        out: Tensor = self.norm[-1](x + self.feed_forward(x))
        return out


class Transformer(nn.Module):
    """Source tokens and the target so far to scores of each next target token.

    One matrix embeds source and target, times sqrt(d_model), and gives the scores: x @ embeddingᵀ.
    Positions are sinusoids. Dropout is left out. The paper names no starting weights: the
    embedding is normal with a variance of 1/d_model, the rest is uniform within 1/sqrt(rows).
    Under `torch.device("meta")` it is made at once, of any size, and holds no numbers.
    Source: Vaswani et al. 2017, section 3.
    """

    def __init__(self, sizes: Sizes = BASE, *, rng: Rng) -> None:
        super().__init__()
        if not isinstance(sizes, Sizes):
            raise TypeError(f"sizes must be Sizes(...): found {describe(sizes)}")
        rng, self.sizes = as_generator(rng), sizes
        layers = range(check_count("layers", sizes.layers, least=1))
        self.encoder = nn.ModuleList(Layer(sizes, cross=False, rng=rng) for _ in layers)
        self.decoder = nn.ModuleList(Layer(sizes, cross=True, rng=rng) for _ in layers)
        table = torch.empty(check_count("words", sizes.words, least=1), sizes.d_model)
        self.embedding = nn.Parameter(table.normal_(std=sizes.d_model**-0.5, generator=rng))

    def forward(
        self, source: Tensor, target: Tensor, source_lengths: Tensor | None = None
    ) -> Tensor:
        """Scores (B, T, words) of what follows each token of `target` (B, T), given `source` (B, S).

        source_lengths (B,): how many tokens of each source are a sentence; the others are never
        looked at. What fills a target up comes last, and no token looks at a later one.
        Raises TypeError, ShapeError or ValueError for what is no such tensor.
        """
        return self.decode(target, self.encode(source, source_lengths), source_lengths)

    def encode(self, source: Tensor, source_lengths: Tensor | None = None) -> Tensor:
        """The memory (B, S, d_model) of a source (B, S), made once and looked at by each target."""
        x = self._embed("source", source)
        mask = _padding(source_lengths, x)
        for layer in self.encoder:
            x = layer(x, mask)
        return x

    def decode(
        self, target: Tensor, memory: Tensor, source_lengths: Tensor | None = None
    ) -> Tensor:
        """Scores (B, T, words) for a target (B, T) and the memory (B, S, d_model) of its source."""
        x = self._embed("target", target)
        check_tensor("memory", memory)
        if memory.ndim != 3 or memory.shape[-1] != self.sizes.d_model:
            raise ShapeError(
                f"memory must be (B, S, {self.sizes.d_model}): memory {tuple(memory.shape)}"
            )
        if len(memory) != len(target):
            raise ShapeError(
                f"source and target must be equally many: found {len(memory)} and {len(target)}"
            )
        mask = _padding(source_lengths, memory)
        for layer in self.decoder:
            x = layer(x, mask, memory, causal=True)
        return x @ self.embedding.mT

    def _embed(self, name: str, tokens: Tensor) -> Tensor:
        check_words(name, tokens, len(self.embedding))
        d_model = self.sizes.d_model
        x = F.embedding(tokens, self.embedding) * math.sqrt(d_model)
        return x + sinusoids(tokens.shape[1], d_model, dtype=x.dtype, device=x.device)


def _padding(lengths: Tensor | None, memory: Tensor) -> Tensor | None:
    """The mask (B, 1, 1, S) of the lengths of sources of which S tokens were read."""
    if lengths is None:
        return None
    mask = padding_mask(lengths, memory.shape[1], device=memory.device)
    if len(mask) != len(memory):
        raise ShapeError(f"source_lengths must be (B,) with B {len(memory)}: found ({len(mask)},)")
    return mask


def parameters_by_part(sizes: Sizes) -> dict[str, int]:
    """Parameters of the embedding, of the matrices of attention and feed-forward, and of all vectors."""
    with torch.device("meta"):
        model = Transformer(sizes, rng=0)
    parts = dict.fromkeys(("embedding", "attention", "feed-forward", "biases and norms"), 0)
    for name, parameter in model.named_parameters():
        if name == "embedding":
            part = name
        elif parameter.ndim == 1:
            part = "biases and norms"
        else:
            part = "feed-forward" if "feed_forward" in name else "attention"
        parts[part] += parameter.numel()
    return parts


def words_for(sizes: Sizes, parameters: float) -> float:
    """The size of the vocabulary, perhaps no whole number, at which there would be so many parameters."""
    parts = parameters_by_part(sizes)
    return (parameters - sum(parts.values()) + parts["embedding"]) / sizes.d_model
