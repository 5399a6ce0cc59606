"""Marks: from the notebooks of a course to one file of marks for each student."""

import hashlib
import json
import secrets
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import nbformat
from nbformat import NotebookNode
from tqdm import tqdm

from attention_lib.checks import Diagnosis, diagnose

from ..folders import LinkError, below, handed_in, submission, write
from ..tasks import Assignment, Task, assignments
from . import processors, sandbox
from .flags import flags
from .sandbox import Outcome, SandboxMissing, run
from .troubles import LONGEST_LINE, plain

SOURCES = Path(__file__).resolve().parent.parent / "sources"
CHECK = "-check"
LARGEST = 20 << 20  # bytes of a notebook; with pictures they have a few hundred thousand
ENDS = {
    "time": "did not finish in {seconds:g} s of computing.",
    "waiting": "waited for something that never came, and did not finish.",
    "memory": f"took more than {sandbox.MEMORY >> 30} GB of memory.",
    "processes": f"started more than {sandbox.PROCESSES} processes.",
    "files": f"wrote more than {sandbox.FILES} files.",
    "output": f"gave more than {sandbox.WRITTEN >> 20} MB of results.",
    "garbled": "wrote something else where its results go.",
    "crashed": "ended Python before there was a result.",
}


OUT_OF_TIME = ("time", "waiting")
# What can be said of an answer; "known" is a mistake that wrong settings explain, "values" is any other.
KINDS = "right known values shape changed blank raised time stopped nameless unread".split()


@dataclass(frozen=True)
class Mark:
    """What one question earns, and why.

    kind: one of KINDS. settings: the wrong settings that explain a wrong answer. advice: for the
    student. flags: what the instructor may want to look at; it costs nothing. named: the student's
    name in the notebook, where the question has numbers drawn from it.
    """

    question: str
    points: float
    out_of: float
    kind: str
    settings: dict[str, str]
    advice: str
    flags: tuple[str, ...] = ()
    named: str = ""


def grade_notebook(
    notebook: NotebookNode,
    assignment: Assignment,
    *,
    seed: int,
    student: str,
    sandboxed: bool = True,
    slot: int = 0,
    seconds: float = sandbox.SECONDS,
    points: Mapping[str, float] | None = None,
    partial: float = 0.0,
) -> list[Mark]:
    """A mark for each task of the assignment, whatever the notebook holds.

    seed: the inputs are drawn from it. points: of each question, those of our source if None.
    partial: the share of them for an answer that has one known mistake.
    Each question has a process of its own, in which all cells run. An answer that no known mistake
    explains is tried once more without the cells of the other answers, which may have spoilt it.
    The numbers that each student draws are those of the name in the notebook: learning platforms give
    students names that they do not know. Raises SandboxMissing if nothing could be marked.
    """
    worth = points_of(SOURCES / f"{assignment.name}.ipynb") if points is None else points
    names = {task.name for task in assignment.tasks}
    labelled = list(_code(notebook, {f"{name}{CHECK}" for name in names}))
    found = flags([source for _, source in labelled])
    stuck: dict[tuple[str, ...], Outcome] = {}  # cells that never came to an end

    def mark(task: Task, kept: Sequence[tuple[str, str]]) -> tuple[Mark, Outcome]:
        cells = tuple(source for _, source in kept)
        cases = task.cases(seed, student)
        outcome = stuck.get(cells) or run(
            cells, task, cases, seconds=seconds, sandboxed=sandboxed, slot=slot
        )
        if outcome.how in OUT_OF_TIME and outcome.cell:
            stuck[cells] = outcome
        named = unicodedata.normalize("NFC", outcome.student.strip()) if task.numbers else ""
        if task.numbers:
            cases = task.cases(seed, outcome.student)
        kind, settings, advice = _diagnosed(task, cases, outcome, _ending(outcome, cells, seconds))
        if task.numbers and not named and any(output is not None for output in outcome.outputs):
            kind, settings = "nameless", {}
            advice = "STUDENT is empty: your numbers are drawn from your name."
        out_of = worth[task.name]
        earned = out_of if kind == "right" else 0.0
        if partial and kind == "known" and len(settings) == 1:
            earned = partial * out_of
            advice += f" For this one mistake you keep {earned:g} of {out_of:g} points."
        made = Mark(task.name, earned, out_of, kind, settings, advice, found, plain(named, 100))
        return made, outcome

    marks = []
    for task in assignment.tasks:
        first, outcome = mark(task, labelled)
        others = names - {task.name}
        alone = [one for one in labelled if one[0] not in others]
        stopped_by = labelled[outcome.cell - 1][0] if outcome.cell else ""
        if (
            first.kind not in ("right", "known", "nameless")
            and len(alone) < len(labelled)
            and (not outcome.cell or stopped_by in others)
        ):
            second, _ = mark(task, alone)
            if second.kind == "right" or stopped_by in others:
                first = second
        marks.append(first)
    return marks


