"""The exercises of chapter 1: inputs that tell mistakes apart, and the advice each earns."""

import numpy as np

from .engine import Array, Case, Exercise
from .properties import no_average
from .references import attend_one, cross_attention, rotate, scaled_dot_product_attention


def _normal(rng: np.random.Generator, *shapes: tuple[int, ...]) -> Case:
    return tuple(rng.normal(size=shape) for shape in shapes)


def _one_query(rng: np.random.Generator, trial: int) -> Case:
    S, d_k, d_v = [(5, 3, 7), (3, 7, 5), (9, 5, 3), (7, 5, 9), (5, 7, 7), (11, 5, 5)][trial]
    return _normal(rng, (d_k,), (S, d_k), (S, d_v))


def _many_queries(rng: np.random.Generator, trial: int) -> Case:
    """All widths differ but in the last two cases: exchanged arguments give a result only there."""
    lead, T, S, d_k, d_v = [
        ((), 3, 5, 7, 9),
        ((), 5, 3, 7, 11),
        ((5,), 3, 9, 7, 11),
        ((3, 9), 5, 7, 11, 13),
        ((3, 9), 7, 5, 11, 11),
        ((), 5, 5, 7, 9),
    ][trial]
    arrays = _normal(rng, (*lead, T, d_k), (*lead, S, d_k), (*lead, S, d_v))
    if trial == 5:
        arrays = _lowered(*arrays)
    masked = [False, True, False, True, True, True][trial]
    shape = (*lead[:1], 1, T, S) if trial == 4 else (T, S)
    return (*arrays, _mask(rng, shape)) if masked else arrays


def _lowered(q: Array, k: Array, v: Array) -> Case:
    """Every scaled score 30 lower than it would be without the first feature.

    No softmax sees that, but a forbidden key with a score of -10 does.
    """
    q[..., 0] = 30 * np.sqrt(q.shape[-1])
    k[..., 0] = -1
    return (q, k, v)


def _leak(case: Case, output: Array) -> str:
    """Whether the output is right but for forbidden keys, whose weights it shows as S <= d_v."""
    if len(case) < 4:
        return ""
    v = case[2]
    weights, right = (o @ np.linalg.pinv(v) for o in (output, scaled_dot_product_attention(*case)))
    allowed = weights * case[3]
    mixes_values = np.allclose(weights @ v, output, atol=1e-4)
    proportional = np.allclose(allowed, right * allowed.sum(axis=-1, keepdims=True), atol=1e-4)
    if not (mixes_values and proportional) or np.all(np.abs(weights - allowed) < 1e-5):
        return ""
    return (
        "A forbidden key still has weight. "
        "Set its score to -inf, or as low as -1e9, before the softmax."
    )


def _one_average(case: Case, output: Array) -> str:
    return no_average(case[2], output[None])


def _leak_or_no_average(case: Case, output: Array) -> str:
    return _leak(case, output) or no_average(case[2], output)


def _crossed_average(case: Case, output: Array) -> str:
    _, context, _, _, W_V = case
    return no_average(context @ W_V, output)


