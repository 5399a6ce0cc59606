"""What lies in a zip, a folder or a single file, read into memory and never unpacked to disk."""

from __future__ import annotations

import lzma
import os
import re
import stat
import time
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MOST_BYTES = 32_000_000  # of one notebook
MOST_ALL = 1_000_000_000  # of what is taken from one source, which is held in memory
MOST_FILES = 20_000  # in one source
ENDINGS = (".ipynb", ".ipynb.txt", ".ipynb.json")
ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".7z", ".rar")
LITTER = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"}
METADATA = "submission_metadata.yml"  # says whose Gradescope's submissions are
UNREADABLE = (
    OSError,
    ValueError,
    RuntimeError,
    EOFError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)


@dataclass(frozen=True)
class Entry:
    """One file of a source: its path there with `/`, when it was changed, and its bytes or why not."""

    path: str
    changed: float
    data: bytes = b""
    refused: str = ""


def entries(source: Path) -> Iterator[Entry]:
    """Every file in a zip, a folder or a file; links are never followed, zips inside never opened.

    A single file is called after its folder: `anna/pointing.ipynb`. What cannot be taken comes with
    the reason and without bytes. What operating systems leave behind is passed over.
    """
    size = 0
    for number, entry in enumerate(_all(source), 1):
        parts = entry.path.split("/")
        if LITTER & set(parts) or parts[-1].startswith("._"):
            continue
        size += len(entry.data)
        if number > MOST_FILES or size > MOST_ALL:
            most = f"{MOST_FILES:,} files or {MOST_ALL // 10**9} GB"
            yield Entry(entry.path, 0, refused=f"it and all after it: more than {most}")
            return
        yield entry


def _all(source: Path) -> Iterator[Entry]:
    if source.is_symlink():
        yield Entry(source.name, 0, refused="it is a link")
    elif source.is_dir():
        for root, folders, files in os.walk(source):
            folders.sort()
            links = [name for name in folders if Path(root, name).is_symlink()]
            for name in sorted([*links, *files]):
                path = Path(root, name)
                yield _of_file(path.relative_to(source).as_posix(), path)
    elif not source.exists():
        yield Entry(str(source), 0, refused="there is no such file or folder")
    elif source.suffix.lower() == ".zip":
        yield from _of_zip(source)
    else:
        folder = Path(os.path.abspath(source)).parent
        if folder.is_symlink():  # it may lead to another student
            yield Entry(f"{folder.name}/{source.name}", 0, refused="its folder is a link")
        else:
            yield _of_file(f"{folder.name}/{source.name}", source)


def _of_file(shown: str, path: Path) -> Entry:
    shown = unicodedata.normalize("NFC", shown)
    try:
        about = path.lstat()
        refused = _refuse(shown, about.st_mode, about.st_size)
        if refused:
            return Entry(shown, about.st_mtime, refused=refused)
        with path.open("rb") as file:
            return _read(shown, about.st_mtime, file)
    except OSError as error:
        return Entry(shown, 0, refused=f"it cannot be read ({error.strerror})")


def _of_zip(path: Path) -> Iterator[Entry]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MOST_FILES:
                raise ValueError(f"more than {MOST_FILES:,} files")
            for member in members:
                if not member.is_dir():
                    yield _of_member(archive, member)
    except UNREADABLE as error:
        yield Entry(path.name, 0, refused=f"the zip cannot be read ({error})")


def _of_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Entry:
    shown, changed = _name(member), _time(member)
    refused = _refuse(shown, member.external_attr >> 16, member.file_size)
    if refused:
        return Entry(shown, changed, refused=refused)
    try:
        with archive.open(member) as file:
            return _read(shown, changed, file)
    except UNREADABLE as error:
        return Entry(shown, changed, refused=f"it cannot be read ({error})")


def _name(member: zipfile.ZipInfo) -> str:
    """The name of a zip's member, also where UTF-8 was written without saying so."""
    name = member.filename
    if not member.flag_bits & 0x800:
        try:
            name = name.encode("cp437").decode("utf-8")
        except UnicodeError:
            name = member.filename
    return unicodedata.normalize("NFC", name.replace("\\", "/"))


def _time(member: zipfile.ZipInfo) -> float:
    try:
        return time.mktime((*member.date_time, 0, 0, -1))
    except (ValueError, OverflowError):
        return 0


def _refuse(shown: str, mode: int, size: int) -> str:
    """Why a file is not even read, or ""."""
    parts = shown.split("/")
    if stat.S_ISLNK(mode):
        return "it is a link"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "it is no ordinary file"
    if ".." in parts or re.match(r"/|[A-Za-z]:", shown):
        return "its path leads out of the folder"
    if ".ipynb_checkpoints" in parts:
        return "it is a copy that Jupyter made"
    if shown.lower().endswith(ARCHIVES):
        return "it is an archive inside: ask for the notebook itself, or unpack it and collect the folder"
    if not shown.lower().endswith(ENDINGS) and parts[-1] != METADATA:
        return "it is no notebook (.ipynb)"
    if size > MOST_BYTES:
        return f"it is larger than {MOST_BYTES // 10**6} MB: ask for it without outputs"
    return ""


def _read(shown: str, changed: float, file: IO[bytes]) -> Entry:
    """The bytes, and never more of them than allowed, whatever the size was said to be."""
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        return Entry(shown, changed, refused=f"it is larger than {MOST_BYTES // 10**6} MB")
    return Entry(shown, changed, data)
