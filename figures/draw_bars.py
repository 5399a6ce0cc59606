"""Bars for a few numbers, and shares with their intervals."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from .look import BLUE, FAINT, axes, labels, plain, styled


@styled
def draw_bars(
    names: Sequence[str],
    series: Mapping[str, npt.ArrayLike],
    *,
    ylabel: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw for each of `names` one bar a series, side by side, with a legend."""
    ax = axes(ax, 6.4, 2.6)
    width = 0.8 / len(series)
    for number, (label, values) in enumerate(series.items()):
        heights = np.asarray(values, dtype=float)
        if heights.shape != (len(names),):
            raise ValueError(
                f"{label!r} needs {len(names)} values, one a name: found {heights.shape}"
            )
        x = np.arange(len(names)) + (number - (len(series) - 1) / 2) * width
        ax.bar(x, heights, width=0.92 * width, label=plain(label))
    ax.set_xticks(np.arange(len(names)), labels("names", names, len(names)))
    ax.tick_params(axis="x", length=0)
    ax.set_ylabel(ylabel)
    if len(series) > 1:
        ax.legend(frameon=False, ncols=len(series), loc="lower left", bbox_to_anchor=(0, 1))
    return ax


@styled
def draw_shares(
    names: Sequence[str],
    shares: npt.ArrayLike,
    intervals: npt.ArrayLike | None = None,
    *,
    xlabel: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw shares between 0 and 1 as dots on lines, with intervals (n, 2) from low to high."""
    values = np.asarray(shares, dtype=float)
    ax = axes(ax, 6.4, 0.9 + 0.32 * len(names))
    if values.shape != (len(names),):
        raise ValueError(f"shares needs {len(names)} values, one a name: found {values.shape}")
    rows = np.arange(len(names))
    ax.hlines(rows, 0, 1, color=FAINT, linewidth=1)
    if intervals is not None:
        low, high = np.asarray(intervals, dtype=float).T
        ax.hlines(rows, low, high, color=BLUE, linewidth=4, alpha=0.35)
    ax.scatter(values, rows, color=BLUE, s=40, zorder=3)
    ax.set_yticks(rows, labels("names", names, len(values)))
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set(xlim=(-0.03, 1.03), xlabel=xlabel)
    return ax
