"""Heads split and merged, and NumPy's MultiHeadAttention against torch's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attention_lib
import attention_lib.torch
from attention_lib import MultiHeadAttention, merge_heads, split_heads

from .reference import Floats
from .test_attention import draw


def test_A11_merging_transposes() -> None:
    """0 … 7 as (1, 2, 2, 2): token 0 is 0, 1 of head 0 and 4, 5 of head 1."""
    for x in (np.arange(8).reshape(1, 2, 2, 2), torch.arange(8).reshape(1, 2, 2, 2)):
        assert merge_heads(x).tolist() == [[[0, 1, 4, 5], [2, 3, 6, 7]]]
        assert split_heads(merge_heads(x), 2).tolist() == x.tolist()


def test_each_head_takes_a_contiguous_slice() -> None:
    x = draw(2, 5, 21)
    for h, head in enumerate(np.moveaxis(split_heads(x, 3), -3, 0)):
        np.testing.assert_array_equal(head, x[..., 7 * h : 7 * (h + 1)])


@given(
    st.lists(st.integers(0, 3), max_size=2), st.integers(0, 4), st.integers(1, 5), st.integers(0, 5)
)
def test_merge_undoes_split(leading: list[int], tokens: int, heads: int, width: int) -> None:
    x = draw(*leading, tokens, heads * width)
    for y in (x, torch.from_numpy(x)):
        apart = split_heads(y, heads)
        assert tuple(apart.shape) == (*leading, heads, tokens, width)
        together = merge_heads(apart)
        assert together.shape == y.shape
        assert (np.asarray(together) == x).all()


def test_the_torch_names_are_the_same_functions() -> None:
    assert attention_lib.torch.split_heads is split_heads
    assert attention_lib.torch.merge_heads is merge_heads


# ---------------------------------------------------------------- MultiHeadAttention


def twins(d_model: int, heads: int) -> tuple[MultiHeadAttention, torch.nn.MultiheadAttention]:
    """Torch's module with random weights and biases, and ours with the same numbers."""
    theirs = torch.nn.MultiheadAttention(d_model, heads, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        for i, parameter in enumerate(theirs.parameters()):
            parameter.copy_(torch.from_numpy(draw(*parameter.shape, seed=i)) / d_model**0.5)
    ours = MultiHeadAttention(d_model, heads, bias=True, rng=0)
    W: Floats = theirs.in_proj_weight.detach().numpy()
    b: Floats = theirs.in_proj_bias.detach().numpy()
    ours.W_Q, ours.W_K, ours.W_V = (part.T for part in np.split(W, 3))
    ours.b_Q, ours.b_K, ours.b_V = np.split(b, 3)
    ours.W_O = theirs.out_proj.weight.detach().numpy().T
    ours.b_O = theirs.out_proj.bias.detach().numpy()
    return ours, theirs


@pytest.mark.parametrize("masked", [False, True])
def test_equals_torch_with_copied_weights(masked: bool) -> None:
    """A3 and A6 on the way: torch's True hides, and its weights are averaged unless asked."""
    ours, theirs = twins(15, 3)
    x, context = draw(2, 5, 15), draw(2, 7, 15)
    mask = (draw(5, 7, seed=9) > -0.7) | (np.arange(7) == 0) if masked else None
    blocked = None if mask is None else torch.from_numpy(~mask)
    tokens = [torch.from_numpy(a) for a in (x, context, context)]
    expected, weights = theirs(*tokens, attn_mask=blocked, average_attn_weights=False)
    out, found = ours(x, context, mask, return_weights=True)
    np.testing.assert_allclose(out, expected.detach(), rtol=0, atol=1e-13)
    np.testing.assert_allclose(found, weights.detach(), rtol=0, atol=1e-14, strict=False)
    assert found.shape == (2, 3, 5, 7)


def test_equals_torch_on_itself_with_causal_and_padding() -> None:
    ours, theirs = twins(15, 5)
    x = draw(3, 4, 15)
    lengths = [4, 2, 3]
    padding = attention_lib.padding_mask(lengths, 4)
    t = torch.from_numpy(x)
    expected, _ = theirs(
        t,
        t,
        t,
        attn_mask=torch.from_numpy(~attention_lib.causal_mask(4)),
        key_padding_mask=torch.from_numpy(~padding[:, 0, 0]),
    )
    out = ours(x, mask=padding, causal=True)
    np.testing.assert_allclose(out, expected.detach(), rtol=0, atol=1e-13)


def by_hand(mha: MultiHeadAttention, x: Any, context: Any, heads: int, kv_heads: int) -> Any:
    """One head at a time, with slices of the weights, and no split or merge."""
    d_k, d_v = mha.W_Q.shape[1] // heads, mha.W_V.shape[1] // kv_heads
    out = np.zeros((*x.shape[:-1], mha.W_O.shape[1]))
    for h in range(heads):
        g = h // (heads // kv_heads)
        q = x @ mha.W_Q[:, h * d_k : (h + 1) * d_k]
        k = context @ mha.W_K[:, g * d_k : (g + 1) * d_k]
        v = context @ mha.W_V[:, g * d_v : (g + 1) * d_v]
        scores = np.exp(q @ k.swapaxes(-1, -2) / d_k**0.5)
        out += (
            scores
            / scores.sum(-1, keepdims=True)
            @ v
            @ mha.W_O[h * d_v : (h + 1) * d_v].astype(float)
        )
    return out


@pytest.mark.parametrize(("heads", "kv_heads"), [(6, 6), (6, 3), (6, 2), (6, 1)])
def test_grouped_heads_one_at_a_time(heads: int, kv_heads: int) -> None:
    mha = MultiHeadAttention(13, heads, kv_heads=kv_heads, d_k=5, d_v=7, rng=3)
    shapes = [W.shape for W in (mha.W_Q, mha.W_K, mha.W_V, mha.W_O)]
    assert shapes == [(13, heads * 5), (13, kv_heads * 5), (13, kv_heads * 7), (heads * 7, 13)]
    x, context = draw(2, 5, 13), draw(2, 3, 13)
    out, weights = mha(x, context, return_weights=True)
    assert out.shape == (2, 5, 13)
    assert weights.shape == (2, heads, 5, 3)
    np.testing.assert_allclose(out, by_hand(mha, x, context, heads, kv_heads), atol=1e-13)


def test_grouped_heads_are_heads_with_repeated_weights() -> None:
    grouped = MultiHeadAttention(12, 6, kv_heads=2, bias=True, rng=3)
    full = MultiHeadAttention(12, 6, bias=True, rng=4)
    full.W_Q, full.b_Q, full.W_O, full.b_O = grouped.W_Q, grouped.b_Q, grouped.W_O, grouped.b_O
    width = 2

    def repeat(W: Any) -> Any:
        apart = W.reshape(*W.shape[:-1], 2, width)
        return np.repeat(apart, 3, axis=-2).reshape(*W.shape[:-1], 6 * width)

    full.W_K, full.W_V = repeat(grouped.W_K), repeat(grouped.W_V)
    full.b_K, full.b_V = repeat(grouped.b_K), repeat(grouped.b_V)
    x = draw(2, 5, 12)
    np.testing.assert_allclose(grouped(x, causal=True), full(x, causal=True), atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_output_has_the_dtype_of_the_tokens(dtype: Any) -> None:
    mha = MultiHeadAttention(6, 2, bias=True, rng=0)
    assert mha.W_Q.dtype == np.float32
    x = draw(2, 5, 6).astype(dtype)
    exact, exact_weights = mha(x.astype(np.float64), causal=True, return_weights=True)
    out, weights = mha(x, causal=True, return_weights=True)
    assert out.dtype == weights.dtype == dtype
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(out, exact, atol=8 * eps)
    np.testing.assert_allclose(weights, exact_weights, atol=8 * eps)


def test_float16_weights_are_added_up_in_float32() -> None:
    """2048 + 1 - 2048 is 1; float16 has no 2049. One token, so attention changes nothing."""
    mha: Any = MultiHeadAttention(2, 1, bias=True, rng=0)
    eye, none = np.eye(2, dtype=np.float16), np.zeros(2, dtype=np.float16)
    mha.W_Q, mha.W_K, mha.W_V, mha.b_Q, mha.b_K, mha.b_V = eye, eye, eye, none, none, none
    mha.W_O, mha.b_O = np.ones((2, 2), dtype=np.float16), none - 2048
    out = mha(np.array([[2048.0, 1.0]], dtype=np.float16))
    assert out.dtype == np.float16
    np.testing.assert_array_equal(out, [[1.0, 1.0]])


def test_options_reach_attention() -> None:
    mha: Any = MultiHeadAttention(6, 2, rng=0)
    x = draw(2, 5, 6)
    mask = attention_lib.causal_mask(5)
    expected = mha(x, causal=True)
    np.testing.assert_allclose(mha(x, None, mask), expected, atol=1e-15)
    np.testing.assert_allclose(mha(x, bias=np.where(mask, 0, -np.inf)), expected, atol=1e-15)
    assert abs(mha(x) - expected).max() > 0.01
    _, weights = mha(x, bias=attention_lib.alibi_bias(2, 5, dtype=np.float64), return_weights=True)
    assert abs(weights - mha(x, return_weights=True)[1]).max() > 0.01


def test_a_batch_is_its_sentences_one_by_one() -> None:
    """Also A8: changing sentence 1 leaves sentence 0 as it was; and no batch axis is needed."""
    mha = MultiHeadAttention(6, 2, bias=True, rng=0)
    x = draw(2, 3, 6)
    out = mha(x)
    np.testing.assert_allclose(out[0], mha(x[0]), atol=1e-15)
    x[1] += 1
    np.testing.assert_allclose(mha(x)[0], out[0], atol=1e-15)


def test_a_sentence_that_is_all_padding_gives_the_last_bias() -> None:
    mha = MultiHeadAttention(6, 2, bias=True, rng=0)
    assert mha.b_O is not None
    out = mha(draw(2, 3, 6), mask=attention_lib.padding_mask([3, 0]))
    np.testing.assert_array_equal(out[1], np.broadcast_to(mha.b_O.astype(float), (3, 6)))


def test_starting_weights_come_from_the_seed_alone() -> None:
    state: Any = np.random.get_state
    before = state()[1].copy()
    a, b, c = (MultiHeadAttention(6, 2, bias=True, rng=seed) for seed in (1, 1, 2))
    d = MultiHeadAttention(6, 2, bias=True, rng=np.random.default_rng(1))
    for name in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O"):
        x = getattr(a, name)
        np.testing.assert_array_equal(x, getattr(b, name))
        np.testing.assert_array_equal(x, getattr(d, name))
        assert (x != getattr(c, name)).any()
        assert 0.1 < abs(x).max() <= 1 / np.sqrt(6) + 1e-7
    wide = MultiHeadAttention(4, 2, d_k=50, d_v=50, bias=True, rng=1)
    for weight, rows in ((wide.W_Q, 4), (wide.b_V, 4), (wide.W_O, 100)):
        assert weight is not None
        assert 0.9 < abs(weight).max() * np.sqrt(rows) <= 1 + 1e-6
    assert (state()[1] == before).all()


def test_inputs_are_never_modified() -> None:
    mha = MultiHeadAttention(6, 2, bias=True, rng=0)
    x, context = draw(2, 3, 6), draw(2, 5, 6)
    x.flags.writeable = context.flags.writeable = False
    mha(x, context, np.ones((3, 5), dtype=bool))
