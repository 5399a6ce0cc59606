"""The exercises of chapter 3: inputs that tell mistakes apart, and the advice each earns."""

import numpy as np

from .chapter01 import OUTPUT, SCALE, SOFTMAX
from .engine import Array, Case, Exercise
from .references_sequence import additive_scores, cached_step, causal_mask, rnn_step, run_rnn


def _sizes(rng: np.random.Generator, trial: int) -> Case:
    """As many queries as keys, then fewer; never more."""
    small, large = (int(size) for size in np.sort(rng.choice(np.arange(2, 12), 2, replace=False)))
    return [(large, large), (small, large), (small + 1, large + 3), (1, large)][trial % 4]


def _matrix(rng: np.random.Generator, rows: int, columns: int) -> Array:
    return rng.normal(size=(rows, columns)) / np.sqrt(rows)


def _recurrence(rng: np.random.Generator, trial: int) -> tuple[Array, ...]:
    """T inputs and the parameters of a step; W and U fit each other's place in two cases."""
    T, d_in, d_h = [(3, 5, 7), (5, 7, 3), (7, 5, 5), (9, 3, 5), (5, 7, 7), (11, 9, 5)][trial]
    xs, h0, b = (rng.normal(size=shape) for shape in ((T, d_in), d_h, d_h))
    return (xs, h0, _matrix(rng, d_in, d_h), _matrix(rng, d_h, d_h), b)


def _step(rng: np.random.Generator, trial: int) -> Case:
    xs, *others = _recurrence(rng, trial)
    return (xs[0], *others)


def _alignment(rng: np.random.Generator, trial: int) -> Case:
    S, d_q, d_k, d_a = [
        (3, 5, 7, 9),
        (5, 7, 3, 11),
        (7, 5, 5, 9),
        (9, 3, 5, 7),
        (5, 7, 7, 3),
        (11, 5, 3, 7),
    ][trial]
    query, keys, v = (rng.normal(size=shape) for shape in (d_q, (S, d_k), d_a))
    return (query, keys, _matrix(rng, d_q, d_a), _matrix(rng, d_k, d_a), v)


def _cache(rng: np.random.Generator, trial: int) -> Case:
    """The widths of keys and values are equal in two cases: exchanged caches fit only there."""
    S, d_k, d_v = [(3, 5, 7), (5, 7, 3), (4, 5, 5), (9, 3, 5), (6, 7, 7), (2, 5, 9)][trial]
    shapes = (d_k, d_k, d_v, (S, d_k), (S, d_v))
    return tuple(rng.normal(size=shape) for shape in shapes)


CAUSAL_MASK = Exercise(
    name="causal_mask",
    reference=causal_mask,
    settings={
        "order": {
            "j < i": "Your mask hides each token from itself, so the first sees nothing. "
            "A token may see itself: j <= i, not j < i.",
            "j <= i + 1": "Your mask shows the next token, the one to be predicted. "
            "Stop at the token itself.",
            "j >= i": "Your mask shows a token and what comes after it. "
            "Show what came before: the lower triangle, not the upper.",
            "j > i": "Your mask is inverted: it is True where a token lies in the future. "
            "True means may look.",
            "all": "Your mask hides nothing: every token sees the future too. "
            "Show itself and earlier ones: j <= i.",
            "j == i": "Each token sees only itself. It may see earlier tokens too: j <= i.",
        },
        "align": {
            "upper-left": "You let the first query be token 0. With T < S the queries are the last "
            "T tokens: shift the diagonal by S - T.",
            "T - S": "You shift the diagonal the wrong way, by T - S. Shift it by S - T.",
        },
        "size": {
            "S, T": "T and S are exchanged. Rows are queries, columns are keys: (T, S).",
            "S, S": "You return a row for each of the S tokens. "
            "Keep those of the T queries, the last T.",
            "T, T": "You have a column for each query. There are S keys, so the mask is (T, S).",
        },
        "output": {
            "numbers": "Your mask holds 1 and 0. "
            "Return booleans, so that ~mask and np.where read it as meant.",
            "added": "You return what is added to the scores, 0 and -inf. "
            "Return booleans: True means may look.",
            "transposed": "Your mask is transposed. Rows are queries, columns are keys: (T, S).",
        },
    },
    inputs=_sizes,
)

STEP = {
    "activation": {
        "none": "There is no tanh, so the states are only a linear map of the inputs. "
        "Put tanh around the whole sum.",
        "sigmoid": "You use a sigmoid. The step is a tanh, with values from -1 to 1.",
        "relu": "You use a ReLU. The step is a tanh, with values from -1 to 1.",
        "early": "Your tanh closes too early. Put it around the whole sum, h @ U and b too.",
    },
    "bias": {
        "none": "You forget the bias. Add b inside the tanh.",
        "outside": "You add the bias after the tanh. Add b inside it.",
        "twice": "You add the bias twice. Add b once.",
    },
    "matrices": {
        "U, W": "W and U are exchanged. The input meets W, the state meets U: x @ W + h @ U.",
        "W, W": "You use W for the state too. The state has a matrix of its own, U.",
        "W, U transposed": "You multiply by U transposed. The state is a row: h @ U, not U @ h.",
        "both transposed": "You multiply by W and U transposed. "
        "Inputs and states are rows: x @ W + h @ U.",
    },
    "state": {
        "ignored": "Your step ignores the state, so nothing is remembered. Add h @ U.",
        "input ignored": "Your step ignores the input. Add x @ W.",
        "no U": "You add the state without its matrix. Add h @ U.",
        "product": "You multiply the two parts. Add them: x @ W + h @ U + b.",
    },
}

