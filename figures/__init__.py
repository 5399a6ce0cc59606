"""Figures: static ones drawn from arrays, and live ones that compute in the page.

Static: draw_*(arrays, ax=None) -> Axes; show(ax, alt="…") displays it. Live: Explore*, such as
ExploreHeads. Nothing here computes attention; that is `attention_lib`'s.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from .draw_bars import draw_bars, draw_shares
from .draw_curves import draw_curves
from .draw_heads import draw_heads
from .draw_lines import draw_lines
from .draw_roofline import draw_roofline
from .draw_weights import draw_scores, draw_weights
from .look import panels
from .show import show

# Loaded when first asked for, since a static figure needs no widget and no questions.
_LATER = {
    f"Explore{module.name.removeprefix('explore_').capitalize()}": f".{module.name}"
    for module in iter_modules(__path__)
    if module.name.startswith("explore_")
} | {"quiz": ".quiz"}

__all__ = [
    "draw_bars",
    "draw_curves",
    "draw_heads",
    "draw_lines",
    "draw_roofline",
    "draw_scores",
    "draw_shares",
    "draw_weights",
    "panels",
    "show",
    *_LATER,
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"figures has no {name!r}; it has {', '.join(__all__)}")
    value = getattr(import_module(_LATER[name], __name__), name)
    globals()[name] = value  # figures.quiz is the function, though its module has that name too
    return value
