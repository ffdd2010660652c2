"""Every store of a service: which record goes to which [QS 2.14].

Decides: the kind of store and the files of each queue, and the order in which the stores of one batch are written. A
persistent queue has its own files in the configured directory. A volatile one has none in a running service; the
embedded service keeps it in files of its own, for there the process ends with every command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

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
    ServiceRecord,
    SubscriberDeleted,
)
from qsctl.errors import Damaged
from qsctl.identity import Incarnation
from qsctl.service import upkeep
from qsctl.service.environment import HOST_ENVIRONMENT, Environment
from qsctl.service.guarded_writes import GuardedWrites
from qsctl.service.payload_reader import payload_reader
from qsctl.service.places import HostedPlace, Places
from qsctl.service.queue_codec import QUEUE_CODEC
from qsctl.service.queue_writes import QueueWrites, log_of
from qsctl.service.store_files import StoreFiles
from qsctl.service.withholding import withhold
from qsctl.storage.base import Shares, Storage, Sync
from qsctl.storage.claim import WAIT_S, Claim
from qsctl.storage.damage import DamageReport, refuse_loss
from qsctl.storage.log_upkeep import checkpoint_all
from qsctl.storage.logged import LoggedStorage
from qsctl.storage.replica_log import RecordsCodec, ReplicaLog
from qsctl.storage.room import DiskFull
from qsctl.storage.write_ahead_log import FILES_MAX

Snapshot: TypeAlias = Callable[[QueueName], Iterable[QueueRecord]]
"""The fewest records that give a queue's state."""