RNN_STEP = Exercise(name="rnn_step", reference=rnn_step, settings=STEP, inputs=_step)

RUN_RNN = Exercise(
    name="run_rnn",
    reference=run_rnn,
    settings={
        "course": {
            "not carried": "The state is not carried on: every step starts from h0. "
            "Give each step the state the last one made.",
            "from zero": "You start from zeros. Start from h0.",
            "backward": "You read the inputs from last to first. Start with xs[0].",
            "backward, put back": "You read the inputs from last to first and turn the states "
            "round. Start with xs[0].",
        },
        "output": {
            "last": "You return only the last state. Return the state after every input, (T, d_h).",
            "with h0": "You return h0 too. Return only the T states after the inputs.",
            "before": "You return the state before each input. Step first, then store the state.",
            "one array": "Every row is the last state: you stored one array T times. "
            "Make a new one in each step.",
        },
        **STEP,
    },
    inputs=_recurrence,
)

ADDITIVE_SCORES = Exercise(
    name="additive_scores",
    reference=additive_scores,
    settings={
        "activation": {
            "none": "There is no tanh, so the query adds the same to every score and the weights "
            "forget it. Put tanh around the sum.",
            "sigmoid": "You use a sigmoid. Additive attention takes a tanh.",
            "each": "You take tanh of query and key apart, so the query adds the same to every "
            "score. Add first, then take tanh.",
            "late": "You take tanh of the scores. Take it before the product with v.",
        },
        "combine": {
            "product": "You multiply projected query and keys. Add them.",
            "difference": "You subtract the projected keys. Add them.",
            "no query": "Your scores ignore the query. Add query @ W_q to every projected key.",
            "dot": "You take the dot product of query and key. "
            "Add the two, take tanh, then the product with v.",
        },
        "matrices": {
            "W_k, W_q": "W_q and W_k are exchanged. Use query @ W_q and keys @ W_k.",
            "W_q, W_q": "You project the keys with W_q. They have a matrix of their own, W_k.",
            "W_k, W_k": "You project the query with W_k. It has a matrix of its own, W_q.",
        },
        "vector": {
            "ones": "You forget v and only sum. Take the product with v: tanh(...) @ v.",
            "mean": "You forget v and take a mean. Take the product with v: tanh(...) @ v.",
            "not summed": "You multiply by v but do not sum. Each key gets one score: use @ v.",
        },
        "scale": {
            "d_a": "You divide by the root of v's width. Additive scores are not scaled.",
            "d_k": "You divide by sqrt(d_k). Additive scores are not scaled.",
        },
        "output": {
            "weights": "You return the weights. Return the scores, before the softmax.",
        },
    },
    inputs=_alignment,
)

CACHED_STEP = Exercise(
    name="cached_step",
    reference=cached_step,
    settings={
        "append": {
            "front": "You put the new key and value in front. Append them at the end.",
            "replaced": "You replace the cache by the new key and value. "
            "Append them to what is there.",
            "oldest dropped": "You drop the oldest entry. Keep it: the cache grows by 1.",
            "lost": "You return the caches you were given, so the next step misses this token. "
            "Return the longer ones.",
            "nothing": "You never append k_t and v_t. Append them first, then attend.",
        },
        "reads": {
            "cache": "You attend before you append, so the token cannot see itself. Append first.",
            "first": "The token sees only the first key: your causal mask starts at the upper "
            "left. The newest token may see every key, so it needs no mask.",
            "newest": "The token sees only itself. Attend over the whole cache.",
            "k_t": "You compare k_t with the keys. Compare q_t.",
        },
        "roles": {
            "q, k, k": "You mix the keys. The keys only decide the weights: mix the values.",
            "q, v, v": "You compare the query with the values. Compare it with the keys.",
            "q, v, k": "Keys and values are exchanged. "
            "Compare the query with the keys, then mix the values.",
            "stored exchanged": "k_t goes into the values and v_t into the keys. "
            "Append each to its own cache.",
        },
        "scale": {name: SCALE[name] for name in ("none", "1/d_k", "*sqrt(d_k)", "1/sqrt(S)")},
        "softmax": {name: SOFTMAX[name] for name in ("none", "no sum", "average")},
        "output": {
            "weights": OUTPUT["weights"],
            "values first": "You return the values before the keys. Return output, keys, values.",
        },
    },
    inputs=_cache,
    returns=("output", "keys", "values"),
)

EXERCISES = (CAUSAL_MASK, RNN_STEP, RUN_RNN, ADDITIVE_SCORES, CACHED_STEP)
