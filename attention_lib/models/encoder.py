"""A small encoder, one sentence at a time, every step of which can be read and rewired.

x = embedding[word] + position                            T tokens of width d
x = x + MultiHeadAttention(norm(x))                       once a layer
x = x + feed_forward(norm(x))                             only if the weights have one
logits = norm(x) @ W_answer + b_answer                    one score for each possible answer
"""

import difflib
import json
import math
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from ..core import attention, softmax
from ..heads import merge_heads, split_heads
from ..shapes import Array, Mask, ShapeError, check_array, check_count
from . import stored_files
from .corpus import ANSWERS, MAX_LENGTH, VOCABULARY, split_words

What = Literal["query", "key", "value"]


@dataclass(frozen=True)
class Cut:
    """Hide the key at position `key` from the query at position `query` in one head, or in all.

    The field calls this attention knockout.
    """

    layer: int
    query: int
    key: int
    head: int | None = None


@dataclass(frozen=True)
class HeadOff:
    """Make the output of one head zero: zero ablation of the head."""

    layer: int
    head: int


@dataclass(frozen=True)
class Take:
    """Give position `to` the query, key or value vector of position `source`, in one head or all.

    The field calls this activation patching.
    `source` is a position in the same sentence, or in the sentence `words`, which is run unedited.
    Every Take of a layer reads the vectors as they were before any Take of that layer.
    """

    what: What
    layer: int
    to: int
    source: int
    head: int | None = None
    words: str | Sequence[str] | None = None


Edit = Cut | HeadOff | Take


def exchange(what: What, layer: int, a: int, b: int, head: int | None = None) -> tuple[Take, Take]:
    """The two edits that exchange the query, key or value vectors of positions `a` and `b`."""
    return Take(what, layer, a, b, head), Take(what, layer, b, a, head)


@dataclass(frozen=True)
class Run:
    """What the encoder computed for one sentence; one entry a layer in q, k, v and weights.

    q, k  (H, T, d_k) and v (H, T, d_v), edits included   weights (H, T, T)   logits (T, A)
    """

    words: tuple[str, ...]
    answers: tuple[str, ...]
    q: tuple[Array, ...]
    k: tuple[Array, ...]
    v: tuple[Array, ...]
    weights: tuple[Array, ...]
    logits: Array

    def answer(self, i: int) -> str:
        """The most probable answer at position i."""
        return self.answers[int(self.logits[i].argmax())]

    def probabilities(self, i: int) -> Array:
        """The probability of each of `answers` at position i (A,)."""
        return softmax(self.logits[i])


def initial_weights(
    seed: int,
    *,
    layers: int = 2,
    heads: int = 4,
    d_model: int = 48,
    words: int = len(VOCABULARY),
    answers: int = len(ANSWERS),
    max_length: int = MAX_LENGTH,
    feed_forward: int = 0,
    embedding_std: float | None = None,
) -> dict[str, Array]:
    """Weights as they are before training, float32, by name.

    Embeddings and positions are normal with standard deviation `embedding_std`, 2/sqrt(d_model) by
    default (torch.nn.Embedding: 1); matrices and biases are uniform within 1/sqrt(rows), as
    torch.nn.Linear draws them; norms start at 1 and 0.
    `feed_forward` is the width of the layer that follows each attention, 0 for none.
    Raises ValueError if `heads` does not divide `d_model`.
    """
    if d_model % heads:
        raise ValueError(f"heads must divide d_model: d_model {d_model}, heads {heads}")
    rng = np.random.default_rng(check_count("seed", seed))
    std = 2 / math.sqrt(d_model) if embedding_std is None else embedding_std
    tensors: dict[str, Array] = {}

    def add_norm(name: str) -> None:
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = np.ones(d_model), np.zeros(d_model)

    def add_uniform(name: str, rows: int, *shape: int) -> None:
        tensors[name] = rng.uniform(-1, 1, shape) / math.sqrt(rows)

    tensors["embedding"] = rng.normal(0, std, (words, d_model))
    tensors["position"] = rng.normal(0, std, (max_length, d_model))
    for layer in range(layers):
        add_norm(f"layer.{layer}.norm")
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            add_uniform(f"layer.{layer}.{name}", d_model, d_model, d_model)
        if feed_forward:
            prefix = f"layer.{layer}.feed_forward"
            add_norm(f"{prefix}.norm")
            add_uniform(f"{prefix}.W_in", d_model, d_model, feed_forward)
            add_uniform(f"{prefix}.b_in", d_model, feed_forward)
            add_uniform(f"{prefix}.W_out", feed_forward, feed_forward, d_model)
            add_uniform(f"{prefix}.b_out", feed_forward, d_model)
    add_norm("norm")
    add_uniform("W_answer", d_model, d_model, answers)
    add_uniform("b_answer", d_model, answers)
    return {name: tensor.astype(np.float32) for name, tensor in tensors.items()}


