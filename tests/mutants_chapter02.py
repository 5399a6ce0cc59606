"""Answers to the exercises of chapter 2 as learners write them, each wrong one with its diagnosis.

Written apart from the reference functions of `attention_lib.checks`, never by changing settings.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.answers import Answers, softmax

ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong


# stable_softmax


@right("stable_softmax")
def stable_plain(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@right("stable_softmax")
def stable_row_by_row(scores: Any) -> Any:
    out = np.empty(scores.shape)
    for index in np.ndindex(scores.shape[:-1]):
        best = max(scores[index])
        powers = [math.exp(score - best) for score in scores[index]]
        out[index] = [power / sum(powers) for power in powers]
    return out


@right("stable_softmax")
def stable_log_sum(scores: Any) -> Any:
    return np.exp(scores - np.logaddexp.reduce(scores, axis=-1)[..., None])


@right("stable_softmax")
def stable_differences(scores: Any) -> Any:
    """1 over the sum of exp(s_j - s_i): infinity in the denominator is a weight of 0."""
    return 1 / np.exp(scores[..., None, :] - scores[..., :, None]).sum(-1)


@right("stable_softmax")
def stable_torch(scores: Any) -> Any:
    return torch.softmax(torch.tensor(scores, dtype=torch.float32), dim=-1)


def keep_max(s: Any) -> Any:
    return s.max(axis=-1, keepdims=True)


def keep_sum(e: Any) -> Any:
    return e.sum(axis=-1, keepdims=True)


def stable(
    says: str,
    offset: Callable[[Any], Any] = keep_max,
    total: Callable[[Any], Any] = keep_sum,
    power: Callable[[Any], Any] = np.exp,
    **settings: str,
) -> None:
    """The usual answer with one part replaced."""

    def fn(scores: Any) -> Any:
        e = power(scores - offset(scores))
        return e / total(e)

    wrong("stable_softmax", says, **settings)(fn)


stable("1e4 overflows", lambda s: 0, shift="none")
stable("one maximum from all rows", lambda s: s.max(), shift="everything")
stable("maxima along axis 0", lambda s: s.max(axis=0), shift="axis 0")
stable("subtract the minimum", lambda s: s.min(-1, keepdims=True), shift="minimum")
stable("subtract the mean", lambda s: np.mean(s, -1, keepdims=True), shift="mean")
stable("absolute value", lambda s: np.abs(s).max(-1, keepdims=True), shift="size")
stable("The maxima lost", lambda s: s.max(-1), keepdims="max")
stable("The sums lost", total=lambda e: e.sum(-1), keepdims="sum")
stable("Maxima and sums", lambda s: s.max(-1), lambda e: e.sum(-1), keepdims="both")
stable(
    "along axis 0",
    lambda s: s.max(0, keepdims=True),
    lambda e: e.sum(0, keepdims=True),
    axis="axis 0",
)
stable(
    "not always the last",
    lambda s: s.max(1, keepdims=True),
    lambda e: e.sum(1, keepdims=True),
    axis="axis 1",
)
stable("over the whole array", lambda s: s.max(), lambda e: e.sum(), axis="everything")
stable("powers of e", power=np.exp2, exp="2")
stable("powers of e", power=lambda x: 2**x, exp="2")
stable("Take exp of them first", power=lambda x: x, exp="none")
stable(
    "(2) You raise 2",
    lambda s: np.max(s),
    power=np.exp2,
    shift="everything",
    exp="2",
)


@wrong("stable_softmax", "overflows", "first", shift="none")
def stable_in_one_line(scores: Any) -> Any:
    return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)


@wrong("stable_softmax", "Divide the exponentials", total="none")
def stable_without_sum(scores: Any) -> Any:
    return np.exp(scores - scores.max(axis=-1, keepdims=True))


@wrong("stable_softmax", "sum of the whole array", total="everything")
def stable_whole_sum(scores: Any) -> Any:
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum()


@wrong("stable_softmax", "sums along axis 0", total="axis 0")
def stable_column_sums(scores: Any) -> Any:
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / np.sum(e, axis=0)


@wrong("stable_softmax", "sums to n", total="mean")
def stable_mean(scores: Any) -> Any:
    return softmax(scores) * scores.shape[-1]


@wrong("stable_softmax", "sum of squares", total="squares")
def stable_norm(scores: Any) -> Any:
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / np.linalg.norm(e, axis=-1, keepdims=True)


@wrong("stable_softmax", "Apply it once", total="twice")
def stable_twice(scores: Any) -> Any:
    return softmax(softmax(scores))


@wrong("stable_softmax", "logarithms", output="log")
def stable_log(scores: Any) -> Any:
    return torch.log_softmax(torch.tensor(scores), dim=-1).numpy()


@wrong("stable_softmax", "logarithms", output="log of weights")
def stable_log_of_weights(scores: Any) -> Any:
    return np.log(softmax(scores))


@wrong("stable_softmax", "largest score", output="largest")
def stable_one_hot(scores: Any) -> Any:
    return np.eye(scores.shape[-1])[scores.argmax(-1)]


@wrong("stable_softmax", "(1) You take exp", "(2) Your softmax", shift="none", axis="axis 0")
def stable_two_mistakes(scores: Any) -> Any:
    return np.exp(scores) / np.exp(scores).sum(0)


# scaled_scores


@right("scaled_scores")
def scores_plain(x: Any, W_Q: Any, W_K: Any) -> Any:
    q, k = x @ W_Q, x @ W_K
    return q @ k.T / math.sqrt(q.shape[-1])


@right("scaled_scores")
def scores_query_first(x: Any, W_Q: Any, W_K: Any) -> Any:
    return np.einsum("ie,je->ij", x @ W_Q / np.sqrt(W_Q.shape[1]), x @ W_K)


@right("scaled_scores")
def scores_fourth_roots(x: Any, W_Q: Any, W_K: Any) -> Any:
    root = W_K.shape[1] ** 0.25
    return (x @ W_Q / root) @ (x @ W_K / root).T


@right("scaled_scores")
def scores_torch_loops(x: Any, W_Q: Any, W_K: Any) -> Any:
    q, k = torch.tensor(x) @ torch.tensor(W_Q), torch.tensor(x) @ torch.tensor(W_K)
    return torch.stack([torch.stack([a.dot(b) * len(a) ** -0.5 for b in k]) for a in q])


def scores(says: str, fn: Callable[[Any, Any, Any], Any], **settings: str) -> None:
    """An answer made from x and the projected queries and keys."""

    def answer(x: Any, W_Q: Any, W_K: Any) -> Any:
        return fn(x, x @ W_Q, x @ W_K)

    wrong("scaled_scores", says, **settings)(answer)


def root(array: Any, axis: int = -1) -> float:
    return math.sqrt(array.shape[axis])


scores("do not scale", lambda x, q, k: q @ k.T, scale="none")
scores("by d_k, or by its root twice", lambda x, q, k: q @ k.T / len(k[0]), scale="1/d_k")
scores(
    "by d_k, or by its root twice",
    lambda x, q, k: (q / root(q)) @ (k / root(k)).T,
    scale="1/d_k",
)
scores("only for keys of width 4", lambda x, q, k: q @ k.T / 2, scale="1/2")
scores("multiply by", lambda x, q, k: q @ k.T * root(k), scale="*sqrt(d_k)")
scores("fourth root", lambda x, q, k: (q / root(q) ** 0.5) @ k.T, scale="1/d_k^(1/4)")
scores("number of tokens", lambda x, q, k: q @ k.T / root(k, 0), scale="1/sqrt(T)")
scores("width of x", lambda x, q, k: q @ k.T / root(x), scale="1/sqrt(d_model)")
scores("The factor is fixed", lambda x, q, k: q @ k.T / np.std(q @ k.T), scale="measured")
scores("transposed", lambda x, q, k: k @ q.T / root(k), projections="K, Q")
scores("transposed", lambda x, q, k: (q @ k.T / root(k)).T, projections="K, Q")
scores("queries with themselves", lambda x, q, k: q @ q.T / root(q), projections="Q, Q")
scores("keys with themselves", lambda x, q, k: k @ k.T / root(q), projections="K, K")
scores("return the weights", lambda x, q, k: softmax(q @ k.T / root(q)), output="weights")
scores("own key alone", lambda x, q, k: (q * k).sum(-1) / root(q), output="own key")
scores("sum over the tokens", lambda x, q, k: q.T @ k / root(q), output="features")
scores(
    "(2) Your scores are transposed",
    lambda x, q, k: k @ q.T / root(x),
    scale="1/sqrt(d_model)",
    projections="K, Q",
)
scores(
    "(2) You return the weights",
    lambda x, q, k: softmax(q @ k.T),
    scale="none",
    output="weights",
)


# softmax_jacobian


@right("softmax_jacobian")
def jacobian_plain(weights: Any) -> Any:
    return np.diag(weights) - np.outer(weights, weights)


@right("softmax_jacobian")
def jacobian_loops(weights: Any) -> Any:
    n = len(weights)
    return [[weights[i] * ((i == j) - weights[j]) for j in range(n)] for i in range(n)]


@right("softmax_jacobian")
def jacobian_transposed(weights: Any) -> Any:
    """The matrix is symmetric: the other way round is as right."""
    return (weights[:, None] * (np.eye(len(weights)) - weights)).T


@right("softmax_jacobian")
def jacobian_automatic(weights: Any) -> Any:
    logits = torch.log(torch.tensor(weights))
    return torch.autograd.functional.jacobian(  # type: ignore[no-untyped-call]
        lambda s: torch.softmax(s, dim=0), logits
    )


@right("softmax_jacobian")
def jacobian_differences(weights: Any) -> Any:
    """By central differences of a softmax whose output the weights are."""
    step = 1e-5 * np.eye(len(weights))
    scores = np.log(weights)
    return (softmax(scores + step) - softmax(scores - step)).T / 2e-5


def jacobian(says: str, fn: Callable[[Any], Any], **settings: str) -> None:
    wrong("softmax_jacobian", says, **settings)(fn)


jacobian("only the diagonal of weights", np.diag, form="diagonal weights")
jacobian("only the outer product", lambda w: -np.outer(w, w), form="no diagonal weights")
jacobian("You add the outer", lambda w: np.diag(w) + np.outer(w, w), form="plus")
jacobian("Every sign", lambda w: np.outer(w, w) - np.diag(w), form="negative")
jacobian("also moves weight i", lambda w: np.diag(w * (1 - w)), form="own score")
jacobian("also moves weight i", lambda w: np.diag(w) - np.diag(w**2), form="own score")
jacobian("of a sigmoid", lambda w: w * (1 - w), form="vector")
jacobian("from the identity", lambda w: np.eye(len(w)) - np.outer(w, w), form="identity")
jacobian(
    "-w_i squared",
    lambda w: w[:, None] * (np.eye(len(w)) - w[:, None]),
    form="squared rows",
)
jacobian("-w_j squared", lambda w: np.diag(w) - w**2, form="squared columns")
jacobian("on the diagonal alone", lambda w: np.outer(w, 1 - w), form="no delta")
jacobian("already are", lambda w: jacobian_plain(softmax(w)), given="scores")
jacobian(
    "(2) You apply a softmax",
    lambda w: np.diag(softmax(w) * (1 - softmax(w))),
    form="own score",
    given="scores",
)


@wrong("stable_softmax", "replace the NaN by 0", shift="none, NaN to 0")
def stable_without_nan(scores: Any) -> Any:
    exps = np.exp(scores)
    return np.nan_to_num(exps / exps.sum(axis=-1, keepdims=True))


@wrong("stable_softmax", "clip the scores", shift="clipped")
def stable_clipped(scores: Any) -> Any:
    exps = np.exp(np.clip(scores, -50, 50))
    return exps / exps.sum(axis=-1, keepdims=True)


@wrong("stable_softmax", "divide by the maximum", shift="divided")
def stable_divided(scores: Any) -> Any:
    exps = np.exp(scores / scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


@wrong("scaled_scores", "cosine similarity", output="cosine")
def scores_cosine(x: Any, W_Q: Any, W_K: Any) -> Any:
    q, k = x @ W_Q, x @ W_K
    lengths = np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(k, axis=1)
    return q @ k.T / lengths / np.sqrt(W_K.shape[1])


@wrong("scaled_scores", "by 8, the root of 64", scale="1/8")
def scores_of_width_64(x: Any, W_Q: Any, W_K: Any) -> Any:
    return x @ W_Q @ (x @ W_K).T / 64**0.5


@wrong("scaled_scores", "temperature of 2", scale="1/(2 sqrt(d_k))")
def scores_warm(x: Any, W_Q: Any, W_K: Any) -> Any:
    return x @ W_Q @ (x @ W_K).T / math.sqrt(W_K.shape[1]) / 2


@wrong("softmax_jacobian", "w @ w, one number", form="dot product")
def jacobian_with_a_dot_product(weights: Any) -> Any:
    return np.diag(weights) - weights @ weights
