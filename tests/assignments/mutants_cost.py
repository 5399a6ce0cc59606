"""Answers to the tasks of the assignment `cost` as students write them, wrong ones with diagnoses.

Written apart from the references of `assignments.tasks`, never by changing settings.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.answers import Answers

ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong


# sink_window_mask


def back(T: int, S: int) -> Any:
    """How many steps before each query each key lies, (T, S)."""
    return np.arange(S - T, S)[:, None] - np.arange(S)


def first(T: int, S: int, sinks: int) -> Any:
    """True for the first keys, (T, S)."""
    return np.tile(np.arange(S) < sinks, (T, 1))


@right("sink_window_mask")
def sinks_plain(T: Any, S: Any, budget: Any, sinks: Any) -> Any:
    i, j = np.arange(S - T, S)[:, None], np.arange(S)[None, :]
    return (j <= i) & ((j < sinks) | (j > i - (budget - sinks)))


@right("sink_window_mask")
def sinks_loops(T: Any, S: Any, budget: Any, sinks: Any) -> Any:
    """As a cache that is filled and emptied, token by token."""
    cache: list[int] = []
    rows = []
    for token in range(S):
        if len(cache) == budget:
            cache.pop(sinks)
        cache.append(token)
        rows.append([key in cache for key in range(S)])
    return rows[S - T :]


@right("sink_window_mask")
def sinks_triangles(T: Any, S: Any, budget: Any, sinks: Any) -> Any:
    causal = np.tri(S, dtype=bool)
    mask = causal & ~np.tri(S, k=sinks - budget, dtype=bool)
    mask[:, :sinks] |= causal[:, :sinks]
    return mask[-T:]


@right("sink_window_mask")
def sinks_torch(T: Any, S: Any, budget: Any, sinks: Any) -> Any:
    ones = torch.ones(T, S, dtype=torch.bool)
    causal = ones.tril(S - T)
    seen = causal & ones.triu(S - T - (budget - sinks) + 1)
    seen[:, :sinks] = causal[:, :sinks]
    return seen


def sunk(says: str, fn: Callable[[int, int, int, int], Any], **settings: str) -> None:
    wrong("sink_window_mask", says, **settings)(fn)


def windowed(seen: Callable[[Any, Any, int], Any]) -> Callable[[int, int, int, int], Any]:
    """An answer seen(steps back, is a sink, width of the window)."""
    return lambda T, S, budget, sinks: seen(back(T, S), first(T, S, sinks), budget - sinks)


sunk(
    "the sinks come on top",
    lambda T, S, budget, sinks: (back(T, S) >= 0) & ((back(T, S) < budget) | first(T, S, sinks)),
    room="none",
)
sunk("one too wide", windowed(lambda b, s, w: (b >= 0) & ((b <= w) | s)), room="+1")
sunk("one too narrow", windowed(lambda b, s, w: (b >= 0) & ((b < w - 1) | s)), room="-1")
sunk("from itself", windowed(lambda b, s, w: (b > 0) & ((b < w) | s)), edges="strict")
sunk("the next token", windowed(lambda b, s, w: (b >= -1) & ((b < w) | s)), edges="+1")
sunk("the future is seen", windowed(lambda b, s, w: (b < w) | s), edges="future")
sunk("no far edge", windowed(lambda b, s, w: b >= 0), edges="no far edge")
sunk("looks both ways", windowed(lambda b, s, w: (abs(b) < w) | s), edges="both ways")
sunk(
    "by queries that come before them",
    windowed(lambda b, s, w: ((b >= 0) & (b < w)) | s),
    edges="sinks ahead",
)


@wrong("sink_window_mask", "a window and no sinks", kept="none")
def sinks_forgotten(T: Any, S: Any, budget: Any, sinks: Any) -> Any:
    mask = np.zeros((T, S), dtype=bool)
    for t in range(T):
        end = S - T + t + 1
        mask[t, max(0, end - (budget - sinks)) : end] = True
    return mask


@wrong("sink_window_mask", "as wide as the budget, without sinks", kept="plain window")
def sinks_plain_window(T: Any, S: Any, budget: Any, sinks: Any) -> Any:
    mask = np.zeros((T, S), dtype=bool)
    for t in range(T):
        end = S - T + t + 1
        mask[t, max(0, end - budget) : end] = True
    return mask


@wrong("sink_window_mask", "one sink too many", kept="+1")
def sinks_from_one(T: Any, S: Any, budget: Any, sinks: Any) -> Any:
    i, j = np.arange(S - T, S)[:, None], np.arange(S)
    return (j <= i) & ((j <= sinks) | (j > i - budget + sinks))


@wrong("sink_window_mask", "the last keys of the text", kept="last keys")
def sinks_last(T: Any, S: Any, budget: Any, sinks: Any) -> Any:
    steps = back(T, S)
    mask = (steps >= 0) & (steps < budget - sinks)
    mask[:, -sinks:] = True
    return mask


@wrong("sink_window_mask", "on the axis of the queries", kept="query rows")
def sinks_rows(T: Any, S: Any, budget: Any, sinks: Any) -> Any:
    steps = back(T, S)
    mask = (steps >= 0) & (steps < budget - sinks)
    mask[:sinks] = True
    return mask


sunk("no window", windowed(lambda b, s, w: (b >= 0) & s), kept="alone")
sunk("both a sink and in", windowed(lambda b, s, w: (b >= 0) & (b < w) & s), kept="inside")


@wrong("sink_window_mask", "the first query be token 0", align="upper-left")
def sinks_upper_left(T: Any, S: Any, budget: Any, sinks: Any) -> Any:
    i, j = np.indices((T, S))
    return (j <= i) & ((j < sinks) | (i - j < budget - sinks))


@wrong("sink_window_mask", "the wrong way", align="T - S")
def sinks_wrong_way(T: Any, S: Any, budget: Any, sinks: Any) -> Any:
    i, j = np.indices((T, S))
    i = i + T - S
    return (j <= i) & ((j < sinks) | (i - j < budget - sinks))


sunk("T and S are exchanged", lambda T, S, b, s: sinks_plain(S, T, b, s), size="S, T")
sunk("a row for each of the S", lambda T, S, b, s: sinks_plain(S, S, b, s), size="S, S")
sunk("a column for each query", lambda T, S, b, s: sinks_plain(T, T, b, s), size="T, T")
sunk("is inverted", lambda T, S, b, s: ~sinks_plain(T, S, b, s), output="inverted")
sunk("holds 1 and 0", lambda T, S, b, s: 1 * sinks_plain(T, S, b, s), output="numbers")
sunk(
    "0 and -inf",
    lambda T, S, b, s: torch.zeros(T, S).masked_fill(~sinks_torch(T, S, b, s), -torch.inf),
    output="added",
)
sunk("is transposed", lambda T, S, b, s: sinks_plain(T, S, b, s).T, output="transposed")


@wrong("sink_window_mask", "(1) Your window takes", "(2) You let", room="none", align="upper-left")
def sinks_two_mistakes(T: Any, S: Any, budget: Any, sinks: Any) -> Any:
    i, j = np.indices((T, S))
    return (j <= i) & ((j < sinks) | (i - j < budget))


# merge_parts


@right("merge_parts")
def merge_plain(out_a: Any, lse_a: Any, out_b: Any, lse_b: Any) -> Any:
    m = np.maximum(lse_a, lse_b)
    m = np.where(np.isinf(m), 0, m)
    a, b = np.exp(lse_a - m), np.exp(lse_b - m)
    total = np.where(a + b == 0, 1, a + b)
    out = (out_a * a[..., None] + out_b * b[..., None]) / total[..., None]
    with np.errstate(divide="ignore"):
        return out, np.log(a + b) + m


@right("merge_parts")
def merge_logaddexp(out_a: Any, lse_a: Any, out_b: Any, lse_b: Any) -> Any:
    lse = np.logaddexp(lse_a, lse_b)
    out = np.zeros(out_a.shape)
    for part, its in ((out_a, lse_a), (out_b, lse_b)):
        with np.errstate(invalid="ignore"):
            out += np.nan_to_num(np.exp(its - lse))[..., None] * part
    return out, lse


@right("merge_parts")
def merge_loops(out_a: Any, lse_a: Any, out_b: Any, lse_b: Any) -> Any:
    """Number by number, in plain Python."""
    out, lse = np.zeros_like(out_a), np.full_like(lse_a, -math.inf)
    for place in np.ndindex(lse_a.shape):
        one, two = float(lse_a[place]), float(lse_b[place])
        if max(one, two) == -math.inf:
            continue
        share = 1 / (1 + math.exp(min(two - one, 700))) if one > -math.inf else 0.0
        out[place] = share * out_a[place] + (1 - share) * out_b[place]
        lse[place] = max(one, two) + math.log1p(math.exp(-abs(one - two)))
    return [out, lse]


@right("merge_parts")
def merge_einsum(out_a: Any, lse_a: Any, out_b: Any, lse_b: Any) -> Any:
    outs, logs = np.stack([out_a, out_b]), np.stack([lse_a, lse_b])
    top = logs.max(axis=0)
    top[top == -np.inf] = 0
    powers = np.exp(logs - top)
    total = powers.sum(axis=0)
    shares = powers / np.maximum(total, 1e-300)
    with np.errstate(divide="ignore"):
        return np.einsum("p...t,p...td->...td", shares, outs), top + np.log(total)


@right("merge_parts")
def merge_torch(out_a: Any, lse_a: Any, out_b: Any, lse_b: Any) -> Any:
    a, b = torch.tensor(lse_a), torch.tensor(lse_b)
    shares = torch.softmax(torch.stack([a, b]), dim=0).nan_to_num()[..., None]
    out = shares[0] * torch.tensor(out_a) + shares[1] * torch.tensor(out_b)
    return out, torch.logaddexp(a, b)


def powers(lse_a: Any, lse_b: Any) -> tuple[Any, Any, Any]:
    m = np.maximum(lse_a, lse_b)
    m = np.where(m == -np.inf, 0, m)
    return np.exp(lse_a - m), np.exp(lse_b - m), m


def nonzero(total: Any) -> Any:
    return np.where(total == 0, 1, total)


def joined(says: str, out: Callable[..., Any], **settings: str) -> None:
    """The right lse, and an output found by out(out_a, lse_a, out_b, lse_b), numbers as columns."""

    def answer(out_a: Any, lse_a: Any, out_b: Any, lse_b: Any) -> Any:
        columns = (out_a, lse_a[..., None], out_b, lse_b[..., None])
        return out(*columns), np.logaddexp(lse_a, lse_b)

    wrong("merge_parts", says, **settings)(answer)


def not_divided(x: Any, one: Any, y: Any, two: Any) -> Any:
    a, b, _ = powers(one, two)
    return a * x + b * y


def exchanged(x: Any, one: Any, y: Any, two: Any) -> Any:
    a, b, _ = powers(one, two)
    return (b * x + a * y) / nonzero(a + b)


def a_as_it_is(x: Any, one: Any, y: Any, two: Any) -> Any:
    _, b, _ = powers(one, two)
    return (x + b * y) / (1 + b)


joined("You average the two outputs", lambda x, one, y, two: (x + y) / 2, weights="equal")
joined("You add the two outputs", lambda x, one, y, two: x + y, weights="added")
joined("do not sum to 1", not_divided, weights="not divided")
joined("The weights are exchanged", exchanged, weights="exchanged")
joined("drop the other", lambda x, one, y, two: np.where(one >= two, x, y), weights="larger")
joined("leave out_a as it is", a_as_it_is, weights="out_a not rescaled")


@wrong("merge_parts", "You weight by the logarithms", weights="logarithms")
def merge_by_logarithms(out_a: Any, lse_a: Any, out_b: Any, lse_b: Any) -> Any:
    a, b = lse_a[..., None], lse_b[..., None]
    with np.errstate(all="ignore"):
        return (a * out_a + b * out_b) / (a + b), np.logaddexp(lse_a, lse_b)


@wrong("merge_parts", "leave the sum of part a as it was", weights="old not rescaled")
def merge_old_kept(out_a: Any, lse_a: Any, out_b: Any, lse_b: Any) -> Any:
    """The online step with l = 1, whose factor was forgotten."""
    _, added, m = powers(lse_a, lse_b)
    total = 1 + added
    return (out_a + added[..., None] * out_b) / total[..., None], m + np.log(total)


def logged(says: str, lse: Callable[[Any, Any], Any], **settings: str) -> None:
    """The right output, and an lse found by lse(lse_a, lse_b)."""

    def answer(*parts: Any) -> Any:
        return merge_plain(*parts)[0], lse(parts[1], parts[3])

    wrong("merge_parts", says, **settings)(answer)


logged("the larger of the two", np.maximum, total="larger")
logged("Your lse is the sum of the two", lambda a, b: a + b, total="added")
logged("the average of the two. ", lambda a, b: (a + b) / 2, total="average")
logged(
    "the average of the two sums",
    lambda a, b: np.logaddexp(a, b) - np.log(2),
    total="log of the average",
)
logged(
    "Add back what",
    lambda a, b: np.log(sum(powers(a, b)[:2])),
    total="point not added",
)
logged("the sum itself", lambda a, b: np.exp(a) + np.exp(b), total="no log")
logged("that of part a", lambda a, b: a, total="old")


@wrong("merge_parts", "You take exp of the logarithms as they are", shift="none")
def merge_unshifted(out_a: Any, lse_a: Any, out_b: Any, lse_b: Any) -> Any:
    a, b = np.exp(lse_a), np.exp(lse_b)
    total = a + b
    out = (a[..., None] * out_a + b[..., None] * out_b) / nonzero(total)[..., None]
    return out, np.log(total)


@wrong("merge_parts", "Your lse is right, but", shift="out only")
def merge_unshifted_weights(out_a: Any, lse_a: Any, out_b: Any, lse_b: Any) -> Any:
    a, b = np.exp(lse_a)[..., None], np.exp(lse_b)[..., None]
    return (a * out_a + b * out_b) / nonzero(a + b), np.logaddexp(lse_a, lse_b)


@wrong(
    "merge_parts",
    "(1) You take exp of the logarithms",
    "(2) Where both parts are empty your output",
    shift="none",
    empty="out unguarded",
)
def merge_first_try(out_a: Any, lse_a: Any, out_b: Any, lse_b: Any) -> Any:
    a, b = np.exp(lse_a), np.exp(lse_b)
    out = (a[..., None] * out_a + b[..., None] * out_b) / (a + b)[..., None]
    return out, np.log(a + b)


@wrong("merge_parts", "you get NaN", empty="unguarded")
def merge_unguarded(out_a: Any, lse_a: Any, out_b: Any, lse_b: Any) -> Any:
    m = np.maximum(lse_a, lse_b)
    a, b = np.exp(lse_a - m), np.exp(lse_b - m)
    out = (a[..., None] * out_a + b[..., None] * out_b) / (a + b)[..., None]
    return out, m + np.log(a + b)


@wrong("merge_parts", "your output is NaN", empty="out unguarded")
def merge_unguarded_output(out_a: Any, lse_a: Any, out_b: Any, lse_b: Any) -> Any:
    lse = np.logaddexp(lse_a, lse_b)
    return np.exp(lse_a - lse)[..., None] * out_a + np.exp(lse_b - lse)[..., None] * out_b, lse


@wrong("merge_parts", "an lse of 0", empty="lse 0")
def merge_zero(*parts: Any) -> Any:
    out, lse = merge_plain(*parts)
    return out, np.nan_to_num(lse, neginf=0)


@wrong("merge_parts", "You return lse before out", output="lse, out")
def merge_reversed(*parts: Any) -> Any:
    return merge_plain(*parts)[::-1]


# visited_blocks


@right("visited_blocks")
def visited_arithmetic(T: Any, S: Any, block: Any, window: Any) -> Any:
    """From the nearest and the farthest key of each block of queries."""
    counts = []
    for start in range(0, T, block):
        oldest = S - T + start
        newest = S - T + min(start + block, T) - 1
        counts.append(newest // block - max(0, oldest - window + 1) // block + 1)
    return counts


@right("visited_blocks")
def visited_loops(T: Any, S: Any, block: Any, window: Any) -> Any:
    counts = np.zeros(-(-T // block), dtype=int)
    for row, start in enumerate(range(0, T, block)):
        for keys in range(0, S, block):
            counts[row] += any(
                0 <= S - T + t - s < window
                for t in range(start, min(start + block, T))
                for s in range(keys, min(keys + block, S))
            )
    return counts


@right("visited_blocks")
def visited_sets(T: Any, S: Any, block: Any, window: Any) -> Any:
    found: dict[int, set[int]] = {}
    for t, s in zip(*np.nonzero(near(T, S, window)), strict=True):
        found.setdefault(int(t) // block, set()).add(int(s) // block)
    return [len(found[row]) for row in sorted(found)]


@right("visited_blocks")
def visited_torch(T: Any, S: Any, block: Any, window: Any) -> Any:
    """The largest entry of each tile; the padding is hidden."""
    mask = torch.tensor(near(T, S, window))[None, None].float()
    return torch.nn.functional.max_pool2d(mask, block, ceil_mode=True)[0, 0].sum(dim=1)


def near(T: int, S: int, window: int) -> Any:
    return (back(T, S) >= 0) & (back(T, S) < window)


def tiles(mask: Any, block: int) -> Any:
    """A list of lists of the mask's tiles."""
    T, S = mask.shape
    return [
        [mask[t : t + block, s : s + block] for s in range(0, S, block)] for t in range(0, T, block)
    ]


