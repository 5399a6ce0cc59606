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
    exps             powers of 2 a second: 16 in each multiprocessor at each tick of the clock
    bandwidth        bytes a second, to and from its large memory
    memory           of the large memory (HBM)
    cache            of the level-2 cache, which all multiprocessors share
    reads            bytes a second that can be read from that cache; None where none is published
    multiprocessors  that work side by side
    fast             of the fast memory of a multiprocessor: shared memory and cache
    room             of shared memory that one program may have
    registers        of all registers of a multiprocessor
    source           where the numbers were published
    """

    flops: float
    exps: float
    bandwidth: float
    memory: float
    cache: float
    reads: float | None
    multiprocessors: int
    fast: int
    room: int
    registers: int
    source: str

    @property
    def balance(self) -> float:
        """Operations for each byte from which on the arithmetic, not the memory, sets the time."""
        return self.flops / self.bandwidth

    @property
    def each_exp(self) -> float:
        """Operations that its tensor cores make in the time of one exp."""
        return self.flops / self.exps

    def bound(self, intensity: float) -> float:
        """Operations a second, at most, of a program that does `intensity` of them for each byte."""
        return min(self.flops, self.bandwidth * intensity)


GPUS = {
    "A100": Machine(
        312e12,
        16 * 108 * 1.41e9,
        1.555e12,
        40e9,
        40e6,
        5120 * 1.41e9,
        108,
        192 * KB,
        163 * KB,
        256 * KB,
        "NVIDIA 2020, A100 whitepaper; CUDA C++ Programming Guide, technical specifications",
    ),
    "H100": Machine(
        989.4e12,
        16 * 132 * 1.83e9,
        3.35e12,
        80e9,
        50e6,
        None,
        132,
        256 * KB,
        227 * KB,
        256 * KB,
        "NVIDIA 2022, H100 whitepaper (SXM5); CUDA C++ Programming Guide, technical specifications",
    ),
}
