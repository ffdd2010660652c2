"""Two streams of a write-ahead log, for tests of what they share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.records import Enqueued, Record, Removed
from qsctl.errors import Damaged
from qsctl.service.stores._queue_codec import QUEUE_CODEC
from qsctl.storage.log.log_upkeep import keep_short
from qsctl.storage.log.write_ahead_log import WriteAheadLog
from qsctl.storage.streams.logged import LoggedStorage, write_group
from tests.storage.power_loss import kill

FULL = FilesystemSettings(file_max_size_kb=1, synchronization=Synchronization.FULL)
OFF = FilesystemSettings(file_max_size_kb=1)
ORDERS, BILLS = "QSOrder@S@0@qsctl", "QSBill@S@0@qsctl"


class Both:
    """Two streams and the log that they share."""

    def __init__(self, directory: Path, filesystem: FilesystemSettings = FULL) -> None:
        self.log = WriteAheadLog(directory / "QSlog@qsctl", filesystem)
        self.orders = LoggedStorage(directory / ORDERS, filesystem, self.log, QUEUE_CODEC)
        self.bills = LoggedStorage(directory / BILLS, filesystem, self.log, QUEUE_CODEC)

    @property
    def streams(self) -> list[LoggedStorage]:
        return [self.orders, self.bills]

    def write(self, orders: list[Record], bills: list[Record]) -> None:
        sync = write_group(self.log, [(self.orders, orders), (self.bills, bills)])
        if sync is not None:
            sync()

    def keep_short(self, files_max: int = 1) -> Iterator[None]:
        return keep_short(self.log, lambda: self.streams, lose, files_max)

    def files(self) -> list[Path]:
        """Those of the log, once what is to be deleted is."""
        self.log._log._deletions.finish()
        return log_files(self.log.stem.parent)

    def close(self) -> None:
        for stream in self.streams:
            stream.close()
        self.log.close()

    def kill(self) -> None:
        for stream in self.streams:
            kill(stream)


def lose(_: LoggedStorage, error: Damaged) -> None:
    raise error


def run(shares: Iterator[None]) -> None:
    for _ in shares:
        pass


def held(store: LoggedStorage) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for record in store.load():
        if isinstance(record, Enqueued):
            found[record.position] = record.payload
        elif isinstance(record, Removed):
            del found[record.position]
    return found


def payload_of(position: int) -> bytes:
    return b"payload %04d" % position


def log_files(directory: Path) -> list[Path]:
    return sorted(directory.glob("QSlog@*_w*.db"), key=lambda path: int(path.stem.rpartition("_w")[2]))
