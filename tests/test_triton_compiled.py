"""The kernels compiled for two GPUs on a machine without one: what runs there, and what it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attention_lib.torch.kernels.report import Report, compile_apart

pytest.importorskip("triton", reason="needs Triton: make test EXTRAS=gpu")

KERNELS = ("forward", "backward_q", "backward_kv")
CAPABILITIES = ((8, 0), (9, 0))
# Shared memory of a program on the smallest GPU from 8.0 on (8.6), and on 9.0.
ROOM = {(8, 0): 99 * 1024, (9, 0): 227 * 1024}
VARIANTS: dict[str, dict[str, Any]] = {
    "64": {"width": 64},
    "96": {"width": 96},
    "128": {"width": 128},
    "80, all see all": {"width": 80, "causal": False},
    "256": {"width": 256},
    "float16": {"width": 64, "dtype": "float16"},
    "float32": {"width": 64, "dtype": "float32"},
    "one query": {"width": 64, "fixed": {"T": 1, "group": 1}},
    "one key": {"width": 64, "fixed": {"S": 1, "group": 1}, "careful": True},
}
# Half of it on the newer GPU only: a kernel takes about a second.
COMPILED = [
    (kernel, variant, capability)
    for kernel in KERNELS
    for variant in VARIANTS
    for capability in (0, 1)
    if capability == 1 or variant in ("64", "96", "128", "256")
]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, int], Report]:
    """By kernel, variant and capability; one process compiles all, as interpreted ones cannot."""
    requests = [{"name": k, "capability": CAPABILITIES[c], **VARIANTS[v]} for k, v, c in COMPILED]
    return dict(zip(COMPILED, compile_all(requests, tmp_path_factory.mktemp("cache")), strict=True))


def compile_all(requests: list[dict[str, Any]], cache: Path) -> list[Report]:
    """What they compile to now, not when they were last compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(cache))
        return compile_apart(requests)


@pytest.mark.parametrize(("kernel", "variant", "capability"), COMPILED)
def test_tensor_cores_multiply_and_no_register_is_spilled(
    reports: Any, kernel: str, variant: str, capability: int
) -> None:
    report = reports[kernel, variant, capability]
    options, counts = VARIANTS[variant], report.instructions
    assert counts["HMMA"] + counts["HGMMA"] > 0
    assert counts["EX2"] > 0
    if capability == 0:
        assert counts["HGMMA"] == 0
    elif variant in ("64", "128", "float16"):  # smaller tiles than 64 rows use the older kind
        assert counts["HGMMA"] > 0
    assert report.shared <= ROOM[CAPABILITIES[capability]]
    if options.get("dtype") != "float32" and not options.get("careful"):
        assert report.stack == 0
    assert report.registers <= 255


def test_too_large_a_tile_would_be_noticed(tmp_path: Path) -> None:
    """The check of the stack refuses what the registers do not hold."""
    options = {"name": "backward_kv", "capability": (8, 0), "width": 128, "tile": (128, 128, 4, 1)}
    assert compile_all([options], tmp_path)[0].stack > 0
