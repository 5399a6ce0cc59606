"""The tasks of chapter 1: capped scores, keys stored in columns, a sink, a ratio of two weights."""

import numpy as np

from attention_lib.checks import Exercise
from attention_lib.checks.chapter01 import OUTPUT, OUTPUT_TRANSPOSED, SCALE, SOFTMAX, SOFTMAX_AXES
from attention_lib.checks.engine import Array, Case

from . import Assignment, Task
from ._references_pointing import ratio, sink_weights, soft_capped_attention, stored_keys_attention


def _scores_to_cap(rng: np.random.Generator, trial: int) -> Case:
    """Scores that the cap changes much; T, S, d_k and d_v are equal only where an exchange needs it."""
    lead, T, S, d_k, d_v = [
        ((), 3, 5, 7, 9),
        ((), 5, 3, 7, 11),
        ((5,), 3, 9, 7, 11),
        ((3, 9), 5, 7, 11, 13),
        ((3, 9), 7, 5, 11, 11),
        ((), 5, 5, 7, 9),
    ][trial]
    q, k, v = (rng.normal(size=(*lead, *size)) for size in ((T, d_k), (S, d_k), (S, d_v)))
    case = (2 * q, k, v, round(rng.uniform(1.2, 1.9), 2))
    return case if trial in (0, 2) else (*case, _mask(rng, T, S))


def _mask(rng: np.random.Generator, T: int, S: int) -> Array:
    """A mask with an allowed and a hidden entry in every row and column."""
    while True:
        mask = rng.random((T, S)) < 0.6
        if all(np.all(mask.any(axis) & ~mask.all(axis)) for axis in (0, 1)):
            return mask


def _stored_keys(rng: np.random.Generator, trial: int) -> Case:
    """All sizes differ, but for d_k = d_v, T = S and d_k = S in the last three cases."""
    lead, T, S, d_k, d_v = [
        ((), 3, 5, 7, 9),
        ((), 5, 3, 11, 7),
        ((3, 9), 5, 7, 11, 13),
        ((5,), 3, 9, 7, 7),
        ((), 5, 5, 7, 9),
        ((), 3, 7, 7, 5),
    ][trial]
    return tuple(rng.normal(size=(*lead, *size)) for size in ((T, d_k), (d_k, S), (S, d_v)))


def _sinks(rng: np.random.Generator, trial: int) -> Case:
    """A sink per head, one for all, H = T, H = S, hidden keys, and a query that may see nothing."""
    H, T, S = [(3, 5, 7), (5, 3, 9), (5, 5, 7), (7, 3, 7), (3, 7, 5), (5, 7, 3)][trial]
    scores = rng.normal(size=(H, T, S))
    if trial >= 4:
        scores[:, ~_mask(rng, T, S)] = -np.inf
    if trial == 5:
        scores[rng.integers(H), rng.integers(T)] = -np.inf
    sinks = rng.choice([-1, 1], size=H) * rng.uniform(0.5, 2, size=H)
    return (scores, float(sinks[0]) if trial in (1, 4) else sinks)


def my_numbers(student: str) -> tuple[int, float, float, float]:
    """d_k, the products of the query with keys 0 and 1, and how many times as long it becomes."""
    rng = np.random.default_rng(list(student.encode()))
    d_k = [50, 52, 54, 56, 58, 60][rng.integers(6)]
    first, second = [14.0, 14.5, 15.5][rng.integers(3)], [4.0, 4.5, 5.0][rng.integers(3)]
    return d_k, first, second, [1.9, 2.0][rng.integers(2)]


def my_vectors(d_k: int, first: float, second: float) -> tuple[Array, Array]:
    """A query (d_k,) and six keys (6, d_k); its products with keys 0 and 1 are first and second."""
    rng = np.random.default_rng(d_k)
    query, keys = rng.normal(size=d_k), rng.normal(size=(6, d_k))
    products = np.array([first, second, 2.0, -3.0, 1.0, -1.0])
    keys += np.outer(products - keys @ query, query) / (query @ query)
    return query, keys


def _ratio_case(student: str) -> Case:
    d_k, first, second, stretch = my_numbers(student)
    return (d_k, first, second, stretch, *my_vectors(d_k, first, second))


MIX_KEYS = "You mix the keys. They only decide the weights: mix the values."
COMPARE_VALUES = "You compare the queries with the values. Compare them with the keys."
KEYS_AND_VALUES = (
    "Keys and values are exchanged. Compare the queries with the keys, then mix the values."
)
BY_QUERIES = "You scale by the number of queries. Use the width of the keys: divide by sqrt(d_k)."
AXIS_1 = "Your softmax runs over axis 1. With leading axes the keys are the last one: use axis=-1."

