"""Answers to the tasks of the assignment `scaling` as students write them, wrong ones with diagnoses.

Written apart from the references of `assignments.tasks`, never by changing settings.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tests.answers import Answers, softmax

ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong

COSINE, ENTROPY, GRADIENT = "cosine_attention", "weight_entropy", "softmax_gradient"
Step = Callable[..., Any]


# cosine_attention


@right(COSINE)
def cosine_plain(q: Any, k: Any, v: Any, tau: Any) -> Any:
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    k = k / np.linalg.norm(k, axis=-1, keepdims=True)
    return softmax(q @ k.swapaxes(-1, -2) / tau) @ v


@right(COSINE)
def cosine_loops(q: Any, k: Any, v: Any, tau: Any) -> Any:
    if q.ndim > 2:
        return np.stack([cosine_loops(*three, tau) for three in zip(q, k, v, strict=True)])
    rows = []
    for a in q:
        scores = [a @ b / (math.hypot(*a) * math.hypot(*b) * tau) for b in k]
        powers = np.array([math.exp(s) for s in scores])
        rows.append(sum(p * x for p, x in zip(powers / sum(powers), v, strict=True)))
    return rows


@right(COSINE)
def cosine_products_first(q: Any, k: Any, v: Any, tau: Any) -> Any:
    """The lengths divide the products, not the vectors."""
    lengths_q = np.sqrt(np.einsum("...td,...td->...t", q, q))
    lengths_k = np.sqrt(np.einsum("...sd,...sd->...s", k, k))
    scores = np.einsum("...td,...sd->...ts", q, k)
    scores = scores / (lengths_q[..., :, None] * lengths_k[..., None, :]) / tau
    return np.einsum("...ts,...sv->...tv", softmax(scores), v)


@right(COSINE)
def cosine_torch(q: Any, k: Any, v: Any, tau: Any) -> Any:
    q, k, v = (torch.tensor(a, dtype=torch.float32) for a in (q, k, v))
    scores = F.cosine_similarity(q[..., :, None, :], k[..., None, :, :], dim=-1)
    return (scores / tau).softmax(-1) @ v


def length(x: Any) -> Any:
    return np.sqrt((x * x).sum(axis=-1, keepdims=True))


def cosine(
    settings: dict[str, str],
    *says: str,
    of_q: Step = lambda q: q / length(q),
    of_k: Step = lambda k: k / length(k),
    heat: Step = lambda s, tau, d_k: s / tau,
    weigh: Step = softmax,
    mix: Step = lambda w, v, k, tau: w @ v,
    roles: Step = lambda q, k, v: (q, k, v),
) -> None:
    """A wrong answer put together from the usual steps, some of them replaced."""

    def answer(q: Any, k: Any, v: Any, tau: Any) -> Any:
        q, k, v = roles(q, k, v)
        scores = of_q(q) @ of_k(k).swapaxes(-1, -2)
        return mix(weigh(heat(scores, tau, q.shape[-1])), v, k, tau)

    wrong(COSINE, *says, **settings)(answer)


def lengths(name: str, says: str, of: Step) -> None:
    """Queries and keys both treated by `of`."""
    cosine({"length": name}, says, of_q=of, of_k=of)


lengths("none", "long keys win", lambda x: x)
lengths("squared", "squared length", lambda x: x / (x**2).sum(-1, keepdims=True))
lengths("root of the length", "root of the length", lambda x: x / np.sqrt(length(x)))
lengths("absolute", "absolute values", lambda x: x / np.linalg.norm(x, 1, axis=-1, keepdims=True))
lengths("largest", "largest entry", lambda x: x / np.abs(x).max(axis=-1, keepdims=True))
lengths("of columns", "along the tokens", lambda x: x / np.linalg.norm(x, axis=-2, keepdims=True))
lengths("along axis 1", "axis 1", lambda x: x / np.linalg.norm(x, axis=1, keepdims=True))
lengths("of everything", "whole array", lambda x: x / np.linalg.norm(x))
lengths("standardised", "mean first", lambda x: cosine_centred(x) * x.shape[-1] ** 0.5)
lengths("centred", "keeps its direction", lambda x: cosine_centred(x))
cosine({"length": "q alone"}, "queries alone", of_k=lambda k: k)
cosine({"length": "k alone"}, "keys alone", of_q=lambda q: q)
cosine({"length": "v too"}, "values too", mix=lambda w, v, k, tau: w @ (v / length(v)))
cosine({"temperature": "ignored"}, "no effect", heat=lambda s, tau, d_k: s)
cosine({"temperature": "multiplied"}, "makes the weights sharper", heat=lambda s, tau, d_k: s * tau)
cosine({"temperature": "1/sqrt(tau)"}, "root of the", heat=lambda s, tau, d_k: s / math.sqrt(tau))
cosine({"temperature": "twice"}, "twice", heat=lambda s, tau, d_k: s / tau / tau)
cosine(
    {"temperature": "sqrt(d_k) too"}, "sqrt(d_k) too", heat=lambda s, tau, d_k: s / tau / d_k**0.5
)
cosine({"temperature": "sqrt(d_k)"}, "stands in its place", heat=lambda s, tau, d_k: s / d_k**0.5)
cosine(
    {"temperature": "after"},
    "after the softmax",
    heat=lambda s, tau, d_k: s,
    mix=lambda w, v, k, tau: w / tau @ v,
)
cosine({"softmax": "queries"}, "over the queries", weigh=lambda s: softmax(s, axis=-2))
cosine({"softmax": "everything"}, "whole array", weigh=lambda s: np.exp(s) / np.sum(np.exp(s)))
cosine({"softmax": "none"}, "no softmax", weigh=lambda s: s)
cosine({"softmax": "no exp"}, "without exp", weigh=lambda s: s / s.sum(-1, keepdims=True))
cosine({"roles": "q, k, k"}, "mix the keys", mix=lambda w, v, k, tau: w @ k)
cosine({"roles": "q, k, unit k"}, "as they are", mix=lambda w, v, k, tau: w @ (k / length(k)))
cosine({"roles": "k, q, v"}, "exchanged. Row i", roles=lambda q, k, v: (k, q, v))
cosine({"roles": "q, v, v"}, "with the values", roles=lambda q, k, v: (q, v, v))
cosine({"output": "weights"}, "return the weights", mix=lambda w, v, k, tau: w)


def cosine_centred(x: Any) -> Any:
    """Correlation in place of the cosine."""
    x = x - x.mean(axis=-1, keepdims=True)
    return x / length(x)


cosine(
    {"length": "none", "temperature": "sqrt(d_k)"},
    "(1) You compare the vectors",
    "(2) You divide by sqrt(d_k)",
    of_q=lambda q: q,
    of_k=lambda k: k,
    heat=lambda s, tau, d_k: s / d_k**0.5,
)


@wrong(COSINE, "over axis 1", softmax="axis 1")
def cosine_axis_1(q: Any, k: Any, v: Any, tau: Any) -> Any:
    q, k = (F.normalize(torch.tensor(a), dim=-1) for a in (q, k))
    return (q @ k.mT / tau).softmax(dim=1) @ torch.tensor(v)


# weight_entropy


@right(ENTROPY)
def entropy_plain(scores: Any) -> Any:
    weights = softmax(scores)
    logs = np.log2(np.where(weights > 0, weights, 1))
    return -(weights * logs).sum(axis=-1)


@right(ENTROPY)
def entropy_loops(scores: Any) -> Any:
    if scores.ndim > 1:
        return [entropy_loops(row) for row in scores]
    powers = [math.exp(s - max(scores)) for s in scores]
    shares = [p / sum(powers) for p in powers]
    return -sum(w * math.log2(w) for w in shares if w > 0)


@right(ENTROPY)
def entropy_little(scores: Any) -> Any:
    """A little is added inside the logarithm."""
    weights = softmax(scores)
    return np.einsum("...s,...s->...", weights, -np.log2(weights + 1e-12))


@right(ENTROPY)
def entropy_of_logits(scores: Any) -> Any:
    """The logarithm of the sum of exponentials, less the mean score."""
    top = scores.max(-1, keepdims=True)
    shifted = np.maximum(scores - top, -1e6)
    powers = np.exp(shifted)
    total = powers.sum(-1)
    return (np.log(total) - (powers * shifted).sum(-1) / total) / np.log(2)


@right(ENTROPY)
def entropy_torch(scores: Any) -> Any:
    weights = torch.tensor(scores, dtype=torch.float32).softmax(-1)
    return torch.special.entr(weights).sum(-1) / math.log(2)


def entropy(settings: dict[str, str], *says: str) -> Callable[[Step], Step]:
    return wrong(ENTROPY, *says, **settings)


def surprises(weights: Any) -> Any:
    return -np.log2(weights, out=np.zeros_like(weights), where=weights > 0)


@entropy({"base": "e"}, "in nats")
def entropy_nats(scores: Any) -> Any:
    weights = softmax(scores)
    return -np.sum(weights * np.log(np.maximum(weights, 1e-300)), axis=-1)


@entropy({"base": "10"}, "base 10")
def entropy_base_10(scores: Any) -> Any:
    weights = softmax(scores)
    return -np.sum(weights * np.log10(np.maximum(weights, 1e-300)), axis=-1)


@entropy({"hidden": "NaN"}, "0 times -inf")
def entropy_nan(scores: Any) -> Any:
    weights = softmax(scores)
    return -(weights * np.log2(weights)).sum(-1)


@entropy({"hidden": "NaN at 0"}, "look at the weights")
def entropy_nan_at_underflow(scores: Any) -> Any:
    weights = softmax(scores)
    terms = -weights * np.log2(weights)
    terms[np.isneginf(scores)] = 0
    return terms.sum(-1)


@entropy({"hidden": "score 0"}, "exp(0) = 1")
def entropy_hidden_as_0(scores: Any) -> Any:
    return entropy_plain(np.where(np.isfinite(scores), scores, 0))


@entropy({"shift": "none"}, "overflows")
def entropy_overflow(scores: Any) -> Any:
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    return (weights * surprises(weights)).sum(-1)


@entropy({"shift": "everything"}, "one maximum")
def entropy_one_maximum(scores: Any) -> Any:
    powers = np.exp(scores - scores.max())
    weights = powers / powers.sum(-1, keepdims=True)
    return (weights * surprises(weights)).sum(-1)


@entropy({"shift": "none, dropped"}, "1e4 overflows")
def entropy_overflow_dropped(scores: Any) -> Any:
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    return np.where(weights > 0, -weights * np.log2(weights), 0).sum(-1)


@entropy({"shift": "everything, dropped"}, "far below it")
def entropy_one_maximum_dropped(scores: Any) -> Any:
    powers = np.exp(scores - np.max(scores))
    weights = powers / powers.sum(-1, keepdims=True)
    return np.nan_to_num(-weights * np.log2(weights)).sum(-1)


@entropy({"axis": "queries"}, "softmax runs over the queries")
def entropy_softmax_of_columns(scores: Any) -> Any:
    weights = softmax(scores, axis=-2)
    return (weights * surprises(weights)).sum(-1)


@entropy({"axis": "queries, throughout"}, "Softmax and sum")
def entropy_of_columns(scores: Any) -> Any:
    weights = softmax(scores, axis=-2)
    return (weights * surprises(weights)).sum(axis=-2)


@entropy({"axis": "everything"}, "whole array")
def entropy_of_everything(scores: Any) -> Any:
    weights = softmax(scores.ravel()).reshape(scores.shape)
    return (weights * surprises(weights)).sum(-1)


@entropy({"form": "negative"}, "turn the sign round")
def entropy_negative(scores: Any) -> Any:
    return -entropy_plain(scores)


@entropy({"form": "mean"}, "average the terms")
def entropy_mean(scores: Any) -> Any:
    return (softmax(scores) * surprises(softmax(scores))).mean(axis=-1)


@entropy({"form": "terms"}, "Sum them over the keys")
def entropy_terms(scores: Any) -> Any:
    return softmax(scores) * surprises(softmax(scores))


@entropy({"form": "mean of rows"}, "average over the rows")
def entropy_of_all_rows(scores: Any) -> Any:
    return entropy_plain(scores).mean()


@entropy({"form": "all rows"}, "sum over the whole array")
def entropy_total(scores: Any) -> Any:
    return np.sum(softmax(scores) * surprises(softmax(scores)))


@entropy({"form": "2^H"}, "number of keys in use")
def entropy_perplexity(scores: Any) -> Any:
    return np.exp2(entropy_torch(scores).numpy())


@entropy({"form": "share"}, "largest possible")
def entropy_share(scores: Any) -> Any:
    return entropy_plain(scores) / math.log2(scores.shape[-1])


@entropy({"form": "surprise"}, "surprise of the largest weight")
def entropy_of_the_best(scores: Any) -> Any:
    return -np.log2(softmax(scores).max(axis=-1))


@entropy({"form": "squares"}, "sum of squares")
def entropy_collision(scores: Any) -> Any:
    return -np.log2(np.square(softmax(scores)).sum(-1))


@entropy({"form": "logarithms"}, "without their weights")
def entropy_unweighted(scores: Any) -> Any:
    return surprises(softmax(scores)).sum(-1)


@entropy({"form": "weights"}, "return the weights")
def entropy_weights(scores: Any) -> Any:
    return torch.tensor(scores).softmax(-1)


@entropy({"base": "e", "hidden": "NaN"}, "(1) Your entropy is in nats", "(2) A weight of 0")
def entropy_nats_and_nan(scores: Any) -> Any:
    weights = softmax(scores)
    return -(weights * np.log(weights)).sum(axis=-1)


# softmax_gradient


@right(GRADIENT)
def gradient_plain(w: Any, d_w: Any, scale: Any) -> Any:
    return scale * w * (d_w - (w * d_w).sum(axis=-1, keepdims=True))


@right(GRADIENT)
def gradient_by_jacobians(w: Any, d_w: Any, scale: Any) -> Any:
    """Row by row, the chapter's Jacobian times the gradient."""
    if w.ndim > 1:
        return np.array([gradient_by_jacobians(*two, scale) for two in zip(w, d_w, strict=True)])
    return (np.diag(w) - np.outer(w, w)) @ d_w * scale


