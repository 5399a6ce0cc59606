"""Which cell of a hand-in stands for which cell of the release, whatever happened to the labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from nbformat import NotebookNode

from .folders import ours
from .sanitise import Found, bound

Rank = tuple[bool, ...] | None
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Slot:
    """A cell of the release, and what is known of it.

    label: its nbgrader id, or "". names: what a student's cell must bind to be the answer to it.
    """

    cell: NotebookNode
    label: str
    answer: bool
    names: frozenset[str]

    @property
    def text(self) -> str:
        """What the release says in this cell."""
        return self.cell.source

    @property
    def given(self) -> bool:
        """Whether the cell is the release's in every hand-in: what is labelled, and code."""
        return not self.answer and (bool(self.label) or self.cell.cell_type == "code")

    @property
    def name(self) -> str:
        """The cell in a sentence."""
        return f"`{self.label or self.cell.get('id', 'a given cell')}`"


def slots_of(release: NotebookNode) -> list[Slot]:
    """The cells of a release in order."""
    slots = []
    for cell in release.cells:
        about = cell.metadata.get("nbgrader", {})
        label, answer = about.get("grade_id", ""), about.get("solution", False)
        names = names_in(cell) if answer else NOTHING
        slots.append(Slot(cell, label, answer, names & {label} or names))
    return slots


def names_in(cell: NotebookNode) -> frozenset[str]:
    """The names that a cell of code binds at the top."""
    return (bound(cell.source) or NOTHING) if cell.cell_type == "code" else NOTHING


def same(one: str, two: str) -> bool:
    """Whether two texts differ in white space at most."""
    return one.split() == two.split()


def match(slots: Sequence[Slot], found: Sequence[Found]) -> dict[int, int]:
    """For cells of the release, by number, the number of the cell that stands for it.

    What a cell holds counts before what it says it is: given cells are known by their text, code
    by the names that it binds, then words by label or place; labels alone decide the rest. What some
    assignment gives its students to read is no answer in words.
    """
    labels = _labels(slots, found)
    released = [any(same(one.source, slot.text) for slot in slots) for one in found]
    names = {slot.label: slot.names for slot in slots if slot.names}
    ids = {slot.label for slot in slots} | {slot.cell.get("id", "") for slot in slots}
    statements = {slot.label: slot.text for slot in slots if not slot.answer}
    taken: dict[int, int] = {}

    def claim(number: int, rank: Callable[[int], Rank]) -> None:
        free = (at for at in range(len(found)) if at not in taken.values())
        fits = [(ranked, at) for at in free if (ranked := rank(at)) is not None]
        if fits and number not in taken:
            taken[number] = min(fits)[1]

    def by_text(number: int, at: int) -> Rank:
        fits = same(found[at].source, slots[number].text)
        return (labels[at] != slots[number].label,) if fits else None

    def by_names(number: int, at: int) -> Rank:
        slot, label = slots[number], labels[at]
        elsewhere = label != slot.label and found[at].defines(names.get(label, NOTHING))
        fits = found[at].defines(slot.names) and not elsewhere
        return (released[at], label != slot.label) if fits else None

    def statement(one: Found) -> bool:
        known, texts = _statements()
        foreign = known - ids
        return " ".join(one.source.split()) in texts or one.label in foreign or one.id in foreign

    def restates(at: int) -> bool:
        """Whether it is a given text in another version, with nothing added to ours."""
        text = statements.get(labels[at], "")
        words, known = set(found[at].source.split()), set(text.split())
        return len(words & known) > 0.7 * len(words) and text not in found[at].source

    def words_by_label(number: int, at: int) -> Rank:
        words = (found[at].kind != "code" or not found[at].names) and not statement(found[at])
        return () if words and not released[at] and labels[at] == slots[number].label else None

    def words_by_place(number: int, at: int) -> Rank:
        before = max((taken[n] for n in taken if n < number), default=-1)
        after = min(
            (taken[n] for n in taken if n > number and taken[n] > before), default=len(found)
        )
        words = found[at].kind != "code" or found[at].names is None
        words = words and not statement(found[at]) and not restates(at)
        fits = words and not released[at] and found[at].source.strip() and before < at < after
        return (found[at].kind == "code",) if fits else None

    def by_label(number: int, at: int) -> Rank:
        copied = released[at] and not same(found[at].source, slots[number].text)
        return (released[at],) if labels[at] == slots[number].label != "" and not copied else None

    given = [number for number, slot in enumerate(slots) if not slot.answer]
    code = [number for number, slot in enumerate(slots) if slot.names]
    words = [n for n, slot in enumerate(slots) if slot.answer and slot.cell.cell_type != "code"]
    for numbers, rule in (
        (given, by_text),
        (code, by_names),
        (words, words_by_label),
        (words, words_by_place),
        (range(len(slots)), by_label),
    ):
        for number in numbers:
            claim(number, partial(rule, number))
    return taken


@cache
def _statements() -> tuple[frozenset[str], frozenset[str]]:
    """The labels of all that our assignments give to read, and the texts."""
    every = [slot for release in ours().values() for slot in slots_of(release)]
    read = [slot for slot in every if not slot.answer and slot.cell.cell_type != "code"]
    texts = frozenset(" ".join(slot.text.split()) for slot in read)
    return frozenset(slot.label for slot in read) - {""}, texts


def _labels(slots: Sequence[Slot], found: Sequence[Found]) -> list[str]:
    """Which cell of the release each says it is: by its label, else by its id; "" for none."""
    labels = {slot.label for slot in slots}
    ids = {slot.cell.get("id"): slot.label for slot in slots}
    return [one.label if one.label in labels else ids.get(one.id, "") for one in found]
