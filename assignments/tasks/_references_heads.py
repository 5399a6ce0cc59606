"""Reference functions of the assignment `heads`; keyword-only settings make known mistakes."""

from math import sqrt

import numpy as np

from attention_lib.checks.engine import Array
from attention_lib.checks.references import scaled_dot_product_attention
from attention_lib.checks.references_heads import merge_heads, split_heads


def gated_heads(
    x: Array,
    W_Q: Array,
    W_K: Array,
    W_V: Array,
    W_O: Array,
    gates: Array,
    heads: int,
    *,
    gate: str = "heads",
    split: str = "slices",
    roles: str = "q, k, v",
    scale: str = "1/sqrt(d_k)",
    softmax: str = "keys",
    merge: str = "concatenate",
    output: str = "projected",
) -> Array:
    """x (T, d_model), W_Q, W_K (d_model, H·d_k), W_V (d_model, H·d_v), W_O (H·d_v, d_model).

    Each head's output is multiplied by its gate, gates (H,), before W_O: (T, d_model).
    Source: Michel et al. 2019, section 2.3.
    """
    order = "T, H, d" if split == "across" else "H, T, d"
    cut = split if split in ("reshaped", "strided") else "slices"
    _refuse(split, x.shape[1] // heads * heads, W_Q.shape[1], W_V.shape[1])
    q, k, v = (split_heads(x @ W, heads, cut=cut, order=order) for W in (W_Q, W_K, W_V))
    if gate == "scores":
        q = q * gates[:, None, None]
    widths = {
        "1/sqrt(d_model)": x.shape[1],
        "1/sqrt(d_model / H)": x.shape[1] / heads,
        "1/sqrt(d_model // H)": x.shape[1] // heads,
        "1/sqrt(H·d_k)": W_Q.shape[1],
        "1/sqrt(H)": heads,
    }
    out = scaled_dot_product_attention(
        q,
        k,
        v,
        roles=roles,
        scale="1/sqrt(d_model)" if scale in widths else scale,
        d_model=widths.get(scale, 1),
        softmax=softmax,
        output="weights" if output == "weights" else "sum",
    )
    if split == "across":
        out = out.swapaxes(0, 1)
    along = {"features": (1, 1, -1), "tokens": (1, -1, 1)}.get(gate, (-1, 1, 1))
    own = _gates(gates, gate).reshape(along)
    out = out + own if gate == "added" else out * own
    if output == "weights":
        return out
    if merge in ("sum, no W_O", "mean, no W_O"):
        return merge_heads(out, combine=merge.split(",")[0])
    merged = merge_heads(
        out, order={"reshaped": "H, T, d", "interleaved": "T, d, H"}.get(merge, "T, H, d")
    )
    if gate == "tiled":
        merged = merged * np.tile(gates, out.shape[2])
    match output:
        case "no W_O":
            return merged
        case "W_O transposed":
            return merged @ W_O.T
    result: Array = merged @ W_O
    if gate == "model":
        result = result * np.repeat(gates, result.shape[1] // heads)
    return result


def _refuse(split: str, of_model: int, of_k: int, of_v: int) -> None:
    """Raise ValueError where a reshape for other columns than the matrices have would."""
    width = {"d_model // H": of_model, "d_k": of_k}.get(split)
    if width is not None and not width == of_k == of_v:
        raise ValueError("cannot reshape")


def _gates(gates: Array, gate: str) -> Array:
    """What each head's output is multiplied by."""
    named: Array = {
        "1 - gate": 1 - gates,
        "softmax": np.exp(gates) / np.exp(gates).sum(),
        "shares": gates / gates.sum(),
        "sigmoid": 1 / (1 + np.exp(-gates)),
        "twice": gates**2,
        "switched": np.where(gates > 0.5, 1.0, 0.0),
        "not 0": np.where(gates > 0, 1.0, 0.0),
        "mean": np.full_like(gates, gates.mean()),
        "first": np.full_like(gates, gates[0]),
        "reversed": gates[::-1],
    }.get(gate, gates)
    return np.ones_like(gates) if gate in ("none", "scores", "tiled", "model") else named


def grouped_scores(
    q: Array,
    k: Array,
    *,
    sharing: str = "repeat",
    scale: str = "1/sqrt(d_k)",
    output: str = "scores",
) -> Array:
    """q (B, Hq, T, d_k), k (B, Hk, S, d_k): q·k / sqrt(d_k), head h reads h // (Hq // Hk).

    Returns (B, Hq, T, S). Source: Ainslie et al. 2023, section 2.2.
    """
    B, Hq, T, d_k = q.shape
    Hk, S = k.shape[1:3]
    group, h = Hq // Hk, np.arange(Hq)
    read = {
        "tile": h % Hk,
        "first": 0 * h,
        "last": 0 * h - 1,
        "reversed": Hk - 1 - h // group,
        "h // Hk": h // Hk,
    }.get(sharing, h // group)
    match sharing:
        case "h // Hk":
            if read[-1] >= Hk:
                raise ValueError("out of bounds")
        case "none" if Hk not in (1, Hq):
            raise ValueError("could not be broadcast")
        case "mean":
            k = np.broadcast_to(k.mean(axis=1, keepdims=True), k.shape)
        case "first query":
            q, read = q[:, ::group], np.arange(Hk)
    k = k[:, read]
    widths = {
        "1/sqrt(d_k)": d_k,
        "none": 1,
        "1/d_k": d_k**2,
        "*sqrt(d_k)": 1 / d_k,
        "1/sqrt(Hq·d_k)": Hq * d_k,
        "1/sqrt(Hq)": Hq,
        "1/sqrt(T)": T,
        "1/sqrt(S)": S,
        "1/sqrt(d_k/group)": d_k / group,
    }
    scores: Array = q @ k.swapaxes(-1, -2) / sqrt(widths[scale])
    match output:
        case "weights":
            weights: Array = np.exp(scores - scores.max(axis=-1, keepdims=True))
            return weights / weights.sum(axis=-1, keepdims=True)
        case "transposed":
            return scores.swapaxes(-1, -2)
        case "in groups":
            return scores.reshape(B, Hk, -1, T, S)
        case "averaged" | "summed":
            per_group = scores.reshape(B, Hk, -1, T, S)
            return per_group.mean(axis=2) if output == "averaged" else per_group.sum(axis=2)
        case "dealt out":
            return scores.reshape(B, Hk, -1, T, S).swapaxes(1, 2).reshape(scores.shape)
    return scores


def cut_heads(
    W_Q: Array,
    W_K: Array,
    W_V: Array,
    W_O: Array,
    heads: int,
    keep: Array,
    *,
    cut: str = "slices",
    width: str = "own",
    whole: str = "none",
    of_W_O: str = "rows",
    output: str = "smaller",
) -> tuple[Array, ...]:
    """The four matrices without the heads that are not in `keep`, (kept,) numbers in order.

    W_Q, W_K (d_model, H·d_k), W_V (d_model, H·d_v), W_O (H·d_v, d_model). Source: Michel et al. 2019.
    """
    d_model, (d_k, d_v) = len(W_Q), (W.shape[1] // heads for W in (W_Q, W_V))
    d_k, d_v = {
        "d_k": (d_k, d_k),
        "d_model // H": (d_model // heads, d_model // heads),
    }.get(width, (d_k, d_v))
    of_k, of_v = (_columns(cut, heads, keep, d) for d in (d_k, d_v))
    of_o = _columns(cut, heads, keep, d_k) if of_W_O == "d_k" else of_v
    if cut == "zeros":
        kept = [_zeroed(W_Q, of_k), _zeroed(W_K, of_k), _zeroed(W_V, of_v), _zeroed(W_O.T, of_o).T]
    else:
        kept = [W_Q[:, of_k], W_K[:, of_k], W_V[:, of_v], W_O[of_o]]
    if cut == "rows":
        if d_model % heads:
            raise ValueError("no equal division")
        rows = _columns(cut, heads, keep, d_model // heads)
        kept = [W_Q[rows], W_K[rows], W_V[rows], W_O[:, rows]]
    match whole:
        case "K, V, O":
            kept[1:] = W_K, W_V, W_O
        case "V, O":
            kept[2:] = W_V, W_O
        case "K, V":
            kept[1:3] = W_K, W_V
        case "K":
            kept[1] = W_K
    match of_W_O:
        case "whole":
            kept[3] = W_O
        case "zeros":
            kept[3] = _zeroed(W_O.T, of_v).T
        case "rescaled":
            kept[3] = kept[3] * heads / len(keep)
        case "columns":
            if d_model % heads:
                raise ValueError("no equal division")
            kept[3] = W_O[:, _columns(cut, heads, keep, d_model // heads)]
    match output:
        case "transposed":
            return tuple(W.T for W in kept)
        case "apart":
            split = [W.reshape(d_model, len(keep), -1) for W in kept[:3]]
            return (*split, kept[3].reshape(len(keep), -1, d_model))
    return tuple(kept)


def _columns(cut: str, heads: int, keep: Array, d: int) -> Array:
    """The numbers of the columns that are kept of heads of width d."""
    every = np.arange(heads * d).reshape(heads, d)
    match cut:
        case "strided":
            return every.reshape(d, heads)[:, keep].T.ravel()
        case "strided, dealt out":
            return every.reshape(d, heads)[:, keep].ravel()
        case "others":
            return np.delete(every, keep, axis=0).ravel()
        case "first":
            return every[: len(keep)].ravel()
        case "last":
            return every[-len(keep) :].ravel()
        case "columns":
            return keep
        case "reversed":
            return every[keep[::-1]].ravel()
    return every[keep].ravel()


def _zeroed(W: Array, columns: Array) -> Array:
    """W with 0 in all columns but these."""
    kept = np.zeros_like(W)
    kept[:, columns] = W[:, columns]
    return kept


def cache(
    layers: int,
    query_heads: int,
    key_heads: int,
    width: int,
    tokens: int,
    *,
    predicted: str = "",
    measured: str = "",
) -> tuple[Array, ...]:
    """Bytes of the keys and values of `tokens` tokens in float32: by formula, and as found in one.

    Source: Shazeer 2019; grouped: Ainslie et al. 2023.
    """
    right = 2 * layers * key_heads * width * tokens * 4.0
    ways = {
        "": right,
        "half": right / 2,
        "double": 2 * right,
        "numbers": right / 4,
        "bits": 8 * right,
        "one layer": right / layers,
        "one head": right / key_heads,
        "query heads": right / key_heads * query_heads,
        "group size": right / key_heads * (query_heads // key_heads),
        "one token": right / tokens,
        "one number a head": right / width,
        "matrices": right / tokens * query_heads * width,
        "one token fewer": right / tokens * (tokens - 1),
    }
    return np.asarray(ways[predicted]), np.asarray(ways[measured])
