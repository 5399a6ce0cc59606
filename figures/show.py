"""Show a figure as one SVG that says in words what it shows."""

import html
import io
import re
import urllib.parse
import warnings

import matplotlib.pyplot as plt
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .look import root_figure, styled

FITS = "max-width:100%;height:auto"
_READABLE = " /:=,;()!*+@?'"


def show(figure: Axes | Figure, *, alt: str) -> None:
    """Display `figure` as SVG with a title and `alt` as its description, and close it.

    `alt` says what the picture shows to somebody who cannot see it: at least a sentence. Raises
    ValueError for less. Nothing is saved and None is returned, so that a cell may end with it.
    """
    svg = to_svg(figure, alt=alt)
    # JupyterLab shows the HTML: of an SVG it makes an image without words that does not shrink.
    picture = f'<img class="still" alt="{html.escape(alt)}" src="{svg_uri(svg)}" style="{FITS}">'
    display(  # type: ignore[no-untyped-call]
        {"image/svg+xml": svg, "text/html": picture, "text/plain": alt},
        metadata={"image/svg+xml": {"alt": alt}},
        raw=True,
    )


def svg_uri(svg: str) -> str:
    """The address under which an <img> finds `svg` in itself."""
    return f"data:image/svg+xml,{urllib.parse.quote(svg, safe=_READABLE)}"


@styled
def to_svg(figure: Axes | Figure, *, alt: str) -> str:
    """The SVG that `show` displays, the same on every run; the figure is closed."""
    alt = " ".join(alt.split())
    if len(alt) < 20:
        raise ValueError(f"alt must say in a sentence what the figure shows: found {alt!r}")
    fig = root_figure(figure)
    file = io.StringIO()
    with warnings.catch_warnings():
        # The letters are the reader's own: a font that lacks some here says nothing of that.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        fig.savefig(
            file,
            format="svg",
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    plt.close(fig)
    title = next((a.get_title(loc="left") for a in fig.axes if a.get_title(loc="left")), "")
    title = html.escape(title or alt.split(". ")[0])
    head = f'<svg role="img" style="{FITS}" aria-label="{html.escape(alt)}"'
    words = f"<title>{title}</title><desc>{html.escape(alt)}</desc>"
    svg = file.getvalue()
    svg = _shorten(svg[svg.index("<svg") :]).replace("<svg", head, 1)
    return re.sub(r"(<svg[^>]*>)", lambda match: match[1] + words, svg, count=1)


def _shorten(svg: str) -> str:
    """The same picture with paths to a hundredth of a point, and one font before the general one."""
    svg = re.sub(r"'Bitstream Vera Sans'[^;\"]*, sans-serif", "sans-serif", svg)
    return re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)
