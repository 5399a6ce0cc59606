"""The exercises of chapter 2: inputs that tell mistakes apart, and the advice each earns."""

import numpy as np

from .engine import Array, Case, Exercise
from .properties import not_summing_to_1
from .references_scaling import scaled_scores, softmax_jacobian, stable_softmax


def _rows_of_scores(rng: np.random.Generator, trial: int) -> Case:
    """Moderate scores, then scores near 1e4 and -1e4; a square and deeper arrays for the axes."""
    shape = [(5,), (5, 5), (7, 3), (3, 5, 5), (5, 9), (7, 3, 5)][trial]
    # No ties, and exact in float32 even near 1e4.
    scores = rng.choice(np.arange(-256, 257), size=shape, replace=False) / 64
    match trial:
        case 2 | 3:  # every row far from the others, narrow in itself
            levels = np.resize([1e4, 0.0, -1e4], shape[:-1])
            scores += rng.permuted(levels, axis=-1)[..., None]
        case 4:  # one score far below its row: the mean survives it, the minimum does not
            scores[np.arange(5), rng.integers(9, size=5)] -= 2000
        case 5:  # scores far apart within every row
            scores += rng.permuted(np.resize([1e4, -1e4, 0.0], shape), axis=-1)
    return (scores,)


def _one_head(rng: np.random.Generator, trial: int) -> Case:
    T, d_model, d_k = [(3, 9, 5), (5, 11, 3), (9, 15, 7), (7, 21, 3), (11, 13, 9), (5, 25, 5)][
        trial
    ]
    x, W_Q, W_K = (rng.normal(size=shape) for shape in ((T, d_model), *[(d_model, d_k)] * 2))
    return (x, W_Q / np.sqrt(d_model), W_K / np.sqrt(d_model))


def _weights(rng: np.random.Generator, trial: int) -> Case:
    powers: Array = np.exp(rng.normal(size=[3, 5, 9, 7, 11, 2][trial]))
    return (powers / powers.sum(),)


def _unequal_sums(_: Case, output: Array) -> str:
    return not_summing_to_1(output, "The weights")


ROWS = "Each row sums to 1 on its own: axis=-1, keepdims=True."

STABLE_SOFTMAX = Exercise(
    name="stable_softmax",
    reference=stable_softmax,
    settings={
        "shift": {
            "none": "You take exp of the scores as they are: 1e4 overflows, -1e4 gives 0/0. "
            "Subtract each row's maximum first.",
            "none, NaN to 0": "You replace the NaN by 0, so rows near 1e4 and -1e4 lose their weights. "
            "Subtract each row's maximum first: then no NaN arises.",
            "clipped": "You clip the scores, so rows near 1e4 and -1e4 become flat. "
            "Subtract each row's maximum: that changes no weight.",
            "divided": "You divide by the maximum. Subtract it: only that leaves the weights alone.",
            "everything": "You subtract one maximum from all rows, so a row far below it becomes "
            "0/0. Subtract each row's own maximum.",
            "axis 0": "You subtract the maxima along axis 0. "
            "Subtract each row's own: axis=-1, keepdims=True.",
            "minimum": "You subtract the minimum: what lies far above it overflows. "
            "Subtract the maximum.",
            "mean": "You subtract the mean: a score far above it overflows. Subtract the maximum.",
            "size": "You subtract the largest absolute value, so a row near -1e4 becomes 0/0. "
            "Take the maximum without abs.",
        },
        "axis": {
            "axis 0": f"Your softmax runs along axis 0. {ROWS}",
            "axis 1": f"Your softmax runs along axis 1, which is not always the last. {ROWS}",
            "everything": f"Your softmax runs over the whole array. {ROWS}",
        },
        "keepdims": {
            "max": "The maxima lost their axis and meet the wrong rows. "
            "Use scores.max(axis=-1, keepdims=True).",
            "sum": "The sums lost their axis and divide the wrong rows. "
            "Use sum(axis=-1, keepdims=True).",
            "both": "Maxima and sums lost their axis and meet the wrong rows. "
            "Use keepdims=True in both.",
        },
        "exp": {
            "2": "You raise 2 to the scores. Use np.exp, powers of e.",
            "none": "You divide the shifted scores by their sum. Take exp of them first.",
        },
        "total": {
            "none": "Your weights do not sum to 1. Divide the exponentials by their sum.",
            "everything": f"You divide by the sum of the whole array. {ROWS}",
            "axis 0": f"You divide by the sums along axis 0. {ROWS}",
            "mean": "You divide by the mean, so a row sums to n. Divide by the sum.",
            "squares": "You divide by the root of the sum of squares. Divide by the plain sum.",
            "twice": "You apply a softmax to the weights again, which flattens them. "
            "Apply it once.",
        },
        "output": {
            "log": "You return the logarithms of the weights. Return the weights.",
            "log of weights": "You return the logarithms of the weights. Return the weights.",
            "largest": "You give all weight to the largest score. "
            "A softmax gives every score a share.",
        },
    },
    inputs=_rows_of_scores,
    explain=_unequal_sums,
)

