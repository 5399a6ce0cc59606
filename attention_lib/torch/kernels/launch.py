"""How the kernels are started: on which tiles, for which sizes, and where they cannot run.

Source of the sizes: what `triton.compile` reports for compute capability 8.0 and 9.0.
"""

import importlib.util
import os
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..shapes import accumulator

WIDEST, WIDEST_FLOAT32 = 256, 128


class Tile(NamedTuple):
    """How much of the scores a program holds at once, by how many warps; loads in flight."""

    queries: int
    keys: int
    warps: int = 4
    stages: int = 1


# For 16-bit numbers, by kernel and widest head: within the shared memory of every GPU from compute
# capability 8.0 on, and without spilled registers if the width is a multiple of 8 (that rows of other
# widths are not aligned takes more); then, by padded width, what that of 9.0 has room for.
TILES = {
    "forward": {
        64: Tile(128, 64, 8, 3),
        127: Tile(128, 32, 8, 3),  # the mask of the padded columns needs registers
        128: Tile(128, 64, 8, 3),
        256: Tile(64, 32, 8, 2),
    },
    "backward_q": {64: Tile(128, 64, 8, 2), 128: Tile(64, 64, 8, 2), 256: Tile(32, 32, 8)},
    "backward_kv": {64: Tile(32, 128, 8, 2), 128: Tile(32, 64, 8, 2), 256: Tile(32, 32, 8)},
}
HOPPER = {
    "forward": {64: Tile(128, 64, 4, 3), 128: Tile(128, 128, 8, 2)},
    "backward_q": {128: Tile(64, 128, 8, 2), 256: Tile(64, 32, 8, 2)},
    "backward_kv": {64: Tile(64, 128, 8, 2), 128: Tile(32, 128, 8, 2)},
}
SMALL = Tile(32, 32)  # for float32, which takes twice the room, and where time is no matter


def choose_tile(name: str, dtype: torch.dtype, width: int, capability: tuple[int, int]) -> Tile:
    """The tile of a kernel for the wider of d_k and d_v."""
    if dtype.itemsize > 2:
        return SMALL
    hopper = HOPPER[name].get(max(64, pad(width))) if capability[0] == 9 else None
    return hopper or next(tile for widest, tile in TILES[name].items() if width <= widest)


def pad(width: int) -> int:
    """The next power of 2, and at least the 16 that a tensor core multiplies at once."""
    return max(16, 1 << (width - 1).bit_length())


def constants(
    dtype: torch.dtype, d_k: int, d_v: int, causal: bool, careful: bool, tile: Tile
) -> dict[str, Any]:
    """What a kernel is compiled for. tf32x3: a product of float32 as three of its halves."""
    import triton.language as tl

    return {
        "CAUSAL": causal,
        "PRECISION": "tf32x3" if dtype == torch.float32 else "tf32",
        "WIDE": tl.float64 if dtype == torch.float64 else tl.float32,
        "D_K": d_k,
        "D_V": d_v,
        "PAD_K": pad(d_k),
        "PAD_V": pad(d_v),
        "QUERIES": tile.queries,
        "KEYS": tile.keys,
        "CAREFUL": careful,
    }


def forward(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float, tile: Tile | None = None
) -> tuple[Tensor, Tensor]:
    """Output (B, H, T, d_v) and log-sum-exp (B, H, T) of q (B, H, T, d_k), k and v (B, Hk, S, ...)."""
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = q.new_empty(*q.shape[:3], v.shape[3])
    lse = q.new_empty(q.shape[:3], dtype=accumulator(q.dtype))
    _launch("forward", [q, k, v, out, lse], [v], causal, scale, tile)
    return out, lse


