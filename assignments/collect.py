"""Takes in what students handed in, from whatever Canvas, Moodle, Gradescope or a folder give."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from nbformat import NotebookNode
from tqdm import tqdm

from .folders import LinkError, keep, others, received, released, submission, write
from .gradescope import Person, people, remember
from .repair import belongs, repaired, to_bytes
from .tasks import NAMES
from .unpack import METADATA, Entry, entries

CANVAS = re.compile(r"(?P<name>[^_/]+)(?P<late>_LATE)?_(?P<number>\d+)_\d+_[^/]+")
MOODLE = re.compile(r"(?P<name>[^/]+)_(?P<number>\d+)_assignsubmission_")
GRADESCOPE = re.compile(r"submission_\d+")
NAMELESS = "it names nobody, so students are called submission_1 and so on."
UNKNOWN = "nothing in its path says whose it is: put it into a folder called after the student, or give a pattern"


@dataclass(frozen=True)
class Row:
    """What became of one file: its path, its student if it was taken ("" if not), and a sentence."""

    path: str
    student: str
    said: str


def collect(
    course: Path, name: str, sources: Sequence[Path], pattern: str | None = None
) -> list[Row]:
    """Take in notebooks from zips, folders and files; returns and prints what became of each file.

    pattern: a regular expression with a group `student`, searched in a file's path within its
    source. Without it the paths of Canvas, Moodle and Gradescope are known, and any other is a
    folder for each student. The student is `name_number` where Canvas and Moodle give the number,
    since two may share a name. Gradescope's submissions are those of the students whom its
    submission_metadata.yml names, called as `gradescope.people` says; without it, `submission_700`.

    The bytes are kept in COURSE/received; the newest notebook of this assignment, repaired, is put
    into COURSE/submitted. A second run with the same files changes nothing. Raises FileNotFoundError
    if the assignment has no release, ValueError if the pattern has no group `student`.
    """
    release, strangers = released(course, name), others(course, name)
    find = _compiled(pattern)
    rows: list[Row] = []
    came: dict[str, list[Entry]] = defaultdict(list)
    known: dict[str, Person] = {}
    for source in sources:
        found: list[Entry] = []
        about: list[Entry] = []
        for entry in entries(source):
            (about if entry.path.split("/")[-1] == METADATA else found).append(entry)
        groups = _groups(about)
        if about and not groups:
            rows.append(Row(about[0].path, "", NAMELESS))
        top = "" if find else _wrapper(found, name)
        for entry in found:
            try:
                if entry.refused:
                    raise ValueError(entry.refused)
                whose = fit(_whose(entry.path.removeprefix(top), name, find))
                group = {} if find else groups.get(whose, {})
                known |= group
                for student in group or [whose]:
                    came[student].append(entry)
            except ValueError as error:
                rows.append(Row(entry.path, "", f"{error}."))
    remember(course, name, known)
    for student in tqdm(sorted(came), desc="collect", unit="student", delay=2):
        try:
            rows += _take(course, name, student, came[student], release, strangers)
        except LinkError as error:
            rows += [Row(entry.path, "", f"{error}.") for entry in came[student]]
        except Exception as error:  # whatever one of them handed in, the others are taken
            why = f"it could not be taken in: {type(error).__name__}: {error}"
            rows += [Row(entry.path, "", f"{student}: {why}"[:300]) for entry in came[student]]
    print(table(rows))
    return rows


def fit(student: str) -> str:
    """A student's id in one spelling. Raises ValueError if it cannot be the name of a folder."""
    student = " ".join(unicodedata.normalize("NFC", student).split())
    joined = student.replace("\u200c", "").replace(
        "\u200d", ""
    )  # Persian and Indian names have these
    if not joined:
        raise ValueError("the student's id is empty")
    bad = sorted(
        {letter for letter in joined if letter in '/\\:*?"<>|[]' or not letter.isprintable()}
    )
    if student == "seed":
        raise ValueError("no student can be called seed: that file holds the seed")
    if bad or student.startswith(".") or len(student.encode()) > 200:
        why = f"holds {' '.join(map(ascii, bad))}" if bad else "starts with a dot or is too long"
        raise ValueError(f"the student's id {student[:40]!r} {why}")
    return student


