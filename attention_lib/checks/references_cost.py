"""Reference functions of chapter 5; keyword-only settings make known mistakes, the defaults are right.

Independent of the library on purpose: a check must not share its faults.
"""

from math import inf, sqrt

import numpy as np

from .engine import Array


def absorb_block(
    m: float,
    l: float,  # noqa: E741
    o: Array,
    scores: Array,
    values: Array,
    *,
    maximum: str = "of both",
    old: str = "rescaled",
    block: str = "shifted",
    division: str = "none",
    hidden: str = "nothing",
    output: str = "m, l, o",
) -> tuple[Array, ...]:
    """Running maximum m, sum l and output o (d_v,) after a block's scores (S,) and values (S, d_v).

    Source: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", algorithm 3.
    """
    best = float(scores.max())
    if best == -inf and hidden != "unguarded":
        start = 0.0 if hidden == "0" and m == -inf else m
        o = o / l if division == "always" else o
        return _arranged(start, l, o, output)
    new = {"block": best, "old": m, "none": m}.get(maximum, max(m, best))
    if maximum in ("old", "none", "none, tracked"):
        old = "not rescaled"
    of_l, of_o = _factors(old, m, best, new)
    point = {"none": 0.0, "none, tracked": 0.0}.get(maximum, new)
    point = {"own maximum": best, "not shifted": 0.0, "old maximum": m}.get(block, point)
    weights = scores - point if block == "no exp" else np.exp(scores - point)
    if block == "normalised":
        weights = weights / weights.sum()
    added_l, added_o = weights.sum(), weights @ values
    if block == "unweighted":
        added_o = values.sum(axis=0)
    if block == "rescaled":
        added_l, added_o = of_l * added_l, of_o * added_o
    new_l = of_l * l + added_l
    match division:
        case "every block" | "always":
            new_o = (of_o * o + added_o) / new_l
        case "kept":
            new_o = (of_o * l * o + added_o) / new_l
        case "average":
            new_o = (o + added_o / weights.sum()) / 2
        case "average of outputs":
            new_o = (o / l + added_o / weights.sum()) / 2
        case _:
            new_o = of_o * o + added_o
    return _arranged(m if output == "old m" else new, new_l, new_o, output)


def _factors(old: str, m: float, best: float, new: float) -> tuple[Array, Array]:
    """What the old sum and the old output are multiplied by."""
    factor: Array = np.exp(m - new)
    one, none = np.ones(()), np.zeros(())
    match old:
        case "o not rescaled":
            return factor, one
        case "l not rescaled":
            return one, factor
        case "not rescaled":
            return one, one
        case "inverse":
            return np.exp(new - m), np.exp(new - m)
        case "twice":
            return factor**2, factor**2
        case "o twice":
            return factor, factor**2
        case "block's factor":
            return np.exp(best - new), np.exp(best - new)
        case "no exp":
            return m - new + none, m - new + none
        case "forgotten":
            return none, none
        case "l forgotten":
            return none, factor
        case "o forgotten":
            return factor, none
    return factor, factor


def _arranged(m: float, l: Array | float, o: Array, output: str) -> tuple[Array, ...]:  # noqa: E741
    named = {"m": np.asarray(m), "l": np.asarray(l), "o": o}
    return tuple(named[name] for name in (output if "," in output else "m, l, o").split(", "))


