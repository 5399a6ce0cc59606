"""Tiled attention beside F.scaled_dot_product_attention, and beside its products and exps alone.

float32, 8 heads of width 64, one thread. "Products and exp" are the two matrix products and np.exp, in
the blocks of `attention_lib.tiled`; that uses np.exp2 where it may, which is faster on some processors,
so the row is a yardstick and no lower bound. Takes about four minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm

import attention_lib
import attention_lib.torch
from attention_lib.blocks import KEYS
from attention_lib.blockwise import GROUP, cut
from attention_lib.shapes import Array

from . import growth
from .harness import Result, compare, report

HEADS, WIDTH, ROUNDS = 8, 64, 21
# Queries, causal, and the bar of NumPy's ratio to torch's own attention.
BARS = (
    (512, False, 1.2),
    (1024, True, 1.25),
    (2048, False, 1.15),
    (2048, True, 1.25),
    (4096, False, 1.15),
)
LIMIT_AT, LIMIT_BAR = 1024, 1.25
TORCH_AT, TORCH_BAR = 2048, 1.25


def run() -> Iterator[Result]:
    """All comparisons, each made when it is asked for, then how the time of each method grows."""
    torch.set_num_threads(1)
    rows: list[Callable[[], Result]] = [
        *(partial(beside_torch, n, causal, bar) for n, causal, bar in BARS),
        beside_the_limit,
        partial(torch_beside_torch, backward=False),
        partial(torch_beside_torch, backward=True),
    ]
    results = chain((row() for row in rows), growth.run())
    yield from tqdm(results, "attention", len(rows) + 1 + len(growth.METHODS), leave=False)


def inputs(n: int) -> tuple[list[Array], list[Tensor]]:
    """q, k and v (1, heads, n, width), as arrays and as tensors."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(1, HEADS, n, WIDTH)).astype(np.float32) for _ in range(3)]
    return arrays, [torch.from_numpy(x) for x in arrays]


def beside_torch(n: int, causal: bool, bar: float) -> Result:
    """NumPy's tiled attention beside torch's own."""
    (q, k, v), tensors = inputs(n)
    ours = partial(attention_lib.tiled_attention, q, k, v, causal=causal)
    peer = partial(F.scaled_dot_product_attention, *tensors, is_causal=causal)  # type: ignore[arg-type, misc]
    np.testing.assert_allclose(ours(), peer(), atol=1e-5)
    name = f"NumPy tiled{', causal' * causal}, n = {n:,}, beside torch"
    return compare(name, ours, peer, bar=bar, rounds=ROUNDS)


def beside_the_limit() -> Result:
    """NumPy's tiled attention beside two products and np.exp over the same blocks, and nothing else."""
    arrays, _ = inputs(LIMIT_AT)
    ours = partial(attention_lib.tiled_attention, arrays[0], arrays[1], arrays[2])
    q, k, v = (x[0] for x in arrays)
    q = (q / np.float32(WIDTH**0.5)).reshape(HEADS, -1, GROUP, WIDTH)
    keys = [np.ascontiguousarray(k[:, j].swapaxes(1, 2)) for j in cut(LIMIT_AT, KEYS)]
    values = [v[:, j] for j in cut(LIMIT_AT, KEYS)]
    scores, out = np.empty((*q.shape[1:3], KEYS), np.float32), np.empty(q.shape[1:], np.float32)

    def limit() -> None:
        for head in range(HEADS):
            for keys_j, values_j in zip(keys, values, strict=True):
                np.matmul(q[head], keys_j[head], out=scores)
                np.exp(scores, out=scores)
                np.matmul(scores, values_j[head], out=out)

    name = f"NumPy tiled, n = {LIMIT_AT:,}, beside products and exp"
    return compare(name, ours, limit, bar=LIMIT_BAR, rounds=ROUNDS)


def torch_beside_torch(backward: bool) -> Result:
    """The tiled attention for tensors beside torch's own, with or without the gradients."""
    _, (q, k, v) = inputs(TORCH_AT)
    d_out = torch.ones_like(q)

    def timed(attend: Callable[..., Any]) -> Callable[[], object]:
        if not backward:
            return partial(attend, q, k, v)
        leaves = [x.requires_grad_() for x in (q, k, v)]
        return lambda: torch.autograd.grad(attend(*leaves), leaves, d_out)

    passes = "forward and backward" if backward else "forward"
    return compare(
        f"torch tiled, n = {TORCH_AT:,}, {passes}, beside torch",
        timed(attention_lib.torch.tiled_attention),
        timed(F.scaled_dot_product_attention),
        bar=TORCH_BAR,
        rounds=ROUNDS,
    )


if __name__ == "__main__":
    raise SystemExit(report(run()))
