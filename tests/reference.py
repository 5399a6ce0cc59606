"""Attention in plain loops of Python floats, one pair at a time, and the budget for rounding errors.

Nothing here comes from the library. A hidden pair is skipped, so what it holds is never read.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Result(NamedTuple):
    """Output, weights, and the gradients of sum(out * d_out) for q, k and v."""

    out: Floats
    weights: Floats
    d_q: Floats
    d_k: Floats
    d_v: Floats


def attention(
    q: Floats,
    k: Floats,
    v: Floats,
    mask: Bools | None = None,
    *,
    bias: Floats | None = None,
    causal: bool = False,
    scale: float | None = None,
    d_out: Floats | None = None,
) -> Result:
    """Equation 1 of Vaswani et al. 2017 and its gradient, pair by pair, in float64."""
    T, S, d_k, d_v = q.shape[-2], k.shape[-2], q.shape[-1], v.shape[-1]
    heads = q.shape[-3] if q.ndim > 2 else 1
    kv_heads = k.shape[-3] if k.ndim > 2 else 1
    given = [x for x in (q, k, v, mask, bias) if x is not None]
    leading = np.broadcast_shapes(*(x.shape[:-3] for x in given))
    if any(x.ndim > 2 for x in given):
        leading = (*leading, heads)
    scale = 1 / math.sqrt(d_k) if scale is None else scale
    out, weights = np.zeros((*leading, T, d_v)), np.zeros((*leading, T, S))
    d_out = np.zeros(out.shape) if d_out is None else d_out
    d_q, d_k_, d_v_ = np.zeros(q.shape), np.zeros(k.shape), np.zeros(v.shape)

    for where in np.ndindex(leading):
        key_head = (*where[:-1], where[-1] // (heads // kv_heads)) if where else ()
        Q, dQ = _part(q, where), _part(d_q, where)
        K, dK = _part(k, key_head), _part(d_k_, key_head)
        V, dV = _part(v, key_head), _part(d_v_, key_head)
        for i in range(T):
            scores = {}
            for j in range(S):
                if causal and j > i + S - T:
                    continue
                if mask is not None and not _pair(mask, where, i, j):
                    continue
                added = 0.0 if bias is None else float(_pair(bias, where, i, j))
                if added == -math.inf:
                    continue
                scores[j] = scale * sum(float(Q[i, c]) * float(K[j, c]) for c in range(d_k)) + added
            w = softmax(scores)
            d_w = {
                j: sum(float(d_out[*where, i, c]) * float(V[j, c]) for c in range(d_v)) for j in w
            }
            mean = sum(w[j] * d_w[j] for j in w)
            for j in w:
                weights[*where, i, j] = w[j]
                d_score = w[j] * (d_w[j] - mean)
                for c in range(d_v):
                    out[*where, i, c] += w[j] * float(V[j, c])
                    dV[j, c] += w[j] * float(d_out[*where, i, c])
                for c in range(d_k):
                    dQ[i, c] += scale * d_score * float(K[j, c])
                    dK[j, c] += scale * d_score * float(Q[i, c])
    return Result(out, weights, d_q, d_k_, d_v_)


def softmax(scores: dict[int, float]) -> dict[int, float]:
    """exp(score) over the sum of all; no scores give no weights."""
    if any(math.isnan(score) for score in scores.values()):
        return dict.fromkeys(scores, math.nan)
    top = max(scores.values(), default=0.0)
    powers = {j: math.exp(score - top) for j, score in scores.items()}
    total = sum(powers.values())
    return {j: power / total for j, power in powers.items()}


def _part(x: Any, where: tuple[int, ...]) -> Any:
    """The (T, d) of `x` that index `where` of the broadcast leading axes reads: a view."""
    own = where[len(where) - (x.ndim - 2) :] if x.ndim > 2 else ()
    return x[tuple(0 if size == 1 else at for size, at in zip(x.shape, own, strict=False))]


def _pair(x: Any, where: tuple[int, ...], i: int, j: int) -> Any:
    rows = _part(x, where)
    return rows[0 if rows.shape[0] == 1 else i, 0 if rows.shape[1] == 1 else j]


def check_budget(
    found: Floats, exact: Floats, naive: Floats, eps: float, factor: float = 2.0
) -> None:
    """Raise AssertionError unless `found` is about as near to `exact` as the naive path is.

    The budget is `factor` times the naive path's largest error, plus a floor of one rounding step
    (`eps`) of the largest exact value.
    """
    if found.shape != exact.shape:
        raise AssertionError(f"shape {found.shape}, expected {exact.shape}")
    if not np.isfinite(found).all():
        raise AssertionError("not finite")
    if not exact.size:
        return
    error, noise = float(abs(found - exact).max()), float(abs(naive - exact).max())
    if not math.isfinite(noise) or noise > 64 * math.sqrt(eps):
        raise AssertionError(f"the naive path is no yardstick: its error is {noise:.2e}")
    budget = factor * noise + eps * float(abs(exact).max())
    if error > budget:
        raise AssertionError(f"error {error:.2e}, budget {budget:.2e}")