class Stores:
    """The stores of one service instance. One thread at a time may use them.

    Args:
        directory: where persistent queues and the service state are kept; must exist.
        filesystem: how they are written [QS Table 3.9].
        application_name: part of every file's name.
        keeps_service_state: whether changes of the configuration survive [QS 2.14.1].
        volatile_directory: where volatile queues are kept all the same; None: nowhere.
        claim: the right to write the files, where another process has it for this one; None: it is to be had.
        claim_wait_s: how long to wait for another service that has it.
        log_label: distinguishes the write-ahead logs of a service's processes.
        holds_samples: whether the queues' own files are opened; False in a process that only coordinates those
            that hold them.
        discards_damaged: whether to go on with what is whole where something is lost; else nothing is changed then.
        environment: where the files are.

    Raises:
        InvalidInput: the directory does not exist, or a name cannot be part of a file name.
        Refused: another service uses the files, or the directory cannot be written.
        Damaged: something is lost, or the disk refuses.
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
        self._is_judged = False
        """Whether what was found at the start was whole, or was given up: nothing is noted before that."""
        self._holds_samples = holds_samples
        self._has_carried_over = claim is not None
        """Whether what other processes left in their logs was brought to the queues by the holder of the claim."""
        self.queues: dict[QueueName, Storage] = {}
        self._opened: dict[QueueName, HostedPlace] = {}
        """Where the queues stand that have a store; those that are about to be deleted, too."""
        self._places: Places = {}
        self._closed_damage: list[DamageReport] = []
        self.guarded = GuardedWrites(self.files)
        self._writes = QueueWrites(self.queues, self.guarded)
        self.failures = self.guarded.failures
        """The queues of which nothing can be stored for now, see `qsctl.service.recovery`."""
        self.service_failure: Damaged | None = None
        """Why the last change of the configuration could not be stored; None: it was."""
        self.service: Storage | None = None
        if keeps_service_state:
            try:
                self.service = self.files.open_service()
            except BaseException:
                self.files.abandon()
                raise

    def open_replica_log(self, records: RecordsCodec) -> ReplicaLog:
        """Open the log of this process's replicas [QS 7.1]; the caller closes it. No file is made before it is written.

        Raises:
            InvalidInput: a name cannot be part of a file's.
            Refused: another service uses the files, or the directory cannot be written.
            Damaged: the disk refuses.
        """
        files = self.files
        if any(each.settings.persistence.kind is PersistenceKind.PERSISTENT for each in self._places.values()):
            files.hold()
        return files.open_replica_log(records)

    @property
    def damage(self) -> list[DamageReport]:
        """What every store found broken."""
        stores = [*([self.service] if self.service else []), *self.queues.values()]
        return [*self.files.damage, *self._closed_damage, *(report for store in stores for report in store.damage)]

    def follow(self, places: Places) -> list[QueueName]:
        """Take note of the queues there are; open the stores of those that are new, and return their names.

        Raises:
            InvalidInput: a name of a persistent queue cannot be part of a file name.
            Refused: two persistent queues would have the same files, or another service uses them.
            Damaged: something is lost, or the disk refuses.
        """
        self._places = self._writes.places = places
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
        """Begin to change the files, once everything was read; unless something is lost.

        Args:
            found: the incarnations of the queues' records, of each that has some; nil where they have none.

        Raises:
            Damaged: something is lost, and it is not to be discarded.
        """
        for name, incarnation in found.items():
            if name in self._opened:
                self.files.judge_incarnation(name, self._opened[name], incarnation)
        self.refuse_loss()
        self._is_judged = True
        if self.service is not None:
            self.files.note_service(self.service)
        self.note(self.queues)

    def refuse_loss(self) -> None:
        """Do nothing where nothing was found to be lost, or what is lost is to be discarded.

        Raises:
            Damaged: something is lost.
        """
        if not self.files.discards_damaged:
            refuse_loss(self.damage, self.files.filesystem.synchronization)

    def know(self, incarnations: Mapping[QueueName, Incarnation]) -> None:
        """Note which creations of the queues there are now."""
        changed = [name for name in self.queues if self.files.incarnations.get(name) != incarnations.get(name)]
        self.files.incarnations.update({name: incarnations[name] for name in changed if name in incarnations})
        if changed:
            self.note(changed)

    def checkpoint_unhosted(self) -> None:
        """Bring what the logs have of queues that are not hosted any more to files of their own, for another time.

        Raises:
            Damaged: the disk refuses.
        """
        opened = {store.stem.name for store in self.queues.values() if isinstance(store, LoggedStorage)}
        for log in self.files.logs.values():
            checkpoint_all(log, [name for name in log.names() if name not in opened], QUEUE_CODEC)

    def check(self, name: QueueName, place: HostedPlace) -> None:
        """Whether a queue could be kept here.

        Raises:
            InvalidInput: a name of a persistent queue cannot be part of a file name.
            Refused: another persistent queue has the same files, or another service uses them.
            Damaged: an earlier run left files of it of which something is lost.
        """
        if place.is_persistent:
            self.files.stem(name, place)
            self.files.hold(wait_s=0)
            if name not in self.queues and self._holds_samples and not self.files.discards_damaged:
                self._check_left_over(name, place)

    def _check_left_over(self, name: QueueName, place: HostedPlace) -> None:
        """Judge what an earlier run may have left of a queue that is to be created."""
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
        """Return what a queue's store holds; nothing where it has none."""
        return self.queues[queue].load() if queue in self.queues else iter(())

    def payload(self, queue: QueueName, position: int) -> bytes:
        """Return the payload of a sample that is held (`Storage.payload`).

        Raises:
            KeyError: the queue has no store, or no such sample is held.
            Damaged: its bytes do not match their checksum.
        """
        return self.queues[queue].payload(position)

    def write(self, turns: Sequence[Ready]) -> Sync | None:
        """Write the records of several turns as one, and put every payload into their messages.

        Returns what is left to do until they are durable (see `Storage.write`); None: nothing. What the disk refuses
        then, or now, is in `failures`; `withhold` takes from the messages what rests on it.
        """
        read = payload_reader(turns, self.payload)
        for ready in turns:
            fill_payloads(ready, read)
        streams = _by_stream(turns)
        # No message says that a sample was acknowledged: if that is lost, the sample comes again, marked.
        may_defer = not any(ready.messages for ready in turns) and all(
            set(map(type, records)) == {Removed} for records in streams.values()
        )
        changes = streams.pop(SERVICE_STREAM, ())
        queues = {stream: records for stream, records in streams.items() if stream in self.queues}
        if any(ready.moves_samples for ready in turns):
            sync = self._writes.write_moves(queues)
        else:
            sync = self._writes.write(queues, may_defer=may_defer)
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

    def withhold(self, turns: Sequence[Ready]) -> None:
        """Take from the messages of turns that were written what rests on records that could not be stored."""
        if self.failures or self.service_failure:
            withhold(turns, self.failures, self.service_failure)

    def sync(self) -> None:
        """Make durable what waits for the sync of a next batch: none may come."""
        for log in self.files.logs.values():
            names = [name for name in self.queues if log_of(self.queues[name]) is log]
            if names:
                self.guarded.finish_all(names, log.sync)
        for name, store in self.queues.items():
            if log_of(self.queues[name]) is None:
                self.guarded.finish(name, store.sync)

    def compact(self, snapshot: Snapshot, service: Iterable[ServiceRecord], *, all_damaged: bool = False) -> None:
        """See `qsctl.service.upkeep.compact`.

        Raises:
            Damaged: the disk refuses.
        """
        upkeep.compact(self, snapshot, service, all_damaged=all_damaged)

    def compact_in_shares(
        self, capture: Callable[[QueueName], Shares], service: Iterable[ServiceRecord], *, every: bool = False
    ) -> Iterator[None]:
        """See `qsctl.service.upkeep.compact_in_shares`."""
        return upkeep.compact_in_shares(self, capture, service, every=every)

    def keep_logs_short(self, files_max: int = FILES_MAX) -> Iterator[None]:
        """See `qsctl.service.upkeep.keep_logs_short`.

        Raises:
            Damaged: the disk refuses.
        """
        return upkeep.keep_logs_short(self, files_max)

    def make_room(self) -> None:
        """Give back the room of what is held no more."""
        upkeep.make_room(self)

    @property
    def is_log_long(self) -> bool:
        """Whether a write-ahead log has more files than it should."""
        return any(len(log.files) > FILES_MAX for log in self.files.logs.values())

    def forget(self, keep: Callable[[HostedPlace], bool]) -> None:
        """Delete the stores of the queues that are not to be kept."""
        for name in [name for name, place in self._places.items() if name in self.queues and not keep(place)]:
            self._destroy(name)

    def discard_left_over(self, deleted: Places) -> None:
        """Delete the files of queues that were deleted, should a crash have left them."""
        for name, place in deleted.items():
            if name not in self._places and self.files.keeps(place):
                store = self.files.open(name, place, discards_damaged=True)
                self.files.forget(name, place)
                store.destroy()

    def close(self) -> None:
        """Let go of all files.

        Raises:
            Damaged: the disk refuses.
        """
        try:
            for name, store in self.queues.items():
                if name in self.failures:
                    store.abandon()
                else:
                    store.close()
            if self.service:
                self.service.close()
                self.files.note_service(self.service)
            self.note([name for name in self.queues if name not in self.failures])
        finally:
            self.files.close()

    def abandon(self) -> None:
        """Let go of all files as they are."""
        for store in [*self.queues.values(), *([self.service] if self.service is not None else [])]:
            store.abandon()
        self.files.abandon()

    def destroy_service(self) -> None:
        """Delete the service's state, once everything was closed."""
        if self.service is not None:
            self.files.forget_service()
            self.service.destroy()

    def reopen(self, name: QueueName) -> Storage:
        """Open the store of a queue that failed once more, to see what it holds.

        Raises:
            Damaged: the disk refuses.
        """
        self.files.claim.hold_again()
        self.queues[name].abandon()
        self.queues[name] = self.files.open(name, self._opened[name], discards_damaged=True)
        return self.queues[name]

    def recover(self, name: QueueName, snapshot: Iterable[QueueRecord]) -> None:
        """Store the whole of a queue that failed, in new files where the old ones cannot be relied on.

        Raises:
            Damaged: the disk still refuses.
        """
        store, failure = self.queues[name], self.failures[name]
        write = store.compact if isinstance(failure.error, DiskFull) else store.renew
        self.files.with_reserve(partial(write, list(snapshot)))
        self.note([name])
        del self.failures[name]

    def recover_service(self, service: Iterable[ServiceRecord]) -> None:
        """Store the whole configuration after a change of it could not be.

        Raises:
            Damaged: the disk still refuses.
        """
        if self.service is not None:
            self.files.claim.hold_again()
            self.service.abandon()
            self.service = self.files.open_service(discards_damaged=True)
            self.files.with_reserve(partial(self.service.compact, list(service)))
            self.files.note_service(self.service)
        self.service_failure = None

    @property
    def failure(self) -> Damaged | None:
        """Why something could not be stored; None: everything was."""
        return next((each.error for each in self.failures.values()), self.service_failure)

    @property
    def is_scarce(self) -> bool:
        """Whether there is too little room on the disk for new samples."""
        return self.files.room.is_scarce

    @property
    def names(self) -> Sequence[QueueName]:
        """The queues that have a store."""
        return tuple(self.queues)

    def _open(self, name: QueueName, place: HostedPlace) -> Storage:
        store = self.files.open(name, place)
        self._opened[name] = place
        if not place.settings.persistence.restore and self.files.volatile_directory is None:
            store.compact([])  # a restart; between the commands of an embedded service there is none
        return store

    def note(self, names: Iterable[QueueName]) -> None:
        """Note how far the stores of these queues reach."""
        self.files.note((name, self._opened[name], self.queues[name]) for name in names)

    def _change(self, record: Record) -> None:
        if self.service:
            try:
                self.files.with_reserve(partial(self.service.append, [record]))
            except Damaged as error:
                self.service_failure = error
        if isinstance(record, QueueDeleted | SubscriberDeleted):
            for name in [name for name in self.queues if name not in self._places]:
                self._destroy(name)

    def _destroy(self, name: QueueName) -> None:
        store = self.queues.pop(name)
        self.failures.pop(name, None)
        self._closed_damage += store.damage
        self.files.forget(name, self._opened.pop(name))
        store.destroy()


def _by_stream(turns: Sequence[Ready]) -> dict[StreamName, Sequence[Record]]:
    """Return the records of several turns, a sequence each stream."""
    if len(turns) == 1:
        return {batch.stream: batch.records for batch in turns[0].batches}
    streams: dict[StreamName, list[Record]] = {}
    for ready in turns:
        for batch in ready.batches:
            streams.setdefault(batch.stream, []).extend(batch.records)
    return dict(streams)
