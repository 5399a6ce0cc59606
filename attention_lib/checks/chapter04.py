"""The exercises of chapter 4: inputs that tell mistakes apart, and the advice each earns."""

import numpy as np

from .chapter01 import OUTPUT, SCALE, SCALE_QUERIES, SOFTMAX, SOFTMAX_AXES
from .engine import Array, Case, Exercise
from .hints import SLICED
from .properties import no_average
from .references_heads import grouped_attention, merge_heads, multi_head_attention, split_heads


def _wide(rng: np.random.Generator, trial: int) -> Case:
    """The heads divide the tokens in three cases: cutting between tokens fits only there."""
    T, heads, d = [(9, 3, 5), (5, 7, 3), (7, 5, 11), (6, 2, 9), (5, 3, 5), (3, 3, 7)][trial]
    return (rng.normal(size=(T, heads * d)), heads)


def _per_head(rng: np.random.Generator, trial: int) -> Case:
    shapes = [(3, 5, 7), (7, 3, 5), (5, 9, 3), (2, 7, 9), (3, 3, 5), (3, 1, 7)]
    return (rng.normal(size=shapes[trial]),)


def _block(rng: np.random.Generator, trial: int) -> Case:
    """The heads fill d_model in two cases; d_k and d_v differ in two others."""
    T, d_model, heads, d_k, d_v = [
        (5, 21, 3, 7, 7),
        (7, 15, 3, 9, 9),
        (3, 25, 5, 7, 9),
        (9, 35, 7, 5, 5),
        (11, 15, 5, 9, 7),
        (5, 9, 3, 7, 7),
    ][trial]
    shapes = [
        (T, d_model),
        *[(d_model, heads * d_k)] * 2,
        (d_model, heads * d_v),
        (heads * d_v, d_model),
    ]
    x, *matrices = (rng.normal(size=shape) for shape in shapes)
    return (x, *(matrix / np.sqrt(len(matrix)) for matrix in matrices), heads)


def _groups(rng: np.random.Generator, trial: int) -> Case:
    """One group for all query heads in case 3, one for each in case 5, else something between."""
    Hq, Hk, T, S, d_k, d_v = [
        (6, 2, 3, 5, 7, 9),
        (6, 3, 5, 3, 7, 11),
        (4, 1, 3, 7, 5, 9),
        (9, 3, 5, 7, 11, 11),
        (3, 3, 7, 5, 9, 9),
        (10, 2, 5, 3, 7, 5),
    ][trial]
    return tuple(rng.normal(size=shape) for shape in ((Hq, T, d_k), (Hk, S, d_k), (Hk, S, d_v)))


SPLIT_HEADS = Exercise(
    name="split_heads",
    reference=split_heads,
    settings={
        "cut": {
            "reshaped": "You reshape straight to (H, T, d), so a head is filled with whole tokens. "
            "Cut the width of each token, then move the axes.",
            "transposed": "You transpose x before the reshape, so tokens and features mix. "
            "Cut the last axis of x first, then move the axes.",
            "strided": "Head h takes every H-th column. It should take a slice of neighbours.",
            "tokens": "You cut between tokens. Every head keeps all T tokens: cut the last axis.",
            "whole": "Every head gets the whole width. Each should get its own slice, d wide.",
            "as width": "You take `heads` as the width of one head. It is how many there are.",
        },
        "order": {
            "T, H, d": "Your axes are (T, H, d). The heads come first, "
            "so that each head is a matrix of its own.",
            "H, d, T": "Your axes are (H, d, T). In a head, rows are tokens and columns features.",
            "T, d, H": "Your axes are (T, d, H). The heads come first, then the tokens.",
            "d, T, H": "Your axes are (d, T, H). Exchange only tokens and heads, d stays last.",
            "d, H, T": "Your axes are (d, H, T): `.T` reverses all three. "
            "Exchange the first two only.",
        },
        "output": {
            "below": "You put the heads below one another, (H·T, d). Give them an axis of their own.",
            "first": "You return the first head alone. Return all of them, (H, T, d).",
            "reversed": "Your heads come in reverse. Head 0 is the first slice.",
        },
    },
    inputs=_wide,
)

