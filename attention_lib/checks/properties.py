"""What can be seen in numbers that no known mistake gives: properties that every attention has."""

import numpy as np

from .engine import Array

NEAR = 1e-4


def weights_behind(values: Array, output: Array) -> Array | None:
    """The weights (..., T, S) by which an output (..., T, d_v) mixes the values (..., S, d_v).

    None where the values do not tell: with more keys than columns several weights give one output.
    """
    if output.shape[-1] != values.shape[-1] or values.shape[-2] > values.shape[-1]:
        return None
    weights: Array = output @ np.linalg.pinv(values)
    return weights if np.allclose(weights @ values, output, atol=NEAR) else None


def no_average(values: Array, output: Array) -> str:
    """What shows that an output is no average of the values: a sum, a sign, or a range."""
    weights = weights_behind(values, output)
    if weights is not None:
        if fault := not_summing_to_1(weights, "The weights behind your result"):
            return fault
        if weights.min() < -NEAR:
            return "Some of the weights behind your result are negative. exp makes every weight positive."
    low, high = values.min(axis=-2, keepdims=True), values.max(axis=-2, keepdims=True)
    outside = (output < low - NEAR) | (output > high + NEAR)
    if outside.any():
        return (
            f"{np.count_nonzero(outside)} of {output.size} numbers lie outside the range of the values. "
            "Weights that are positive and sum to 1 give an average, which stays inside."
        )
    return ""


def not_summing_to_1(weights: Array, what: str) -> str:
    """What shows that weights (..., S) do not sum to 1 along their last axis."""
    sums = np.atleast_1d(weights.sum(axis=-1))
    wrong = np.abs(sums - 1) > NEAR
    if not wrong.any():
        return ""
    rows = f"{np.count_nonzero(wrong)} of {sums.size} rows" if sums.size > 1 else "all"
    return f"{what} do not sum to 1 in {rows}: a sum is {sums[wrong][0]:.3g}. Divide by the sum over the keys."
