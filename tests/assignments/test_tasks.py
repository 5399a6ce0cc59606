"""The tasks of the assignments: right answers pass, each mistake gets its own diagnosis."""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import attention_lib
from assignments.tasks import NAMES, Task, assignments
from assignments.verify import verify
from attention_lib.checks import check, diagnose, exercises
from attention_lib.checks.engine import Array, Case, Output, parts
from tests.answers import Answer
from tests.notebooks import chapters, read
from tests.test_checks import changed, few_or_many, narrowed, outputs, with_settings

ASSIGNMENTS = assignments()
TASKS = {task.name: task for a in ASSIGNMENTS.values() for task in a.tasks}
FUNCTIONS = [task for task in TASKS.values() if task.numbers is None]
NUMBERS = [task for task in TASKS.values() if task.numbers is not None]
ANSWERS: list[Answer] = [
    answer
    for name in NAMES
    for answer in import_module(f"tests.assignments.mutants_{name}").ANSWERS
]
WRONG = [answer for answer in ANSWERS if answer.settings]
STUDENTS = ("solution", "", "é 李 x", "Ana Müller", "s1234567", "O'Neil, J.")

# What the design of the grading asks for: the mistakes that some task must tell apart.
TO_COVER = {
    "no scale": ("soft_capped_attention", "scale", "none"),
    "divided by d_k": ("soft_capped_attention", "scale", "1/d_k"),
    "multiplied by sqrt(d_k)": ("soft_capped_attention", "scale", "*sqrt(d_k)"),
    "divided by sqrt(n)": ("soft_capped_attention", "scale", "1/sqrt(S)"),
    "divided by sqrt(d_model)": ("gated_heads", "scale", "1/sqrt(d_model)"),
    "softmax over queries": ("soft_capped_attention", "softmax", "queries"),
    "softmax over everything": ("soft_capped_attention", "softmax", "everything"),
    "mask after the softmax": ("soft_capped_attention", "masking", "after"),
    "mask to 0": ("soft_capped_attention", "masking", "zeroed"),
    "boolean mask added": ("soft_capped_attention", "masking", "added"),
    "mask added as 0 and 1": ("soft_capped_attention", "masking", "added"),  # seen alike
    "mask ignored": ("soft_capped_attention", "masking", "ignored"),
    "mask inverted": ("soft_capped_attention", "masking", "inverted"),
    "causal, strict": ("prefix_mask", "past", "j < i"),
    "causal, + 1": ("prefix_mask", "past", "j <= i + 1"),
    "causal, transposed": ("prefix_mask", "past", "j >= i"),
    "causal, inverted": ("prefix_mask", "past", "j > i"),
    "heads by reshape without transpose": ("gated_heads", "split", "reshaped"),
    "heads not transposed": ("gated_heads", "split", "across"),
    "heads interleaved": ("gated_heads", "split", "strided"),
    "heads merged without transpose": ("gated_heads", "merge", "reshaped"),
    "weights returned": ("soft_capped_attention", "output", "weights"),
    "q and k exchanged": ("soft_capped_attention", "roles", "k, q, v"),
    "K used as V": ("soft_capped_attention", "roles", "q, k, k"),
    "keys hidden on the axis of the queries": ("sink_window_mask", "kept", "query rows"),
    "rotary halves with angles of neighbours": (
        "rotate_part",
        "pairing",
        "halves, neighbours' angles",
    ),
    "online merge without rescaling": ("merge_parts", "weights", "old not rescaled"),
    "window off by one": ("sink_window_mask", "room", "+1"),
    "grouped heads tiled": ("grouped_scores", "sharing", "tile"),
}

per_task = pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
per_answer = pytest.mark.parametrize(
    "answer", ANSWERS, ids=lambda a: f"{a.task}, {a.settings or 'right'}"
)


def settings_of(task: Task) -> Iterator[tuple[str, str, str]]:
    """Each wrong setting of a task: its knob, its name, its advice."""
    for knob, names in task.exercise.settings.items():
        for name, advice in names.items():
            yield knob, name, advice


def rights_of(task: Task, cases: list[Case]) -> list[Output]:
    with np.errstate(all="ignore"):
        return [task.exercise.reference(*case) for case in cases]


# Diagnosis


@few_or_many(2, 200)
@per_answer
def test_no_answer_is_misjudged_on_any_seed(answer: Answer, seeds: int) -> None:
    task = TASKS[answer.task]
    for seed in range(seeds):
        cases = task.cases(seed, f"é 李 {seed}")
        found = diagnose(task.exercise, cases, outputs(task.exercise, answer.fn, cases))
        assert found.settings == answer.settings, (seed, found)
        assert found.ok == (not answer.settings), (seed, found)
        for words in answer.says:
            assert words in found.advice


