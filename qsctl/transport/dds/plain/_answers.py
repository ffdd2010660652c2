"""Acknowledgments to producers without qsctl: `WriteAcknowledgment`, for those that read it.

Decides: which processes get acknowledgments, and for which samples. A process requests them with a reader in a
partition of its own; it gets those for the samples of all its writers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cyclonedds.topic import Topic

from qsctl.core.messages import AckResponse, WriteAcknowledgment
from qsctl.identity import Guid
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import RemoteEndpoint
from qsctl.transport.dds.plain._idl import plain_class, write_acknowledgment_topic
from qsctl.transport.dds.plain._intake import Origins
from qsctl.transport.dds.plain._octets import XCDR1, XCDR2, pack_write_acknowledgment
from qsctl.transport.dds.plain._partitions import is_alone, reads_xcdr2_only

PENDING_MAX: Final = 100_000
"""Answers that wait for a reader that is not matched, or does not read; beyond them none is kept."""


class PlainAnswerChannel:
    """Answers to one reader. They wait until it is matched, and while it has no room.

    Args:
        participant, topic: those of its writer.
        endpoint: the reader.
    """

    def __init__(self, participant: Participant, topic: Topic[Any], endpoint: RemoteEndpoint) -> None:
        self.endpoint = endpoint
        in_xcdr2 = reads_xcdr2_only(endpoint)
        self.header = XCDR2 if in_xcdr2 else XCDR1
        self._writer = FrameWriter(
            participant, topic, partition=endpoint.partitions[0], traits={"role": "answers"}, in_xcdr2=in_xcdr2
        )
        self._pending: list[bytes] = []
        self._reaches_peer = False

    def put(self, octets: bytes) -> None:
        """Send an answer with this turn's flush. Beyond `PENDING_MAX` it is dropped: the peer reads nothing."""
        if len(self._pending) + self._writer.backlog_count < PENDING_MAX:
            self._pending.append(octets)

    def flush(self) -> bool:
        """Send what was put. False: some of it waits for room; what waits for a match does not count."""
        if not self._reaches_peer:
            self._reaches_peer = self.endpoint.handle in self._writer.writer.matched_handles()
            if not self._reaches_peer:
                return not self._pending
        pending, self._pending = self._pending, []
        for octets in pending:
            self._writer.put(octets)
        return self._writer.flush()

    def close(self) -> None:
        """Delete the writer."""
        self._writer.discard()


class ProducerAnswers:
    """Everyone who asks about the samples of one topic.

    Args:
        participant: of the service.
        topic_name: the topic.
        origins: whose each sample is.
        replicas: the marks of replicated queues by `<topic>@<subscriber>`, as the wrappers' endpoints keep them.
    """

    def __init__(
        self, participant: Participant, topic_name: str, origins: Origins, replicas: Mapping[str, Guid]
    ) -> None:
        self._participant = participant
        self.topic_name = write_acknowledgment_topic(topic_name)
        self._origins = origins
        self._replicas = replicas
        self._channels: dict[bytes, list[PlainAnswerChannel]] = {}
        """By the prefix of the process."""

    def asks(self, process: bytes) -> bool:
        """Return whether a process asks what becomes of its samples."""
        return process in self._channels

    def reader_appeared(self, endpoint: RemoteEndpoint) -> None:
        """Send acknowledgments to its process from now on.

        Raises:
            Malformed: it has no partition of its own.
        """
        everyone = [each.endpoint for channels in self._channels.values() for each in channels]
        if not is_alone(endpoint, everyone):
            return
        topic = self._participant.topic(self.topic_name, plain_class("WriteAcknowledgment"))
        channel = PlainAnswerChannel(self._participant, topic, endpoint)
        self._channels.setdefault(endpoint.participant, []).append(channel)

    def reader_vanished(self, endpoint: RemoteEndpoint) -> None:
        """Stop sending acknowledgments to its process."""
        channels = self._channels.get(endpoint.participant, [])
        for channel in channels:
            if channel.endpoint.handle == endpoint.handle:
                channels.remove(channel)
                channel.close()
                break
        if not channels:
            self._channels.pop(endpoint.participant, None)

    def answer(self, label: str, guid: Guid, answers: Sequence[WriteAcknowledgment]) -> bool:
        """Answer a writer of samples for the queue `<topic>@<subscriber>`; False: it is none without qsctl.

        What one replica rejects another may hold: of replicated queues only acceptances are reported.
        """
        process = self._origins.process_of(guid)
        if process is None:
            return False
        channels, queue = self._channels.get(process, ()), label.encode()
        for each in answers:
            timestamp_ns = self._origins.pop_timestamp(each.identity)
            if label in self._replicas and each.response is AckResponse.REJECTED:
                continue
            for channel in channels:
                channel.put(
                    pack_write_acknowledgment(each.identity, timestamp_ns, each.response, queue, channel.header)
                )
        return True

    def flush(self) -> bool:
        """Send what was answered in this turn. False: some waits for room."""
        done = True
        for channels in self._channels.values():
            for channel in channels:
                done = channel.flush() and done
        return done

    def close(self) -> None:
        """Delete everything."""
        for channels in self._channels.values():
            for channel in channels:
                channel.close()
        self._channels.clear()
