"""The register of the stores in a directory: what was there, so that what is missing is noticed [QS 2.14].

Decides: what is noted of a store, and when that is durable. Of each store it says how far it reached at least: when it
was made, compacted or closed. A store that reaches less far has lost something, whatever its own files say. The
register is one small file, replaced as a whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from zlib import crc32

import msgspec

from qsctl.storage.base import Extent
from qsctl.storage.damage import DamageKind, DamageReport, set_aside_name
from qsctl.storage.names import open_private, refuse_link, sync_directory
from qsctl.storage.room import refusal

FORMAT_VERSION: Final = 1


class _Register(msgspec.Struct, frozen=True):
    format: int
    stores: dict[str, Extent]
    checksum: int


class Register:
    """The register of one application's stores. Several processes of one service may use it.

    Raises:
        InvalidInput: a link or a device stands in the file's place.
        Damaged: the disk refuses.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage: list[DamageReport] = []
        self.was_there = False
        self._pending: dict[str, Extent | None] = {}
        """What could not be written yet."""
        refuse_link(path)
        try:
            self._stores = self._read()
        except OSError as error:
            raise refusal(path, error, is_clean=True) from error

    def extent(self, name: str) -> Extent | None:
        """How far a store reached at least; None: nothing is known of it."""
        return self._stores.get(name)

    def names(self) -> Iterable[str]:
        """The stores that should be there."""
        return tuple(self._stores)

    def note(self, extents: Mapping[str, Extent]) -> None:
        """Note how far stores reach. A disk that refuses is asked again next time: less would be noticed until then."""
        self._change({name: extent for name, extent in extents.items() if self._stores.get(name) != extent})

    def forget(self, names: Iterable[str]) -> None:
        """Note that stores are about to be deleted."""
        self._change({name: None for name in names if name in self._stores})

    def destroy(self) -> None:
        """Delete the register."""
        self._stores.clear()
        self._pending.clear()
        self.path.unlink(missing_ok=True)

    def _change(self, changes: Mapping[str, Extent | None]) -> None:
        self._pending |= changes
        for name, extent in changes.items():
            if extent is None:
                self._stores.pop(name, None)
            else:
                self._stores[name] = extent
        if not self._pending:
            return
        with contextlib.suppress(OSError), _alone(self.path.parent):
            stores = self._read() if self.path.exists() else dict(self._stores)
            for name, extent in self._pending.items():
                if extent is None:
                    stores.pop(name, None)
                else:
                    stores[name] = extent
            self._write(stores)
            self._stores = stores
            self._pending.clear()

    def _write(self, stores: dict[str, Extent]) -> None:
        data = msgspec.json.format(
            msgspec.json.encode(_Register(FORMAT_VERSION, stores, _checksum(stores)), order="sorted"), indent=1
        )
        temporary = self.path.with_name(self.path.name + ".tmp")
        with os.fdopen(open_private(temporary, os.O_WRONLY | os.O_TRUNC), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self.path)
        sync_directory(self.path.parent)

    def _read(self) -> dict[str, Extent]:
        try:
            found = msgspec.json.decode(self.path.read_bytes(), type=_Register)
        except FileNotFoundError:
            return {}
        except (ValueError, msgspec.MsgspecError) as error:
            self._set_aside(str(error))
            return {}
        if found.format != FORMAT_VERSION or found.checksum != _checksum(found.stores):
            self._set_aside("its checksum does not match")
            return {}
        self.was_there = True
        return found.stores

    def _set_aside(self, why: str) -> None:
        kept = set_aside_name(self.path)
        size_bytes = self.path.stat().st_size
        with contextlib.suppress(OSError):
            self.path.rename(kept)
        what = f"the register of the stores cannot be read ({why}): what else is missing cannot be known"
        self.damage.append(DamageReport(self.path, 0, size_bytes, DamageKind.UNREADABLE, what, kept))


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Be the only process that changes a register in the directory."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _checksum(stores: Mapping[str, Extent]) -> int:
    return crc32(msgspec.json.encode(sorted(stores.items())))