@few_or_many(1, 200)
@per_task
def test_all_wrong_settings_can_be_told_apart(task: Task, seeds: int) -> None:
    exercise = task.exercise
    for seed in range(seeds):
        cases = task.cases(seed, f"é 李 {seed}")
        for knob, name, advice in settings_of(task):
            made = outputs(exercise, with_settings(exercise, {knob: name}), cases)
            found = diagnose(exercise, cases, made)
            assert (found.settings, found.advice) == ({knob: name}, advice), seed


@few_or_many(2, 50)
@per_task
def test_the_reference_itself_passes_in_either_precision(task: Task, seeds: int) -> None:
    for seed in range(seeds):
        cases = task.cases(seed, str(seed))
        rights = rights_of(task, cases)
        assert diagnose(task.exercise, cases, rights).ok
        for found in zip(*(changed(right, narrowed) for right in rights), strict=True):
            assert diagnose(task.exercise, cases, found).ok


def spoiled(array: Array, share: float) -> Array:
    """With its largest entry changed: by a share, by 1, or to its opposite."""
    changed = np.array(array)
    finite = np.where(np.isfinite(changed), abs(changed.astype(float)), -1)
    place = np.unravel_index(finite.argmax(), changed.shape)
    match changed.dtype.kind:
        case "b":
            changed[place] = not changed[place]
        case "f":
            changed[place] *= 1 + share
        case _:
            changed[place] += 1
    return changed


@pytest.mark.parametrize("first", [1, pytest.param(8, marks=pytest.mark.slow)])
@per_task
def test_one_entry_of_one_case_that_is_a_little_off_is_not_right(task: Task, first: int) -> None:
    share = 2 * task.exercise.rtol
    cases = task.cases(1, "Ana Müller")
    rights = rights_of(task, cases)
    for place in range(len(cases))[:first]:
        for wrong in changed(rights[place], lambda array: spoiled(array, share)):
            found: list[Output | None] = [*rights]
            found[place] = wrong
            assert not diagnose(task.exercise, cases, found).ok
        found[place] = None
        assert not diagnose(task.exercise, cases, found).ok


@pytest.mark.parametrize("task", NUMBERS, ids=lambda task: task.name)
def test_a_number_may_be_rounded_to_three_digits_but_not_to_one(
    task: Task,
) -> None:
    refused = 0
    for student in STUDENTS:
        cases = task.cases(0, student)
        right = parts(task.exercise.reference(*cases[0]))
        rounded = [tuple(np.array(float(f"{x:.{digits}g}")) for x in right) for digits in (3, 1)]
        assert diagnose(task.exercise, cases, [rounded[0]]).ok
        refused += not diagnose(task.exercise, cases, [rounded[1]]).ok
    assert refused


# How much is covered


def test_every_assignment_has_its_answers_and_every_answer_its_task() -> None:
    assert list(ASSIGNMENTS) == list(NAMES)
    assert {answer.task for answer in ANSWERS} == set(TASKS)


def test_enough_mutants_and_right_answers_are_tried() -> None:
    distinct = {(answer.task, *sorted(answer.settings.items())) for answer in WRONG}
    assert len(distinct) >= 60
    assert len(ANSWERS) - len(WRONG) >= 12
    assert any(len(answer.settings) == 2 for answer in WRONG)


@per_task
def test_each_task_has_its_share(task: Task) -> None:
    mine = [answer for answer in ANSWERS if answer.task == task.name]
    made = {tuple(answer.settings.items()) for answer in mine if answer.settings}
    assert len(list(settings_of(task))) >= 6
    assert len(made) >= 6
    assert sum(not answer.settings for answer in mine) >= (3 if task.numbers is None else 1)


@pytest.mark.parametrize(("task", "knob", "name"), TO_COVER.values(), ids=TO_COVER)
def test_the_mistakes_of_the_design_are_told_apart(task: str, knob: str, name: str) -> None:
    assert name in TASKS[task].exercise.settings[knob]
    assert any(a.task == task and a.settings == {knob: name} for a in ANSWERS)


# What a task is


def test_an_assignment_is_three_functions_and_a_question_with_numbers() -> None:
    for chapter, assignment in enumerate(ASSIGNMENTS.values(), 1):
        assert assignment.chapter == chapter
        assert [task.numbers is None for task in assignment.tasks] == [True, True, True, False]
        assert 30 <= assignment.minutes <= 120
    assert len(TASKS) == 20


@per_task
def test_no_task_is_in_the_package_or_the_book(task: Task) -> None:
    assert task.name not in exercises()
    assert not hasattr(attention_lib, task.name)
    for path in chapters():
        assert f"def {task.name}(" not in "".join(cell.source for cell in read(path).cells)


