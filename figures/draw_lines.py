"""A sentence, and lines from one word to the words it looks at."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from .look import BLUE, GREY, INK, ORANGE, axes, plain, styled


@styled
def draw_lines(
    words: Sequence[str],
    weights_S: npt.ArrayLike,
    *,
    query: int,
    ax: Axes | None = None,
    label_above: float = 0.1,
) -> Axes:
    """Draw `words` in a row and an arc from word `query` to each word, as thick as its weight.

    weights_S (S,) are the weights of that one query. The largest is drawn in a second colour; those
    of `label_above` or more carry their number.
    """
    weights = np.asarray(weights_S, dtype=float)
    if weights.shape != (len(words),):
        raise ValueError(f"weights_S must be ({len(words)},), one a word: found {weights.shape}")
    if not 0 <= query < len(words):
        raise ValueError(f"query must be from 0 to {len(words) - 1}: found {query}")
    ax = axes(ax, 7.4, 1.9)
    widths = np.array([max(len(word), 2) + 1.6 for word in words])
    centres = np.cumsum(widths) - widths / 2
    span, best = widths.sum(), int(weights.argmax())
    for j, (x, weight) in enumerate(zip(centres, weights, strict=True)):
        colour = ORANGE if j == best else BLUE
        reach = abs(x - centres[query])
        height = 0.22 + 0.78 * np.sqrt(reach / span)
        if j != query and weight > 0.005:
            curve = Path(
                [(centres[query], 0), (centres[query], height), (x, height), (x, 0)],
                [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
            )
            ax.add_patch(
                PathPatch(
                    curve,
                    fill=False,
                    edgecolor=colour,
                    linewidth=0.6 + 7 * weight,
                    alpha=0.25 + 0.75 * weight,
                    capstyle="round",
                )
            )
        if weight >= label_above:
            top = 0.75 * height + 0.05 if j != query else 0.05
            middle = (x + centres[query]) / 2
            ax.text(middle, top, f"{weight:.2f}", ha="center", va="bottom", color=colour, size=9)
        bold = "bold" if j in (query, best) else "normal"
        ink = INK if j == query else colour if j == best else GREY
        ax.text(x, -0.06, plain(words[j]), ha="center", va="top", weight=bold, color=ink, size=10)
    ax.set(xlim=(0, span), ylim=(-0.3, 1.02))
    ax.set_axis_off()
    return ax
