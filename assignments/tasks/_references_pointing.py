"""Reference functions of `pointing`; keyword-only settings make known mistakes, the defaults are right."""

from math import exp, log, sqrt
from typing import Any

import numpy as np

from attention_lib.checks.engine import Array
from attention_lib.checks.references import scaled_dot_product_attention


def soft_capped_attention(
    q: Array,
    k: Array,
    v: Array,
    cap: float,
    mask: Array | None = None,
    *,
    capping: str = "cap tanh(s / cap)",
    scale: str = "1/sqrt(d_k)",
    masking: str = "before",
    roles: str = "q, k, v",
    **settings: Any,
) -> Array:
    """q (..., T, d_k), k (..., S, d_k), v (..., S, d_v), cap > 0: the output (..., T, d_v).

    mask (..., T, S): True = may look. Source: Gemma Team 2024, "Gemma 2", section 2.
    """
    given = {"q": q, "k": k, "v": v}
    q, k, v = (given[role] for role in roles.split(", "))
    root = sqrt(q.shape[-1])
    before = "none" if scale in ("after", "after the cap") else scale
    scores = scaled_dot_product_attention(q, k, v, scale=before, output="scores")
    scores = _capped(scores, cap, capping)
    if scale == "after the cap":
        scores = scores / root
    if mask is not None and masking == "before the cap":
        scores, mask = np.where(mask, scores, -cap), None
    # Scores are their own products with unit keys, so the rest is the attention of chapter 1.
    unit = np.eye(scores.shape[-1])
    output = scaled_dot_product_attention(
        scores, unit, v, mask, scale="none", masking=masking, **settings
    )
    return output / root if scale == "after" else output


def _capped(scores: Array, cap: float, capping: str) -> Array:
    match capping:
        case "none":
            return scores
        case "clipped":
            return np.clip(scores, -cap, cap)
        case "clipped above":
            return np.minimum(scores, cap)
        case "tanh(s / cap)":
            return np.tanh(scores / cap)
        case "cap tanh(s)":
            return cap * np.tanh(scores)
        case "tanh(s)":
            return np.tanh(scores)
        case "tanh(cap s) / cap":
            return np.tanh(cap * scores) / cap
        case "divided":
            return scores / cap
    return cap * np.tanh(scores / cap)


def stored_keys_attention(
    q: Array,
    K: Array,
    v: Array,
    *,
    layout: str = "columns",
    scale: str = "1/sqrt(d_k)",
    **settings: Any,
) -> Array:
    """q (..., T, d_k), K (..., d_k, S) with a key in each column, v (..., S, d_v): (..., T, d_v)."""
    k = np.swapaxes(K, -1, -2)
    if layout == "reshaped":
        k = K.reshape(k.shape)
    elif layout == "rows":
        k = K
    if scale == "1/sqrt(axis 0)":
        q = q * sqrt(q.shape[-1] / K.shape[0])
    return scaled_dot_product_attention(q, k, v, scale=scale, **settings)


def sink_weights(
    scores: Array,
    sink: Array | float,
    *,
    heads: str = "each its own",
    extra: str = "exp(sink)",
    shift: str = "any",
    sums: str = "keys",
    output: str = "keys",
) -> Array:
    """scores (H, T, S), a sink for each head (H,) or one for all: the keys' weights (H, T, S).

    Each row sums to less than 1: the rest is the sink's. Source: Xiao et al. 2023, "Efficient streaming
    language models with attention sinks", and Miller 2023, "Attention is off by one", for sink = 0.
    """
    sink = _placed(np.asarray(sink), heads)
    if extra == "floor":
        scores = np.maximum(scores, sink)
    # A shift by the largest key is harmless where the sink is shifted too, but for an empty row.
    shifted = shift == "largest key" or extra in (
        "exp(sink), unshifted",
        "sink, shifted",
        "1, shifted",
    )
    best = scores.max(axis=-1, keepdims=True) if shifted else np.zeros(())
    powers = np.exp(scores - best)
    of_sink = {
        "none": 0.0,
        "floor": 0.0,
        "after": 0.0,
        "exp(sink), unshifted": np.exp(sink),
        "exp(-sink)": np.exp(-sink - best),
        "sink": sink,
        "sink, shifted": sink,
        "1": np.exp(-best),
        "1, shifted": 1.0,
        "S exp(sink)": scores.shape[-1] * np.exp(sink - best),
    }.get(extra, np.exp(sink - best))
    axis = {"queries": -2, "everything": None}.get(sums, -1)
    total = powers.sum(axis=axis, keepdims=True) + of_sink
    weights: Array = powers / total
    if extra == "after":
        weights = weights / (1 + np.exp(sink))
    share = np.broadcast_to(of_sink / total, total.shape)
    match output:
        case "with the sink":
            return np.concatenate([weights, share], axis=-1)
        case "sink first":
            return np.concatenate([share, weights], axis=-1)
        case "last column":
            return np.concatenate([weights[..., 1:], share], axis=-1)
        case "first column":
            return np.concatenate([share, weights[..., :-1]], axis=-1)
        case "sink":
            return share[..., 0]
    return weights


def _placed(sink: Array, heads: str) -> Array:
    """The sink with axes that meet those of the scores (H, T, S)."""
    if sink.ndim == 0:
        return sink
    match heads:
        case "first":
            return sink[0]
        case "mean":
            return sink.mean()
        case "queries":
            return sink[:, None]
        case "keys":
            return sink
    return sink[:, None, None]


def ratio(
    d_k: int,
    first: float,
    second: float,
    stretch: float,
    query: Array,
    keys: Array,
    *,
    prediction: str = "right",
    measurement: str = "right",
) -> tuple[Array, ...]:
    """How many times the weight of key 1 key 0 has, once the query is `stretch` times as long.

    first, second: the products of the query (d_k,) with keys 0 and 1 of keys (S, d_k). Two numbers: by
    formula, from what is given, and from the weights.
    """
    margin, root = first - second, sqrt(d_k)
    right = exp(stretch * margin / root)
    predicted = {
        "unscaled": exp(stretch * margin),
        "1/d_k": exp(stretch * margin / d_k),
        "1/sqrt(S)": exp(stretch * margin / sqrt(len(keys))),
        "not stretched": exp(margin / root),
        "stretched after": stretch * exp(margin / root),
        "stretched twice": exp(stretch**2 * margin / root),
        "shrunk": exp(margin / root / stretch),
        "inverse": 1 / right,
        "no exp": stretch * margin / root,
        "products": first / second,
        "share": right / (1 + right),
        "key 0 alone": exp(stretch * first / root),
    }.get(prediction, right)
    products = keys @ query * (1.0 if measurement == "not stretched" else stretch)
    if measurement == "keys too":
        products = products * stretch
    divisor = {"unscaled": 1.0, "1/d_k": d_k, "1/sqrt(S)": sqrt(len(keys))}.get(measurement, root)
    scores = products / divisor
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    measured = {
        "inverse": weights[1] / weights[0],
        "scores": scores[0] / scores[1],
        "no exp": log(weights[0] / weights[1]),
        "difference": weights[0] - weights[1],
        "weight": weights[0],
        "from 1": weights[1] / weights[2],
        "all others": weights[0] / (1 - weights[0]),
    }.get(measurement, weights[0] / weights[1])
    return np.asarray(predicted), np.asarray(measured)