@per_task
def test_advice_is_one_or_two_sentences_and_no_code(task: Task) -> None:
    for knob, name, advice in settings_of(task):
        ends = re.findall(r"[.?!](?=\s|$)", advice)
        assert 1 <= len(ends) <= 2, (knob, name, advice)
        assert advice.endswith((".", "?"))
        assert not re.search(r"np\.(?!where|exp|log)|torch\.|return \w+ [@*+]", advice), advice
        assert len(advice) <= 250


@pytest.mark.parametrize("task", NUMBERS, ids=lambda task: task.name)
def test_numbers_are_the_students_own_and_always_the_same(task: Task) -> None:
    assert task.numbers is not None
    assert task.exercise.returns == ("predicted", "measured")
    assert 0.005 <= task.exercise.rtol <= 0.02
    for student in STUDENTS:
        one, again = task.cases(0, student), task.cases(1, student)
        assert len(one) == 1
        assert all(map(np.array_equal, one[0], again[0]))
    drawn = {tuple(np.ravel(x).tolist()[0] for x in task.numbers(str(i))) for i in range(50)}
    assert len(drawn) >= 10


@pytest.mark.parametrize("task", FUNCTIONS, ids=lambda task: task.name)
def test_another_seed_gives_other_inputs(task: Task) -> None:
    def same(one: list[Case], two: list[Case]) -> bool:
        return all(
            np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f")
            for pair in zip(one, two, strict=True)
            for a, b in zip(*pair, strict=True)
        )

    assert same(task.cases(3, ""), task.cases(3, "x"))
    assert not same(task.cases(3, ""), task.cases(4, ""))


@pytest.mark.parametrize("task", FUNCTIONS, ids=lambda task: task.name)
def test_a_mask_allows_and_hides_something_in_each_row_and_column(task: Task) -> None:
    for seed in range(20):
        for case in task.cases(seed, ""):
            for mask in case:
                if isinstance(mask, np.ndarray) and mask.dtype == bool and mask.ndim >= 2:
                    for axis in (-1, -2):
                        assert mask.any(axis).all()
                        assert not mask.all(axis).any()


# The check inside the source notebooks


def verified(answer: Answer, student: str = "é 李 x") -> None:
    task = TASKS[answer.task]
    if task.numbers is None:
        verify(answer.fn, task=answer.task)
        return
    predicted, measured = answer.fn(*task.numbers(student))
    verify(task=answer.task, student=student, predicted=predicted, measured=measured)


@per_answer
def test_verify_raises_the_diagnosis_or_nothing(answer: Answer) -> None:
    if not answer.settings:
        verified(answer)
        return
    with pytest.raises(AssertionError) as raised:
        verified(answer)
    text = str(raised.value)
    assert text.startswith(f"{answer.task}: not yet. ")
    for words in answer.says:
        assert words in text


def test_verify_finds_a_function_by_its_name() -> None:
    def merge_parts(*parts: Any) -> Any: ...

    with pytest.raises(AssertionError, match=r"^merge_parts: not written yet"):
        verify(merge_parts)
    with pytest.raises(LookupError, match="no assignment has a task called 'merge'"):
        verify(merge_parts, task="merge")
    with pytest.raises(LookupError, match="''"):
        verify()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({}, "holds 2 parts (NoneType, NoneType), expected 2 arrays: predicted, measured"),
        ({"predicted": ..., "measured": 1.0}, "holds 2 parts (ellipsis, float)"),
        ({"predicted": 0.0, "measured": 0.0}, "The array predicted is off by up to"),
        ({"predicted": [1.0, 2.0], "measured": 0.0}, "predicted has shape (2,), expected ()"),
    ],
)
def test_verify_says_what_is_wrong_with_numbers(found: dict[str, Any], words: str) -> None:
    for task in NUMBERS:
        with pytest.raises(AssertionError) as raised:
            verify(task=task.name, student="x", **found)
        assert words in str(raised.value)


def test_verify_takes_the_numbers_of_the_student_who_is_named() -> None:
    for task in NUMBERS:
        assert task.numbers is not None
        mine = task.exercise.reference(*task.numbers("one"))
        others = [name for name in STUDENTS if not agrees(task, mine, name)]
        assert len(others) >= 3


def agrees(task: Task, found: Output, student: str) -> bool:
    return diagnose(task.exercise, task.cases(0, student), [found]).ok


def test_a_task_is_unknown_to_the_check_that_learners_have(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def merge_parts(*parts: Any) -> Any: ...

    check(merge_parts)
    assert "There is no exercise called merge_parts" in capsys.readouterr().out
