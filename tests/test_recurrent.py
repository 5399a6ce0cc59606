"""Recurrent layers and additive attention in NumPy: against torch's own, and against loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from attention_lib import ShapeError, softmax
from attention_lib.recurrent import States, additive_attention, lstm, lstm_step, rnn, rnn_step

from .reference import Floats
from .test_attention import draw
from .test_errors import refuse

B, T, D, H = 3, 7, 5, 11


def copied(layer: torch.nn.RNN | torch.nn.LSTM) -> tuple[Floats, Floats, Floats]:
    """W, U and b with the numbers of a layer of torch."""
    old = {name: tensor.detach().numpy() for name, tensor in layer.named_parameters()}
    return (
        old["weight_ih_l0"].T,
        old["weight_hh_l0"].T,
        old["bias_ih_l0"] + old["bias_hh_l0"],
    )


@pytest.mark.parametrize("given", [False, True], ids=["from zero", "from a state"])
def test_rnn_agrees_with_torch(given: bool) -> None:
    torch.manual_seed(0)
    theirs = torch.nn.RNN(D, H, batch_first=True, dtype=torch.float64)
    x, start = draw(B, T, D), draw(B, H)
    expected, _ = theirs(torch.from_numpy(x), torch.from_numpy(start)[None] if given else None)
    ours = rnn(x, *copied(theirs), start if given else None)
    np.testing.assert_allclose(ours.states, expected.detach().numpy(), rtol=1e-12, atol=1e-14)
    assert (ours.steps, ours.cells) == (T, None)


@pytest.mark.parametrize("given", [False, True], ids=["from zero", "from a state"])
def test_lstm_agrees_with_torch(given: bool) -> None:
    torch.manual_seed(0)
    theirs = torch.nn.LSTM(D, H, batch_first=True, dtype=torch.float64)
    x, start, cell = draw(B, T, D), draw(B, H), draw(B, H, seed=1)
    before = tuple(torch.from_numpy(a)[None] for a in (start, cell)) if given else None
    expected, (_, last_cell) = theirs(torch.from_numpy(x), before)
    ours = lstm(x, *copied(theirs), *((start, cell) if given else ()))
    np.testing.assert_allclose(ours.states, expected.detach().numpy(), rtol=1e-12, atol=1e-14)
    assert ours.cells is not None
    np.testing.assert_allclose(ours.cells[:, -1], last_cell[0].detach().numpy(), rtol=1e-12)
    assert ours.steps == T


def weights(gates: int, dtype: str = "float64") -> list[Any]:
    """W, U and b for D, H and as many gates."""
    shapes = [(D, gates * H), (H, gates * H), (gates * H,)]
    return [(draw(*shape, seed=5) / 3).astype(dtype) for shape in shapes]


def test_one_step_by_hand() -> None:
    """tanh(1·2 + 0.5·(-1) + 0.25) for one feature; a cell half forgotten."""
    one = np.ones(1)
    out = rnn_step(one, 0.5 * one, np.array([[2.0]]), np.array([[-1.0]]), 0.25 * one)
    assert out.tolist() == pytest.approx([math.tanh(1.75)])
    zero = np.zeros((1, 4))
    state, cell = lstm_step(one, one, 3 * one, zero, zero, np.array([0.0, 0, math.atanh(0.5), 100]))
    assert cell.tolist() == pytest.approx([0.5 * 3 + 0.5 * 0.5])
    assert state.tolist() == pytest.approx([math.tanh(1.75)])


@pytest.mark.parametrize(("layer", "gates"), [(rnn, 1), (lstm, 4)])
def test_leading_axes_broadcast(layer: Callable[..., States], gates: int) -> None:
    x, starts = draw(2, 1, T, D), [draw(B, H, seed=s) for s in range(1 if layer is rnn else 2)]
    all_ = layer(x, *weights(gates), *starts)
    assert all_.states.shape == (2, B, T, H)
    for i in range(2):
        for j in range(B):
            one = layer(x[i, 0], *weights(gates), *(start[j] for start in starts))
            np.testing.assert_allclose(all_.states[i, j], one.states, rtol=1e-12)


@pytest.mark.parametrize(("layer", "gates"), [(rnn, 1), (lstm, 4)])
def test_reading_on_from_where_it_ended(layer: Callable[..., States], gates: int) -> None:
    x = draw(B, T, D)
    whole = layer(x, *weights(gates))
    first = layer(x[:, :3], *weights(gates))
    carried = [first.states[:, -1]] + ([] if first.cells is None else [first.cells[:, -1]])
    rest = layer(x[:, 3:], *weights(gates), *carried)
    np.testing.assert_array_equal(np.concatenate([first.states, rest.states], 1), whole.states)
    assert (first.steps, rest.steps) == (3, T - 3)


@pytest.mark.parametrize(("layer", "gates"), [(rnn, 1), (lstm, 4)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_output_has_the_dtype_of_the_input(
    layer: Callable[..., States], gates: int, dtype: str
) -> None:
    x = draw(T, D).astype(dtype)
    before = x.copy()
    ours = layer(x, *weights(gates, dtype))
    assert ours.states.dtype == np.dtype(dtype)
    exact = layer(x.astype("float64"), *(w.astype("float64") for w in weights(gates, dtype)))
    np.testing.assert_allclose(ours.states, exact.states, atol=8 * float(np.finfo(dtype).eps))
    np.testing.assert_array_equal(x, before)


def test_large_numbers_saturate_quietly() -> None:
    x = np.full((2, D), 1e4)
    for layer, gates in ((rnn, 1), (lstm, 4)):
        assert np.isfinite(layer(x, *weights(gates)).states).all()


def test_no_token_is_no_step() -> None:
    empty = rnn(np.zeros((B, 0, D)), *weights(1))
    assert (empty.states.shape, empty.steps) == ((B, 0, H), 0)


# ---------------------------------------------------------------- additive attention

S, A, D_V = 4, 6, 9


def parts() -> dict[str, Any]:
    return {
        "query": draw(B, T, D),
        "keys": draw(B, S, H),
        "values": draw(B, S, D_V),
        "W_q": draw(D, A) / 2,
        "W_k": draw(H, A) / 3,
        "v": draw(A),
    }


def test_additive_attention_pair_by_pair() -> None:
    p = parts()
    mask = draw(B, T, S, seed=1) > -0.5
    mask[1, 2] = False
    out, weights_ = additive_attention(**p, mask=mask, return_weights=True)
    for b in range(B):
        for t in range(T):
            seen = [s for s in range(S) if mask[b, t, s]]
            scores = [
                sum(
                    p["v"][a]
                    * math.tanh(
                        p["query"][b, t] @ p["W_q"][:, a] + p["keys"][b, s] @ p["W_k"][:, a]
                    )
                    for a in range(A)
                )
                for s in seen
            ]
            expected = np.zeros(S)
            expected[seen] = softmax(np.array(scores)) if seen else []
            np.testing.assert_allclose(weights_[b, t], expected, rtol=1e-12)
            np.testing.assert_allclose(out[b, t], expected @ p["values"][b], rtol=1e-11, atol=1e-13)


def test_without_tanh_the_query_would_cancel() -> None:
    """v · (W_q query + W_k key) shifts all scores of a query alike; the tanh is what compares."""
    p = parts()
    _, weights_ = additive_attention(**p, return_weights=True)
    assert abs(weights_[:, 1:] - weights_[:, :1]).max() > 0.1
    linear = (p["query"] @ p["W_q"])[..., None, :] + (p["keys"] @ p["W_k"])[..., None, :, :]
    flat = softmax(linear @ p["v"])
    np.testing.assert_allclose(flat, np.broadcast_to(flat[:, :1], flat.shape), rtol=1e-9)


def test_additive_attention_broadcasts_and_keeps_the_dtype() -> None:
    p = parts() | {"query": draw(2, 1, T, D), "keys": draw(S, H)}
    out = additive_attention(**p)
    assert isinstance(out, np.ndarray)
    assert out.shape == (2, B, T, D_V)
    half = {name: x.astype(np.float16) for name, x in p.items()}
    small = additive_attention(**half)
    assert isinstance(small, np.ndarray)
    assert small.dtype == np.float16
    np.testing.assert_allclose(small, out, atol=0.02)


def test_what_no_query_may_see_is_never_read() -> None:
    p, mask = parts(), np.ones((T, S), dtype=bool)
    mask[:, 1] = False
    clean, weights_ = additive_attention(**p, mask=mask, return_weights=True)
    p["keys"][:, 1], p["values"][:, 1] = np.nan, np.inf
    np.testing.assert_array_equal(additive_attention(**p, mask=mask), clean)
    assert (weights_[..., 1] == 0).all()
    np.testing.assert_allclose(weights_.sum(-1), 1)


# ---------------------------------------------------------------- errors


def test_errors_say_what_was_found() -> None:
    x, state = draw(B, D), draw(B, H)
    W, U, b = weights(1)
    step: Any = rnn_step
    refuse(lambda: step(x, state, U, W, b), ShapeError, "W must be (d, h) = (5, 11)", "(11, 11)")
    refuse(lambda: step(x, state, W, W, b), ShapeError, "U must be (h, h) = (11, 11)", "(5, 11)")
    refuse(lambda: step(x, state, W, U, b[1:]), ShapeError, "b must be (h,) = (11,)", "(10,)")
    refuse(lambda: step(x, draw(2, H), W, U, b), ShapeError, "broadcast", "x (3,), state (2,)")
    refuse(lambda: step(x, state, W, U, 0.0), TypeError, "b must be a NumPy array", "float")
    refuse(lambda: step(x.astype(np.float32), state, W, U, b), TypeError, "one dtype", "x float32")
    refuse(lambda: step(np.array(1.0), state, W, U, b), ShapeError, "x must have an axis")
    whole: Any = rnn
    refuse(lambda: whole(x[0], W, U, b), ShapeError, "x must be (..., T, d): x (5,)")
    refuse(lambda: whole(x, W, b, b), ShapeError, "U must have two axes: U (11,)")
    refuse(lambda: whole(draw(B, T, D), W, U, b, draw(2, H)), ShapeError, "x (3,), state (2,)")
    refuse(lambda: whole(x.tolist(), W, U, b), TypeError, "x must be a NumPy array", "list")
    gated: Any = lstm_step
    refuse(lambda: gated(x, state, state, W, U, b), ShapeError, "W must be (d, 4h) = (5, 44)")
    refuse(lambda: gated(x, state, draw(B, 7), *weights(4)), ShapeError, "state and cell", "(3, 7)")


@pytest.mark.parametrize(
    ("change", "kind", "fragment"),
    [
        ({"v": draw(A, 1)}, ShapeError, "v must be (a,): v (6, 1)"),
        ({"W_q": draw(H, A)}, ShapeError, "W_q must be (5, 6), from the width"),
        ({"W_k": draw(H, A + 1)}, ShapeError, "W_k must be (11, 6)"),
        ({"values": draw(B, S + 1, D_V)}, ShapeError, "share axis -2: keys (3, 4, 11)"),
        ({"keys": draw(2, S, H)}, ShapeError, "broadcast: found query (3,), keys (2,)"),
        ({"query": draw(D)}, ShapeError, "query must be (..., T, d_q): query (5,)"),
        ({"query": draw(B, T, D).astype(np.float32)}, TypeError, "query float32, keys float64"),
        ({"mask": draw(T, S)}, TypeError, "mask must be boolean, True = may look"),
        ({"mask": [True]}, TypeError, "mask must be a NumPy array of booleans: found list"),
        ({"mask": np.ones((S, T), dtype=bool)}, ShapeError, "(..., T, S) = (3, 7, 4): mask (4, 7)"),
    ],
)
def test_errors_of_additive_attention(
    change: dict[str, Any], kind: type[Exception], fragment: str
) -> None:
    refuse(lambda: additive_attention(**(parts() | change)), kind, fragment)
