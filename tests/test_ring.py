"""Ring attention: any number of processes gives what one gives, in memory that falls with their number."""

from __future__ import annotations

import functools
import math
import os
import re
import subprocess
import sys
from multiprocessing import Pipe
from typing import Any

import pytest
import torch
from torch import Tensor

from attention_lib.cost.counters import count_sent_bytes
from attention_lib.torch import ShapeError, attention, processes
from attention_lib.torch.processes import run_processes
from attention_lib.torch.ring import ring_attention

from .notebooks import ROOT
from .reference import check_budget
from .ring_processes import SHARED, both, cases, inside, misbehave

SIZES = (1, 2, 3, 4)
WHOLE = cases()
HALF = ("float32", "float16", "bfloat16")


@functools.cache
def started(size: int) -> list[dict[str, Any]] | Exception:
    """One start for each size, also if it fails."""
    try:
        return run_processes(size, inside, WHOLE)
    except (RuntimeError, TimeoutError) as error:
        return error


def answers(size: int) -> list[dict[str, Any]]:
    """What each process of a ring of that size finds."""
    found = started(size)
    if isinstance(found, Exception):
        raise found
    return found


def joined(parts: list[list[Tensor]], of: list[Tensor]) -> list[Tensor]:
    """Whole results of those of the slices; the gradient of a shared number is a sum."""
    columns = zip(*parts, strict=True)
    return [
        torch.cat(column, -2) if whole.ndim > 1 else torch.stack(column).sum(0)
        for column, whole in zip(columns, of, strict=True)
    ]


def apart(found: list[Tensor], expected: list[Tensor]) -> float:
    """The largest difference, of numbers that are large in proportion to them."""
    pairs = zip(found, expected, strict=True)
    return max(
        float(((x - y).abs() / y.abs().clamp(min=1)).masked_fill(x.isnan() & y.isnan(), 0).max())
        if y.numel()
        else 0.0
        for x, y in pairs
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [name for name in WHOLE if name not in HALF])
def test_any_number_of_processes_gives_what_one_gives(name: str, size: int) -> None:
    """Outputs and gradients of q, k, v and a learned scale."""
    expected = both(attention, WHOLE[name])
    found = joined([answer[name] for answer in answers(size)], expected)
    assert [x.shape for x in found] == [x.shape for x in expected]
    assert apart(found, expected) < 1e-12


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", HALF)
def test_the_other_dtypes_are_as_exact_as_they_are_elsewhere(name: str, size: int) -> None:
    case = WHOLE[name]
    truth = both(
        attention, {key: x.double() if isinstance(x, Tensor) else x for key, x in case.items()}
    )
    noise = both(attention, case)
    found = joined([answer[name] for answer in answers(size)], noise)
    eps = torch.finfo(case["q"].dtype).eps
    for x, exact, plain in zip(found, truth, noise, strict=True):
        assert x.dtype == case["q"].dtype
        check_budget(x.double().numpy(), exact.numpy(), plain.double().numpy(), eps, factor=3)


@pytest.mark.parametrize("size", SIZES[1:])
def test_a_plain_average_of_the_blocks_is_refused(size: int) -> None:
    expected = both(attention, WHOLE["full"])
    found = joined([answer["averaged"] for answer in answers(size)], expected)
    assert apart(found, expected) > 0.01


@pytest.mark.parametrize("causal", [False, True])
def test_bytes_of_a_process_fall_in_proportion(causal: bool) -> None:
    """In slices of all tensors: 9 for one alone, 16 for three or more, whatever their number."""
    tensor = 4 * math.prod(SHARED)
    for size, slices in zip(SIZES, (9, 14, 16, 16), strict=True):
        peak = max(answer["share"][causal].peak_bytes for answer in answers(size))
        assert peak == pytest.approx(slices * tensor / size, rel=0.04)


@pytest.mark.parametrize("size", SIZES)
def test_what_is_sent_and_computed(size: int) -> None:
    """Keys and values go round twice, and once their gradients, one step more; hidden slices cost nothing."""
    tensor = 4 * math.prod(SHARED)
    products = 14 * SHARED[0] * SHARED[2]  # for a pair: two forward, five backward
    for rank, answer in enumerate(answers(size)):
        full, causal = answer["share"][False], answer["share"][True]
        slice_ = SHARED[1] // size
        sent = 2 * tensor // size * (2 * (size - 1) + size) if size > 1 else 0
        assert full.sent_bytes == causal.sent_bytes == sent
        assert full.flops == products * slice_ * SHARED[1]
        assert causal.flops == products * slice_ * (
            rank * slice_ + (slice_ + 16) // 2
        )  # 16 queries


