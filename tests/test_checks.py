"""The checks: mistakes are named, right answers of any style pass, nothing escapes."""

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import pytest
import torch

from attention_lib.checks import Exercise, check, diagnose, exercises
from attention_lib.checks.engine import Array, Case, Output, parts
from tests import (
    mutants_chapter01,
    mutants_chapter02,
    mutants_chapter03,
    mutants_chapter04,
    mutants_chapter05,
    mutants_chapter06,
    mutants_chapter07,
)
from tests.answers import Answer, Function, softmax
from tests.mutants_chapter01 import attention_with, many_minus_infinity, one_in_a_line
from tests.mutants_chapter03 import cached_plain, mask_plain

ANSWERS: list[Answer] = [
    *mutants_chapter01.ANSWERS,
    *mutants_chapter02.ANSWERS,
    *mutants_chapter03.ANSWERS,
    *mutants_chapter04.ANSWERS,
    *mutants_chapter05.ANSWERS,
    *mutants_chapter06.ANSWERS,
    *mutants_chapter07.ANSWERS,
]
EXERCISES = exercises()
SDPA = "scaled_dot_product_attention"
SEEDS = range(50)


def few_or_many(few: int, many: int) -> pytest.MarkDecorator:
    """A small number of seeds in every run, the many of `make test-slow`."""
    values = [few, pytest.param(many, marks=pytest.mark.slow)]
    return pytest.mark.parametrize("seeds", values, ids=lambda n: f"{n} seeds")


per_exercise = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda e: e.name)
per_answer = pytest.mark.parametrize(
    "answer", ANSWERS, ids=lambda a: f"{a.task}, {a.settings or 'right'}"
)


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `check` prints about a function."""

    def run(fn: object, task: str | None = None) -> str:
        check(fn, task)
        return capsys.readouterr().out

    return run


def outputs(exercise: Exercise, fn: Function, cases: Sequence[Case]) -> list[Output | None]:
    """What a grader would hand over: the function's arrays, None where it raised."""
    results: list[Output | None] = []
    for case in cases:
        try:
            with np.errstate(all="ignore"):
                result = fn(*(copy(value) for value in case))
        except (ValueError, IndexError):
            results.append(None)
        else:
            several = bool(exercise.returns)
            results.append(tuple(map(plain, result)) if several else plain(result))
    return results


def plain(result: Any) -> Array:
    return np.asarray(result.detach() if isinstance(result, torch.Tensor) else result)


def changed(output: Output, change: Callable[[Array], Any]) -> Iterator[Output]:
    """The output with `change` made to one of its arrays, for each of them."""
    if not isinstance(output, tuple):
        yield change(output)
        return
    for place, array in enumerate(output):
        yield (*output[:place], change(array), *output[place + 1 :])


def same(found: Output, expected: Output) -> bool:
    return all(map(np.array_equal, parts(found), parts(expected)))


def with_settings(exercise: Exercise, settings: dict[str, str]) -> Function:
    return lambda *case: exercise.reference(*case, **settings)


# Diagnosis


@per_answer
def test_check_names_each_mistake_and_accepts_right_answers(
    answer: Answer, said: Callable[..., str]
) -> None:
    text = said(answer.fn, answer.task)
    assert text.startswith(
        f"{answer.task}: {'not yet. ' if answer.settings else 'correct on 6 cases.'}"
    )
    for words in answer.says:
        assert words in text
    assert text.count("\n") == 1
    assert text == said(answer.fn, answer.task)


@few_or_many(2, 50)
@per_answer
def test_no_answer_is_misjudged_on_any_seed(answer: Answer, seeds: int) -> None:
    exercise = EXERCISES[answer.task]
    for seed in range(seeds):
        cases = exercise.cases(seed)
        diagnosis = diagnose(exercise, cases, outputs(exercise, answer.fn, cases))
        assert diagnosis.settings == answer.settings, (seed, diagnosis)
        assert diagnosis.ok == (not answer.settings)


