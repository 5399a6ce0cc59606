"""Linear attention: batch and scan against loops, what is hidden, feature maps, and recall."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_lib import ShapeError, linear, linear_attention, linear_attention_scan
from attention_lib.cost import linear_cost
from attention_lib.counting import count_multiply_adds
from attention_lib.linear import (
    dpfp,
    elu_plus_one,
    identity,
    linear_multiply_adds,
    random_features,
    recall_share,
)
from attention_lib.shapes import Array

from .paths import NUMPY, Path, to_float64
from .reference import Bools, Floats, check_budget
from .test_attention import draw, problems

T, S, D_K, D_V = 11, 13, 5, 7
batch: Callable[..., Any] = partial(linear_attention, causal=True)
CAUSAL = [batch, linear_attention_scan]
ALL: list[Callable[..., Any]] = [linear_attention, *CAUSAL]


def phi(x: float) -> float:
    """elu + 1 of one number."""
    return x + 1 if x > 0 else math.exp(x)


def loops(q: Floats, k: Floats, v: Floats, causal: bool) -> Floats:
    """Each pair's weight φ(q)·φ(k), one at a time; arrays (T, d_k), (S, d_k) and (S, d_v)."""
    out = np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        seen = [j for j in range(len(k)) if not causal or j <= i + len(k) - len(q)]
        weights = [sum(phi(a) * phi(b) for a, b in zip(q[i], k[j], strict=True)) for j in seen]
        for j, weight in zip(seen, weights, strict=True):
            out[i] += weight / sum(weights) * v[j]
    return out


def every_head(q: Floats, k: Floats, v: Floats, causal: bool) -> Floats:
    """`loops` over grouped heads and broadcast leading axes."""
    heads = q.shape[-3]
    k, v = (np.repeat(x, heads // x.shape[-3], axis=-3) for x in (k, v))
    leading = np.broadcast_shapes(*(x.shape[:-2] for x in (q, k, v)))
    q, k, v = (np.broadcast_to(x, (*leading, *x.shape[-2:])) for x in (q, k, v))
    out = np.zeros((*leading, q.shape[-2], v.shape[-1]))
    for at in np.ndindex(leading):
        out[at] = loops(q[at], k[at], v[at], causal)
    return out


@given(problems(), st.integers(1, 4))
def test_any_shape_equals_the_loops(arguments: dict[str, Any], chunk: int) -> None:
    q, k, v = (arguments[name] for name in "qkv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear, "CHUNK", chunk)
        for attend in ALL:
            expected = every_head(q, k, v, causal=attend in CAUSAL)
            np.testing.assert_allclose(attend(q, k, v), expected, atol=1e-12, strict=True)


@pytest.mark.parametrize("shape", [(300, 300), (131, 300), (300, 131)], ids=str)
def test_chunks_equal_the_scan(shape: tuple[int, int]) -> None:
    q, k, v = draw(6, shape[0], D_K), draw(3, shape[1], D_K), draw(3, shape[1], D_V)
    for feature_map in (elu_plus_one, random_features(D_K, 9, np.random.default_rng(0))):
        chunks, scan = (attend(q, k, v, feature_map=feature_map) for attend in CAUSAL)
        np.testing.assert_allclose(chunks, scan, atol=1e-12, strict=True)
    last = linear_attention(q, k, v)[..., -1, :]
    np.testing.assert_allclose(last, linear_attention_scan(q, k, v)[..., -1, :], atol=1e-12)


@pytest.mark.parametrize("attend", ALL, ids=["all", "chunks", "scan"])
@pytest.mark.parametrize("path", NUMPY, ids=str)
def test_as_exact_as_the_dtype(path: Path, attend: Callable[..., Any]) -> None:
    q, k, v = (path.array(x) for x in (draw(6, T, D_K), draw(3, S, D_K), draw(3, S, D_V)))
    before = [x.copy() for x in (q, k, v)]
    found = attend(q, k, v)
    assert found.dtype == path.native
    for old, new in zip(before, (q, k, v), strict=True):
        np.testing.assert_array_equal(old, new)
    Q, K, V = (to_float64(x) for x in (q, k, v))
    expected = every_head(Q, K, V, causal=attend in CAUSAL)
    # The naive path: the same weights, rounded to the dtype at each step.
    features = [
        np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))).astype(path.native) for x in (q, k)
    ]
    weights = features[0] @ np.repeat(features[1], 2, axis=0).swapaxes(-1, -2)
    if attend in CAUSAL:
        weights = weights * np.tri(T, S, S - T, dtype=path.native)
    naive = weights / weights.sum(-1, keepdims=True) @ np.repeat(v, 2, axis=0)
    check_budget(to_float64(found), expected, to_float64(naive), path.eps)
    views = attend(*(np.asfortranarray(x) for x in (q, k, v)))
    check_budget(to_float64(views), expected, to_float64(naive), path.eps)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("attend", ALL, ids=["all", "chunks", "scan"])
