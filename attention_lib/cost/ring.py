"""What each process of a ring holds, computes and sends; also the example that torchrun starts."""

import os
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch import distributed as dist

from ..torch.ring import Ring, ring_attention
from ..torch.tiled import tiled_attention
from .counters import count_flops, count_sent_bytes, peak_live_bytes


class Share(NamedTuple):
    """What one process has: output and gradients of its slice, and the counts of what it did."""

    out: Tensor
    d_q: Tensor
    d_k: Tensor
    d_v: Tensor
    peak_bytes: int
    flops: int
    sent_bytes: int


def share(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Share:
    """Cut this process's slice of whole q, k and v (..., n, d), and attend to all of them in a ring.

    The gradients are those of half the sum of the squares of all outputs. Forward and backward are
    counted together, the slice's own q, k and v among the bytes; see `counters`.
    """
    ring = Ring.of(None)
    found: dict[str, Any] = {}

    def passes() -> None:
        results = _both_passes(ring_attention, (q, k, v), causal, ring)
        found.update(zip(Share._fields, results, strict=False))

    def with_bytes() -> None:
        found["peak_bytes"] = peak_live_bytes(passes)

    def with_sent() -> None:
        found["sent_bytes"] = count_sent_bytes(with_bytes)

    found["flops"] = count_flops(with_sent)
    return Share(**found)


def _both_passes(
    attend: Any, whole: Iterable[Tensor], causal: bool, ring: Ring
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    slices = (x.detach().tensor_split(ring.size, -2)[ring.rank] for x in whole)
    leaves = [x.clone().requires_grad_() for x in slices]
    out = attend(*leaves, causal=causal)
    d_q, d_k, d_v = torch.autograd.grad(out, leaves, out.detach())
    return out.detach(), d_q, d_k, d_v


def main() -> None:
    """The example: does each process get what one alone gets, and how many bytes does it take?"""
    gpu, tokens = torch.cuda.is_available(), 512
    if "RANK" in os.environ:  # torchrun started this
        if gpu:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl" if gpu else "gloo")
    ring, rng = Ring.of(None), torch.Generator().manual_seed(0)
    shape = 3, 16, tokens - tokens % ring.size, 128
    q, k, v = torch.randn(shape, generator=rng, dtype=torch.float64).to("cuda" if gpu else "cpu")
    for causal in (False, True):
        mine = share(q, k, v, causal)
        alone = partial(_both_passes, tiled_attention, (q, k, v), causal, Ring(0, 1, None))
        parts = [x.tensor_split(ring.size, -2)[ring.rank] for x in alone()]
        found = mine.out, mine.d_q, mine.d_k, mine.d_v
        apart = max(float((a - b).abs().max()) for a, b in zip(found, parts, strict=True))
        one = peak_live_bytes(alone)
        said = ring.gather((apart, mine.peak_bytes, mine.sent_bytes))
        if ring.rank == 0:
            apart, peak, sent = (max(column) for column in zip(*said, strict=True))
            print(f"{ring.size} processes, each with {mine.out.shape[-2]} tokens, causal {causal}:")
            print(f"    output and gradients within 1e-12 of one process: {apart < 1e-12}")
            print(f"    most bytes alive: {peak:,} a process, {one:,} in one alone; sent: {sent:,}")
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