def visited(says: str, per_tile: Callable[[Any], Any], **settings: str) -> None:
    """An answer that adds per_tile(tile) over each row of tiles."""

    def answer(T: Any, S: Any, block: Any, window: Any) -> Any:
        return [sum(map(per_tile, row)) for row in tiles(near(T, S, window), block)]

    wrong("visited_blocks", says, **settings)(answer)


def seen(says: str, mask: Callable[[Any, int], Any], edges: str) -> None:
    """An answer whose mask(steps back, window) has other edges."""

    def answer(T: Any, S: Any, block: Any, window: Any) -> Any:
        return [sum(t.any() for t in row) for row in tiles(mask(back(T, S), window), block)]

    wrong("visited_blocks", says, edges=edges)(answer)


visited("visible whole", lambda tile: tile.all(), counted="whole")
visited("both visible and hidden", lambda tile: tile.any() and not tile.all(), counted="partly")
visited("blocks that are skipped", lambda tile: not tile.any(), counted="hidden")
visited("You count visible pairs", np.count_nonzero, counted="pairs")
visited("the first pair of each", lambda tile: tile[0, 0], counted="one pair")
visited("first query of each block", lambda tile: tile[0].any(), counted="first query")
visited("last query of each block", lambda tile: tile[-1].any(), counted="last query")
seen("one too wide", lambda b, w: (b >= 0) & (b <= w), "i - w <= j <= i")
seen("one too narrow", lambda b, w: (b >= 0) & (b < w - 1), "i - w + 1 < j <= i")
seen("each token from itself", lambda b, w: (b > 0) & (b < w), "i - w < j < i")
seen("You show the next token", lambda b, w: (b >= -1) & (b < w), "i - w < j <= i + 1")
seen("no far edge", lambda b, w: b >= 0, "j <= i")
seen("no causal edge", lambda b, w: b < w, "i - w < j")
seen("looks both ways", lambda b, w: abs(b) < w, "|i - j| < w")


