"""Reference functions of chapter 3; keyword-only settings make known mistakes, the defaults are right.

Independent of the library on purpose: a check must not share its faults.
"""

from math import sqrt
from typing import Any

import numpy as np

from .engine import Array
from .references import scaled_dot_product_attention


def causal_mask(
    T: int,
    S: int,
    *,
    order: str = "j <= i",
    align: str = "lower-right",
    size: str = "T, S",
    output: str = "booleans",
) -> Array:
    """True where one of the T newest of S tokens may look at a token: itself or an earlier one."""
    T, S = {"S, T": (S, T), "S, S": (S, S), "T, T": (T, T)}.get(size, (T, S))
    first = {"upper-left": 0, "T - S": T - S}.get(align, S - T)
    i, j = np.arange(T)[:, None] + first, np.arange(S)
    mask: Array = {
        "j < i": j < i,
        "j <= i + 1": j <= i + 1,
        "j >= i": j >= i,
        "j > i": j > i,
        "j == i": j == i,
        "all": np.ones((T, S), dtype=bool),
    }.get(order, j <= i)
    match output:
        case "numbers":
            return np.where(mask, 1.0, 0.0)
        case "added":
            return np.where(mask, 0.0, -np.inf)
        case "transposed":
            return mask.T
    return mask


def rnn_step(
    x: Array,
    h: Array,
    W: Array,
    U: Array,
    b: Array,
    *,
    activation: str = "tanh",
    bias: str = "inside",
    matrices: str = "W, U",
    state: str = "used",
) -> Array:
    """x (d_in,), h (d_h,), W (d_in, d_h), U (d_h, d_h), b (d_h,): the next state (d_h,).

    Source: Elman 1990, "Finding structure in time".
    """
    W, U = {
        "U, W": (U, W),
        "W, W": (W, W),
        "W, U transposed": (W, U.T),
        "both transposed": (W.T, U.T),
    }.get(matrices, (W, U))
    from_x, from_h = x @ W, h if state == "no U" else h @ U
    inside = {"none": 0 * b, "outside": 0 * b, "twice": 2 * b}.get(bias, b)
    total = {
        "ignored": from_x,
        "input ignored": from_h,
        "product": from_x * from_h,
    }.get(state, from_x + from_h)
    new: Array
    match activation:
        case "none":
            new = total + inside
        case "sigmoid":
            new = 1 / (1 + np.exp(-total - inside))
        case "relu":
            new = np.maximum(total + inside, 0)
        case "early":
            new = np.tanh(from_x) + from_h + inside
        case _:
            new = np.tanh(total + inside)
    return new + b if bias == "outside" else new


def run_rnn(
    xs: Array,
    h0: Array,
    W: Array,
    U: Array,
    b: Array,
    *,
    course: str = "carried",
    output: str = "all",
    **settings: Any,
) -> Array:
    """xs (T, d_in), h0 (d_h,) and the step's parameters: the state after every input, (T, d_h)."""
    h = 0 * h0 if course == "from zero" else h0
    states = [h]
    for x in xs[::-1] if course in ("backward", "backward, put back") else xs:
        new = rnn_step(x, h, W, U, b, **settings)
        states.append(new)
        h = h0 if course == "not carried" else new
    if course == "backward, put back":
        states[1:] = states[:0:-1]
    match output:
        case "last":
            return states[-1]
        case "with h0":
            return np.stack(states)
        case "before":
            return np.stack(states[:-1])
        case "one array":
            return np.stack(states[-1:] * len(xs))
    return np.stack(states[1:])


def additive_scores(
    query: Array,
    keys: Array,
    W_q: Array,
    W_k: Array,
    v: Array,
    *,
    activation: str = "tanh",
    combine: str = "sum",
    matrices: str = "W_q, W_k",
    vector: str = "v",
    scale: str = "none",
    output: str = "scores",
) -> Array:
    """query (d_q,), keys (S, d_k), W_q (d_q, d_a), W_k (d_k, d_a), v (d_a,): the scores (S,).

    Source: Bahdanau et al. 2015, "Neural machine translation", section A.1.2.
    """
    first, second = {
        "W_k, W_q": (W_k, W_q),
        "W_q, W_q": (W_q, W_q),
        "W_k, W_k": (W_k, W_k),
    }.get(matrices, (W_q, W_k))
    a, b = query @ first, keys @ second
    if activation == "each":
        a, b = np.tanh(a), np.tanh(b)
    joined = {"product": a * b, "difference": a - b, "no query": b}.get(combine, a + b)
    match activation:
        case "tanh":
            joined = np.tanh(joined)
        case "sigmoid":
            joined = 1 / (1 + np.exp(-joined))
    scores: Array = {
        "ones": joined.sum(axis=-1),
        "mean": joined.mean(axis=-1),
        "not summed": joined * v,
    }.get(vector, joined @ v)
    if activation == "late":
        scores = np.tanh(scores)
    if combine == "dot":
        scores = b @ a
    scores = scores / {"d_a": sqrt(len(v)), "d_k": sqrt(keys.shape[-1])}.get(scale, 1.0)
    if output == "weights":
        weights: Array = np.exp(scores - scores.max())
        return weights / weights.sum()
    return scores


def cached_step(
    q_t: Array,
    k_t: Array,
    v_t: Array,
    cache_k: Array,
    cache_v: Array,
    *,
    append: str = "end",
    reads: str = "all",
    roles: str = "q, k, v",
    output: str = "sum",
    **settings: Any,
) -> tuple[Array, ...]:
    """One token's q_t (d_k,), k_t (d_k,), v_t (d_v,), and cached keys (S, d_k), values (S, d_v).

    Returns its output (d_v,), the keys (S + 1, d_k) and the values (S + 1, d_v).
    """
    if roles == "stored exchanged":
        k_t, v_t, roles = v_t, k_t, "q, k, v"
    keys, values = _appended(cache_k, k_t, append), _appended(cache_v, v_t, append)
    seen_k, seen_v = {
        "cache": (cache_k, cache_v),
        "first": (keys[:1], values[:1]),
        "newest": (k_t[None], v_t[None]),
    }.get(reads, (keys, values))
    query = k_t if reads == "k_t" else q_t
    kind = "weights" if output == "weights" else "sum"
    out: Array = scaled_dot_product_attention(
        query[None], seen_k, seen_v, roles=roles, output=kind, **settings
    )[0]
    if append == "lost":
        keys, values = cache_k, cache_v
    return (out, values, keys) if output == "values first" else (out, keys, values)


def _appended(cache: Array, new: Array, append: str) -> Array:
    rows = {
        "front": [new[None], cache],
        "replaced": [new[None]],
        "oldest dropped": [cache[1:], new[None]],
        "nothing": [cache],
    }.get(append, [cache, new[None]])
    return np.concatenate(rows)
