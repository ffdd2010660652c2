"""The records that a compaction keeps, completed by the payloads that only the write-ahead log has [QS 2.14.2].

Decides: that a position keeps its stored payload, whatever the caller passes: a queue may have none in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from msgspec.structs import replace

from qsctl.storage.base import Shares
from qsctl.storage.codec import Record, RecordCodec


class HasPayloads(Protocol):
    """A store with payloads in the log, as this module uses it."""

    @property
    def codec(self) -> RecordCodec:
        """The codec of the store's records."""

    def is_in_log(self, position: int) -> bool:
        """Return whether the position is held and only the log has its payload."""

    def payload(self, position: int) -> bytes:
        """Return the payload at a held position."""


class WithPayloads:
    """Shares of a compaction, completed by the payloads that only the log has."""

    def __init__(self, kept: Shares, stream: HasPayloads) -> None:
        self._kept = kept
        self._stream = stream

    @property
    def taken_to(self) -> int:
        """The highest position that was returned, or skipped because it is no longer held."""
        return self._kept.taken_to

    @property
    def is_over(self) -> bool:
        """Return whether the last part was returned."""
        return self._kept.is_over

    def take(self, count: int) -> Sequence[Record]:
        """Return the current records of the next `count` positions; of all remaining ones where few more are left."""
        return list(with_payloads(self._kept.take(count), self._stream))


def with_payloads(records: Iterable[Record], stream: HasPayloads) -> Iterator[Record]:
    """Yield the records, each with its payload."""
    carrier = stream.codec.carrier
    for record in records:
        if type(record) is carrier and stream.is_in_log(record.position):
            record = replace(record, payload=stream.payload(record.position))
        yield record
