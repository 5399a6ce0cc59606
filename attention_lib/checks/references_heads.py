"""Reference functions of chapter 4; keyword-only settings make known mistakes, the defaults are right.

Independent of the library on purpose: a check must not share its faults.
"""

from typing import Any

import numpy as np

from .engine import Array
from .references import scaled_dot_product_attention


def split_heads(
    x: Array, heads: int, *, cut: str = "slices", order: str = "H, T, d", output: str = "heads"
) -> Array:
    """x (T, H·d): the slices of its width, head by head, (H, T, d)."""
    T, width = x.shape
    parts: Array
    match cut:
        case "reshaped":
            parts = x.reshape(heads, T, width // heads)
        case "transposed":
            parts = x.T.reshape(heads, T, width // heads)
        case "strided":
            parts = x.reshape(T, width // heads, heads).transpose(2, 0, 1)
        case "tokens":
            parts = np.stack(np.split(x, heads))
        case "whole":
            parts = np.stack([x] * heads)
        case "as width":
            parts = x.reshape(T, -1, heads).swapaxes(0, 1)
        case _:
            parts = x.reshape(T, heads, width // heads).swapaxes(0, 1)
    match output:
        case "below":
            return parts.reshape(-1, parts.shape[-1])
        case "first":
            return parts[0]
        case "reversed":
            parts = parts[::-1]
    return _ordered(parts, order)


def _ordered(heads: Array, order: str) -> Array:
    """heads (H, T, d) with its axes in another order, named as in `"T, H, d"`."""
    return heads.transpose(["HTd".index(axis) for axis in order.split(", ")])


def merge_heads(
    x: Array, *, order: str = "T, H, d", combine: str = "concatenate", output: str = "merged"
) -> Array:
    """x (H, T, d): the heads side by side, (T, H·d)."""
    match combine:
        case "mean":
            return x.mean(axis=0)
        case "sum":
            return x.sum(axis=0)
        case "maximum":
            return x.max(axis=0)
        case "first":
            return x[0]
        case "last":
            return x[-1]
        case "reversed":
            x = x[::-1]
    heads, T, d = x.shape
    turned = _ordered(x, order)
    merged: Array = turned.reshape(T, heads * d)
    match output:
        case "below":
            return x.reshape(heads * T, d)
        case "not merged":
            return turned
        case "transposed":
            return merged.T
        case "flat":
            return merged.ravel()
    return merged


def multi_head_attention(
    x: Array,
    W_Q: Array,
    W_K: Array,
    W_V: Array,
    W_O: Array,
    heads: int,
    *,
    split: str = "slices",
    roles: str = "q, k, v",
    scale: str = "1/sqrt(d_k)",
    merge: str = "concatenate",
    output: str = "projected",
    **settings: Any,
) -> Array:
    """x (T, d_model), W_Q, W_K, W_V (d_model, H·d) and W_O (H·d_v, d_model): (T, d_model).

    Source: Vaswani et al. 2017, section 3.2.2.
    """
    d_model = x.shape[1]
    width = W_Q.shape[1] // heads if split == "d_k" else d_model // heads
    q, k, v = (
        _split(_projected(x, W, heads, split, roles), heads, split, width) for W in (W_Q, W_K, W_V)
    )
    widths = {
        "1/sqrt(d_model)": d_model,
        "1/sqrt(H·d_k)": W_Q.shape[1],
        "1/sqrt(d_model/H)": d_model // heads,
        "1/sqrt(H)": heads,
    }
    kind = output if output in ("weights", "scores") else "sum"
    heads_out = scaled_dot_product_attention(
        q,
        k,
        v,
        roles="q, k, v" if roles == "x @ W.T" else roles,
        scale="1/sqrt(d_model)" if scale in widths else scale,
        d_model=widths.get(scale, 1),
        output=kind,
        **settings,
    )
    if kind != "sum" or output == "not merged":
        return heads_out
    if split == "across":
        heads_out = heads_out.swapaxes(0, 1)
    if merge in ("mean, no W_O", "sum, no W_O"):
        return merge_heads(heads_out, combine=merge.split(",")[0])
    if merge == "one head":
        return heads_out[0] @ W_O[: heads_out.shape[-1]]
    order = {"reshaped": "H, T, d", "interleaved": "T, d, H"}.get(merge, "T, H, d")
    merged = merge_heads(heads_out, order=order)
    match output:
        case "no W_O":
            return merged
        case "W_O transposed":
            return merged @ W_O.T
        case "residual":
            return x + merged @ W_O
    result: Array = merged @ W_O
    return result / heads if merge == "mean" else result


def _projected(x: Array, W: Array, heads: int, split: str, roles: str) -> Array:
    if roles == "x @ W.T":
        return x @ W.T
    if split == "sliced":  # head h reads only its slice of x, through its own block of W
        slices = np.split(x, heads, axis=1)
        blocks = [np.split(own, heads)[h] for h, own in enumerate(np.hsplit(W, heads))]
        return np.hstack([part @ block for part, block in zip(slices, blocks, strict=True)])
    projected: Array = x @ W
    return projected


def _split(x: Array, heads: int, split: str, width: int) -> Array:
    match split:
        case "one head":
            return x[None]
        case "across":
            return split_heads(x, heads, order="T, H, d")
        case "d_model // H" | "d_k":
            return x.reshape(len(x), heads, width).swapaxes(0, 1)
    return split_heads(x, heads, cut=split)


def grouped_attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    sharing: str = "repeat",
    output: str = "sum",
    **settings: Any,
) -> Array:
    """q (Hq, T, d_k), k (Hk, S, d_k), v (Hk, S, d_v): head h reads h // (Hq // Hk), (Hq, T, d_v).

    Source: Ainslie et al. 2023, section 2.2.
    """
    Hq, Hk = len(q), len(k)
    group = Hq // Hk
    of_group = np.arange(Hq) // group
    dealt = np.arange(Hq) % Hk
    read_k, read_v = {
        "tile": (dealt, dealt),
        "keys repeat, values tile": (of_group, dealt),
        "keys tile, values repeat": (dealt, of_group),
        "first": (0 * dealt, 0 * dealt),
        "last": (0 * dealt - 1, 0 * dealt - 1),
        "h // Hk": (np.arange(Hq) // Hk, np.arange(Hq) // Hk),
        "reversed": (Hk - 1 - of_group, Hk - 1 - of_group),
    }.get(sharing, (of_group, of_group))
    match sharing:
        case "repeat Hk" | "repeat Hq" | "none":
            times = {"repeat Hk": Hk, "repeat Hq": Hq}.get(sharing, 1)
            if Hk * times not in (1, Hq):
                raise ValueError("could not be broadcast")
        case "h // Hk":
            if read_k[-1] >= Hk:
                raise ValueError("out of bounds")
        case "mean":
            k, v = (np.broadcast_to(a.mean(axis=0), a.shape) for a in (k, v))
        case "sum":
            k, v = (np.broadcast_to(a.sum(axis=0), a.shape) for a in (k, v))
        case "queries averaged" | "queries summed" | "first query" | "first queries":
            grouped = q.reshape(Hk, group, *q.shape[1:])
            q = {
                "queries averaged": grouped.mean(axis=1),
                "queries summed": grouped.sum(axis=1),
                "first query": grouped[:, 0],
            }.get(sharing, q[:Hk])
            read_k = read_v = np.arange(Hk)
    kind = output if output in ("weights", "scores") else "sum"
    out = scaled_dot_product_attention(q, k[read_k], v[read_v], output=kind, **settings)
    match output:
        case "merged":
            return merge_heads(out)
        case "in groups":
            return out.reshape(Hk, -1, *out.shape[1:])
        case "averaged":
            return out.reshape(Hk, -1, *out.shape[1:]).mean(axis=1)
        case "dealt out":
            return out.reshape(Hk, -1, *out.shape[1:]).swapaxes(0, 1).reshape(out.shape)
    return out
