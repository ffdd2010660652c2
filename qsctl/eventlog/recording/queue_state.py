"""The state of one queue in the fold of a recording: its samples, its consumers, its counts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import structs

from qsctl.core.events import SizeBytes
from qsctl.eventlog.outcomes import Outcome
from qsctl.eventlog.queue_counts import QueueCounts
from qsctl.eventlog.recording.rows import Row
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.instant import Nanoseconds

LATE_ROWS_MAX: Final = 100_000
"""Deliveries of a queue that are over without an answer and whose consumer may still answer, late."""


class ArrivedSample(msgspec.Struct, frozen=True, gc=False):
    """A sample that has reached the queue and was not answered yet; of a range, `step` is that of the first sample."""

    step: int
    at_ns: Nanoseconds
    producer: int
    size_bytes: SizeBytes
    lifespan_ns: Nanoseconds | None
    address: Guid
    origin: str
    is_logged: bool


class Sending(msgspec.Struct, frozen=True, gc=False):
    """A delivery in progress; of a range, `step` is that of the first sample."""

    step: int
    attempt: int
    redelivered: bool
    consumer: int
    sent_ns: Nanoseconds


class HeldState(msgspec.Struct, gc=False):
    """A sample in its queue, with the time of enqueueing and its deliveries.

    Samples of a range have one as long as their steps are the same. Their sequence numbers have the step `stride`.
    """

    enqueued_ns: Nanoseconds
    size_bytes: SizeBytes
    producer: int
    is_logged: bool
    is_counted: bool = True
    """Whether its size is counted in the work units; not for a sample from a store, whose size is unknown."""
    attempts: int = 0
    sent_ns: Nanoseconds | None = None
    sending: Sending | None = None
    retired_late: bool = False
    first_number: int = 0
    stride: int = 1
    count: int = 1
    """Number of samples of the range; some of them may have left it."""

    def offsets_of(self, numbers: Sequence[int]) -> Sequence[int]:
        """Return the offsets of samples of the range by their numbers."""
        return offsets_of(numbers, self.first_number, self.stride)

    def single(self, number: int) -> HeldState:
        """Return the state of one sample of the range."""
        (offset,) = self.offsets_of((number,))
        sending, size_bytes = self.sending, self.size_bytes
        return structs.replace(
            self,
            size_bytes=size_bytes if isinstance(size_bytes, int) else size_bytes[offset],
            sending=None if sending is None else structs.replace(sending, step=sending.step + offset),
            count=1,
        )


class HeldSamples:
    """The states of a queue's samples, by writer and number."""

    __slots__ = ("_by_writer",)

    def __init__(self) -> None:
        self._by_writer: dict[Guid, dict[int, HeldState]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_writer.values()))

    def get(self, identity: SampleIdentity) -> HeldState | None:
        """Return the state of a sample, from now on its own; None: it is not held."""
        of_writer = self._by_writer.get(identity.writer_guid)
        if of_writer is None:
            return None
        number = identity.sequence_number
        held = of_writer.get(number)
        if held is not None and held.count > 1:
            held = of_writer[number] = held.single(number)
        return held

    def groups(self, writer_guid: Guid, numbers: range) -> list[tuple[HeldState | None, Sequence[int]]]:
        """Return the states of samples of a range, each with the numbers of its samples; None: those not held."""
        of_writer = self._by_writer.get(writer_guid, {})
        states = [of_writer.get(number) for number in numbers]
        first = states[0]
        if all(held is first for held in states):
            return [(first, numbers)]
        groups: dict[int, tuple[HeldState | None, list[int]]] = {}
        for held, number in zip(states, numbers, strict=True):
            groups.setdefault(id(held), (held, []))[1].append(number)
        return list(groups.values())

    def put(self, identity: SampleIdentity, held: HeldState) -> None:
        """Set the state of a sample."""
        self._by_writer.setdefault(identity.writer_guid, {})[identity.sequence_number] = held

    def put_all(self, writer_guid: Guid, numbers: Iterable[int], held: HeldState) -> None:
        """Set the state of samples of a range."""
        self._by_writer.setdefault(writer_guid, {}).update(dict.fromkeys(numbers, held))

    def remove(self, writer_guid: Guid, numbers: Iterable[int]) -> None:
        """Forget held samples."""
        of_writer = self._by_writer[writer_guid]
        for number in numbers:
            del of_writer[number]
        if not of_writer:
            del self._by_writer[writer_guid]

    def states(self) -> Iterator[HeldState]:
        """Yield the state of each sample; several may have one."""
        for of_writer in self._by_writer.values():
            yield from of_writer.values()

    def identities(self) -> list[SampleIdentity]:
        """Return the identities of the samples."""
        return [SampleIdentity(guid, number) for guid, of_writer in self._by_writer.items() for number in of_writer]


