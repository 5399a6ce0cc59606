"""Answers to the assignment `heads` as students write them, each wrong one with its diagnosis.

Written apart from the reference functions of `assignments.tasks`, never by changing settings.
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


# gated_heads


def cut(x: Any, H: Any) -> Any:
    return x.reshape(len(x), H, -1).swapaxes(0, 1)


def join(x: Any) -> Any:
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


def mix(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def gated(
    *,
    cut: Function = cut,
    attend: Function = mix,
    gate: Function = lambda out, g: out * g[:, None, None],
    join: Function = join,
    last: Function = lambda merged, W_O, g: merged @ W_O,
) -> Function:
    """The usual answer with some of its steps replaced."""

    def fn(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, gates: Any, heads: Any) -> Any:
        q, k, v = (cut(x @ W, heads) for W in (W_Q, W_K, W_V))
        return last(join(gate(attend(q, k, v), gates)), W_O, gates)

    return fn


right("gated_heads")(gated())


@right("gated_heads")
def gated_sum(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, gates: Any, heads: Any) -> Any:
    """A sum over heads, each through its own rows of W_O, as Michel et al. write it."""
    out = np.zeros(x.shape)
    columns = [np.split(W, heads, axis=1) for W in (W_Q, W_K, W_V)]
    for h, rows in enumerate(np.split(W_O, heads)):
        out += gates[h] * mix(*(x @ own[h] for own in columns)) @ rows
    return out


@right("gated_heads")
def gated_values(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, gates: Any, heads: Any) -> Any:
    """The gates go into the columns of W_V."""
    W_V = W_V * np.repeat(gates, W_V.shape[1] // heads)
    q, k, v = (cut(x @ W, heads) for W in (W_Q, W_K, W_V))
    return join(mix(q, k, v)) @ W_O


@right("gated_heads")
def gated_rows(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, gates: Any, heads: Any) -> Any:
    """The gates go into the rows of W_O."""
    q, k, v = (cut(x @ W, heads) for W in (W_Q, W_K, W_V))
    return join(mix(q, k, v)) @ (W_O * np.repeat(gates, len(W_O) // heads)[:, None])


@right("gated_heads")
def gated_einsum(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, gates: Any, heads: Any) -> Any:
    A, B, C = (W.reshape(len(W), heads, -1) for W in (W_Q, W_K, W_V))
    scores = np.einsum("ta,ahd,sb,bhd->hts", x, A, x, B, optimize=True) / A.shape[-1] ** 0.5
    out = np.einsum("hts,sa,ahd,h->thd", softmax(scores), x, C, gates, optimize=True)
    return np.tensordot(out, W_O.reshape(heads, C.shape[-1], -1), 2)


@right("gated_heads")
def gated_torch(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, gates: Any, heads: Any) -> Any:
    t, *matrices, last, g = (torch.tensor(a) for a in (x, W_Q, W_K, W_V, W_O, gates))
    q, k, v = ((t @ W).view(len(t), heads, -1).transpose(0, 1) for W in matrices)
    out = F.scaled_dot_product_attention(q, k, v) * g.view(-1, 1, 1)
    return out.transpose(0, 1).flatten(1) @ last


def heads_with(says: str, fn: Function, **settings: str) -> None:
    wrong("gated_heads", says, **settings)(fn)


def gates_as(says: str, of: Callable[[Any], Any], name: str) -> None:
    """Heads multiplied by what `of` makes of the gates."""
    heads_with(says, gated(gate=lambda out, g: out * of(g)[:, None, None]), gate=name)


heads_with("do not reach", gated(gate=lambda out, g: out), gate="none")
heads_with("You add the gates", gated(gate=lambda out, g: out + g[:, None, None]), gate="added")
gates_as("the wrong way round", lambda g: 1 - g, "1 - gate")
gates_as("softmax of the gates", softmax, "softmax")
gates_as("by their sum", lambda g: g / g.sum(), "shares")
gates_as("sigmoid", lambda g: 1 / (1 + np.exp(-g)), "sigmoid")
gates_as("to 0 or 1", np.round, "switched")
gates_as("at 0, but", lambda g: (g != 0) * 1.0, "not 0")
gates_as("the mean of", lambda g: np.repeat(g.mean(), len(g)), "mean")
gates_as("by the first gate", lambda g: g[:1], "first")
gates_as("in reverse", lambda g: g[::-1], "reversed")
heads_with("along the last axis", gated(gate=lambda out, g: g * out), gate="features")
heads_with("along the tokens", gated(gate=lambda out, g: out * g[:, None]), gate="tokens")


@wrong("gated_heads", "along the last axis", gate="features")
def gated_list(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, gates: Any, heads: Any) -> Any:
    """A list of heads, times the gates as they are."""
    q, k, v = (np.split(x @ W, heads, axis=1) for W in (W_Q, W_K, W_V))
    return np.hstack(list(gates * [mix(q[h], k[h], v[h]) for h in range(heads)])) @ W_O


heads_with(
    "0, 1, 2, 0, 1, 2",
    gated(
        gate=lambda out, g: out,
        last=lambda merged, W_O, g: merged * np.tile(g, merged.shape[1] // len(g)) @ W_O,
    ),
    gate="tiled",
)
heads_with(
    "after W_O",
    gated(
        gate=lambda out, g: out,
        last=lambda merged, W_O, g: (
            (merged @ W_O).reshape(len(merged), len(g), -1) * g[:, None]
        ).reshape(len(merged), -1),
    ),
    gate="model",
)


@wrong("gated_heads", "before the softmax", gate="scores")
def gated_queries(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, gates: Any, heads: Any) -> Any:
    q, k, v = (cut(x @ W, heads) for W in (W_Q, W_K, W_V))
    return join(mix(q * gates[:, None, None], k, v)) @ W_O


@wrong("gated_heads", "before the softmax", gate="scores")
def gated_scores(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, gates: Any, heads: Any) -> Any:
    outs = []
    for h in range(heads):
        q, k, v = (x @ np.hsplit(W, heads)[h] for W in (W_Q, W_K, W_V))
        outs.append(softmax(gates[h] * q @ k.T / np.sqrt(k.shape[1])) @ v)
    return np.hstack(outs) @ W_O


@wrong("gated_heads", "applied twice", gate="twice")
def gated_twice(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, gates: Any, heads: Any) -> Any:
    q, k, v = (cut(x @ W, heads) for W in (W_Q, W_K, W_V))
    v = v * gates[:, None, None]
    return join(mix(q, k, v) * gates[:, None, None]) @ W_O


def scaled(factor: Callable[[Any], float]) -> Function:
    """Attention whose scores are multiplied by `factor(q)`."""
    return lambda q, k, v: softmax(q @ k.swapaxes(-1, -2) * factor(q)) @ v


def weighed(weigh: Callable[[Any], Any]) -> Function:
    """Attention whose scaled scores become weights in another way."""
    return lambda q, k, v: weigh(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5) @ v


heads_with("do not scale", gated(attend=scaled(lambda q: 1)), scale="none")
heads_with(
    "multiply the scores", gated(attend=scaled(lambda q: q.shape[2] ** 0.5)), scale="*sqrt(d_k)"
)
heads_with("scale twice", gated(attend=scaled(lambda q: 1 / q.shape[2])), scale="1/d_k")
heads_with("number of heads", gated(attend=scaled(lambda q: len(q) ** -0.5)), scale="1/sqrt(H)")
heads_with(
    "number of queries", gated(attend=scaled(lambda q: q.shape[1] ** -0.5)), scale="1/sqrt(T)"
)


def by_width(says: str, width: Callable[[Any, Any], float], scale: str) -> None:
    """Scores divided by the root of a width found from x and W_Q."""

    def fn(x: Any, W_Q: Any, *others: Any) -> Any:
        return gated(attend=scaled(lambda q: width(x, W_Q) ** -0.5))(x, W_Q, *others)

    heads_with(says, fn, scale=scale)


by_width("by sqrt(d_model)", lambda x, W: x.shape[1], "1/sqrt(d_model)")
by_width("all heads' width together", lambda x, W: W.shape[1], "1/sqrt(H·d_k)")


def by_heads(says: str, width: Callable[[int, int], float], scale: str) -> None:
    """The textbook's d_k, found from d_model and H."""

    def fn(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, gates: Any, heads: Any) -> Any:
        d_k = width(x.shape[1], heads)
        attend = scaled(lambda q: 1 / math.sqrt(d_k))
        return gated(attend=attend)(x, W_Q, W_K, W_V, W_O, gates, heads)

    heads_with(says, fn, scale=scale)