def grade_batch(
    course: Path,
    name: str,
    *,
    seed: int | None = None,
    students: Sequence[str] = (),
    sandboxed: bool = True,
    workers: int | None = None,
    partial: float = 0.0,
) -> list[Path]:
    """Mark what lies in COURSE/submitted, into COURSE/grading/<name>/<student>.json, one a student.

    seed: None draws one once and keeps it in COURSE/grading/<name>/seed.json. students: all if
    empty. A notebook that cannot be read gets no points and a remark. workers: hand-ins that are marked
    at once, None for as many as there are processors to use. What runs out of time beside others is
    marked once more alone.

    Raises KeyError for an assignment that there is not, ValueError for a student who handed nothing
    in, SandboxMissing if nothing could be marked.
    """
    assignment = assignments()[name]
    present = handed_in(course, name)
    absent = sorted({*students} - {*present})
    if absent:
        raise ValueError(f"nothing of {name} was handed in by {', '.join(absent)}")
    if "seed" in present:
        raise ValueError("no student can be called seed: that file holds the seed")
    source = course / "source" / name / f"{name}.ipynb"
    worth = points_of(source if source.is_file() else SOURCES / f"{name}.ipynb")
    drawn = _kept_seed(course / "grading" / name / "seed.json") if seed is None else seed
    count = min(workers or processors.available(), len(students or present) or 1)
    slots: SimpleQueue[int] = SimpleQueue()
    for slot in range(count):
        slots.put(slot)

    def one(student: str) -> Path:
        slot = slots.get()
        try:
            return _grade_file(course, assignment, student, drawn, worth, sandboxed, slot, partial)
        finally:
            slots.put(slot)

    with ThreadPoolExecutor(count) as pool:
        jobs = [pool.submit(one, student) for student in students or present]
        try:
            for job in tqdm(as_completed(jobs), total=len(jobs), desc=name, unit="student"):
                job.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    paths = [job.result() for job in jobs]
    slow = [path.stem for path in paths if count > 1 and _has_run_out_of_time(path)]
    for student in tqdm(slow, desc="once more, alone", unit="student", disable=not slow):
        one(student)
    return paths


def _has_run_out_of_time(path: Path) -> bool:
    return any(mark["kind"] == "time" for mark in json.loads(path.read_bytes())["questions"])


def points_of(source: Path) -> dict[str, float]:
    """The points of each automatically marked question of a source notebook."""
    notebook = nbformat.read(source, as_version=4)  # type: ignore[no-untyped-call]
    cells = [cell.metadata.get("nbgrader", {}) for cell in notebook.cells]
    return {
        cell["grade_id"].removesuffix(CHECK): float(cell["points"])
        for cell in cells
        if cell.get("grade") and cell["grade_id"].endswith(CHECK)
    }


