"""Latency histograms of many queues in little memory: a block of 128 counters for each octave that occurs.

Bucket numbers are those of `eventlog.schema.bucket_of`; a test holds the two equal. Waits of zero are not counted
here: they are the delivered messages less the sum of the histogram.
"""

from __future__ import annotations

from typing import Any, Final

from qsctl.sim.kernel.jit import inlined
from qsctl.sim.kernel.records import BLOCKS_USED

BLOCK_BITS: Final = 7
BLOCK: Final = 1 << BLOCK_BITS
OCTAVES: Final = 64


@inlined
def bit_length(value: int) -> int:
    """Of a value ≥ 0, as `int.bit_length`."""
    bits = 0
    for step in (32, 16, 8, 4, 2, 1):
        if value >> step > 0:
            value >>= step
            bits += step
    return bits + (1 if value > 0 else 0)


@inlined
def bucket_of(duration_ns: int) -> int:
    """The bucket of a duration ≥ 0."""
    shift = bit_length(duration_ns) - BLOCK_BITS - 1
    if shift <= 0:
        return duration_ns
    return (shift << BLOCK_BITS) + (duration_ns >> shift)


@inlined
def count_wait(octaves: Any, blocks: Any, control: Any, queue: int, wait_ns: int) -> None:
    """Count one wait > 0 of a queue, in a fresh block when its octave is new."""
    bucket = bucket_of(wait_ns)
    octave = bucket >> BLOCK_BITS
    block = octaves[queue, octave]
    if block < 0:
        block = control[BLOCKS_USED]
        control[BLOCKS_USED] = block + 1
        octaves[queue, octave] = block
    blocks[block, bucket & (BLOCK - 1)] += 1