@per_exercise
def test_enough_answers_are_tried(exercise: Exercise) -> None:
    mine = [answer for answer in ANSWERS if answer.task == exercise.name]
    assert sum(not answer.settings for answer in mine) >= 3
    assert len({tuple(answer.settings.items()) for answer in mine if answer.settings}) >= 12
    assert any(len(answer.settings) == 2 for answer in mine)


@few_or_many(1, 10)
@per_exercise
def test_all_wrong_settings_can_be_told_apart(exercise: Exercise, seeds: int) -> None:
    settings = [{knob: name} for knob, names in exercise.settings.items() for name in names]
    for seed in range(seeds):
        cases = exercise.cases(seed)
        for wrong in settings:
            found = diagnose(
                exercise, cases, outputs(exercise, with_settings(exercise, wrong), cases)
            )
            assert found.settings == wrong
            assert found.advice == exercise.settings[next(iter(wrong))][next(iter(wrong.values()))]


@pytest.mark.parametrize("step", [31, pytest.param(1, marks=pytest.mark.slow)])
@per_exercise
def test_no_pair_of_mistakes_is_accepted(exercise: Exercise, step: int) -> None:
    """Nor explained by more mistakes than it has; a pair may equal a simpler or another one."""
    cases = exercise.cases(0)
    pairs = [
        {one: first, other: second}
        for one, other in itertools.combinations(exercise.settings, 2)
        for first, second in itertools.product(exercise.settings[one], exercise.settings[other])
    ]
    for pair in pairs[::step]:
        found = outputs(exercise, with_settings(exercise, pair), cases)
        diagnosis = diagnose(exercise, cases, found)
        assert not diagnosis.ok
        if any(output is not None for output in found):
            assert 1 <= len(diagnosis.settings) <= 2


@pytest.mark.parametrize(
    ("hide", "words"),
    [
        (lambda s, m: s, "ignores the mask"),
        (lambda s, m: s * m, "forbidden scores to 0"),
        (lambda s, m: s + m, "as 0 and 1"),
        (lambda s, m: np.where(m, -np.inf, s), "wrong way round"),
    ],
)
def test_an_answer_wrong_only_under_a_mask_hears_about_the_mask(
    hide: Callable[[Any, Any], Any], words: str, said: Callable[..., str]
) -> None:
    fn = attention_with(hide=hide)
    exercise = EXERCISES[SDPA]
    unmasked = [case for case in exercise.cases(0) if len(case) == 3]
    assert unmasked
    assert diagnose(exercise, unmasked, outputs(exercise, fn, unmasked)).ok
    assert words in said(fn, SDPA)


@few_or_many(1, 5)
@per_exercise
@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda right: right + 1e-3, marks=pytest.mark.slow),
        lambda right: right * 1.001,
        lambda right: np.zeros_like(right),
        pytest.param(lambda right: np.full_like(right, right.mean()), marks=pytest.mark.slow),
        lambda right: right[::-1] if right.ndim else right,
        lambda right: np.where(np.arange(right.size).reshape(right.shape) == 0, np.nan, right),
    ],
    ids=["shifted", "stretched", "zeros", "constant", "reversed", "one NaN"],
)
def test_near_values_are_not_right(
    exercise: Exercise, spoil: Callable[[Array], Array], seeds: int
) -> None:
    for seed in range(seeds):
        cases = exercise.cases(seed)
        rights = [exercise.reference(*case) for case in cases]
        for found in zip(*(changed(right, spoil) for right in rights), strict=True):
            if not all(map(same, found, rights)):  # a single number, reversed, is itself
                assert not diagnose(exercise, cases, found).ok


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
@per_exercise
def test_one_wrong_case_is_enough(exercise: Exercise, step: int) -> None:
    cases = exercise.cases(1)
    for spoiled in range(0, len(cases), step):
        right: list[Output | None] = [exercise.reference(*case) for case in cases]
        right[spoiled] = None
        diagnosis = diagnose(exercise, cases, right)
        assert not diagnosis.ok
        assert f"no output in case {spoiled + 1} of 6" in diagnosis.advice


@per_exercise
def test_rounding_to_float32_is_forgiven(exercise: Exercise) -> None:
    for seed in SEEDS:
        cases = exercise.cases(seed)
        right = [exercise.reference(*case) for case in cases]
        for found in zip(*(changed(output, narrowed) for output in right), strict=True):
            assert diagnose(exercise, cases, found).ok


