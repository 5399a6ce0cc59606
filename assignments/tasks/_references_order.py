"""Reference functions of the assignment `order`; keyword-only settings make known mistakes."""

from math import pi, sqrt

import numpy as np

from attention_lib.checks.engine import Array


def prefix_mask(
    T: int,
    S: int,
    prefix: int,
    *,
    seen: str = "prefix or past",
    past: str = "j <= i",
    align: str = "lower-right",
    size: str = "T, S",
    output: str = "booleans",
) -> Array:
    """True where one of the T newest of S tokens may look: at the prefix, and at what came before.

    Source: Raffel et al. 2020, figure 3.
    """
    T, S = {"S, T": (S, T), "S, S": (S, S), "T, T": (T, T)}.get(size, (T, S))
    row = np.arange(T)[:, None]
    i, j = row + {"upper-left": 0, "T - S": T - S}.get(align, S - T), np.arange(S)
    earlier = {"j < i": j < i, "j <= i + 1": j <= i + 1, "j >= i": j >= i, "j > i": j > i}.get(
        past, j <= i
    )
    mask: Array = {
        "no prefix": earlier,
        "prefix alone": (j < prefix) & (i == i),
        "prefix and past": (j < prefix) & earlier,
        "all": (j < S) & (i == i),
        "one more": (j <= prefix) | earlier,
        "one fewer": (j < prefix - 1) | earlier,
        "last": (j >= S - prefix) | earlier,
        "hidden": (j >= prefix) & earlier,
        "apart": ((j < prefix) | earlier) & ((i < prefix) == (j < prefix)),
        "queries of the prefix": (i < prefix) | earlier,
        "first rows": (row < prefix) | earlier,
        "from the first query": (j < S - T + prefix) | earlier,
        "ahead": j <= i + prefix,
    }.get(seen, (j < prefix) | earlier)
    match output:
        case "inverted":
            return ~mask
        case "numbers":
            return np.where(mask, 1.0, 0.0)
        case "added":
            return np.where(mask, 0.0, -np.inf)
        case "transposed":
            return mask.T
    return mask


def retention(
    q: Array,
    k: Array,
    v: Array,
    gamma: float,
    *,
    decay: str = "i - j",
    seen: str = "j <= i",
    normalised: str = "no",
    scale: str = "none",
    roles: str = "q, k, v",
    output: str = "sum",
) -> Array:
    """q, k (T, d_k), v (T, d_v): sums over the past of gamma^(i - j) · q_i·k_j · v_j, (T, d_v).

    Source: Sun et al. 2023, "Retentive network", equation 5, without its rotation.
    """
    given = {"q": q, "k": k, "v": v}
    q, k, v = (given[role] for role in roles.split(", "))
    i, j = np.arange(len(q))[:, None], np.arange(len(k))
    visible = {"j < i": j < i, "j <= i + 1": j <= i + 1, "j >= i": j >= i}.get(seen, j <= i)
    if seen.startswith("all"):
        visible = np.ones_like(visible)
    steps = {"all": abs(i - j), "j >= i": j - i}.get(seen, i - j)
    factors = np.where(visible, _decayed(decay, gamma, steps, i, j), 0.0)
    scores = q @ k.T * {"1/sqrt(d_k)": 1 / sqrt(q.shape[1]), "1/d_k": 1 / q.shape[1]}.get(scale, 1)
    weights: Array = scores + factors if decay == "added" else scores * factors
    if decay == "added":
        weights = np.where(visible, weights, 0.0)
    if seen.startswith("-inf"):
        hidden = {"-inf times 0": np.nan, "-inf in the decays": -np.inf * scores}.get(seen, -np.inf)
        weights = np.where(visible, weights, hidden)
    weights = _normalised(normalised, weights, scores, factors, visible)
    match output:
        case "weights":
            return weights
        case "transposed":
            return weights.T @ v
    result: Array = weights @ v
    return result


def _decayed(decay: str, gamma: float, steps: Array, i: Array, j: Array) -> Array:
    """What a score counts, for each pair, `steps` apart."""
    factors: Array = {
        "none": np.ones(steps.shape),
        "constant": np.where(steps == 0, 1.0, gamma),
        "product": gamma * steps,
        "exp": np.exp(-gamma * steps),
        "1 - gamma": (1 - gamma) ** steps,
        "growing": gamma**-steps,
        "i - j + 1": gamma ** (steps + 1),
        "twice": gamma ** (2 * steps),
        "j": gamma ** (j + 0 * steps),
        "i": gamma ** (i + 0 * steps),
    }.get(decay, gamma**steps)
    return factors


