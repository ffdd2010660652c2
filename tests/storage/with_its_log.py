"""A store beside its log, as one, for the contract of all stores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings
from qsctl.core.records import Record
from qsctl.service.stores._queue_codec import QUEUE_CODEC
from qsctl.storage.log.write_ahead_log import WriteAheadLog
from qsctl.storage.streams.logged import LoggedStorage, write_group


class WithItsLog(LoggedStorage):
    """A stream that has a log for itself."""

    def __init__(self, directory: Path, filesystem: FilesystemSettings) -> None:
        log = WriteAheadLog(directory / "QSlog", filesystem)
        super().__init__(directory / "QSOrder@S@0@qsctl", filesystem, log, QUEUE_CODEC)

    def append(self, records: Sequence[Record]) -> None:
        """Append the records, as durable as configured."""
        sync = write_group(self.log, [(self, records)]) if records else None
        if sync is not None:
            sync()

    def write_deferred(self, records: Sequence[Record]) -> None:
        """Append records that the sync of the next ones covers."""
        write_group(self.log, [(self, records)])

    def close(self) -> None:
        super().close()
        self.log.close()

    def destroy(self) -> None:
        super().destroy()
        self.log.destroy()
