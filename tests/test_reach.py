"""Reach is not recall: what the masks allow, the tasks, and what the stored trainings show."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention_lib.masks import causal_mask, sliding_window_mask, strided_mask
from attention_lib.models.masked_recall import train as module
from attention_lib.models.masked_recall.train import (
    BEYOND,
    CELLS,
    FARTHEST,
    KEYS,
    PATTERNS,
    RECIPE,
    SEEDS,
    WINDOW,
    Masked,
    N,
    draw_distance,
    draw_pairs,
    main,
    reached_distances,
    receptive_field,
    stored,
    train_distance,
    train_pairs,
)
from attention_lib.models.recall.train import NOISE, SYMBOLS, WIDTH
from attention_lib.shapes import Mask, ShapeError

CHANCE = 1 / SYMBOLS
NOISE_OF_256 = 0.1  # more than four standard errors of a share of 1/8 in 256 rows


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command asks torch for one thread; the thread count stays as it was."""
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    return stored()


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# ---------------------------------------------------------------- what a mask allows


def by_paths(mask: Mask, layers: int) -> Mask:
    """A search along the links, token by token."""
    found = np.zeros(mask.shape, dtype=bool)
    for i in range(len(mask)):
        seen = {i}
        for _ in range(layers):
            seen |= {j for at in seen for j in range(len(mask)) if mask[at, j]}
        found[i, list(seen)] = True
    return found


@given(st.integers(0, 7), st.integers(0, 4), st.integers(0, 2**31))
def test_reach_is_a_search_along_the_links(n: int, layers: int, seed: int) -> None:
    mask = np.random.default_rng(seed).random((n, n)) < 0.3
    before = mask.copy()
    np.testing.assert_array_equal(receptive_field(mask, layers), by_paths(mask, layers))
    np.testing.assert_array_equal(mask, before)


@pytest.mark.parametrize(("window", "layers"), list(itertools.product((1, 3, 4), (1, 2, 3, 5))))
def test_layers_of_a_window_see_one_more_than_layers_times_window_less_one(
    window: int, layers: int
) -> None:
    """Two layers of window W see 2W - 1 tokens, not W and not 2W."""
    seen = receptive_field(sliding_window_mask(23, window), layers)[-1].sum()
    assert seen == min(23, layers * (window - 1) + 1)


@pytest.mark.parametrize("stride", [1, 3, 5, 11, 23, 40])
def test_two_strided_layers_reach_all_that_is_past(stride: int) -> None:
    np.testing.assert_array_equal(receptive_field(strided_mask(23, stride), 2), causal_mask(23))


def test_what_the_patterns_reach() -> None:
    """Under a causal mask a global token is seen by all and sees only itself: it hands nothing on."""
    near = list(range(1, 2 * (WINDOW - 1) + 1))
    assert reached_distances("window", 2) == near
    assert reached_distances("window", 1) == near[: WINDOW - 1]
    assert reached_distances("window + global, causal", 2) == near
    for pattern in ("full", "window + global", "strided"):
        assert reached_distances(pattern, 2) == list(range(1, FARTHEST + 1))
    for pattern in ("window + global", "strided"):
        assert len(reached_distances(pattern, 1)) < 12
    assert near[-1] + 1 == BEYOND
    causal = [name for name, mask in PATTERNS.items() if not np.triu(mask, 1).any()]
    assert sorted(PATTERNS.keys() - causal) == ["window + global"]


def test_reach_refuses_what_is_no_square_of_booleans() -> None:
    with pytest.raises(ShapeError, match=r"mask must be \(n, n\): mask \(3, 5\)"):
        receptive_field(np.ones((3, 5), dtype=bool), 2)
    with pytest.raises(ShapeError, match=r"mask must be \(n, n\): mask \(3,\)"):
        receptive_field(np.ones(3, dtype=bool), 2)
    with pytest.raises(TypeError, match=r"mask must be boolean.*found float64"):
        receptive_field(np.ones((3, 3)), 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="layers must be at least 0: found -1"):
        receptive_field(causal_mask(3), -1)


@pytest.mark.parametrize(
    ("pattern", "layers"), [(p, n) for p, numbers in CELLS["distance"].items() for n in numbers]
)
def test_the_models_gradient_arrives_exactly_where_the_mask_reaches(
    pattern: str, layers: int
) -> None:
    model = Masked(PATTERNS[pattern], 3, 5, layers=layers, rng=rng()).double()
    embedded = torch.randn(1, N, WIDTH, generator=rng(1), dtype=torch.float64).requires_grad_()
    torch.autograd.backward(model(embedded).square().sum())
    assert embedded.grad is not None
    arrives = (embedded.grad != 0).any(-1)[0].numpy()
    np.testing.assert_array_equal(arrives, receptive_field(PATTERNS[pattern], layers)[-1])


