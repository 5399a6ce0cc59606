"""The tasks of the assignment to chapter 4: inputs that tell mistakes apart, and their advice."""

from collections.abc import Mapping

import numpy as np

from attention_lib.checks import Exercise
from attention_lib.checks.chapter04 import GROUPED_ATTENTION, MULTI_HEAD_ATTENTION
from attention_lib.checks.engine import Case

from . import Assignment, Task
from ._references_heads import cache, cut_heads, gated_heads, grouped_scores

MULTI_HEAD, GROUPED = MULTI_HEAD_ATTENTION.settings, GROUPED_ATTENTION.settings


def _block(rng: np.random.Generator, trial: int) -> Case:
    """W_O is square in the first case only; d_k and d_v are equal in two; a gate is 0 in one.

    Where else a gate's axis fits is seen in cases 3 (tokens) and 5 (features); where d_model // H
    is the width of a head, in case 6.
    """
    T, d_model, heads, d_k, d_v = [
        (5, 21, 3, 5, 7),
        (7, 15, 5, 9, 11),
        (3, 25, 3, 5, 5),
        (9, 14, 7, 5, 3),
        (11, 17, 5, 9, 5),
        (5, 22, 3, 7, 7),
    ][trial]
    shapes = [
        (T, d_model),
        *[(d_model, heads * d_k)] * 2,
        (d_model, heads * d_v),
        (heads * d_v, d_model),
    ]
    x, *matrices = (rng.normal(size=shape) for shape in shapes)
    gates = rng.permutation(np.linspace(0.0 if trial == 3 else 0.1, 0.9, heads) ** 1.5)
    return (x, *(matrix / np.sqrt(len(matrix)) for matrix in matrices), gates, heads)


def _groups(rng: np.random.Generator, trial: int) -> Case:
    """One group for all query heads in case 3, one for each in case 5, else something between."""
    B, Hq, Hk, T, S, d_k = [
        (2, 6, 3, 5, 7, 9),
        (3, 6, 2, 7, 5, 11),
        (2, 5, 1, 3, 7, 9),
        (5, 9, 3, 7, 11, 13),
        (2, 3, 3, 7, 5, 9),
        (1, 10, 2, 3, 5, 7),
    ][trial]
    return (rng.normal(size=(B, Hq, T, d_k)), rng.normal(size=(B, Hk, S, d_k)))


def _matrices(rng: np.random.Generator, trial: int) -> Case:
    """The heads divide d_model in three cases; d_k and d_v are equal in one; head 0 stays in one."""
    d_model, heads, d_k, d_v, kept = [
        (15, 5, 7, 9, 2),
        (16, 7, 3, 5, 3),
        (12, 4, 5, 7, 1),
        (14, 5, 9, 11, 3),
        (21, 7, 5, 5, 4),
        (10, 6, 3, 7, 2),
    ][trial]
    shapes = [*[(d_model, heads * d_k)] * 2, (d_model, heads * d_v), (heads * d_v, d_model)]
    inner = np.arange(1, heads - 1)
    keep = np.sort(rng.choice(inner, size=kept, replace=False))
    if trial == 5:
        keep[0] = 0
    return (*(rng.normal(size=shape) for shape in shapes), heads, keep)


def my_numbers(student: str) -> Case:
    """layers, query_heads, key_heads, width, tokens of a model of the student's own."""
    rng = np.random.default_rng(list(student.encode()))
    layers, key_heads, group = (int(size) for size in rng.permutation([3, 5, 7]))
    width, tokens = int(rng.choice([10, 12, 14])), int(rng.choice([33, 38, 41, 45, 47]))
    return (layers, key_heads * group, key_heads, width, tokens)


def _some(settings: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: settings[name] for name in names}


OF_W_Q = (
    "You scale by the root of d_model / H. Only where W_Q is square is this d_k: "
    "take the width that your queries have."
)

