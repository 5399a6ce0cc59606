"""Live figure "the tiles in motion": softmax over the keys in tiles, one after another."""

import math
from typing import Any, ClassVar

import traitlets

from attention_lib.shapes import check_count, describe

from .live import LiveFigure, bundle

TOKENS, SIDE = 24, 4  # of queries and keys, and of a tile
# In this draw query 14 meets a larger score twice, and what it prints agrees to both digits.
SEED = 607


def last_tile(query: int, causal: bool) -> int:
    """How many tiles `query` (1 to 24) reads: all 6, or with a causal mask those up to its own."""
    return math.ceil((query if causal else TOKENS) / SIDE)


class ExploreTiles(LiveFigure):
    """One query's running maximum, sum and output while it reads its keys in tiles of 4.

    query: the one that is followed, 1 to 24. step: tiles read, from 0 to the last that the query
    sees. causal: whether later keys are hidden, and tiles that hold nothing else skipped.

    Raises ValueError for other numbers, TypeError for what is no integer or no truth value. A query
    or a mask that is changed later takes `step` back to the last tile that is seen.
    """

    name: ClassVar[str] = "tiles"
    _esm = bundle("tiles")

    query = traitlets.Int().tag(sync=True)
    step = traitlets.Int().tag(sync=True)
    causal = traitlets.Bool().tag(sync=True)
    seed = traitlets.Int(SEED).tag(sync=True)

    def __init__(self, query: int = 14, *, step: int = 1, causal: bool = False) -> None:
        query, step = check_count("query", query, least=None), check_count("step", step, least=None)
        if not isinstance(causal, bool):
            raise TypeError(f"causal must be True or False: found {describe(causal)}")
        super().__init__(query=query, step=step, causal=causal)

    @traitlets.validate("query")
    def _known_query(self, proposal: dict[str, Any]) -> int:
        return _between("query", proposal["value"], 1, TOKENS)

    @traitlets.validate("step")
    def _known_step(self, proposal: dict[str, Any]) -> int:
        return _between("step", proposal["value"], 0, last_tile(self.query, self.causal))

    @traitlets.observe("query", "causal")
    def _stay_in_sight(self, _: object) -> None:
        self.step = min(self.step, last_tile(self.query, self.causal))

    def state(self) -> dict[str, Any]:
        """The traits; the example is drawn again from its seed."""
        return {name: getattr(self, name) for name in ("query", "step", "causal", "seed")}


def _between(name: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise ValueError(f"{name} must be from {low} to {high}: found {value}")
    return value
