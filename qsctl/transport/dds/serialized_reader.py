"""A reader that passes the octets of peers' messages through a parser behind the boundary.

Decides: that no octets of a peer are processed outside the boundary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from cyclonedds.core import ReadCondition
from cyclonedds.sub import DataReader

from qsctl.transport.dds.diagnosis.peer_faults import UNKNOWN_PEER
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.announcements import writer_key
from qsctl.transport.dds.wire.raw import TAKE_COUNT, RawReader

Result = TypeVar("Result")


class SerializedReader(Generic[Result]):
    """A reader on the participant's waitset that returns parsed messages.

    Args:
        participant: provides the waitset and the boundary.
        reader: of a topic to which peers write.
        read: parses a message; raises `Malformed` for an invalid one.
        answer: called with the octets of a refused message, and the reason.
        owner: the object that `Waiter.ready` returns while there is data.
    """

    def __init__(
        self,
        participant: Participant,
        reader: DataReader[Any],
        read: Callable[[bytes], Result],
        answer: Callable[[bytes, str], Any] | None = None,
        owner: object | None = None,
    ) -> None:
        self._participant = participant
        self._boundary = participant.boundary
        self._source: str = reader.topic.name
        self._reader = RawReader(reader)
        self._read = read
        self._answer = answer
        self._condition: ReadCondition | None = participant.waiter.watch(reader, owner)

    def take(self, count: int = TAKE_COUNT) -> list[Result] | None:
        """Return up to `count` parsed messages, without the invalid ones; None: there are no messages."""
        taken = self._reader.take_with_info(count)
        if not taken:
            return None
        return self._boundary.each(
            self._source,
            [data for data, _ in taken],
            self._read,
            lambda index: self._peer_of(taken[index][1].publication_handle),
            self._answer,
        )

    def _peer_of(self, handle: int) -> str:
        key = writer_key(self._reader.reference, handle)
        return UNKNOWN_PEER if key is None else key.hex()

    def close(self) -> None:
        """Delete the reader."""
        if self._condition is not None:
            self._participant.waiter.unwatch(self._condition)
            self._condition = None
            self._reader.close()
