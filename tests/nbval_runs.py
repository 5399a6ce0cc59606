"""Run pytest's nbval on notebooks, in a process of its own, and say what came of it."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.notebooks import CELL_LIMIT, GUARD, ROOT, kernel_environment

# What the kernel says of itself before the first cell.
PROBE = """
def _probe():
    import json, os
    import torch
    from numpy._core._multiarray_umath import __cpu_features__ as features
    from threadpoolctl import threadpool_info
    found = {
        "features": sorted(name for name, on in features.items() if on),
        "torch": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "openblas": sorted({pool.get("architecture") for pool in threadpool_info()
                            if pool.get("internal_api") == "openblas"}),
    }
    with open(os.environ["BOOK_PROBE"], "w") as file:
        json.dump(found, file)
_probe()
del _probe
"""


@dataclass(frozen=True)
class Result:
    """What nbval said.

    `passed` and the like name cells as nbval counts them: `01_x.ipynb::Cell 0` is the first code
    cell. `cpu` is in seconds, over nbval and all kernels. `kernel` is what PROBE found in the last kernel.
    """

    passed: list[str]
    failed: list[str]
    skipped: list[str]
    cpu: float
    output: str
    kernel: dict[str, Any]


def validate(
    paths: Sequence[Path],
    *,
    limit: float = CELL_LIMIT,
    guard: float = GUARD,
    environment: Mapping[str, str] | None = None,
    probe: bool = False,
) -> Result:
    """Compare notebooks of one folder strictly with what they store, by the command of CONTRIBUTING.md.

    A cell has `limit` seconds of CPU time, and `guard` on the clock. `environment` adds to the
    kernels' variables. With `probe`, `Result.kernel` tells which CPU features the kernel uses.
    """
    with tempfile.TemporaryDirectory(prefix="nbval-") as folder:
        report, found = Path(folder, "report.xml"), Path(folder, "probe.json")
        command = [
            *(sys.executable, "-m", "pytest", "--nbval", *map(str, paths)),
            *("--nbval-sanitize-with", str(ROOT / "tests" / "nbval.cfg")),
            *("-q", "--color=no", "-p", "no:cacheprovider", f"--junitxml={report}"),
            *("--rootdir", str(paths[0].parent), f"--nbval-cell-timeout={guard}"),
        ]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with kernel_environment(limit, PROBE if probe else "", **environment or {}) as variables:
            variables["BOOK_PROBE"] = str(found)
            output = run_within(command, variables, 2 * GUARD)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cases = list(ET.parse(report).iter("testcase")) if report.exists() else []
        kernel = json.loads(found.read_text(encoding="utf-8")) if found.exists() else {}
    named: dict[str, list[str]] = {"passed": [], "failed": [], "skipped": []}
    for case in cases:
        marks = {child.tag for child in case}
        bad = marks & {"failure", "error"}
        kind = "failed" if bad else "skipped" if "skipped" in marks else "passed"
        named[kind].append(f"{case.get('classname')}::{case.get('name')}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Result(**named, cpu=cpu, output=output, kernel=kernel)


def run_within(command: Sequence[str], environment: Mapping[str, str], limit: float) -> str:
    """The output of a command; after `limit` seconds it is ended with all that it started."""
    with subprocess.Popen(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            output += f"\nended after {limit:g} s"
    return output