SCALED_SCORES = Exercise(
    name="scaled_scores",
    reference=scaled_scores,
    settings={
        "scale": {
            "none": "You do not scale the scores. Divide them by sqrt(d_k), the root of the keys' width.",
            "1/d_k": "You divide by d_k, or by its root twice. Divide once, by sqrt(d_k).",
            "1/2": "You divide by 2, which is right only for keys of width 4: "
            "divide by sqrt(d_k), the root of W_K.shape[-1].",
            "1/8": "You divide by 8, the root of 64, whatever the width is: "
            "divide by sqrt(d_k), the root of W_K.shape[-1].",
            "1/(2 sqrt(d_k))": "You divide by 2 besides, a temperature of 2. "
            "Divide by sqrt(d_k) alone.",
            "*sqrt(d_k)": "You multiply by sqrt(d_k). Divide by it.",
            "1/d_k^(1/4)": "You divide by the fourth root of d_k. "
            "Use it on queries and keys both, or divide the scores by sqrt(d_k).",
            "1/sqrt(T)": "You scale by the number of tokens. Use the width of the keys: sqrt(d_k).",
            "1/sqrt(d_model)": "You divide by sqrt(d_model), the width of x. "
            "Use the head's own width, sqrt(d_k): W_K.shape[-1].",
            "measured": "You divide by the standard deviation of these scores. "
            "The factor is fixed: sqrt(d_k), whatever the scores are.",
        },
        "projections": {
            "K, Q": "Your scores are transposed. "
            "Row i belongs to query i: (x @ W_Q) @ (x @ W_K).T.",
            "Q, Q": "You compare the queries with themselves. The keys are x @ W_K.",
            "K, K": "You compare the keys with themselves. The queries are x @ W_Q.",
        },
        "output": {
            "weights": "You return the weights. Return the scores, before the softmax.",
            "cosine": "You divide by the lengths of queries and keys: that is cosine similarity. "
            "Take the plain dot products.",
            "own key": "You compare each query with its own key alone. "
            "Compare it with every key: q @ k.T.",
            "features": "You sum over the tokens and get d_k x d_k. Sum over the width: q @ k.T.",
        },
    },
    inputs=_one_head,
    keeps_dtype=True,
)

SOFTMAX_JACOBIAN = Exercise(
    name="softmax_jacobian",
    reference=softmax_jacobian,
    settings={
        "form": {
            "diagonal weights": "You have only the diagonal of weights. "
            "Subtract the outer product: a score lowers every other weight.",
            "no diagonal weights": "You have only the outer product. "
            "Add the weights on the diagonal: np.diag(w).",
            "plus": "You add the outer product. Subtract it: a larger score lowers the others.",
            "dot product": "You subtract w @ w, one number. "
            "Subtract the outer product, np.outer(w, w): a number for each pair of weights.",
            "negative": "Every sign is the wrong way round. It is np.diag(w) - np.outer(w, w).",
            "own score": "You leave everything off the diagonal 0. "
            "Score j also moves weight i, by -w_i w_j.",
            "vector": "You return w (1 - w), the derivative of a sigmoid. "
            "Every weight depends on every score: return (n, n).",
            "identity": "You subtract the outer product from the identity. "
            "Put the weights on the diagonal: np.diag(w).",
            "squared rows": "Off the diagonal you have -w_i squared. It is -w_i w_j.",
            "squared columns": "Off the diagonal you have -w_j squared. It is -w_i w_j.",
            "no delta": "You have w_i (1 - w_j) everywhere. The 1 stands on the diagonal alone.",
        },
        "given": {
            "scores": "You apply a softmax to the weights. They already are its output.",
        },
    },
    inputs=_weights,
)

EXERCISES = (STABLE_SOFTMAX, SCALED_SCORES, SOFTMAX_JACOBIAN)
