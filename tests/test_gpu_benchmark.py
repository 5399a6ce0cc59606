"""The benchmark for a GPU, dry: it refuses without one, stops at what is wrong, and the chapter can read it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from attention_lib.cost import gpu_results
from attention_lib.cost.gpu_results import OURS, Results, Row, TileRow, stored, told, write
from attention_lib.cost.gpus import GPUS
from attention_lib.torch import attention
from attention_lib.torch.kernels.launch import Tile
from attention_lib.torch.kernels.report import compile_apart
from benchmarks import gpu

from .notebooks import ROOT

RESULTS = Results(
    {"device": "a GPU", "driver": "driver 1.2", "date": "2026-01-02", "commit": "commit abc"},
    "bfloat16",
    24,
    800.0,
    [
        Row(OURS, 64, 2048, True, False, 1.5, 400.0),
        Row(OURS, 64, 2048, True, True, 2.5, 200.0),
        Row("cuDNN", 64, 2048, True, False, refused="not built with it"),
    ],
    [TileRow("forward", 64, (128, 64, 4, 3), (128, 64, 8, 3), 1.04)],
    ["no time was left for width 128"],
)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, in a process that has not loaded Triton."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.gpu", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip


# ---------------------------------------------------------------- the file


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "gpu.json"
    assert stored(path) is None
    write(RESULTS, path)
    assert stored(path) == RESULTS
    write(replace(RESULTS, rows=[], tiles=[], left_out=[]), path)
    assert stored(path) == replace(RESULTS, rows=[], tiles=[], left_out=[])


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": [{"way": 1}], "tiles": []}'])
def test_another_file_is_refused_in_a_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "gpu.json").write_text(text)
    with pytest.raises(ValueError, match=r"gpu\.json is not what benchmarks\.gpu writes"):
        stored(tmp_path / "gpu.json")


def test_the_chapter_is_told_the_machine_the_speeds_and_the_refusals() -> None:
    lines = told(RESULTS).splitlines()
    assert lines[0] == "a GPU, driver 1.2, 2026-01-02, commit abc"
    assert "24 cases" in lines[1]
    assert lines[2].endswith("800.")
    assert [line.split() for line in lines if line.startswith(OURS)] == [
        [*OURS.split(), "400", "(", "50%)"],
        [*OURS.split(), "200", "(", "25%)"],
    ]
    assert lines[-2:] == ["Refused:", "cuDNN: not built with it"]
    assert max(map(len, lines)) < 100


def test_without_a_file_the_chapter_says_so() -> None:
    assert told(None).startswith("Not measured")
    found = stored()
    assert found is None or found.correct > 0


def test_the_bound_of_a_machine() -> None:
    for machine in GPUS.values():
        assert machine.bound(machine.balance) == pytest.approx(machine.flops)
        assert machine.bound(machine.balance / 2) == pytest.approx(machine.flops / 2)
        assert machine.bound(2 * machine.balance) == machine.flops
        assert machine.room < machine.fast
        assert machine.each_exp * machine.exps == pytest.approx(machine.flops)
        assert machine.source
        assert machine.reads is None or machine.bandwidth < machine.reads < 19e12 < machine.flops
    # Shah et al. 2024, section 3.1: 3.9 · 10¹² exps of an H100 beside 989 · 10¹² operations
    assert GPUS["H100"].exps == pytest.approx(3.9e12, rel=0.02)
    assert GPUS["H100"].each_exp == pytest.approx(256, rel=0.01)
    assert GPUS["A100"].each_exp == pytest.approx(128, rel=0.01)


# ---------------------------------------------------------------- the command


def test_without_a_gpu_it_says_so_and_stops(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.main(["--out", str(tmp_path / "gpu.json")]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert "GPU" in said.err
    assert not list(tmp_path.iterdir())


def test_dry_it_does_everything(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="needs Triton: make test EXTRAS=gpu")
    path = tmp_path / "gpu.json"
    done = run("--dry", "--out", str(path))
    assert done.returncode == 0, done.stderr
    assert "mean nothing" in done.stdout
    results = stored(path)
    assert results is not None
    assert results.correct == len(gpu.cases(dry=True))
    assert {row.kernel for row in results.tiles} == set(gpu.KERNELS)
    assert all(row.ratio >= 1 for row in results.tiles)
    # Each way has a row for each size and pass, or one with the reason why not.
    sizes = {(n, causal) for n in gpu.DRY.lengths for causal in (False, True)}
    for way in (OURS, *gpu.BACKENDS):
        rows = [row for row in results.rows if row.way == way]
        assert {(row.n, row.causal) for row in rows} == sizes
        assert len(rows) == 2 * len(sizes) or all(row.refused for row in rows)
    assert next(row for row in results.rows if row.way == "cuDNN").refused
    assert {"device", "driver", "torch", "triton", "date", "commit"} <= set(results.machine)
    assert told(results) in done.stdout
    assert json.loads(path.read_text())["dtype"] == "float32"


@pytest.mark.parametrize("wrong", ["error", "raises"])
def test_what_is_wrong_is_listed_and_nothing_is_timed(
    wrong: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def error(case: gpu.Case, device: str) -> float:
        if wrong == "raises" and case.causal:
            raise RuntimeError("out of resource\nand a long trace")
        return 1.0 if case.causal else 0.0

    monkeypatch.setattr(gpu, "error", error)
    monkeypatch.setattr(gpu, "time_all", lambda *a: pytest.fail("timed"))
    assert gpu.measure(gpu.DRY, tmp_path / "gpu.json") == 1
    said = capsys.readouterr().err
    bad = [case for case in gpu.cases(dry=True) if case.causal]
    listed = [line for line in said.splitlines() if ", causal: " in line]
    assert len(listed) == len(bad)
    assert all("heads on" in line for line in listed)
    assert "long trace" not in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("factor", [1.0, 1.001, float("nan")])
def test_the_comparison_refuses_what_is_wrong(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*x: Any, backend: str, **options: Any) -> Any:
        out: Any = attention(*x, backend="dense", **options)
        return out * factor if backend == "triton" else out

    monkeypatch.setattr(gpu, "attention", wrong)
    for case in gpu.cases(dry=True):
        found = gpu.error(case, "cpu")
        assert (found <= gpu.LIMITS[case.dtype]) == (factor == 1)


def test_the_cases_cover_what_the_kernel_promises() -> None:
    cases = gpu.cases(dry=False)
    assert {torch.bfloat16, torch.float16, torch.float32} == {case.dtype for case in cases}
    assert {16, 64, 80, 128} == {case.width for case in cases}
    assert any(case.queries > case.keys for case in cases)
    assert any(case.queries < case.keys for case in cases)
    assert any(case.heads > case.key_heads > 1 for case in cases)


def test_time_that_is_gone_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "ALL_UNTIL", -1.0)
    monkeypatch.setattr(gpu, "TILES_UNTIL", -1.0)
    start = time.monotonic()
    rows, left_out = gpu.time_all(gpu.DRY, start)
    assert (rows, len(left_out)) == ([], 4)
    tiles, left_out = gpu.sweep(gpu.DRY, start)
    assert (tiles, len(left_out)) == ([], 3)
    assert all("no time was left" in line for line in left_out)


# ---------------------------------------------------------------- compiled apart


def test_compiled_apart_where_this_process_interprets() -> None:
    pytest.importorskip("triton", reason="needs Triton: make test EXTRAS=gpu")
    tiles = Tile(128, 64, 8, 3), Tile(256, 128, 4, 2)
    few, many = compile_apart(
        [{"name": "forward", "capability": (8, 0), "tile": tile} for tile in tiles]
    )
    assert (few.tile, many.tile) == tiles
    assert few.instructions["HMMA"] > 0
    assert few.stack == 0 < many.stack
    (half,) = compile_apart([{"name": "forward", "dtype": torch.float16}])
    assert half.instructions["HGMMA"] > 0


def test_what_does_not_compile_is_said() -> None:
    pytest.importorskip("triton", reason="needs Triton: make test EXTRAS=gpu")
    with pytest.raises(RuntimeError, match=r"could not be compiled: .*'nothing'"):
        compile_apart([{"name": "nothing"}])


def test_the_chapter_reads_the_default_file() -> None:
    assert gpu_results.PATH.parent.name == "cost"
