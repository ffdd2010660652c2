"""One process of a simulated service: the live driver, over a simulated disk, links and clock.

Decides what the driver is given. Its stores, replica log, loop and messages to other members are those of a live
service; in the place of files, threads and DDS it has `environment.disk`, syncs on virtual time, and
`environment.links`. What is written and restored is passed to the judges, who keep their own account (`stored`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import msgspec

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.config.settings import ConfigurationReplicationSettings, ServiceConfiguration, ServiceQosSettings
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.high_availability.ballot import HardState
from qsctl.core.high_availability.compaction import COMPACTED_OVER_COUNT
from qsctl.core.high_availability.replica import Replica
from qsctl.core.high_availability.roles import Role, RoleChanged
from qsctl.core.messages import Inbound, QueueName
from qsctl.core.queue.settings import ReplicationSettings
from qsctl.core.ready import SERVICE_STREAM, Ready
from qsctl.core.records import QueueDeleted, QueueRecord, Record, Removed, SubscriberDeleted, one_by_one
from qsctl.core.settings import ServiceSettings
from qsctl.errors import Damaged
from qsctl.identity import DrawIncarnation, SampleIdentity
from qsctl.instant import INFINITE_NS, SECOND_NS, Nanoseconds
from qsctl.service.replicas.replication import Replication, member_count
from qsctl.service.run.environment import Environment
from qsctl.service.run.loop import COMPACT_AFTER_RECORDS, ServiceLoop
from qsctl.service.stores.restore import restore
from qsctl.service.stores.stores import Stores
from qsctl.service.stores.sync_thread import QUICK_SYNC_S
from qsctl.sim.world.environment.agenda import WorldAgenda
from qsctl.sim.world.environment.database import DatabaseStandIn
from qsctl.sim.world.environment.disk import DIRECTORY, MountedDisk, ProcessHangs, SimulatedDisk
from qsctl.sim.world.environment.links import Links
from qsctl.sim.world.services._runs import in_runs
from qsctl.sim.world.services.stored import (
    Append,
    Compact,
    Drop,
    Install,
    Operation,
    SetHardState,
    StoredState,
    StreamFile,
    Truncate,
)
from qsctl.storage.base import Extent, Sync
from qsctl.storage.file_system import FileSystem
from qsctl.storage.log.segment_file import Replacement
from qsctl.storage.replicas import replica_stream
from qsctl.storage.replicas.log_compaction import LogCompaction
from qsctl.storage.replicas.replica_log import ReplicaLog
from qsctl.storage.replicas.replica_operations import RecordsCodec
from qsctl.storage.replicas.replica_stream import StoredStream

LOOKS_AGAIN_NS: Final[Nanoseconds] = SECOND_NS // 5
"""Interval at which a hanging sync is checked: the disk may have been repaired meanwhile."""

_NEVER: Final = 0
_SERVICE_FILE: Final = "QSservice@"


class Machine(Protocol):
    """The machine that a process runs on, and its observers: a `SimulatedService`."""

    agenda: WorldAgenda
    disk: SimulatedDisk
    stored: StoredState
    draw: DrawIncarnation

    def clock(self) -> Nanoseconds:
        """Return the instant by the machine's own clock."""

    def jitter(self) -> float:
        """Draw the jitter of a wait before an election."""

    def note_stored(self, operations: Sequence[Operation], /) -> None:
        """Notify the observers of operations that are durable."""

    def before_sync(self) -> None:
        """Raise PowerFailed if a crash is planned before a sync."""

    def after_sync(self) -> None:
        """Raise PowerFailed if a crash is planned after a sync."""

    def guarded(self, do: Callable[[], None], /) -> None:
        """Run work of another thread of the process, and handle the end of the process that it may cause."""

    def look_again(self) -> None:
        """Schedule a pass at once."""


