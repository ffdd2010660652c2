"""The queues of a replica: how they follow the log, and how they begin to work when the replica becomes master.

Decides: what an entry means to which queue of the group. A slave's queue holds what is committed and does nothing by
itself; a master's is ahead of that, by what it recorded since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec import structs

from qsctl.core.high_availability._followed import UNPLAYABLE, Unplayable
from qsctl.core.high_availability._log import LogSnapshot, ReplicatedLog
from qsctl.core.messages import Write
from qsctl.core.queue.restore import QueueReplay, resume, snapshot
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.core.records import (
    EpochBegan,
    MembersChanged,
    QueueRecord,
    QueueStreamRecord,
    ReplicaRejoined,
    SendsAhead,
)
from qsctl.identity import Guid, Incarnation
from qsctl.instant import Nanoseconds


class Follower:
    """The queues of one replication group, dead letters first.

    Args:
        stream: the group's name.
        queues: they hold nothing, and do nothing until `take_over`.
    """

    def __init__(self, stream: str, queues: Sequence[SharedReaderQueue]) -> None:
        self._stream = stream
        self.queues = queues
        self.applied_index = 0
        """The queues are in the state of this entry."""
        self.follows_commit = self.sends_payloads = False
        self.sends_ahead = True
        self._labels = {queue.label: queue for queue in queues}
        self._queues = {queue.name: queue for queue in queues}
        self.names = frozenset((stream, *(queue.name for queue in queues)))
        self._begin()

    def _begin(self) -> None:
        for queue in self.queues:
            queue.suspend()
        self.sends_ahead = True
        self._replays = {queue.name: QueueReplay(queue, is_restart=False) for queue in self.queues}

    def forget(self, now: Nanoseconds) -> None:
        """Let the queues forget everything."""
        for queue in self.queues:
            queue.forget(now)
        self._begin()
        self.applied_index = 0

    def begin(self, now: Nanoseconds, base: LogSnapshot) -> None:
        """Put the queues into the state of a snapshot."""
        self.forget(now)
        self._play(base.records)
        self.applied_index = base.index

    def roll_back(self, now: Nanoseconds, log: ReplicatedLog, index: int) -> None:
        """Follow the log from its beginning up to a committed entry."""
        self.begin(now, log.base)
        self.follow(log, index)

    def record(self, _now: Nanoseconds, record: QueueRecord) -> None:
        """Record something beside what the queues do."""
        if isinstance(record, SendsAhead):
            self.sends_ahead = record.is_allowed
        self.queues[0].stream.record(record)

    def recorded(self, index: int) -> None:
        """Note that the queues are in the state of this entry, which they recorded."""
        self.applied_index = index

    def follow(self, log: ReplicatedLog, index: int) -> None:
        """Play the entries up to this index."""
        self._play(log.records_from(self.applied_index + 1, index - self.applied_index))
        self.applied_index = index

    def assigned(self) -> dict[str, dict[int, Guid]]:
        """Return who was assigned what, by queue and position."""
        return {name: replay.deliveries_in_progress() for name, replay in self._replays.items()}

    def take_over(self, now: Nanoseconds, index: int, assigned: dict[str, dict[int, Guid]]) -> None:
        """Let the queues work, in the state of the log's last entry.

        What was assigned goes to its consumer first, where that is there.
        """
        for queue in self.queues:
            queue.stream.base_index = index
            queue.context.refuses = queue.context.is_suspended = False
        for queue in self.queues:
            resume(now, queue, is_restart=False, assigned=assigned[queue.name])
        for queue in self.queues:
            queue.go_on(now)

    def pause(self) -> None:
        """Let a master's queues send nothing, so that the log comes to rest; acknowledgments still count."""
        for queue in self.queues:
            queue.suspend()

    def go_on(self, now: Nanoseconds) -> None:
        """Let a master's queues work again after `pause`."""
        for queue in self.queues:
            queue.go_on(now)

    def step_down(self, now: Nanoseconds, log: ReplicatedLog) -> list[tuple[str, Write]]:
        """Follow again; return the samples that waited outside full queues, with the queues."""
        outside: list[tuple[str, Write]] = []
        for queue in self.queues:
            while (arrival := queue.reader_cache.first()) is not None:
                queue.reader_cache.leave(arrival.write.identity)
                outside.append((queue.name, arrival.write))
        self.roll_back(now, log, log.commit_index)
        return outside

    def be(self, incarnation: Incarnation) -> None:
        """Give the queues the incarnation of the group: dead letters name it."""
        for queue in self.queues:
            queue.be(incarnation)

    def snapshot(self, epoch: int, incarnation: int) -> tuple[QueueRecord, ...]:
        """Return the fewest records that describe the present state of all queues, after an entry of this epoch."""
        began = EpochBegan(self._stream, epoch, "", flags_all=False, incarnation=Incarnation(incarnation))
        others = () if self.sends_ahead else (SendsAhead(self._stream, is_allowed=False),)
        return (began, *chain.from_iterable(map(snapshot, self.queues)), *others)

    def held_count(self) -> int:
        """Return how many samples the queues hold."""
        return sum(len(queue.held) for queue in self.queues)

    def _play(self, records: Iterable[QueueStreamRecord]) -> None:
        try:
            self._play_all(records)
        except UNPLAYABLE as error:
            raise Unplayable(f"{type(error).__name__}: {error}") from error

    def _play_all(self, records: Iterable[QueueStreamRecord]) -> None:
        replays = self._replays
        for record in records:
            kind = type(record)
            if isinstance(record, SendsAhead):
                self.sends_ahead = record.is_allowed
            elif kind is EpochBegan:
                self.sends_ahead = True
                for replay in replays.values():
                    replay.play(record)
            elif kind is not ReplicaRejoined and kind is not MembersChanged:
                replay = replays[record.queue]
                replay.play(record)
                if replay.dead_letters:
                    origin = replay.dead_letters.pop()
                    if (source := self._labels.get(origin.queue)) is not None:
                        # What is in the log of a group is of this group, also what it logged before it had a number.
                        origin = structs.replace(origin, incarnation=source.incarnation)
                        replays[source.name].complete_move(origin)
                if replay.moved_from:
                    place = replay.moved_from.pop()
                    if place.queue in replays:
                        place = structs.replace(place, incarnation=self._queues[place.queue].incarnation)
                        replays[place.queue].leave_moved(place)
