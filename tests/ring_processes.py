"""What tests/test_ring.py asks of each process; a module of its own, since each loads it anew."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from attention_lib.cost.ring import share
from attention_lib.torch import ring, tiled
from attention_lib.torch.ring import ring_attention

merge = ring._merge
TOKENS = 24  # 1, 2, 3 and 4 divide it
SHARED = 2, 192, 256  # heads, tokens and width where bytes are counted, float32
Case = dict[str, Any]


def tensors(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float64) -> Case:
    names = ("q", "k", "v", "d_out")
    drawn = (
        torch.from_numpy(np.random.default_rng(i).normal(size=s)).to(dtype)
        for i, s in enumerate(shapes)
    )
    return dict(zip(names, drawn, strict=True))


def cases() -> dict[str, Case]:
    """q, k, v and the gradient of the output, whole, with the options of the call."""
    n, same = TOKENS, [(2, 3, TOKENS, 5)] * 4
    grouped = (2, 6, n, 5), (2, 3, n, 5), (2, 3, n, 7), (2, 6, n, 7)
    shared = (2, 6, n, 5), (1, n, 5), (1, n, 7), (2, 6, n, 7)
    batch = (6, n, 5), (2, 3, n, 5), (3, n, 7), (2, 6, n, 7)
    learned = torch.tensor([0.3], dtype=torch.float64)
    far = tensors(*same)
    far["k"] *= 300  # scores that need their maximum, and blocks of very unequal weight
    endless = tensors(*same)
    endless["q"][..., 0].abs_()
    endless["k"][..., n // 2 :, 0] = -torch.inf  # in rings of two or more, all keys of the last
    equal = tensors(*same)
    equal["q"][:], equal["k"][:] = 300, -300  # beside such scores the log of a sum loses digits
    found: dict[str, Case] = {
        "full": tensors(*same),
        "causal": tensors(*same) | {"causal": True},
        "grouped": tensors(*grouped),
        "grouped, causal": tensors(*grouped) | {"causal": True},
        "one key head": tensors(*shared) | {"causal": True, "scale": 0.7},
        "a batch of keys": tensors(*batch) | {"causal": True},
        "no heads": tensors(*[(n, 5)] * 4) | {"causal": True},
        "more keys": tensors((3, n, 5), (3, 2 * n, 5), (3, 2 * n, 7), (3, n, 7)),
        "learned scale": tensors(*same) | {"scale": learned},
        "far": far | {"causal": True},
        "a slice of -inf": endless,
        "equal scores of -2e5": equal | {"causal": True},
        "no width of values": tensors((3, n, 5), (3, n, 5), (3, n, 0), (3, n, 0)),
        "no queries": tensors((3, 0, 5), (3, n, 5), (3, n, 7), (3, 0, 7)),
        "no keys": tensors((3, n, 5), (3, 0, 5), (3, 0, 7), (3, n, 7)),
    }
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        found[name] = tensors(*grouped, dtype=dtype) | {"causal": True}
    return found


def both(attend: Callable[..., Any], case: Case) -> list[Tensor]:
    """Output and gradients of all tensors that come in."""
    case = dict(case)
    d_out = case.pop("d_out")
    leaves = {
        name: x.detach().clone().requires_grad_()
        for name, x in case.items()
        if isinstance(x, Tensor)
    }
    out = attend(**case | leaves)
    return [out.detach(), *torch.autograd.grad(out, list(leaves.values()), d_out)]


def cut(x: Any, strided: bool = False) -> Any:
    """This process's slice of whole tensors; `strided`, one that is not contiguous."""
    if not isinstance(x, Tensor) or x.ndim < 2:
        return x
    x = x.tensor_split(dist.get_world_size(), -2)[dist.get_rank()]
    return x.mT.contiguous().mT if strided else x


def refusal(call: Callable[[], object]) -> tuple[str, str]:
    """The kind and the words of what a call raises."""
    try:
        call()
    except (TypeError, ValueError, RuntimeError) as error:
        return type(error).__name__, str(error)
    return "nothing", ""


def average(some: tuple[Tensor, ...], more: tuple[Tensor, ...]) -> None:
    """A wrong way to join two blocks."""
    out = (some[0] + more[0]) / 2
    merge(some, more)
    some[0].copy_(out)


def inside(whole: dict[str, Case]) -> dict[str, Any]:
    """All that is asked of one process."""
    rank, size = dist.get_rank(), dist.get_world_size()
    found: dict[str, Any] = {}
    for name, case in whole.items():
        mine = {key: cut(x, strided=name == "causal") for key, x in case.items()}
        found[name] = both(ring_attention, mine)
    ring._merge = average
    mine = {key: cut(x) for key, x in whole["full"].items()}
    found["averaged"] = both(ring_attention, mine)
    ring._merge = merge
    before = tiled.QUERIES, tiled.KEYS
    tiled.QUERIES = tiled.KEYS = 32  # so that its buffers are small beside a slice
    try:
        found["share"] = {}
        for causal in (False, True):
            q, k, v = torch.ones(3, *SHARED)
            found["share"][causal] = share(q, k, v, causal)
    finally:
        tiled.QUERIES, tiled.KEYS = before

    x = torch.ones(3, 4 + 2 * (rank == size - 1), 5)
    found["unequal"] = refusal(lambda: ring_attention(x, x, x))
    odd = torch.ones(3, 4, 5, dtype=torch.float32 if rank else torch.float64)
    found["dtypes"] = refusal(lambda: ring_attention(odd, odd, odd))
    y = torch.ones(3, 4, 5, requires_grad=rank == 0)
    found["gradients"] = refusal(lambda: ring_attention(y, y, y))
    z: Any = torch.ones(3, 4, 5) if rank else "z"
    found["one wrong"] = refusal(lambda: ring_attention(z, z, z))
    longer = torch.ones(3, 8, 5)
    found["T and S"] = refusal(lambda: ring_attention(y, longer, longer, causal=True))

    y = torch.ones(3, 4, 5, requires_grad=True)
    grad = torch.autograd.grad
    found["twice"] = refusal(
        lambda: grad(grad(ring_attention(y, y, y).sum(), y, create_graph=True)[0].sum(), y)
    )
    mine = {key: cut(x) for key, x in whole["float32"].items()}
    with torch.autocast("cpu", torch.bfloat16):
        inside_autocast = both(ring_attention, mine)
    found["autocast"] = all(map(torch.equal, inside_autocast, found["float32"]))

    few = dist.new_group([*range(1, size)]) if size > 2 else None
    if few is not None:  # in it they have other ranks
        y = torch.ones(1, 4, 5) * rank
        words = refusal(lambda: found.update(few=ring_attention(y, 0 * y, y, group=few)))
        found.setdefault("few", words)
    found["group"] = refusal(lambda: ring_attention(x, x, x, group=3))  # type: ignore[arg-type]
    return found


def misbehave(how: str) -> int:
    if how == "raise" and dist.get_rank() == 1:
        raise ValueError("no")
    if how == "leave" and dist.get_rank() == dist.get_world_size() - 1:
        os._exit(3)
    if how == "leave":
        dist.barrier()
    while how == "spin":
        pass
    if how in ("raise", "sleep"):
        print(f"{dist.get_rank()} sleeps", flush=True)
        time.sleep(10_000)
        print("and wakes")
    return 7
