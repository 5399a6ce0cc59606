"""What nbgrader does for this course: it takes the marks of the sandbox and runs no student's code.

`configure` is the one place for its settings. Our commands use it, and so do nbgrader's own ones and
its Formgrader, through the course's nbgrader_config.py.
"""

import hashlib
import json
from math import ceil
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    ClearHiddenTests,
    ClearOutput,
    DeduplicateIds,
    NbGraderPreprocessor,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
)
from traitlets.config import Config

from ..folders import STUB, below, released, submission
from ..options import options_of
from ..repair import repair
from ..sanitise import node

Resources = dict[str, Any]
CHECK = "-check"
DAY = 24 * 60 * 60  # seconds


class NotMarkedError(RuntimeError):
    """The sandbox has no marks for a submission as it is now."""


class RestoreCells(NbGraderPreprocessor):  # type: ignore[misc]
    """Brings a submission's cells into the release's order and kind before nbgrader looks at them."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """The repaired notebook."""
        notebook, _ = repair(nb, released(_root(self), resources["nbgrader"]["assignment"]))
        return notebook, resources


class SandboxGrade(NbGraderPreprocessor):  # type: ignore[misc]
    """Puts the marks that the sandbox gave into the check cells, where SaveAutoGrades finds them.

    A check cell gets the advice as printed text and the points as its result. Hidden tests and
    what a student wrote into the notebook's metadata go out of the copy that is kept.
    """

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """The notebook with its marks. Raises NotMarkedError if there are none for this one."""
        about = resources["nbgrader"]
        marks = read_marks(_root(self), about["assignment"], about["student"])
        hidden = ClearHiddenTests(parent=self.parent)
        for cell in nb.cells:
            question = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if question.endswith(CHECK):
                mark = marks.get(question.removesuffix(CHECK))
                if mark is None:
                    raise NotMarkedError(f"The sandbox gave no mark for {question}.")
                cell.outputs = _outputs(mark)
                hidden.preprocess_cell(cell, resources, 0)
        nb.metadata = node({"kernelspec": nb.metadata.get("kernelspec", {})})
        return nb, resources


class LatePoints(LateSubmissionPlugin):  # type: ignore[misc]
    """What lateness costs: so many points for each day begun, none unless the course says so."""

    def late_submission_penalty(
        self, student_id: str, score: float, total_seconds_late: float
    ) -> float | None:
        """The points; None for no penalty at all."""
        per_day = options_of(self.config).late_points_per_day
        return per_day * ceil(total_seconds_late / DAY) or None


def read_marks(course: Path, name: str, student: str) -> dict[str, dict[str, Any]]:
    """The marks of one submission by question.

    Raises NotMarkedError with the reason if it has none, or if it has changed since they were given.
    """
    grading = course / "grading" / name / f"{student}.json"
    if not grading.is_file():
        raise NotMarkedError(f"It is not marked yet: python -m assignments grade {name}")
    found = json.loads(grading.read_bytes())
    if found["remark"]:
        raise NotMarkedError(found["remark"])
    now = hashlib.sha256(submission(course, name, student).read_bytes()).hexdigest()
    if found["notebook sha256"] != now:
        raise NotMarkedError(
            f"It was changed after it was marked: python -m assignments grade {name}"
        )
    return {mark["question"]: mark for mark in found["questions"]}


def configure(config: Config) -> None:
    """Set up nbgrader for a course of these assignments."""
    config.ClearSolutions.code_stub = STUB
    config.Autograde.sanitize_preprocessors = [
        ClearOutput,
        RestoreCells,
        DeduplicateIds,
        OverwriteKernelspec,
        OverwriteCells,
        CheckCellMetadata,
    ]
    # No Execute: a student's code runs in the sandbox, or not at all.
    config.Autograde.autograde_preprocessors = [
        SandboxGrade,
        SaveAutoGrades,
        AssignLatePenalties,
        CheckCellMetadata,
    ]
    config.AssignLatePenalties.plugin_class = LatePoints
    config.Autograde.pre_convert_hook = "assignments.grader.plugin.drop_links"
    config.OverwriteCells.add_missing_cells = True
    config.GenerateFeedback.exporter_class = "assignments.feedback.FeedbackPage"
    config.GenerateFeedback.preprocessors = ["assignments.feedback.GetMarks"]
    # Formgrader shows students' text inside the instructor's Jupyter: no HTML of theirs may run there.
    config.HTMLExporter.filters = {"markdown2html": "assignments.feedback.to_html"}


def drop_links(*, assignment: str, student: str, notebooks: list[str]) -> None:
    """Remove links from a submission: nbgrader would copy what they lead to into the feedback.

    Raises LinkError where the folder itself is one.
    """
    for folder in {Path(notebook).parent for notebook in notebooks}:
        below(folder.parents[1], *folder.parts[-2:])
        for path in list(folder.rglob("*")):
            if path.is_symlink():
                path.unlink()


def _root(preprocessor: NbGraderPreprocessor) -> Path:
    """The folder of the course; a preprocessor belongs to an exporter, and that to a converter."""
    return Path(preprocessor.parent.parent.coursedir.root)


def _outputs(mark: dict[str, Any]) -> list[NotebookNode]:
    points = {"text/plain": repr(float(mark["points"]))}
    return [
        node({"output_type": "stream", "name": "stdout", "text": f"{mark['advice']}\n"}),
        node(
            {
                "output_type": "execute_result",
                "data": points,
                "metadata": {},
                "execution_count": 1,
            }
        ),
    ]