def _mask(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A mask with an allowed and a forbidden entry in every row and column."""
    T, S = shape[-2:]
    mask = rng.random(shape) < 0.6
    cells = mask.reshape(-1, T, S)
    for page in range(len(cells)):
        while not _mixed(cells[page]):
            cells[page] = rng.random((T, S)) < 0.6
    return mask


def _mixed(cells: Array) -> bool:
    return all(bool(np.all(cells.any(axis) & ~cells.all(axis))) for axis in (0, 1))


def _two_sequences(rng: np.random.Generator, trial: int) -> Case:
    """The output is as wide as x in two cases: only there can x be added to it."""
    T, S, d, d_k, d_v = [
        (3, 5, 11, 7, 9),
        (7, 3, 9, 5, 11),
        (5, 9, 11, 7, 11),
        (9, 7, 5, 3, 11),
        (3, 11, 9, 7, 7),
        (5, 5, 9, 7, 9),
    ][trial]
    x, context, *matrices = _normal(rng, (T, d), (S, d), (d, d_k), (d, d_k), (d, d_v))
    return (x, context, *(matrix / np.sqrt(d) for matrix in matrices))


def _sequence(rng: np.random.Generator, trial: int) -> Case:
    T, d = [(3, 10), (5, 6), (9, 14), (7, 18), (11, 6), (1, 10)][trial]
    positions = rng.choice(np.arange(2, 60), size=T, replace=False)
    return (rng.normal(size=(T, d)), positions)


SCALE = {
    "none": "You do not scale the scores. "
    "Divide them by sqrt(d_k), the square root of the keys' width.",
    "1/d_k": "You divide the scores by d_k, or by its root twice. Divide them once, by sqrt(d_k).",
    "*sqrt(d_k)": "You multiply the scores by sqrt(d_k). Divide them by it.",
    "1/sqrt(S)": "You scale by the number of keys. Use their width: divide by sqrt(d_k).",
    "1/sqrt(d_v)": "You scale by the width of the values. "
    "Use that of the keys: divide by sqrt(d_k).",
    "after": "You divide by sqrt(d_k) after the softmax. "
    "Divide the scores, so that the weights still sum to 1.",
    "1/8": "You divide by 8, the root of 64, whatever the width is. "
    "Read the width off the keys: divide by sqrt(d_k).",
    "1/(2 sqrt(d_k))": "You divide the scores by 2 besides, a temperature of 2. "
    "Divide them by sqrt(d_k) alone.",
    "1/largest": "You divide the scores by the largest of them. The factor is fixed: sqrt(d_k), "
    "whatever the scores are.",
}
HALF = "You divide by 2, which is right only for keys of width 4: divide by the square root of"
SCALE_QUERIES = {
    "1/sqrt(T)": "You scale by the number of queries. "
    "Use the width of the keys: divide by sqrt(d_k).",
}
SOFTMAX = {
    "none": "There is no softmax: you weight the values by raw scores. "
    "Turn the scores into weights first.",
    "no exp": "You divide the scores by their sum without exp. "
    "Take exp first: it makes every weight positive.",
    "no sum": "You take exp of the scores, but the weights do not sum to 1. "
    "Divide them by their sum.",
    "no sum, shifted": "You take exp of the scores, but the weights do not sum to 1. "
    "Divide them by their sum.",
    "sigmoid": "You take a sigmoid of each score, which knows nothing of the other scores. "
    "A softmax divides exp of a score by the sum over all keys.",
    "largest": "You take the value of the best key alone. A softmax gives every key a share.",
    "average": "Every key gets the same weight: that is the plain average of the values. "
    "Let the scores decide.",
}
SOFTMAX_AXES = {
    "queries": "Your softmax runs over the queries. "
    "Each query's weights over the keys must sum to 1: use axis=-1.",
    "everything": "Your softmax divides by the sum of the whole array. "
    "Sum over the keys alone: axis=-1, keepdims=True.",
}
COMPARE = {
    "cosine": "You divide by the lengths of query and key: that is cosine similarity. "
    "Take the plain dot product.",
    "distance": "You compare by distance. Take the dot product, which is large where query and key "
    "point the same way.",
    "squared distance": "You compare by squared distance. Take the dot product, which is large "
    "where query and key point the same way.",
}
LEFT_OUT = {"first key": "You leave out the first key. Every key counts, the first too."}
ASKED = "You use a causal mask, for which nobody asked. Hide only what the mask forbids."
CAUSAL = "You use a causal mask. The context has no order against x: every query may see every key."
SOFTMAX_CAUSAL = {"causal": CAUSAL, "causal, upper left": CAUSAL}
OUTPUT = {
    "scores": "You return the scores. "
    "Turn them into weights and return the weighted sum of the values.",
    "weights": "You return the weights. Return the weighted sum of the values: weights @ values.",
}
OUTPUT_TRANSPOSED = {
    "transposed": "You multiply the values by the transposed weights. "
    "The weights' rows are the queries: weights @ values.",
}

ATTEND_ONE = Exercise(
    name="attend_one",
    reference=attend_one,
    settings={
        "scale": {**SCALE, "1/2": f"{HALF} len(query)."},
        "softmax": SOFTMAX,
        "compare": COMPARE,
        "left_out": LEFT_OUT,
        "roles": {
            "q, k, k": "You mix the keys. The keys only decide the weights: mix the values.",
            "q, v, v": "You compare the query with the values. Compare it with the keys.",
            "q, v, k": "Keys and values are exchanged. "
            "Compare the query with the keys, then mix the values.",
        },
        "output": {
            **OUTPUT,
            "not summed": "You weight the values but do not add them. Sum over the keys, axis 0.",
            "mean": "You average the weighted values. Add them up: the weights already sum to 1.",
        },
    },
    inputs=_one_query,
    explain=_one_average,
)

SCALED_DOT_PRODUCT_ATTENTION = Exercise(
    name="scaled_dot_product_attention",
    reference=scaled_dot_product_attention,
    settings={
        "scale": {
            **SCALE,
            **SCALE_QUERIES,
            "1/2": f"{HALF} q.shape[-1].",
            "1/sqrt(axis 1)": "You read d_k from axis 1. "
            "With leading axes the width is the last one: q.shape[-1].",
        },
        "softmax": {
            **SOFTMAX,
            **SOFTMAX_AXES,
            "causal": ASKED,
            "causal, upper left": ASKED,
            "axis 1": "Your softmax runs over axis 1. "
            "With leading axes the keys are the last one: use axis=-1.",
        },
        "compare": COMPARE,
        "left_out": LEFT_OUT,
        "masking": {
            "ignored": "Your result ignores the mask. "
            "Set the scores of forbidden keys to -inf before the softmax.",
            "inverted": "Your mask works the wrong way round: forbidden keys get all the weight. "
            "True means may look, and what is added to a forbidden score must be negative.",
            "transposed": "You transpose the mask. "
            "Its rows are queries and its columns keys, like the scores.",
            "zeroed": "You set forbidden scores to 0, which still earns weight: exp(0) = 1. "
            "Use -inf.",
            "added": "You add the mask to the scores as 0 and 1. "
            "Set forbidden scores to -inf instead.",
            "after": "You mask after the softmax, so the weights no longer sum to 1. "
            "Mask the scores before it.",
        },
        "roles": {
            "k, q, v": "Queries and keys are exchanged. "
            "Row i of the scores belongs to query i: q @ k transposed.",
            "q, k, k": "You mix the keys. The keys only decide the weights: mix the values.",
            "q, v, v": "You compare the queries with the values. Compare them with the keys.",
            "q, v, k": "Keys and values are exchanged. "
            "Compare the queries with the keys, then mix the values.",
            "q, q, v": "You compare the queries with themselves. Compare them with the keys.",
            "k, k, v": "You compare the keys with themselves. Compare the queries with them.",
        },
        "output": {**OUTPUT, **OUTPUT_TRANSPOSED},
    },
    inputs=_many_queries,
    keeps_dtype=True,
    explain=_leak_or_no_average,
)

CROSS_ATTENTION = Exercise(
    name="cross_attention",
    reference=cross_attention,
    settings={
        "scale": {
            **SCALE,
            **SCALE_QUERIES,
            "1/2": f"{HALF} W_K.shape[-1].",
            "1/sqrt(d_model)": "You scale by the width of the input. "
            "Use that of the projected keys: sqrt(d_k).",
        },
        "softmax": {**SOFTMAX, **SOFTMAX_AXES, **SOFTMAX_CAUSAL},
        "compare": COMPARE,
        "left_out": LEFT_OUT,
        "sources": {
            "x, both, both": "You join x to the context. "
            "Keys and values come from the context alone.",
            "x, x, context": "You take the keys from x. "
            "Keys and values both come from the context.",
            "x, context, x": "You take the values from x. "
            "Keys and values both come from the context.",
            "x, x, x": "This is self-attention of x. Keys and values come from the context.",
            "context, context, context": "This is self-attention of the context. "
            "The queries come from x.",
            "context, x, x": "x and the context are exchanged. "
            "Queries come from x, keys and values from the context.",
        },
        "projections": {
            "K, Q, V": "W_Q and W_K are exchanged. Queries are x @ W_Q, keys are context @ W_K.",
            "Q, V, K": "W_K and W_V are exchanged. "
            "Keys are context @ W_K, values are context @ W_V.",
            "Q, Q, V": "You make the keys with W_Q. They have a matrix of their own, W_K.",
            "K, K, V": "You make the queries with W_K. They have a matrix of their own, W_Q.",
            "Q, K, K": "You use the keys as values. Values are context @ W_V.",
            "Q, V, V": "You use the values as keys. Keys are context @ W_K.",
            "Q, K, none": "You mix the context itself. Mix the values, context @ W_V.",
            "none, none, V": "You compare x with the context directly. "
            "Project them first, by W_Q and W_K.",
        },
        "output": {
            **OUTPUT,
            **OUTPUT_TRANSPOSED,
            "residual": "You add x to the result. Return the weighted values alone: "
            "a block adds x, attention does not.",
        },
    },
    inputs=_two_sequences,
    explain=_crossed_average,
)

ROTATE = Exercise(
    name="rotate",
    reference=rotate,
    settings={
        "pairing": {
            "neighbours": "You pair neighbouring columns. Pair column i with column i + d/2.",
            "halves, neighbours' angles": "You pair halves, but repeat each angle for "
            "neighbouring columns. "
            "Columns i and i + d/2 must share an angle: concatenate the angles, do not repeat "
            "them.",
            "neighbours, halves' angles": "You pair neighbouring columns, but lay the angles out "
            "by halves. "
            "Pair column i with column i + d/2, as the angles do.",
            "dealt out": "You turn the right pairs, but interleave the halves in the result. "
            "Concatenate them.",
            "gathered": "You pair even with odd columns and concatenate the results. "
            "Split x into halves instead.",
        },
        "turn": {
            "backward": "You turn the wrong way. "
            "The first half is x1 cos - x2 sin, the second x2 cos + x1 sin.",
            "both plus": "Both sines have a plus sign, so lengths change. "
            "The first half is x1 cos - x2 sin.",
            "both minus": "Both sines have a minus sign, so lengths change. "
            "The second half is x2 cos + x1 sin.",
            "swapped": "Sine and cosine are exchanged. "
            "Position 0 must change nothing: x cos + partner sin.",
            "added": "You add a table of sines and cosines to x. "
            "Turn pairs of columns by an angle: nothing is added, lengths stay.",
            "added, by halves": "You add sines and cosines to x. "
            "Turn pairs of columns by an angle: nothing is added, lengths stay.",
            "overwritten": "You make the second half from the new first half. "
            "Keep the old one until both are made.",
        },
        "counting": {
            "ignored": "Your result does not depend on the positions. "
            "The angle is position times frequency.",
            "counted": "You count the positions yourself, from 0. Use those that are given.",
            "from 1": "You add 1 to every position. Use them as given: position 0 turns nothing.",
            "from the first": "You count from the first position given. "
            "Use the positions as they are.",
        },
        "frequency": {
            "i/d": "Your exponent is -i/d. Pair i turns with 10000^(-2i/d).",
            "4i/d": "Your exponent is twice too large, -4i/d. "
            "Pair i turns with 10000^(-2i/d), i = 0 … d/2 - 1.",
            "from 1": "You number the pairs from 1. "
            "Start from 0: the first pair turns by 1 radian per position.",
            "growing": "Your frequencies grow with i. The exponent is negative: 10000^(-2i/d).",
            "floored": "Your exponent is rounded to a whole number: // does that. "
            "Divide with /, as in 10000^(-2i/d).",
            "base 1000": "Your base is 1000. It is 10000: pair i turns with 10000^(-2i/d).",
            "turns": "You multiply the angle by 2 pi. It is in radians already.",
            "no base": "All pairs turn at one speed. Pair i turns with 10000^(-2i/d).",
            "degrees": "You read the angle as degrees. It is in radians already.",
            "to degrees": "You turn the angle into degrees. np.sin and np.cos take radians.",
        },
    },
    inputs=_sequence,
)

EXERCISES = (ATTEND_ONE, SCALED_DOT_PRODUCT_ATTENTION, CROSS_ATTENTION, ROTATE)