def window_mask(
    T: int,
    S: int,
    window: int,
    *,
    edges: str = "i - w < j <= i",
    align: str = "lower-right",
    size: str = "T, S",
    output: str = "booleans",
) -> Array:
    """True where one of the T newest of S tokens may look: at itself and window - 1 before it."""
    T, S = {"S, T": (S, T), "S, S": (S, S), "T, T": (T, T)}.get(size, (T, S))
    first = {"upper-left": 0, "T - S": T - S}.get(align, S - T)
    i, j = np.arange(T)[:, None] + first, np.arange(S)
    w = window
    mask: Array = {
        "i - w <= j <= i": (i - w <= j) & (j <= i),
        "i - w + 1 < j <= i": (i - w + 1 < j) & (j <= i),
        "i - w <= j < i": (i - w <= j) & (j < i),
        "i - w < j < i": (i - w < j) & (j < i),
        "i - w < j <= i + 1": (i - w < j) & (j <= i + 1),
        "j <= i": j <= i,
        "i - w < j": i - w < j,
        "i - w <= j": i - w <= j,
        "|i - j| < w": abs(i - j) < w,
        "|i - j| <= w": abs(i - j) <= w,
        "|i - j| <= w / 2": abs(i - j) <= w // 2,
        "i <= j < i + w": (i <= j) & (j < i + w),
        "j <= i - w": j <= i - w,
        "blocks": (i // w == j // w) & (j <= i),
        "every w-th": ((i - j) % w == 0) & (j <= i),
        "first w": (j < w) & (j <= i),
    }.get(edges, (i - w < j) & (j <= i))
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


def linear_step(
    q_t: Array,
    k_t: Array,
    v_t: Array,
    state: Array,
    total: Array,
    *,
    feature: str = "elu + 1",
    roles: str = "q, k, v",
    write: str = "added",
    reads: str = "after",
    divide: str = "phi(q)·total",
    output: str = "output, state, total",
) -> tuple[Array, ...]:
    """One token's q_t, k_t (d_k,), v_t (d_v,), the state (d_k, d_v) and total (d_k,) before it.

    Returns its output (d_v,) and the new state and total.
    Source: Katharopoulos et al. 2020, equations 16 to 20.
    """
    given = {"q": q_t, "k": k_t, "v": v_t}
    q, k, v = (given[role] for role in roles.split(", "))
    root = sqrt(len(q))
    phi_q = _phi(q / root if feature == "scaled q" else q, feature.removesuffix(" on q"))
    phi_k = _phi(k, feature.removesuffix(" on k"))
    new_state, new_total = _written(state, total, k, phi_k, v, write)
    read_state = state if reads in ("before", "old state") else new_state
    read_total = total if reads in ("before", "old total") else new_total
    if write == "transposed throughout" or reads == "transposed":
        read_state = read_state.T
    numerator: Array = phi_q @ read_state
    out: Array
    match divide:
        case "none":
            out = numerator
        case "sqrt(d_k)":
            out = numerator / root
        case "sum":
            out = numerator / read_total.sum()
        case "phi(q)":
            out = numerator / phi_q.sum()
        case "phi(k)·total":
            out = numerator / (phi_k @ read_total)
        case "phi(q)·phi(k)":
            out = numerator / (phi_q @ phi_k)
        case "size":
            out = numerator / sqrt(read_total @ read_total)
        case "twice":
            out = numerator / (phi_q @ read_total) / root
        case _:
            out = numerator / (phi_q @ read_total)
    if write == "lost":
        new_state, new_total = state, total
    named = {"output": v if reads == "newest" else out, "state": new_state, "total": new_total}
    return tuple(named[name] for name in output.split(", "))


def _phi(x: Array, feature: str) -> Array:
    """elu(x) + 1, which is x + 1 above 0 and exp(x) below."""
    match feature:
        case "none":
            return x
        case "exp":
            return np.exp(x)
        case "relu":
            return np.maximum(x, 0)
        case "relu + 1":
            return np.maximum(x, 0) + 1
        case "elu":
            return np.where(x > 0, x, np.exp(x) - 1)
        case "no + 1 above 0":
            return np.where(x > 0, x, np.exp(x))
        case "exchanged":
            return np.where(x > 0, np.exp(x), x + 1)
        case "softplus":
            return np.log1p(np.exp(x))
        case "sigmoid":
            return 1 / (1 + np.exp(-x))
        case "softmax":
            return np.exp(x) / np.exp(x).sum()
    return np.where(x > 0, x + 1, np.exp(x))


def _written(
    state: Array, total: Array, k: Array, phi_k: Array, v: Array, write: str
) -> tuple[Array, Array]:
    match write:
        case "transposed" | "transposed throughout":
            return state + np.outer(v, phi_k), total + phi_k
        case "replaced":
            return np.outer(phi_k, v), phi_k
        case "state replaced":
            return np.outer(phi_k, v), total + phi_k
        case "no state":
            return state, total + phi_k
        case "no total":
            return state + np.outer(phi_k, v), total
        case "not written":
            return state, total
        case "v alone":
            return state + v, total + phi_k
        case "k in total":
            return state + np.outer(phi_k, v), total + k
        case "counted":
            return state + np.outer(phi_k, v), total + 1
    return state + np.outer(phi_k, v), total + phi_k
