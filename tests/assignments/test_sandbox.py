"""The grader: every submission is contained and graded as it deserves, and nothing else changes."""

import contextlib
import errno
import hashlib
import json
import os
import platform
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import attention_lib
import figures
from assignments.grader import grade, processors, sandbox, seccomp, troubles
from assignments.grader.flags import flags
from assignments.grader.grade import Mark, grade_batch, grade_notebook
from assignments.grader.sandbox import Outcome, SandboxMissing, run
from assignments.grader.stub import member
from assignments.tasks import Assignment, Task
from attention_lib.checks import Exercise, diagnose, exercises
from attention_lib.checks.engine import Array, Case
from attention_lib.checks.hints import hint
from benchmarks import grading
from tests.assignments.submissions import (
    FAILING,
    GUARDED,
    HARMFUL,
    HARMLESS,
    OTHERS_RIGHT,
    QUESTION,
    REACHING,
    RIGHT,
    Failing,
)

pytestmark = pytest.mark.needs("bubblewrap")

TASK = Task(exercises()[QUESTION])
SLOT = 1000 + os.getpid()  # nobody else's processes count
SEED = 11


def doubled(n: int, *, predicted: str = "right") -> tuple[Array, Array]:
    """The reference of a question with numbers of one's own."""
    return np.asarray(2.0 * n if predicted == "right" else n), np.asarray(2.0 * n)


def own_number(student: str) -> Case:
    return (sum(student.encode()),)


NUMBERS = Task(
    Exercise(
        name="doubled",
        reference=doubled,
        settings={"predicted": {"n": "You predicted n. It is twice that."}},
        inputs=lambda rng, trial: (1,),
        returns=("predicted", "measured"),
        rtol=0.01,
    ),
    numbers=own_number,
)
ASSIGNMENT = Assignment("pointing", "A test", 1, 5, (TASK, NUMBERS))
POINTS = {QUESTION: 4.0, "doubled": 3.0}


def notebook(*cells: str) -> Any:
    return new_notebook(cells=[new_code_cell(cell) for cell in cells])  # type: ignore[no-untyped-call]


def marks(
    *cells: str,
    task: Task = TASK,
    student: str = "ada",
    sandboxed: bool = True,
    seconds: float = 10,
) -> Mark:
    """The mark of one question."""
    return grade_notebook(
        notebook(*cells),
        replace(ASSIGNMENT, tasks=(task,)),
        seed=SEED,
        student=student,
        sandboxed=sandboxed,
        slot=SLOT,
        seconds=seconds,
        points=POINTS,
    )[0]


def outcome(*cells: str, task: Task = TASK, seconds: float = 10.0) -> Outcome:
    return run(cells, task, task.cases(SEED, "ada"), seconds=seconds, slot=SLOT)


def number(expression: str) -> Any:
    """What an expression gives inside the sandbox."""
    found = outcome(f"def {QUESTION}(*case):\n    return {expression}").outputs[0]
    assert isinstance(found, np.ndarray)
    return found.item()


def survivors() -> list[psutil.Process]:
    """Processes of the sandbox that still run: children of ours or, as root, of its user."""
    found = psutil.Process().children(recursive=True)
    for process in psutil.process_iter():
        try:
            found += [process] if process.uids().real == sandbox.FIRST_USER + SLOT else []
        except psutil.Error:
            continue
    return [one for one in found if one.status() != psutil.STATUS_ZOMBIE]


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder with its hash and the time of its last change."""
    return {
        str(path.relative_to(folder)): f"{path.stat().st_mtime_ns} "
        + (hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home directory with a course in it; whatever a test runs, it stays as it is."""
    home = tmp_path / "home"
    for name in ("source/pointing/pointing.ipynb", "gradebook.db", "submitted/eve/secret.ipynb"):
        (home / "course" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / "course" / name).write_text(f"{name}: nobody's business", encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    before = contents(home)
    yield home
    assert contents(home) == before
    assert survivors() == []


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server on this machine that nobody may reach."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        yield server


def reaching(name: str, home: Path, server: socket.socket) -> str:
    return REACHING[name].format(
        secret=home / "course" / "gradebook.db",
        folder=home / "course",
        port=server.getsockname()[1],
        process=os.getpid(),
    )


@pytest.mark.parametrize("name", REACHING)
def test_nothing_outside_is_in_reach(name: str, canary: Path, listener: socket.socket) -> None:
    mark = marks(reaching(name, canary, listener), GUARDED)
    assert (mark.points, mark.advice) == (4.0, "Correct.")
    with pytest.raises(TimeoutError):
        listener.accept()


@pytest.mark.parametrize("name", REACHING)
def test_without_a_sandbox_the_same_attack_succeeds(
    name: str, tmp_path: Path, listener: socket.socket
) -> None:
    """So the attack would be seen if the sandbox let it through."""
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "gradebook.db").write_text("marks", encoding="utf-8")
    assert marks(reaching(name, tmp_path, listener), GUARDED, sandboxed=False).points == 0


