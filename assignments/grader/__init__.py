"""The grader: runs what a student wrote in a sandbox, and judges outside it what came back."""

from .grade import Mark, grade_batch, grade_notebook
from .sandbox import Outcome, SandboxMissing, run

__all__ = ["Mark", "Outcome", "SandboxMissing", "grade_batch", "grade_notebook", "run"]
