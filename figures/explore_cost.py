"""Live figure "where does the cost go": projections, feed-forward and scores of one layer."""

from typing import Any, ClassVar

import traitlets

from attention_lib.shapes import check_count

from .live import LiveFigure, bundle

FEWEST, MOST = 100, 1_000_000
WIDTHS = (*sorted(factor * 2**power for factor in (2, 3) for power in range(6, 13)), 2**14)


class ExploreCost(LiveFigure):
    """What one layer spends on projections, feed-forward and scores, against tokens and width.

    n: tokens, from 100 to 1,000,000. d: width of the layer, a power of two from 128 to 16,384 or one
    and a half times such. The cost is even at n = 6 d. Raises ValueError for any other integer,
    TypeError for anything else.
    """

    name: ClassVar[str] = "cost"
    _esm = bundle("cost")

    n = traitlets.Int().tag(sync=True)
    d = traitlets.Int().tag(sync=True)

    def __init__(self, n: int = 500, *, d: int = 512) -> None:
        super().__init__(n=check_count("n", n, least=None), d=check_count("d", d, least=None))

    @traitlets.validate("n")
    def _known_tokens(self, proposal: dict[str, Any]) -> int:
        if not FEWEST <= proposal["value"] <= MOST:
            raise ValueError(f"n must be from {FEWEST} to {MOST:,}: found {proposal['value']}")
        return int(proposal["value"])

    @traitlets.validate("d")
    def _known_width(self, proposal: dict[str, Any]) -> int:
        if proposal["value"] not in WIDTHS:
            widths = ", ".join(map(str, WIDTHS))
            raise ValueError(f"d must be one of {widths}: found {proposal['value']}")
        return int(proposal["value"])

    def state(self) -> dict[str, Any]:
        """The traits."""
        return {"n": self.n, "d": self.d}
