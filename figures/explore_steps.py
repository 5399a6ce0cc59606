"""Live figure "the two machines step by step": a recurrent network beside self-attention."""

from typing import Any, ClassVar

import traitlets

from .live import LiveFigure, bundle

FEWEST, MOST = 2, 32


class ExploreSteps(LiveFigure):
    """A recurrent network lights up cell by cell, self-attention all at once; steps are counted.

    tokens: from 2 to 32. step: how many have been taken, 0 to tokens. Raises ValueError for anything else.
    """

    name: ClassVar[str] = "steps"
    _esm = bundle("steps")

    tokens = traitlets.Int().tag(sync=True)
    step = traitlets.Int().tag(sync=True)

    def __init__(self, tokens: int = 12, *, step: int = 3) -> None:
        if not FEWEST <= tokens <= MOST:
            raise ValueError(f"tokens must be from {FEWEST} to {MOST}: found {tokens}")
        if not 0 <= step <= tokens:
            raise ValueError(f"step must be from 0 to {tokens}: found {step}")
        super().__init__(tokens=tokens, step=step)

    def state(self) -> dict[str, Any]:
        """The traits."""
        return {"tokens": self.tokens, "step": self.step}
