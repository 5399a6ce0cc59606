"""What a layer costs, counted from the products it is made of and from which token it reads.

A layer here maps n tokens of width d to n tokens of width d, and no token reads a later one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..shapes import check_count


@dataclass(frozen=True, eq=False)
class Operation:
    """A matrix product that runs at once, given processors enough, when all of `after` are done.

    What is done to each number of a product, a tanh or the exp of a softmax, belongs to it.
    """

    name: str
    multiply_adds: int
    after: tuple["Operation", ...] = ()


@dataclass(frozen=True)
class Cost:
    """Counts of one layer.

    multiply_adds  of its matrix products; two floating-point operations each
    sequential     products that wait for one another: the longest chain
    path           links from the first token to the last; a stack of layers has one a layer
    """

    multiply_adds: int
    sequential: int
    path: int


def product(
    name: str, rows: int, inner: int, columns: int, after: tuple[Operation, ...] = ()
) -> Operation:
    """The matrix product (rows, inner) @ (inner, columns). Raises ValueError for a negative size."""
    sizes = {"rows": rows, "inner": inner, "columns": columns}
    return Operation(name, math.prod(check_count(*size) for size in sizes.items()), after)


def longest_chain(operations: list[Operation]) -> int:
    """How many of the operations must run one after another; each is listed after what it needs."""
    done: dict[Operation, int] = {}
    for operation in operations:
        done[operation] = 1 + max((done[needed] for needed in operation.after), default=0)
    return max(done.values(), default=0)


def attention_operations(
    n: int, d: int, *, window: int | None = None, projections: bool = False
) -> list[Operation]:
    """Scores and sum of values; with `projections` also W_Q, W_K and W_V before and W_O after.

    Each of the n queries meets n keys, or `window` of them. No count depends on the number of heads.
    A mask takes no work away: hidden scores are computed, then hidden.
    """
    keys = n if window is None else min(check_count("window", window, least=1), n)
    made = tuple(product(f"{name} = x W_{name}", n, d, d) for name in "QKV" if projections)
    scores = product("scores = Q Kᵀ", n, d, keys, made[:2])
    values = product("out = softmax(scores) V", n, keys, d, (scores, *made[2:]))
    last = (product("out W_O", n, d, d, (values,)),) if projections else ()
    return [*made, scores, values, *last]


def recurrent_operations(n: int, d: int, *, gates: int = 1) -> list[Operation]:
    """A product of each token and the state before it, side by side, with W above U.

    gates: 1 for a plain recurrent layer, 3 for a GRU, 4 for an LSTM.
    """
    chain: list[Operation] = []
    for t in range(check_count("n", n)):
        chain.append(product(f"[x {t}, state] [W; U]", 1, 2 * d, gates * d, tuple(chain[-1:])))
    return chain


def convolution_operations(n: int, d: int, *, width: int) -> list[Operation]:
    """A convolution of `width` tokens: one product of windows (n, width · d) with a (width · d, d)."""
    return [product("windows W", n, width * d, d)]


def contiguous(width: int) -> Callable[[int], range]:
    """Over every link, look at `width` tokens: itself and those before it."""
    return lambda link: range(width)


def dilated(width: int) -> Callable[[int], range]:
    """Over link l (0, 1, ...) look at `width` tokens that are width^l apart."""
    return lambda link: range(0, width ** (link + 1), width**link)


def path_length(n: int, reads: Callable[[int], range]) -> int:
    """Links that a signal crosses from the first of n tokens to the last, by breadth-first search.

    reads(l): how many tokens back each token looks over link l (0, 1, ...); 0 is itself, and keeps
    what was found. In a stack of layers each link is a layer. Every token reads alike, so no pair is
    further apart than the first and another, and the search starts at the first and ends with all.
    Raises ValueError if a link finds no further token.
    """
    found = np.zeros(check_count("n", n, least=1), dtype=bool)
    found[0] = True
    links = 0
    while not found.all():
        before = found.copy()
        for back in reads(links):
            found[min(back, n) :] |= before[: max(n - back, 0)]
        links += 1
        if (found == before).all():
            raise ValueError(f"link {links} finds no further token than {before.sum()} of {n}")
    return links


def cost(operations: list[Operation], n: int, reads: Callable[[int], range]) -> Cost:
    """Count what a layer does and how it reads."""
    work = sum(operation.multiply_adds for operation in operations)
    return Cost(work, longest_chain(operations), path_length(n, reads))


def layer_costs(
    n: int, d: int, *, width: int = 3, window: int = 64, projections: bool = False
) -> dict[str, Cost]:
    """Table 1 of Vaswani et al. 2017 in exact counts, for n tokens of width d.

    width   of the convolution's kernel, the table's k
    window  tokens that the restricted self-attention sees, itself counted: the table's r
    projections  count W_Q, W_K, W_V and W_O too, which the table leaves out

    As no token reads a later one, a kernel of width k reaches k - 1 tokens back. The counts are
    2 n² d, 2 n d², 8 n d² (LSTM), k n d² and 2 r n d multiply-adds; the projections add 4 n d².
    """
    n, d = check_count("n", n, least=1), check_count("d", d, least=1)
    width, window = check_count("width", width, least=2), check_count("window", window, least=2)
    attend = attention_operations(n, d, projections=projections)
    attend_near = attention_operations(n, d, window=window, projections=projections)
    convolve = convolution_operations(n, d, width=width)
    step = contiguous(2)  # over a link, a state is handed on by one token
    return {
        "self-attention": cost(attend, n, contiguous(n)),
        "recurrent": cost(recurrent_operations(n, d), n, step),
        "LSTM": cost(recurrent_operations(n, d, gates=4), n, step),
        "convolution": cost(convolve, n, contiguous(width)),
        "convolution, dilated": cost(convolve, n, dilated(width)),
        "self-attention, restricted": cost(attend_near, n, contiguous(window)),
    }
