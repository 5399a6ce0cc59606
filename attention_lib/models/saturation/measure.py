"""What large scores do to a softmax: chapter 2's measurements, with and without 1/sqrt(d_k).

Every function draws from the generator that it is given.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ...core import attention
from ...gradient import attention_gradient
from ...shapes import Array, ShapeError, check_array, check_count

# Numbers drawn at a time: more would not stay in the processor's cache.
CHUNK = 2**20
# The medians of the live figure "why divide by sqrt(d_k)", and what they are of: 1,000 queries with 16 keys each.
MEDIANS = Path(__file__).parent / "weights" / "saturation.json"
KEYS, DRAWS = 16, 1000
WIDTHS = tuple(2**i for i in range(13))
# What is measured, by its names in the figure and in `Draws`.
KINDS = {"largest": "largest", "entropy": "entropy", "q": "d_q", "k": "d_k", "v": "d_v"}


@dataclass(frozen=True)
class Draws:
    """Many queries, each with n keys of its own: one row of the arrays is one query.

    scores    what the softmax was given, (draws, n)
    largest   largest weight, from 1/n to 1
    entropy   of the weights, in nats, from 0 to ln n
    jacobian  Frobenius norm of the softmax's Jacobian, see `jacobian_norm`
    d_q, d_k, d_v   lengths of the gradients of d_out · output: of the query, of all keys together
              and of all values together
    """

    scores: Array
    largest: Array
    entropy: Array
    jacobian: Array
    d_q: Array
    d_k: Array
    d_v: Array

    @property
    def variance(self) -> float:
        """Variance of the scores over all pairs."""
        return float(self.scores.var())

    def reduce(self, by: Callable[[Array], np.floating] = np.median) -> dict[str, float]:
        """One number each for "largest", ..., "d_v": the median, or what `by` makes of a column."""
        return {f.name: float(by(getattr(self, f.name))) for f in fields(self)[1:]}


def measure_saturation(
    d_k: int,
    *,
    scaled: bool,
    rng: np.random.Generator,
    keys: int = 16,
    draws: int = 1000,
    d_v: int = 16,
) -> Draws:
    """Measure attention of single queries whose q, k and v have independent normal entries, variance 1.

    `scaled` is whether scores are divided by sqrt(d_k). d_out, the gradient that reaches the output,
    has a random direction and length 1. A generator in the same state draws the same numbers for
    both. Raises TypeError or ValueError unless d_k, keys, draws and d_v are whole and at least 1.
    """
    counts = (("d_k", d_k), ("keys", keys), ("draws", draws), ("d_v", d_v))
    d_k, keys, draws, d_v = (check_count(name, value, least=1) for name, value in counts)
    scale = None if scaled else 1.0
    parts = []
    for size in _chunks(draws, d_k * keys):
        q = rng.standard_normal((size, 1, d_k))
        k = rng.standard_normal((size, keys, d_k))
        v = rng.standard_normal((size, keys, d_v))
        d_out = rng.standard_normal((size, 1, d_v))
        d_out /= np.linalg.norm(d_out, axis=-1, keepdims=True)
        _, weights = attention(q, k, v, scale=scale, return_weights=True)
        gradients = attention_gradient(q, k, v, d_out, scale=scale)
        weights = weights[:, 0]
        parts.append(
            (
                (k @ q.swapaxes(-1, -2))[..., 0] / (math.sqrt(d_k) if scaled else 1),
                weights.max(-1),
                entropy(weights),
                jacobian_norm(weights),
                *(np.sqrt((g * g).sum((-2, -1))) for g in gradients),
            )
        )
    return Draws(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _chunks(total: int, each: int) -> Iterator[int]:
    """Sizes that add up to `total`, such that size · each stays within CHUNK, if 1 · each does."""
    size = max(1, CHUNK // each)
    while total > 0:
        yield min(size, total)
        total -= size


def score_variance(d_k: int, rng: np.random.Generator, draws: int = 10_000) -> float:
    """Variance of q·k over `draws` pairs with independent normal entries of variance 1; near d_k.

    Its standard error is about d_k sqrt(2 (1 + 3/d_k) / draws). Source: Vaswani et al. 2017,
    footnote 4. Raises TypeError or ValueError unless d_k and draws are whole and at least 1.
    """
    return float(aligned_scores(d_k, rng, alignment=0.0, draws=draws).var())


def aligned_scores(
    d_k: int, rng: np.random.Generator, *, alignment: float, draws: int = 10_000
) -> Array:
    """q·k of `draws` pairs of which each entry of q is correlated with its entry of k; (draws,).

    Entries have mean 0, variance 1 and correlation `alignment` a, from -1 to 1. Then q·k has mean
    a d_k and variance (1 + a²) d_k: without alignment it grows as sqrt(d_k), with it as d_k. That is
    why µP divides by d_k (Yang et al. 2022, "Tensor Programs V", definition 4.1).
    Raises ValueError for another alignment.
    """
    d_k, draws = check_count("d_k", d_k, least=1), check_count("draws", draws, least=1)
    if not -1 <= alignment <= 1:
        raise ValueError(f"alignment must be from -1 to 1: found {alignment}")
    parts = []
    for size in _chunks(draws, d_k):
        k, noise = rng.standard_normal((2, size, d_k))
        q = alignment * k + math.sqrt(1 - alignment**2) * noise
        parts.append((q * k).sum(-1))
    return np.concatenate(parts)


def entropy(weights: Array) -> Array:
    """Entropy in nats of weights (..., n) that sum to 1, (...): ln n if all are equal, 0 if one is 1."""
    check_array("weights", weights)
    positive = np.where(weights > 0, weights, 1)
    return -(weights * np.log(positive)).sum(-1) + 0.0


def softmax_jacobian(weights: Array) -> Array:
    """How weights w (..., n) change with their scores, (..., n, n): diag(w) - w wᵀ.

    Rows and columns add up to 0, since a constant added to all scores changes nothing.
    Raises ShapeError for a single number.
    """
    check_array("weights", weights)
    if weights.ndim == 0:
        raise ShapeError("weights must have an axis of n weights: found a single number")
    products = weights[..., :, None] * weights[..., None, :]
    n = weights.shape[-1]
    off = np.where(np.eye(n, dtype=bool), 0, products)
    # w_i (1 - w_i) as a sum over the others: 1 - w_i itself is 0 once w_i rounds to 1.
    return np.where(np.eye(n, dtype=bool), off.sum(-1, keepdims=True), -off)


def jacobian_norm(weights: Array) -> Array:
    """Frobenius norm of `softmax_jacobian`, (...): how much a change of the scores can still do.

    Its square is Σ w_i² - 2 Σ w_i³ + (Σ w_i²)². For n equal weights the norm is sqrt(n - 1) / n; for
    two keys it is `two_key_norm`. Here it is added up without cancellation, since it may be 1e-30.
    """
    J = softmax_jacobian(weights)
    return np.sqrt((J * J).sum((-2, -1)))


def two_key_norm(margin: Array | float) -> Array:
    """jacobian_norm for two keys whose scores are `margin` apart: 2 w (1 - w) = 1 / (1 + cosh margin).

    For independent unit-variance q and k without the factor, margin has variance 2 d_k, and for large
    d_k the mean of the norm tends to 1 / sqrt(π d_k).
    """
    # exp(-|m|) cannot overflow; cosh can.
    small = np.exp(-np.abs(np.asarray(margin, dtype=float)))
    return 2 * small / (1 + small) ** 2


def _linear(d_model: int) -> float:
    return 1 / (3 * d_model)


def _xavier_packed(d_model: int) -> float:
    return 2 / (d_model + 3 * d_model)


def _gpt2(_: int) -> float:
    return 0.02**2


# Variance of one entry of W_Q and W_K, by the width d_model of the tokens.
INITIALISATIONS: dict[str, Callable[[int], float]] = {
    "nn.Linear": _linear,
    "nn.MultiheadAttention": _xavier_packed,
    "GPT-2": _gpt2,
}


def initial_score_variance(name: str, d_model: int, heads: int) -> float:
    """Variance of q·k, before any scale, at a real initialisation: d_k (d_model · variance of W)².

    For two different tokens with independent entries of mean 0 and variance 1, as after a layer norm;
    the variance is over the tokens and the starting weights. With d_k = d_model // heads:

    nn.Linear               W uniform within 1/sqrt(d_model)                                d_k / 9
    nn.MultiheadAttention   Xavier uniform over the packed (3 d_model, d_model) matrix      d_k / 4
    GPT-2                   W normal with standard deviation 0.02         d_k (d_model · 0.0004)²

    Raises ValueError for another name, and unless the heads divide d_model.
    """
    d_k = _head_width(name, d_model, heads)
    return d_k * (d_model * INITIALISATIONS[name](d_model)) ** 2


def initial_scores(
    name: str, d_model: int, heads: int, rng: np.random.Generator, tokens: int = 64
) -> Array:
    """q·k, before any scale, of all pairs of `tokens` random tokens, (heads, tokens, tokens).

    The weights are drawn as `initial_score_variance` says; the tokens that become keys are other
    ones than those that become queries. Raises as `initial_score_variance`.
    """
    d_k = _head_width(name, d_model, heads)
    std = math.sqrt(INITIALISATIONS[name](d_model))
    shape = (heads, d_model, d_k)
    if name == "GPT-2":
        W_Q, W_K = rng.normal(0, std, (2, *shape))
    else:
        W_Q, W_K = rng.uniform(-math.sqrt(3) * std, math.sqrt(3) * std, (2, *shape))
    x_q, x_k = rng.standard_normal((2, tokens, d_model))
    return (x_q @ W_Q) @ (x_k @ W_K).swapaxes(-1, -2)


def _head_width(name: str, d_model: int, heads: int) -> int:
    if name not in INITIALISATIONS:
        raise ValueError(f"name must be one of {', '.join(INITIALISATIONS)}: found {name!r}")
    if check_count("d_model", d_model, least=1) % check_count("heads", heads, least=1):
        raise ValueError(f"heads must divide d_model: d_model {d_model}, heads {heads}")
    return d_model // heads


def measure_medians(widths: Sequence[int] = WIDTHS, draws: int = DRAWS) -> dict[str, Any]:
    """For each of KINDS the medians over `draws` random draws, one for each of `widths`.

    {"draws": …, "widths": […], "scaled" and "unscaled": {kind: numbers of three digits}}.
    """
    result: dict[str, Any] = {"draws": draws, "widths": list(widths)}
    for name, scaled in (("scaled", True), ("unscaled", False)):
        found = [
            measure_saturation(
                d_k, scaled=scaled, rng=np.random.default_rng(d_k), keys=KEYS, draws=draws
            ).reduce()
            for d_k in widths
        ]
        result[name] = {
            kind: [float(f"{seen[column]:.3g}") for seen in found] for kind, column in KINDS.items()
        }
    return result


def stored_medians() -> dict[str, Any]:
    """What `measure_medians` gave; `python -m attention_lib.models.saturation` measures it again, in 20 s."""
    medians: dict[str, Any] = json.loads(MEDIANS.read_text(encoding="utf-8"))
    return medians
