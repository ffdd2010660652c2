"""The client's ends of a topic and of a queue (manual, sections 2.4, 2.5 and 2.13).

Decides: when a queue counts as matched. A producer's queue is announced and its service's reader is matched by our
writer; a consumer's queue is announced and reads our answers. Nothing is written before, so nothing gets lost.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from cyclonedds.sub import DataReader, Subscriber

from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    ConsumerAvailability,
    Delivery,
    Write,
    WriteAcknowledgment,
)
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.transport.dds import frames
from qsctl.transport.dds.bodies import octets_of
from qsctl.transport.dds.endpoints import RETURN_NS, SAMPLE_SIZE_BYTES_MAX, Inlet
from qsctl.transport.dds.lanes import FrameWriter
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.presence import Changes, RemoteEndpoint
from qsctl.transport.dds.qos import partition_qos, reader_qos
from qsctl.transport.dds.raw import close_entity
from qsctl.transport.dds.wire_types import (
    WireAcknowledgmentFrame,
    WireConsumerAvailability,
    WireFrame,
    WireGuid,
    availability_topic,
    consumer_acknowledgment_topic,
    consumer_topic,
    producer_acknowledgment_topic,
)


class QueueAppeared(NamedTuple):
    """A matching queue is there, `<topic>@<subscriber>`."""

    queue: str
    acknowledges: bool


class QueueVanished(NamedTuple):
    """A matching queue is gone."""

    queue: str


ProducerNews: TypeAlias = QueueAppeared | QueueVanished | WriteAcknowledgment
ConsumerNews: TypeAlias = QueueAppeared | QueueVanished | Delivery

_RESPONSES: Final = {0: AckResponse.REJECTED, 1: AckResponse.ACCEPTED}


class _Matches:
    """The queues announced, and those of them that are matched."""

    def __init__(self) -> None:
        self._announced: dict[int, RemoteEndpoint] = {}
        self._matched: dict[str, set[int]] = {}
        self._not_before: dict[int, Nanoseconds] = {}

    def look(self, changes: Changes, *, key: str, value: str) -> list[QueueVanished]:
        """Keep the announcements whose trait `key` is `value`; tells which matched queues are gone."""
        gone: list[QueueVanished] = []
        for endpoint in changes.vanished:
            self._not_before.pop(endpoint.handle, None)
            if self._announced.pop(endpoint.handle, None) is not None:
                handles = self._matched.get(endpoint.topic_name, set())
                handles.discard(endpoint.handle)
                if not handles and self._matched.pop(endpoint.topic_name, None) is not None:
                    gone.append(QueueVanished(endpoint.topic_name))
        for endpoint in changes.appeared:
            traits = endpoint.traits
            if traits.get("role") == "queue" and (traits.get(key) if key else endpoint.topic_name) == value:
                self._announced[endpoint.handle] = endpoint
                if endpoint.returned:
                    self._not_before[endpoint.handle] = time.monotonic_ns() + RETURN_NS
        return gone

    def newly(self, services: set[str]) -> list[QueueAppeared]:
        """The announced queues of these services that are not matched yet; they are from now on.

        A service that was killed and started again is a new one before the old one's lease is over.
        """
        new: list[QueueAppeared] = []
        now = time.monotonic_ns()
        for handle, endpoint in self._announced.items():
            handles = self._matched.setdefault(endpoint.topic_name, set())
            if (
                handle not in handles
                and endpoint.traits.get("name", "") in services
                and self._not_before.get(handle, 0) <= now
            ):
                self._not_before.pop(handle, None)
                new.append(QueueAppeared(endpoint.topic_name, endpoint.traits.get("acks") == "1"))
                handles.add(handle)
            if not handles:
                del self._matched[endpoint.topic_name]
        return new

    def matched(self) -> dict[str, bool]:
        """The matched queues, and whether each acknowledges."""
        return {
            endpoint.topic_name: endpoint.traits.get("acks") == "1"
            for handle, endpoint in self._announced.items()
            if handle in self._matched.get(endpoint.topic_name, ())
        }

    @property
    def services(self) -> set[str]:
        """The names of the services that announce such a queue."""
        return {endpoint.traits.get("name", "") for endpoint in self._announced.values()}

    @property
    def is_complete(self) -> bool:
        """Whether every announced queue is matched."""
        return sum(len(handles) for handles in self._matched.values()) == len(self._announced)


class ProducerPort:
    """A writer on a topic and a reader of the answers."""

    def __init__(self, participant: Participant, topic_name: str, guid: Guid) -> None:
        assert participant.entity is not None
        self.guid = guid
        self.topic_name = topic_name
        self._matches = _Matches()
        self._readers: dict[int, str] = {}
        self._news: list[ProducerNews] = []
        answers = participant.topic(producer_acknowledgment_topic(topic_name), WireAcknowledgmentFrame)
        self._subscriber = Subscriber(participant.entity, qos=partition_qos(guid.hex()))
        traits = {"role": "answers", "guid": guid.hex()}
        self._answers = Inlet(participant, DataReader(self._subscriber, answers, qos=reader_qos(traits=traits)))
        self._writer = FrameWriter(
            participant, participant.topic(topic_name, WireFrame), traits={"role": "producer", "guid": guid.hex()}
        )

    def look(self, changes: Changes) -> None:
        """Take notice of queues and of the services' readers."""
        self._news += self._matches.look(changes, key="topic", value=self.topic_name)
        for endpoint in changes.vanished:
            self._readers.pop(endpoint.handle, None)
        for endpoint in changes.appeared:
            if not endpoint.is_writer and endpoint.topic_name == self.topic_name:
                self._readers[endpoint.handle] = endpoint.traits.get("name", "")
        if not self._matches.is_complete:
            matched = self._writer.writer.matched_handles()
            self._news += self._matches.newly({name for handle, name in self._readers.items() if handle in matched})

    def matched_queues(self) -> dict[str, bool]:
        """The queues that are matched now, and whether each acknowledges."""
        return self._matches.matched()

    def poll(self) -> list[ProducerNews]:
        """What has come since the last call."""
        news, self._news = self._news, []
        while taken := self._answers.take():
            for data in taken:
                try:
                    frame = frames.parse_answers(data)
                except frames.MalformedFrame:
                    continue
                queue = frame.queue_name
                news += [
                    WriteAcknowledgment(queue, identity, _RESPONSES.get(response, AckResponse.REJECTED))
                    for identity, response in frame.answers
                ]
        return news

    def send(self, writes: Sequence[Write]) -> None:
        """Put samples into frames, in order.

        Raises:
            UsageError: a sample is larger than the service takes.
        """
        packed: list[bytes] = []
        for write in writes:
            require_size(len(write.payload))
            packed.append(
                frames.pack_sample(
                    write.identity,
                    write.payload,
                    write.source_guid,
                    write.related_source_guid,
                    write.related_identity,
                    write.related_reader_guid,
                    write.flags,
                    write.lifespan_ns,
                )
            )
        for frame, _ in frames.frames_of(packed):
            self._writer.put(frame)

    def flush(self) -> bool:
        """Send what was put. False: some waits for room in the service's reader."""
        return self._writer.flush()

    @property
    def backlog_count(self) -> int:
        """Frames that wait for room."""
        return self._writer.backlog_count

    def settle(self, timeout_ns: Nanoseconds) -> None:
        """Wait until the services have what was sent."""
        self._writer.settle(timeout_ns)

    def close(self) -> None:
        """Delete the entities."""
        self._writer.close()
        self._answers.close()
        close_entity(self._subscriber)


