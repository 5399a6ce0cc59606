"""How the time of each method grows with the number of tokens: 8 heads of width 64, float32.

A slope is that of log time over log n, from 1,024 to 16,384 tokens: 2 for all pairs, 1 for a window.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from attention_lib import (
    global_window_attention,
    linear_attention,
    strided_attention,
    window_attention,
)
from attention_lib.shapes import Array
from attention_lib.tiled import tiled_attention

from .harness import Result, compare, growth

HEADS, WIDTH, WINDOW, GLOBAL = 8, 64, 256, 64
SIZES = (1_024, 2_048, 4_096, 8_192, 16_384)
TILED_HEADS = 2  # of the slope of all pairs, which takes the longest

Method = Callable[[Array, Array, Array], object]


def strided(q: Array, k: Array, v: Array) -> Array:
    """Strided attention at the stride with the least work, sqrt(n)."""
    return strided_attention(q, k, v, math.isqrt(q.shape[-2]))


# The method, and between what its slope must lie.
METHODS: dict[str, tuple[Method, float, float]] = {
    f"window {WINDOW}": (partial(window_attention, window=WINDOW, causal=True), 0.9, 1.15),
    f"window {WINDOW} + {GLOBAL} global": (
        partial(global_window_attention, window=WINDOW, global_tokens=GLOBAL),
        0.9,
        1.25,
    ),
    "linear": (linear_attention, 0.9, 1.25),
    "linear, causal": (partial(linear_attention, causal=True), 0.9, 1.25),
    "strided, sqrt(n)": (strided, 1.3, 1.7),
    "tiled": (tiled_attention, 1.8, 2.1),
}


def draw(n: int, heads: int = HEADS) -> tuple[Array, Array, Array]:
    """Normal q, k and v of n tokens."""
    rng = np.random.default_rng(n)
    q, k, v = rng.standard_normal((3, heads, n, WIDTH), dtype=np.float32)
    return q, k, v


def run() -> Iterator[Result]:
    """A window at 32,768 tokens against all pairs at 8,192, then the slope of each method."""
    long, short = draw(32_768), draw(8_192)
    yield compare(
        f"window {WINDOW}, n 32,768 against tiled, n 8,192",
        partial(window_attention, *long, WINDOW, causal=True),
        partial(tiled_attention, *short),
        bar=0.5,
        rounds=7,
    )
    for name, (method, least, most) in METHODS.items():
        heads, rounds = (TILED_HEADS, 3) if name == "tiled" else (HEADS, 7)
        calls = {n: partial(method, *draw(n, heads)) for n in SIZES}
        yield growth(f"slope: {name}", calls, least=least, bar=most, rounds=rounds)
