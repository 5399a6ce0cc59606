"""Measurements beside a peer, never part of the tests: `python -m benchmarks` runs them all."""

import os

SWITCHED_OFF = "BENCHMARK_WITHOUT_AVX512"  # set in a process that is to measure another kind

# OpenBLAS reads it once, when NumPy is loaded: measure the processor that is there.
if SWITCHED_OFF not in os.environ:
    os.environ.pop("OPENBLAS_CORETYPE", None)
