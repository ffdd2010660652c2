"""The files of a service's stores: whose they are, what they are called, and what should be there [QS 2.14].

Decides: the kind of store and the files of each queue. A persistent queue has its own files in the configured
directory. A volatile one has none in a running service; the embedded service keeps it in files of its own, for there
the process ends with every command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.messages import QueueName
from qsctl.errors import Refused
from qsctl.service.places import Place
from qsctl.service.queue_codec import QUEUE_CODEC
from qsctl.storage.base import Extent, Storage
from qsctl.storage.claim import WAIT_S, Claim
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.log_upkeep import carry_over, existing_logs
from qsctl.storage.logged import LoggedStorage
from qsctl.storage.names import (
    log_stem,
    private_stem,
    queue_files,
    queue_stem,
    register_file,
    reserve_file,
    service_file,
)
from qsctl.storage.register import Register
from qsctl.storage.room import DiskFull, Room
from qsctl.storage.sqlite import SqliteStorage
from qsctl.storage.write_ahead_log import WriteAheadLog

Done = TypeVar("Done")


class StoreFiles:
    """The files of one service instance.

    Args:
        directory: where persistent queues and the service state are kept; must exist.
        filesystem: how they are written [QS Table 3.9].
        application_name: part of every file's name.
        volatile_directory: where volatile queues are kept all the same; None: nowhere.
        claim: the right to write the files, where another process has it for this one; None: it is to be had.
        claim_wait_s: how long to wait for another service that has it.
        log_label: distinguishes the write-ahead logs of a service's processes; empty where there is one process.

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
    ) -> None:
        self.directory = directory
        self.filesystem = filesystem
        self.application_name = application_name
        self.volatile_directory = volatile_directory
        prefix = filesystem.file_prefix
        self.claim = claim or Claim(directory, prefix, application_name)
        self.room = Room(reserve_file(directory, prefix, application_name))
        self._claim_wait_s = claim_wait_s
        self._service_file = service_file(directory, prefix, application_name)
        self._owners: dict[Path, QueueName] = {}
        self._registers: dict[bool, Register] = {}
        """Of persistent stores (True), and of those that only an embedded service keeps (False)."""
        self._damage: list[DamageReport] = []
        self._log_label = log_label
        self.logs: dict[bool, WriteAheadLog] = {}
        """The write-ahead logs: of persistent stores (True), and of those that only an embedded service keeps."""

    @property
    def damage(self) -> list[DamageReport]:
        """What is wrong with files as such; what is in them is the stores' to say."""
        of_registers = [report for register in self._registers.values() for report in register.damage]
        of_logs = [report for log in self.logs.values() for report in log.damage]
        return [*of_registers, *of_logs, *self._damage]

    def keeps(self, place: Place) -> bool:
        """Whether a queue has files."""
        return place.is_persistent or self.volatile_directory is not None

    def hold(self, wait_s: float | None = None) -> None:
        """Make sure that no other service writes the files.

        Raises:
            Refused: another one does, or the directory cannot be written.
        """
        if not self.claim.is_held:
            self.claim.hold(self._claim_wait_s if wait_s is None else wait_s)
            self.room.keep()

    def stem(self, name: QueueName, place: Place) -> Path:
        """What the files of a persistent queue are named after.

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
        )
        other = self._owners.get(stem, name)
        if other != name:
            raise Refused(
                f"the persistent queues {other} and {name} would share the file {stem.name}",
                remedy="Give them different topics, shared subscribers or domains.",
            )
        return stem

    def own(self, places: Mapping[QueueName, Place]) -> None:
        """Note which queue has which files, in a process that opens none of them.

        Raises:
            InvalidInput, Refused: as from `stem`.
        """
        self._owners = {}
        for name, place in places.items():
            if place.is_persistent:
                self._owners[self.stem(name, place)] = name

    def open(self, name: QueueName, place: Place) -> Storage:
        """The store of a queue, which must be one that keeps files.

        Raises:
            InvalidInput, Refused: as from `stem`.
            Damaged: the disk refuses.
        """
        register = self._register(place.is_persistent)
        known = register.extent(self._entry(name, place))
        store = self.with_reserve(partial(self._open, name, place, known))
        if store.was_there and not register.was_there and not register.damage:
            what = "the register of the stores is missing: what else is missing cannot be known"
            register.damage.append(DamageReport(register.path, 0, 0, DamageKind.UNREADABLE, what))
        if known is not None and known.kind != store.extent.kind:
            what = f"the samples of queue {name} are kept as {known.kind}, which its <in_memory_state> does not read"
            self._damage.append(DamageReport(register.path, 0, 0, DamageKind.UNREADABLE, what))
        return store

    def open_service(self) -> Storage:
        """The store of the service's state.

        Raises:
            Refused: another service uses it, or the directory cannot be written.
            Damaged: the disk refuses.
        """
        self.hold()
        known = self._register(True).extent(self._service_file.name)
        was_there = self._service_file.exists()  # in whatever format
        filesystem = self.filesystem
        if filesystem.synchronization is Synchronization.NORMAL:
            # Files of queues that were deleted go at once: that they were deleted must be durable then.
            filesystem = replace(filesystem, synchronization=Synchronization.FULL)
        store = self.with_reserve(partial(SqliteStorage, self._service_file, filesystem, QUEUE_CODEC, known))
        if not was_there and not self._register(True).was_there:
            self._report_files_of_nobody_known()
        self.note_service(store)
        return store

    def _report_files_of_nobody_known(self) -> None:
        """Without the service's state and the register, nothing says which queues should be there."""
        found = queue_files(self.directory, self.filesystem.file_prefix, self.application_name)
        if found:
            what = "the service's state and the register are missing: whose files these are cannot be known"
            self._damage.append(DamageReport(found[0], 0, 0, DamageKind.UNREADABLE, what))

    def note(self, stores: Iterable[tuple[QueueName, Place, Storage]]) -> None:
        """Note how far stores reach now: no less may be there when they are opened again."""
        extents: dict[bool, dict[str, Extent]] = {True: {}, False: {}}
        for name, place, store in stores:
            extents[place.is_persistent][self._entry(name, place)] = store.extent
        for is_persistent, noted in extents.items():
            if noted:
                if is_persistent in self.logs:
                    log = self.logs[is_persistent]
                    noted[log.stem.name] = log.extent
                self._register(is_persistent).note(noted)

    def note_service(self, store: Storage) -> None:
        """The same of the service's state."""
        self._register(True).note({self._service_file.name: store.extent})

    def forget(self, name: QueueName, place: Place) -> None:
        """Expect the files of a queue no more: they are about to be deleted."""
        self._register(place.is_persistent).forget([self._entry(name, place)])
        self._owners = {stem: owner for stem, owner in self._owners.items() if owner != name}

    def forget_service(self) -> None:
        """The same of the service's state."""
        self._register(True).forget([self._service_file.name])

    def with_reserve(self, do: Callable[[], Done]) -> Done:
        """Do what has to be written however full the disk is; once more, where the reserve makes room for it.

        Raises:
            Damaged: the disk refuses.
        """
        try:
            return do()
        except DiskFull:
            if not self.room.release():
                raise
            return do()

    def close(self) -> None:
        """Let other services have the files, the logs last.

        Raises:
            Damaged: the disk refuses.
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

    def _open(self, name: QueueName, place: Place, known: Extent | None) -> Storage:
        if not place.is_persistent:
            assert self.volatile_directory is not None
            return self._logged(private_stem(self.volatile_directory, name), known, is_persistent=False)
        stem = self.stem(name, place)
        self._owners[stem] = name
        if place.settings.persistence.in_memory_state:
            return self._logged(stem, known, is_persistent=True)
        return SqliteStorage(stem.with_name(stem.name + ".db"), self.filesystem, QUEUE_CODEC, known)

    def carry_over_logs(self, *, own_too: bool) -> None:
        """Bring what other processes of this service left in their logs to the queues' own files; that of this one's
        too, where it opens none of them.

        Raises:
            Damaged: the disk refuses.
        """
        own = log_stem(self.directory, self.filesystem.file_prefix, self.application_name)
        register = self._register(True)
        for stem in sorted(existing_logs(own)):
            if stem != own or own_too:
                carry = partial(carry_over, stem, self.filesystem, QUEUE_CODEC, register.extent(stem.name))
                self._damage += self.with_reserve(carry)
                register.forget([stem.name])

    def _logged(self, stem: Path, known: Extent | None, *, is_persistent: bool) -> LoggedStorage:
        log = self.logs.get(is_persistent)
        if log is None:
            where = log_stem(stem.parent, self.filesystem.file_prefix, self.application_name, self._log_label)
            known_log = self._register(is_persistent).extent(where.name)
            log = self.logs[is_persistent] = WriteAheadLog(where, self.filesystem, known_log)
        if log.is_to_mend:
            log.mend()
        return LoggedStorage(stem, self.filesystem, log, QUEUE_CODEC, known)

    def _entry(self, name: QueueName, place: Place) -> str:
        """What a store is called in its register."""
        return self.stem(name, place).name if place.is_persistent else name

    def _register(self, is_persistent: bool) -> Register:
        if is_persistent not in self._registers:
            if is_persistent:
                path = register_file(self.directory, self.filesystem.file_prefix, self.application_name)
            else:
                assert self.volatile_directory is not None
                path = volatile_register(self.volatile_directory)
            self._registers[is_persistent] = Register(path)
        return self._registers[is_persistent]


def volatile_register(directory: Path) -> Path:
    """The register of the stores in a directory of volatile queues: beside it, to outlive it."""
    return directory.with_name(directory.name + ".json")
