"""The checks when a learner's function raises, tampers with NumPy or is hardly begun."""

import contextlib
import functools
import io
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from attention_lib.checks import Exercise, check, diagnose, exercises
from attention_lib.checks.engine import Output
from attention_lib.checks.hints import (
    FROM_THE_END,
    KEPT,
    NO_MASK,
    NOT_MERGED,
    PAIRED,
    REVERSED,
    ROWS,
    SLICED,
    SPREAD,
    hint,
)
from attention_lib.checks.properties import no_average
from tests.answers import Function, softmax
from tests.mutants_chapter01 import (
    attention_with,
    cross_plain,
    many_minus_infinity,
    one_average,
    one_in_a_line,
    one_unscaled,
)

SDPA = "scaled_dot_product_attention"


def said(fn: object, task: str | None = None) -> str:
    """What `check` prints about a function."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        check(fn, task)
    return text.getvalue()


# Hints at what raised


def hidden(s: Any, mask: Any) -> Any:
    return s if mask is None else np.where(mask, s, -np.inf)


def many_reversed(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    return softmax(hidden(q @ k.T / math.sqrt(q.shape[-1]), mask)) @ v


def many_reversed_earlier(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    columns = np.transpose(k)
    s = q @ columns / math.sqrt(q.shape[-1])
    return softmax(hidden(s, mask)) @ v


def many_reversed_unscaled(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    return softmax(hidden(q @ k.transpose(), mask)) @ v


def many_fixed_axes(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    return softmax(hidden(q @ k.transpose(0, 2, 1), mask)) @ v


def many_without_keepdims(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    s = hidden(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), mask)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    total = e.sum(axis=-1)
    return e / total @ v


def many_without_keepdims_spread_out(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    s = hidden(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), mask)
    return np.exp(
        s - np.max(s, -1)  # over the keys
    )


def many_indexed_without_asking(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    s[~mask] = -np.inf
    return softmax(s) @ v


def many_indexed(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        s[~mask] = -np.inf
    return softmax(s) @ v


def many_untransposed(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    return softmax(q @ k) @ v


def cross_matrix_first(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    q = W_Q @ x
    return softmax(q @ (W_K @ context).T) @ (W_V @ context)


def cross_matrix_transposed(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    return softmax(x @ W_Q.T @ (context @ W_K.T).T) @ (context @ W_V.T)


def cross_keys_untransposed(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    return softmax(x @ W_Q @ (context @ W_K)) @ context @ W_V


def step_matrix_first(x: Any, h: Any, W: Any, U: Any, b: Any) -> Any:
    return np.tanh(np.dot(W, x) + h @ U + b)


def cut(x: Any, heads: int) -> Any:
    return x.reshape(len(x), heads, -1).swapaxes(0, 1)


def joined(x: Any) -> Any:
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


def each_head(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def heads_sliced(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
    q, k, v = cut(x, heads) @ W_Q, cut(x, heads) @ W_K, cut(x, heads) @ W_V
    return joined(each_head(q, k, v)) @ W_O


def heads_sliced_in_a_line(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
    return joined(each_head(*(cut(x, heads) @ W for W in (W_Q, W_K, W_V)))) @ W_O


def heads_sliced_one_by_one(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
    d = x.shape[1] // heads
    parts = [x[:, h * d : (h + 1) * d] for h in range(heads)]
    return np.hstack([each_head(np.dot(s, W_Q), s @ W_K, s @ W_V) for s in parts]) @ W_O


def heads_sliced_in_torch(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
    part = torch.tensor(x).view(len(x), heads, -1).transpose(0, 1)
    return part @ torch.tensor(W_Q)


SLICING = (
    heads_sliced,
    heads_sliced_in_a_line,
    heads_sliced_one_by_one,
    heads_sliced_in_torch,
)


def heads_apart(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
    return each_head(*(cut(x @ W, heads) for W in (W_Q, W_K, W_V))) @ W_O


def heads_apart_by_another(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
    def project(rows: Any, W: Any) -> Any:
        return rows @ W

    return project(each_head(*(cut(project(x, W), heads) for W in (W_Q, W_K, W_V))), W_O)


def heads_of_rows(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
    return x @ W_Q[: len(W_Q) // heads]


@pytest.mark.parametrize(
    ("fn", "task", "words"),
    [
        *((fn, "multi_head_attention", SLICED) for fn in SLICING),
        (heads_apart, "multi_head_attention", NOT_MERGED),
        (heads_apart_by_another, "multi_head_attention", PAIRED),
        (heads_of_rows, "multi_head_attention", PAIRED),
        (many_reversed, SDPA, REVERSED),
        (many_reversed_earlier, SDPA, REVERSED),
        (many_fixed_axes, SDPA, FROM_THE_END),
        (many_without_keepdims, SDPA, KEPT),
        (many_without_keepdims_spread_out, SDPA, KEPT),
        (many_indexed_without_asking, SDPA, NO_MASK),
        (many_indexed, SDPA, SPREAD),
        (many_untransposed, SDPA, PAIRED),
        (lambda query, keys, values: query @ keys, "attend_one", PAIRED),
        (cross_matrix_first, "cross_attention", ROWS),
        (cross_matrix_transposed, "cross_attention", ROWS),
        (step_matrix_first, "rnn_step", ROWS),
        (cross_keys_untransposed, "cross_attention", PAIRED),
    ],
)
def test_a_hint_follows_what_was_raised(fn: Function, task: str, words: str) -> None:
    text = said(fn, task)
    assert "It raises " in text
    assert text.endswith(f". {words}\n")
    assert text.count("\n") == 1


MATMUL = "matmul: Input operand 1 has a mismatch in its core dimension 0"
BROADCAST = "operands could not be broadcast together with shapes (3,5) (3,)"


@pytest.mark.parametrize(
    ("message", "code", "axes"),
    [
        ("list index out of range", "e = rows[3]", 2),
        (BROADCAST, "e / e.sum(axis=-1, keepdims=True) * mask", 2),
        (BROADCAST, "e / e.sum(-1)[..., None] * mask", 2),
        (BROADCAST, "e / e.sum() * mask", 2),
        (BROADCAST, "e / mask  # e.sum(axis=-1)", 2),
        ("division by zero", "x = q @ k.T / k.sum(axis=-1)", 3),
        (MATMUL, "np.matmul(q, k)", 3),
    ],
)
def test_no_hint_is_better_than_a_wrong_one(message: str, code: str, axes: int) -> None:
    assert hint(message, code, axes) == ""


def test_transposing_two_axes_is_no_fault() -> None:
    assert hint(MATMUL, "softmax(q @ k.T) @ k.T", 2) == PAIRED


def test_a_later_case_that_raises_is_told() -> None:
    text = said(many_reversed_unscaled, SDPA)
    assert text.startswith(f"{SDPA}: not yet. In case 1 of 6: You do not scale the scores.")
    assert "Case 3 fails too. It raises ValueError in line " in text
    assert "`return softmax(hidden(q @ k.transpose(), mask)) @ v`: matmul" in text
    assert text.endswith(f"v (5, 9, 11). {REVERSED}\n")
    assert "in another way" not in text


def test_a_later_case_without_a_result_is_told() -> None:
    def fn(query: Any, keys: Any, values: Any) -> Any:
        return one_unscaled(query, keys, values) if len(keys) < 9 else None

    text = said(fn, "attend_one")
    assert "In case 1 of 6: You do not scale" in text
    assert text.endswith(
        "Case 3 fails too. It returns None for query (5,), keys (9, 5), values (9, 3).\n"
    )


def test_a_later_case_with_another_result_stays_in_another_way() -> None:
    def fn(query: Any, keys: Any, values: Any) -> Any:
        return one_unscaled(query, keys, values) if len(keys) < 9 else np.zeros(values.shape[1])

    assert said(fn, "attend_one").endswith("A later case is wrong in another way.\n")


# Finite scores of forbidden keys


@pytest.mark.parametrize(
    "hide",
    [
        lambda s, m: np.where(m, s, -1),
        lambda s, m: np.where(m, s, -10.0),
        lambda s, m: np.where(m, s, s.min()),
        lambda s, m: s - 3 * (1 - m),
    ],
    ids=["-1", "-10", "the minimum", "3 less"],
)
def test_a_forbidden_key_with_a_finite_score_is_seen(hide: Callable[[Any, Any], Any]) -> None:
    text = said(attention_with(hide=hide), SDPA)
    assert "not yet. A forbidden key still has weight. Set its score to -inf" in text
    assert "This is seen in case " in text


@pytest.mark.parametrize("fill", [-1e4, -1e9, -1e30, -np.inf])
def test_a_score_as_low_as_minus_10000_is_right(fill: float) -> None:
    fn = attention_with(hide=lambda s, m: np.where(m, s, fill))
    assert said(fn, SDPA) == f"{SDPA}: correct on 6 cases.\n"


def test_other_faults_under_a_mask_are_not_laid_to_it() -> None:
    exercise = exercises()[SDPA]
    cases = exercise.cases(0)[1:2]
    right = many_minus_infinity(*cases[0])
    for spoilt in (right + 1, right * np.nan, right[::-1]):
        assert "forbidden" not in diagnose(exercise, cases, [spoilt]).advice


# What can be seen where no known mistake explains an answer


def spoilt(task: str, change: Callable[[Any], Any]) -> str:
    """What is said of the right outputs, each changed in the same way."""
    exercise = exercises()[task]
    cases = exercise.cases(0)
    return diagnose(exercise, cases, [change(exercise.reference(*case)) for case in cases]).advice


def test_weights_that_do_not_sum_to_1_are_seen_behind_the_output() -> None:
    text = spoilt("attend_one", lambda out: 0.83 * out)
    assert "weights behind your result do not sum to 1 in all: a sum is 0.83." in text


def test_negative_weights_are_seen_behind_the_output() -> None:
    def by_signs(case: Any) -> Any:
        q, k, v = case
        weights = 1 + 2 * np.tanh(k @ q)
        return weights / weights.sum() @ v

    exercise = exercises()["attend_one"]
    cases = exercise.cases(0)
    text = diagnose(exercise, cases, [by_signs(case) for case in cases]).advice
    assert "Some of the weights behind your result are negative." in text


def test_numbers_outside_the_values_are_counted_where_weights_are_not_told() -> None:
    """Three columns cannot tell nine weights apart."""
    values, output = np.arange(27.0).reshape(9, 3), np.array([[0.0, 30.0, 8.0]])
    assert "1 of 3 numbers lie outside the range of the values." in no_average(values, output)
    assert no_average(values, values[3:5]) == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda out: 3 * out, "It is right but for a factor of 3."),
        (lambda out: out - 0.25, "It is right but for 0.25 less in every number."),
        (
            lambda out: out[::-1],
            "The right numbers are there, but their rows stand in another order.",
        ),
        (
            lambda out: np.where(np.arange(len(out))[:, None] == 2, 7.0, out),
            "All of it is right but for row 2, counted from 0.",
        ),
        (lambda out: out + np.arange(out.size).reshape(out.shape), "No usual mistake explains it."),
    ],
    ids=["factor", "shift", "order", "row", "nothing"],
)
def test_the_relation_to_what_is_right_is_told(change: Callable[[Any], Any], words: str) -> None:
    assert spoilt("scaled_scores", change).endswith(words)


def test_what_is_tried_is_bounded() -> None:
    """Where nothing explains an answer: a third mistake is added to the nearest pairs alone."""
    for exercise in exercises().values():
        tried: set[tuple[tuple[str, str], ...]] = set()

        def noted(
            *case: Any, exercise: Exercise = exercise, tried: Any = tried, **settings: str
        ) -> Output:
            tried.add(tuple(settings.items()))
            return exercise.reference(*case, **settings)

        cases = exercise.cases(0)
        lost = [*(exercise.reference(*case) for case in cases[:-1]), None]
        noting = replace(exercise, reference=functools.wraps(exercise.reference)(noted))
        assert not diagnose(noting, cases, lost).ok
        assert len(tried) < 3000, exercise.name


# NumPy in other hands


@pytest.fixture
def _numpy_kept() -> Iterator[None]:
    before = dict(vars(np))
    yield
    for name, value in before.items():
        setattr(np, name, value)


def replacing(name: str, value: Any, fn: Function) -> Function:
    """`fn`, run after an attribute of NumPy was replaced for good."""

    def changed(*case: Any) -> Any:
        setattr(np, name, value)
        return fn(*case)

    return changed


PATCHES = {
    "all": lambda *_, **__: True,
    "any": lambda *_, **__: False,
    "abs": lambda a, **_: 0 * a,
    "isnan": lambda a: a == a,
    "max": lambda *_, **__: np.inf,
    "exp": lambda a: 0 * a + 1,
    "array": lambda *_, **__: np.ones(7),
    "array_equal": lambda *_, **__: True,
    "ndarray": object,
    "where": lambda condition, a, b: a,
    "errstate": None,
}


@pytest.mark.usefixtures("_numpy_kept")
@pytest.mark.parametrize("name", PATCHES)
def test_no_replaced_function_of_numpy_makes_an_answer_right(name: str) -> None:
    original = getattr(np, name)
    text = said(replacing(name, PATCHES[name], lambda q, k, v: 0 * v[0]), "attend_one")
    assert text.startswith("attend_one: not yet. The weights behind your result do not sum to 1")
    assert text.endswith(f"You replaced np.{name}: leave NumPy as it is.\n")
    assert getattr(np, name) is original


@pytest.mark.usefixtures("_numpy_kept")
def test_the_right_outputs_do_not_follow_a_replaced_exp() -> None:
    text = said(replacing("exp", PATCHES["exp"], one_in_a_line), "attend_one")
    assert "not yet. Every key gets the same weight" in text


@pytest.mark.usefixtures("_numpy_kept")
def test_right_values_with_numpy_replaced_are_not_enough() -> None:
    text = said(replacing("cos", math.cos, one_in_a_line), "attend_one")
    assert text == (
        "attend_one: not yet. The values are right. You replaced np.cos: leave NumPy as it is.\n"
    )


@pytest.mark.usefixtures("_numpy_kept")
def test_what_was_replaced_before_counts_for_nothing_and_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in PATCHES.items():
        monkeypatch.setattr(np, name, value)
    wrong, right = said(one_average, "attend_one"), said(one_in_a_line, "attend_one")
    found = {name: getattr(np, name) for name in PATCHES}
    monkeypatch.undo()
    assert found == PATCHES
    assert "not yet. Every key gets the same weight" in wrong
    assert right == "attend_one: correct on 6 cases.\n"


# Not written yet, or raised by something else


def stars(*args: Any, **settings: Any) -> Any: ...


def keyword(query: Any, keys: Any, values: Any, *, scale: Any = None) -> Any:
    raise NotImplementedError("later")


def unfinished_softmax(s: Any) -> Any:
    raise NotImplementedError("softmax")


@functools.wraps(keyword)
def wrapped(*args: Any) -> Any:
    return keyword(*args)


@pytest.mark.parametrize("fn", [stars, keyword, wrapped, functools.partial(keyword, scale=2)])
def test_a_stub_of_any_form_is_not_written_yet(fn: Function) -> None:
    assert said(fn, "attend_one") == "attend_one: not written yet.\n"


def test_a_forgotten_return_after_stars_is_still_told() -> None:
    def fn(*args: Any) -> None:
        weights = softmax(args[1] @ args[0])
        weights /= 2

    assert said(fn, "attend_one").endswith("Does it end with a return?\n")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (unfinished_softmax, "NotImplementedError in line"),
        (functools.partial(getattr, io.RawIOBase()), "raises TypeError"),
    ],
)
def test_what_something_else_has_not_implemented_is_an_error(call: Function, words: str) -> None:
    def attend_one(query: Any, keys: Any, values: Any) -> Any:
        return call(keys @ query) @ values

    text = said(attend_one)
    assert words in text
    assert "not written yet" not in text


# Streams and messages


@pytest.mark.parametrize("moment", ["before", "inside"])
def test_a_closed_stdout_raises_nothing(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, kept = io.StringIO(), io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "__stdout__", kept)

    def attend_one(query: Any, keys: Any, values: Any) -> Any:
        sys.stdout = closed
        return one_in_a_line(query, keys, values)

    stream = closed if moment == "before" else io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    check(attend_one)
    assert sys.stdout is stream
    spoken = kept if moment == "before" else stream
    assert spoken.getvalue() == "attend_one: correct on 6 cases.\n"


def test_no_stream_at_all_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for name in ("stdout", "__stdout__"):
        monkeypatch.setattr(sys, name, closed)
    check(one_in_a_line, "attend_one")


def test_a_message_of_megabytes_is_cut_first() -> None:
    def attend_one(query: Any, keys: Any, values: Any) -> Any:
        raise ValueError("at 0x word " * 1_000_000)

    began = time.process_time()
    text = said(attend_one)
    assert time.process_time() - began < 2
    assert len(text) < 500
    assert "raises ValueError" in text


def test_a_long_line_is_cut() -> None:
    def attend_one(query: Any, keys: Any, values: Any) -> Any:
        return [query, keys, values, "a long line, a long line, a long line, a long line, and longer"][9]  # fmt: skip

    assert " …`: list index out of range." in said(attend_one)


def test_a_residual_is_told_from_a_second_mistake() -> None:
    def fn(x: Any, context: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
        scores = (x @ W_Q) @ (context @ W_K).T / math.sqrt(len(x))
        return x + softmax(scores) @ (context @ W_V)

    text = said(fn, "cross_attention")
    assert "(1) You scale by the number of queries." in text
    assert "(2) You add x to the result." in text


def test_right_answers_of_two_axes_with_the_same_lines_pass() -> None:
    assert said(cross_plain, "cross_attention") == "cross_attention: correct on 6 cases.\n"