SOFT_CAPPED_ATTENTION = Exercise(
    name="soft_capped_attention",
    reference=soft_capped_attention,
    settings={
        "capping": {
            "none": "Your result ignores the cap. Between scaling and mask each score passes the tanh.",
            "clipped": "You cut the scores off at ±cap. "
            "A soft cap bends them: scores beyond it still differ a little.",
            "clipped above": "You cut large scores off at the cap and leave low ones as they are. "
            "A soft cap bends both sides, smoothly.",
            "tanh(s / cap)": "You leave out the factor before the tanh, so scores lie between ±1. "
            "They may reach ±cap.",
            "cap tanh(s)": "You do not divide by the cap inside the tanh. "
            "Scores far below the cap must stay nearly as they are.",
            "tanh(s)": "You cap at ±1: the number `cap` does not enter. "
            "It stands inside the tanh and before it.",
            "tanh(cap s) / cap": "You have multiplied and divided the wrong way round: "
            "scores end at ±1/cap. Compare with the formula.",
            "divided": "You divide the scores by the cap and take no tanh. "
            "That flattens all scores alike: bend them.",
        },
        "scale": {
            **SCALE,
            "after the cap": "You divide by sqrt(d_k) after the cap. "
            "The scores are scaled first, then capped.",
            "1/2": "You divide by 2, which is right only for keys of width 4, as in the example. "
            "Take the root of the width.",
            "1/sqrt(T)": BY_QUERIES,
        },
        "masking": {
            "ignored": "Your result ignores the mask. Hidden keys get the weight 0.",
            "inverted": "Your mask works the wrong way round: hidden keys get all the weight. "
            "True means may look.",
            "transposed": "You transpose the mask. "
            "Its rows are queries and its columns keys, like the scores.",
            "zeroed": "You set hidden scores to 0, which still earns weight: exp(0) = 1. "
            "A hidden key gets none.",
            "added": "You add the mask to the scores as 0 and 1. "
            "It says which scores count, not how much.",
            "after": "You mask after the softmax, so the weights no longer sum to 1. "
            "Mask the scores before it.",
            "before the cap": "Hidden keys still have weight: their scores end at -cap. "
            "The cap makes -inf finite, so mind which of the two comes first.",
        },
        "softmax": {**SOFTMAX, **SOFTMAX_AXES, "axis 1": AXIS_1},
        "roles": {
            "k, q, v": "Queries and keys are exchanged. Row i of the scores belongs to query i.",
            "q, k, k": MIX_KEYS,
            "q, v, v": COMPARE_VALUES,
            "q, v, k": KEYS_AND_VALUES,
            "q, q, v": "You compare the queries with themselves. Compare them with the keys.",
            "k, k, v": "You compare the keys with themselves. Compare the queries with them.",
        },
        "output": {**OUTPUT, **OUTPUT_TRANSPOSED},
    },
    inputs=_scores_to_cap,
)

STORED_KEYS_ATTENTION = Exercise(
    name="stored_keys_attention",
    reference=stored_keys_attention,
    settings={
        "scale": {
            **SCALE,
            "1/sqrt(S)": "You scale by the number of keys. "
            "In K the last axis counts keys: take d_k from the other one, or from q.",
            "1/sqrt(T)": BY_QUERIES,
            "1/sqrt(axis 0)": "You read d_k from the first axis of K. "
            "With leading axes that is one of them: count from the end.",
            "1/sqrt(axis 1)": "You read d_k from axis 1 of q. "
            "With leading axes the width is the last one: count from the end.",
            "1/2": "You divide by 2, which is right only for keys of width 4, as in the example. "
            "Take the root of the width.",
        },
        "layout": {
            "reshaped": "You reshape K to (S, d_k), which mixes the numbers of different keys. "
            "Each key is a column and must stay whole.",
            "rows": "You compare the queries with the rows of K, which only fits where S = d_k. "
            "Each key is a column.",
        },
        "softmax": {**SOFTMAX, **SOFTMAX_AXES, "axis 1": AXIS_1},
        "roles": {
            "k, q, v": "Your scores are transposed. A row belongs to a query.",
            "q, k, k": MIX_KEYS,
            "q, v, v": COMPARE_VALUES,
            "q, v, k": KEYS_AND_VALUES,
        },
        "output": {**OUTPUT, **OUTPUT_TRANSPOSED},
    },
    inputs=_stored_keys,
)

NOT_EXP = (
    "You add the sink itself to the sum. It is a logit, like a score: its exponential is added."
)
ONLY_1 = "You add 1 to the sum, which is right only for a sink of 0. Use the sink that is given."
KEPT = (
    "You return the sink's weight too, so there are S + 1 columns. It belongs to no key: drop it."
)

