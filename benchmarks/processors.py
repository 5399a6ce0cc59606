"""The kind of processor that is measured, and the same one as if it had no AVX-512."""

from __future__ import annotations

import importlib
import os
import platform

from . import SWITCHED_OFF

FULL, HALF = "AVX-512", "AVX2"  # what NumPy, its OpenBLAS and torch have kernels for


def features() -> list[str]:
    """What NumPy has kernels for, finds in this processor, and was not told to leave out."""
    numpy = importlib.import_module("numpy._core._multiarray_umath")
    return [name for name, on in numpy.__cpu_features__.items() if on]


def wide() -> list[str]:
    """Those of the features that NumPy chooses a kernel by, and that are AVX-512 or rest on it."""
    numpy = importlib.import_module("numpy._core._multiarray_umath")
    dispatched = [name for name in numpy.__cpu_dispatch__ if name in features()]
    return [name for name in dispatched if name == "X86_V4" or name.startswith("AVX512")]


def kind() -> str:
    """AVX-512 or AVX2, by what NumPy uses; elsewhere the architecture."""
    if wide():
        return FULL
    return HALF if {"AVX2", "X86_V3"} & set(features()) else platform.machine()


def without_avx512() -> dict[str, str]:
    """The environment of a process in which NumPy, OpenBLAS and torch use AVX2 at most."""
    return os.environ | {
        SWITCHED_OFF: "1",
        "NPY_DISABLE_CPU_FEATURES": " ".join(wide()),
        "OPENBLAS_CORETYPE": "Haswell",
        "ATEN_CPU_CAPABILITY": "avx2",
    }
