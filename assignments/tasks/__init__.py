"""The marked tasks: variants of what the chapters teach, each with the mistakes that it tells apart.

Nothing here is in the package that learners install, and none of it may reach them. Where a task contains
what an exercise of the book asks for, it calls that exercise's reference: `scaled_dot_product_attention`,
`split_heads` and `merge_heads` of `attention_lib.checks`. The other references differ on purpose, each being a
variant with mistakes of its own: the masks (a prefix, a window with sinks), the rotation (of some columns), the
merge of parts, the gradient (of the softmax alone), and the softmax of `order`, which has one axis.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from attention_lib.checks import Exercise
from attention_lib.checks.engine import Case


@dataclass(frozen=True)
class Task:
    """One automatically marked question of an assignment.

    exercise: the reference, its wrong settings and its inputs; its name is that of the learner's
        function, and of the question.
    numbers: for a question whose numbers each student draws: from the student's name, the case. Then
        the answer is not a function but the variables that `exercise.returns` names.
    """

    exercise: Exercise
    numbers: Callable[[str], Case] | None = None

    @property
    def name(self) -> str:
        """The name of the function and of the question."""
        return self.exercise.name

    def cases(self, seed: int, student: str) -> list[Case]:
        """The inputs of one student's grading."""
        return [self.numbers(student)] if self.numbers else self.exercise.cases(seed)


@dataclass(frozen=True)
class Assignment:
    """One notebook, `assignments/sources/<name>.ipynb`, and the tasks that it asks for in order.

    chapter: the number of the chapter that it belongs to. minutes: how long a student takes.
    """

    name: str
    title: str
    chapter: int
    minutes: int
    tasks: tuple[Task, ...]


NAMES = ("pointing", "scaling", "order", "heads", "cost")


def assignments() -> dict[str, Assignment]:
    """Every assignment by its name, in the order of the chapters."""
    modules = (import_module(f".{name}", __name__) for name in NAMES)
    return {module.ASSIGNMENT.name: module.ASSIGNMENT for module in modules}