def table(rows: Sequence[Row]) -> str:
    """What was taken, for whom, and what was not and why, as text."""
    taken = sorted((row for row in rows if row.student), key=lambda row: row.student)
    refused = [row for row in rows if not row.student]
    width = max((len(row.student) for row in taken), default=0)
    lines = [f"Taken: {len(taken)} notebooks of {len({row.student for row in taken})} students."]
    lines += [f"  {row.student:{width}}  {row.path}: {row.said}" for row in taken]
    lines += [f"Not taken: {len(refused)} files."] * bool(refused)
    lines += [f"  {row.path}: {row.said}" for row in refused]
    return "\n".join("".join(c if c.isprintable() else "?" for c in line) for line in lines)


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    try:
        find = re.compile(pattern) if pattern else None
    except re.error as error:
        raise ValueError(f"the pattern is no regular expression: {error}") from None
    if find and "student" not in find.groupindex:
        raise ValueError(f"the pattern has no group (?P<student>…): {pattern}")
    return find


def _folders(path: str, name: str) -> list[str]:
    """The folders of a path, without those called after an assignment."""
    return [part for part in path.split("/")[:-1] if part and part not in (*NAMES, name)]


def _groups(metadata: Iterable[Entry]) -> dict[str, dict[str, Person]]:
    """The students of Gradescope's submissions; whose id cannot be a folder has the submission's."""
    groups: dict[str, dict[str, Person]] = {}
    for entry in metadata:
        for whole, students in people(entry.data).items():
            groups[whole] = {}
            for student, person in students.items():
                try:
                    groups[whole][fit(student)] = person
                except ValueError:
                    groups[whole][whole] = person
    return groups


def _wrapper(found: Sequence[Entry], name: str) -> str:
    """The one folder in which a source has all its students' folders or files, with `/`; or ""."""
    good = [entry.path for entry in found if not entry.refused]
    paths = [_folders(path, name) for path in good]
    tops = {path[0] if path else "" for path in paths}
    below = {path[1] if len(path) > 1 else "" for path in paths}
    files = [CANVAS.fullmatch(path.split("/")[-1]) for path in good]
    numbers = {canvas["number"] if canvas else "" for canvas in files}
    flat = below == {""} and len(numbers) > 1 and "" not in numbers
    whole = flat or (len(below) > 1 and "" not in below)
    return f"{tops.pop()}/" if len(tops) == 1 and "" not in tops and whole else ""


def _whose(path: str, name: str, find: re.Pattern[str] | None) -> str:
    """The student whose file lies at `path`. Raises ValueError if nothing tells."""
    if find:
        found = find.search(path)
        if not found or found["student"] is None:
            raise ValueError("its path does not fit the pattern")
        return found["student"]
    *_, file = path.split("/")
    folders = _folders(path, name)
    for part in folders or [file]:  # the students themselves choose the names of files in folders
        moodle = MOODLE.match(part)
        if moodle:
            return f"{moodle['name']}_{moodle['number']}"
        if GRADESCOPE.fullmatch(part):
            return part
    if folders:
        return folders[0]
    canvas = CANVAS.fullmatch(file)
    if not canvas:
        raise ValueError(UNKNOWN)
    return f"{canvas['name']}_{canvas['number']}"


def _take(
    course: Path,
    name: str,
    student: str,
    came: Sequence[Entry],
    release: NotebookNode,
    strangers: Mapping[str, NotebookNode],
) -> list[Row]:
    """Keep one student's notebooks and put the newest that can be marked where the grader looks."""
    came = sorted(came, key=lambda entry: (entry.changed, len(entry.path), entry.path))
    before = len(received(course, name, student))
    kept = keep(course, name, student, [entry.data for entry in came])
    everything = received(course, name, student)
    path = submission(course, name, student)
    if len(everything) == before and path.is_file():
        return [Row(entry.path, student, "was there already.") for entry in came]
    newest = next(
        (one for one in reversed(everything) if belongs(one.read_bytes(), release, strangers)),
        everything[-1],
    )
    notebook, remarks = repaired(newest.read_bytes(), release, strangers)
    write(path, to_bytes(notebook))
    _write_time(
        path.with_name("timestamp.txt"), [e for e, k in zip(came, kept, strict=True) if k == newest]
    )
    rows = []
    for entry, place in zip(came, kept, strict=True):
        said = f"kept as {place.name}, " + ("counts" if place == newest else "does not count")
        late = CANVAS.fullmatch(entry.path.split("/")[-1])
        said += ", late" if late and late["late"] else ""
        said = f"{said}. {' '.join(remarks * (place == newest))}".strip()
        rows.append(Row(entry.path, student, said))
    return rows


def _write_time(path: Path, entries: Sequence[Entry]) -> None:
    """When what counts was handed in, as nbgrader reads it; nothing if nothing tells."""
    path.unlink(missing_ok=True)
    if entries and entries[-1].changed:
        write(path, datetime.fromtimestamp(entries[-1].changed, UTC).isoformat().encode())
