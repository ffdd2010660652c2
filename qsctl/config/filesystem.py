"""The files of a service's state: their directory and the way they are written [QS 3.3.5, Tables 3.8 and 3.9].

Decides: the values and defaults of `<persistence_settings>/<filesystem>`. `config/_build.py` reads them from XML,
`storage` obeys them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

KILOBYTE: Final = 1024
"""Bytes in the KB of `<file_max_size>`; not stated [QS Table 3.9], our reading."""

DEFAULT_FILE_PREFIX: Final = "QS"
DEFAULT_FILE_MAX_SIZE_KB: Final = 1000


class JournalMode(StrEnum):
    """`<journal_mode>`: how a database file keeps its transactions; queues with in-memory state have no use for it."""

    DELETE = "DELETE"
    MEMORY = "MEMORY"
    """A crash inside a transaction damages the file."""
    OFF = "OFF"
    """A crash inside a transaction damages the file."""
    PERSIST = "PERSIST"
    TRUNCATE = "TRUNCATE"
    WAL = "WAL"


class Synchronization(StrEnum):
    """`<synchronization>`: when a write must have reached the physical disk."""

    FULL = "FULL"
    """Before it is acknowledged: nothing acknowledged is lost when the machine loses power."""
    NORMAL = "NORMAL"
    """At critical moments: a file is finished or replaced. Losing power may lose what was acknowledged last."""
    OFF = "OFF"
    """Whenever the operating system likes. A killed process loses nothing, a machine without power may."""


class Vacuum(StrEnum):
    """`<vacuum>`: whether a database file shrinks as data is deleted."""

    NONE = "NONE"
    FULL = "FULL"


@dataclass(frozen=True, slots=True)
class FilesystemSettings:
    """`<filesystem>` [QS Table 3.9].

    `directory` None means the current working directory; it must exist. `file_max_size_kb` rolls the files of queues
    with in-memory state to a new one, and those of the write-ahead log that they share at four times that; it does not
    bound a queue. `trace_file` None: no trace.
    """

    directory: Path | None = None
    file_prefix: str = DEFAULT_FILE_PREFIX
    file_max_size_kb: int = DEFAULT_FILE_MAX_SIZE_KB
    journal_mode: JournalMode = JournalMode.DELETE
    synchronization: Synchronization = Synchronization.OFF
    trace_file: Path | None = None
    vacuum: Vacuum = Vacuum.FULL

    @property
    def file_max_size_bytes(self) -> int:
        """The size past which a new file is begun."""
        return self.file_max_size_kb * KILOBYTE
