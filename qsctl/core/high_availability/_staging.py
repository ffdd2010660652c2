"""Samples that came to a replica and that no log has ordered yet [QS 7.1.1.1], and those that it refused.

Decides: how long such a sample waits, and that a refused attempt is never taken up again: its producer may have been
refused by all replicas, and must be able to rely on it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final, TypeAlias

from qsctl.core.high_availability._log import count_of
from qsctl.core.high_availability._uncommitted import Key
from qsctl.core.high_availability.frames import Entry, Ordered, OrderedRun
from qsctl.core.messages import SampleFlag, Write, WriteRun
from qsctl.core.records import Enqueued, EnqueuedRun, QueueStreamRecord
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds, later

REMEMBERED_MAX: Final = 65_536
"""Refused identities that are remembered, and attempts: far more than producers have unanswered."""

WITHOUT_PAYLOAD_OVER_BYTES: Final = 64
"""Payloads of more bytes than this are not sent again to a replica that had them from the producer."""

REPLICATE: Final = int(SampleFlag.REPLICATE)

StagedKey: TypeAlias = Key | tuple[str, SampleIdentity, int]
"""Key of a sample, or of a run of samples: the first one, and their number."""


class _StagedRun:
    """Samples of a run that wait.

    Args:
        key: of the run.
        writes: all samples of the run.
    """

    __slots__ = ("key", "left", "left_count", "writes")

    def __init__(self, key: tuple[str, SampleIdentity, int], writes: WriteRun) -> None:
        self.key = key
        self.writes = writes
        self.left_count = writes.count
        self.left = bytearray(b"\x01" * self.left_count)
        """For each sample 1 while it waits, then 0."""

    def offset_of(self, identity: SampleIdentity) -> int | None:
        """Return the offset of a sample of the same writer that waits; None: it is none of these."""
        offset = identity.sequence_number - self.writes.identity.sequence_number
        return offset if 0 <= offset < len(self.left) and self.left[offset] else None

    def singles(self) -> list[Write]:
        """Return the samples that wait, one by one."""
        return [write for write, waits in zip(self.writes.singles(), self.left, strict=True) if waits]


Staged: TypeAlias = tuple[Write | _StagedRun, Nanoseconds]
"""A sample or a run of samples that waits, and since when."""


class Staging:
    """Samples that one replica received and that are not in its log.

    Args:
        sample_timeout_ns: how long a sample waits.
    """

    def __init__(self, sample_timeout_ns: Nanoseconds) -> None:
        self._sample_timeout_ns = sample_timeout_ns
        self._staged: OrderedDict[StagedKey, Staged] = OrderedDict()
        self._runs: dict[tuple[str, Guid], list[_StagedRun]] = {}
        """The runs that wait, by queue and writer, in the order in which they came."""
        self._run_count = 0
        self._refused: OrderedDict[Key, int] = OrderedDict()
        self._attempts: OrderedDict[Key, int] = OrderedDict()

    def __len__(self) -> int:
        in_runs_count = sum(run.left_count for runs in self._runs.values() for run in runs)
        return len(self._staged) - self._run_count + in_runs_count

    def note_attempt(self, queue: str, write: Write) -> None:
        """Remember the number of an attempt that is not the first, or that there is none (0)."""
        key = (queue, write.identity)
        self._attempts[key] = max(write.attempt, self._attempts.pop(key, 0))
        _bound(self._attempts)

    def stage(self, now: Nanoseconds, queue: str, write: Write) -> None:
        """Let a sample wait; a second time changes nothing."""
        if not self._runs or self._run_of(queue, write.identity) is None:
            self._staged.setdefault((queue, write.identity), (write, now))

    def stage_run(self, now: Nanoseconds, queue: str, writes: WriteRun) -> None:
        """Let samples wait of which `knows_any` knows none."""
        key = (queue, writes.identity, writes.count)
        run = _StagedRun(key, writes)
        self._staged[key] = run, now
        self._runs.setdefault((queue, writes.identity.writer_guid), []).append(run)
        self._run_count += 1

    def knows_any(self, queue: str, identities: list[SampleIdentity]) -> bool:
        """Return whether one of these consecutive samples of a writer waits or was refused."""
        if self._refused or len(self._staged) > self._run_count:
            keys = [(queue, identity) for identity in identities]
            if any(key in self._refused or key in self._staged for key in keys):
                return True
        first = identities[0]
        number, stop = first.sequence_number, first.sequence_number + len(identities)
        return any(
            number < run.writes.identity.sequence_number + run.writes.count
            and run.writes.identity.sequence_number < stop
            for run in self._runs.get((queue, first.writer_guid), ())
        )

    def unstage_all(self) -> list[tuple[str, Write]]:
        """Let all go, in the order in which they came; give them with their queues."""
        staged, self._staged = self._staged, OrderedDict()
        self._runs.clear()
        self._run_count = 0
        return [(key[0], write) for key, (waiting, _) in staged.items() for write in _singles_of(waiting)]

    def refuse(self, queue: str, identity: SampleIdentity) -> int:
        """Never take up a sample again as far as it was written by now; return the latest attempt."""
        key = (queue, identity)
        self._unstage(queue, identity)
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
            key, (waiting, _) = self._staged.popitem(last=False)
            if isinstance(waiting, _StagedRun):
                self._drop(waiting)
            late += [(key[0], write) for write in _singles_of(waiting)]
        return late

    def take(self, entries: Sequence[Entry]) -> tuple[list[QueueStreamRecord], list[tuple[int, Enqueued]]]:
        """Let go of the samples of entries, up to the first of which neither has the payload.

        Returns:
            The records of those entries; and of those, the samples that are to be passed on, which came here alone
            perhaps, each with the number of entries before it.
        """
        taken: list[QueueStreamRecord] = []
        passed_on: list[tuple[int, Enqueued]] = []
        count = 0
        left = deque(entries)
        while left:
            entry = left.popleft()
            if isinstance(entry, OrderedRun):
                if (run := self._take_run(entry.queue, entry.identity, entry.count)) is None:
                    left.extendleft(reversed(entry.singles()))
                    continue
                taken.append(
                    run.enqueued(entry.queue, entry.position, entry.enqueued_at_ns, entry.expires_at_ns, entry.flags)
                )
                count += entry.count
                continue
            if isinstance(entry, EnqueuedRun) and self._take_run(entry.queue, entry.identity, entry.count) is None:
                if self.knows_any(entry.queue, entry.identities()):
                    left.extendleft(reversed(entry.singles()))
                    continue
            elif isinstance(entry, Ordered):
                write = self._unstage(entry.queue, entry.identity)
                if write is None:
                    break
                entry = _enqueued(entry, write)
                if write.flags & REPLICATE:
                    passed_on.append((count, entry))
            elif type(entry) is Enqueued:
                write = self._unstage(entry.queue, entry.identity)
                if write is not None and write.flags & REPLICATE:
                    passed_on.append((count, entry))
            taken.append(entry)
            count += count_of(entry)
        return taken, passed_on

    def _take_run(self, queue: str, first: SampleIdentity, count: int) -> WriteRun | None:
        """Let go of consecutive samples that wait in one run, and return them; None: they do not."""
        staged = self._staged.get((queue, first, count))
        if staged is not None and isinstance(run := staged[0], _StagedRun) and run.left_count == count:
            del self._staged[run.key]
            self._drop(run)
            return run.writes
        run_of_first = self._run_of(queue, first)
        if run_of_first is None:
            return None
        start = first.sequence_number - run_of_first.writes.identity.sequence_number
        if run_of_first.left[start : start + count] != b"\x01" * count:
            return None
        self._let_go(run_of_first, start, start + count)
        return run_of_first.writes.part(start, start + count)

    def _unstage(self, queue: str, identity: SampleIdentity) -> Write | None:
        """Let go of a sample, and return it; None: it does not wait."""
        staged = self._staged.pop((queue, identity), None)
        if staged is not None:
            assert isinstance(staged[0], Write)
            return staged[0]
        run = self._run_of(queue, identity) if self._runs else None
        if run is None:
            return None
        offset = identity.sequence_number - run.writes.identity.sequence_number
        self._let_go(run, offset, offset + 1)
        return run.writes.part(offset, offset + 1).singles()[0]

    def _run_of(self, queue: str, identity: SampleIdentity) -> _StagedRun | None:
        """Return the run in which a sample waits; None: it waits in none."""
        runs = self._runs.get((queue, identity.writer_guid), ())
        return next((run for run in runs if run.offset_of(identity) is not None), None)

    def _let_go(self, run: _StagedRun, start: int, stop: int) -> None:
        """Let go of the samples of a run between two offsets, all of which wait."""
        run.left[start:stop] = bytes(stop - start)
        run.left_count -= stop - start
        if not run.left_count:
            del self._staged[run.key]
            self._drop(run)

    def _drop(self, run: _StagedRun) -> None:
        """Forget a run."""
        queue, first, _ = run.key
        runs = self._runs[queue, first.writer_guid]
        runs.remove(run)
        self._run_count -= 1
        if not runs:
            del self._runs[queue, first.writer_guid]


def without_payloads(records: Sequence[QueueStreamRecord]) -> list[Entry]:
    """Return the records as entries, less what replicas had from the producers."""
    return [_without_payload(record) for record in records]


def _without_payload(record: QueueStreamRecord) -> Entry:
    if (
        type(record) is Enqueued
        and record.dead_letter_reason is None
        and record.moved_from is None
        and len(record.payload) > WITHOUT_PAYLOAD_OVER_BYTES
    ):
        return Ordered(
            record.queue,
            record.position,
            record.identity,
            record.enqueued_at_ns,
            record.expires_at_ns,
            record.flags,
        )
    if type(record) is EnqueuedRun and record.payload_bytes > WITHOUT_PAYLOAD_OVER_BYTES * record.count:
        return OrderedRun(
            record.queue,
            record.position,
            record.identity,
            record.count,
            record.enqueued_at_ns,
            record.expires_at_ns,
            record.flags,
        )
    return record


def _singles_of(waiting: Write | _StagedRun) -> Sequence[Write]:
    return waiting.singles() if isinstance(waiting, _StagedRun) else (waiting,)


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
