"""What chapter 2 measures of large scores: worked values, other formulas, and how they grow."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from attention_lib import ShapeError, attention, softmax
from attention_lib.models.saturation.measure import (
    INITIALISATIONS,
    Draws,
    aligned_scores,
    entropy,
    initial_score_variance,
    initial_scores,
    jacobian_norm,
    measure_saturation,
    score_variance,
    softmax_jacobian,
    two_key_norm,
)
from attention_lib.shapes import Array

WIDTHS = (1, 4, 16, 64, 256, 1024)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def measured(d_k: int, scaled: bool, **options: int) -> Draws:
    return measure_saturation(d_k, scaled=scaled, rng=rng(d_k), **options)


# ---------------------------------------------------------------- one softmax


def test_two_keys_by_hand() -> None:
    """Weights .75 and .25: the Jacobian is .1875 times [[1, -1], [-1, 1]], its norm .375."""
    weights = np.array([0.75, 0.25])
    expected = np.array([[0.1875, -0.1875], [-0.1875, 0.1875]])
    np.testing.assert_allclose(softmax_jacobian(weights), expected, rtol=1e-15)
    assert jacobian_norm(weights) == pytest.approx(0.375)
    assert two_key_norm(math.log(3)) == pytest.approx(0.375)
    assert entropy(weights) == pytest.approx(0.75 * math.log(4 / 3) + 0.25 * math.log(4))


def test_equal_weights_and_a_single_one() -> None:
    for n in (1, 2, 5, 16):
        equal = np.full(n, 1 / n)
        assert jacobian_norm(equal) == pytest.approx(math.sqrt(n - 1) / n)
        assert entropy(equal) == pytest.approx(math.log(n))
    single = np.array([0.0, 1.0, 0.0])
    assert jacobian_norm(single) == entropy(single) == 0
    assert not np.signbit(entropy(single))


def test_the_jacobian_is_the_slope_of_the_softmax() -> None:
    scores, step = rng().normal(size=(3, 5)), 1e-6
    J = softmax_jacobian(softmax(scores))
    for j in range(5):
        up, down = (softmax(scores + sign * step * np.eye(5)[j]) for sign in (1, -1))
        np.testing.assert_allclose(J[..., j], (up - down) / (2 * step), atol=1e-9)
    np.testing.assert_allclose(J.sum(-1), 0, atol=1e-16)
    np.testing.assert_allclose(J, J.swapaxes(-1, -2))


def test_the_norm_by_two_other_formulas() -> None:
    w = softmax(rng().normal(size=(7, 11)))
    plain = w[..., None] * np.eye(11) - w[..., None] * w[..., None, :]
    np.testing.assert_allclose(jacobian_norm(w), np.linalg.norm(plain, axis=(-2, -1)))
    sums = [(w**power).sum(-1) for power in (2, 3)]
    np.testing.assert_allclose(jacobian_norm(w) ** 2, sums[0] - 2 * sums[1] + sums[0] ** 2)


@pytest.mark.parametrize("margin", [0.0, 1.0, -3.0, 40.0, 300.0])
def test_the_norm_of_two_keys_does_not_cancel(margin: float) -> None:
    """At a margin of 300 it is 2 exp(-300), where w (1 - w) itself has long been 0."""
    weights = softmax(np.array([margin, 0.0]))
    closed = 2 / (2 + math.exp(margin) + math.exp(-margin))
    assert jacobian_norm(weights) == pytest.approx(closed, rel=1e-12)
    assert two_key_norm(margin) == pytest.approx(closed, rel=1e-12)
    assert two_key_norm(1e5) == 0


# ---------------------------------------------------------------- scores


@pytest.mark.parametrize("d_k", [1, 3, 64, 1024])
def test_the_variance_is_the_width(d_k: int) -> None:
    error = math.sqrt(2 * (1 + 3 / d_k) / 10_000)
    assert score_variance(d_k, rng()) / d_k == pytest.approx(1, abs=4 * error)


@pytest.mark.parametrize("alignment", [-1.0, 0.25, 1.0])
@pytest.mark.parametrize("d_k", [5, 300])
def test_aligned_scores_grow_with_the_width(d_k: int, alignment: float) -> None:
    scores = aligned_scores(d_k, rng(), alignment=alignment)
    std = math.sqrt((1 + alignment**2) * d_k)
    assert scores.shape == (10_000,)
    assert scores.mean() == pytest.approx(alignment * d_k, abs=4 * std / 100)
    assert scores.std() == pytest.approx(std, rel=0.08)


@pytest.mark.parametrize("name", INITIALISATIONS)
@pytest.mark.parametrize(("d_model", "heads"), [(96, 3), (512, 8), (768, 12)])
def test_real_initialisations(name: str, d_model: int, heads: int) -> None:
    scores = initial_scores(name, d_model, heads, rng(3))
    assert scores.shape == (heads, 64, 64)
    assert abs(scores.mean()) < 0.1 * scores.std()
    assert scores.var() == pytest.approx(initial_score_variance(name, d_model, heads), rel=0.15)


def test_variances_by_hand() -> None:
    assert initial_score_variance("nn.Linear", 512, 8) == pytest.approx(64 / 9)
    assert initial_score_variance("nn.MultiheadAttention", 512, 8) == pytest.approx(16)
    assert initial_score_variance("GPT-2", 768, 12) == pytest.approx(64 * (768 * 0.0004) ** 2)


def test_the_initialisations_are_those_of_torch() -> None:
    """The weights that torch itself draws; GPT-2's are a number in its code."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(0)
        linear = torch.nn.Linear(256, 256).weight.detach()
        packed = torch.nn.MultiheadAttention(256, 4).in_proj_weight.detach()
    for name, weight in (("nn.Linear", linear), ("nn.MultiheadAttention", packed)):
        std = math.sqrt(INITIALISATIONS[name](256))
        assert float(weight.std()) == pytest.approx(std, rel=0.01)
        assert float(weight.abs().max()) == pytest.approx(math.sqrt(3) * std, rel=0.01)


