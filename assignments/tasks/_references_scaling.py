"""Reference functions of `scaling`; keyword-only settings make known mistakes, the defaults are right."""

from math import sqrt
from typing import Any

import numpy as np

from attention_lib.checks.engine import Array
from attention_lib.checks.references import scaled_dot_product_attention


def cosine_attention(
    q: Array,
    k: Array,
    v: Array,
    tau: float,
    *,
    length: str = "of rows",
    temperature: str = "divided",
    roles: str = "q, k, v",
    **settings: Any,
) -> Array:
    """q (..., T, d_k), k (..., S, d_k), v (..., S, d_v), tau > 0: the output (..., T, d_v).

    Source: Liu et al. 2022, "Swin transformer V2", equation 2, without its bias.
    """
    given = {"q": q, "k": k, "v": v, "unit k": _unit(k, "of rows")}
    q, k, v = (given[role] for role in roles.split(", "))
    if length != "k alone":
        q = _unit(q, length)
    if length != "q alone":
        k = _unit(k, length)
    if length == "v too":
        v = _unit(v, length)
    root = sqrt(q.shape[-1])
    factor = {
        "ignored": 1.0,
        "multiplied": tau,
        "1/sqrt(tau)": tau**-0.5,
        "twice": tau**-2,
        "sqrt(d_k) too": 1 / (tau * root),
        "sqrt(d_k)": 1 / root,
        "after": 1.0,
    }.get(temperature, 1 / tau)
    output = scaled_dot_product_attention(factor * q, k, v, scale="none", **settings)
    return output / tau if temperature == "after" else output


def _unit(x: Array, length: str) -> Array:
    """x divided by a length that is, if right, that of each row."""
    if length == "none":
        return x
    if length in ("centred", "standardised"):
        x = x - x.mean(axis=-1, keepdims=True)
    squares = (x**2).sum(axis=-1, keepdims=True)
    lengths = {
        "squared": squares,
        "root of the length": squares**0.25,
        "absolute": np.abs(x).sum(axis=-1, keepdims=True),
        "largest": np.abs(x).max(axis=-1, keepdims=True),
        "standardised": np.sqrt(squares / x.shape[-1]),
        "of columns": np.sqrt((x**2).sum(axis=-2, keepdims=True)),
        "along axis 1": np.sqrt((x**2).sum(axis=1, keepdims=True)),
        "of everything": np.sqrt((x**2).sum()),
    }
    result: Array = x / lengths.get(length, np.sqrt(squares))
    return result


def weight_entropy(
    scores: Array,
    *,
    base: str = "2",
    hidden: str = "0",
    shift: str = "row",
    axis: str = "keys",
    form: str = "entropy",
) -> Array:
    """scores (..., T, S), -inf = hidden, some key seen: the entropy of each row's softmax in bits, (..., T)."""
    if hidden == "score 0":
        scores = np.where(np.isneginf(scores), 0.0, scores)
    along = {"queries": -2, "queries, throughout": -2, "everything": None}.get(axis, -1)
    best = scores.max(axis=along, keepdims=True)
    kind, _, dropped = shift.partition(", ")
    offset = {"none": 0.0, "everything": scores.max()}.get(kind, best)
    weights = np.exp(scores - offset)
    weights /= weights.sum(axis=along, keepdims=True)
    log = {"e": np.log, "10": np.log10}.get(base, np.log2)
    logs = log(weights)
    counted = weights > 0 if dropped else weights != 0  # NaN is neither
    counted = {"NaN": scores == scores, "NaN at 0": np.isfinite(scores)}.get(hidden, counted)
    terms: Array = np.where(counted, -weights * logs, 0.0)
    along = -2 if axis == "queries, throughout" else -1
    sums: Array = terms.sum(axis=along)
    match form:
        case "negative":
            return -sums
        case "mean":
            return terms.mean(axis=along)
        case "terms":
            return terms
        case "mean of rows":
            return sums.mean()
        case "all rows":
            return sums.sum()
        case "2^H":
            return 2**sums
        case "share":
            return sums / np.log2(scores.shape[-1])
        case "surprise":
            return -logs.max(axis=along)
        case "squares":
            return -log((weights**2).sum(axis=along))
        case "logarithms":
            return np.where(counted, -logs, 0.0).sum(axis=along)
        case "weights":
            return weights
    return sums


