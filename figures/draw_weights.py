"""A matrix of weights or scores, queries down, keys across."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from .look import axes, labels, styled


@styled
def draw_weights(
    weights_TS: npt.ArrayLike,
    *,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    values: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw weights (T, S) from 0 (white) to 1 (dark): a row a query, a column a key.

    `queries` and `keys` name them; `values` writes the number into each cell.
    """
    return _matrix(weights_TS, queries, keys, values, ax, "Blues", (0.0, 1.0))


@styled
def draw_scores(
    scores_TS: npt.ArrayLike,
    *,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    values: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw scores (T, S) of either sign: red below 0, white at 0, blue above."""
    top = float(np.abs(np.asarray(scores_TS)).max(initial=1e-12))
    return _matrix(scores_TS, queries, keys, values, ax, "RdBu", (-top, top))


def _matrix(
    matrix_TS: npt.ArrayLike,
    queries: Sequence[str] | None,
    keys: Sequence[str] | None,
    values: bool,
    ax: Axes | None,
    colours: str,
    limits: tuple[float, float],
) -> Axes:
    matrix = np.asarray(matrix_TS, dtype=float)
    if matrix.ndim != 2:
        raise ValueError(f"a matrix (T, S) is drawn, one head at a time: found {matrix.shape}")
    T, S = matrix.shape
    ax = axes(ax, 1.6 + 0.42 * S, 1.2 + 0.36 * T)
    many = T * S > 400  # as shapes these would make an SVG of half a megabyte
    ax.pcolormesh(
        matrix,
        cmap=colours,
        vmin=limits[0],
        vmax=limits[1],
        edgecolors="none" if many else "white",
        linewidth=0 if many else 1,
        rasterized=many,
    )
    ax.invert_yaxis()
    ax.set_aspect("equal")
    ax.set_xticks(np.arange(S) + 0.5, labels("keys", keys or [str(j) for j in range(S)], S))
    ax.set_yticks(np.arange(T) + 0.5, labels("queries", queries or [str(i) for i in range(T)], T))
    if keys and max(map(len, keys)) > 2:
        ax.tick_params(axis="x", labelrotation=60)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="key", ylabel="query")
    if values:
        for i, j in np.ndindex(T, S):
            strong = abs(matrix[i, j]) > 0.6 * limits[1]
            ax.text(
                j + 0.5,
                i + 0.5,
                f"{matrix[i, j]:.2f}",
                ha="center",
                va="center",
                size=8,
                color="white" if strong else "#1f2933",
            )
    return ax
