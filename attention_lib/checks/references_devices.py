"""Reference functions of chapters 6 and 7; keyword-only settings make known mistakes, the defaults are right.

Independent of the library on purpose: a check must not share its faults.
"""

import numpy as np

from .engine import Array


def keys_seen(
    first: int,
    queries: int,
    keys: int,
    T: int,
    S: int,
    *,
    ahead: str = "S - T",
    seen_by_all: str = "first query",
    seen_by_any: str = "last query",
    rounding: str = "down",
    bounds: str = "0 and S",
) -> tuple[Array, ...]:
    """Of a tile whose first query is `first`: keys that all its queries see, in whole tiles of keys, and keys that any sees.

    The last of T queries is the last of S keys, and no query sees a later key.
    """
    offset = {"ignored": 0, "T - S": T - S}.get(ahead, S - T)
    by_all = {
        "last query": first + queries,
        "one short": first,
        "all before the tile": first - queries,
    }.get(seen_by_all, first + 1)
    by_any = {
        "first query": first + 1,
        "one short": first + queries - 1,
        "one more": first + queries + 1,
        "every key": S - offset,
    }.get(seen_by_any, first + queries)
    whole, end = by_all + offset, by_any + offset
    if bounds in ("0 and S", "0"):
        whole, end = max(0, whole), max(0, end)
    if bounds in ("0 and S", "S"):
        whole, end = min(S, whole), min(S, end)
    match rounding:
        case "none":
            pass
        case "up":
            whole = -(-whole // keys) * keys
        case "count":
            whole = whole // keys
        case "by queries":
            whole = whole // queries * queries
        case "both":
            whole, end = whole // keys * keys, -(-end // keys) * keys
        case _:
            whole = whole // keys * keys
    return np.array(whole), np.array(end)


def kernel_traffic(
    T: int,
    S: int,
    d_k: int,
    d_v: int,
    queries: int,
    number: int,
    *,
    tiles: str = "rounded up",
    read: str = "keys and values",
    own: str = "queries and output",
    sums: str = "float32",
    scores: str = "never",
    unit: str = "bytes",
) -> Array:
    """Bytes that one head's forward pass moves to and from the large memory, with `number` bytes a number.

    Each tile of queries reads all keys and values; queries are read, the output is written, once; the
    logarithm of each query's sum is written in four bytes. Source: Dao 2023, section 3.1.
    """
    visits: float = {
        "rounded down": T // queries,
        "not rounded": T / queries,
        "one": 1,
        "of keys": -(-S // queries),
        "every query": T,
    }.get(tiles, -(-T // queries))
    each = {"keys": S * d_k, "values": S * d_v, "widths exchanged": S * 2 * d_k}.get(
        read, S * (d_k + d_v)
    )
    mine = {
        "queries": T * d_k,
        "output": T * d_v,
        "none": 0,
        "every visit": visits * T * (d_k + d_v),
        "written and read": T * (d_k + 2 * d_v),
    }.get(own, T * (d_k + d_v))
    numbers = visits * each + mine
    numbers += {"written": T * S, "written and read": 2 * T * S}.get(scores, 0)
    if unit == "numbers":
        return np.array(float(numbers + (0 if sums == "none" else T)))
    total = number * numbers
    total += {"none": 0, "as the rest": number * T, "two": 8 * T}.get(sums, 4 * T)
    return np.array(float(8 * total if unit == "bits" else total))


def ring_schedule(
    processes: int,
    *,
    direction: str = "onwards",
    start: str = "own",
    steps: str = "all",
    wrap: str = "round",
    layout: str = "steps, processes",
    content: str = "owner",
) -> Array:
    """At [step, process] the process whose keys are there, each passing its keys on to the next."""
    count = {"one short": processes - 1, "one more": processes + 1}.get(steps, processes)
    step, process = np.arange(count)[:, None], np.arange(processes)[None, :]
    step = {"next": step + 1, "from 0": step - process}.get(start, step)
    if direction == "opposite":
        step = -step
    owner: Array = process - step
    match wrap:
        case "none":
            pass
        case "clipped":
            owner = np.clip(owner, 0, processes - 1)
        case "mirrored":
            owner = np.abs(owner)
        case _:
            owner = owner % processes
    match content:
        case "receiver":
            owner = (process + 1 + 0 * owner) % processes
        case "sender":
            owner = (process - 1 + 0 * owner) % processes
        case "from 1":
            owner = owner + 1
        case "own":
            owner = process + 0 * owner
    return owner.T if layout == "processes, steps" else owner


def striped_mask(
    mine: int,
    theirs: int,
    tokens: int,
    processes: int,
    *,
    dealt: str = "like cards",
    order: str = "j <= i",
    roles: str = "mine, theirs",
    layout: str = "queries, keys",
) -> Array:
    """May query i of process `mine` look at key j of process `theirs`? True = may look, (tokens, tokens).

    Process p holds the tokens p, p + processes, p + 2 processes, … Source: Brandon et al. 2023, section 3.
    """
    if roles == "theirs, mine":
        mine, theirs = theirs, mine
    i = j = np.arange(tokens)
    match dealt:
        case "slices":
            i, j = mine * tokens + i, theirs * tokens + j
        case "not at all":
            pass
        case "process alone":
            i, j = i * 0 + mine, j * 0 + theirs
        case "numbers added":
            i, j = i + mine, j + theirs
        case _:
            i, j = i * processes + mine, j * processes + theirs
    query, key = i[:, None], j[None, :]
    mask: Array = {
        "j < i": key < query,
        "j >= i": key >= query,
        "j > i": key > query,
        "all": np.ones((tokens, tokens), dtype=bool),
    }.get(order, key <= query)
    return mask.T if layout == "keys, queries" else mask