INSIDE = {**HARMLESS, **HARMFUL}


@pytest.mark.parametrize("name", INSIDE)
def test_what_is_tried_inside_stays_inside(name: str, canary: Path) -> None:
    mark = marks(INSIDE[name], GUARDED)
    assert (mark.points, mark.advice) == (4.0, "Correct.")


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_ones_without_a_sandbox(name: str) -> None:
    if name != "kills its parent":
        assert marks(HARMLESS[name], GUARDED, sandboxed=False).points == 4


SAID = {  # what the advice says of each kind
    "changed": "^The values are right",
    "blank": "^It is not written|^There is no ",
    "time": "did not finish",
    "stopped": "took more|started more|wrote more|gave more|ended Python|something else where",
    "raised": "^It raises|^It waits for input",
    "shape": "has shape|of type|expected",
}


@pytest.mark.parametrize("case", FAILING, ids=lambda case: case.name)
def test_what_comes_to_nothing_is_told_why(case: Failing, canary: Path) -> None:
    mark = marks(case.code, seconds=case.seconds)
    assert mark.points == 0
    assert case.says in mark.advice
    words = (kind for kind, said in SAID.items() if re.search(said, mark.advice))
    assert mark.kind == ("known" if mark.settings else next(words, "values"))
    assert len(mark.advice) < 700
    assert mark.advice.isprintable()


@pytest.mark.parametrize("name", OTHERS_RIGHT)
def test_other_right_answers(name: str, canary: Path) -> None:
    assert marks(OTHERS_RIGHT[name]).advice == "Correct."


# Time


def test_time_is_what_a_submission_computes_and_not_what_it_waits_for() -> None:
    assert marks("import time\ntime.sleep(1)\n" + RIGHT, seconds=0.8).points == 4
    computes = "import time\nwhile time.process_time() < 3: pass\n"
    assert marks(computes + RIGHT, seconds=0.8).kind == "time"


def test_what_its_processes_compute_counts_also_when_they_have_ended() -> None:
    child = "import subprocess, sys\nwork = 'import time\\nwhile time.process_time() < .3: pass'\n"
    child += "for _ in range(9): subprocess.run([sys.executable, '-S', '-c', work])\n"
    assert marks(child + RIGHT, seconds=1.2).kind == "time"


def test_who_waits_for_ever_is_stopped_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sandbox.PATIENCE >= 10
    monkeypatch.setattr(sandbox, "PATIENCE", 1)
    mark = marks("import time\ntime.sleep(999)\n" + RIGHT, seconds=0.8)
    assert (mark.kind, mark.points) == ("time", 0)
    assert "waited for something that never came" in mark.advice


def test_torch_is_there_before_the_time_begins() -> None:
    loaded = "float('torch' in __import__('sys').modules)"
    cell = f"import numpy, torch\ndef {QUESTION}(*case):\n    return {loaded}"
    assert outcome(cell, seconds=0.5).outputs[0] == 1
    assert number(loaded) == 0


