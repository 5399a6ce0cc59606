"""Python for the pages: the files of one release of Pyodide, listed in pyodide.json, each verified by its SHA-256.

`make book PYODIDE=folder` takes them from a folder, `make book PYODIDE=release` from the address in pyodide.json into a cache;
`make book` takes what is in the cache.
"""

import gzip
import hashlib
import io
import json
import os
import sys
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("pyodide.json")
LISTED: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
VERSION: str = LISTED["version"]
# What a wheel holds for compilers, type checkers and people, and what draws with fonts that no figure of ours names.
UNREAD = (".pyi", ".pxd", ".h", ".a", ".c", ".f90", ".rst", ".typed", ".npz", ".jpg", ".afm")
PARTS = ("/tests/", "/f2py/", "/sample_data/", "/fonts/pdfcorefonts/", "/backends/web_backend/")
FONTS = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSans-Oblique.ttf", "DejaVuSansMono.ttf")


class PyodideError(RuntimeError):
    """A file of Pyodide is missing or is not what it should be; the message is a sentence."""


@dataclass(frozen=True)
class Pyodide:
    """The verified files of one release, by name."""

    folder: Path
    pictures: bool

    def names(self) -> list[str]:
        """The files, those for pictures only if they are there."""
        return [name for name in _digests() if self.pictures or name not in LISTED["matplotlib"]]

    def read(self, name: str) -> bytes:
        """The bytes of a file. Raises PyodideError unless they have its digest."""
        return verified(self.folder / name, (self.folder / name).read_bytes())

    def lay(self, folder: Path) -> dict[str, tuple[int, int]]:
        """Write what a page loads into `folder`; returns for each file how many bytes it has, and how many a server sends.

        The core as it is; of each wheel the files that a run reads, in a zip; a lock file that names those zips.
        """
        folder.mkdir(parents=True, exist_ok=True)
        laid = {name: self.read(name) for name in LISTED["core"]}
        packages = {}
        for name in self.names():
            if name.endswith(".whl"):
                wheel = shortened(self.read(name))
                package, version = name.split("-")[:2]
                packages[package.lower().replace("_", "-")] = _entry(name, package, version, wheel)
                laid[name] = wheel
        lock = {"info": LISTED["info"], "packages": packages}
        laid["pyodide-lock.json"] = json.dumps(lock).encode()
        for name, data in laid.items():
            (folder / name).write_bytes(data)
        return {name: (len(data), sent(name, data)) for name, data in laid.items()}


def sent(name: str, data: bytes) -> int:
    """How many bytes a server sends of a file, packed if it is not yet."""
    return len(data) if name.endswith((".whl", ".zip")) else len(gzip.compress(data, 6, mtime=0))


def cache() -> Path:
    """Where the files are kept between builds."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "self-attention-book" / f"pyodide-{VERSION}"


def find(given: str) -> Pyodide | None:
    """The files of the folder `given`; "release" fetches what the cache lacks; "" is what the cache has; "none".

    None without enough for a check. Raises PyodideError for a folder that lacks a file, and if none can be fetched.
    """
    if given == "none":
        return None
    if given == "release":
        fetch(cache())
    folder = cache() if given in ("", "release") else Path(given)
    missing = [name for name in _digests() if not (folder / name).is_file()]
    needed = [name for name in missing if name not in LISTED["matplotlib"]]
    if needed and given:
        raise PyodideError(f"{folder} has no {needed[0]}, which Pyodide {VERSION} needs.")
    return None if needed else Pyodide(folder, pictures=not missing)


def fetch(folder: Path) -> None:
    """Download what `folder` lacks. Raises PyodideError; what is not verified is not kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _digests():
        if not (folder / name).is_file():
            keep(folder / name, _download(LISTED["address"] + name))


def keep(path: Path, data: bytes) -> None:
    """Write a file of Pyodide, whole or not at all. Raises PyodideError unless it is verified."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(verified(path, data))
    partial.replace(path)


def verified(path: Path, data: bytes) -> bytes:
    """`data`, if it is the file that Pyodide names so. Raises PyodideError."""
    found, right = hashlib.sha256(data).hexdigest(), _digests()[path.name]
    if found != right:
        raise PyodideError(
            f"{path} is not the file of Pyodide {VERSION}: its SHA-256 is {found}, not {right}. "
            "It was not used: delete it, and get it again."
        )
    return data


def shortened(wheel: bytes) -> bytes:
    """A zip of what a run reads of a wheel, the same whenever it is made."""
    made = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(wheel)) as whole,
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as short,
    ):
        for name in filter(_is_read, whole.namelist()):
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            short.writestr(entry, whole.read(name))
    return made.getvalue()


def table(site: Path) -> str:
    """Chapter, code cells, and how many of them run on its page; or how Python gets into the pages."""
    paths = sorted((site / "_static" / "page_python" / "cells").glob("*.json"))
    if not paths:
        return (
            f"Without Pyodide {VERSION} in the pages: exercises are checked in JupyterLab. `make book PYODIDE=release` "
            "fetches it, `make book PYODIDE=folder` takes it from a folder."
        )
    lines = [f"{'chapter':30}  cells  run on the page"]
    for path in paths:
        places = json.loads(path.read_text(encoding="utf-8"))["places"].values()
        runs = sum(kind in ("exercise", "runs") for kind, *_ in places)
        lines.append(f"{path.stem:30}  {len(places):5}  {runs:4}  {runs / len(places):4.0%}")
    return "\n".join(lines)


def _is_read(name: str) -> bool:
    if name.endswith(".ttf"):
        return name.endswith(tuple(f"/{font}" for font in FONTS))
    return not (name.endswith(UNREAD) or any(part in f"/{name}" for part in PARTS))


def _entry(name: str, package: str, version: str, wheel: bytes) -> dict[str, Any]:
    """What a lock file says of a package."""
    return {
        "name": package,
        "version": version,
        "file_name": name,
        "install_dir": "site",
        "sha256": hashlib.sha256(wheel).hexdigest(),
        "package_type": "package",
        "imports": [],
        "depends": [],
        "unvendored_tests": False,
    }


def _digests() -> dict[str, str]:
    return {**LISTED["core"], **LISTED["numpy"], **LISTED["matplotlib"]}


def _download(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return bytes(answer.read())
    except (urllib.error.URLError, TimeoutError) as error:
        raise PyodideError(f"{address} could not be fetched: {error}.") from error


if __name__ == "__main__":
    print(table(Path(sys.argv[1])))
