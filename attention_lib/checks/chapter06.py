"""The exercises of chapter 6: inputs that tell mistakes apart, and the advice each earns."""

import numpy as np

from .engine import Case, Exercise
from .references_devices import kernel_traffic, keys_seen


def _tile(rng: np.random.Generator, trial: int) -> Case:
    """A plain tile; then more keys than queries, a last tile that is not full, fewer keys."""
    shift = int(rng.integers(0, 3))
    return [
        (32, 16, 11, 64, 64),
        (24, 12, 7, 60, 71 + shift),
        (45, 15, 4, 51 + shift, 51 + shift),
        (40, 10, 3, 80, 61 - shift),
        (10, 10, 4, 80, 57 + shift),
        (36, 9, 5, 50, 92 + shift),
    ][trial]


def _head(rng: np.random.Generator, trial: int) -> Case:
    T, S, d_k, d_v, queries, number = [
        (96, 96, 20, 20, 32, 2),
        (70, 50, 12, 18, 16, 2),
        (45, 83, 10, 6, 12, 4),
        (64, 41, 24, 16, 16, 8),
        (33, 60, 7, 11, 10, 2),
        (101, 37, 9, 9, 25, 4),
    ][trial]
    return (T + int(rng.integers(0, 4)) * queries, S, d_k, d_v, queries, number)


KEYS_SEEN = Exercise(
    name="keys_seen",
    reference=keys_seen,
    settings={
        "ahead": {
            "ignored": "You line up the first query with the first key. The last query is the last "
            "key, so query i sees keys up to i + S - T.",
            "T - S": "Your shift has the wrong sign. With more keys than queries, a query sees more "
            "keys: i + S - T.",
        },
        "seen_by_all": {
            "last query": "You count for all what the last query sees. "
            "All see only what the first query of the tile sees.",
            "one short": "The first query sees its own key as well: first + 1 + S - T keys.",
            "all before the tile": "You stop a whole tile too early. "
            "All queries see what the first one sees: first + 1 + S - T keys.",
        },
        "seen_by_any": {
            "first query": "You stop where the first query stops. The last query of the tile sees "
            "the most: first + queries + S - T keys.",
            "one short": "The last query sees its own key as well: first + queries + S - T keys.",
            "one more": "You go one key too far: the last query of the tile is "
            "first + queries - 1, and sees one key more than that number.",
            "every key": "You go to the last key. Beyond what the last query of the tile sees, "
            "nothing has to be read.",
        },
        "rounding": {
            "none": "Your first number is not whole tiles. A tile of keys of which some are hidden "
            "needs the mask: round down to a multiple of keys.",
            "up": "You round up. Then a tile with hidden keys goes without a mask: round down.",
            "count": "You return a number of tiles. Return a number of keys.",
            "by queries": "You round to tiles of queries. The kernel walks in tiles of keys.",
            "both": "You round the second number too. The last tile ends inside, under a mask: "
            "return the number of keys as it is.",
        },
        "bounds": {
            "0": "Your numbers exceed S where the tile is not full. No more than S keys exist.",
            "S": "Your numbers fall below 0 where the queries see nothing. Stop at 0.",
            "none": "Your numbers leave 0 … S. Queries before the first key see 0 keys, and none "
            "sees more than S.",
        },
    },
    inputs=_tile,
    returns=("by_all", "end"),
)

KERNEL_TRAFFIC = Exercise(
    name="kernel_traffic",
    reference=kernel_traffic,
    settings={
        "tiles": {
            "rounded down": "You round the number of tiles down. "
            "The last tile reads all keys too, though it is not full.",
            "not rounded": "You take a part of a tile as a part of the reading. "
            "The last tile reads all keys too, though it is not full: round up.",
            "one": "You read keys and values once. Every tile of queries reads them anew.",
            "of keys": "You count tiles of keys. Keys and values are read once for each tile of "
            "queries: T / queries, rounded up.",
            "every query": "You read all keys for each query. A tile of queries shares them.",
        },
        "read": {
            "keys": "You forget the values. A tile reads keys and values.",
            "values": "You forget the keys. A tile reads keys and values.",
            "widths exchanged": "You count 2 d_k for each key. Values have a width of their own, d_v.",
        },
        "own": {
            "queries": "You forget the output, which is written once.",
            "output": "You forget the queries, which are read once.",
            "none": "You forget queries and output: the ones are read, the other is written, once.",
            "every visit": "You move queries and output once for each tile. "
            "A tile moves its own: together each number once.",
            "written and read": "You read the output again. It stays in registers until it is done.",
        },
        "sums": {
            "none": "You forget the logarithm of the sum: four bytes for each query.",
            "as the rest": "You store the logarithm of the sum like the rest. It takes four bytes.",
            "two": "You store two numbers for each query. The kernel stores one: "
            "the logarithm of the sum holds the maximum too.",
        },
        "scores": {
            "written": "You write the scores. This kernel never does.",
            "written and read": "You write the scores and read them again. This kernel never does.",
        },
        "unit": {
            "numbers": "You return numbers. Return bytes: `number` bytes for each.",
            "bits": "You return bits. Return bytes.",
        },
    },
    inputs=_head,
)

EXERCISES = (KEYS_SEEN, KERNEL_TRAFFIC)
