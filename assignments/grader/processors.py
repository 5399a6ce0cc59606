"""How many processors this process may use: those of its affinity, within its control groups' quota."""

import math
import os
from collections.abc import Iterator
from pathlib import Path


def available(
    groups: Path = Path("/proc/self/cgroup"), system: Path = Path("/sys/fs/cgroup")
) -> int:
    """The number, at least 1; `os.cpu_count` would count those of the whole machine."""
    return max(1, math.ceil(min([len(os.sched_getaffinity(0)), *_quotas(groups, system)])))


def _quotas(groups: Path, system: Path) -> Iterator[float]:
    """Processors' worth of time that each group above this process has, where it is limited."""
    try:
        lines = groups.read_text(encoding="utf-8").splitlines()
    except OSError:  # no control groups here
        return
    for line in lines:  # "0::/path" is version 2, "4:cpu,cpuacct:/path" a controller of version 1
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = system / controllers
        inside = top / path.lstrip("/")
        for folder in (inside, *inside.parents):
            if folder.is_relative_to(top):
                yield from _quota(folder)


def _quota(folder: Path) -> Iterator[float]:
    """What cpu.max says ("200000 100000" or "max 100000"), or the two files of version 1."""
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        try:
            quota, period = " ".join((folder / name).read_text("ascii") for name in names).split()
        except (OSError, ValueError):
            continue
        if quota.isdecimal() and int(quota):
            yield int(quota) / int(period)
