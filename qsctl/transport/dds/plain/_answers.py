"""Acknowledgments to producers without qsctl: `WriteAcknowledgment`, for those that have a reader of it.

Decides: which processes get acknowledgments, and for which samples. A process requests them by a reader in a partition
of its own, and gets them for the samples of all its writers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cyclonedds.topic import Topic

from qsctl.core.messages import AckResponse, RunAccepted, WriteAcknowledgment
from qsctl.identity import Guid
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import RemoteEndpoint
from qsctl.transport.dds.plain._idl import plain_class, write_acknowledgment_topic
from qsctl.transport.dds.plain._intake import Origins
from qsctl.transport.dds.plain._octets import XCDR1, XCDR2, pack_write_acknowledgment
from qsctl.transport.dds.plain._partitions import is_alone, reads_xcdr2_only

PENDING_MAX: Final = 100_000
"""Maximum number of answers that wait for a reader which is not matched or does not read; further ones are dropped."""


class PlainAnswerChannel:
    """The answers to one reader. They wait until it is matched, and while it has no room.

    Args:
        participant, topic: of the channel's writer.
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
        """Add an answer to this turn's flush. Beyond `PENDING_MAX` it is dropped, because the peer does not read."""
        if len(self._pending) + self._writer.backlog_count < PENDING_MAX:
            self._pending.append(octets)

    def flush(self) -> bool:
        """Send pending answers; return False if some wait for room. Those that wait for a match do not count."""
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
    """The readers of acknowledgments for the samples of one topic.

    Args:
        participant: of the service.
        topic_name: the topic.
        origins: the process of each sample's writer.
        replicas: the identifiers of the replicas of replicated queues, by `<topic>@<subscriber>`.
    """

    def __init__(
        self, participant: Participant, topic_name: str, origins: Origins, replicas: Mapping[str, Guid]
    ) -> None:
        self._participant = participant
        self.topic_name = write_acknowledgment_topic(topic_name)
        self._origins = origins
        self._replicas = replicas
        self._channels: dict[bytes, list[PlainAnswerChannel]] = {}
        """Channels by the GUID prefix of the process."""

    def asks(self, process: bytes) -> bool:
        """Return whether a process requests acknowledgments."""
        return process in self._channels

    def reader_appeared(self, endpoint: RemoteEndpoint) -> None:
        """Send acknowledgments to the reader's process from now on.

        Raises:
            Malformed: the reader has no partition of its own.
        """
        everyone = [each.endpoint for channels in self._channels.values() for each in channels]
        if not is_alone(endpoint, everyone):
            return
        topic = self._participant.topic(self.topic_name, plain_class("WriteAcknowledgment"))
        channel = PlainAnswerChannel(self._participant, topic, endpoint)
        self._channels.setdefault(endpoint.participant, []).append(channel)

    def reader_vanished(self, endpoint: RemoteEndpoint) -> None:
        """Stop sending acknowledgments to the reader's process."""
        channels = self._channels.get(endpoint.participant, [])
        for channel in channels:
            if channel.endpoint.handle == endpoint.handle:
                channels.remove(channel)
                channel.close()
                break
        if not channels:
            self._channels.pop(endpoint.participant, None)

    def answer(self, label: str, guid: Guid, answers: Sequence[WriteAcknowledgment | RunAccepted]) -> bool:
        """Answer a writer of samples for the queue `<topic>@<subscriber>`; return False if it is a writer of qsctl.

        Of replicated queues only acceptances are sent: another replica may hold a sample that this one rejects.
        """
        process = self._origins.process_of(guid)
        if process is None:
            return False
        channels, queue = self._channels.get(process, ()), label.encode()
        for each in [answer for several in answers for answer in several.singles()]:
            timestamp_ns = self._origins.pop_timestamp(each.identity)
            if label in self._replicas and each.response is AckResponse.REJECTED:
                continue
            for channel in channels:
                channel.put(
                    pack_write_acknowledgment(each.identity, timestamp_ns, each.response, queue, channel.header)
                )
        return True

    def flush(self) -> bool:
        """Send this turn's answers; return False if some wait for room."""
        done = True
        for channels in self._channels.values():
            for channel in channels:
                done = channel.flush() and done
        return done

    def close(self) -> None:
        """Delete all channels."""
        for channels in self._channels.values():
            for channel in channels:
                channel.close()
        self._channels.clear()
