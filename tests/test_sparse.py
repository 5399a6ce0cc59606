"""Sparse methods: each equals dense attention under its mask, and multiplies its blocks alone."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_lib import (
    ShapeError,
    attention,
    bigbird_blocks,
    block_mask,
    block_sparse_attention,
    causal_mask,
    global_window_attention,
    global_window_mask,
    sliding_window_mask,
    strided_attention,
    strided_mask,
    window_attention,
)
from attention_lib.blocks import (
    Block,
    block_pairs,
    block_sparse_blocks,
    global_window_blocks,
    strided_blocks,
    window_blocks,
)
from attention_lib.counting import count_multiply_adds
from attention_lib.shapes import Array

from . import reference
from .paths import NUMPY, Path, naive, to_float64
from .reference import Bools, check_budget
from .test_attention import draw, problems

LARGE = 12  # times the queries, and the scores need a running maximum


@dataclass(frozen=True)
class Method:
    """One method with its parameters: how to call it, its mask, its blocks."""

    name: str
    call: Callable[..., Any]
    mask: Callable[[int, int], Bools]
    blocks: Callable[[int, int], Iterable[Block]]

    def __str__(self) -> str:
        return self.name


def window(w: int | None, causal: bool) -> Method:
    return Method(
        f"window {w}{' causal' * causal}",
        lambda q, k, v, **options: window_attention(q, k, v, w, causal=causal, **options),
        lambda T, S: sliding_window_mask(T, w, S, causal=causal),
        lambda T, S: window_blocks(T, S, w, causal),
    )


def global_window(w: int | None, tokens: int, causal: bool) -> Method:
    return Method(
        f"window {w} + {tokens} global{' causal' * causal}",
        lambda q, k, v, **options: global_window_attention(
            q, k, v, w, tokens, causal=causal, **options
        ),
        lambda T, S: global_window_mask(T, w, tokens, S, causal=causal),
        lambda T, S: global_window_blocks(T, S, w, tokens, causal),
    )


def strided(stride: int) -> Method:
    return Method(
        f"strided {stride}",
        lambda q, k, v, **options: strided_attention(q, k, v, stride, **options),
        lambda T, S: strided_mask(T, stride, S),
        lambda T, S: strided_blocks(T, S, stride),
    )


def block_sparse(size: int, seed: int, causal: bool) -> Method:
    def some(T: int, S: int) -> Bools:
        return np.random.default_rng(seed).random((-(-T // size), -(-S // size))) < 0.5

    return Method(
        f"blocks of {size}{' causal' * causal}",
        lambda q, k, v, **options: block_sparse_attention(
            q, k, v, some(q.shape[-2], k.shape[-2]), block_size=size, causal=causal, **options
        ),
        lambda T, S: block_mask(T, some(T, S), S, block_size=size, causal=causal),
        lambda T, S: block_sparse_blocks(T, S, some(T, S), size, causal),
    )


SOME = [
    window(3, True),
    window(3, False),
    window(None, True),
    global_window(2, 3, True),
    global_window(2, 3, False),
    strided(3),
    block_sparse(3, 0, True),
    block_sparse(3, 1, False),
]
widths = st.none() | st.integers(1, 9)
methods = st.one_of(
    st.builds(window, widths, st.booleans()),
    st.builds(global_window, widths, st.integers(0, 9), st.booleans()),
    st.builds(strided, st.integers(1, 9)),
    st.builds(block_sparse, st.integers(1, 9), st.integers(0, 9), st.booleans()),
)
small_blocks = st.tuples(st.integers(1, 5), st.integers(1, 5), st.sampled_from([0, 150, 2**18]))


@contextmanager
def blocks_of(rows: int, columns: int, at_once: int = 2**18) -> Iterator[None]:
    """The largest block made small, so that few tokens already need many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attention_lib.blocks.ROWS", rows)
        patch.setattr("attention_lib.blocks.COLUMNS", columns)
        patch.setattr("attention_lib.blockwise.CACHED", at_once)
        yield


# ---------------------------------------------------------------- equal to dense attention


