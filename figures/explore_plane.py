"""Live figure "drag a query among keys": scores, softmax weights and the output in the plane."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import traitlets

from .live import LiveFigure, bundle

KEYS = ((1.9, 0.7), (0.3, 2.0), (-1.7, 1.1), (-1.2, -1.5), (1.1, -1.7))
VALUES = ((-1.6, 1.5), (1.3, 1.9), (2.1, -0.6), (0.1, -2.1), (-2.1, -0.7))


class ExplorePlane(LiveFigure):
    """One query among labelled keys in the plane; the values, in a plane of their own, are averaged.

    keys, values (S, 2), within -3 and 3. query (2,). sharpness: what 1/sqrt(2) is multiplied by.
    Raises ValueError for other shapes, more than nine keys, and numbers that are not finite.
    """

    name: ClassVar[str] = "plane"
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
        for name, numbers in (("query", query), ("keys", keys), ("values", values)):
            if not np.isfinite(numbers).all():
                raise ValueError(f"{name} must be finite: found NaN or infinity")
        if not np.isfinite(sharpness):
            raise ValueError(f"sharpness must be finite: found {sharpness}")
        super().__init__(
            query=[float(x) for x in query],
            key_vectors=[[float(x) for x in key] for key in keys],
            value_vectors=[[float(x) for x in value] for value in values],
            labels=[str(label) for label in labels[:S]],
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


def _rounded(numbers: Sequence[float]) -> list[float]:
    return [round(number, 4) for number in numbers]
