"""Measurements beside a peer, never part of the tests: `python -m benchmarks` runs them all."""

import os

# OpenBLAS reads it once, when NumPy is loaded: measure the processor that is there.
os.environ.pop("OPENBLAS_CORETYPE", None)