GATED_HEADS = Exercise(
    name="gated_heads",
    reference=gated_heads,
    settings={
        "gate": {
            "none": "The gates do not reach the result. Each head counts as much as its gate says.",
            "scores": "Your gates multiply the scores, or queries or keys, before the softmax. "
            "They then sharpen or flatten the weights; a gate of 0 should silence its head.",
            "added": "You add the gates. They multiply.",
            "tiled": "You deal the gates out in turn over the columns: 0, 1, 2, 0, 1, 2. "
            "A head's columns are neighbours, and all have its gate.",
            "features": "Your gates lie along the last axis, so that a feature has a gate, or they do "
            "not fit at all. Give them the axis of the heads.",
            "tokens": "Your gates lie along the tokens, so that a token has a gate, or they do not "
            "fit at all. Give them the axis of the heads.",
            "model": "You multiply the result by the gates, after W_O. "
            "W_O has mixed the heads by then.",
            "1 - gate": "Your gates work the wrong way round. 1 leaves a head as it is, 0 silences "
            "it.",
            "softmax": "You take a softmax of the gates. Use them as they are given.",
            "shares": "You divide the gates by their sum. Use them as they are given.",
            "sigmoid": "You take a sigmoid of the gates. Use them as they are given.",
            "twice": "Each gate is applied twice, for instance to the values and to the result. "
            "Once is enough.",
            "switched": "You round the gates to 0 or 1. Everything between counts too.",
            "not 0": "A gate switches its head off at 0, but otherwise does nothing. "
            "Half a gate is half the head.",
            "mean": "You multiply by the mean of the gates. Each head has its own.",
            "first": "You multiply all heads by the first gate. Each head has its own.",
            "reversed": "Your gates come in reverse. Gate 0 is that of head 0.",
        },
        "split": _some(MULTI_HEAD["split"], "across", "reshaped", "strided")
        | {
            "d_model // H": "You take d_model // heads as the width of a head, which does not fit. "
            "The matrices decide it, and W_V apart from W_Q.",
            "d_k": "You take the values to be as wide as the keys, which does not fit. "
            "W_V decides their width.",
        },
        "scale": _some(
            MULTI_HEAD["scale"],
            *("none", "*sqrt(d_k)", "1/d_k", "1/sqrt(d_model)", "1/sqrt(H·d_k)"),
            *("1/sqrt(H)", "1/sqrt(T)"),
        )
        | {"1/sqrt(d_model / H)": OF_W_Q, "1/sqrt(d_model // H)": OF_W_Q},
        "softmax": MULTI_HEAD["softmax"],
        "roles": _some(MULTI_HEAD["roles"], *("q, v, k", "k, q, v", "q, k, k", "q, q, v")),
        "merge": _some(MULTI_HEAD["merge"], *("reshaped", "interleaved"))
        | {
            "sum, no W_O": "You add the gated heads. Put them side by side, then apply W_O.",
            "mean, no W_O": "You average the gated heads. Put them side by side, then apply W_O.",
        },
        "output": _some(MULTI_HEAD["output"], "no W_O", "W_O transposed", "weights"),
    },
    inputs=_block,
)

GROUPED_SCORES = Exercise(
    name="grouped_scores",
    reference=grouped_scores,
    settings={
        "sharing": _some(
            GROUPED["sharing"],
            *("tile", "first", "last", "h // Hk", "reversed", "none"),
            "first query",
        )
        | {"mean": "You average the key heads. Each group reads its own."},
        "scale": _some(GROUPED["scale"], "none", "1/d_k", "*sqrt(d_k)")
        | {
            "1/sqrt(Hq·d_k)": "You divide by the root of all query heads' width together. "
            "Each score compares two vectors of width d_k.",
            "1/sqrt(Hq)": "You divide by the root of the number of heads. "
            "Look for the axis that the product sums over.",
            "1/sqrt(T)": "You divide by the root of the number of queries. "
            "Look for the axis that the product sums over.",
            "1/sqrt(S)": "You divide by the root of the number of keys. "
            "Look for the axis that the product sums over.",
            "1/sqrt(d_k/group)": "You divide d_k by the size of a group before you take the root. "
            "Sharing changes no width.",
        },
        "output": {
            "weights": "You return weights. The scores are asked for, before the softmax.",
            "transposed": "Your scores are transposed. Rows are queries, columns are keys: (T, S).",
            "in groups": "You leave the groups as an axis of their own. "
            "The query heads are one axis: (B, Hq, T, S).",
            "averaged": "You average the queries of a group, or their scores. "
            "Only keys are shared: all Hq query heads remain.",
            "summed": "You add up the queries of a group, or their scores: all Hq query heads remain. "
            "In an einsum, look for a letter that is missing on the right.",
            "dealt out": "Your heads come back in another order. "
            "Head h of the result belongs to head h of q: the group is the slower axis.",
        },
    },
    inputs=_groups,
)

