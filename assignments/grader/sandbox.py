"""Runs a student's cells in a process of their own, shut in by bubblewrap, and reads what they give.

What comes back is data from somebody who may want to deceive: it is checked before anything uses it.
"""

import contextlib
import functools
import json
import os
import platform
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from safetensors.numpy import load, save

from attention_lib.checks import Exercise
from attention_lib.checks.engine import Array, Case, Output

from ..tasks import Task
from . import seccomp, troubles

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
OURS = ("attention_lib", "figures", "assignments")

SECONDS = 10.0  # of CPU time, so that a busy machine costs nobody a mark
STARTING = 60.0  # the same until the driver is ready, before any of the student's code
PATIENCE = 12  # times as long by the clock, for what waits and computes nothing
PAUSE = 0.1  # seconds between two looks at what the sandbox uses
MEMORY = 1 << 30  # bytes of all processes together
ADDRESSES = 8 << 30  # bytes of one process; what torch reserves must fit
WRITTEN = 32 << 20  # bytes of an answer, of a file, and of all files
REPORTED = 1 << 18  # bytes of what the driver says besides arrays
FILES = 20_000  # in /tmp: an empty one takes a kilobyte of the system's memory
PROCESSES = 16  # together they are far from the limit of memory
FIRST_USER = 0x7000_0000  # user ids that nobody is given
TORCH = re.compile(r"^\s*(?:from|import)\b.*\btorch\b", re.MULTILINE)
READY = b"ready"
STARTED = re.compile(rb"\.*(\|.{0,15})?", re.DOTALL)
BEGIN = re.compile(rb"\.*\|(.{16})", re.DOTALL)  # then a text and arrays, of these two lengths
MOST = WRITTEN + REPORTED + 10_000
LIMITS = {
    "RLIMIT_AS": ADDRESSES,
    "RLIMIT_FSIZE": WRITTEN,
    "RLIMIT_NOFILE": 256,
    "RLIMIT_CORE": 0,
}
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",
    "PYTHONHASHSEED": "0",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}
ADVICE = (
    "Marking runs students' code in a sandbox made by bubblewrap, 0.8 or newer, on Linux "
    "(Debian, Ubuntu: sudo apt install bubblewrap; Fedora: sudo dnf install bubblewrap). "
    "With --unsandboxed it runs without one: a submission can then read and delete your files, "
    "change marks and send what it finds over the network."
)


class SandboxMissing(RuntimeError):
    """There is no working sandbox; the text says what to do."""


@dataclass(frozen=True)
class Outcome:
    """What came of a student's answer to one question.

    outputs: for each case what the function gave, None where there is nothing. troubles: for each
    case why not, a sentence or "". how: how the process ended: "finished", "time", "waiting", "memory",
    "processes", "files", "output" (too much of it), "garbled" (no answer came but something else) or
    "crashed". changed: arguments that were changed in
    place. kind: that of the first trouble, as `troubles` has it. student: the variable STUDENT. cell: where it stopped unless it finished, from 1; 0 if
    all cells had run.
    """

    outputs: list[Output | None]
    troubles: list[str]
    how: str
    changed: tuple[str, ...] = ()
    kind: str = ""
    student: str = ""
    cell: int = 0


def run(
    cells: Sequence[str],
    task: Task,
    cases: Sequence[Case],
    *,
    seconds: float = SECONDS,
    sandboxed: bool = True,
    slot: int = 0,
) -> Outcome:
    """Run the cells, then call the task's function on every case, or read its variables.

    seconds: of CPU time for all of it, whatever else the machine does; by the clock it may take
    PATIENCE times as long. torch is imported before the time begins where a cell imports it. slot: a
    number that no other sandbox has meanwhile; without `sandboxed` only the time is limited in earnest.

    Raises SandboxMissing when there is no bubblewrap or it does not work.
    """
    limits = {**LIMITS, "RLIMIT_CPU": int(STARTING + 2 * seconds) + 2}
    user = None
    if sandboxed:
        user = FIRST_USER + slot if os.geteuid() == 0 else None
        limits["RLIMIT_NPROC"] = _processes_allowed(platform.release(), root=user is not None)
    job = _job(cells, task, cases, {"limits": limits, "uid": user})
    with _started(sandboxed) as (process, first):
        data, how = _converse(process, first, job, seconds, sandboxed)
    return _outcome(data, how, task, cases, cells)


