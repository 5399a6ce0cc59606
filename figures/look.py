"""What every static figure shares: the style sheet, the colours, an Axes to draw on."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

STYLE = Path(__file__).with_name("book.mplstyle")
INK, GREY, FAINT = "#1f2933", "#52606d", "#e4e7eb"
# The colours of heads 1 to 5 and of keys A to E, as in js/look.js and in book.mplstyle; q, k and v have the first three.
BLUE, ORANGE, TEAL, WINE, GOLD = "#065393", "#c74306", "#017d6a", "#6b0d3c", "#665f02"

P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Run `draw` under the style of the book, whatever the reader's own settings are."""

    @functools.wraps(draw)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        with plt.style.context(STYLE):
            return draw(*args, **kwargs)

    return wrapper


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """`ax`, or the Axes of a new figure of that many inches."""
    if ax is not None:
        return ax
    return plt.subplots(figsize=(width, height))[1]


def root_figure(part: Axes | Figure) -> Figure:
    """The whole figure that an Axes is in, for which Matplotlib before 3.10 has no call. Raises ValueError if it is in none."""
    found: Any = part.figure
    while isinstance(found, SubFigure):
        found = found.figure
    if found is None:
        raise ValueError("this Axes belongs to no figure any more")
    return found


@styled
def panels(rows: int, columns: int, *, width: float = 6.4, height: float = 3.2) -> Any:
    """A new figure of `rows` × `columns` Axes in the style of the book, as plt.subplots gives them."""
    return plt.subplots(rows, columns, figsize=(width, height))[1]


def plain(text: str) -> str:
    """Words as they are: a dollar sign begins no formula."""
    return str(text).replace("$", r"\$")


def labels(name: str, words: Sequence[str], count: int) -> list[str]:
    """`count` words as they are. Raises ValueError, with the argument's `name`, for more or fewer."""
    if len(words) != count:
        raise ValueError(f"{name} must hold {count} names: found {len(words)}")
    return [plain(word) for word in words]
