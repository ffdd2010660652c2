"""Latency histograms of many queues in little memory: a block of 128 counters for each octave that occurs.

Bucket numbers are those of `eventlog.schema.bucket_of`; a test holds the two equal. Waits of zero are not counted
here: they are the delivered messages less the sum of the histogram.

The counters of many queues lie in no near cache, and waiting for them was 40 % of an overloaded run. So a wait is
counted `RECENT_WAITS` waits later, when its counter has come; until then a ring remembers its place. The ring is
flushed before the histogram is read. Block 0 belongs to no octave: it is where an empty place of the ring counts.
"""

from __future__ import annotations

from typing import Any, Final

from qsctl.sim.kernel.jit import bit_length, inlined, inlined_part, kernel, part, prefetch, row, wide
from qsctl.sim.kernel.records import BLOCKS_AN_EVENT, BUCKET, DONE, OCTAVE, RECENT, RECENT_WAITS, STATE

BLOCK_BITS: Final = 7
BLOCK: Final = 1 << BLOCK_BITS
OCTAVES: Final = 64


@inlined
def bucket_of(duration_ns: int) -> int:
    """Return the bucket of a duration ≥ 0."""
    shift = max(0, bit_length(duration_ns) - BLOCK_BITS - 1)
    return (shift << BLOCK_BITS) + (duration_ns >> shift)


@part
def open_block(state: Any, place: int) -> int:
    """Return a fresh block for an octave of a queue; notes when only room for one more event is left."""
    broker = row(state, 0, STATE)
    block = wide(broker.blocks_used)
    broker.blocks_used = block + 1
    if block + 1 + BLOCKS_AN_EVENT >= broker.blocks_limit:
        broker.short = 1
    row(broker.octaves, place, OCTAVE).block = block
    return block


@inlined_part
def count_wait(state: Any, octaves: Any, blocks: Any, queue: int, wait_ns: int) -> None:
    """Remember one wait > 0 of a queue, in a fresh block when its octave is new, and count the oldest remembered."""
    bucket = bucket_of(wait_ns)
    place = queue * OCTAVES + (bucket >> BLOCK_BITS)
    block = wide(row(octaves, place, OCTAVE).block)
    if block == 0:
        block = open_block(state, place)
    now = block * BLOCK + (bucket & (BLOCK - 1))
    prefetch(blocks, now, BUCKET)
    broker = row(state, 0, STATE)
    turn = wide(broker.recent_turn)
    recent = row(broker.recent, turn, RECENT)
    row(blocks, recent.place, BUCKET).messages += 1
    recent.place = now
    broker.recent_turn = (turn + 1) & (RECENT_WAITS - 1)


@part
def count_done(state: Any, c: int, time_ns: int) -> None:
    """Count a client's message that was acknowledged, with the time from its arrival to that."""
    broker = row(state, 0, STATE)
    done = row(broker.dones, c, DONE)
    done.messages += 1
    done.total += time_ns
    if time_ns > done.longest:
        done.longest = time_ns
    if time_ns > 0:
        count_wait(state, broker.octaves, broker.blocks, wide(broker.done_place) + c, time_ns)


@kernel
def count_unfinished(state: Any, c: int, age_ns: int) -> None:
    """Count a client's message that has no acknowledgment when the run ends, with how long ago it came."""
    broker = row(state, 0, STATE)
    done = row(broker.dones, c, DONE)
    done.unfinished += 1
    if age_ns > done.oldest:
        done.oldest = age_ns
    if age_ns > 0:
        count_wait(state, broker.octaves, broker.blocks, wide(broker.unfinished_place) + c, age_ns)