@given(problems(), methods, small_blocks, st.sampled_from([None, 0.7, -1.3, 90.0, -900.0]))
def test_any_shape_equals_the_loops(
    arguments: dict[str, Any], method: Method, largest: tuple[int, int, int], scale: float | None
) -> None:
    q, k, v = (arguments[name] for name in "qkv")
    with blocks_of(*largest):
        found = method.call(q, k, v, scale=scale)
    mask = method.mask(q.shape[-2], k.shape[-2])
    expected = reference.attention(q, k, v, mask, scale=scale).out
    np.testing.assert_allclose(found, expected, atol=1e-12, strict=True)


@given(st.integers(0, 23), st.integers(0, 23), methods, small_blocks)
def test_blocks_hold_each_visible_pair_once_and_their_count_is_exact(
    T: int, S: int, method: Method, largest: tuple[int, int, int]
) -> None:
    q, k, v = draw(2, 3, T, 5), draw(2, 3, S, 5), draw(2, 3, S, 7)
    with blocks_of(*largest):
        blocks = list(method.blocks(T, S))
        with count_multiply_adds() as counted:
            method.call(q, k, v)
    covered = np.zeros((T, S), int)
    for rows, columns, allowed, _ in blocks:
        i, j = np.arange(T)[rows], np.arange(S)[columns]
        seen = np.broadcast_to(True if allowed is None else allowed, (len(i), len(j)))
        covered[np.ix_(i, j)] += seen
        assert seen.any(0).all()
        assert len(i) <= largest[0]
        assert len(j) <= largest[1]
    np.testing.assert_array_equal(covered, method.mask(T, S))
    assert block_pairs(blocks) == sum(
        len(np.arange(T)[b.rows]) * len(np.arange(S)[b.columns]) for b in blocks
    )
    assert counted.multiply_adds == 2 * 3 * block_pairs(blocks) * (5 + 7)


@pytest.mark.parametrize("shape", [(301, 301), (133, 301), (301, 133)], ids=str)
def test_whole_blocks_equal_dense_attention(shape: tuple[int, int]) -> None:
    T, S = shape
    q, k, v = draw(4, T, 5), draw(2, S, 5), draw(2, S, 3)
    for method in (
        window(140, True),
        window(7, False),
        global_window(50, 150, False),
        global_window(50, 150, True),
        strided(17),
        strided(1),
        strided(151),
        block_sparse(64, 0, True),
    ):
        mask = method.mask(T, S)
        for factor in (1, 100):  # without and with the running maximum
            dense = attention(factor * q, k, v, mask)
            np.testing.assert_allclose(
                method.call(factor * q, k, v), dense, atol=1e-13, strict=True, err_msg=method.name
            )


@pytest.mark.parametrize("factor", [1, LARGE])
@pytest.mark.parametrize("method", SOME, ids=str)
@pytest.mark.parametrize("path", NUMPY, ids=str)
def test_as_exact_as_the_dtype(path: Path, method: Method, factor: int) -> None:
    q, k, v = (path.array(x) for x in (factor * draw(6, 11, 5), draw(3, 13, 5), draw(3, 13, 7)))
    before = [x.copy() for x in (q, k, v)]
    with blocks_of(4, 5):
        found = method.call(q, k, v)
        of_views = method.call(*(np.asfortranarray(x) for x in (q, k, v)))
    assert found.dtype == path.native
    for old, new in zip(before, (q, k, v), strict=True):
        np.testing.assert_array_equal(old, new)
    Q, K, V = (to_float64(x) for x in (q, k, v))
    mask = method.mask(11, 13)
    expected = reference.attention(Q, K, V, mask).out
    noise, _ = naive(path, Q, K, V, mask)
    for out in (found, of_views):
        check_budget(to_float64(out), expected, noise, path.eps, factor=4)


def test_blocks_of_each_head() -> None:
    """Leading axes of `blocks` broadcast against (..., Hq), and may widen the output."""
    q, k, v = draw(2, 6, 11, 5), draw(2, 3, 13, 5), draw(2, 3, 13, 7)
    for leading in ((6,), (2, 1), (2, 6), (5, 1, 1)):
        blocks = np.random.default_rng(0).random((*leading, 4, 5)) < 0.5
        found = block_sparse_attention(q, k, v, blocks, block_size=3, causal=True)
        mask = block_mask(11, blocks, 13, block_size=3, causal=True)
        np.testing.assert_allclose(found, attention(q, k, v, mask), atol=1e-14, strict=True)


