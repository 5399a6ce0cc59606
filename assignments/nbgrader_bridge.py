"""nbgrader's converters and gradebook inside this process, with the settings of a course."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.converters.base import BaseConverter
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from .folders import below
from .grader.plugin import configure


class NbGraderError(RuntimeError):
    """nbgrader refused; the message is its reason."""


class GradebookBusyError(NbGraderError):
    """Another process keeps the gradebook to itself."""


WAITING = 60.0  # seconds for another process to have done with the gradebook
LOCKED = "database is locked"
BUSY = (
    "gradebook.db is in use by another process: close what uses it, a database browser or another "
    "command, and try again"
)


@contextlib.contextmanager
def converting(
    course: Path, name: str, kind: type[BaseConverter], *, student: str
) -> Iterator[BaseConverter]:
    """One of nbgrader's converters for one student's assignment, which replaces what is there.

    Inside, an error of nbgrader's becomes NbGraderError with the reason that it logged.
    """
    config = settings(course)
    log = logging.Logger("nbgrader", logging.ERROR)
    reasons = _Reasons()
    log.addHandler(reasons)
    directory = CourseDirectory(config=config, assignment_id=name, student_id=student)
    _wait_for(directory.db_url)
    with _environment():
        converter = kind(coursedir=directory, config=config, log=log)
        converter.force = True
        try:
            yield converter
        except Exception as error:
            if LOCKED in f"{reasons.first} {error}":
                raise GradebookBusyError(BUSY) from error
            raise NbGraderError(" ".join((reasons.first or str(error)).split())) from error


def settings(course: Path) -> Config:
    """The settings of nbgrader: ours, then those of the course's own nbgrader_config.py."""
    config = Config()
    configure(config)
    config.merge(PyFileConfigLoader("nbgrader_config.py", str(course)).load_config())
    config.CourseDirectory.root = str(course.resolve())
    return config


class OneFolder(BaseConverter):  # type: ignore[misc]
    """For a converter: exactly the folder of its student; nbgrader would take names as patterns."""

    def init_notebooks(self) -> None:
        """Take the one notebook that is called like the assignment."""
        name = self.coursedir.assignment_id
        root = Path(self.coursedir.root)
        folder = self._format_source(name, self.coursedir.student_id)
        for path in (folder, self._format_dest(name, self.coursedir.student_id)):
            below(root, *Path(path).relative_to(root).parts)
        notebook = os.path.join(folder, f"{name}.ipynb")
        if os.path.islink(notebook) or not os.path.isfile(notebook):
            raise FileNotFoundError(f"There is no notebook {name}.ipynb in {folder}.")
        self.assignments = {folder: [notebook]}


class _Reasons(logging.Handler):
    """Keeps the first error that nbgrader logged with a traceback."""

    first = ""

    def emit(self, record: logging.LogRecord) -> None:
        lines = record.getMessage().strip().splitlines()
        if not self.first and lines and lines[0].startswith("Traceback"):
            self.first = lines[-1]


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """nbgrader calls `alembic` by its bare name, and warns of its own old habits."""
    path = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), path])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.environ["PATH"] = path


@contextlib.contextmanager
def gradebook(course: Path) -> Iterator[Gradebook]:
    """The gradebook of the course, open. Raises GradebookBusyError where another process keeps it."""
    url = CourseDirectory(config=settings(course)).db_url
    _wait_for(url)
    try:
        with _environment(), Gradebook(url) as book:
            yield book
    except Exception as error:
        if LOCKED in str(error):
            raise GradebookBusyError(BUSY) from error
        raise


def _wait_for(url: str) -> None:
    """Wait while another process writes into the gradebook, and say so."""
    path = Path(url.removeprefix("sqlite:///"))
    if not url.startswith("sqlite:///") or not path.is_file():
        return
    end = time.monotonic() + WAITING
    told = False
    while True:
        try:
            with contextlib.closing(sqlite3.connect(path, timeout=1)) as book:
                book.execute("BEGIN EXCLUSIVE")
                return
        except sqlite3.DatabaseError as error:
            if LOCKED not in str(error):
                raise NbGraderError(f"{path.name} cannot be opened: {error}") from error
            if not told:
                print(f"{path.name} is in use by another process; waiting.", file=sys.stderr)
            told = True
            if time.monotonic() > end:
                raise GradebookBusyError(BUSY) from error