MERGE_HEADS = Exercise(
    name="merge_heads",
    reference=merge_heads,
    settings={
        "order": {
            "H, T, d": "You reshape without moving the axes, so a row mixes different tokens. "
            "Heads and tokens must trade places before it.",
            "T, d, H": "You interleave the heads: their first features, then their second. "
            "Each head keeps its features together.",
            "H, d, T": "You exchange the last two axes. "
            "It is the heads and the tokens that must trade places.",
            "d, T, H": "You exchange the first and the last axis, as `.T` does. "
            "It is the heads and the tokens that must trade places.",
            "d, H, T": "You bring the last axis to the front. "
            "It is the heads and the tokens that must trade places.",
        },
        "combine": {
            "mean": "You average the heads. Put them side by side: W_O is what mixes them, later.",
            "sum": "You add the heads. Put them side by side: W_O is what mixes them, later.",
            "maximum": "You take the largest of the heads. Put all of them side by side.",
            "first": "You return the first head alone. Put all of them side by side.",
            "last": "You return the last head alone. Put all of them side by side.",
            "reversed": "Your heads come in reverse. Head 0 is the first slice of a row.",
        },
        "output": {
            "below": "You put the heads below one another, (H·T, d). "
            "A token has one row: put them side by side.",
            "not merged": "You moved the axes, but there are still three. "
            "Make one width of the last two.",
            "transposed": "Your result is transposed. Rows are tokens: (T, H·d).",
            "flat": "You return one long row. Keep a row for each token: (T, H·d).",
        },
    },
    inputs=_per_head,
)

MULTI_HEAD_ATTENTION = Exercise(
    name="multi_head_attention",
    reference=multi_head_attention,
    settings={
        "scale": {
            **{name: SCALE[name] for name in ("none", "*sqrt(d_k)")},
            "1/d_k": "You divide the scores by d_k, or scale twice. Scale once, by sqrt(d_k).",
            "1/sqrt(d_model)": "You divide by sqrt(d_model). "
            "Each head compares vectors of its own width, d_k.",
            "1/sqrt(H·d_k)": "You divide by the root of all heads' width together. "
            "Each head compares vectors of its own width, d_k.",
            "1/sqrt(d_model/H)": "You take d_k to be d_model // heads. "
            "Read it from the queries, q.shape[-1]: W_Q decides.",
            "1/sqrt(H)": "You scale by the number of heads. Use the width of one head: sqrt(d_k).",
            "1/sqrt(T)": SCALE_QUERIES["1/sqrt(T)"],
        },
        "split": {
            "one head": "This is one head as wide as all. Split queries, keys and values first.",
            "across": "Each token compares its own heads. Heads come first, then tokens, "
            "so that tokens compare with tokens.",
            "reshaped": "You split by a reshape straight to (H, T, d), so a head mixes tokens. "
            "Cut the width of each token, then move the axes.",
            "strided": "Head h takes every H-th column. It should take a slice of neighbours.",
            "sliced": SLICED,
            "d_model // H": "You take d_model // heads as the width of a head. "
            "The matrices decide it, and W_V apart from W_Q.",
            "d_k": "You take the values to be as wide as the keys. W_V decides their width.",
        },
        "softmax": {
            **{name: SOFTMAX[name] for name in ("none", "no sum", "average")},
            **SOFTMAX_AXES,
            "matrix": "Your softmax divides by the sum of a head's whole matrix. "
            "Sum over the keys alone: axis=-1, keepdims=True.",
            "heads": "Your softmax runs over the heads, axis 0. "
            "Each head has its own weights: the keys are the last axis.",
            "causal": "You use a causal mask. Nothing is hidden here: every token sees every token.",
        },
        "roles": {
            "x @ W.T": "You multiply by W_Q, W_K and W_V transposed. Vectors are rows: x @ W.",
            "q, v, k": "Keys and values are exchanged. "
            "W_K makes what is compared, W_V what is mixed.",
            "k, q, v": "Queries and keys are exchanged. "
            "Row i of a head's scores belongs to query i: q @ k transposed.",
            "q, k, k": "You mix the keys. Mix the values, which W_V makes.",
            "q, q, v": "You compare the queries with themselves. W_K makes the keys.",
            "k, k, v": "You compare the keys with themselves. W_Q makes the queries.",
        },
        "merge": {
            "reshaped": "You merge by a reshape alone, so a row mixes different tokens. "
            "Heads and tokens must trade places before it.",
            "interleaved": "You interleave the heads when you merge. "
            "Each head keeps its features together: W_O expects slices.",
            "mean": "You average what the heads contribute. Their contributions are added.",
            "mean, no W_O": "You average the heads. Put them side by side, then apply W_O.",
            "sum, no W_O": "You add the heads. Put them side by side, then apply W_O.",
            "one head": "Only the first head reaches the result. Merge all of them.",
        },
        "output": {
            "no W_O": "You forget W_O. The merged heads still have to be mixed by it.",
            "W_O transposed": "You multiply by W_O transposed. Vectors are rows: merged @ W_O.",
            "residual": "You add x to the result. The block around attention does that, later.",
            "not merged": "You return the heads apart, (H, T, d_v). Merge them, then apply W_O.",
            "weights": "You return the weights of each head. Mix the values, merge, apply W_O.",
        },
    },
    inputs=_block,
)