def narrowed(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def test_outputs_of_a_grader_may_be_of_any_kind() -> None:
    exercise = EXERCISES["attend_one"]
    cases = exercise.cases(0)
    for strange in (np.array("text"), np.array([b"x"]), np.zeros(7, complex), np.zeros((0, 3))):
        assert not diagnose(exercise, cases, [strange] * len(cases)).ok
    assert diagnose(exercise, cases, [None] * len(cases)).advice == "There is no output."


# Inputs


def test_sizes_differ_where_no_exchange_needs_them_equal() -> None:
    for T, S, d_k, d_v in [
        (q.shape[-2], k.shape[-2], k.shape[-1], v.shape[-1])
        for q, k, v, *_ in EXERCISES[SDPA].cases(0)[:4]
    ]:
        assert len({T, S, d_k, d_v}) == 4
        assert all(size % 2 for size in (T, S, d_k, d_v))


def test_each_row_and_column_of_a_mask_allows_and_forbids() -> None:
    for seed in SEEDS:
        masks = [case[3] for case in EXERCISES[SDPA].cases(seed) if len(case) == 4]
        assert len(masks) == 4
        for mask, axis in itertools.product(masks, (-1, -2)):
            assert mask.dtype == bool
            assert mask.any(axis).all()
            assert not mask.all(axis).any()


def test_another_seed_gives_other_inputs() -> None:
    for exercise in EXERCISES.values():
        first, again, other = (exercise.cases(seed) for seed in (0, 0, 1))
        assert all(np.array_equal(a[0], b[0]) for a, b in zip(first, again, strict=True))
        same = [np.array_equal(a[0], b[0]) for a, b in zip(first, other, strict=True)]
        if isinstance(first[0][0], np.ndarray):
            assert not any(same)
        else:  # a size may come up again, but not all of them
            assert first != other


def test_scores_of_1e4_come_in_rows_that_no_cheaper_shift_survives() -> None:
    for seed in SEEDS:
        scores = [case[0] for case in EXERCISES["stable_softmax"].cases(seed)]
        assert all(np.isfinite(array).all() for array in scores)
        assert all(np.array_equal(array, array.astype(np.float32)) for array in scores)
        assert all(np.diff(np.sort(array)).all() for array in scores)
        assert np.abs(scores[0]).max() < 20
        for far in scores[2:4]:
            best = far.max(-1)
            assert best.max() > 9000
            assert best.min() < -9000
            assert (np.ptp(far, axis=-1) < 50).all()
        assert (np.ptp(scores[5], axis=-1) > 9000).all()


def test_a_swap_of_arguments_fits_in_two_cases_only() -> None:
    for task, one, other in [("rnn_step", 2, 3), ("run_rnn", 2, 3), ("additive_scores", 2, 3)]:
        equal = [case[one].shape == case[other].shape for case in EXERCISES[task].cases(0)]
        assert sum(equal) == 2
    assert sum(k.shape == v.shape for _, k, v, *_ in EXERCISES["cached_step"].cases(0)) == 2


def test_a_causal_mask_never_has_more_queries_than_keys() -> None:
    for seed in SEEDS:
        sizes = EXERCISES["causal_mask"].cases(seed)
        assert all(1 <= T <= S for T, S in sizes)
        assert sum(T < S for T, S in sizes) >= 4


# Answers of several arrays, or of booleans


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (lambda *case: cached_plain(*case)[0], "of type ndarray, expected 3 arrays: output, keys,"),
        (lambda *case: cached_plain(*case)[:2], "holds 2 parts (ndarray, ndarray), expected 3"),
        (lambda *_: (None, None, "text"), "holds 3 parts (NoneType, NoneType, str), expected 3"),
        (lambda q, *case: (0 * case[1], *cached_plain(q, *case)[1:]), "The array output is off by"),
        (
            lambda *case: (*cached_plain(*case)[:2], case[2]),
            "The array values has shape (7,), expected (4, 7), in case 1 of 6: q_t (5,), k_t (5,),",
        ),
        (
            lambda *case: (*cached_plain(*case)[:2], cached_plain(*case)[2] / 0),
            "The array values holds NaN or infinity",
        ),
    ],
)
def test_the_part_that_is_wrong_is_named(
    fn: Function, words: str, said: Callable[..., str]
) -> None:
    assert words in said(fn, "cached_step")


