"""The tasks of the assignment to chapter 5: inputs that tell mistakes apart, and their advice."""

from math import inf

import numpy as np

from attention_lib.checks import Exercise
from attention_lib.checks.chapter05 import WINDOW_MASK
from attention_lib.checks.engine import Case

from . import Assignment, Task
from ._references_cost import growth, merge_parts, sink_window_mask, visited_blocks


def my_numbers(student: str) -> Case:
    """n, times, d, feed: a layer in which the square is about half of the work."""
    rng = np.random.default_rng(list(student.encode()))
    d, feed, times = int(rng.integers(16, 33)), int(rng.choice([3, 5])), int(rng.integers(3, 6))
    return (int((2 + feed) * d * rng.uniform(0.8, 1.6)), times, d, feed)


def _streams(rng: np.random.Generator, trial: int) -> Case:
    """As many queries as tokens, then fewer; the sinks are a sixth to a half of the budget."""
    budget, sinks = [(5, 2), (6, 1), (7, 3), (5, 1), (4, 2), (6, 2)][trial]
    S = int(rng.integers(10, 14))
    T = S if trial in (0, 2, 4) else int(rng.integers(5, 8))
    return (T, S, budget, sinks)


def _parts(rng: np.random.Generator, trial: int) -> Case:
    """Near logarithms; large ones; a row where one part is empty, and one where both are."""
    shape, d_v = [((5,), 3), ((3, 5), 7), ((5,), 7), ((2, 7), 3), ((7,), 5), ((3, 7), 5)][trial]
    (out_a, out_b), (lse_a, lse_b) = rng.normal(size=(2, *shape, d_v)), rng.normal(size=(2, *shape))
    lse_a += 1.5
    for lse in (lse_a, lse_b):
        lse += {2: 800, 3: -800}.get(trial, 0)
    if trial >= 4:
        for out, lse, rows in ((out_a, lse_a, [0, 3]), (out_b, lse_b, [2, 3])):
            lse[..., rows] = -inf
            out[..., rows, :] = 0
    return (out_a, lse_a, out_b, lse_b)


def _grids(rng: np.random.Generator, trial: int) -> Case:
    """Sizes with a rest; in some, one key more or less at an edge adds a block or takes one away.

    Blocks of queries that began at token 0 would be more in the last. A block that reached before the
    first query would see more in case 6: two blocks or more lie ahead of it.
    """
    block = [3, 4, 3, 5, 4, 3, 5, 4][trial]
    ahead = [0, 0, 1, 1, 3, 2, 0, 2][trial] + (block * int(rng.integers(2, 4)) if trial > 1 else 0)
    T = block * int(rng.integers(4, 6)) + [1, 2, 2, 3, 1, 1, 4, 3][trial]
    wide = [2, 1, 1, 2, 2, 1, 2, 2][trial] + ahead
    window = wide % block + block * int(rng.integers(1, 3))
    return (T, T + ahead, block, window)


SINK_WINDOW_MASK = Exercise(
    name="sink_window_mask",
    reference=sink_window_mask,
    settings={
        "room": {
            "none": "Your window takes the whole budget, and the sinks come on top of it. "
            "A query sees `budget` keys in all.",
            "+1": "Your window is one too wide. It counts the token itself, "
            "and with the sinks it holds `budget` keys.",
            "-1": "Your window is one too narrow. With the sinks and the token itself "
            "it holds `budget` keys.",
        },
        "edges": {
            "strict": "Your mask hides each token from itself. It is the newest key of its window.",
            "+1": "Your mask shows the next token. Stop at the token itself.",
            "future": "Your mask has no causal edge: the future is seen. Stop at the token itself.",
            "no far edge": "There is no far edge: every earlier token is seen. "
            "Only the sinks and the newest keys are kept.",
            "both ways": "Your window looks both ways. Nothing later than the token is seen.",
            "sinks ahead": "Your sinks are seen by queries that come before them. "
            "They are causal like every other key.",
        },
        "kept": {
            "none": "Your mask has a window and no sinks. The first keys stay visible.",
            "plain window": "Your mask is a window as wide as the budget, without sinks. "
            "Some of the budget belongs to the first keys.",
            "+1": "Your mask keeps one sink too many. Keys are counted from 0.",
            "last keys": "Your sinks are the last keys of the text. They are the first ones.",
            "query rows": "Your sinks lie on the axis of the queries: whole rows are shown. "
            "A sink is a key, so it is a column.",
            "alone": "Your mask shows the sinks and no window. The newest keys are seen too.",
            "inside": "You show keys that are both a sink and in the window. One of them is enough.",
        },
        "align": WINDOW_MASK.settings["align"],
        "size": WINDOW_MASK.settings["size"],
        "output": {
            "inverted": "Your mask is inverted: it is True where nothing may be seen. "
            "True means may look.",
            "numbers": "Your mask holds 1 and 0. Return booleans.",
            "added": "You return what is added to the scores, 0 and -inf. "
            "Return booleans: True means may look.",
            "transposed": "Your mask is transposed. Rows are queries, columns are keys: (T, S).",
        },
    },
    inputs=_streams,
)