class SimulatedSyncs:
    """A simulated `SyncThread`: performs one sync at a time on virtual time.

    Args:
        machine: the machine whose disk is synced.
        mounted: the same disk as the process accesses it.
        on_synced: called when a sync that was begun is complete.
        quick_sync_s: the process waits for a sync that takes less than this.
    """

    def __init__(
        self, machine: Machine, mounted: MountedDisk, on_synced: Callable[[], object], /, *, quick_sync_s: float
    ) -> None:
        self._machine = machine
        self._mounted = mounted
        self._on_synced = on_synced
        self._quick_sync_ns = min(quick_sync_s * SECOND_NS, INFINITE_NS)
        self._sync: Sync | None = None
        self._error: Damaged | None = None
        self._due_ns: Nanoseconds = 0

    def begin(self, sync: Sync) -> bool:
        """Perform a sync, or begin it in the other thread if it is slow; return whether it is complete.

        No other sync may be in progress.
        """
        disk = self._machine.disk
        if disk.sync_ns < self._quick_sync_ns:
            sync()
            return True
        self._sync, self._error = sync, None
        self._plan(sync)
        return False

    @property
    def is_done(self) -> bool:
        """Return whether the sync of the other thread is complete; `end` raises its error."""
        return self._sync is None

    def end(self) -> None:
        """Wait for the sync of the other thread, and raise the error that it ended with."""
        if self._sync is not None:
            if self._machine.disk.hangs:
                raise ProcessHangs
            until_ns = self._due_ns if self._due_ns < INFINITE_NS else self._machine.agenda.now
            self._mounted.busy_ns += max(0, until_ns - self._machine.agenda.now)
            self._do(self._sync)
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End the other thread."""

    def _plan(self, sync: Sync) -> None:
        disk, agenda = self._machine.disk, self._machine.agenda
        if disk.hangs:
            self._due_ns = INFINITE_NS
            agenda.after(LOOKS_AGAIN_NS, lambda: self._plan(sync) if self._is_in_progress(sync) else None)
        else:
            self._due_ns = agenda.now + disk.sync_ns
            agenda.at(self._due_ns, lambda: self._machine.guarded(lambda: self._finish(sync)))

    def _is_in_progress(self, sync: Sync) -> bool:
        return self._sync is sync and not self._mounted.is_dead

    def _finish(self, sync: Sync) -> None:
        if self._is_in_progress(sync):
            self._machine.before_sync()
            self._do(sync)
            self._machine.after_sync()
            self._on_synced()

    def _do(self, sync: Sync) -> None:
        self._mounted.is_waited_for = False
        try:
            sync()
        except Damaged as error:
            self._error = error
        finally:
            self._mounted.is_waited_for = True
        self._sync = None


class WatchedReplicaLog(ReplicaLog):
    """A replica log that reports its writes, syncs and restored streams to the judges."""

    def __init__(
        self,
        watch: ProcessWatch,
        compacted_over_bytes: int,
        stem: Path,
        settings: FilesystemSettings,
        records: RecordsCodec,
        known: Extent | None,
        note: Callable[[Extent], None],
        disk: FileSystem,
        /,
    ) -> None:
        self._watch = watch
        self._decode = records.decode
        self._parts: dict[str, list[bytes]] = {}
        """Those of a snapshot that is not written whole yet, by stream."""
        self._compacted: dict[str, StoredStream] = {}
        """The streams in the base of the latest compaction, but for those that were replaced since."""
        super().__init__(stem, settings, records, known, note, disk, compacted_over_bytes=compacted_over_bytes)
        watch.replica_log = self

    def pop_found(self) -> dict[str, StoredStream]:
        """Return and forget the streams that a restart found."""
        found = super().pop_found()
        self._watch.found_in_log(found, is_damaged=self.is_damaged)
        return found

    def write(self, operations: Iterable[replica_stream.Operation]) -> Sync | None:
        """Write operations in order; return the sync that makes them durable."""
        operations = list(operations)
        self._watch.stored.begin_replicas([each for operation in operations for each in self._judged(operation)])
        sync = super().write(operations)
        assert sync is not None, "it is synced with each write"

        def synced() -> None:
            sync()
            self._watch.note(self._watch.stored.end_replicas())

        return synced

    def compact(self, streams: Mapping[str, StoredStream]) -> LogCompaction:
        """Return a compaction to these streams."""
        self._compacted = dict(streams)
        return super().compact(streams)

    def put_base(self, base: Replacement) -> None:
        """Replace the files before a base, in which snapshots have superseded entries."""
        self._watch.stored.begin_replicas(
            [
                Compact(name, each.snapshot_index, each.snapshot_records)
                for name, each in self._compacted.items()
                if each.snapshot_index
            ]
        )
        super().put_base(base)
        self._watch.note(self._watch.stored.end_replicas())

    def _judged(self, operation: replica_stream.Operation) -> list[Operation]:
        match operation:
            case replica_stream.StateSet(stream, state):
                return [SetHardState(stream, HardState(*msgspec.structs.astuple(state)))]
            case replica_stream.SnapshotPart(stream, number, data):
                parts = self._parts.setdefault(stream, [])
                parts[number:] = [data]
                return []
            case replica_stream.SnapshotPut(stream, index, _, data):
                self._compacted.pop(stream, None)
                encoded = (*self._parts.pop(stream, ()), data)
                return [Install(stream, index, [record for each in encoded for record in self._decode(each)])]
            case replica_stream.Appended(stream, first_index, count, truncates, data):
                done: list[Operation] = [Truncate(stream, first_index)] if truncates else []
                return [*done, Append(stream, first_index, self._decode(data))] if count else done
            case replica_stream.Dropped(stream):
                self._compacted.pop(stream, None)
                return [Drop(stream)]
            case _:
                return []


class WatchedStores(Stores):
    """Stores of a service that report the writes, syncs and restored records of queues to the judges."""

    watch: ProcessWatch

    def write(self, turns: Sequence[Ready]) -> Sync | None:
        """Write the records of several turns as one batch, put payloads into messages, and return the pending sync."""
        written = [
            (batch.stream, tuple(one_by_one(batch.records)))
            for ready in turns
            for batch in ready.batches
            if batch.stream in self.queues and batch.stream not in self.failures.queues
        ]
        self.watch.begin_queues(written)
        is_deferred = all(type(record) is Removed for _, records in written for record in records)
        is_deferred = is_deferred and not any(ready.messages or ready.service_records for ready in turns)
        sync = super().write(turns)
        if sync is None:
            if not is_deferred:
                self.watch.end_queues(self.failures.queues)
            return None

        def synced() -> None:
            sync()
            self.watch.end_queues(self.failures.queues)

        return synced

    def sync(self) -> None:
        """Make durable the records whose sync was deferred to the next batch."""
        super().sync()
        self.watch.end_queues(self.failures.queues)

    def load(self, queue: QueueName) -> Iterator[Record]:
        """Return the records in a queue's store; none if it has no store."""
        records = list(super().load(queue))
        if queue in self.queues:
            self.watch.found_in_queue(queue, records, is_damaged=bool(self.damage))
        return iter(records)

    def recover(self, name: QueueName, snapshot: Iterable[QueueRecord]) -> None:
        """Store the complete content of a queue whose store failed, in new files if the old ones are unreliable."""
        records = list(snapshot)
        super().recover(name, records)
        self.watch.renewed(name, records)


