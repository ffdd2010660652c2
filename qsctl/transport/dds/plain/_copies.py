"""Copies of the samples of qsctl's producers, for plain readers of the queue's own type on its topic [QS 2.8].

Decides: which readers get copies, and of which samples. DDS itself delivers the samples of plain writers to all
readers; qsctl's clients write frames, which such an observer cannot read. So the service writes each sample again while
an observer is matched. Copies do not wait for observers: slow ones miss some.
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
"""Second octets of the encapsulation headers of XCDR1, in which the copies are announced."""


class Copies:
    """The copies of one topic. It has no DDS entity until there is an observer.

    Args:
        participant: opens the participant that writes copies, separate from the readers of plain samples, which may be
            blocked.
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
        """Return whether there is an observer."""
        return self._writer is not None

    def reader_appeared(self, endpoint: RemoteEndpoint, data_type: type[Any]) -> None:
        """Write copies from now on, of this type unless copies are being written already."""
        if self._writer is None:
            participant = self._participant()
            self._topic = participant.own_topic(self._topic_name, data_type)
            self._writer = FrameWriter(participant, self._topic, traits={"role": "copy"})
        self._readers.add(endpoint.handle)

    def reader_vanished(self, endpoint: RemoteEndpoint) -> None:
        """Forget an observer; stop writing after the last one."""
        self._readers.discard(endpoint.handle)
        if not self._readers:
            self.close()

    def put(self, writes: Sequence[Write]) -> None:
        """Write copies in the next flush; payloads that are not samples of the type are skipped."""
        writer = self._writer
        if writer is None:
            return
        for write in writes:
            octets = serialized(self._type_name, write.payload)
            if len(octets) >= 4 and octets[0] == 0 and octets[1] in _XCDR1 and not writer.backlog_count:
                writer.put(octets)

    def flush(self) -> None:
        """Send the copies."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Delete the writer."""
        if self._writer is not None:
            self._writer.discard()
            self._participant().discard(self._topic)
            self._writer = self._topic = None
