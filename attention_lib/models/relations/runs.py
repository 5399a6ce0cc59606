"""What was measured of each encoder that was trained for chapter 4, shipped or not."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from .data import RELATIONS
from .measure import Answers, Head, HeadMatrix, Hops

WEIGHTS = Path(__file__).parent / "weights"
STORED = WEIGHTS / "heads.json"


@dataclass(frozen=True)
class StoredRun:
    """One encoder, trained and measured on held-out sentences.

    variant   what differs from the recipe of the shipped ones, "8 heads"
    recipe    all that the run depends on
    steps     after which the curve was measured: training steps (C,)
    curve     the answers then: loss and accuracy are (C, R)
    matrix    of every head, and hops, when it was trained
    order     of the heads as they were pruned, none where that was not measured
    pruned    the answers with 0, 1, 2, ... of them off: loss and accuracy are (L · H + 1, R)
    """

    variant: str
    recipe: dict[str, Any]
    steps: tuple[int, ...]
    curve: Answers
    matrix: HeadMatrix
    hops: Hops
    order: tuple[Head, ...]
    pruned: Answers

    @property
    def seed(self) -> int:
        """Of everything random in the run."""
        return int(self.recipe["seed"])

    def arrives(self, share: float = 0.95) -> int | None:
        """The first of `steps` after which all relations trained have this accuracy, if any."""
        trained = [relation in self.recipe["relations"] for relation in RELATIONS]
        good = (self.curve.accuracy[:, trained] >= share).all(-1)
        return self.steps[int(good.argmax())] if good.any() else None


def stored_runs(variant: str | None = None, path: Path = STORED) -> list[StoredRun]:
    """The stored runs, all or those of one variant, in the order in which they were made.

    Raises ValueError for an unknown variant, listing those that are stored.
    """
    runs = [_read(row) for row in json.loads(path.read_text(encoding="utf-8"))]
    chosen = [run for run in runs if variant in (None, run.variant)]
    if not chosen:
        names = ", ".join(dict.fromkeys(run.variant for run in runs))
        raise ValueError(f"no runs {variant!r}; stored are {names}")
    return chosen


def write_runs(runs: Sequence[StoredRun], path: Path = STORED) -> None:
    """Store runs as JSON, one a line; floats to four digits."""
    rows = ",\n".join(json.dumps(_plain(asdict(run)), separators=(",", ":")) for run in runs)
    path.write_text(f"[\n{rows}\n]\n", encoding="utf-8")


def join_answers(answers: Sequence[Answers]) -> Answers:
    """Several answers as one, whose loss and accuracy are (n, R)."""
    return Answers(
        np.array([each.loss for each in answers]), np.array([each.accuracy for each in answers])
    )


def _plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {name: _plain(value) for name, value in x.items()}
    if isinstance(x, np.ndarray | tuple | list):
        return [_plain(value) for value in x]
    # A rise of -0.0000123 is stored as 0: what is below 0.0001 nats is rounding.
    return round(float(x), 4) + 0.0 if isinstance(x, float | np.floating) else x


def _read(row: dict[str, Any]) -> StoredRun:
    def answers(value: dict[str, Any]) -> Answers:
        return Answers(**{name: np.array(part) for name, part in value.items()})

    matrix = row["matrix"]
    arrays = {field.name: np.array(matrix[field.name]) for field in fields(HeadMatrix)[1:]}
    return StoredRun(
        variant=row["variant"],
        recipe=row["recipe"],
        steps=tuple(row["steps"]),
        curve=answers(row["curve"]),
        matrix=HeadMatrix(answers(matrix["whole"]), **arrays),
        hops=Hops(**row["hops"]),
        order=tuple((layer, head) for layer, head in row["order"]),
        pruned=answers(row["pruned"]),
    )
