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

from tests.notebooks import CELL_LIMIT, ROOT, kernel_environment

# IPython runs this in the kernel before the first cell.
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
    cell_limit: float = CELL_LIMIT,
    limit: float = 600.0,
    environment: Mapping[str, str] | None = None,
    probe: bool = False,
) -> Result:
    """Compare notebooks of one folder strictly with what they store.

    `cell_limit` and `limit` are in seconds, for one cell and for the whole run, which is ended
    then. `environment` adds to the kernels' variables. With `probe`, `Result.kernel` tells which
    CPU features the kernel uses.
    """
    with (
        tempfile.TemporaryDirectory(prefix="nbval-") as folder,
        kernel_environment(**(environment or {})) as variables,
    ):
        report, found = Path(folder, "report.xml"), Path(folder, "probe.json")
        if probe:
            startup = Path(variables["IPYTHONDIR"], "profile_default", "startup")
            startup.mkdir(parents=True)
            (startup / "00-probe.py").write_text(PROBE, encoding="utf-8")
            variables["BOOK_PROBE"] = str(found)
        command = [
            *(sys.executable, "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider"),
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(paths[0].parent)),
            # After a cell that hung, nbval expects the rest to fail; it may well pass.
            *("-o", "addopts=", "-o", "xfail_strict=false"),
            *("--nbval", "--nbval-current-env", f"--nbval-cell-timeout={cell_limit}"),
            *("--nbval-sanitize-with", str(ROOT / "tests" / "nbval.cfg")),
            f"--junitxml={report}",
            *map(str, paths),
        ]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        output = run_within(command, variables, limit)
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