by_heads("the root of d_model / H", lambda d, H: d / H, "1/sqrt(d_model / H)")
by_heads("the root of d_model / H", lambda d, H: d // H, "1/sqrt(d_model // H)")


@wrong("gated_heads", "take d_model // heads", split="d_model // H")
def gated_as_in_books(
    x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, gates: Any, heads: Any
) -> Any:
    T, d_model = x.shape
    d_k = d_model // heads
    q, k, v = ((x @ W).reshape(T, heads, d_k).transpose(1, 0, 2) for W in (W_Q, W_K, W_V))
    out = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(d_k)) @ v * gates[:, None, None]
    return out.transpose(1, 0, 2).reshape(T, heads * d_k) @ W_O


@wrong("gated_heads", "as wide as the keys", split="d_k")
def gated_one_width(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, gates: Any, heads: Any) -> Any:
    d = W_Q.shape[1] // heads
    q, k, v = ((x @ W).reshape(len(x), heads, d).swapaxes(0, 1) for W in (W_Q, W_K, W_V))
    return join(mix(q, k, v) * gates.reshape(heads, 1, 1)) @ W_O


heads_with(
    "compares its own heads",
    gated(
        cut=lambda x, H: x.reshape(len(x), H, -1),
        gate=lambda out, g: out * g[:, None],
        join=lambda out: out.reshape(len(out), -1),
    ),
    split="across",
)
heads_with("split by a reshape", gated(cut=lambda x, H: x.reshape(H, len(x), -1)), split="reshaped")
heads_with(
    "every H-th column",
    gated(cut=lambda x, H: np.stack([x[:, h::H] for h in range(H)])),
    split="strided",
)
heads_with("no softmax", gated(attend=weighed(lambda s: s)), softmax="none")
heads_with("do not sum to 1", gated(attend=weighed(np.exp)), softmax="no sum")
heads_with("same weight", gated(attend=weighed(lambda s: softmax(0 * s))), softmax="average")
heads_with(
    "causal mask",
    gated(attend=weighed(lambda s: softmax(np.where(np.tri(s.shape[1]) == 1, s, -np.inf)))),
    softmax="causal",
)
heads_with("over the queries", gated(attend=weighed(lambda s: softmax(s, 1))), softmax="queries")
heads_with(
    "over the heads, axis 0", gated(attend=weighed(lambda s: softmax(s, 0))), softmax="heads"
)
heads_with(
    "the whole array",
    gated(attend=weighed(lambda s: np.exp(s) / np.sum(np.exp(s)))),
    softmax="everything",
)
heads_with(
    "whole matrix",
    gated(attend=weighed(lambda s: np.exp(s) / np.exp(s).sum(axis=(1, 2), keepdims=True))),
    softmax="matrix",
)
heads_with("Keys and values are", gated(attend=lambda q, k, v: mix(q, v, k)), roles="q, v, k")
heads_with("Queries and keys are", gated(attend=lambda q, k, v: mix(k, q, v)), roles="k, q, v")
heads_with("mix the keys", gated(attend=lambda q, k, v: mix(q, k, k)), roles="q, k, k")
heads_with("queries with themselves", gated(attend=lambda q, k, v: mix(q, q, v)), roles="q, q, v")
heads_with("merge by a reshape", gated(join=lambda x: x.reshape(x.shape[1], -1)), merge="reshaped")
heads_with(
    "interleave the heads",
    gated(join=lambda x: x.transpose(1, 2, 0).reshape(x.shape[1], -1)),
    merge="interleaved",
)
heads_with(
    "add the gated heads",
    gated(
        gate=lambda out, g: np.einsum("htd,h->td", out, g), join=lambda x: x, last=lambda x, W, g: x
    ),
    merge="sum, no W_O",
)
heads_with(
    "average the gated heads",
    gated(join=lambda x: x.mean(axis=0), last=lambda x, W, g: x),
    merge="mean, no W_O",
)
heads_with("forget W_O", gated(last=lambda merged, W, g: merged), output="no W_O")
heads_with("W_O transposed", gated(last=lambda merged, W, g: merged @ W.T), output="W_O transposed")
heads_with(
    "the weights of each head",
    gated(
        attend=lambda q, k, v: softmax(q @ k.swapaxes(1, 2) / k.shape[-1] ** 0.5),
        join=lambda x: x,
        last=lambda x, W, g: x,
    ),
    output="weights",
)
heads_with(
    "(2) You do not scale",
    gated(attend=scaled(lambda q: 1), gate=lambda out, g: out * (1 - g)[:, None, None]),
    gate="1 - gate",
    scale="none",
)
heads_with(
    "(2) You merge by a reshape",
    gated(
        cut=lambda x, H: x.reshape(H, len(x), -1),
        join=lambda x: x.reshape(x.shape[1], -1),
    ),
    split="reshaped",
    merge="reshaped",
)


