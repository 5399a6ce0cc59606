"""Live figure "the cheating model": a language model trained with its causal mask and without."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import traitlets

from attention_lib.models import stored_files

from .live import COLOURS, LiveFigure, bundle
from .rest import Axis, Frame, text

RECORD = stored_files()["cheating.json"]
WORDS = tuple("<start> the animal did not cross the street".split())
_COLOUR = {"masked": COLOURS[2], "unmasked": COLOURS[1]}


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

    def _last(self, run: str, what: str) -> Any:
        """What was recorded last, up to the step on show; None where nothing was."""
        record = self.record[run]
        pairs = zip(self.record["steps"], record["loss"], strict=True)
        found = [
            x for at, x in (pairs if what == "loss" else record.get(what, ())) if at <= self.step
        ]
        return found[-1] if found else None

    def summary(self) -> str:
        """The training loss with the mask and without, and a sentence that each model made."""
        loss = {run: self._last(run, "loss") for run in _COLOUR}
        return (
            f"After {self.step} steps the training loss is {loss['unmasked']:.2g} nats a word without "
            f"the causal mask and {loss['masked']:.2f} with it. Without the mask the model writes: "
            f"“{self._last('unmasked', 'samples')}”; with it: “{self._last('masked', 'samples')}”."
        )

    def resting_svg(self) -> str:
        """Both loss curves, and below them what each model writes."""
        steps = self.record["steps"]
        last = max(steps[-1], self.record["masked"]["samples"][-1][0])
        most = max(max(self.record[run]["loss"]) for run in _COLOUR)
        frame = Frame(
            60,
            40,
            580,
            130,
            Axis(0, last, tuple((last * i / 4, f"{last * i / 4:,.0f}") for i in range(5))),
            Axis(0, most, tuple((float(i), str(i)) for i in range(int(most) + 1))),
        )
        parts = [frame.paper("Training loss, nats a word, against steps"), frame.mark(self.step)]
        for i, (run, name) in enumerate((("masked", "mask on"), ("unmasked", "mask off"))):
            colour, losses = _COLOUR[run], self.record[run]["loss"]
            curve = zip(steps, losses, strict=True)
            parts.append(frame.curve(curve, f'stroke="{colour}" stroke-width="2.5"'))
            at = frame.at(steps[-1], losses[-1])[1] + 4
            parts.append(text(648, at, name, "start", f'fill="{colour}" font-weight="600"'))
            written = _shorten(self._last(run, "samples"))
            parts.append(text(60, 216 + 24 * i, f"{name}: {written}", "start"))
        return self.svg(258, "A model without its mask", *parts)


def _shorten(words: str, most: int = 96) -> str:
    return words if len(words) <= most else f"{words[:most].rsplit(' ', 1)[0]} …"


def _read(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the figure needs of a record, checked."""
    try:
        steps = [int(step) for step in record["steps"]]
        runs = {run: dict(record[run]) for run in _COLOUR}
        samples = {run: [int(step) for step, _ in runs[run]["samples"]] for run in _COLOUR}
        losses = {run: len(runs[run]["loss"]) for run in _COLOUR}
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
        run: {name: runs[run][name] for name in kept if name in runs[run]} for run in _COLOUR
    }