def softmax_gradient(
    w: Array,
    d_w: Array,
    scale: float,
    *,
    subtracted: str = "sum of w d_w",
    front: str = "w",
    factor: str = "scale",
    roles: str = "w, d_w",
    output: str = "gradient",
) -> Array:
    """w = softmax(scale * products) and d_w, both (..., T, S): the gradient at the products, (..., T, S).

    d_w: the gradient at the weights. Source: Dao et al. 2022, "FlashAttention", appendix B.2.
    """
    if roles == "softmax of w":
        w = np.exp(w) / np.exp(w).sum(axis=-1, keepdims=True)
    elif roles == "d_w, w":
        w, d_w = d_w, w
    multiplier = {
        "none": 1.0,
        "1/scale": 1 / scale,
        "scale^2": scale**2,
        "sqrt(scale)": sqrt(scale),
        "1/sqrt(S)": 1 / sqrt(w.shape[-1]),
    }.get(factor, scale)
    if output == "Jacobian":
        return multiplier * (w[..., None] * np.eye(w.shape[-1]) - w[..., None] * w[..., None, :])
    products = w * d_w
    taken: Array = {
        "nothing": np.zeros(()),
        "sum of d_w": d_w.sum(axis=-1, keepdims=True),
        "mean of d_w": d_w.mean(axis=-1, keepdims=True),
        "mean of w d_w": products.mean(axis=-1, keepdims=True),
        "added": -products.sum(axis=-1, keepdims=True),
        "over queries": products.sum(axis=-2, keepdims=True),
        "over everything": products.sum(),
        "own": products,
        "1": np.ones(()),
    }.get(subtracted, products.sum(axis=-1, keepdims=True))
    if factor == "first term":
        return w * (scale * d_w - taken)
    if factor == "second term":
        return w * (d_w - scale * taken)
    fronts = {"none": np.ones(()), "w^2": w**2, "w (1 - w)": w * (1 - w)}
    gradient: Array = fronts.get(front, w) * (d_w - taken)
    return multiplier * (-gradient if output == "negative" else gradient)


def spread(
    d_k: int,
    sigma_q: float,
    sigma_k: float,
    scale: float,
    queries: Array,
    keys: Array,
    *,
    prediction: str = "right",
    measurement: str = "right",
) -> tuple[Array, ...]:
    """The standard deviation of scale * q·k, by formula and over queries (T, d_k) and keys (S, d_k).

    Entries are independent, of mean 0 and standard deviation sigma_q or sigma_k. Source of the formula:
    Vaswani et al. 2017, footnote 4.
    """
    products = queries @ keys.T
    right, seen = scale * sigma_q * sigma_k * sqrt(d_k), scale * products.std()
    predicted = {
        "variance": right**2,
        "unscaled": right / scale,
        "divided": right / scale**2,
        "sqrt(scale)": right / sqrt(scale),
        "d_k": scale * sigma_q * sigma_k * d_k,
        "no d_k": scale * sigma_q * sigma_k,
        "1/sqrt(d_k)": sigma_q * sigma_k,
        "sigmas 1": scale * sqrt(d_k),
        "sigma_q alone": scale * sigma_q * sqrt(d_k),
        "sigma_k alone": scale * sigma_k * sqrt(d_k),
        "sum": scale * (sigma_q + sigma_k) * sqrt(d_k),
        "squares": scale * sigma_q**2 * sigma_k**2 * sqrt(d_k),
        "measured": seen,
    }.get(prediction, right)
    measured = {
        "variance": seen**2,
        "unscaled": products.std(),
        "divided": products.std() / scale,
        "1/sqrt(d_k)": products.std() / sqrt(d_k),
        "rows": scale * products.std(axis=1).mean(),
        "mean": scale * products.mean(),
        "size": scale * np.abs(products).mean(),
        "predicted": right,
    }.get(measurement, seen)
    return np.asarray(predicted), np.asarray(measured)
