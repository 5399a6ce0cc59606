"""The exercises of chapter 5: inputs that tell mistakes apart, and the advice each earns."""

import numpy as np

from .engine import Case, Exercise
from .references_cost import absorb_block, linear_step, window_mask


def _running(rng: np.random.Generator, trial: int) -> Case:
    """A block that raises the maximum, one that does not, the start; one hidden, wholly or partly.

    The last two: scores whose exp overflows, and a hidden block at the start.
    """
    earlier, S, d_v = [(4, 3, 5), (3, 5, 7), (0, 7, 3), (5, 3, 7), (7, 5, 9), (0, 3, 5)][trial]
    before, scores = rng.normal(size=earlier), rng.normal(size=S)
    m, o, l = -np.inf, np.zeros(d_v), 0.0  # noqa: E741
    if earlier:
        before += 800 if trial == 4 else 0
        m = before.max()
        weights = np.exp(before - m)
        o, l = weights @ rng.normal(size=(earlier, d_v)), weights.sum()  # noqa: E741
        scores += m - scores.max() + rng.uniform(0.5, 2) * (-1 if trial == 1 else 1)
    if trial in (3, 5):
        scores[:] = -np.inf
    elif trial == 4:
        scores[np.argsort(scores)[:2]] = -np.inf
    return (np.float64(m), np.float64(l), o, scores, rng.normal(size=(S, d_v)))


def _windows(rng: np.random.Generator, trial: int) -> Case:
    """As many queries as tokens, then fewer; a window of 1 and one wider than the text."""
    window = [3, 4, 3, 1, 12, 5][trial]
    S = int(rng.integers(8, 12))
    T = S if trial in (0, 2) else int(rng.integers(2, 6))
    return (T, S, window)


def _token(rng: np.random.Generator, trial: int) -> Case:
    """After some tokens, and as the first; d_k and d_v are equal in two cases only."""
    earlier, d_k, d_v = [(3, 5, 7), (0, 7, 3), (4, 3, 5), (2, 5, 5), (5, 7, 7), (3, 9, 5)][trial]
    q, k, v = (rng.normal(size=(earlier + 1, width)) for width in (d_k, d_k, d_v))
    phi = np.where(k > 0, k + 1, np.exp(k))[:-1]
    return (q[-1], k[-1], v[-1], phi.T @ v[:-1], phi.sum(axis=0))


EXP_FIRST = (
    "You take exp of the scores as they are, which overflows near 800. "
    "Measure every exponent from the new maximum."
)
DIVIDED = "You divide o by l in every block. Keep o as a sum; the division comes once, at the end."
AVERAGED = (
    "You average the outputs of the blocks. "
    "A block counts as much as its exponentials do: add sums that share one maximum."
)
ORDER = "You return the parts in another order. It is m, l, o."

