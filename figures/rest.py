"""Pieces of the pictures at rest: curves in a frame, made of SVG."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .live import escape


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high`, evenly or by factors, with named ticks."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()
    log: bool = False

    def along(self, value: float) -> float:
        """Where `value` lies, 0 to 1; what lies outside is put at the end."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, self.low))
        return min(1.0, max(0.0, (value - low) / (high - low)))


@dataclass(frozen=True)
class Frame:
    """A rectangle of the picture in which curves are drawn."""

    left: float
    top: float
    width: float
    height: float
    x: Axis
    y: Axis

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a point lies in the picture."""
        across, up = self.x.along(x), self.y.along(y)
        return (
            round(self.left + across * self.width, 1),
            round(self.top + (1 - up) * self.height, 1),
        )

    def paper(self, title: str) -> str:
        """The title above, and ticks along both axes."""
        right, bottom = self.left + self.width, self.top + self.height
        parts = [text(self.left, self.top - 10, title, "start", 'font-weight="600"')]
        for value, word in self.y.ticks:
            y = self.at(self.x.low, value)[1]
            parts.append(
                f'<path d="M{self.left:g} {y:g}H{right:g}" stroke="currentColor" opacity=".15"/>'
            )
            parts.append(text(self.left - 6, y + 4, word, "end"))
        for value, word in self.x.ticks:
            parts.append(text(self.at(value, self.y.low)[0], bottom + 16, word, "middle"))
        return "".join(parts)

    def curve(self, points: Iterable[tuple[float, float]], style: str) -> str:
        """A line through points."""
        d = "L".join(f"{x:g} {y:g}" for x, y in (self.at(*point) for point in points))
        return f'<path d="M{d}" fill="none" stroke-linejoin="round" {style}/>'

    def mark(self, x: float) -> str:
        """An upright line."""
        place = self.at(x, self.y.low)[0]
        return f'<path d="M{place:g} {self.top - 4:g}v{self.height + 4:g}" stroke="currentColor"/>'


def text(x: float, y: float, words: str, anchor: str = "middle", style: str = "") -> str:
    """Words in the picture, small."""
    return (
        f'<text x="{round(x, 1):g}" y="{round(y, 1):g}" text-anchor="{anchor}" font-size="12" '
        f"{style}>{escape(words)}</text>"
    )
