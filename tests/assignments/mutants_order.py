"""Answers to the assignment `order` as students write them, each wrong one with its diagnosis.

Written apart from the reference functions of `assignments.tasks`, never by changing settings.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.answers import Answers, Function, softmax

ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong


# prefix_mask


@right("prefix_mask")
def prefix_plain(T: Any, S: Any, prefix: Any) -> Any:
    i, j = np.arange(S - T, S)[:, None], np.arange(S)
    return (j < prefix) | (j <= i)


@right("prefix_mask")
def prefix_filled(T: Any, S: Any, prefix: Any) -> Any:
    mask = np.tri(T, S, S - T, dtype=bool)
    mask[:, :prefix] = True
    return mask


@right("prefix_mask")
def prefix_lists(T: Any, S: Any, prefix: Any) -> Any:
    return [[j < prefix or j <= i for j in range(S)] for i in range(S - T, S)]


@right("prefix_mask")
def prefix_last_seen(T: Any, S: Any, prefix: Any) -> Any:
    """Every row is True up to the later of prefix and token."""
    ends = np.maximum(np.arange(S - T + 1, S + 1), prefix)
    return np.arange(S) < ends[:, None]


@right("prefix_mask")
def prefix_square(T: Any, S: Any, prefix: Any) -> Any:
    """The tokens of the prefix see one another; all of S first, then the last T rows."""
    mask = np.tril(np.ones((S, S), dtype=bool))
    mask[:prefix, :prefix] = True
    return mask[S - T :]


@right("prefix_mask")
def prefix_torch(T: Any, S: Any, prefix: Any) -> Any:
    hidden = torch.ones(T, S, dtype=torch.bool).triu(S - T + 1)
    hidden[:, :prefix] = False
    return ~hidden


def mask(says: str, fn: Callable[[int, int, int], Any], **settings: str) -> None:
    wrong("prefix_mask", says, **settings)(fn)


def causal(T: Any, S: Any, k: int = 0) -> Any:
    return np.tri(T, S, S - T + k, dtype=bool)


def columns(S: Any, prefix: Any) -> Any:
    return np.arange(S)[None] < prefix


mask("plainly causal", lambda T, S, p: causal(T, S), seen="no prefix")
mask("Only the prefix is seen", lambda T, S, p: np.tile(columns(S, p), (T, 1)), seen="prefix alone")
mask("ask for both", lambda T, S, p: columns(S, p) & causal(T, S), seen="prefix and past")
mask("hides nothing", lambda T, S, p: np.ones((T, S), bool), seen="all")
mask("too long", lambda T, S, p: (np.arange(S) <= p) | causal(T, S), seen="one more")
mask("too short", lambda T, S, p: columns(S, p - 1) | causal(T, S), seen="one fewer")
mask("the last `prefix`", lambda T, S, p: columns(S, p)[:, ::-1] | causal(T, S), seen="last")
mask("hide the prefix", lambda T, S, p: causal(T, S) & ~columns(S, p), seen="hidden")
mask("tokens ahead", lambda T, S, p: causal(T, S, p), seen="ahead")
mask(
    "the first query",
    lambda T, S, p: columns(S, S - T + p) | causal(T, S),
    seen="from the first query",
)


@wrong("prefix_mask", "do not see each other", seen="apart")
def prefix_apart(T: Any, S: Any, prefix: Any) -> Any:
    mask = np.zeros((S, S), dtype=bool)
    mask[:prefix, :prefix] = True
    mask[prefix:, prefix:] = np.tri(S - prefix)
    return mask[S - T :]


@wrong("prefix_mask", "the columns: who asks", seen="queries of the prefix")
def prefix_of_queries(T: Any, S: Any, prefix: Any) -> Any:
    mask = np.tri(S, dtype=bool)
    mask[:prefix] = True
    return mask[S - T :]


@wrong("prefix_mask", "first `prefix` rows", seen="first rows")
def prefix_rows(T: Any, S: Any, prefix: Any) -> Any:
    mask = np.tril(np.ones((T, S)), S - T) == 1
    mask[:prefix] = True
    return mask


mask("from itself", lambda T, S, p: columns(S, p) | causal(T, S, -1), past="j < i")
mask("the next token", lambda T, S, p: columns(S, p) | causal(T, S, 1), past="j <= i + 1")
mask("what comes after it", lambda T, S, p: columns(S, p) | ~causal(T, S, -1), past="j >= i")
mask("part is inverted", lambda T, S, p: columns(S, p) | ~causal(T, S), past="j > i")
mask(
    "query be token 0", lambda T, S, p: columns(S, p) | np.tri(T, S, dtype=bool), align="upper-left"
)
mask(
    "the wrong way",
    lambda T, S, p: columns(S, p) | np.tri(T, S, T - S, dtype=bool),
    align="T - S",
)
mask("are exchanged", lambda T, S, p: prefix_plain(S, T, p), size="S, T")
mask("each of the S tokens", lambda T, S, p: prefix_plain(S, S, p), size="S, S")
mask("a column for each query", lambda T, S, p: prefix_plain(T, T, p), size="T, T")
mask("Your mask is inverted", lambda T, S, p: ~prefix_plain(T, S, p), output="inverted")
mask("holds 1 and 0", lambda T, S, p: prefix_plain(T, S, p).astype(int), output="numbers")
mask(
    "added to the scores",
    lambda T, S, p: np.where(prefix_plain(T, S, p), 0, -np.inf),
    output="added",
)
mask("mask is transposed", lambda T, S, p: prefix_plain(T, S, p).T, output="transposed")
mask(
    "(2) You let the first query",
    lambda T, S, p: np.tri(T, S, -1, dtype=bool) | columns(S, p),
    past="j < i",
    align="upper-left",
)
mask(
    "(2) Your mask holds 1 and 0",
    lambda T, S, p: 1.0 * causal(T, S),
    seen="no prefix",
    output="numbers",
)


# retention


def decays(T: Any, gamma: Any) -> Any:
    steps = np.arange(T)[:, None] - np.arange(T)
    return np.tril(gamma ** np.maximum(steps, 0.0))


@right("retention")
def retention_plain(q: Any, k: Any, v: Any, gamma: Any) -> Any:
    return (q @ k.T * decays(len(q), gamma)) @ v


@right("retention")
def retention_recurrent(q: Any, k: Any, v: Any, gamma: Any) -> Any:
    """A state that is multiplied by gamma in every step."""
    state, out = np.zeros((k.shape[1], v.shape[1])), []
    for query, key, value in zip(q, k, v, strict=True):
        state = gamma * state + np.outer(key, value)
        out.append(query @ state)
    return np.array(out)


@right("retention")
def retention_loops(q: Any, k: Any, v: Any, gamma: Any) -> Any:
    out = np.zeros(v.shape)
    for i in range(len(q)):
        for j in range(i + 1):
            out[i] += gamma ** (i - j) * np.dot(q[i], k[j]) * v[j]
    return out


@right("retention")
def retention_absorbed(q: Any, k: Any, v: Any, gamma: Any) -> Any:
    """gamma^i goes into the queries, gamma^-j into the keys."""
    powers = gamma ** np.arange(len(q))[:, None]
    return np.tril((q * powers) @ (k / powers).T) @ v


@right("retention")
def retention_einsum(q: Any, k: Any, v: Any, gamma: Any) -> Any:
    return np.einsum("td,sd,ts,sv->tv", q, k, decays(len(q), gamma), v)


@right("retention")
def retention_torch(q: Any, k: Any, v: Any, gamma: Any) -> Any:
    a, b, c = (torch.tensor(array).float() for array in (q, k, v))
    i = torch.arange(len(a))
    steps = i[:, None] - i
    return torch.where(steps >= 0, a @ b.T * gamma**steps, 0.0) @ c


def kept(says: str, fn: Function, **settings: str) -> None:
    wrong("retention", says, **settings)(fn)


def decayed(says: str, of: Callable[[Any, Any], Any], decay: str) -> None:
    """A causal answer whose scores are multiplied by of(steps, gamma)."""

    def fn(q: Any, k: Any, v: Any, gamma: Any) -> Any:
        steps = np.subtract.outer(np.arange(len(q)), np.arange(len(k)))
        return np.tril(q @ k.T * of(steps, gamma)) @ v

    kept(says, fn, decay=decay)


decayed("Nothing decays", lambda steps, g: 1, "none")
decayed("gamma once", lambda steps, g: np.where(steps > 0, g, 1), "constant")
decayed("the number of steps", lambda steps, g: steps * g, "product")
decayed("by exp(-gamma)", lambda steps, g: np.exp(-g * steps), "exp")
decayed("by 1 - gamma", lambda steps, g: (1 - g) ** abs(steps), "1 - gamma")
decayed("the wrong sign", lambda steps, g: 1 / g**steps, "growing")
decayed("once too often", lambda steps, g: g ** (1.0 + steps), "i - j + 1")
decayed("the key's own", lambda steps, g: g ** np.arange(len(steps)), "j")
decayed("the query's own", lambda steps, g: g ** np.arange(len(steps))[:, None], "i")


@wrong("retention", "decays twice", decay="twice")
def retention_twice(q: Any, k: Any, v: Any, gamma: Any) -> Any:
    powers = gamma ** np.arange(len(q))[:, None]
    return np.tril((q * powers) @ (k / powers).T * decays(len(q), gamma)) @ v


@wrong("retention", "once too often", decay="i - j + 1")
def retention_state_first(q: Any, k: Any, v: Any, gamma: Any) -> Any:
    """The recurrence, with the new token put in before the decay."""
    state, out = 0.0, []
    for t in range(len(q)):
        state = gamma * (state + np.outer(k[t], v[t]))
        out.append(q[t] @ state)
    return out


kept(
    "add the decay",
    lambda q, k, v, g: np.tril(q @ k.T + decays(len(q), g)) @ v,
    decay="added",
)


def steps_of(q: Any) -> Any:
    return np.arange(len(q))[:, None] - np.arange(len(q))


kept("by their distance", lambda q, k, v, g: (q @ k.T * g ** abs(steps_of(q))) @ v, seen="all")
kept("even grow", lambda q, k, v, g: (q @ k.T * g ** steps_of(q)) @ v, seen="all, growing")
kept(
    "does not read itself",
    lambda q, k, v, g: np.tril(q @ k.T * g ** steps_of(q), -1) @ v,
    seen="j < i",
)
kept(
    "reads the next",
    lambda q, k, v, g: np.tril(q @ k.T * g ** steps_of(q), 1) @ v,
    seen="j <= i + 1",
)
kept("the future", lambda q, k, v, g: (q @ k.T * decays(len(q), g).T) @ v, seen="j >= i")


@wrong("retention", "with -inf", seen="-inf")
def retention_infinite(q: Any, k: Any, v: Any, gamma: Any) -> Any:
    scores = q @ k.T * gamma ** steps_of(q)
    scores[np.triu_indices(len(q), 1)] = -math.inf
    return scores @ v


def hide(scores: Any) -> Any:
    return np.where(np.tri(len(scores)) == 1, scores, -np.inf)


kept("with -inf", lambda q, k, v, g: hide(q @ k.T * decays(len(q), g)) @ v, seen="-inf")
kept("is NaN", lambda q, k, v, g: hide(q @ k.T) * decays(len(q), g) @ v, seen="-inf times 0")


@wrong("retention", "with -inf", seen="-inf in the decays")
def retention_infinite_decay(q: Any, k: Any, v: Any, gamma: Any) -> Any:
    D = gamma ** steps_of(q)
    D[steps_of(q) < 0] = -math.inf
    return (q @ k.T * D) @ v


kept(
    "softmax of the scores first",
    lambda q, k, v, g: (softmax(hide(q @ k.T)) * decays(len(q), g)) @ v,
    normalised="softmax, then decay",
)
kept(
    "softmax over all keys first",
    lambda q, k, v, g: (softmax(q @ k.T) * decays(len(q), g)) @ v,
    normalised="softmax of all, then decay",
)
kept(
    "softmax of the decayed",
    lambda q, k, v, g: softmax(hide(q @ k.T * decays(len(q), g))) @ v,
    normalised="softmax of decayed",
)
kept(
    "over the queries",
    lambda q, k, v, g: softmax(hide(q @ k.T * decays(len(q), g)), 0) @ v,
    normalised="softmax over queries",
)
kept(
    "even hidden keys count",
    lambda q, k, v, g: softmax(q @ k.T * decays(len(q), g)) @ v,
    normalised="softmax with zeros",
)
kept("take exp", lambda q, k, v, g: (np.exp(q @ k.T) * decays(len(q), g)) @ v, normalised="exp")


@wrong("retention", "row by its sum", normalised="by sum")
def retention_normalised(q: Any, k: Any, v: Any, gamma: Any) -> Any:
    weights = q @ k.T * decays(len(q), gamma)
    return weights / weights.sum(axis=-1, keepdims=True) @ v


@wrong("retention", "sum of its decays. The paper", normalised="by decays")
def retention_mean(q: Any, k: Any, v: Any, gamma: Any) -> Any:
    D = decays(len(q), gamma)
    return (q @ k.T * (D / D.sum(axis=-1, keepdims=True))) @ v


@wrong("retention", "root of the sum", normalised="by root of decays")
def retention_of_the_paper(q: Any, k: Any, v: Any, gamma: Any) -> Any:
    D = decays(len(q), gamma)
    return (q @ k.T * (D / np.sqrt(D.sum(axis=-1, keepdims=True)))) @ v


def inside(
    says: str, change: Callable[[Any, Any, Any], tuple[Any, Any, Any]], **settings: str
) -> None:
    """The right answer on changed q, k, v."""
    kept(says, lambda q, k, v, g: retention_plain(*change(q, k, v), g), **settings)


inside("by sqrt(d_k)", lambda q, k, v: (q / math.sqrt(q.shape[1]), k, v), scale="1/sqrt(d_k)")
inside("scores by d_k", lambda q, k, v: (q, k / k.shape[1], v), scale="1/d_k")
inside("Queries and keys", lambda q, k, v: (k, q, v), roles="k, q, v")
inside("sum the keys", lambda q, k, v: (q, k, k), roles="q, k, k")
inside("with the values. Compare", lambda q, k, v: (q, v, v), roles="q, v, v")
inside("Keys and values", lambda q, k, v: (q, v, k), roles="q, v, k")
kept("the decayed scores. Return", lambda q, k, v, g: q @ k.T * decays(len(q), g), output="weights")
kept(
    "transposed weights",
    lambda q, k, v, g: (q @ k.T * decays(len(q), g)).T @ v,
    output="transposed",
)
kept(
    "(2) You divide the scores by sqrt(d_k)",
    lambda q, k, v, g: softmax(hide(q @ k.T / q.shape[1] ** 0.5)) * decays(len(q), g) @ v,
    normalised="softmax, then decay",
    scale="1/sqrt(d_k)",
)
kept(
    "(2) You divide the scores by sqrt(d_k)",
    lambda q, k, v, g: np.tril(q @ k.T) / q.shape[1] ** 0.5 @ v,
    decay="none",
    scale="1/sqrt(d_k)",
)


# rotate_part


def angles_of(positions: Any, width: Any, base: Any, *, exponent: float = 2.0) -> Any:
    """One angle for each pair, (T, width / 2)."""
    return np.outer(positions, base ** (-exponent * np.arange(width // 2) / width))


def turn_halves(part: Any, angles: Any) -> Any:
    """The columns of `part`, each of the first half with its partner, turned."""
    a, b = np.split(part, 2, axis=1)
    return np.hstack(
        [a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)]
    )


def turn_neighbours(part: Any, angles: Any) -> Any:
    a, b = part[:, ::2], part[:, 1::2]
    out = np.empty_like(part)
    out[:, ::2] = a * np.cos(angles) - b * np.sin(angles)
    out[:, 1::2] = b * np.cos(angles) + a * np.sin(angles)
    return out


@right("rotate_part")
def rotate_plain(x: Any, positions: Any, width: Any, base: Any) -> Any:
    turned = turn_halves(x[:, :width], angles_of(positions, width, base))
    return np.hstack([turned, x[:, width:]])


@right("rotate_part")
def rotate_half_trick(x: Any, positions: Any, width: Any, base: Any) -> Any:
    """x cos + rotate_half(x) sin, as Llama's code has it."""
    angles = np.tile(angles_of(positions, width, base), 2)
    part, half = x[:, :width], width // 2
    rotated = np.concatenate([-part[:, half:], part[:, :half]], axis=-1)
    out = x.copy()
    out[:, :width] = part * np.cos(angles) + rotated * np.sin(angles)
    return out


