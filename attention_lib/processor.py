"""What this processor does fast: timed when first asked, once in a process, in a few milliseconds.

Processors differ. For exp2 of float32 NumPy has vector instructions with AVX-512 alone, for exp with AVX2
too; and with AVX-512 OpenBLAS multiplies small matrices without copying them first. The results are the
same, to rounding.
"""

import math
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

ROUNDS, CLEARLY = 5, 0.9


@cache
def exponential(dtype: np.dtype[Any]) -> tuple[np.ufunc, float]:
    """np.exp2 and 1 / log(2), by which its exponent is multiplied; np.exp and 1 where that is faster."""
    x = np.linspace(-4, 4, 8192, dtype=dtype)
    if _faster(partial(np.exp, x, out=x.copy()), partial(np.exp2, x, out=x.copy())):
        return np.exp, 1.0
    return np.exp2, 1 / math.log(2)


@cache
def small_products(dtype: np.dtype[Any]) -> bool:
    """Whether eight products (32, 64) @ (64, 256) take less time than one of the same rows together."""
    a, b = np.ones((8, 32, 64), dtype), np.ones((64, 256), dtype)
    out = a @ b
    together = partial(np.matmul, a.reshape(256, 64), b, out=out.reshape(256, 256))
    return _faster(partial(np.matmul, a, b, out=out), together)


def _faster(one: Callable[[], object], other: Callable[[], object]) -> bool:
    """Whether the shortest run of `one` is clearly below that of `other`; both run in turn."""
    times = [[_seconds(call) for call in (one, other)] for _ in range(ROUNDS)]
    best = [min(column) for column in zip(*times, strict=True)]
    return best[0] < CLEARLY * best[1]


def _seconds(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
