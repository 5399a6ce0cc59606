"""Sinusoids, rotary embeddings and ALiBi: formulas, conventions, relative positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attention_lib
import attention_lib.torch

from .paths import DOUBLE, PATHS, Path, to_float64
from .test_attention import draw

LIBRARIES = [attention_lib, attention_lib.torch]
PAIRINGS = ["half", "interleaved"]


# ---------------------------------------------------------------- sinusoids


@pytest.mark.parametrize("lib", LIBRARIES)
def test_sinusoids_are_the_formula(lib: Any) -> None:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d))."""
    table = to_float64(lib.sinusoids(37, 10))
    assert table.shape == (37, 10)
    for pos in range(37):
        for i in range(5):
            angle = pos / 10000 ** (2 * i / 10)
            assert table[pos, 2 * i] == pytest.approx(math.sin(angle), abs=1e-7)
            assert table[pos, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-7)


def test_sinusoids_options() -> None:
    double = attention_lib.sinusoids(5, 4, base=100, dtype=np.float64)
    assert double.dtype == np.float64
    assert double[3, 2] == pytest.approx(math.sin(3 / 100 ** (2 / 4)), abs=1e-15)
    assert attention_lib.sinusoids(0, 4).shape == (0, 4)
    assert attention_lib.sinusoids(5, 4).dtype == np.float32
    tensor = attention_lib.torch.sinusoids(5, 4, base=100, dtype=torch.float64)
    np.testing.assert_array_equal(tensor, double)
    assert attention_lib.torch.sinusoids(5, 4, device="meta").device.type == "meta"


def test_a_shift_is_a_rotation_of_the_sinusoids() -> None:
    """Section 3.5's reason for them: PE(pos + k) is one linear function of PE(pos), for all pos."""
    table = attention_lib.sinusoids(50, 12, dtype=np.float64)
    turn, *_ = np.linalg.lstsq(table[:-7], table[7:], rcond=None)
    np.testing.assert_allclose(table[:-7] @ turn, table[7:], atol=1e-12)


# ---------------------------------------------------------------- rotary


