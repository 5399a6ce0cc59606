"""The exercises of chapters 4 and 5: their references against the library, and edges of their own."""

import contextlib
import io
import re
from typing import Any

import numpy as np
import pytest

from attention_lib import (
    MultiHeadAttention,
    attention,
    merge_heads,
    sliding_window_mask,
    split_heads,
)
from attention_lib.checks import check, exercises
from tests.answers import Function
from tests.mutants_chapter04 import grouped_plain, merge_plain, mix, multi
from tests.mutants_chapter05 import absorb_plain, absorb_stand_in, linear_plain, phi, window_plain

EXERCISES = exercises()
CHAPTER4 = ("split_heads", "merge_heads", "multi_head_attention", "grouped_attention")
CHAPTER5 = ("absorb_block", "window_mask", "linear_step")
SEEDS = range(20)


def said(fn: object, task: str) -> str:
    """What `check` prints about a function."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        check(fn, task)
    return text.getvalue()


# The references against another truth


def test_split_and_merge_are_those_of_the_library() -> None:
    for seed in SEEDS:
        for x, heads in EXERCISES["split_heads"].cases(seed):
            found = EXERCISES["split_heads"].reference(x, heads)
            np.testing.assert_array_equal(found, split_heads(x, heads))
        for (x,) in EXERCISES["merge_heads"].cases(seed):
            np.testing.assert_array_equal(EXERCISES["merge_heads"].reference(x), merge_heads(x))


def test_many_heads_are_those_of_the_library() -> None:
    for seed in SEEDS:
        for x, W_Q, W_K, W_V, W_O, heads in EXERCISES["multi_head_attention"].cases(seed):
            widths = {"d_k": W_Q.shape[1] // heads, "d_v": W_V.shape[1] // heads}
            layer = MultiHeadAttention(x.shape[1], heads, **widths, rng=0)
            layer.W_Q, layer.W_K, layer.W_V, layer.W_O = W_Q, W_K, W_V, W_O
            found = EXERCISES["multi_head_attention"].reference(x, W_Q, W_K, W_V, W_O, heads)
            np.testing.assert_allclose(found, layer(x), atol=1e-12)


def test_grouped_heads_are_those_of_the_library() -> None:
    for seed in SEEDS:
        for case in EXERCISES["grouped_attention"].cases(seed):
            found = EXERCISES["grouped_attention"].reference(*case)
            np.testing.assert_allclose(found, attention(*case), atol=1e-12)


def test_blocks_absorbed_one_by_one_are_the_softmax() -> None:
    rng = np.random.default_rng(4)
    reference = EXERCISES["absorb_block"].reference
    for size in (1, 3, 5, 11):
        scores, values = 30 * rng.normal(size=11), rng.normal(size=(11, 7))
        scores[:3] = -np.inf
        state: Any = (-np.inf, 0.0, np.zeros(7))
        for start in range(0, 11, size):
            block = slice(start, start + size)
            state = reference(*state, scores[block], values[block])
        m, l, o = state  # noqa: E741
        weights = np.exp(scores - scores.max())
        assert m == scores.max()
        np.testing.assert_allclose(l, weights.sum())
        np.testing.assert_allclose(o / l, weights / weights.sum() @ values)


def test_the_window_is_that_of_the_library() -> None:
    for seed in SEEDS:
        for T, S, window in EXERCISES["window_mask"].cases(seed):
            found = EXERCISES["window_mask"].reference(T, S, window)
            np.testing.assert_array_equal(found, sliding_window_mask(T, window, S))


def test_steps_of_linear_attention_are_its_weighted_sums() -> None:
    rng = np.random.default_rng(5)
    q, k, v = (rng.normal(size=(11, width)) for width in (5, 5, 7))
    state, total = np.zeros((5, 7)), np.zeros(5)
    for t in range(11):
        step = EXERCISES["linear_step"].reference(q[t], k[t], v[t], state, total)
        out, state, total = map(np.asarray, step)
        weights = np.array([phi(q[t]) @ phi(key) for key in k[: t + 1]])
        np.testing.assert_allclose(out, weights / weights.sum() @ v[: t + 1])


# Known faults


def test_eight_numbers_of_two_heads_are_merged_token_by_token() -> None:
    x = np.arange(8.0).reshape(2, 2, 2)
    for merged in (EXERCISES["merge_heads"].reference(x), merge_plain(x)):
        assert np.asarray(merged).tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]
    wrong = EXERCISES["merge_heads"].reference(x, order="H, T, d")
    assert np.asarray(wrong).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_four_heads_read_two_as_0_0_1_1() -> None:
    q, k, v = np.ones((4, 1, 3)), np.ones((2, 1, 3)), np.arange(2.0).reshape(2, 1, 1)
    reference = EXERCISES["grouped_attention"].reference
    assert np.ravel(reference(q, k, v)).tolist() == [0, 0, 1, 1]
    assert np.ravel(reference(q, k, v, sharing="tile")).tolist() == [0, 1, 0, 1]
    assert np.ravel(grouped_plain(q, k, v)).tolist() == [0, 0, 1, 1]


def test_a_window_of_two_counts_the_token_itself() -> None:
    reference = EXERCISES["window_mask"].reference
    assert np.sum(reference(6, 6, 2), axis=1).tolist() == [1, 2, 2, 2, 2, 2]
    assert np.sum(reference(6, 6, 2, edges="i - w <= j <= i"), axis=1).tolist() == [
        1,
        2,
        3,
        3,
        3,
        3,
    ]
    assert np.array_equal(window_plain(6, 6, 9), np.tri(6, dtype=bool))


def test_a_hidden_block_changes_nothing() -> None:
    hidden, values = np.full(3, -np.inf), np.ones((3, 5))
    for fn in (EXERCISES["absorb_block"].reference, absorb_plain):
        for m, l in ((-np.inf, 0.0), (1.5, 2.0)):  # noqa: E741
            new_m, new_l, new_o = fn(m, l, l * np.ones(5), hidden, values)
            assert (new_m, new_l, list(new_o)) == (m, l, [l] * 5)


# Inputs


def test_blocks_come_in_every_situation() -> None:
    for seed in SEEDS:
        raised, kept, first, hidden, large, empty = EXERCISES["absorb_block"].cases(seed)
        assert raised[3].max() > raised[0] + 0.4
        assert kept[3].max() < kept[0] - 0.4
        for m, l, o, *_ in (first, empty):  # noqa: E741
            assert m == -np.inf
            assert l == 0
            assert not o.any()
        assert np.isfinite(hidden[0])
        assert np.isneginf(hidden[3]).all()
        assert np.isneginf(empty[3]).all()
        assert np.isneginf(large[3]).sum() == 2
        assert large[3].max() > 790


def test_windows_end_inside_the_text_but_for_one_that_is_wider() -> None:
    for seed in SEEDS:
        cases = EXERCISES["window_mask"].cases(seed)
        assert all(1 <= T <= S for T, S, _ in cases)
        assert sum(T < S for T, S, _ in cases) == 4
        assert sum(window > S for _, S, window in cases) == 1
        assert sum(window == 1 for *_, window in cases) == 1


def test_states_are_square_in_two_cases_only() -> None:
    shapes = [state.shape for *_, state, _ in EXERCISES["linear_step"].cases(0)]
    assert sum(d_k == d_v for d_k, d_v in shapes) == 2


def test_heads_fill_the_model_in_two_cases_only() -> None:
    cases = EXERCISES["multi_head_attention"].cases(0)
    assert sum(x.shape[1] == W_Q.shape[1] == len(W_O) for x, W_Q, *_, W_O, _ in cases) == 2
    assert all(x.shape[1] % heads == 0 for x, *_, heads in cases)


# What a learner reads


def forgetful(*case: Any) -> None: ...


@pytest.mark.parametrize("task", [*CHAPTER4, *CHAPTER5])
def test_a_stub_is_not_written_yet(task: str) -> None:
    assert said(forgetful, task) == f"{task}: not written yet.\n"


@pytest.mark.parametrize("task", [*CHAPTER4, *CHAPTER5])
def test_each_mistake_is_answered_in_one_or_two_sentences(task: str) -> None:
    advice = [text for names in EXERCISES[task].settings.values() for text in names.values()]
    assert len(set(advice)) >= 12
    for text in advice:
        assert text.endswith(".")
        assert 1 <= len(re.findall(r"[.?] [A-Z]|\.$", text)) <= 2, text
        assert len(text) < 200, text


def test_numbers_of_a_case_are_short() -> None:
    text = said(lambda m, l, o, s, v: (m, l, o + 1), "absorb_block")  # noqa: E741
    assert re.search(
        r"case 1 of 6: m = -?[\d.]{1,6}, l = [\d.]{1,6}, o \(5,\), scores \(3,\)", text
    )


def test_an_index_beyond_the_key_heads_is_explained() -> None:
    def fn(q: Any, k: Any, v: Any) -> Any:
        return [mix(q[h], k[h // len(k)], v[h // len(k)]) for h in range(len(q))]

    assert "You divide the head's number by Hk." in said(fn, "grouped_attention")


def test_an_empty_start_may_be_measured_from_anywhere() -> None:
    """Exponents measured from 0, or NaN put to 0 afterwards: the state is what counts."""

    def zeroed(m: Any, l: Any, o: Any, scores: Any, values: Any) -> Any:  # noqa: E741
        new = np.maximum(m, scores.max())
        with np.errstate(invalid="ignore"):
            factor, weights = np.nan_to_num(np.exp(m - new)), np.nan_to_num(np.exp(scores - new))
        return new, factor * l + weights.sum(), factor * o + weights @ values

    for fn in (zeroed, absorb_stand_in):
        assert said(fn, "absorb_block") == "absorb_block: correct on 6 cases.\n"


def test_a_state_changed_in_place_is_told() -> None:
    def fn(q_t: Any, k_t: Any, v_t: Any, state: Any, total: Any) -> Any:
        state += np.outer(phi(k_t), v_t)
        total += phi(k_t)
        return phi(q_t) @ state / (phi(q_t) @ total), state, total

    text = said(fn, "linear_step")
    assert text.endswith("You changed state and total in place: work on a copy.\n")


def test_a_matrix_put_first_gets_the_hint_about_rows() -> None:
    def fn(x: Any, W_Q: Any, W_K: Any, W_V: Any, W_O: Any, heads: Any) -> Any:
        return multi()(W_Q @ x, W_Q, W_K, W_V, W_O, heads)

    assert "Vectors are rows here: x @ W" in said(fn, "multi_head_attention")


@pytest.mark.parametrize(
    ("fn", "task", "words"),
    [
        (
            lambda *case: absorb_plain(*case)[:2],
            "absorb_block",
            "holds 2 parts (float64, float64), expected 3 arrays: m",
        ),
        (
            lambda *case: linear_plain(*case)[0],
            "linear_step",
            "expected 3 arrays: output, state, total",
        ),
        (
            lambda m, l, o, s, v: (np.array([max(m, s.max())]), l, o),  # noqa: E741
            "absorb_block",
            "The array m has shape (1,), expected ()",
        ),
    ],
)
def test_a_part_that_does_not_fit_is_named(fn: Function, task: str, words: str) -> None:
    assert words in said(fn, task)


def test_a_block_far_below_keeps_its_place() -> None:
    """A maximum of 0 in place of -inf would lose a first score of -800."""
    m, l, o = -np.inf, 0.0, np.zeros(1)  # noqa: E741
    m, l, o = absorb_plain(m, l, o, np.full(1, -np.inf), np.ones((1, 1)))  # noqa: E741
    m, l, o = absorb_plain(m, l, o, np.full(1, -800.0), np.ones((1, 1)))  # noqa: E741
    assert (m, l, float(o[0])) == (-800.0, 1.0, 1.0)