class QueueState:
    """The state of one queue.

    Args:
        name: its full name.
        shown: the queue's name in `messages` and `counters`.
        max_count: the queue's limit; -1: unlimited.
    """

    __slots__ = (
        "arrived", "arriving", "counts", "held", "held_before", "late", "left", "max_count", "name", "present",
        "repeated", "shown", "unseen",
    )  # fmt: skip

    def __init__(self, name: str, shown: str, max_count: int) -> None:
        self.name = name
        self.shown = shown
        self.max_count = max_count
        self.counts = QueueCounts(0)
        self.arrived: dict[SampleIdentity, ArrivedSample] = {}
        self.arriving: ArrivedSample | None = None
        """A range of samples, which is enqueued by the next event."""
        self.repeated: ArrivedSample | None = None
        """A second arrival of a sample that waits outside; the next event has its outcome."""
        self.held = HeldSamples()
        self.held_before = 0
        """Number of those that were enqueued before the recording began."""
        self.unseen = 0
        """Number of further held samples, found in a store and not known yet."""
        self.present: set[Guid] = set()
        """Consumers that are there."""
        self.left: dict[Guid, bool] = {}
        """Consumers that are gone, and whether they handed back what they held."""
        self.late: OrderedDict[tuple[int, SampleIdentity], Row] = OrderedDict()
        """Rows of deliveries to which a late answer may come."""

    def answer(self, identity: SampleIdentity) -> ArrivedSample | None:
        """Return the arrival of a sample that is answered now, and forget it."""
        if self.repeated is not None:
            repeated, self.repeated = self.repeated, None
            return repeated
        return self.arrived.pop(identity, None)

    def reveal(self, identity: SampleIdentity, enqueued_ns: Nanoseconds, producer: int, is_logged: bool) -> HeldState:
        """Return the state of a held sample whose enqueueing was not recorded, and keep it from now on."""
        held = HeldState(enqueued_ns, 0, producer, is_logged, is_counted=False)
        self.held.put(identity, held)
        self.unseen = max(0, self.unseen - 1)
        self.held_before += enqueued_ns < 0
        return held

    def leave(self, identity: SampleIdentity, held: HeldState, size_bytes: int) -> None:
        """Forget a sample that left the queue."""
        self.held.remove(identity.writer_guid, (identity.sequence_number,))
        self.held_before -= held.enqueued_ns < 0
        if held.is_counted:
            self.counts.shrink(size_bytes)

    def leave_all(self, writer_guid: Guid, numbers: Sequence[int], held: HeldState, units: int) -> None:
        """Forget samples of a range that left the queue, with these work units in total."""
        self.held.remove(writer_guid, numbers)
        self.held_before -= (held.enqueued_ns < 0) * len(numbers)
        self.counts.shrink_by(units)

    def counts_now(self) -> QueueCounts:
        """Return the counters as if the recording ended now: samples in the queue are held, those outside waiting."""
        counts = self.counts
        length = len(self.held) + self.unseen
        waiting = len(self.arrived)
        arrived_before = sum(each.at_ns < 0 for each in self.arrived.values())
        return QueueCounts(
            0,
            counts.arrived + len(self.held) - self.held_before + waiting - arrived_before,
            {**counts.by_outcome, Outcome.HELD: length, Outcome.WAITING: waiting},
            counts.redelivered,
            counts.returned,
            counts.delivered_bytes,
            counts.work_units,
            counts.high_water_mark,
            counts.first_discard_ns,
            counts.wait_sum_ns,
            counts.wait_max_ns,
            dict(counts.histogram),
            counts.done_sum_ns,
            counts.done_max_ns,
            dict(counts.done),
            [
                *counts.unfinished_since_ns,
                *(each.enqueued_ns for each in self.held.states()),
                *(each.at_ns for each in self.arrived.values()),
                *[0] * self.unseen,
            ],
        )


def offsets_of(numbers: Sequence[int], first: int, stride: int) -> Sequence[int]:
    """Return the offsets of numbers from the first of a range with this stride."""
    if isinstance(numbers, range):
        start, step = (numbers.start - first) // stride, numbers.step // stride
        return range(start, start + len(numbers) * step, step)
    return [(number - first) // stride for number in numbers]


def address_text(address: Guid) -> str | None:
    """Return an address in the form of the tables; None: any consumer."""
    return None if address == NIL_GUID else address.hex()


def shown_names(names: Sequence[str]) -> dict[str, str]:
    """Return the queues' names as in simulated runs: the short names, or the full ones where two would be equal."""
    own = [name.rpartition("/")[2] for name in names]
    return dict(zip(names, own if len(set(own)) == len(own) else names, strict=True))