MERGE_PARTS = Exercise(
    name="merge_parts",
    reference=merge_parts,
    settings={
        "weights": {
            "equal": "You average the two outputs. "
            "A part counts as much as its sum of exponentials.",
            "added": "You add the two outputs. Each is an average already: weight them, "
            "with weights that sum to 1.",
            "not divided": "Your weights do not sum to 1. Divide by what the two parts have in all.",
            "logarithms": "You weight by the logarithms. "
            "The sums themselves are the weights: take exp first.",
            "exchanged": "The weights are exchanged: each part gets the other's.",
            "larger": "You keep the output of the larger part and drop the other. "
            "It counts too, with its share.",
            "old not rescaled": "You rescale part b and leave the sum of part a as it was. "
            "Both must be measured from one maximum.",
            "out_a not rescaled": "You weight out_b and leave out_a as it is. "
            "Both must be measured from one maximum.",
        },
        "total": {
            "larger": "Your lse is the larger of the two. "
            "The smaller part adds to the sum, whose logarithm is asked for.",
            "added": "Your lse is the sum of the two. "
            "Adding logarithms multiplies what stands below them.",
            "average": "Your lse is the average of the two. "
            "It is the logarithm of the sum over both parts.",
            "log of the average": "Your lse is the logarithm of the average of the two sums. "
            "The sums add up.",
            "point not added": "Your lse is measured from the maximum. "
            "Add back what you subtracted in the exponents.",
            "no log": "You return the sum itself. lse is its logarithm.",
            "old": "Your lse is that of part a, unchanged. The sum holds part b too.",
        },
        "shift": {
            "none": "You take exp of the logarithms as they are, "
            "which overflows near 800 and vanishes near -800. Measure both from one point first.",
            "out only": "Your lse is right, but your weights take exp of the logarithms as they "
            "are, which overflows near 800. Measure both from one point first.",
        },
        "empty": {
            "out unguarded": "Where both parts are empty your output is NaN. Such a row is 0.",
            "unguarded": "Where both parts are empty you get NaN: -inf minus -inf. "
            "Such a row has output 0 and lse -inf.",
            "lse 0": "Where both parts are empty you return an lse of 0. "
            "That is the logarithm of 1; an empty sum has -inf.",
        },
        "output": {"lse, out": "You return lse before out. Return out, lse."},
    },
    inputs=_parts,
    returns=("out", "lse"),
)

BY_TOKENS = (
    "You cut the queries where you cut the keys, at token 0, block, 2 · block and so on. "
    "Their blocks begin at the first query, whichever token it is."
)

