"""Runs of samples: consecutive samples of one writer that are held as one object.

Decides: the state of each sample of a run, and when a sample becomes an object of its own. A run is made of samples
that arrived together, or that a restart found in a store, and that differ in number, position and payload only. The
usual steps (enqueue, send, acknowledge) process ranges of it. Every other step first singles its sample out, and then
treats it as any other `Sample`; what was singled out never joins its run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from qsctl.core.events import SizeBytes
from qsctl.core.queue.consumer import Consumer
from qsctl.core.queue.sample import Sample, SampleState
from qsctl.core.records import EnqueuedRun
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import Nanoseconds

WAITING: Final = 0
SENT: Final = 1
SINGLE: Final = 2
"""It is an object in `Run.samples`."""
RETIRED: Final = 3
FORGOTTEN: Final = 4
"""It was retired, and its identity is not remembered any more."""

_ENQUEUED: Final = SampleState.ENQUEUED
_SENT: Final = SampleState.SENT
_DELIVERED: Final = SampleState.DELIVERED
_FIRST_FINAL_STATE: Final = SampleState.DELIVERED


class Run:
    """Consecutive samples of one writer, by offset from the first.

    Args:
        enqueued: their record.
        is_on_disk: whether all of their payloads leave memory once they are stored.
    """

    __slots__ = (
        "count",
        "cursor",
        "enqueued_at_ns",
        "expires_at_ns",
        "first_number",
        "flags",
        "held_count",
        "is_on_disk",
        "marks",
        "payloads",
        "position",
        "related_identity",
        "related_reader_guid",
        "related_source_guid",
        "remembered_count",
        "samples",
        "sendings",
        "size_bytes",
        "source_guid",
        "writer_guid",
    )

    def __init__(self, enqueued: EnqueuedRun, *, is_on_disk: bool = False) -> None:
        self.writer_guid: Guid = enqueued.identity.writer_guid
        self.first_number = enqueued.identity.sequence_number
        self.position = enqueued.position
        self.flags = enqueued.flags
        self.enqueued_at_ns: Nanoseconds = enqueued.enqueued_at_ns
        self.expires_at_ns: Nanoseconds = enqueued.expires_at_ns
        self.source_guid = enqueued.source_guid
        self.related_source_guid = enqueued.related_source_guid
        self.related_identity = enqueued.related_identity
        self.related_reader_guid = enqueued.related_reader_guid
        self.is_on_disk = is_on_disk
        self.payloads: list[bytes] | list[None] = list(enqueued.payloads)
        """The payload of each sample, None after `spill`; that of one that was singled out, or has left, is empty."""
        sizes = tuple(map(len, enqueued.payloads))
        self.size_bytes: SizeBytes = sizes[0] if sizes.count(sizes[0]) == len(sizes) else sizes
        """The size of each payload, in octets."""
        self.count = self.held_count = self.remembered_count = len(enqueued.payloads)
        self.marks = bytearray(self.count)
        """The state of each sample: WAITING, SENT, SINGLE, RETIRED or FORGOTTEN."""
        self.samples: dict[int, Sample] = {}
        """The samples that were singled out and are held, by offset."""
        self.sendings: list[SentRange] = []
        """The deliveries in progress of samples that were not singled out."""
        self.cursor = 0
        """The offset of the first sample that may be waiting; earlier ones were sent, or have left."""

    @property
    def state(self) -> SampleState:
        """Return a final state once all samples have ended, so that entries of the run are recognized as stale."""
        if self.held_count > len(self.samples):
            return _ENQUEUED
        is_over = all(sample.state >= _FIRST_FINAL_STATE for sample in self.samples.values())
        return _DELIVERED if is_over else _ENQUEUED

    def view(self, offset: int) -> Sample:
        """Return a held sample as it is now: the object itself if it was singled out, otherwise a copy."""
        if self.marks[offset] == SINGLE:
            return self.samples[offset]
        size_bytes = self.size_bytes
        sample = Sample(
            self.position + offset,
            SampleIdentity(self.writer_guid, self.first_number + offset),
            self.payloads[offset],
            size_bytes if isinstance(size_bytes, int) else size_bytes[offset],
            self.enqueued_at_ns,
            self.expires_at_ns,
            self.source_guid,
            self.related_source_guid,
            self.related_identity,
            self.related_reader_guid,
            self.flags,
            None,
            _ENQUEUED,
        )
        if self.marks[offset] == SENT:
            sending = self.sending_of(offset)
            sample.dispatch()
            sample.holder = sending.consumer_of(offset).guid
            sample.sent_at_ns = sending.sent_at_ns
        return sample

    def views(self, start: int = 0) -> Iterator[Sample]:
        """Yield the samples from an offset on that are held when the iterator reaches them, see `view`."""
        for offset in range(start, self.count):
            if self.marks[offset] <= SINGLE:
                yield self.view(offset)

    def sizes_bytes(self) -> Iterator[int]:
        """Yield the size of the payload of each held sample."""
        size_bytes = self.size_bytes
        for offset in self.held_offsets(0, self.count):
            yield size_bytes if isinstance(size_bytes, int) else size_bytes[offset]

    def spill(self) -> None:
        """Release the payloads, which are stored by now."""
        for sample in self.samples.values():
            sample.payload = None
        if self.payloads:
            self.payloads = [None] * self.count

    def single_out(self, offset: int) -> Sample:
        """Make a held sample an object of its own, and return it; one that is sent is counted for its consumer."""
        sample = self.view(offset)
        mark = self.marks[offset]
        if mark != SINGLE:
            self.marks[offset] = SINGLE
            self.samples[offset] = sample
            self.payloads[offset] = b""  # type: ignore[call-overload]
            if mark == SENT:
                sending = self.sending_of(offset)
                consumer = sending.consumer_of(offset)
                consumer.outstanding[sample.position] = sample
                sending.leave(consumer, 1)
        return sample

    def held_offsets(self, start: int, stop: int) -> list[int]:
        """Return the offsets of the held samples between two offsets."""
        marks = self.marks
        return [offset for offset in range(start, stop) if marks[offset] <= SINGLE]

    def single_out_living(self, count_max: int) -> list[Sample]:
        """Single out at most `count_max` held samples that have not ended, and return them."""
        living: list[Sample] = []
        for offset in self.held_offsets(0, self.count):
            if len(living) >= count_max:
                break
            sample = self.single_out(offset)
            if sample.state < _FIRST_FINAL_STATE:
                living.append(sample)
        return living

    def sending_of(self, offset: int) -> SentRange:
        """Return the delivery in progress of a sample that is SENT."""
        sendings = self.sendings
        if len(sendings) == 1:
            return sendings[0]
        for sending in sendings:
            if sending.start <= offset < sending.stop:
                return sending
        raise AssertionError(f"sample {offset} of a run of {self.count} is not being delivered")

    def size_bytes_of(self, offsets: range) -> SizeBytes:
        """Return the size of each of these samples, in octets; that of one sample is a number."""
        size_bytes = self.size_bytes
        if isinstance(size_bytes, int):
            return size_bytes
        return (
            size_bytes[offsets.start] if len(offsets) == 1 else size_bytes[offsets.start : offsets.stop : offsets.step]
        )

    def waiting_stop(self) -> int:
        """Return the offset behind the consecutive waiting samples at the cursor."""
        return self.count - len(self.marks[self.cursor :].lstrip(b"\x00"))

    def pass_over_left(self) -> int:
        """Move the cursor behind the samples at it that have left the queue; return their number."""
        behind = self.marks[self.cursor :]
        count = len(behind) - len(behind.lstrip(b"\x03\x04"))
        self.cursor += count
        return count

    def leave(self, offsets: range, count: int) -> None:
        """Mark samples as retired, which have left the queue, and release their payloads."""
        span = slice(offsets.start, offsets.stop, offsets.step)
        self.marks[span] = b"\x03" * count
        self.held_count -= count
        if self.held_count:
            self.payloads[span] = [b""] * count  # type: ignore[list-item]
        else:
            self.payloads = []


class SentRange:
    """The delivery of consecutive samples of a run, sent at one instant to one consumer or to several in turn.

    Args:
        run: the run.
        start: offset of the first sample.
        stop: offset behind the last sample.
        consumers: the consumer of each sample, in turn.
        sent_at_ns: the instant.
    """

    __slots__ = ("consumers", "left_count", "run", "sent_at_ns", "start", "stop")

    def __init__(self, run: Run, start: int, stop: int, consumers: list[Consumer], sent_at_ns: Nanoseconds) -> None:
        self.run = run
        self.start = start
        self.stop = stop
        self.consumers = consumers
        self.sent_at_ns = sent_at_ns
        self.left_count = stop - start
        """Number of samples that neither ended nor were singled out."""

    def begin(self) -> None:
        """Mark the samples as sent, and count them for their consumers."""
        run, consumers = self.run, self.consumers
        run.sendings.append(self)
        run.marks[self.start : self.stop] = b"\x01" * self.left_count
        share, rest = divmod(self.left_count, len(consumers))
        for at, consumer in enumerate(consumers):
            consumer.in_runs_count += share + (at < rest)
            consumer.sendings[self] = None

    def consumer_of(self, offset: int) -> Consumer:
        """Return the consumer that was sent a sample."""
        consumers = self.consumers
        return consumers[(offset - self.start) % len(consumers)]

    def leave(self, consumer: Consumer, count: int) -> None:
        """Count samples of one of its consumers that ended or were singled out."""
        consumer.in_runs_count -= count
        self.left_count -= count
        if not self.left_count:
            self.run.sendings.remove(self)
            for each in self.consumers:
                del each.sendings[self]

    def single_out(self) -> list[Sample]:
        """Single out the samples that are still being delivered, and return them in the order of sending."""
        run = self.run
        return [run.single_out(offset) for offset in range(self.start, self.stop) if run.marks[offset] == SENT]