@right(GRADIENT)
def gradient_loops(w: Any, d_w: Any, scale: Any) -> Any:
    out = np.empty(w.shape)
    for row in np.ndindex(w.shape[:-1]):
        mean = sum(a * b for a, b in zip(w[row], d_w[row], strict=True))
        for j in range(w.shape[-1]):
            out[row][j] = w[row][j] * (d_w[row][j] - mean) * scale
    return out


@right(GRADIENT)
def gradient_einsum(w: Any, d_w: Any, scale: Any) -> Any:
    means = np.einsum("...s,...s->...", w, d_w)
    return np.einsum("...s,...s->...s", scale * w, d_w - means[..., None])


@right(GRADIENT)
def gradient_autograd(w: Any, d_w: Any, scale: Any) -> Any:
    """The products are known from the weights, but for a number for each row."""
    s = torch.tensor(np.log(np.maximum(w, 1e-300)) / scale, requires_grad=True)
    (s * scale).softmax(-1).backward(torch.tensor(d_w))
    return s.grad


def gradient(settings: dict[str, str], *says: str) -> Callable[[Step], Step]:
    return wrong(GRADIENT, *says, **settings)


def means(w: Any, d_w: Any) -> Any:
    return (w * d_w).sum(axis=-1, keepdims=True)