def backward(
    d_out: Tensor,
    d_lse: Tensor | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    causal: bool,
    scale: float,
    tile: Tile | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of q, k and v, from those of the output and the log-sum-exp."""
    d_out, q, k, v = d_out.contiguous(), q.contiguous(), k.contiguous(), v.contiguous()
    mean = (d_out.to(lse.dtype) * out.to(lse.dtype)).sum(-1)
    given = [q, k, v, d_out, lse, mean if d_lse is None else mean - d_lse]
    d_q, d_k, d_v = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    _launch("backward_q", [*given, d_q], [k], causal, scale, tile)
    _launch("backward_kv", [*given, d_k, d_v], [q, k, d_out], causal, scale, tile)
    return d_q, d_k, d_v


def _launch(
    name: str,
    tensors: list[Tensor],
    factors: list[Tensor],
    causal: bool,
    scale: float,
    tile: Tile | None,
) -> None:
    """Run a kernel. If some see what others may not, run it once more, carefully.

    The careful programs leave at once unless one of `factors`, by which the kernel multiplies hidden
    zeros, is infinite or NaN. Only the GPU knows that, and nothing here waits for it.
    """
    from . import flash as triton_kernel

    q, _, v, *_ = tensors
    (B, heads, T, d_k), (_, key_heads, S, d_v) = q.shape, v.shape
    if tile is None and q.device.type == "cuda":
        capability = torch.cuda.get_device_capability(q.device)
        tile = choose_tile(name, q.dtype, max(d_k, d_v), capability)
    wide = accumulator(q.dtype)
    sums = [x.sum(dtype=wide) for x in factors]
    finite = sums[0] if len(sums) == 1 else torch.stack(sums).sum()
    for careful in (False, True) if causal else (False,):
        tile = SMALL if careful or tile is None else tile
        programs = B * heads * -(-T // tile.queries)
        if name == "backward_kv":
            programs = B * key_heads * -(-S // tile.keys)
        if programs:
            with torch.cuda.device_of(q):  # type: ignore[no-untyped-call]
                getattr(triton_kernel, f"{name}_kernel")[(programs,)](
                    *tensors,
                    *(finite, scale, T, S, heads // max(1, key_heads)),
                    **constants(q.dtype, d_k, d_v, causal, careful, tile),
                    num_warps=tile.warps,
                    num_stages=tile.stages,
                )


def why_not(q: Tensor, v: Tensor) -> str | None:
    """Why the kernels cannot run for these tensors; None if they can."""
    width, device, dtype = max(q.shape[-1], v.shape[-1]), q.device, q.dtype
    if width > WIDEST:
        return f"its tiles hold heads up to {WIDEST} wide: found {width}"
    for name, x in (("queries", q), ("keys", v)):
        if x.shape[-2] * pad(width) >= 2**31:
            most = 2**31 // pad(width) - 1
            return f"it counts within a head in 32 bits, up to {most} {name}: found {x.shape[-2]}"
    if device.type == "meta":
        return None  # which needs shapes only
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed (on Linux: pip install 'self-attention-book[gpu]')"
    if device.type != "cuda":
        return _why_not_interpreted(device, dtype)
    capability = torch.cuda.get_device_capability(device)
    if capability < (8, 0):
        return (
            "it is made for tensor cores of compute capability 8.0 or more: "
            f"found {capability[0]}.{capability[1]}"
        )
    if dtype == torch.float64:
        return "on a GPU it has no float64"
    if dtype == torch.float32 and width > WIDEST_FLOAT32:
        return f"float32 heads fit its tiles up to {WIDEST_FLOAT32} wide: found {width}"
    return None


def _why_not_interpreted(device: torch.device, dtype: torch.dtype) -> str | None:
    if device.type != "cpu" or os.environ.get("TRITON_INTERPRET") != "1":
        return (
            f"it runs on CUDA devices: found {device.type} (with TRITON_INTERPRET=1 set before "
            "Python starts, Triton interprets it on a CPU, slowly)"
        )
    if dtype == torch.bfloat16:
        return "Triton's interpreter multiplies bfloat16 wrongly"
    return None