def _normalised(how: str, weights: Array, scores: Array, factors: Array, visible: Array) -> Array:
    """The weights after a softmax or a division that retention does not have."""
    hidden = np.where(visible, scores, -np.inf)
    match how:
        case "softmax, then decay":
            return _softmax(hidden) * factors
        case "softmax of all, then decay":
            return _softmax(scores) * factors
        case "softmax of decayed":
            return _softmax(np.where(visible, weights, -np.inf))
        case "softmax over queries":
            return _softmax(np.where(visible, weights, -np.inf), 0)
        case "softmax with zeros":
            return _softmax(weights)
        case "exp":
            return np.exp(hidden) * factors
        case "by sum":
            return weights / weights.sum(axis=1, keepdims=True)
        case "by decays":
            return weights / factors.sum(axis=1, keepdims=True)
        case "by root of decays":
            return weights / np.sqrt(factors.sum(axis=1, keepdims=True))
    return weights


def _softmax(scores: Array, axis: int = -1) -> Array:
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
    shares: Array = weights / weights.sum(axis=axis, keepdims=True)
    return shares


def rotate_part(
    x: Array,
    positions: Array,
    width: int,
    base: float,
    *,
    part: str = "first",
    rest: str = "kept",
    pairing: str = "halves",
    turn: str = "forward",
    counting: str = "given",
    frequency: str = "2i/width",
) -> Array:
    """x (T, d) whose columns i and i + width/2 turn by position · base^(-2i/width), for i < width/2.

    The columns from `width` on stay. Source: Black et al. 2022, "GPT-NeoX-20B".
    """
    T, d = x.shape
    if part == "width pairs" and 2 * width > d:
        raise ValueError("too few columns")
    chosen = {
        "last": np.arange(d - width, d),
        "rest": np.arange(width, d),
        "all": np.arange(d),
        "of each half": np.r_[: width // 2, d // 2 : d // 2 + width // 2],
        "width pairs": np.arange(2 * width),
    }.get(part, np.arange(width))
    places = {
        "ignored": np.zeros(T),
        "counted": np.arange(T),
        "from 1": positions + 1,
        "from the first": positions - positions[0],
    }.get(counting, positions)

    w = len(chosen)
    column = np.arange(w)
    halved = pairing in ("halves", "halves, neighbours' angles")
    partner = (column + w // 2) % w if halved else column ^ 1
    by_halves = pairing in ("halves", "neighbours, halves' angles")
    pair = column % (w // 2) if by_halves else column // 2
    angles = places[:, None] * _frequencies(frequency, pair, w, d, base)
    turned = x.copy()
    turned[:, chosen] = _turned(x[:, chosen], np.cos(angles), np.sin(angles), partner, turn)
    match rest:
        case "dropped":
            return turned[:, :width]
        case "zeros":
            turned[:, width:] = 0
        case "in front":
            return np.hstack([turned[:, width:], turned[:, :width]])
        case "added":
            return x + turned
    return turned


def _frequencies(frequency: str, pair: Array, width: int, d: int, base: float) -> Array:
    """The angle of each column's pair at position 1."""
    exponent = {
        "i/width": -pair / width,
        "4i/width": -4 * pair / width,
        "2i/d": -2 * pair / d,
        "from 1": -2 * (pair + 1) / width,
        "growing": 2 * pair / width,
        "none": 0.0 * pair,
        "floored": -2 * pair // width,
    }.get(frequency, -2 * pair / width)
    unit = pi / 180 if frequency == "degrees" else 1.0
    powers: Array = (10000.0 if frequency == "base 10000" else base) ** exponent
    return powers * unit


def _turned(x: Array, cos: Array, sin: Array, partner: Array, turn: str) -> Array:
    first = partner > np.arange(len(partner))
    sign, other = np.where(first, -1.0, 1.0), x[:, partner]
    match turn:
        case "backward":
            return x * cos - sign * other * sin
        case "both plus":
            return x * cos + other * sin
        case "both minus":
            return x * cos - other * sin
        case "swapped":
            return x * sin + sign * other * cos
    turned: Array = x * cos + sign * other * sin
    if turn == "overwritten":
        return np.where(first, turned, x * cos + turned[:, partner] * sin)
    return turned


def reach(
    n: int, k: int, rho: float, *, both: str = "", predicted: str = "", measured: str = ""
) -> tuple[Array, ...]:
    """How much more strongly attention than a linear recurrence depends on the token k steps back.

    n tokens; the recurrence multiplies its state by rho in every step, attention gives each token
    the weight 1/n. Returns the ratio twice: by formula, and as it is found by changing the token.
    """
    ways = {
        "": 1 / n / rho**k,
        "inverse": n * rho**k,
        "k - 1": 1 / n / rho ** (k - 1),
        "k + 1": 1 / n / rho ** (k + 1),
        "n steps": 1 / n / rho**n,
        "k from the start": 1 / n / rho ** (n - 1 - k),
        "one step": 1 / n / rho,
        "k times": 1 / n / (rho * k),
        "k tokens": 1 / k / rho**k,
        "k + 1 tokens": 1 / (k + 1) / rho**k,
        "summed": 1 / rho**k,
        "recurrence": rho**k,
        "attention": 1 / n,
        "product": rho**k / n,
        "difference": 1 / n - rho**k,
    }
    return np.asarray(ways[both or predicted]), np.asarray(ways[both or measured])
