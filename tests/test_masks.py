"""Masks: drawn out, against their predicates, and inside attention."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention import bias

import attention_lib
import attention_lib.torch

from .paths import DOUBLE, PATHS, Path, to_float64
from .test_attention import draw

LIBRARIES = [attention_lib, attention_lib.torch]
sizes = st.integers(0, 7)


def rows(mask: Any) -> list[str]:
    """A mask (T, S) as strings of 1 and 0."""
    return ["".join(str(int(x)) for x in row) for row in np.asarray(mask)]


@pytest.mark.parametrize("lib", LIBRARIES)
def test_A1_causal_masks_of_2_by_5_and_5_by_2(lib: Any) -> None:
    assert rows(lib.causal_mask(2, 5)) == ["11110", "11111"]
    assert rows(lib.causal_mask(2, 5, align="lower-right")) == ["11110", "11111"]
    assert rows(lib.causal_mask(2, 5, align="upper-left")) == ["10000", "11000"]
    assert rows(lib.causal_mask(5, 2)) == ["00", "00", "00", "10", "11"]
    assert rows(lib.causal_mask(5, 2, align="upper-left")) == ["10", "11", "11", "11", "11"]
    assert rows(lib.causal_mask(3)) == ["100", "110", "111"]


def test_A1_torch_names_both_alignments_alike() -> None:
    for t, s in ((2, 5), (3, 7), (3, 3)):
        lower = rows(bias.causal_lower_right(t, s)._materialize())
        upper = rows(bias.causal_upper_left(t, s)._materialize())
        assert lower == rows(attention_lib.causal_mask(t, s))
        assert upper == rows(attention_lib.causal_mask(t, s, align="upper-left"))


@given(sizes, sizes)
def test_causal_sees_no_later_key(t: int, s: int) -> None:
    mask = attention_lib.causal_mask(t, s)
    assert mask.shape == (t, s)
    assert mask.dtype == bool
    for i in range(t):
        for j in range(s):
            assert mask[i, j] == (j <= i + s - t)
    upper = attention_lib.causal_mask(t, s, align="upper-left")
    assert all(upper[i, j] == (j <= i) for i in range(t) for j in range(s))


@given(sizes, st.none() | st.integers(1, 9), sizes, st.booleans())
def test_window_counts_itself(t: int, window: int | None, s: int, causal: bool) -> None:
    mask = attention_lib.sliding_window_mask(t, window, s, causal=causal)
    assert mask.shape == (t, s)
    width = 99 if window is None else window
    for i in range(t):
        for j in range(s):
            at = i + s - t
            near = at - width < j <= at if causal else abs(at - j) < width
            assert mask[i, j] == near


@pytest.mark.parametrize("lib", LIBRARIES)
def test_A16_a_window_of_two_is_the_token_and_one_before(lib: Any) -> None:
    """S = 6. Libraries that count the keys to the left call our window of 3 "left = 2"."""

    def counts(window: int | None) -> list[int]:
        return np.asarray(lib.sliding_window_mask(6, window)).sum(-1).tolist()

    causal = np.asarray(lib.causal_mask(6))
    assert counts(2) == [1, 2, 2, 2, 2, 2]
    assert counts(3) == [1, 2, 3, 3, 3, 3]
    assert counts(1) == [1] * 6
    assert counts(5) == [1, 2, 3, 4, 5, 5]
    for all_of_it in (6, 7, 1000, 10**30, None):
        np.testing.assert_array_equal(lib.sliding_window_mask(6, all_of_it), causal)
    for none_at_all in (0, -1):
        with pytest.raises(ValueError, match=f"^window must be at least 1: found {none_at_all}$"):
            lib.sliding_window_mask(6, none_at_all)
    both = np.asarray(lib.sliding_window_mask(6, 2, causal=False)).sum(-1).tolist()
    assert both == [2, 3, 3, 3, 3, 2]
    assert np.asarray(lib.sliding_window_mask(6, None, causal=False)).all()
    # The last query is the last key, as with cached keys.
    assert rows(lib.sliding_window_mask(2, 2, 5)) == ["00110", "00011"]


@given(sizes, st.integers(1, 9), sizes)
def test_a_stride_sees_the_last_and_every_so_many_before(t: int, stride: int, s: int) -> None:
    mask = attention_lib.strided_mask(t, stride, s)
    assert mask.shape == (t, s)
    for i in range(t):
        at = i + s - t
        seen = {*range(at - stride + 1, at + 1), *range(at, -1, -stride)}
        assert {int(j) for j in np.flatnonzero(mask[i])} == {j for j in seen if 0 <= j < s}


@given(sizes, st.none() | st.integers(1, 9), st.integers(0, 9), sizes, st.booleans())
def test_global_tokens_see_all_and_are_seen(
    t: int, window: int | None, tokens: int, s: int, causal: bool
) -> None:
    mask = attention_lib.global_window_mask(t, window, tokens, s, causal=causal)
    near = attention_lib.sliding_window_mask(t, window, s, causal=False)
    assert mask.shape == (t, s)
    for i in range(t):
        for j in range(s):
            at = i + s - t
            seen = near[i, j] or j < tokens or 0 <= at < tokens
            assert mask[i, j] == (seen and not (causal and j > at))


@given(sizes, sizes, st.integers(1, 9), st.booleans(), st.integers(0, 9))
def test_a_block_is_seen_whole(t: int, s: int, size: int, causal: bool, seed: int) -> None:
    blocks = np.random.default_rng(seed).random((2, -(-t // size), -(-s // size))) < 0.5
    mask = attention_lib.block_mask(t, blocks, s, block_size=size, causal=causal)
    assert mask.shape == (2, t, s)
    for h, i, j in np.ndindex(mask.shape):
        seen = blocks[h, i // size, j // size]
        assert mask[h, i, j] == (seen and not (causal and j > i + s - t))


def test_sparse_masks_drawn_out() -> None:
    strided, both, block = (
        attention_lib.strided_mask,
        attention_lib.global_window_mask,
        attention_lib.block_mask,
    )
    assert rows(strided(6, 3)) == ["100000", "110000", "111000", "111100", "011110", "001111"]
    assert rows(both(5, 2, 1)) == ["10000", "11000", "11100", "10110", "10011"]
    assert rows(both(5, 1, 1, causal=False)) == ["11111", "11000", "10100", "10010", "10001"]
    assert rows(block(3, np.eye(2, dtype=bool), 4, block_size=2)) == ["1100", "1100", "0011"]
    # The last query is the last key.
    assert rows(strided(2, 2, 5)) == ["01110", "10111"]
    assert rows(both(2, 1, 1, 5)) == ["10010", "10001"]
    for wide in (6, 10**30):
        np.testing.assert_array_equal(strided(6, wide), attention_lib.causal_mask(6))
    for none_at_all in (0, -1):
        with pytest.raises(ValueError, match=f"^stride must be at least 1: found {none_at_all}$"):
            strided(6, none_at_all)
        with pytest.raises(ValueError, match=f"^window must be at least 1: found {none_at_all}$"):
            both(6, none_at_all, 1)
    with pytest.raises(ValueError, match=r"^global_tokens must be at least 0: found -1$"):
        both(6, 1, -1)
    masks: list[Callable[..., object]] = [
        partial(attention_lib.sliding_window_mask, 3, 2),
        partial(attention_lib.masks.global_window_mask, 3, 2, 1),
        partial(block, 3, np.ones((2, 2), dtype=bool), block_size=2),
    ]
    for mask in masks:
        with pytest.raises(TypeError, match=r"^causal must be True or False: found str$"):
            mask(causal="no")
    with pytest.raises(attention_lib.ShapeError, match=r"= \(2, 3\): blocks \(2, 2\), T 3, S 5"):
        block(3, np.eye(2, dtype=bool), 5, block_size=2)


@pytest.mark.parametrize("window", [1, 2, 3, None])
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_A15_A16_a_window_is_respected_by_attention(path: Path, window: int | None) -> None:
    """Each value is one-hot, so the output shows which keys were read."""
    q, k = path.array(draw(1, 6, 5)), path.array(draw(1, 6, 5, seed=1))
    v = path.array(np.eye(6)[None])
    mask = path.lib.sliding_window_mask(6, window)
    alone = to_float64(path.lib.attention(q, k, v, mask))
    np.testing.assert_array_equal(alone[0] > 0, np.asarray(mask))
    wide = path.lib.sliding_window_mask(6, window, causal=False)
    both = to_float64(path.lib.attention(q, k, v, wide, causal=True))
    np.testing.assert_allclose(both, alone, rtol=0, atol=path.eps)


@pytest.mark.parametrize("lib", LIBRARIES)
def test_padding_hides_what_fills_up(lib: Any) -> None:
    mask = np.asarray(lib.padding_mask([3, 0, 2]))
    assert mask.shape == (3, 1, 1, 3)
    assert rows(mask[:, 0, 0]) == ["111", "000", "110"]
    assert np.asarray(lib.padding_mask([3, 0, 2], 5)).shape == (3, 1, 1, 5)
    assert np.asarray(lib.padding_mask([])).shape == (0, 1, 1, 0)
    assert rows(np.asarray(lib.padding_mask(np.array([1], dtype=np.uint8), 2))[:, 0, 0]) == ["10"]


@given(st.lists(st.integers(0, 6), max_size=5), st.integers(0, 3))
def test_padding_counts(lengths: list[int], more: int) -> None:
    s = max(lengths, default=0) + more
    mask = attention_lib.padding_mask(lengths, s)
    assert mask.shape == (len(lengths), 1, 1, s)
    assert mask.sum((1, 2, 3)).tolist() == lengths
    assert (np.diff(mask.astype(int), axis=-1) <= 0).all()


@pytest.mark.parametrize("path", DOUBLE, ids=str)
def test_padding_equals_cutting_off(path: Path) -> None:
    q, k, v = (path.array(draw(2, 3, 5, 7, seed=s)) for s in range(3))
    padded = path.lib.attention(q, k, v, path.lib.padding_mask([5, 2]), causal=True)
    cut = path.lib.attention(q[1:, :, :2], k[1:, :, :2], v[1:, :, :2], causal=True)
    np.testing.assert_allclose(to_float64(padded)[1:, :, :2], to_float64(cut), atol=1e-14)


@pytest.mark.parametrize("lib", LIBRARIES)
def test_documents_see_themselves(lib: Any) -> None:
    assert rows(lib.document_mask([7, 7, 4])) == ["110", "110", "001"]
    assert rows(lib.document_mask([4, 7], [7, 7, 4])) == ["001", "110"]
    assert rows(lib.document_mask(["a", "b"])) == ["10", "01"]
    assert lib.document_mask(np.zeros((3, 2), int)[:, None]).shape == (3, 1, 2, 2)
    assert np.asarray(lib.document_mask(np.zeros((2, 1, 3), int), np.zeros(5, int))).shape == (
        2,
        1,
        3,
        5,
    )


@pytest.mark.parametrize("path", DOUBLE, ids=str)
def test_packed_documents_are_like_documents_alone(path: Path) -> None:
    q, k, v = (path.array(draw(3, 7, 5, seed=s)) for s in range(3))
    packed = path.lib.attention(q, k, v, path.lib.document_mask([1, 1, 1, 2, 2, 2, 2]), causal=True)
    for part in (slice(0, 3), slice(3, 7)):
        alone = path.lib.attention(q[:, part], k[:, part], v[:, part], causal=True)
        np.testing.assert_allclose(to_float64(packed)[:, part], to_float64(alone), atol=1e-14)


def test_torch_masks_are_the_numpy_masks_on_the_device_asked_for() -> None:
    ours, theirs = attention_lib, attention_lib.torch
    lengths, ids = [2, 5], [[1, 1, 2], [3, 4, 4]]
    pairs = [
        (ours.causal_mask(2, 5), theirs.causal_mask(2, 5, device="cpu")),
        (ours.sliding_window_mask(5, 2), theirs.sliding_window_mask(5, 2, device="cpu")),
        (ours.padding_mask(lengths), theirs.padding_mask(torch.tensor(lengths))),
        (ours.padding_mask(lengths), theirs.padding_mask(lengths, device="cpu")),
        (ours.document_mask(ids), theirs.document_mask(torch.tensor(ids))),
        (ours.document_mask(ids, ids), theirs.document_mask(ids, ids, device="cpu")),
    ]
    for array, tensor in pairs:
        assert tensor.dtype == torch.bool
        np.testing.assert_array_equal(array, tensor.numpy(), strict=True)
    assert theirs.causal_mask(2, device="meta").device.type == "meta"


@pytest.mark.parametrize("name", ["causal_mask", "sliding_window_mask", "padding_mask"])
def test_a_fresh_mask_each_time(name: str) -> None:
    """A caller may write into a mask; the next one is not changed by it."""
    for lib in LIBRARIES:
        make = getattr(lib, name)
        arguments = {"causal_mask": (3,), "sliding_window_mask": (3, 2), "padding_mask": ([1, 3],)}
        first = make(*arguments[name])
        expected = to_float64(first).copy()
        first[...] = True
        np.testing.assert_array_equal(to_float64(make(*arguments[name])), expected)


def test_both_libraries_have_the_same_names_and_arguments() -> None:
    for name in attention_lib.torch.__all__:
        ours, theirs = getattr(attention_lib, name, None), getattr(attention_lib.torch, name)
        if ours is None or inspect.isclass(ours):
            continue
        tensors = ("device", "backend")  # only they have a choice of these
        own = [p for p in inspect.signature(theirs).parameters if p not in tensors]
        assert own == list(inspect.signature(ours).parameters), name


def test_every_mask_is_there_for_tensors_and_is_the_same() -> None:
    lib = attention_lib.torch
    names = [name for name in attention_lib.__all__ if name.endswith("_mask")]
    assert len(names) == 7
    assert set(names) <= set(lib.__all__)
    blocks = draw(2, 3, 3) > 0
    for T, S in ((5, 5), (3, 5), (5, 3), (0, 5), (5, 0)):
        calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
            ("causal_mask", (T, S), {}),
            ("causal_mask", (T, S), {"align": "upper-left"}),
            ("sliding_window_mask", (T, 2, S), {}),
            ("sliding_window_mask", (T, None, S), {"causal": False}),
            ("strided_mask", (T, 2, S), {}),
            ("global_window_mask", (T, 2, 1, S), {}),
            ("global_window_mask", (T, 1, 2, S), {"causal": False}),
            ("padding_mask", ([min(2, S), 0], S), {}),
            ("document_mask", (np.arange(T) // 2, np.arange(S) // 2), {}),
        ]
        for name, arguments, options in calls:
            expected = getattr(attention_lib, name)(*arguments, **options)
            found = getattr(lib, name)(*arguments, **options)
            assert (found.dtype, tuple(found.shape)) == (torch.bool, expected.shape)
            np.testing.assert_array_equal(found, expected)
    for causal in (False, True):
        options = {"block_size": 2, "causal": causal}
        found = lib.block_mask(5, torch.from_numpy(blocks), 6, **options)
        np.testing.assert_array_equal(found, attention_lib.block_mask(5, blocks, 6, **options))
    with pytest.raises(attention_lib.ShapeError, match=r"= \(2, 3\): blocks \(2, 2\), T 3, S 5"):
        lib.block_mask(3, torch.ones(2, 2, dtype=torch.bool), 5, block_size=2)
    refused: list[tuple[Any, str]] = [(blocks, "numpy.ndarray"), (torch.ones(3, 3), "float32")]
    for wrong, found in refused:
        with pytest.raises(TypeError, match=f"blocks must be .*: found {found}"):
            lib.block_mask(5, wrong, 6, block_size=2)