SUBTRACTED: dict[str, tuple[str, Step]] = {
    "nothing": ("subtract nothing", lambda w, g: 0),
    "sum of d_w": ("plain sum", lambda w, g: g.sum(axis=-1, keepdims=True)),
    "mean of d_w": ("plain mean", lambda w, g: g.mean(axis=-1, keepdims=True)),
    "mean of w d_w": ("average w d_w", lambda w, g: np.mean(w * g, axis=-1)[..., None]),
    "added": ("a row of the gradient sums to 0", lambda w, g: -means(w, g)),
    "over queries": ("sum over the queries", lambda w, g: (w * g).sum(axis=-2, keepdims=True)),
    "over everything": ("whole array", lambda w, g: np.vdot(w, g)),
    "own": ("as if the Jacobian were diagonal", lambda w, g: w * g),
    "1": ("subtract 1", lambda w, g: w.sum(axis=-1, keepdims=True)),
}
for name, (says, subtract) in SUBTRACTED.items():
    gradient({"subtracted": name}, says)(
        lambda w, d_w, scale, subtract=subtract: scale * w * (d_w - subtract(w, d_w))
    )

gradient({"front": "none"}, "leave out the weight")(
    lambda w, d_w, scale: scale * (d_w - means(w, d_w))
)
gradient({"front": "w^2"}, "twice")(lambda w, d_w, scale: w * gradient_plain(w, d_w, scale))
gradient({"front": "w (1 - w)"}, "sigmoid")(
    lambda w, d_w, scale: scale * w * (1 - w) * (d_w - means(w, d_w))
)
gradient({"factor": "none"}, "leave out the scale")(lambda w, d_w, scale: gradient_plain(w, d_w, 1))
gradient({"factor": "1/scale"}, "divide by the scale")(
    lambda w, d_w, scale: w * (d_w - means(w, d_w)) / scale
)
gradient({"factor": "scale^2"}, "scale twice")(
    lambda w, d_w, scale: scale * gradient_plain(w, scale * d_w, 1)
)
gradient({"factor": "sqrt(scale)"}, "root of the scale")(
    lambda w, d_w, scale: math.sqrt(scale) * w * (d_w - means(w, d_w))
)
gradient({"factor": "1/sqrt(S)"}, "root of the number of keys")(
    lambda w, d_w, scale: w * (d_w - means(w, d_w)) / math.sqrt(w.shape[-1])
)
gradient({"factor": "first term"}, "only d_w")(
    lambda w, d_w, scale: scale * w * d_w - w * means(w, d_w)
)
gradient({"factor": "second term"}, "only the sum")(
    lambda w, d_w, scale: w * d_w - scale * w * means(w, d_w)
)
gradient({"roles": "softmax of w"}, "It is one already")(
    lambda w, d_w, scale: gradient_plain(softmax(w), d_w, scale)
)
gradient({"roles": "d_w, w"}, "exchanged")(
    lambda w, d_w, scale: gradient_by_jacobians(d_w, w, scale)
)
gradient({"output": "negative"}, "Every sign")(
    lambda w, d_w, scale: scale * w * (means(w, d_w) - d_w)
)
gradient({"output": "Jacobian"}, "Apply it to d_w")(
    lambda w, d_w, scale: scale * (np.eye(w.shape[-1]) - w[..., None, :]) * w[..., None]
)
gradient({"subtracted": "nothing", "factor": "none"}, "(1)", "(2) You leave out")(
    lambda w, d_w, scale: w * d_w
)


