"""Live figure "the tiles in motion": softmax over the keys in tiles, one after another."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import traitlets

from attention_lib import attention
from attention_lib.shapes import check_count, describe

from .explore_scaling import Floats, normals
from .live import COLOURS, LiveFigure, bundle
from .rest import text

TOKENS, SIDE, KEY_WIDTH, VALUE_WIDTH = 24, 4, 8, 4
# In this draw query 14 meets a larger score twice, and what it prints agrees to both digits.
SEED = 607
_LEFT, _TOP, _CELL, _ROOM = 86, 46, 9, 58
_GREY = "#7b869c"


def draw_example(seed: int = SEED) -> tuple[Floats, Floats, Floats]:
    """q and k (24, 8), v (24, 4), standard normal, the same as in the page."""
    widths = (KEY_WIDTH, KEY_WIDTH, VALUE_WIDTH)
    ends = np.cumsum([TOKENS * width for width in widths])
    q, k, v, _ = np.split(normals(seed, int(ends[-1])), ends)
    return q.reshape(TOKENS, -1), k.reshape(TOKENS, -1), v.reshape(TOKENS, -1)


@dataclass(frozen=True)
class Kept:
    """What is kept of a query after some tiles: m, l and the answer o / l (4,).

    powers: exp(score - m) of each key read, whose sum is l.
    """

    m: float
    l: float  # noqa: E741
    answer: Floats
    powers: Floats


def last_tile(query: int, causal: bool) -> int:
    """How many tiles `query` (1 to 24) reads: all 6, or with a causal mask those up to its own."""
    return math.ceil((query if causal else TOKENS) / SIDE)


def keep(query: int, step: int, causal: bool) -> Kept:
    """What is kept of `query` after `step` tiles, by plain attention to the keys read so far."""
    q, k, v = draw_example()
    seen = min(SIDE * step, query if causal else TOKENS)
    if seen == 0:
        return Kept(-math.inf, 0.0, np.zeros(VALUE_WIDTH), np.zeros(0))
    row = q[query - 1 : query]
    out, weights = attention(row, k[:seen], v[:seen], return_weights=True)
    largest = float(weights.max())
    m = float((row @ k[:seen].T).max()) / math.sqrt(KEY_WIDTH)
    return Kept(m, 1 / largest, out[0], weights[0] / largest)


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

    def summary(self) -> str:
        """Maximum, sum and output so far, and what the last tile did to them."""
        count = last_tile(self.query, self.causal)
        if self.step == 0:
            return (
                f"Query {self.query} has read none of {count} tiles of {SIDE} keys: its running "
                "maximum is −∞, its sum and output are 0."
            )
        now, before = self._kept(), keep(self.query, self.step - 1, self.causal)
        if self.step == 1:
            did = "It is the first."
        elif now.m > before.m:
            did = (
                f"It holds a larger score than {_number(before.m)}: what was summed is multiplied by "
                f"exp({_number(before.m)} − {_bracketed(now.m)}) = {math.exp(before.m - now.m):.2f} "
                "before it is added."
            )
        else:
            did = "It holds no larger score, and nothing is rescaled."
        answer = ", ".join(_number(x) for x in now.answer)
        return (
            f"Query {self.query} after tile {self.step} of {count}: largest score m {_number(now.m)}, sum "
            f"of exp(score − m) {now.l:.2f}. {did} Output over sum: {answer}."
        )

    def _kept(self) -> Kept:
        return keep(self.query, self.step, self.causal)

    def resting_svg(self) -> str:
        """The scores in tiles with the row of tiles that is read, its bars under it; what is kept."""
        parts = [
            text(_LEFT, 24, "Scores in tiles of 4 keys", "start", 'font-weight="600"'),
            *self._tiles(),
            *self._row(),
            *self._bars(),
            *self._numbers(400),
        ]
        return self.svg(_TOP + TOKENS * _CELL + _ROOM + 54, "The tiles in motion", *parts)

    def _tiles(self) -> list[str]:
        """Faint squares, but for the row of tiles that is read; skipped ones in outline."""
        side = SIDE * _CELL
        shown, skipped = [], []
        for row in range(TOKENS // SIDE):
            for column in range(TOKENS // SIDE):
                place = (
                    f"M{_LEFT + column * side + 1} {_TOP + row * side + 1}h{side - 2}v{side - 2}"
                    f"h{2 - side}z"
                )
                if self.causal and column > row:
                    skipped.append(place)
                elif row != (self.query - 1) // SIDE:
                    shown.append(place)
        return [
            f'<path d="{"".join(shown)}" fill="{_GREY}" opacity=".18"/>',
            f'<path d="{"".join(skipped)}" fill="none" stroke="{_GREY}" stroke-dasharray="2 3"/>',
        ]

    def _row(self) -> list[str]:
        """The tiles of four queries, cell by cell, and the query that is followed."""
        q, k, _ = draw_example()
        scores = q @ k.T
        first = (self.query - 1) // SIDE * SIDE
        shades = np.digitize(scores, np.quantile(scores, (0.4, 0.7, 0.9)))
        paths: dict[tuple[str, int], list[str]] = {}
        for t in range(first, first + SIDE):
            for s in range(SIDE * last_tile(self.query, self.causal)):
                if not (self.causal and s > t):
                    place = f"M{_LEFT + s * _CELL} {_TOP + t * _CELL + 4}h{_CELL - 1}"
                    paths.setdefault((self._colour(s), int(shades[t, s])), []).append(place)
        y = _TOP + (self.query - 1) * _CELL
        width = SIDE * last_tile(self.query, self.causal) * _CELL
        outline = (
            f'<rect x="{_LEFT - 1}" y="{y - 1}" width="{width + 1}" height="{_CELL + 1}" rx="2" '
            'fill="none" stroke="currentColor"/>'
        )
        return [
            *(
                f'<path d="{"".join(places)}" stroke="{colour}" stroke-width="{_CELL - 1}" '
                f'opacity="{(0.2, 0.4, 0.65, 1)[shade]}"/>'
                for (colour, shade), places in paths.items()
            ),
            outline,
            text(_LEFT - 6, y + 9, f"query {self.query}", "end", 'font-weight="600"'),
        ]

    def _colour(self, key: int) -> str:
        tile = key // SIDE + 1
        if tile == self.step:
            return COLOURS[1]
        return COLOURS[0] if tile < self.step else _GREY

    def _bars(self) -> list[str]:
        """exp(score - m) of each key that was read, and in dashes what it was before the last tile."""
        now, before = self._kept(), keep(self.query, max(0, self.step - 1), self.causal)
        floor = _TOP + TOKENS * _CELL + 22 + _ROOM
        parts = [
            f'<path d="M{_LEFT} {floor}h{TOKENS * _CELL}" stroke="currentColor" opacity=".3"/>',
            text(_LEFT, floor + 16, "bars exp(score − m), their sum l", "start"),
        ]
        for key, power in enumerate(now.powers):
            x = _LEFT + key * _CELL + 1
            high = round(_ROOM * power, 1)
            opacity = "" if self._colour(key) == COLOURS[1] else ' opacity=".6"'
            parts.append(
                f'<rect x="{x}" y="{floor - high:.1f}" width="{_CELL - 2}" height="{high}" '
                f'fill="{self._colour(key)}"{opacity}/>'
            )
            if power == 1:
                parts.append(
                    text(
                        x + 4, floor - high - 6, f"m = {_number(now.m)}", style='font-weight="600"'
                    )
                )
        if now.m > before.m:
            outline = "".join(
                f"M{_LEFT + key * _CELL + 1} {floor}v{-_ROOM * power:.1f}h{_CELL - 2}V{floor}"
                for key, power in enumerate(before.powers)
            )
            parts.append(
                f'<path d="{outline}" fill="none" stroke="{COLOURS[0]}" stroke-dasharray="2 2"/>'
            )
        return parts

    def _numbers(self, left: int) -> list[str]:
        """Maximum, factor, sum and output in their lines."""
        now, before = self._kept(), keep(self.query, max(0, self.step - 1), self.causal)
        factor = math.exp(before.m - now.m) if self.step else 0.0
        bold = 'font-weight="600"'
        lines = [f"m = {_number(now.m)}", f"l = {now.l:.2f}"]
        if self.step:
            new = _number(max(before.m, now.m))
            lines = [
                f"largest score: m = {new}",
                f"rescale by exp({_number(before.m)} − {_bracketed(now.m)}) = {factor:.2f}",
                f"sum: l = {factor:.2f} · {before.l:.2f} + {now.l - factor * before.l:.2f} = {now.l:.2f}",
            ]
        parts = [text(left, 24, f"What is kept of query {self.query}", "start", bold)]
        parts += [text(left, 54 + 24 * i, line, "start") for i, line in enumerate(lines)]
        parts.append(
            text(left, 152, "output so far, o / l; ticks: all keys at once", "start", bold)
        )
        whole = keep(self.query, last_tile(self.query, self.causal), self.causal)
        for i, (value, end) in enumerate(zip(now.answer, whole.answer, strict=True)):
            y = 172 + 24 * i
            x, tick = (120 + 60 * min(2.0, max(-2.0, float(at))) for at in (value, end))
            parts.append(
                f'<path d="M{left} {y + 6}h240" stroke="{_GREY}" stroke-width="12" opacity=".15"/>'
                f'<rect x="{left + min(x, 120):.1f}" y="{y}" width="{abs(x - 120):.1f}" height="12" '
                f'fill="{COLOURS[2]}"/>'
                f'<path d="M{left + tick:.1f} {y - 3}v18" stroke="currentColor" stroke-width="2"/>'
            )
            shown = _number(float(value)) if self.step else "–"
            parts.append(text(left + 296, y + 10, shown, "end"))
        return parts


def _between(name: str, value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise ValueError(f"{name} must be from {low} to {high}: found {value}")
    return value


def _number(x: float) -> str:
    """Two digits with a true minus sign."""
    if x == -math.inf:
        return "−∞"
    return f"{x:.2f}".replace("-0.00", "0.00").replace("-", "−")


def _bracketed(x: float) -> str:
    return f"({_number(x)})" if x < 0 else _number(x)
