"""The positions of `attention_lib.positions` as tensors; what each means is said there, once."""

from typing import Any

import torch
from torch import Tensor

from ..positions import (
    Pairing,
    alibi_slopes,
    check_positions,
    rotary_pairs,
    rotation_frequencies,
    signed_distance,
)
from ..shapes import ShapeError, as_array, check_count, check_size
from .shapes import accumulator, check_dtype, check_numbers, check_tensor

__all__ = [
    "alibi_bias",
    "rotary",
    "sinusoids",
]


def sinusoids(
    T: int,
    d_model: int,
    *,
    base: float = 10000.0,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """Sines and cosines of growing wavelength, (T, d_model): see `attention_lib.sinusoids`."""
    check_dtype(dtype)
    T, d_model = check_size("T", T), check_count("d_model", d_model, least=1)
    angles = _angles(torch.arange(T), rotation_frequencies(d_model, base))
    table = torch.stack([angles.sin(), angles.cos()], -1).reshape(T, d_model)
    return table.to(device=device, dtype=dtype)


def rotary(
    x: Tensor,
    positions: Any = None,
    *,
    base: float = 10000.0,
    pairing: Pairing = "half",
) -> Tensor:
    """Rotate pairs of features by an angle that grows with the position, as `attention_lib.rotary`.

    x (..., T, d); positions (..., T), 0 to T - 1 by default. Angles are made in float64, so positions
    of a million stay exact in half precision. Source: Su et al. 2021, equation 34.
    """
    check_tensor("x", x)
    if x.ndim < 2:
        raise ShapeError(f"x must be (..., T, d): x {tuple(x.shape)}")
    at: Any = positions
    if isinstance(positions, Tensor):
        check_numbers("positions", positions)
        if positions.dtype == torch.bool or positions.is_complex():
            found = str(positions.dtype).removeprefix("torch.")
            raise TypeError(f"positions must be real numbers: found {found}")
    elif positions is None:
        at = torch.arange(x.shape[-2])
    else:
        at = as_array("positions", positions)
        if at.dtype.kind not in "iuf":
            raise TypeError(f"positions must be real numbers: found {at.dtype}")
        at = torch.as_tensor(at.astype(float))
    check_positions(tuple(at.shape), tuple(x.shape))
    first, second = rotary_pairs(x.shape[-1], pairing)
    wide = accumulator(x.dtype)
    angles = _angles(at, rotation_frequencies(x.shape[-1], base))
    cos, sin = (table.to(device=x.device, dtype=wide) for table in (angles.cos(), angles.sin()))
    a, b = x[..., first].to(wide), x[..., second].to(wide)
    turned = a * cos - b * sin, b * cos + a * sin
    if pairing == "half":
        return torch.cat(turned, -1).to(x.dtype)
    return torch.stack(turned, -1).flatten(-2).to(x.dtype)


def alibi_bias(
    heads: int,
    T: int,
    S: int | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """A penalty that grows with the distance, (H, T, S): see `attention_lib.alibi_bias`."""
    check_dtype(dtype)
    slopes = torch.tensor(alibi_slopes(heads), dtype=torch.float64)
    penalty = signed_distance(T, S, torch.arange)
    return (slopes[:, None, None] * penalty).to(device=device, dtype=dtype)


def _angles(positions: Tensor, frequencies: list[float]) -> Tensor:
    """(..., T, d / 2) in float64, which not every device has."""
    if positions.device.type == "mps":
        positions = positions.cpu()
    at = positions.to(torch.float64)[..., None]
    return at * torch.tensor(frequencies, dtype=torch.float64, device=at.device)
