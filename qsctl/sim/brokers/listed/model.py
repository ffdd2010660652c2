"""A queue of a foreign broker, as far as its tools list it, and the merging of several files about one queue.

Decides: that a later file of the same queue replaces an earlier one, and that the difference of their counters of
arrivals gives the rate of arrivals; that a consumer of a stream has the stream's limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from qsctl.sim.brokers.kinds import BrokerKind


@dataclass(frozen=True, slots=True)
class ForeignQueue:
    """One queue as listed; a value is None where no file has it.

    A setting is by the broker's own word, and its text is one that the preset reads: durations with their unit, counts
    as whole numbers, `unlimited` where there is no limit.
    """

    name: str
    broker: BrokerKind
    settings: Mapping[str, str] = field(default_factory=dict)
    consumers: int | None = None
    waiting: int | None = None
    """Messages that no consumer has received."""
    outstanding: int | None = None
    """Messages that a consumer received and has not acknowledged."""
    partitions: tuple[int, ...] = ()
    """Of a Kafka group: the messages that wait in each partition."""
    arrived: int | None = None
    """Messages since the queue was made, or a position in its log: two of them have the rate between them."""
    at_s: float | None = None
    """Time at which the arrivals were counted, in seconds of the Unix epoch."""
    arrivals_per_s: float | None = None
    size_bytes: int | None = None
    """Mean size of a message."""
    stream: str = ""
    """Of a JetStream consumer: the stream that it reads; of a stream itself, its own name."""
    is_stream: bool = False


@dataclass(frozen=True, slots=True)
class ForeignQueues:
    """The queues in some files; `notes` describe the parts that could not be read or were ignored."""

    queues: tuple[ForeignQueue, ...]
    notes: tuple[str, ...] = ()


def joined(parts: Iterable[ForeignQueues], seconds: float | None = None) -> ForeignQueues:
    """Merge the contents of several files, so that each queue occurs once.

    Args:
        parts: in the order of time.
        seconds: between two files of the same queue, where the files do not state it.
    """
    found: dict[tuple[BrokerKind, str, str], ForeignQueue] = {}
    notes: list[str] = []
    for part in parts:
        notes += part.notes
        for queue in part.queues:
            key = (queue.broker, queue.stream if queue.is_stream else queue.name, "stream" if queue.is_stream else "")
            earlier = found.get(key)
            found[key] = queue if earlier is None else _later(earlier, queue, seconds)
    streams = {each.stream: each for each in found.values() if each.is_stream}
    consumers = [_of_stream(each, streams.get(each.stream)) for each in found.values() if not each.is_stream]
    consumed = {each.stream for each in consumers if each.stream}
    alone = [each for name, each in streams.items() if name not in consumed]
    return ForeignQueues((*consumers, *alone), tuple(dict.fromkeys(notes)))


def _later(earlier: ForeignQueue, later: ForeignQueue, seconds: float | None) -> ForeignQueue:
    """Return the later of two records of a queue, with the arrival rate between them and values of the earlier one
    alone.
    """
    settings = {**earlier.settings, **later.settings}
    rate = later.arrivals_per_s
    if earlier.arrived is not None and later.arrived is not None and later.arrived >= earlier.arrived:
        between = seconds
        if between is None and earlier.at_s is not None and later.at_s is not None:
            between = later.at_s - earlier.at_s
        if between is not None and between > 0:
            rate = _finite((later.arrived - earlier.arrived) / between)
    kept = {
        name: getattr(earlier, name)
        for name in ("consumers", "waiting", "outstanding", "arrived", "size_bytes")
        if getattr(later, name) is None
    }
    return replace(
        later, settings=settings, partitions=later.partitions or earlier.partitions,
        arrivals_per_s=earlier.arrivals_per_s if rate is None else rate, **kept,
    )  # fmt: skip


def _finite(rate: float) -> float | None:
    return rate if math.isfinite(rate) else None


def _of_stream(consumer: ForeignQueue, stream: ForeignQueue | None) -> ForeignQueue:
    """Return a consumer with the limits, the arrival rate and the message size of its stream."""
    if stream is None:
        return consumer
    return replace(
        consumer,
        settings={**stream.settings, **consumer.settings},
        arrivals_per_s=stream.arrivals_per_s if consumer.arrivals_per_s is None else consumer.arrivals_per_s,
        size_bytes=stream.size_bytes if consumer.size_bytes is None else consumer.size_bytes,
    )
