"""Live figure "the two machines step by step": a recurrent network beside self-attention."""

from itertools import pairwise
from typing import Any, ClassVar

import traitlets

from attention_lib.cost import Cost, layer_costs

from .live import COLOURS, LiveFigure, bundle
from .rest import text

WIDTHS = (64, 128, 256, 512, 1024)
FEWEST, MOST = 2, 32
_TOP, _BOTTOM, _GREY = 66, 150, "#b9c0cc"


class ExploreMachines(LiveFigure):
    """A recurrent network lights up cell by cell, self-attention all at once; steps are counted.

    tokens: from 2 to 32. d: width of the layer, one of 64, 128, 256, 512, 1024. step: how many have
    been taken, 0 to tokens. Counts are `attention_lib.cost.layers.layer_costs`. Raises ValueError for anything else.
    """

    name: ClassVar[str] = "machines"
    _esm = bundle("machines")

    tokens = traitlets.Int().tag(sync=True)
    d = traitlets.Int().tag(sync=True)
    step = traitlets.Int().tag(sync=True)

    def __init__(self, tokens: int = 12, *, d: int = 512, step: int = 3) -> None:
        if not FEWEST <= tokens <= MOST:
            raise ValueError(f"tokens must be from {FEWEST} to {MOST}: found {tokens}")
        if d not in WIDTHS:
            raise ValueError(f"d must be one of {', '.join(map(str, WIDTHS))}: found {d}")
        if not 0 <= step <= tokens:
            raise ValueError(f"step must be from 0 to {tokens}: found {step}")
        super().__init__(tokens=tokens, d=d, step=step)

    def state(self) -> dict[str, Any]:
        """The traits."""
        return {"tokens": self.tokens, "d": self.d, "step": self.step}

    def _costs(self) -> tuple[Cost, Cost]:
        """Of the recurrent layer and of self-attention."""
        costs = layer_costs(self.tokens, self.d)
        return costs["recurrent"], costs["self-attention"]

    def summary(self) -> str:
        """Steps, longest path and work of both machines."""
        recurrent, attention = self._costs()
        links = "link" if recurrent.path == 1 else "links"
        return (
            f"{self.tokens} tokens, after step {self.step}: self-attention takes "
            f"{attention.sequential} steps in sequence, a recurrent network {recurrent.sequential}. "
            f"From the first token to the last: {attention.path} link against {recurrent.path} {links}. "
            f"A layer of width {self.d}: {attention.multiply_adds:,} multiply-adds against "
            f"{recurrent.multiply_adds:,}."
        )

    def resting_svg(self) -> str:
        """The two machines side by side, the path from the first token to the last broad."""
        recurrent, attention = self._costs()
        parts = []
        for draw, cost, left, title in (
            (self._chain, recurrent, 30, "Recurrent network: one cell after another"),
            (self._all_pairs, attention, 410, "Self-attention: all pairs at once"),
        ):
            places = [round(left + 12 + 296 * i / (self.tokens - 1), 1) for i in range(self.tokens)]
            radius = round(min(9.0, 120 / self.tokens), 1)
            parts.append(text(left, 30, title, "start", 'font-weight="600"'))
            lines, colours = draw(places)
            parts.append(lines)
            for x, colour in zip(places, colours, strict=True):
                parts.append(f'<circle cx="{x:g}" cy="{_TOP}" r="{radius:g}" fill="{colour}"/>')
                parts.append(
                    f'<circle cx="{x:g}" cy="{_BOTTOM}" r="{0.8 * radius:g}" opacity=".7"/>'
                )
            parts.append(text(places[0], _BOTTOM + 26, "1"))
            parts.append(text(places[-1], _BOTTOM + 26, str(self.tokens)))
            step = min(self.step, cost.sequential)
            counts = f"step {step} of {cost.sequential}, path {cost.path}"
            parts.append(text(left + 160, _BOTTOM + 52, counts))
        return self.svg(_BOTTOM + 72, "Two machines read a sentence", *parts)

    def _chain(self, places: list[float]) -> tuple[str, list[str]]:
        """Lines, and the colour of each cell: one state a step."""
        lit = COLOURS[1]
        cells = [lit if self.step > i else _GREY for i in range(self.tokens)]
        inputs = [
            _line(x, _BOTTOM, x, _TOP, cell, 1) for x, cell in zip(places, cells, strict=True)
        ]
        links = [
            _line(a, _TOP, b, _TOP, cell, 4)
            for (a, b), cell in zip(pairwise(places), cells[1:], strict=True)
        ]
        return "".join(inputs + links), cells

    def _all_pairs(self, places: list[float]) -> tuple[str, list[str]]:
        """Lines, and the colour of each output: after the scores, all at once."""
        lit = COLOURS[0]
        done = lit if self.step >= 2 else _GREY
        web = "".join(f"M{a:g} {_BOTTOM}L{b:g} {_TOP}" for a in places for b in places)
        shade = lit if self.step else _GREY
        return (
            f'<path d="{web}" stroke="{shade}" stroke-width=".6" opacity=".45"/>'
            + _line(places[0], _BOTTOM, places[-1], _TOP, done, 4)
        ), [done] * self.tokens


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    return (
        f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{colour}" stroke-width="{width:g}" '
        'stroke-linecap="round"/>'
    )
