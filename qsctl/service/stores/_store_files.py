"""The files of a service's stores: their owners, their names, and which of them should exist [QS 2.14].

Decides: the kind of store and the files of each queue. A persistent queue has its own files in the configured
directory. A volatile one has none in a running service; the embedded service keeps it in files of its own, for there
the process ends with every command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.messages import QueueName
from qsctl.errors import Refused
from qsctl.identity import NIL_INCARNATION, Incarnation
from qsctl.service.run.environment import HOST_ENVIRONMENT, Environment
from qsctl.service.stores._queue_codec import QUEUE_CODEC
from qsctl.service.stores.places import HostedPlace
from qsctl.storage.base import DatabaseStorage, Extent, Storage
from qsctl.storage.claim import WAIT_S, Claim
from qsctl.storage.damage import DamageKind, DamageReport, refuse_loss
from qsctl.storage.log.log_upkeep import carry_over, existing_logs
from qsctl.storage.log.write_ahead_log import WriteAheadLog
from qsctl.storage.names import (
    log_stem,
    private_stem,
    queue_files,
    queue_stem,
    register_file,
    replicas_stem,
    reserve_file,
    service_file,
    stored_queue_stems,
    volatile_register,
)
from qsctl.storage.register import Register
from qsctl.storage.replicas.replica_log import ReplicaLog
from qsctl.storage.replicas.replica_operations import RecordsCodec
from qsctl.storage.room import DiskFull, Room
from qsctl.storage.streams.logged import LoggedStorage

Done = TypeVar("Done")

_KINDS_OF_QUEUES: Final = ("segments", "database")
"""The kinds of the extents of queues' stores in the register."""

QueueStore: TypeAlias = LoggedStorage | DatabaseStorage
"""The store of a queue with in-memory state, or without."""


