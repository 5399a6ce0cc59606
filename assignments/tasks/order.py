"""The tasks of the assignment to chapter 3: inputs that tell mistakes apart, and their advice."""

import numpy as np

from attention_lib.checks import Exercise
from attention_lib.checks.chapter05 import WINDOW_MASK
from attention_lib.checks.engine import Case

from . import Assignment, Task
from ._references_order import prefix_mask, reach, retention, rotate_part


def _prefixes(rng: np.random.Generator, trial: int) -> Case:
    """As many queries as tokens, then fewer; in cases 2 and 6 queries inside a long prefix."""
    S = int(rng.integers(9, 13))
    T = S if trial in (0, 3, 4) else int(rng.integers(4, 7))
    before = S - T
    prefix = [4, before + 3, 2, 0, S - 3, before + 2][trial]
    return (T, S, prefix)


def _sequence(rng: np.random.Generator, trial: int) -> Case:
    """Keys as wide as values in two cases: exchanged roles fit only there."""
    T, d_k, d_v = [(5, 3, 7), (3, 7, 5), (7, 5, 3), (5, 3, 3), (9, 7, 5), (7, 5, 5)][trial]
    q, k, v = (rng.normal(size=(T, width)) for width in (d_k, d_k, d_v))
    return (q, k, v, float(rng.uniform(0.6, 0.9)))


def _positions(rng: np.random.Generator, trial: int) -> Case:
    """Positions with gaps that start after 1; never as many columns left as turned."""
    T, d, width = [(3, 10, 6), (5, 14, 4), (7, 12, 8), (3, 18, 6), (9, 16, 10), (5, 20, 8)][trial]
    positions = 2 + np.cumsum(rng.integers(1, 4, size=T))
    return (rng.normal(size=(T, d)), positions, width, float(rng.uniform(20, 900)))


def my_numbers(student: str) -> Case:
    """n tokens, k steps back and the factor rho of one step; attention wins for half of them."""
    rng = np.random.default_rng(list(student.encode()))
    n = int(rng.choice([31, 33, 34, 36, 37, 38, 40, 41]))
    near = [(8, 0.77), (9, 0.85), (10, 0.87), (11, 0.9), (12, 0.83)]
    far = [(21, 0.78), (21, 0.8), (22, 0.79), (22, 0.82), (23, 0.81)]
    k, rho = (near + far)[rng.integers(10)]
    return (n, k, rho)


PREFIX_MASK = Exercise(
    name="prefix_mask",
    reference=prefix_mask,
    settings={
        "seen": {
            "no prefix": "Your mask is plainly causal. "
            "The first `prefix` tokens are seen by every query, also from before them.",
            "prefix alone": "Only the prefix is seen. "
            "Behind it each token sees itself and what came before, too.",
            "prefix and past": "You ask for both, in the prefix and not in the future. "
            "One of the two is enough.",
            "all": "Your mask hides nothing. Behind the prefix the future stays hidden.",
            "one more": "Your prefix is one token too long. Its tokens are 0 to prefix - 1.",
            "one fewer": "Your prefix is one token too short. Its tokens are 0 to prefix - 1.",
            "last": "You show the last `prefix` tokens. The prefix is the start of the text.",
            "hidden": "You hide the prefix. It is what every query may see.",
            "apart": "Prefix and rest do not see each other. "
            "Tokens behind the prefix see all of it.",
            "queries of the prefix": "You let the queries of the prefix see the whole text. "
            "The prefix is about keys, the columns: who asks does not matter.",
            "first rows": "You let the first `prefix` rows see the whole text. "
            "The prefix is about keys, the columns.",
            "from the first query": "You count the prefix from the first query. "
            "It starts with token 0, however few queries there are.",
            "ahead": "You let each query look `prefix` tokens ahead. "
            "The prefix stands still: it does not move with the query.",
        },
        "past": {
            "j < i": "Behind the prefix your mask hides each token from itself. "
            "A token may see itself.",
            "j <= i + 1": "Behind the prefix your mask shows the next token, the one to be "
            "predicted. Stop at the token itself.",
            "j >= i": "Your causal part is transposed: it shows a token and what comes after it. "
            "Show what came before.",
            "j > i": "Your causal part is inverted: it shows only what comes after a token. "
            "True means may look.",
        },
        "align": WINDOW_MASK.settings["align"],
        "size": WINDOW_MASK.settings["size"],
        "output": {
            "inverted": "Your mask is inverted: it is True where nobody may look. "
            "True means may look.",
            "numbers": "Your mask holds 1 and 0. "
            "Return booleans, so that ~mask and np.where read it as meant.",
            "added": "You return what is added to the scores, 0 and -inf. "
            "Return booleans: True means may look.",
            "transposed": "Your mask is transposed. Rows are queries, columns are keys: (T, S).",
        },
    },
    inputs=_prefixes,
)

