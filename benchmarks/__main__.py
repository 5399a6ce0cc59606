"""`python -m benchmarks [NAME ...]`: run all or some, print a table, exit with 1 if a bar is missed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec

from . import attention, import_time, page, peers, small_inputs
from .harness import Result, report

BENCHMARKS: dict[str, Callable[[], Iterator[Result]]] = {
    "small_inputs": small_inputs.run,
    "import_time": import_time.run,
    "attention": attention.run,
    "page": page.run,
    "peers": peers.run,
}
if find_spec("assignments"):  # they are not in the zip of the book
    BENCHMARKS["grading"] = import_module("benchmarks.grading").run


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks named, or all; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    names = parser.parse_args(arguments).names
    for name in names:
        if name not in BENCHMARKS:
            parser.error(f"no benchmark is called {name!r}: there are {', '.join(BENCHMARKS)}")
    return report(result for name in names or BENCHMARKS for result in BENCHMARKS[name]())


if __name__ == "__main__":
    raise SystemExit(main())
