"""The look-up model of chapter 2: what it computes, and what its stored curves say."""

import dataclasses
import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from attention_lib.models.lookup import train as lookup
from attention_lib.models.lookup.train import (
    ALIGNED_STEPS,
    ALIGNED_WIDTHS,
    RATES,
    SEEDS,
    STORED,
    WIDTHS,
    Lookup,
    Optimiser,
    Questions,
    Recipe,
    Run,
    Variant,
    best_rate,
    held_out,
    main,
    make_aligned,
    make_run,
    measure_scores,
    recipes,
    steps_to,
    stored_alignment,
    stored_runs,
    train_lookup,
)

SHORT = Recipe(16, rate=1e-2, steps=70)
VARIANTS: tuple[Variant, ...] = ("scaled", "unscaled", "small start", "normalised")


def questions(size: int = 9) -> Questions:
    return Questions.draw(np.random.default_rng(5), size)


# ---------------------------------------------------------------- the task and the model


def test_questions() -> None:
    drawn = questions(200)
    assert drawn.keys.shape == drawn.values.shape == (200, lookup.PAIRS)
    assert all(len(set(row)) == lookup.PAIRS for row in drawn.keys.tolist())
    for row in range(200):
        place = int(drawn.place[row])
        assert drawn.asked[row] == drawn.keys[row, place]
        assert drawn.answer[row] == drawn.values[row, place]
    assert set(drawn.place.tolist()) == set(range(lookup.PAIRS))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_model_by_loops(variant: Variant) -> None:
    """One question at a time, in NumPy: norm, project, score, softmax, read, answer."""
    model, drawn = Lookup(5, variant, seed=3), questions()
    state = {name: x.detach().double().numpy() for name, x in model.state_dict().items()}

    def norm(x: np.ndarray) -> np.ndarray:
        return (x - x.mean()) / math.sqrt(x.var() + 1e-5)

    logits, weights = model(drawn)
    for row in range(9):
        q = norm(state["key"][drawn.asked[row]]) @ state["W_Q"]
        tokens = [
            norm(state["key"][k] + state["value"][v])
            for k, v in zip(drawn.keys[row], drawn.values[row], strict=True)
        ]
        keys = [token @ state["W_K"] for token in tokens]
        factor = {"scaled": 1 / math.sqrt(5), "normalised": math.log2(240)}.get(variant, 1)
        scores = np.array([q @ k for k in keys]) * factor
        if variant == "normalised":
            scores /= np.linalg.norm(q) * np.linalg.norm(keys, axis=-1)
        w = np.exp(scores) / np.exp(scores).sum()
        out = sum(w_i * (token @ state["W_V"]) for w_i, token in zip(w, tokens, strict=True))
        np.testing.assert_allclose(weights[row].detach(), w, atol=1e-5)
        np.testing.assert_allclose(logits[row].detach(), out @ state["W_answer"], atol=1e-4)


def test_variants_start_from_the_same_weights() -> None:
    scaled, unscaled, small, normal = (Lookup(16, variant, seed=1) for variant in VARIANTS)
    for name, start in scaled.state_dict().items():
        for other in (unscaled, small, normal):
            factor = 0.5 if other is small and name in ("W_Q", "W_K") else 1
            torch.testing.assert_close(other.state_dict()[name], factor * start)
    assert torch.equal(scaled.key, Lookup(64, seed=1).key)
    assert not torch.equal(scaled.key, Lookup(16, seed=2).key)
    torch.testing.assert_close(scaled(questions())[1], small(questions())[1])


@pytest.mark.parametrize("d_k", [16, 256])
def test_scores_start_with_the_variance_of_independent_entries(d_k: int) -> None:
    start = measure_scores(Lookup(d_k, seed=0), held_out(0))
    assert start.variance == pytest.approx(d_k, rel=0.1)
    assert abs(start.match) < 0.5 * math.sqrt(d_k)
    small = measure_scores(Lookup(d_k, "small start", seed=0), held_out(0))
    assert small.variance == pytest.approx(start.variance / d_k)


def test_training_is_seeded_and_leaves_the_global_generator_alone() -> None:
    before = torch.random.get_rng_state()
    model, accuracy = train_lookup(SHORT, progress=False)
    again, same = train_lookup(SHORT, progress=False)
    assert torch.equal(before, torch.random.get_rng_state())
    assert accuracy == same
    assert torch.equal(model.W_Q, again.W_Q)
    assert len(accuracy) == 8
    assert accuracy[0] < 0.1
    assert accuracy[-1] > 0.5
    _, other = train_lookup(dataclasses.replace(SHORT, seed=1), progress=False)
    assert other != accuracy


