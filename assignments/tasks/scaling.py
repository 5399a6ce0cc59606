"""The tasks of chapter 2: attention by angles, entropy in bits, a softmax's gradient, a spread."""

import numpy as np

from attention_lib.checks import Exercise
from attention_lib.checks.chapter01 import OUTPUT, OUTPUT_TRANSPOSED, SOFTMAX, SOFTMAX_AXES
from attention_lib.checks.engine import Array, Case

from . import Assignment, Task
from ._references_scaling import cosine_attention, softmax_gradient, spread, weight_entropy


def _unequal_lengths(rng: np.random.Generator, trial: int) -> Case:
    """Rows of lengths far apart; sizes are equal only where an exchange needs it."""
    lead, T, S, d_k, d_v = [
        ((), 3, 5, 7, 9),
        ((), 5, 3, 7, 11),
        ((5,), 3, 9, 7, 11),
        ((3, 9), 5, 7, 11, 13),
        ((3, 9), 7, 5, 11, 11),
        ((), 5, 5, 7, 9),
    ][trial]
    q, k, v = (rng.normal(size=(*lead, *size)) for size in ((T, d_k), (S, d_k), (S, d_v)))
    q, k = (x * rng.uniform(0.5, 3, size=(*x.shape[:-1], 1)) + 0.3 for x in (q, k))
    return (q, k, v, round(rng.uniform(0.2, 0.6), 2))


def _rows_of_scores(rng: np.random.Generator, trial: int) -> Case:
    """Moderate scores, then hidden ones, rows near 1e4 and -1e4, and one score far below its row."""
    shape = [(3, 5), (5, 5), (5, 7), (3, 5, 9), (7, 3), (3, 7, 5)][trial]
    scores = np.round(96 * rng.normal(size=shape)) / 64  # exact in float32 even near 1e4
    match trial:
        case 2 | 3:
            scores[..., ~_mask(rng, *shape[-2:])] = -np.inf
        case 4:
            scores += rng.permuted(np.resize([1e4, 0.0, -1e4], 7))[:, None]
        case 5:
            scores[..., np.arange(7), rng.integers(5, size=7)] -= 2000
    return (scores,)


def _mask(rng: np.random.Generator, T: int, S: int) -> Array:
    """A mask with an allowed and a hidden entry in every row and column."""
    while True:
        mask = rng.random((T, S)) < 0.6
        if all(np.all(mask.any(axis) & ~mask.all(axis)) for axis in (0, 1)):
            return mask


def _weights_and_gradient(rng: np.random.Generator, trial: int) -> Case:
    """Weights that are a softmax, in the third case with hidden keys; scales below and above 1."""
    shape = [(3, 5), (7, 3), (5, 9), (3, 5, 7), (5, 3, 9, 7), (5, 5)][trial]
    powers = np.exp(rng.normal(size=shape))
    if trial == 2:
        powers[~_mask(rng, 5, 9)] = 0.0
    low, high = (0.2, 0.6) if trial % 2 == 0 else (1.5, 2.5)
    w = powers / powers.sum(axis=-1, keepdims=True)
    return (w, rng.normal(size=shape) + 0.5, round(rng.uniform(low, high), 2))


def my_numbers(student: str) -> tuple[int, float, float, float]:
    """d_k, the standard deviations of the entries of queries and keys, and the scale."""
    rng = np.random.default_rng(list(student.encode()))
    d_k = [24, 28, 36, 88, 116][rng.integers(5)]
    sigma_q, sigma_k = [1.4, 2.2][rng.integers(2)], [1.6, 2.5][rng.integers(2)]
    return d_k, sigma_q, sigma_k, [0.25, 0.4, 0.6][rng.integers(3)]


def my_vectors(d_k: int, sigma_q: float, sigma_k: float) -> tuple[Array, Array]:
    """Queries (8, d_k) and keys (12, d_k) with entries of these standard deviations."""
    rng = np.random.default_rng(d_k)
    return sigma_q * rng.normal(size=(8, d_k)), sigma_k * rng.normal(size=(12, d_k))


def _spread_case(student: str) -> Case:
    d_k, sigma_q, sigma_k, scale = my_numbers(student)
    return (d_k, sigma_q, sigma_k, scale, *my_vectors(d_k, sigma_q, sigma_k))


MIX_KEYS = "You mix the keys. They only decide the weights: mix the values, as they are."
CENTRED = (
    "You subtract each row's mean first, as layer normalisation does. "
    "Here a row is only divided, and keeps its direction."
)

