"""`import attention_lib` beside `import numpy`, each in a fresh process.

A child times its own import, without the start of Python. Both children have the same path and ignore the
user's settings (python -I).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .harness import Result, summary

ROUNDS, BAR = 15, 1.25
CODE = """
import sys, time
sys.path.insert(0, {root!r})
start = time.process_time()
import {module}
print(time.process_time() - start)
print(*sorted(sys.modules))
"""
UNWANTED = {"torch", "matplotlib", "importlib.metadata"}


def seconds(module: str) -> float:
    """CPU seconds of the import of `module` in a fresh process.

    Raises RuntimeError if it loads what a plain import must not.
    """
    root = str(Path(__file__).resolve().parent.parent)
    code = CODE.format(root=root, module=module)
    child = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    took, loaded = child.stdout.splitlines()
    if found := UNWANTED & set(loaded.split()):
        raise RuntimeError(f"import {module} loads {', '.join(sorted(found))}")
    return float(took)


def run() -> Iterator[Result]:
    """The two imports in turn, after one of each that fills the disk's cache."""
    seconds("numpy"), seconds("attention_lib")
    pairs = []
    for i in range(ROUNDS):
        order = ("attention_lib", "numpy") if i % 2 else ("numpy", "attention_lib")
        took = {module: seconds(module) for module in order}
        pairs.append((took["attention_lib"], took["numpy"]))
    yield summary("import attention_lib, beside numpy", pairs, BAR)
