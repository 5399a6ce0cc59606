"""Reference functions of chapter 2; keyword-only settings make known mistakes, the defaults are right.

Independent of the library on purpose: a check must not share its faults.
"""

from math import sqrt

import numpy as np

from .engine import Array

AXES = {"axis 0": 0, "axis 1": 1, "everything": None}


def stable_softmax(
    scores: Array,
    *,
    shift: str = "maximum",
    axis: str = "last",
    keepdims: str = "kept",
    exp: str = "e",
    total: str = "sum",
    output: str = "weights",
) -> Array:
    """scores (..., n): positive weights (..., n) that sum to 1 along the last axis."""
    along = AXES.get(axis, -1)
    offset = _offset(scores, shift, along, keep=keepdims not in ("max", "both"))
    shifted = scores / offset if shift == "divided" else scores - offset
    if shift == "clipped":
        shifted = np.clip(scores, -500, 500)
    powers = {"2": np.exp2(shifted), "none": shifted}.get(exp, np.exp(shifted))
    sums = powers.sum(axis=AXES.get(total, along), keepdims=keepdims not in ("sum", "both"))
    weights: Array
    match total:
        case "none":
            weights = powers
        case "mean":
            weights = powers / powers.mean(axis=along, keepdims=True)
        case "squares":
            weights = powers / np.sqrt((powers**2).sum(axis=along, keepdims=True))
        case "twice":
            weights = np.exp(powers / sums)
            weights = weights / weights.sum(axis=along, keepdims=True)
        case _:
            weights = powers / sums
    if shift == "none, NaN to 0":
        weights = np.nan_to_num(weights, nan=0.0)
    match output:
        case "log":
            weights = shifted - np.log(sums)
        case "log of weights":
            weights = np.log(weights)
        case "largest":
            weights = np.where(scores == scores.max(axis=-1, keepdims=True), 1.0, 0.0)
    return weights


def _offset(scores: Array, shift: str, along: int | None, *, keep: bool) -> Array | float:
    offset: Array | float
    match shift:
        case "none" | "none, NaN to 0" | "clipped":
            offset = 0.0
        case "minimum":
            offset = scores.min(axis=along, keepdims=keep)
        case "mean":
            offset = scores.mean(axis=along, keepdims=keep)
        case "size":
            offset = np.abs(scores).max(axis=along, keepdims=keep)
        case _:
            offset = scores.max(axis=AXES.get(shift, along), keepdims=keep)
    return offset


def scaled_scores(
    x: Array,
    W_Q: Array,
    W_K: Array,
    *,
    scale: str = "1/sqrt(d_k)",
    projections: str = "Q, K",
    output: str = "scores",
) -> Array:
    """x (T, d_model), W_Q and W_K (d_model, d_k): the scaled scores (T, T), a row for each query."""
    matrix = {"Q": W_Q, "K": W_K}
    q, k = (x @ matrix[name] for name in projections.split(", "))
    (T, d_model), d_k = x.shape, q.shape[-1]
    if output == "cosine":
        q, k = (rows / np.linalg.norm(rows, axis=-1, keepdims=True) for rows in (q, k))
    products = q.T @ k if output == "features" else q @ k.T
    factors: dict[str, float] = {
        "none": 1.0,
        "1/d_k": 1 / d_k,
        "1/2": 0.5,
        "1/8": 0.125,
        "1/(2 sqrt(d_k))": 0.5 / sqrt(d_k),
        "*sqrt(d_k)": sqrt(d_k),
        "1/d_k^(1/4)": d_k**-0.25,
        "1/sqrt(T)": 1 / sqrt(T),
        "1/sqrt(d_model)": 1 / sqrt(d_model),
        "measured": 1 / float(products.std()),
    }
    scores = products * factors.get(scale, 1 / sqrt(d_k))
    match output:
        case "weights":
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            return weights / weights.sum(axis=-1, keepdims=True)
        case "own key":
            return np.diagonal(scores)
    return scores


def softmax_jacobian(weights: Array, *, form: str = "right", given: str = "weights") -> Array:
    """weights (n,), a softmax's output: the derivative of weight i by score j at [i, j], (n, n)."""
    w = weights
    if given == "scores":
        w = np.exp(w) / np.exp(w).sum()
    one, row, column = np.eye(len(w)), w[:, None], w[None, :]
    forms: dict[str, Array] = {
        "diagonal weights": np.diag(w),
        "no diagonal weights": -row * column,
        "plus": np.diag(w) + row * column,
        "dot product": np.diag(w) - w @ w,
        "negative": row * column - np.diag(w),
        "own score": np.diag(w * (1 - w)),
        "vector": w * (1 - w),
        "identity": one - row * column,
        "squared rows": row * (one - row),
        "squared columns": column * (one - column),
        "no delta": row * (1 - column),
    }
    return forms.get(form, row * (one - column))