class ProcessWatch:
    """The judges' view of one process's stores.

    Args:
        stored: the judges' account of the service's stored records.
        note: called with operations that are durable.
    """

    def __init__(self, stored: StoredState, note: Callable[[Sequence[Operation]], None]) -> None:
        self.stored = stored
        self.note = note
        self.restart_faults: list[str] = []
        """Descriptions of records that a restart found although they were not stored, or did not find although durable.
        """
        self.replica_log: ReplicaLog | None = None
        """The log of the process's replicas, once it is open."""
        self.found_streams: dict[str, StreamFile] = {}
        self.is_log_damaged = False

    def found_in_log(self, found: dict[str, StoredStream], *, is_damaged: bool) -> None:
        """Compare the replica streams that a restart found with the judges' account."""
        self.is_log_damaged = is_damaged
        streams = {
            name: StreamFile(
                list(each.snapshot_records),
                each.snapshot_index,
                list(each.records),
                HardState(*msgspec.structs.astuple(each.hard_state)),
            )
            for name, each in found.items()
        }
        adopted, wrong = self.stored.found_in_log(streams)
        self.found_streams = streams
        if not is_damaged:
            self.note(adopted)
            self.restart_faults += wrong

    def found_in_queue(self, name: str, records: Sequence[Record], *, is_damaged: bool) -> None:
        """Compare the records of an unreplicated queue that a restart found with the judges' account."""
        adopted, wrong = self.stored.found_in_queue(name, records)
        self.note(adopted)
        if not is_damaged:
            self.restart_faults += wrong

    def begin_queues(self, written: Sequence[tuple[str, Sequence[Record]]]) -> None:
        """Note records that are written to the files of unreplicated queues."""
        next_indexes: dict[str, int] = {}
        operations = []
        for name, records in written:
            first_index = next_indexes.get(name) or self.stored.next_index(name)
            next_indexes[name] = first_index + len(records)
            operations.append(Append(name, first_index, records))
        self.stored.begin_queues(operations)

    def end_queues(self, failed: Iterable[str]) -> None:
        """Note that the records written to the files of queues are durable, except those of failed queues."""
        self.note(self.stored.end_queues(failed))

    def renewed(self, name: str, records: Sequence[Record]) -> None:
        """Note that the complete content of a queue whose store failed was stored; what was durable before stays so."""
        self.stored.forget_pending(name)
        operation = Compact(name, self.stored.stream(name).last_index + len(records), tuple(records))
        self.stored.do(operation)
        self.note([operation])

    def appended(self, name: str, records: Sequence[Record]) -> None:
        """Note the records appended to the service's state file; a deletion of a queue drops its stream, too."""
        if not name.startswith(_SERVICE_FILE):
            return  # `WatchedStores.write` notes the records of queues
        operations: list[Operation] = [
            Append(SERVICE_STREAM, self.stored.stream(SERVICE_STREAM).last_index + 1, tuple(records))
        ]
        for record in records:
            if isinstance(record, QueueDeleted):
                operations += self._dropped(f"{record.participant}/{record.subscriber}/{record.name}")
            elif isinstance(record, SubscriberDeleted):
                operations += self._dropped(f"{record.participant}/{record.subscriber}/")
        for operation in operations:
            self.stored.do(operation)
        self.note(operations)

    def replaced(self, name: str, records: Sequence[Record]) -> None:
        """Note the records that replace those of the service's state file, as where a change could not be appended."""
        if name.startswith(_SERVICE_FILE):
            operation = Compact(SERVICE_STREAM, self.stored.stream(SERVICE_STREAM).last_index, tuple(records))
            self.stored.do(operation)
            self.note([operation])

    def _dropped(self, name: str) -> list[Operation]:
        """Return the drops of a deleted queue's stream, or of a subscriber's (`name/`), except those of replicas."""
        return [
            Drop(stream)
            for stream, found in sorted(self.stored.streams.items())
            if (stream == name or (name.endswith("/") and stream.startswith(name))) and not found.is_of_replica
        ]


