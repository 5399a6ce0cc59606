"""Reference functions of the tasks of chapter 5; keyword-only settings make known mistakes.

The defaults are right. They share nothing with the library, whose faults a mark must not have.
"""

from math import ceil, inf

import numpy as np

from attention_lib.checks.engine import Array


def sink_window_mask(
    T: int,
    S: int,
    budget: int,
    sinks: int,
    *,
    room: str = "left",
    edges: str = "causal",
    kept: str = "first keys",
    align: str = "lower-right",
    size: str = "T, S",
    output: str = "booleans",
) -> Array:
    """True where one of the T newest of S tokens may look: `budget` keys, the first `sinks` kept.

    Source: Xiao et al. 2023, "Efficient streaming language models with attention sinks", 3.2.
    """
    T, S = {"S, T": (S, T), "S, S": (S, S), "T, T": (T, T)}.get(size, (T, S))
    first = {"upper-left": 0, "T - S": T - S}.get(align, S - T)
    i, j = np.arange(T)[:, None] + first, np.arange(S)
    spare = {"none": sinks, "+1": 1, "-1": -1}.get(room, 0)
    window = budget if kept == "plain window" else budget - sinks + spare
    past = {"strict": j < i, "+1": j <= i + 1, "future": j < S}.get(edges, j <= i)
    near = {"no far edge": past, "both ways": abs(i - j) < window}.get(
        edges, past & (i - window < j)
    )
    sink: Array = {
        "+1": j <= sinks,
        "last keys": j >= S - sinks,
        "none": j < 0,
        "plain window": j < 0,
    }.get(kept, j < sinks)
    if edges not in ("both ways", "sinks ahead") and kept != "last keys":
        sink = sink & past
    if kept == "query rows":
        sink = np.arange(T)[:, None] < sinks
    mask: Array = {"alone": sink & (j < S), "inside": sink & near}.get(kept, near | sink)
    match output:
        case "inverted":
            return ~mask
        case "numbers":
            return np.where(mask, 1.0, 0.0)
        case "added":
            return np.where(mask, 0.0, -inf)
        case "transposed":
            return mask.T
    return mask


def merge_parts(
    out_a: Array,
    lse_a: Array,
    out_b: Array,
    lse_b: Array,
    *,
    weights: str = "exp",
    total: str = "log of the sum",
    shift: str = "by the larger",
    empty: str = "guarded",
    output: str = "out, lse",
) -> tuple[Array, ...]:
    """Attention over two parts of the keys, from the parts' out (..., T, d_v) and lse (..., T).

    Source: Rabe and Staats 2021, "Self-attention does not need O(n²) memory", section 2.
    """
    a, b, _ = _powers(lse_a, lse_b, shift == "by the larger", empty in ("guarded", "lse 0"))
    one = np.ones_like(a)
    match weights:
        case "equal" | "added":
            a = b = one
        case "logarithms":
            a, b = lse_a, lse_b
        case "exchanged":
            a, b = b, a
        case "larger":
            a, b = 1.0 * (lse_a >= lse_b), 1.0 * (lse_b > lse_a)
        case "old not rescaled" | "out_a not rescaled":
            a = one
    divisor = one if weights in ("added", "not divided") else a + b
    if empty in ("guarded", "lse 0"):
        divisor = np.where(divisor == 0, 1.0, divisor)
    out = (a[..., None] * out_a + b[..., None] * out_b) / divisor[..., None]

    a, b, point = _powers(lse_a, lse_b, shift != "none", empty != "unguarded")
    summed = 1 + b if weights == "old not rescaled" else a + b
    lse: Array = {
        "larger": np.maximum(lse_a, lse_b),
        "added": lse_a + lse_b,
        "average": (lse_a + lse_b) / 2,
        "log of the average": np.log(summed / 2) + point,
        "point not added": np.log(summed),
        "no log": np.exp(lse_a) + np.exp(lse_b),
        "old": lse_a,
    }.get(total, np.log(summed) + point)
    if empty == "lse 0":
        lse = np.where(np.isneginf(lse), 0.0, lse)
    return (lse, out) if output == "lse, out" else (out, lse)


def _powers(lse_a: Array, lse_b: Array, shifted: bool, guarded: bool) -> tuple[Array, ...]:
    """exp of both, measured from a point, and the point."""
    point = np.maximum(lse_a, lse_b) if shifted else np.zeros_like(lse_a)
    if guarded:
        point = np.where(np.isneginf(point), 0.0, point)
    return np.exp(lse_a - point), np.exp(lse_b - point), point


