"""A reader of peers' messages that identifies the sending process of each, even if it has left since.

Decides: how a sender is identified. A sample has only its writer's handle; the process is looked up while the writer
exists, by discovery or at its first message.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from cyclonedds.core import ReadCondition
from cyclonedds.sub import DataReader

from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.diagnosis.peer_faults import UNKNOWN_PEER
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.announcements import writer_key
from qsctl.transport.dds.peers.discovery import RemoteEndpoint, participant_of
from qsctl.transport.dds.qos import READER_FRAMES_MAX, plain_reader_qos
from qsctl.transport.dds.wire.raw import RawReader

Result = TypeVar("Result")

SENDERS_MAX: Final = 10_000
"""Number of remembered writers."""

TAKEN_AT_ONCE: Final = 64


class SenderReader(Generic[Result]):
    """A reader on the participant's waitset that accepts XCDR1 and XCDR2.

    Args:
        participant: provides the waitset and the boundary.
        topic_name, data_type: its topic.
        read: parses a message, from its octets and the GUID prefix of its process; raises `Malformed`.
        owner: the object that `Waiter.ready` returns while there is data.

    Raises:
        Refused: the topic cannot be created.
    """

    def __init__(
        self,
        participant: Participant,
        topic_name: str,
        data_type: type[Any],
        read: Callable[[bytes, bytes], Result],
        owner: object | None = None,
    ) -> None:
        self._participant = participant
        self._source = topic_name
        self._read = read
        assert participant.entity is not None
        qos = plain_reader_qos(samples_max=READER_FRAMES_MAX, traits={"role": "service"})
        reader: DataReader[Any] = DataReader(participant.entity, participant.topic(topic_name, data_type), qos=qos)
        self._reader = RawReader(reader)
        self._senders: OrderedDict[int, bytes] = OrderedDict()
        self._condition: ReadCondition | None = participant.waiter.watch(reader, owner)

    def note(self, endpoint: RemoteEndpoint) -> None:
        """Remember a discovered writer."""
        self._remember(endpoint.handle, endpoint.key)

    def is_matched(self, handle: int) -> bool:
        """Return whether a discovered writer is matched."""
        return writer_key(self._reader.reference, handle) is not None

    def take(self) -> list[Result] | None:
        """Return the next parsed messages, without the invalid ones; None: there are no messages."""
        taken = self._reader.take_with_info(TAKEN_AT_ONCE)
        if not taken:
            return None
        return self._participant.boundary.each(
            self._source, taken, self._read_one, lambda index: self._peer_of(taken[index])
        )

    def close(self) -> None:
        """Delete the reader."""
        if self._condition is not None:
            self._participant.waiter.unwatch(self._condition)
            self._condition = None
            self._reader.close()

    def _read_one(self, taken: tuple[bytes, Any]) -> Result:
        key = self._key_of(taken[1].publication_handle)
        if key is None:
            raise Malformed("its writer left before it could be looked up")
        return self._read(taken[0], participant_of(key))

    def _peer_of(self, taken: tuple[bytes, Any]) -> str:
        key = self._key_of(taken[1].publication_handle)
        return UNKNOWN_PEER if key is None else key.hex()

    def _key_of(self, handle: int) -> bytes | None:
        key = self._senders.get(handle)
        if key is None and (key := writer_key(self._reader.reference, handle)) is not None:
            self._remember(handle, key)
        return key

    def _remember(self, handle: int, key: bytes) -> None:
        self._senders[handle] = key
        if len(self._senders) > SENDERS_MAX:
            self._senders.popitem(last=False)
