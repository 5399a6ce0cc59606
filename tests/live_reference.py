"""What the live figures of chapters 2 and 5 compute in the page, computed by the library."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from attention_lib import attention, attention_gradient
from attention_lib.models.saturation.measure import KEYS, WIDTHS, entropy
from figures.explore_tiles import SEED, SIDE, TOKENS

VALUE_WIDTH = 16
Floats = npt.NDArray[np.float64]


def normals(seed: int, count: int) -> Floats:
    """`count` standard normal numbers (count,), the same as js/random.js draws in the page.

    Box and Muller's method from a counter hashed by the finaliser of MurmurHash3 (Appleby 2011).
    """
    counter = np.arange(count + count % 2, dtype=np.uint32)
    start = _mix(np.array([seed], dtype=np.uint32))
    uniform = (_mix(counter * np.uint32(0x9E3779B9) + start) + 0.5) / 2.0**32
    radius = np.sqrt(-2 * np.log(uniform[::2]))
    angle = 2 * np.pi * uniform[1::2]
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return np.asarray(pairs.ravel()[:count])


def _mix(bits: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return bits ^ (bits >> np.uint32(16))


@dataclass(frozen=True)
class Vectors:
    """One draw: q (1, d), keys (16, d), values (16, 16), and the gradient on the output (1, 16).

    All entries are normal with variance 1; d_out has a random direction and length 1.
    """

    q: Floats
    keys: Floats
    values: Floats
    d_out: Floats


@dataclass(frozen=True)
class Measured:
    """What attention makes of a draw at one d_k.

    scores and weights (16,). largest weight, entropy in nats; q, k, v: the lengths of the gradients.
    """

    scores: Floats
    weights: Floats
    largest: float
    entropy: float
    q: float
    k: float
    v: float


def draw_vectors(seed: int) -> Vectors:
    """The draw of that number, at the largest d_k; a smaller one takes the first entries."""
    rows = KEYS + 1
    numbers = normals(seed, rows * (VALUE_WIDTH + WIDTHS[-1]))
    heads = numbers[: rows * VALUE_WIDTH].reshape(rows, VALUE_WIDTH)
    q_and_keys = np.ascontiguousarray(numbers[rows * VALUE_WIDTH :].reshape(-1, rows).T)
    d_out = heads[:1] / np.linalg.norm(heads[:1])
    return Vectors(q_and_keys[:1], q_and_keys[1:], heads[1:], d_out)


def measure(vectors: Vectors, d_k: int, scaled: bool) -> Measured:
    """Attention and its gradients with the first `d_k` entries of q and of the keys."""
    q, k, v = vectors.q[:, :d_k], vectors.keys[:, :d_k], vectors.values
    scale = 1 / math.sqrt(d_k) if scaled else 1.0
    weights = attention(q, k, v, scale=scale, return_weights=True)[1][0]
    gradients = attention_gradient(q, k, v, vectors.d_out, scale=scale)
    return Measured(
        (scale * q @ k.T)[0],
        weights,
        float(weights.max()),
        float(entropy(weights)),
        *(float(np.linalg.norm(gradient)) for gradient in gradients),
    )


def draw_example(seed: int = SEED) -> tuple[Floats, Floats, Floats]:
    """q and k (24, 8), v (24, 4), standard normal, the same as in the page."""
    widths = (8, 8, 4)
    ends = np.cumsum([TOKENS * width for width in widths])
    q, k, v, _ = np.split(normals(seed, int(ends[-1])), ends)
    return q.reshape(TOKENS, -1), k.reshape(TOKENS, -1), v.reshape(TOKENS, -1)


@dataclass(frozen=True)
class Kept:
    """What is kept of a query after some tiles: m, l and the answer o / l (4,).

    powers: exp(score - m) of each key read, whose sum is l.
    """

    m: float
    l: float  # noqa: E741
    answer: Floats
    powers: Floats


def keep(query: int, step: int, causal: bool) -> Kept:
    """What is kept of `query` after `step` tiles, by plain attention to the keys read so far."""
    q, k, v = draw_example()
    seen = min(SIDE * step, query if causal else TOKENS)
    if seen == 0:
        return Kept(-math.inf, 0.0, np.zeros(4), np.zeros(0))
    row = q[query - 1 : query]
    out, weights = attention(row, k[:seen], v[:seen], return_weights=True)
    largest = float(weights.max())
    m = float((row @ k[:seen].T).max()) / math.sqrt(8)
    return Kept(m, 1 / largest, out[0], weights[0] / largest)
