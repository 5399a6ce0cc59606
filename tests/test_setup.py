"""The first commands a reader types, and what they install."""

from __future__ import annotations

import importlib.metadata
import itertools
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.notebooks import ROOT
from tests.once import FOLDER
from tests.skips import main as check_skips
from tests.skips import refused

PINNED = re.compile(r"([A-Za-z0-9._-]+)==([0-9][A-Za-z0-9.!]*)")


def canonical(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def lines(name: str) -> list[str]:
    """The lines of a file without comments and empty ones."""
    text = (ROOT / name).read_text(encoding="utf-8")
    bare = (re.sub(r"(^|\s)#.*", "", line).rstrip() for line in text.splitlines())
    return [line for line in bare if line]


def pins() -> dict[str, str]:
    """The versions in constraints.txt by canonical name."""
    found = {}
    for line in lines("constraints.txt"):
        match = PINNED.fullmatch(line)
        assert match, f"not an exact version: {line}"
        found[canonical(match[1])] = match[2]
    return found


def make(*arguments: str, path: str | None = None, folder: Path = ROOT) -> tuple[int, str]:
    """The exit status of make and what it said; `path` replaces PATH."""
    ours = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "EXTRAS", "ARGS", "VENV", "PYTHON")
    environment = {k: v for k, v in os.environ.items() if k not in ours}
    environment |= {} if path is None else {"PATH": path}
    done = subprocess.run(
        [str(tool("make")), "-f", str(ROOT / "Makefile"), *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def tool(name: str) -> Path:
    """Where a program lies; skips the test where the machine lacks it."""
    for folder in os.environ["PATH"].split(os.pathsep):
        if (Path(folder) / name).exists():
            return Path(folder) / name
    pytest.skip(f"needs {name}, which this machine lacks")


def fake(folder: Path, name: str, script: str) -> Path:
    """A program made of a shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


# --- make


def test_make_alone_explains_every_command() -> None:
    status, said = make()
    targets = re.findall(r"(?m)^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert status == 0
    assert set(targets) >= {"help", "lab", "read", "book", "test", "test-slow"} | {
        "notebooks",
        "bench",
        "clean",
    }
    assert all(re.search(rf"^  make {name} ", said, re.MULTILINE) for name in targets)


def test_no_python_gets_a_clear_sentence(tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name in ("sh", "test", "sed", "awk", "echo"):
        (bin_ / name).symlink_to(tool(name))
    status, said = make("lab", "VENV=.none", path=str(bin_), folder=with_project(tmp_path))
    assert status != 0
    assert "needs Python 3.11 or newer, and none was found" in said


OLD = """case "$*" in *version_info*) exit 1;; -V) echo "Python 3.9.2";; esac"""
BARE = """case "$*" in *ensurepip*) exit 1;; esac"""


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (OLD, "needs Python 3.11 or newer; {python} is Python 3.9.2."),
        (BARE, "On Debian or Ubuntu: sudo apt install python3-venv"),
        ("exit 3", "PYTHON={python} cannot be run."),
    ],
)
def test_a_python_that_will_not_do_gets_a_clear_sentence(
    tmp_path: Path, script: str, sentence: str
) -> None:
    python = fake(tmp_path, "python3", script)
    folder = with_project(tmp_path)
    status, said = make("test", "VENV=.none", f"PYTHON={python}", folder=folder)
    assert status != 0
    assert sentence.format(python=python) in said
    assert not (folder / ".none").exists()


def test_the_first_python_that_is_new_enough_is_taken(tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    fake(bin_, "python3", OLD)
    fake(bin_, "python3.12", "exit 0")
    path = f"{bin_}{os.pathsep}{os.environ['PATH']}"
    folder = with_project(tmp_path)
    _, said = make("-n", "lab", "VENV=.none", path=path, folder=folder)
    assert "'python3.12' -m venv '.none'" in said
    _, said = make("-n", "lab", "VENV=.none", "PYTHON=python3", path=path, folder=folder)
    assert "'python3' -m venv '.none'" in said


def with_project(folder: Path) -> Path:
    """An empty project in which make finds what it depends on."""
    for name in ("pyproject.toml", "constraints.txt"):
        (folder / name).write_text("", encoding="utf-8")
    return folder


@pytest.fixture
def installs(tmp_path: Path) -> Callable[..., list[str]]:
    """Runs make where pip only notes what it is to install, and returns those notes."""
    folder = with_project(tmp_path)
    (folder / "env" / "bin").mkdir(parents=True)
    log = folder / "log"
    fake(folder / "env" / "bin", "python", f'echo "$*" >>"{log}"')

    def run(*arguments: str) -> list[str]:
        log.write_text("", encoding="utf-8")
        status, said = make(*arguments, "VENV=env", folder=folder)
        assert status == 0, said
        return re.findall(r"install .*-e (\S+) -c", log.read_text(encoding="utf-8"))

    return run


def test_extras_are_installed_once_and_again_when_the_pins_change(
    tmp_path: Path, installs: Callable[..., list[str]]
) -> None:
    assert installs("lab", "ARGS=--no-browser") == [".[study]"]
    assert "00_start_here.ipynb --no-browser" in (tmp_path / "log").read_text("utf-8")
    assert installs("lab") == []
    assert installs("test", "EXTRAS=triton other") == [".[test,book,teach,triton,other]"]
    assert installs("test", "EXTRAS=other,more") == [".[more]"]
    later = (tmp_path / "env" / ".installed-study").stat().st_mtime + 10
    os.utime(tmp_path / "constraints.txt", (later, later))
    assert installs("lab") == [".[study]"]


NEEDS = {
    "lab": {"study"},
    "book": {"study", "book"},
    "teach": {"study", "teach"},
    "test": {"study", "test", "book", "teach"},
}


@pytest.mark.parametrize(("first", "then"), [*itertools.permutations(NEEDS, 2)])
def test_what_one_command_installed_serves_the_next(
    first: str, then: str, installs: Callable[..., list[str]]
) -> None:
    found = [
        {extra for said in installs(target) for extra in said.strip(".[]").split(",")}
        for target in (first, then)
    ]
    assert found == [NEEDS[first], NEEDS[then] - NEEDS[first]]


def test_after_make_test_nothing_is_missing(installs: Callable[..., list[str]]) -> None:
    assert len(installs("test")) == 1
    assert installs("lab", "read", "teach", "test", "test-slow", "notebooks", "bench") == []


def test_make_test_runs_every_check() -> None:
    _, said = make("-n", "test", "VENV=.none")
    for step in ("ruff check .", "ruff format --check .", "-m mypy", "-m pytest -n 2 "):
        assert step in said
    assert "|| true" not in said
    assert "OMP_NUM_THREADS=1" in said


# --- versions


def test_every_dependency_is_pinned_within_its_range() -> None:
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = project["optional-dependencies"]
    wanted = [*project["dependencies"], *groups["study"], *groups["test"]]
    for requirement in map(Requirement, wanted):
        version = pins().get(canonical(requirement.name))
        assert version, f"{requirement.name} is not in constraints.txt"
        assert requirement.specifier.contains(version), f"{requirement} excludes {version}"


def test_what_is_installed_is_what_is_pinned() -> None:
    """So what the checks prove holds for constraints.txt; a local label such as +cpu may differ."""
    wrong = {}
    for name, version in pins().items():
        try:
            found = importlib.metadata.version(name).split("+")[0]
        except importlib.metadata.PackageNotFoundError:
            continue  # needed on another system or by another Python
        if found != version:
            wrong[name] = (found, version)
    assert not wrong


def test_conda_installs_the_same_list() -> None:
    assert [line.strip("- ") for line in lines("environment.yml")[-2:]] == [
        "c constraints.txt",
        "e .[study]",
    ]


def test_every_dependency_has_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.findall(r'(?m)^    "[\w-]+[<>=!][^"]*",.*', text)
    assert len(listed) > 10
    assert [line for line in listed if "# " not in line and '"pytest>' not in line] == []


# --- .ci/run


def test_ci_run_is_a_program_that_parses() -> None:
    path = ROOT / ".ci" / "run"
    assert os.access(path, os.X_OK)
    subprocess.run(["bash", "-n", path], check=True)
    assert re.search(r"(?m)^make test EXTRAS=gpu$", path.read_text(encoding="utf-8"))


def test_nothing_here_names_an_index_or_a_folder_of_one_machine() -> None:
    for name in ("Makefile", ".ci/run", "environment.yml", "constraints.txt", "pyproject.toml"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"https?://|index-url|find-links", text), name
        assert not re.search(r"(?<![\w.$}])/(?:home|root|work|opt)/", text), name


def report(folder: Path, *cases: str) -> Path:
    """A report as pytest writes it, with these insides of test cases."""
    path = folder / "junit.xml"
    inner = "".join(
        f'<testcase classname="tests.test_x" name="test_{i}">{case}</testcase>'
        for i, case in enumerate(cases)
    )
    path.write_text(f"<testsuites><testsuite>{inner}</testsuite></testsuites>", encoding="utf-8")
    return path


GPU = '<skipped type="pytest.skip" message="needs a GPU">x</skipped>'
XFAIL = '<skipped type="pytest.xfail" message="known"/>'
BROWSER = (
    '<skipped type="pytest.skip" message="needs chromium, which this machine lacks">x</skipped>'
)


def test_only_a_missing_gpu_may_skip_a_test(tmp_path: Path) -> None:
    assert refused(report(tmp_path, "", GPU, XFAIL)) == []
    assert refused(report(tmp_path, "", GPU, BROWSER)) == [
        "tests.test_x::test_2: skipped, needs chromium, which this machine lacks"
    ]
    assert refused(report(tmp_path, '<failure message="no"/>')) == ["tests.test_x::test_0: failure"]
    assert refused(report(tmp_path)) == ["the report holds no test"]


def test_the_check_of_skips_says_so_in_its_exit_status(tmp_path: Path) -> None:
    assert check_skips([str(report(tmp_path, GPU))]) == 0
    assert check_skips([str(report(tmp_path, BROWSER))]) == 1
    assert check_skips([]) == 1


TWO = """
import os, pytest, time
from pathlib import Path
from tests.once import once

