"""What heads do: a dot for each head and relation, its size what is lost without the head."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from .look import FAINT, INK, axes, styled


@styled
def draw_heads(
    rise_LHR: npt.ArrayLike,
    weight_LHR: npt.ArrayLike,
    *,
    relations: Sequence[str],
    ax: Axes | None = None,
) -> Axes:
    """Draw a row for each head, "layer.head" from 1, and a column for each relation.

    The area of a dot is the rise in loss (nats) without the head, 0 and below drawn as none; its
    fill, from white to dark, the head's mean weight (0 to 1) on the word that tells.
    """
    rise, weight = np.asarray(rise_LHR, dtype=float), np.asarray(weight_LHR, dtype=float)
    layers, heads, count = rise.shape
    rows = layers * heads
    ax = axes(ax, 1.4 + 0.5 * count, 0.8 + 0.24 * rows)
    ax.hlines(np.arange(rows), -0.5, count - 0.5, color=FAINT, linewidth=0.8, zorder=0)
    y, x = np.indices((rows, count))
    area = 210 * (rise.clip(0) / rise.max(initial=1e-12)).reshape(rows, count)
    shown = area > 0.5
    ax.scatter(
        x[shown],
        y[shown],
        s=area[shown],
        c=weight.reshape(rows, count)[shown],
        cmap="Blues",
        vmin=0,
        vmax=1,
        edgecolors=INK,
        linewidths=0.7,
    )
    ax.set_yticks(
        np.arange(rows), [f"{i + 1}.{h + 1}" for i in range(layers) for h in range(heads)]
    )
    ax.set_xticks(np.arange(count), relations, rotation=60, ha="right", rotation_mode="anchor")
    ax.set(xlim=(-0.6, count - 0.4), ylim=(rows - 0.4, -0.6))
    ax.axhline(heads - 0.5, color=INK, linewidth=0.6)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax
