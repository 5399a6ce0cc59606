"""Answers to the exercises of chapter 6 as learners write them, each wrong one with its diagnosis.

Written apart from the reference functions of `attention_lib.checks`, never by changing settings.
"""

import math
from typing import Any

import numpy as np

from tests.answers import Answers

ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong


# keys_seen


def seen_in(mask: Any, first: int, queries: int, keys: int) -> tuple[int, int]:
    """The answer, counted in a whole mask (T, S)."""
    rows = mask[first : first + queries]
    return int(rows.all(0).sum()) // keys * keys, int(rows.any(0).sum())


@right("keys_seen")
def seen_in_one_line(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    last = np.clip([first + 1 + S - T, first + queries + S - T], 0, S)
    return last[0] - last[0] % keys, last[1]


@right("keys_seen")
def seen_by_conditions(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    by_all, end = first + S - T + 1, min(first + queries, T) + S - T
    if by_all < 0:
        by_all = 0
    if end < 0:
        end = 0
    return by_all // keys * keys, end


@right("keys_seen")
def seen_by_counting(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    rows = np.arange(first, first + queries)[:, None] + S - T
    mask = np.arange(S)[None, :] <= rows
    return seen_in(mask, 0, queries, keys)


@wrong("keys_seen", "last query is the last key", ahead="ignored")
def seen_upper_left(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    return min(S, first + 1) // keys * keys, min(S, first + queries)


@wrong("keys_seen", "wrong sign", ahead="T - S")
def seen_other_way(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    low, high = (min(S, max(0, n + T - S)) for n in (first + 1, first + queries))
    return low // keys * keys, high


@wrong("keys_seen", "what the last query sees", seen_by_all="last query")
def seen_by_the_last(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    end = min(S, max(0, first + queries + S - T))
    return end // keys * keys, end


@wrong("keys_seen", "its own key as well: first + 1", seen_by_all="one short")
def seen_without_its_own(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    by_all = np.clip(first + S - T, 0, S)
    return by_all // keys * keys, np.clip(first + queries + S - T, 0, S)


@wrong("keys_seen", "a whole tile too early", seen_by_all="all before the tile")
def seen_a_tile_early(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    by_all = np.clip(first - queries + S - T, 0, S)
    return by_all // keys * keys, np.clip(first + queries + S - T, 0, S)


@wrong("keys_seen", "where the first query stops", seen_by_any="first query")
def seen_by_one_row(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    end = max(0, min(S, first + 1 + S - T))
    return end // keys * keys, end


@wrong("keys_seen", "its own key as well: first + queries", seen_by_any="one short")
def seen_to_the_last_index(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    by_all, end = (max(0, min(S, n + S - T)) for n in (first + 1, first + queries - 1))
    return by_all // keys * keys, end


@wrong("keys_seen", "one key too far", seen_by_any="one more")
def seen_one_more(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    by_all, end = (max(0, min(S, n + S - T)) for n in (first + 1, first + queries + 1))
    return by_all // keys * keys, end


@wrong("keys_seen", "You go to the last key", seen_by_any="every key")
def seen_all(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    return max(0, min(S, first + 1 + S - T)) // keys * keys, S


@wrong("keys_seen", "not whole tiles", rounding="none")
def seen_unrounded(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    return tuple(np.clip([first + 1 + S - T, first + queries + S - T], 0, S))


@wrong("keys_seen", "round up", rounding="up")
def seen_rounded_up(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    by_all, end = np.clip([first + 1 + S - T, first + queries + S - T], 0, S)
    return math.ceil(by_all / keys) * keys, end


@wrong("keys_seen", "a number of tiles", rounding="count")
def seen_in_tiles(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    by_all, end = np.clip([first + 1 + S - T, first + queries + S - T], 0, S)
    return by_all // keys, end


@wrong("keys_seen", "round the second number too", rounding="both")
def seen_both_rounded(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    by_all, end = np.clip([first + 1 + S - T, first + queries + S - T], 0, S)
    return by_all // keys * keys, -(-end // keys) * keys


@wrong("keys_seen", "fall below 0", bounds="S")
def seen_below_0(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    return min(S, first + 1 + S - T) // keys * keys, min(S, first + queries + S - T)


@wrong("keys_seen", "exceed S", bounds="0")
def seen_beyond(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    return max(0, first + 1 + S - T) // keys * keys, max(0, first + queries + S - T)


@wrong("keys_seen", "leave 0", bounds="none")
def seen_unbounded(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    return (first + 1 + S - T) // keys * keys, first + queries + S - T


@wrong("keys_seen", "(1) You line up", "(2) Your numbers exceed S", ahead="ignored", bounds="0")
def seen_two_mistakes(first: Any, queries: Any, keys: Any, T: Any, S: Any) -> Any:
    return (first + 1) // keys * keys, first + queries


# kernel_traffic


@right("kernel_traffic")
def traffic_in_a_line(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return number * (-(-T // queries) * S + T) * (d_k + d_v) + 4 * T


@right("kernel_traffic")
def traffic_by_walking(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    total = 0
    for first in range(0, T, queries):
        rows = min(queries, T - first)
        total += number * rows * d_k  # the queries
        total += number * S * d_k + number * S * d_v  # all keys, all values
        total += number * rows * d_v + 4 * rows  # the output, the logarithms
    return total


@right("kernel_traffic")
def traffic_with_ceil(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    tiles = np.ceil(T / queries)
    return float(tiles * S * (d_k + d_v) * number + T * (d_k + d_v) * number + T * 4)


@wrong("kernel_traffic", "tiles down", tiles="rounded down")
def traffic_floored(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return number * (T // queries * S + T) * (d_k + d_v) + 4 * T


@wrong("kernel_traffic", "part of a tile", tiles="not rounded")
def traffic_of_a_part(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return number * (T / queries * S + T) * (d_k + d_v) + 4 * T


@wrong("kernel_traffic", "values once", tiles="one")
def traffic_once(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return number * (T + S) * (d_k + d_v) + 4 * T


@wrong("kernel_traffic", "tiles of keys", tiles="of keys")
def traffic_by_keys(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return number * (math.ceil(S / queries) * S + T) * (d_k + d_v) + 4 * T


@wrong("kernel_traffic", "for each query", tiles="every query")
def traffic_untiled(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return number * (T * S + T) * (d_k + d_v) + 4 * T


@wrong("kernel_traffic", "forget the values", read="keys")
def traffic_of_keys(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return number * (-(-T // queries) * S * d_k + T * (d_k + d_v)) + 4 * T


@wrong("kernel_traffic", "a width of their own", read="widths exchanged")
def traffic_of_one_width(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return number * (-(-T // queries) * S * 2 * d_k + T * (d_k + d_v)) + 4 * T


@wrong("kernel_traffic", "forget the output", own="queries")
def traffic_without_output(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return number * (-(-T // queries) * S * (d_k + d_v) + T * d_k) + 4 * T


@wrong("kernel_traffic", "queries and output", own="none")
def traffic_of_the_walk(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return number * -(-T // queries) * S * (d_k + d_v) + 4 * T


@wrong("kernel_traffic", "logarithm of the sum: four", sums="none")
def traffic_without_sums(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return number * (-(-T // queries) * S + T) * (d_k + d_v)


@wrong("kernel_traffic", "like the rest", sums="as the rest")
def traffic_of_narrow_sums(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return number * ((-(-T // queries) * S + T) * (d_k + d_v) + T)


@wrong("kernel_traffic", "two numbers", sums="two")
def traffic_of_m_and_l(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return number * (-(-T // queries) * S + T) * (d_k + d_v) + 4 * T + 4 * T


@wrong("kernel_traffic", "write the scores and read", scores="written and read")
def traffic_of_scores(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return number * ((-(-T // queries) * S + T) * (d_k + d_v) + 2 * T * S) + 4 * T


@wrong("kernel_traffic", "Return bytes: `number`", unit="numbers")
def traffic_in_numbers(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return (-(-T // queries) * S + T) * (d_k + d_v) + T


@wrong("kernel_traffic", "tiles down", "four bytes", tiles="rounded down", sums="none")
def traffic_two_mistakes(T: Any, S: Any, d_k: Any, d_v: Any, queries: Any, number: Any) -> Any:
    return number * (T // queries * S + T) * (d_k + d_v)
