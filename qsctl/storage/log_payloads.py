"""What a compaction keeps, with the user data that only the write-ahead log has (section 2.14.2).

Decides: that a sample keeps the user data that its store has, whatever the queue says: it may keep none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from msgspec.structs import replace

from qsctl.core.records import Enqueued, Record
from qsctl.storage.base import Shares


class HasPayloads(Protocol):
    """A stream of the log."""

    def is_in_log(self, position: int) -> bool:
        """Whether a sample is held whose user data is in the log only."""

    def payload(self, position: int) -> bytes:
        """The user data of a held sample."""


class WithPayloads:
    """What a compaction keeps, with the user data that only the log has."""

    def __init__(self, kept: Shares, stream: HasPayloads) -> None:
        self._kept = kept
        self._stream = stream

    @property
    def taken_to(self) -> int:
        """See `Shares.taken_to`."""
        return self._kept.taken_to

    @property
    def is_over(self) -> bool:
        """See `Shares.is_over`."""
        return self._kept.is_over

    def take(self, count: int) -> Sequence[Record]:
        """See `Shares.take`."""
        return list(with_payloads(self._kept.take(count), self._stream))


def with_payloads(records: Iterable[Record], stream: HasPayloads) -> Iterator[Record]:
    """The records, each sample with its user data."""
    for record in records:
        if type(record) is Enqueued and stream.is_in_log(record.position):
            record = replace(record, payload=stream.payload(record.position), payload_from=None)
        yield record
