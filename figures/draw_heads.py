"""What heads do: a dot for each head and relation, its size what is lost without the head."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from attention_lib.shapes import check_real

from .look import FAINT, GREY, INK, axes, labels, root_figure, styled

Floats = NDArray[np.float64]


LARGEST = 210  # points², the area of the largest dot
EDGE, CMAP = 0.7, "Blues"


@styled
def draw_heads(
    rise_LHR: npt.ArrayLike,
    weight_LHR: npt.ArrayLike,
    *,
    relations: Sequence[str],
    largest: float | None = None,
    legend: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw a row for each head, "layer.head" from 1, and a column for each relation.

    The area of a dot is the rise in loss (nats) without the head, none under a hundredth of the largest; its
    fill, from white to dark, the head's mean weight (0 to 1) on the word that tells.
    largest: nats of the largest dot that there may be, the largest rise by default; give it to panels
    that are compared. legend: whether to say under the whole figure what sizes and fills mean.
    Raises ValueError for arrays that do not fit, for what is not finite, and for a rise above `largest`.
    """
    rise, weight = np.asarray(rise_LHR, dtype=float), np.asarray(weight_LHR, dtype=float)
    _check(rise, weight, relations)
    top = float(rise.max(initial=0.0))
    largest = top if largest is None else check_real("largest", largest)
    if not top <= largest < np.inf:
        raise ValueError(f"largest must be at least the largest rise, {top:.4g}: found {largest}")
    layers, heads, count = rise.shape
    rows = layers * heads
    ax = axes(ax, 1.4 + 0.5 * count, 0.8 + 0.24 * rows + 0.4 * legend)
    ax.hlines(np.arange(rows), -0.5, count - 0.5, color=FAINT, linewidth=0.8, zorder=0)
    y, x = np.indices((rows, count))
    area = LARGEST * (rise.clip(0) / max(largest, 1e-12)).reshape(rows, count)
    shown = area > LARGEST / 100
    ax.scatter(
        x[shown],
        y[shown],
        s=area[shown],
        c=weight.reshape(rows, count)[shown],
        cmap=CMAP,
        vmin=0,
        vmax=1,
        edgecolors=INK,
        linewidths=EDGE,
    )
    ax.set_yticks(
        np.arange(rows), [f"{i + 1}.{h + 1}" for i in range(layers) for h in range(heads)]
    )
    ax.set_xticks(
        np.arange(count),
        labels("relations", relations, count),
        rotation=60,
        ha="right",
        rotation_mode="anchor",
    )
    ax.set(xlim=(-0.6, count - 0.4), ylim=(rows - 0.4, -0.6))
    for layer in range(1, layers):
        ax.axhline(layer * heads - 0.5, color=INK, linewidth=0.6)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if legend:
        _explain(ax, largest)
    return ax


def _check(rise: Floats, weight: Floats, relations: Sequence[str]) -> None:
    if rise.ndim != 3:
        raise ValueError(f"rise must be (layers, heads, relations): found {rise.shape}")
    if weight.shape != rise.shape:
        raise ValueError(
            f"weight and rise must share a shape: rise {rise.shape}, weight {weight.shape}"
        )
    if len(relations) != rise.shape[2]:
        raise ValueError(
            f"relations must name the last axis of rise {rise.shape}: found {len(relations)} names"
        )
    for name, x in (("rise", rise), ("weight", weight)):
        if not np.isfinite(x).all():
            raise ValueError(f"{name} must be finite: found NaN or infinity")


def _explain(ax: Axes, largest: float) -> None:
    """One line under the figure: three sizes of dots, three fills."""

    def dot(area: float, weight: float, label: str) -> Line2D:
        return Line2D(
            [],
            [],
            linestyle="none",
            marker="o",
            markersize=area**0.5,
            markerfacecolor=colormaps[CMAP](weight),
            markeredgecolor=INK,
            markeredgewidth=EDGE,
            label=label,
        )

    sizes = [dot(LARGEST * part, 0.0, f"{largest * part:.2g}") for part in (1 / 16, 1 / 4, 1.0)]
    fills = [dot(LARGEST / 4, weight, f"{weight:g}") for weight in (0.0, 0.5, 1.0)]
    sizes[-1].set_label(f"{largest:.2g} nats lost")
    fills[0].set_label("weight 0")
    figure = root_figure(ax)
    figure.legend(
        handles=[*sizes, *fills],
        loc="outside lower center",
        ncols=6 if figure.get_figwidth() > 5 else 2,
        frameon=False,
        fontsize=9,
        labelcolor=GREY,
        handletextpad=0.4,
        columnspacing=1.2,
    )