# ---------------------------------------------------------------- tasks


def test_one_symbol_is_k_steps_before_the_question() -> None:
    tokens, answers = draw_distance(700, rng(), 5)
    assert tokens.shape == (700, N, 1)
    assert torch.equal(tokens[:, N - 1 - 5, 0], answers)
    tokens, answers = draw_distance(700, rng())
    is_symbol = tokens[..., 0] < SYMBOLS
    assert (is_symbol.sum(1) == 1).all()
    assert torch.equal(tokens[..., 0][is_symbol], answers)
    assert {*is_symbol.nonzero()[:, 1].tolist()} == set(range(1, N - 1))
    assert (tokens[:, 0] == SYMBOLS + NOISE).all()
    assert (tokens[:, -1] == SYMBOLS + NOISE + 1).all()
    assert torch.bincount(answers).float().div(700).sub(1 / SYMBOLS).abs().max() < 0.05


@pytest.mark.parametrize("pairs", [1, 3, 8])
def test_pairs_lie_beyond_the_window_and_one_is_asked_for(pairs: int) -> None:
    tokens, answers = draw_pairs(300, rng(), pairs)
    assert tokens.shape == (300, N, 2)
    places = set()
    for row, right in zip(tokens.tolist(), answers.tolist(), strict=True):
        told = {key: value - KEYS - 4 for key, value in row[1:-1] if key < KEYS}
        assert len(told) == pairs
        asked, question = row[-1]
        assert question == KEYS + 2
        assert told[asked] == right
        places |= {N - 1 - i for i, (key, _) in enumerate(row[:-1]) if key < KEYS}
    assert places == set(range(BEYOND, FARTHEST + 1))


@pytest.mark.parametrize("pairs", [0, 17])
def test_pairs_that_there_are_no_keys_for(pairs: int) -> None:
    with pytest.raises(ValueError, match=f"pairs must be from 1 to 16: found {pairs}"):
        draw_pairs(3, rng(), pairs)
    assert draw_pairs(3, rng(), KEYS)[0].shape == (3, N, 2)


@pytest.mark.parametrize("k", [0, 31, 99, -1])
def test_distances_that_are_not_in_the_row(k: int) -> None:
    with pytest.raises(ValueError, match=f"k must be from 1 to 30: found {k}"):
        draw_distance(3, rng(), k)


def test_what_is_no_pattern_and_no_generator() -> None:
    calls: list[Callable[[], object]] = [
        lambda: reached_distances("nope", 1),
        lambda: train_distance("nope", 1, 0),
        lambda: train_pairs("nope", 1, 0),
    ]
    for call in calls:
        with pytest.raises(
            ValueError, match=r"pattern must be one of full; window; .*found 'nope'"
        ):
            call()
    for draw in (draw_pairs, draw_distance):
        with pytest.raises(TypeError, match=r"rng must be a torch.Generator: found int"):
            draw(3, 0, 1)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"must be an integer: found 1.5"):
            draw(3, rng(), 1.5)  # type: ignore[arg-type]


# ---------------------------------------------------------------- what is stored


def accuracies(rows: dict[str, Any], part: str, pattern: str, number: int) -> Any:
    shares = np.array(rows[part][pattern][str(number)]["accuracy"])
    assert len(shares) == len(SEEDS)
    return shares


def test_every_cell_is_stored_with_its_recipe(rows: dict[str, Any]) -> None:
    assert rows["recipe"] == RECIPE
    for part, cells in CELLS.items():
        found = {pattern: tuple(int(n) for n in row) for pattern, row in rows[part].items()}
        assert found == cells


@pytest.mark.parametrize(
    ("pattern", "layers"), [(p, n) for p, numbers in CELLS["distance"].items() for n in numbers]
)
def test_one_symbol_is_recalled_as_far_as_the_mask_reaches_and_not_beyond(
    rows: dict[str, Any], pattern: str, layers: int
) -> None:
    """In every seed, at every distance; at the edge of four layers not quite: .91 to .99."""
    shares = accuracies(rows, "distance", pattern, layers)
    assert shares.shape == (len(SEEDS), FARTHEST)
    reached = np.isin(np.arange(1, FARTHEST + 1), reached_distances(pattern, layers))
    assert shares[:, reached].min() >= (0.95 if layers < 4 else 0.9)
    assert shares[:, ~reached].max(initial=0) <= CHANCE + NOISE_OF_256


