"""What the targets of storage share: a store that was written once, and the rule for what a damaged copy gives."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from qsctl.core.records import Assigned, Enqueued, Record, RemovalCause, Removed
from qsctl.errors import Damaged, InvalidInput, Refused
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import INFINITE_NS
from qsctl.storage.base import DatabaseStorage, Extent
from tests.fuzz.edits import Files, edited, read_files, write_files

QUEUE = "P/S/orders"
WRITER = Guid(b"w" * 16)
COUNT = 16
OPENS_WITH = (Damaged, InvalidInput, Refused)
"""What a store may raise; anything else ends the service."""

Make = Callable[[Path, Extent | None], DatabaseStorage]


def samples(position: int) -> list[Record]:
    identity = SampleIdentity(WRITER, position)
    text = f"payload of sample {position:04} ".encode() * (1 + position % 5)
    return [
        Enqueued(QUEUE, position, identity, 1, INFINITE_NS, WRITER, payload=text),
        Assigned(QUEUE, position, WRITER, 1),
    ]


def fill(store: DatabaseStorage) -> Extent:
    """Put samples in, take some of them out, and close the store; gives how far it reaches."""
    for position in range(COUNT):
        store.append(samples(position))
        if position % 3 == 2:
            store.append([Removed(QUEUE, position - 1, RemovalCause.DELIVERED)])
    store.close()
    return store.extent


def held(records: Iterator[Record]) -> dict[int, Enqueued]:
    found: dict[int, Enqueued] = {}
    for record in records:
        if isinstance(record, Enqueued):
            found[record.position] = record
        elif isinstance(record, Removed):
            found.pop(record.position, None)
    return found


class WrittenOnce:
    """A store that is written when it is first asked for."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._files: Files = {}
        self._extent: Extent | None = None
        self._held: dict[int, Enqueued] = {}

    def check(self, data: bytes) -> None:
        """Damage a copy as the data says: what loads is what was written, or damage is reported."""
        if not self._files:
            self._write()
        files = edited(self._files, data)
        if files == self._files:
            return
        with tempfile.TemporaryDirectory(prefix="qsctl-fuzz-", dir=_memory()) as folder:
            directory = Path(folder)
            write_files(directory, files)
            try:
                store = self._make(directory, self._extent)
            except OPENS_WITH:
                return
            try:
                self._check(store)
            except OPENS_WITH:
                pass
            finally:
                store.abandon()

    def _check(self, store: DatabaseStorage) -> None:
        found = held(store.load())
        assert found == self._held or store.damage, f"silent: lost {self._held.keys() - found.keys()}"
        wrong = [position for position, each in found.items() if each != self._written(position)]
        assert not wrong, f"not what was written: {wrong}"
        back = found.keys() - self._held.keys()
        assert not back or store.damage, f"silent: came back {back}"
        store.append(samples(1_000_000))
        for position in (*list(found)[:2], 1_000_000):
            assert store.payloads([position]) == [samples(position)[0].payload]  # type: ignore[union-attr]

    def _write(self) -> None:
        with tempfile.TemporaryDirectory(prefix="qsctl-fuzz-", dir=_memory()) as folder:
            self._extent = fill(self._make(Path(folder), None))
            store = self._make(Path(folder), self._extent)
            self._held = held(store.load())
            assert not store.damage
            store.close()
            self._files = read_files(Path(folder))

    def _written(self, position: int) -> Record:
        return samples(position)[0]


def _memory() -> str | None:
    """A file system in memory, where there is one: the disk is not what is tried here."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