PRUNE_HEADS = Exercise(
    name="cut_heads",
    reference=cut_heads,
    settings={
        "cut": {
            "rows": "You cut the rows of W_Q, W_K and W_V and the columns of W_O. "
            "Those are the width of the model: all heads read and write all of it.",
            "strided": "You take every H-th column for a head. It has a slice of neighbours.",
            "strided, dealt out": "You take every H-th column for a head. "
            "It has a slice of neighbours.",
            "others": "You remove the heads in `keep`. They are the ones that stay.",
            "first": "You keep the first heads. `keep` says which.",
            "last": "You keep the last heads. `keep` says which.",
            "columns": "You keep one column for each head, that of its number. "
            "A head has a whole slice.",
            "reversed": "Your heads come in reverse. Leave them in the order of `keep`.",
            "zeros": "You set the other heads to 0, so that nothing gets smaller. Leave them out.",
        },
        "width": {
            "d_k": "You take the values to be as wide as the keys. W_V decides their width.",
            "d_model // H": "You take d_model // heads as the width of a head. "
            "The matrices decide it, and W_V apart from W_Q.",
        },
        "whole": {
            "K, V, O": "Only W_Q is cut. A head that is gone needs no key, value or output.",
            "V, O": "W_V and W_O are still whole. A head that is gone needs no value or output.",
            "K, V": "W_K and W_V are still whole. A head that is gone needs no key or value.",
            "K": "W_K is still whole. A head that is gone needs no key.",
        },
        "of_W_O": {
            "whole": "W_O is still whole. It has rows that no head fills any more.",
            "zeros": "You set rows of W_O to 0 and keep them. No head fills them: leave them out.",
            "columns": "You cut the columns of W_O. The heads come in through its rows.",
            "rescaled": "You make W_O larger to make up for the heads that went. "
            "Those that stay contribute what they did before.",
            "d_k": "You cut W_O by the width of the keys. It reads what the values made.",
        },
        "output": {
            "transposed": "Your matrices are transposed. Vectors are rows, as in x @ W_Q.",
            "apart": "Your matrices have an axis for the heads. Put the heads side by side again.",
        },
    },
    inputs=_matrices,
    returns=("W_Q", "W_K", "W_V", "W_O"),
)

WAYS = {
    "half": "is half of what is there. A token leaves a key and a value, of 4 bytes a number.",
    "double": "is twice what is there. A number in float32 has 4 bytes.",
    "numbers": "counts numbers. Bytes are asked for.",
    "bits": "counts bits. Bytes are asked for.",
    "one layer": "is that of one layer. Each layer has a cache of its own.",
    "one head": "is that of one head. Each key head has keys and values of its own.",
    "query heads": "gives keys to every query head. A group shares them.",
    "group size": "takes the size of a group for the number of groups. "
    "Count the heads that have keys.",
    "one token": "is that of one token. All tokens stay in the cache.",
    "one number a head": "takes a key to be one number. It has the width of a head.",
    "matrices": "is that of W_K and W_V. The cache holds what they make of the tokens.",
    "one token fewer": "leaves out one token. The newest is in the cache too.",
}
MEASURED = (
    *("half", "double", "numbers", "bits", "one layer", "query heads", "one token", "matrices"),
    "one token fewer",
)

CACHE = Exercise(
    name="cache",
    reference=cache,
    settings={
        "predicted": {way: f"Your prediction {says}" for way, says in WAYS.items()},
        "measured": {way: f"Your measurement {WAYS[way]}" for way in MEASURED},
    },
    inputs=lambda rng, trial: my_numbers(f"student {rng.integers(10**6)}"),
    trials=1,
    returns=("predicted", "measured"),
    rtol=0.01,
)

ASSIGNMENT = Assignment(
    name="heads",
    title="Heads that can go, and heads that share",
    chapter=4,
    minutes=75,
    tasks=(Task(GATED_HEADS), Task(GROUPED_SCORES), Task(PRUNE_HEADS), Task(CACHE, my_numbers)),
)
