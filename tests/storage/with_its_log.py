"""A store beside its log, as one, for the contract of all stores."""

from __future__ import annotations

from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings
from qsctl.service.queue_codec import QUEUE_CODEC
from qsctl.storage.logged import LoggedStorage
from qsctl.storage.write_ahead_log import WriteAheadLog


class WithItsLog(LoggedStorage):
    """A stream that has a log for itself."""

    def __init__(self, directory: Path, filesystem: FilesystemSettings, *, is_truncatable: bool = False) -> None:
        log = WriteAheadLog(directory / "QSlog", filesystem)
        stem = directory / "QSOrder@S@0@qsctl"
        super().__init__(stem, filesystem, log, QUEUE_CODEC, is_truncatable=is_truncatable)

    def close(self) -> None:
        super().close()
        self.log.close()

    def destroy(self) -> None:
        super().destroy()
        self.log.destroy()
