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
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Output = Array | tuple[Array, ...]
Case = tuple[Any, ...]  # arrays, and plain integers where a function takes sizes

RTOL, ATOL = 1e-4, 1e-6
FAR = 1e3  # difference of two numbers from which on they are as far apart as can be
NEAREST = 40  # pairs of mistakes to which a third is added


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
    advice: sentences for the learner. kind: "right", "known" (the settings explain all of it), "values",
    "shape" (or the number or dtype of the arrays), or "blank" where there is no output.
    """

    ok: bool
    settings: dict[str, str] = field(default_factory=dict)
    advice: str = ""
    kind: str = "right"


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
        return Diagnosis(False, {}, "There is no output.", "blank")
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
            return Diagnosis(False, settings, advice, "known")
        if settings:
            scope = "In case 1" if wrong == 1 else f"Up to case {wrong}"
            rest = _rest(exercise, settings, cases, reached, troubles or [""] * len(cases))
            return Diagnosis(False, settings, f"{scope} of {len(cases)}: {advice} {rest}", "values")
        kind, advice = _fault(exercise, cases, wrong, rights[wrong - 1])
        return Diagnosis(False, {}, advice, kind)


def _explain(
    exercise: Exercise, cases: Sequence[tuple[Case, Output | None]], wrong: int
) -> tuple[dict[str, str], int]:
    """The fewest wrong settings and how many cases, from the first, they reproduce.

    They reproduce all cases or, if none do, an output in case `wrong` (from 1) and the cases before
    it: ({}, 0) if none do that. One and two mistakes are tried in every combination, a third is
    added to the pairs that come nearest.
    """
    partial: dict[str, str] = {}
    reach = 0
    for settings in _mistakes(exercise, cases, wrong):
        if not _reproduces(exercise, settings, *cases[wrong - 1]):
            continue
        reached = 0
        while reached < len(cases) and _reproduces(exercise, settings, *cases[reached]):
            reached += 1
        if reached == len(cases):
            return settings, reached
        if not partial and reached >= wrong and cases[wrong - 1][1] is not None:
            partial, reach = settings, reached
    return partial, reach


def _mistakes(
    exercise: Exercise, cases: Sequence[tuple[Case, Output | None]], wrong: int
) -> Iterator[dict[str, str]]:
    """Combinations of one, two and three wrong settings, fewest first."""
    pairs = []
    for mistakes in (1, 2):
        for knobs in combinations(exercise.settings, mistakes):
            for values in product(*(exercise.settings[knob] for knob in knobs)):
                settings = dict(zip(knobs, values, strict=True))
                yield settings
                if mistakes == 2:
                    pairs.append(settings)
    # Where an answer fails, the mistakes that fail too are many; an output tells them apart.
    seen = [case for case in cases[wrong - 1 :] if case[1] is not None][:1]
    told = [cases[wrong - 1], *seen] if cases[wrong - 1][1] is None else seen
    near = sorted(pairs, key=lambda pair: sum(_distance(exercise, pair, *case) for case in told))
    tried = set()
    for pair in near[:NEAREST]:
        for knob in exercise.settings.keys() - pair.keys():
            for value in exercise.settings[knob]:
                settings = {
                    name: {**pair, knob: value}[name]
                    for name in exercise.settings
                    if name in pair or name == knob
                }
                if (key := tuple(settings.items())) not in tried:
                    tried.add(key)
                    yield settings


def _distance(
    exercise: Exercise, settings: Mapping[str, str], case: Case, output: Output | None
) -> float:
    """How far an output is from what the settings give; infinite if it is of another shape."""
    expected = _expected(exercise, settings, case)
    if output is None or expected is None:
        return 0.0 if output is expected else inf
    pairs = list(zip(parts(output), parts(expected), strict=False))
    if any(one.shape != other.shape or one.dtype.kind not in "biuf" for one, other in pairs):
        return inf
    apart = [np.abs(one.astype(float) - other.astype(float)) for one, other in pairs]
    return sum(float(np.minimum(np.nan_to_num(a, nan=FAR), FAR).sum()) for a in apart)


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
    expected = _expected(exercise, settings, case)
    if output is None or expected is None:
        return output is expected
    return _agree(output, expected, exercise.rtol)


def _expected(exercise: Exercise, settings: Mapping[str, str], case: Case) -> Output | None:
    """What the settings give; None where a mistake fits only square shapes and these are not."""
    try:
        return exercise.reference(*case, **settings)
    except ValueError:
        return None


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
) -> tuple[str, str]:
    """What can be seen in case `wrong` (from 1) of an answer that no known mistake explains: its kind,
    and sentences."""
    case, output = cases[wrong - 1]
    where = f"in case {wrong} of {len(cases)}: {exercise.shapes(case)}."
    if output is None:
        return "blank", f"There is no output {where}"
    found, expected = parts(output), parts(right)
    if len(found) != len(expected):
        return "shape", f"The result has {len(found)} parts, expected {len(expected)}, {where}"
    names = [f"The array {name}" for name in exercise.returns] or ["The result"]
    what, one, other = next(
        triple
        for triple in zip(names, found, expected, strict=True)
        if not _close(*triple[1:], exercise.rtol)
    )
    told = one.shape == other.shape and one.dtype.kind == "f" and np.all(np.isfinite(one))
    if exercise.explain is not None and told:
        explained = exercise.explain(case, one)
        if explained:
            return "values", f"{explained} This is seen {where}"
    if one.shape != other.shape:
        return "shape", f"{what} has shape {one.shape}, expected {other.shape}, {where}"
    if one.dtype.kind != other.dtype.kind:
        return "shape", f"{what} holds {one.dtype}, expected {other.dtype}, {where}"
    return "values", _difference(what, one, other, where)


def _difference(what: str, found: Array, expected: Array, where: str) -> str:
    if found.dtype.kind == "b":
        wrong = np.count_nonzero(found != expected)
        return f"{what} is wrong in {wrong} of {found.size} entries {where}"
    if not np.all(np.isfinite(found)):
        return (
            f"{what} holds NaN or infinity {where} "
            "Look for infinity times 0 and for a division by 0."
        )
    difference = np.max(np.abs(found - expected))
    return f"{what} is off by up to {difference:.2g} {where} {_relation(found, expected)}"


def _relation(found: Array, expected: Array) -> str:
    """How wrong numbers are related to the right ones, as far as it can be seen."""
    scale = np.max(np.abs(expected), initial=1.0)

    def alike(one: Array, other: Array | float) -> bool:
        return bool(np.all(np.abs(one - other) <= 1e-4 * scale))

    factor = float(np.sum(found * expected) / max(float(np.sum(expected**2)), 1e-30))
    shift = float(np.mean(found - expected))
    if found.size > 2 and alike(found, factor * expected):
        return f"It is right but for a factor of {factor:.3g}."
    if found.size > 2 and alike(found - expected, shift):
        return f"It is right but for {abs(shift):.3g} {'more' if shift > 0 else 'less'} in every number."
    if found.ndim > 1 and np.prod(found.shape[:-1]) > 1:
        rows = np.max(np.abs(found - expected), axis=-1) > 1e-4 * scale
        if np.count_nonzero(rows) == 1:
            place = ", ".join(str(i) for i in np.argwhere(rows)[0])
            return f"All of it is right but for row {place}, counted from 0."
        ranked = np.sort(found, axis=-2), np.sort(expected, axis=-2)
        if alike(*ranked):
            return "The right numbers are there, but their rows stand in another order."
    return "No usual mistake explains it."