# ---------------------------------------------------------------- what is hidden is not read


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("method", SOME, ids=str)
def test_what_a_query_may_not_see_reaches_it_not(method: Method, bad: float) -> None:
    """In each key, value and query in turn; where it may be seen it does what it does when dense."""
    T, S = 8, 10
    mask = method.mask(T, S)
    clean = [draw(2, T, 5), draw(2, S, 5), draw(2, S, 3)]
    for which in range(3):
        for at in range(clean[which].shape[1]):
            arrays = [x.copy() for x in clean]
            arrays[which][:, at, 1] = bad
            with blocks_of(3, 4):
                found, untouched = method.call(*arrays), method.call(*clean)
            q, k, v = arrays
            np.testing.assert_allclose(found, attention(q, k, v, mask), atol=1e-14)
            others = ~mask[:, at] if which else np.arange(T) != at
            np.testing.assert_allclose(found[:, others], untouched[:, others], atol=1e-14)


def test_large_scores_and_values() -> None:
    q, k, v = (x.astype(np.float32) for x in (draw(9, 5), draw(9, 5), draw(9, 3)))
    for method in SOME:
        mask = method.mask(9, 9)
        for big_q, big_v in ((1e4, 1), (1, 1e30), (1, 1e-30), (0, 1)):
            dense = attention(q * np.float32(big_q), k, v * np.float32(big_v), mask)
            found = method.call(q * np.float32(big_q), k, v * np.float32(big_v))
            np.testing.assert_allclose(found, dense, rtol=1e-4, atol=3e-6 * big_v)


def test_values_that_the_weights_would_make_overflow() -> None:
    """A score of 19 leaves exp without a maximum, but e^19 times the value is above the largest float32."""
    one = np.full((3, 1), math.sqrt(19), np.float32)
    v = np.full((3, 2), 1e33, np.float32)
    np.testing.assert_allclose(window_attention(one, one, v, 2), v, rtol=1e-6)


@pytest.mark.parametrize("method", SOME, ids=str)
def test_the_largest_and_the_smallest_numbers_of_float32(method: Method) -> None:
    """Scores that overflow; values whose sum does; values that the smallest weights would round to 0."""
    q, k, v = (x.astype(np.float32) for x in (draw(9, 5), draw(9, 5), draw(9, 3)))
    mask = method.mask(9, 9)
    large, even = np.full_like(v, 3e38), np.zeros_like(q)
    np.testing.assert_allclose(
        method.call(even, k, large), attention(even, k, large, mask), rtol=1e-6
    )
    opposite = np.full_like(q, math.sqrt(18 / math.sqrt(5)))
    tiny = np.full_like(v, 1e-34)
    found = method.call(opposite, -opposite, tiny)
    np.testing.assert_allclose(found, attention(opposite, -opposite, tiny, mask), rtol=1e-5)
    huge = np.full_like(q, 1e19)
    np.testing.assert_array_equal(method.call(huge, k, v), attention(huge, k, v, mask))


def test_blocks_of_one_size_at_unequal_distances() -> None:
    """Each row of blocks sees one block, so that all are alike but for where they lie."""
    blocks = np.eye(5, dtype=bool)[[3, 1, 4, 0, 2]]
    q, k, v = draw(2, 15, 5), draw(2, 15, 5), draw(2, 15, 7)
    found = block_sparse_attention(q, k, v, blocks, block_size=3)
    dense = attention(q, k, v, block_mask(15, blocks, block_size=3))
    np.testing.assert_allclose(found, dense, atol=1e-14)


@pytest.mark.parametrize("method", SOME, ids=str)
def test_no_queries_and_no_keys(method: Method) -> None:
    assert method.call(draw(2, 0, 5), draw(2, 7, 5), draw(2, 7, 3)).shape == (2, 0, 3)
    assert not method.call(draw(2, 7, 5), draw(2, 0, 5), draw(2, 0, 3)).any()
    assert method.call(draw(0, 7, 5), draw(0, 7, 5), draw(0, 7, 3)).shape == (0, 7, 3)


# ---------------------------------------------------------------- windows, from reports


