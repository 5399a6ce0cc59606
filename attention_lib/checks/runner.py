"""Runs a learner's function on an exercise and puts what happened into one paragraph."""

import dis
import inspect
import linecache
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import islice
from textwrap import shorten
from types import TracebackType
from typing import Any

import numpy as np

from .engine import Array, Case, Exercise, Output, diagnose, parts
from .hints import hint
from .originals import original_numpy, put_back

SEED = 2017
BLANK = (None, ..., NotImplemented)
LONGEST_LINE, LONGEST_MESSAGE = 100, 200


@dataclass
class _Run:
    output: Output | None = None
    blank: bool = False
    trouble: str = ""
    changed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


def examine(exercise: Exercise, fn: Callable[..., Any]) -> str:
    """Run `fn` on every case and say how it did; only a KeyboardInterrupt of its escapes."""
    # A warning's text names a file that differs on every run.
    with original_numpy(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = exercise.cases(SEED)
        rights = [exercise.reference(*case) for case in cases]  # before `fn` can change anything
        runs = [_run(exercise, fn, case) for case in cases]
        if all(run.blank for run in runs):
            return _blank(fn)
        outputs, troubles = [run.output for run in runs], [run.trouble for run in runs]
        diagnosis = diagnose(exercise, cases, outputs, rights=rights, troubles=troubles)
        remark = _widening(exercise, fn, cases[0]) if diagnosis.ok else ""

    effects = _effects(runs)
    if diagnosis.ok and effects:
        return f"not yet. The values are right. {effects}"
    if diagnosis.ok:
        return " ".join(filter(None, (f"correct on {len(cases)} cases.", remark)))
    trouble = next(filter(None, troubles), "")
    advice = diagnosis.advice if diagnosis.settings or not trouble else trouble
    return " ".join(filter(None, ("not yet.", advice, effects)))


def _effects(runs: Sequence[_Run]) -> str:
    """What the function did besides returning a value, in the first case where it did."""
    changed = next((run.changed for run in runs if run.changed), ())
    replaced = next((run.replaced for run in runs if run.replaced), ())
    sentences = []
    if changed:
        sentences.append(f"You changed {' and '.join(changed)} in place: work on a copy.")
    if replaced:
        names = " and ".join(f"np.{name}" for name in replaced[:3])
        sentences.append(f"You replaced {names}: leave NumPy as it is.")
    return " ".join(sentences)


def _run(exercise: Exercise, fn: Callable[..., Any], case: Case) -> _Run:
    given = tuple(copy(value) for value in case)
    run = _Run()
    try:
        try:
            result = fn(*given)
        finally:
            run.replaced = put_back()
        if any(result is blank for blank in BLANK):
            run.blank = True
            run.trouble = f"It returns {result} for {exercise.shapes(case)}."
        else:
            run.output = _as_output(result, exercise.returns)
            if run.output is None:
                run.trouble = _misfit(result, exercise.returns)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a learner's exit() must not end the notebook
        if isinstance(error, NotImplementedError) and _raised_by_itself(fn, error):
            run.blank = True
            run.trouble = f"It is not written yet for {exercise.shapes(case)}."
        else:
            run.trouble = _raised(exercise, fn, case, error)
    finally:
        run.replaced += put_back()
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


def _raised_by_itself(fn: Callable[..., Any], error: BaseException) -> bool:
    """Whether a `raise` of the function's own made the error, not something that it called."""
    steps = list(_steps(error))[1:]  # the first is our own call
    if not steps:
        return False
    code = steps[-1].tb_frame.f_code
    raises = dis.opname[code.co_code[steps[-1].tb_lasti]] == "RAISE_VARARGS"
    own = getattr(inspect.unwrap(fn), "__code__", None)
    return raises and (len(steps) == 1 or code is own)


def _raised(exercise: Exercise, fn: Callable[..., Any], case: Case, error: BaseException) -> str:
    """The exception, the last line of the learner's own code that it passed through, and a hint."""
    # Cut before anything else reads it: a message may be megabytes long.
    whole = re.sub(r" at 0x[0-9a-fA-F]+", "", str(error)[: 10 * LONGEST_MESSAGE])
    message = shorten(whole, LONGEST_MESSAGE, placeholder=" …")
    namespace = getattr(inspect.unwrap(fn), "__globals__", None)
    own = [step for step in _steps(error) if step.tb_frame.f_globals is namespace]
    place = code = product = ""
    if own:
        line = linecache.getline(own[-1].tb_frame.f_code.co_filename, own[-1].tb_lineno).strip()
        line = line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …"
        place = f" in line {own[-1].tb_lineno}" + (f", `{line}`" if line else "")
        code, product = _lines_up_to(own[-1])
    axes = max(np.ndim(value) for value in case)
    heads = dict(zip(exercise.names(), case, strict=False)).get("heads", 0)
    sentences = (
        f"It raises {type(error).__name__}{place}: {message.rstrip('.') or 'no message'}.",
        f"This was for {exercise.shapes(case)}.",
        hint(message, code, axes, heads, product),
    )
    return " ".join(filter(None, sentences))


def _steps(error: BaseException) -> Iterator[TracebackType]:
    step = error.__traceback__
    while step is not None:
        yield step
        step = step.tb_next


def _lines_up_to(step: TracebackType) -> tuple[str, str]:
    """The code of the function that `step` is in, to the last line of the expression it is at; and
    that expression.
    """
    code = step.tb_frame.f_code
    places = islice(code.co_positions(), step.tb_lasti // 2, None)
    first, end, start, stop = next(places, (None,) * 4)
    last = max(end or 0, step.tb_lineno)
    whole = [
        linecache.getline(code.co_filename, number)
        for number in range(code.co_firstlineno, last + 1)
    ]
    if first is None or end is None:
        return "".join(whole), ""
    part = [linecache.getline(code.co_filename, n).encode() for n in range(first, end + 1)]
    part[-1] = part[-1][:stop]  # columns count bytes
    part[0] = part[0][start:]
    return "".join(whole), b"".join(part).decode(errors="replace")


def _blank(fn: Callable[..., Any]) -> str:
    code = getattr(fn, "__code__", None)
    if code is None:
        return "not written yet."
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    if code.co_nlocals > code.co_argcount + code.co_kwonlyargcount + stars:
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
