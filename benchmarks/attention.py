"""Tiled attention beside F.scaled_dot_product_attention, and beside its products and exps alone.

float32, 8 heads of width 64, one thread. "Products and exp" are the two matrix products and np.exp or
np.exp2, in the blocks of `attention_lib.blockwise`, by whatever way is the fastest here. Each kind of
processor has its bars; one with AVX-512 is measured a second time with that switched off, and marked so.
Takes about eight minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm

import attention_lib
import attention_lib.torch
from attention_lib.blocks import KEYS, QUERIES
from attention_lib.blockwise import GROUP, cut
from attention_lib.shapes import Array

from . import growth
from .harness import Result, compare, cpu_time
from .processors import FULL, HALF, kind, without_avx512

ROOT = Path(__file__).resolve().parent.parent
HEADS, WIDTH, ROUNDS = 8, 64, 21
# Queries, and whether causal, of NumPy's beside torch's own; the bars of both by the kind of processor.
SIZES = ((512, False), (1024, True), (2048, False), (2048, True), (4096, False))
BARS = {FULL: {False: 1.15, True: 1.25}, HALF: {False: 1.40, True: 1.45}}
SMALLEST_BAR = 1.2  # of 512 queries, where AVX-512 is
AT = 2048  # queries, of what follows
LIMIT_BAR, TORCH_BAR = 1.10, 1.10


def run() -> Iterator[Result]:
    """All comparisons, without AVX-512 too, each made when it is asked for; then how the times grow."""
    parts = [measure(), measure_without_avx512(), growth.run()]
    results = chain.from_iterable(parts)
    rows = len(SIZES) + 3
    yield from tqdm(results, "attention", 2 * rows + 1 + len(growth.METHODS), leave=False)


def measure() -> Iterator[Result]:
    """The comparisons on this kind of processor."""
    torch.set_num_threads(1)
    for n, causal in SIZES:
        bar = BARS.get(kind(), BARS[HALF])[causal]
        yield beside_torch(n, causal, max(bar, SMALLEST_BAR) if n == min(SIZES)[0] else bar)
    yield beside_the_limit()
    yield torch_beside_torch(backward=False)
    yield torch_beside_torch(backward=True)


def measure_without_avx512() -> Iterator[Result]:
    """The same in a process of its own without AVX-512, each marked so; nothing where there is none."""
    if kind() != FULL:
        print(f"Left out, AVX-512 switched off: this processor is {kind()}", file=sys.stderr)
        return
    command = [sys.executable, "-m", "benchmarks.attention"]
    environment = without_avx512()
    with subprocess.Popen(
        command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as child:
        for line in child.stdout or ():
            found = Result(**json.loads(line))
            yield replace(found, name=f"{found.name}; AVX-512 switched off")
    if child.returncode:
        raise RuntimeError(f"{' '.join(command[1:])} ended with {child.returncode}")


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
    """NumPy's tiled attention beside two products and powers over the same blocks, and nothing else."""
    arrays, _ = inputs(AT)
    q, k, v = arrays
    ours = partial(attention_lib.tiled_attention, q, k, v)
    ways = {
        (power, rows): partial(bare, q, k, v, power, rows)
        for power, rows in product((np.exp, np.exp2), (GROUP, QUERIES))
    }
    (power, rows), fastest = min(
        ways.items(), key=lambda way: min(cpu_time(way[1], 1) for _ in range(5))
    )
    name = f"NumPy tiled, n = {AT:,}, beside products of {rows} rows and {power.__name__}"
    return compare(name, ours, fastest, bar=LIMIT_BAR, rounds=ROUNDS)


def bare(q: Array, k: Array, v: Array, power: np.ufunc, rows: int) -> None:
    """Products of q and kᵀ, powers of them, products with v; `rows` queries in a product."""
    scores, out = np.empty((QUERIES, KEYS), np.float32), np.empty((QUERIES, WIDTH), np.float32)
    for head in range(HEADS):
        keys = [np.ascontiguousarray(k[0, head, j].T) for j in cut(AT, KEYS)]
        for i in cut(AT, QUERIES):
            queries = q[0, head, i].reshape(-1, min(rows, i.stop - i.start), WIDTH)
            shape = queries.shape[:2]
            scores_i = scores[: i.stop - i.start].reshape(*shape, KEYS)
            out_i = out[: i.stop - i.start].reshape(*shape, WIDTH)
            for keys_j, j in zip(keys, cut(AT, KEYS), strict=True):
                np.matmul(queries, keys_j, out=scores_i)
                power(scores_i, out=scores_i)
                np.matmul(scores_i, v[0, head, j], out=out_i)


def torch_beside_torch(backward: bool) -> Result:
    """The tiled attention for tensors beside torch's own, with or without the gradients."""
    _, (q, k, v) = inputs(AT)
    d_out = torch.ones_like(q)

    def timed(attend: Callable[..., Any]) -> Callable[[], object]:
        if not backward:
            return partial(attend, q, k, v)
        leaves = [x.requires_grad_() for x in (q, k, v)]
        return lambda: torch.autograd.grad(attend(*leaves), leaves, d_out)

    passes = "forward and backward" if backward else "forward"
    return compare(
        f"torch tiled, n = {AT:,}, {passes}, beside torch",
        timed(attention_lib.torch.tiled_attention),
        timed(F.scaled_dot_product_attention),
        bar=TORCH_BAR,
        rounds=ROUNDS,
    )


if __name__ == "__main__":
    for result in measure():
        print(json.dumps(asdict(result)), flush=True)
