"""Answers to the exercises of chapter 1 as learners write them, each wrong one with its diagnosis.

Written apart from the reference functions of `attention_lib.checks`, never by changing settings.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from attention_lib import attention
from tests.answers import Answers, Function, softmax

ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong


# attend_one


@right("attend_one")
def one_in_a_line(query: Any, keys: Any, values: Any) -> Any:
    return softmax(keys @ query / np.sqrt(len(query))) @ values


@right("attend_one")
def one_by_loops(query: Any, keys: Any, values: Any) -> Any:
    exps = []
    for key in keys:
        score = sum(a * b for a, b in zip(query, key, strict=True)) / math.sqrt(len(query))
        exps.append(math.exp(score))
    out = [0.0] * values.shape[1]
    for e, value in zip(exps, values, strict=True):
        for j in range(len(out)):
            out[j] += e / sum(exps) * value[j]
    return out


@right("attend_one")
def one_in_torch(query: Any, keys: Any, values: Any) -> Any:
    q, k, v = (torch.tensor(a, dtype=torch.float32) for a in (query, keys, values))
    return F.scaled_dot_product_attention(q[None], k, v)[0]


@wrong("attend_one", "do not scale the scores", "sqrt(d_k)", scale="none")
def one_unscaled(query: Any, keys: Any, values: Any) -> Any:
    weights = np.exp(keys @ query)
    weights = weights / weights.sum()
    return weights @ values


@wrong("attend_one", "by d_k", "once", scale="1/d_k")
def one_scaled_twice(query: Any, keys: Any, values: Any) -> Any:
    query = query / np.sqrt(len(query))
    scores = keys @ query / np.sqrt(len(query))
    return softmax(scores) @ values


@wrong("attend_one", "only for keys of width 4", "root of len(query)", scale="1/2")
def one_scaled_as_in_the_example(query: Any, keys: Any, values: Any) -> Any:
    return softmax(keys @ query / np.sqrt(4)) @ values


@wrong("attend_one", "number of keys", scale="1/sqrt(S)")
def one_scaled_by_length(query: Any, keys: Any, values: Any) -> Any:
    return softmax(keys @ query / len(keys) ** 0.5) @ values


@wrong("attend_one", "after the softmax", scale="after")
def one_scaled_late(query: Any, keys: Any, values: Any) -> Any:
    weights = softmax(keys @ query) / math.sqrt(len(query))
    return weights @ values


@wrong("attend_one", "no softmax", softmax="none")
def one_raw(query: Any, keys: Any, values: Any) -> Any:
    scores = [float(query @ key) / math.sqrt(len(query)) for key in keys]
    return sum(s * v for s, v in zip(scores, values, strict=True))


@wrong("attend_one", "without exp", softmax="no exp")
def one_without_exp(query: Any, keys: Any, values: Any) -> Any:
    scores = keys @ query / math.sqrt(len(query))
    return (scores / np.sum(scores)) @ values


@wrong("attend_one", "do not sum to 1", softmax="no sum")
def one_without_sum(query: Any, keys: Any, values: Any) -> Any:
    return np.exp(keys @ query / math.sqrt(len(query))) @ values


@wrong("attend_one", "best key alone", softmax="largest")
def one_lookup(query: Any, keys: Any, values: Any) -> Any:
    return values[np.argmax(keys @ query)]


@wrong("attend_one", "plain average", softmax="average")
def one_average(query: Any, keys: Any, values: Any) -> Any:
    return values.mean(axis=0)


@wrong("attend_one", "return the weights", "weights @ values", output="weights")
def one_weights(query: Any, keys: Any, values: Any) -> Any:
    return softmax(keys @ query / np.sqrt(keys.shape[1]))


@wrong("attend_one", "do not add them", output="not summed")
def one_not_summed(query: Any, keys: Any, values: Any) -> Any:
    return softmax(keys @ query / np.sqrt(keys.shape[1]))[:, None] * values


@wrong("attend_one", "average the weighted values", output="mean")
def one_mean(query: Any, keys: Any, values: Any) -> Any:
    return np.mean(softmax(keys @ query / np.sqrt(keys.shape[1]))[:, None] * values, axis=0)


@wrong("attend_one", "mix the keys", roles="q, k, k")
def one_keys_mixed(query: Any, keys: Any, values: Any) -> Any:
    return softmax(keys @ query / np.sqrt(keys.shape[1])) @ keys


@wrong("attend_one", "query with the values", roles="q, v, v")
def one_values_compared(query: Any, keys: Any, values: Any) -> Any:
    return softmax(values @ query / np.sqrt(len(query))) @ values


@wrong("attend_one", "cosine similarity", compare="cosine")
def one_cosine(query: Any, keys: Any, values: Any) -> Any:
    similar = keys @ query / (np.linalg.norm(keys, axis=1) * np.linalg.norm(query))
    return softmax(similar / np.sqrt(len(query))) @ values


@wrong(
    "attend_one",
    "(1) You do not scale",
    "(2) You compare by distance",
    scale="none",
    compare="distance",
)
def one_nearest(query: Any, keys: Any, values: Any) -> Any:
    return softmax(-np.linalg.norm(keys - query, axis=1)) @ values


@wrong("attend_one", "squared distance", compare="squared distance")
def one_nearest_squared(query: Any, keys: Any, values: Any) -> Any:
    return softmax(-((keys - query) ** 2).sum(axis=1) / np.sqrt(len(query))) @ values


@wrong("attend_one", "sigmoid", softmax="sigmoid")
def one_sigmoid(query: Any, keys: Any, values: Any) -> Any:
    return (1 / (1 + np.exp(-keys @ query / math.sqrt(len(query))))) @ values


@wrong("attend_one", "temperature of 2", scale="1/(2 sqrt(d_k))")
def one_warm(query: Any, keys: Any, values: Any) -> Any:
    return softmax(keys @ query / (2 * np.sqrt(len(query)))) @ values


@wrong("attend_one", "by 8, the root of 64", scale="1/8")
def one_of_width_64(query: Any, keys: Any, values: Any) -> Any:
    return softmax(keys @ query / np.sqrt(64)) @ values


@wrong("attend_one", "by the largest of them", scale="1/largest")
def one_by_the_largest(query: Any, keys: Any, values: Any) -> Any:
    scores = keys @ query
    return softmax(scores / scores.max()) @ values


@wrong("attend_one", "leave out the first key", left_out="first key")
def one_without_the_first(query: Any, keys: Any, values: Any) -> Any:
    weights = [math.exp(keys[i] @ query / math.sqrt(len(query))) for i in range(1, len(keys))]
    return sum(w * v for w, v in zip(weights, values[1:], strict=True)) / sum(weights)


@wrong("attend_one", "(1) You do not scale", "(2) You return", scale="none", output="weights")
def one_unscaled_weights(query: Any, keys: Any, values: Any) -> Any:
    return softmax(keys @ query)


@wrong("attend_one", "by d_k", "do not sum to 1", scale="1/d_k", softmax="no sum")
def one_two_mistakes(query: Any, keys: Any, values: Any) -> Any:
    weights = np.exp(keys @ query / len(query))
    return sum(w * v for w, v in zip(weights, values, strict=True))


# scaled_dot_product_attention


@right("scaled_dot_product_attention")
def many_minus_infinity(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return softmax(scores) @ v


@right("scaled_dot_product_attention")
def many_einsum(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    scores = np.einsum("...id,...jd->...ij", q, k) / np.sqrt(k.shape[-1])
    if mask is not None:
        scores = scores + (1 - mask) * -1e9
    return np.einsum("...ij,...je->...ie", softmax(scores), v)


@right("scaled_dot_product_attention")
def many_renormalised(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    weights = softmax(q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]))
    if mask is not None:
        weights = weights * mask
        weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ v


@right("scaled_dot_product_attention")
def many_torch(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    allowed = None if mask is None else torch.from_numpy(mask)
    q, k, v = (torch.from_numpy(array) for array in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)


@right("scaled_dot_product_attention")
def many_loops(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    seen = np.ones((*q.shape[:-1], k.shape[-2]), dtype=bool)
    if mask is not None:
        seen = seen & mask
    for index in np.ndindex(*q.shape[:-1]):
        keys, values = k[index[:-1]][seen[index]], v[index[:-1]][seen[index]]
        out[index] = one_in_a_line(q[index], keys, values)
    return out


def attention_with(
    *,
    scale: Callable[[Any, Any], Any] = lambda q, k: q.shape[-1] ** -0.5,
    hide: Callable[[Any, Any], Any] = lambda s, m: np.where(m, s, -1e9),
    weigh: Callable[[Any], Any] = softmax,
) -> Function:
    """The usual answer with one part replaced."""

    def fn(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        s = q @ k.swapaxes(-1, -2) * scale(q, k)
        if mask is not None:
            s = hide(s, mask)
        return weigh(s) @ v

    return fn


def many(says: str, fn: Function, **settings: str) -> None:
    wrong("scaled_dot_product_attention", says, **settings)(fn)


many("do not scale", attention_with(scale=lambda q, k: 1), scale="none")
many("by d_k", attention_with(scale=lambda q, k: 1 / k.shape[-1]), scale="1/d_k")
many("root of q.shape[-1]", attention_with(scale=lambda q, k: 0.5), scale="1/2")
many("multiply", attention_with(scale=lambda q, k: np.sqrt(k.shape[-1])), scale="*sqrt(d_k)")
many("number of keys", attention_with(scale=lambda q, k: k.shape[-2] ** -0.5), scale="1/sqrt(S)")
many("number of queries", attention_with(scale=lambda q, k: q.shape[-2] ** -0.5), scale="1/sqrt(T)")
many(
    "read d_k from axis 1",
    attention_with(scale=lambda q, k: q.shape[1] ** -0.5),
    scale="1/sqrt(axis 1)",
)
many(
    "softmax runs over the queries",
    attention_with(weigh=lambda s: softmax(s, -2)),
    softmax="queries",
)
many(
    "In case 1 of 6: Your softmax", attention_with(weigh=lambda s: softmax(s, 0)), softmax="queries"
)
many(
    "Up to case 3 of 6: Your softmax runs over axis 1",
    attention_with(weigh=lambda s: softmax(s, 1)),
    softmax="axis 1",
)
many(
    "the whole array",
    attention_with(weigh=lambda s: np.exp(s) / np.exp(s).sum()),
    softmax="everything",
)
many("ignores the mask", attention_with(hide=lambda s, m: s), masking="ignored")
many(
    "ignores the mask",
    attention_with(hide=lambda s, m: s - (1 - m) * 1e-9),  # too small a number
    masking="ignored",
)
many("wrong way round", attention_with(hide=lambda s, m: np.where(m, -1e9, s)), masking="inverted")
many("must be negative", attention_with(hide=lambda s, m: s + (1 - m) * 1e9), masking="inverted")
many("exp(0)", attention_with(hide=lambda s, m: s * m), masking="zeroed")
many("as 0 and 1", attention_with(hide=lambda s, m: s + m), masking="added")
many("as 0 and 1", attention_with(hide=lambda s, m: s + m.astype(float)), masking="added")
many(
    "(2) You set forbidden scores to 0",
    attention_with(scale=lambda q, k: 1, hide=lambda s, m: np.where(m, s, 0)),
    scale="none",
    masking="zeroed",
)
many(
    "(2) Your softmax runs over the queries",
    attention_with(scale=lambda q, k: 1, weigh=lambda s: softmax(s, axis=-2)),
    scale="none",
    softmax="queries",
)
many(
    "(2) Your mask works the wrong way",
    attention_with(
        hide=lambda s, m: s + m * -1e9, weigh=lambda s: np.exp(s) / np.exp(s).sum(-2, keepdims=True)
    ),
    softmax="queries",
    masking="inverted",
)


@wrong("scaled_dot_product_attention", "after the softmax", masking="after")
def many_masked_late(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    weights = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    if mask is not None:
        weights = np.where(mask, weights, 0)
    return weights @ v


@wrong("scaled_dot_product_attention", "return the weights", output="weights")
def many_weights(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    s = np.einsum("...td,...sd->...ts", q, k) / np.sqrt(q.shape[-1])
    return softmax(s if mask is None else np.where(mask, s, -np.inf))


@wrong("scaled_dot_product_attention", "mix the keys", roles="q, k, k")
def many_keys_mixed(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    return many_einsum(q, k, k, mask)


@wrong("scaled_dot_product_attention", "queries with the values", roles="q, v, v")
def many_values_compared(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    return many_einsum(q, v, v, mask)


@wrong("scaled_dot_product_attention", "Queries and keys are exchanged", roles="k, q, v")
def many_exchanged(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    s = k @ np.swapaxes(q, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        s[~np.broadcast_to(mask, s.shape)] = -np.inf
    return softmax(s) @ v


@wrong("scaled_dot_product_attention", "no softmax", softmax="none")
def many_raw(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -1e9)
    return s @ v


@wrong("scaled_dot_product_attention", "transpose the mask", masking="transposed")
def many_mask_transposed(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    return many_minus_infinity(q, k, v, None if mask is None else mask.swapaxes(-1, -2))


@wrong("scaled_dot_product_attention", "for which nobody asked", softmax="causal")
def attention_causal(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    T, S = q.shape[-2], k.shape[-2]
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    weights = np.exp(scores - scores.max(-1, keepdims=True)) * np.tri(T, S, S - T)
    return np.nan_to_num(weights / weights.sum(-1, keepdims=True)) @ v


# cross_attention


@wrong("cross_attention", "join x to the context", sources="x, both, both")
def cross_joined(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    both = np.vstack([x, context])
    return softmax(x @ W_Q @ (both @ W_K).T / np.sqrt(W_K.shape[1])) @ both @ W_V


@right("cross_attention")
def cross_plain(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    q, k, v = x @ W_Q, context @ W_K, context @ W_V
    return softmax(q @ k.T / math.sqrt(k.shape[-1])) @ v


@right("cross_attention")
def cross_one_by_one(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    return np.stack([one_in_a_line(row @ W_Q, context @ W_K, context @ W_V) for row in x])


@right("cross_attention")
def cross_associated(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    """The queries and keys multiplied out first, the values projected last."""
    scores = np.einsum("td,de,fe,sf->ts", x, W_Q, W_K, context) / W_Q.shape[1] ** 0.5
    return (softmax(scores) @ context) @ W_V


@right("cross_attention")
def cross_torch(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    a, b, *weights = (
        torch.tensor(array, requires_grad=True) for array in (x, context, W_Q, W_K, W_V)
    )
    q, k, v = (F.linear(s, w.T) for s, w in zip((a, b, b), weights, strict=True))
    return torch.softmax(q @ k.T / k.shape[1] ** 0.5, dim=1) @ v


def cross(says: str, project: Callable[..., tuple[Any, Any, Any]], **settings: str) -> None:
    """The usual answer with its own way to make queries, keys and values."""

    def fn(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
        q, k, v = project(x, context, W_Q, W_K, W_V)
        return softmax(q @ k.T / np.sqrt(q.shape[1])) @ v

    wrong("cross_attention", says, **settings)(fn)


cross("keys from x", lambda x, c, Q, K, V: (x @ Q, x @ K, c @ V), sources="x, x, context")
cross("values from x", lambda x, c, Q, K, V: (x @ Q, c @ K, x @ V), sources="x, context, x")
cross("self-attention of x", lambda x, c, Q, K, V: (x @ Q, x @ K, x @ V), sources="x, x, x")
cross(
    "self-attention of the context",
    lambda x, c, Q, K, V: (c @ Q, c @ K, c @ V),
    sources="context, context, context",
)
cross(
    "x and the context are exchanged",
    lambda x, c, Q, K, V: (c @ Q, x @ K, x @ V),
    sources="context, x, x",
)
cross("W_Q and W_K are", lambda x, c, Q, K, V: (x @ K, c @ Q, c @ V), projections="K, Q, V")
cross("W_K and W_V are", lambda x, c, Q, K, V: (x @ Q, c @ V, c @ K), projections="Q, V, K")
cross("keys with W_Q", lambda x, c, Q, K, V: (x @ Q, c @ Q, c @ V), projections="Q, Q, V")
cross("keys as values", lambda x, c, Q, K, V: (x @ Q, c @ K, c @ K), projections="Q, K, K")
cross("context itself", lambda x, c, Q, K, V: (x @ Q, c @ K, c), projections="Q, K, none")
cross("Project them first", lambda x, c, Q, K, V: (x, c, c @ V), projections="none, none, V")


@wrong("cross_attention", "width of the input", scale="1/sqrt(d_model)")
def cross_model_width(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    scores = (x @ W_Q) @ (context @ W_K).T / np.sqrt(x.shape[-1])
    return softmax(scores) @ (context @ W_V)


@wrong("cross_attention", "do not scale", scale="none")
def cross_unscaled(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    return softmax((x @ W_Q) @ (context @ W_K).T) @ (context @ W_V)


@wrong("cross_attention", "only for keys of width 4", scale="1/2")
def cross_scaled_as_in_the_example(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    return softmax((x @ W_Q) @ (context @ W_K).T / 4**0.5) @ (context @ W_V)


@wrong("cross_attention", "You add x to the result", output="residual")
def cross_residual(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    return x + cross_plain(x, context, W_Q, W_K, W_V)


@wrong("cross_attention", "You use a causal mask", softmax="causal")
def cross_causal(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    return attention(x @ W_Q, context @ W_K, context @ W_V, causal=True)


@wrong("cross_attention", "You use a causal mask", softmax="causal, upper left")
def cross_lower_triangle(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    scores = (x @ W_Q) @ (context @ W_K).T / math.sqrt(W_Q.shape[1])
    return softmax(np.where(np.tril(np.ones(scores.shape)), scores, -1e9)) @ context @ W_V


@wrong("cross_attention", "over the queries", softmax="queries")
def cross_columns(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    scores = (x @ W_Q) @ (context @ W_K).T / np.sqrt(W_K.shape[-1])
    return softmax(scores, axis=0) @ (context @ W_V)


@wrong("cross_attention", "return the weights", output="weights")
def cross_weights(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    return softmax((x @ W_Q) @ (context @ W_K).T / np.sqrt(W_K.shape[-1]))


@wrong("cross_attention", "(1) You do not", "(2) This is self", scale="none", sources="x, x, x")
def cross_self_unscaled(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    return softmax((x @ W_Q) @ (x @ W_K).T) @ (x @ W_V)


@wrong(
    "cross_attention",
    "(1) You scale by the width of the input",
    "(2) W_Q and W_K",
    scale="1/sqrt(d_model)",
    projections="K, Q, V",
)
def cross_two_mistakes(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    d_model = x.shape[-1]
    return softmax((x @ W_K) @ (context @ W_Q).T / np.sqrt(d_model)) @ context @ W_V


# rotate


@right("rotate")
def rotate_halves(x: Any, positions: Any) -> Any:
    half = x.shape[1] // 2
    angles = positions[:, None] / 10_000 ** (np.arange(half) / half)
    x1, x2 = x[:, :half], x[:, half:]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([x1 * cos - x2 * sin, x2 * cos + x1 * sin], axis=1)


@right("rotate")
def rotate_complex(x: Any, positions: Any) -> Any:
    a, b = np.split(x, 2, axis=1)
    d = x.shape[1]
    turns = np.exp(1j * np.outer(positions, 10000.0 ** (-np.arange(0, d, 2) / d)))
    z = (a + 1j * b) * turns
    return np.hstack([z.real, z.imag])


@right("rotate")
def rotate_by_matrices(x: Any, positions: Any) -> Any:
    out, d = np.empty_like(x), x.shape[1]
    for t, p in enumerate(positions):
        for i in range(d // 2):
            a = p * 10000 ** (-2 * i / d)
            turn = np.array([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]])
            out[t, [i, i + d // 2]] = turn @ x[t, [i, i + d // 2]]
    return out


@right("rotate")
def rotate_torch(x: Any, positions: Any) -> Any:
    t = torch.tensor(x, dtype=torch.float32)
    d = t.shape[1]
    angles = torch.tensor(positions)[:, None] * 10000 ** (-torch.arange(0, d, 2) / d)
    cos, sin = torch.cat([angles.cos()] * 2, dim=1), torch.cat([angles.sin()] * 2, dim=1)
    return t * cos + torch.cat([-t[:, d // 2 :], t[:, : d // 2]], dim=1) * sin


def angles_of(x: Any, positions: Any) -> Any:
    d = x.shape[1]
    return np.outer(positions, 10000.0 ** (-2 * np.arange(d // 2) / d))


def rotated(x: Any, angles: Any) -> Any:
    x1, x2 = np.split(x, 2, axis=1)
    c, s = np.cos(angles), np.sin(angles)
    return np.concatenate([x1 * c - x2 * s, x1 * s + x2 * c], axis=1)


@wrong("rotate", "neighbouring columns. Pair", pairing="neighbours")
def rotate_neighbours(x: Any, positions: Any) -> Any:
    a = angles_of(x, positions)
    out = np.zeros(x.shape)
    out[:, 0::2] = x[:, 0::2] * np.cos(a) - x[:, 1::2] * np.sin(a)
    out[:, 1::2] = x[:, 1::2] * np.cos(a) + x[:, 0::2] * np.sin(a)
    return out


@wrong("rotate", "repeat each angle", pairing="halves, neighbours' angles")
def rotate_mixed(x: Any, positions: Any) -> Any:
    a = np.repeat(angles_of(x, positions), 2, axis=1)
    x1, x2 = np.split(x, 2, axis=1)
    return x * np.cos(a) + np.concatenate([-x2, x1], axis=1) * np.sin(a)


@wrong("rotate", "lay the angles out by halves", pairing="neighbours, halves' angles")
def rotate_mixed_back(x: Any, positions: Any) -> Any:
    a = np.tile(angles_of(x, positions), 2)
    turned = np.stack([-x[:, 1::2], x[:, ::2]], axis=-1).reshape(x.shape)
    return x * np.cos(a) + turned * np.sin(a)


@wrong("rotate", "interleave the halves", pairing="dealt out")
def rotate_stacked(x: Any, positions: Any) -> Any:
    return np.stack(np.split(rotate_halves(x, positions), 2, axis=1), axis=-1).reshape(x.shape)


@wrong("rotate", "even with odd", pairing="gathered")
def rotate_even_odd(x: Any, positions: Any) -> Any:
    return rotated(np.concatenate([x[:, ::2], x[:, 1::2]], axis=1), angles_of(x, positions))


@wrong("rotate", "the wrong way", turn="backward")
def rotate_backward(x: Any, positions: Any) -> Any:
    return rotated(x, -angles_of(x, positions))


@wrong("rotate", "plus sign", "lengths change", turn="both plus")
def rotate_both_plus(x: Any, positions: Any) -> Any:
    a = angles_of(x, positions)
    x1, x2 = np.split(x, 2, axis=1)
    return np.hstack([x1 * np.cos(a) + x2 * np.sin(a), x2 * np.cos(a) + x1 * np.sin(a)])


@wrong("rotate", "new first half", turn="overwritten")
def rotate_overwritten(x: Any, positions: Any) -> Any:
    a, h, x = angles_of(x, positions), x.shape[1] // 2, x.copy()
    x[:, :h] = x[:, :h] * np.cos(a) - x[:, h:] * np.sin(a)
    x[:, h:] = x[:, h:] * np.cos(a) + x[:, :h] * np.sin(a)
    return x


@wrong("rotate", "Sine and cosine are exchanged", turn="swapped")
def rotate_swapped(x: Any, positions: Any) -> Any:
    a = angles_of(x, positions)
    x1, x2 = np.split(x, 2, axis=1)
    return np.hstack([x1 * np.sin(a) - x2 * np.cos(a), x2 * np.sin(a) + x1 * np.cos(a)])


@wrong("rotate", "count the positions yourself", counting="counted")
def rotate_counted(x: Any, positions: Any) -> Any:
    return rotated(x, angles_of(x, range(len(x))))


@wrong("rotate", "add 1", counting="from 1")
def rotate_from_one(x: Any, positions: Any) -> Any:
    return rotated(x, angles_of(x, positions + 1))


@wrong("rotate", "does not depend on the positions", counting="ignored")
def rotate_nothing(x: Any, positions: Any) -> Any:
    return x


@wrong("rotate", "-i/d", frequency="i/d")
def rotate_slow_exponent(x: Any, positions: Any) -> Any:
    d = x.shape[1]
    return rotated(x, positions[:, None] * 10000.0 ** (-np.arange(d // 2) / d))


@wrong("rotate", "twice too large", frequency="4i/d")
def rotate_fast_exponent(x: Any, positions: Any) -> Any:
    d = x.shape[1]
    return rotated(x, positions[:, None] * 10000.0 ** (-2 * np.arange(0, d, 2) / d))


@wrong("rotate", "one speed", frequency="no base")
def rotate_one_speed(x: Any, positions: Any) -> Any:
    return rotated(x, np.tile(positions[:, None], x.shape[1] // 2))


@wrong("rotate", "Your base is 1000", frequency="base 1000")
def rotate_base(x: Any, positions: Any) -> Any:
    d = x.shape[1]
    return rotated(x, np.outer(positions, 1000.0 ** (-2 * np.arange(d // 2) / d)))


@wrong("rotate", "// does that", frequency="floored")
def rotate_floored(x: Any, positions: Any) -> Any:
    d = x.shape[1]
    frequencies = [10000.0 ** (-2 * i // d) for i in range(d // 2)]
    return rotated(x, np.outer(positions, frequencies))


@wrong("rotate", "multiply the angle by 2 pi", frequency="turns")
def rotate_turns(x: Any, positions: Any) -> Any:
    return rotated(x, 2 * np.pi * angles_of(x, positions))


@wrong("rotate", "frequencies grow", frequency="growing")
def rotate_growing(x: Any, positions: Any) -> Any:
    d = x.shape[1]
    return rotated(x, positions[:, None] * 10000 ** (2 * np.arange(d // 2) / d))


@wrong("rotate", "degrees", frequency="degrees")
def rotate_degrees(x: Any, positions: Any) -> Any:
    return rotated(x, angles_of(x, positions) * np.pi / 180)


@wrong("rotate", "(1) You turn the wrong way", "(2) You add 1", turn="backward", counting="from 1")
def rotate_two_mistakes(x: Any, positions: Any) -> Any:
    return rotated(x, -angles_of(x, [p + 1 for p in positions]))


@wrong("rotate", "add a table of sines", turn="added")
def rotate_added(x: Any, positions: Any) -> Any:
    d = x.shape[1]
    angles = positions[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    table = np.empty(x.shape)
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return x + table


@wrong("rotate", "add sines and cosines", turn="added, by halves")
def rotate_added_by_halves(x: Any, positions: Any) -> Any:
    d = x.shape[1]
    angles = positions[:, None] * 10000.0 ** (-2 * np.arange(d // 2) / d)
    return x + np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


@wrong("rotate", "into degrees", frequency="to degrees")
def rotate_in_degrees(x: Any, positions: Any) -> Any:
    d = x.shape[1]
    angles = np.degrees(positions[:, None] * 10000.0 ** (-2 * np.arange(d // 2) / d))
    a, b = x[:, : d // 2], x[:, d // 2 :]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=1)