def _job(
    cells: Sequence[str], task: Task, cases: Sequence[Case], settings: dict[str, Any]
) -> bytes:
    """What the driver reads on its stdin."""
    arrays: dict[str, Array] = {}

    def argument(name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, np.ndarray | np.generic):
            return {"plain": value}
        arrays[name] = np.array(value, order="C")
        return {"array" if isinstance(value, np.ndarray) else "scalar": name}

    exercise = task.exercise
    job = settings | {
        "cells": list(cells),
        "packages": ["torch"] if any(map(TORCH.search, cells)) else [],
        "name": exercise.name,
        "variables": list(exercise.returns) if task.numbers else [],
        "parts": len(exercise.returns),
        "cases": [
            [argument(f"{number}.{position}", value) for position, value in enumerate(case)]
            for number, case in enumerate(cases)
        ],
    }
    text = json.dumps(job).encode()
    return struct.pack("<Q", len(text)) + text + save(arrays)


def _processes_allowed(release: str, *, root: bool) -> int:
    """The limit of processes. Before Linux 5.14 it counts all that the user runs, elsewhere too."""
    version = tuple(map(int, re.findall(r"\d+", release)[:2]))
    if root or version >= (5, 14):
        return 2 * PROCESSES
    running = 0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            running += process.num_threads() if process.uids().real == os.getuid() else 0
    return running + 8 * PROCESSES


def _python(sandboxed: bool) -> list[str]:
    """The command that starts the driver."""
    here = Path("/grader") if sandboxed else HERE
    python = os.path.realpath(sys.executable)
    return [
        *(python, "-S", "-P", "-s", "-B"),
        *map(str, (here / "driver.py", here, *_packages())),
    ]


def _packages() -> list[Path]:
    """The folders that hold this interpreter's packages."""
    names = ("site-packages", "dist-packages")
    return [path for path in map(Path, sys.path) if path.name in names and path.is_dir()]


def _bubblewrap(information: int, refused: int) -> list[str]:
    """The command that shuts in what follows it.

    information: the descriptor to which it writes about it. refused: from which it reads the system
    calls to refuse.
    """
    program = shutil.which("bwrap")
    if program is None:
        raise SandboxMissing(f"There is no bubblewrap on this machine. {ADVICE}")
    if os.geteuid() == 0:
        # Only root can mount an interpreter that lies in root's home; the driver drops the rights.
        rights = "--cap-drop ALL --cap-add CAP_SETUID --cap-add CAP_SETGID"
    else:
        rights = "--unshare-user --disable-userns"
    spaces = "--unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup-try"
    return [
        *(program, *spaces.split(), *rights.split(), "--die-with-parent", "--new-session"),
        *("--proc", "/proc", "--dev", "/dev"),
        # The names of this machine's keys, and memory that belongs to no process.
        *(("--ro-bind", "/dev/null", "/proc/keys") if os.path.exists("/proc/keys") else ()),
        *("--ro-bind", "/dev/null", "/dev/zero", "--remount-ro", "/dev"),
        *("--perms", "1777", "--size", str(WRITTEN), "--tmpfs", "/tmp"),
        *_mounts(),
        *("--remount-ro", "/", "--chdir", "/tmp", "--info-fd", str(information)),
        *(("--seccomp", str(refused)) if seccomp.program(platform.machine()) else ()),
        "--",
    ]


@functools.cache
def _mounts() -> tuple[str, ...]:
    """What can be seen of this machine's files: the system's programs, Python and its packages."""
    prefixes = map(Path, (sys.base_prefix, sys.prefix, os.path.realpath(sys.base_prefix)))
    system = map(Path, ("/usr", "/nix/store", "/etc/alternatives"))
    shown = {path for path in (*system, *prefixes, *_packages()) if path.is_dir()}
    depths = ("lib*/python*/*-packages", "local/lib*/python*/*-packages")
    inside = [*_packages(), *(path for one in shown for at in depths for path in one.glob(at))]
    hidden = {path / name for path in inside for name in OURS} | {REPOSITORY}
    hidden = {path for path in hidden if path.is_dir() and _is_within(path.parent, shown)}

    words: list[str] = []
    made = {Path("/tmp")}
    for path in sorted(shown | hidden, key=lambda path: path.parts):  # what holds others goes first
        above = [*reversed(path.parents)][1:]
        for parent in (one for one in above if not _is_within(one, shown) and one not in made):
            made.add(parent)  # bubblewrap would make it for root alone
            words += ["--perms", "0755", "--dir", str(parent)]
        if path in hidden:
            words += ["--perms", "0755", "--size", "4096", "--tmpfs", str(path)]
        else:
            words += ["--ro-bind", str(path), str(path)]
    for path in sorted(hidden):
        words += ["--remount-ro", str(path)]
    for path in map(Path, ("/lib", "/lib32", "/lib64", "/bin", "/sbin")):
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), str(path)]
        else:
            words += ["--ro-bind-try", str(path), str(path)]
    words += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    words += ["--perms", "0755", "--dir", "/grader"]
    for name in ("driver.py", "stub.py"):
        words += ["--ro-bind", str(HERE / name), f"/grader/{name}"]
    return tuple(words)


