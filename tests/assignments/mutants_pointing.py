"""Answers to the tasks of the assignment `pointing` as students write them, wrong ones with diagnoses.

Written apart from the references of `assignments.tasks`, never by changing settings.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.answers import Answers, Function, softmax

ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong

CAPPED, STORED, SINK = "soft_capped_attention", "stored_keys_attention", "sink_weights"


# soft_capped_attention


@right(CAPPED)
def capped_plain(q: Any, k: Any, v: Any, cap: Any, mask: Any = None) -> Any:
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    scores = cap * np.tanh(scores / cap)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


@right(CAPPED)
def capped_loops(q: Any, k: Any, v: Any, cap: Any, mask: Any = None) -> Any:
    """A query at a time, over the keys that it sees; leading axes by calling itself."""
    if q.ndim > 2:
        return [capped_loops(a, b, c, cap, mask) for a, b, c in zip(q, k, v, strict=True)]
    out = []
    for i, query in enumerate(q):
        total, row = 0.0, [0.0] * v.shape[1]
        for j, (key, value) in enumerate(zip(k, v, strict=True)):
            if mask is None or mask[i, j]:
                e = math.exp(cap * math.tanh(query @ key / len(key) ** 0.5 / cap))
                total += e
                row = [sum_ + e * x for sum_, x in zip(row, value, strict=True)]
        out.append([x / total for x in row])
    return out


@right(CAPPED)
def capped_einsum(q: Any, k: Any, v: Any, cap: Any, mask: Any = None) -> Any:
    """No maximum subtracted: the cap keeps exp small. Hidden keys get 0 before the sum."""
    scores = np.einsum("...td,...sd->...ts", q / np.sqrt(q.shape[-1]), k)
    powers = np.exp(cap * np.tanh(scores / cap)) * (1 if mask is None else mask)
    return np.einsum("...ts,...se->...te", powers / powers.sum(-1, keepdims=True), v)


@right(CAPPED)
def capped_torch(q: Any, k: Any, v: Any, cap: Any, mask: Any = None) -> Any:
    q, k, v = (torch.tensor(a, dtype=torch.float32) for a in (q, k, v))
    scores = cap * torch.tanh(q @ k.mT / (q.shape[-1] ** 0.5 * cap))
    if mask is not None:
        scores = scores.masked_fill(~torch.tensor(mask), -1e9)
    return scores.softmax(dim=-1) @ v


@right(CAPPED)
def capped_by_exponentials(q: Any, k: Any, v: Any, cap: Any, mask: Any = None) -> Any:
    """tanh written out, and the mask added as 0 and -inf."""
    scores = np.matmul(q, np.moveaxis(k, -1, -2)) * q.shape[-1] ** -0.5
    grown = np.exp(2 * scores / cap)
    scores = cap * (grown - 1) / (grown + 1)
    if mask is not None:
        bias = np.zeros(mask.shape)
        bias[~mask] = -np.inf
        scores = scores + bias
    return softmax(scores) @ v


Step = Callable[..., Any]


def capped(
    settings: dict[str, str],
    *says: str,
    scale: Step = lambda s, d_k: s / d_k**0.5,
    bend: Step = lambda s, cap: cap * np.tanh(s / cap),
    hide: Step = lambda s, m: np.where(m, s, -np.inf),
    weigh: Step = softmax,
    mix: Step = lambda w, v: w @ v,
    roles: Step = lambda q, k, v: (q, k, v),
) -> None:
    """A wrong answer put together from the usual steps, some of them replaced."""

    def answer(q: Any, k: Any, v: Any, cap: Any, mask: Any = None) -> Any:
        q, k, v = roles(q, k, v)
        scores = bend(scale(q @ k.swapaxes(-1, -2), q.shape[-1]), cap)
        return mix(weigh(scores if mask is None else hide(scores, mask)), v)

    wrong(CAPPED, *says, **settings)(answer)


capped({"capping": "none"}, "ignores the cap", bend=lambda s, cap: s)
capped({"capping": "clipped"}, "off at ±cap", bend=lambda s, cap: s.clip(-cap, cap))
capped({"capping": "clipped above"}, "as they are", bend=lambda s, cap: np.minimum(s, cap))
capped({"capping": "tanh(s / cap)"}, "factor before", bend=lambda s, cap: np.tanh(s / cap))
capped({"capping": "cap tanh(s)"}, "inside the tanh", bend=lambda s, cap: np.tanh(s) * cap)
capped({"capping": "tanh(s)"}, "does not enter", bend=lambda s, cap: np.tanh(s))
capped({"capping": "tanh(cap s) / cap"}, "±1/cap", bend=lambda s, cap: np.tanh(s * cap) / cap)
capped({"capping": "divided"}, "take no tanh", bend=lambda s, cap: s / cap)
capped({"scale": "none"}, "do not scale", scale=lambda s, d_k: s)
capped({"scale": "1/d_k"}, "by d_k", scale=lambda s, d_k: s / d_k)
capped({"scale": "1/2"}, "only for keys of width 4", scale=lambda s, d_k: s / 2)
capped({"scale": "*sqrt(d_k)"}, "multiply the scores", scale=lambda s, d_k: s * d_k**0.5)
capped({"scale": "1/sqrt(S)"}, "number of keys", scale=lambda s, d_k: s / s.shape[-1] ** 0.5)
capped({"scale": "1/sqrt(T)"}, "number of queries", scale=lambda s, d_k: s / s.shape[-2] ** 0.5)
capped({"masking": "ignored"}, "ignores the mask", hide=lambda s, m: s)
capped({"masking": "inverted"}, "wrong way round", hide=lambda s, m: np.where(m, -np.inf, s))
capped({"masking": "inverted"}, "True means may look", hide=lambda s, m: s + 1e9 * ~m)
capped({"masking": "transposed"}, "transpose the mask", hide=lambda s, m: np.where(m.T, s, -9e9))
capped({"masking": "zeroed"}, "exp(0) = 1", hide=lambda s, m: s * m)
capped({"masking": "added"}, "as 0 and 1", hide=lambda s, m: s + m)
capped({"masking": "added"}, "not how much", hide=lambda s, m: s + m.astype(float))
capped({"softmax": "queries"}, "over the queries", weigh=lambda s: softmax(s, axis=-2))
capped({"softmax": "everything"}, "whole array", weigh=lambda s: np.exp(s) / np.exp(s).sum())
capped({"softmax": "none"}, "raw scores", weigh=lambda s: s, hide=lambda s, m: s + np.log(m))
capped({"softmax": "no sum"}, "do not sum to 1", weigh=np.exp)
capped({"softmax": "largest"}, "best key alone", weigh=lambda s: 1.0 * (s == s.max(-1)[..., None]))
capped({"roles": "k, q, v"}, "exchanged. Row i", roles=lambda q, k, v: (k, q, v))
capped({"roles": "q, k, k"}, "mix the keys", roles=lambda q, k, v: (q, k, k))
capped({"roles": "q, v, v"}, "with the values", roles=lambda q, k, v: (q, v, v))
capped({"roles": "q, v, k"}, "Keys and values are", roles=lambda q, k, v: (q, v, k))
capped({"roles": "q, q, v"}, "queries with themselves", roles=lambda q, k, v: (q, q, v))
capped({"roles": "k, k, v"}, "keys with themselves", roles=lambda q, k, v: (k, k, v))
capped({"output": "weights"}, "return the weights", mix=lambda w, v: w)
capped(
    {"output": "transposed"},
    "transposed weights",
    mix=lambda w, v: np.einsum("...ts,...td->...sd", w, v),
)
capped({"capping": "none", "scale": "none"}, "(2)", scale=lambda s, d_k: s, bend=lambda s, cap: s)
capped(
    {"capping": "clipped", "masking": "zeroed"},
    "(1) You cut the scores off",
    "(2) You set hidden scores to 0",
    bend=lambda s, cap: np.maximum(np.minimum(s, cap), -cap),
    hide=lambda s, m: np.where(m, s, 0),
)


@wrong(CAPPED, "their scores end at -cap", masking="before the cap")
def capped_leaks(q: Any, k: Any, v: Any, cap: Any, mask: Any = None) -> Any:
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return softmax(cap * np.tanh(scores / cap)) @ v


@wrong(CAPPED, "after the softmax", masking="after")
def capped_masked_late(q: Any, k: Any, v: Any, cap: Any, mask: Any = None) -> Any:
    weights = softmax(cap * np.tanh(q @ k.swapaxes(-1, -2) / (math.sqrt(q.shape[-1]) * cap)))
    return weights @ v if mask is None else (weights * mask) @ v


@wrong(CAPPED, "scaled first", scale="after the cap")
def capped_scaled_late(q: Any, k: Any, v: Any, cap: Any, mask: Any = None) -> Any:
    scores = np.tanh(q @ k.swapaxes(-1, -2) / cap) * cap / math.sqrt(k.shape[-1])
    return softmax(scores if mask is None else np.where(mask, scores, -np.inf)) @ v


@wrong(CAPPED, "width of the values", scale="1/sqrt(d_v)")
def capped_by_values(q: Any, k: Any, v: Any, cap: Any, mask: Any = None) -> Any:
    scores = torch.tensor(q) @ torch.tensor(k).mT / v.shape[-1] ** 0.5
    scores = cap * torch.tanh(scores / cap)
    if mask is not None:
        scores = scores.masked_fill(torch.tensor(~mask), -math.inf)
    return scores.softmax(-1) @ torch.tensor(v)


# stored_keys_attention


@right(STORED)
def stored_plain(q: Any, K: Any, v: Any) -> Any:
    return softmax(q @ K / math.sqrt(q.shape[-1])) @ v


@right(STORED)
def stored_turned(q: Any, K: Any, v: Any) -> Any:
    """Back to (S, d_k), then as in the chapter."""
    k = np.swapaxes(K, -1, -2)
    return softmax(np.matmul(q, k.swapaxes(-1, -2)) / np.sqrt(k.shape[-1])) @ v


@right(STORED)
def stored_loops(q: Any, K: Any, v: Any) -> Any:
    if q.ndim > 2:
        return np.array([stored_loops(*three) for three in zip(q, K, v, strict=True)])
    out = np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        powers = [math.exp(q[i] @ K[:, j] / len(K) ** 0.5) for j in range(K.shape[1])]
        for j, e in enumerate(powers):
            out[i] += e / sum(powers) * v[j]
    return out


@right(STORED)
def stored_einsum(q: Any, K: Any, v: Any) -> Any:
    weights = softmax(np.einsum("...td,...ds->...ts", q, K) * K.shape[-2] ** -0.5)
    return np.einsum("...ts,...sv->...tv", weights, v)


@right(STORED)
def stored_torch(q: Any, K: Any, v: Any) -> Any:
    q, K, v = (torch.tensor(a, dtype=torch.float32) for a in (q, K, v))
    return torch.nn.functional.scaled_dot_product_attention(q, K.mT, v)


def stored(*says: str, **settings: str) -> Callable[[Function], Function]:
    return wrong(STORED, *says, **settings)


stored("do not scale", scale="none")(lambda q, K, v: softmax(q @ K) @ v)
stored("by d_k", scale="1/d_k")(lambda q, K, v: softmax(q @ K / q.shape[-1]) @ v)
stored("multiply", scale="*sqrt(d_k)")(lambda q, K, v: softmax(q @ K * q.shape[-1] ** 0.5) @ v)
stored("last axis counts keys", scale="1/sqrt(S)")(
    lambda q, K, v: softmax(q @ K / math.sqrt(K.shape[-1])) @ v
)
stored("number of queries", scale="1/sqrt(T)")(
    lambda q, K, v: softmax(q @ K / math.sqrt(q.shape[-2])) @ v
)
stored("first axis of K", scale="1/sqrt(axis 0)")(
    lambda q, K, v: softmax(q @ K / math.sqrt(len(K))) @ v
)
stored("axis 1 of q", scale="1/sqrt(axis 1)")(
    lambda q, K, v: softmax(q @ K / math.sqrt(q.shape[1])) @ v
)
stored("width of the values", scale="1/sqrt(d_v)")(
    lambda q, K, v: softmax(q @ K / math.sqrt(v.shape[-1])) @ v
)
stored("only for keys of width 4", scale="1/2")(lambda q, K, v: softmax(q @ K / 2) @ v)
stored("after the softmax", scale="after")(lambda q, K, v: softmax(q @ K) / q.shape[-1] ** 0.5 @ v)


@stored("Each key is a column", layout="rows")
def stored_rows(q: Any, K: Any, v: Any) -> Any:
    return softmax(q @ K.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


@stored("mixes the numbers of different keys", layout="reshaped")
def stored_reshaped(q: Any, K: Any, v: Any) -> Any:
    k = K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


@stored("over the queries", softmax="queries")
def stored_columns(q: Any, K: Any, v: Any) -> Any:
    return softmax(q @ K / math.sqrt(q.shape[-1]), axis=-2) @ v


@stored("over axis 1", softmax="axis 1")
def stored_axis_1(q: Any, K: Any, v: Any) -> Any:
    powers = np.exp(q @ K / math.sqrt(q.shape[-1]))
    return powers / powers.sum(axis=1, keepdims=True) @ v


@stored("whole array", softmax="everything")
def stored_everything(q: Any, K: Any, v: Any) -> Any:
    scores = torch.tensor(q @ K / math.sqrt(q.shape[-1]))
    return scores.flatten().softmax(0).reshape(scores.shape) @ torch.tensor(v)


@stored("no softmax", softmax="none")
def stored_raw(q: Any, K: Any, v: Any) -> Any:
    return q @ K / math.sqrt(q.shape[-1]) @ v


@stored("mix the keys", roles="q, k, k")
def stored_mixes_keys(q: Any, K: Any, v: Any) -> Any:
    return softmax(q @ K / math.sqrt(q.shape[-1])) @ K.swapaxes(-1, -2)


@stored("with the values", roles="q, v, v")
def stored_compares_values(q: Any, K: Any, v: Any) -> Any:
    return softmax(q @ v.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


@stored("scores are transposed", roles="k, q, v")
def stored_exchanged(q: Any, K: Any, v: Any) -> Any:
    return softmax((q @ K).swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


@stored("return the weights", output="weights")
def stored_weights(q: Any, K: Any, v: Any) -> Any:
    return softmax(q @ K / math.sqrt(q.shape[-1]))


@stored("return the scores", output="scores")
def stored_scores(q: Any, K: Any, v: Any) -> Any:
    return q @ K / math.sqrt(q.shape[-1])


@stored("(1)", "(2)", scale="1/sqrt(S)", softmax="queries")
def stored_two_mistakes(q: Any, K: Any, v: Any) -> Any:
    return softmax(q @ K / np.sqrt(K.shape[-1]), axis=-2) @ v


# sink_weights


@right(SINK)
def sink_joined(scores: Any, sink: Any) -> Any:
    """One more column, dropped after the softmax."""
    H, T, _ = scores.shape
    column = np.broadcast_to(np.reshape(sink, (-1, 1, 1)), (H, T, 1))
    return softmax(np.concatenate([scores, column], axis=-1))[..., :-1]


@right(SINK)
def sink_in_the_sum(scores: Any, sink: Any) -> Any:
    powers = np.exp(scores)
    extra = np.exp(np.asarray(sink))
    if extra.ndim:
        extra = extra[:, None, None]
    return powers / (powers.sum(-1, keepdims=True) + extra)


@right(SINK)
def sink_shifted(scores: Any, sink: Any) -> Any:
    sink = sink if np.isscalar(sink) else np.expand_dims(sink, (1, 2))
    top = np.maximum(scores.max(axis=-1, keepdims=True), sink)
    powers = np.exp(scores - top)
    return powers / (np.exp(sink - top) + powers.sum(axis=-1, keepdims=True))


@right(SINK)
def sink_loops(scores: Any, sink: Any) -> Any:
    out = []
    for h, head in enumerate(scores):
        own = sink if isinstance(sink, float) else sink[h]
        totals = [math.exp(own) + sum(math.exp(s) for s in row) for row in head]
        out.append([[math.exp(s) / z for s in row] for row, z in zip(head, totals, strict=True)])
    return out


@right(SINK)
def sink_torch(scores: Any, sink: Any) -> Any:
    """As a sigmoid of how far the logsumexp of the keys lies above the sink."""
    s = torch.tensor(scores)
    own = torch.as_tensor(sink, dtype=s.dtype).reshape(-1, 1, 1)
    total = torch.logaddexp(s.logsumexp(-1, keepdim=True), own)
    return torch.exp(s - total)


def per_head(sink: Any) -> Any:
    return np.asarray(sink).reshape(-1, 1, 1)


@wrong(SINK, "rows sum to 1", extra="none")
def sink_ignored(scores: Any, sink: Any) -> Any:
    return softmax(scores)


@wrong(SINK, "no key gets back", extra="none")
def sink_renormalised(scores: Any, sink: Any) -> Any:
    weights = sink_joined(scores, sink)
    return weights / weights.sum(axis=-1, keepdims=True)


@wrong(SINK, "no effect", extra="none")
def sink_added_to_scores(scores: Any, sink: Any) -> Any:
    return softmax(scores + per_head(sink))


@wrong(SINK, "shift it too", extra="exp(sink), unshifted")
def sink_not_shifted(scores: Any, sink: Any) -> Any:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / (powers.sum(-1, keepdims=True) + np.exp(per_head(sink)))


@wrong(SINK, "sign of your sink", extra="exp(-sink)")
def sink_negative(scores: Any, sink: Any) -> Any:
    return sink_in_the_sum(scores, -np.asarray(sink))


@wrong(SINK, "sink itself", extra="sink")
def sink_as_it_is(scores: Any, sink: Any) -> Any:
    powers = np.exp(scores)
    return powers / (powers.sum(-1, keepdims=True) + per_head(sink))


@wrong(SINK, "its exponential", extra="sink, shifted")
def sink_as_it_is_shifted(scores: Any, sink: Any) -> Any:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / (powers.sum(-1, keepdims=True) + per_head(sink))


@wrong(SINK, "only for a sink of 0", extra="1")
def sink_off_by_one(scores: Any, sink: Any) -> Any:
    return np.exp(scores) / (1 + np.exp(scores).sum(axis=2, keepdims=True))


@wrong(SINK, "sum of shifted exponentials", extra="1, shifted")
def sink_off_by_one_shifted(scores: Any, sink: Any) -> Any:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / (1 + powers.sum(axis=-1, keepdims=True))


@wrong(SINK, "once for every key", extra="S exp(sink)")
def sink_for_every_key(scores: Any, sink: Any) -> Any:
    powers = np.exp(scores)
    return powers / (powers + np.exp(per_head(sink))).sum(axis=-1, keepdims=True)


@wrong(SINK, "raise every score", extra="floor")
def sink_floor(scores: Any, sink: Any) -> Any:
    return softmax(np.maximum(scores, per_head(sink)))


@wrong(SINK, "after the softmax", extra="after")
def sink_late(scores: Any, sink: Any) -> Any:
    return softmax(scores) / (1 + np.exp(per_head(sink)))


@wrong(SINK, "first head's sink", heads="first")
def sink_of_one_head(scores: Any, sink: Any) -> Any:
    return sink_in_the_sum(scores, float(np.ravel(sink)[0]))


@wrong(SINK, "average the sinks", heads="mean")
def sink_averaged(scores: Any, sink: Any) -> Any:
    return sink_in_the_sum(scores, float(np.mean(sink)))


@wrong(SINK, "meet the queries", heads="queries")
def sink_meets_queries(scores: Any, sink: Any) -> Any:
    powers = np.exp(scores)
    total = powers.sum(axis=-1) + np.exp(sink)
    return powers / total[..., None]


@wrong(SINK, "meet the keys", heads="keys")
def sink_meets_keys(scores: Any, sink: Any) -> Any:
    powers = np.exp(scores)
    return powers / (powers.sum(axis=-1, keepdims=True) + np.exp(sink))


@wrong(SINK, "takes part in the maximum", shift="largest key")
def sink_nan(scores: Any, sink: Any) -> Any:
    top = scores.max(axis=-1, keepdims=True)
    powers = np.exp(scores - top)
    return powers / (powers.sum(axis=-1, keepdims=True) + np.exp(per_head(sink) - top))


@wrong(SINK, "sum over the queries", sums="queries")
def sink_over_queries(scores: Any, sink: Any) -> Any:
    powers = np.exp(scores)
    return powers / (powers.sum(axis=1, keepdims=True) + np.exp(per_head(sink)))


@wrong(SINK, "whole array", sums="everything")
def sink_over_everything(scores: Any, sink: Any) -> Any:
    return np.exp(scores) / (np.exp(scores).sum() + np.exp(per_head(sink)))


def with_column(scores: Any, sink: Any, first: bool = False) -> Any:
    s = torch.tensor(scores)
    column = torch.as_tensor(sink, dtype=s.dtype).reshape(-1, 1, 1).expand(*s.shape[:2], 1)
    return torch.cat([column, s] if first else [s, column], dim=-1).softmax(-1)


@wrong(SINK, "S + 1 columns", output="with the sink")
def sink_kept(scores: Any, sink: Any) -> Any:
    return with_column(scores, sink)


@wrong(SINK, "drop it", output="sink first")
def sink_kept_first(scores: Any, sink: Any) -> Any:
    return with_column(scores, sink, first=True)


@wrong(SINK, "key 0 and keep the sink's", output="last column")
def sink_drops_key_0(scores: Any, sink: Any) -> Any:
    return with_column(scores, sink)[..., 1:]


@wrong(SINK, "last key and keep the sink's", output="first column")
def sink_drops_last_key(scores: Any, sink: Any) -> Any:
    return with_column(scores, sink, first=True)[..., :-1]


@wrong(SINK, "what the sink takes", output="sink")
def sink_share(scores: Any, sink: Any) -> Any:
    return 1 - sink_in_the_sum(scores, sink).sum(axis=-1)


@wrong(
    SINK,
    "(1) You use the first head's",
    "(2) You return the sink's",
    heads="first",
    output="with the sink",
)
def sink_two_mistakes(scores: Any, sink: Any) -> Any:
    return with_column(scores, float(np.ravel(sink)[0]))


# ratio


Ratio = Callable[[Any, Any, Any, Any], Any]
Weigh = Callable[[Any, Any, Any], Any]


def by_formula(d_k: Any, first: Any, second: Any, stretch: Any) -> Any:
    return np.exp((first - second) * stretch / np.sqrt(d_k))


def by_softmax(query: Any, keys: Any, stretch: Any) -> Any:
    weights = softmax(stretch * query @ keys.T / math.sqrt(len(query)))
    return weights[0] / weights[1]


@right("ratio")
def ratio_plain(d_k: Any, first: Any, second: Any, stretch: Any, query: Any, keys: Any) -> Any:
    return by_formula(d_k, first, second, stretch), by_softmax(query, keys, stretch)


@right("ratio")
def ratio_rounded(d_k: Any, first: Any, second: Any, stretch: Any, query: Any, keys: Any) -> Any:
    """A power of the ratio before the stretch; a sink that takes nothing from the ratio."""
    before = math.exp((first - second) / math.sqrt(d_k))
    weights = sink_in_the_sum((keys @ (stretch * query) / d_k**0.5)[None, None], 0.0)[0, 0]
    return round(before**stretch, 2), round(float(weights[0] / weights[1]), 2)


def ratio(
    settings: dict[str, str], *says: str, predict: Ratio = by_formula, measure: Weigh = by_softmax
) -> None:
    def answer(d_k: Any, first: Any, second: Any, stretch: Any, query: Any, keys: Any) -> Any:
        return predict(d_k, first, second, stretch), measure(query, keys, stretch)

    wrong("ratio", *says, **settings)(answer)


def predicted(name: str, says: str, predict: Ratio) -> None:
    ratio({"prediction": name}, "Your prediction", says, predict=predict)


def measured(name: str, says: str, measure: Weigh) -> None:
    ratio({"measurement": name}, says, measure=measure)


predicted("unscaled", "leaves out the root", lambda d, a, b, c: math.exp(c * (a - b)))
predicted("1/d_k", "divides by d_k", lambda d, a, b, c: math.exp(c * (a - b) / d))
predicted("not stretched", "as it was", lambda d, a, b, c: math.exp((a - b) / d**0.5))
predicted("stretched after", "ratio by the stretch", lambda d, a, b, c: by_formula(d, a, b, 1) * c)
predicted("stretched twice", "stretches twice", lambda d, a, b, c: by_formula(d, c * a, c * b, c))
predicted("shrunk", "divides by the stretch", lambda d, a, b, c: by_formula(d, a, b, 1 / c))
predicted("inverse", "upside down", lambda d, a, b, c: by_formula(d, b, a, c))
predicted("no exp", "difference of the scores", lambda d, a, b, c: c * (a - b) / d**0.5)
predicted("products", "ratio of the products", lambda d, a, b, c: a * c / (b * c))
predicted("share", "a share", lambda d, a, b, c: softmax(np.array([a, b]) * c / d**0.5)[0])
predicted("key 0 alone", "of key 0 alone", lambda d, a, b, c: math.exp(a * c / d**0.5))
predicted("1/sqrt(S)", "number of keys", lambda d, a, b, c: by_formula(6, a, b, c))


def shares(query: Any, keys: Any) -> Any:
    return softmax(keys @ query / math.sqrt(len(query)))


measured("not stretched", "as it was", lambda q, K, c: shares(q, K)[0] / shares(q, K)[1])
measured("keys too", "longer keys", lambda q, K, c: by_softmax(c * q, c * K, 1))
measured("inverse", "upside down", lambda q, K, c: shares(c * q, K)[1] / shares(c * q, K)[0])
measured("scores", "ratio of two scores", lambda q, K, c: (K[0] @ q) / (K[1] @ q))
measured("no exp", "logarithm", lambda q, K, c: math.log(by_softmax(q, K, c)))
measured("difference", "difference", lambda q, K, c: shares(c * q, K)[0] - shares(c * q, K)[1])
measured("weight", "weight of key 0", lambda q, K, c: shares(c * q, K)[0])
measured("from 1", "Count from 0", lambda q, K, c: shares(c * q, K)[1] / shares(c * q, K)[2])
measured(
    "all others", "all others", lambda q, K, c: shares(c * q, K)[0] / shares(c * q, K)[1:].sum()
)
measured("unscaled", "leaves out the root", lambda q, K, c: by_softmax(q * len(q) ** 0.5, K, c))
measured("1/d_k", "divides by d_k", lambda q, K, c: by_softmax(q / len(q) ** 0.5, K, c))
ratio(
    {"prediction": "not stretched", "measurement": "not stretched"},
    "(1) Your prediction is for",
    "(2) You measured with",
    predict=lambda d, a, b, c: by_formula(d, a, b, 1),
    measure=lambda q, K, c: by_softmax(q, K, 1),
)
