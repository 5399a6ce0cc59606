"""The other side of chapter 3: recurrent layers, step by step, and additive attention."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .core import softmax
from .shapes import (
    Array,
    Mask,
    Shape,
    ShapeError,
    accumulator,
    check_array,
    check_mask_dtype,
    describe,
    is_array,
)
from .visibility import prepare, read_values


@dataclass(frozen=True)
class States:
    """What a recurrent layer went through.

    states  (..., T, h), the state after each token
    cells   (..., T, h), the cell after each token; None without cells
    steps   how many steps were made one after another, each from what the step before left
    """

    states: Array
    cells: Array | None
    steps: int


def rnn_step(x: Array, state: Array, W: Array, U: Array, b: Array) -> Array:
    """The next state, tanh(x W + state U + b).

    Token x (..., d) and state (..., h), whose leading axes broadcast, with W (d, h), U (h, h) and
    b (h,) give (..., h), in the dtype of x; float16 is added up in float32. Raises ShapeError or
    TypeError with what was found. Source: Elman 1990.
    """
    _check_step({"x": x, "state": state}, W, U, b, gates=1)
    return np.tanh(_gates(x, state, W, U, b)).astype(x.dtype, copy=False)


def rnn(x: Array, W: Array, U: Array, b: Array, state: Array | None = None) -> States:
    """Read tokens x (..., T, d) one after another by `rnn_step`, from `state` (..., h), 0 by default.

    The leading axes of x and state broadcast. torch.nn.RNN computes the same with W = weight_ih.T,
    U = weight_hh.T and b = bias_ih + bias_hh. Raises ShapeError or TypeError with what was found.
    """
    start = _start(x, U, state)
    _check_step({"x": x, "state": start}, W, U, b, gates=1, tokens=True)

    def step(token: Array, carried: list[Array]) -> list[Array]:
        return [rnn_step(token, carried[0], W, U, b)]

    (states,), steps = _read(x, [start], step)
    return States(states, None, steps)


def lstm_step(
    x: Array, state: Array, cell: Array, W: Array, U: Array, b: Array
) -> tuple[Array, Array]:
    """The next state and cell of a long short-term memory.

        i, f, g, o = x W + state U + b              input gate, forget gate, news, output gate
        cell  = sigmoid(f) cell + sigmoid(i) tanh(g)
        state = sigmoid(o) tanh(cell)

    Token x (..., d), state and cell (..., h), whose leading axes broadcast, with W (d, 4h), U (h, 4h)
    and b (4h,), in each the four blocks i, f, g, o side by side, give two (..., h) in the dtype of x;
    float16 is added up in float32. Raises ShapeError or TypeError with what was found.
    Sources: Hochreiter and Schmidhuber 1997; forget gate: Gers et al. 2000.
    """
    _check_step({"x": x, "state": state, "cell": cell}, W, U, b, gates=4)
    i, f, g, o = np.split(_gates(x, state, W, U, b), 4, axis=-1)
    new = _sigmoid(f) * cell.astype(f.dtype, copy=False) + _sigmoid(i) * np.tanh(g)
    out = _sigmoid(o) * np.tanh(new)
    return out.astype(x.dtype, copy=False), new.astype(x.dtype, copy=False)


def lstm(
    x: Array,
    W: Array,
    U: Array,
    b: Array,
    state: Array | None = None,
    cell: Array | None = None,
) -> States:
    """Read tokens x (..., T, d) one after another by `lstm_step`, from state and cell (..., h).

    State and cell are 0 by default; all leading axes broadcast. torch.nn.LSTM computes the same with
    W = weight_ih.T, U = weight_hh.T and b = bias_ih + bias_hh. Raises ShapeError or TypeError with
    what was found.
    """
    starts = [_start(x, U, state), _start(x, U, cell)]
    _check_step({"x": x, "state": starts[0], "cell": starts[1]}, W, U, b, gates=4, tokens=True)

    def step(token: Array, carried: list[Array]) -> list[Array]:
        return list(lstm_step(token, carried[0], carried[1], W, U, b))

    (states, cells), steps = _read(x, starts, step)
    return States(states, cells, steps)


@np.errstate(invalid="ignore", under="ignore")
def additive_attention(
    query: Array,
    keys: Array,
    values: Array,
    W_q: Array,
    W_k: Array,
    v: Array,
    mask: Mask | None = None,
    *,
    return_weights: bool = False,
) -> Array | tuple[Array, Array]:
    """Additive attention: the scores are v · tanh(query W_q + key W_k), a small network's.

    query (..., T, d_q), keys (..., S, d_k), values (..., S, d_v) give (..., T, d_v), and with
    `return_weights` also the weights (..., T, S); leading axes broadcast. W_q (d_q, a), W_k (d_k, a)
    and v (a,) are the network. mask: booleans (..., T, S), True = may look. A query that may see
    nothing gets zeros; what no query may see is never read. The output has the dtype of query;
    float16 is added up in float32. Raises ShapeError or TypeError with what was found.
    Source: Bahdanau et al. 2015, section A.1.2, where they are W_a, U_a and v_a.
    """
    leading = _check_additive(query, keys, values, W_q, W_k, v, mask)
    query_, keys_, values_ = (
        np.broadcast_to(x, (*leading, *x.shape[-2:])) for x in (query, keys, values)
    )
    query_, keys_, values_, allowed = prepare(query_, keys_, values_, mask, None, False)
    sums_TSa = (query_ @ W_q)[..., :, None, :] + (keys_ @ W_k)[..., None, :, :]
    scores_TS = np.tanh(sums_TSa) @ v
    if allowed is not None:
        scores_TS = np.where(allowed, scores_TS, -np.inf)
    weights_TS = softmax(scores_TS)
    out = read_values(weights_TS, values_, allowed).astype(query.dtype, copy=False)
    return (out, weights_TS.astype(query.dtype, copy=False)) if return_weights else out


def _gates(x: Array, state: Array, W: Array, U: Array, b: Array) -> Array:
    """x W + state U + b, added up in float32 or wider."""
    wide = accumulator(x.dtype)
    x, state, W, U, b = (a.astype(wide, copy=False) for a in (x, state, W, U, b))
    return _times(x, W) + _times(state, U) + b


def _times(x: Array, W: Array) -> Array:
    return (x[..., None, :] @ W)[..., 0, :]


def _sigmoid(x: Array) -> Array:
    return 0.5 * (1 + np.tanh(0.5 * x))  # exp(-x) would overflow


def _read(
    x: Array, carried: list[Array], step: Callable[[Array, list[Array]], list[Array]]
) -> tuple[list[Array], int]:
    """Carry arrays (..., h) from token to token; return each after every step, (..., T, h), and the
    number of steps."""
    leading = np.broadcast_shapes(x.shape[:-2], *(a.shape[:-1] for a in carried))
    seen = [np.empty((*leading, x.shape[-2], a.shape[-1]), x.dtype) for a in carried]
    steps = 0
    for t in range(x.shape[-2]):
        carried = step(x[..., t, :], carried)
        steps += 1
        for all_, now in zip(seen, carried, strict=True):
            all_[..., t, :] = now
    return seen, steps


def _start(x: Array, U: Array, given: Array | None) -> Array:
    """What is carried to the first token: `given`, or zeros (h,) where it is None."""
    check_array("x", x)
    check_array("U", U)
    if x.ndim < 2:
        raise ShapeError(f"x must be (..., T, d): x {x.shape}")
    if U.ndim != 2:
        raise ShapeError(f"U must have two axes: U {U.shape}")
    return np.zeros(len(U), x.dtype) if given is None else given


def _check_arrays(arrays: dict[str, Array]) -> None:
    """Raise TypeError unless all are NumPy arrays of one dtype."""
    for name, array in arrays.items():
        check_array(name, array)
    if len({array.dtype for array in arrays.values()}) > 1:
        found = ", ".join(f"{name} {array.dtype}" for name, array in arrays.items())
        raise TypeError(f"all must share one dtype: found {found}")


def _check_mask(mask: Mask, scores: Shape) -> None:
    """Raise TypeError or ShapeError unless `mask` holds booleans that broadcast to `scores`."""
    if not is_array(mask):
        raise TypeError(f"mask must be a NumPy array of booleans: found {describe(mask)}")
    check_mask_dtype(str(mask.dtype))
    try:
        fits = np.broadcast_shapes(mask.shape, scores) == scores and mask.ndim >= 2
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"mask must broadcast to (..., T, S) = {scores}: mask {mask.shape}")


def _check_step(
    vectors: dict[str, Array],
    W: Array,
    U: Array,
    b: Array,
    *,
    gates: int,
    tokens: bool = False,
) -> None:
    """Raise TypeError or ShapeError unless x, state and cell fit the weights of `gates` blocks.

    tokens: x is (..., T, d), not one token (..., d).
    """
    _check_arrays(vectors | {"W": W, "U": U, "b": b})
    x, state = vectors["x"], vectors["state"]
    for name, array in vectors.items():
        if array.ndim < 1:
            raise ShapeError(f"{name} must have an axis of features: {name} ()")
    d, h = x.shape[-1], state.shape[-1]
    columns = "h" if gates == 1 else f"{gates}h"
    for name, array, shape, axes in (
        ("W", W, (d, gates * h), f"(d, {columns})"),
        ("U", U, (h, gates * h), f"(h, {columns})"),
        ("b", b, (gates * h,), f"({columns},)"),
    ):
        if array.shape != shape:
            raise ShapeError(
                f"{name} must be {axes} = {shape}, for d {d} of x and h {h} of state: "
                f"{name} {array.shape}"
            )
    if "cell" in vectors and vectors["cell"].shape[-1] != h:
        raise ShapeError(
            f"state and cell must share their last axis h: state {state.shape}, "
            f"cell {vectors['cell'].shape}"
        )
    _leading({name: a.shape[: -2 if tokens and name == "x" else -1] for name, a in vectors.items()})


def _leading(shapes: dict[str, Shape]) -> Shape:
    """The shape to which leading axes broadcast. Raises ShapeError if they do not."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ShapeError(f"leading axes must broadcast: found {found}") from None


