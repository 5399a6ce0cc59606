"""The exercises of chapter 7: inputs that tell mistakes apart, and the advice each earns."""

import numpy as np

from .engine import Case, Exercise
from .references_devices import ring_schedule, striped_mask


def _ring(rng: np.random.Generator, trial: int) -> Case:
    return (int([4, 3, 5, 7, 6, 9][trial] + rng.integers(0, 3)),)


def _stripes(rng: np.random.Generator, trial: int) -> Case:
    """A process before another, after it, and the same."""
    mine, theirs, tokens, processes = [
        (1, 2, 3, 4),
        (4, 1, 7, 5),
        (2, 2, 5, 3),
        (0, 6, 5, 7),
        (5, 3, 4, 6),
        (3, 4, 6, 5),
    ][trial]
    return (mine, theirs, tokens + int(rng.integers(0, 2)) * processes, processes)


RING_SCHEDULE = Exercise(
    name="ring_schedule",
    reference=ring_schedule,
    settings={
        "direction": {
            "opposite": "Your ring turns the other way: each process passes its keys on to the "
            "next, so process p then has those of p - 1.",
        },
        "start": {
            "next": "You begin one step late. In step 0 each process has its own keys.",
            "from 0": "You begin with the keys of process 0 everywhere twice over. "
            "In step 0 each process has its own keys.",
        },
        "steps": {
            "one short": "A step is missing: with its own keys a process makes as many steps as "
            "there are processes.",
            "one more": "You make one step too many. In it each process has its own keys again.",
        },
        "wrap": {
            "none": "Your numbers leave the ring. Before process 0 comes the last one: "
            "take them modulo the number of processes.",
            "clipped": "You stop at the first process. Before process 0 comes the last one: "
            "take the numbers modulo the number of processes.",
            "mirrored": "You drop the sign. Before process 0 comes the last one: "
            "take the numbers modulo the number of processes.",
        },
        "layout": {
            "processes, steps": "Your rows are processes. A row is a step, a column a process.",
        },
        "content": {
            "receiver": "You return to whom the keys are sent. Return whose they are.",
            "sender": "You return from whom the keys come. They may have come further: "
            "return whose they are.",
            "from 1": "You count processes from 1. Count from 0.",
            "own": "No keys move. After each step a process has those of the one before it.",
        },
    },
    inputs=_ring,
)

STRIPED_MASK = Exercise(
    name="striped_mask",
    reference=striped_mask,
    settings={
        "dealt": {
            "slices": "Your processes hold contiguous slices. Dealt like cards, process p holds the "
            "tokens p, p + processes, …",
            "not at all": "You compare the places inside the stripes. "
            "Compare the tokens' places in the whole text: i * processes + mine.",
            "process alone": "You compare the processes alone. "
            "The tokens of a stripe lie all over the text: i * processes + mine.",
            "numbers added": "You add the process to the place in the stripe. "
            "First multiply the place by `processes`.",
        },
        "order": {
            "j < i": "Your mask hides each token from itself. A token may see itself.",
            "j >= i": "Your mask shows the later tokens. True = may look: at earlier ones, and at itself.",
            "j > i": "Your mask is inverted. True = may look: at earlier tokens, and at itself.",
            "all": "Your mask shows everything. Later tokens stay hidden.",
        },
        "roles": {
            "theirs, mine": "The two processes are exchanged. The queries are those of `mine`.",
        },
        "layout": {
            "keys, queries": "You transpose the mask. Its rows are queries and its columns keys.",
        },
    },
    inputs=_stripes,
)

EXERCISES = (RING_SCHEDULE, STRIPED_MASK)
