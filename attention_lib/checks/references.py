"""Reference functions whose keyword-only settings make known mistakes; the defaults are right.

Independent of the library on purpose: a check must not share its faults.
"""

from math import pi, sqrt
from typing import Any

import numpy as np

from .engine import Array

BASE = 10000.0


def attend_one(query: Array, keys: Array, values: Array, **settings: Any) -> Array:
    """One query (d_k,) among keys (S, d_k) and values (S, d_v): the output (d_v,)."""
    output: Array = scaled_dot_product_attention(query[None], keys, values, **settings)[0]
    return output


def cross_attention(
    x: Array,
    context: Array,
    W_Q: Array,
    W_K: Array,
    W_V: Array,
    *,
    sources: str = "x, context, context",
    projections: str = "Q, K, V",
    output: str = "sum",
    **settings: Any,
) -> Array:
    """Queries from x (T, d), keys and values from context (S, d): the output (T, d_v)."""
    origin = {"x": x, "context": context, "both": np.concatenate([x, context])}
    matrix = {"Q": W_Q, "K": W_K, "V": W_V, "none": np.eye(x.shape[-1])}
    q, k, v = (
        origin[source] @ matrix[projection]
        for source, projection in zip(sources.split(", "), projections.split(", "), strict=True)
    )
    result = scaled_dot_product_attention(q, k, v, d_model=x.shape[-1], output=output, **settings)
    return result + x if output == "residual" else result


def scaled_dot_product_attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    *,
    d_model: int = 1,
    roles: str = "q, k, v",
    left_out: str = "nothing",
    compare: str = "product",
    scale: str = "1/sqrt(d_k)",
    masking: str = "before",
    softmax: str = "keys",
    output: str = "sum",
) -> Array:
    """q (..., T, d_k), k (..., S, d_k), v (..., S, d_v): the output (..., T, d_v).

    mask (..., T, S): True = may look.
    """
    given = {"q": q, "k": k, "v": v}
    q, k, v = (given[role] for role in roles.split(", "))
    if left_out == "first key":
        k, v = k[..., 1:, :], v[..., 1:, :]
        mask = None if mask is None else mask[..., 1:]
    scores = _compare(q, k, compare) * _factor(scale, q, k, v, d_model)
    if scale == "1/largest":
        scores = scores / scores.max(axis=-1, keepdims=True)
    if mask is not None:
        scores = _hide(scores, mask, masking)
    weights = _weigh(scores, softmax)
    if mask is not None and masking == "after":
        weights = weights * mask
    if scale == "after":
        weights = weights / sqrt(q.shape[-1])
    result: Array
    match output:
        case "scores":
            result = scores
        case "weights":
            result = weights
        case "transposed":
            result = np.swapaxes(weights, -1, -2) @ v
        case "not summed":
            result = weights[..., None] * v[..., None, :, :]
        case "mean":
            result = weights @ v / v.shape[-2]
        case _:
            result = weights @ v
    return result


def _compare(q: Array, k: Array, compare: str) -> Array:
    products: Array = q @ np.swapaxes(k, -1, -2)
    if compare == "product":
        return products
    squares_q, squares_k = ((x**2).sum(axis=-1) for x in (q, k))
    if compare == "cosine":
        return products / np.sqrt(squares_q[..., :, None] * squares_k[..., None, :])
    apart = squares_q[..., :, None] + squares_k[..., None, :] - 2 * products
    return -apart if compare == "squared distance" else -np.sqrt(np.maximum(apart, 0))


def _factor(scale: str, q: Array, k: Array, v: Array, d_model: int) -> float:
    d_k = q.shape[-1]
    factors: dict[str, float] = {
        "none": 1.0,
        "after": 1.0,
        "1/d_k": 1 / d_k,
        "1/largest": 1.0,
        "1/2": 0.5,
        "1/8": 0.125,
        "1/(2 sqrt(d_k))": 0.5 / sqrt(d_k),
        "*sqrt(d_k)": sqrt(d_k),
        "1/sqrt(S)": 1 / sqrt(k.shape[-2]),
        "1/sqrt(T)": 1 / sqrt(q.shape[-2]),
        "1/sqrt(d_v)": 1 / sqrt(v.shape[-1]),
        "1/sqrt(d_model)": 1 / sqrt(d_model),
        "1/sqrt(axis 1)": 1 / sqrt(q.shape[1]),
    }
    return factors.get(scale, 1 / sqrt(d_k))