def turned_by_hand(x: Any, positions: Any, base: float, pairing: str) -> Any:
    """Equation 34 of Su et al., pair by pair, with complex numbers."""
    out = np.zeros(x.shape)
    d = x.shape[-1]
    places = np.broadcast_to(np.asarray(positions, dtype=float), x.shape[:-1])
    for where in np.ndindex(x.shape[:-1]):
        for i in range(d // 2):
            a, b = (i, i + d // 2) if pairing == "half" else (2 * i, 2 * i + 1)
            angle = places[where] * base ** (-2 * i / d)
            z = complex(x[*where, a], x[*where, b]) * complex(math.cos(angle), math.sin(angle))
            out[*where, a], out[*where, b] = z.real, z.imag
    return out


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_rotary_is_the_formula(path: Path, pairing: str) -> None:
    x = path.array(draw(2, 3, 5, 10))
    for positions, base in (
        (None, 10000.0),
        ([7, 0, 3, -2, 100], 10000.0),
        (np.array([0.5, 1.25, -3.75, 2.0, 1e3]), 500),
        (np.arange(10).reshape(2, 1, 5), 10000.0),
    ):
        out = path.lib.rotary(x, positions, base=base, pairing=pairing)
        assert out.dtype == path.native
        places = np.arange(5) if positions is None else positions
        expected = turned_by_hand(to_float64(x), places, base, pairing)
        np.testing.assert_allclose(to_float64(out), expected, rtol=0, atol=4 * path.eps)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_the_two_conventions_are_one_permutation_apart(pairing: str) -> None:
    """Reordering the features turns one into the other, so scores do not depend on the choice."""
    q, k = draw(5, 8), draw(5, 8, seed=1)
    order = [0, 4, 1, 5, 2, 6, 3, 7]  # half-split features, laid out in pairs
    half = attention_lib.rotary(q, pairing="half")
    apart = attention_lib.rotary(q[:, order], pairing="interleaved")
    np.testing.assert_allclose(apart, half[:, order], atol=1e-15)
    assert abs(attention_lib.rotary(q, pairing="interleaved") - half).max() > 0.1
    scores = half @ attention_lib.rotary(k, pairing="half").T
    theirs = apart @ attention_lib.rotary(k[:, order], pairing="interleaved").T
    np.testing.assert_allclose(theirs, scores, atol=1e-14)


def mixture(x: Any, position: float) -> Any:
    """The fault of N13: half-split rotation with the frequencies of the interleaved convention."""
    d = len(x)
    angles = np.repeat(position * 10000.0 ** (-np.arange(0, d, 2) / d), 2)
    return x * np.cos(angles) + np.concatenate([-x[d // 2 :], x[: d // 2]]) * np.sin(angles)


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("path", DOUBLE, ids=str)
def test_N13_scores_depend_on_the_difference_alone(path: Path, pairing: str) -> None:
    """D = 8: positions (5, 2) and (105, 102) give the same score, and norms are preserved."""
    q, k = np.linspace(-1, 1, 8), np.linspace(1, -0.5, 8)

    def score(i: float, j: float) -> float:
        a, b = (
            to_float64(path.lib.rotary(path.array(x[None]), [at], pairing=pairing))[0]
            for x, at in ((q, i), (k, j))
        )
        assert np.linalg.norm(a) == pytest.approx(np.linalg.norm(q), rel=1e-14)
        assert np.linalg.norm(b) == pytest.approx(np.linalg.norm(k), rel=1e-14)
        return float(a @ b)

    assert score(105, 102) == pytest.approx(score(5, 2), abs=1e-13)
    assert score(2, 5) != pytest.approx(score(5, 2), abs=0.01), "the difference has a sign"
    assert score(0, 0) == pytest.approx(q @ k, abs=1e-14)
    assert score(0.5, 0.25) == pytest.approx(score(7.75, 7.5), abs=1e-13)
    # The check can fail: on the same vectors the mixture differs by 1.2, and keeps no norm.
    mixed = [mixture(q, i) @ mixture(k, j) for i, j in ((5, 2), (105, 102))]
    assert abs(mixed[0] - mixed[1]) == pytest.approx(1.205, abs=1e-3)
    assert abs(np.linalg.norm(mixture(q, 5)) - np.linalg.norm(q)) > 0.2


@given(
    st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(1, 6), st.sampled_from(PAIRINGS)
)
def test_a_common_shift_changes_no_score(shift: int, start: int, pairs: int, pairing: Any) -> None:
    q, k = draw(5, 2 * pairs), draw(5, 2 * pairs, seed=1)
    at = np.arange(5) + start
    scores = [
        attention_lib.rotary(q, at + s, pairing=pairing)
        @ attention_lib.rotary(k, at + s, pairing=pairing).T
        for s in (0, shift)
    ]
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-10)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_large_positions_stay_exact(path: Path) -> None:
    """Angles are made in float64: float32 does not even hold the position 2^24 + 1."""
    x, at = path.array(draw(1, 8)), [2**24 + 1]
    out = path.lib.rotary(x, at)
    expected = turned_by_hand(to_float64(x), at, 10000.0, "half")
    np.testing.assert_allclose(to_float64(out), expected, rtol=0, atol=max(4 * path.eps, 1e-8))


def test_positions_may_be_tensors_of_any_kind() -> None:
    x = torch.from_numpy(draw(2, 5, 6))
    expected = attention_lib.torch.rotary(x)
    for dtype in (torch.int32, torch.int64, torch.float32, torch.float16, torch.bfloat16):
        found = attention_lib.torch.rotary(x, torch.arange(5, dtype=dtype))
        np.testing.assert_allclose(found, expected, atol=1e-15)
    assert attention_lib.rotary(x.numpy()[:, :0]).shape == (2, 0, 6)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_inputs_are_never_modified_and_views_are_like_copies(path: Path) -> None:
    x = path.array(draw(3, 6, 5)).swapaxes(-1, -2)
    before = to_float64(x).copy()
    out = path.lib.rotary(x)
    np.testing.assert_array_equal(to_float64(x), before)
    np.testing.assert_array_equal(to_float64(out), to_float64(path.lib.rotary(path.array(before))))
    out[...] = 0
    np.testing.assert_array_equal(to_float64(x), before)


@pytest.mark.parametrize("chunks", [[6], [4, 2], [1] * 6])
@pytest.mark.parametrize("path", [p for p in PATHS if p.dtype == "float32"], ids=str)
def test_A22_keys_are_rotated_once_when_they_enter_the_cache(path: Path, chunks: list[int]) -> None:
    """Six tokens at once, 4 + 2 or one by one; a cache of 16 slots whose unused ones hold 1e3."""
    q, k, v = (path.array(draw(2, 6, 8, seed=s)) for s in range(3))
    expected = to_float64(
        path.lib.attention(path.lib.rotary(q), path.lib.rotary(k), v, causal=True)
    )
    keys, values = (path.array(np.full((2, 16, 8), 1e3)) for _ in range(2))
    outputs, done = [], 0
    for n in chunks:
        new, at = slice(done, done + n), np.arange(done, done + n)
        keys[:, new] = path.lib.rotary(k[:, new], at)
        values[:, new] = v[:, new]
        done += n
        turned = path.lib.rotary(q[:, new], at)
        cropped = path.lib.attention(turned, keys[:, :done], values[:, :done], causal=True)
        # The other way to leave the unused slots out: a mask over all 16.
        mask = np.arange(16) <= at[:, None]
        masked = path.lib.attention(turned, keys, values, path.array(mask))
        np.testing.assert_allclose(to_float64(masked), to_float64(cropped), atol=1e-6)
        outputs.append(to_float64(cropped))
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), expected, rtol=0, atol=1e-6)
    twice = path.lib.attention(
        path.lib.rotary(q), path.lib.rotary(path.lib.rotary(k)), v, causal=True
    )
    assert abs(to_float64(twice) - expected).max() > 0.01, "rotating twice is noticed"


# ---------------------------------------------------------------- ALiBi


def slopes(lib: Any, heads: int) -> list[float]:
    """The penalty for one step back."""
    return [-float(head[1, 0]) for head in lib.alibi_bias(heads, 2)]


@pytest.mark.parametrize("lib", LIBRARIES)
def test_alibi_slopes_of_the_paper(lib: Any) -> None:
    """Eight heads: 1/2 … 1/256. Sixteen: 1/sqrt(2), 1/2, 1/(2 sqrt(2)), … 1/256."""
    assert slopes(lib, 8) == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    assert slopes(lib, 16) == pytest.approx([2 ** (-i / 2) for i in range(1, 17)], rel=1e-7)
    assert slopes(lib, 1) == [1 / 256]


@pytest.mark.parametrize("lib", LIBRARIES)
def test_alibi_slopes_of_twelve_heads(lib: Any) -> None:
    """The slopes of eight heads, then every other one of sixteen heads, as the authors' code has it."""
    between = [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]
    eight = [2.0**-i for i in range(1, 9)]
    assert slopes(lib, 12) == pytest.approx(eight + between, rel=1e-7)


@pytest.mark.parametrize("lib", LIBRARIES)
def test_alibi_counts_from_the_lower_right(lib: Any) -> None:
    bias = to_float64(lib.alibi_bias(2, 2, 5)) * 16  # slopes 1/16 and 1/256
    assert bias.shape == (2, 2, 5)
    assert not np.signbit(bias[bias == 0]).any(), "0, not -0"
    assert bias[0].tolist() == [[-3, -2, -1, 0, -1], [-4, -3, -2, -1, 0]]
    assert (bias[1] * 16).tolist() == bias[0].tolist()
    assert lib.alibi_bias(3, 0, 5).shape == (3, 0, 5)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_alibi_prefers_near_keys_and_shifts_nothing(path: Path) -> None:
    """With equal keys the weights fall by exp(-slope) a step; a full row is a row of a longer one."""
    q, k, v = path.array(np.zeros((8, 5, 3))), path.array(draw(8, 5, 3)), path.array(draw(8, 5, 2))
    bias = path.lib.alibi_bias(8, 5, dtype=path.native)
    _, weights = path.lib.attention(q, k, v, bias=bias, causal=True, return_weights=True)
    last = to_float64(weights)[:, 4]
    ratios = last[:, :-1] / last[:, 1:]
    expected = np.exp(-(2.0 ** -np.arange(1, 9)))[:, None]
    np.testing.assert_allclose(ratios, np.broadcast_to(expected, (8, 4)), rtol=8 * path.eps)


# ---------------------------------------------------------------- compiled, and under vmap

LENGTHS = range(2, 14)


def graphs(function: Any, argument: Any) -> int:
    """How many graphs torch.compile makes for all LENGTHS; raises where it breaks or is wrong."""
    made = []

    def keep(module: Any, inputs: Any) -> Any:
        made.append(module)
        return module.forward

    torch._dynamo.reset()
    compiled: Any = torch.compile(function, backend=keep, fullgraph=True)
    for T in LENGTHS:
        torch.testing.assert_close(compiled(argument(T)), function(argument(T)), rtol=0, atol=0)
    return len(made)


def all_positions(x: torch.Tensor) -> list[torch.Tensor]:
    """Everything that is made for a length, by torch's operations."""
    lib, T = attention_lib.torch, x.shape[-2]
    blocks = torch.ones(-(-T // 2), -(-T // 2), dtype=torch.bool).tril()
    return [
        lib.rotary(x),
        lib.rotary(x, torch.arange(T) + 3, pairing="interleaved"),
        lib.sinusoids(T, 6),
        lib.alibi_bias(3, T),
        lib.causal_mask(T),
        lib.sliding_window_mask(T, 3),
        lib.strided_mask(T, 2),
        lib.global_window_mask(T, 2, 1),
        lib.block_mask(T, blocks, block_size=2),
        lib.padding_mask(torch.tensor([1, 2]), T),
        lib.document_mask(torch.arange(T) // 2),
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # by torch itself
def test_masks_and_positions_compile_to_one_graph_for_all_lengths_but_the_first() -> None:
    assert graphs(all_positions, lambda T: torch.from_numpy(draw(2, T, 6))) == 2


def test_vmap_over_positions() -> None:
    x, at = torch.from_numpy(draw(3, 2, 5, 6)), torch.arange(15).reshape(3, 1, 5)
    rotary, vmap = attention_lib.torch.rotary, torch.func.vmap
    same = x[:1].expand(3, 2, 5, 6)
    for found, expected in (
        (vmap(rotary)(x, at), rotary(x, at)),
        (vmap(rotary, (None, 0))(x[0], at), rotary(same, at)),
        (vmap(rotary, (0, None))(x, at[0]), rotary(x, at[:1])),
    ):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
