"""All stores of a service: which record is written to which, in which order, and the handling of failures [QS 2.14].

Decides: the kind of store and the files of each queue. A persistent queue has its own files in the configured
directory. A volatile one has none in a running service; the embedded service keeps it in files of its own, for there
the process ends with every command.

Decides: that a sample is written to the dead letters, or to the queue that a command moves it to, before it is removed
from its queue. Queues that share a write-ahead log share an append in this order; of several files each is synced
before the files that depend on it are written.

Decides: that both queues count as failed where a dead or moved sample would be in neither of them (see `_failures`). A
write that failed cleanly for lack of space is repeated after the reserve was released; a failed sync is not repeated.

Decides: when which store is compacted, and that the write-ahead logs stay short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from qsctl.config.filesystem import FilesystemSettings
from qsctl.core.messages import QueueName
from qsctl.core.payloads import fill_payloads
from qsctl.core.queue.settings import PersistenceKind
from qsctl.core.ready import SERVICE_STREAM, Ready, StreamName
from qsctl.core.records import (
    QueueDeleted,
    QueueRecord,
    Record,
    Removed,
    RemovedRun,
    ServiceRecord,
    StreamRecord,
    SubscriberDeleted,
)
from qsctl.errors import Damaged
from qsctl.identity import Incarnation
from qsctl.service.run.environment import HOST_ENVIRONMENT, Environment
from qsctl.service.stores._failures import Failure, Failures
from qsctl.service.stores._payload_reader import payload_reader
from qsctl.service.stores._queue_codec import QUEUE_CODEC
from qsctl.service.stores._store_files import QueueStore, StoreFiles
from qsctl.service.stores.places import HostedPlace, Places
from qsctl.storage.base import DatabaseStorage, Shares, Sync
from qsctl.storage.claim import WAIT_S, Claim
from qsctl.storage.damage import DamageReport, refuse_loss
from qsctl.storage.log import log_upkeep
from qsctl.storage.log.write_ahead_log import FILES_MAX, WriteAheadLog
from qsctl.storage.replicas.replica_log import ReplicaLog
from qsctl.storage.replicas.replica_operations import RecordsCodec
from qsctl.storage.room import DiskFull
from qsctl.storage.streams.logged import LoggedStorage, write_group

Snapshot: TypeAlias = Callable[[QueueName], Iterable[QueueRecord]]
"""The fewest records that give a queue's state."""

_REMOVALS: Final = frozenset({Removed, RemovedRun})

_FILES_AT_REST: Final = 2
"""Number of files that a log may have when the service leaves: the next one reads them."""