class StoreFiles:
    """The files of one service instance.

    Args:
        directory: where persistent queues and the service state are kept; must exist.
        filesystem: how they are written [QS Table 3.9].
        application_name: part of every file's name.
        volatile_directory: where volatile queues are kept all the same; None: nowhere.
        claim: the lock on the files, passed on by another process; None: locked when needed.
        claim_wait_s: the longest wait for another service that has the lock.
        log_label: distinguishes the write-ahead logs of a service's processes; empty where there is one process.
        discards_damaged: whether to continue with the intact records after a loss; else a loss is an error, and no file
            changes.
        environment: the access to the machine's files.

    Raises:
        InvalidInput: the directory does not exist, or a name cannot be part of a file name.
    """

    def __init__(
        self,
        directory: Path,
        filesystem: FilesystemSettings,
        application_name: str,
        *,
        volatile_directory: Path | None = None,
        claim: Claim | None = None,
        claim_wait_s: float = WAIT_S,
        log_label: str = "",
        discards_damaged: bool = False,
        environment: Environment = HOST_ENVIRONMENT,
    ) -> None:
        self.directory = directory
        self._environment = environment
        disk = self._disk = environment.disk
        self.discards_damaged = discards_damaged
        self.incarnations: dict[QueueName, Incarnation] = {}
        """Those of the queues, as far as they are known."""
        self.filesystem = filesystem
        self.application_name = application_name
        self.volatile_directory = volatile_directory
        prefix = filesystem.file_prefix
        self.claim = claim or Claim(directory, prefix, application_name, disk)
        self.room = Room(reserve_file(directory, prefix, application_name, disk), disk, environment.steady)
        self._claim_wait_s = claim_wait_s
        self._service_file = service_file(directory, prefix, application_name, disk)
        self._owners: dict[Path, QueueName] = {}
        self._registers: dict[bool, Register] = {}
        """Of persistent stores (True), and of those that only an embedded service keeps (False)."""
        self._damage: list[DamageReport] = []
        self._log_label = log_label
        self.logs: dict[bool, WriteAheadLog] = {}
        """The write-ahead logs: of persistent stores (True), and of those that only an embedded service keeps."""
        self.before_mending: Callable[[WriteAheadLog], None] = lambda _: None
        """Called before a log is mended, which drops the records that no sync has covered."""

    @property
    def damage(self) -> list[DamageReport]:
        """The damage to files as a whole; stores report damage inside them."""
        of_registers = [report for register in self._registers.values() for report in register.damage]
        of_logs = [report for log in self.logs.values() for report in log.damage]
        return [*of_registers, *of_logs, *self._damage]

    def keeps(self, place: HostedPlace) -> bool:
        """Return whether a queue has files of its own."""
        return place.is_persistent or self.volatile_directory is not None

    def hold(self, wait_s: float | None = None) -> None:
        """Lock the files against other services.

        Raises:
            Refused: another service has locked them, or the directory cannot be written.
        """
        if not self.claim.is_held:
            self.claim.hold(self._claim_wait_s if wait_s is None else wait_s)
            self.room.keep()

    def stem(self, name: QueueName, place: HostedPlace) -> Path:
        """Return the beginning of the names of a persistent queue's files.

        Raises:
            InvalidInput: a name cannot be part of a file name.
            Refused: another persistent queue has the same files.
        """
        stem = queue_stem(
            self.directory,
            self.filesystem.file_prefix,
            place.settings.topic_name or place.settings.name,
            place.subscriber,
            place.domain_id,
            self.application_name,
            self._disk,
        )
        other = self._owners.get(stem, name)
        if other != name:
            raise Refused(
                f"the persistent queues {other} and {name} would share the file {stem.name}",
                remedy="Give them different topics, shared subscribers or domains.",
            )
        return stem

    def own(self, places: Mapping[QueueName, HostedPlace]) -> None:
        """Register which queue has which files, in a process that opens none of them.

        Raises:
            InvalidInput, Refused: as from `stem`.
        """
        self._owners = {}
        for name, place in places.items():
            if place.is_persistent:
                self._owners[self.stem(name, place)] = name

    def open(self, name: QueueName, place: HostedPlace, *, discards_damaged: bool | None = None) -> QueueStore:
        """Open the store of a queue, which must be one that keeps files.

        Args:
            name: the queue's name.
            place: the queue's place.
            discards_damaged: overrides the service's setting; None: does not.

        Raises:
            InvalidInput, Refused: as from `stem`.
            Damaged: records are lost, or an I/O error occurs.
        """
        register = self._register(place.is_persistent)
        known = register.extent(self._entry(name, place))
        discards = self.discards_damaged if discards_damaged is None else discards_damaged
        store = self.with_reserve(partial(self._open, name, place, known, discards_damaged=discards))
        if store.was_there and not register.was_there and not register.damage:
            what = "the register of the stores is missing: what else is missing cannot be known"
            register.damage.append(DamageReport(register.path, 0, 0, DamageKind.UNREADABLE, what))
        if known is not None and known.kind != store.extent.kind:
            what = f"the samples of queue {name} are kept as {known.kind}, which its <in_memory_state> does not read"
            self._damage.append(DamageReport(register.path, 0, 0, DamageKind.UNREADABLE, what))
        return store

    def has_left_over(self, name: QueueName, place: HostedPlace) -> bool:
        """Return whether files, register or log contain data of a queue from an earlier run."""
        stem = self.stem(name, place)
        return self._register(True).extent(stem.name) is not None or stem.name in self._stored

    def open_service(self, *, discards_damaged: bool | None = None) -> DatabaseStorage:
        """Open the store of the service's state.

        Raises:
            Refused: another service uses it, or the directory cannot be written.
            Damaged: records are lost, or an I/O error occurs.
        """
        self.hold()
        known = self._register(True).extent(self._service_file.name)
        if self._disk.status_at(self._service_file) is None and not self._register(True).was_there:
            self._report_files_of_nobody_known()
        filesystem = self.filesystem
        if filesystem.synchronization is Synchronization.NORMAL:
            # Files of queues that were deleted go at once: that they were deleted must be durable then.
            filesystem = replace(filesystem, synchronization=Synchronization.FULL)
        discards = self.discards_damaged if discards_damaged is None else discards_damaged
        if not discards:
            refuse_loss(self.damage, filesystem.synchronization)
        open_database = self._environment.open_database
        return self.with_reserve(
            partial(open_database, self._service_file, filesystem, QUEUE_CODEC, known, discards_damaged=discards)
        )

    def _report_files_of_nobody_known(self) -> None:
        """Report unknown files: without the service's state and the register, the expected queues are unknown."""
        found = queue_files(self.directory, self.filesystem.file_prefix, self.application_name, self._disk)
        if found:
            what = "the service's state and the register are missing: whose files these are cannot be known"
            self._damage.append(DamageReport(found[0], 0, 0, DamageKind.UNREADABLE, what))

    def note(self, stores: Iterable[tuple[QueueName, HostedPlace, Storage]]) -> None:
        """Record the current extents of stores, which they must still reach when they are opened again."""
        extents: dict[bool, dict[str, Extent]] = {True: {}, False: {}}
        incarnations: dict[str, Incarnation] = {}
        for name, place, store in stores:
            entry = self._entry(name, place)
            extents[place.is_persistent][entry] = store.extent
            incarnations[entry] = self.incarnations.get(name, NIL_INCARNATION)
        for is_persistent, noted in extents.items():
            if noted:
                if is_persistent in self.logs:
                    log = self.logs[is_persistent]
                    noted[log.stem.name] = log.extent
                self._register(is_persistent).note(noted, incarnations)

    def judge_incarnation(self, name: QueueName, place: HostedPlace, found: Incarnation) -> None:
        """Report damage if the records of a store are of another incarnation of the queue than the registered one.

        `found` is the incarnation in the records; nil: they have none, as those of an earlier version.
        """
        register = self._register(place.is_persistent)
        known = register.incarnation(self._entry(name, place))
        if known not in (NIL_INCARNATION, found):
            file = self.stem(name, place) if place.is_persistent else register.path
            what = (
                f"the file is of another creation of queue {name} than the one that is known: {_shown(found)}, not "
                f"{_shown(known)}; one was deleted since, or is of another directory"
            )
            self._damage.append(DamageReport(file, 0, 0, DamageKind.FOREIGN, what))
            if self.discards_damaged:
                register.forget_incarnation(self._entry(name, place))

    def note_service(self, store: Storage) -> None:
        """Record the current extent of the service state's store."""
        self._register(True).note({self._service_file.name: store.extent})

    def open_replica_log(self, records: RecordsCodec) -> ReplicaLog:
        """Open the log of this process's replicas. The first write creates its first file.

        Raises:
            InvalidInput: a name cannot be part of a file's.
            Damaged: an I/O error occurs.
        """
        register = self._register(True)
        stem = replicas_stem(self.directory, self.filesystem.file_prefix, self.application_name, self._disk)
        return self._environment.open_replica_log(
            stem,
            self.filesystem,
            records,
            register.extent(stem.name),
            lambda extent: register.note({stem.name: extent}),
            self._disk,
        )

    def forget(self, name: QueueName, place: HostedPlace) -> None:
        """Remove the register's entry of a queue, whose files are about to be deleted."""
        self._register(place.is_persistent).forget([self._entry(name, place)])
        self.incarnations.pop(name, None)
        self._owners = {stem: owner for stem, owner in self._owners.items() if owner != name}

    def forget_missing(self) -> None:
        """Remove the register's entries of which no file is left, except those of hosted queues, and report them.

        Call it after a loss was accepted: else what was lost with a queue that is not hosted would be held against the
        next one of its name. The replicas' log is excepted: its loss costs the replicas their votes.
        """
        opened = {self.logs[True].stem} if True in self.logs else set()
        own_log = self._log_stem(self.directory)
        if existing_logs(own_log, self._disk) - opened:
            return  # records of any queue may be in them
        register = self._register(True)
        kept = self._stored | {stem.name for stem in (*self._owners, *opened)} | {self._service_file.name}
        missing = [
            entry
            for entry in register.names()
            if entry not in kept and (register.kind(entry) in _KINDS_OF_QUEUES or entry == own_log.name)
        ]
        what = "all files of it are missing, and every record in them"
        self._damage += [DamageReport(self.directory / entry, 0, 0, DamageKind.UNREADABLE, what) for entry in missing]
        register.forget(missing)

    @property
    def _stored(self) -> set[str]:
        """The names, in the register, of the persistent queues that have files, or records in an opened log."""
        in_files = stored_queue_stems(self.directory, self.filesystem.file_prefix, self.application_name, self._disk)
        return in_files.union(self.logs[True].names() if True in self.logs else ())

    def forget_service(self) -> None:
        """Remove the register's entry of the service's state."""
        self._register(True).forget([self._service_file.name])

    def with_reserve(self, do: Callable[[], Done]) -> Done:
        """Run a write; if the disk is full, release the reserve and repeat it.

        Raises:
            Damaged: an I/O error occurs.
        """
        try:
            return do()
        except DiskFull:
            if not self.room.release():
                raise
            return do()

    def close(self) -> None:
        """Close the logs, then release the lock on the files.

        Raises:
            Damaged: an I/O error occurs.
        """
        try:
            for is_persistent, log in self.logs.items():
                if log.streams or log.has_failed:
                    log.close()
                    self._register(is_persistent).note({log.stem.name: log.extent})
                else:
                    self._register(is_persistent).forget([log.stem.name])
                    log.destroy()
        finally:
            self.claim.release()

    def abandon(self) -> None:
        """Close the logs without a sync, and release the lock on the files."""
        for log in self.logs.values():
            log.abandon()
        self.claim.release()

    def _open(self, name: QueueName, place: HostedPlace, known: Extent | None, *, discards_damaged: bool) -> QueueStore:
        discards = discards_damaged
        if not place.is_persistent:
            assert self.volatile_directory is not None
            stem = private_stem(self.volatile_directory, name, self._disk)
            return self._logged(stem, known, is_persistent=False, discards_damaged=discards)
        stem = self.stem(name, place)
        self._owners[stem] = name
        if place.settings.persistence.in_memory_state:
            return self._logged(stem, known, is_persistent=True, discards_damaged=discards)
        file = stem.with_name(stem.name + ".db")
        open_database = self._environment.open_database
        return open_database(file, self.filesystem, QUEUE_CODEC, known, discards_damaged=discards)

    def carry_over_logs(self, *, own_too: bool) -> None:
        """Copy the records in the logs of former processes of this service to the queues' own files; with `own_too`,
        also those in this process's log.

        Raises:
            Damaged: an I/O error occurs.
        """
        own = log_stem(self.directory, self.filesystem.file_prefix, self.application_name, disk=self._disk)
        register = self._register(True)
        for stem in sorted(existing_logs(own, self._disk)):
            if stem != own or own_too:
                known, discards = register.extent(stem.name), self.discards_damaged
                carry = partial(
                    carry_over, stem, self.filesystem, QUEUE_CODEC, known, self._disk, discards_damaged=discards
                )
                self._damage += self.with_reserve(carry)
                register.forget([stem.name])

    def _logged(
        self, stem: Path, known: Extent | None, *, is_persistent: bool, discards_damaged: bool
    ) -> LoggedStorage:
        log = self.logs.get(is_persistent)
        if log is None:
            where = self._log_stem(stem.parent)
            known_log = self._register(is_persistent).extent(where.name)
            log = WriteAheadLog(where, self.filesystem, known_log, discards_damaged=discards_damaged, disk=self._disk)
            self.logs[is_persistent] = log
        if log.is_to_mend:
            self.before_mending(log)
            log.mend()
        return LoggedStorage(stem, self.filesystem, log, QUEUE_CODEC, known, discards_damaged=discards_damaged)

    def _log_stem(self, directory: Path) -> Path:
        """Return the beginning of the names of this process's write-ahead log in a directory."""
        prefix = self.filesystem.file_prefix
        return log_stem(directory, prefix, self.application_name, self._log_label, self._disk)

    def _entry(self, name: QueueName, place: HostedPlace) -> str:
        """Return the name of a store in the register."""
        return self.stem(name, place).name if place.is_persistent else name

    def _register(self, is_persistent: bool) -> Register:
        if is_persistent not in self._registers:
            if is_persistent:
                path = register_file(self.directory, self.filesystem.file_prefix, self.application_name, self._disk)
            else:
                assert self.volatile_directory is not None
                path = volatile_register(self.volatile_directory)
            self._registers[is_persistent] = Register(path, self._disk)
        return self._registers[is_persistent]


def _shown(incarnation: Incarnation) -> str:
    return f"{incarnation:016x}" if incarnation else "of an earlier version"
