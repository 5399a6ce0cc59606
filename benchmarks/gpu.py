"""The kernel on a GPU: `python -m benchmarks.gpu`, under six minutes, with one free NVIDIA GPU from 8.0 on.

First whether it is right, against float64; if not, the cases that are wrong, and nothing is timed. Then
whether the shipped tiles are the fastest. Then forward and backward beside every backend of torch's
scaled_dot_product_attention, pinned one by one. The results go to attention_lib/cost/gpu.json, where
chapter 6 finds them. `--dry` does all of it on a CPU, interpreted and tiny, and its times mean nothing.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from tqdm import tqdm

from attention_lib.cost import gpu_results
from attention_lib.cost.gpu_results import OURS, Results, Row, TileRow
from attention_lib.torch import attention
from attention_lib.torch.kernels import launch as triton_launch
from attention_lib.torch.kernels.launch import Tile, choose_tile

# Seconds since the start: by then the tiles, and all, are to be done. What is not is left out, and said.
TILES_UNTIL, ALL_UNTIL = 190.0, 340.0
# By how much of its length an output or a gradient may differ from float64's.
LIMITS = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}
BACKENDS = {
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "FlashAttention": SDPBackend.FLASH_ATTENTION,
    "memory-efficient": SDPBackend.EFFICIENT_ATTENTION,
    "torch's default": None,
}
KERNELS = ("forward", "backward_q", "backward_kv")
# (queries, keys, warps, stages), tried besides the shipped one.
CANDIDATES = {
    "forward": [(128, 64, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (64, 64, 4, 3)],
    "backward_q": [(128, 64, 8, 2), (64, 64, 4, 2), (64, 128, 8, 2), (64, 64, 8, 2)],
    "backward_kv": [(64, 128, 8, 2), (32, 128, 8, 2), (64, 64, 4, 2), (32, 64, 8, 2)],
}


class Plan(NamedTuple):
    """What is measured, and on what."""

    device: str
    dtype: torch.dtype
    tokens: int  # of all sequences together
    lengths: tuple[int, ...]
    widths: tuple[int, ...]
    d_model: int  # heads · width
    square: int  # of the matrices that are multiplied for the ceiling
    tiles: int | None = None  # the most candidates of a kernel


FULL = Plan("cuda", torch.bfloat16, 16384, (2048, 16384), (64, 128), 2048, 8192)
DRY = Plan("cpu", torch.float32, 32, (16, 32), (16,), 16, 64, tiles=1)


class Case(NamedTuple):
    """One comparison with float64."""

    dtype: torch.dtype
    heads: int
    key_heads: int
    queries: int
    keys: int
    width: int
    causal: bool


def cases(dry: bool) -> list[Case]:
    """Lengths from one to more than a tile, fewer queries than keys and more, grouped heads, odd widths.

    Each compiles up to six kernels, which takes most of the time.
    """
    shapes = [
        (4, 1, 257, 257, 64),
        (2, 2, 100, 333, 64),
        (2, 2, 333, 100, 128),
        (4, 2, 512, 512, 128),
    ]
    shapes += [(2, 1, 129, 129, 16), (2, 2, 130, 70, 80), (4, 2, 1, 300, 64), (2, 2, 31, 1, 64)]
    few = shapes[:1] + shapes[3:4]
    wanted = [(torch.bfloat16, shapes), (torch.float16, few), (torch.float32, few)]
    if dry:  # whose interpreter has float64, and no bfloat16
        shapes = [(2, 1, 33, 37, 16), (2, 2, 37, 33, 12)]
        wanted = [(torch.float64, shapes), (torch.float32, shapes)]
    return [
        Case(dtype, *shape, causal)
        for dtype, sizes in wanted
        for shape in sizes
        for causal in (True, False)
    ]


def error(case: Case, device: str) -> float:
    """The largest relative error of output and gradients; infinite if one of them is not finite."""
    generator = torch.Generator().manual_seed(hash(case[1:]) % 2**31)

    def draw(heads: int, n: int) -> Tensor:
        x = torch.randn(2, heads, n, case.width, generator=generator, dtype=torch.float64)
        return x.to(case.dtype).to(device)

    leaves = [draw(case.heads, case.queries)]
    leaves += [draw(case.key_heads, case.keys), draw(case.key_heads, case.keys)]
    d_out = draw(case.heads, case.queries)

    def run(backend: str, *x: Tensor) -> list[Tensor]:
        given = [y.detach().requires_grad_() for y in x[:3]]
        out = attention(*given, causal=case.causal, backend=backend)
        assert isinstance(out, Tensor)
        return [out.detach(), *torch.autograd.grad(out, given, x[3])]

    found = run("triton", *leaves, d_out)
    exact = run("dense", *(x.double() for x in (*leaves, d_out)))
    # A gradient that is 0, as that of a query with one key, has no length to compare with.
    lengths = [max(float(x.norm()), 0.01 * x.numel() ** 0.5) for x in exact]
    compared = zip(found, exact, lengths, strict=True)
    errors = [float((x.double() - y).norm()) / length for x, y, length in compared]
    return max(e if e == e else float("inf") for e in errors)


def check(plan: Plan, dry: bool) -> tuple[int, list[str]]:
    """How many cases were right, and a line for each that was not."""
    right, wrong = 0, []
    for case in tqdm(cases(dry), "correct?", leave=False):
        try:
            found = error(case, plan.device)
        except Exception as problem:  # the compiler's, the driver's: each is a line of the list
            wrong.append(f"{_named(case)}: {type(problem).__name__}: {_first_line(problem)}")
            continue
        if found <= LIMITS[case.dtype]:
            right += 1
        else:
            wrong.append(f"{_named(case)}: error {found:.1e}, allowed {LIMITS[case.dtype]:.0e}")
    return right, wrong


def _named(case: Case) -> str:
    dtype = str(case.dtype).removeprefix("torch.")
    return (
        f"{dtype}, {case.heads} heads on {case.key_heads}, {case.queries} queries, {case.keys} keys, "
        f"width {case.width}{', causal' * case.causal}"
    )


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip().splitlines() or ["no reason given"])[0][:160]


# ---------------------------------------------------------------- the clock


def milliseconds(call: Callable[[], object], plan: Plan) -> float:
    """The median time of a call: on the GPU between events, its cache emptied before each."""
    if plan.device == "cuda":
        from triton.testing import do_bench

        return float(do_bench(call, warmup=20, rep=80, return_mode="median"))
    times = []
    for _ in range(2):
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def ceiling(plan: Plan) -> float:
    """10¹² operations a second of a product of two square matrices: the best of two sizes."""
    best = 0.0
    for size in (plan.square // 2, plan.square):
        a, b = (torch.randn(size, size, device=plan.device, dtype=plan.dtype) for _ in "ab")
        best = max(best, 2e-9 * size**3 / milliseconds(lambda a=a, b=b: a @ b, plan))  # type: ignore[misc]
    return best


class Setting(NamedTuple):
    """One size, its tensors, and the operations that a forward pass is counted as."""

    width: int
    n: int
    causal: bool
    q: Tensor
    k: Tensor
    v: Tensor
    d_out: Tensor
    flops: float


def settings(plan: Plan) -> Iterator[Setting]:
    """Every width, length and causal or not, with as many tokens and features in all."""
    generator = torch.Generator(device=plan.device).manual_seed(0)
    for width in plan.widths:
        for n in plan.lengths:
            shape = (plan.tokens // n, plan.d_model // width, n, width)
            for causal in (False, True):
                q, k, v, d_out = (
                    torch.randn(shape, generator=generator, device=plan.device, dtype=plan.dtype)
                    for _ in range(4)
                )
                flops = 4 * shape[0] * shape[1] * n * n * width / (2 if causal else 1)
                yield Setting(width, n, causal, q, k, v, d_out, flops)


def time_all(plan: Plan, start: float) -> tuple[list[Row], list[str]]:
    """A row for each way, size and pass; and the sizes for which no time was left."""
    rows: list[Row] = []
    left_out = []
    total = 2 * len(plan.widths) * len(plan.lengths)
    for setting in tqdm(settings(plan), "against torch", total, leave=False):
        if time.monotonic() - start > ALL_UNTIL:
            size = f"width {setting.width}, {setting.n} tokens{', causal' * setting.causal}"
            left_out.append(f"no time was left for {size}")
            continue
        for way in (OURS, *BACKENDS):
            rows += time_one(way, setting, plan)
    return rows, left_out


def time_one(way: str, setting: Setting, plan: Plan) -> list[Row]:
    """Forward and backward of one way, or one row that says why it refuses."""
    leaves = [x.detach().requires_grad_() for x in (setting.q, setting.k, setting.v)]

    def attend() -> Tensor:
        if way == OURS:
            out = attention(*leaves, causal=setting.causal, backend="triton")
            assert isinstance(out, Tensor)
            return out
        q, k, v = leaves
        return F.scaled_dot_product_attention(q, k, v, is_causal=setting.causal)

    pinned = BACKENDS.get(way)
    common = (way, setting.width, setting.n, setting.causal)
    rows = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            with sdpa_kernel(pinned) if pinned is not None else nullcontext():
                took = milliseconds(attend, plan)
                out = attend()
            rows.append(Row(*common, False, _short(took), _short(1e-9 * setting.flops / took)))
            took = milliseconds(
                lambda: torch.autograd.grad(out, leaves, setting.d_out, retain_graph=True), plan
            )
            rows.append(Row(*common, True, _short(took), _short(2.5e-9 * setting.flops / took)))
        except Exception as problem:  # torch has no one class for "not here"
            said = [_first_line(w.message) for w in warned if isinstance(w.message, Warning)]
            said = [line for line in said if "not used because" not in line] or said
            reason = said[0] if said else _first_line(problem)
            rows.append(Row(*common, bool(rows), refused=reason.partition(" (Triggered")[0]))
    return rows


def _short(x: float) -> float:
    """Four digits, which is more than a clock repeats."""
    return float(f"{x:.4g}")


# ---------------------------------------------------------------- the tiles


def sweep(plan: Plan, start: float) -> tuple[list[TileRow], list[str]]:
    """Of each kernel and width, causal, at the greatest length: the shipped tile beside others."""
    rows: list[TileRow] = []
    left_out = []
    capability = torch.cuda.get_device_capability() if plan.device == "cuda" else (9, 0)
    chosen = [s for s in settings(plan) if s.causal and s.n == plan.lengths[-1]]
    work = [(setting, kernel) for setting in chosen for kernel in KERNELS]
    for setting, kernel in tqdm(work, "tiles", leave=False):
        if time.monotonic() - start > TILES_UNTIL:
            left_out.append(f"no time was left for the tiles of {kernel}, width {setting.width}")
            continue
        shipped = choose_tile(kernel, plan.dtype, setting.width, capability)
        times: dict[Tile, float] = {}
        for tile in dict.fromkeys([shipped, *(Tile(*t) for t in CANDIDATES[kernel][: plan.tiles])]):
            try:
                times[tile] = milliseconds(_launcher(kernel, setting, tile), plan)
            except Exception as problem:  # a tile that does not fit
                size = f"{kernel}, width {setting.width}: tile {tuple(tile)}"
                left_out.append(f"{size}: {type(problem).__name__}: {_first_line(problem)}")
        if shipped in times:
            best = min(times, key=times.__getitem__)
            ratio = round(times[shipped] / times[best], 3)
            rows.append(TileRow(kernel, setting.width, tuple(shipped), tuple(best), ratio))
    return rows, left_out


def _launcher(kernel: str, setting: Setting, tile: Tile) -> Callable[[], object]:
    """One kernel by itself, as `forward` and `backward` start it."""
    q, k, v, d_out = setting.q, setting.k, setting.v, setting.d_out
    scale = setting.width**-0.5
    out, lse = triton_launch.forward(q, k, v, setting.causal, scale)
    mean = (d_out.to(lse.dtype) * out.to(lse.dtype)).sum(-1)
    tensors, factors = {
        "forward": ([q, k, v, out, lse], [v]),
        "backward_q": ([q, k, v, d_out, lse, mean, torch.empty_like(q)], [k]),
        "backward_kv": (
            [q, k, v, d_out, lse, mean, torch.empty_like(k), torch.empty_like(v)],
            [q, d_out],
        ),
    }[kernel]
    return lambda: triton_launch._launch(kernel, tensors, factors, setting.causal, scale, tile)


# ---------------------------------------------------------------- the machine


def machine(plan: Plan) -> dict[str, str]:
    """Device, driver, versions, date and commit, each a phrase."""
    import triton

    found = {"device": platform.processor() or platform.machine(), "driver": "no driver"}
    if plan.device == "cuda":
        found["device"] = torch.cuda.get_device_name()
        asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        found["driver"] = f"driver {_said(asked) or 'unknown'}"
    found["torch"] = f"torch {torch.__version__}"
    found["triton"] = f"Triton {triton.__version__}"
    if plan.device == "cuda":
        found["cuda"] = f"CUDA {torch.version.cuda}"
        found["cudnn"] = f"cuDNN {torch.backends.cudnn.version()}"  # type: ignore[no-untyped-call]
    found["python"] = f"Python {platform.python_version()}"
    found["date"] = datetime.datetime.now(datetime.UTC).date().isoformat()
    commit = _said(["git", "rev-parse", "--short=12", "HEAD"])
    changed = " with changes" if _said(["git", "status", "--porcelain", "-uno"]) else ""
    found["commit"] = f"commit {commit or 'unknown'}{changed}"
    return found


def _said(command: Sequence[str]) -> str:
    """The first line that a program prints; nothing if it is not there or fails."""
    folder = Path(__file__).parent
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout.strip().splitlines() or [""])[0] if done.returncode == 0 else ""


def why_not() -> str | None:
    """Why the kernel cannot be timed here, in a sentence; None if it can."""
    if not torch.cuda.is_available():
        return "This benchmark needs an NVIDIA GPU and a torch built for CUDA: torch sees none."
    x = torch.empty(1, 1, 1, 64, device="cuda", dtype=torch.bfloat16)
    reason = triton_launch.why_not(x, x)
    return None if reason is None else f"The kernel cannot run here: {reason}."


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, measure, print and store; returns the exit status: 1 without a GPU or if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--dry", action="store_true", help="tiny, on a CPU; stores nothing")
    parser.add_argument("--out", type=Path, help="the file to write (default: the chapter's)")
    options = parser.parse_args(arguments)
    if options.dry:
        if "triton" not in sys.modules:  # which asks when it is loaded
            os.environ["TRITON_INTERPRET"] = "1"
        x = torch.empty(1, 1, 1, 16)
        reason = triton_launch.why_not(x, x)
        refusal = None if reason is None else f"The kernel cannot run here: {reason}."
    else:
        refusal = why_not()
    if refusal is not None:
        print(refusal, file=sys.stderr)
        return 1
    out = options.out or (None if options.dry else gpu_results.PATH)
    return measure(DRY if options.dry else FULL, out)


def measure(plan: Plan, out: Path | None) -> int:
    """All of it; the results go to `out` if all was right."""
    start = time.monotonic()
    dry = plan.device == "cpu"
    right, wrong = check(plan, dry)
    print(f"{right} of {right + len(wrong)} cases are right ({time.monotonic() - start:.0f} s).")
    if wrong:
        print("\n".join(["Wrong, so nothing is timed:", *wrong]), file=sys.stderr)
        return 1
    tiles, no_tiles = sweep(plan, start)
    for row in tiles:
        best = "is the fastest" if row.ratio <= 1.02 else f"takes {row.ratio:.2f} of {row.best}'s"
        print(f"{row.kernel}, width {row.width}: the shipped tile {row.shipped} {best}.")
    matmul = _short(ceiling(plan))
    rows, no_rows = time_all(plan, start)
    left_out = no_tiles + no_rows
    dtype = str(plan.dtype).removeprefix("torch.")
    results = Results(machine(plan), dtype, right, matmul, rows, tiles, left_out)
    print("\n".join([gpu_results.told(results), *left_out]))
    if out is not None:
        gpu_results.write(results, out)
        print(f"Stored in {out}. `make notebooks` brings it into chapter 6.")
    if dry:
        print("A dry run: the times above are those of an interpreter and mean nothing.")
    print(f"{time.monotonic() - start:.0f} s in all.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