def test_a_grader_may_hand_over_too_few_arrays() -> None:
    exercise = EXERCISES["cached_step"]
    cases = exercise.cases(0)
    short = [parts(exercise.reference(*case))[:2] for case in cases]
    assert "has 2 parts, expected 3, in case 1" in diagnose(exercise, cases, short).advice


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (lambda T, S: mask_plain(T, S) ^ (np.indices((T, S)).sum(0) == 0), "wrong in 1 of "),
        (lambda T, S: mask_plain(T, S) * 2.0, "The result holds float64, expected bool, in case 1"),
    ],
)
def test_wrong_booleans_are_counted(fn: Function, words: str, said: Callable[..., str]) -> None:
    text = said(fn, "causal_mask")
    assert words in text
    assert "in case 1 of 6: T = " in text


# What else a function can do


def stub(query: Any, keys: Any, values: Any) -> Any: ...


def planned(query: Any, keys: Any, values: Any) -> Any:
    raise NotImplementedError


def ellipsis(query: Any, keys: Any, values: Any) -> Any:
    return ...


@pytest.mark.parametrize("fn", [stub, planned, ellipsis])
def test_a_stub_is_not_written_yet(fn: Function, said: Callable[..., str]) -> None:
    assert said(fn, "attend_one") == "attend_one: not written yet.\n"


def test_a_forgotten_return_is_told_from_a_stub(said: Callable[..., str]) -> None:
    def attend_one(query: Any, keys: Any, values: Any) -> None:
        scores = keys @ query
        scores /= len(query)

    assert "Does it end with a return?" in said(attend_one)

    def forgets(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        if mask is None:
            return many_minus_infinity(q, k, v)
        return None

    assert "It returns None for q (5, 7), k (3, 7), v (3, 11), mask (5, 3)." in said(forgets, SDPA)


def test_inputs_changed_in_place_are_reported(said: Callable[..., str]) -> None:
    def scaled_dot_product_attention(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        q /= np.sqrt(q.shape[-1])
        s = q @ k.swapaxes(-1, -2)
        v *= 1
        return softmax(s if mask is None else np.where(mask, s, -np.inf)) @ v

    text = said(scaled_dot_product_attention)
    assert text.endswith("not yet. The values are right. You changed q in place: work on a copy.\n")

    def attend_one(query: Any, keys: Any, values: Any) -> Any:
        keys *= 2
        values *= 2
        return softmax(keys @ query) @ values

    assert said(attend_one).endswith("You changed keys and values in place: work on a copy.\n")


def test_an_exception_is_told_with_the_learners_own_line(said: Callable[..., str]) -> None:
    def compare(q: Any, k: Any) -> Any:
        return np.dot(q, k)

    def attend_one(query: Any, keys: Any, values: Any) -> Any:
        return softmax(compare(query, keys)) @ values

    text = said(attend_one)
    line = compare.__code__.co_firstlineno + 1
    assert (
        f"It raises ValueError in line {line}, `return np.dot(q, k)`: shapes (3,) and (5,3)" in text
    )
    assert "for query (3,), keys (5, 3), values (5, 7)" in text
    assert "Traceback" not in text
    assert "attention_lib" not in text


def test_too_few_parameters(said: Callable[..., str]) -> None:
    assert "It raises TypeError: " in said(lambda query, keys: query, "attend_one")


def test_an_address_in_a_message_is_left_out(said: Callable[..., str]) -> None:
    def attend_one(query: Any, keys: Any, values: Any) -> Any:
        raise KeyError(object())

    assert "0x" not in said(attend_one)


class Odd(Exception):
    def __str__(self) -> str:
        raise SystemExit


class Equal:
    def __eq__(self, other: object) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        raise SystemExit

    __hash__ = object.__hash__


def raiser(error: BaseException) -> Function:
    def fn(*_: Any) -> Any:
        raise error

    return fn


def recurse(*_: Any) -> Any:
    return recurse()


async def asynchronous(*_: Any) -> Any:
    return None


def generator(*_: Any) -> Any:
    yield 1


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (raiser(SystemExit(0)), "raises SystemExit"),
        (raiser(GeneratorExit()), "raises GeneratorExit"),
        (raiser(BaseException("out")), "raises BaseException"),
        (raiser(Odd()), "could not be checked"),
        (recurse, "raises RecursionError"),
        (asynchronous, "type coroutine"),
        (generator, "type generator"),
        (lambda *_: Equal(), "raises SystemExit"),
        (lambda *_: "text", "type str"),
        (lambda *_: {1: 2}, "type dict"),
        (lambda *case: (one_in_a_line(*case), 1), "type tuple"),
        (lambda *_: [Equal()], "raises SystemExit"),
        (lambda *_: np.array([None]), "type ndarray"),
        (lambda *_: [[1.0], [1.0, 2.0]], "raises ValueError"),
        (lambda *_: torch.nn.Linear(1, 1), "type Linear"),
        (lambda *_: 1.5, "has shape (), expected (7,)"),
        (lambda *case: one_in_a_line(*case)[None], "has shape (1, 7), expected (7,)"),
        (lambda *case: one_in_a_line(*case).astype(int), "holds int64, expected float64"),
        (lambda *case: one_in_a_line(*case) + 0j, "holds complex128, expected float64"),
        (lambda *case: one_in_a_line(*case) > 0, "holds bool, expected float64"),
        (lambda *case: one_in_a_line(*case) / 0 * np.inf, "holds NaN or infinity"),
        (lambda *case: one_in_a_line(*case) + 0.01, "off by up to 0.01 in case 1 of 6: query (3,)"),
    ],
)
def test_whatever_it_does_one_paragraph_comes_out(
    fn: Function, words: str, said: Callable[..., str]
) -> None:
    text = said(fn, "attend_one")
    assert words in text
    assert text.count("\n") == 1
    assert text == said(fn, "attend_one")


