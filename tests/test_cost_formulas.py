"""Pairs, FLOPs, bytes and traffic: against the masks, against programs that count, against papers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_lib import sliding_window_mask
from attention_lib.cost import (
    H200,
    MODEL_SHAPES,
    LayerFlops,
    ModelShape,
    attention_costs,
    causal_pairs,
    crossover,
    dense_pairs,
    flash_blocks,
    flash_traffic,
    global_window_pairs,
    layer_costs,
    layer_flops,
    linear_cost,
    longest_dense,
    pairs_cost,
    standard_traffic,
    strided_pairs,
    tiled_bytes,
    weights_bytes,
    window_pairs,
)
from attention_lib.masks import causal_mask, global_window_mask, strided_mask

from . import reference
from .reference import Floats

SMALL = st.integers(0, 23)
LEAST_ONE = st.integers(1, 29)


@given(n=SMALL, window=LEAST_ONE, tokens=SMALL, causal=st.booleans())
def test_pairs_are_the_sums_of_the_masks(n: int, window: int, tokens: int, causal: bool) -> None:
    assert dense_pairs(n) == n * n
    assert causal_pairs(n) == causal_mask(n).sum()
    near = sliding_window_mask(n, window, causal=causal)
    assert window_pairs(n, window, causal=causal) == near.sum()
    both = global_window_mask(n, window, tokens, causal=causal)
    assert global_window_pairs(n, window, tokens, causal=causal) == both.sum()
    assert strided_pairs(n, window) == strided_mask(n, window).sum()


@given(n=SMALL, block=LEAST_ONE)
def test_causal_tiles_are_those_that_hold_a_visible_pair(n: int, block: int) -> None:
    pairs = 0
    mask = causal_mask(n)
    for i in range(0, n, block):
        for j in range(0, n, block):
            tile = mask[i : i + block, j : j + block]
            pairs += tile.size * bool(tile.any())
    assert causal_pairs(n, block=block) == pairs
    if n % block == 0:
        assert pairs == n * (n + block) // 2


def test_the_table_of_methods_at_one_length() -> None:
    costs = attention_costs(4096, 512, 8, window=128, global_tokens=2)
    assert {name: cost.pairs for name, cost in costs.items()} == {
        "dense": 4096**2,
        "tiled": 4096**2,
        "window": 255 * 4096 - 128 * 127,
        "global + window": 255 * 4094 - 128 * 127 + 4 * 4096 - 4,
        "strided": 64 * 4096 - 64 * 63 // 2 + 64 * 64 * 63 // 2,
        "linear": 0,
    }
    for name, cost in costs.items():
        assert cost.weights == 8 * cost.pairs
        assert name == "linear" or cost.flops == 4 * 512 * cost.pairs
    masked = attention_costs(4096, 512, 8, causal=True)
    assert masked["dense"] == costs["dense"]
    assert masked["tiled"].pairs == causal_pairs(4096)
    assert masked["strided"] == costs["strided"] == pairs_cost(strided_pairs(4096, 64), 512, 8)
    assert masked["window"] == pairs_cost(window_pairs(4096, 256, causal=True), 512, 8)
    assert costs["linear"] == linear_cost(4096, 512, 8)


def test_how_each_method_grows() -> None:
    def slope(name: str) -> float:
        n = 2**20
        one, four = (attention_costs(m, 512, 8)[name].flops for m in (n, 4 * n))
        return math.log(four / one, 4)

    grown = {name: round(slope(name), 3) for name in attention_costs(1, 512, 8)}
    assert grown == {
        "dense": 2.0,
        "tiled": 2.0,
        "window": 1.0,
        "global + window": 1.0,
        "strided": 1.5,
        "linear": 1.0,
    }


def test_linear_attention_is_dearer_than_dense_only_while_n_is_below_the_width_of_a_head() -> None:
    for n, d, heads in ((63, 512, 8), (65, 512, 8), (511, 512, 1), (514, 512, 1)):
        below = n < d // heads
        assert (linear_cost(n, d, heads).flops > pairs_cost(n * n, d, heads).flops) == below
    # state, read and normaliser, one product after another
    n, d_k, heads = 11, 5, 3
    products = [d_k * n * d_k, n * d_k * d_k, n * d_k * 1]
    assert linear_cost(n, heads * d_k, heads).flops == 2 * heads * sum(products)


def test_a_layer_at_4000_tokens_costs_2_79_times_that_at_2000() -> None:
    for d, growth, share in ((512, 2.7886, 0.3943), (12288, 2.0528, 0.0264)):
        two, four = layer_flops(2000, d), layer_flops(4000, d)
        assert four.scores == 4 * two.scores
        assert four.projections == 2 * two.projections
        assert two.total == 24 * 2000 * d**2 + 4 * 2000**2 * d
        assert round(four.total / two.total, 4) == growth
        assert round(two.share, 4) == share


@pytest.mark.parametrize("d", [1, 7, 512])
def test_the_scores_overtake_the_rest_at_6d(d: int) -> None:
    n = crossover(d)
    once = layer_flops(n, d)
    assert once.scores == once.projections + once.feed_forward
    assert once.share == 0.5
    assert layer_flops(n + 1, d).share > 0.5 > layer_flops(n - 1, d).share


def test_the_bill_agrees_with_table_1() -> None:
    once = layer_flops(11, 15)
    bare, whole = (
        2 * layer_costs(11, 15, projections=p)["self-attention"].multiply_adds
        for p in (False, True)
    )
    assert once.scores == bare
    assert once.projections == whole - bare
    assert layer_flops(11, 15, pairs=7).scores == 4 * 7 * 15
    assert layer_flops(0, 15) == LayerFlops(0, 0, 0)
    assert layer_flops(0, 15).share == 0


def test_the_weights_on_paper_up_to_a_million_tokens() -> None:
    assert weights_bytes(4000, 8, size=4) == 512_000_000
    assert weights_bytes(4000, 8, size=4) == np.zeros((8, 4000, 4000), np.float32).nbytes
    assert weights_bytes(10**6, 8) == 16 * 10**12  # 16 TB, 113 times an H200
    assert weights_bytes(10**6, 8) / H200 > 113
    for heads, size in ((8, 2), (8, 4), (96, 2)):
        n = longest_dense(H200, heads, size=size)
        assert weights_bytes(n, heads, size=size) <= H200 < weights_bytes(n + 1, heads, size=size)
    assert weights_bytes(7, 3, batch=5) == 5 * weights_bytes(7, 3)
    assert tiled_bytes(10**6, 8) - tiled_bytes(5 * 10**5, 8) == 2 * 5 * 10**5 * 8 * 4
    assert tiled_bytes(10**6, 8) == (16 * 10**6 + 128**2) * 4


class SlowMemory:
    """Arrays whose rows are counted as they are loaded and stored."""

    def __init__(self, **arrays: Floats) -> None:
        self.arrays = arrays
        self.loads = self.stores = 0

    def load(self, name: str, rows: slice) -> Any:
        found = self.arrays[name][rows].copy()
        self.loads += found.size
        return found

    def store(self, name: str, rows: slice, value: Any) -> None:
        self.stores += np.size(value)
        self.arrays[name][rows] = value


def run_flash(memory: SlowMemory, n: int, d: int, fast: int, causal: bool) -> None:
    """Algorithm 1 of Dao et al. 2022, line by line; q is scaled already."""
    B_c = math.ceil(fast / (4 * d))
    B_r = min(B_c, d)
    every = slice(0, n)
    memory.store("o", every, np.zeros((n, d)))
    memory.store("l", every, np.zeros(n))
    memory.store("m", every, np.full(n, -np.inf))
    for j in range(0, n, B_c):
        keys = slice(j, min(j + B_c, n))
        k, v = memory.load("k", keys), memory.load("v", keys)
        for i in range(0, n, B_r):
            rows = slice(i, min(i + B_r, n))
            visible = np.arange(n)[rows, None] >= np.arange(n)[keys]
            if causal and not visible.any():
                continue
            q, o = memory.load("q", rows), memory.load("o", rows)
            sums, largest = memory.load("l", rows), memory.load("m", rows)
            scores = np.where(visible, q @ k.T, -np.inf) if causal else q @ k.T
            new = np.maximum(largest, scores.max(1))
            weights = np.exp(scores - new[:, None])
            shrink = np.exp(largest - new) * sums
            total = shrink + weights.sum(1)
            memory.store("o", rows, (shrink[:, None] * o + weights @ v) / total[:, None])
            memory.store("l", rows, total)
            memory.store("m", rows, new)


def run_standard(memory: SlowMemory, n: int) -> None:
    """Algorithm 0 of Dao et al. 2022."""
    every = slice(0, n)
    memory.store("s", every, memory.load("q", every) @ memory.load("k", every).T)
    weights = np.exp(memory.load("s", every))
    memory.store("p", every, weights / weights.sum(1, keepdims=True))
    memory.store("o", every, memory.load("p", every) @ memory.load("v", every))


def slow_memory(n: int, d: int) -> tuple[SlowMemory, Floats, Floats, Floats]:
    rng = np.random.default_rng(n * 100 + d)
    q, k, v = rng.normal(size=(3, n, d))
    spare = {"o": np.empty((n, d)), "l": np.empty(n), "m": np.empty(n)}
    pairs = {"s": np.empty((n, n)), "p": np.empty((n, n))}
    return SlowMemory(q=q / math.sqrt(d), k=k, v=v, **spare, **pairs), q, k, v


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("n", "d", "fast"), [(11, 3, 12), (11, 3, 29), (7, 5, 61), (13, 2, 50), (9, 7, 28), (5, 3, 999)]
)
def test_the_traffic_is_that_of_the_algorithm_run(n: int, d: int, fast: int, causal: bool) -> None:
    memory, q, k, v = slow_memory(n, d)
    run_flash(memory, n, d, fast, causal)
    expected = reference.attention(q, k, v, causal=causal)
    np.testing.assert_allclose(memory.arrays["o"], expected.out, rtol=1e-12, atol=1e-14)
    traffic = flash_traffic(n, d, fast, causal=causal)
    assert (memory.loads, memory.stores) == (traffic.loads, traffic.stores)
    assert traffic.total == memory.loads + memory.stores


@pytest.mark.parametrize(("n", "d"), [(1, 3), (11, 3), (5, 7)])
def test_the_traffic_of_standard_attention_is_4nd_and_4n2(n: int, d: int) -> None:
    memory, q, k, v = slow_memory(n, d)
    run_standard(memory, n)
    np.testing.assert_allclose(memory.arrays["o"], reference.attention(q, k, v).out, rtol=1e-12)
    traffic = standard_traffic(n, d)
    assert (memory.loads, memory.stores) == (traffic.loads, traffic.stores)
    assert traffic.total == 4 * n * d + 4 * n * n


def test_the_traffic_of_flash_attention_follows_the_law() -> None:
    d, fast = 64, 98_304
    law = 12 * d**2 / fast
    n = 2**17
    assert flash_traffic(n, d, fast).total / n**2 == pytest.approx(law, rel=0.03)
    doubled = flash_traffic(2 * n, d, fast).total / flash_traffic(n, d, fast).total
    assert doubled == pytest.approx(4, rel=0.01)
    assert flash_traffic(n, d, 2 * fast).total / n**2 == pytest.approx(law / 2, rel=0.04)
    assert flash_traffic(n, 2 * d, fast).total / n**2 == pytest.approx(4 * law, rel=0.03)
    half = flash_traffic(n, d, fast, causal=True).total / flash_traffic(n, d, fast).total
    assert half == pytest.approx(0.5, rel=0.01)
    assert flash_blocks(64, 98_304) == (64, 384)
    assert flash_blocks(64, 256) == (1, 1)


def test_a_layer_of_a_model_is_the_textbook_one_where_it_has_those_sizes() -> None:
    for name in ("GPT-2", "GPT-3 175B"):
        shape = MODEL_SHAPES[name]
        assert shape.layer_flops(2000) == layer_flops(2000, shape.d_model)
        assert shape.layer_flops(2000, pairs=5) == layer_flops(2000, shape.d_model, pairs=5)


PUBLISHED = {  # parameters; words in the vocabulary; embeddings of words, one, or two with the output
    "GPT-2": (124e6, 50257, 1),
    "GPT-3 175B": (175e9, 50257, 1),
    "PaLM 540B": (540e9, 256_000, 1),
    "Llama 2 70B": (70e9, 32_000, 2),
    "Falcon 7B": (7.2e9, 65_024, 1),
    "Mistral 7B": (7.3e9, 32_000, 2),
    "Llama 3 8B": (8e9, 128_256, 2),
    "Llama 3 70B": (70e9, 128_256, 2),
}


@pytest.mark.parametrize("name", MODEL_SHAPES)
def test_the_sizes_of_a_model_give_its_published_number_of_parameters(name: str) -> None:
    shape = MODEL_SHAPES[name]
    parameters, words, embeddings = PUBLISHED[name]
    in_layers = (
        shape.layers * shape.layer_flops(1, pairs=0).total // 2
    )  # each is one multiply-add a token
    assert in_layers + embeddings * words * shape.d_model == pytest.approx(parameters, rel=0.04)
    assert shape.heads % shape.kv_heads == 0


def test_the_cache_in_bytes_per_token_and_what_an_h200_holds() -> None:
    assert {name: shape.cache_bytes_per_token() for name, shape in MODEL_SHAPES.items()} == {
        "GPT-2": 36_864,
        "GPT-3 175B": 4_718_592,
        "PaLM 540B": 120_832,
        "Llama 2 70B": 327_680,
        "Falcon 7B": 8_192,
        "Mistral 7B": 131_072,
        "Llama 3 8B": 131_072,
        "Llama 3 70B": 327_680,
    }
    for name, shape in MODEL_SHAPES.items():
        held = shape.cached_tokens(H200)
        per_token = shape.cache_bytes_per_token()
        assert held * per_token <= H200 < (held + 1) * per_token
        assert shape.cache_bytes_per_token(size=4) == 2 * per_token
        assert shape.cache_bytes(4000) == 2 * shape.cache_bytes(2000)  # not 4 times
        longer = shape.cache_bytes(10**6) / per_token
        assert longer == (4096 if name == "Mistral 7B" else 10**6)


def test_grouped_heads_shrink_the_cache_and_not_the_scores() -> None:
    def shape(kv_heads: int) -> ModelShape:
        return ModelShape(3, 512, 8, kv_heads, 64, 2048, 2, "none")

    for kv_heads in (1, 2, 4, 8):
        grouped, full = shape(kv_heads), shape(8)
        assert 8 * grouped.cache_bytes_per_token() == kv_heads * full.cache_bytes_per_token()
        assert grouped.layer_flops(11).scores == full.layer_flops(11).scores
        assert grouped.layer_flops(11).feed_forward == full.layer_flops(11).feed_forward
        assert grouped.layer_flops(11).projections == 4 * 11 * 512 * 64 * (8 + kv_heads)


def test_sizes_that_cannot_be_are_errors() -> None:
    with pytest.raises(ValueError, match="window must be at least 1: found 0"):
        window_pairs(5, 0)
    with pytest.raises(ValueError, match="stride must be at least 1: found 0"):
        strided_pairs(5, 0)
    with pytest.raises(ValueError, match="global_tokens must be at least 0: found -1"):
        global_window_pairs(5, 2, -1)
    with pytest.raises(ValueError, match="n must be at least 0: found -1"):
        dense_pairs(-1)
    with pytest.raises(ValueError, match="block must be at least 1: found 0"):
        causal_pairs(5, block=0)
    for cost in (pairs_cost, linear_cost):
        with pytest.raises(ValueError, match="heads must divide d: d 7, heads 2"):
            cost(5, 7, 2)
    with pytest.raises(ValueError, match="fast must be at least 256: found 255"):
        flash_traffic(5, 64, 255)
    for refused in (
        lambda: window_pairs(5, 2, causal="no"),  # type: ignore[arg-type]
        lambda: global_window_pairs(5, 2, 1, causal="no"),  # type: ignore[arg-type]
        lambda: attention_costs(5, 4, 2, causal="no"),  # type: ignore[arg-type]
        lambda: flash_traffic(5, 64, 256, causal="no"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="causal must be True or False: found str"):
            refused()
    with pytest.raises(TypeError, match=r"n must be an integer: found 2\.5"):
        layer_flops(2.5, 4)  # type: ignore[arg-type]
