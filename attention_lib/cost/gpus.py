"""Numbers that are published of GPUs, and the bound they set on a program's speed.

A program that does few operations with each byte waits for the memory; one that does many waits for
the arithmetic. Source: Williams, Waterman and Patterson 2009, the roofline model.
"""

from dataclasses import dataclass

KB = 1024


@dataclass(frozen=True)
class Machine:
    """A GPU as its maker describes it. Sizes are in bytes.

    flops            floating-point operations a second of its tensor cores, for 16-bit numbers
    bandwidth        bytes a second, to and from its large memory
    memory           of the large memory (HBM)
    multiprocessors  that work side by side
    fast             of the fast memory of a multiprocessor: shared memory and cache
    room             of shared memory that one program may have
    registers        of all registers of a multiprocessor
    source           where the numbers were published
    """

    flops: float
    bandwidth: float
    memory: float
    multiprocessors: int
    fast: int
    room: int
    registers: int
    source: str

    @property
    def balance(self) -> float:
        """Operations for each byte from which on the arithmetic, not the memory, sets the time."""
        return self.flops / self.bandwidth

    def bound(self, intensity: float) -> float:
        """Operations a second, at most, of a program that does `intensity` of them for each byte."""
        return min(self.flops, self.bandwidth * intensity)


MACHINES = {
    "A100": Machine(
        312e12,
        1.555e12,
        40e9,
        108,
        192 * KB,
        163 * KB,
        256 * KB,
        "NVIDIA 2020, A100 whitepaper; CUDA C++ Programming Guide, technical specifications",
    ),
    "H100": Machine(
        989.4e12,
        3.35e12,
        80e9,
        132,
        256 * KB,
        227 * KB,
        256 * KB,
        "NVIDIA 2022, H100 whitepaper (SXM5); CUDA C++ Programming Guide, technical specifications",
    ),
}