def test_a_settled_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    rising = iter([0.1, 0.98, 0.97, 0.98, 0.99, 1.0, 0.98, 1.0, 1.0])
    monkeypatch.setattr(lookup, "_accuracy", lambda *_: next(rising))
    _, accuracy = train_lookup(SHORT, settled=0.98, progress=False)
    assert accuracy == [0.1, 0.98, 0.97, 0.98, 0.99, 1.0, 0.98, 1.0]


def test_steps_and_best_rate() -> None:
    assert steps_to([0.0, 0.5, 0.9, 0.8]) == 20
    assert steps_to([0.0, 0.5]) is None
    assert steps_to([0.0, 0.5], share=0.5) == 10

    def run(rate: float, steps: int | None) -> Run:
        curve = [0.0] * 9 if steps is None else [0.0] * (steps // 10) + [1.0]
        return Run(Recipe(rate=rate), tuple(curve))

    runs = [run(1, 20), run(1, None), run(2, 40), run(2, 50), run(3, 50), run(3, 50)]
    assert best_rate(runs) == (2, [40, 50])
    assert best_rate(runs[:2]) == (1, [20, None])


# ---------------------------------------------------------------- what is stored


@cache
def steps(d_k: int, optimiser: Optimiser, rate: float, variant: Variant) -> list[int | None]:
    runs = stored_runs(d_k=d_k, optimiser=optimiser, rate=rate, variant=variant)
    assert [run.recipe.seed for run in runs] == list(SEEDS)
    return [run.arrives for run in runs]


def ratios(d_k: int, optimiser: Optimiser, rate: float) -> list[float]:
    """Steps unscaled over steps scaled, seed by seed; infinite where unscaled never arrives."""
    pairs = zip(*(steps(d_k, optimiser, rate, v) for v in ("unscaled", "scaled")), strict=True)
    return [math.inf if slow is None else slow / fast for slow, fast in pairs]


def test_what_is_stored_is_complete_and_small() -> None:
    runs = stored_runs()
    assert [run.recipe for run in runs] == recipes()
    assert len(SEEDS) >= 3
    assert STORED.stat().st_size < 100_000
    for run in runs:
        assert all(0 <= share <= 1 for share in run.accuracy)
        assert run.accuracy[0] < 0.1
        ended = len(run.accuracy) == run.recipe.steps // 10 + 1
        assert ended or min(run.accuracy[-5:]) >= 0.98
    with pytest.raises(ValueError, match=r"no run is stored with .'d_k': 65"):
        stored_runs(d_k=65)


def test_at_the_same_rate_the_unscaled_model_is_slower() -> None:
    """Adam at 1e-3, the rate at which both learn."""
    assert min(ratios(512, "adam", 1e-3)) >= 2.5
    for d_k in (64, 128):
        assert min(ratios(d_k, "adam", 1e-3)) >= 1.7


@pytest.mark.parametrize(("optimiser", "rate"), [("adam", 1e-2), ("sgd", 0.5), ("sgd", 2.0)])
def test_at_high_rates_it_never_arrives(optimiser: Optimiser, rate: float) -> None:
    """In 500 steps, at which every scaled model has long been right."""
    assert steps(512, optimiser, rate, "unscaled") == [None] * len(SEEDS)
    assert max(n or 500 for n in steps(512, optimiser, rate, "scaled")) <= 100
    for run in stored_runs(d_k=512, optimiser=optimiser, rate=rate, variant="unscaled"):
        assert max(run.accuracy) < 0.88


@pytest.mark.parametrize("rate", [0.03, 0.1])
@pytest.mark.parametrize("d_k", [64, 128])
def test_at_low_rates_of_sgd_it_is_faster(d_k: int, rate: float) -> None:
    """The factor shortens the gradient of the scores too, and plain SGD does not make up for it."""
    slow, fast = (steps(d_k, "sgd", rate, v) for v in ("unscaled", "scaled"))
    assert all(a and a < (b or 501) for a, b in zip(slow, fast, strict=True))


def test_at_512_the_lowest_rates_of_sgd_are_a_draw() -> None:
    """One seed of three is slower, the others about as fast or faster."""
    assert sum(ratio <= 1.1 for ratio in ratios(512, "sgd", 0.1)) == 2
    assert steps(512, "sgd", 0.03, "scaled") == [None] * 3
    assert sum(n is not None for n in steps(512, "sgd", 0.03, "unscaled")) == 2


@pytest.mark.parametrize("optimiser", RATES)
def test_best_rate_against_best_rate(optimiser: Optimiser) -> None:
    _, scaled = best_rate(stored_runs(d_k=512, optimiser=optimiser, variant="scaled"))
    _, unscaled = best_rate(stored_runs(d_k=512, optimiser=optimiser, variant="unscaled"))
    assert max(n or 500 for n in scaled) <= 70
    assert min(n or 500 for n in unscaled) >= 4 * max(n or 500 for n in scaled)


def test_a_small_start_helps_at_moderate_rates_and_stalls_at_high_ones() -> None:
    small = steps(512, "adam", 1e-3, "small start")
    scaled = steps(512, "adam", 1e-3, "scaled")
    assert all(a and b and a <= 1.2 * b for a, b in zip(small, scaled, strict=True))
    for optimiser, rate in (("adam", 1e-2), ("sgd", 2.0)):
        assert steps(512, optimiser, rate, "small start") == [None] * 3


def test_normalised_queries_and_keys_arrive_at_every_high_rate() -> None:
    for optimiser, rates in RATES.items():
        for rate in rates[1:]:
            assert None not in steps(512, optimiser, rate, "normalised")


def exponent(steps: int, name: str) -> float:
    """Of d_k in the mean over seeds of a score, less its start, from 64 to 1,024."""
    found = {(a.d_k, a.steps, a.seed): getattr(a.scores, name) for a in stored_alignment()}
    grown = [
        np.mean([found[d_k, steps, s] - found[d_k, 0, s] for s in SEEDS]) for d_k in (64, 1024)
    ]
    return math.log(grown[1] / grown[0]) / math.log(16)


def test_training_aligns_queries_and_keys() -> None:
    """After 50 steps q·k with the right key has grown as d_k, at one cosine; at the end as its root."""
    found = {(a.d_k, a.steps, a.seed): a.scores for a in stored_alignment()}
    assert len(found) == len(ALIGNED_WIDTHS) * len(ALIGNED_STEPS) * len(SEEDS)
    assert 0.9 < exponent(50, "match") < 1.3
    assert -0.15 < exponent(50, "cosine") < 0.25
    assert 0.5 < exponent(400, "match") < 0.7
    for seed in SEEDS:
        for d_k in ALIGNED_WIDTHS:
            start, end = found[d_k, 0, seed], found[d_k, 400, seed]
            assert start.variance == pytest.approx(d_k, rel=0.2)
            assert end.variance > 6 * d_k
            assert end.match > 7 * math.sqrt(d_k)
            assert abs(end.others) < 0.02 * end.match
            assert end.largest > 0.9


# ---------------------------------------------------------------- made anew


def test_the_command_writes_what_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    monkeypatch.setattr(lookup, "recipes", lambda: [SHORT, dataclasses.replace(SHORT, seed=1)])
    monkeypatch.setattr(lookup, "ALIGNED_WIDTHS", (16,))
    monkeypatch.setattr(lookup, "ALIGNED_STEPS", (0, 5))
    monkeypatch.setattr(lookup, "SEEDS", (0,))
    monkeypatch.setattr(lookup, "tqdm", lambda steps, **_: steps)
    out = tmp_path / "lookup.json"
    main(["--out", str(out)])
    assert "d_k   16 adam 0.01   scaled      steps to 90 %: [" in capsys.readouterr().out
    assert set(json.loads(out.read_text())) == {"runs", "aligned"}
    monkeypatch.setattr(lookup, "STORED", out)
    assert stored_runs() == [make_run(recipe) for recipe in lookup.recipes()]
    assert [(a.d_k, a.steps, a.seed) for a in stored_alignment()] == [(16, 0, 0), (16, 5, 0)]
    made = dataclasses.asdict(make_aligned(16, 5, 0).scores)
    assert dataclasses.asdict(stored_alignment()[1].scores) == pytest.approx(made, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("d_k", WIDTHS)
def test_a_part_made_anew_says_the_same(d_k: int) -> None:
    """The same conclusions, and nearly the same curves: saturated training amplifies rounding."""
    made = {
        (variant, rate): make_run(Recipe(d_k, variant, rate=rate))
        for variant in ("scaled", "unscaled")
        for rate in (1e-3, 1e-2)
    }
    for (variant, rate), run in made.items():
        (stored,) = stored_runs(d_k=d_k, variant=variant, rate=rate, optimiser="adam", seed=0)
        length = min(len(run.accuracy), len(stored.accuracy))
        apart = np.abs(np.subtract(run.accuracy[:length], stored.accuracy[:length]))
        assert apart.mean() < (0.05 if variant == "scaled" else 0.2), (variant, rate)
    fast, slow = made["scaled", 1e-3].arrives, made["unscaled", 1e-3].arrives
    assert fast
    assert (slow or math.inf) / fast >= 1.7
    if d_k == 512:
        assert made["scaled", 1e-2].arrives
        assert made["unscaled", 1e-2].arrives is None


@pytest.mark.slow
def test_alignment_made_anew() -> None:
    for stored in stored_alignment():
        if stored.d_k == 64:
            made = make_aligned(64, stored.steps, stored.seed).scores
            assert made.match == pytest.approx(stored.scores.match, rel=0.05, abs=0.05)
            assert made.variance == pytest.approx(stored.scores.variance, rel=0.05)
            assert made.cosine == pytest.approx(stored.scores.cosine, rel=0.05, abs=0.01)
