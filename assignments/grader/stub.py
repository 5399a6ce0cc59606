"""What stands for the book's packages while answers are marked, so that notebooks can import them.

Every module and name of theirs is there. What checks or shows does nothing, softmax and ShapeError
are real, and the rest says that it is not there. The driver imports this file by itself.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np

PACKAGES = ("attention_lib", "figures")
SILENT = ("check", "show", "draw_", "explore_", "Explore")


def install() -> None:
    """Put the packages before any others of their names."""
    sys.meta_path.insert(0, Finder())


class Finder(MetaPathFinder, Loader):
    """Finds every module of the packages, whatever its name."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A module that this object fills."""
        ours = name.partition(".")[0] in PACKAGES
        return ModuleSpec(name, self, is_package=True) if ours else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The usual kind of module."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Give it every name that is asked for."""
        vars(module)["__getattr__"] = lambda name: member(module.__name__, name)


def member(module: str, name: str) -> Any:
    """What a module of the packages has under a name. Raises AttributeError for `__names__`."""
    if name.startswith("__"):
        raise AttributeError(name)
    if name in REAL:
        return REAL[name]
    if name.startswith(SILENT):
        return lambda *given, **options: None

    def missing(*given: object, **options: object) -> None:
        raise NotImplementedError(
            f"{module}.{name} is not there while answers are marked, NumPy and torch are"
        )

    return missing


class ShapeError(ValueError):
    """Shapes that do not fit."""


def softmax(scores: Any, axis: int = -1) -> Any:
    """Weights that sum to 1 along an axis, zeros where every score is -inf."""
    highest = np.max(scores, axis=axis, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isneginf(highest), 0, highest))
    total = weights.sum(axis=axis, keepdims=True)
    return (weights / np.where(total == 0, 1, total)).astype(scores.dtype)


REAL = {"softmax": softmax, "ShapeError": ShapeError}
