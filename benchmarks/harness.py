"""How every benchmark measures: CPU time, one thread, both sides in turn, medians of paired ratios."""

from __future__ import annotations

import math
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from .processors import kind


@dataclass(frozen=True)
class Result:
    """What one comparison found, in seconds of CPU time (medians), or in millions of another `unit` than µs.

    The ratio must be under `bar` and at least `least`.
    """

    name: str
    ours: float
    peer: float
    ratio: float
    bar: float
    least: float = 0.0
    unit: str = "µs"

    @property
    def missed(self) -> bool:
        """Whether the ratio is not between `least` and the bar."""
        return not self.least <= self.ratio < self.bar


def summary(name: str, pairs: Iterable[tuple[float, float]], bar: float) -> Result:
    """Medians of pairs (ours, peer) of seconds, and of their ratios, pair by pair."""
    ours, peer = zip(*pairs, strict=True)
    ratios = [a / b for a, b in zip(ours, peer, strict=True)]
    median = statistics.median
    return Result(name, median(ours), median(peer), median(ratios), bar)


def compare(
    name: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    bar: float,
    rounds: int = 101,
    seconds: float = 0.01,
) -> Result:
    """Time two functions in turn, for about `seconds` a time, in each of `rounds`."""
    with threadpool_limits(1):
        calls = 1
        while (took := cpu_time(peer, calls)) < seconds:
            calls = max(2 * calls, int(calls * seconds / max(took, 1e-9)))
        pairs = []
        for i in range(rounds):  # each goes first every other time
            first, second = (ours, peer) if i % 2 else (peer, ours)
            a, b = cpu_time(first, calls), cpu_time(second, calls)
            pairs.append((a, b) if i % 2 else (b, a))
    return summary(name, [(a / calls, b / calls) for a, b in pairs], bar)


def growth(
    name: str,
    calls: Mapping[int, Callable[[], object]],
    *,
    least: float,
    bar: float,
    rounds: int = 7,
    seconds: float = 0.2,
) -> Result:
    """Time calls of several sizes in turn, each for about `seconds`; the ratio is the log-log slope.

    `calls` are by size. A slope is fitted to each round; "ours" is the largest size, "peer" the smallest.
    """
    with threadpool_limits(1):
        many = {n: max(1, math.ceil(seconds / max(cpu_time(calls[n], 1), 1e-9))) for n in calls}
        times = [
            [cpu_time(call, many[n]) / many[n] for n, call in calls.items()] for _ in range(rounds)
        ]
    sizes = np.log(np.array(list(calls)))
    slopes = [float(np.polyfit(sizes, np.log(row), 1)[0]) for row in times]
    ours, peer = (statistics.median(row[at] for row in times) for at in (-1, 0))
    return Result(name, ours, peer, statistics.median(slopes), bar, least)


def cpu_time(call: Callable[[], object], calls: int) -> float:
    """Seconds of CPU time that `calls` calls take."""
    start = time.process_time()
    for _ in range(calls):
        call()
    return time.process_time() - start


def machine() -> str:
    """The processor and its kind, the versions, and the library that multiplies matrices."""
    info = Path("/proc/cpuinfo")
    names = [
        line.partition(":")[2].strip()
        for line in (info.read_text().splitlines() if info.exists() else ())
        if line.startswith("model name")
    ]
    blas = ", ".join(
        f"{pool['internal_api']} {pool['version']} ({pool.get('architecture', 'any')})"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    )
    return (
        f"{names[0] if names else platform.processor() or platform.machine()}, {kind()}, "
        f"{platform.system()}\n"
        f"Python {platform.python_version()}, NumPy {np.__version__}, {blas or 'no BLAS'}; one thread"
    )


def report(results: Iterable[Result]) -> int:
    """Print the machine and a table; returns the exit status, 1 if a bar is missed."""
    results = list(results)
    print(machine(), end="\n\n")
    width = max((len(r.name) for r in results), default=0)
    print(f"{'CPU time, medians':{width}}  {'ours':>9}  {'peer':>9}  {'ratio':>6}  {'bar':>9}")
    for r in results:
        verdict = "MISSED" if r.missed else "met"
        bar = f"{r.least:.2f}–{r.bar:.2f}" if r.least else f"{r.bar:.2f}"
        print(
            f"{r.name:{width}}  {r.ours * 1e6:6.0f} {r.unit:2}  {r.peer * 1e6:6.0f} {r.unit:2}  "
            f"{r.ratio:6.2f}  {bar:>9}  {verdict}"
        )
    sys.stdout.flush()
    return int(any(r.missed for r in results))


def _time(seconds: float) -> str:
    """Nine characters of µs, or of ms from 10 ms on."""
    return f"{seconds * 1e6:6.0f} µs" if seconds < 0.01 else f"{seconds * 1e3:6.0f} ms"
