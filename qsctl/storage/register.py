"""The register of a directory's stores: their least extents, by which a later loss is detected [QS 2.14].

Decides: the recorded properties, and when they are durable. Each entry is the extent of a store when it was created,
compacted or closed last. A store that is smaller when it is opened has lost records, even where its own files are
intact. The register is one small file, replaced as a whole.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from zlib import crc32

import msgspec

from qsctl.errors import UNREADABLE
from qsctl.identity import NIL_INCARNATION, Incarnation, WholeIncarnation
from qsctl.storage.base import Extent
from qsctl.storage.damage import DamageKind, DamageReport, set_aside_name
from qsctl.storage.file_system import HOST, FileSystem
from qsctl.storage.names import read_whole, refuse_link, write_whole
from qsctl.storage.room import refusal

FORMAT_VERSION: Final = 1


class _Register(msgspec.Struct, frozen=True):
    """The content of the file; `incarnations` are the queues' by store, unknown to earlier versions."""

    format: int
    stores: dict[str, Extent]
    checksum: int
    incarnations: dict[str, WholeIncarnation] = {}
    incarnations_checksum: int | None = None

    @property
    def is_whole(self) -> bool:
        """Return whether the checksums match."""
        of_incarnations = _checksum(self.incarnations) if self.incarnations_checksum is not None else None
        return self.checksum == _checksum(self.stores) and self.incarnations_checksum == of_incarnations


class Register:
    """The register of one application's stores. Several processes of a service may use it at once.

    Raises:
        InvalidInput: a link or a device is in the file's place.
        Damaged: an I/O error occurs.
    """

    def __init__(self, path: Path, disk: FileSystem = HOST) -> None:
        self.path = path
        self._disk = disk
        self.damage: list[DamageReport] = []
        self.was_there = False
        self._pending: dict[str, Extent | None] = {}
        """Entries that could not be written yet."""
        self._incarnations: dict[str, Incarnation] = {}
        self._pending_incarnations: dict[str, Incarnation] = {}
        self._to_set_aside: Path | None = None
        """The name under which the file is kept that could not be read, once another is written."""
        refuse_link(path, disk)
        try:
            read = self._read()
            self._stores, self._incarnations = (read.stores, read.incarnations) if read else ({}, {})
        except OSError as error:
            raise refusal(path, error, is_clean=True) from error

    def extent(self, name: str) -> Extent | None:
        """Return the least extent that a store must have; None: unknown."""
        return self._stores.get(name)

    def kind(self, name: str) -> str:
        """Return the kind of a store; empty: unknown."""
        known = self._stores.get(name)
        return "" if known is None else known.kind

    def incarnation(self, name: str) -> Incarnation:
        """Return the incarnation of the queue that owns a store; nil: unknown."""
        return self._incarnations.get(name, NIL_INCARNATION)

    def forget_incarnation(self, name: str) -> None:
        """Drop the recorded incarnation of a queue's store: the one found in the store is accepted next time."""
        self._incarnations.pop(name, None)
        self._pending_incarnations[name] = NIL_INCARNATION

    def names(self) -> Iterable[str]:
        """Return the names of the stores that should exist."""
        return tuple(self._stores)

    def note(self, extents: Mapping[str, Extent], incarnations: Mapping[str, Incarnation] | None = None) -> None:
        """Record the extents of stores and the incarnations of their queues.

        A failed write is repeated with the next change; until then the register detects fewer losses.
        """
        for name in extents:
            incarnation = (incarnations or {}).get(name, NIL_INCARNATION)
            if incarnation not in (NIL_INCARNATION, self._incarnations.get(name)):
                self._pending_incarnations[name] = self._incarnations[name] = incarnation
        self._change({name: extent for name, extent in extents.items() if self._stores.get(name) != extent})

    def forget(self, names: Iterable[str]) -> None:
        """Remove the entries of stores that are about to be deleted."""
        self._change({name: None for name in names if name in self._stores})

    def destroy(self) -> None:
        """Delete the register."""
        self._stores.clear()
        self._pending.clear()
        self._disk.unlink(self.path)

    def _change(self, changes: Mapping[str, Extent | None]) -> None:
        self._pending |= changes
        for name, extent in changes.items():
            if extent is None:
                self._stores.pop(name, None)
                self._incarnations.pop(name, None)
                self._pending_incarnations.pop(name, None)
            else:
                self._stores[name] = extent
        if not (self._pending or self._pending_incarnations):
            return
        with contextlib.suppress(OSError), self._alone():
            if self._to_set_aside is not None:
                self._disk.rename(self.path, self._to_set_aside)
                self._to_set_aside = None
            read = self._read()
            stores = read.stores if read else dict(self._stores)
            noted = (read.incarnations if read else self._incarnations) | self._pending_incarnations
            incarnations = {name: each for name, each in noted.items() if each != NIL_INCARNATION}
            for name, extent in self._pending.items():
                if extent is None:
                    stores.pop(name, None)
                    incarnations.pop(name, None)
                else:
                    stores[name] = extent
            self._write(stores, incarnations)
            self._stores, self._incarnations = stores, incarnations
            self._pending.clear()
            self._pending_incarnations.clear()

    def _write(self, stores: dict[str, Extent], incarnations: dict[str, Incarnation]) -> None:
        register = _Register(FORMAT_VERSION, stores, _checksum(stores), incarnations, _checksum(incarnations))
        data = msgspec.json.format(msgspec.json.encode(register, order="sorted"), indent=1)
        write_whole(self.path, ".tmp", data, self._disk)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the directory's registers against other processes."""
        descriptor = self._disk.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._disk.lock(descriptor, waits=True)
            yield
        finally:
            self._disk.close(descriptor)

    def _read(self) -> _Register | None:
        try:
            found = msgspec.json.decode(read_whole(self.path, self._disk), type=_Register)
        except FileNotFoundError:
            return None
        except UNREADABLE as error:
            self._set_aside(str(error))
            return None
        if found.format != FORMAT_VERSION or not found.is_whole:
            self._set_aside("its checksum does not match")
            return None
        self.was_there = True
        return found

    def _set_aside(self, why: str) -> None:
        """Report an unreadable register, and have the next write rename it first."""
        kept = self._to_set_aside = set_aside_name(self.path, self._disk)
        found = self._disk.status_at(self.path)
        size_bytes = 0 if found is None else found.size_bytes
        what = f"the register of the stores cannot be read ({why}): what else is missing cannot be known"
        self.damage.append(DamageReport(self.path, 0, size_bytes, DamageKind.UNREADABLE, what, kept))


def _checksum(noted: Mapping[str, Extent | Incarnation]) -> int:
    return crc32(msgspec.json.encode(sorted(noted.items())))
