"""Answers to the exercises of chapter 7 as learners write them, each wrong one with its diagnosis.

Written apart from the reference functions of `attention_lib.checks`, never by changing settings.
"""

from typing import Any

import numpy as np

from tests.answers import Answers

ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong


# ring_schedule


@right("ring_schedule")
def schedule_modulo(processes: Any) -> Any:
    p = np.arange(processes)
    return (p[None, :] - p[:, None]) % processes


@right("ring_schedule")
def schedule_by_rolling(processes: Any) -> Any:
    return np.stack([np.roll(np.arange(processes), step) for step in range(processes)])


@right("ring_schedule")
def schedule_by_passing(processes: Any) -> Any:
    here, rows = list(range(processes)), []
    for _ in range(processes):
        rows.append(list(here))
        here = [here[-1], *here[:-1]]
    return rows


@wrong("ring_schedule", "turns the other way", direction="opposite")
def schedule_backwards(processes: Any) -> Any:
    return [[(p + step) % processes for p in range(processes)] for step in range(processes)]


@wrong("ring_schedule", "one step late", start="next")
def schedule_late(processes: Any) -> Any:
    return [[(p - step - 1) % processes for p in range(processes)] for step in range(processes)]


@wrong("ring_schedule", "A step is missing", steps="one short")
def schedule_short(processes: Any) -> Any:
    return [[(p - step) % processes for p in range(processes)] for step in range(processes - 1)]


@wrong("ring_schedule", "one step too many", steps="one more")
def schedule_long(processes: Any) -> Any:
    return [[(p - step) % processes for p in range(processes)] for step in range(processes + 1)]


@wrong("ring_schedule", "leave the ring", wrap="none")
def schedule_open(processes: Any) -> Any:
    p = np.arange(processes)
    return p[None, :] - p[:, None]


@wrong("ring_schedule", "stop at the first process", wrap="clipped")
def schedule_clipped(processes: Any) -> Any:
    return [[max(0, p - step) for p in range(processes)] for step in range(processes)]


@wrong("ring_schedule", "drop the sign", wrap="mirrored")
def schedule_mirrored(processes: Any) -> Any:
    return [[abs(p - step) for p in range(processes)] for step in range(processes)]


@wrong("ring_schedule", "rows are processes", layout="processes, steps")
def schedule_transposed(processes: Any) -> Any:
    return [[(p - step) % processes for step in range(processes)] for p in range(processes)]


@wrong("ring_schedule", "to whom", content="receiver")
def schedule_of_receivers(processes: Any) -> Any:
    return [[(p + 1) % processes for p in range(processes)] for _ in range(processes)]


@wrong("ring_schedule", "from whom", content="sender")
def schedule_of_senders(processes: Any) -> Any:
    return [[(p - 1) % processes for p in range(processes)] for _ in range(processes)]


@wrong("ring_schedule", "Count from 0", content="from 1")
def schedule_from_1(processes: Any) -> Any:
    return [[(p - step) % processes + 1 for p in range(processes)] for step in range(processes)]


@wrong("ring_schedule", "No keys move", content="own")
def schedule_at_rest(processes: Any) -> Any:
    return np.tile(np.arange(processes), (processes, 1))


@wrong("ring_schedule", "(1) You begin", "(2) A step", start="next", steps="one short")
def schedule_two_mistakes(processes: Any) -> Any:
    rows = [np.roll(np.arange(processes), step) for step in range(1, processes)]
    return np.stack(rows)


# striped_mask


@right("striped_mask")
def stripes_in_the_text(mine: Any, theirs: Any, tokens: Any, processes: Any) -> Any:
    places = np.arange(tokens) * processes
    return (places + theirs)[None, :] <= (places + mine)[:, None]


@right("striped_mask")
def stripes_by_cases(mine: Any, theirs: Any, tokens: Any, processes: Any) -> Any:
    earlier = np.tri(tokens, dtype=bool, k=-1)
    return earlier | np.eye(tokens, dtype=bool) if theirs <= mine else earlier


@right("striped_mask")
def stripes_cut_from_the_whole(mine: Any, theirs: Any, tokens: Any, processes: Any) -> Any:
    whole = np.tri(tokens * processes, dtype=bool)
    return whole[mine::processes, theirs::processes]


@wrong("striped_mask", "contiguous slices", dealt="slices")
def stripes_as_slices(mine: Any, theirs: Any, tokens: Any, processes: Any) -> Any:
    i = np.arange(tokens)
    return (theirs * tokens + i)[None, :] <= (mine * tokens + i)[:, None]


@wrong("striped_mask", "inside the stripes", dealt="not at all")
def stripes_of_their_own(mine: Any, theirs: Any, tokens: Any, processes: Any) -> Any:
    return np.tri(tokens, dtype=bool)


@wrong("striped_mask", "compare the processes alone", dealt="process alone")
def stripes_by_process(mine: Any, theirs: Any, tokens: Any, processes: Any) -> Any:
    return np.full((tokens, tokens), theirs <= mine)


@wrong("striped_mask", "add the process", dealt="numbers added")
def stripes_added(mine: Any, theirs: Any, tokens: Any, processes: Any) -> Any:
    i = np.arange(tokens)
    return (i + theirs)[None, :] <= (i + mine)[:, None]


@wrong("striped_mask", "hides each token from itself", order="j < i")
def stripes_strict(mine: Any, theirs: Any, tokens: Any, processes: Any) -> Any:
    places = np.arange(tokens) * processes
    return (places + theirs)[None, :] < (places + mine)[:, None]


@wrong("striped_mask", "shows the later tokens", order="j >= i")
def stripes_of_later_tokens(mine: Any, theirs: Any, tokens: Any, processes: Any) -> Any:
    places = np.arange(tokens) * processes
    return (places + theirs)[None, :] >= (places + mine)[:, None]


@wrong("striped_mask", "inverted", order="j > i")
def stripes_hidden(mine: Any, theirs: Any, tokens: Any, processes: Any) -> Any:
    return ~stripes_in_the_text(mine, theirs, tokens, processes)


@wrong("striped_mask", "shows everything", order="all")
def stripes_open(mine: Any, theirs: Any, tokens: Any, processes: Any) -> Any:
    return np.ones((tokens, tokens), dtype=bool)


@wrong("striped_mask", "exchanged", roles="theirs, mine")
def stripes_exchanged(mine: Any, theirs: Any, tokens: Any, processes: Any) -> Any:
    return stripes_in_the_text(theirs, mine, tokens, processes)


@wrong("striped_mask", "transpose", layout="keys, queries")
def stripes_transposed(mine: Any, theirs: Any, tokens: Any, processes: Any) -> Any:
    return stripes_in_the_text(mine, theirs, tokens, processes).T


@wrong(
    "striped_mask", "(1) Your processes hold", "(2) Your mask hides", dealt="slices", order="j < i"
)
def stripes_two_mistakes(mine: Any, theirs: Any, tokens: Any, processes: Any) -> Any:
    i = np.arange(tokens)
    return (theirs * tokens + i)[None, :] < (mine * tokens + i)[:, None]


@wrong("striped_mask", "inside the stripes", "hides each", dealt="not at all", order="j < i")
def stripes_of_their_own_strict(mine: Any, theirs: Any, tokens: Any, processes: Any) -> Any:
    return np.tri(tokens, k=-1).astype(bool)