class Stores:
    """The stores of one service instance. One thread at a time may use them.

    Args:
        directory: where persistent queues and the service state are kept; must exist.
        filesystem: how they are written [QS Table 3.9].
        application_name: part of every file's name.
        keeps_service_state: whether changes of the configuration survive [QS 2.14.1].
        volatile_directory: where volatile queues are kept all the same; None: nowhere.
        claim: the lock on the files, passed on by another process; None: locked when needed.
        claim_wait_s: the longest wait for another service that has the lock.
        log_label: distinguishes the write-ahead logs of a service's processes.
        holds_samples: whether the queues' own files are opened; False in the coordinator of several processes.
        discards_damaged: whether to continue with the intact records after a loss; else a loss is an error, and no file
            changes.
        drops_service_state: whether the stored configuration is deleted, once no store prevents the start.
        environment: the access to the machine's files.

    Raises:
        InvalidInput: the directory does not exist, or a name cannot be part of a file name.
        Refused: another service uses the files, or the directory cannot be written.
        Damaged: records are lost, or an I/O error occurs.
    """

    def __init__(
        self,
        directory: Path,
        filesystem: FilesystemSettings,
        application_name: str,
        *,
        keeps_service_state: bool,
        volatile_directory: Path | None = None,
        claim: Claim | None = None,
        claim_wait_s: float = WAIT_S,
        log_label: str = "",
        holds_samples: bool = True,
        discards_damaged: bool = False,
        drops_service_state: bool = False,
        environment: Environment = HOST_ENVIRONMENT,
    ) -> None:
        self.environment = environment
        self.files = StoreFiles(
            directory,
            filesystem,
            application_name,
            volatile_directory=volatile_directory,
            claim=claim,
            claim_wait_s=claim_wait_s,
            log_label=log_label,
            discards_damaged=discards_damaged,
            environment=environment,
        )
        self.files.before_mending = self._fail_unsynced
        self._is_judged = False
        """Whether what was found at the start was whole, or was given up: nothing is noted or emptied before that."""
        self._to_empty: set[QueueName] = set()
        """Queues whose samples are not restored, and go once nothing refuses the start."""
        self._drops_service_state = drops_service_state
        self._holds_samples = holds_samples
        self._is_beside_others = claim is not None
        """Another process of the service has claimed the files, and looks after what no process has."""
        self._has_carried_over = self._is_beside_others
        """Whether what other processes left in their logs was brought to the queues by the holder of the claim."""
        self.queues: dict[QueueName, QueueStore] = {}
        self._opened: dict[QueueName, HostedPlace] = {}
        """Places of the queues that have a store, including those that are about to be deleted."""
        self._places: Places = {}
        self._closed_damage: list[DamageReport] = []
        self.failures = Failures()
        self.service: DatabaseStorage | None = None
        if keeps_service_state:
            try:
                self.service = self.files.open_service()
            except BaseException:
                self.files.abandon()
                raise

    def open_replica_log(self, records: RecordsCodec) -> ReplicaLog:
        """Open the log of this process's replicas [QS 7.1]; the caller closes it. The first write creates its first
        file.

        Raises:
            InvalidInput: a name cannot be part of a file's.
            Refused: another service uses the files, or the directory cannot be written.
            Damaged: an I/O error occurs.
        """
        files = self.files
        if any(each.settings.persistence.kind is PersistenceKind.PERSISTENT for each in self._places.values()):
            files.hold()
        return files.open_replica_log(records)

    @property
    def damage(self) -> list[DamageReport]:
        """The damage found by all stores."""
        stores = [*([self.service] if self.service else []), *self.queues.values()]
        return [*self.files.damage, *self._closed_damage, *(report for store in stores for report in store.damage)]

    def follow(self, places: Places) -> list[QueueName]:
        """Register the hosted queues; open the stores of new ones, and return their names.

        Raises:
            InvalidInput: a name of a persistent queue cannot be part of a file name.
            Refused: two persistent queues would have the same files, or another service uses them.
            Damaged: records are lost, or an I/O error occurs.
        """
        self._places = places
        if any(place.is_persistent for place in places.values()):
            self.files.hold()
            if not self._has_carried_over:
                self.files.carry_over_logs(own_too=not self._holds_samples)
                self._has_carried_over = True
        if not self._holds_samples:
            self.files.own(places)
            return []
        opened: list[QueueName] = []
        for name, place in places.items():
            if name not in self.queues and self.files.keeps(place):
                self.queues[name] = self._open(name, place)
                opened.append(name)
        if self._is_judged:
            self.note(opened)
        return opened

    def judge(self, found: Mapping[QueueName, Incarnation]) -> None:
        """Allow changes of the files, once all stores were read: check for losses, empty unrestored stores, write the
        register.

        Args:
            found: the incarnation in the records of each queue that has records; nil where they have none.

        Raises:
            Damaged: records are lost and the user has not accepted that, or an I/O error occurs.
        """
        for name, incarnation in found.items():
            if name in self._opened:
                self.files.judge_incarnation(name, self._opened[name], incarnation)
        self.refuse_loss()
        self._is_judged = True
        if self.files.discards_damaged and not self._is_beside_others:
            self.files.forget_missing()
        if self.service is not None:
            if self._drops_service_state:
                self.service.compact([])
            self.files.note_service(self.service)
        for name in self._to_empty:
            self.queues[name].compact([])
        self._to_empty.clear()
        self.note(self.queues)

    def refuse_loss(self) -> None:
        """Raise an error if records are lost, unless the user has accepted losses.

        Raises:
            Damaged: something is lost.
        """
        if not self.files.discards_damaged:
            refuse_loss(self.damage, self.files.filesystem.synchronization)

    def know(self, incarnations: Mapping[QueueName, Incarnation]) -> None:
        """Record the current incarnations of the queues."""
        changed = [name for name in self.queues if self.files.incarnations.get(name) != incarnations.get(name)]
        self.files.incarnations.update({name: incarnations[name] for name in changed if name in incarnations})
        if changed:
            self.note(changed)

    def checkpoint_unhosted(self) -> None:
        """Copy the logs' records of queues that are no longer hosted to files of their own, to be kept.

        Raises:
            Damaged: an I/O error occurs.
        """
        opened = {store.stem.name for store in self.queues.values() if isinstance(store, LoggedStorage)}
        for log in self.files.logs.values():
            log_upkeep.checkpoint_all(log, [name for name in log.names() if name not in opened], QUEUE_CODEC)

    def check(self, name: QueueName, place: HostedPlace) -> None:
        """Raise an error if a queue could not be stored.

        Raises:
            InvalidInput: a name of a persistent queue cannot be part of a file name.
            Refused: another persistent queue has the same files, or another service uses them.
            Damaged: an earlier run left files of the queue, and records in them are lost.
        """
        if place.is_persistent:
            self.files.stem(name, place)
            self.files.hold(wait_s=0)
            if name not in self.queues and self._holds_samples and not self.files.discards_damaged:
                self._check_left_over(name, place)

    def _check_left_over(self, name: QueueName, place: HostedPlace) -> None:
        """Check the files that an earlier run may have left of a queue to be created."""
        if not self.files.has_left_over(name, place):
            return
        store = self.files.open(name, place)
        try:
            for _ in store.load():
                pass
            refuse_loss(store.damage, self.files.filesystem.synchronization)
        finally:
            store.abandon()

    def load(self, queue: QueueName) -> Iterator[Record]:
        """Return the records in a queue's store; none without a store, or where it is not restored."""
        return self.queues[queue].load() if queue in self.queues and queue not in self._to_empty else iter(())

    def load_service(self) -> Iterator[Record]:
        """Return the records of the stored configuration; none without one, or where it is not restored."""
        return iter(()) if self.service is None or self._drops_service_state else self.service.load()

    def payloads(self, queue: QueueName, positions: Sequence[int]) -> Sequence[bytes]:
        """Return the payloads of held samples (`Storage.payloads`).

        Raises:
            KeyError: the queue has no store, or one of the samples is not held.
            Damaged: bytes do not match their checksum.
        """
        return self.queues[queue].payloads(positions)

    def write(self, turns: Sequence[Ready]) -> Sync | None:
        """Write the records of several turns as one, and put every payload into their messages.

        Returns the pending sync, which makes them as durable as configured, or None where no sync is needed. Until it
        has returned, no other method but `payloads` may be called. Failures, also those of the sync, are registered in
        `failures`.
        """
        read = payload_reader(turns, self.payloads)
        for ready in turns:
            fill_payloads(ready, read)
        streams = _by_stream(turns)
        # No message states that a sample was acknowledged: if that is lost, the sample is redelivered with the flag.
        may_defer = not any(ready.messages for ready in turns) and all(
            _REMOVALS.issuperset(map(type, records)) for records in streams.values()
        )
        streams.pop(SERVICE_STREAM, ())
        changes = [record for ready in turns for record in ready.service_records]
        queues = {stream: records for stream, records in streams.items() if stream in self.queues}
        if any(ready.moves_samples for ready in turns):
            sync = self._write_moves(queues)
        else:
            sync = self._write_queues(queues, may_defer=may_defer)
        if changes:
            # A change of the configuration waits for the records before it.
            if sync is not None:
                sync()
                sync = None
            for record in changes:
                self._change(record)
        if self.files.claim.is_held:
            self.files.room.keep()
        return sync

    def sync(self) -> None:
        """Sync deferred writes, which otherwise wait for the next batch's sync."""
        for log in self.files.logs.values():
            names = [name for name, store in self.queues.items() if _log_of(store) is log]
            if names:
                self._finish(names, log.sync)

    # Writes: each has two halves, of which the second, the sync, may be done in another thread.

    def _write_queues(self, batch: Mapping[QueueName, Sequence[StreamRecord]], *, may_defer: bool) -> Sync | None:
        """Write the records of queues, together where they share a log; return the pending sync, or None."""
        dead_letters = list(filter(self._is_dead_letter, batch))
        names = [*dead_letters, *(name for name in batch if name not in dead_letters)]
        logs = {_log_of(self.queues[name]) for name in names}
        if dead_letters and (len(logs) > 1 or None in logs):
            for name in dead_letters:  # what is in another file would not wait for them
                sync = self._begin([name], batch)
                if sync is not None:
                    sync()
            names = names[len(dead_letters) :]
        for name in names:
            of_dead = self._dead_letters_of(name)
            if of_dead in batch and of_dead in self.failures.queues:
                self.failures.fail_together((of_dead, name))  # else a dead sample would be in neither
        groups: dict[WriteAheadLog | QueueName, list[QueueName]] = {}
        for name in names:
            groups.setdefault(_log_of(self.queues[name]) or name, []).append(name)
        syncs = [self._begin(group, batch, may_defer=may_defer) for group in groups.values()]
        left = [sync for sync in syncs if sync is not None]
        return partial(_do_all, left) if len(left) > 1 else left[0] if left else None

    def _write_moves(self, batch: Mapping[QueueName, Sequence[StreamRecord]]) -> Sync | None:
        """Write the records of a turn that moves samples, in order; return the pending sync, or None.

        A file is synced before the next one is written, so that a sample is in its target before it leaves its source.
        """
        groups: list[list[QueueName]] = []
        for name in batch:
            log = _log_of(self.queues[name])
            if groups and log is not None and _log_of(self.queues[groups[-1][-1]]) is log:
                groups[-1].append(name)
            else:
                groups.append([name])
        self.failures.fail_together(batch)
        left: Sync | None = None
        for group in groups:
            if left is not None:
                left()
                self.failures.fail_together(batch)
            left = self._begin(group, batch)
            self.failures.fail_together(batch)
        return None if left is None else partial(_do_all, [left, partial(self.failures.fail_together, tuple(batch))])

    def _begin(
        self, names: Sequence[QueueName], batch: Mapping[QueueName, Sequence[StreamRecord]], *, may_defer: bool = False
    ) -> Sync | None:
        """Write the records of one queue, or of several that share a log; return the pending sync, or None."""
        names = [name for name in names if name not in self.failures.queues]
        streams: list[tuple[LoggedStorage, Sequence[StreamRecord]]] = []
        for name in names:
            store = self.queues[name]
            if not isinstance(store, LoggedStorage):
                return partial(self._finish, names, partial(store.append, batch[name]))
            streams.append((store, batch[name]))
        if not streams:
            return None
        try:
            sync = self.files.with_reserve(partial(write_group, streams[0][0].log, streams))
        except Damaged as error:
            self.failures.fail(names, error)
            return None
        return None if sync is None or may_defer else partial(self._finish, names, sync)

    def _finish(self, names: Sequence[QueueName], sync: Sync) -> None:
        """Sync the written records of queues, and register a failure."""
        if all(name in self.failures.queues for name in names):
            return
        try:
            self.files.with_reserve(sync)
        except Damaged as error:
            self.failures.fail(names, error)
            if (log := _log_of(self.queues[names[0]])) is not None:
                self._fail_unsynced(log)

    def _dead_letters_of(self, name: QueueName) -> QueueName:
        place = self._places.get(name)
        return f"{name.rpartition('/')[0]}/{place.settings.dead_letter_queue}" if place is not None else ""

    def _is_dead_letter(self, name: QueueName) -> bool:
        place = self._places.get(name)
        return place is not None and place.settings.is_dead_letter

    # Stores that stay small.

    def compact(self, snapshot: Snapshot, service: Iterable[ServiceRecord], *, all_damaged: bool = False) -> None:
        """Compact the stores that are worth it; with `all_damaged` also those in which damage was found.

        `service` is the whole configuration. It and the snapshots must include the effect of every stored record.

        Raises:
            Damaged: an I/O error occurs.
        """
        if self.service and (self.service.worth_compacting() or (all_damaged and self.service.damage)):
            self.service.compact(service)
        damaged_logs = [log for log in self.files.logs.values() if all_damaged and log.damage]
        compacted = []
        for name, store in self.queues.items():
            is_damaged = all_damaged and (store.damage or _log_of(store) in damaged_logs)
            if name not in self.failures.queues and (store.worth_compacting() or is_damaged):
                store.compact(snapshot(name))
                compacted.append(name)
        for log in damaged_logs:
            self._make_room(log)
        if not self.failures.queues:
            for _ in self.keep_logs_short(_FILES_AT_REST):
                pass
            for log in self.files.logs.values():
                if log.extent.size_bytes > self.files.filesystem.file_max_size_bytes:
                    with suppress(Damaged):
                        self._make_room(log)
        self.note(compacted)

    def compact_in_shares(
        self, capture: Callable[[QueueName], Shares], service: Iterable[ServiceRecord], *, every: bool = False
    ) -> Iterator[None]:
        """Compact the stores that are worth it, or every one, one step between two yields.

        Batches may be stored between the steps. `service` and, before each step, `capture` must include the effect of
        every stored record. An error of the disk is registered as a failure of the store.
        """
        if self.service and (every or self.service.worth_compacting()):
            try:
                self.service.compact(service)
            except DiskFull:
                self.files.room.release()
            except Damaged as error:
                self.failures.fail_service(error)  # the whole of it is stored anew once the disk accepts it
        for name, store in list(self.queues.items()):
            if self.queues.get(name) is not store or name in self.failures.queues:
                continue
            if every or store.worth_compacting():
                try:
                    yield from store.compact_in_shares(capture(name))
                except DiskFull:
                    self.files.room.release()  # the old content stays; another will find what this one left
                except Damaged as error:
                    self.failures.fail([name], error)
                else:
                    self.note([name])
        yield from self.keep_logs_short()

    def keep_logs_short(self, files_max: int = FILES_MAX) -> Iterator[None]:
        """Delete the oldest files of the logs, one step between two yields; batches may be stored between the steps."""
        for log in list(self.files.logs.values()):
            with suppress(Damaged):  # the next group's write fails, too, and reports it
                yield from log_upkeep.keep_short(log, partial(self._streams_of, log), self._fail_stream, files_max)

    def make_room(self) -> None:
        """Free the disk space of obsolete records in the logs."""
        for log in list(self.files.logs.values()):
            with suppress(Damaged):
                self.files.with_reserve(partial(self._make_room, log))

    def _make_room(self, log: WriteAheadLog) -> None:
        log_upkeep.make_room(log, partial(self._streams_of, log), self._fail_stream)

    def _streams_of(self, log: WriteAheadLog) -> Sequence[LoggedStorage] | None:
        """Return the open streams of a log; None if one of them has failed."""
        found = {name: each for name, each in self.queues.items() if _log_of(each) is log}
        if not self.failures.queues.keys().isdisjoint(found):
            return None
        return [each for each in found.values() if isinstance(each, LoggedStorage)]

    def _fail_stream(self, stream: LoggedStorage, error: Damaged) -> None:
        self.failures.fail([name for name, store in self.queues.items() if store is stream], error)

    @property
    def is_log_long(self) -> bool:
        """Return whether a write-ahead log has more files than the target number."""
        return any(len(log.files) > FILES_MAX for log in self.files.logs.values())

    def forget(self, keep: Callable[[HostedPlace], bool]) -> None:
        """Delete the stores of the queues for which `keep` returns False."""
        for name in [name for name, place in self._places.items() if name in self.queues and not keep(place)]:
            self._destroy(name)

    def discard_left_over(self, deleted: Places) -> None:
        """Delete the files of deleted queues that a crash may have left."""
        for name, place in deleted.items():
            if name not in self._places and self.files.keeps(place):
                store = self.files.open(name, place, discards_damaged=True)
                self.files.forget(name, place)
                store.destroy()

    def close(self) -> None:
        """Close all files.

        Raises:
            Damaged: an I/O error occurs.
        """
        try:
            for name, store in self.queues.items():
                if name in self.failures.queues:
                    store.abandon()
                else:
                    store.close()
            if self.service:
                self.service.close()
                self.files.note_service(self.service)
            self.note([name for name in self.queues if name not in self.failures.queues])
        finally:
            self.files.close()

    def abandon(self) -> None:
        """Close all files without a sync."""
        for store in [*self.queues.values(), *([self.service] if self.service is not None else [])]:
            store.abandon()
        self.files.abandon()

    def destroy_service(self) -> None:
        """Delete the service's state, after everything was closed."""
        if self.service is not None:
            self.files.forget_service()
            self.service.destroy()

    def reopen(self, name: QueueName) -> QueueStore:
        """Open the store of a failed queue again, to read its content.

        Raises:
            Damaged: an I/O error occurs.
        """
        self.files.claim.hold_again()
        self.queues[name].abandon()
        self.queues[name] = self.files.open(name, self._opened[name], discards_damaged=True)
        return self.queues[name]

    def _fail_unsynced(self, log: WriteAheadLog) -> None:
        """Mark as failed the queues with deferred records in a log of which a sync failed: mending drops them."""
        why = self.failures.error or Damaged(f"{log.stem}: a sync failed", remedy="Free space on the disk or mend it.")
        for name, store in self.queues.items():
            if isinstance(store, LoggedStorage) and store.log is log and not store.in_log.outlasts_mending:
                self.failures.fail([name], why)

    def recover(self, name: QueueName, snapshot: Iterable[QueueRecord]) -> None:
        """Store the whole content of a failed queue, in new files where the old ones are unreliable.

        Raises:
            Damaged: the disk still refuses.
        """
        self._store_anew(self.queues[name], self.failures.queues[name], snapshot)
        self.note([name])
        del self.failures.queues[name]

    def recover_service(self, service: Iterable[ServiceRecord]) -> None:
        """Store the whole configuration after a change could not be stored.

        Raises:
            Damaged: the disk still refuses.
        """
        if self.service is not None:
            self.files.claim.hold_again()
            self.service.abandon()
            self.service = self.files.open_service(discards_damaged=True)
            assert self.failures.service is not None
            self._store_anew(self.service, self.failures.service, service)
            self.files.note_service(self.service)
        self.failures.service = None

    def _store_anew(self, store: QueueStore, failure: Failure, records: Iterable[Record]) -> None:
        """Store the whole content of a failed store, which was opened again."""
        write = store.renew if failure.is_unsure else store.compact
        self.files.with_reserve(partial(write, list(records)))

    @property
    def is_scarce(self) -> bool:
        """Return whether the disk has too little free space for new samples."""
        return self.files.room.is_scarce

    @property
    def names(self) -> Sequence[QueueName]:
        """The queues that have a store."""
        return tuple(self.queues)

    def _open(self, name: QueueName, place: HostedPlace) -> QueueStore:
        store = self.files.open(name, place)
        self._opened[name] = place
        if not place.settings.persistence.restore and self.files.volatile_directory is None:
            # A restart; between the commands of an embedded service there is none.
            if self._is_judged:
                store.compact([])
            else:
                self._to_empty.add(name)
        return store

    def note(self, names: Iterable[QueueName]) -> None:
        """Record the current extents of the stores of these queues."""
        self.files.note((name, self._opened[name], self.queues[name]) for name in names)

    def _change(self, record: Record) -> None:
        if self.service and self.failures.service is None:  # else this change may rest on one that is not stored
            try:
                self.files.with_reserve(partial(self.service.append, [record]))
            except Damaged as error:
                self.failures.fail_service(error)
        if isinstance(record, QueueDeleted | SubscriberDeleted):
            for name in [name for name in self.queues if name not in self._places]:
                self._destroy(name)

    def _destroy(self, name: QueueName) -> None:
        store = self.queues.pop(name)
        self.failures.queues.pop(name, None)
        self._closed_damage += store.damage
        self.files.forget(name, self._opened.pop(name))
        store.destroy()


def _by_stream(turns: Sequence[Ready]) -> dict[StreamName, Sequence[StreamRecord]]:
    """Return the records of several turns, joined for each stream."""
    if len(turns) == 1:
        return {batch.stream: batch.records for batch in turns[0].batches}
    streams: dict[StreamName, list[StreamRecord]] = {}
    for ready in turns:
        for batch in ready.batches:
            streams.setdefault(batch.stream, []).extend(batch.records)
    return dict(streams)


def _log_of(store: QueueStore) -> WriteAheadLog | None:
    """Return the log that a store shares with others; None if it has its own files only."""
    return store.log if isinstance(store, LoggedStorage) else None


def _do_all(syncs: Sequence[Sync]) -> None:
    for sync in syncs:
        sync()