def test_what_a_query_may_not_see_reaches_it_not(
    attend: Callable[..., Any], bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear, "CHUNK", 4)
    mask: Bools = np.tri(T, S, S - T, dtype=bool) | (attend not in CAUSAL)
    clean = [draw(2, T, D_K), draw(2, S, D_K), draw(2, S, D_V)]
    untouched = attend(*clean)
    for which in range(3):
        for at in range(clean[which].shape[1]):
            arrays = [x.copy() for x in clean]
            arrays[which][:, at, 1] = bad
            found = attend(*arrays)
            sees = mask[:, at] if which else np.arange(T) == at
            np.testing.assert_allclose(found[:, ~sees], untouched[:, ~sees], atol=1e-14)
            if np.isnan(bad):
                there = np.isnan(found[:, sees])
                assert there[..., 1].all() if which == 2 else there.all()
                assert which != 2 or not np.delete(there, 1, axis=-1).any()


@pytest.mark.parametrize("attend", ALL, ids=["all", "chunks", "scan"])
def test_no_queries_no_keys_and_nothing_to_see(attend: Callable[..., Any]) -> None:
    assert attend(draw(2, 0, 5), draw(2, 7, 5), draw(2, 7, 3)).shape == (2, 0, 3)
    assert not attend(draw(2, 7, 5), draw(2, 0, 5), draw(2, 0, 3)).any()
    assert attend(draw(0, 7, 5), draw(0, 7, 5), draw(0, 7, 3)).shape == (0, 7, 3)
    late = attend(draw(7, 5), draw(3, 5), draw(3, 3))
    assert (late != 0).all(-1).tolist() == [attend not in CAUSAL] * 4 + [True] * 3


@given(st.integers(0, 23), st.integers(0, 23), st.integers(1, 5))
def test_multiply_adds_are_exact(rows: int, columns: int, chunk: int) -> None:
    q, k, v = draw(2, 3, rows, D_K), draw(2, 3, columns, D_K), draw(2, 3, columns, D_V)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear, "CHUNK", chunk)
        for attend in ALL:
            with count_multiply_adds() as counted:
                attend(q, k, v, feature_map=dpfp)
            form = {"causal": attend in CAUSAL, "scan": attend is linear_attention_scan}
            one = linear_multiply_adds(rows, columns, 2 * D_K, D_V, **form)
            assert counted.multiply_adds == 6 * one


def test_multiply_adds_by_hand() -> None:
    """1,024 tokens of width 64: state and total written or read for each; 8 chunks of 128² pairs."""
    both = 1024 * 64 * 64 + 1024 * 64 * (64 + 1)
    assert linear_multiply_adds(1024, 1024, 64, 64) == both
    assert 2 * 8 * both == linear_cost(1024, 512, 8).flops
    assert linear_multiply_adds(1024, 1024, 64, 64, causal=True, scan=True) == both
    chunks = linear_multiply_adds(1024, 1024, 64, 64, causal=True)
    assert chunks == both + 8 * 128 * 128 * 128


# ---------------------------------------------------------------- feature maps


def test_feature_maps_by_hand() -> None:
    x = np.array([[2.0, -math.log(4), 0.0]])
    np.testing.assert_allclose(elu_plus_one(x), [[3, 0.25, 1]])
    assert identity(x) is x
    # Halves of [1, -2]: 1 0 0 2, times their left neighbour: 2 before 1, 1 before 0, 0, 0 before 2.
    np.testing.assert_allclose(dpfp(np.array([1.0, -2.0])), [2, 0, 0, 0])
    np.testing.assert_allclose(dpfp(np.array([1.0, -2.0]), 2), [2, 0, 0, 0, 0, 0, 0, 0])
    assert dpfp(draw(2, 5, D_K), 3).shape == (2, 5, 6 * D_K)
    for feature_map in (elu_plus_one, identity, dpfp):
        assert feature_map(draw(5, 3).astype(np.float32)).dtype == np.float32
    with pytest.raises(ValueError, match=r"^nu must be at least 1: found 0$"):
        dpfp(x, 0)


def test_random_features_are_the_exponential_on_average() -> None:
    """exp(q·k) over 100,000 draws, and softmax attention from it."""
    q, k, v = 0.5 * draw(5, 3), 0.5 * draw(7, 3), draw(7, 3)
    feature_map = random_features(3, 100_000, np.random.default_rng(0))
    kernel = feature_map(q) @ feature_map(k).T
    np.testing.assert_allclose(kernel, np.exp(q @ k.T), rtol=0.05)
    weights = np.exp(q @ k.T)
    expected = weights / weights.sum(-1, keepdims=True) @ v
    found = linear_attention(q, k, v, feature_map=feature_map)
    np.testing.assert_allclose(found, expected, atol=0.05)
    half = random_features(3, 5, np.random.default_rng(0))(q.astype(np.float32))
    assert half.dtype == np.float32
    with pytest.raises(ValueError, match=r"^features must be at least 1: found 0$"):
        random_features(3, 0, np.random.default_rng(0))


