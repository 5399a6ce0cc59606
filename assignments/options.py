"""What an instructor may choose for a course, in its nbgrader_config.py: `c.Marks.beyond_maximum = True`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from traitlets.config import Config


@dataclass(frozen=True)
class Options:
    """The choices, all of them off by default.

    beyond_maximum: points given by hand may be more than a question is worth, or less than 0.
    partial_credit: the share of a question's points for an answer with one known mistake.
    due: for an assignment the time until which it may be handed in, as "2026-12-08 23:59", in local time.
    late_points_per_day: what each day begun after that costs.
    """

    beyond_maximum: bool = False
    partial_credit: float = 0.0
    due: Mapping[str, str] = field(default_factory=dict)
    late_points_per_day: float = 0.0


def options_of(config: Config) -> Options:
    """The choices in the settings of a course. Raises ValueError for one that there is not."""
    known = [field.name for field in fields(Options)]
    for name in config.Marks:
        if name not in known:
            raise ValueError(
                f"nbgrader_config.py: there is no c.Marks.{name}, but {', '.join(known)}"
            )
    return Options(**config.Marks)


def held(points: float, out_of: float, options: Options) -> float:
    """Points as they count: within 0 and what the question is worth, unless more is allowed."""
    return points if options.beyond_maximum else min(max(points, 0.0), out_of)
