"""One life of a simulated service: its engine, its replicas and their turn, from what the disk holds to its end.

Decides: what is written for a group of turns and for the logs of replicas, and what is reported once it is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.high_availability.ballot import HardState
from qsctl.core.high_availability.compaction import COMPACTED_OVER_COUNT
from qsctl.core.high_availability.frames import Frame
from qsctl.core.high_availability.member import OF_NO_REPLICA, WRITES_MAX, Member
from qsctl.core.high_availability.outgoing import LogWrite
from qsctl.core.high_availability.replica import Replica
from qsctl.core.high_availability.roles import Role, StoredLog
from qsctl.core.messages import Inbound
from qsctl.core.queue.settings import ReplicationSettings
from qsctl.core.ready import SERVICE_STREAM
from qsctl.core.records import QueueDeleted, QueueRecord, Record, SubscriberDeleted
from qsctl.core.settings import ServiceSettings
from qsctl.core.turn import Group, Turn
from qsctl.identity import DrawIncarnation, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.world.disk import Append, Compact, Disk, Drop, Install, Operation, SetHardState, StreamFile, Truncate

NEVER_COMPACTED: Final = 0


@dataclass(slots=True)
class WriteGroup:
    """What is written and synced together, and whom to report it to."""

    operations: list[Operation]
    """On the service's own stores."""
    logs: list[Operation] = field(default_factory=list)
    """On the log of the replicas."""
    turns: Group = field(default_factory=lambda: Group([]))
    replicated: dict[str, int] = field(default_factory=dict)
    """The number of the last write of each replica's stream."""

    @property
    def all_operations(self) -> list[Operation]:
        """Everything that is written."""
        return self.operations + self.logs

    @property
    def is_replicated_alone(self) -> bool:
        """Whether only the log of the replicas is in it."""
        return not self.turns.turns and not self.operations


