"""Formulas as MathML, made when the book is built: a page needs no script to show them."""

import html
import re

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)


class FormulaError(ValueError):
    """A formula that cannot be set."""


def to_mathml(latex: str, *, display: bool = False) -> str:
    """The formula as `<math>` that says, for whoever cannot see it, its LaTeX.

    Raises FormulaError for a command that is not known.
    """
    try:
        math = LatexToMathML().convert_with_local_state(latex, displaystyle=display)
    except LatexError as error:
        reason = re.sub(r"\x1b\[[\d;]*m", "", str(error)).strip().splitlines()[0]
        raise FormulaError(f"{latex!r} cannot be set: {reason}") from error
    return math.replace("<math", '<math xmlns="http://www.w3.org/1998/Math/MathML"', 1)


# Symbols as one types them, W_Q or 2 n² d or 10000^(2i/d): factors of which one has an index or a power.
_SYMBOL = r"[A-Za-z](?:_[A-Za-z0-9]+)?[²³]?"
_FACTOR = rf"(?:\d+\^\([^()]+\)|\d+|{_SYMBOL})"
_TYPED = re.compile(rf"(?<![\w$./]){_FACTOR}(?:(?: · |/){_FACTOR}| {_SYMBOL}(?!\w))*(?![\w(]|\.\w)")


def typeset(text: str) -> str:
    """The text with its typed symbols as formulas in dollars, such as $W_Q$."""
    return _TYPED.sub(
        lambda found: f"${_latex(found[0])}$" if re.search(r"[_^²³]", found[0]) else found[0], text
    )


def _latex(typed: str) -> str:
    latex = re.sub(r"_([A-Za-z0-9]{2,})", r"_{\\text{\1}}", typed)
    latex = re.sub(r"\^\(([^()]+)\)", r"^{\1}", latex)
    return latex.replace("²", "^2").replace("³", "^3").replace("·", r"\cdot")


def typeset_html(text: str) -> str:
    """The same as HTML."""
    return re.sub(
        r"\$([^$]+)\$", lambda found: to_mathml(found[1]), html.escape(typeset(text), quote=False)
    )


def _set(node: nodes.math | nodes.math_block, *, display: bool = False) -> str:
    """The node's formula; one that cannot be set is a warning, with its place, and stays as it was typed."""
    try:
        return to_mathml(node.astext(), display=display)
    except FormulaError as error:
        LOGGER.warning("%s", error, location=node, type="book")
        return f"<code>{html.escape(node.astext())}</code>"


def _visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_set(node))
    raise nodes.SkipNode


def _visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """A formula of its own, in a box that scrolls, with its number; the label is eq-<number>."""
    label = node.get("label") or ""
    number = label.removeprefix("eq-").replace("-", ".")
    anchor = f' id="{html.escape(label)}"' if label else ""
    self.body.append(
        f'<div class="equation"{anchor}><div class="formula" tabindex="0" role="group" '
        f'aria-label="Equation {number}">{_set(node, display=True)}</div>'
    )
    if number:
        self.body.append(f'<a class="number" href="#{label}">({number})</a>')
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Make it the way in which HTML pages set formulas."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
