"""A store beside its log, as one, for the contract of all stores."""

from __future__ import annotations

from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings
from qsctl.service.stores._queue_codec import QUEUE_CODEC
from qsctl.storage.log.write_ahead_log import WriteAheadLog
from qsctl.storage.streams.logged import LoggedStorage


class WithItsLog(LoggedStorage):
    """A stream that has a log for itself."""

    def __init__(self, directory: Path, filesystem: FilesystemSettings) -> None:
        log = WriteAheadLog(directory / "QSlog", filesystem)
        super().__init__(directory / "QSOrder@S@0@qsctl", filesystem, log, QUEUE_CODEC)

    def close(self) -> None:
        super().close()
        self.log.close()

    def destroy(self) -> None:
        super().destroy()
        self.log.destroy()
