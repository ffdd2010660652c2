"""Copies of what qsctl's producers write, for plain readers of the queue's own type on its topic [QS 2.8].

Decides: who gets copies, and of what. What a plain writer writes, DDS gives to all readers itself; the wrappers write
frames, which such a reader cannot read. So the service writes each sample again while an observer is matched. A copy
does not wait for observers: those that do not keep up miss some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from cyclonedds.topic import Topic

from qsctl.core.messages import Write
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import RemoteEndpoint
from qsctl.transport.dds.plain._payloads import serialized

_XCDR1: Final = frozenset(b"\x00\x01\x02\x03")
"""The second octet of an encapsulation header of the first version of CDR, which the copies are announced in."""


class Copies:
    """The copies of one topic. There is nothing of it in DDS until one looks on.

    Args:
        participant: opens where they are written from: apart from the readers of plain samples, which may be held back.
        topic_name, type_name: the topic, and the name of the queue's type.
    """

    def __init__(self, participant: Callable[[], Participant], topic_name: str, type_name: str) -> None:
        self._participant = participant
        self._topic_name = topic_name
        self._type_name = type_name
        self._readers: set[int] = set()
        self._topic: Topic[Any] | None = None
        self._writer: FrameWriter | None = None

    @property
    def are_wanted(self) -> bool:
        """Return whether one looks on."""
        return self._writer is not None

    def reader_appeared(self, endpoint: RemoteEndpoint, data_type: type[Any]) -> None:
        """Write copies from now on, of this type unless some are written already."""
        if self._writer is None:
            participant = self._participant()
            self._topic = participant.own_topic(self._topic_name, data_type)
            self._writer = FrameWriter(participant, self._topic, traits={"role": "copy"})
        self._readers.add(endpoint.handle)

    def reader_vanished(self, endpoint: RemoteEndpoint) -> None:
        """Write no more when the last one is gone."""
        self._readers.discard(endpoint.handle)
        if not self._readers:
            self.close()

    def put(self, writes: Sequence[Write]) -> None:
        """Write copies, with the next flush; payloads that are not samples of the type are skipped."""
        writer = self._writer
        if writer is None:
            return
        for write in writes:
            octets = serialized(self._type_name, write.payload)
            if len(octets) >= 4 and octets[0] == 0 and octets[1] in _XCDR1 and not writer.backlog_count:
                writer.put(octets)

    def flush(self) -> None:
        """Send them."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Delete the writer."""
        if self._writer is not None:
            self._writer.discard()
            self._participant().discard(self._topic)
            self._writer = self._topic = None