def _grade_file(
    course: Path,
    assignment: Assignment,
    student: str,
    seed: int,
    worth: Mapping[str, float],
    sandboxed: bool,
    slot: int,
    partial: float,
) -> Path:
    """Mark one student's file and write the marks down."""
    name = assignment.name
    try:
        notebook, digest, remark = _read(submission(course, name, student))
    except LinkError as error:
        notebook, digest, remark = None, "", f"{error}."
    marks = [
        Mark(task.name, 0.0, worth[task.name], "unread", {}, remark) for task in assignment.tasks
    ]
    if notebook is not None:
        try:
            marks = grade_notebook(
                notebook,
                assignment,
                seed=seed,
                student=student,
                sandboxed=sandboxed,
                slot=slot,
                points=worth,
                partial=partial,
            )
        except SandboxMissing:
            raise
        except Exception as error:  # the batch goes on, whatever somebody thought of
            remark = f"It could not be marked: {type(error).__name__}: {error}"[:300]
    record = {
        "student": student,
        "assignment": name,
        "seed": seed,
        "notebook sha256": digest,
        "questions": [asdict(mark) for mark in marks],
        "remark": remark,
    }
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    path = below(course, "grading", name, f"{student}.json")
    return write(path, text.encode("utf-8", "backslashreplace"))


def _read(path: Path) -> tuple[NotebookNode | None, str, str]:
    """A student's notebook, the sum over its bytes, and why there is none."""
    if not path.is_file():
        return None, "", "There is no notebook."
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    size = path.stat().st_size
    if not size:
        return None, digest, "The file is empty."
    if size > LARGEST:
        return None, digest, f"The file is larger than {LARGEST >> 20} MB, so it was not read."
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("cells"), list):
        return None, digest, "The file is not a notebook."
    return NotebookNode(found), digest, ""  # type: ignore[no-untyped-call]


def _code(notebook: NotebookNode, checks: set[str]) -> Iterator[tuple[str, str]]:
    """Label and source of each code cell that is a student's to write; a notebook may hold anything."""
    for cell in notebook.get("cells") or []:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        metadata = cell.get("metadata")
        about = metadata.get("nbgrader") if isinstance(metadata, dict) else None
        label = about.get("grade_id") if isinstance(about, dict) else None
        if label in checks:
            continue
        source = cell.get("source")
        lines = source if isinstance(source, list) else [source]
        yield str(label or ""), "".join(line for line in lines if isinstance(line, str))


def _diagnosed(
    task: Task, cases: Sequence[Any], outcome: Outcome, ending: str
) -> tuple[str, dict[str, str], str]:
    """The kind of an answer, its wrong settings, and the advice."""
    if ending:
        return "time" if outcome.how in OUT_OF_TIME else "stopped", {}, ending
    trouble = next(filter(None, outcome.troubles), "")
    if all(output is None for output in outcome.outputs):
        diagnosis = Diagnosis(False, {}, "There is no output.", "blank")
    else:
        diagnosis = diagnose(task.exercise, cases, outcome.outputs, troubles=outcome.troubles)
    changed = " and ".join(outcome.changed)
    effects = f"You changed {changed} in place: work on a copy." if changed else ""
    if diagnosis.ok and effects:
        return "changed", {}, f"The values are right. {effects}"
    if diagnosis.ok:
        return "right", {}, "Correct."
    kind, advice = diagnosis.kind, diagnosis.advice
    if trouble and not diagnosis.settings:
        kind, advice = outcome.kind, trouble
    return kind, diagnosis.settings, " ".join(filter(None, (advice, effects)))


def _ending(outcome: Outcome, cells: Sequence[str], seconds: float) -> str:
    """How the process came to its end before there was an answer, "" if there is one."""
    if outcome.how == "finished":
        return ""
    begins = cells[outcome.cell - 1].strip().split("\n")[0] if outcome.cell else ""
    who = f"The cell that begins with `{plain(begins, LONGEST_LINE)}`" if outcome.cell else "It"
    return f"{who} {ENDS[outcome.how].format(seconds=seconds)}"


def _kept_seed(path: Path) -> int:
    """The seed of an assignment, drawn when it is first needed."""
    if not path.is_file():
        write(path, json.dumps({"seed": secrets.randbits(63)}).encode())
    return int(json.loads(path.read_bytes())["seed"])