@right("rotate_part")
def rotate_complex(x: Any, positions: Any, width: Any, base: Any) -> Any:
    half = width // 2
    z = x[:, :half] + 1j * x[:, half:width]
    z = z * np.exp(1j * angles_of(positions, width, base))
    return np.concatenate([z.real, z.imag, x[:, width:]], axis=1)


@right("rotate_part")
def rotate_loops(x: Any, positions: Any, width: Any, base: Any) -> Any:
    out = x.tolist()
    for t, position in enumerate(positions):
        for i in range(width // 2):
            angle = position * base ** (-2 * i / width)
            a, b = x[t, i], x[t, i + width // 2]
            out[t][i] = a * math.cos(angle) - b * math.sin(angle)
            out[t][i + width // 2] = a * math.sin(angle) + b * math.cos(angle)
    return out


@right("rotate_part")
def rotate_matrices(x: Any, positions: Any, width: Any, base: Any) -> Any:
    """One (d, d) matrix for each token."""
    d, half = x.shape[1], width // 2
    out = []
    for row, angles in zip(x, angles_of(positions, width, base), strict=True):
        R = np.eye(d)
        for i, angle in enumerate(angles):
            R[i, i] = R[i + half, i + half] = math.cos(angle)
            R[i, i + half], R[i + half, i] = math.sin(angle), -math.sin(angle)
        out.append(row @ R)
    return np.array(out)


@right("rotate_part")
def rotate_torch(x: Any, positions: Any, width: Any, base: Any) -> Any:
    t, places = torch.tensor(x), torch.tensor(positions).double()
    frequencies = base ** (-torch.arange(0, width, 2).double() / width)
    angles = torch.outer(places, frequencies)
    a, b, rest = t.tensor_split([width // 2, width], dim=1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], dim=1)


def rotated(says: str, fn: Function, **settings: str) -> None:
    wrong("rotate_part", says, **settings)(fn)


def turned(says: str, part: Callable[[Any, Any, Any, Any], Any], **settings: str) -> None:
    """part(first columns, positions, width, base) in the place of the first columns."""
    rotated(
        says,
        lambda x, p, w, base: np.hstack([part(x[:, :w], p, w, base), x[:, w:]]),
        **settings,
    )


rotated(
    "the last `width`",
    lambda x, p, w, base: np.hstack([x[:, :-w], turn_halves(x[:, -w:], angles_of(p, w, base))]),
    part="last",
)
rotated(
    "what should stay",
    lambda x, p, w, base: np.hstack(
        [x[:, :w], turn_halves(x[:, w:], angles_of(p, x.shape[1] - w, base))]
    ),
    part="rest",
)
rotated(
    "all d columns",
    lambda x, p, w, base: turn_halves(x, angles_of(p, x.shape[1], base)),
    part="all",
)


@wrong("rotate_part", "each half of x", part="of each half")
def rotate_whole_halves(x: Any, positions: Any, width: Any, base: Any) -> Any:
    a, b = np.split(x.copy(), 2, axis=1)
    n = width // 2
    turned = turn_halves(np.hstack([a[:, :n], b[:, :n]]), angles_of(positions, width, base))
    a[:, :n], b[:, :n] = np.split(turned, 2, axis=1)
    return np.hstack([a, b])


@wrong("rotate_part", "`width` pairs", part="width pairs")
def rotate_width_pairs(x: Any, positions: Any, width: Any, base: Any) -> Any:
    angles = np.outer(positions, base ** (-np.arange(width) / width))
    a, b, rest = x[:, :width], x[:, width : 2 * width], x[:, 2 * width :]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.hstack([a * cos - b * sin, b * cos + a * sin, rest])


rotated(
    "only the turned",
    lambda x, p, w, base: turn_halves(x[:, :w], angles_of(p, w, base)),
    rest="dropped",
)


@wrong("rotate_part", "on are 0", rest="zeros")
def rotate_into_zeros(x: Any, positions: Any, width: Any, base: Any) -> Any:
    out = np.zeros_like(x)
    out[:, :width] = turn_halves(x[:, :width], angles_of(positions, width, base))
    return out


rotated(
    "in front",
    lambda x, p, w, base: np.hstack([x[:, w:], turn_halves(x[:, :w], angles_of(p, w, base))]),
    rest="in front",
)
rotated("to x", lambda x, p, w, base: x + rotate_plain(x, p, w, base), rest="added")
turned(
    "pair neighbours, 2i",
    lambda a, p, w, base: turn_neighbours(a, angles_of(p, w, base)),
    pairing="neighbours",
)


@wrong("rotate_part", "give neighbours the same angle", pairing="halves, neighbours' angles")
def rotate_mixed(x: Any, positions: Any, width: Any, base: Any) -> Any:
    """Halves, with the angles repeated as interleaved code repeats them."""
    angles = np.repeat(angles_of(positions, width, base), 2, axis=1)
    part, half = x[:, :width], width // 2
    rotated = np.hstack([-part[:, half:], part[:, :half]])
    return np.hstack([part * np.cos(angles) + rotated * np.sin(angles), x[:, width:]])


@wrong("rotate_part", "with the angles of halves", pairing="neighbours, halves' angles")
def rotate_mixed_back(x: Any, positions: Any, width: Any, base: Any) -> Any:
    angles = np.tile(angles_of(positions, width, base), 2)
    part = x[:, :width]
    rotated = np.stack([-part[:, 1::2], part[:, ::2]], axis=-1).reshape(part.shape)
    return np.hstack([part * np.cos(angles) + rotated * np.sin(angles), x[:, width:]])


turned(
    "the wrong way",
    lambda a, p, w, base: turn_halves(a, -angles_of(p, w, base)),
    turn="backward",
)


def signed(says: str, first: Function, second: Function, turn: str) -> None:
    """A rotation whose halves are first and second of (a, b, cos, sin)."""

    def part(x: Any, p: Any, w: Any, base: Any) -> Any:
        angles = angles_of(p, w, base)
        parts = (*np.split(x, 2, axis=1), np.cos(angles), np.sin(angles))
        return np.hstack([first(*parts), second(*parts)])

    turned(says, part, turn=turn)


signed("add both", lambda a, b, c, s: a * c + b * s, lambda a, b, c, s: b * c + a * s, "both plus")
signed(
    "subtract both",
    lambda a, b, c, s: a * c - b * s,
    lambda a, b, c, s: b * c - a * s,
    "both minus",
)
signed(
    "are exchanged", lambda a, b, c, s: a * s - b * c, lambda a, b, c, s: b * s + a * c, "swapped"
)


@wrong("rotate_part", "overwrite the first half", turn="overwritten")
def rotate_overwritten(x: Any, positions: Any, width: Any, base: Any) -> Any:
    out, half, angles = x.copy(), width // 2, angles_of(positions, width, base)
    out[:, :half] = out[:, :half] * np.cos(angles) - out[:, half:width] * np.sin(angles)
    out[:, half:width] = out[:, half:width] * np.cos(angles) + out[:, :half] * np.sin(angles)
    return out


def placed(says: str, of: Callable[[Any], Any], counting: str) -> None:
    rotated(says, lambda x, p, w, base: rotate_plain(x, of(p), w, base), counting=counting)


placed("Nothing turns", lambda p: 0 * p, "ignored")
placed("yourself", lambda p: np.arange(len(p)), "counted")
placed("add 1", lambda p: p + 1, "from 1")
placed("from the first position", lambda p: p - p[0], "from the first")


def framed(says: str, frequencies: Callable[[Any, Any, Any], Any], frequency: str) -> None:
    """frequencies(width, base, d) in the place of the right ones."""

    def fn(x: Any, p: Any, w: Any, base: Any) -> Any:
        own = frequencies(w, base, x.shape[1])
        return np.hstack([turn_halves(x[:, :w], p[:, None] * own), x[:, w:]])

    rotated(says, fn, frequency=frequency)


def pairs(w: Any) -> Any:
    return np.arange(w // 2)


framed("the whole width", lambda w, base, d: base ** (-2 * pairs(w) / d), "2i/d")
framed("half as large", lambda w, base, d: base ** (-pairs(w) / w), "i/width")
framed("twice as large", lambda w, base, d: base ** (-2 * np.arange(0, w, 2) / w), "4i/width")
framed("pairs from 1", lambda w, base, d: base ** (-2 * (1 + pairs(w)) / w), "from 1")
framed("turn faster", lambda w, base, d: base ** (2 * pairs(w) / w), "growing")
framed("by the same angle", lambda w, base, d: np.ones(w // 2), "none")
framed("divide whole numbers", lambda w, base, d: base ** (-2.0 * pairs(w) // w), "floored")
framed("use 10000", lambda w, base, d: 10000 ** (-2 * pairs(w) / w), "base 10000")
framed("for degrees", lambda w, base, d: np.radians(base ** (-2 * pairs(w) / w)), "degrees")
rotated(
    "(2) You divide the exponent by d",
    lambda x, p, w, base: np.hstack(
        [
            turn_neighbours(x[:, :w], p[:, None] * base ** (-2 * pairs(w) / x.shape[1])),
            x[:, w:],
        ]
    ),
    pairing="neighbours",
    frequency="2i/d",
)


# reach


def machines(n: Any, rho: Any) -> Any:
    """Tokens, and the recurrence and the mean as functions of them."""
    rng = np.random.default_rng(0)
    U = rho * np.linalg.qr(rng.normal(size=(6, 6)))[0]

    def last_state(tokens: Any) -> Any:
        h = np.zeros(6)
        for token in tokens:
            h = token + h @ U
        return h

    return rng.normal(size=(n, 6)), last_state, lambda tokens: tokens.mean(axis=0)


def moved(machine: Any, tokens: Any, at: int) -> Any:
    """How far the machine's output moves, for a change of length 1 of token `at`."""
    changed = tokens.copy()
    changed[at, 2] += 1
    return np.linalg.norm(machine(changed) - machine(tokens))


def measure(n: Any, k: Any, rho: Any, at: int | None = None) -> Any:
    tokens, recurrence, mean = machines(n, rho)
    at = n - 1 - k if at is None else at
    return moved(mean, tokens, at) / moved(recurrence, tokens, at)


def formula(n: Any, k: Any, rho: Any) -> Any:
    return 1 / (n * rho**k)


@right("reach")
def reach_plain(n: Any, k: Any, rho: Any) -> Any:
    return formula(n, k, rho), measure(n, k, rho)


@right("reach")
def reach_rounded(n: Any, k: Any, rho: Any) -> Any:
    return float(f"{math.exp(-math.log(n) - k * math.log(rho)):.3g}"), round(measure(n, k, rho), 4)


@right("reach")
def reach_by_gradient(n: Any, k: Any, rho: Any) -> Any:
    """Derivatives by torch: the length of a row of each Jacobian."""
    U = rho * torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(1)))[0]
    tokens = torch.ones(n, 4, requires_grad=True)
    h = torch.zeros(4)
    for token in tokens:
        h = token + h @ U
    lengths = []
    for output in (tokens.mean(0), h):
        (gradient,) = torch.autograd.grad(output[0], tokens)
        lengths.append(gradient[-1 - k].norm())
    return torch.tensor(1 / n) / rho**k, lengths[0] / lengths[1]


def predicted(says: str, of: Callable[[Any, Any, Any], Any], name: str) -> None:
    """A wrong formula of n, k and rho beside the right measurement."""
    wrong("reach", f"Your prediction {says}", predicted=name)(
        lambda n, k, rho: (of(n, k, rho), measure(n, k, rho))
    )


def measured(says: str, of: Callable[[Any, Any, Any], Any], name: str) -> None:
    wrong("reach", f"Your measurement {says}", measured=name)(
        lambda n, k, rho: (formula(n, k, rho), of(n, k, rho))
    )


predicted("divides the recurrence", lambda n, k, rho: n * rho**k, "inverse")
predicted("takes one step too few", lambda n, k, rho: 1 / n / rho ** (k - 1), "k - 1")
predicted("takes one step too many", lambda n, k, rho: 1 / n / rho ** (k + 1), "k + 1")
predicted("lets the state pass", lambda n, k, rho: rho**-n / n, "n steps")
predicted("counts k from", lambda n, k, rho: rho ** (k - n + 1) / n, "k from the start")
predicted("lets the state take one", lambda n, k, rho: 1 / (n * rho), "one step")
predicted("multiplies rho by k", lambda n, k, rho: 1 / (n * k * rho), "k times")
predicted("shares attention's weight among k tokens", lambda n, k, rho: rho**-k / k, "k tokens")
predicted(
    "shares attention's weight among k + 1", lambda n, k, rho: rho**-k / (k + 1), "k + 1 tokens"
)
predicted("gives each token", lambda n, k, rho: rho**-k, "summed")
predicted("is that of the rec", lambda n, k, rho: rho**k, "recurrence")
predicted("is that of att", lambda n, k, rho: 1 / n, "attention")
predicted("multiplies the two", lambda n, k, rho: rho**k / n, "product")
predicted("subtracts", lambda n, k, rho: 1 / n - rho**k, "difference")
measured("divides the recurrence", lambda n, k, rho: 1 / measure(n, k, rho), "inverse")
measured("takes one step too few", lambda n, k, rho: measure(n, k, rho, at=n - k), "k - 1")
measured("takes one step too many", lambda n, k, rho: measure(n, k, rho, at=n - k - 2), "k + 1")
measured("counts k from", lambda n, k, rho: measure(n, k, rho, at=k), "k from the start")


@wrong("reach", "Your measurement gives each token", measured="summed")
def reach_summed(n: Any, k: Any, rho: Any) -> Any:
    tokens, recurrence, _ = machines(n, rho)
    moves = [moved(f, tokens, n - 1 - k) for f in (lambda t: t.sum(axis=0), recurrence)]
    return formula(n, k, rho), moves[0] / moves[1]


@wrong("reach", "Your measurement shares attention's weight among k + 1", measured="k + 1 tokens")
def reach_dilution_of_the_end(n: Any, k: Any, rho: Any) -> Any:
    """Only the changed token and those behind it are kept."""
    return formula(n, k, rho), measure(k + 1, k, rho)


def combined(says: str, of: Callable[[Any, Any], Any], name: str) -> None:
    """of(how far attention's output moves, how far the recurrence's)."""

    def fn(n: Any, k: Any, rho: Any) -> Any:
        tokens, recurrence, mean = machines(n, rho)
        moves = [moved(machine, tokens, n - 1 - k) for machine in (mean, recurrence)]
        return formula(n, k, rho), of(*moves)

    wrong("reach", f"Your measurement {says}", measured=name)(fn)


combined("is that of the recurrence", lambda attention, recurrence: recurrence, "recurrence")
combined("is that of attention", lambda attention, recurrence: attention, "attention")
combined("multiplies", lambda attention, recurrence: attention * recurrence, "product")
combined("subtracts", lambda attention, recurrence: attention - recurrence, "difference")


@wrong("reach", "Prediction and measurement agree", both="inverse")
def reach_upside_down(n: Any, k: Any, rho: Any) -> Any:
    return n * rho**k, 1 / measure(n, k, rho)


@wrong(
    "reach",
    "(1) Your prediction takes one step too many",
    "(2) Your measurement takes one step too few",
    predicted="k + 1",
    measured="k - 1",
)
def reach_off_by_one_twice(n: Any, k: Any, rho: Any) -> Any:
    return formula(n, k + 1, rho), measure(n, k, rho, at=-k)
