"""Hand-ins made well-formed again, so that a grader finds every label and every answer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from .folders import LinkError, below, given, handed_in, keep, others, released, submission, write
from .matching import NOTHING, Slot, match, names_in, same, slots_of
from .sanitise import Found, read, sanitise

Placed = tuple[int | None, NotebookNode]  # the number of its cell in the release, if it has one
Notes = defaultdict[str, list[str]]
# Stands at the top of the blank notebook that takes the place of a file, so that its student reads it.
UNMARKED = "**What you handed in could not be marked**: "
MOST = 5  # names in a remark
ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
SAYS = {
    "label": "Lost or exchanged labels are back: {}.",
    "kind": "Cells of the wrong type have their own again: {}.",
    "text": "Given cells that were changed have their text again: {}.",
    "missing": "Missing cells were put back: {}.",
    "copy": "Copies of cells as they were given out were left out: {}.",
    "code": "Of code that came more than once all runs, and the last definition counts, as in Jupyter: {}.",
    "words": "Of several answers in words the first counts: {}.",
    "nowhere": "Nothing in the notebook defines {}.",
}


def repair_submissions(course: Path, name: str, *, save: bool = False) -> dict[str, list[str]]:
    """Print for each student what is broken in COURSE/submitted, and return it.

    With `save` the repaired notebook takes the place of the broken one, whose bytes are kept in
    COURSE/received. Links are told and left alone. Raises FileNotFoundError if the assignment has no release.
    """
    source, known = released(course, name), others(course, name)
    said: dict[str, list[str]] = {}
    for student in handed_in(course, name):
        try:
            said[student] = _examined(course, name, student, source, known, save=save)
        except LinkError as error:
            said[student] = [f"{error}."]
        print(f"{student}: {' '.join(said[student]) or 'sound.'}")
    if not said:
        print(f"Nobody has handed in {name}.")
    return said


def _examined(
    course: Path,
    name: str,
    student: str,
    source: NotebookNode,
    known: Mapping[str, NotebookNode],
    *,
    save: bool,
) -> list[str]:
    """What is broken in one student's folder, and repair it if asked."""
    path = submission(course, name, student)
    there = [path] if path.is_file() else sorted(path.parent.glob("*.ipynb"))[:1]
    data = below(path.parent, there[0].name).read_bytes() if there else b""
    stands = unmarked(data)
    notebook, remarks = repaired(data, source, known)
    if there and there != [path]:
        remarks.insert(0, f"The notebook is called {there[0].name}, not {path.name}.")
    if save and remarks:
        keep(course, name, student, [data] if there else [])
        write(path, to_bytes(notebook))
    return [_stands(stands)] * bool(stands) + remarks


def to_bytes(notebook: NotebookNode) -> bytes:
    """The file of a notebook."""
    return f"{nbformat.writes(notebook)}\n".encode()  # type: ignore[no-untyped-call]


def repaired(
    data: bytes, source: NotebookNode, others: Mapping[str, NotebookNode] | None = None
) -> tuple[NotebookNode, list[str]]:
    """The repaired notebook from a file's bytes, with remarks.

    From a hopeless file, and from the notebook of one of the `others`, a blank one with the reason in
    its first cell.
    """
    try:
        raw = read(data)
        other = _origin(sanitise(raw)[0], source, others or {})
        if other:
            raise ValueError(f"this is the notebook of {other}")
        return repair(raw, source)
    except ValueError as error:
        blank = _without_solutions(source)
        blank.cells.insert(0, Found("markdown", f"{UNMARKED}{error}.", id="unmarked").cell())
        return blank, [_stands(str(error))]


def unmarked(data: bytes) -> str:
    """Why this blank notebook stands for a file that could not be marked; "" for any other notebook."""
    try:
        found, _ = sanitise(read(data))
    except ValueError:
        return ""
    said = found[0].source if found else ""
    return said.removeprefix(UNMARKED).removesuffix(".") if said.startswith(UNMARKED) else ""


def _stands(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:]}. A blank notebook stands for it."


def belongs(data: bytes, source: NotebookNode, others: Mapping[str, NotebookNode]) -> bool:
    """Whether a file is a notebook of the assignment, and not of one of the `others` or of none."""
    try:
        return _origin(sanitise(read(data))[0], source, others) == ""
    except ValueError:
        return False


def _origin(
    found: Sequence[Found], source: NotebookNode, others: Mapping[str, NotebookNode]
) -> str | None:
    """Which of the `others` the cells come from; "" if they are of `source`, None if of no one.

    One function of the assignment, if only its stub, makes a notebook the assignment's own. Else
    that counts of which there are most given cells and functions.
    """
    functions, own = _kin(found, source)
    if functions:
        return ""
    most, name = max(
        ((_kin(found, other)[1], name) for name, other in others.items()), default=(0, "")
    )
    return name if most > own else "" if own > most else None


def _kin(found: Sequence[Found], source: NotebookNode) -> tuple[int, int]:
    """How many functions of an assignment there are among the cells, and how many with its given texts."""
    slots = slots_of(_without_solutions(source))
    pairs = match(slots, found).items()
    functions = [n for n, _ in pairs if slots[n].label in slots[n].names]
    texts = [n for n, at in pairs if not slots[n].answer and same(slots[n].text, found[at].source)]
    return len(functions), len(functions) + len(texts)