def _check_additive(
    query: Array, keys: Array, values: Array, W_q: Array, W_k: Array, v: Array, mask: Mask | None
) -> Shape:
    """Return the leading axes. Raises TypeError or ShapeError unless all fit together."""
    arrays = {"query": query, "keys": keys, "values": values, "W_q": W_q, "W_k": W_k, "v": v}
    _check_arrays(arrays)
    if v.ndim != 1:
        raise ShapeError(f"v must be (a,): v {v.shape}")
    for name, axes in (("query", "T, d_q"), ("keys", "S, d_k"), ("values", "S, d_v")):
        if arrays[name].ndim < 2:
            raise ShapeError(f"{name} must be (..., {axes}): {name} {arrays[name].shape}")
    for name, W, x in (("W_q", W_q, query), ("W_k", W_k, keys)):
        if W.shape != (x.shape[-1], len(v)):
            raise ShapeError(
                f"{name} must be {(x.shape[-1], len(v))}, from the width of its input to that of v: "
                f"{name} {W.shape}"
            )
    if keys.shape[-2] != values.shape[-2]:
        raise ShapeError(
            f"keys and values must share axis -2: keys {keys.shape}, values {values.shape}"
        )
    leading = _leading({name: arrays[name].shape[:-2] for name in ("query", "keys", "values")})
    if mask is not None:
        _check_mask(mask, (*leading, query.shape[-2], keys.shape[-2]))
    return leading
