"""Roofs: what machines can reach, by the operations that a program does for each byte."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from .look import GREY, INK, axes, plain, styled


@styled
def draw_roofline(
    intensity: npt.ArrayLike,
    roofs: Mapping[str, npt.ArrayLike],
    points: Mapping[str, tuple[float, float]],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw each of `roofs` over `intensity`, both by factors, and `points` (x, y) with their names.

    intensity in operations for each byte, roofs and points in 10¹² operations a second.
    """
    x = np.asarray(intensity, dtype=float)
    ax = axes(ax, 6.4, 3.4)
    for name, roof in roofs.items():
        y = np.asarray(roof, dtype=float)
        (line,) = ax.plot(x, y)
        ax.annotate(
            plain(name),
            (x[-1], y[-1]),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=line.get_color(),
            annotation_clip=False,
        )
    for name, (across, up) in points.items():
        ax.scatter([across], [up], s=36, color=INK, zorder=3)
        ax.annotate(
            plain(name),
            (across, up),
            xytext=(7, -10),
            textcoords="offset points",
            va="top",
            color=GREY,
        )
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=10)
    ax.set(xlabel="operations for each byte", ylabel="10¹² operations a second")
    ticks = 2.0 ** np.arange(np.ceil(np.log2(x[0])), np.floor(np.log2(x[-1])) + 1, 2)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    heights = [10.0, 100.0, 1000.0]
    ax.set_yticks(heights, [f"{height:,.0f}" for height in heights])
    ax.minorticks_off()
    ax.margins(x=0.01)
    return ax