# ---------------------------------------------------------------- many softmaxes


def test_one_row_is_one_query() -> None:
    """The same draws by hand: scores, weights and the gradient of the query by its formula."""
    found = measured(7, scaled=True, keys=5, draws=3, d_v=2)
    again = rng(7)
    q, k = again.standard_normal((3, 1, 7)), again.standard_normal((3, 5, 7))
    v, d_out = again.standard_normal((3, 5, 2)), again.standard_normal((3, 1, 2))
    for i in range(3):
        scores = k[i] @ q[i, 0] / math.sqrt(7)
        w = np.exp(scores) / np.exp(scores).sum()
        direction = d_out[i, 0] / np.linalg.norm(d_out[i, 0])
        d_scores = (np.diag(w) - np.outer(w, w)) @ (v[i] @ direction)
        np.testing.assert_allclose(found.scores[i], scores)
        assert found.largest[i] == pytest.approx(w.max())
        assert found.entropy[i] == pytest.approx(-(w * np.log(w)).sum())
        assert found.jacobian[i] == pytest.approx(np.linalg.norm(np.diag(w) - np.outer(w, w)))
        assert found.d_q[i] == pytest.approx(np.linalg.norm(d_scores @ k[i]) / math.sqrt(7))
        expected = np.linalg.norm(d_scores) * np.linalg.norm(q[i]) / math.sqrt(7)
        assert found.d_k[i] == pytest.approx(expected)
        assert found.d_v[i] == pytest.approx(np.linalg.norm(w))


def test_both_settings_see_the_same_draws() -> None:
    scaled, unscaled = (measured(16, scaled, draws=50) for scaled in (True, False))
    np.testing.assert_allclose(scaled.scores * 4, unscaled.scores)
    assert scaled.variance == pytest.approx(scaled.scores.var())


def test_more_than_a_chunk_is_drawn_and_the_seed_is_all_that_counts() -> None:
    state = np.random.get_state()[1].copy()  # type: ignore[index] # noqa: NPY002
    one, two = (measured(4096, scaled=False, draws=37) for _ in range(2))
    assert one.scores.shape == (37, 16)
    assert one.d_q.shape == (37,)
    np.testing.assert_array_equal(one.d_q, two.d_q)
    assert len(np.unique(one.scores)) == 37 * 16
    np.testing.assert_array_equal(state, np.random.get_state()[1])  # type: ignore[index] # noqa: NPY002


def test_reduce_gives_medians_and_what_is_asked_for() -> None:
    found = measured(16, scaled=True, draws=31)
    assert found.reduce()["d_q"] == sorted(found.d_q)[15]
    assert found.reduce(np.mean)["largest"] == pytest.approx(found.largest.mean())
    assert list(found.reduce()) == ["largest", "entropy", "jacobian", "d_q", "d_k", "d_v"]


