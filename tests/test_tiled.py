"""Tiled attention: what dense attention gives, in blocks of any size, on every path."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attention_lib
import attention_lib.blocks
import attention_lib.blockwise
import attention_lib.tiled
import attention_lib.torch.tiled
from attention_lib.counting import count_multiply_adds

from . import reference
from .paths import DOUBLE, NUMPY, PATHS, Path, allowed_pairs, naive, to_float64
from .reference import Bools, Floats, check_budget
from .test_attention import CASES, POISON, Case, case, draw, layouts, on_path, problems, same

BLOCKS = [(4, 3, 2), (2, 4, 1), None]


@contextmanager
def blocks(sizes: tuple[int, int, int] | None = (4, 3, 2)) -> Iterator[None]:
    """Blocks of so few queries and keys that the small cases cross them; None: as they are.

    The third is the rows of a small product, which are then faster on every processor.
    """
    with ExitStack() as patched:

        def patch(module: Any, **values: Any) -> None:
            patched.enter_context(mock.patch.multiple(module, **values))

        patch(attention_lib.tiled, SMALL=-1)
        if sizes is not None:
            queries, keys, group = sizes
            patch(attention_lib.blocks, QUERIES=queries, KEYS=keys)
            patch(attention_lib.torch.tiled, QUERIES=queries, KEYS=keys)
            patch(attention_lib.blockwise, QUERIES=queries, KEYS=keys, CACHED=queries * keys)
            patch(attention_lib.blockwise, GROUP=group, small_products=lambda dtype: True)
        yield


def test_few_pairs_are_left_to_dense_attention() -> None:
    q, k, v = draw(3, 61, 5), draw(3, 67, 5), draw(3, 67, 7)
    with mock.patch.object(
        attention_lib.tiled, "attend_blocks", side_effect=AssertionError("tiled")
    ):
        out = attention_lib.tiled_attention(q, k, v, causal=True)
        with pytest.raises(AssertionError, match="tiled"):
            attention_lib.tiled_attention(draw(1, 64, 5), draw(1, 65, 5), draw(1, 65, 7))
    np.testing.assert_array_equal(out, attention_lib.attention(q, k, v, causal=True))


def always_with_maximum() -> Any:
    """No score is small enough to do without the running maximum."""
    return mock.patch.multiple(attention_lib.blockwise, BOUND=-1.0), mock.patch.multiple(
        attention_lib.torch.tiled, BOUND=-1.0
    )


def log_sum_exp(arguments: Case, shape: tuple[int, ...]) -> Floats:
    """The log-sum-exp of the scores that each query may see, in float64; -inf for none."""
    q, k = arguments["q"], arguments["k"]
    if q.ndim > 2 and k.ndim > 2:
        k = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3) if k.shape[-3] > 1 else k
    scale = arguments.get("scale")
    scores = q @ k.swapaxes(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    bias, mask = arguments.get("bias"), arguments.get("mask")
    scores = scores if bias is None else scores + bias
    pairs = (scores.shape[-2], scores.shape[-1])
    allowed = allowed_pairs(pairs, mask, bias, arguments.get("causal", False))
    scores = np.where(allowed, scores, -np.inf)
    top = np.maximum(scores.max(-1, keepdims=True, initial=-np.inf), -1e300)
    with np.errstate(divide="ignore"):
        lse = np.log(np.exp(scores - top).sum(-1)) + top[..., 0]
    return np.broadcast_to(lse, shape)


def compare(path: Path, arguments: Case) -> None:
    """Raise AssertionError unless output and log-sum-exp are as exact as the dtype allows."""
    native, exact = on_path(path, arguments)
    out, lse = path.lib.tiled_attention(**native, return_lse=True)
    wide = "float64" if path.dtype == "float64" else "float32"
    assert (out.dtype, lse.dtype) == (path.native, Path(path.library, wide).native)
    expected = reference.attention(**exact)
    noise, _ = naive(path, **exact)
    check_budget(to_float64(out), expected.out, noise, path.eps)
    eps = float(np.finfo(wide).eps)
    np.testing.assert_allclose(
        to_float64(lse), log_sum_exp(exact, expected.out.shape[:-1]), rtol=8 * eps, atol=8 * eps
    )
    same(path, path.lib.tiled_attention(**native), out)


@pytest.mark.parametrize("sizes", BLOCKS, ids=str)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_output_and_log_sum_exp_are_exact(path: Path, name: str, sizes: Any) -> None:
    with blocks(sizes):
        compare(path, case(name))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_with_a_running_maximum_too(path: Path, name: str) -> None:
    numpy, tensors = always_with_maximum()
    with numpy, tensors, blocks():
        compare(path, case(name))


@given(problems(), st.integers(2, 4), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_any_shapes_masks_and_blocks(
    arguments: Case, queries: int, keys: int, group: int, maximum: bool
) -> None:
    expected = reference.attention(**arguments)
    numpy, tensors = always_with_maximum()
    for path in DOUBLE:
        native, _ = on_path(path, arguments)
        with blocks((queries, keys, group)):
            if maximum:
                with numpy, tensors:
                    out, lse = path.lib.tiled_attention(**native, return_lse=True)
            else:
                out, lse = path.lib.tiled_attention(**native, return_lse=True)
        np.testing.assert_allclose(to_float64(out), expected.out, atol=1e-13, strict=True)
        wanted = log_sum_exp(arguments, expected.out.shape[:-1])
        np.testing.assert_allclose(to_float64(lse), wanted, atol=1e-13)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("T", [1, 127, 1024, 1031])
@pytest.mark.parametrize("path", [NUMPY[1], Path("torch", "float32")], ids=str)
def test_the_sizes_that_are_used(path: Path, T: int, causal: bool) -> None:
    """Whole and partial blocks, whole and partial groups of queries, more keys than queries."""
    S = 1157
    q, k, v = draw(3, T, 16), draw(3, S, 16), draw(3, S, 5)
    out, lse = path.lib.tiled_attention(*map(path.array, (q, k, v)), causal=causal, return_lse=True)
    exact = [path.rounded(x) for x in (q, k, v)]
    expected = attention_lib.attention(exact[0], exact[1], exact[2], causal=causal)
    np.testing.assert_allclose(to_float64(out), expected, atol=2e-6)
    arguments = dict(zip("qkv", exact, strict=True)) | {"causal": causal}
    np.testing.assert_allclose(to_float64(lse), log_sum_exp(arguments, (3, T)), rtol=2e-6)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("path", NUMPY, ids=str)
def test_it_is_what_the_online_softmax_gives(path: Path, name: str) -> None:
    """The one that is read, in blocks of 3: as exact as dense attention, the fast one beside it."""
    arguments = case(name)
    allowed = {k: arguments.pop(k) for k in ("bias", "causal") if k in arguments}
    pairs = arguments["q"].shape[-2], arguments["k"].shape[-2]
    if allowed.get("causal"):
        seen = np.tri(*pairs, k=pairs[1] - pairs[0], dtype=bool)
        arguments["mask"] = seen if arguments.get("mask") is None else seen & arguments["mask"]
    native, exact = on_path(path, arguments)
    online = attention_lib.tiled.online_attention(**native, block_size=3)
    assert online.dtype == path.native
    check_budget(
        to_float64(online), reference.attention(**exact).out, naive(path, **exact)[0], path.eps
    )
    with blocks():
        fast = attention_lib.tiled_attention(**native)
    np.testing.assert_allclose(to_float64(fast), to_float64(online), rtol=0, atol=8 * path.eps)


@pytest.mark.parametrize("sizes", BLOCKS, ids=str)
@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("function", [np.exp, np.exp2])
def test_the_same_digits_whatever_the_processor_does_fast(
    function: np.ufunc, small: bool, sizes: Any
) -> None:
    unit = 1.0 if function is np.exp else 1 / math.log(2)
    chosen: Any = {
        "exponential": lambda dtype: (function, unit),
        "small_products": lambda dtype: small,
    }
    for path in NUMPY[1:]:
        for name in ("plain", "causal", "everything"):
            native, exact = on_path(path, case(name))
            with blocks(sizes), mock.patch.multiple(attention_lib.blockwise, **chosen):
                out, lse = attention_lib.tiled_attention(**native, return_lse=True)
            expected = reference.attention(**exact).out
            np.testing.assert_allclose(out, expected, rtol=0, atol=8 * path.eps)
            wanted = log_sum_exp(exact, expected.shape[:-1])
            np.testing.assert_allclose(lse, wanted, rtol=8 * path.eps, atol=8 * path.eps)


def test_what_is_faster_by_far_is_chosen_and_a_tie_goes_to_powers_of_2() -> None:
    """On a clock that only the calls move: exp takes 5, exp2 as given."""
    from attention_lib import processor

    for exp2, chosen in ((10.0, np.exp), (5.1, np.exp2), (2.0, np.exp2)):
        took = {np.exp: 5.0, np.exp2: exp2}
        with mock.patch.object(processor, "_seconds", lambda call: took[call.func]):  # noqa: B023
            processor.exponential.cache_clear()
            function, unit = processor.exponential(np.dtype("float32"))
        assert function is chosen
        np.testing.assert_allclose(function(unit), math.e)
    processor.exponential.cache_clear()


# ---------------------------------------------------------------- large and small numbers


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_scores_of_ten_thousand_of_either_sign(path: Path) -> None:
    q = path.array([[100.0], [-100.0]])
    k, v = path.array([[100.0], [99.0], [-100.0]]), path.array([[1.0], [2.0], [4.0]])
    for sizes in ((1, 1, 1), (2, 2, 1), None):
        for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
            with blocks(sizes):
                out, lse = path.lib.tiled_attention(q, k[order], v[order], return_lse=True)
            np.testing.assert_allclose(to_float64(out), [[1.0], [4.0]], rtol=path.eps)
            np.testing.assert_allclose(to_float64(lse), [1e4, 1e4], rtol=1e-6)


@pytest.mark.parametrize("values", [1e-36, 1e-15, 1.0, 1e15, 1e37])
@pytest.mark.parametrize("shift", [-10.0, -6.0, 6.0, 10.0])
@pytest.mark.parametrize("path", [NUMPY[1], Path("torch", "float32")], ids=str)
def test_large_and_small_values_neither_overflow_nor_vanish(
    path: Path, shift: float, values: float
) -> None:
    """Every score near 36 or 100, or minus that: exp(36) times 1e37 overflows, so does exp(100)."""
    q, k = np.full((5, 1), abs(shift)), np.full((7, 1), shift) + draw(7, 1) / 100
    v = draw(7, 3) * values
    native = [path.array(x) for x in (q, k, v)]
    out = to_float64(path.lib.tiled_attention(*native))
    expected = reference.attention(path.rounded(q), path.rounded(k), path.rounded(v)).out
    np.testing.assert_allclose(out / values, expected / values, rtol=1e-4, atol=1e-6)


def test_a_caller_who_raises_on_every_floating_point_event_gets_no_false_alarm() -> None:
    q, k, v = draw(3, 5, 11) * 500, draw(3, 5, 11), draw(3, 5, 9)
    with np.errstate(all="raise"), blocks():
        for path in NUMPY:
            x = [path.array(a) for a in (q, k, v)]
            mask = np.eye(5, dtype=bool) & (np.arange(5) > 1)[:, None]
            path.lib.tiled_attention(*x, mask)
            path.lib.tiled_attention(*x, causal=True)


# ---------------------------------------------------------------- what is hidden


@pytest.mark.parametrize("poison", [*POISON, "huge"])
@pytest.mark.parametrize("how", ["mask", "bias", "causal"])
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_poison_that_no_row_sees_reaches_nothing(path: Path, how: str, poison: Any) -> None:
    """Key 4 is hidden from every query, and in the third way query 0 sees no key."""
    poison = path.lowest if poison == "huge" else poison
    native, _ = on_path(path, {"q": draw(2, 5, 7), "k": draw(2, 5, 7), "v": draw(2, 5, 3)})
    if how == "causal":
        hidden: Case = {"causal": True, "mask": path.array(np.tri(5, k=-1, dtype=bool))}
    else:
        seen = np.arange(5) < 4
        bias = np.where(seen, 0.0, -np.inf)[None, :]
        hidden = {"mask": path.array(seen[None])} if how == "mask" else {"bias": path.array(bias)}
    dirty = {name: path.array(to_float64(x)) for name, x in native.items()}
    dirty["k"][..., 4, :] = dirty["v"][..., 4, :] = poison
    if how == "causal":
        dirty["q"][..., 0, :] = poison  # the query that sees nothing
    for sizes in BLOCKS:
        with blocks(sizes):
            clean = path.lib.tiled_attention(**native, **hidden, return_lse=True)
            found = path.lib.tiled_attention(**dirty, **hidden, return_lse=True)
        for a, b in zip(found, clean, strict=True):
            np.testing.assert_allclose(to_float64(a), to_float64(b), rtol=4 * path.eps, atol=1e-7)


@pytest.mark.parametrize("poison", POISON)
@pytest.mark.parametrize("what", ["q", "k", "v", "bias"])
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_poison_reaches_the_rows_that_see_it_and_no_other(
    path: Path, what: str, poison: float
) -> None:
    """Token 3 of 5, causal: it does to each row what it does in dense attention of NumPy.

    In torch's a value that some rows see may reach others; it is never hidden.
    """
    arguments = {"q": draw(2, 5, 7), "k": draw(2, 5, 7), "v": draw(2, 5, 3), "bias": draw(5, 5)}
    native, _ = on_path(path, arguments)
    clean = to_float64(path.lib.attention(**native, causal=True))
    native[what][..., 3, 3 if what == "bias" else 2] = poison
    expected = to_float64(path.lib.attention(**native, causal=True))
    for sizes in BLOCKS:
        with blocks(sizes):
            out = to_float64(path.lib.tiled_attention(**native, causal=True))
        first = 0 if path.library == "numpy" or what != "v" else 3
        rtol, atol = 8 * path.eps, 4 * path.eps
        np.testing.assert_allclose(out[:, first:], expected[:, first:], rtol=rtol, atol=atol)
        if not first:
            np.testing.assert_allclose(out[:, :3], clean[:, :3], rtol=rtol, atol=atol)


@pytest.mark.parametrize("poison", POISON)
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_an_infinity_of_which_the_weight_is_rounded_to_0_is_nan(path: Path, poison: float) -> None:
    """Key 0 has a weight of exp(-4e4), 0 in any dtype; key 1, in another block, has all the rest."""
    q, k = path.array([[200.0]] * 3), path.array([[-200.0], [0.0]])
    v = path.array([[poison, 1.0], [5.0, 7.0]])
    some = path.array(np.array([[1, 1], [1, 1], [0, 1]], dtype=bool))
    for sizes in ((1, 1, 1), (2, 1, 1), None):
        with blocks(sizes):
            for mask, rows in ((None, 3), *([(some, 2)] if path.library == "numpy" else [])):
                out = path.lib.tiled_attention(q, k, v, mask)
                expected = np.array([[math.nan, 7.0]] * rows + [[5.0, 7.0]] * (3 - rows))
                np.testing.assert_array_equal(to_float64(out), expected)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_scores_that_all_overflow_downwards_are_nan_and_an_empty_row_is_not(path: Path) -> None:
    """Query 0 sees one key with a score of -inf; query 1 sees none."""
    q, k = path.array([[math.inf], [1.0]]), path.array([[-1.0], [1.0]])
    mask = path.array(np.array([[1, 0], [0, 0]], dtype=bool))
    expected = to_float64(path.lib.attention(q, k, k, mask))
    np.testing.assert_array_equal(expected, [[math.nan], [0.0]])
    for sizes in ((1, 1, 1), None):
        with blocks(sizes):
            same(path, path.lib.tiled_attention(q, k, k, mask), expected)


def count(mask: Bools | None = None, **options: Any) -> int:
    """Multiply-adds for 3 heads, 11 queries and 13 keys, d_k 5 and d_v 7."""
    q, k, v = draw(3, 11, 5), draw(3, 13, 5), draw(3, 13, 7)
    with count_multiply_adds() as counted:
        attention_lib.tiled_attention(q, k, v, mask, **options)
    return counted.multiply_adds


def test_blocks_that_are_hidden_whole_are_skipped() -> None:
    each = 3 * (5 + 7)
    with blocks((4, 4, 2)):
        assert count() == each * 11 * 13
        window = attention_lib.sliding_window_mask(11, 3, 13)
        for options in ({"mask": window}, {"bias": np.where(window, 0.0, -np.inf)}):
            pairs = sum(
                window[i : i + 4, j : j + 4].size
                for i in range(0, 11, 4)
                for j in range(0, 13, 4)
                if window[i : i + 4, j : j + 4].any()
            )
            assert pairs < 80
            assert count(**options) == each * pairs
        # Causal, a block on the diagonal begins with the first query that sees a key of it.
        seen = sum(11 - max(0, j - 2) for j in range(0, 13, 4) for _ in range(min(4, 13 - j)))
        assert count(causal=True) == each * seen
        assert count(np.zeros((11, 13), dtype=bool)) == 0


# ---------------------------------------------------------------- contracts


@pytest.mark.parametrize("kind", ["transposed", "strided"])
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_views_are_like_copies_and_nothing_is_modified(path: Path, kind: str) -> None:
    native, exact = on_path(path, case("everything"))
    views = native | {x: layouts(native[x], kind) for x in ("q", "k", "v", "mask", "bias")}
    before = {name: to_float64(views[name]).copy() for name in ("q", "k", "v", "mask", "bias")}
    if path.library == "numpy":
        for name in before:
            views[name].flags.writeable = False
    expected = reference.attention(**exact).out
    for sizes in BLOCKS:
        with blocks(sizes):
            out, lse = path.lib.tiled_attention(**views, return_lse=True)
        check_budget(to_float64(out), expected, naive(path, **exact)[0], path.eps)
        out[...], lse[...] = 7.0, 7.0  # what comes back is no view of them
        for name, x in before.items():
            np.testing.assert_array_equal(to_float64(views[name]), x)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_expanded_is_like_copied(path: Path) -> None:
    q, k, v = path.array(draw(1, 5, 11)), path.array(draw(7, 11)), path.array(draw(7, 9))
    expand: Any = np.broadcast_to if path.library == "numpy" else torch.broadcast_to
    views = expand(q, (2, 3, 5, 11)), expand(k, (2, 3, 7, 11)), expand(v, (2, 3, 7, 9))
    copies = [path.array(to_float64(x)) for x in views]
    with blocks():
        found, expected = (path.lib.tiled_attention(*x, causal=True) for x in (views, copies))
    same(path, found, expected)


@pytest.mark.parametrize("path", PATHS, ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_empty_axes(path: Path, causal: bool, masked: bool) -> None:
    """No keys: zeros, and -inf. No queries or no batch: nothing."""
    for b, t, s in ((2, 3, 0), (2, 0, 5), (0, 3, 5), (2, 0, 0)):
        q, k, v = (path.array(np.ones(x)) for x in ((b, 3, t, 7), (b, 3, s, 7), (b, 3, s, 9)))
        mask = path.array(np.ones((t, s), dtype=bool)) if masked else None
        out, lse = path.lib.tiled_attention(q, k, v, mask, causal=causal, return_lse=True)
        assert tuple(out.shape) == (b, 3, t, 9)
        assert tuple(lse.shape) == (b, 3, t)
        assert out.dtype == path.native
        assert s or not to_float64(out).any()
        assert s or np.isneginf(to_float64(lse)).all()


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_errors_are_those_of_attention(path: Path) -> None:
    q, k = path.array(draw(2, 3)), path.array(draw(2, 4))
    mask = path.array(np.ones((2, 2)))
    for arguments, options in (([q, k, k], {}), ([q, q, q, mask], {}), ([q, q, q], {"causal": 1})):
        with pytest.raises((ValueError, TypeError)) as dense:
            path.lib.attention(*arguments, **options)
        with pytest.raises(dense.type) as tiled:
            path.lib.tiled_attention(*arguments, **options)
        assert str(tiled.value) == str(dense.value)


# ---------------------------------------------------------------- reported faults


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_N1_a_fully_masked_row_in_all_spellings(path: Path) -> None:
    q, k, v = (path.array(draw(1, 1, 3, 3, seed=s)) for s in range(3))
    mask = np.ones((3, 3), dtype=bool)
    mask[1] = False
    for sizes in ((2, 2, 1), None):
        with blocks(sizes):
            for hidden in ({"mask": mask}, {"bias": np.where(mask, 0.0, -np.inf)}):
                arguments = {name: path.array(x) for name, x in hidden.items()}
                out, lse = path.lib.tiled_attention(q, k, v, **arguments, return_lse=True)
                assert not to_float64(out)[0, 0, 1].any()
                np.testing.assert_array_equal(
                    to_float64(lse)[0, 0] == -np.inf, [False, True, False]
                )
            summed = Path(path.library, "float64" if path.dtype == "float64" else "float32")
            bias = np.zeros((3, 3))
            bias[1] = summed.lowest
            out = to_float64(path.lib.tiled_attention(q, k, v, bias=summed.array(bias)))
            mean = to_float64(v)[0, 0].mean(0)
            np.testing.assert_allclose(out[0, 0, 1], mean, rtol=4 * path.eps, atol=path.eps)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_N3_scores_of_64_by_64_do_not_overflow(path: Path) -> None:
    q = k = path.array(np.full((1, 1, 3, 64), 64.0))
    v = path.array(draw(1, 1, 3, 5))
    with blocks((2, 2, 1)):
        out = to_float64(path.lib.tiled_attention(q, k, v))
    mean = to_float64(v).mean(-2, keepdims=True)
    np.testing.assert_allclose(out, np.broadcast_to(mean, out.shape), atol=path.eps)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_N4_N5_masks_that_meet_in_one_cell(path: Path) -> None:
    """Causal and padding hide the same cells; sums of finfo.min are -inf in every dtype."""
    q, k, v = (path.array(draw(2, 1, 4, 5, seed=s)) for s in range(3))
    padding = np.arange(4) < np.array([3, 0])[:, None, None, None]
    exact = reference.attention(
        to_float64(q), to_float64(k), to_float64(v), padding, causal=True
    ).out
    ways: list[Case] = [
        {"mask": path.array(padding), "causal": True},
        {"mask": path.array(padding & np.tri(4, dtype=bool))},
        {"bias": path.array(np.where(padding, 0.0, -np.inf)), "causal": True},
    ]
    for way in ways:
        with blocks((3, 3, 1)):
            out = to_float64(path.lib.tiled_attention(q, k, v, **way))
        np.testing.assert_allclose(out, exact, atol=4 * path.eps)
        assert not out[1].any(), "sentence 1 is all padding"


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_N9_no_scalar_promotes(path: Path) -> None:
    q, k, v = (path.array(draw(1, 2, 3, 64, seed=s)) for s in range(3))
    expected = to_float64(path.lib.tiled_attention(q, k, v))
    for scale in (1 / 8, 1 / np.sqrt(64), np.float32(0.125), np.float16(0.125)):
        out = path.lib.tiled_attention(q, k, v, scale=scale)
        assert out.dtype == path.native
        same(path, out, expected)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_N10_the_first_block_is_hidden_from_one_row(path: Path) -> None:
    """Blocks of 2 keys of 6: -inf minus -inf would be NaN. The empty row merges with weight 0."""
    q, k, v = (path.array(draw(3, 6, 5, seed=s)) for s in range(3))
    mask = np.ones((6, 6), dtype=bool)
    mask[1, :2] = mask[2] = False
    expected = path.lib.attention(q, k, v, path.array(mask))
    numpy, tensors = always_with_maximum()
    with numpy, tensors, blocks((6, 2, 1)):
        out, lse = path.lib.tiled_attention(q, k, v, path.array(mask), return_lse=True)
    np.testing.assert_allclose(to_float64(out), to_float64(expected), atol=4 * path.eps)
    assert np.isneginf(to_float64(lse)[:, 2]).all()
    assert np.isfinite(np.delete(to_float64(lse), 2, -1)).all()


@pytest.mark.parametrize("path", DOUBLE, ids=str)
def test_A1_A2_causal_is_lower_right_and_a_decode_step_sees_all(path: Path) -> None:
    with blocks((2, 2, 1)):
        for T, S, seen in ((2, 5, [4, 5]), (5, 2, [0, 0, 0, 1, 2])):
            q, k = path.array(np.zeros((T, 1))), path.array(np.zeros((S, 1)))
            _, lse = path.lib.tiled_attention(q, k, k, causal=True, return_lse=True)
            np.testing.assert_allclose(np.exp(to_float64(lse)), seen)
        q, k, v = (path.array(draw(6, 5, seed=s)) for s in range(3))
        whole = path.lib.tiled_attention(q, k, v, causal=True)
        same(path, path.lib.tiled_attention(q[-1:], k, v, causal=True), whole[-1:])


@pytest.mark.parametrize("path", DOUBLE, ids=str)
def test_A3_A15_A20_each_option_alone_and_with_the_log_sum_exp(path: Path) -> None:
    """What comes after a token changes nothing before it, by mask, by causal and by both."""
    arrays = [path.array(draw(2, 4, 5, seed=s)) for s in range(3)]
    lower = path.array(np.tri(4, dtype=bool))
    options: list[Case] = [{"mask": lower}, {"causal": True}, {"mask": lower, "causal": True}]
    with blocks((2, 3, 1)):
        expected = to_float64(path.lib.tiled_attention(*arrays, causal=True))
        for option in options:
            changed = [path.array(to_float64(x)) for x in arrays]
            for x in changed:
                x[:, 3] = 9.0
            for lse in (False, True):
                out = path.lib.tiled_attention(*changed, **option, return_lse=lse)
                out = to_float64(out[0] if lse else out)
                np.testing.assert_allclose(out[:, :3], expected[:, :3], atol=1e-15)


@pytest.mark.parametrize("path", DOUBLE, ids=str)
def test_A12_grouped_heads(path: Path) -> None:
    """Four query heads read the key heads 0, 0, 1, 1; three cannot share two."""
    q, k = path.array(draw(4, 3, 5)), path.array(draw(2, 3, 5))
    v = path.array(np.arange(2.0)[:, None, None] * np.ones((2, 3, 1)))
    out = to_float64(path.lib.tiled_attention(q, k, v))
    np.testing.assert_allclose(out[:, 0, 0], [0, 0, 1, 1], atol=1e-15)
    with pytest.raises(attention_lib.ShapeError, match="multiple"):
        path.lib.tiled_attention(q[:3], k, v)


@pytest.mark.parametrize("path", DOUBLE, ids=str)
def test_values_of_width_0(path: Path) -> None:
    """With blocks of 64 pairs, and of so many queries that they make no whole group."""
    q, k, v = (path.array(draw(2, n, d)) for n, d in ((301, 5), (70, 5), (70, 0)))
    assert path.lib.tiled_attention(q, k, v).shape == (2, 301, 0)
    out, lse = path.lib.tiled_attention(q[:, :64], k, v, return_lse=True)
    assert out.shape == (2, 64, 0)
    _, expected = path.lib.tiled_attention(q[:, :64], k, k, return_lse=True)
    np.testing.assert_allclose(to_float64(lse), to_float64(expected))


@pytest.mark.parametrize("bad", [0.0, np.inf, np.nan])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_large_values_whose_mean_is_finite(library: str, bad: float) -> None:
    """700 times 3e38 is above the largest float32; what else the values hold changes nothing."""
    path = Path(library, "float32")
    q, k, v = draw(2, 70, 5), draw(2, 700, 5), np.full((2, 700, 3), 3e38)
    v[:, 600:, 1], v[0, 3, 2] = -3e38, bad or 3e38
    out, dense = (
        to_float64(f(*map(path.array, (q, k, v))))
        for f in (path.lib.tiled_attention, path.lib.attention)
    )
    assert np.isfinite(dense).all() == (bad == 0)
    np.testing.assert_allclose(out, dense, rtol=1e-5, atol=1e33)


# ---------------------------------------------------------------- memory


def extra_bytes(n: int, **options: Any) -> int:
    """Peak of what NumPy holds during a call above its inputs and its output."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, n, 64), dtype=np.float32) for _ in range(3))
    tracemalloc.start()
    out = attention_lib.tiled_attention(q, k, v, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(out, np.ndarray)
    return peak - out.nbytes


@pytest.mark.parametrize("causal", [False, True])
def test_memory_grows_with_n_not_with_its_square(causal: bool) -> None:
    _, small, middle, large = (extra_bytes(n, causal=causal) for n in (1024, 1024, 2048, 4096))
    assert large - middle == pytest.approx(2 * (middle - small), rel=0.01)
    assert large < 4096 * 4096 * 4 / 10


@pytest.mark.slow
def test_65536_tokens_in_under_100_MB() -> None:
    assert extra_bytes(65_536) < 100e6