def _is_within(path: Path, folders: set[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


@contextlib.contextmanager
def _started(sandboxed: bool) -> Iterator[tuple[subprocess.Popen[bytes], psutil.Process]]:
    """The running driver: what was started, and the process that holds all others of the sandbox.

    Afterwards none of them is left.
    """
    with contextlib.ExitStack() as stack:
        reading, writing = os.pipe()
        information = stack.enter_context(open(reading, "rb"))
        refused = stack.enter_context(tempfile.TemporaryFile())
        refused.write(seccomp.program(platform.machine()))
        refused.seek(0)
        try:
            process = subprocess.Popen(
                [
                    *(_bubblewrap(writing, refused.fileno()) if sandboxed else ()),
                    *_python(sandboxed),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[writing, refused.fileno()] if sandboxed else [],
                cwd=None if sandboxed else stack.enter_context(tempfile.TemporaryDirectory()),
                env=ENVIRONMENT,
                start_new_session=True,
            )
        finally:
            os.close(writing)
        stack.enter_context(process)  # closes its pipes
        # Bubblewrap says it before it lets the driver start.
        said = re.search(rb'"child-pid": (\d+)', information.read()) if sandboxed else None
        try:
            first = psutil.Process(int(said[1]) if said else process.pid)
        except psutil.NoSuchProcess:  # it failed at once
            first = psutil.Process(process.pid)
        stack.callback(_end, process, first)
        yield process, first


def _end(process: subprocess.Popen[bytes], first: psutil.Process) -> None:
    """Kill all, and wait until nothing is left."""
    tree = _tree(first)
    for one in tree:  # the first process of a sandbox takes all others with it
        with contextlib.suppress(psutil.Error):
            one.kill()
    end = time.monotonic() + STARTING
    while not all(map(_is_gone, tree)) and time.monotonic() < end:
        time.sleep(0.001)
    try:
        process.wait(timeout=STARTING)
    except subprocess.TimeoutExpired:
        process.kill()


def _is_gone(process: psutil.Process) -> bool:
    """Whether it has ended; whoever started it may never ask."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def _tree(first: psutil.Process) -> list[psutil.Process]:
    try:
        return [first, *first.children(recursive=True)]
    except psutil.Error:
        return [first]


def _converse(
    process: subprocess.Popen[bytes],
    first: psutil.Process,
    job: bytes,
    seconds: float,
    sandboxed: bool,
) -> tuple[bytes, str]:
    """Hand the job over and read the answer; what was read since "ready", and how it ended."""
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise ValueError("the process has no pipes")
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(job)
        process.stdin.close()
    source = process.stdout.fileno()
    begun, how = _read(source, first, STARTING, len(READY), sandboxed=False)
    if begun != READY:
        process.kill()
        said = process.stderr.read(2000).decode(errors="replace").strip()
        raise SandboxMissing(f"The sandbox does not start ({how}): {said} {ADVICE}")
    return _read(source, first, seconds, MOST, sandboxed=sandboxed)


def _read(
    source: int, first: psutil.Process, seconds: float, most: int, *, sandboxed: bool
) -> tuple[bytes, str]:
    """Read at most so many bytes within so much CPU time; what was read, and how it ended."""
    data = bytearray()
    ready = select.poll()
    ready.register(source, select.POLLIN)
    computed, now = _computed(first), time.monotonic()
    end, look = now + PATIENCE * seconds, now + PAUSE
    while (now := time.monotonic()) < end:
        if now >= look:
            used = _computed(first) - computed
            excess = "time" if used > seconds else _excess(first, sandboxed)
            if excess:
                return bytes(data), excess
            look = time.monotonic() + PAUSE
        if ready.poll(max(0, 1000 * (min(end, look) - now))):
            chunk = os.read(source, min(1 << 20, most - len(data)))
            data += chunk
            how = _state(data) if chunk else "crashed"
            if how or len(data) == most:
                return bytes(data), how or "output"
    return bytes(data), "waiting"


def _computed(first: psutil.Process) -> float:
    """The CPU time of a sandbox in seconds, with that of its processes which have ended."""
    used = 0.0
    for process in _tree(first):
        with contextlib.suppress(psutil.Error):
            used += sum(process.cpu_times()[:4])  # its own, user and system, and its children's
    return used


def _excess(first: psutil.Process, sandboxed: bool) -> str:
    """Of what it uses too much: "memory", "processes", "files" (of a sandbox that stands) or ""."""
    tree = _tree(first)
    if len(tree) > PROCESSES:
        return "processes"
    used = 0
    for process in tree:
        with contextlib.suppress(psutil.Error):
            used += process.memory_info().rss
    if used > MEMORY:
        return "memory"
    return "files" if sandboxed and _files(first) > FILES else ""


def _files(first: psutil.Process) -> int:
    """How many files lie in the sandbox's /tmp."""
    try:
        found = os.statvfs(f"/proc/{first.pid}/root/tmp")
    except OSError:  # it has ended
        return 0
    return found.f_files - found.f_ffree


def _state(data: bytes | bytearray) -> str:
    """How reading has ended: "" while more is to come."""
    if READY.startswith(data):
        return ""
    found = BEGIN.match(data)
    if found is None:
        return "" if STARTED.fullmatch(data) else "garbled"
    text, arrays = struct.unpack("<QQ", found[1])
    if text > REPORTED or arrays > WRITTEN:
        return "output"
    return "finished" if len(data) >= found.end() + text + arrays else ""


def _outcome(
    data: bytes, how: str, task: Task, cases: Sequence[Case], cells: Sequence[str]
) -> Outcome:
    """What an answer says, as far as it has the form of one."""
    nothing: list[Output | None] = [None] * len(cases)
    found = BEGIN.match(data)
    if how != "finished" or found is None:
        cell = 0 if b"|" in data[: len(cells) + 1] else min(data.count(b"."), len(cells) - 1) + 1
        return Outcome(nothing, [""] * len(cases), how, cell=cell)
    text, arrays = struct.unpack("<QQ", found[1])
    try:
        reply = json.loads(data[found.end() : found.end() + text])
        tensors = _tensors(data[found.end() + text : found.end() + text + arrays])
        return _said(reply, tensors, task.exercise, cases, cells)
    except Exception:  # of any kind: somebody made it who may want that
        return Outcome(nothing, [""] * len(cases), "garbled")


def _said(
    reply: Any,
    tensors: dict[str, Array],
    exercise: Exercise,
    cases: Sequence[Case],
    cells: Sequence[str],
) -> Outcome:
    """What a reply of the driver's says. May raise anything if it is not the driver's."""
    reports, errors, student = (reply[key] for key in ("cases", "errors", "student"))
    outputs = [_output(tensors, number, exercise.returns) for number in range(len(cases))]
    said, changed = [troubles.NONE] * len(cases), []
    for number, report in enumerate(reports[: len(cases)]):
        if outputs[number] is None:
            said[number] = troubles.trouble(report, exercise, cases[number], cells, errors)
        changed += troubles.changed(report, exercise)
    kind = next((one.kind for one in said if one.text), "")
    named = student.encode("utf-8", "replace").decode()  # it may hold half a character
    texts = [one.text for one in said]
    return Outcome(outputs, texts, "finished", tuple(dict.fromkeys(changed)), kind, named)


def _tensors(data: bytes) -> dict[str, Array]:
    """Arrays of numbers or booleans by their names. Raises if the bytes are none."""
    if int.from_bytes(data[:8], "little") > REPORTED:
        raise ValueError("too many names")
    return {name: array for name, array in load(data).items() if array.dtype.kind in "biuf"}


def _output(tensors: dict[str, Array], number: int, returns: tuple[str, ...]) -> Output | None:
    parts = [tensors.get(f"{number}.{part}") for part in range(len(returns) or 1)]
    whole = tuple(part for part in parts if part is not None)
    if len(whole) < len(parts):
        return None
    return whole if returns else whole[0]
