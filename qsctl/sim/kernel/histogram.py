"""Latency histograms of many queues in little memory: a block of 128 counters for each octave that occurs.

Bucket numbers are those of `eventlog.schema.bucket_of`; a test holds the two equal. Waits of zero are not counted
here: they are the delivered messages less the sum of the histogram.

The counters of many queues fit into no near cache, and waiting for them was 40 % of an overloaded run. So the counter
of a wait is prefetched, and increased `RECENT_WAITS` waits later; until then a ring buffer contains its index. The ring
is flushed before the histogram is read. Block 0 belongs to no octave: an empty entry of the ring counts there.
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
    """Return a new block for an octave of a queue; set `short` when there is room for only one more event."""
    broker = row(state, 0, STATE)
    block = wide(broker.blocks_used)
    broker.blocks_used = block + 1
    if block + 1 + BLOCKS_AN_EVENT >= broker.blocks_limit:
        broker.short = 1
    row(broker.octaves, place, OCTAVE).block = block
    return block


@inlined_part
def count_wait(state: Any, octaves: Any, blocks: Any, queue: int, wait_ns: int) -> None:
    """Put a wait > 0 into the ring, opening a block for a new octave, and count the oldest wait of the ring."""
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
    """Count a client's acknowledged message by the time from its arrival to the acknowledgment."""
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
    """Count a client's message without an acknowledgment at the end of the run by its age."""
    broker = row(state, 0, STATE)
    done = row(broker.dones, c, DONE)
    done.unfinished += 1
    if age_ns > done.oldest:
        done.oldest = age_ns
    if age_ns > 0:
        count_wait(state, broker.octaves, broker.blocks, wide(broker.unfinished_place) + c, age_ns)
