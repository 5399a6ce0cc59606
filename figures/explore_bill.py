"""Live figure "where does the bill go": projections, feed-forward and scores of one layer."""

from itertools import accumulate, pairwise
from typing import Any, ClassVar

import traitlets

from attention_lib.cost import Bill, crossover, layer_bill
from attention_lib.shapes import check_count

from .live import COLOURS, LiveFigure, bundle
from .rest import Axis, Frame, text

FEWEST, MOST = 100, 1_000_000
WIDTHS = (*sorted(factor * 2**power for factor in (2, 3) for power in range(6, 13)), 2**14)
# From the floor up, by the names of `Bill`.
PARTS = {
    "projections": ("projections", "8·n·d²", COLOURS[2]),
    "feed_forward": ("feed-forward", "16·n·d²", COLOURS[0]),
    "scores": ("scores and sum", "4·n²·d", COLOURS[1]),
}
_UNITS = (
    (1e15, "P", "quadrillion"),
    (1e12, "T", "trillion"),
    (1e9, "G", "billion"),
    (1e6, "M", "million"),
)


class ExploreBill(LiveFigure):
    """What one layer spends on projections, feed-forward and scores, against tokens and width.

    n: tokens, from 100 to 1,000,000. d: width of the layer, a power of two from 128 to 16,384 or one
    and a half times such. The cost is even at n = 6 d. Raises ValueError for any other integer,
    TypeError for anything else.
    """

    name: ClassVar[str] = "bill"
    _esm = bundle("bill")

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

    def growth(self) -> float:
        """How many times as much twice the tokens cost."""
        return layer_bill(2 * self.n, self.d).total / self._bill().total

    def _bill(self) -> Bill:
        return layer_bill(self.n, self.d)

    def summary(self) -> str:
        """Shares of the bill, where the scores overtake, and what doubling does."""
        bill = self._bill()
        shares = [
            f"{words} {getattr(bill, part) / bill.total:.1%}"
            for part, (words, _, _) in PARTS.items()
        ]
        return (
            f"At {self.n:,} tokens a layer {self.d:,} wide costs {large(bill.total, long=True)} FLOPs: "
            f"{', '.join(shares).replace('%', ' %')}. Scores and sum cost as much as all the rest at "
            f"n = 6·d = {crossover(self.d):,}. Twice the tokens: {self.growth():.2f} times the bill."
        )

    def resting_svg(self) -> str:
        """The shares against n with a bar at the tokens on show; the bill of n and of 2 n."""
        ticks = (*((10.0**power, f"{10**power:,}") for power in range(2, 6)), (1e6, "10⁶"))
        halves = ((0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %"))
        frame = Frame(54, 50, 330, 190, Axis(FEWEST, MOST, ticks, True), Axis(0, 1, halves))
        lengths = [FEWEST * (MOST / FEWEST) ** (i / 48) for i in range(49)]
        stacks = [_stack(n, self.d) for n in lengths]
        even = frame.at(crossover(self.d), 0.5)
        words_on_top: list[str] = []
        parts = [
            frame.paper(f"Share of the bill; half and half at n = 6·d = {crossover(self.d):,}"),
            (
                f'<path d="M{even[0]:g} 46v194" stroke="currentColor" stroke-dasharray="2 3"/>'
                f'<circle cx="{even[0]:g}" cy="{even[1]:g}" r="4"/>'
            ),
        ]
        seen = _stack(self.n, self.d)
        for i, (words, _, colour) in enumerate(PARTS.values()):
            upper = [frame.at(n, stack[i][1]) for n, stack in zip(lengths, stacks, strict=True)]
            lower = [frame.at(n, stack[i][0]) for n, stack in zip(lengths, stacks, strict=True)]
            outline = "L".join(f"{x:g} {y:g}" for x, y in (*upper, *reversed(lower)))
            x, top = frame.at(self.n, seen[i][1])
            height = frame.at(self.n, seen[i][0])[1] - top
            behind = max(x + 7, even[0]) if 0 <= even[0] - x < 60 else x + 7
            place, anchor = (behind + 8, "start") if x < 220 else (x - 14, "end")
            parts.append(
                f'<path d="M{outline}Z" fill="{colour}" fill-opacity=".2"/>'
                f'<rect x="{x - 7:g}" y="{top:g}" width="14" height="{height:.1f}" fill="{colour}"/>'
            )
            if height > 12:
                style = f'font-weight="600" fill="{colour}"'
                words_on_top.append(text(place, top + height / 2 + 4, words, anchor, style))
        return self.svg(
            270, "Where does the bill go?", *parts, *words_on_top, *self._receipt(440, 302)
        )

    def _receipt(self, left: float, width: float) -> list[str]:
        """Two bars on one scale, and the bill line by line."""
        once, twice = self._bill(), layer_bill(2 * self.n, self.d)
        most = twice.total
        title = f"Twice the tokens: × {self.growth():.2f}"
        parts = [text(left, 40, title, "start", 'font-weight="600"')]
        for y, bill in ((50, once), (78, twice)):
            x = left
            for part, (_, _, colour) in PARTS.items():
                long = getattr(bill, part) / most * width
                parts.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{long:.1f}" height="22" fill="{colour}"/>'
                )
                x += long
        columns = (left + 198, left + 252, left + width)
        parts.append(text(left, 136, "FLOPs at n =", "start"))
        for x, words in zip(columns, (f"{self.n:,}", f"{2 * self.n:,}", "times"), strict=True):
            parts.append(text(x, 136, words, "end"))
        lines = [*reversed(PARTS.items()), ("total", ("together", "", "currentColor"))]
        for y, (part, (words, formula, colour)) in zip(range(164, 256, 24), lines, strict=True):
            parts.append(text(left, y, words, "start", f'font-weight="600" fill="{colour}"'))
            parts.append(text(left + 111, y, formula, "start"))
            costs = getattr(once, part), getattr(twice, part)
            shown = (*map(large, costs), f"× {costs[1] / costs[0]:.2f}".removesuffix(".00"))
            for x, number in zip(columns, shown, strict=True):
                parts.append(text(x, y, number, "end"))
        return parts


def _stack(n: float, d: int) -> list[tuple[float, float]]:
    """Where each part begins and ends in a bar of height 1."""
    bill = layer_bill(round(n), d)
    ends = [0.0, *accumulate(getattr(bill, part) / bill.total for part in PARTS)]
    return list(pairwise(ends))


def large(x: int, *, long: bool = False) -> str:
    """A large number in three digits, its unit a letter or, if `long`, a word."""
    size, letter, word = next((unit for unit in _UNITS if float(f"{x:.3g}") >= unit[0]), _UNITS[-1])
    return f"{f'{x / size:#.3g}'.removesuffix('.')} {word if long else letter}"