def test_what_ran_out_of_time_beside_others_is_marked_once_more_alone(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine on which two at once always run out of time."""
    names = ("ada", "bob", "eve")
    for name in names:
        hand_in(course, name, whole(name))
    busy = threading.Barrier(2)

    def crowded(cells: Sequence[str], task: Task, *given: Any, **options: Any) -> Outcome:
        with contextlib.suppress(threading.BrokenBarrierError):
            busy.wait(timeout=0.3)
            return Outcome([None] * 6, [""] * 6, "time")
        busy.reset()
        return run(cells, task, *given, **options)

    monkeypatch.setattr(grade, "run", crowded)
    found = read(grade_batch(course, "pointing", seed=SEED, workers=2))
    for name in names:
        assert [mark["points"] for mark in found[name]["questions"]] == [4, 3]


@pytest.mark.slow
def test_a_busy_machine_costs_nobody_a_mark(tmp_path: Path) -> None:
    """Twelve at once, each with torch in an answer, beside a busy loop on each processor."""
    source = json.loads((grade.SOURCES / "pointing.ipynb").read_text(encoding="utf-8"))
    answer = next(one for one in source["cells"] if "def stored_keys_attention" in str(one))
    answer["source"] = ["import torch\n", *answer["source"]]
    for number in range(12):
        hand_in(tmp_path, f"student{number}", json.dumps(source).encode())
    loop = [sys.executable, "-c", "while True: pass"]
    with contextlib.ExitStack() as stack:
        for _ in range(processors.available()):
            stack.callback(stack.enter_context(subprocess.Popen(loop)).kill)
        found = read(grade_batch(tmp_path, "pointing", workers=12))
    full = [*grade.points_of(grade.SOURCES / "pointing.ipynb").values()]
    for name, one in found.items():
        assert [mark["points"] for mark in one["questions"]] == full, name
    assert len(found) == 12


def test_processors_are_those_that_may_be_used(tmp_path: Path) -> None:
    groups, system = tmp_path / "cgroup", tmp_path / "system"
    allowed = len(os.sched_getaffinity(0))
    assert processors.available(groups, system) == allowed

    def limited(line: str, **files: str) -> int:
        groups.write_text(f"9:name=systemd:/\n{line}\n")
        for name, text in files.items():
            path = system / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return processors.available(groups, system)

    assert limited("0::/a/b", a__cpu_dot_max="50000 100000\n", a__b__cpu_dot_max="max 100000") == 1
    assert limited("0::/a/b", a__cpu_dot_max="900000 100000") == min(9, allowed)
    quota = {"cpu,cpuacct__cpu_dot_cfs_quota_us": "-1", "cpu,cpuacct__cpu_dot_cfs_period_us": "9"}
    assert limited("4:cpu,cpuacct:/x", **quota) == allowed
    quota |= {
        "cpu,cpuacct__x__cpu_dot_cfs_quota_us": "7",
        "cpu,cpuacct__x__cpu_dot_cfs_period_us": "9",
    }
    assert limited("4:cpu,cpuacct:/x", **quota) == 1
    os.sched_setaffinity(0, [min(before := os.sched_getaffinity(0))])
    try:
        assert processors.available() == 1
    finally:
        os.sched_setaffinity(0, before)


# One answer and the others


BREAKS = {
    "json and NumPy are changed": "import json, numpy as np\njson.dumps = json.encoder = np.exp = np.where = None",
    "it never ends": "while True: pass",
    "it ends Python": "import os\nos._exit(0)",
    "it raises": "1 / 0",
}


@pytest.mark.parametrize("name", BREAKS)
def test_an_answer_that_breaks_what_all_use_costs_its_own_points_only(name: str) -> None:
    n = own_number("ada")[0]
    book = notebook(BREAKS[name], RIGHT, f"STUDENT = 'ada'\npredicted = measured = {2 * n}")
    for cell, label in zip(book.cells, ("doubled", QUESTION, "name"), strict=True):
        cell.metadata["nbgrader"] = {"grade_id": label, "solution": True}
    found = grade_notebook(book, ASSIGNMENT, seed=SEED, student="ada", points=POINTS, seconds=0.7)
    assert found[0].points == 4, found[0].advice
    book.cells[0].metadata["nbgrader"] = {}
    again = grade_notebook(book, ASSIGNMENT, seed=SEED, student="ada", points=POINTS, seconds=0.7)
    assert again[0].points == 4 * (name == "it raises")


def test_an_answer_may_use_another() -> None:
    book = notebook(
        "def helper(w, v): return w @ v",
        RIGHT.replace("True) @ v", "True)").replace("return w /", "return helper(w /").rstrip()
        + ", v)",
    )
    for cell, label in zip(book.cells, ("doubled", QUESTION), strict=True):
        cell.metadata["nbgrader"] = {"grade_id": label, "solution": True}
    found = grade_notebook(book, ASSIGNMENT, seed=SEED, student="ada", points=POINTS)
    assert found[0].advice == "Correct."


def test_a_helper_below_an_import_that_failed_is_explained() -> None:
    helper = "import scipy_or_else\ndef helper(w): return w"
    advice = marks(
        "1 / 0", helper, RIGHT.replace("    return w /", "    return helper(w) /")
    ).advice
    assert "name 'helper' is not defined" in advice
    assert "Its cell raises ModuleNotFoundError in line 1, `import scipy_or_else`" in advice
    assert "Only NumPy and torch are there." in advice
    assert "ZeroDivisionError" not in advice


def test_one_known_mistake_may_earn_a_part() -> None:
    unscaled = RIGHT.replace(" / np.sqrt(q.shape[-1])", "")
    two = unscaled.replace("keepdims=True) @ v", "keepdims=True) @ k")
    for code, partial, points in (
        (unscaled, 0.0, 0),
        (unscaled, 0.5, 2),
        (two, 0.5, 0),
        (RIGHT, 0.5, 4),
    ):
        book, one = notebook(code), replace(ASSIGNMENT, tasks=(TASK,))
        (mark,) = grade_notebook(book, one, seed=SEED, student="a", points=POINTS, partial=partial)
        assert mark.points == points
        assert ("you keep 2 of 4 points" in mark.advice) == (points == 2)


def test_a_mistake_is_named() -> None:
    mark = marks(RIGHT.replace(" / np.sqrt(q.shape[-1])", ""))
    assert mark.settings == {"scale": "none"}


def test_rights_are_gone() -> None:
    status = "open('/proc/self/status').read()"
    for line in ("CapPrm", "CapEff", "CapAmb"):
        assert number(f"int({status}.split('{line}:')[1].split()[0], 16)") == 0
    assert number(f"int({status}.split('NoNewPrivs:')[1].split()[0])") == 1
    expected = sandbox.FIRST_USER + SLOT if os.geteuid() == 0 else os.getuid()
    assert number("__import__('os').getuid()") == expected
    assert number("len(__import__('os').getgroups())") <= (0 if os.geteuid() == 0 else 1)


def test_nothing_is_shared_and_every_limit_is_set() -> None:
    spaces = [f"/proc/self/ns/{name}" for name in ("cgroup", "ipc", "mnt", "net", "pid", "uts")]
    count = len(spaces)
    found = outcome(
        f"import os, resource\ndef {QUESTION}(*case):\n"
        f"    limits = [resource.getrlimit(getattr(resource, one)) for one in {[*sandbox.LIMITS]}]\n"
        f"    return [os.stat(one).st_ino for one in {spaces}] + [both[1] for both in limits]"
    ).outputs[0]
    assert isinstance(found, np.ndarray)
    for inside, space in zip(found[:count], spaces, strict=True):
        assert inside != os.stat(space).st_ino, space
    assert found[count:].tolist() == [*sandbox.LIMITS.values()]


CALLS = """
import ctypes
import numpy as np
libc = ctypes.CDLL(None, use_errno=True)
def scaled_dot_product_attention(*case):
    return np.array([libc.syscall(*call) and ctypes.get_errno() for call in {calls}])
"""


def errors_of(calls: Sequence[tuple[int, ...]]) -> list[int]:
    """The number of the error that each system call gives in the sandbox."""
    found = outcome(CALLS.replace("{calls}", repr(calls))).outputs[0]
    assert isinstance(found, np.ndarray)
    return [int(one) for one in found]


def test_system_calls_are_refused() -> None:
    at = list(seccomp.MACHINES).index(platform.machine())
    calls: dict[str, tuple[int, ...]] = {}
    calls |= {name: (numbers[at], 0, 0, 0, 0, 0) for name, numbers in seccomp.REFUSED.items()}
    calls |= {"x32": (seccomp.OTHER_NUMBERS + 39,), "clone": (seccomp.CLONE[at], 0x1000_0011)}
    found = errors_of([*calls.values()])
    assert dict(zip(calls, found, strict=True)) == dict.fromkeys(calls, errno.EPERM)
    assert errors_of([(seccomp.CLONE3[at], 0, 0)]) == [errno.ENOSYS]


def test_threads_and_processes_can_be_started() -> None:
    pool = "__import__('concurrent.futures').futures.ThreadPoolExecutor(2)"
    assert number(f"{pool}.submit(int, 7).result()") == 7
    assert number("__import__('subprocess').run(['/usr/bin/test', 'a']).returncode") == 0


def verdict(machine: str, call: int, *arguments: int, audited: int | None = None) -> int:
    """The error that the filter for a machine gives for a call, 0 for none."""
    code = seccomp.MACHINES[machine] if audited is None else audited
    data = struct.pack("<IIQ6Q", call, code, 0, *arguments, *[0] * (6 - len(arguments)))
    loaded, at = 0, 0
    steps = [*struct.iter_unpack("<HBBI", seccomp.program(machine))]
    while True:
        what, yes, no, value = steps[at]
        at += 1
        if what == seccomp.RETURN:
            return int(value) & 0xFFFF if value != seccomp.ALLOW else 0
        if what == seccomp.LOAD:
            (loaded,) = struct.unpack_from("<I", data, value)
            continue
        holds = {
            seccomp.EQUAL: loaded == value,
            seccomp.AT_LEAST: loaded >= value,
            seccomp.ANY_BIT: loaded & value,
        }
        at += yes if holds[what] else no


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_what_the_filter_of_each_machine_refuses(machine: str) -> None:
    at = list(seccomp.MACHINES).index(machine)
    clone, clone3, mmap = seccomp.CLONE[at], seccomp.CLONE3[at], seccomp.MMAP[at]
    ours = {numbers[at] for numbers in seccomp.REFUSED.values()} | {clone3}
    assert len(ours) == len(seccomp.REFUSED) + 1
    assert {call for call in range(500) if verdict(machine, call)} == ours
    assert verdict(machine, clone3) == errno.ENOSYS
    for other in (0x4000_0003, 0, seccomp.MACHINES[[*seccomp.MACHINES][1 - at]]):
        assert verdict(machine, 0, audited=other) == errno.EPERM
    assert verdict(machine, seccomp.OTHER_NUMBERS) == errno.EPERM
    for bit in (0x2_0000, *(1 << bit for bit in range(25, 31))):
        assert verdict(machine, clone, bit | 17) == errno.EPERM
    assert verdict(machine, clone, 0x3D_0F00) == 0  # a thread
    assert [verdict(machine, mmap, 0, 9, 3, flags) for flags in (0x21, 0x23, 0x22, 0x01)] == [
        *(errno.EPERM, errno.EPERM, 0, 0)
    ]


def test_a_machine_without_a_filter_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    seccomp.program.cache_clear()
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.warns(UserWarning, match=r"riscv64 the sandbox refuses no system calls"):
        assert marks(RIGHT).points == 4


def test_processes_are_limited_before_anybody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "PAUSE", 60)
    forks = """
import os, time
def scaled_dot_product_attention(*case):
    for count in range(1000):
        try: child = os.fork()
        except OSError: return count
        if not child: time.sleep(60)
    return count
"""
    found = outcome(forks).outputs[0]
    assert isinstance(found, np.ndarray)
    assert 8 < found.item() < 2 * sandbox.PROCESSES
    assert survivors() == []


def test_old_kernels_count_what_runs_elsewhere_too() -> None:
    assert sandbox._processes_allowed("6.1.0-18-amd64", root=False) == 2 * sandbox.PROCESSES
    assert sandbox._processes_allowed("5.4.0", root=True) == 2 * sandbox.PROCESSES
    assert sandbox._processes_allowed("5.4.0", root=False) > 8 * sandbox.PROCESSES


def test_only_what_is_needed_can_be_seen() -> None:
    listed = outcome(
        f"import os\ndef {QUESTION}(*case):\n    raise OSError(sorted(os.listdir('/')))"
    )
    for name in ("home", "srv", "var", "media", "mnt", "opt"):
        assert f"'{name}'" not in listed.troubles[0]
    assert "'tmp'" in listed.troubles[0]
    assert number(f"__import__('os').path.exists({str(sandbox.REPOSITORY / 'assignments')!r})") == 0
    # In /tmp is nothing, but the way to Python itself where that lies there.
    own = {
        path.parts[2]
        for path in (Path(sys.prefix), Path(sys.base_prefix))
        if path.parts[1] == "tmp"
    }
    assert number(f"len(set(__import__('os').listdir('/tmp')) - set({sorted(own)!r}))") == 0
    assert (
        number("len([name for name in __import__('os').listdir('/proc') if name.isdigit()])") == 2
    )


def test_an_installed_copy_of_the_library_is_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "site-packages"
    for name in ("attention_lib", "figures", "assignments", "numbers_of_mine"):
        (packages / name).mkdir(parents=True)
        (packages / name / "core.py").write_text("SEEN = 1", encoding="utf-8")
    (packages / "clone" / "tests").mkdir(parents=True)
    monkeypatch.setattr(sandbox, "REPOSITORY", packages / "clone")
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    sandbox._mounts.cache_clear()
    try:
        listing = f"__import__('os').listdir({str(packages)!r} + '/%s')"
        assert number(f"len({listing % 'numbers_of_mine'})") == 1
        for name in ("attention_lib", "figures", "assignments", "clone"):
            assert number(f"len({listing % name})") == 0
        assert number("__import__('numbers_of_mine.core').core.SEEN") == 1
    finally:
        sandbox._mounts.cache_clear()


def test_without_bubblewrap_it_refuses_and_explains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxMissing, match=r"apt install bubblewrap.*--unsandboxed.*delete your"):
        marks(RIGHT)
    assert marks(RIGHT, sandboxed=False).points == 4


def test_where_bubblewrap_may_do_nothing_it_refuses_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text(
        "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"
    )
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SandboxMissing, match=r"uid map: Permission denied.*--unsandboxed"):
        marks(RIGHT)


def test_numbers_of_ones_own() -> None:
    n = own_number("ada")[0]
    right = f"STUDENT = 'ada'\npredicted = {2 * n}\nmeasured = {2 * n + 0.1}"
    assert marks(right, task=NUMBERS).points == 3
    wrong = marks(f"STUDENT = 'ada'\npredicted = {n}\nmeasured = {2 * n}", task=NUMBERS)
    assert (wrong.points, wrong.settings) == (0, {"predicted": "n"})
    assert wrong.advice == "You predicted n. It is twice that."
    other = marks(right, task=NUMBERS, student="bob_1234")
    assert (other.points, other.named) == (3, "ada")
    assert marks(right.replace("ada", "bob"), task=NUMBERS).points == 0
    assert "STUDENT is empty" in marks(right.replace("ada", " "), task=NUMBERS).advice
    assert "no measured in" in marks("predicted = 1", task=NUMBERS).advice
    assert "not written yet" in marks("predicted = measured = ...", task=NUMBERS).advice
    assert "(int, str)" in marks("predicted = 1; measured = '2'", task=NUMBERS).advice


def test_a_name_that_a_file_system_took_apart() -> None:
    cell = f"STUDENT = 'zoé'\npredicted = measured = {2 * own_number('zoé')[0]}"
    mark = marks(cell, task=NUMBERS, student=unicodedata.normalize("NFD", "zoé"))
    assert (mark.points, mark.named) == (3, "zoé")


@pytest.mark.parametrize(
    "change",
    [
        "f = {task}\ndef {task}(*case): return tuple(f(*case))",
        "f = {task}\ndef {task}(*case): return list(f(*case))",
        (
            "import torch\nf = {task}\ndef {task}(*case):\n"
            "    return [torch.tensor(row, requires_grad=True) for row in f(*case)]"
        ),
        "get_ipython().run_line_magic('matplotlib', 'inline')",
        "import asyncio\nawait asyncio.sleep(0)",
        "found = !ls -l \\\n    -a\n!echo \\\n  x \\\n  y",
    ],
    ids=["tuple", "list", "tensors", "get_ipython", "await", "continued magic"],
)
def test_what_runs_in_jupyter_costs_nothing(change: str) -> None:
    mark = marks(RIGHT, change.replace("{task}", QUESTION))
    assert (mark.points, mark.advice) == (4, "Correct.")


def test_half_precision_of_torch_arrives() -> None:
    found = outcome(
        f"import torch\ndef {QUESTION}(*case): return torch.ones(2, dtype=torch.bfloat16)"
    )
    assert isinstance(found.outputs[0], np.ndarray)
    assert found.outputs[0].tolist() == [1, 1]


def test_a_package_that_is_not_there_is_named_with_those_that_are() -> None:
    advice = marks("import scipy_or_else\n" + RIGHT).advice
    assert "No module named 'scipy_or_else'. Only NumPy and torch are there." in advice


@pytest.mark.parametrize("module", [attention_lib, figures], ids=lambda module: module.__name__)
def test_every_name_can_be_imported_and_nothing_computes_attention(module: Any) -> None:
    cell = f"from {module.__name__} import {', '.join(module.__all__)}\n"
    assert marks(cell + RIGHT).points == 4
    for name in ("attention", "tiled_attention", "MultiHeadAttention", "causal_mask"):
        with pytest.raises(NotImplementedError):
            member("attention_lib", name)()


@pytest.mark.filterwarnings("ignore:invalid value")
def test_the_stubs_softmax_is_the_librarys() -> None:
    scores = np.random.default_rng(3).normal(size=(3, 5, 7))
    scores[:, 1], scores[0, 2, 3] = -np.inf, -np.inf
    for axis in (-1, 1):
        expected = attention_lib.softmax(scores, axis)
        np.testing.assert_allclose(member("attention_lib", "softmax")(scores, axis), expected)


def test_flags() -> None:
    code = """
import torch, os.path
import torch.nn.functional as F
from attention_lib import attention as a, softmax
from attention_lib.checks import check
from torch.nn import MultiheadAttention
np.allclose = len
F.scaled_dot_product_attention(q, k, v)
"""
    assert flags([code, "%time import subprocess"]) == (
        "assigns to np.allclose",
        "imports os",
        "names subprocess",
        "uses attention_lib.attention",
        "uses attention_lib.softmax",
        "uses scaled_dot_product_attention",
        "uses torch.nn.MultiheadAttention",
    )
    assert flags([RIGHT, "from attention_lib.checks import check", "%matplotlib inline"]) == ()
    assert flags(["(" * 100_000, "\0", "\ud800"]) == ()
    assert marks("import os\n" + RIGHT).flags == ("imports os",)


@pytest.mark.parametrize("cells", [["import os\n" + "a\n" * 500_000], ["import os"] * 50_000])
def test_what_is_too_long_to_parse_is_searched_for_words(cells: list[str]) -> None:
    begin = time.process_time()
    assert "names os" in flags(cells)
    assert time.process_time() - begin < 1.5


SLOW = {
    "a sum without end": ("could not be broadcast", ".sum(a ," * 30_000),
    "spaces in a sum": ("could not be broadcast", ".sum(a" + " " * 30_000 + ".sum("),
    "a function without end": ("size 12 is different from 4", "def " * 30_000),
    "digits": ("not aligned " + "1" * 60_000, "@"),
}


@pytest.mark.parametrize("name", SLOW)
def test_no_text_makes_a_hint_slow(name: str) -> None:
    message, code = SLOW[name]
    begin = time.process_time()
    hint(message, code, 3, 3, "W")
    assert time.process_time() - begin < 1


def test_hints_see_the_end_of_what_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(message: str, code: str, axes: int, heads: int, product: str) -> str:
        return f"Seen: {len(message)}, {len(code)}, {len(product)}, {code[-3:]}."

    monkeypatch.setattr(troubles, "hint", measured)
    cell = "x" * 90_000 + "END"
    report = {"kind": "raised", "message": "m" * 90_000, "file": "<cell 0>", "line": 1}
    case = TASK.cases(SEED, "ada")[0]
    for place, seen in (([1, 1, 0, 90_003], "5000, END"), ([], "0, END")):
        said = troubles.trouble(report | {"place": place}, TASK.exercise, case, [cell], [])
        assert f"Seen: 2000, 5000, {seen}." in said.text


# What a driver may be made to say


def answered(reply: Any) -> Outcome:
    """What comes of a reply of the driver's."""
    text, arrays = json.dumps(reply).encode(), struct.pack("<Q", 2) + b"{}"
    data = b".|" + struct.pack("<QQ", len(text), len(arrays)) + text + arrays
    return sandbox._outcome(data, "finished", TASK, TASK.cases(SEED, "ada"), [RIGHT])


REPLY = {"errors": [], "student": "ada", "cases": [{"kind": "missing", "names": ["a"]}]}


@pytest.mark.parametrize("change", [{"errors": 5}, {"student": []}, {"cases": {}}], ids=str)
def test_a_reply_of_other_types_is_garbled(change: dict[str, Any]) -> None:
    assert answered(REPLY).troubles[0] == "There is no a in the notebook."
    assert answered(REPLY | change).how == "garbled"


KINDS = st.sampled_from(["raised", "blank", "missing", "misfit"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(), part, max_size=3),
    max_leaves=5,
)
REPORT = {
    "kind": KINDS,
    "file": st.just("<cell 0>"),
    "line": st.integers(-2, 9),
    "function": st.integers(-2, 9),
    "place": st.lists(st.integers(-2, 9), min_size=4, max_size=4),
    "names": st.lists(ANYTHING, max_size=2),
    "types": st.lists(ANYTHING, max_size=2),
    "changed": st.lists(st.integers(-2, 9) | ANYTHING, max_size=2),
    **dict.fromkeys(("type", "message", "tuple"), ANYTHING),
}
REPORTS = st.lists(
    ANYTHING
    | st.fixed_dictionaries({}, optional={name: one | ANYTHING for name, one in REPORT.items()}),
    max_size=3,
)


@given(
    ANYTHING | st.fixed_dictionaries({"errors": REPORTS, "student": st.text(), "cases": REPORTS})
)
def test_no_reply_raises(reply: Any) -> None:
    found = answered(reply)
    assert found.how in ("finished", "garbled")
    assert all(one.isprintable() for one in found.troubles)


def test_cells_that_mark_are_not_run() -> None:
    cell = new_code_cell("1 / 0")  # type: ignore[no-untyped-call]
    cell.metadata["nbgrader"] = {"grade_id": f"{QUESTION}-check", "points": 1000}
    odd: list[Any] = [None, 7, {}, {"cell_type": "code", "source": None, "metadata": 3}, cell]
    odd += [new_markdown_cell("x = "), {"cell_type": "code", "source": [RIGHT, 3]}]  # type: ignore[no-untyped-call]
    book = new_notebook()  # type: ignore[no-untyped-call]
    book["cells"] = odd
    assert list(grade._code(book, {f"{QUESTION}-check"})) == [("", ""), ("", RIGHT)]


# A batch


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course with one assignment of two questions, and nothing handed in."""
    checks = []
    for name, points in POINTS.items():
        check = new_code_cell()  # type: ignore[no-untyped-call]
        check.metadata["nbgrader"] = {"grade": True, "grade_id": f"{name}-check", "points": points}
        checks.append(check)
    hand_in(tmp_path / "course", "source", json.dumps(new_notebook(cells=checks)).encode(), ".")  # type: ignore[no-untyped-call]
    monkeypatch.setattr(grade, "assignments", lambda: {"pointing": ASSIGNMENT})
    return tmp_path / "course"


def hand_in(course: Path, student: str, data: bytes, under: str = "submitted") -> None:
    path = course / under / student / "pointing" / "pointing.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def whole(student: str) -> bytes:
    n = own_number(student)[0]
    numbers = f"STUDENT = {student!r}\npredicted = measured = {2 * n}"
    return json.dumps(notebook(RIGHT, numbers)).encode()


def read(paths: Sequence[Path]) -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


BROKEN = {
    "nothing in it": (b"", "The file is empty."),
    "not json": (b"\x89PNG \xff", "The file is not a notebook."),
    "a list": (b"[]", "The file is not a notebook."),
    "deep": (b"[" * 100_000, "The file is not a notebook."),
    "cells of text": (b'{"cells": "print"}', "The file is not a notebook."),
    "long number": (b"9" * 10_000, "The file is not a notebook."),
}


def test_a_batch_survives_every_notebook(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(grade, "LARGEST", 200_000)
    for name, (data, _) in BROKEN.items():
        hand_in(course, name, data)
    hand_in(course, "huge", b"[" + b" " * 300_000)
    names = ("zoé", "李 小龙", "an na", "o'hara")
    for name in names:
        hand_in(course, name, whole(name))
    hand_in(
        course, "odd", json.dumps({"cells": [None, {"cell_type": "code", "source": 3}]}).encode()
    )
    hand_in(course, "half", json.dumps({"cells": [new_code_cell("'\ud800'")]}).encode())  # type: ignore[no-untyped-call]
    (course / "submitted" / "link" / "pointing").mkdir(parents=True)
    (course / "submitted" / "link" / "pointing" / "pointing.ipynb").symlink_to("/etc/passwd")
    found = read(grade_batch(course, "pointing", seed=SEED, workers=2))
    assert len(found) == len(BROKEN) + 8
    for name, (data, remark) in BROKEN.items():
        assert found[name]["remark"] == remark
        assert found[name]["notebook sha256"] == hashlib.sha256(data).hexdigest()
        assert [mark["points"] for mark in found[name]["questions"]] == [0, 0]
        assert [mark["out_of"] for mark in found[name]["questions"]] == [4, 3]
    for name in names:
        assert [mark["points"] for mark in found[name]["questions"]] == [4, 3], name
        assert found[name]["student"] == name
        assert found[name]["remark"] == ""
    assert "larger than" in found["huge"]["remark"]
    assert found["link"]["remark"].endswith("is a link, and links are not followed.")
    assert "no function" in found["odd"]["questions"][0]["advice"]
    assert f"{len(found)}/{len(found)}" in capsys.readouterr().err


def test_an_error_of_ours_stops_no_batch(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ada", "bob"):
        hand_in(course, name, whole(name))

    def failing(exercise: Exercise, *given: Any, **options: Any) -> Any:
        if exercise is TASK.exercise:
            raise ArithmeticError("a fault")
        return diagnose(exercise, *given, **options)

    monkeypatch.setattr(grade, "diagnose", failing)
    found = read(grade_batch(course, "pointing", seed=SEED, workers=1))
    assert {record["remark"] for record in found.values()} == {
        "It could not be marked: ArithmeticError: a fault"
    }


def test_marking_again_gives_the_same_bytes(course: Path) -> None:
    for name in ("ada", "bob", "eve"):
        hand_in(course, name, whole("ada"))
    failing = [case.code for case in FAILING if case.name in ("raises, with a hint", "crashes")]
    for name, code in zip(("fay", "gus"), failing, strict=True):
        hand_in(course, name, json.dumps(notebook(code)).encode())
    first = [path.read_bytes() for path in grade_batch(course, "pointing", workers=2)]
    seed = json.loads((course / "grading" / "pointing" / "seed.json").read_bytes())["seed"]
    assert [path.read_bytes() for path in grade_batch(course, "pointing", workers=1)] == first
    paths = grade_batch(course, "pointing", students=["eve"], workers=1, seed=seed)
    assert [path.read_bytes() for path in paths] == first[2:3]
    other = grade_batch(course, "pointing", students=["eve"], workers=1, seed=seed + 1)
    assert other[0].read_bytes() != first[2]
    assert {path.name for path in paths[0].parent.iterdir()} == {
        *("seed.json", "ada.json", "bob.json", "eve.json", "fay.json", "gus.json")
    }


def test_who_handed_nothing_in_is_named(course: Path) -> None:
    hand_in(course, "ada", whole("ada"))
    with pytest.raises(ValueError, match=r"handed in by bob, eve"):
        grade_batch(course, "pointing", students=["eve", "ada", "bob"])
    hand_in(course, "seed", whole("seed"))
    with pytest.raises(ValueError, match=r"called seed"):
        grade_batch(course, "pointing")


def test_a_missing_sandbox_stops_the_batch(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hand_in(course, "ada", whole("ada"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SandboxMissing):
        grade_batch(course, "pointing", seed=SEED)
    assert not (course / "grading").exists()


@pytest.mark.slow
def test_a_hundred_submissions_in_three_minutes_and_constant_memory(tmp_path: Path) -> None:
    seconds, megabytes = grading.measure(tmp_path)
    assert seconds < grading.SECONDS
    assert megabytes < grading.MEGABYTES
    found = read(sorted(tmp_path.glob(f"grading/{grading.NAME}/student*.json")))
    full = [all(mark["points"] for mark in one["questions"]) for one in found.values()]
    assert (len(full), sum(full)) == (grading.ALL, 87)


# Everybody's rights


ORDINARY = 65534
DROP = "import os, sys; os.setgroups([]); os.setgid({0}); os.setuid({0}); os.execv(*[sys.argv[1], sys.argv[1:]])"


def as_ordinary_user(command: Sequence[str]) -> list[str]:
    """The command for somebody without rights who can read this interpreter and these files."""
    if os.geteuid():
        return list(command)
    closed: dict[Path, list[Path]] = {}
    for path in (Path(sys.base_prefix), Path(sys.prefix), sandbox.REPOSITORY):
        shut = [one for one in path.parents if not one.stat().st_mode & 0o001]
        if shut:
            closed.setdefault(shut[-1], []).append(path)
    view = ["bwrap", "--dev-bind", "/", "/"]
    for folder, paths in closed.items():
        view += ["--perms", "0755", "--tmpfs", str(folder)]
        for path in sorted(paths):
            for parent in reversed(path.parents):
                if parent != folder and parent.is_relative_to(folder):
                    view += ["--perms", "0755", "--dir", str(parent)]
            view += ["--ro-bind", str(path), str(path)]
    return [*view, "--", sys.executable, "-c", DROP.format(ORDINARY), *command]


def rerun(*options: str) -> str:
    """Run tests of this file as an ordinary user; what pytest says."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    environment = {**os.environ, "HOME": "/tmp", "TMPDIR": "/tmp"}
    done = subprocess.run(
        as_ordinary_user([*command, *options]),
        cwd=sandbox.REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_holds_for_an_ordinary_user() -> None:
    chosen = "in_reach or rights or processes_are_limited or forks or 100 or becomes or fills or "
    chosen += "system_calls or files or lists_the or every_limit"
    assert "passed" in rerun("-k", f"({chosen}) and not without_a and not ordinary")


@pytest.mark.slow
def test_all_of_it_holds_for_an_ordinary_user() -> None:
    assert "passed" in rerun("-k", "not ordinary")