# spread


Predict = Callable[[Any, Any, Any, Any], Any]
Measure = Callable[[Any, Any], Any]  # of the products and the scale


def by_formula(d_k: Any, sigma_q: Any, sigma_k: Any, scale: Any) -> Any:
    return scale * sigma_q * sigma_k * math.sqrt(d_k)


def by_scores(products: Any, scale: Any) -> Any:
    return (products * scale).std()


@right("spread")
def spread_plain(d: Any, sigma_q: Any, sigma_k: Any, scale: Any, queries: Any, keys: Any) -> Any:
    return by_formula(d, sigma_q, sigma_k, scale), by_scores(queries @ keys.T, scale)


@right("spread")
def spread_torch(d: Any, sigma_q: Any, sigma_k: Any, scale: Any, queries: Any, keys: Any) -> Any:
    """The root of a sum of variances; a standard deviation that divides by n - 1."""
    variance = sum((scale * sigma_q * sigma_k) ** 2 for _ in range(d))
    scores = torch.tensor(scale * queries) @ torch.tensor(keys).T
    return round(variance**0.5, 2), scores.std()


def spread(
    settings: dict[str, str],
    *says: str,
    predict: Predict = by_formula,
    measure: Measure = by_scores,
) -> None:
    def answer(d: Any, sigma_q: Any, sigma_k: Any, scale: Any, q: Any, k: Any) -> Any:
        return predict(d, sigma_q, sigma_k, scale), measure(np.einsum("td,sd->ts", q, k), scale)

    wrong("spread", *says, **settings)(answer)


