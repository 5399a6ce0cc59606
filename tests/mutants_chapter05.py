"""Answers to the exercises of chapter 5 as learners write them, each wrong one with its diagnosis.

Written apart from the reference functions of `attention_lib.checks`, never by changing settings.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tests.answers import Answers, softmax

ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong


# absorb_block


@right("absorb_block")
def absorb_plain(m: Any, z: Any, o: Any, scores: Any, values: Any) -> Any:
    new = max(m, scores.max())
    if new == -np.inf:
        return m, z, o
    factor, weights = np.exp(m - new), np.exp(scores - new)
    return new, factor * z + weights.sum(), factor * o + weights @ values


@right("absorb_block")
def absorb_stand_in(m: Any, z: Any, o: Any, scores: Any, values: Any) -> Any:
    """Where nothing has been seen, exponents are measured from 0."""
    new = np.maximum(m, np.max(scores))
    point = np.where(np.isfinite(new), new, 0)
    factor, weights = np.exp(m - point), np.exp(scores - point)
    return [new, z * factor + np.sum(weights), o * factor + weights @ values]


@right("absorb_block")
def absorb_visible(m: Any, z: Any, o: Any, scores: Any, values: Any) -> Any:
    """Only the keys that may be seen, one at a time."""
    for score, value in zip(scores, values, strict=True):
        if score > m:
            factor = math.exp(m - score)
            m, z, o = score, z * factor, o * factor
        if score > -math.inf:
            z, o = z + math.exp(score - m), o + math.exp(score - m) * value
    return m, z, o


@right("absorb_block")
def absorb_two_states(m: Any, z: Any, o: Any, scores: Any, values: Any) -> Any:
    """The block as a state of its own, then each brought to the larger maximum."""
    best = scores.max()
    new = max(m, best)
    weights = np.nan_to_num(np.exp(scores - best))
    old, own = np.nan_to_num(np.exp(np.array([m, best]) - new))
    return new, old * z + own * weights.sum(), old * o + own * (weights @ values)


@right("absorb_block")
def absorb_torch(m: Any, z: Any, o: Any, scores: Any, values: Any) -> Any:
    m, z, o, s, v = (torch.tensor(a).float() for a in (m, z, o, scores, values))
    new = torch.maximum(m, s.max())
    factor, weights = torch.exp(m - new).nan_to_num(), torch.exp(s - new).nan_to_num()
    return new, factor * z + weights.sum(), factor * o + weights @ v


State = tuple[Any, Any, Any]


def absorb(
    says: str, fn: Callable[..., tuple[Any, ...]], guarded: bool = True, **settings: str
) -> None:
    """An answer fn(m, z, o, s, v, new) that skips a hidden block, or does not."""

    def answer(m: Any, z: Any, o: Any, scores: Any, values: Any) -> Any:
        if guarded and np.isneginf(scores).all():
            return m, z, o
        return fn(m, z, o, scores, values, max(m, scores.max()))

    wrong("absorb_block", says, **settings)(answer)


def joined(
    of_l: Callable[[Any, Any, Any], Any],
    of_o: Callable[[Any, Any, Any], Any] | None = None,
    weigh: Callable[[Any, Any, Any], Any] = lambda m, s, new: np.exp(s - new),
) -> Callable[..., State]:
    """The usual step with its factors and weights found by functions of m, the scores and new."""

    def fn(m: Any, z: Any, o: Any, s: Any, v: Any, new: Any) -> State:
        p = weigh(m, s, new)
        factor_o = (of_o or of_l)(m, s, new)
        return new, of_l(m, s, new) * z + p.sum(), factor_o * o + p @ v

    return fn


def usual(m: Any, s: Any, new: Any) -> Any:
    return np.exp(m - new)


def one(m: Any, s: Any, new: Any) -> Any:
    return 1


def zero(m: Any, s: Any, new: Any) -> Any:
    return 0


absorb("rescale l but not o", joined(usual, one), old="o not rescaled")
absorb("rescale o but not l", joined(one, usual), old="l not rescaled")
absorb("neither l nor o", joined(one), old="not rescaled")
absorb("upside down", joined(lambda m, s, new: np.exp(new - m)), old="inverse")
absorb("the factor twice", joined(lambda m, s, new: np.exp(2 * (m - new))), old="twice")
absorb("to o twice", joined(usual, lambda m, s, new: usual(m, s, new) ** 2), old="o twice")
absorb("the block's factor", joined(lambda m, s, new: np.exp(s.max() - new)), old="block's factor")
absorb("difference of the maxima", joined(lambda m, s, new: m - new), old="no exp")
absorb("l and o hold this", joined(zero), old="forgotten")
absorb("Your l holds this", joined(zero, usual), old="l forgotten")
absorb("Your o holds this", joined(usual, zero), old="o forgotten")


@wrong("absorb_block", "the block's maximum alone", maximum="block")
def absorb_block_maximum(m: Any, z: Any, o: Any, scores: Any, values: Any) -> Any:
    new = scores.max()
    if new == -np.inf:
        return m, z, o
    factor, weights = np.exp(m - new), np.exp(scores - new)
    return new, factor * z + weights.sum(), factor * o + weights @ values


@wrong(
    "absorb_block",
    "(1) You take the block's maximum alone",
    "(2) A hidden block",
    maximum="block",
    hidden="unguarded",
)
def absorb_block_maximum_unguarded(m: Any, z: Any, o: Any, scores: Any, values: Any) -> Any:
    new = np.max(scores)
    weights = np.exp(scores - new)
    return new, np.exp(m - new) * z + weights.sum(), np.exp(m - new) * o + weights @ values


absorb(
    "from the old maximum",
    lambda m, z, o, s, v, new: (m, z + np.exp(s - m).sum(), o + np.exp(s - m) @ v),
    maximum="old",
)
absorb(
    "overflows near 800",
    lambda m, z, o, s, v, new: (m, z + np.exp(s).sum(), o + np.exp(s) @ v),
    guarded=False,
    maximum="none",
)
absorb(
    "overflows near 800",
    lambda m, z, o, s, v, new: (new, z + np.exp(s).sum(), o + np.exp(s) @ v),
    guarded=False,
    maximum="none, tracked",
)
absorb(
    "from its own maximum",
    joined(usual, weigh=lambda m, s, new: np.exp(s - s.max())),
    block="own maximum",
)
absorb("overflows", joined(usual, weigh=lambda m, s, new: np.exp(s)), block="not shifted")
absorb(
    "block from the old maximum",
    joined(usual, weigh=lambda m, s, new: np.exp(s - m)),
    block="old maximum",
)
absorb("block on its own", joined(usual, weigh=lambda m, s, new: softmax(s)), block="normalised")
absorb("shifted scores themselves", joined(usual, weigh=lambda m, s, new: s - new), block="no exp")
absorb(
    "the block too",
    lambda m, z, o, s, v, new: (
        new,
        (z + np.exp(s - new).sum()) * np.exp(m - new),
        (o + np.exp(s - new) @ v) * np.exp(m - new),
    ),
    block="rescaled",
)
absorb(
    "without weights",
    lambda m, z, o, s, v, new: (
        new,
        z * np.exp(m - new) + np.exp(s - new).sum(),
        o * np.exp(m - new) + v.sum(axis=0),
    ),
    block="unweighted",
)


def finished(says: str, output: Callable[..., Any], **settings: str) -> None:
    """An answer whose m and l are right; its o is found from o, l, the factor, the right l and o,
    the exponentials and the values."""

    def fn(m: Any, z: Any, o: Any, s: Any, v: Any, new: Any) -> State:
        factor, p = np.exp(m - new), np.exp(s - new)
        new_z, new_o = factor * z + p.sum(), factor * o + p @ v
        return new, new_z, output(o, z, factor, new_z, new_o, p, v)

    absorb(says, fn, True, **settings)


finished(
    "in every block", lambda o, z, f, new_z, new_o, p, v: new_o / new_z, division="every block"
)


@wrong("absorb_block", "in every block", division="always")
def absorb_divided_always(m: Any, z: Any, o: Any, scores: Any, values: Any) -> Any:
    new = max(m, scores.max())
    point = 0 if new == -np.inf else new
    factor, weights = np.exp(m - point), np.exp(scores - point)
    z = factor * z + weights.sum()
    return new, z, (factor * o + weights @ values) / z


finished(
    "divided by l already",
    lambda o, z, f, new_z, new_o, p, v: (f * z * o + p @ v) / new_z,
    division="kept",
)
finished(
    "average the outputs",
    lambda o, z, f, new_z, new_o, p, v: (o + p @ v / p.sum()) / 2,
    division="average",
)
finished(
    "average the outputs",
    lambda o, z, f, new_z, new_o, p, v: (o / z + p @ v / p.sum()) / 2,
    division="average of outputs",
)
absorb("A hidden block at the start", joined(usual), guarded=False, hidden="unguarded")


@wrong("absorb_block", "You return 0 as the maximum", hidden="0")
def absorb_zero_maximum(m: Any, z: Any, o: Any, scores: Any, values: Any) -> Any:
    new = max(m, scores.max())
    if np.isinf(new):
        new = 0.0
    factor, weights = np.exp(m - new), np.exp(scores - new)
    return new, factor * z + weights.sum(), factor * o + weights @ values


@wrong("absorb_block", "You return the old maximum", output="old m")
def absorb_old_m(m: Any, z: Any, o: Any, scores: Any, values: Any) -> Any:
    _, z, o = absorb_plain(m, z, o, scores, values)
    return m, z, o


@wrong("absorb_block", "It is m, l, o", output="l, m, o")
def absorb_l_first(*case: Any) -> Any:
    m, z, o = absorb_plain(*case)
    return z, m, o


@wrong("absorb_block", "It is m, l, o", output="o, l, m")
def absorb_reversed(*case: Any) -> Any:
    return absorb_plain(*case)[::-1]


absorb(
    "(2) A hidden block at the start",
    joined(usual, one),
    guarded=False,
    old="o not rescaled",
    hidden="unguarded",
)
absorb(
    "(2) A hidden block at the start",
    joined(one),
    guarded=False,
    old="not rescaled",
    hidden="unguarded",
)
absorb(
    "(2) You divide o by l",
    lambda m, z, o, s, v, new: (
        new,
        z + np.exp(s - new).sum(),
        (o + np.exp(s - new) @ v) / (z + np.exp(s - new).sum()),
    ),
    old="not rescaled",
    division="every block",
)


# window_mask


def back(T: int, S: int) -> Any:
    """How many steps each token lies behind each query, i - j."""
    return np.arange(S - T, S)[:, None] - np.arange(S)


@right("window_mask")
def window_plain(T: Any, S: Any, window: Any) -> Any:
    i, j = np.arange(S - T, S)[:, None], np.arange(S)
    return (i - window < j) & (j <= i)


@right("window_mask")
def window_two_triangles(T: Any, S: Any, window: Any) -> Any:
    ones = np.ones((T, S), dtype=bool)
    return np.tril(ones, S - T) & ~np.tril(ones, S - T - window)


@right("window_mask")
def window_band(T: Any, S: Any, window: Any) -> Any:
    return np.add.reduce([np.eye(S, k=-step) for step in range(window)])[S - T :] > 0


@right("window_mask")
def window_rows(T: Any, S: Any, window: Any) -> Any:
    mask = np.full((T, S), False)
    for t in range(T):
        i = S - T + t
        mask[t, max(0, i - window + 1) : i + 1] = True
    return mask


@right("window_mask")
def window_lists(T: Any, S: Any, window: Any) -> Any:
    return [[0 <= i - j < window for j in range(S)] for i in range(S - T, S)]


@right("window_mask")
def window_torch(T: Any, S: Any, window: Any) -> Any:
    return torch.ones(T, S).tril(S - T).triu(S - T - window + 1).bool()


def windowed(says: str, fn: Callable[[int, int, int], Any], **settings: str) -> None:
    wrong("window_mask", says, **settings)(fn)


def edge(says: str, seen: Callable[[Any, int], Any], edges: str) -> None:
    """A mask of the right place and shape, with its own edges from i - j and the window."""
    windowed(says, lambda T, S, w: seen(back(T, S), w), edges=edges)


edge("one too wide. It", lambda b, w: (b >= 0) & (b <= w), "i - w <= j <= i")
edge("one too narrow", lambda b, w: (b >= 0) & (b < w - 1), "i - w + 1 < j <= i")
edge("leaves out the token", lambda b, w: (b > 0) & (b <= w), "i - w <= j < i")
edge("from itself", lambda b, w: (b > 0) & (b < w), "i - w < j < i")
edge("shows the next token", lambda b, w: (b >= -1) & (b < w), "i - w < j <= i + 1")
edge("no far edge", lambda b, w: b >= 0, "j <= i")
edge("the future is seen", lambda b, w: b < w, "i - w < j")
edge("the far one is one too far", lambda b, w: b <= w, "i - w <= j")
edge("looks both ways. N", lambda b, w: np.abs(b) < w, "|i - j| < w")
edge("looks both ways, and", lambda b, w: np.abs(b) <= w, "|i - j| <= w")
edge("centred", lambda b, w: np.abs(b) <= w / 2, "|i - j| <= w / 2")
edge("looks ahead", lambda b, w: (b <= 0) & (-b < w), "i <= j < i + w")
edge("hides the window", lambda b, w: b >= w, "j <= i - w")
edge("window` steps apart", lambda b, w: (b >= 0) & (b % w == 0), "every w-th")


@wrong("window_mask", "cut the text into blocks", edges="blocks")
def window_blocks(T: Any, S: Any, window: Any) -> Any:
    mask = np.zeros((S, S), dtype=bool)
    for start in range(0, S, window):
        mask[start : start + window, start : start + window] = True
    return np.tril(mask)[-T:]


@wrong("window_mask", "the first tokens of the text", edges="first w")
def window_first(T: Any, S: Any, window: Any) -> Any:
    mask = np.tri(T, S, S - T, dtype=bool)
    mask[:, window:] = False
    return mask


@wrong("window_mask", "one too wide. It", edges="i - w <= j <= i")
def window_triangles_apart(T: Any, S: Any, window: Any) -> Any:
    return (np.tri(T, S, S - T) - np.tri(T, S, S - T - window - 1)).astype(bool)


windowed(
    "query be token 0",
    lambda T, S, w: np.tri(T, S, dtype=bool) & ~np.tri(T, S, -w, dtype=bool),
    align="upper-left",
)
windowed(
    "the wrong way",
    lambda T, S, w: np.tri(T, S, T - S, dtype=bool) & ~np.tri(T, S, T - S - w, dtype=bool),
    align="T - S",
)
windowed("T and S are exchanged", lambda T, S, w: window_plain(S, T, w), size="S, T")
windowed("each of the S tokens", lambda T, S, w: window_plain(S, S, w), size="S, S")
windowed("a column for each query", lambda T, S, w: window_plain(T, T, w), size="T, T")
windowed("is inverted", lambda T, S, w: ~window_plain(T, S, w), output="inverted")
windowed("is inverted", lambda T, S, w: (back(T, S) < 0) | (back(T, S) >= w), output="inverted")
windowed("holds 1 and 0", lambda T, S, w: 1 * window_plain(T, S, w), output="numbers")
windowed(
    "holds 1 and 0",
    lambda T, S, w: np.tri(T, S, S - T) - np.tri(T, S, S - T - w),
    output="numbers",
)
windowed(
    "added to the scores",
    lambda T, S, w: np.where(window_plain(T, S, w), 0, -np.inf),
    output="added",
)
windowed("is transposed", lambda T, S, w: window_plain(T, S, w).T, output="transposed")
windowed(
    "(2) You let the first query",
    lambda T, S, w: np.tri(T, S, dtype=bool) & ~np.tri(T, S, -w - 1, dtype=bool),
    edges="i - w <= j <= i",
    align="upper-left",
)
windowed(
    "(2) Your mask is inverted",
    lambda T, S, w: np.abs(back(T, S)) >= w,
    edges="|i - j| < w",
    output="inverted",
)


# linear_step


def phi(x: Any) -> Any:
    return np.where(x > 0, x + 1, np.exp(x))


@right("linear_step")
def linear_plain(q_t: Any, k_t: Any, v_t: Any, state: Any, total: Any) -> Any:
    state, total = state + np.outer(phi(k_t), v_t), total + phi(k_t)
    return phi(q_t) @ state / (phi(q_t) @ total), state, total


@right("linear_step")
def linear_weights(q_t: Any, k_t: Any, v_t: Any, state: Any, total: Any) -> Any:
    """The query's features normalised first, then the state's rows mixed."""
    a, b = np.maximum(q_t, 0) + np.exp(np.minimum(q_t, 0)), np.expm1(np.minimum(k_t, 0)) + 1
    b += np.maximum(k_t, 0)
    state, total = state + b[:, None] * v_t, total + b
    weights = a / (a * total).sum()
    return (weights[:, None] * state).sum(axis=0), state, total


@right("linear_step")
def linear_one_matrix(q_t: Any, k_t: Any, v_t: Any, state: Any, total: Any) -> Any:
    """A value of 1 beside the others: its sum is the total."""
    both = np.c_[state, total] + np.outer(phi(k_t), np.append(v_t, 1))
    read = phi(q_t) @ both
    return [read[:-1] / (read[-1] + 1e-6), both[:, :-1], both[:, -1]]


@right("linear_step")
def linear_loops(q_t: Any, k_t: Any, v_t: Any, state: Any, total: Any) -> Any:
    new_state, new_total = state.copy(), total.copy()
    numerator, denominator = np.zeros(len(v_t)), 0.0
    for i, (query, key) in enumerate(zip(q_t, k_t, strict=True)):
        new_state[i] += phi(key) * v_t
        new_total[i] += phi(key)
        numerator += phi(query) * new_state[i]
        denominator += phi(query) * new_total[i]
    return numerator / denominator, new_state, new_total


@right("linear_step")
def linear_torch(q_t: Any, k_t: Any, v_t: Any, state: Any, total: Any) -> Any:
    q, k, v, S, z = (torch.tensor(a).float() for a in (q_t, k_t, v_t, state, total))
    q, k = F.elu(q) + 1, F.elu(k) + 1
    S, z = S + torch.outer(k, v), z + k
    return q @ S / torch.dot(q, z), S, z


def linear(
    says: str,
    of_q: Callable[[Any], Any] = phi,
    of_k: Callable[[Any], Any] = phi,
    *,
    read: Callable[..., Any] | None = None,
    puts: Callable[..., Any] | None = None,
    **settings: str,
) -> None:
    """The usual step with a part replaced: the maps, read(a, b, v, S, z, old S, old z), or puts."""

    def fn(q_t: Any, k_t: Any, v_t: Any, state: Any, total: Any) -> Any:
        a, b = of_q(q_t), of_k(k_t)
        if puts is None:
            S, z = state + np.outer(b, v_t), total + b
        else:
            S, z = puts(state, total, b, v_t, k_t)
        output = a @ S / (a @ z) if read is None else read(a, b, v_t, S, z, state, total)
        return output, S, z

    wrong("linear_step", says, **settings)(fn)


def same_map(says: str, feature: str, of: Callable[[Any], Any]) -> None:
    linear(says, of, of, feature=feature)


same_map("no feature map", "none", lambda x: x)
linear("the key but not the query", of_q=lambda x: x, feature="none on q")
linear("the query but not the key", of_k=lambda x: x, feature="none on k")
same_map("exp everywhere", "exp", np.exp)
same_map("is ReLU, which", "relu", lambda x: x * (x > 0))
same_map("ReLU + 1", "relu + 1", lambda x: np.maximum(0, x) + 1)
same_map("without the 1", "elu", lambda x: np.where(x > 0, x, np.expm1(x)))
same_map("only below 0", "no + 1 above 0", lambda x: np.where(x > 0, x, np.exp(x)))
same_map("branches are exchanged", "exchanged", lambda x: np.where(x < 0, x + 1, np.exp(x)))
same_map("softplus", "softplus", lambda x: np.logaddexp(0, x))
same_map("a sigmoid", "sigmoid", lambda x: 1 / (1 + np.exp(-x)))
same_map("a softmax over", "softmax", softmax)

linear("before you write", read=lambda a, b, v, S, z, S0, z0: a @ S0 / (a @ z0), reads="before")
linear("the old state", read=lambda a, b, v, S, z, S0, z0: a @ S0 / (a @ z), reads="old state")
linear("by the old total", read=lambda a, b, v, S, z, S0, z0: a @ S / (a @ z0), reads="old total")
linear("v_t alone", read=lambda a, b, v, *_: v, reads="newest")
linear("state's columns", read=lambda a, b, v, S, z, *_: S @ a / (a @ z), reads="transposed")


def written(says: str, of: Callable[[Any, Any, Any, Any, Any], Any], name: str) -> None:
    """A step that reads right from what `of(old S, old z, b, v, k)` wrote."""
    linear(says, puts=of, write=name)


def transposed(q_t: Any, k_t: Any, v_t: Any, state: Any, total: Any) -> Any:
    return state + np.outer(v_t, phi(k_t)), total + phi(k_t)


@wrong("linear_step", "outer product is transposed", write="transposed")
def linear_transposed(q_t: Any, k_t: Any, v_t: Any, state: Any, total: Any) -> Any:
    S, z = transposed(q_t, k_t, v_t, state, total)
    return phi(q_t) @ S / (phi(q_t) @ z), S, z


@wrong("linear_step", "outer product is transposed", write="transposed throughout")
def linear_transposed_throughout(q_t: Any, k_t: Any, v_t: Any, state: Any, total: Any) -> Any:
    S, z = transposed(q_t, k_t, v_t, state, total)
    return S @ phi(q_t) / (z @ phi(q_t)), S, z


written("replace state and total", lambda S, z, b, v, k: (np.outer(b, v), b), "replaced")
written("replace the state.", lambda S, z, b, v, k: (np.outer(b, v), z + b), "state replaced")
written("never write into", lambda S, z, b, v, k: (S, z + b), "no state")
written("never update the total", lambda S, z, b, v, k: (S + np.outer(b, v), z), "no total")
written("write nothing", lambda S, z, b, v, k: (S, z), "not written")
written("to every row", lambda S, z, b, v, k: (S + v, z + b), "v alone")
written("add k_t to", lambda S, z, b, v, k: (S + np.outer(b, v), z + k), "k in total")
written("counts tokens", lambda S, z, b, v, k: (S + np.outer(b, v), z + 1), "counted")


@wrong("linear_step", "the next step misses", write="lost")
def linear_lost(q_t: Any, k_t: Any, v_t: Any, state: Any, total: Any) -> Any:
    return linear_plain(q_t, k_t, v_t, state, total)[0], state, total


def divided(says: str, by: Callable[[Any, Any, Any], Any], divide: str) -> None:
    """An output divided by `by(a, b, z)`."""
    linear(says, read=lambda a, b, v, S, z, *_: a @ S / by(a, b, z), divide=divide)


divided("do not divide", lambda a, b, z: 1, "none")
divided("divide by sqrt(d_k). D", lambda a, b, z: math.sqrt(len(a)), "sqrt(d_k)")
divided("sum of the total", lambda a, b, z: z.sum(), "sum")
divided("sum of the query's", lambda a, b, z: a.sum(), "phi(q)")
divided("key's product", lambda a, b, z: b @ z, "phi(k)·total")
divided("this token's weight alone", lambda a, b, z: a @ b, "phi(q)·phi(k)")
divided("length of the total", lambda a, b, z: np.linalg.norm(z), "size")


def exchanged(says: str, of: Callable[[Any, Any, Any], tuple[Any, Any, Any]], roles: str) -> None:
    """A right step with other vectors in the places of q_t, k_t and v_t."""
    wrong("linear_step", says, roles=roles)(
        lambda q, k, v, state, total: linear_plain(*of(q, k, v), state, total)
    )


exchanged("q_t and k_t are", lambda q, k, v: (k, q, v), "k, q, v")
exchanged("write with q_t", lambda q, k, v: (q, q, v), "q, q, v")
exchanged("read with k_t", lambda q, k, v: (k, k, v), "k, k, v")
exchanged("k_t and v_t are", lambda q, k, v: (q, v, k), "q, v, k")
linear("scale the query", of_q=lambda q: phi(q / math.sqrt(len(q))), feature="scaled q")
linear(
    "by sqrt(d_k) too",
    read=lambda a, b, v, S, z, *_: a @ S / (a @ z) / len(a) ** 0.5,
    divide="twice",
)


@wrong("linear_step", "the total before", output="output, total, state")
def linear_total_first(*case: Any) -> Any:
    out, state, total = linear_plain(*case)
    return out, total, state


@wrong("linear_step", "the output last", output="state, total, output")
def linear_output_last(*case: Any) -> Any:
    out, state, total = linear_plain(*case)
    return state, total, out


linear(
    "(2) You do not divide",
    lambda x: x,
    lambda x: x,
    read=lambda a, b, v, S, *_: a @ S,
    feature="none",
    divide="none",
)
linear(
    "(2) You do not divide",
    np.exp,
    np.exp,
    read=lambda a, b, v, S, *_: a @ S,
    feature="exp",
    divide="none",
)
linear(
    "(2) You read before",
    lambda x: x * (x > 0),
    lambda x: x * (x > 0),
    read=lambda a, b, v, S, z, S0, z0: a @ S0 / (a @ z0),
    feature="relu",
    reads="before",
)