class Encoder:
    """A pre-norm encoder of attention layers, with one score for each answer at each position.

    words: the vocabulary, index = token. answers: what the logits score. pointing_head: the
    (layer, head) that looks from a pronoun to its noun, if one was chosen. recipe: how it was made.
    """

    def __init__(
        self,
        weights: Mapping[str, Array],
        *,
        heads: int = 4,
        words: Sequence[str] = VOCABULARY,
        answers: Sequence[str] = ANSWERS,
        pointing_head: tuple[int, int] | None = None,
        recipe: Mapping[str, object] | None = None,
    ) -> None:
        self.heads = check_count("heads", heads, least=1)
        self.words = tuple(words)
        self.answers = tuple(answers)
        self.pointing_head = pointing_head
        self.recipe = dict(recipe or {})
        self._index = {word: i for i, word in enumerate(self.words)}
        self._sizes = _read_sizes(weights)
        self.layers, self.max_length = self._sizes["layers"], self._sizes["max_length"]
        self._check_weights(weights)
        self.tensors = {name: tensor.astype(np.float32) for name, tensor in weights.items()}

    def _check_weights(self, weights: Mapping[str, Array]) -> None:
        """Raise ValueError, ShapeError or TypeError unless the weights are all there and fit."""
        words, answers = len(self.words), len(self.answers)
        sizes = self._sizes | {"words": words, "answers": answers}
        expected = {name: w.shape for name, w in initial_weights(0, heads=1, **sizes).items()}
        if set(weights) != set(expected):
            raise ValueError(f"missing or unknown weights: {sorted(set(expected) ^ set(weights))}")
        for name, shape in expected.items():
            check_array(name, weights[name])
            if weights[name].shape != shape:
                raise ShapeError(
                    f"{name} must be {shape}, for {words} words and {answers} answers: "
                    f"found {weights[name].shape}"
                )
        if sizes["d_model"] % self.heads:
            raise ShapeError(
                f"heads must divide d_model: d_model {sizes['d_model']}, heads {self.heads}"
            )

    @classmethod
    def load(cls, name: str | Path) -> "Encoder":
        """Load shipped weights by name, "pronoun-0" or "heads-0", or a .safetensors file by path.

        Raises ValueError for an unknown name, listing those that are shipped.
        """
        from safetensors import SafetensorError, safe_open

        shipped = {
            file.removesuffix(".safetensors"): path
            for family in ("pronoun", "heads")
            for file, path in stored_files(f"{family}-*.safetensors").items()
        }
        path = shipped.get(str(name), Path(name))
        if path.suffix != ".safetensors" or not path.is_file():
            raise ValueError(f"no weights {str(name)!r}; shipped are {', '.join(shipped)}")
        try:
            with safe_open(path, framework="numpy") as file:
                about = file.metadata()
                weights = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            heads, words, answers, pointing, recipe = (
                json.loads(about[key])
                for key in ("heads", "words", "answers", "pointing_head", "recipe")
            )
            if pointing is not None:
                layer, head = pointing
                pointing = (layer, head)
        except (SafetensorError, TypeError, ValueError, KeyError) as error:
            raise ValueError(f"{path} holds no encoder: {error!r}") from error
        return cls(
            weights,
            heads=heads,
            words=words,
            answers=answers,
            pointing_head=pointing,
            recipe=recipe,
        )

    def untrained(self) -> "Encoder":
        """The same encoder as it was before its first training step, by the seed in its recipe."""
        seed, std = self.recipe.get("seed"), self.recipe.get("embedding_std")
        if not isinstance(seed, int) or not isinstance(std, float | None):
            raise ValueError("the recipe of this encoder names no seed")
        return Encoder(
            initial_weights(seed, heads=self.heads, embedding_std=std, **self._sizes),
            heads=self.heads,
            words=self.words,
            answers=self.answers,
            pointing_head=self.pointing_head,
            recipe=self.recipe,
        )

    def encode(self, words: str | Sequence[str]) -> tuple[int, ...]:
        """The token of each word.

        Raises ValueError for no words, for too many, and for words that the vocabulary lacks.
        """
        words = split_words(words)
        if not words:
            raise ValueError("a sentence needs at least one word")
        if len(words) > self.max_length:
            raise ValueError(
                f"the sentence has {len(words)} words; the encoder reads at most {self.max_length}"
            )
        unknown = [word for word in words if word not in self._index]
        if unknown:
            raise ValueError("; ".join(self._suggest(word) for word in dict.fromkeys(unknown)))
        return tuple(self._index[word] for word in words)

    def _suggest(self, word: str) -> str:
        bare = word.strip(string.punctuation)
        if bare in self._index:
            return f"write {bare!r} for {word!r}: the only sign the encoder knows is the full stop"
        close = difflib.get_close_matches(word, self.words, n=3)
        hint = f"close to it: {', '.join(close)}" if close else "nothing there is close to it"
        return f"the encoder does not know the word {word!r} ({hint})"

    def __call__(self, words: str | Sequence[str], edits: Edit | Iterable[Edit] = ()) -> Run:
        """Run one sentence of T words, with one edit or any number of them.

        Raises ValueError for words the encoder cannot read and for edits that do not fit.
        """
        words = split_words(words)
        tokens = self.encode(words)
        edits = (edits,) if isinstance(edits, Cut | HeadOff | Take) else tuple(edits)
        twins: dict[tuple[str, ...], Run] = {}
        for edit in edits:
            if isinstance(edit, Take) and edit.words is not None:
                twin = split_words(edit.words)
                twins[twin] = twins.get(twin) or self(twin)
            self._check(edit, len(words))
        x = self.tensors["embedding"][list(tokens)] + self.tensors["position"][: len(tokens)]
        seen: list[tuple[Array, Array, Array, Array]] = []
        for layer in range(self.layers):
            here = [edit for edit in edits if edit.layer == layer]
            update, inside = self._attend(layer, self.norm(x, f"layer.{layer}.norm"), here, twins)
            seen.append(inside)
            x = x + update
            if f"layer.{layer}.feed_forward.W_in" in self.tensors:
                x = x + self.feed_forward(x, f"layer.{layer}.feed_forward")
        logits = self.norm(x, "norm") @ self.tensors["W_answer"] + self.tensors["b_answer"]
        q, k, v, weights = zip(*seen, strict=True)
        return Run(words, self.answers, q, k, v, weights, logits)

    def _attend(
        self,
        layer: int,
        x: Array,
        edits: list[Edit],
        twins: Mapping[tuple[str, ...], Run],
    ) -> tuple[Array, tuple[Array, Array, Array, Array]]:
        """One layer's update of x (T, d), and its q, k, v and weights."""
        projections = (self.tensors[f"layer.{layer}.{name}"] for name in ("W_Q", "W_K", "W_V"))
        qkv = [split_heads(x @ projection, self.heads) for projection in projections]
        q, k, v = _patched(layer, qkv, edits, twins)
        mask = _knockout_mask(len(x), self.heads, edits)
        out, weights = attention(q, k, v, mask, return_weights=True)
        for edit in edits:
            if isinstance(edit, HeadOff):
                out[edit.head] = 0
        return merge_heads(out) @ self.tensors[f"layer.{layer}.W_O"], (q, k, v, weights)

    def feed_forward(self, x: Array, name: str) -> Array:
        """Norm, linear, ReLU, linear, for each token of x (..., d) alone, by the weights `name`."""
        hidden = self.norm(x, f"{name}.norm") @ self.tensors[f"{name}.W_in"]
        hidden = np.maximum(hidden + self.tensors[f"{name}.b_in"], 0)
        return hidden @ self.tensors[f"{name}.W_out"] + self.tensors[f"{name}.b_out"]

    def norm(self, x: Array, name: str) -> Array:
        """Layer normalisation of each token of x (..., d), by the weights `name` (Ba et al. 2016)."""
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        unit = centred / np.sqrt(variance + np.float32(1e-5))
        return unit * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]

    def _check(self, edit: Edit, T: int) -> None:
        """Raise ValueError or TypeError unless the edit fits a sentence of T words."""
        if not isinstance(edit, Cut | HeadOff | Take):
            raise TypeError(f"an edit is a Cut, a HeadOff or a Take: found {edit!r}")
        limits = {
            "layer": self.layers,
            "head": self.heads,
            "query": T,
            "key": T,
            "to": T,
            "source": T,
        }
        if isinstance(edit, Take):
            if edit.what not in get_args(What):
                raise ValueError(f"what must be 'query', 'key' or 'value': found {edit.what!r}")
            if edit.words is not None:
                limits["source"] = len(split_words(edit.words))
        for name, limit in limits.items():
            number = getattr(edit, name, 0)
            if number is None and name == "head" and not isinstance(edit, HeadOff):
                continue
            if not isinstance(number, int | np.integer) or not 0 <= number < limit:
                raise ValueError(f"{name} must be an integer from 0 to {limit - 1}: found {edit!r}")