INFINITE = (
    "You hide the future with -inf, which no softmax turns into 0 here. "
    "A hidden key adds nothing: what must its weight be?"
)

RETENTION = Exercise(
    name="retention",
    reference=retention,
    settings={
        "decay": {
            "none": "Nothing decays: gamma does not reach the result. "
            "A score counts less with every step between query and key.",
            "constant": "Every earlier token is multiplied by gamma once. "
            "It decays with each step between query and key.",
            "product": "You multiply gamma by the number of steps. "
            "Each step multiplies by gamma: that makes a power.",
            "exp": "You decay by exp(-gamma) in a step. One step multiplies by gamma itself.",
            "1 - gamma": "You decay by 1 - gamma in a step. One step multiplies by gamma itself.",
            "growing": "Far tokens count more than near ones: the exponent has the wrong sign. "
            "Look at i - j on the diagonal and left of it.",
            "i - j + 1": "Each token decays once too often. "
            "A token is no step away from itself, so there it counts in full.",
            "twice": "Each step decays twice, for instance in scores and values. Once is enough.",
            "j": "You decay by the key's own position. What counts is its distance to the query.",
            "i": "You decay by the query's own position. What counts is the distance to the key.",
            "added": "You add the decay to the scores. It multiplies them.",
        },
        "seen": {
            "all": "Nothing is hidden: later tokens count too, by their distance. "
            "A query reads itself and what came before.",
            "all, growing": "Nothing is hidden, and later tokens even grow: the power of gamma is "
            "negative there. A query reads itself and what came before.",
            "j < i": "A token does not read itself. It does, and in full.",
            "j <= i + 1": "A token reads the next one. Stop at the token itself.",
            "j >= i": "Your decay is transposed: tokens read the future. "
            "Rows are queries, columns are keys.",
            "-inf": INFINITE,
            "-inf times 0": "You hide the future with -inf, and -inf times a decay of 0 is NaN. "
            "No softmax follows: leave the scores as they are, the 0 hides.",
            "-inf in the decays": INFINITE,
        },
        "normalised": {
            "softmax, then decay": "You take a softmax of the scores first. "
            "Retention has none: the decayed scores themselves weigh the values.",
            "softmax of all, then decay": "You take a softmax over all keys first. "
            "Retention has none: the decayed scores themselves weigh the values.",
            "softmax of decayed": "You take a softmax of the decayed scores. "
            "Retention has none: they weigh the values as they are.",
            "softmax over queries": "You take a softmax over the queries. "
            "Retention has none: the decayed scores weigh the values as they are.",
            "softmax with zeros": "You take a softmax, in which even hidden keys count as "
            "exp(0) = 1. Retention has none.",
            "exp": "You take exp of the scores. Retention uses them as they are, negative ones too.",
            "by sum": "You divide each row by its sum. The weights of retention need not sum to 1.",
            "by decays": "You divide each row by the sum of its decays. "
            "The paper has more to say on sizes; here nothing is divided.",
            "by root of decays": "You divide each row by the root of the sum of its decays, as the "
            "paper does. Here nothing is divided.",
        },
        "scale": {
            "1/sqrt(d_k)": "You divide the scores by sqrt(d_k). "
            "There is no softmax to keep from saturating: leave them as they are.",
            "1/d_k": "You divide the scores by d_k. Leave them as they are.",
        },
        "roles": {
            "k, q, v": "Queries and keys are exchanged. "
            "Row i of the scores belongs to query i: q @ k transposed.",
            "q, k, k": "You sum the keys. The keys only decide the weights: sum the values.",
            "q, v, v": "You compare the queries with the values. Compare them with the keys.",
            "q, v, k": "Keys and values are exchanged. "
            "Compare the queries with the keys, then sum the values.",
        },
        "output": {
            "weights": "You return the decayed scores. Return the sum of the values that they weigh.",
            "transposed": "You multiply the values by the transposed weights. "
            "The weights' rows are the queries.",
        },
    },
    inputs=_sequence,
)