def test_without_a_group_it_is_attention() -> None:
    for name in ("grouped, causal", "a batch of keys", "learned scale"):
        assert apart(both(ring_attention, WHOLE[name]), both(attention, WHOLE[name])) < 1e-12
    x = torch.ones(3, 5, 7)
    assert count_sent_bytes(lambda: ring_attention(x, x, x)) == 0
    with pytest.raises(ShapeError, match=r"as many queries as keys: q \(3, 5, 7\), k \(3, 4, 7\)"):
        ring_attention(x, x[:, 1:], x[:, 1:], causal=True)
    with pytest.raises(TypeError, match="q must be a torch tensor"):
        ring_attention([1.0], x, x)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"group must be one of torch\.distributed: found int"):
        ring_attention(x, x, x, group=3)  # type: ignore[arg-type]


REFUSED = {
    "unequal": ("ShapeError", "same shapes: found process 0: q (3, 4, 5), k (3, 4, 5)"),
    "dtypes": ("TypeError", "same kind: found process 0: float64 on cpu"),
    "gradients": ("TypeError", "causal=False, with gradients; process 1: float32 on cpu"),
    "T and S": ("ShapeError", "causal slices have as many queries as keys: q (3, 4, 5)"),
    "group": ("TypeError", "group must be one of torch.distributed: found int"),
}


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("what", REFUSED)
def test_all_processes_refuse_what_one_finds_wrong(what: str, size: int) -> None:
    kind, words = REFUSED[what]
    for answer in answers(size):
        assert answer[what][0] == kind
        assert words in answer[what][1]
    if what == "unequal":  # what was found in every process
        assert f"process {size - 1}: q (3, 6, 5), k (3, 6, 5), v (3, 6, 5)" in answer[what][1]


@pytest.mark.parametrize("size", SIZES[1:])
def test_a_mistake_of_one_process_is_told_to_all(size: int) -> None:
    first, *others = (answer["one wrong"] for answer in answers(size))
    assert first[1].startswith("q must be a torch tensor")
    for kind, words in others:
        assert kind == "TypeError"
        assert words.startswith("process 0 of the ring was refused: q must be a torch tensor")


@pytest.mark.parametrize("size", SIZES)
def test_it_is_differentiable_once_and_autocast_changes_nothing(size: int) -> None:
    for answer in answers(size):
        assert answer["twice"][0] == "RuntimeError"
        assert answer["autocast"]


@pytest.mark.parametrize("size", [3, 4])
def test_a_group_of_some_processes_is_a_ring_of_its_own(size: int) -> None:
    """Values 1, 2, … of the members, averaged; the process outside is told so."""
    outside, *members = (answer["few"] for answer in answers(size))
    assert outside == ("ValueError", "process 0 is not in the group")
    for out in members:
        torch.testing.assert_close(out, torch.full((1, 4, 5), size / 2))


# ---------------------------------------------------------------- starting processes


def test_a_process_that_raises_leaves_or_does_not_end_is_reported() -> None:
    with pytest.raises(RuntimeError, match=r"^process 1 of 2: ValueError: no$"):
        run_processes(2, misbehave, "raise")
    with pytest.raises(RuntimeError, match=r"^process 1 of 2: it ended without an answer$"):
        run_processes(2, misbehave, "leave")  # not 0, which misses it
    with pytest.raises(RuntimeError, match=r"process 0 of 1: .* more than 1 s of CPU time$"):
        run_processes(1, misbehave, "spin", seconds=1)
    with pytest.raises(TimeoutError, match=r"^processes \[0\] did not end in 0\.5 s$"):
        run_processes(1, misbehave, "sleep", guard=0.5)
    with pytest.raises(ValueError, match="count must be at least 1: found 0"):
        run_processes(0, misbehave, "")


def test_no_process_outlives_the_one_that_started_it() -> None:
    program = (
        "from attention_lib.torch.processes import run_processes; "
        "from tests.ring_processes import misbehave; run_processes(2, misbehave, 'sleep')"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    with started:
        assert started.stdout is not None
        assert {started.stdout.readline() for _ in "ab"} == {"0 sleeps\n", "1 sleeps\n"}
        started.kill()
        assert started.stdout.read() == ""  # it is read until the last has closed it


def test_of_two_that_raise_the_first_is_told() -> None:
    """The other, here of a lower rank, may have failed for want of it."""
    pipes = [Pipe(duplex=False) for _ in range(2)]
    for when, (_, said) in zip((2.0, 1.0), pipes, strict=True):
        said.send((when, f"ValueError: at {when}"))
    with pytest.raises(RuntimeError, match=r"^process 1 of 2: ValueError: at 1\.0$"):
        processes._collect([heard for heard, _ in pipes], 10)


def test_the_example_runs_under_torchrun() -> None:
    command = "-m torch.distributed.run --standalone --nproc-per-node 2 -m attention_lib.cost.ring"
    assert command in str(sys.modules[ring_attention.__module__].__doc__)
    done = subprocess.run(
        [sys.executable, *command.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
    )
    assert done.stdout.count("output and gradients within 1e-12 of one process: True") == 2
    first = "2 processes, each with 256 tokens, causal False:"
    assert done.stdout.startswith(first)
    numbers = [int(x.replace(",", "")) for x in re.findall(r"[\d,]{9,}", done.stdout)]
    each, alone, _ = numbers[:3]
    assert each < alone
