"""What the processes of one run of pytest have in common, each thing made once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

FOLDER = "BOOK_TESTS"  # the variable that names the folder of this run; tests/conftest.py sets it


def once(name: str, make: Callable[[Path], object]) -> Path:
    """The folder that `make` fills; the first process that asks for it calls it while others wait."""
    folder = Path(os.environ[FOLDER], name)
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            partial = folder.with_name(f"{name}.partial")
            partial.mkdir()
            make(partial)
            partial.rename(folder)
    return folder
