"""Samples that came to a replica and that no log has ordered yet [QS 7.1.1.1], and those that it refused.

Decides: how long such a sample waits, and that a refused attempt is never taken up again: its producer may have been
refused by all replicas, and must be able to rely on it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, TypeAlias

from qsctl.core.high_availability.frames import Entry, Ordered
from qsctl.core.messages import SampleFlag, Write
from qsctl.core.records import Enqueued, QueueRecord
from qsctl.identity import SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds, later

REMEMBERED_MAX: Final = 65_536
"""Refused identities that are remembered, and attempts: far more than producers have unanswered."""

WITHOUT_PAYLOAD_OVER_BYTES: Final = 64
"""Payloads of more bytes than this are not sent again to a replica that had them from the producer."""

REPLICATE: Final = int(SampleFlag.REPLICATE)

Key = tuple[str, SampleIdentity]
"""A queue, by its full name, and a sample."""


Staged: TypeAlias = tuple[Write, Nanoseconds]
"""A sample that waits, and since when."""


class Staging:
    """Samples that one replica received and that are not in its log.

    Args:
        sample_timeout_ns: how long a sample waits.
    """

    def __init__(self, sample_timeout_ns: Nanoseconds) -> None:
        self._sample_timeout_ns = sample_timeout_ns
        self._staged: OrderedDict[Key, Staged] = OrderedDict()
        self._refused: OrderedDict[Key, int] = OrderedDict()
        self._attempts: OrderedDict[Key, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._staged)

    def note_attempt(self, queue: str, write: Write) -> None:
        """Remember the number of an attempt that is not the first, or that there is none (0)."""
        key = (queue, write.identity)
        self._attempts[key] = max(write.attempt, self._attempts.pop(key, 0))
        _bound(self._attempts)

    def stage(self, now: Nanoseconds, queue: str, write: Write) -> None:
        """Let a sample wait; a second time changes nothing."""
        self._staged.setdefault((queue, write.identity), (write, now))

    def unstage_all(self) -> list[tuple[str, Write]]:
        """Let all go, in the order in which they came; give them with their queues."""
        staged, self._staged = self._staged, OrderedDict()
        return [(queue, write) for (queue, _), (write, _) in staged.items()]

    def refuse(self, queue: str, identity: SampleIdentity) -> int:
        """Never take up a sample again as far as it was written by now; return the latest attempt."""
        key = (queue, identity)
        self._staged.pop(key, None)
        attempt = self._attempts.get(key, 1)
        if attempt:
            self._refused[key] = max(attempt, self._refused.pop(key, 0))
            _bound(self._refused)
        return attempt

    def is_refused(self, queue: str, write: Write) -> bool:
        """Return whether this attempt was refused before: a copy of it that came late."""
        return bool(self._refused) and 0 < write.attempt <= self._refused.get((queue, write.identity), 0)

    def next_deadline(self) -> Nanoseconds:
        """Return when the next sample has waited long enough."""
        for _, received_at_ns in self._staged.values():
            return later(received_at_ns, self._sample_timeout_ns)
        return INFINITE_NS

    def overdue(self, now: Nanoseconds) -> list[tuple[str, Write]]:
        """Let go what has waited `sample_timeout`; give it."""
        late: list[tuple[str, Write]] = []
        while self._staged and self.next_deadline() <= now:
            (queue, _), (write, _) = self._staged.popitem(last=False)
            late.append((queue, write))
        return late

    def take(self, entries: Sequence[Entry]) -> tuple[list[QueueRecord], list[int]]:
        """Let go of the samples of entries, up to the first of which neither has the payload.

        Returns:
            The records of those entries; and the places in them of samples that are to be passed on, which came here
            alone perhaps.
        """
        taken: list[QueueRecord] = []
        passed_on: list[int] = []
        unstage = self._staged.pop
        for entry in entries:
            if isinstance(entry, Ordered):
                staged = unstage((entry.queue, entry.identity), None)
                if staged is None:
                    break
                write = staged[0]
                if write.flags & REPLICATE:
                    passed_on.append(len(taken))
                taken.append(_enqueued(entry, write))
                continue
            if type(entry) is Enqueued:
                staged = unstage((entry.queue, entry.identity), None)
                if staged is not None and staged[0].flags & REPLICATE:
                    passed_on.append(len(taken))
            taken.append(entry)
        return taken, passed_on


def without_payloads(records: Sequence[QueueRecord]) -> tuple[Entry, ...]:
    """Return the records as entries, less what replicas had from the producers."""
    return tuple(
        Ordered(
            record.queue,
            record.position,
            record.identity,
            record.enqueued_at_ns,
            record.expires_at_ns,
            record.flags,
        )
        if type(record) is Enqueued
        and record.dead_letter_reason is None
        and record.moved_from is None
        and len(record.payload) > WITHOUT_PAYLOAD_OVER_BYTES
        else record
        for record in records
    )


def _enqueued(ordered: Ordered, write: Write) -> Enqueued:
    return Enqueued(
        ordered.queue,
        ordered.position,
        write.identity,
        ordered.enqueued_at_ns,
        ordered.expires_at_ns,
        write.source_guid,
        write.related_source_guid,
        write.related_identity,
        write.related_reader_guid,
        ordered.flags,
        payload=write.payload,
    )


def _bound(remembered: OrderedDict[Key, int]) -> None:
    if len(remembered) > REMEMBERED_MAX:
        remembered.popitem(last=False)