class ConsumerPort:
    """A reader of a queue on its own partition, and a writer of the answers."""

    def __init__(
        self,
        participant: Participant,
        topic_name: str,
        subscriber: str,
        guid: Guid,
        *,
        source_guid: Guid = NIL_GUID,
        feedback: bool = False,
        unacked_threshold: int | None = None,
    ) -> None:
        assert participant.entity is not None
        self.guid = guid
        self.queue = consumer_topic(topic_name, subscriber)
        self._matches = _Matches()
        self._news: list[ConsumerNews] = []
        answers = participant.topic(consumer_acknowledgment_topic(topic_name, subscriber), WireAcknowledgmentFrame)
        self._writer = FrameWriter(participant, answers, traits={"role": "answers", "guid": guid.hex()})
        self._availability: FrameWriter | None = None
        if feedback:
            topic = participant.topic(availability_topic(topic_name, subscriber), WireConsumerAvailability)
            self._availability = FrameWriter(participant, topic)
        traits = {"role": "consumer", "guid": guid.hex()}
        if source_guid != NIL_GUID:
            traits["source"] = source_guid.hex()
        if unacked_threshold is not None:
            traits["threshold"] = str(unacked_threshold)
        self._subscriber = Subscriber(participant.entity, qos=partition_qos(guid.hex()))
        self._participant = participant
        self._qos = reader_qos(traits=traits, subscriber=subscriber)
        self._samples = self._join()

    def _join(self) -> Inlet:
        topic = self._participant.topic(self.queue, WireFrame)
        return Inlet(self._participant, DataReader(self._subscriber, topic, qos=self._qos))

    def look(self, changes: Changes) -> None:
        """Take notice of the queue."""
        self._news += self._matches.look(changes, key="", value=self.queue)
        if any(each.returned and each.is_writer and each.topic_name == self.queue for each in changes.appeared):
            # What the queue sent while it was out of sight is lost, and it waits for the answers: it is to give all
            # that back, and to begin anew.
            self._news += self._take()
            self._samples.close()
            self._samples = self._join()
        if not self._matches.is_complete and self._writer.writer.matched_count():
            self._news += self._matches.newly(self._matches.services)

    def poll(self) -> list[ConsumerNews]:
        """What has come since the last call."""
        news, self._news = self._news, []
        news += self._take()
        return news

    def _take(self) -> list[ConsumerNews]:
        taken_now: list[ConsumerNews] = []
        while taken := self._samples.take():
            for data in taken:
                try:
                    taken_now += frames.parse_deliveries(data, self.queue, self.guid)
                except frames.MalformedFrame:
                    continue
        return taken_now

    def send(self, answers: Sequence[Acknowledgment]) -> None:
        """Put answers into frames, in order."""
        pairs: list[tuple[SampleIdentity, int]] = [(each.identity, each.response) for each in answers]
        for at in range(0, len(pairs), frames.ANSWERS_MAX):
            self._writer.put(frames.pack_answers(self.guid, self.queue, pairs[at : at + frames.ANSWERS_MAX]))

    def take_leave(self) -> None:
        """Leave in order: the samples held were not touched, and wait again as if never sent."""
        self._writer.put(frames.pack_answers(self.guid, self.queue, []))
        self._writer.flush()

    def tell(self, availability: ConsumerAvailability) -> None:
        """Tell the queue about this consumer (section 2.10.2).

        Raises:
            UsageError: the port was opened without feedback.
        """
        channel = self.require_feedback()
        make: Any = WireConsumerAvailability
        guid: Any = bytes(availability.consumer_guid)
        channel.put(octets_of(make(WireGuid(guid), availability.reception_enabled, availability.unacked_threshold)))

    def require_feedback(self) -> FrameWriter:
        """The writer of availability.

        Raises:
            UsageError: the port was opened without feedback.
        """
        if self._availability is None:
            raise UsageError("this consumer was opened without feedback", remedy="Open it with feedback=True.")
        return self._availability

    @property
    def is_feedback_matched(self) -> bool:
        """Whether the queue reads what `tell` says."""
        return self._availability is not None and self._availability.writer.matched_count() > 0

    def flush(self) -> bool:
        """Send what was put. False: some waits for room."""
        done = self._writer.flush()
        if self._availability is not None:
            done = self._availability.flush() and done
        return done

    def settle(self, timeout_ns: Nanoseconds) -> None:
        """Wait until the queue has the answers: who left before is taken for one that never answered."""
        self._writer.settle(timeout_ns)

    def close(self) -> None:
        """Leave the queue: what is held is redelivered."""
        self._samples.close()
        close_entity(self._subscriber)
        self._writer.close()
        if self._availability is not None:
            self._availability.close()


def require_size(size_bytes: int) -> None:
    """Do nothing for a sample that the service takes.

    Raises:
        UsageError: it is larger.
    """
    if size_bytes > SAMPLE_SIZE_BYTES_MAX:
        raise UsageError(
            f"a sample of {size_bytes} octets is too large",
            remedy=f"The service takes {SAMPLE_SIZE_BYTES_MAX}; send the data in parts.",
        )