SINK_WEIGHTS = Exercise(
    name="sink_weights",
    reference=sink_weights,
    settings={
        "extra": {
            "none": "The sink has no effect: your rows sum to 1. It takes a share that no key gets "
            "back, so nothing is divided by the sum again.",
            "exp(sink), unshifted": "You subtract a maximum from the scores but not from the sink. "
            "It is one of the logits: shift it too.",
            "exp(-sink)": "The sign of your sink is turned round. A larger sink takes more.",
            "sink": NOT_EXP,
            "sink, shifted": NOT_EXP,
            "1": ONLY_1,
            "1, shifted": "You add 1 to the sum of shifted exponentials. "
            "The sink is one of the logits: use its own value, and shift it too.",
            "S exp(sink)": "You count the sink once for every key. It is one logit in each row.",
            "floor": "You raise every score to the sink at least. "
            "The sink stands beside the scores and changes none of them.",
            "after": "You shrink the weights after the softmax, all rows alike. "
            "The sink stands inside the sum, so it takes more where the scores are low.",
        },
        "heads": {
            "first": "You use the first head's sink for all heads. Each head has its own.",
            "mean": "You average the sinks. Each head has its own.",
            "queries": "Your sinks meet the queries. They belong to the heads, axis 0: "
            "give them axes for queries and keys.",
            "keys": "Your sinks meet the keys. They belong to the heads, axis 0: "
            "give them axes for queries and keys.",
        },
        "shift": {
            "largest key": "A query that may see nothing gives NaN: its largest score is -inf. "
            "The sink takes part in the maximum.",
        },
        "sums": {
            "queries": "You sum over the queries. Each query shares its weight out over the keys.",
            "everything": "You sum over the whole array. "
            "Each query shares its weight out over its own keys.",
        },
        "output": {
            "with the sink": KEPT,
            "sink first": KEPT,
            "last column": "You drop the weight of key 0 and keep the sink's. Drop the sink's.",
            "first column": "You drop the weight of the last key and keep the sink's. "
            "Drop the sink's.",
            "sink": "You return what the sink takes. Return the weights of the keys.",
        },
    },
    inputs=_sinks,
)

RATIO = Exercise(
    name="ratio",
    reference=ratio,
    settings={
        "prediction": {
            "unscaled": "Your prediction leaves out the root of d_k. Scores are scaled products.",
            "1/d_k": "Your prediction divides by d_k. Scores are divided by its root.",
            "1/sqrt(S)": "Your prediction divides by the root of the number of keys. "
            "Scores are divided by the root of their width.",
            "not stretched": "Your prediction is for the query as it was. It becomes longer.",
            "stretched after": "Your prediction multiplies the ratio by the stretch. "
            "The stretch multiplies the scores: follow it through exp.",
            "stretched twice": "Your prediction stretches twice. Only the query becomes longer.",
            "shrunk": "Your prediction divides by the stretch. A longer query has larger products.",
            "inverse": "Your prediction is upside down. Key 0 stands above key 1.",
            "no exp": "Your prediction is the difference of the scores. "
            "What does it become in the weights?",
            "products": "Your prediction is the ratio of the products. Weights are exponentials.",
            "share": "Your prediction is a share of two keys. "
            "Asked is how many times as much one gets as the other.",
            "key 0 alone": "Your prediction is the exponential of key 0 alone. "
            "Key 1 has one as well.",
        },
        "measurement": {
            "unscaled": "Your measurement leaves out the root of d_k. Scores are scaled products.",
            "1/d_k": "Your measurement divides by d_k. Scores are divided by its root.",
            "1/sqrt(S)": "Your measurement divides by the root of the number of keys. "
            "Scores are divided by the root of their width.",
            "not stretched": "You measured with the query as it was. It becomes longer.",
            "keys too": "You measured with longer keys too. Only the query becomes longer.",
            "inverse": "Your measurement is upside down. Key 0 stands above key 1.",
            "scores": "You measured the ratio of two scores. Take that of two weights.",
            "no exp": "Your measurement is the logarithm of the ratio. Take the ratio itself.",
            "difference": "You measured the difference of two weights. Take their ratio.",
            "weight": "You measured the weight of key 0. Take its ratio to that of key 1.",
            "from 1": "You measured keys 1 and 2. Count from 0.",
            "all others": "You measured key 0 against all others. Take key 1 alone.",
        },
    },
    inputs=lambda rng, trial: _ratio_case(str(rng.integers(2**32))),
    trials=1,
    returns=("predicted", "measured"),
    rtol=0.01,
)

ASSIGNMENT = Assignment(
    name="pointing",
    title="Who looks where",
    chapter=1,
    minutes=75,
    tasks=(
        Task(SOFT_CAPPED_ATTENTION),
        Task(STORED_KEYS_ATTENTION),
        Task(SINK_WEIGHTS),
        Task(RATIO, numbers=_ratio_case),
    ),
)
