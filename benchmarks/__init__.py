"""Measurements beside a peer, never part of the tests: `python -m benchmarks` runs them all."""
