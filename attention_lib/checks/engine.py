"""Diagnosis of an answer from its outputs alone.

An exercise is one reference function. Each of its keyword-only parameters, a knob, has the right
setting as its default and a wrong setting for each known mistake. An answer is diagnosed by finding
the fewest wrong settings with which the reference gives the same outputs. No code of the learner's
runs here.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Output = Array | tuple[Array, ...]
Case = tuple[Any, ...]  # arrays, and plain integers where a function takes sizes

RTOL, ATOL = 1e-4, 1e-6
MOST_MISTAKES = 3


@dataclass(frozen=True)
class Exercise:
    """One function for the learner to write.

    reference: `reference(*case)` is right, `reference(*case, knob=setting)` makes a mistake.
    settings: for each knob its wrong settings, each with the advice it earns.
    inputs: `inputs(rng, trial)` gives the arguments of one case; the first should be the plainest.
    trials: the number of cases.
    returns: the names of what is returned, if it is a tuple of arrays.
    keeps_dtype: a right answer that widens float32 to float64 is told so.
    rtol: how far a right number may be off, as a share of the largest; more where a learner rounds.
    explain: `explain(case, output)` says what can be seen in an output of the right shape that no
        known mistake gives; "" if nothing can.
    """

    name: str
    reference: Callable[..., Output]
    settings: Mapping[str, Mapping[str, str]]
    inputs: Callable[[np.random.Generator, int], Case]
    trials: int = 6
    returns: tuple[str, ...] = ()
    keeps_dtype: bool = False
    rtol: float = RTOL
    explain: Callable[[Case, Array], str] | None = None

    def cases(self, seed: int) -> list[Case]:
        """The arguments of every trial, drawn afresh from `seed`."""
        rng = np.random.default_rng(seed)
        return [self.inputs(rng, trial) for trial in range(self.trials)]

    def names(self) -> list[str]:
        """The names of the arguments, in order."""
        parameters = inspect.signature(self.reference).parameters.values()
        return [
            parameter.name
            for parameter in parameters
            if parameter.kind not in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD)
        ]

    def shapes(self, case: Case) -> str:
        """The arguments of one case for the reader: `q (3, 7), k (5, 7)`, or `T = 3, S = 5`."""
        return ", ".join(
            f"{name} {value.shape}" if isinstance(value, np.ndarray) else f"{name} = {value:.4g}"
            for name, value in zip(self.names(), case, strict=False)
        )


@dataclass(frozen=True)
class Diagnosis:
    """What was found out about an answer.

    ok: every output is right. settings: the wrong setting of each knob that explains the outputs.
    advice: sentences for the learner.
    """

    ok: bool
    settings: dict[str, str] = field(default_factory=dict)
    advice: str = ""


def diagnose(
    exercise: Exercise,
    inputs: Sequence[Case],
    outputs: Sequence[Output | None],
    *,
    rights: Sequence[Output] | None = None,
    troubles: Sequence[str] | None = None,
) -> Diagnosis:
    """Say what is wrong with `outputs`, one per case of `inputs`, None for a case without output.

    rights: the right outputs, if they are known already. troubles: why a case has no output, a
    sentence or "". If no settings explain every case, the advice is about the cases up to the first
    wrong one, and about the first later one without output.
    """
    cases = list(zip(inputs, outputs, strict=True))
    if all(output is None for output in outputs):
        return Diagnosis(ok=False, advice="There is no output.")
    with np.errstate(all="ignore"):
        rights = rights or [exercise.reference(*case) for case in inputs]
        fits = [
            one is not None and _agree(one, two, exercise.rtol)
            for one, two in zip(outputs, rights, strict=True)
        ]
        if all(fits):
            return Diagnosis(ok=True)
        wrong = fits.index(False) + 1
        settings, reached = _explain(exercise, cases, wrong)
        advice = _advice(exercise, settings)
        if reached == len(cases):
            return Diagnosis(False, settings, advice)
        if settings:
            scope = "In case 1" if wrong == 1 else f"Up to case {wrong}"
            rest = _rest(exercise, settings, cases, reached, troubles or [""] * len(cases))
            return Diagnosis(False, settings, f"{scope} of {len(cases)}: {advice} {rest}")
        return Diagnosis(False, {}, _fault(exercise, cases, wrong, rights[wrong - 1]))


def _explain(
    exercise: Exercise, cases: Sequence[tuple[Case, Output | None]], wrong: int
) -> tuple[dict[str, str], int]:
    """The fewest wrong settings and how many cases, from the first, they reproduce.

    They reproduce all cases or, if none do, an output in case `wrong` (from 1) and the cases before
    it: ({}, 0) if none do that.
    """
    partial: dict[str, str] = {}
    reach = 0
    for settings in _mistakes(exercise):
        reached = 0
        while reached < len(cases) and _reproduces(exercise, settings, *cases[reached]):
            reached += 1
        if reached == len(cases):
            return settings, reached
        if not partial and reached >= wrong and cases[wrong - 1][1] is not None:
            partial, reach = settings, reached
    return partial, reach


def _mistakes(exercise: Exercise) -> Iterator[dict[str, str]]:
    """Every combination of up to MOST_MISTAKES wrong settings, fewest first."""
    for mistakes in range(1, min(MOST_MISTAKES, len(exercise.settings)) + 1):
        for knobs in combinations(exercise.settings, mistakes):
            for values in product(*(exercise.settings[knob] for knob in knobs)):
                yield dict(zip(knobs, values, strict=True))


def _rest(
    exercise: Exercise,
    settings: Mapping[str, str],
    cases: Sequence[tuple[Case, Output | None]],
    reached: int,
    troubles: Sequence[str],
) -> str:
    """What to say of the cases after the first `reached`, which `settings` do not reproduce."""
    for number in range(reached, len(cases)):
        case, output = cases[number]
        if (
            output is None
            and troubles[number]
            and not _reproduces(exercise, settings, case, output)
        ):
            return f"Case {number + 1} fails too. {troubles[number]}"
    return "A later case is wrong in another way."


def _reproduces(
    exercise: Exercise, settings: Mapping[str, str], case: Case, output: Output | None
) -> bool:
    try:
        expected = exercise.reference(*case, **settings)
    except ValueError:
        return output is None  # a mistake that fits only square shapes fails on the others
    return output is not None and _agree(output, expected, exercise.rtol)


def parts(output: Output) -> tuple[Array, ...]:
    """The arrays of an output: itself, or the entries of a tuple."""
    return output if isinstance(output, tuple) else (output,)


def _agree(found: Output, expected: Output, rtol: float) -> bool:
    pairs = list(zip(parts(found), parts(expected), strict=False))
    return len(parts(found)) == len(parts(expected)) and all(_close(*pair, rtol) for pair in pairs)


def _close(found: Array, expected: Array, rtol: float) -> bool:
    """Equal shapes and kinds, and differences small against the largest expected entry."""
    if expected.dtype.kind == "b":
        return found.dtype.kind == "b" and np.array_equal(found, expected)
    if found.shape != expected.shape or found.dtype.kind not in "iuf":
        return False
    size = np.max(np.abs(expected), where=np.isfinite(expected), initial=0.0)
    near = np.abs(found - expected) <= ATOL + rtol * size
    # A mistake may give infinity or NaN; what is right never does.
    return bool(np.all(near | (found == expected) | (np.isnan(found) & np.isnan(expected))))


def _advice(exercise: Exercise, settings: Mapping[str, str]) -> str:
    advice = [exercise.settings[knob][setting] for knob, setting in settings.items()]
    if len(advice) > 1:
        advice = [f"({number}) {sentences}" for number, sentences in enumerate(advice, 1)]
    return " ".join(advice)


def _fault(
    exercise: Exercise, cases: Sequence[tuple[Case, Output | None]], wrong: int, right: Output
) -> str:
    """What can be seen in case `wrong` (from 1) of an answer that no known mistake explains."""
    case, output = cases[wrong - 1]
    where = f"in case {wrong} of {len(cases)}: {exercise.shapes(case)}."
    if output is None:
        return f"There is no output {where}"
    found, expected = parts(output), parts(right)
    if len(found) != len(expected):
        return f"The result has {len(found)} parts, expected {len(expected)}, {where}"
    names = [f"The array {name}" for name in exercise.returns] or ["The result"]
    what, one, other = next(
        triple
        for triple in zip(names, found, expected, strict=True)
        if not _close(*triple[1:], exercise.rtol)
    )
    if exercise.explain is not None and one.shape == other.shape and one.dtype.kind == "f":
        explained = exercise.explain(case, one)
        if explained:
            return f"{explained} This is seen {where}"
    return _difference(what, one, other, where)


def _difference(what: str, found: Array, expected: Array, where: str) -> str:
    if found.shape != expected.shape:
        return f"{what} has shape {found.shape}, expected {expected.shape}, {where}"
    if found.dtype.kind != expected.dtype.kind:
        return f"{what} holds {found.dtype}, expected {expected.dtype}, {where}"
    if found.dtype.kind == "b":
        wrong = np.count_nonzero(found != expected)
        return f"{what} is wrong in {wrong} of {found.size} entries {where}"
    if not np.all(np.isfinite(found)):
        return (
            f"{what} holds NaN or infinity {where} "
            "Look for infinity times 0 and for a division by 0."
        )
    difference = np.max(np.abs(found - expected))
    return f"{what} is off by up to {difference:.2g} {where} No usual mistake explains it."
