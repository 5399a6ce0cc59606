"""Ring attention: one sequence cut over many processes; keys and values travel from one to the next.

The example, on as many processes of this machine as torchrun starts, or on several machines:

    python -m torch.distributed.run --standalone --nproc-per-node 2 -m attention_lib.cost.ring
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..shapes import ShapeError, describe
from .shapes import accumulator, check_attention, leading_axes, scale_for
from .tiled import add_gradients, attend_apart, tiled_attention
from .visibility import no_autocast


def ring_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = False,
    scale: float | Tensor | None = None,
    group: "dist.ProcessGroup | None" = None,
) -> Tensor:
    """What `attention` gives for a sequence of which each process of `group` holds one slice.

    The slices are contiguous, in the order of the ranks, and of equal shapes: q (..., Hq, T, d_k),
    k (..., Hk, S, d_k), v (..., Hk, S, d_v) give the output of these queries, (..., Hq, T, d_v).
    The other arguments are those of `attention`; `causal` needs T = S.

    group   by default all processes, or this one alone if torch.distributed was not initialised

    Queries stay; keys and values go round the ring, in their own dtype, the next while these are
    used. So a process never holds the whole sequence: a training step takes the bytes of up to 16
    slices, where one process alone takes those of 9 whole sequences. Under `causal`, slices that lie
    later are passed on and not computed; the last process computes the most.

    Differentiable once. In the backward pass keys and values go round again and take their gradients
    along, home. A learned scale gets in each process what that one's queries say: add it up.

    All processes of the group must make this call, with the same group, and the backward pass; one that
    is not there keeps the others waiting until the backend gives up. If one finds anything else
    wrong, all raise: ShapeError where slices differ in shape, TypeError where they differ in dtype,
    kind of device, `causal`, or in whether gradients are wanted, and as `attention` does. ValueError
    in a process outside the group. Source: Liu et al. 2023, section 3; the ring itself, with whole rows
    of scores, Li et al. 2021.
    """
    ring = Ring.of(group)
    _check_together(ring, q, k, v, causal, scale)
    if ring.size == 1 or not q.numel() or not k.numel():
        return tiled_attention(q, k, v, causal=causal, scale=scale)  # type: ignore[return-value]
    dtype, factor = q.dtype, scale_for(q, scale)
    grouped = q.ndim > 2 and k.ndim > 2 and k.shape[-3] not in (1, q.shape[-3])
    with no_autocast(q.device):
        q = q.to(accumulator(dtype)) * factor
        if grouped:  # (..., Hk, Hq / Hk, T, d_k): an axis more over which keys and values broadcast
            heads = k.shape[-3], q.shape[-3] // k.shape[-3]
            q = q.reshape(*q.shape[:-3], *heads, *q.shape[-2:])
            k, v = k.unsqueeze(-3), v.unsqueeze(-3)
        leading = leading_axes(q, k, v)
        q = q.expand(*leading, *q.shape[-2:])
        out: Tensor = RingAttention.apply(q, k, v, bool(causal), ring)  # type: ignore[no-untyped-call]
    return (out.flatten(-4, -3) if grouped else out).to(dtype)


class RingAttention(torch.autograd.Function):
    """From q, scaled, in the dtype of the sums and with all leading axes: the output of its rows."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, causal: bool, ring: "Ring") -> Tensor:
        for owner, here in ring.visits(k, v):
            if owner == ring.rank:  # the first
                mine = attend_apart(q, *_widened(here, q), None, None, causal)
            elif owner < ring.rank or not causal:
                _merge(mine, attend_apart(q, *_widened(here, q), None, None, False))
        ctx.save_for_backward(q, k, v, *mine)
        ctx.causal, ctx.ring = causal, ring
        return mine[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, out, top, total = ctx.saved_tensors
        causal, ring = ctx.causal, ctx.ring
        with no_autocast(q.device):
            mean, d_q = (d_out * out).sum(-1, keepdim=True), q.new_zeros(q.shape)
            rows = q, top, d_out, mean, d_q, total
            for owner, here in ring.visits(k, v):
                told: list[Tensor] = []
                if owner <= ring.rank or not causal:
                    told = _gradients(rows, here, causal and owner == ring.rank)
                if owner == ring.rank:
                    arrive = ring.pass_on(*told)
                else:  # what others told these keys and values comes after them
                    arrive = ring.pass_on(*_added(arrive(), told))
            d_k, d_v = arrive()  # home
        return d_q, d_k.to(k.dtype), d_v.to(v.dtype), None, None


def _widened(here: list[Tensor], q: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values in the dtype of q, and with its leading axes."""
    k, v = (x.to(q.dtype).expand(*q.shape[:-2], *x.shape[-2:]) for x in here)
    return k, v


def _gradients(rows: tuple[Tensor, ...], here: list[Tensor], causal: bool) -> list[Tensor]:
    """Add to d_q, one of the rows, what these keys say; return what the rows say to them."""
    columns = _widened(here, rows[0])
    told = [x.new_zeros(x.shape) for x in columns]
    add_gradients(rows, (*columns, *told), None, None, causal)
    return [d.sum_to_size(x.shape) for d, x in zip(told, here, strict=True)]


def _added(tensors: list[Tensor], more: list[Tensor]) -> list[Tensor]:
    """The tensors, after those of `more` were added to them in place."""
    for x, y in zip(tensors, more, strict=False):
        x += y
    return tensors


def _merge(some: tuple[Tensor, ...], more: tuple[Tensor, ...]) -> None:
    """Join `attend_apart` over more keys into that over some: each counts by its sum of exponentials."""
    (_, top, total), (_, more_top, _) = some, more
    for out, _, sum_ in (some, more):
        out.masked_fill_(sum_ == 0, 0)  # all scores are -inf, and it is 0 / 0
    new = torch.maximum(top, more_top)
    sums = [sum_.mul_(torch.exp(its_top - new)) for _, its_top, sum_ in (some, more)]
    top.copy_(new)
    both = sums[0] + sums[1]
    for (out, *_), sum_ in zip((some, more), sums, strict=True):
        out.mul_(sum_ / both)
    some[0].add_(more[0])
    total.copy_(both)


class Ring(NamedTuple):
    """The processes of a group; each sends to the next and receives from the one before."""

    rank: int
    size: int
    group: Any

    @classmethod
    def of(cls, group: Any) -> "Ring":
        """That of the group, or of this process alone. Raises TypeError or ValueError."""
        if group is None:
            if not (dist.is_available() and dist.is_initialized()):
                return cls(0, 1, None)
            group = dist.group.WORLD
        if group == dist.GroupMember.NON_GROUP_MEMBER:
            raise ValueError(f"process {dist.get_rank()} is not in the group")
        if not isinstance(group, dist.ProcessGroup):
            raise TypeError(f"group must be one of torch.distributed: found {describe(group)}")
        return cls(dist.get_rank(group), dist.get_world_size(group), group)

    def visits(self, *slices: Tensor) -> Iterator[tuple[int, list[Tensor]]]:
        """The owner and the slices of each process, its own first; the next come meanwhile."""
        here = list(slices)
        for step in range(self.size):
            arrive = self.pass_on(*here) if step + 1 < self.size else None
            yield (self.rank - step) % self.size, here
            if arrive is not None:
                here[:] = arrive()  # in place: then nobody else keeps the old ones

    def pass_on(self, *slices: Tensor) -> Callable[[], list[Tensor]]:
        """Start to send these to the next process; the function waits for what comes instead."""
        sent = [x.contiguous() for x in slices]
        come = [torch.empty_like(x) for x in sent]
        after, before = (
            dist.get_global_rank(self.group, (self.rank + step) % self.size) for step in (1, -1)
        )
        operations = [dist.P2POp(dist.isend, x, after, self.group) for x in sent]
        operations += [dist.P2POp(dist.irecv, x, before, self.group) for x in come]
        works = dist.batch_isend_irecv(operations)

        def arrive() -> list[Tensor]:
            for work in works:
                work.wait()
            works.clear()  # they hold what was sent, as `sent` does while it is being read
            sent.clear()
            return come

        return arrive

    def gather(self, mine: object) -> list[Any]:
        """What each process says, by rank."""
        said: list[Any] = [mine] * self.size
        if self.size > 1:
            dist.all_gather_object(said, mine, self.group)
        return said


def _check_together(ring: Ring, q: Any, k: Any, v: Any, causal: Any, scale: Any) -> None:
    """Raise ShapeError, TypeError or ValueError in every process, or in none."""
    mine: Any
    try:
        check_attention(q, k, v, None, None, causal, scale)
        mine = {"shapes": f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"}
        if causal and q.shape[-2] != k.shape[-2]:
            raise ShapeError(f"causal slices have as many queries as keys: {mine['shapes']}")
        wanted = torch.is_grad_enabled() and any(
            isinstance(x, Tensor) and x.requires_grad for x in (q, k, v, scale)
        )
        without = "with" if wanted else "without"
        kind = str(q.dtype).removeprefix("torch.")
        mine["kind"] = f"{kind} on {q.device.type}, causal={bool(causal)}, {without} gradients"
    except (TypeError, ValueError) as error:
        mine = error
    said = ring.gather(mine)
    if isinstance(mine, Exception):
        raise mine
    for rank, other in enumerate(said):
        if isinstance(other, Exception):
            raise type(other)(f"process {rank} of the ring was refused: {other}")
    for what, error_of in (("shapes", ShapeError), ("kind", TypeError)):
        found = [other[what] for other in said]
        if len(set(found)) > 1:
            each = "; ".join(f"process {rank}: {x}" for rank, x in enumerate(found))
            raise error_of(f"the slices of all processes must be of the same {what}: found {each}")