def test_A15_A16_window_of_two_and_all_of_it() -> None:
    """S = 6. Each value is one-hot, so that the output shows which keys were read."""
    q, k, v = draw(6, 5), draw(6, 5, seed=1), np.eye(6)

    def counts(w: int | None, causal: bool = True) -> list[int]:
        return (window_attention(q, k, v, w, causal=causal) > 0).sum(-1).tolist()

    assert counts(2) == [1, 2, 2, 2, 2, 2]
    assert counts(3) == [1, 2, 3, 3, 3, 3]
    assert counts(5) == [1, 2, 3, 4, 5, 5]
    assert counts(2, causal=False) == [2, 3, 3, 3, 3, 2]
    causal = attention(q, k, v, causal=True)
    for all_of_it in (6, 7, 10**30, None):
        np.testing.assert_allclose(
            window_attention(q, k, v, all_of_it, causal=True), causal, atol=1e-15
        )
        everything = window_attention(q, k, v, all_of_it)
        np.testing.assert_allclose(everything, attention(q, k, v), atol=1e-15)
    for none_at_all in (0, -1):
        with pytest.raises(ValueError, match=f"^window must be at least 1: found {none_at_all}$"):
            window_attention(q, k, v, none_at_all)


@pytest.mark.parametrize("w", [1, 2, 4])
def test_two_causal_layers_of_a_window_see_2w_minus_1(w: int) -> None:
    x = draw(13, 5)
    changed = x.copy()
    changed[0] += 1

    def layers(x: Array) -> Array:
        for _ in range(2):
            x = window_attention(x, x, x, w, causal=True)
        return x

    reached = (layers(x) != layers(changed)).any(-1)
    assert reached.tolist() == [True] * (2 * w - 1) + [False] * (13 - (2 * w - 1))


def test_global_tokens_that_see_all_break_causality() -> None:
    """Token 0 sees the last token, and token 5 sees token 0: in two layers the future is in the past."""
    x = draw(9, 5)
    changed = x.copy()
    changed[8] += 1

    def reached(layers: int, causal: bool) -> list[int]:
        found: Array = x
        other: Array = changed
        for _ in range(layers):
            found, other = (
                global_window_attention(y, y, y, 2, 1, causal=causal) for y in (found, other)
            )
        return np.flatnonzero((found != other).any(-1)).tolist()

    assert reached(1, causal=False) == [0, 7, 8]
    assert reached(2, causal=False) == list(range(9))
    assert reached(2, causal=True) == [8]


# ---------------------------------------------------------------- work


def test_work_by_hand() -> None:
    """n = 1,024: strips of 128 queries read 128, 256, then 383 keys of a causal window of 256."""
    n, strip = 1024, 128
    assert block_pairs(window_blocks(n, n, 256, True)) == strip * (128 + 256 + 6 * 383)
    assert block_pairs(window_blocks(n, n, 256)) == strip * (2 * 383 + 2 * 511 + 4 * 638)
    # Strips of 32 queries read 32, then 63 keys; 32 remainders have 31 earlier keys for 31 queries.
    assert block_pairs(strided_blocks(n, n, 32)) == 32 * (32 + 31 * 63) + 32 * 31 * 31
    # 64 global tokens: their rows and their columns, and the window of the others.
    both = block_pairs(global_window_blocks(n, n, 256, 64))
    assert both == 2 * n * 64 - 64 * 64 + block_pairs(window_blocks(n - 64, n - 64, 256))


@pytest.mark.parametrize(
    ("blocks", "grows"),
    [
        (lambda n: window_blocks(n, n, 256, True), 2),
        (lambda n: window_blocks(n, n, 256), 2),
        (lambda n: global_window_blocks(n, n, 256, 64), 2),
        (lambda n: strided_blocks(n, n, int(n**0.5)), 8),
        (lambda n: window_blocks(n, n, None), 4),
    ],
    ids=["window causal", "window", "global", "strided, 4 n", "no window"],
)
def test_work_grows_as_it_should(blocks: Callable[[int], Iterable[Block]], grows: int) -> None:
    n, times = 16_384, 4 if grows == 8 else 2
    ratio = block_pairs(blocks(times * n)) / block_pairs(blocks(n))
    np.testing.assert_allclose(ratio, grows, rtol=0.25 if grows == 8 else 0.02)


def test_memory_is_linear() -> None:
    """8,192 tokens have scores of 268 MB; a window holds a strip of them."""
    q, k, v = (draw(8192, 8, seed=s).astype(np.float32) for s in range(3))
    tracemalloc.start()
    try:
        window_attention(q, k, v, 256)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4e6


# ---------------------------------------------------------------- BigBird, and errors


