"""Settings of all tests, what their processes share, and the one way to say that a test needs a program or a GPU."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from book import pyodide

from .once import FOLDER
from .programs import program

if TYPE_CHECKING:
    from playwright.sync_api import Browser

os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples on each run, and no limit of time for a busy machine to break.
settings.register_profile("book", derandomize=True, deadline=None, max_examples=60, database=None)
settings.load_profile("book")


@functools.cache
def has_gpu() -> bool:
    """Whether torch sees a CUDA device."""
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


# Where there is no GPU, Triton interprets its kernels; it asks when it is imported.
if not has_gpu():
    os.environ.setdefault("TRITON_INTERPRET", "1")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "needs(name): skip without node, chromium, bubblewrap, pyodide, gpu"
    )
    if not hasattr(config, "workerinput"):  # not one of xdist's processes, which inherit it
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="book-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ[FOLDER], ignore_errors=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            if name == "gpu":
                if not has_gpu():
                    pytest.skip("needs a GPU")
            elif name == "pyodide":
                if not pyodide.find(os.environ.get("PYODIDE", "")):
                    pytest.skip("needs Pyodide, which `python -m tests.pyodide` brings")
            elif program(name) is None:
                pytest.skip(f"needs {name}, which this machine lacks")


# What takes long begins first, so that two processes end together.
LONGEST = (
    "notebooks triton triton_compiled ring page_python_browser book_readers book_site book_pages "
    "book_build sandbox matrix course live_page live_browser live_recurrence live_heads live_cost "
    "live_scaling live_rest gpu_benchmark page_python tiled_torch checks heads_trained language"
).split()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {f"test_{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium of the module's own."""
    pytest.importorskip("playwright")
    from .live_helpers import running_chromium

    executable = program("chromium")
    assert executable is not None
    with running_chromium(executable) as chromium:
        yield chromium


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder that holds README.md."""
    return Path(__file__).resolve().parent.parent


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests recorded, such as the CPU time of each chapter."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{report.nodeid.split('::')[-1]}: {name} {value}")