def _read_sizes(weights: Mapping[str, Array]) -> dict[str, int]:
    """The sizes that `initial_weights` makes such weights with, as far as they show them."""

    def size(name: str, axis: int) -> int:
        return (*np.shape(weights.get(name, ())), 1, 1)[axis] or 1

    wide = any(".feed_forward." in name for name in weights)
    return {
        "layers": sum(name.endswith(".W_Q") for name in weights),
        "d_model": size("embedding", 1),
        "words": size("embedding", 0),
        "answers": size("b_answer", 0),
        "max_length": size("position", 0),
        "feed_forward": size("layer.0.feed_forward.b_in", 0) if wide else 0,
    }


def _patched(
    layer: int,
    qkv: Sequence[Array],
    edits: list[Edit],
    twins: Mapping[tuple[str, ...], Run],
) -> tuple[Array, Array, Array]:
    """q, k, v (H, T, d) of a layer after every Take; all of them read the vectors given."""
    before = dict(zip(get_args(What), qkv, strict=True))
    after = dict(before)
    for edit in edits:
        if isinstance(edit, Take):
            source = before[edit.what]
            if edit.words is not None:
                twin = twins[split_words(edit.words)]
                source = {"query": twin.q, "key": twin.k, "value": twin.v}[edit.what][layer]
            if after[edit.what] is before[edit.what]:
                after[edit.what] = before[edit.what].copy()
            heads = slice(None) if edit.head is None else edit.head
            after[edit.what][heads, edit.to] = source[heads, edit.source]
    return after["query"], after["key"], after["value"]


def _knockout_mask(T: int, heads: int, edits: list[Edit]) -> Mask | None:
    """The mask (H, T, T) that the Cuts make; None without any."""
    cuts = [edit for edit in edits if isinstance(edit, Cut)]
    if not cuts:
        return None
    mask = np.ones((heads, T, T), dtype=bool)
    for cut in cuts:
        mask[slice(None) if cut.head is None else cut.head, cut.query, cut.key] = False
    return mask