def test_of_many_pairs_beyond_the_window_two_hops_hand_on_little(rows: dict[str, Any]) -> None:
    """Every pair is reached in two layers under all of these masks but the window's."""
    for pattern in CELLS["pairs"]:
        far = range(BEYOND, FARTHEST + 1)
        assert set(far) <= set(reached_distances(pattern, 2)) or pattern == "window"
    assert accuracies(rows, "pairs", "window", 2).max() <= CHANCE + 0.05
    for pairs in (2, 8):
        assert accuracies(rows, "pairs", "full", pairs).min() >= 0.95
    assert accuracies(rows, "pairs", "window + global", 1).min() >= 0.95
    means = [accuracies(rows, "pairs", "window + global", n).mean() for n in (1, 2, 4, 8)]
    assert means == sorted(means, reverse=True)
    assert accuracies(rows, "pairs", "window + global", 8).max() <= 0.4
    assert accuracies(rows, "pairs", "strided", 8).max() <= 0.6
    # Five times the steps help in every seed, and are not enough in any.
    longer = accuracies(rows, "longer", "window + global", 4)
    assert (longer > accuracies(rows, "pairs", "window + global", 4)).all()
    assert longer.max() < 0.75


# ---------------------------------------------------------------- training and the command


def test_training_repeats_and_leaves_torch_alone() -> None:
    state = torch.random.get_rng_state()
    shares, steps = train_distance("window", 1, 0, steps=2)
    assert (len(shares), steps) == (FARTHEST, 2)
    one = train_pairs("window", 3, 0, steps=2)
    assert train_pairs("window", 3, 0, steps=2) == one
    assert train_pairs("window", 3, 1, steps=2) != one
    assert torch.equal(state, torch.random.get_rng_state())


def test_the_command_remakes_a_part_and_keeps_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = {"distance": {"full": (2,)}, "pairs": {"window": (1, 3)}}
    monkeypatch.setattr(module, "CELLS", cells)
    monkeypatch.setattr(module, "train_distance", lambda p, n, seed: ([seed / 4, n], 7))
    monkeypatch.setattr(module, "train_pairs", lambda p, n, seed: (n / 4, seed))
    out = tmp_path / "reach.json"
    main(["--out", str(out)])
    pairs = {
        "1": {"accuracy": [0.25] * 3, "steps": SEEDS},
        "3": {"accuracy": [0.75] * 3, "steps": SEEDS},
    }
    distance = {"2": {"accuracy": [[0.0, 2], [0.25, 2], [0.5, 2]], "steps": [7] * 3}}
    expected = {"recipe": RECIPE, "distance": {"full": distance}, "pairs": {"window": pairs}}
    assert json.loads(out.read_text()) == expected
    monkeypatch.setattr(module, "train_distance", lambda p, n, seed: ([1.0], 8))
    main(["distance", "--out", str(out)])
    distance = {"2": {"accuracy": [[1.0]] * 3, "steps": [8] * 3}}
    assert json.loads(out.read_text()) == expected | {"distance": {"full": distance}}
    assert "distance: 0 s of CPU time" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["warm", "--out", str(out)])
    assert "no such part: warm" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("nowhere/reach.json", None, "--out must be in a folder that exists: found"),
        ("", None, "--out must be a file: "),
        ("reach.json", "{", "--out must hold JSON, or not exist: "),
        ("reach.json", "[1]", "--out must hold what this command wrote: "),
    ],
)
def test_the_command_trains_nothing_that_it_cannot_write(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: str | None,
    complaint: str,
) -> None:
    monkeypatch.setattr(module, "measure", lambda _: pytest.fail("it trains"))
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path / name)])
    assert f"error: {complaint}" in capsys.readouterr().err


@pytest.mark.slow
def test_training_again_leads_to_the_same_conclusions() -> None:
    for pattern in ("window", "window + global"):
        shares, _ = train_distance(pattern, 2, 1)
        reached = reached_distances(pattern, 2)
        assert min(shares[k - 1] for k in reached) >= 0.95
        beyond = [share for k, share in enumerate(shares, 1) if k not in reached]
        assert max(beyond, default=0) <= CHANCE + NOISE_OF_256
    assert train_pairs("full", 8, 1)[0] >= 0.95
    assert train_pairs("window + global", 8, 1)[0] <= 0.4