def test_recall_depends_on_the_feature_map_and_on_pairs_over_width() -> None:
    """A state of 64 × 64, means over 5 seeds: what the chapter's curve shows."""

    def share(pairs: int, feature_map: Callable[[Array], Array], d: int = 64) -> float:
        rngs = [np.random.default_rng(seed) for seed in range(5)]
        return float(np.mean([recall_share(pairs, d, feature_map, rng) for rng in rngs]))

    assert share(64, identity) > 0.97
    assert 0.6 < share(256, identity) < 0.85
    assert 0.05 < share(1024, identity) < 0.15
    assert share(256, identity, d=128) > 0.97  # as many pairs, twice the width
    # Positive features share a large common part, which drowns the differences.
    assert share(64, elu_plus_one) < 0.1
    assert share(64, elu_plus_one) < share(64, dpfp) < share(64, partial(dpfp, nu=3))
    assert recall_share(1, 3, identity, np.random.default_rng(0)) == 1


def test_a_seed_is_as_good_as_its_generator() -> None:
    x = draw(3, 5)
    np.testing.assert_array_equal(
        random_features(5, 7, 11)(x), random_features(5, 7, np.random.default_rng(11))(x)
    )
    assert recall_share(64, 16, identity, 3) == recall_share(
        64, 16, identity, np.random.default_rng(3)
    )


@pytest.mark.parametrize("attend", ALL, ids=["all", "chunks", "scan"])
def test_a_feature_map_that_writes_into_its_argument_changes_no_input(
    attend: Callable[..., Any],
) -> None:
    def positive(x: Floats) -> Floats:
        return np.exp(x, out=x)

    q, k, v = draw(2, 5, 3), draw(2, 7, 3), draw(2, 7, 4)
    before = q.copy(), k.copy()
    found = attend(q, k, v, feature_map=positive)
    np.testing.assert_array_equal(found, attend(*before, v, feature_map=np.exp))
    np.testing.assert_array_equal(q, before[0])
    np.testing.assert_array_equal(k, before[1])


# ---------------------------------------------------------------- errors


def test_errors_say_what_was_found() -> None:
    q, k, v = draw(2, 5, 3), draw(2, 7, 3), draw(2, 7, 3)
    for attend in ALL:
        with pytest.raises(ShapeError, match=r"^q and k must share their last axis d_k"):
            attend(q[..., :2], k, v)
        with pytest.raises(TypeError, match=r"^q must be a NumPy array"):
            attend(q.tolist(), k, v)
        with pytest.raises(
            ShapeError, match=r"^feature_map must keep .*: \(2, 0, 3\) became \(3,\)"
        ):
            attend(q, k, v, feature_map=lambda x: x.sum((0, 1)))
        with pytest.raises(TypeError, match=r"^feature_map must return a NumPy array: found list"):
            attend(q, k, v, feature_map=lambda x: x.tolist())
        for unfit in (None, "elu"):
            with pytest.raises(
                TypeError, match=r"^feature_map must be a function .*: found (None|s)"
            ):
                attend(q, k, v, feature_map=unfit)
        with pytest.raises(TypeError, match=r"^feature_map must return real .*: found complex128"):
            attend(q, k, v, feature_map=lambda x: x * 1j)
        with pytest.raises(ShapeError, match=r"^x must be \(\.\.\., 4\).*: x \(2, 0, 3\)"):
            attend(q, k, v, feature_map=random_features(4, 9, 0))
    with pytest.raises(ShapeError, match=r"^x must have an axis"):
        dpfp(np.array(1.0))
    for call in (partial(random_features, 4, 8), partial(recall_share, 3, 4, identity)):
        with pytest.raises(TypeError, match=r"^rng, a seed or a numpy\.random\.Generator, must be"):
            call("0")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"^rng, .* must be at least 0: found -1"):
            call(-1)
    with pytest.raises(TypeError, match=r"^causal must be True or False"):
        linear_attention(q, k, v, causal=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^pairs must be at least 1: found 0"):
        recall_share(0, 3, identity, np.random.default_rng(0))
    for feature_map in (elu_plus_one, identity, dpfp):
        with pytest.raises(TypeError, match=r"^x must be a NumPy array"):
            feature_map([1.0])  # type: ignore[arg-type]


@pytest.mark.parametrize("causal", [False, True])
def test_a_feature_map_of_varying_width_is_refused(causal: bool) -> None:
    widths = iter(range(1, 9))
    x = draw(5, 3)

    def wider(x: Any) -> Any:
        return np.ones((*x.shape[:-1], next(widths)))

    with pytest.raises(ShapeError, match=r"^feature_map must give equally many .*: 1, then 2$"):
        linear_attention(x, x, x, causal=causal, feature_map=wider)
