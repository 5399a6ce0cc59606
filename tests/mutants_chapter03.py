"""Answers to the exercises of chapter 3 as learners write them, each wrong one with its diagnosis.

Written apart from the reference functions of `attention_lib.checks`, never by changing settings.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tests.answers import Answers, Function, softmax

ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong


# causal_mask


@right("causal_mask")
def mask_plain(T: Any, S: Any) -> Any:
    return np.arange(S) <= np.arange(T)[:, None] + S - T


@right("causal_mask")
def mask_triangle(T: Any, S: Any) -> Any:
    return np.tril(np.ones((T, S), dtype=bool), k=S - T)


@right("causal_mask")
def mask_last_rows(T: Any, S: Any) -> Any:
    return np.tri(S, dtype=bool)[-T:]


@right("causal_mask")
def mask_loops(T: Any, S: Any) -> Any:
    return [[j <= i for j in range(S)] for i in range(S - T, S)]


@right("causal_mask")
def mask_torch(T: Any, S: Any) -> Any:
    return ~torch.ones(T, S).triu(S - T + 1).bool()


def mask(says: str, fn: Callable[[int, int], Any], **settings: str) -> None:
    wrong("causal_mask", says, **settings)(fn)


mask("from itself", lambda T, S: np.tri(T, S, S - T - 1, dtype=bool), order="j < i")
mask("the next token", lambda T, S: np.tri(T, S, S - T + 1) == 1, order="j <= i + 1")
mask("what comes after", lambda T, S: np.triu(np.ones((T, S)), S - T) > 0, order="j >= i")
mask("inverted", lambda T, S: ~np.tri(T, S, S - T, dtype=bool), order="j > i")
mask("inverted", lambda T, S: np.triu(np.ones((T, S), dtype=bool), S - T + 1), order="j > i")
mask("hides nothing", lambda T, S: np.full((T, S), True), order="all")
mask("only itself", lambda T, S: np.eye(T, S, S - T, dtype=bool), order="j == i")
mask("token 0", lambda T, S: np.tri(T, S, dtype=bool), align="upper-left")
mask("token 0", lambda T, S: np.arange(T)[:, None] >= np.arange(S), align="upper-left")
mask("the wrong way", lambda T, S: np.tri(T, S, T - S, dtype=bool), align="T - S")
mask("T and S are exchanged", lambda T, S: np.tri(S, T, T - S, dtype=bool), size="S, T")
mask("each of the S tokens", lambda T, S: np.tri(S, dtype=bool), size="S, S")
mask("a column for each query", lambda T, S: np.tri(T, dtype=bool), size="T, T")
mask("holds 1 and 0", lambda T, S: np.tri(T, S, S - T), output="numbers")
mask("holds 1 and 0", lambda T, S: np.tri(T, S, S - T, dtype=int), output="numbers")
mask(
    "added to the scores",
    lambda T, S: np.triu(np.full((T, S), -np.inf), S - T + 1),
    output="added",
)
mask("is transposed", lambda T, S: mask_plain(T, S).T, output="transposed")
mask(
    "(2) You let the first",
    lambda T, S: np.tri(T, S, -1, dtype=bool),
    order="j < i",
    align="upper-left",
)
mask(
    "(2) Your mask holds",
    lambda T, S: np.tri(T, S, dtype=int),
    align="upper-left",
    output="numbers",
)


# rnn_step and run_rnn


@right("rnn_step")
def step_plain(x: Any, h: Any, W: Any, U: Any, b: Any) -> Any:
    return np.tanh(x @ W + h @ U + b)


@right("rnn_step")
def step_stacked(x: Any, h: Any, W: Any, U: Any, b: Any) -> Any:
    return np.tanh(np.concatenate([x, h]) @ np.concatenate([W, U]) + b)


@right("rnn_step")
def step_loops(x: Any, h: Any, W: Any, U: Any, b: Any) -> Any:
    new = []
    for j in range(len(h)):
        total = b[j]
        for i in range(len(x)):
            total += x[i] * W[i, j]
        for i in range(len(h)):
            total += h[i] * U[i, j]
        new.append(math.tanh(total))
    return new


@right("rnn_step")
def step_columns(x: Any, h: Any, W: Any, U: Any, b: Any) -> Any:
    z = np.exp(2 * (W.T @ x + U.T @ h + b))
    return (z - 1) / (z + 1)


def states(step: Function, xs: Any, h: Any, *parameters: Any) -> Any:
    rows = []
    for x in xs:
        h = step(x, h, *parameters)
        rows.append(h)
    return np.array(rows)


def step(says: str, fn: Function, **settings: str) -> None:
    """A wrong step, alone and in a loop that is right."""
    wrong("rnn_step", says, **settings)(fn)
    wrong("run_rnn", says, **settings)(lambda xs, h0, *others: states(fn, xs, h0, *others))


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


step("no tanh", lambda x, h, W, U, b: x @ W + h @ U + b, activation="none")
step("a sigmoid", lambda x, h, W, U, b: sigmoid(x @ W + h @ U + b), activation="sigmoid")
step("a ReLU", lambda x, h, W, U, b: (x @ W + h @ U + b).clip(0), activation="relu")
step("closes too early", lambda x, h, W, U, b: np.tanh(x @ W) + h @ U + b, activation="early")
step("forget the bias", lambda x, h, W, U, b: np.tanh(x @ W + h @ U), bias="none")
step("after the tanh", lambda x, h, W, U, b: np.tanh(x @ W + h @ U) + b, bias="outside")
step("bias twice", lambda x, h, W, U, b: np.tanh((x @ W + b) + (h @ U + b)), bias="twice")
step("W and U are exchanged", lambda x, h, W, U, b: np.tanh(x @ U + h @ W + b), matrices="U, W")
step("W for the state", lambda x, h, W, U, b: np.tanh((x + h) @ W + b), matrices="W, W")
step(
    "not U @ h",
    lambda x, h, W, U, b: np.tanh(x @ W + U @ h + b),
    matrices="W, U transposed",
)
step(
    "W and U transposed",
    lambda x, h, W, U, b: np.tanh(W @ x + U @ h + b),
    matrices="both transposed",
)
step("ignores the state", lambda x, h, W, U, b: np.tanh(x @ W + b), state="ignored")
step("ignores the input", lambda x, h, W, U, b: np.tanh(h @ U + b), state="input ignored")
step("without its matrix", lambda x, h, W, U, b: np.tanh(x @ W + h + b), state="no U")
step("multiply the two", lambda x, h, W, U, b: np.tanh((x @ W) * (h @ U) + b), state="product")
step(
    "(2) You forget the bias",
    lambda x, h, W, U, b: x @ W + h @ U,
    activation="none",
    bias="none",
)
step(
    "(2) W and U are",
    lambda x, h, W, U, b: np.tanh(x @ U + h @ W),
    bias="none",
    matrices="U, W",
)


@right("run_rnn")
def run_plain(xs: Any, h0: Any, W: Any, U: Any, b: Any) -> Any:
    rows, h = [], h0
    for x in xs:
        h = step_plain(x, h, W, U, b)
        rows.append(h)
    return np.stack(rows)


@right("run_rnn")
def run_projected_first(xs: Any, h0: Any, W: Any, U: Any, b: Any) -> Any:
    """The inputs projected all at once, only the recurrence in a loop."""
    out = np.vstack([h0, xs @ W + b])
    for t in range(len(xs)):
        out[t + 1] = np.tanh(out[t + 1] + out[t] @ U)
    return out[1:]


@right("run_rnn")
def run_recursive(xs: Any, h0: Any, W: Any, U: Any, b: Any) -> Any:
    if len(xs) == 0:
        return np.empty((0, len(h0)))
    before = run_recursive(xs[:-1], h0, W, U, b)
    h = before[-1] if len(before) else h0
    return np.vstack([before, np.tanh(xs[-1] @ W + h @ U + b)])


@right("run_rnn")
def run_torch(xs: Any, h0: Any, W: Any, U: Any, b: Any) -> Any:
    rnn = torch.nn.RNN(*W.shape).double()
    for name, value in [("weight_ih", W.T), ("weight_hh", U.T), ("bias_ih", b), ("bias_hh", 0 * b)]:
        getattr(rnn, f"{name}_l0").data = torch.tensor(value)
    return rnn(torch.tensor(xs), torch.tensor(h0)[None])[0]


@wrong("run_rnn", "every step starts from h0", course="not carried")
def run_not_carried(xs: Any, h0: Any, W: Any, U: Any, b: Any) -> Any:
    return np.array([step_plain(x, h0, W, U, b) for x in xs])


@wrong("run_rnn", "every step starts from h0", course="not carried")
def run_all_at_once(xs: Any, h0: Any, W: Any, U: Any, b: Any) -> Any:
    return np.tanh(xs @ W + h0 @ U + b)


@wrong("run_rnn", "start from zeros", course="from zero")
def run_from_zero(xs: Any, h0: Any, W: Any, U: Any, b: Any) -> Any:
    return run_plain(xs, np.zeros(len(b)), W, U, b)


@wrong("run_rnn", "from last to first. Start", course="backward")
def run_backward(xs: Any, h0: Any, W: Any, U: Any, b: Any) -> Any:
    return run_plain(xs[::-1], h0, W, U, b)


@wrong("run_rnn", "turn the states round", course="backward, put back")
def run_backward_put_back(xs: Any, h0: Any, W: Any, U: Any, b: Any) -> Any:
    rows: list[Any] = []
    h = h0
    for x in reversed(xs):
        h = step_plain(x, h, W, U, b)
        rows.insert(0, h)
    return np.array(rows)


@wrong("run_rnn", "only the last state", output="last")
def run_last(xs: Any, h0: Any, W: Any, U: Any, b: Any) -> Any:
    for x in xs:
        h0 = step_plain(x, h0, W, U, b)
    return h0


@wrong("run_rnn", "h0 too", output="with h0")
def run_with_start(xs: Any, h0: Any, W: Any, U: Any, b: Any) -> Any:
    rows = [h0]
    for x in xs:
        rows.append(step_plain(x, rows[-1], W, U, b))
    return np.array(rows)


@wrong("run_rnn", "before each input", output="before")
def run_stored_early(xs: Any, h0: Any, W: Any, U: Any, b: Any) -> Any:
    rows, h = [], h0
    for x in xs:
        rows.append(h)
        h = step_plain(x, h, W, U, b)
    return np.array(rows)


@wrong("run_rnn", "one array T times", output="one array")
def run_one_array(xs: Any, h0: Any, W: Any, U: Any, b: Any) -> Any:
    rows, h = [], h0.copy()
    for x in xs:
        h[:] = step_plain(x, h, W, U, b)
        rows.append(h)
    return np.array(rows)


@wrong("run_rnn", "(2) There is no tanh", course="not carried", activation="none")
def run_two_mistakes(xs: Any, h0: Any, W: Any, U: Any, b: Any) -> Any:
    return xs @ W + h0 @ U + b


# additive_scores


@right("additive_scores")
def additive_plain(query: Any, keys: Any, W_q: Any, W_k: Any, v: Any) -> Any:
    return np.tanh(query @ W_q + keys @ W_k) @ v


@right("additive_scores")
def additive_loop(query: Any, keys: Any, W_q: Any, W_k: Any, v: Any) -> Any:
    return np.array([sum(v * np.tanh(W_q.T @ query + W_k.T @ key)) for key in keys])


@right("additive_scores")
def additive_stacked(query: Any, keys: Any, W_q: Any, W_k: Any, v: Any) -> Any:
    """One matrix on query and key put side by side."""
    pairs = np.hstack([np.tile(query, (len(keys), 1)), keys])
    return (np.tanh(pairs @ np.vstack([W_q, W_k])) * v).sum(axis=1)


@right("additive_scores")
def additive_torch(query: Any, keys: Any, W_q: Any, W_k: Any, v: Any) -> Any:
    q, k, from_q, from_k, t = (torch.tensor(a).float() for a in (query, keys, W_q, W_k, v))
    return F.linear(torch.tanh((q @ from_q)[None] + k @ from_k), t[None])[:, 0]


def additive(says: str, fn: Function, **settings: str) -> None:
    wrong("additive_scores", says, **settings)(fn)


additive("no tanh", lambda q, K, A, B, v: (q @ A + K @ B) @ v, activation="none")
additive("a sigmoid", lambda q, K, A, B, v: sigmoid(q @ A + K @ B) @ v, activation="sigmoid")
additive(
    "query and key apart",
    lambda q, K, A, B, v: (np.tanh(q @ A) + np.tanh(K @ B)) @ v,
    activation="each",
)
additive(
    "tanh of the scores", lambda q, K, A, B, v: np.tanh((q @ A + K @ B) @ v), activation="late"
)
additive(
    "multiply projected", lambda q, K, A, B, v: np.tanh((q @ A) * (K @ B)) @ v, combine="product"
)
additive(
    "subtract the projected", lambda q, K, A, B, v: np.tanh(q @ A - K @ B) @ v, combine="difference"
)
additive("ignore the query", lambda q, K, A, B, v: np.tanh(K @ B) @ v, combine="no query")
additive("dot product", lambda q, K, A, B, v: (q @ A) @ (K @ B).T, combine="dot")
additive("are exchanged", lambda q, K, A, B, v: np.tanh(q @ B + K @ A) @ v, matrices="W_k, W_q")
additive("keys with W_q", lambda q, K, A, B, v: np.tanh((q + K) @ A) @ v, matrices="W_q, W_q")
additive("query with W_k", lambda q, K, A, B, v: np.tanh((q + K) @ B) @ v, matrices="W_k, W_k")
additive("only sum", lambda q, K, A, B, v: np.tanh(q @ A + K @ B).sum(1), vector="ones")
additive("take a mean", lambda q, K, A, B, v: np.tanh(q @ A + K @ B).mean(-1), vector="mean")
additive("do not sum", lambda q, K, A, B, v: v * np.tanh(q @ A + K @ B), vector="not summed")
additive("root of v's", lambda *case: additive_plain(*case) / len(case[-1]) ** 0.5, scale="d_a")
additive(
    "sqrt(d_k)", lambda q, K, A, B, v: additive_plain(q, K, A, B, v) / len(K[0]) ** 0.5, scale="d_k"
)
additive("return the weights", lambda *case: softmax(additive_plain(*case)), output="weights")
additive(
    "(2) You forget v",
    lambda q, K, A, B, v: (q @ A + K @ B).sum(-1),
    activation="none",
    vector="ones",
)
additive(
    "(2) You return the weights",
    lambda q, K, A, B, v: softmax((q @ A + K @ B) @ v),
    activation="none",
    output="weights",
)


# cached_step


def attend(query: Any, keys: Any, values: Any) -> Any:
    return softmax(keys @ query / math.sqrt(len(query))) @ values


def appended(cache: Any, new: Any) -> Any:
    return np.vstack([cache, new])


@right("cached_step")
def cached_plain(q_t: Any, k_t: Any, v_t: Any, cache_k: Any, cache_v: Any) -> Any:
    keys, values = np.vstack([cache_k, k_t]), np.vstack([cache_v, v_t])
    weights = softmax(keys @ q_t / math.sqrt(len(q_t)))
    return weights @ values, keys, values


@right("cached_step")
def cached_full_pass(q_t: Any, k_t: Any, v_t: Any, cache_k: Any, cache_v: Any) -> Any:
    """Every key made a query again, the last row of a causal pass kept; a list for a tuple."""
    keys, values = np.append(cache_k, [k_t], axis=0), np.append(cache_v, [v_t], axis=0)
    queries = keys.copy()
    queries[-1] = q_t
    scores = np.where(np.tri(len(keys)) > 0, queries @ keys.T / np.sqrt(len(q_t)), -np.inf)
    return [(softmax(scores) @ values)[-1], keys, values]


@right("cached_step")
def cached_torch(q_t: Any, k_t: Any, v_t: Any, cache_k: Any, cache_v: Any) -> Any:
    q, k, v, *caches = (torch.tensor(array) for array in (q_t, k_t, v_t, cache_k, cache_v))
    keys, values = (torch.cat([c, n[None]]) for c, n in zip(caches, (k, v), strict=True))
    return F.scaled_dot_product_attention(q[None], keys, values)[0], keys, values


@right("cached_step")
def cached_two_parts(q_t: Any, k_t: Any, v_t: Any, cache_k: Any, cache_v: Any) -> Any:
    """The cache and the new token apart, joined by the sum of their exponentials."""
    old = np.exp(cache_k @ q_t / math.sqrt(len(q_t)))
    new = math.exp(k_t @ q_t / math.sqrt(len(q_t)))
    output = (old @ cache_v + new * v_t) / (old.sum() + new)
    return output, appended(cache_k, k_t), appended(cache_v, v_t)


def cached(says: str, fn: Callable[..., tuple[Any, Any, Any]], **settings: str) -> None:
    """An answer from q_t, k_t, v_t, the caches and what they should become."""

    def answer(q: Any, k: Any, v: Any, old_k: Any, old_v: Any) -> Any:
        return fn(q, k, v, old_k, old_v, appended(old_k, k), appended(old_v, v))

    wrong("cached_step", says, **settings)(answer)


def with_output(says: str, make: Callable[[Any, Any, Any], Any], **settings: str) -> None:
    """An answer whose caches are right, with its own output from q_t, keys and values."""
    cached(says, lambda q, k, v, a, b, keys, vals: (make(q, keys, vals), keys, vals), **settings)


def front(q: Any, k: Any, v: Any, a: Any, b: Any, *_: Any) -> tuple[Any, Any, Any]:
    keys, values = np.vstack([k, a]), np.vstack([v, b])
    return attend(q, keys, values), keys, values


def dropped(q: Any, k: Any, v: Any, a: Any, b: Any, keys: Any, vals: Any) -> tuple[Any, Any, Any]:
    return attend(q, keys[1:], vals[1:]), keys[1:], vals[1:]


def exchanged(q: Any, k: Any, v: Any, a: Any, b: Any, *_: Any) -> tuple[Any, Any, Any]:
    keys, values = np.vstack([a, v]), np.vstack([b, k])
    return attend(q, keys, values), keys, values


def upper_left(q: Any, keys: Any, values: Any) -> Any:
    scores = (keys @ q / math.sqrt(len(q)))[None]
    return softmax(np.where(np.tri(1, len(keys)) > 0, scores, -np.inf))[0] @ values


cached("in front", front, append="front")
cached("replace the cache", lambda q, k, v, *_: (v, k[None], v[None]), append="replaced")
cached("oldest entry", dropped, append="oldest dropped")
cached("given", lambda q, k, v, a, b, keys, vals: (attend(q, keys, vals), a, b), append="lost")
cached("never append", lambda q, k, v, a, b, *_: (attend(q, a, b), a, b), append="nothing")
cached(
    "before you append",
    lambda q, k, v, a, b, keys, vals: (attend(q, a, b), keys, vals),
    reads="cache",
)
with_output("only the first key", upper_left, reads="first")
cached("only itself", lambda q, k, v, a, b, keys, vals: (v, keys, vals), reads="newest")
cached(
    "Compare q_t",
    lambda q, k, v, a, b, keys, vals: (attend(k, keys, vals), keys, vals),
    reads="k_t",
)
with_output("mix the keys", lambda q, keys, values: attend(q, keys, keys), roles="q, k, k")
with_output("with the values", lambda q, keys, vals: attend(q, vals, vals), roles="q, v, v")
with_output("are exchanged", lambda q, keys, values: attend(q, values, keys), roles="q, v, k")
cached("v_t into the keys", exchanged, roles="stored exchanged")
with_output("do not scale", lambda q, keys, vals: softmax(keys @ q) @ vals, scale="none")
with_output("by d_k", lambda q, keys, vals: softmax(keys @ q / len(q)) @ vals, scale="1/d_k")
with_output(
    "multiply the scores",
    lambda q, keys, vals: softmax(keys @ q * len(q) ** 0.5) @ vals,
    scale="*sqrt(d_k)",
)
with_output(
    "do not sum to 1",
    lambda q, keys, vals: np.exp(keys @ q / len(q) ** 0.5) @ vals,
    softmax="no sum",
)
with_output(
    "number of keys",
    lambda q, keys, vals: softmax(keys @ q / len(keys) ** 0.5) @ vals,
    scale="1/sqrt(S)",
)
with_output("no softmax", lambda q, keys, vals: keys @ q / len(q) ** 0.5 @ vals, softmax="none")
with_output("the same weight", lambda q, keys, vals: vals.mean(0), softmax="average")
with_output(
    "return the weights", lambda q, k, vals: softmax(k @ q / len(q) ** 0.5), output="weights"
)
cached(
    "values before the keys",
    lambda q, k, v, a, b, keys, vals: (attend(q, keys, vals), vals, keys),
    output="values first",
)
cached(
    "(2) You attend before",
    lambda q, k, v, a, b, keys, vals: (attend(q, a, b), np.vstack([k, a]), np.vstack([v, b])),
    append="front",
    reads="cache",
)
with_output(
    "(2) You do not scale",
    lambda q, keys, vals: softmax(keys @ q) @ keys,
    roles="q, k, k",
    scale="none",
)