VISITED_BLOCKS = Exercise(
    name="visited_blocks",
    reference=visited_blocks,
    settings={
        "counted": {
            "whole": "You count the blocks that are visible whole. "
            "One visible pair is enough for a visit.",
            "partly": "You count the blocks that hold both visible and hidden pairs. "
            "Those that are visible whole are visited too.",
            "hidden": "You count the blocks that are skipped. Count the others.",
            "pairs": "You count visible pairs. A block counts once, however many it holds.",
            "one pair": "You look at the first pair of each block only. "
            "Another pair of the block may be visible.",
            "first query": "You look at the first query of each block only. "
            "Its later queries see later keys.",
            "last query": "You look at the last query of each block only. "
            "Its earlier queries see earlier keys.",
        },
        "edges": {
            "i - w <= j <= i": "Your window is one too wide. It counts the token itself.",
            "i - w + 1 < j <= i": "Your window is one too narrow. "
            "With the token itself it holds `window` keys.",
            "i - w < j < i": "You hide each token from itself. It is a part of its window.",
            "i - w < j <= i + 1": "You show the next token. The window ends at the token itself.",
            "j <= i": "Your window has no far edge: you visit every earlier block. "
            "Blocks that lie behind the window are skipped.",
            "i - w < j": "There is no causal edge: you visit what comes later. "
            "The window ends at the token itself.",
            "|i - j| < w": "Your window looks both ways. It ends at the token itself.",
            "none": "You visit every block. Skip those in which nothing is visible.",
        },
        "align": {
            "upper-left": "You let the first query be token 0. With T < S the queries are the last "
            "T tokens: their numbers end at S - 1.",
            "T - S": "You shift the queries the wrong way, by T - S. The last one is token S - 1.",
        },
        "cut": {
            "queries rounded down": "You leave out the last, smaller block of queries. Round up.",
            "keys rounded down": "You leave out the last, smaller block of keys. Round up.",
            "rounded down": "You leave out the smaller blocks at the end, of queries and of keys. "
            "Round up.",
            "by tokens": BY_TOKENS,
            "by tokens, whole": BY_TOKENS,
            "by tokens, last": BY_TOKENS,
        },
        "size": {
            "S, T": "T and S are exchanged. T queries look at S keys.",
        },
        "output": {
            "sum": "You return the sum. A number for each block of queries is asked for.",
            "per block of keys": "You count along the wrong axis: a number for each block of keys. "
            "Give one for each block of queries.",
            "share": "You return shares. Numbers of blocks are asked for.",
            "block map": "You return which blocks are visited. Count them in each row.",
        },
    },
    inputs=_grids,
    trials=8,
)

GROWTH = Exercise(
    name="growth",
    reference=growth,
    settings={
        "prediction": {
            "square": "Your prediction is that of scores and sums alone, times². "
            "Projections and feed-forward grow too, but not as fast.",
            "times": "Your prediction grows as the length does. "
            "Scores and sums of values grow as its square.",
            "no feed-forward": "Your prediction leaves the feed-forward out. "
            "It is a part of the layer.",
            "no projections": "Your prediction leaves the four projections out. "
            "They are a part of the layer.",
            "feed-forward of 4": "Your prediction takes the usual feed-forward, four times as wide "
            "as the layer. Yours has another width.",
            "one matrix of the feed-forward": "Your prediction counts one matrix of the "
            "feed-forward. There is one into the wide layer and one out of it.",
            "three projections": "Your prediction counts three projections. "
            "The heads' output is projected too.",
            "one product": "Your prediction counts one product over all pairs. "
            "There are two: the scores, and the sum of values.",
            "per token": "Your prediction is the growth for each token. The whole layer is asked for.",
            "inverse": "Your prediction is upside down. Divide the longer text's work by the "
            "shorter's.",
        },
        "measurement": {
            "not cleared": "Your second count holds the first one too. Clear `made` between the "
            "two runs.",
            "one list": "Your measured factor is 1. Did both counts come from the same list, or "
            "do you count products where multiply-adds are asked for?",
            "added": "You measured how much is added. Divide one count by the other.",
            "inverse": "Your measured factor is upside down. Divide the longer text's count by "
            "the shorter's.",
            "per token": "You measured the growth for each token. The whole layer is asked for.",
            "scores": "You measured the scores alone. Sum all that is in `made`.",
            "one projection": "You measured a product that each token meets by itself. "
            "Sum all that is in `made`.",
        },
    },
    inputs=lambda rng, trial: my_numbers(str(rng.integers(2**32))),
    trials=1,
    returns=("predicted", "measured"),
    rtol=0.01,
)

ASSIGNMENT = Assignment(
    name="cost",
    title="The quadratic cost",
    chapter=5,
    minutes=90,
    tasks=(
        Task(SINK_WINDOW_MASK),
        Task(MERGE_PARTS),
        Task(VISITED_BLOCKS),
        Task(GROWTH, numbers=my_numbers),
    ),
)