ABSORB_BLOCK = Exercise(
    name="absorb_block",
    reference=absorb_block,
    settings={
        "old": {
            "o not rescaled": "You rescale l but not o. "
            "Both were measured from the old maximum, both need the factor.",
            "l not rescaled": "You rescale o but not l. "
            "Both were measured from the old maximum, both need the factor.",
            "not rescaled": "You rescale neither l nor o. "
            "They were measured from the old maximum: bring them to the new one first.",
            "inverse": "Your factor is upside down, so old terms grow when the maximum rises. "
            "Look at the sign in the exponent.",
            "twice": "You apply the factor twice. Once takes l and o to the new maximum.",
            "o twice": "You apply the factor to o twice. Once takes it to the new maximum.",
            "block's factor": "You rescale what is old by the block's factor. "
            "Its own is the distance from the old maximum to the new.",
            "no exp": "You multiply by the difference of the maxima. The factor is its exp.",
            "forgotten": "You forget what came before: l and o hold this block alone. "
            "Add it to what was there.",
            "l forgotten": "Your l holds this block alone. Add it to the sum that was there.",
            "o forgotten": "Your o holds this block alone. Add it to the output that was there.",
        },
        "maximum": {
            "block": "You take the block's maximum alone. "
            "The running one never falls: compare it with m.",
            "old": "You keep measuring from the old maximum. "
            "A larger score makes a new one, and from -inf nothing can be measured.",
            "none": EXP_FIRST,
            "none, tracked": EXP_FIRST,
        },
        "block": {
            "own maximum": "You measure the block from its own maximum. "
            "Use the same one as for l and o, the new.",
            "not shifted": EXP_FIRST,
            "old maximum": "You measure the block from the old maximum. Use the new one.",
            "normalised": "You take the softmax of the block on its own. "
            "Leave it unnormalised: l does that at the end.",
            "rescaled": "You rescale the block too. It is measured from the new maximum already: "
            "rescale first, add then.",
            "unweighted": "You add the values without weights. Weight each by its exponential.",
            "no exp": "You add the shifted scores themselves. Take exp of them.",
        },
        "division": {
            "every block": DIVIDED,
            "always": DIVIDED,
            "kept": "You take o to be divided by l already, and keep it so. "
            "Here o is the plain sum: the division comes once, at the end.",
            "average": AVERAGED,
            "average of outputs": AVERAGED,
        },
        "hidden": {
            "unguarded": "A hidden block at the start gives NaN: -inf minus -inf. "
            "While nothing has been seen, nothing changes.",
            "0": "You return 0 as the maximum when nothing has been seen. "
            "It stays -inf, or later scores far below 0 would vanish.",
        },
        "output": {
            "old m": "You return the old maximum. l and o are measured from the new one.",
            "l, m, o": ORDER,
            "m, o, l": ORDER,
            "o, l, m": ORDER,
            "o, m, l": ORDER,
        },
    },
    inputs=_running,
    returns=("m", "l", "o"),
)

WINDOW_MASK = Exercise(
    name="window_mask",
    reference=window_mask,
    settings={
        "edges": {
            "i - w <= j <= i": "Your window is one too wide. It counts the token itself: "
            "a window of 1 sees only that.",
            "i - w + 1 < j <= i": "Your window is one too narrow. "
            "With the token itself it holds `window` tokens.",
            "i - w <= j < i": "Your window leaves out the token itself. "
            "It counts as the newest of the `window` tokens.",
            "i - w < j < i": "Your mask hides each token from itself. "
            "The token is a part of its window.",
            "i - w < j <= i + 1": "Your mask shows the next token. Stop at the token itself.",
            "j <= i": "There is no far edge: every earlier token is seen. "
            "Hide those `window` or more steps back.",
            "i - w < j": "There is no causal edge: the future is seen. Stop at the token itself.",
            "i - w <= j": "There is no causal edge, and the far one is one too far. "
            "Stop at the token itself, which the window counts.",
            "|i - j| < w": "Your window looks both ways. Nothing later than the token is seen.",
            "|i - j| <= w": "Your window looks both ways, and is one too wide. "
            "Nothing later is seen, and the token itself counts.",
            "|i - j| <= w / 2": "Your window is centred on the token. It ends at the token.",
            "i <= j < i + w": "Your window looks ahead. It ends at the token: look back.",
            "j <= i - w": "Your mask shows what lies behind the window and hides the window.",
            "blocks": "You cut the text into blocks. The window slides: it ends at each token.",
            "every w-th": "You show every token `window` steps apart. "
            "The window is the nearest ones.",
            "first w": "You show the first tokens of the text. The window moves with the query.",
        },
        "align": {
            "upper-left": "You let the first query be token 0. With T < S the queries are the last "
            "T tokens: their numbers end at S - 1.",
            "T - S": "You shift the queries the wrong way, by T - S. The last one is token S - 1.",
        },
        "size": {
            "S, T": "T and S are exchanged. Rows are queries, columns are keys: (T, S).",
            "S, S": "You return a row for each of the S tokens. "
            "Keep those of the T queries, the last T.",
            "T, T": "You have a column for each query. There are S keys, so the mask is (T, S).",
        },
        "output": {
            "inverted": "Your mask is inverted: it is True outside the window. "
            "True means may look.",
            "numbers": "Your mask holds 1 and 0. "
            "Return booleans, so that ~mask and np.where read it as meant.",
            "added": "You return what is added to the scores, 0 and -inf. "
            "Return booleans: True means may look.",
            "transposed": "Your mask is transposed. Rows are queries, columns are keys: (T, S).",
        },
    },
    inputs=_windows,
)

