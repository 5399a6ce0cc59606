"""The pages that students get back: their notebook with marks, advice and comments, without a script."""

from __future__ import annotations

import contextlib
import html
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode
from nbgrader.converters import GenerateFeedback
from nbgrader.preprocessors import GetGrades
from tqdm import tqdm

from .folders import below
from .nbgrader_bridge import GradebookBusyError, NbGraderError, OneFolder, converting
from .options import options_of
from .outdated import leave_out
from .totals import points_of

PAGE = Path(__file__).with_name("feedback.html.j2")
IMAGES = ("image/png", "image/jpeg")
LONGEST = 10_000  # characters of Markdown that are set; more is shown as it was typed
LONGEST_FORMULA = 1_000  # a deeper one would overflow the stack of what sets it


def feedback(course: Path, name: str, *, outdated: bool = False) -> list[Path]:
    """Make the page of every submission in the gradebook, anew; returns the pages.

    Whose marks are not for what is handed in now gets none, and loses an older one, unless `outdated`.

    Raises FileNotFoundError if nothing is marked yet; and NbGraderError, when the others are made,
    for pages that could not be.
    """
    students = sorted(
        path.parents[1].name for path in course.glob(f"autograded/*/{name}/{name}.ipynb")
    )
    if not students:
        raise FileNotFoundError(f"nothing is marked: python -m assignments grade {name}")
    old = leave_out(course, name, students, outdated=outdated)
    for student in old:
        _page(course, name, student).unlink(missing_ok=True)
    students = [student for student in students if student not in old]
    failed = []
    for student in tqdm(students, desc="feedback", unit="page"):
        try:
            with converting(course, name, _Feedback, student=student) as converter:
                converter.start()
        except GradebookBusyError:
            raise
        except NbGraderError as error:
            failed.append(f"{student}: {error}")
    if failed:
        raise NbGraderError(f"every page was made but these. {' '.join(failed)}")
    return [_page(course, name, student) for student in students]


def _page(course: Path, name: str, student: str) -> Path:
    return below(course, "feedback", student, name, f"{name}.html")


@pass_context
def to_html(context: Context, source: str) -> str:
    """Markdown as HTML; a filter for nbconvert's templates in place of its own.

    What a student writes is text: HTML in it is shown, not obeyed, and only images that are in the
    notebook are drawn. What cannot be set is shown as it was typed.
    """
    attachments = context.get("cell", {}).get("attachments", {})
    try:
        if len(source) > LONGEST:
            raise ValueError("too long")
        return str(MarkdownWithMath(renderer=_Renderer(attachments)).render(source))
    except Exception:  # a student's text may break the parser in any way
        return f"<pre>{html.escape(source)}</pre>"


class FeedbackPage(HTMLExporter):
    """nbconvert's exporter with our page."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]
        self.raw_template = PAGE.read_text(encoding="utf-8")


class GetMarks(GetGrades):  # type: ignore[misc]
    """nbgrader's marks as they count, and for each question whether it is marked."""

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """The notebook with its marks, and their sum less what lateness costs."""
        nb, resources = super().preprocess(nb, resources)
        points = sum(cell.metadata.get("nbgrader", {}).get("score", 0.0) for cell in nb.cells)
        about = resources["nbgrader"]
        about["score"] = max(0.0, points - about["late_penalty"])
        return nb, resources

    def _get_score(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        super()._get_score(cell, resources)
        grade = self.gradebook.find_grade(
            cell.metadata.nbgrader.grade_id, self.notebook_id, self.assignment_id, self.student_id
        )
        unmarked = grade.auto_score is None and grade.manual_score is None
        about = cell.metadata.nbgrader
        about["marked"], about["score"] = not unmarked, points_of(grade, options_of(self.config))


class _Feedback(OneFolder, GenerateFeedback):  # type: ignore[misc]
    """The page of one submission, and no other file of it."""

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        """Copy nothing."""


class _Renderer(IPythonRenderer):
    """Markdown without HTML, scripts or anything from elsewhere; formulas as MathML."""

    def __init__(self, attachments: Any) -> None:
        super().__init__(
            escape=True,
            allow_harmful_protocols=False,
            exclude_anchor_links=True,
            attachments=attachments,
        )

    def block_math(self, body: str) -> str:
        """A formula on a line of its own."""
        return _formula(body, display=True)

    def inline_math(self, body: str) -> str:
        """A formula in a sentence."""
        return _formula(body, display=False)

    def latex_environment(self, name: str, body: str) -> str:
        """An environment such as `align`."""
        return _formula(f"\\begin{{{name}}}{body}\\end{{{name}}}", display=True)

    def block_mermaidjs(self, code: str) -> str:
        """A drawing that would need a script: its text."""
        return f"<pre>{html.escape(code)}</pre>"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """An image of the notebook's own, or its words."""
        attached = self.attachments.get(url.removeprefix("attachment:"), {})
        for kind in IMAGES:
            if kind in attached:
                data = html.escape(str(attached[kind]))
                return f'<img src="data:{kind};base64,{data}" alt="{html.escape(text)}">'
        return html.escape(text or url)


def _formula(latex: str, *, display: bool) -> str:
    """MathML where math-core is installed and knows the commands; else LaTeX as it was typed."""
    formula = f"<code>{html.escape(latex)}</code>"
    if find_spec("math_core") and len(latex) <= LONGEST_FORMULA:
        from math_core import LatexToMathML

        with contextlib.suppress(Exception):
            formula = LatexToMathML().convert_with_local_state(latex, displaystyle=display)
    return f'<div class="formula" tabindex="0">{formula}</div>' if display else formula
