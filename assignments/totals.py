"""The marks of an assignment, of the gradebook or of the sandbox alone, with what was said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbgrader.api import MissingEntry

from .folders import marks, released
from .nbgrader_bridge import gradebook, settings
from .options import Options, held, options_of

CHECK = "-check"


@dataclass(frozen=True)
class Result:
    """One question of one student; points is None until somebody has marked it."""

    question: str
    points: float | None
    out_of: float
    said: str


@dataclass(frozen=True)
class Total:
    """The marks of one student; `points` counts what is marked, less what lateness costs.

    open: the questions that wait for a mark by hand.
    """

    student: str
    points: float
    out_of: float
    results: tuple[Result, ...]
    open: tuple[str, ...]

    @property
    def said(self) -> str:
        """A line for each question."""
        return "\n".join(
            f"{one.question}: "
            + ("not marked yet." if one.points is None else f"{one.points:g} of {one.out_of:g}.")
            + (f" {one.said}" if one.said else "")
            for one in self.results
        )


def totals_of(course: Path, name: str) -> list[Total]:
    """The totals of all students: of the gradebook where it has them, else of the sandbox alone.

    Points given by hand are held to what a question is worth, and told, unless the course's options
    say otherwise. Raises FileNotFoundError if nothing is marked.
    """
    found = marks(course, name)
    totals = _from_gradebook(course, name, found) if (course / "gradebook.db").is_file() else {}
    by_hand = _by_hand(course, name)
    for student, questions in found.items():
        if student not in totals:
            totals[student] = _from_sandbox(student, questions, by_hand)
    if not totals:
        raise FileNotFoundError(f"nothing is marked: python -m assignments grade {name}")
    return [totals[student] for student in sorted(totals)]


def _from_gradebook(
    course: Path, name: str, found: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, Total]:
    options = options_of(settings(course))
    with gradebook(course) as book:
        try:
            submissions = book.assignment_submissions(name)
        except MissingEntry:
            return {}
        return {
            one.student.id: _of_submission(one, found.get(one.student.id, ()), options)
            for one in submissions
        }


def points_of(grade: Any, options: Options) -> float:
    """What a question of nbgrader's gradebook counts; points on top of it (extra credit) are no excess."""
    extra = float(grade.extra_credit or 0)
    return held(float(grade.score) - extra, float(grade.max_score), options) + extra


def _of_submission(
    submission: Any, questions: Sequence[Mapping[str, Any]], options: Options
) -> Total:
    advice = {mark["question"]: str(mark["advice"]) for mark in questions}
    results, waiting = [], []
    for notebook in submission.notebooks:
        comments = {one.name: one.comment or "" for one in notebook.comments}
        for grade in notebook.grades:
            question = grade.name.removesuffix(CHECK)
            marked = grade.auto_score is not None or grade.manual_score is not None
            said = " ".join(filter(None, [advice.get(question), comments.get(grade.name)]))
            points = points_of(grade, options) if marked else None
            if points is not None and points != grade.score:
                excess = f"{grade.score:g} of {grade.max_score:g} in the gradebook"
                print(f"{submission.student.id}: {question} has {excess}; {points:g} count.")
            results.append(Result(question, points, float(grade.max_score), said))
            if grade.needs_manual_grade:
                waiting.append(question)
    points = sum(one.points or 0.0 for one in results)
    points = max(0.0, points - float(submission.late_submission_penalty or 0))
    return Total(
        submission.student.id, points, float(submission.max_score), tuple(results), tuple(waiting)
    )


def _from_sandbox(
    student: str, questions: Sequence[Mapping[str, Any]], by_hand: Mapping[str, float]
) -> Total:
    results = [
        Result(mark["question"], float(mark["points"]), float(mark["out_of"]), mark["advice"])
        for mark in questions
    ]
    points = sum(one.points or 0 for one in results)
    results += [Result(question, None, worth, "") for question, worth in by_hand.items()]
    return Total(
        student, points, sum(one.out_of for one in results), tuple(results), tuple(by_hand)
    )


def _by_hand(course: Path, name: str) -> dict[str, float]:
    """The questions to be marked by hand, with their points."""
    about = [cell.metadata.get("nbgrader", {}) for cell in released(course, name).cells]
    return {
        one["grade_id"]: float(one["points"])
        for one in about
        if one.get("grade") and one.get("solution")
    }