TRANSPOSED_STATE = (
    "Your outer product is transposed. A row of the state belongs to a feature of the key: "
    "(d_k, d_v)."
)

LINEAR_STEP = Exercise(
    name="linear_step",
    reference=linear_step,
    settings={
        "feature": {
            "none": "There is no feature map: similarities can be negative. "
            "Pass q_t and k_t through elu + 1.",
            "none on q": "You map the key but not the query. Pass both through elu + 1.",
            "none on k": "You map the query but not the key. Pass both through elu + 1.",
            "exp": "Your feature map is exp everywhere. elu + 1 is exp below 0 only.",
            "relu": "Your feature map is ReLU, which is 0 below 0. elu + 1 is positive everywhere.",
            "relu + 1": "Your feature map is ReLU + 1, flat below 0. elu + 1 is exp there.",
            "elu": "Your feature map is elu without the 1, so it can be negative. Add 1.",
            "no + 1 above 0": "You add the 1 only below 0, so the map jumps there. "
            "elu + 1 is x + 1 above 0.",
            "exchanged": "The two branches are exchanged. elu + 1 is exp below 0 only.",
            "softplus": "Your feature map is softplus. The one asked for is elu + 1.",
            "sigmoid": "Your feature map is a sigmoid. The one asked for is elu + 1.",
            "scaled q": "You scale the query by sqrt(d_k). "
            "There is no softmax to keep from saturating: leave it.",
            "softmax": "Your feature map is a softmax over the features. "
            "The one asked for is elu + 1, for each feature alone.",
        },
        "reads": {
            "before": "You read before you write, so the token does not see itself. Write first.",
            "old state": "You read the old state but divide by the new total. "
            "Write both, then read both.",
            "old total": "You divide by the old total but read the new state. "
            "Write both, then read both.",
            "newest": "Your output is v_t alone. Read the whole state with the query.",
            "transposed": "You sum over the state's columns. "
            "The query has one number for each row: sum over rows.",
        },
        "write": {
            "transposed": TRANSPOSED_STATE,
            "transposed throughout": TRANSPOSED_STATE,
            "replaced": "You replace state and total. Add to what is there.",
            "state replaced": "You replace the state. Add to what is there.",
            "no state": "You never write into the state. Each token adds its key and value to it.",
            "no total": "You never update the total. "
            "Each token adds its mapped key to it, or the division is wrong.",
            "not written": "You write nothing. Each token adds to state and total, then reads.",
            "lost": "You return the state and total you were given, so the next step misses this "
            "token. Return the new ones.",
            "v alone": "You add v_t to every row of the state. "
            "Each row gets it in proportion to a feature of the key.",
            "k in total": "You add k_t to the total. Add what the feature map makes of it.",
            "counted": "Your total counts tokens. It is the sum of the mapped keys.",
        },
        "divide": {
            "none": "You do not divide, so the weights do not sum to 1. "
            "The total is there for that.",
            "sqrt(d_k)": "You divide by sqrt(d_k). Divide by the query's product with the total.",
            "twice": "You divide by sqrt(d_k) too. The division by the total is the only one.",
            "sum": "You divide by the sum of the total. "
            "The query decides how much each of its features counts.",
            "phi(q)": "You divide by the sum of the query's features. "
            "The weights of all tokens sum to the query's product with the total.",
            "phi(k)·total": "You divide by the key's product with the total. "
            "It is the query that reads.",
            "phi(q)·phi(k)": "You divide by this token's weight alone. "
            "Divide by that of all tokens: the total holds their keys.",
            "size": "You divide by the length of the total. Use its product with the query.",
        },
        "roles": {
            "k, q, v": "q_t and k_t are exchanged. The key writes, the query reads.",
            "q, q, v": "You write with q_t. The key writes, the query reads.",
            "k, k, v": "You read with k_t. The key writes, the query reads.",
            "q, v, k": "k_t and v_t are exchanged. The map is for the key; the value stays as it is.",
        },
        "output": {
            "output, total, state": "You return the total before the state. "
            "Return output, state, total.",
            "state, total, output": "You return the output last. Return output, state, total.",
        },
    },
    inputs=_token,
    returns=("output", "state", "total"),
)

EXERCISES = (ABSORB_BLOCK, WINDOW_MASK, LINEAR_STEP)
