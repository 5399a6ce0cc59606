"""Matrix products that are counted while somebody asks: one multiply-add is two FLOPs."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from .shapes import Array


@dataclass
class Counted:
    """What `count_multiply_adds` has seen so far."""

    multiply_adds: int = 0


_counters: ContextVar[tuple[Counted, ...]] = ContextVar("counters", default=())


@contextmanager
def count_multiply_adds() -> Iterator[Counted]:
    """Count the multiply-adds of every matrix product made by `multiply` inside the `with` block.

    All attention in NumPy makes its products with it, but not its gradient. Each thread counts its own;
    a block inside another counts for both.
    """
    counted = Counted()
    token = _counters.set((*_counters.get(), counted))
    try:
        yield counted
    finally:
        _counters.reset(token)


def multiply(a: Array, b: Array, out: Array | None = None) -> Array:
    """The matrix product a @ b, written into `out` if given.

    a (..., rows, inner) and b (..., inner, columns) are rows · inner · columns multiply-adds for each
    index of the leading axes.
    """
    product: Array = np.matmul(a, b, out=out)
    for counted in _counters.get():
        counted.multiply_adds += product.size * a.shape[-1]
    return product