COSINE_ATTENTION = Exercise(
    name="cosine_attention",
    reference=cosine_attention,
    settings={
        "length": {
            "none": "You compare the vectors as they are, so long keys win. "
            "Give every query and every key the length 1 first.",
            "q alone": "You give length 1 to the queries alone. Long keys still win: treat both.",
            "k alone": "You give length 1 to the keys alone. "
            "Long queries are still sharper: treat both.",
            "v too": "You give length 1 to the values too. They are mixed as they are.",
            "squared": "You divide by the squared length. A row divided by its length has length 1.",
            "root of the length": "You divide by the root of the length, or by the root of the "
            "product of both. Divide each row by its length.",
            "absolute": "You divide by the sum of absolute values. "
            "The length is the root of the sum of squares.",
            "largest": "You divide by the largest entry. "
            "The length is the root of the sum of squares.",
            "of columns": "You take the length along the tokens. Each token's row has its own.",
            "along axis 1": "You take the length along axis 1. "
            "With leading axes the features are the last one: use axis=-1.",
            "of everything": "You divide by the length of the whole array. "
            "Each row has its own: axis=-1, keepdims=True.",
            "centred": CENTRED,
            "standardised": CENTRED,
        },
        "temperature": {
            "ignored": "The temperature has no effect in your result. It divides the cosines.",
            "multiplied": "You multiply by the temperature. A low one makes the weights sharper.",
            "1/sqrt(tau)": "You divide by the root of the temperature. Divide by itself.",
            "twice": "You divide by the temperature twice, perhaps in queries and keys both. "
            "It divides each cosine once.",
            "sqrt(d_k) too": "You divide by sqrt(d_k) too. A cosine does not grow with the width.",
            "sqrt(d_k)": "You divide by sqrt(d_k). The temperature stands in its place.",
            "after": "You divide by the temperature after the softmax, "
            "so the weights no longer sum to 1. It divides the scores.",
        },
        "softmax": {
            **SOFTMAX,
            **SOFTMAX_AXES,
            "axis 1": "Your softmax runs over axis 1. "
            "With leading axes the keys are the last one: use axis=-1.",
        },
        "roles": {
            "k, q, v": "Queries and keys are exchanged. Row i of the scores belongs to query i.",
            "q, k, k": MIX_KEYS,
            "q, k, unit k": MIX_KEYS,
            "q, v, v": "You compare the queries with the values. Compare them with the keys.",
            "q, q, v": "You compare the queries with themselves. Compare them with the keys.",
            "q, v, k": "Keys and values are exchanged. "
            "Compare the queries with the keys, then mix the values.",
        },
        "output": {**OUTPUT, **OUTPUT_TRANSPOSED},
    },
    inputs=_unequal_lengths,
)

OVERFLOW = (
    "You take exp of the scores as they are: 1e4 overflows, -1e4 gives 0/0. "
    "See part 5 of the chapter."
)
ONE_MAXIMUM = (
    "You subtract one maximum from all rows, so a row far below it gives 0/0. Each row has its own."
)
OWN_ROW = "Each query has an entropy of its own, over its keys."

WEIGHT_ENTROPY = Exercise(
    name="weight_entropy",
    reference=weight_entropy,
    settings={
        "base": {
            "e": "Your entropy is in nats, from the natural logarithm. In bits, two equal weights "
            "have 1.",
            "10": "You take the logarithm to base 10. In bits, two equal weights have 1.",
        },
        "hidden": {
            "NaN": "A weight of 0 gives 0 times -inf, which is NaN. "
            "Such a term counts 0: keep the logarithm away from it.",
            "NaN at 0": "You leave out the scores of -inf only. A score far below its row gives a "
            "weight of exactly 0 too: look at the weights.",
            "score 0": "You set hidden scores to 0, which earns weight: exp(0) = 1. "
            "A score of -inf is right as it is.",
        },
        "shift": {
            "none": OVERFLOW,
            "none, dropped": OVERFLOW,
            "everything": ONE_MAXIMUM,
            "everything, dropped": ONE_MAXIMUM,
        },
        "axis": {
            "queries": f"Your softmax runs over the queries. {OWN_ROW}",
            "queries, throughout": f"Softmax and sum run over the queries. {OWN_ROW}",
            "everything": f"Your softmax runs over the whole array. {OWN_ROW}",
        },
        "form": {
            "negative": "Your entropy is negative. A logarithm of a weight is: turn the sign round.",
            "mean": "You average the terms. Entropy is their sum: the weights average already.",
            "terms": "You return the terms. Sum them over the keys.",
            "mean of rows": f"You average over the rows. {OWN_ROW}",
            "all rows": f"You sum over the whole array. {OWN_ROW}",
            "2^H": "You return 2 to the power of the entropy, the number of keys in use. "
            "Return the exponent.",
            "share": "You divide by the largest possible entropy. Asked is the entropy itself.",
            "surprise": "You return the surprise of the largest weight. "
            "Entropy is the mean over all keys, each by its weight.",
            "squares": "You take the logarithm of the sum of squares. "
            "Entropy sums logarithms, each times its weight.",
            "logarithms": "You sum the logarithms without their weights. "
            "Each counts as much as its key is read.",
            "weights": "You return the weights. Go on to the entropy of each row.",
        },
    },
    inputs=_rows_of_scores,
)

