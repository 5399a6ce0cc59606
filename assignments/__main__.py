"""The commands of an assignment, from the source to the marks; `assignments/README.md` is their guide."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .tasks import NAMES

Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status, 1 with one sentence on standard error if it cannot."""
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (OSError, ValueError, RuntimeError) as error:
        print(f"{options.command}: {error}", file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    """The commands, in the order in which a week asks for them."""
    whole = argparse.ArgumentParser(
        prog="python -m assignments",
        description="Give out the assignments, mark them and send the marks. The guide is assignments/README.md.",
    )
    whole.add_argument(
        "--course",
        type=Path,
        default=Path("course"),
        help="the folder of the course, made where it is missing (default: course)",
    )
    commands = whole.add_subparsers(dest="command", required=True, metavar="command")

    def add(name: str, run: Command, does: str, *, many: bool = False) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=does, description=does)
        if many:
            one.add_argument(
                "names", nargs="*", metavar="name", help=f"of {', '.join(NAMES)}; default all"
            )
        else:
            one.add_argument("name", choices=NAMES)
        one.set_defaults(run=run)
        return one

    add("release", _build, "make the notebooks for students", many=True)
    add("study", _build, "make notebooks for study without marks", many=True)
    add("solution", _build, "make the solutions, executed", many=True)
    collect = add("collect", _collect, "take in what students handed in")
    collect.add_argument("sources", nargs="+", type=Path, help="zips, folders or notebooks")
    collect.add_argument(
        "--pattern", help="regular expression of a file's name, with a group `student`"
    )
    repair = add("repair", _repair, "say what is broken in the submissions")
    repair.add_argument("--save", action="store_true", help="and repair it there")
    grade = add("grade", _grade, "mark the submissions")
    grade.add_argument(
        "--student", action="append", default=[], help="only this one; may be repeated"
    )
    grade.add_argument("--seed", type=int, help="of the inputs (default: drawn once, then kept)")
    grade.add_argument("--workers", type=int, help="submissions at once (default: processors)")
    grade.add_argument(
        "--unsandboxed",
        action="store_true",
        help="run students' code without bubblewrap, at your risk",
    )
    report = add("report", _report, "say which mistakes were made how often")
    feedback = add("feedback", _feedback, "make a page for each student")
    export = add("export", _export, "write the marks for another system")
    export.add_argument("--to", choices=("canvas", "moodle", "gradescope"), required=True)
    export.add_argument(
        "--roster", type=Path, help="the list of students exported from it, to be filled in"
    )
    export.add_argument(
        "--column",
        help="title of the column for the marks; the assignment's title (Who looks where) and its "
        "short name (pointing) are known without",
    )
    export.add_argument(
        "--only-complete",
        action="store_true",
        help="leave out the totals that still lack a mark by hand",
    )
    for one in (report, feedback, export):
        one.add_argument(
            "--outdated",
            action="store_true",
            help="take also marks that are not for what is handed in now",
        )
    return whole


def _build(options: argparse.Namespace) -> int:
    from . import course

    for name in options.names or NAMES:
        if name not in NAMES:
            raise ValueError(f"no assignment is called {name}; there are {', '.join(NAMES)}")
        print(getattr(course, options.command)(options.course, name))
    return 0


def _collect(options: argparse.Namespace) -> int:
    from .collect import collect

    rows = collect(options.course, options.name, options.sources, options.pattern)
    missing = [str(source) for source in options.sources if not source.exists()]
    if missing:
        raise FileNotFoundError(f"there is no {', no '.join(missing)}")
    if not any(row.student for row in rows):
        raise ValueError("nothing was taken")
    return 0


def _repair(options: argparse.Namespace) -> int:
    from .repair import repair_submissions

    repair_submissions(options.course, options.name, save=options.save)
    return 0


def _grade(options: argparse.Namespace) -> int:
    from .course import grade

    graded = grade(
        options.course,
        options.name,
        seed=options.seed,
        students=options.student,
        sandboxed=not options.unsandboxed,
        workers=options.workers,
    )
    print(f"{len(graded.marked)} marked, {len(graded.failed)} not.")
    for student, reason in graded.failed.items():
        print(f"  {student}: {reason}")
    for name, students in graded.namesakes.items():
        print(f"  The numbers of {name} were drawn by {', '.join(students)}.")
    return int(bool(graded.failed))


def _report(options: argparse.Namespace) -> int:
    from .report import report

    for path in report(options.course, options.name, outdated=options.outdated)[:2]:
        print(path)
    return 0


def _feedback(options: argparse.Namespace) -> int:
    from .feedback import feedback

    pages = feedback(options.course, options.name, outdated=options.outdated)
    print(f"{len(pages)} pages in {options.course / 'feedback'}")
    return 0


def _export(options: argparse.Namespace) -> int:
    from .export import export

    export(
        options.course,
        options.name,
        options.to,
        options.roster,
        column=options.column,
        only_complete=options.only_complete,
        outdated=options.outdated,
    )
    return 0


def _use_utf_8() -> None:
    """Names of files are UTF-8 whatever the locale says; what a terminal cannot show is replaced."""
    if sys.getfilesystemencoding() != "utf-8":
        os.environ |= {"PYTHONUTF8": "1", "PYTHONIOENCODING": f"{sys.stdout.encoding}:replace"}
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


if __name__ == "__main__":
    _use_utf_8()
    raise SystemExit(main())