def visited_blocks(
    T: int,
    S: int,
    block: int,
    window: int,
    *,
    counted: str = "any pair",
    edges: str = "i - w < j <= i",
    align: str = "lower-right",
    cut: str = "rounded up",
    size: str = "T, S",
    output: str = "per block of queries",
) -> Array:
    """How many blocks of keys each block of queries has to visit under a causal window.

    Source: Dong et al. 2024, "Flex Attention", the block mask.
    """
    if size == "S, T":
        T, S = S, T
    first = {"upper-left": 0, "T - S": T - S}.get(align, S - T)
    by_tokens = cut.startswith("by tokens")
    i = np.arange(first - first % block if by_tokens else first, first + T)[:, None]
    j, w = np.arange(S), window
    mask = {
        "i - w <= j <= i": (i - w <= j) & (j <= i),
        "i - w + 1 < j <= i": (i - w + 1 < j) & (j <= i),
        "i - w < j < i": (i - w < j) & (j < i),
        "i - w < j <= i + 1": (i - w < j) & (j <= i + 1),
        "j <= i": j <= i,
        "i - w < j": i - w < j,
        "|i - j| < w": abs(i - j) < w,
        "none": j < S + 0 * i,
    }.get(edges, (i - w < j) & (j <= i))
    if cut == "by tokens":
        mask = mask & (i >= first)
    if cut in ("queries rounded down", "rounded down"):
        mask = mask[: T // block * block]
    if cut in ("keys rounded down", "rounded down"):
        mask = mask[:, : S // block * block]
    some, every = (_tiles(mask, block, how) for how in (np.logical_or, np.logical_and))
    start = np.arange(0, len(mask), block)
    end = np.minimum(start + block, len(mask)) - 1
    visited = {
        "whole": every,
        "partly": some & ~every,
        "hidden": ~some,
        "pairs": _tiles(mask, block, np.add),
        "one pair": mask[::block, ::block],
        "first query": _tiles(mask[start], 1, np.logical_or, block),
        "last query": _tiles(mask[end], 1, np.logical_or, block),
    }.get(counted, some)
    if cut == "by tokens, last":
        visited = visited[-ceil(T / block) :]
    match output:
        case "sum":
            return visited.sum()
        case "per block of keys":
            return visited.sum(axis=0)
        case "share":
            return visited.mean(axis=1)
        case "block map":
            return visited
    return visited.sum(axis=1)


def _tiles(mask: Array, rows: int, how: np.ufunc, columns: int | None = None) -> Array:
    """`how` over every tile of the mask; the last ones may be smaller."""
    down, right = np.arange(0, mask.shape[0], rows), np.arange(0, mask.shape[1], columns or rows)
    numbers = mask.astype(int) if how is np.add else mask
    return how.reduceat(how.reduceat(numbers, down, axis=0), right, axis=1)


def growth(
    n: int,
    times: int,
    d: int,
    feed: int,
    *,
    prediction: str = "layer",
    measurement: str = "long / short",
) -> tuple[Array, ...]:
    """How many times the multiply-adds of a layer of width d, from n to times · n tokens.

    Source: Vaswani et al. 2017, table 1, with projections and feed-forward counted too.
    """
    right = _growth(n, times, d, 4 + 2 * feed, 2)
    predicted = {
        "square": times**2,
        "times": times,
        "no feed-forward": _growth(n, times, d, 4, 2),
        "no projections": _growth(n, times, d, 2 * feed, 2),
        "feed-forward of 4": _growth(n, times, d, 12, 2),
        "one matrix of the feed-forward": _growth(n, times, d, 4 + feed, 2),
        "three projections": _growth(n, times, d, 3 + 2 * feed, 2),
        "one product": _growth(n, times, d, 4 + 2 * feed, 1),
        "per token": right / times,
        "inverse": 1 / right,
    }.get(prediction, right)
    measured = {
        "not cleared": right + 1,
        "one list": 1,
        "added": right - 1,
        "inverse": 1 / right,
        "per token": right / times,
        "scores": times**2,
        "one projection": times,
    }.get(measurement, right)
    return np.asarray(predicted, float), np.asarray(measured, float)


def _growth(n: int, times: int, d: int, matrices: int, products: int) -> float:
    """Of `matrices` of d × d that each token meets, and `products` over all pairs."""
    short, long = (matrices * m * d * d + products * m * m * d for m in (n, times * n))
    return long / short