ONCE = "By the chain rule it appears once, as a factor of the whole."

SOFTMAX_GRADIENT = Exercise(
    name="softmax_gradient",
    reference=softmax_gradient,
    settings={
        "subtracted": {
            "nothing": "You subtract nothing: only the Jacobian's diagonal of weights is left. "
            "Weights share, so each is lowered by what the others gain.",
            "sum of d_w": "You subtract the plain sum of d_w. Each entry counts by its weight.",
            "mean of d_w": "You subtract the plain mean of d_w. Each entry counts by its weight.",
            "mean of w d_w": "You average w d_w over the keys. Sum it: the weights average already.",
            "added": "You add the sum. It is subtracted: raising all scores alike changes nothing, "
            "so a row of the gradient sums to 0.",
            "over queries": "You sum over the queries. The softmax ran over the keys, axis -1.",
            "over everything": "You sum over the whole array. Each query has its own sum: "
            "axis=-1, keepdims=True.",
            "own": "You subtract each key's own w d_w, as if the Jacobian were diagonal. "
            "A score moves every weight of its row.",
            "1": "You subtract 1. That is the sum of the weights; d_w enters it too.",
        },
        "front": {
            "none": "You leave out the weight in front. A key that is not read gets no gradient.",
            "w^2": "You multiply by the weight twice. Once stands in front.",
            "w (1 - w)": "You multiply by w (1 - w), the derivative of a sigmoid. "
            "A softmax has the weight in front and the sum inside.",
        },
        "factor": {
            "none": "You leave out the scale. The products are multiplied by it on the way in, "
            "so their gradient is too.",
            "1/scale": f"You divide by the scale. {ONCE}",
            "scale^2": f"You multiply by the scale twice. {ONCE}",
            "sqrt(scale)": f"You multiply by the root of the scale. {ONCE}",
            "1/sqrt(S)": "You use the root of the number of keys. Use the scale that is given.",
            "first term": f"You multiply only d_w by the scale, not the sum. {ONCE}",
            "second term": f"You multiply only the sum by the scale, not d_w. {ONCE}",
        },
        "roles": {
            "softmax of w": "You apply a softmax to w. It is one already.",
            "d_w, w": "w and d_w are exchanged. The weight stands in front.",
        },
        "output": {
            "negative": "Every sign is the wrong way round. Raising a score raises its own weight.",
            "Jacobian": "You return the Jacobian of every row. Apply it to d_w.",
        },
    },
    inputs=_weights_and_gradient,
)

SPREAD = Exercise(
    name="spread",
    reference=spread,
    settings={
        "prediction": {
            "variance": "Your prediction is the variance. Asked is its root.",
            "unscaled": "Your prediction leaves out the scale. It multiplies every product.",
            "divided": "Your prediction divides by the scale. It is the factor itself.",
            "sqrt(scale)": "Your prediction takes the root of the scale. "
            "A standard deviation grows as the factor itself.",
            "d_k": "Your prediction grows as d_k. "
            "Variances add up over the width: what does their root do?",
            "no d_k": "Your prediction is that of one product of two entries. A score sums d_k.",
            "1/sqrt(d_k)": "Your prediction is for the scale 1/sqrt(d_k). Use your own.",
            "sigmas 1": "Your prediction is for entries of variance 1. Yours have other ones.",
            "sigma_q alone": "Your prediction leaves out sigma_k. Both vectors are in the product.",
            "sigma_k alone": "Your prediction leaves out sigma_q. Both vectors are in the product.",
            "sum": "Your prediction adds the sigmas. The entries are multiplied.",
            "squares": "Your prediction squares the sigmas. That belongs to a variance.",
            "measured": "Your prediction is your measurement. Derive it by formula: chance moves "
            "the measurement off it.",
        },
        "measurement": {
            "variance": "You measured the variance. Take the standard deviation.",
            "unscaled": "You measured the products without the scale.",
            "divided": "You divided by the scale. It is a factor.",
            "1/sqrt(d_k)": "You measured with the scale 1/sqrt(d_k). Use your own.",
            "rows": "You measured each query's scores alone and averaged. "
            "Take the standard deviation of all scores together.",
            "mean": "You measured the mean, which is nearly 0. Take the standard deviation.",
            "size": "You measured the mean absolute score. Take the standard deviation.",
            "predicted": "Your measurement is your prediction. Take it from your vectors: "
            "chance moves it off the formula.",
        },
    },
    inputs=lambda rng, trial: _spread_case(str(rng.integers(2**32))),
    trials=1,
    returns=("predicted", "measured"),
    rtol=0.01,
)

ASSIGNMENT = Assignment(
    name="scaling",
    title="How large, how sharp",
    chapter=2,
    minutes=75,
    tasks=(
        Task(COSINE_ATTENTION),
        Task(WEIGHT_ENTROPY),
        Task(SOFTMAX_GRADIENT),
        Task(SPREAD, numbers=_spread_case),
    ),
)
