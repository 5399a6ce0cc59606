"""The counters behind Table 1, against formulas, and against what the library really does."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from attention_lib import sliding_window_mask
from attention_lib.cost import (
    Operation,
    attention_operations,
    contiguous,
    dilated,
    layer_costs,
    longest_chain,
    path_length,
    product,
    recurrent_operations,
)
from attention_lib.recurrent import lstm, rnn
from attention_lib.shapes import Mask

SIZES = [(1, 5, 2, 2), (7, 5, 3, 4), (64, 11, 5, 9), (81, 64, 3, 80), (130, 3, 4, 500)]


@pytest.mark.parametrize(("n", "d", "k", "r"), SIZES)
def test_the_counts_are_the_formulas_of_table_1(n: int, d: int, k: int, r: int) -> None:
    for projections, more in ((False, 0), (True, 4 * n * d * d)):
        costs = layer_costs(n, d, width=k, window=r, projections=projections)
        assert {name: cost.multiply_adds for name, cost in costs.items()} == {
            "self-attention": 2 * n * n * d + more,
            "recurrent": 2 * n * d * d,
            "LSTM": 8 * n * d * d,
            "convolution": k * n * d * d,
            "convolution, dilated": k * n * d * d,
            "self-attention, restricted": 2 * min(n, r) * n * d + more,
        }
        attention = 4 if projections else 2
        assert {name: cost.sequential for name, cost in costs.items()} == {
            "self-attention": attention,
            "recurrent": n,
            "LSTM": n,
            "convolution": 1,
            "convolution, dilated": 1,
            "self-attention, restricted": attention,
        }
        assert {name: cost.path for name, cost in costs.items()} == {
            "self-attention": min(n - 1, 1),
            "recurrent": n - 1,
            "LSTM": n - 1,
            "convolution": math.ceil((n - 1) / (k - 1)),
            "convolution, dilated": next(layers for layers in range(99) if k**layers >= n),
            "self-attention, restricted": math.ceil((n - 1) / (r - 1)),
        }


def test_scores_are_cheaper_than_a_recurrent_layer_exactly_while_n_is_below_d() -> None:
    for n, d in ((63, 64), (64, 64), (65, 64)):
        bare, whole = layer_costs(n, d), layer_costs(n, d, projections=True)
        assert (bare["self-attention"].multiply_adds < bare["recurrent"].multiply_adds) == (n < d)
        assert whole["self-attention"].multiply_adds > whole["recurrent"].multiply_adds
    for n, d in ((127, 64), (128, 64), (129, 64)):
        whole = layer_costs(n, d, projections=True)
        assert (whole["self-attention"].multiply_adds < whole["LSTM"].multiply_adds) == (n < 2 * d)


def test_the_chain_is_what_the_library_makes_step_by_step() -> None:
    zeros = np.zeros
    for n in (0, 1, 6):
        x, b = zeros((n, 3)), zeros(3)
        counted = longest_chain(recurrent_operations(n, 3))
        assert rnn(x, zeros((3, 3)), zeros((3, 3)), b).steps == counted
        assert lstm(x, zeros((3, 12)), zeros((3, 12)), zeros(12)).steps == counted


def test_the_longest_chain_counts_what_waits() -> None:
    a = Operation("a", 1)
    b, c = Operation("b", 1, (a,)), Operation("c", 1)
    assert longest_chain([]) == 0
    assert longest_chain([a, c]) == 1
    assert longest_chain([a, b, c, Operation("d", 1, (b, c))]) == 3
    names = [operation.name for operation in attention_operations(3, 5, projections=True)]
    assert len(names) == len(set(names)) == 6


def longest_shortest_path(mask: Mask) -> int:
    """By Floyd and Warshall, over all pairs that are joined at all."""
    links = np.where(mask, 1.0, np.inf)
    np.fill_diagonal(links, 0)
    for via in range(len(links)):
        links = np.minimum(links, links[:, via, None] + links[via])
    return int(links[np.isfinite(links)].max())


@pytest.mark.parametrize(
    ("n", "window"), [(1, 2), (2, 2), (9, 2), (9, 3), (23, 5), (23, 23), (9, 40)]
)
def test_the_search_finds_the_longest_path_of_any_pair(n: int, window: int) -> None:
    mask = sliding_window_mask(n, window)
    assert path_length(n, contiguous(window)) == longest_shortest_path(mask)


def test_dilation_makes_a_path_logarithmic() -> None:
    assert [path_length(n, dilated(2)) for n in (1, 2, 3, 4, 5, 1024, 1025)] == [
        0,
        1,
        2,
        2,
        3,
        10,
        11,
    ]
    lengths = [path_length(3**layers, dilated(3)) for layers in range(7)]
    assert all(b - a == 1 for a, b in pairwise(lengths))


def test_a_path_that_ends_nowhere_is_an_error() -> None:
    with pytest.raises(ValueError, match="link 1 finds no further token than 1 of 4"):
        path_length(4, contiguous(1))
    with pytest.raises(ValueError, match="n must be at least 1: found 0"):
        path_length(0, contiguous(2))
    with pytest.raises(ValueError, match="rows must be at least 0: found -1"):
        attention_operations(-1, 5)
    with pytest.raises(ValueError, match="window must be at least 1: found -2"):
        attention_operations(3, 5, window=-2)
    with pytest.raises(ValueError, match="inner must be at least 0: found -5"):
        product("scores", 3, -5, 3)
    with pytest.raises(ValueError, match="n must be at least 0: found -1"):
        recurrent_operations(-1, 5)
    with pytest.raises(ValueError, match="window must be at least 2: found 1"):
        layer_costs(5, 3, window=1)
