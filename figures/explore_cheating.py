"""Live figure "the cheating model": a language model trained with its causal mask and without."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import traitlets

from attention_lib.models import stored_files

from .live import LiveFigure, bundle

RECORD = stored_files()["cheating.json"]
WORDS = tuple("<start> the animal did not cross the street".split())
_RUNS = ("masked", "unmasked")


class ExploreCheating(LiveFigure):
    """A switch removes the mask: loss curves and generated sentences, as they were recorded.

    record: {"steps": [...], "masked": run, "unmasked": run}; a run has "loss", one for each of the
    steps, and "samples", [step, text] each, the same steps in both; and may have "alone", [step,
    loss] one position at a time, and "accepted", [step, share of good sentences]. By default what
    `python -m attention_lib.models.language` stored. step: one of the samples' steps, the last
    unless given. Raises ValueError for a record that lacks something, or another step.
    """

    name: ClassVar[str] = "cheating"
    _esm = bundle("cheating")

    masked = traitlets.Bool().tag(sync=True)
    step = traitlets.Int().tag(sync=True)
    record = traitlets.Dict().tag(sync=True)
    words = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(
        self,
        record: Mapping[str, Any] | None = None,
        *,
        masked: bool = False,
        step: int | None = None,
    ) -> None:
        if record is None:
            record = json.loads(RECORD.read_text(encoding="utf-8"))
        known = _read(record)
        steps = [at for at, _ in known["masked"]["samples"]]
        step = steps[-1] if step is None else step
        if step not in steps:
            raise ValueError(f"step must be one of {', '.join(map(str, steps))}: found {step}")
        super().__init__(masked=masked, step=step, record=known, words=list(WORDS))

    def state(self) -> dict[str, Any]:
        """The traits."""
        return {name: getattr(self, name) for name in ("masked", "step", "record", "words")}


def _read(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the figure needs of a record, checked."""
    try:
        steps = [int(step) for step in record["steps"]]
        runs = {run: dict(record[run]) for run in _RUNS}
        samples = {run: [int(step) for step, _ in runs[run]["samples"]] for run in _RUNS}
        losses = {run: len(runs[run]["loss"]) for run in _RUNS}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            "record needs steps, masked and unmasked, and each of the two loss and samples: "
            f"{type(error).__name__} {error}"
        ) from error
    if set(losses.values()) != {len(steps)} or not steps:
        raise ValueError(f"each loss needs one number for each of {len(steps)} steps: {losses}")
    if samples["masked"] != samples["unmasked"] or not samples["masked"]:
        raise ValueError(f"both models need samples after the same steps: {samples}")
    kept = ("loss", "samples", "alone", "accepted")
    return {"steps": steps} | {
        run: {name: runs[run][name] for name in kept if name in runs[run]} for run in _RUNS
    }
