"""The seam to disk: a store takes records and gives them back (manual, section 2.14).

Decides: the Protocol that every store meets, held by `tests/storage/contract.py`. A store knows nothing of queues:
it keeps the records it was given in order, as durable as it was configured, and says what damage it found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from qsctl.core.records import Record


class Storage(Protocol):
    """One stream of records: a queue's, or the service's own."""

    def append(self, records: Sequence[Record]) -> None:
        """Keep the records, all or none, as durable as configured when it returns.

        Raises:
            Damaged: the disk refused; nothing of the batch will be loaded.
        """

    def load(self) -> Iterator[Record]:
        """Every whole record, in order, less what `compact` dropped."""

    def payload(self, position: int) -> bytes:
        """The payload of the sample enqueued at `position`, for queues that keep it on disk only.

        Raises:
            KeyError: no such sample is held.
        """

    def compact(self, keep: Iterable[Record]) -> None:
        """Replace everything by `keep`, atomically: after a crash either the old or the new content loads."""

    def close(self) -> None:
        """Make everything durable that is configured to be, and let go of the files."""
