"""The state of one queue in the fold of a recording: its samples, its consumers, its counts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec

from qsctl.eventlog.outcomes import Outcome
from qsctl.eventlog.queue_counts import QueueCounts
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.instant import Nanoseconds

LATE_ROWS_MAX: Final = 100_000
"""Deliveries of a queue that are over without an answer and whose consumer may still answer, late."""

Row: TypeAlias = tuple[Any, ...]


class ArrivedSample(msgspec.Struct, frozen=True, gc=False):
    """A sample that has reached the queue and was not answered yet."""

    step: int
    at_ns: Nanoseconds
    producer: int
    size_bytes: int
    lifespan_ns: Nanoseconds | None
    address: Guid
    origin: str
    is_logged: bool


class Sending(msgspec.Struct, frozen=True, gc=False):
    """A delivery in progress."""

    step: int
    attempt: int
    redelivered: bool
    consumer: int
    sent_ns: Nanoseconds


class HeldState(msgspec.Struct, gc=False):
    """A sample in its queue, with the time of enqueueing and its deliveries."""

    enqueued_ns: Nanoseconds
    size_bytes: int
    producer: int
    is_logged: bool
    is_counted: bool = True
    """Whether its size is counted in the work units; not for a sample from a store, whose size is unknown."""
    attempts: int = 0
    sent_ns: Nanoseconds | None = None
    sending: Sending | None = None
    retired_late: bool = False


class QueueState:
    """The state of one queue.

    Args:
        name: its full name.
        shown: the queue's name in `messages` and `counters`.
        max_count: the queue's limit; -1: unlimited.
    """

    __slots__ = (
        "arrived", "counts", "held", "held_before", "late", "left", "max_count", "name", "present", "repeated", "shown",
        "unseen",
    )  # fmt: skip

    def __init__(self, name: str, shown: str, max_count: int) -> None:
        self.name = name
        self.shown = shown
        self.max_count = max_count
        self.counts = QueueCounts(0)
        self.arrived: dict[SampleIdentity, ArrivedSample] = {}
        self.repeated: ArrivedSample | None = None
        """A second arrival of a sample that waits outside; the next event has its outcome."""
        self.held: dict[SampleIdentity, HeldState] = {}
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
        held = self.held[identity] = HeldState(enqueued_ns, 0, producer, is_logged, is_counted=False)
        self.unseen = max(0, self.unseen - 1)
        self.held_before += enqueued_ns < 0
        return held

    def leave(self, identity: SampleIdentity, held: HeldState, size_bytes: int) -> None:
        """Forget a sample that left the queue."""
        del self.held[identity]
        self.held_before -= held.enqueued_ns < 0
        if held.is_counted:
            self.counts.shrink(size_bytes)

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
                *(each.enqueued_ns for each in self.held.values()),
                *(each.at_ns for each in self.arrived.values()),
                *[0] * self.unseen,
            ],
        )

    @property
    def sent_count(self) -> int:
        """Return the number of samples that are being delivered to consumers."""
        return sum(each.sending is not None for each in self.held.values())


def address_text(address: Guid) -> str | None:
    """Return an address in the form of the tables; None: any consumer."""
    return None if address == NIL_GUID else address.hex()


def shown_names(names: Sequence[str]) -> dict[str, str]:
    """Return the queues' names as in simulated runs: the short names, or the full ones where two would be equal."""
    own = [name.rpartition("/")[2] for name in names]
    return dict(zip(names, own if len(set(own)) == len(own) else names, strict=True))
