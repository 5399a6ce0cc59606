"""Curves with their names at their ends."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from .look import GREY, axes, plain, styled


@styled
def draw_curves(
    x: npt.ArrayLike,
    curves: Mapping[str, npt.ArrayLike],
    *,
    xlabel: str,
    ylabel: str,
    points: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw each of `curves` over `x`, its name where it ends, and `points` (x, y) as grey dots."""
    x = np.asarray(x, dtype=float)
    ax = axes(ax, 6.4, 3.0)
    if points is not None:
        ax.scatter(*points, s=14, color=GREY, alpha=0.6, linewidths=0)
    ends = []
    for name, curve in curves.items():
        y = np.asarray(curve, dtype=float)
        (line,) = ax.plot(x, y)
        ends.append((float(y[-1]), name, line.get_color()))
    # Names that would overlap are pushed apart, from the lowest up.
    low, high = ax.get_ylim()
    gap, last = (high - low) * 0.075, -np.inf
    for y_end, name, colour in sorted(ends):
        last = max(y_end, last + gap)
        ax.annotate(
            plain(name),
            (x[-1], last),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            annotation_clip=False,
        )
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.margins(x=0.01)
    return ax
