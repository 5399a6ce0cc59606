"""FLOPs of attention and of a layer, and what they come from: pairs, floating-point operations, exps. All counts are exact.

A multiply-add is two floating-point operations (FLOPs). Norms, residuals and what else is done number
by number are left out: they grow as n d, or as n² without the factor d.
"""

import math
from dataclasses import dataclass

from ..shapes import check_count, check_flag


def dense_pairs(n: int) -> int:
    """(query, key) pairs of which dense attention makes the score, for one head: n².

    A mask changes nothing: hidden scores are made, then hidden.
    """
    return check_count("n", n) ** 2


def causal_pairs(n: int, *, block: int = 1) -> int:
    """Pairs left if hidden ones are skipped, for one head: n (n + 1) / 2, the sum of `causal_mask(n)`.

    With `block` > 1 only tiles of block × block pairs without any visible one are skipped, which
    leaves n (n + block) / 2 if block divides n. Raises ValueError for a block below 1.
    """
    n, block = check_count("n", n), check_count("block", block, least=1)
    whole, rest = divmod(n, block)
    return block * block * whole * (whole + 1) // 2 + rest * n


def window_pairs(n: int, window: int, *, causal: bool = False) -> int:
    """Pairs that see each other in a window, for one head: the sum of `sliding_window_mask`.

    About (2 window - 1) n, causal window n. Raises ValueError for a window below 1.
    """
    n, w = check_count("n", n), check_count("window", window, least=1)
    causal = check_flag("causal", causal)
    w = min(n, w)
    missing = w * (w - 1) // 2  # what the window would hold beyond the first token
    return w * n - missing if causal else (2 * w - 1) * n - 2 * missing if n else 0


def global_window_pairs(n: int, window: int, global_tokens: int, *, causal: bool = False) -> int:
    """Pairs of a window whose first tokens see all and are seen by all: sum of `global_window_mask`.

    Only pairs of two other tokens can be hidden, and these are such a window among themselves.
    """
    n = check_count("n", n)
    others = n - min(n, check_count("global_tokens", global_tokens))
    full = causal_pairs if check_flag("causal", causal) else dense_pairs
    return full(n) - full(others) + window_pairs(others, window, causal=causal)


def strided_pairs(n: int, stride: int) -> int:
    """Pairs of the last `stride` keys and every `stride`-th before: the sum of `strided_mask`.

    About n (stride + n / (2 stride)) for one head. Raises ValueError for a stride below 1.
    """
    n, stride = check_count("n", n), check_count("stride", stride, least=1)
    whole, rest = divmod(n, stride)
    before = stride * whole * (whole - 1) // 2 + rest * whole  # i // stride, over all queries i
    return window_pairs(n, stride, causal=True) + before


@dataclass(frozen=True)
class AttentionCost:
    """What scores and weighted sum of all heads take.

    pairs    (query, key) pairs of one head of which a score is made
    weights  pairs of all heads: numbers in the weights, and exps of the softmax
    flops    of the two products, or of what a method has in their place
    """

    pairs: int
    weights: int
    flops: int


def pairs_cost(pairs: int, d: int, heads: int) -> AttentionCost:
    """The cost of making `pairs` scores in each of `heads` heads of width d / heads.

    Each is d / heads multiply-adds, and as many go into the weighted sum: 4 pairs d FLOPs, however
    many the heads. Exps and bytes of weights grow with them. Fewer key heads change none of it.
    Raises ValueError unless the heads divide d.
    """
    pairs, d = check_count("pairs", pairs), check_count("d", d, least=1)
    heads = check_count("heads", heads, least=1)
    return AttentionCost(pairs, pairs * heads, 4 * pairs * _head_width(d, heads) * heads)


def linear_cost(n: int, d: int, heads: int) -> AttentionCost:
    """The cost of linear attention with features as wide as a head: no pair is ever made.

    Per head of width d_k: a state (d_k, d_k) collects n outer products and is read n times, 4 n d_k²
    FLOPs, and the normaliser is read n times, 2 n d_k. The products therefore take 4 n d² / heads.
    Source: Katharopoulos et al. 2020, equations 4 to 6.
    """
    n, d = check_count("n", n), check_count("d", d, least=1)
    heads = check_count("heads", heads, least=1)
    d_k = _head_width(d, heads)
    return AttentionCost(0, 0, heads * (4 * n * d_k * d_k + 2 * n * d_k))


def _head_width(d: int, heads: int) -> int:
    if d % heads:
        raise ValueError(f"heads must divide d: d {d}, heads {heads}")
    return d // heads


def attention_costs(
    n: int,
    d: int,
    heads: int,
    *,
    window: int = 256,
    stride: int | None = None,
    global_tokens: int = 1,
    causal: bool = False,
) -> dict[str, AttentionCost]:
    """What each method takes for n tokens, if it skips all that it hides and nothing else.

    Tiled attention makes the same pairs as dense; causal, it skips hidden ones (tile by tile: see
    `causal_pairs`), which dense does not. Strided attention is causal; its stride is sqrt(n) by
    default, rounded down.
    """
    n = check_count("n", n, least=1)
    stride = math.isqrt(n) if stride is None else stride
    pairs = {
        "dense": dense_pairs(n),
        "tiled": causal_pairs(n) if check_flag("causal", causal) else dense_pairs(n),
        "window": window_pairs(n, window, causal=causal),
        "global + window": global_window_pairs(n, window, global_tokens, causal=causal),
        "strided": strided_pairs(n, stride),
    }
    costs = {name: pairs_cost(count, d, heads) for name, count in pairs.items()}
    return costs | {"linear": linear_cost(n, d, heads)}


@dataclass(frozen=True)
class LayerFlops:
    """FLOPs of one layer for all its tokens, forward; a backward pass takes twice as many again.

    projections   W_Q, W_K, W_V and W_O
    feed_forward  its two matrices, or three with a gate
    scores        the scores and the weighted sum
    """

    projections: int
    feed_forward: int
    scores: int

    @property
    def total(self) -> int:
        """FLOPs of the layer."""
        return self.projections + self.feed_forward + self.scores

    @property
    def share(self) -> float:
        """Share of the scores and the weighted sum in the total, from 0 to 1."""
        return self.scores / self.total if self.total else 0.0


def layer_flops(n: int, d: int, *, pairs: int | None = None) -> LayerFlops:
    """A layer of width d for n tokens, feed-forward 4 d wide: 8 n d² + 16 n d² + 4 n² d FLOPs.

    With `pairs` a head makes that many scores in place of n². No count depends on the heads.
    """
    n, d = check_count("n", n), check_count("d", d, least=1)
    pairs = dense_pairs(n) if pairs is None else check_count("pairs", pairs)
    return LayerFlops(8 * n * d * d, 16 * n * d * d, 4 * pairs * d)


def crossover(d: int) -> int:
    """The number of tokens, 6 d, at which the scores cost as much as the rest of `layer_flops`."""
    return 6 * check_count("d", d, least=1)