@wrong("visited_blocks", "You visit every block", edges="none")
def visited_all(T: Any, S: Any, block: Any, window: Any) -> Any:
    return np.full(math.ceil(T / block), math.ceil(S / block))


@wrong("visited_blocks", "the first query be token 0", align="upper-left")
def visited_upper_left(T: Any, S: Any, block: Any, window: Any) -> Any:
    return [
        math.ceil(min(start + block, T) / block) - max(0, start - window + 1) // block
        for start in range(0, T, block)
    ]


@wrong("visited_blocks", "the wrong way", align="T - S")
def visited_wrong_way(T: Any, S: Any, block: Any, window: Any) -> Any:
    i, j = np.indices((T, S))
    steps = i + T - S - j
    return [sum(t.any() for t in row) for row in tiles((steps >= 0) & (steps < window), block)]


@wrong("visited_blocks", "smaller block of queries", cut="queries rounded down")
def visited_whole_queries(T: Any, S: Any, block: Any, window: Any) -> Any:
    return visited_arithmetic(T, S, block, window)[: T // block]


@wrong("visited_blocks", "smaller block of keys", cut="keys rounded down")
def visited_whole_keys(T: Any, S: Any, block: Any, window: Any) -> Any:
    mask = near(T, S, window)[:, : S - S % block]
    return [sum(t.any() for t in row) for row in tiles(mask, block)]


@wrong("visited_blocks", "of queries and of keys", cut="rounded down")
def visited_reshaped(T: Any, S: Any, block: Any, window: Any) -> Any:
    rows, columns = T // block, S // block
    mask = near(T, S, window)[: rows * block, : columns * block]
    return mask.reshape(rows, block, columns, block).any(axis=(1, 3)).sum(axis=1)


@wrong("visited_blocks", "where you cut the keys", cut="by tokens")
def visited_by_tokens(T: Any, S: Any, block: Any, window: Any) -> Any:
    found: dict[int, set[int]] = {}
    for i in range(S - T, S):
        found.setdefault(i // block, set()).update(
            j // block for j in range(max(0, i - window + 1), i + 1)
        )
    return [len(keys) for keys in found.values()]


@wrong("visited_blocks", "where you cut the keys", cut="by tokens, whole")
def visited_numbered(T: Any, S: Any, block: Any, window: Any) -> Any:
    """Blocks by their numbers, the first one with tokens that are no queries."""
    return [
        min(S - 1, (b + 1) * block - 1) // block - max(0, b * block - window + 1) // block + 1
        for b in range((S - T) // block, math.ceil(S / block))
    ]


@wrong("visited_blocks", "where you cut the keys", cut="by tokens, last")
def visited_last_rows(T: Any, S: Any, block: Any, window: Any) -> Any:
    """The last rows of the map of all S tokens."""
    rows = [sum(t.any() for t in row) for row in tiles(near(S, S, window), block)]
    return rows[-math.ceil(T / block) :]


@wrong("visited_blocks", "T and S are exchanged", size="S, T")
def visited_exchanged(T: Any, S: Any, block: Any, window: Any) -> Any:
    return [sum(t.any() for t in row) for row in tiles(near(S, T, window), block)]


@wrong("visited_blocks", "You return the sum", output="sum")
def visited_sum(*case: Any) -> Any:
    return sum(visited_arithmetic(*case))


@wrong("visited_blocks", "along the wrong axis", output="per block of keys")
def visited_columns(T: Any, S: Any, block: Any, window: Any) -> Any:
    found = [[t.any() for t in row] for row in tiles(near(T, S, window), block)]
    return np.sum(found, axis=0)


@wrong("visited_blocks", "You return shares", output="share")
def visited_shares(T: Any, S: Any, block: Any, window: Any) -> Any:
    return np.array(visited_arithmetic(T, S, block, window)) / -(-S // block)


@wrong("visited_blocks", "Count them in each row", output="block map")
def visited_map(T: Any, S: Any, block: Any, window: Any) -> Any:
    return [[t.any() for t in row] for row in tiles(near(T, S, window), block)]


# growth: from n, times, d, feed the two numbers


def run(n: int, d: int, feed: int) -> list[int]:
    """Multiply-adds of each product of a layer of n tokens, in the order they are made."""
    return [*[n * d * d] * 3, n * d * n, n * n * d, n * d * d, *[n * d * feed * d] * 2]


def work(n: int, d: int, feed: int) -> int:
    return sum(run(n, d, feed))


@right("growth")
def growth_exact(n: Any, times: Any, d: Any, feed: Any) -> Any:
    def layer(m: Any) -> Any:
        return (4 + 2 * feed) * m * d**2 + 2 * m**2 * d

    return layer(times * n) / layer(n), work(times * n, d, feed) / work(n, d, feed)


@right("growth")
def growth_by_share(n: Any, times: Any, d: Any, feed: Any) -> Any:
    """times · (1 + (times - 1) · share of the pairs), rounded as one reads it."""
    share = n / (n + (2 + feed) * d)
    return round(times * (1 + (times - 1) * share), 2), growth_exact(n, times, d, feed)[1]


@right("growth")
def growth_tensors(n: Any, times: Any, d: Any, feed: Any) -> Any:
    per_token = torch.tensor([2 * m / d + 4 + 2 * feed for m in (n, times * n)])
    short, long = (np.sum(run(m, d, feed)) for m in (n, times * n))
    return times * per_token[1] / per_token[0], np.float32(long) / np.float32(short)


def predicted(says: str, layer: Callable[[int, int, int], float], prediction: str) -> None:
    """A prediction from layer(n, d, feed); measured well."""

    def answer(n: Any, times: Any, d: Any, feed: Any) -> Any:
        guess = layer(times * n, d, feed) / layer(n, d, feed)
        return guess, growth_exact(n, times, d, feed)[1]

    wrong("growth", says, prediction=prediction)(answer)


def measured(says: str, ratio: Callable[[list[int], list[int]], Any], measurement: str) -> None:
    """Predicted well; a measurement from what the two runs noted."""

    def answer(n: Any, times: Any, d: Any, feed: Any) -> Any:
        short, long = run(n, d, feed), run(times * n, d, feed)
        return growth_exact(n, times, d, feed)[0], ratio(short, long)

    wrong("growth", says, measurement=measurement)(answer)


predicted("of scores and sums alone", lambda n, d, m: n * n * d, "square")
predicted("grows as the length does", lambda n, d, m: 24 * n * d * d, "times")
predicted(
    "leaves the feed-forward out", lambda n, d, m: 8 * n * d * d + 4 * n * n * d, "no feed-forward"
)
predicted("four projections out", lambda n, d, m: n * d * (2 * m * d + 2 * n), "no projections")
predicted("four times as wide", lambda n, d, m: 24 * n * d * d + 4 * n * n * d, "feed-forward of 4")
predicted(
    "one matrix of the feed-forward",
    lambda n, d, m: n * d * (4 * d + m * d + 2 * n),
    "one matrix of the feed-forward",
)
predicted(
    "three projections", lambda n, d, m: n * d * (3 * d + 2 * m * d + 2 * n), "three projections"
)
predicted("one product over all", lambda n, d, m: n * d * (4 * d + 2 * m * d + n), "one product")
measured(
    "holds the first one too", lambda short, long: sum(short + long) / sum(short), "not cleared"
)
measured("measured factor is 1", lambda short, long: len(long) / len(short), "one list")
measured("how much is added", lambda short, long: (sum(long) - sum(short)) / sum(short), "added")
measured("factor is upside down", lambda short, long: sum(short) / sum(long), "inverse")
measured("measured the scores alone", lambda short, long: long[3] / short[3], "scores")
measured("by itself", lambda short, long: long[0] / short[0], "one projection")


@wrong("growth", "growth for each token", measurement="per token")
def growth_per_token(n: Any, times: Any, d: Any, feed: Any) -> Any:
    short, long = work(n, d, feed) / n, work(times * n, d, feed) / (times * n)
    return growth_exact(n, times, d, feed)[0], long / short


@wrong("growth", "growth for each token", prediction="per token")
def growth_predicted_per_token(n: Any, times: Any, d: Any, feed: Any) -> Any:
    good = growth_exact(n, times, d, feed)
    return good[0] / times, good[1]


@wrong("growth", "prediction is upside down", prediction="inverse")
def growth_upside_down(n: Any, times: Any, d: Any, feed: Any) -> Any:
    return work(n, d, feed) / work(n * times, d, feed), growth_exact(n, times, d, feed)[1]


@wrong(
    "growth",
    "(1) Your prediction is that of scores",
    "(2) Your second count",
    prediction="square",
    measurement="not cleared",
)
def growth_both_wrong(n: Any, times: Any, d: Any, feed: Any) -> Any:
    made: list[int] = []
    counts = []
    for tokens in (n, times * n):
        made.extend(run(tokens, d, feed))
        counts.append(sum(made))
    return times**2, counts[1] / counts[0]
