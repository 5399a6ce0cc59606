"""Many heads: split, attend, merge, project."""

from __future__ import annotations  # np.random is loaded only when it is used

from typing import Any, TypeVar

import numpy as np

from .core import attention
from .shapes import Array, Mask, ShapeError, accumulator, check_array, check_count, describe

X = TypeVar("X", bound=Any)  # a NumPy array or a torch tensor


def split_heads(x: X, heads: int) -> X:
    """Cut the last axis into heads: (..., T, H·d) to (..., H, T, d).

    Head h takes the h-th contiguous slice of the width. Works on NumPy arrays and torch tensors.
    Raises ShapeError unless `heads` divides the width.
    """
    heads = check_count("heads", heads, least=1)
    _check_shaped(x)
    if len(x.shape) < 2 or x.shape[-1] % heads:
        raise ShapeError(
            f"x must be (..., T, H·d) with a last axis that {heads} heads divide: x {tuple(x.shape)}"
        )
    *leading, T, width = x.shape
    return x.reshape(*leading, T, heads, width // heads).swapaxes(-2, -3)


def merge_heads(x: X) -> X:
    """Put the heads side by side again: (..., H, T, d) to (..., T, H·d); undoes `split_heads`."""
    _check_shaped(x)
    if len(x.shape) < 3:
        raise ShapeError(f"x must be (..., H, T, d): x {tuple(x.shape)}")
    *leading, heads, T, width = x.shape
    return x.swapaxes(-2, -3).reshape(*leading, T, heads * width)


def _check_shaped(x: Any) -> None:
    if not hasattr(x, "shape"):
        raise TypeError(f"x must be a NumPy array or a torch tensor: found {describe(x)}")


def head_sizes(
    d_model: int, heads: int, kv_heads: int | None, d_k: int | None, d_v: int | None
) -> tuple[int, int, int, int, int]:
    """Check the sizes of a MultiHeadAttention and fill in what is None, in the order given."""
    d_model = check_count("d_model", d_model, least=1)
    heads = check_count("heads", heads, least=1)
    kv_heads = heads if kv_heads is None else check_count("kv_heads", kv_heads, least=1)
    if heads % kv_heads:
        raise ShapeError(
            f"heads must be a multiple of kv_heads: heads {heads}, kv_heads {kv_heads}"
        )
    if (d_k is None or d_v is None) and d_model % heads:
        raise ShapeError(
            f"heads must divide d_model, or d_k and d_v be given: d_model {d_model}, heads {heads}"
        )
    d_k = d_model // heads if d_k is None else check_count("d_k", d_k, least=1)
    d_v = d_model // heads if d_v is None else check_count("d_v", d_v, least=1)
    return d_model, heads, kv_heads, d_k, d_v


class MultiHeadAttention:
    """Multi-head attention with its four projections, in NumPy.

    d_model   width of the tokens that come in and go out
    heads     number of query heads H; `kv_heads` of keys and values, which divides it (default H)
    d_k, d_v  widths of one head, d_model // heads by default
    bias      whether each projection adds a vector (b_Q, b_K, b_V, b_O; None without)
    rng       seed or Generator of the starting weights, uniform within 1/sqrt(rows)

    The weights are used as x @ W: W_Q (d_model, H·d_k), W_K (d_model, Hk·d_k), W_V (d_model, Hk·d_v),
    W_O (H·d_v, d_model). Assign to them to load others. Raises ShapeError if the heads do not divide.
    Source: Vaswani et al. 2017, section 3.2.2; grouped heads: Ainslie et al. 2023.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        bias: bool = False,
        rng: int | np.random.Generator,
    ) -> None:
        self.d_model, self.heads, self.kv_heads, d_k, d_v = head_sizes(
            d_model, heads, kv_heads, d_k, d_v
        )
        if not isinstance(rng, np.random.Generator):
            rng = np.random.default_rng(check_count("rng, a seed or Generator,", rng))
        self._shapes = {
            "Q": (self.d_model, self.heads * d_k),
            "K": (self.d_model, self.kv_heads * d_k),
            "V": (self.d_model, self.kv_heads * d_v),
            "O": (self.heads * d_v, self.d_model),
        }
        self.W_Q, self.b_Q = _projection(rng, *self._shapes["Q"], bias)
        self.W_K, self.b_K = _projection(rng, *self._shapes["K"], bias)
        self.W_V, self.b_V = _projection(rng, *self._shapes["V"], bias)
        self.W_O, self.b_O = _projection(rng, *self._shapes["O"], bias)

    def __call__(
        self,
        x: Array,
        context: Array | None = None,
        mask: Mask | None = None,
        *,
        bias: Array | None = None,
        causal: bool = False,
        return_weights: bool = False,
    ) -> Array | tuple[Array, Array]:
        """Let tokens `x` (..., T, d_model) look at `context` (..., S, d_model), by default at x.

        Returns (..., T, d_model), with `return_weights` also each head's weights (..., H, T, S). The
        other arguments are those of `attention`: a mask (B, T, S) for all heads is (B, 1, T, S).
        """
        context = x if context is None else context
        for name, tokens in (("x", x), ("context", context)):
            check_array(name, tokens)
            if tokens.ndim < 2 or tokens.shape[-1] != self.d_model:
                raise ShapeError(
                    f"{name} must be (..., T, d_model) with d_model {self.d_model}: "
                    f"{name} {tokens.shape}"
                )
        q = split_heads(self._project("Q", x, self.W_Q, self.b_Q), self.heads)
        k = split_heads(self._project("K", context, self.W_K, self.b_K), self.kv_heads)
        v = split_heads(self._project("V", context, self.W_V, self.b_V), self.kv_heads)
        out, weights = attention(q, k, v, mask, bias=bias, causal=causal, return_weights=True)
        out = self._project("O", merge_heads(out), self.W_O, self.b_O)
        return (out, weights) if return_weights else out

    def _project(self, name: str, x: Array, W: Array, b: Array | None) -> Array:
        """x @ W + b in the dtype of x; float16 is added up in float32."""
        shape = self._shapes[name]
        _check_weight(f"W_{name}", W, shape)
        if b is not None:
            _check_weight(f"b_{name}", b, shape[1:])
        out = x.astype(accumulator(x.dtype), copy=False) @ W
        return (out if b is None else out + b).astype(x.dtype, copy=False)


def _check_weight(name: str, weight: Array, shape: tuple[int, ...]) -> None:
    check_array(name, weight)
    if weight.shape != shape:
        raise ShapeError(f"{name} must be {shape}: {name} {weight.shape}")


def _projection(
    rng: np.random.Generator, rows: int, columns: int, bias: bool
) -> tuple[Array, Array | None]:
    limit = 1 / np.sqrt(rows)
    W = rng.uniform(-limit, limit, (rows, columns)).astype(np.float32)
    b = rng.uniform(-limit, limit, columns).astype(np.float32) if bias else None
    return W, b
