"""Runs a learner's function on an exercise and puts what happened into one paragraph."""

import inspect
import linecache
import re
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import numpy as np

from .engine import Array, Case, Exercise, Output, diagnose, parts

SEED = 2017
BLANK = (None, ..., NotImplemented)


@dataclass
class _Run:
    output: Output | None = None
    blank: bool = False
    trouble: str = ""
    changed: tuple[str, ...] = ()


def examine(exercise: Exercise, fn: Callable[..., Any]) -> str:
    """Run `fn` on every case and say how it did; only a KeyboardInterrupt of its escapes."""
    cases = exercise.cases(SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning's text names a file that differs on every run
        runs = [_run(exercise, fn, case) for case in cases]
        if all(run.blank for run in runs):
            return _blank(fn)
        diagnosis = diagnose(exercise, cases, [run.output for run in runs])
        remark = _widening(exercise, fn, cases[0]) if diagnosis.ok else ""

    changed = next((run.changed for run in runs if run.changed), ())
    mutation = f"You changed {' and '.join(changed)} in place: work on a copy." if changed else ""
    if diagnosis.ok and changed:
        return f"not yet. The values are right. {mutation}"
    if diagnosis.ok:
        return " ".join(filter(None, (f"correct on {len(cases)} cases.", remark)))
    trouble = next((run.trouble for run in runs if run.trouble), "")
    advice = diagnosis.advice if diagnosis.settings or not trouble else trouble
    return " ".join(filter(None, ("not yet.", advice, mutation)))


def _run(exercise: Exercise, fn: Callable[..., Any], case: Case) -> _Run:
    given = tuple(copy(value) for value in case)
    run = _Run()
    try:
        result = fn(*given)
        if any(result is blank for blank in BLANK):
            run.blank = True
            run.trouble = f"It returns {result} for {exercise.shapes(case)}."
        else:
            run.output = _as_output(result, exercise.returns)
            if run.output is None:
                run.trouble = _misfit(result, exercise.returns)
    except KeyboardInterrupt:
        raise
    except NotImplementedError:
        run.blank = True
        run.trouble = f"It is not written yet for {exercise.shapes(case)}."
    except BaseException as error:  # a learner's exit() must not end the notebook
        run.trouble = f"{_raised(fn, error)} This was for {exercise.shapes(case)}."
    run.changed = tuple(
        name
        for name, before, after in zip(exercise.names(), case, given, strict=False)
        if not np.array_equal(before, after)
    )
    return run


def _as_output(result: Any, returns: tuple[str, ...]) -> Output | None:
    """Copies of what was returned: one array, or one for each name of `returns`."""
    if not returns:
        return _as_array(result)
    if not isinstance(result, tuple | list) or len(result) != len(returns):
        return None
    arrays = [_as_array(part) for part in result]
    whole = tuple(array for array in arrays if array is not None)
    return whole if len(whole) == len(returns) else None


def _misfit(result: Any, returns: tuple[str, ...]) -> str:
    found = f"The result is of type {type(result).__name__}"
    if not returns:
        return f"{found}, expected one array of numbers."
    if isinstance(result, tuple | list):
        kinds = ", ".join(type(part).__name__ for part in result)
        found = f"The result holds {len(result)} parts ({kinds})"
    return f"{found}, expected {len(returns)} arrays: {', '.join(returns)}."


def _as_array(result: Any) -> Array | None:
    """A copy of the result as a plain array; None if it is no array, tensor, list or number."""
    if hasattr(result, "detach"):
        result = result.detach().cpu().numpy()
    if not isinstance(result, np.ndarray | np.number | list | int | float):
        return None
    array = np.array(result, subok=False)
    return array if array.dtype.kind in "biufc" else None


def _raised(fn: Callable[..., Any], error: BaseException) -> str:
    """The exception and the last line of the learner's own code that it passed through."""
    message = shorten(re.sub(r" at 0x[0-9a-fA-F]+", "", str(error)), 200, placeholder=" …")
    own = getattr(inspect.unwrap(fn), "__globals__", None)
    place = ""
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_globals is own:
            line = linecache.getline(step.tb_frame.f_code.co_filename, step.tb_lineno).strip()
            place = f" in line {step.tb_lineno}" + (f", `{line}`" if line else "")
        step = step.tb_next
    return f"It raises {type(error).__name__}{place}: {message.rstrip('.') or 'no message'}."


def _blank(fn: Callable[..., Any]) -> str:
    code = getattr(fn, "__code__", None)
    if code is not None and code.co_nlocals > code.co_argcount:
        return "not written yet: it gives no result. Does it end with a return?"
    return "not written yet."


def _widening(exercise: Exercise, fn: Callable[..., Any], case: Case) -> str:
    if not exercise.keeps_dtype:
        return ""
    narrow = tuple(a.astype(np.float32) if a.dtype.kind == "f" else a for a in case)
    output = _run(exercise, fn, narrow).output
    if output is None or all(array.dtype.itemsize <= 4 for array in parts(output)):
        return ""
    return (
        "One remark: float32 inputs come back as float64. "
        "A NumPy scalar such as np.sqrt(d_k) widens them, math.sqrt(d_k) does not."
    )
