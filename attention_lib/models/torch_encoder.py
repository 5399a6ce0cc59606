"""The encoder of `attention_lib.models.encoder` as a torch module, and how it is stored."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save
from torch import Tensor, nn
from torch.nn import functional as F

from ..shapes import Array, ShapeError, check_array
from ..torch.masks import padding_mask
from ..torch.modules import TransformerBlock, check_words
from .encoder import Encoder as NumpyEncoder
from .encoder import initial_weights


class Encoder(nn.Module):
    """The encoder of `attention_lib.models.encoder`, trainable, for a batch of sentences.

    seed: of the starting weights, which are `initial_weights(seed, ...)`. words, answers: sizes of
    the vocabulary and of the output. feed_forward: width of each block's, 0 for none.
    """

    def __init__(
        self,
        seed: int,
        *,
        words: int,
        answers: int,
        max_length: int,
        layers: int = 2,
        heads: int = 4,
        d_model: int = 48,
        feed_forward: int = 0,
    ) -> None:
        super().__init__()
        tensors = initial_weights(
            seed,
            layers=layers,
            heads=heads,
            d_model=d_model,
            words=words,
            answers=answers,
            max_length=max_length,
            feed_forward=feed_forward,
        )
        self.embedding = nn.Parameter(torch.empty(words, d_model))
        self.position = nn.Parameter(torch.empty(max_length, d_model))
        self.layer = nn.ModuleList(
            TransformerBlock(d_model, heads, feed_forward=feed_forward, rng=seed)
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self.W_answer = nn.Parameter(torch.empty(d_model, answers))
        self.b_answer = nn.Parameter(torch.empty(answers))
        self.load_tensors(tensors)

    def tensors(self) -> dict[str, Array]:
        """The weights as float32 arrays, by the names of `attention_lib.models.encoder`."""
        return {
            name.replace(".attention.", "."): tensor.detach().float().cpu().numpy()
            for name, tensor in self.state_dict().items()
        }

    def load_tensors(self, tensors: Mapping[str, Array]) -> None:
        """Take over weights by the names of `attention_lib.models.encoder`.

        Raises ShapeError if the names or the shapes are not those of this encoder.
        """
        for name, array in tensors.items():
            check_array(name, array)
        expected = {name: tensor.shape for name, tensor in self.tensors().items()}
        found = {name: tensor.shape for name, tensor in tensors.items()}
        if found != expected:
            wrong = sorted(name for name, _ in expected.items() ^ found.items())
            raise ShapeError(f"missing, unknown or misshapen weights: {', '.join(wrong)}")
        state = {
            name: torch.from_numpy(tensor.astype(np.float32)) for name, tensor in tensors.items()
        }
        self.load_state_dict(
            {name: state[name.replace(".attention.", ".")] for name in self.state_dict()}
        )

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
        """Logits (B, T, A) and each layer's weights (B, H, T, T) for tokens (B, T).

        lengths (B,): how many tokens of each row are a sentence; the others are never looked at.
        Raises ValueError for more tokens than the encoder reads and for unknown ones, TypeError or
        ShapeError for what is no such tensor.
        """
        check_words("tokens", tokens, len(self.embedding))
        T = tokens.shape[-1]
        if len(self.position) < T:
            raise ValueError(f"{T} tokens; the encoder reads at most {len(self.position)}")
        mask = None if lengths is None else padding_mask(lengths, T)
        if mask is not None and len(mask) != len(tokens):
            raise ShapeError(f"lengths must be (B,) with B {len(tokens)}: lengths ({len(mask)},)")
        x = F.embedding(tokens, self.embedding) + self.position[:T]
        weights = []
        for block in self.layer:
            x, seen = block(x, mask, return_weights=True)
            weights.append(seen)
        return self.norm(x) @ self.W_answer + self.b_answer, weights


def save_encoder(encoder: NumpyEncoder, path: Path) -> int:
    """Write float16 weights and what `attention_lib.Encoder.load` needs; return the bytes written."""
    about = {
        "heads": str(encoder.heads),
        "words": json.dumps(encoder.words),
        "answers": json.dumps(encoder.answers),
        "pointing_head": json.dumps(encoder.pointing_head),
        "recipe": json.dumps(encoder.recipe),
    }
    stored = {name: tensor.astype(np.float16) for name, tensor in encoder.tensors.items()}
    return path.write_bytes(_sort_header(save(stored, about)))


def _sort_header(file: bytes) -> bytes:
    """The same safetensors file with a sorted header, so that equal weights give equal files."""
    size = int.from_bytes(file[:8], "little")
    header = json.dumps(json.loads(file[8 : 8 + size]), sort_keys=True, separators=(",", ":"))
    padded = header.encode() + b" " * (-len(header.encode()) % 8)
    return len(padded).to_bytes(8, "little") + padded + file[8 + size :]
