"""Answers to the exercises of chapter 4 as learners write them, each wrong one with its diagnosis.

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


# split_heads


@right("split_heads")
def split_plain(x: Any, heads: Any) -> Any:
    return x.reshape(len(x), heads, -1).transpose(1, 0, 2)


@right("split_heads")
def split_pieces(x: Any, heads: Any) -> Any:
    return np.split(x, heads, axis=-1)


@right("split_heads")
def split_loops(x: Any, heads: Any) -> Any:
    d = x.shape[1] // heads
    return np.stack([x[:, h * d : (h + 1) * d] for h in range(heads)])


@right("split_heads")
def split_columns_first(x: Any, heads: Any) -> Any:
    return x.T.reshape(heads, -1, len(x)).swapaxes(1, 2)


@right("split_heads")
def split_torch(x: Any, heads: Any) -> Any:
    return torch.tensor(x).view(len(x), heads, -1).movedim(1, 0)


def split(says: str, fn: Callable[[Any, Any], Any], **settings: str) -> None:
    wrong("split_heads", says, **settings)(fn)


split(
    "straight to (H, T, d)",
    lambda x, heads: x.reshape(heads, len(x), -1),
    cut="reshaped",
)
split(
    "straight to (H, T, d)",
    lambda x, heads: x.reshape(len(x), heads, -1).reshape(heads, len(x), -1),
    cut="reshaped",
)
split("transpose x before", lambda x, heads: x.T.reshape(heads, len(x), -1), cut="transposed")
split("every H-th column", lambda x, H: np.stack([x[:, h::H] for h in range(H)]), cut="strided")
split(
    "every H-th column",
    lambda x, H: x.reshape(len(x), -1, H).transpose(2, 0, 1),
    cut="strided",
)
split("between tokens", lambda x, heads: np.split(x, heads), cut="tokens")
split("between tokens", lambda x, H: x.reshape(H, len(x) // H, -1), cut="tokens")
split("the whole width", lambda x, heads: np.repeat(x[None], heads, axis=0), cut="whole")
split(
    "width of one head",
    lambda x, heads: x.reshape(len(x), -1, heads).swapaxes(0, 1),
    cut="as width",
)
split("axes are (T, H, d)", lambda x, heads: x.reshape(len(x), heads, -1), order="T, H, d")
split(
    "axes are (H, d, T)",
    lambda x, heads: x.T.reshape(heads, -1, len(x)),
    order="H, d, T",
)
split(
    "axes are (T, d, H)",
    lambda x, heads: x.reshape(len(x), heads, -1).swapaxes(-1, -2),
    order="T, d, H",
)
split(
    "axes are (d, T, H)",
    lambda x, heads: x.reshape(len(x), heads, -1).transpose(2, 0, 1),
    order="d, T, H",
)
split("reverses all three", lambda x, heads: x.reshape(len(x), heads, -1).T, order="d, H, T")
split("below one another", lambda x, H: np.concatenate(np.split(x, H, axis=1)), output="below")
split("the first head alone", lambda x, H: x[:, : x.shape[1] // H], output="first")
split("in reverse", lambda x, H: np.split(x, H, axis=1)[::-1], output="reversed")
split(
    "(2) Your axes are (T, d, H)",
    lambda x, heads: x.reshape(len(x), -1, heads),
    cut="strided",
    order="T, d, H",
)
split(
    "(2) Your heads come in reverse",
    lambda x, H: [x[:, h::H] for h in range(H)][::-1],
    cut="strided",
    output="reversed",
)


# merge_heads


@right("merge_heads")
def merge_plain(x: Any) -> Any:
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


@right("merge_heads")
def merge_stacked(x: Any) -> Any:
    return np.hstack(x)


@right("merge_heads")
def merge_loops(x: Any) -> Any:
    H, T, d = x.shape
    out = np.zeros((T, H * d))
    for h in range(H):
        for t in range(T):
            for i in range(d):
                out[t, h * d + i] = x[h, t, i]
    return out


@right("merge_heads")
def merge_einsum(x: Any) -> Any:
    """Each head through the rows of an identity that are its own, and added."""
    H, _, d = x.shape
    return np.einsum("htd,hdo->to", x, np.eye(H * d).reshape(H, d, H * d))


@right("merge_heads")
def merge_torch(x: Any) -> Any:
    return torch.tensor(x).transpose(0, 1).flatten(1)


def merge(says: str, fn: Callable[[Any], Any], **settings: str) -> None:
    wrong("merge_heads", says, **settings)(fn)


merge("mixes different tokens", lambda x: x.reshape(x.shape[1], -1), order="H, T, d")
merge(
    "mixes different tokens",
    lambda x: x.ravel().reshape(x.shape[1], len(x) * x.shape[2]),
    order="H, T, d",
)
merge("interleave", lambda x: x.transpose(1, 2, 0).reshape(x.shape[1], -1), order="T, d, H")
merge("interleave", lambda x: np.stack(x, axis=-1).reshape(x.shape[1], -1), order="T, d, H")
merge("the last two axes", lambda x: x.swapaxes(1, 2).reshape(x.shape[1], -1), order="H, d, T")
merge(
    "first and the last axis", lambda x: x.swapaxes(0, 2).reshape(x.shape[1], -1), order="d, T, H"
)
merge("as `.T` does", lambda x: x.T.reshape(x.shape[1], -1), order="d, T, H")
merge(
    "last axis to the front",
    lambda x: x.transpose(2, 0, 1).reshape(x.shape[1], -1),
    order="d, H, T",
)
merge("average the heads", lambda x: x.mean(0), combine="mean")
merge("add the heads", lambda x: sum(x), combine="sum")
merge("the largest", lambda x: x.max(axis=0), combine="maximum")
merge("first head alone", lambda x: x[0], combine="first")
merge("last head alone", lambda x: x[-1], combine="last")
merge("in reverse", lambda x: np.hstack(x[::-1]), combine="reversed")
merge("below one another", lambda x: np.concatenate(x), output="below")
merge("below one another", lambda x: x.reshape(-1, x.shape[-1]), output="below")
merge("still three", lambda x: x.transpose(1, 0, 2), output="not merged")
merge("is transposed", lambda x: x.swapaxes(1, 2).reshape(-1, x.shape[1]), output="transposed")
merge("one long row", lambda x: x.swapaxes(0, 1).ravel(), output="flat")
merge("(2) You return one long row", np.ravel, order="H, T, d", output="flat")
merge(
    "(2) Your heads come in reverse",
    lambda x: x[::-1].reshape(x.shape[1], -1),
    order="H, T, d",
    combine="reversed",
)


# multi_head_attention


def mix(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def multi(
    *,
    project: Function = np.matmul,
    cut: Function = split_plain,
    attend: Function = mix,
    join: Function = merge_plain,
    last: Function = lambda x, merged, W_O: merged @ W_O,
) -> Function:
    """The usual answer with some of its steps replaced."""

    def fn(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
        q, k, v = (cut(project(x, W), heads) for W in (W_Q, W_K, W_V))
        return last(x, join(attend(q, k, v)), W_O)

    return fn


right("multi_head_attention")(multi())


@right("multi_head_attention")
def multi_loop(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
    """Head after head, each through its own columns of the matrices and rows of W_O, added."""
    out = np.zeros_like(x)
    for h in range(heads):
        q, k, v = (x @ np.split(W, heads, axis=1)[h] for W in (W_Q, W_K, W_V))
        out += mix(q, k, v) @ np.split(W_O, heads)[h]
    return out


@right("multi_head_attention")
def multi_einsum(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
    """Matrices with an axis for the heads, so that nothing has to be split or merged."""
    A, B, C = (W.reshape(len(W), heads, -1) for W in (W_Q, W_K, W_V))
    scores = np.einsum("ta,ahd,sb,bhd->hts", x, A, x, B, optimize=True) / A.shape[-1] ** 0.5
    mixed = np.einsum("hts,sa,ahd->thd", softmax(scores), x, C, optimize=True)
    return np.einsum("thd,hdo->to", mixed, W_O.reshape(heads, C.shape[-1], -1))


@right("multi_head_attention")
def multi_torch(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
    t, *matrices, last = (torch.tensor(a) for a in (x, W_Q, W_K, W_V, W_O))
    q, k, v = ((t @ W).view(len(t), heads, -1).transpose(0, 1) for W in matrices)
    return F.scaled_dot_product_attention(q, k, v).transpose(0, 1).flatten(1) @ last


def mha(says: str, fn: Function, **settings: str) -> None:
    wrong("multi_head_attention", says, **settings)(fn)


def scaled(factor: Callable[[Any], float]) -> Function:
    """Attention whose scores are multiplied by `factor(q)`."""
    return lambda q, k, v: softmax(q @ k.swapaxes(-1, -2) * factor(q)) @ v


def weighed(weigh: Callable[[Any], Any]) -> Function:
    """Attention whose scaled scores become weights in another way."""
    return lambda q, k, v: weigh(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5) @ v


def causal(s: Any) -> Any:
    return softmax(np.where(np.tri(s.shape[-1]) > 0, s, -np.inf))


mha("do not scale", multi(attend=scaled(lambda q: 1)), scale="none")
mha("multiply the scores", multi(attend=scaled(lambda q: q.shape[-1] ** 0.5)), scale="*sqrt(d_k)")
mha("scale twice", multi(attend=scaled(lambda q: 1 / q.shape[-1])), scale="1/d_k")
mha(
    "scale twice",
    multi(attend=lambda q, k, v: mix(q / q.shape[-1] ** 0.5, k, v)),
    scale="1/d_k",
)
mha("width of one head", multi(attend=scaled(lambda q: len(q) ** -0.5)), scale="1/sqrt(H)")
mha("number of queries", multi(attend=scaled(lambda q: q.shape[1] ** -0.5)), scale="1/sqrt(T)")


def by_width(width: Callable[[Any, Any, Any], float]) -> Function:
    """An answer that divides by the root of a width found from x, W_Q and heads."""

    def fn(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
        inner = multi(attend=scaled(lambda q: width(x, W_Q, heads) ** -0.5))
        return inner(x, W_Q, W_K, W_V, W_O, heads)

    return fn


mha("by sqrt(d_model)", by_width(lambda x, W, H: x.shape[-1]), scale="1/sqrt(d_model)")
mha("all heads' width together", by_width(lambda x, W, H: W.shape[1]), scale="1/sqrt(H·d_k)")
mha("d_k to be d_model", by_width(lambda x, W, H: x.shape[1] // H), scale="1/sqrt(d_model/H)")


@wrong("multi_head_attention", "one head as wide as all", split="one head")
def multi_one_head(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
    return mix(x @ W_Q, x @ W_K, x @ W_V) @ W_O


mha(
    "compares its own heads",
    multi(cut=lambda x, H: x.reshape(len(x), H, -1), join=lambda x: x.reshape(len(x), -1)),
    split="across",
)
mha("split by a reshape", multi(cut=lambda x, H: x.reshape(H, len(x), -1)), split="reshaped")
mha(
    "every H-th column",
    multi(cut=lambda x, H: np.stack([x[:, h::H] for h in range(H)])),
    split="strided",
)


@wrong("multi_head_attention", "The matrices decide it", split="d_model // H")
def multi_fixed_width(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
    T, d_model = x.shape
    d = d_model // heads
    q, k, v = ((x @ W).reshape(T, heads, d).transpose(1, 0, 2) for W in (W_Q, W_K, W_V))
    return mix(q, k, v).transpose(1, 0, 2).reshape(T, d_model) @ W_O


@wrong("multi_head_attention", "W_V decides their width", split="d_k")
def multi_one_width(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
    d = W_Q.shape[1] // heads
    q, k, v = ((x @ W).reshape(len(x), heads, d).swapaxes(0, 1) for W in (W_Q, W_K, W_V))
    return merge_plain(mix(q, k, v)) @ W_O


@wrong("multi_head_attention", "slice x before you project", split="sliced")
def multi_sliced(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
    outs = []
    d = x.shape[1] // heads
    for h in range(heads):
        rows = slice(h * d, (h + 1) * d)
        q, k, v = (x[:, rows] @ np.split(W[rows], heads, axis=1)[h] for W in (W_Q, W_K, W_V))
        outs.append(mix(q, k, v))
    return np.concatenate(outs, axis=-1) @ W_O


mha("W_V transposed", multi(project=lambda x, W: x @ W.T), roles="x @ W.T")
mha("no softmax", multi(attend=weighed(lambda s: s)), softmax="none")
mha("do not sum to 1", multi(attend=weighed(np.exp)), softmax="no sum")
mha("same weight", multi(attend=weighed(lambda s: softmax(0 * s))), softmax="average")
mha("over the queries", multi(attend=weighed(lambda s: softmax(s, 1))), softmax="queries")
mha(
    "sum of the whole array",
    multi(attend=weighed(lambda s: np.exp(s) / np.exp(s).sum())),
    softmax="everything",
)
mha(
    "head's whole matrix",
    multi(attend=weighed(lambda s: np.stack([np.exp(a) / np.exp(a).sum() for a in s]))),
    softmax="matrix",
)
mha("over the heads, axis 0", multi(attend=weighed(lambda s: softmax(s, 0))), softmax="heads")
mha("a causal mask", multi(attend=weighed(causal)), softmax="causal")
mha("Keys and values are", multi(attend=lambda q, k, v: mix(q, v, k)), roles="q, v, k")
mha("Queries and keys are", multi(attend=lambda q, k, v: mix(k, q, v)), roles="k, q, v")
mha("mix the keys", multi(attend=lambda q, k, v: mix(q, k, k)), roles="q, k, k")
mha("queries with themselves", multi(attend=lambda q, k, v: mix(q, q, v)), roles="q, q, v")
mha("keys with themselves", multi(attend=lambda q, k, v: mix(k, k, v)), roles="k, k, v")


@wrong("multi_head_attention", "Keys and values are exchanged", roles="q, v, k")
def multi_matrices_exchanged(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
    return multi()(x, W_Q, W_V, W_K, W_O, heads)


mha("merge by a reshape", multi(join=lambda x: x.reshape(x.shape[1], -1)), merge="reshaped")
mha(
    "interleave the heads",
    multi(join=lambda x: x.transpose(1, 2, 0).reshape(x.shape[1], -1)),
    merge="interleaved",
)
mha(
    "average what the heads contribute",
    multi(join=lambda x: merge_plain(x) / len(x)),
    merge="mean",
)
mha(
    "You average the heads",
    multi(join=lambda x: x.mean(0), last=lambda x, merged, W_O: merged),
    merge="mean, no W_O",
)
mha(
    "You add the heads",
    multi(join=lambda x: x.sum(0), last=lambda x, merged, W_O: merged),
    merge="sum, no W_O",
)
mha(
    "Only the first head",
    multi(join=lambda x: x[0], last=lambda x, one, W_O: one @ W_O[: one.shape[1]]),
    merge="one head",
)
mha("forget W_O", multi(last=lambda x, merged, W_O: merged), output="no W_O")
mha("W_O transposed", multi(last=lambda x, merged, W_O: merged @ W_O.T), output="W_O transposed")
mha("add x", multi(last=lambda x, merged, W_O: x + merged @ W_O), output="residual")
mha(
    "the heads apart",
    multi(join=lambda x: x, last=lambda x, heads_out, W_O: heads_out),
    output="not merged",
)
mha(
    "the weights of each head",
    multi(
        attend=lambda q, k, v: softmax(q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5),
        join=lambda x: x,
        last=lambda x, weights, W_O: weights,
    ),
    output="weights",
)
mha(
    "(2) You merge by a reshape",
    multi(cut=lambda x, H: x.reshape(H, len(x), -1), join=lambda x: x.reshape(x.shape[1], -1)),
    split="reshaped",
    merge="reshaped",
)
mha(
    "(2) You interleave",
    multi(
        cut=lambda x, H: x.reshape(len(x), -1, H).transpose(2, 0, 1),
        join=lambda x: x.transpose(1, 2, 0).reshape(x.shape[1], -1),
    ),
    split="strided",
    merge="interleaved",
)
mha(
    "(2) You forget W_O",
    multi(attend=scaled(lambda q: 1), last=lambda x, merged, W_O: merged),
    scale="none",
    output="no W_O",
)
mha(
    "(3) You forget W_O",
    multi(
        attend=scaled(lambda q: 1),
        join=lambda x: x.reshape(x.shape[1], -1),
        last=lambda x, merged, W_O: merged,
    ),
    scale="none",
    merge="reshaped",
    output="no W_O",
)


# grouped_attention


@right("grouped_attention")
def grouped_plain(q: Any, k: Any, v: Any) -> Any:
    group = len(q) // len(k)
    return mix(q, np.repeat(k, group, axis=0), np.repeat(v, group, axis=0))


@right("grouped_attention")
def grouped_axis(q: Any, k: Any, v: Any) -> Any:
    """An axis for the group; keys and values are broadcast over it, never copied."""
    groups = q.reshape(len(k), -1, *q.shape[1:])
    return mix(groups, k[:, None], v[:, None]).reshape(*q.shape[:2], -1)


@right("grouped_attention")
def grouped_loop(q: Any, k: Any, v: Any) -> Any:
    return [mix(q[h], k[h * len(k) // len(q)], v[h * len(k) // len(q)]) for h in range(len(q))]


@right("grouped_attention")
def grouped_long_queries(q: Any, k: Any, v: Any) -> Any:
    """The queries of a group below one another, as one longer matrix."""
    long = q.reshape(len(k), -1, q.shape[-1])
    return mix(long, k, v).reshape(len(q), -1, v.shape[-1])


@right("grouped_attention")
def grouped_torch(q: Any, k: Any, v: Any) -> Any:
    a, b, c = (torch.tensor(array)[None] for array in (q, k, v))
    return F.scaled_dot_product_attention(a, b, c, enable_gqa=True)[0]


def shared(
    says: str,
    keys: Callable[[Any, int], Any],
    values: Callable[[Any, int], Any] | None = None,
    attend: Function = mix,
    **settings: str,
) -> None:
    """An answer from how keys, and values if in another way, come to the query heads."""

    def fn(q: Any, k: Any, v: Any) -> Any:
        return attend(q, keys(k, len(q)), (values or keys)(v, len(q)))

    wrong("grouped_attention", says, **settings)(fn)


def repeat(a: Any, heads: int) -> Any:
    return np.repeat(a, heads // len(a), axis=0)


def tile(a: Any, heads: int) -> Any:
    return np.tile(a, (heads // len(a), 1, 1))


def mean(a: Any, heads: int) -> Any:
    return a.mean(axis=0)


shared("in turn: 0, 1, 0, 1", tile, sharing="tile")
shared("in turn: 0, 1, 0, 1", lambda a, n: a[np.arange(n) % len(a)], sharing="tile")
shared("values dealt out", repeat, tile, sharing="keys repeat, values tile")
shared("keys dealt out", tile, repeat, sharing="keys tile, values repeat")
shared("reads key head 0", lambda a, n: a[0], sharing="first")
shared("the last key head", lambda a, n: a[-1], sharing="last")
shared("number by Hk", lambda a, n: a[np.arange(n) // len(a)], sharing="h // Hk")
shared("It reads head 0", lambda a, n: repeat(a, n)[::-1], sharing="reversed")
shared("Hk times", lambda a, n: np.repeat(a, len(a), axis=0), sharing="repeat Hk")
shared("Hq times", lambda a, n: np.repeat(a, n, axis=0), sharing="repeat Hq")
shared("as they are", lambda a, n: a, sharing="none")
shared("average the key", mean, sharing="mean")
shared("add up the key", lambda a, n: a.sum(0), sharing="sum")


def grouped(says: str, fn: Callable[[Any, Any, Any], Any], **settings: str) -> None:
    wrong("grouped_attention", says, **settings)(fn)


def in_groups(q: Any, k: Any) -> Any:
    return q.reshape(len(k), len(q) // len(k), *q.shape[1:])


@wrong("grouped_attention", "in turn: 0, 1, 0, 1", sharing="tile")
def grouped_slow_axis(q: Any, k: Any, v: Any) -> Any:
    """The group as the slower axis: head h reads h % Hk."""
    return mix(q.reshape(-1, *k.shape[:1], *q.shape[1:]), k, v).reshape(*q.shape[:2], -1)


@wrong("grouped_attention", "in another order", output="dealt out")
def grouped_mixed_axes(q: Any, k: Any, v: Any) -> Any:
    out = mix(in_groups(q, k), k[:, None], v[:, None])
    return out.swapaxes(0, 1).reshape(*q.shape[:2], -1)


grouped(
    "average the queries",
    lambda q, k, v: mix(in_groups(q, k).mean(1), k, v),
    sharing="queries averaged",
)
grouped(
    "add the queries",
    lambda q, k, v: mix(in_groups(q, k).sum(1), k, v),
    sharing="queries summed",
)
grouped(
    "one query head of each",
    lambda q, k, v: mix(q[:: len(q) // len(k)], k, v),
    sharing="first query",
)
grouped("the first Hk", lambda q, k, v: mix(q[: len(k)], k, v), sharing="first queries")
shared("do not scale", repeat, attend=scaled(lambda q: 1), scale="none")
shared("by d_k", repeat, attend=scaled(lambda q: 1 / q.shape[-1]), scale="1/d_k")
shared("multiply the", repeat, attend=scaled(lambda q: q.shape[-1] ** 0.5), scale="*sqrt(d_k)")
grouped(
    "width of the values",
    lambda q, k, v: grouped_plain(q * math.sqrt(q.shape[-1] / v.shape[-1]), k, v),
    scale="1/sqrt(d_v)",
)
shared("no softmax", repeat, attend=weighed(lambda s: s), softmax="none")
shared("do not sum to 1", repeat, attend=weighed(np.exp), softmax="no sum")
shared("the same weight", repeat, attend=weighed(lambda s: softmax(0 * s)), softmax="average")
shared("over the queries", repeat, attend=weighed(lambda s: softmax(s, -2)), softmax="queries")
shared("over the heads", repeat, attend=weighed(lambda s: softmax(s, 0)), softmax="heads")
shared(
    "the whole array",
    repeat,
    attend=weighed(lambda s: np.exp(s) / np.exp(s).sum()),
    softmax="everything",
)
shared("mix the keys", repeat, attend=lambda q, k, v: mix(q, k, k), roles="q, k, k")
shared("with the values", repeat, attend=lambda q, k, v: mix(q, v, v), roles="q, v, v")
shared("are exchanged", repeat, attend=lambda q, k, v: mix(q, v, k), roles="q, v, k")
grouped("merge the heads", lambda *case: merge_plain(grouped_plain(*case)), output="merged")
grouped(
    "an axis of their own",
    lambda q, k, v: mix(in_groups(q, k), k[:, None], v[:, None]),
    output="in groups",
)
grouped(
    "average the results",
    lambda q, k, v: in_groups(grouped_plain(q, k, v), k).mean(1),
    output="averaged",
)
shared(
    "return the weights",
    repeat,
    attend=lambda q, k, v: softmax(q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5),
    output="weights",
)
shared(
    "return the scores",
    repeat,
    attend=lambda q, k, v: q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5,
    output="scores",
)
shared(
    "(2) You do not scale",
    tile,
    attend=scaled(lambda q: 1),
    sharing="tile",
    scale="none",
)
