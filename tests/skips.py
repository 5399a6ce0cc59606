"""Read pytest's report and refuse a run that left something out: `python -m tests.skips
build/junit.xml`.

Only a missing GPU may stand in the way of a test. `.ci/run` uses this; a reader's `make test` may
skip more.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

ALLOWED = "needs a GPU"


def refused(report: Path) -> list[str]:
    """One line for each reason not to trust the run; none if all is well.

    Raises OSError when there is no report and ET.ParseError when it is not one.
    """
    cases = list(ET.parse(report).getroot().iter("testcase"))
    if not cases:
        return ["the report holds no test"]
    problems = []
    for case in cases:
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        problems += [f"{name}: {bad.tag}" for bad in case if bad.tag in ("failure", "error")]
        for skip in case.iter("skipped"):
            reason = skip.get("message", "")
            # The report holds expected failures as skips of another type; those did run.
            if skip.get("type") != "pytest.xfail" and not reason.startswith(ALLOWED):
                problems.append(f"{name}: skipped, {reason or 'without a reason'}")
    return problems


def main(arguments: Sequence[str]) -> int:
    """Print what is refused in the reports named; returns the exit status."""
    problems = [line for name in arguments for line in refused(Path(name))]
    for line in problems:
        print(line, file=sys.stderr)
    if problems or not arguments:
        return 1
    print(f"No test was skipped, save one that {ALLOWED}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