class Life:
    """A service from its start to its end.

    Args:
        settings: the configuration.
        names: the application names of all members of the cluster; its own alone where nothing is replicated.
        disk: what an earlier life left.
        now: the start, by the service's own clock.
        jitter: gives the next number in [0, 1), to spread elections.
        draw: gives each creation its incarnation.
        compact_records: after so many records a stream is compacted; 0: never, but logs of replicas by their own rule.
        configuration: how the configuration is replicated; None: it is not.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        names: Sequence[str],
        disk: Disk,
        now: Nanoseconds,
        jitter: Callable[[], float],
        draw: DrawIncarnation,
        compact_records: int,
        configuration: ReplicationSettings | None = None,
    ) -> None:
        self._disk = disk
        self._compact_records = compact_records
        self.engine = ServiceEngine(settings, started_at=now, draw=draw, journal=Journal.REPLICATED)
        self.engine.replay_all(disk.stream(SERVICE_STREAM).load())  # before there are replicas: it makes other queues
        self.member = Member(
            self.engine,
            names,
            started_at=now,
            jitter=jitter,
            compacted_over_count=compact_records or COMPACTED_OVER_COUNT,
            configuration=configuration,
        )
        self.turn = Turn(self.member, self.member.admit)
        self._resting: dict[str, StreamFile] = {}
        """The replicas' streams whose queues are not hosted."""
        self._streams = {
            stream: each.outgoing.number // WRITES_MAX
            for stream, each in self.member.replicas.items()
            if each.is_persistent
        }
        """Those that the log may have, and which of the replicas of that name each is: see `service.replica_writes`."""
        self.member.stored_before = lambda stream: _stored_log(self._resting.get(stream, StreamFile()))
        self._has_log_failed = False

    def restore(self) -> None:
        """Take up what the disk holds."""
        streams = self._disk.streams
        for name in sorted(streams.keys() - set(self.member.streams) - {SERVICE_STREAM}):
            if streams[name].is_of_replica:
                if self.member.rest(name, _stored_log(streams[name])):
                    self._resting[name] = streams[name]
            else:
                self.engine.replay_all(streams[name].load())
        for name in self.member.streams:
            if self.member.replicas[name].is_persistent:
                left = _stored_log(streams.get(name) or StreamFile())
                state = left.hard_state
                is_blank = not (left.records or left.snapshot_index or state.epoch or state.vote or state.incarnation)
                if not is_blank:
                    self.member.restore(name, left)
                elif self._disk.was_lost or self._disk.stream(SERVICE_STREAM).load():
                    # A deletion may have reached the log of the replicas, and not the service's own state.
                    self.member.restore(name, left, is_lost=self._disk.was_lost, is_new=not self._disk.was_lost)
        self._streams |= dict.fromkeys(self.member.outlived, OF_NO_REPLICA)

    def begin(self, now: Nanoseconds) -> None:
        """End the restore; timers run."""
        self.member.start(now)
        self.turn.receive(())

    def receive(self, now: Nanoseconds, messages: Sequence[Inbound], frames: Sequence[Frame]) -> None:
        """Let the engine receive what has come, and do what is due."""
        turn = self.turn
        self.member.receive_frames(now, frames)
        if messages or not turn.waits_for_disk:
            turn.receive(messages)
        while turn.step(now):
            pass
        if self._has_log_failed:
            self._fail_replicas(now)  # those created meanwhile, too

    def to_write(self) -> WriteGroup | None:
        """Return what is to be written next, all of it; None: nothing."""
        turns = self.turn.to_write()
        operations = [] if turns is None else list(self._operations(turns))
        replicated: dict[str, int] = {}
        logs = list(self._log_operations(replicated))
        if turns is None and not replicated and not logs:
            return None
        return WriteGroup(operations, logs, turns if turns is not None else Group([]), replicated)

    def to_compact(self, *, is_wanted: bool) -> WriteGroup | None:
        """Return what compacts a stream that has grown, or any if that is wanted; None: nothing, or not now.

        The logs of replicas are compacted by the replicas.
        """
        least = 1 if is_wanted else self._compact_records
        if least == NEVER_COMPACTED or not self.turn.is_idle:
            return None
        for name, stream in sorted(self._disk.streams.items()):
            if len(stream.records) < least:
                continue
            if name == SERVICE_STREAM:
                return WriteGroup([Compact(name, stream.last_index, tuple(self.engine.snapshot_service()))])
            if name in self.member.streams or name not in self.engine.hosted.by_name:
                continue
            return WriteGroup([Compact(name, stream.last_index, tuple(self.engine.snapshot_queue(name)))])
        return None

    def report(self, now: Nanoseconds, group: WriteGroup) -> None:
        """Report that a group is durable."""
        for ready in group.turns.turns:
            for batch in ready.batches:
                self.turn.durable(batch.stream, batch.last_index)
        for stream, number in group.replicated.items():
            self.member.stored(now, stream, number)
        for operation in group.logs:
            if isinstance(operation, Drop):
                self.member.log_dropped(operation.stream)

    def fail(self, now: Nanoseconds) -> None:
        """Report that the log of the replicas was not stored: they fall silent, and it is written no more."""
        self._has_log_failed = True
        self._fail_replicas(now)

    def _fail_replicas(self, now: Nanoseconds) -> None:
        for stream, replica in self.member.replicas.items():
            if replica.is_persistent and not replica.is_failed:
                self.member.store_failed(now, stream)

    def replica(self, queue: str) -> Replica | None:
        """The replica that a queue belongs to; None: it is not replicated, or not hosted."""
        hosted = self.engine.hosted.by_name.get(queue)
        return None if hosted is None else self.member.replicas.get(hosted.stream.name)

    def is_master(self, queue: str) -> bool:
        """Whether this service decides about a queue."""
        replica = self.replica(queue)
        return queue in self.engine.hosted.by_name and (replica is None or replica.role is Role.MASTER)

    def held(self) -> Iterator[tuple[str, SampleIdentity]]:
        """What the queues hold that this service decides about."""
        for name, queue in self.engine.hosted.by_name.items():
            if self.is_master(name):
                for sample in queue.held:
                    yield name, sample.identity

    def _operations(self, group: Group) -> Iterator[Operation]:
        """What turns write; a deleted queue's stream goes with it.

        An engine that was restored numbers its records behind those that it was given, a store behind those that it
        ever had: a compaction made them fewer.
        """
        next_indexes: dict[str, int] = {}
        for ready in group.turns:
            for batch in ready.batches:
                name = batch.stream
                first_index = next_indexes.get(name) or self._disk.stream(name).last_index + 1
                next_indexes[name] = first_index + len(batch.records)
                yield Append(name, first_index, tuple(batch.records))
            for record in ready.service_records:
                if isinstance(record, QueueDeleted):
                    yield from self._dropped(f"{record.participant}/{record.subscriber}/{record.name}")
                elif isinstance(record, SubscriberDeleted):
                    yield from self._dropped(f"{record.participant}/{record.subscriber}/")

    def _dropped(self, name: str) -> Iterator[Operation]:
        """What goes with a queue, or with all of a subscriber; the streams of replicas go with the replicas."""
        for stream, found in sorted(self._disk.streams.items()):
            if (stream == name or (name.endswith("/") and stream.startswith(name))) and not found.is_of_replica:
                yield Drop(stream)

    def _log_operations(self, replicated: dict[str, int]) -> Iterator[Operation]:
        """What the replicas write; enters the last write of each stream."""
        writes = self.member.pop_writes()
        if self._has_log_failed:
            return
        present = {stream for stream, each in self.member.replicas.items() if each.is_persistent}
        for stream in sorted(self._streams.keys() - present):
            yield Drop(stream)
            state = self.member.ended.get(stream)
            if state is not None and (left := state.leaving(state.incarnation)):
                self._resting[stream] = StreamFile(hard_state=HardState(left=left))
                yield SetHardState(stream, HardState(left=left))
        self._streams = {stream: which for stream, which in self._streams.items() if stream in present}
        for write in writes:
            replicated[write.stream] = write.number
            if write.stream not in present:
                continue
            which = write.number // WRITES_MAX
            if self._streams.setdefault(write.stream, which) != which:
                yield Drop(write.stream)  # deleted, and created again before the log was written
            self._streams[write.stream] = which
            self._resting.pop(write.stream, None)
            yield from _operations_of(write)


def _stored_log(stream: StreamFile) -> StoredLog:
    """Return what a replica takes up of a stream."""
    return StoredLog(
        stream.hard_state,
        stream.snapshot_index,
        cast("list[QueueRecord]", stream.snapshot),
        cast("list[QueueRecord]", stream.records),
    )


def _operations_of(write: LogWrite) -> Iterator[Operation]:
    """What a write of a replica's log does, in its order."""
    name = write.stream
    if write.hard_state is not None:
        yield SetHardState(name, write.hard_state)
    if write.snapshot is not None:
        records: tuple[Record, ...] = tuple(write.snapshot.records)
        kind = Install if write.snapshot.installs else Compact
        yield kind(name, write.snapshot.index, records)
    if write.truncate_from:
        yield Truncate(name, write.truncate_from)
    if write.records:
        yield Append(name, write.first_index, tuple(write.records))