class _Silence:
    """A logger that discards everything: a world's history contains the same facts."""

    def info(self, event: str, **fields: object) -> None:
        """Discard a message about normal operation."""

    def warning(self, event: str, **fields: object) -> None:
        """Discard a warning."""

    def error(self, event: str, **fields: object) -> None:
        """Discard an error."""


class Process:
    """One process of a service, from its start to its end.

    Args:
        machine: the machine that it runs on.
        settings: the configuration.
        names: the application names of all members of the cluster; its own alone where nothing is replicated.
        links: its links to the other services.
        compact_records: number of records after which stores are compacted; 0: as the live defaults.
        configuration: how the configuration is replicated; None if it is not.
        file_max_size_kb: the size at which a store begins another file.
        discards_damaged: whether to continue with the intact records where some are lost.
        master_priority: that of the service as master.

    Raises:
        Damaged: stored records are lost and may not be discarded, or an I/O error occurs.
    """

    def __init__(
        self,
        machine: Machine,
        settings: ServiceSettings,
        names: Sequence[str],
        links: Links,
        *,
        compact_records: int,
        configuration: ReplicationSettings | None,
        file_max_size_kb: int,
        discards_damaged: bool,
        master_priority: int,
    ) -> None:
        self.links = links
        self.mounted = mounted = machine.disk.mount()
        self.watch = ProcessWatch(machine.stored, machine.note_stored)
        self.changes: list[RoleChanged] = []
        clock = machine.clock
        self.engine = ServiceEngine(settings, started_at=clock(), draw=machine.draw, journal=Journal.REPLICATED)
        filesystem = FilesystemSettings(
            DIRECTORY, synchronization=Synchronization.FULL, file_max_size_kb=file_max_size_kb
        )
        environment = Environment(
            disk=mounted,
            open_database=partial(DatabaseStandIn, machine.disk, mounted, self.watch),
            open_syncs=partial(SimulatedSyncs, machine, mounted),
            open_replica_log=partial(WatchedReplicaLog, self.watch, 16 * file_max_size_kb * 1024),
            steady=clock,
            jitter=machine.jitter,
        )
        stores = WatchedStores(
            DIRECTORY,
            filesystem,
            settings.application_name,
            keeps_service_state=True,
            discards_damaged=discards_damaged,
            environment=environment,
        )
        stores.watch = self.watch
        restore(self.engine, stores, clock())
        quorum = ConfigurationReplicationSettings(configuration or ReplicationSettings())
        configured = ServiceConfiguration(
            "world", settings, service_qos=ServiceQosSettings(configuration_replication=quorum)
        )
        self.replication: Replication | None = None
        if member_count(configured, self.engine.hosted.settings()):
            self.replication = Replication(
                self.engine,
                stores,
                configured,
                names,
                clock,
                _Silence(),
                on_synced=machine.look_again,
                quick_sync_s=QUICK_SYNC_S,
                compacted_over_count=compact_records or COMPACTED_OVER_COUNT,
                master_priority=master_priority,
            )
            self.replication.on_change = self.changes.append
        self.loop = ServiceLoop(
            self.engine,
            stores,
            clock,
            on_finished=machine.look_again,
            quick_sync_s=QUICK_SYNC_S,
            replication=self.replication,
            compact_after_records=COMPACT_AFTER_RECORDS if compact_records == _NEVER else compact_records,
        )
        self.inbox: list[Inbound] = []

    def begin(self) -> None:
        """Join the cluster, and perform the first work of the driver's loop."""
        if self.replication is not None:
            self.replication.start(self.links)
        self.loop.begin()

    def poll(self) -> list[Inbound]:
        """Return and remove the messages that have arrived for the engine, as runs where they are consecutive."""
        inbox, self.inbox = self.inbox, []
        return in_runs(inbox)

    def close(self) -> None:
        """Stop in order, and close the stores."""
        self.loop.close()
        if self.replication is not None:
            self.replication.close()
        self.loop.stores.close()

    @property
    def replicas(self) -> dict[str, Replica]:
        """Return the replicas, by stream."""
        return {} if self.replication is None else self.replication.member.replicas

    @property
    def outlived(self) -> set[str]:
        """Return the streams whose stored log belongs to a deleted creation of their queue."""
        return set() if self.replication is None else self.replication.member.outlived

    @property
    def waits_for_rest(self) -> bool:
        """Return whether work is deferred to a moment without other work."""
        return self.loop.recovery.is_needed or self.watch.stored.is_anything_deferred

    def replica(self, queue: str) -> Replica | None:
        """Return the replica of a queue; None if the queue is not replicated or not hosted."""
        hosted = self.engine.hosted.by_name.get(queue)
        return None if hosted is None else self.replicas.get(hosted.stream.name)

    def is_master(self, queue: str) -> bool:
        """Return whether this service hosts a queue and, if it is replicated, is its master."""
        replica = self.replica(queue)
        return queue in self.engine.hosted.by_name and (replica is None or replica.role is Role.MASTER)

    def held(self) -> Iterable[tuple[str, SampleIdentity]]:
        """Yield the samples, with their queues, that are held by the queues that this service is master of."""
        for name, queue in self.engine.hosted.by_name.items():
            if self.is_master(name):
                for sample in queue.held:
                    yield name, sample.identity