def test_a_keyboard_interrupt_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        check(raiser(KeyboardInterrupt()), "attend_one")


def test_the_value_returned_may_be_a_buffer_used_again(said: Callable[..., str]) -> None:
    buffer = np.zeros(100)

    def attend_one(query: Any, keys: Any, values: Any) -> Any:
        view = buffer[: values.shape[1]]
        view[:] = one_in_a_line(query, keys, values)
        return view

    assert said(attend_one) == "attend_one: correct on 6 cases.\n"


def test_widening_of_float32_is_remarked_where_it_is_the_task(said: Callable[..., str]) -> None:
    wide = attention_with(scale=lambda q, k: 1 / np.sqrt(np.float64(q.shape[-1])))
    assert "correct on 6 cases. One remark: float32 inputs come back as float64." in said(
        wide, SDPA
    )
    assert said(many_minus_infinity, SDPA) == f"{SDPA}: correct on 6 cases.\n"


def test_tasks_are_found_by_name(said: Callable[..., str]) -> None:
    def attend_one(query: Any, keys: Any, values: Any) -> Any:
        return one_in_a_line(query, keys, values)

    assert (
        said(attend_one) == said(one_in_a_line, "attend_one") == "attend_one: correct on 6 cases.\n"
    )
    known = ", ".join(EXERCISES)
    assert said(softmax) == f"There is no exercise called softmax. The exercises are: {known}.\n"
    assert "no exercise called rotat." in said(softmax, "rotat")
    for value in (None, 3, np.zeros(3)):
        assert said(value).startswith("check takes the function itself")


def test_it_leaves_the_global_random_state_alone(said: Callable[..., str]) -> None:
    before = np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    said(one_in_a_line, "attend_one")
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]  # noqa: NPY002


def test_it_loads_neither_torch_nor_matplotlib() -> None:
    code = (
        "import sys, attention_lib.checks\n"
        "print(sorted({'torch', 'matplotlib'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"
