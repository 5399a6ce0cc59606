"""Live figure "drag a query among keys": scores, softmax weights and the output in the plane."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import traitlets

from attention_lib import attention

from .live import COLOURS, LiveFigure, bundle, escape

KEYS = ((1.9, 0.7), (0.3, 2.0), (-1.7, 1.1), (-1.2, -1.5), (1.1, -1.7))
VALUES = ((-1.6, 1.5), (1.3, 1.9), (2.1, -0.6), (0.1, -2.1), (-2.1, -0.7))
_SIZE, _REACH, _TOP = 320, 3.2, 38


class ExplorePlane(LiveFigure):
    """One query among labelled keys in the plane; the values, in a plane of their own, are averaged.

    keys, values (S, 2), within -3 and 3. query (2,). sharpness: what 1/sqrt(2) is multiplied by.
    Raises ValueError for other shapes, or more than nine keys.
    """

    name: ClassVar[str] = "plane"
    width: ClassVar[int] = 800
    _esm = bundle("plane")

    query = traitlets.List(traitlets.Float()).tag(sync=True)
    key_vectors = traitlets.List(traitlets.List(traitlets.Float())).tag(sync=True)
    value_vectors = traitlets.List(traitlets.List(traitlets.Float())).tag(sync=True)
    labels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    sharpness = traitlets.Float(1.0).tag(sync=True)

    def __init__(
        self,
        query: Sequence[float] = (1.3, 1.2),
        keys: Sequence[Sequence[float]] = KEYS,
        values: Sequence[Sequence[float]] = VALUES,
        *,
        labels: Sequence[str] = "ABCDEFGHI",
        sharpness: float = 1.0,
    ) -> None:
        shapes = np.shape(query), np.shape(keys), np.shape(values)
        S = len(keys)
        if shapes != ((2,), (S, 2), (S, 2)) or not 1 <= S <= min(9, len(labels)):
            raise ValueError(
                "query (2,), keys (S, 2) and values (S, 2) with 1 to 9 labelled keys are needed: "
                f"query {shapes[0]}, keys {shapes[1]}, values {shapes[2]}, labels {len(labels)}"
            )
        super().__init__(
            query=[float(x) for x in query],
            key_vectors=[[float(x) for x in key] for key in keys],
            value_vectors=[[float(x) for x in value] for value in values],
            labels=list(labels[:S]),
            sharpness=float(sharpness),
        )

    def state(self) -> dict[str, Any]:
        """The traits, rounded to 4 digits."""
        return {
            "query": _rounded(self.query),
            "key_vectors": [_rounded(key) for key in self.key_vectors],
            "value_vectors": [_rounded(value) for value in self.value_vectors],
            "labels": list(self.labels),
            "sharpness": round(self.sharpness, 4),
        }

    def _attend(self) -> tuple[list[float], list[float]]:
        """The output (2,) and the weights (S,)."""
        q, k, v = (np.array(x) for x in ([self.query], self.key_vectors, self.value_vectors))
        out, weights = attention(q, k, v, scale=self.sharpness / math.sqrt(2), return_weights=True)
        return out[0].tolist(), weights[0].tolist()

    def summary(self) -> str:
        """Where the query looks and where the output lies."""
        output, weights = self._attend()
        best = weights.index(max(weights))
        parts = ", ".join(
            f"{label} {weight:.2f}" for label, weight in zip(self.labels, weights, strict=True)
        )
        return (
            f"A query at {_point(self.query)} looks most at key "
            f"{self.labels[best]}. Weights: {parts}. The output, the weighted mean of the values, "
            f"is {_point(output)}."
        )

    def resting_svg(self) -> str:
        """The two planes side by side, the weights as bars between them."""
        output, weights = self._attend()
        left, right = 8, 472
        parts = [_paper(left), _paper(right)]
        for x, title in ((168, "Query and keys"), (400, "Weights"), (632, "Values and output")):
            parts.append(f'<text x="{x}" y="26">{title}</text>')
        for i, (key, value) in enumerate(zip(self.key_vectors, self.value_vectors, strict=True)):
            colour, weight = COLOURS[i % len(COLOURS)], weights[i]
            strength = f'stroke-width="{1 + 5 * weight:.2f}" opacity="{0.3 + 0.7 * weight:.2f}"'
            label = escape(self.labels[i])
            parts += [
                _stroke(left, (0, 0), key, f'stroke="{colour}" {strength}'),
                _dot(left, key, 6, colour, label),
                _stroke(right, output, value, f'stroke="{colour}" {strength}'),
                _dot(right, value, 4 + 7 * weight, colour, label),
                _bar(i, label, colour, weight),
            ]
        parts += [
            _stroke(left, (0, 0), self.query, 'stroke="currentColor" stroke-width="2.5"'),
            _dot(left, self.query, 9, "currentColor", "q"),
            _dot(right, output, 9, "currentColor", "output"),
        ]
        return self.svg(366, "A query among keys", *parts)


def _point(point: Sequence[float]) -> str:
    return f"({point[0]:.2f}, {point[1]:.2f})".replace("-", "−")


def _rounded(numbers: Sequence[float]) -> list[float]:
    return [round(number, 4) for number in numbers]


def _at(point: Sequence[float], left: float) -> tuple[float, float]:
    """Where a point of the plane lies in the picture."""
    unit = _SIZE / 2 / _REACH
    return round(left + _SIZE / 2 + unit * point[0], 1), round(
        _TOP + _SIZE / 2 - unit * point[1], 1
    )


def _paper(left: float) -> str:
    return (
        f'<rect x="{left}" y="{_TOP}" width="{_SIZE}" height="{_SIZE}" rx="10" opacity=".06"/>'
        f'<path d="M{left} {_TOP + _SIZE / 2}h{_SIZE}M{left + _SIZE / 2} {_TOP}v{_SIZE}" '
        'stroke="currentColor" opacity=".2"/>'
    )


def _stroke(left: float, start: Sequence[float], end: Sequence[float], style: str) -> str:
    (x1, y1), (x2, y2) = _at(start, left), _at(end, left)
    return f'<path d="M{x1} {y1}L{x2} {y2}" stroke-linecap="round" {style}/>'


def _dot(left: float, point: Sequence[float], radius: float, colour: str, label: str) -> str:
    x, y = _at(point, left)
    return (
        f'<circle cx="{x}" cy="{y}" r="{radius:.1f}" fill="{colour}"/>'
        f'<text x="{x}" y="{y - radius - 5:.1f}" font-weight="600">{label}</text>'
    )


def _bar(i: int, label: str, colour: str, weight: float) -> str:
    y, end = 116 + 34 * i, 360 + 72 * weight
    return (
        f'<text x="345" y="{y + 13}" font-weight="600">{label}</text>'
        f'<rect x="360" y="{y}" width="{end - 360:.1f}" height="16" rx="3" fill="{colour}"/>'
        f'<text x="{end + 6:.1f}" y="{y + 13}" text-anchor="start" font-size="12">{weight:.2f}</text>'
    )
