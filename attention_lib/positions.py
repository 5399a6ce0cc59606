"""Positions: attention alone does not know the order of its tokens. Three ways to tell it."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .masks import positions as positions_of
from .shapes import (
    FLOATS,
    Array,
    ShapeError,
    as_array,
    check_array,
    check_base,
    check_count,
    check_size,
)

__all__ = [
    "alibi_bias",
    "rotary",
    "sinusoids",
]

Pairing = Literal["half", "interleaved"]


def sinusoids(
    T: int, d_model: int, *, base: float = 10000.0, dtype: npt.DTypeLike = np.float32
) -> Array:
    """Sines and cosines of growing wavelength, (T, d_model), to be added to the tokens.

    Column 2i holds sin(t / base^(2i/d_model)) and column 2i + 1 the cosine. Raises ShapeError for an
    odd d_model. Source: Vaswani et al. 2017, section 3.5.
    """
    T, dtype = check_size("T", T), _check_dtype(dtype)
    angles = rotation_angles(np.arange(T), check_count("d_model", d_model, least=1), base)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(T, d_model).astype(dtype)


def rotary(
    x: Array,
    positions: npt.ArrayLike | None = None,
    *,
    base: float = 10000.0,
    pairing: Pairing = "half",
) -> Array:
    """Rotate pairs of features by an angle that grows with the position; same shape and dtype.

    x (..., T, d) are queries or keys; `positions` (..., T), 0 to T - 1 by default, may be shifted or
    fractional. Pair i turns by position / base^(2i/d). `pairing` says which features make pair i:
    "half" i and i + d/2 (GPT-NeoX, Llama), "interleaved" 2i and 2i + 1 (the paper). Queries and keys
    must use the same. Scores then depend on content and on the signed difference of positions.
    Raises ShapeError for an odd d or positions that do not fit, ValueError for another pairing.
    Source: Su et al. 2021, equation 34.
    """
    check_array("x", x)
    if x.ndim < 2:
        raise ShapeError(f"x must be (..., T, d): x {x.shape}")
    cos, sin = rotation(x.shape, positions, base)
    first, second = rotary_pairs(x.shape[-1], pairing)
    out = np.empty_like(x)
    out[..., first] = x[..., first] * cos - x[..., second] * sin
    out[..., second] = x[..., second] * cos + x[..., first] * sin
    return out


def rotation(
    shape: tuple[int, ...], positions: npt.ArrayLike | None, base: float
) -> tuple[Array, Array]:
    """Cosine and sine (..., T, d/2) in float64, for x of `shape` (..., T, d). See `rotary`."""
    steps = np.arange(shape[-2]) if positions is None else as_array("positions", positions)
    if steps.dtype.kind not in "iuf":
        raise TypeError(f"positions must be real numbers: found {steps.dtype}")
    check_positions(steps.shape, shape)
    angles = rotation_angles(steps, shape[-1], base)
    return np.cos(angles), np.sin(angles)


def check_positions(positions: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Raise ShapeError unless positions of this shape fit x of `shape` (..., T, d)."""
    fits = len(positions) > 0 and positions[-1] == shape[-2]
    if fits:
        try:
            fits = np.broadcast_shapes(positions, shape[:-1]) == tuple(shape[:-1])
        except ValueError:
            fits = False
    if not fits:
        raise ShapeError(
            f"positions must broadcast to the axes (..., T) of x: positions {positions}, x {shape}"
        )


def rotation_angles(positions: npt.NDArray[Any], width: int, base: float) -> Array:
    """position / base^(2i/width) for i below width / 2: (..., T, width / 2), float64, radians."""
    frequencies = np.array(rotation_frequencies(width, base), dtype=np.float64)
    return positions[..., None].astype(np.float64) * frequencies


def rotation_frequencies(width: int, base: float) -> list[float]:
    """1 / base^(2i/width) for i below width / 2: the angle by which each pair turns in one step."""
    if check_size("width", width) % 2:
        raise ShapeError(
            f"features are turned in pairs, so their number must be even: found {width}"
        )
    check_base(base)
    return [float(base) ** (-i / width) for i in range(0, width, 2)]


def rotary_pairs(width: int, pairing: Pairing) -> tuple[slice, slice]:
    """The first and the second features of all pairs, as two slices of the width."""
    if pairing == "half":
        return slice(0, width // 2), slice(width // 2, None)
    if pairing == "interleaved":
        return slice(0, None, 2), slice(1, None, 2)
    raise ValueError(f"pairing must be 'half' or 'interleaved': found {pairing!r}")


def alibi_bias(
    heads: int, T: int, S: int | None = None, *, dtype: npt.DTypeLike = np.float32
) -> Array:
    """A penalty that grows with the distance, (H, T, S), for the `bias` of attention.

    Head h adds -slope · |i - j|, i counted from the lower right. The slopes are 2^(-8h/H) for
    h = 1 … H; where H is no power of two, those of the power below, then every other one of the
    power above. Source: Press et al. 2022, section 3.
    """
    dtype, slopes = _check_dtype(dtype), np.array(alibi_slopes(heads))
    penalty: Array = slopes[:, None, None] * signed_distance(T, S, np.arange)
    return penalty.astype(dtype)


def alibi_slopes(heads: int) -> list[float]:
    """How much one step costs, for each head; see `alibi_bias`."""
    heads = check_count("heads", check_size("heads", heads), least=1)
    power = 2 ** (heads.bit_length() - 1)
    return _geometric(power) + _geometric(2 * power)[::2][: heads - power]


def signed_distance(T: int, S: int | None, arange: Callable[[Any, Any], Any]) -> Any:
    """-|i - j|, (T, S), i counted from the lower right, of NumPy or torch as `arange` is."""
    i, j = positions_of(T, S, arange=arange)
    return -abs(i - j)


def _check_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    if found not in FLOATS:
        raise TypeError(f"dtype must be float16, float32 or float64: found {dtype!r}")
    return found


def _geometric(heads: int) -> list[float]:
    return [2 ** (-8 * h / heads) for h in range(1, heads + 1)]