# grouped_scores


@right("grouped_scores")
def grouped_plain(q: Any, k: Any) -> Any:
    k = np.repeat(k, q.shape[1] // k.shape[1], axis=1)
    return q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])


@right("grouped_scores")
def grouped_folded(q: Any, k: Any) -> Any:
    """The groups as an axis of the queries, so that no key is copied."""
    B, Hq, T, d = q.shape
    folded = q.reshape(B, k.shape[1], -1, T, d) @ k[:, :, None].swapaxes(-1, -2)
    return folded.reshape(B, Hq, T, -1) / d**0.5


@right("grouped_scores")
def grouped_rows(q: Any, k: Any) -> Any:
    """All queries of a group below one another: one product for each key head."""
    B, Hq, T, d = q.shape
    scores = q.reshape(B, k.shape[1], -1, d) @ np.moveaxis(k, -1, -2)
    return (scores / np.sqrt(d)).reshape(B, Hq, T, k.shape[2])


@right("grouped_scores")
def grouped_loops(q: Any, k: Any) -> Any:
    group = q.shape[1] // k.shape[1]
    return [
        [own @ keys[h // group].T / math.sqrt(own.shape[1]) for h, own in enumerate(queries)]
        for queries, keys in zip(q, k, strict=True)
    ]


@right("grouped_scores")
def grouped_einsum(q: Any, k: Any) -> Any:
    B, Hq, T, d = q.shape
    split = q.reshape(B, k.shape[1], -1, T, d)
    return np.einsum("bhgtd,bhsd->bhgts", split, k).reshape(B, Hq, T, -1) / d**0.5


@right("grouped_scores")
def grouped_torch(q: Any, k: Any) -> Any:
    a, b = torch.tensor(q).float(), torch.tensor(k).float()
    b = b.repeat_interleave(a.shape[1] // b.shape[1], dim=1)
    return a @ b.mT * a.shape[-1] ** -0.5


def grouped(says: str, fn: Callable[[Any, Any], Any], **settings: str) -> None:
    wrong("grouped_scores", says, **settings)(fn)


def compare(q: Any, k: Any) -> Any:
    return q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])


def read(says: str, of: Callable[[Any, Any, Any], Any], sharing: str) -> None:
    """Query head h reads the key head of(h, Hq, Hk)."""

    def fn(q: Any, k: Any) -> Any:
        Hq, Hk = q.shape[1], k.shape[1]
        return np.stack([compare(q[:, h], k[:, of(h, Hq, Hk)]) for h in range(Hq)], axis=1)

    grouped(says, fn, sharing=sharing)


read("0, 1, 0, 1", lambda h, Hq, Hk: h % Hk, "tile")
read("reads key head 0", lambda h, Hq, Hk: 0, "first")
read("the last key head", lambda h, Hq, Hk: -1, "last")
read("divide the head's number", lambda h, Hq, Hk: h // Hk, "h // Hk")
read("The first group", lambda h, Hq, Hk: -1 - h * Hk // Hq, "reversed")
grouped(
    "0, 1, 0, 1",
    lambda q, k: compare(q, np.tile(k, (1, q.shape[1] // k.shape[1], 1, 1))),
    sharing="tile",
)
grouped("as they are", compare, sharing="none")
grouped("average the key heads", lambda q, k: compare(q, k.mean(1, keepdims=True)), sharing="mean")
grouped(
    "one query head of each",
    lambda q, k: compare(q[:, :: q.shape[1] // k.shape[1]], k),
    sharing="first query",
)


def in_groups(q: Any, k: Any) -> Any:
    B, _, T, d = q.shape
    return compare(q.reshape(B, k.shape[1], -1, T, d), k[:, :, None])


def resized(says: str, factor: Callable[[Any, Any], float], scale: str) -> None:
    """Right scores times a factor found from q and k."""
    grouped(says, lambda q, k: grouped_plain(q, k) * factor(q, k), scale=scale)


resized("do not scale", lambda q, k: math.sqrt(q.shape[-1]), "none")
resized("scores by d_k", lambda q, k: q.shape[-1] ** -0.5, "1/d_k")
resized("multiply the scores", lambda q, k: k.shape[-1], "*sqrt(d_k)")
resized("heads' width together", lambda q, k: 1 / math.sqrt(q.shape[1]), "1/sqrt(Hq·d_k)")
resized("number of heads", lambda q, k: math.sqrt(q.shape[3] / q.shape[1]), "1/sqrt(Hq)")
resized("number of queries", lambda q, k: math.sqrt(q.shape[3] / q.shape[2]), "1/sqrt(T)")
resized("number of keys", lambda q, k: math.sqrt(q.shape[3] / k.shape[2]), "1/sqrt(S)")
resized("the size of a group", lambda q, k: math.sqrt(q.shape[1] / k.shape[1]), "1/sqrt(d_k/group)")
grouped("You return weights", lambda q, k: softmax(grouped_plain(q, k)), output="weights")
grouped("are transposed", lambda q, k: grouped_plain(q, k).swapaxes(2, 3), output="transposed")
grouped("axis of their own", in_groups, output="in groups")
grouped("average the queries", lambda q, k: in_groups(q, k).mean(axis=2), output="averaged")


@wrong("grouped_scores", "average the queries", output="averaged")
def grouped_mean_query(q: Any, k: Any) -> Any:
    B, _, T, d = q.shape
    return compare(q.reshape(B, k.shape[1], -1, T, d).mean(axis=2), k)


@wrong("grouped_scores", "a letter that is missing", output="summed")
def grouped_letter_missing(q: Any, k: Any) -> Any:
    B, _, T, d = q.shape
    return np.einsum("bhgtd,bhsd->bhts", q.reshape(B, k.shape[1], -1, T, d), k) / d**0.5


@wrong("grouped_scores", "in another order", output="dealt out")
def grouped_dealt_out(q: Any, k: Any) -> Any:
    """The group before the key head in the result of the einsum."""
    B, Hq, T, d = q.shape
    scores = np.einsum("bhgtd,bhsd->bghts", q.reshape(B, k.shape[1], -1, T, d), k)
    return scores.reshape(B, Hq, T, -1) / d**0.5


grouped(
    "(2) You do not scale",
    lambda q, k: q @ np.tile(k, (1, q.shape[1] // k.shape[1], 1, 1)).swapaxes(2, 3),
    sharing="tile",
    scale="none",
)
grouped(
    "(2) Your scores are transposed",
    lambda q, k: np.repeat(k, q.shape[1] // k.shape[1], axis=1) @ q.swapaxes(2, 3),
    scale="none",
    output="transposed",
)


# cut_heads


@right("cut_heads")
def prune_plain(W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any, keep: Any) -> Any:
    def columns(W: Any) -> Any:
        return W.reshape(len(W), heads, -1)[:, keep].reshape(len(W), -1)

    return columns(W_Q), columns(W_K), columns(W_V), columns(W_O.T).T


@right("cut_heads")
def prune_pieces(W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any, keep: Any) -> Any:
    small = [np.hstack([np.split(W, heads, axis=1)[h] for h in keep]) for W in (W_Q, W_K, W_V)]
    return [*small, np.vstack([np.split(W_O, heads)[h] for h in keep])]


@right("cut_heads")
def prune_booleans(W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any, keep: Any) -> Any:
    stays = np.isin(np.arange(heads), keep)
    of_k, of_v = (np.repeat(stays, W.shape[1] // heads) for W in (W_K, W_V))
    return W_Q[:, of_k], W_K[:, of_k], W_V[:, of_v], W_O[of_v]


@right("cut_heads")
def prune_deleted(W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any, keep: Any) -> Any:
    """From the last head to the first, those that are not kept are deleted."""
    for h in reversed(range(heads)):
        if h not in keep:
            left = h + 1 + sum(keep > h)
            d_k, d_v = W_Q.shape[1] // left, W_V.shape[1] // left
            W_Q, W_K = (np.delete(W, np.s_[h * d_k : (h + 1) * d_k], axis=1) for W in (W_Q, W_K))
            W_V = np.delete(W_V, np.s_[h * d_v : (h + 1) * d_v], axis=1)
            W_O = np.delete(W_O, np.s_[h * d_v : (h + 1) * d_v], axis=0)
    return W_Q, W_K, W_V, W_O


@right("cut_heads")
def prune_torch(W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any, keep: Any) -> Any:
    chosen = torch.tensor(keep)
    small = [
        torch.tensor(W).view(len(W), heads, -1).index_select(1, chosen).flatten(1)
        for W in (W_Q, W_K, W_V)
    ]
    return *small, torch.tensor(W_O).view(heads, -1, W_O.shape[1])[chosen].flatten(0, 1)


def slices(keep: Any, d: int) -> list[int]:
    return [h * d + c for h in keep for c in range(d)]


def pruned(says: str, fn: Function, **settings: str) -> None:
    """fn(W_Q, W_K, W_V, W_O, heads, keep, d_k, d_v)."""

    def answer(W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any, keep: Any) -> Any:
        widths = W_Q.shape[1] // heads, W_V.shape[1] // heads
        return fn(W_Q, W_K, W_V, W_O, heads, keep, *widths)

    wrong("cut_heads", says, **settings)(answer)


def chosen(says: str, of: Callable[[Any, Any, int], Any], cut: str) -> None:
    """The columns of(keep, heads, width of a head) in the place of the right ones."""
    pruned(
        says,
        lambda Q, K, V, W_O, H, keep, d_k, d_v: (
            *(W[:, of(keep, H, d_k)] for W in (Q, K)),
            V[:, of(keep, H, d_v)],
            W_O[of(keep, H, d_v)],
        ),
        cut=cut,
    )


chosen(
    "every H-th column",
    lambda keep, H, d: np.concatenate([np.arange(h, H * d, H) for h in keep]),
    "strided",
)
chosen(
    "every H-th column",
    lambda keep, H, d: [c for c in range(H * d) if c % H in keep],
    "strided, dealt out",
)
chosen("the ones that stay", lambda keep, H, d: slices(sorted({*range(H)} - {*keep}), d), "others")
chosen("keep the first heads", lambda keep, H, d: np.arange(len(keep) * d), "first")
chosen("keep the last heads", lambda keep, H, d: np.arange(-len(keep) * d, 0), "last")
chosen("one column for each", lambda keep, H, d: list(keep), "columns")
chosen("come in reverse", lambda keep, H, d: slices(reversed(keep), d), "reversed")


@wrong("cut_heads", "nothing gets smaller", cut="zeros")
def prune_to_zero(W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any, keep: Any) -> Any:
    stays = np.isin(np.arange(heads), keep)
    of_k, of_v = (np.repeat(stays, W.shape[1] // heads) for W in (W_K, W_V))
    return W_Q * of_k, W_K * of_k, W_V * of_v, W_O * of_v[:, None]


@wrong("cut_heads", "width of the model", cut="rows")
def prune_model(W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any, keep: Any) -> Any:
    rows = [np.vstack([np.split(W, heads)[h] for h in keep]) for W in (W_Q, W_K, W_V)]
    return *rows, np.hstack([np.split(W_O, heads, axis=1)[h] for h in keep])


def by_columns(W_Q: Any, W_K: Any, W_V: Any, W_O: Any, of_k: Any, of_v: Any) -> list[Any]:
    return [W_Q[:, of_k], W_K[:, of_k], W_V[:, of_v], W_O[of_v]]


pruned(
    "as wide as the keys",
    lambda Q, K, V, W_O, H, keep, d_k, d_v: by_columns(Q, K, V, W_O, *[slices(keep, d_k)] * 2),
    width="d_k",
)
pruned(
    "take d_model // heads",
    lambda Q, K, V, W_O, H, keep, d_k, d_v: by_columns(
        Q, K, V, W_O, *[slices(keep, len(Q) // H)] * 2
    ),
    width="d_model // H",
)


def after(says: str, change: Callable[..., Any], **settings: str) -> None:
    """The right matrices, then change(right ones, the four given, heads, keep, d_k, d_v)."""
    pruned(
        says,
        lambda Q, K, V, W_O, H, keep, d_k, d_v: change(
            list(prune_plain(Q, K, V, W_O, H, keep)), (Q, K, V, W_O), H, keep, d_k, d_v
        ),
        **settings,
    )


after("Only W_Q is cut", lambda small, given, *_: (small[0], *given[1:]), whole="K, V, O")
after("W_V and W_O are still", lambda small, given, *_: (*small[:2], *given[2:]), whole="V, O")
after(
    "W_K and W_V are still",
    lambda small, given, *_: (small[0], *given[1:3], small[3]),
    whole="K, V",
)
after("W_K is still whole", lambda small, given, *_: (small[0], given[1], *small[2:]), whole="K")
after("W_O is still whole", lambda small, given, *_: (*small[:3], given[3]), of_W_O="whole")


def output_as(says: str, of: Callable[..., Any], name: str) -> None:
    """A W_O that is of(W_O, heads, keep, d_k, d_v)."""
    after(says, lambda small, given, *sizes: (*small[:3], of(given[3], *sizes)), of_W_O=name)


output_as(
    "rows of W_O to 0",
    lambda W_O, H, keep, d_k, d_v: W_O * np.isin(np.arange(H * d_v) // d_v, keep)[:, None],
    "zeros",
)
output_as(
    "make W_O larger",
    lambda W_O, H, keep, d_k, d_v: W_O[slices(keep, d_v)] / (len(keep) / H),
    "rescaled",
)
output_as(
    "cut the columns of W_O",
    lambda W_O, H, keep, d_k, d_v: np.hstack([np.split(W_O, H, axis=1)[h] for h in keep]),
    "columns",
)
output_as("by the width of the keys", lambda W_O, H, keep, d_k, d_v: W_O[slices(keep, d_k)], "d_k")
after("are transposed", lambda small, *_: [W.T for W in small], output="transposed")
pruned(
    "an axis for the heads",
    lambda Q, K, V, W_O, H, keep, d_k, d_v: (
        *(W.reshape(len(W), H, -1)[:, keep] for W in (Q, K, V)),
        W_O.reshape(H, d_v, -1)[keep],
    ),
    output="apart",
)
pruned(
    "(2) W_O is still whole",
    lambda Q, K, V, W_O, H, keep, d_k, d_v: (
        *by_columns(Q, K, V, W_O, *[slices(keep, d_k)] * 2)[:3],
        W_O,
    ),
    width="d_k",
    of_W_O="whole",
)
pruned(
    "(2) You make W_O larger",
    lambda Q, K, V, W_O, H, keep, d_k, d_v: (
        Q[:, : len(keep) * d_k],
        K[:, : len(keep) * d_k],
        V[:, : len(keep) * d_v],
        W_O[: len(keep) * d_v] * H / len(keep),
    ),
    cut="first",
    of_W_O="rescaled",
)


# cache


def written(
    layers: Any, query_heads: Any, key_heads: Any, width: Any, tokens: Any, kind: str = "float32"
) -> Any:
    """The arrays of a cache after all tokens: a (key, value) for each token and layer."""
    rng = np.random.default_rng(0)
    d_model = query_heads * width
    shape = (layers, 2, d_model, key_heads * width)
    matrices = rng.normal(size=shape).astype(kind)
    return [
        [(token @ W_K, token @ W_V) for W_K, W_V in matrices]
        for token in rng.normal(size=(tokens, d_model)).astype(kind)
    ]


def held(cache: Any) -> Any:
    return sum(array.nbytes for token in cache for pair in token for array in pair)


def bill(layers: Any, query_heads: Any, key_heads: Any, width: Any, tokens: Any) -> Any:
    return 2 * 4 * layers * tokens * key_heads * width


@right("cache")
def cache_plain(*model: Any) -> Any:
    return bill(*model), held(written(*model))


@right("cache")
def cache_stacked(*model: Any) -> Any:
    """Arrays that are stacked; the prediction in kilobytes, rounded and turned back."""
    keys, values = np.moveaxis(np.array(written(*model)), 2, 0)
    return round(bill(*model) / 1024, 1) * 1024, keys.nbytes + values.nbytes


@right("cache")
def cache_grown(layers: Any, query_heads: Any, key_heads: Any, width: Any, tokens: Any) -> Any:
    """Torch, a cache that grows by cat in every step."""
    x = torch.randn(tokens, query_heads * width, generator=torch.Generator().manual_seed(0))
    caches = [torch.zeros(2, 0, key_heads * width) for _ in range(layers)]
    W = torch.ones(2, query_heads * width, key_heads * width)
    for token in x:
        caches = [torch.cat([cache, (token @ W)[:, None]], dim=1) for cache in caches]
    total = torch.tensor(sum(c.numel() * c.element_size() for c in caches))
    return float(tokens * layers * 8) * (key_heads * width), total


def foretold(says: str, of: Callable[..., Any], name: str) -> None:
    """A wrong formula of layers, query heads, key heads, width and tokens."""
    wrong("cache", f"Your prediction {says}", predicted=name)(
        lambda *model: (of(*model), held(written(*model)))
    )


foretold("is half", lambda L, Hq, Hk, d, n: 4 * L * Hk * d * n, "half")
foretold("is twice", lambda L, Hq, Hk, d, n: 8 * 2 * L * Hk * d * n, "double")
foretold("counts numbers", lambda L, Hq, Hk, d, n: 2 * L * Hk * d * n, "numbers")
foretold("counts bits", lambda L, Hq, Hk, d, n: 64 * L * Hk * d * n, "bits")
foretold("is that of one layer", lambda L, Hq, Hk, d, n: 8 * Hk * d * n, "one layer")
foretold("is that of one head", lambda L, Hq, Hk, d, n: 8 * L * d * n, "one head")
foretold("gives keys to", lambda L, Hq, Hk, d, n: 8 * L * Hq * d * n, "query heads")
foretold("takes the size", lambda L, Hq, Hk, d, n: 8 * L * (Hq / Hk) * d * n, "group size")
foretold("is that of one token", lambda L, Hq, Hk, d, n: 8 * L * Hk * d, "one token")
foretold("takes a key", lambda L, Hq, Hk, d, n: 8 * L * Hk * n, "one number a head")
foretold("is that of W_K", lambda L, Hq, Hk, d, n: 8 * L * (Hq * d) * (Hk * d), "matrices")
foretold("leaves out", lambda L, Hq, Hk, d, n: 8 * L * Hk * d * (n - 1), "one token fewer")


def counted(says: str, of: Callable[[Any], Any], name: str) -> None:
    """A wrong count of a right cache."""
    wrong("cache", f"Your measurement {says}", measured=name)(
        lambda *model: (bill(*model), of(written(*model)))
    )


counted("is half", lambda c: sum(key.nbytes for token in c for key, _ in token), "half")
counted("counts numbers", lambda c: np.array(c).size, "numbers")
counted("counts bits", lambda c: 8 * held(c), "bits")
counted("is that of one layer", lambda c: held([token[:1] for token in c]), "one layer")
counted("is that of one token", lambda c: held(c[-1:]), "one token")
counted("leaves out one", lambda c: held(c[:-1]), "one token fewer")


@wrong("cache", "Your measurement is twice", measured="double")
def cache_in_float64(layers: Any, query_heads: Any, key_heads: Any, width: Any, tokens: Any) -> Any:
    found = written(layers, query_heads, key_heads, width, tokens, "float64")
    return bill(layers, query_heads, key_heads, width, tokens), held(found)


@wrong("cache", "Your measurement gives keys", measured="query heads")
def cache_ungrouped(layers: Any, query_heads: Any, key_heads: Any, width: Any, tokens: Any) -> Any:
    model = (layers, query_heads, query_heads, width, tokens)
    return bill(layers, query_heads, key_heads, width, tokens), held(written(*model))


@wrong("cache", "Your measurement is that of W_K", measured="matrices")
def cache_of_matrices(
    layers: Any, query_heads: Any, key_heads: Any, width: Any, tokens: Any
) -> Any:
    W = np.zeros((layers, 2, query_heads * width, key_heads * width), dtype=np.float32)
    return bill(layers, query_heads, key_heads, width, tokens), W.nbytes


@wrong(
    "cache",
    "(1) Your prediction gives keys",
    "(2) Your measurement counts numbers",
    predicted="query heads",
    measured="numbers",
)
def cache_both_wrong(layers: Any, query_heads: Any, key_heads: Any, width: Any, tokens: Any) -> Any:
    found = written(layers, query_heads, key_heads, width, tokens)
    return 8 * layers * query_heads * width * tokens, np.array(found).size