def repair(notebook: Mapping[str, Any], source: NotebookNode) -> tuple[NotebookNode, list[str]]:
    """A well-formed notebook with the student's answers, and in sentences what was repaired.

    notebook: the JSON of a hand-in. source: the assignment's source or its release; solutions and
    hidden tests of a source stay out. Answers stand under the release's labels, given cells have the
    release's text, and whatever else the student wrote stays, in order. Neither argument is
    modified. Raises ValueError with the reason if the notebook cannot be read.
    """
    made = _without_solutions(source)
    slots = slots_of(made)
    found, remarks = sanitise(notebook)
    matched = match(slots, found)
    notes: Notes = defaultdict(list)
    placed = list(_in_place(slots, found, matched, notes))
    _put_back(slots, placed, notes)
    made.cells = [cell for _, cell in placed]
    _give_ids(placed, slots)
    made.nbformat, made.nbformat_minor = 4, 5
    bound = NOTHING.union(*map(names_in, made.cells))
    notes["nowhere"] = [f"`{name}`" for slot in slots for name in sorted(slot.names - bound)]
    said = [text.format(_listed(notes[key])) for key, text in SAYS.items() if notes[key]]
    return made, said + remarks


def _listed(names: Sequence[str]) -> str:
    """Each name once, and of many the first."""
    different = list(dict.fromkeys(names))
    more = f" and {len(different) - MOST} more" if len(different) > MOST else ""
    return ", ".join(different[:MOST]) + more


def _without_solutions(source: NotebookNode) -> NotebookNode:
    """A copy of a source or a release as students get it."""
    text = "\n".join(cell.source for cell in source.cells)
    hidden = re.search(r"^\s*#+ BEGIN (SOLUTION|HIDDEN TESTS)", text, re.MULTILINE)
    return given(source) if hidden else deepcopy(source)


def _in_place(
    slots: Sequence[Slot], found: Sequence[Found], matched: Mapping[int, int], notes: Notes
) -> Iterator[Placed]:
    """The student's cells in order, those that stand for cells of the release as the release has them."""
    number_of = {at: number for number, at in matched.items()}
    named = {slot.label: slot.name for slot in slots if slot.label}
    for at, one in enumerate(found):
        number = number_of.get(at)
        if number is not None:
            yield from _restored(number, slots[number], one, notes)
            continue
        copied = next((slot for slot in slots if same(slot.text, one.source)), None)
        if copied:
            notes["copy"].append(copied.name)
        elif one.label in named:
            notes["code" if one.kind == "code" else "words"].append(named[one.label])
        if not copied:
            yield None, one.cell()


def _restored(number: int, slot: Slot, one: Found, notes: Notes) -> Iterator[Placed]:
    """A cell under its label, in its type; beside a given one, what the student added to it."""
    if one.label != slot.label:
        notes["label"].append(slot.name)
    if one.kind != slot.cell.cell_type:
        notes["kind"].append(slot.name)
    if slot.answer:
        cell = one.cell(slot.cell.cell_type)
        cell.metadata = deepcopy(slot.cell.metadata)
        yield number, cell
        return
    given = deepcopy(slot.cell)
    if not same(one.source, slot.text):
        notes["text"].append(slot.name)
    elif given.cell_type == "code" == one.kind:
        given.outputs, given.execution_count = one.cell().outputs, one.count
    own = one.source.replace(slot.text, "").strip("\n")
    if set(own.splitlines()) <= set(slot.text.splitlines()):
        yield number, given
        return
    extra = replace(one, source=own, outputs=[]).cell()
    # What the student added comes after it. Where the given text is damaged it comes last, so that
    # its definitions hold.
    both: list[Placed] = [(number, given), (None, extra)]
    yield from both if slot.text in one.source else reversed(both)


def _put_back(slots: Sequence[Slot], placed: list[Placed], notes: Notes) -> None:
    """Add the labelled cells and the code that are missing, each before what follows it in the release."""
    for number, slot in enumerate(slots):
        there = {one for one, _ in placed}
        if number in there or not (slot.answer or slot.given):
            continue
        notes["missing"].append(slot.name)
        cell = deepcopy(slot.cell)
        if any(slot.names & names_in(other) for _, other in placed):
            # The stub would take the place of the answer.
            cell.source = f"# {slot.label} is defined in another cell."
        later = (at for at, (one, _) in enumerate(placed) if one is not None and one > number)
        placed.insert(next(later, len(placed)), (number, cell))


def _give_ids(placed: Sequence[Placed], slots: Sequence[Slot]) -> None:
    """Give each cell an id of its own: the release's, else the one that it came with, else a new one."""
    for number, cell in placed:
        if number is not None:
            cell.id = slots[number].cell.get("id") or f"given-{number}"
    used = {cell.id for number, cell in placed if number is not None}
    fresh = (f"extra-{number}" for number in count(1))
    for number, cell in placed:
        if number is None:
            if not ID.fullmatch(cell.id) or cell.id in used:
                cell.id = next(new for new in fresh if new not in used)
            used.add(cell.id)