def predicted(name: str, says: str, predict: Predict) -> None:
    spread({"prediction": name}, "Your prediction", says, predict=predict)


def measured(name: str, says: str, measure: Measure) -> None:
    spread({"measurement": name}, says, measure=measure)


predicted("variance", "is the variance", lambda d, a, b, c: d * (a * b * c) ** 2)
predicted("unscaled", "leaves out the scale", lambda d, a, b, c: a * b * d**0.5)
predicted("divided", "divides by the scale", lambda d, a, b, c: a * b * d**0.5 / c)
predicted("sqrt(scale)", "root of the scale", lambda d, a, b, c: a * b * (c * d) ** 0.5)
predicted("d_k", "grows as d_k", lambda d, a, b, c: a * b * c * d)
predicted("no d_k", "one product of two entries", lambda d, a, b, c: a * b * c)
predicted("1/sqrt(d_k)", "the scale 1/sqrt(d_k)", lambda d, a, b, c: a * b)
predicted("sigmas 1", "variance 1", lambda d, a, b, c: c * d**0.5)
predicted("sigma_q alone", "leaves out sigma_k", lambda d, a, b, c: a * c * d**0.5)
predicted("sigma_k alone", "leaves out sigma_q", lambda d, a, b, c: b * c * d**0.5)
predicted("sum", "adds the sigmas", lambda d, a, b, c: (a + b) * c * d**0.5)
predicted("squares", "squares the sigmas", lambda d, a, b, c: (a * b) ** 2 * c * d**0.5)
measured("variance", "measured the variance", lambda p, c: np.var(c * p))
measured("unscaled", "without the scale", lambda p, c: p.std())
measured("divided", "divided by the scale", lambda p, c: np.std(p / c))
measured("rows", "each query's scores alone", lambda p, c: np.std(c * p, axis=1).mean())
measured("mean", "nearly 0", lambda p, c: (c * p).mean())
measured("size", "mean absolute", lambda p, c: abs(c * p).mean())


@wrong("spread", "with the scale 1/sqrt(d_k)", measurement="1/sqrt(d_k)")
def spread_usual(d: Any, sigma_q: Any, sigma_k: Any, scale: Any, queries: Any, keys: Any) -> Any:
    return by_formula(d, sigma_q, sigma_k, scale), np.std(queries @ keys.T / math.sqrt(d))


@wrong("spread", "Your prediction is your measurement", prediction="measured")
def spread_seen(d: Any, sigma_q: Any, sigma_k: Any, scale: Any, queries: Any, keys: Any) -> Any:
    return (by_scores(queries @ keys.T, scale),) * 2


@wrong("spread", "Your measurement is your prediction", measurement="predicted")
def spread_unseen(d: Any, sigma_q: Any, sigma_k: Any, scale: Any, queries: Any, keys: Any) -> Any:
    return [by_formula(d, sigma_q, sigma_k, scale)] * 2


spread(
    {"prediction": "variance", "measurement": "variance"},
    "(1) Your prediction is the variance",
    "(2) You measured the variance",
    predict=lambda d, a, b, c: d * (a * b * c) ** 2,
    measure=lambda p, c: (c * p).var(),
)
