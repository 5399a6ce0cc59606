"""Live figure "why divide by sqrt(d_k)": what softmax and its gradients become as the keys grow."""

from typing import Any, ClassVar

import traitlets

from attention_lib.models.saturation.measure import WIDTHS, stored_medians

from .live import LiveFigure, bundle


class ExploreScaling(LiveFigure):
    """Scores, weights, entropy and gradients of one query and 16 keys against d_k.

    d_k: a power of two from 1 to 4,096. scaled: whether scores are divided by sqrt(d_k). draw: which
    draw is on show, from 0 to 999. Raises ValueError for anything else. Behind the draw stand the
    medians of 1,000 others.
    """

    name: ClassVar[str] = "scaling"
    _esm = bundle("scaling")

    d_k = traitlets.Int().tag(sync=True)
    scaled = traitlets.Bool().tag(sync=True)
    draw = traitlets.Int().tag(sync=True)
    medians = traitlets.Dict().tag(sync=True)

    def __init__(self, d_k: int = 128, *, scaled: bool = False, draw: int = 66) -> None:
        super().__init__(d_k=d_k, scaled=scaled, draw=draw, medians=stored_medians())

    @traitlets.validate("d_k")
    def _known_width(self, proposal: dict[str, Any]) -> int:
        if proposal["value"] not in WIDTHS:
            raise ValueError(
                f"d_k must be a power of two from 1 to {WIDTHS[-1]}: found {proposal['value']}"
            )
        return int(proposal["value"])

    @traitlets.validate("draw")
    def _known_draw(self, proposal: dict[str, Any]) -> int:
        if not 0 <= proposal["value"] < 1000:
            raise ValueError(f"draw must be from 0 to 999: found {proposal['value']}")
        return int(proposal["value"])

    def state(self) -> dict[str, Any]:
        """The traits; the medians have three digits."""
        return {name: getattr(self, name) for name in ("d_k", "scaled", "draw", "medians")}
