"""Answers to exercises as learners write them, gathered chapter by chapter in `mutants_chapter*`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Function = Callable[..., Any]


@dataclass(frozen=True)
class Answer:
    """A learner's function, the mistakes it makes and words of the advice it must get."""

    task: str
    fn: Function
    settings: dict[str, str] = field(default_factory=dict)
    says: tuple[str, ...] = ()


class Answers(list[Answer]):
    """A list that decorators append to."""

    def right(self, task: str) -> Callable[[Function], Function]:
        return self.wrong(task)

    def wrong(self, task: str, *says: str, **settings: str) -> Callable[[Function], Function]:
        def note(fn: Function) -> Function:
            self.append(Answer(task, fn, settings, says))
            return fn

        return note


def softmax(s: Any, axis: int = -1) -> Any:
    e = np.exp(s - s.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
