"""The records that a compaction keeps, with the payloads that only the write-ahead log has [QS 2.14.2].

Decides: that a position keeps the payload that its store has, whatever is passed in: a queue may have none in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from msgspec.structs import replace

from qsctl.storage.base import Shares
from qsctl.storage.codec import Record, RecordCodec


class HasPayloads(Protocol):
    """A stream of the log."""

    @property
    def codec(self) -> RecordCodec:
        """That of its records."""

    def is_in_log(self, position: int) -> bool:
        """Return whether a position is held whose payload is in the log only."""

    def payload(self, position: int) -> bytes:
        """Return the payload at a held position."""


class WithPayloads:
    """The records that a compaction keeps, with the payloads that only the log has."""

    def __init__(self, kept: Shares, stream: HasPayloads) -> None:
        self._kept = kept
        self._stream = stream

    @property
    def taken_to(self) -> int:
        """The highest position that was given, or passed over for being gone."""
        return self._kept.taken_to

    @property
    def is_over(self) -> bool:
        """Return whether the last part was given."""
        return self._kept.is_over

    def take(self, count: int) -> Sequence[Record]:
        """Return the records of the given number of positions, as they are now; of all where few more are left."""
        return list(with_payloads(self._kept.take(count), self._stream))


def with_payloads(records: Iterable[Record], stream: HasPayloads) -> Iterator[Record]:
    """Return the records, each with its payload."""
    carrier = stream.codec.carrier
    for record in records:
        if type(record) is carrier and stream.is_in_log(record.position):
            record = replace(record, payload=stream.payload(record.position))
        yield record