def _grouped_average(case: Case, output: Array) -> str:
    q, _, v = case
    return no_average(np.repeat(v, len(q) // len(v), axis=0), output)


GROUPED_ATTENTION = Exercise(
    name="grouped_attention",
    reference=grouped_attention,
    settings={
        "sharing": {
            "tile": "You deal the key heads out in turn: 0, 1, 0, 1. "
            "Neighbouring query heads share one: 0, 0, 1, 1.",
            "keys repeat, values tile": "Keys are shared by neighbours, values dealt out in turn. "
            "A query head reads keys and values of the same head.",
            "keys tile, values repeat": "Values are shared by neighbours, keys dealt out in turn. "
            "A query head reads keys and values of the same head.",
            "first": "Every query head reads key head 0. Each group has a head of its own.",
            "last": "Every query head reads the last key head. Each group has a head of its own.",
            "h // Hk": "You divide the head's number by Hk. "
            "Divide by the size of a group, Hq // Hk.",
            "reversed": "The first group reads the last key head. It reads head 0.",
            "repeat Hk": "You repeat each key head Hk times. A group has Hq // Hk query heads.",
            "repeat Hq": "You repeat each key head Hq times. A group has Hq // Hk query heads.",
            "none": "You use the key heads as they are, which works with one or with Hq. "
            "Give each query head the one its group shares.",
            "mean": "You average the key and value heads. Each group reads its own.",
            "sum": "You add up the key and value heads. Each group reads its own.",
            "queries averaged": "You average the queries of a group. "
            "Only keys and values are shared: all Hq query heads remain.",
            "queries summed": "You add the queries of a group. "
            "Only keys and values are shared: all Hq query heads remain.",
            "first query": "You keep one query head of each group. All Hq of them remain.",
            "first queries": "You keep the first Hk query heads. All Hq of them remain.",
        },
        "scale": {name: SCALE[name] for name in ("none", "1/d_k", "*sqrt(d_k)", "1/sqrt(d_v)")},
        "softmax": {
            **{name: SOFTMAX[name] for name in ("none", "no sum", "average")},
            **SOFTMAX_AXES,
            "heads": "Your softmax runs over the heads, axis 0. "
            "Each head has its own weights: the keys are the last axis.",
        },
        "roles": {
            "q, k, k": "You mix the keys. The keys only decide the weights: mix the values.",
            "q, v, v": "You compare the queries with the values. Compare them with the keys.",
            "q, v, k": "Keys and values are exchanged. "
            "Compare the queries with the keys, then mix the values.",
        },
        "output": {
            **OUTPUT,
            "merged": "You merge the heads, (T, Hq·d_v). Leave them apart: (Hq, T, d_v).",
            "in groups": "You leave the groups as an axis of their own. "
            "The query heads are one axis: (Hq, T, d_v).",
            "averaged": "You average the results of a group. "
            "Each query head keeps its own: (Hq, T, d_v).",
            "dealt out": "Your heads come back in another order. "
            "Head h of the result belongs to head h of q: the group is the slower axis.",
        },
    },
    inputs=_groups,
    explain=_grouped_average,
)

EXERCISES = (SPLIT_HEADS, MERGE_HEADS, MULTI_HEAD_ATTENTION, GROUPED_ATTENTION)