def make(folder):
    time.sleep(0.5)
    (folder / "made").write_text(str(os.getpid()))

@pytest.mark.parametrize("i", range(8))
def test_it(i):
    made = (once("it", make) / "made").read_text()
    with Path("log").open("a") as log:
        log.write(f"{os.getpid()} {made}\\n")

def test_dies():
    os._exit(1)
"""


def test_two_processes_share_what_is_made_and_the_report_tells_all(tmp_path: Path) -> None:
    """A module that is skipped as a whole, and a process that dies, are in the report."""
    (tmp_path / "test_two.py").write_text(TWO, encoding="utf-8")
    skipped = "import pytest\npytest.importorskip('no_such_module')"
    (tmp_path / "test_skipped.py").write_text(skipped, encoding="utf-8")
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2"),
            *("--dist", "worksteal", "--junitxml=report.xml", str(tmp_path)),
        ],
        cwd=tmp_path,
        env={**os.environ, FOLDER: str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
    )
    askers, makers = zip(
        *map(str.split, (tmp_path / "log").read_text("utf-8").splitlines()), strict=True
    )
    assert len(askers) == 8
    assert len(set(askers)) >= 2 > len(set(makers))
    dead, left_out = sorted(refused(tmp_path / "report.xml"), key=len)
    assert "test_dies: error" in dead
    assert "test_skipped: skipped" in left_out