ROTATE_PART = Exercise(
    name="rotate_part",
    reference=rotate_part,
    settings={
        "part": {
            "last": "You turn the last `width` columns. Turn the first.",
            "rest": "You turn what should stay and keep what should turn. Turn the first `width`.",
            "all": "You turn all d columns. Those from `width` on stay as they are.",
            "of each half": "You turn the first columns of each half of x. "
            "The halves are those of the first `width` columns.",
            "width pairs": "You turn `width` pairs. It is the number of columns: width / 2 pairs.",
        },
        "rest": {
            "dropped": "You return only the turned columns. "
            "The others come after them, unchanged: (T, d).",
            "zeros": "The columns from `width` on are 0. They stay as they are.",
            "in front": "You put the unturned columns in front. Every column keeps its place.",
            "added": "You add the turned columns to x. They take the place of the old ones.",
        },
        "pairing": {
            "neighbours": "You pair neighbours, 2i and 2i + 1. Here column i goes with i + width/2.",
            "halves, neighbours' angles": "You pair halves but give neighbours the same angle. "
            "Both columns of a pair share one: i counts pairs, from 0 to width/2 - 1.",
            "neighbours, halves' angles": "You pair neighbours, but with the angles of halves. "
            "Column i goes with i + width/2, and both share one angle.",
        },
        "turn": {
            "backward": "You turn the wrong way. Look at which of the two sines is subtracted.",
            "both plus": "You add both sines. A rotation adds one and subtracts the other.",
            "both minus": "You subtract both sines. A rotation adds one and subtracts the other.",
            "swapped": "Sine and cosine are exchanged. At position 0 nothing turns.",
            "overwritten": "You overwrite the first half before the second is made from it. "
            "Both come from the old columns.",
        },
        "counting": {
            "ignored": "Nothing turns: the positions are not used. "
            "The angle grows with the position.",
            "counted": "You number the rows yourself, 0, 1, 2. Use the positions that are given.",
            "from 1": "You add 1 to the positions. Use them as they are given.",
            "from the first": "You count from the first position. Use them as they are given.",
        },
        "frequency": {
            "2i/d": "You divide the exponent by d, the whole width. "
            "The turned columns are a vector of their own, `width` wide.",
            "i/width": "Your exponent is half as large as it should be. It is -2i / width.",
            "4i/width": "Your exponent is twice as large as it should be. It is -2i / width, "
            "where i counts pairs.",
            "from 1": "You count pairs from 1. The first pair turns by the position itself.",
            "growing": "Later pairs turn faster. They turn more slowly: the exponent is negative.",
            "none": "All pairs turn by the same angle. Each has a frequency of its own.",
            "floored": "You divide whole numbers with //, which rounds the exponent. Use /.",
            "base 10000": "You use 10000 for every base. Use the argument.",
            "degrees": "You take the angles for degrees. They are in radians.",
        },
    },
    inputs=_positions,
)

ONE_AND_K = "From the token k steps back to the last one, count the arrows between the states."
WAYS = {
    "inverse": "divides the recurrence by attention. Attention comes first: above 1 it reaches "
    "further.",
    "k - 1": f"takes one step too few. {ONE_AND_K}",
    "k + 1": f"takes one step too many. {ONE_AND_K}",
    "n steps": "lets the state pass through all n tokens. Only those after the changed one count.",
    "k from the start": "counts k from the first token. Count it back from the last.",
    "one step": "lets the state take one step. There are k of them, each with a factor.",
    "k times": "multiplies rho by k. Each step multiplies by rho again.",
    "k tokens": "shares attention's weight among k tokens. All n share it.",
    "k + 1 tokens": "shares attention's weight among k + 1 tokens. All n share it.",
    "summed": "gives each token the weight 1. Attention's n weights sum to 1.",
    "recurrence": "is that of the recurrence alone. Divide attention's by it.",
    "attention": "is that of attention alone. Divide it by that of the recurrence.",
    "product": "multiplies the two. Divide attention's by the recurrence's.",
    "difference": "subtracts the two. Divide attention's by the recurrence's.",
}
MEASURED = (
    *("inverse", "k - 1", "k + 1", "k from the start", "k + 1 tokens", "summed"),
    *("recurrence", "attention", "product", "difference"),
)

REACH = Exercise(
    name="reach",
    reference=reach,
    settings={
        "both": {
            "inverse": "Prediction and measurement agree, but both divide the recurrence by "
            "attention. Attention comes first: above 1 it reaches further.",
        },
        "predicted": {way: f"Your prediction {says}" for way, says in WAYS.items()},
        "measured": {way: f"Your measurement {WAYS[way]}" for way in MEASURED},
    },
    inputs=lambda rng, trial: my_numbers(f"student {rng.integers(10**6)}"),
    trials=1,
    returns=("predicted", "measured"),
    rtol=0.01,
)

ASSIGNMENT = Assignment(
    name="order",
    title="Order without recurrence",
    chapter=3,
    minutes=75,
    tasks=(Task(PREFIX_MASK), Task(RETENTION), Task(ROTATE_PART), Task(REACH, my_numbers)),
)