def _hide(scores: Array, mask: Array, masking: str) -> Array:
    match masking:
        case "before":
            return np.where(mask, scores, -np.inf)
        case "inverted":
            return np.where(mask, -np.inf, scores)
        case "transposed":
            return np.where(np.swapaxes(mask, -1, -2), scores, -np.inf)
        case "zeroed":
            return np.where(mask, scores, 0.0)
        case "added":
            return np.where(mask, scores + 1, scores)
    return scores


def _weigh(scores: Array, softmax: str) -> Array:
    best = scores.max(axis=-1, keepdims=True)
    weights: Array
    match softmax:
        case "none":
            weights = scores
        case "no exp":
            weights = scores / scores.sum(axis=-1, keepdims=True)
        case "sigmoid":
            weights = 1 / (1 + np.exp(-scores))
        case "no sum":
            weights = np.exp(scores)
        case "no sum, shifted":
            weights = np.exp(scores - best)
        case "largest":
            weights = np.where(scores == best, 1.0, 0.0)
        case "average":
            weights = np.where(np.isfinite(scores), 1.0, 0.0)
            weights /= weights.sum(axis=-1, keepdims=True)
        case "causal" | "causal, upper left":
            T, S = scores.shape[-2:]
            weights = np.exp(scores - best) * np.tri(T, S, S - T if softmax == "causal" else 0)
            sums = weights.sum(axis=-1, keepdims=True)
            weights = weights / np.where(sums > 0, sums, 1.0)  # who sees nothing gets zeros
        case _:
            axes: dict[str, int | tuple[int, int] | None] = {
                "queries": -2,
                "heads": 0,
                "axis 1": 1,
                "matrix": (-2, -1),
                "everything": None,
            }
            weights = np.exp(scores - scores.max())
            weights /= weights.sum(axis=axes.get(softmax, -1), keepdims=True)
    return weights


def rotate(
    x: Array,
    positions: Array,
    *,
    pairing: str = "halves",
    turn: str = "forward",
    counting: str = "given",
    frequency: str = "2i/d",
) -> Array:
    """x (T, d) with columns i and i + d/2 turned by the angle position * 10000^(-2i/d).

    positions (T,), d even. Source: Su et al. 2021, "RoFormer", equations 14 and 15.
    """
    T, d = x.shape
    column = np.arange(d)
    halves_paired = pairing in ("halves", "halves, neighbours' angles", "dealt out")
    halves_angled = pairing in ("halves", "neighbours, halves' angles", "dealt out")
    partner = (column + d // 2) % d if halves_paired else column ^ 1
    if turn == "added":  # the table of sines and cosines is laid out by neighbours
        halves_angled = False
    pair = column % (d // 2) if halves_angled else column // 2

    places = {
        "ignored": np.zeros(T),
        "counted": np.arange(T),
        "from 1": positions + 1,
        "from the first": positions - positions[0],
    }.get(counting, positions)
    exponent = {
        "i/d": -pair / d,
        "4i/d": -4 * pair / d,
        "from 1": -2 * (pair + 1) / d,
        "growing": 2 * pair / d,
        "no base": 0.0 * pair,
        "floored": -2 * pair // d,
    }.get(frequency, -2 * pair / d)
    base = 1000.0 if frequency == "base 1000" else BASE
    unit = {"degrees": pi / 180, "to degrees": 180 / pi, "turns": 2 * pi}.get(frequency, 1.0)
    angles = places[:, None] * base**exponent * unit

    turned = _turn(x, np.cos(angles), np.sin(angles), partner, turn)
    interleaved = column.reshape(2, d // 2).T.ravel()
    match pairing:
        case "dealt out":
            turned = turned[:, interleaved]
        case "gathered":
            turned = turned[:, np.argsort(interleaved)]
    return turned


def _turn(x: Array, cos: Array, sin: Array, partner: Array, turn: str) -> Array:
    first = partner > np.arange(len(partner))
    sign = np.where(first, -1.0, 1.0)
    other = x[:, partner]
    turned: Array
    match turn:
        case "backward":
            turned = x * cos - sign * other * sin
        case "both plus":
            turned = x * cos + other * sin
        case "both minus":
            turned = x * cos - other * sin
        case "swapped":
            turned = x * sin + sign * other * cos
        case "added":
            turned = x + np.where(np.arange(x.shape[-1]) % 2 == 0, sin, cos)
        case "added, by halves":
            turned = x + np.where(first, sin, cos)
        case _:
            turned = x * cos + sign * other * sin
    if turn == "overwritten":
        turned = np.where(first, turned, x * cos + turned[:, partner] * sin)
    return turned
