"""What Triton makes of a kernel for a GPU: compiled and read on any machine, without running it.

The process must not interpret Triton (TRITON_INTERPRET). Every dtype, width and GPU takes about a second.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ..shapes import accumulator
from .launch import Tile, choose_tile, constants

POINTERS = {torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.float32: "*fp32"}
SIZES = ("T", "S", "group")


class Report(NamedTuple):
    """Of one compiled kernel: its tile, tensor-core instructions and resources.

    instructions  how often each kind stands in it: HMMA (from 8.0 on), HGMMA (9.0), EX2
    registers     of a thread; at most 255
    stack         bytes of a thread in slow memory, because registers did not suffice
    shared        bytes of shared memory of a program
    """

    tile: Tile
    instructions: dict[str, int]
    registers: int
    stack: int
    shared: int


def compile_report(
    name: str,
    *,
    dtype: torch.dtype = torch.bfloat16,
    width: int = 64,
    d_v: int | None = None,
    causal: bool = True,
    careful: bool = False,
    capability: tuple[int, int] = (9, 0),
    tile: Tile | None = None,
    fixed: Mapping[str, int] | None = None,
) -> Report:
    """Compile the kernel `name` (forward, backward_q, backward_kv) and read what came out.

    By default for the tile that a launch would choose, and lengths that are multiples of 16; `fixed`
    sizes (T, S, group) are compiled in, as Triton does with a 1. Raises RuntimeError where Triton
    interprets, ImportError where it is not installed.
    """
    if os.environ.get("TRITON_INTERPRET") == "1":
        raise RuntimeError("an interpreted kernel cannot be compiled: unset TRITON_INTERPRET")
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from . import flash as triton_kernel

    d_v = width if d_v is None else d_v
    tile = tile or choose_tile(name, dtype, max(width, d_v), capability)
    values = constants(dtype, width, d_v, causal, careful, tile) | dict(fixed or {})
    kernel = getattr(triton_kernel, f"{name}_kernel")
    signature, attributes = {}, {}
    for place, argument in enumerate(kernel.arg_names):
        if argument in values:
            signature[argument] = "constexpr"
        elif argument in (*SIZES, "scale"):
            signature[argument] = "fp32" if argument == "scale" else "i32"
        else:
            wide = argument in ("LSE", "MEAN", "FINITE")
            signature[argument] = POINTERS[accumulator(dtype) if wide else dtype]
        if signature[argument].startswith("*") or argument in {"T", "S"} - values.keys():
            attributes[(place,)] = [["tt.divisibility", 16]]
    places = {(kernel.arg_names.index(key),): value for key, value in values.items()}
    compiled = triton.compile(
        ASTSource(kernel, signature, places, attributes),
        target=GPUTarget("cuda", 10 * capability[0] + capability[1], 32),
        options={"num_warps": tile.warps, "num_stages": tile.stages},
    )
    resources, code = _disassemble(triton.__file__, compiled.asm["cubin"])
    found = re.search(r"REG:(\d+) STACK:(\d+)", resources)
    if found is None:
        raise RuntimeError(f"cuobjdump does not say what the kernel uses: {resources[:200]!r}")
    kinds = {kind: len(re.findall(rf"\b{kind}\b", code)) for kind in ("HMMA", "HGMMA", "EX2")}
    return Report(tile, kinds, int(found[1]), int(found[2]), compiled.metadata.shared)


def compile_apart(requests: Sequence[Mapping[str, Any]]) -> list[Report]:
    """`compile_report` of each of `requests`, its arguments by name, in a process of its own.

    That one compiles, also where this one interprets. Raises RuntimeError with the last line of what
    it said if it ends otherwise: where Triton is not installed, say.
    """
    lines = [
        {**request, "dtype": str(request.get("dtype", torch.bfloat16)).removeprefix("torch.")}
        for request in requests
    ]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", __name__],
        input=json.dumps(lines),
        env={key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise RuntimeError(f"the kernels could not be compiled: {said[-1]}")
    return [Report(Tile(*tile), *rest) for tile, *rest in json.loads(done.stdout)]


def _disassemble(triton: str, binary: bytes) -> tuple[str, str]:
    """The resources and the instructions, by the program that Triton brings along."""
    program = Path(triton).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        resources, code = (
            subprocess.run(
                [program, option, file.name], capture_output=True, text=True, check=True
            ).stdout
            for option in ("-res-usage", "-sass")
        )
    return resources, code


def main() -> None:
    """Read requests as JSON, print their reports as JSON: the other end of `compile_apart`."""
    reports = []
    for request in json.load(sys.stdin):
        given = {**request, "dtype": getattr(torch, request["dtype"])}
        given |= {"capability": tuple(given.get("capability", (9, 0)))}
        if given.get("tile"):
            given["tile"] = Tile(*given["tile"])
        reports.append(compile_report(**given))
    json.dump(reports, sys.stdout)


if __name__ == "__main__":
    main()
