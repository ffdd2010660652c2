"""A recorded load, resampled by blocks (bootstrap): other loads that are as plausible as the recorded one.

A recording is a sample of one. Its time is a circle that is cut at random into `blocks` equal parts, which are drawn
with replacement and concatenated (the circular block bootstrap: Politis and Romano, "A circular block-resampling
procedure for stationary data", in Exploring the Limits of Bootstrap, 1992; Künsch, "The jackknife and the bootstrap for
general stationary observations", Annals of Statistics 17, 1989). Within a block the recorded samples keep their times,
sizes, lifespans and repeated writes; dependence between blocks is lost. So phases longer than a block, such as a rush
hour or a trend, are broken up, and differences between days are not represented.

Consumers, commands and the initial content of the queues are unchanged. A sample that is drawn twice is two samples,
each served as the recorded one was, or by a draw of its own.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

import numpy as np

from qsctl.eventlog.recording.schema import Origin, PeerHappening
from qsctl.instant import Nanoseconds
from qsctl.sim.kernel.random import stream_key, uniform
from qsctl.sim.replay.recording import Recorded, RecordedArrival

SampleKey = tuple[int, int]
"""A producer's number and a sequence number."""

_LATER_STEPS: Final = 1 << 40
"""Added to the steps of resampled writes: behind what peers and commands did at the same instant."""


@dataclass(frozen=True, slots=True)
class ResampledLoad:
    """A recording with a resampled load; `original` maps each of its samples to the recorded one."""

    recorded: Recorded
    original: dict[SampleKey, SampleKey]


def resampled(recorded: Recorded, blocks: int, seed: int, replication: int) -> ResampledLoad:
    """Return a recording whose writes are drawn by blocks from those of `recorded`.

    Args:
        recorded: a recording with writes of producers.
        blocks: the number of parts that its time is divided into.
        seed: the seed of the scenario.
        replication: from 1; each has draws of its own.
    """
    samples = _samples(recorded)
    if not samples or blocks < 1:
        return ResampledLoad(recorded, {})
    begin_ns, end_ns = samples[0][0].at_ns, samples[-1][0].at_ns + 1
    length_ns = -(-(end_ns - begin_ns) // blocks)
    circle_ns = length_ns * blocks
    times = [rows[0].at_ns - begin_ns for rows in samples]
    key = np.uint64(stream_key(seed, replication, "replay", "resample"))
    numbers: dict[int, int] = {}
    original: dict[SampleKey, SampleKey] = {}
    drawn: list[RecordedArrival] = []
    for block in range(blocks):
        first_ns = int(float(uniform(key, block)) * circle_ns)
        at = bisect_left(times, first_ns)
        for turn in range(len(samples)):
            rows = samples[(at + turn) % len(samples)]
            offset_ns = (rows[0].at_ns - begin_ns - first_ns) % circle_ns
            if offset_ns >= length_ns:
                break
            producer = rows[0].producer
            number = numbers[producer] = numbers.get(producer, 0) + 1
            original[producer, number] = (producer, rows[0].sequence_number)
            shift_ns = begin_ns + block * length_ns + offset_ns - rows[0].at_ns
            drawn += [_shifted(row, shift_ns, number) for row in rows]
    drawn.sort(key=lambda row: row.at_ns)
    drawn = [row._replace(step=_LATER_STEPS + place) for place, row in enumerate(drawn)]
    there = [row for row in recorded.arrivals if row.origin in {Origin.HELD, Origin.OUTSIDE}]
    peers = tuple(row for row in recorded.peers if row.happening != PeerHappening.PRODUCER_LEFT)
    return ResampledLoad(dataclasses.replace(recorded, arrivals=(*there, *drawn), peers=peers), original)


def block_ns(recorded: Recorded, blocks: int) -> Nanoseconds:
    """Return the length of a block in nanoseconds."""
    samples = _samples(recorded)
    return -(-(samples[-1][0].at_ns + 1 - samples[0][0].at_ns) // blocks) if samples else 0


def _samples(recorded: Recorded) -> list[list[RecordedArrival]]:
    """Return the writes of each sample, in the order of their first ones."""
    found: dict[SampleKey, list[RecordedArrival]] = {}
    for row in recorded.arrivals:
        if row.origin == Origin.PRODUCER:
            found.setdefault((row.producer, row.sequence_number), []).append(row)
    return sorted(found.values(), key=lambda rows: (rows[0].at_ns, rows[0].step))


def _shifted(row: RecordedArrival, shift_ns: Nanoseconds, number: int) -> RecordedArrival:
    answered_ns = None if row.answered_ns is None else row.answered_ns + shift_ns
    return row._replace(at_ns=row.at_ns + shift_ns, answered_ns=answered_ns, sequence_number=number)