def test_bigbird_blocks() -> None:
    """The paper's: 3 near blocks, 2 global, 3 random."""

    def make(seed: int) -> Bools:
        rng = np.random.default_rng(seed)
        return bigbird_blocks(17, window=2, global_blocks=2, random_blocks=3, rng=rng)

    blocks = make(0)
    without = global_window_mask(17, 2, 2, causal=False)
    assert blocks[without].all()
    assert (blocks & ~without).sum(-1).tolist() == [0, 0] + [3] * 15
    np.testing.assert_array_equal(blocks, make(0))
    assert (blocks != make(1)).any()
    drawn = sum(make(seed).astype(int) for seed in range(200)) - 200 * without
    share = drawn[6][~without[6]] / 200  # 12 blocks, of which 3
    assert abs(share - 0.25).max() < 0.12
    rng = np.random.default_rng(0)
    assert bigbird_blocks(3, window=1, global_blocks=0, random_blocks=9, rng=rng).all()
    np.testing.assert_array_equal(
        bigbird_blocks(17, window=2, global_blocks=2, random_blocks=3, rng=0), make(0)
    )
    for seed in (None, "0", np.random.RandomState(0)):
        with pytest.raises(TypeError, match=r"^rng, a seed or a numpy\.random\.Generator, must be"):
            bigbird_blocks(3, window=1, global_blocks=0, random_blocks=0, rng=seed)  # type: ignore[arg-type]
    for bad in ({"window": 0}, {"global_blocks": -1}, {"random_blocks": -1}):
        name, value = next(iter(bad.items()))
        with pytest.raises(ValueError, match=f"^{name}.* must be at least .*: found {value}$"):
            bigbird_blocks(
                3, **({"window": 1, "global_blocks": 0, "random_blocks": 0} | bad), rng=rng
            )


def test_errors_say_what_was_found() -> None:
    q, k, v = draw(2, 5, 3), draw(2, 7, 3), draw(2, 7, 3)
    blocks = np.ones((3, 4), dtype=bool)
    wrong: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (TypeError, "window must be an integer", lambda: window_attention(q, k, v, 2.0)),  # type: ignore[arg-type]
        (ValueError, r"stride must be at least 1: found 0", lambda: strided_attention(q, k, v, 0)),
        (
            ValueError,
            "global_tokens must be at least 0: found -1",
            lambda: global_window_attention(q, k, v, 2, -1),
        ),
        (
            ShapeError,
            r"blocks must be .* = \(3, 4\): blocks \(4, 3\), T 5, S 7, block_size 2",
            lambda: block_sparse_attention(q, k, v, blocks.T, block_size=2),
        ),
        (
            ShapeError,
            r"leading axes of blocks must broadcast .*: blocks \(3, 3, 4\), q \(2, 5, 3\)",
            lambda: block_sparse_attention(q, k, v, np.stack([blocks] * 3), block_size=2),
        ),
        (
            ValueError,
            "block_size must be at least 1: found 0",
            lambda: block_sparse_attention(q, k, v, blocks, block_size=0),
        ),
        (
            TypeError,
            "blocks must be boolean, True = may look: found float64",
            lambda: block_sparse_attention(q, k, v, blocks * 1.0, block_size=2),  # type: ignore[arg-type]
        ),
        (
            TypeError,
            "blocks must be a NumPy array of booleans: found list",
            lambda: block_sparse_attention(q, k, v, blocks.tolist(), block_size=2),  # type: ignore[arg-type]
        ),
    ]
    for kind, message, call in wrong:
        with pytest.raises(kind, match=f"^{message}"):
            call()
    for method in SOME:
        with pytest.raises(ShapeError, match=r"^q and k must share"):
            method.call(q[..., :2], k, v)
        with pytest.raises(TypeError, match=r"^scale must be"):
            method.call(q, k, v, scale="1")


def test_counters_nest_and_stop() -> None:
    q, k, v = draw(2, 3, 5, 7), draw(2, 3, 11, 7), draw(2, 3, 11, 13)
    with count_multiply_adds() as outer:
        attention(q, k, v)
        with count_multiply_adds() as inner:
            attention(q, k, v, causal_mask(5, 11))
    attention(q, k, v)
    assert inner.multiply_adds == 2 * 3 * 5 * 11 * (7 + 13)
    assert outer.multiply_adds == 2 * inner.multiply_adds