@cache
def sweep(scaled: bool) -> tuple[Draws, ...]:
    return tuple(measured(d_k, scaled, draws=600) for d_k in WIDTHS)


def medians(scaled: bool, by: Callable[[Array], np.floating] = np.median) -> list[dict[str, float]]:
    return [draws.reduce(by) for draws in sweep(scaled)]


def test_with_the_factor_nothing_changes_with_the_width() -> None:
    rows = medians(scaled=True)[2:]
    assert len(rows) == 4
    for name, low, high in (
        ("largest", 0.19, 0.26),
        ("entropy", 2.3, 2.5),
        ("jacobian", 0.28, 0.33),
        ("d_q", 0.22, 0.32),
        ("d_k", 0.22, 0.32),
        ("d_v", 0.31, 0.38),
    ):
        assert all(low < row[name] < high for row in rows), name


def test_without_it_the_softmax_saturates() -> None:
    """Medians: the gradient of q and k vanishes, that of v is as long as the largest weight."""
    rows = medians(scaled=False)
    largest, left = ([row[name] for row in rows] for name in ("largest", "entropy"))
    assert sorted(largest) == largest
    assert sorted(left, reverse=True) == left
    assert largest[3] > 0.88
    assert largest[4] > 0.98
    scaled = medians(scaled=True)
    jacobian, d_q, d_k = ([row[name] for row in rows] for name in ("jacobian", "d_q", "d_k"))
    assert jacobian[3] < 0.6 * scaled[3]["jacobian"]
    assert jacobian[4] < 0.06 * scaled[4]["jacobian"]
    assert jacobian[5] < 1e-3
    for gradient in (d_q, d_k):
        assert gradient[2] > 0.4, "the factor shortens the gradient too: at 16 it is longer without"
        assert gradient[4] < 0.5 * scaled[4]["d_q"]
        assert gradient[5] < 0.02 * scaled[5]["d_q"]
    assert min(row["d_v"] for row in rows[3:]) > 0.85


def test_the_mean_gradient_hides_it() -> None:
    """A few queries with two nearly equal scores keep the mean up: the trap of a mean."""
    means, rows = medians(False, np.mean), medians(scaled=False)
    assert min(row["d_q"] for row in means[3:]) > 0.9
    assert rows[5]["d_q"] < 0.02 * means[5]["d_q"]


def test_the_mean_norm_of_two_keys() -> None:
    """1/sqrt(π d_k) for large d_k; a few draws in a hundred carry it, so the margin is wide."""
    for d_k in (64, 256):
        found = measured(d_k, scaled=False, keys=2, draws=20_000 if d_k == 64 else 10_000)
        np.testing.assert_allclose(
            found.jacobian, two_key_norm(found.scores[:, 0] - found.scores[:, 1]), rtol=1e-9
        )
        assert found.jacobian.mean() == pytest.approx(1 / math.sqrt(math.pi * d_k), rel=0.06)


# ---------------------------------------------------------------- faults


def test_faults() -> None:
    with pytest.raises(ValueError, match="d_k must be at least 1: found 0"):
        measured(0, scaled=True)
    with pytest.raises(TypeError, match="keys must be an integer"):
        measured(4, scaled=True, keys=2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"from -1 to 1: found 1\.5"):
        aligned_scores(4, rng(), alignment=1.5)
    with pytest.raises(
        ValueError, match=r"nn\.Linear, nn\.MultiheadAttention, GPT-2: found 'BERT'"
    ):
        initial_score_variance("BERT", 768, 12)
    with pytest.raises(ValueError, match="heads must divide d_model: d_model 10, heads 3"):
        initial_scores("GPT-2", 10, 3, rng())
    with pytest.raises(ShapeError, match="found a single number"):
        softmax_jacobian(np.array(1.0))
    with pytest.raises(TypeError, match="weights must be a NumPy array"):
        entropy([0.5, 0.5])  # type: ignore[arg-type]


def test_the_measured_attention_is_the_library_s() -> None:
    """A large margin of scores in float32 is no trouble for what is measured in float64."""
    q, k = np.full((1, 4), 50.0), np.stack([np.full(4, 50.0), np.zeros(4)])
    _, weights = attention(q, k, k, scale=1.0, return_weights=True)
    assert jacobian_norm(weights)[0] == 0
