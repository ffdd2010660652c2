"""The endpoints that the service opens for a topic and for a queue [QS 2.6 to 2.8, 2.10.2 and 2.13].

Decides: which readers and writers exist, and when a consumer counts as attached. A topic has one reader, however many
queues it has; a queue has a writer that announces it, a channel to each consumer, and a reader of their answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Final, TypeAlias, TypeGuard, TypeVar

from cyclonedds.sub import DataReader

from qsctl.core.messages import (
    Acknowledgment,
    ConsumerAvailability,
    ConsumerJoined,
    ConsumerLeft,
    Delivery,
    Inbound,
    RunAccepted,
    RunAcknowledgment,
    RunDelivery,
    Write,
    WriteAcknowledgment,
    WriteRun,
)
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.identity import NIL_GUID, Guid
from qsctl.transport.dds.channels import AnswerChannel, FrameWriter, SampleChannel
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import QUEUING_SERVICE, RemoteEndpoint
from qsctl.transport.dds.plain.consumers import PlainConsumers
from qsctl.transport.dds.plain.topic import PlainTopic
from qsctl.transport.dds.qos import map_qos, reader_qos
from qsctl.transport.dds.serialized_reader import SerializedReader
from qsctl.transport.dds.serving.turns import Inbox, read_all, read_share
from qsctl.transport.dds.wire import frames
from qsctl.transport.dds.wire.bodies import read_wire
from qsctl.transport.dds.wire.wire_types import (
    WireAcknowledgmentFrame,
    WireConsumerAvailability,
    WireFrame,
    availability_topic,
    consumer_acknowledgment_topic,
    consumer_topic,
    producer_acknowledgment_topic,
)

SAMPLE_SIZE_BYTES_MAX: Final = 32 * 1024 * 1024
"""Maximum size of a sample; a larger one is rejected. The transport could carry much more."""

FRAMES_AT_ONCE: Final = 4

UNCLAIMED_ANSWERS_MAX: Final = 100_000
"""Maximum number of answers kept for producers whose reader is not discovered yet."""

AVAILABILITIES_MAX: Final = 10_000
"""Number of consumers whose latest availability is kept."""

_Said = TypeVar("_Said")


Unsent: TypeAlias = "dict[TopicEndpoints | QueueEndpoints, None]"
"""The endpoints that have data to flush."""


class TopicEndpoints:
    """The samples of a topic, and the answers to its producers."""

    def __init__(
        self,
        participant: Participant,
        name: str,
        topic_name: str,
        service_name: str,
        qos_xml: str,
        unsent: Unsent | None = None,
    ) -> None:
        self._unsent: Unsent = {} if unsent is None else unsent
        self._participant = participant
        self._name = name
        self.topic_name = topic_name
        self.queues: dict[str, str] = {}
        """`<topic>@<subscriber>` by the full name of each queue of the topic."""
        assert participant.entity is not None
        traits = {"role": "service", "service": QUEUING_SERVICE, "name": service_name}
        topic = participant.topic(topic_name, WireFrame)
        qos = reader_qos(traits=traits, extra=map_qos(qos_xml).policies)
        self._answer_topic = participant.topic(producer_acknowledgment_topic(topic_name), WireAcknowledgmentFrame)
        self._reader = SerializedReader(
            participant, DataReader(participant.entity, topic, qos=qos), self._read, owner=self
        )
        self.replicas: dict[str, Guid] = {}
        """The identifier of this service's replica of each replicated queue, by `<topic>@<subscriber>`."""
        self._channels: dict[Guid, AnswerChannel] = {}
        self._unclaimed: dict[Guid, list[tuple[str, Sequence[WriteAcknowledgment]]]] = {}
        self._unclaimed_count = 0
        self._busy: dict[Guid, AnswerChannel] = {}
        self.plain: PlainTopic | None = None
        """The producers without qsctl; None: not created yet."""

    @property
    def concerned(self) -> set[str]:
        """Return the names of the DDS topics whose endpoints of peers may concern this topic."""
        plain = () if self.plain is None else self.plain.concerned
        return {self.topic_name, producer_acknowledgment_topic(self.topic_name), *plain}

    def reader_appeared(self, endpoint: RemoteEndpoint) -> None:
        """Open a channel to a producer's reader of answers in its own partition."""
        guid = endpoint.guid
        if guid == NIL_GUID or endpoint.traits.get("role") != "answers" or guid in self._channels:
            return
        channel = AnswerChannel(self._participant, self._answer_topic, guid, endpoint.handle, self.replicas)
        self._channels[guid] = channel
        for label, answers in self._unclaimed.pop(guid, ()):
            self._unclaimed_count -= len(answers)
            channel.put(label, answers)
        self._busy[guid] = channel
        self._unsent[self] = None

    def reader_vanished(self, endpoint: RemoteEndpoint) -> None:
        """Close the channel to a producer whose reader of answers is gone."""
        channel = self._channels.get(endpoint.guid)
        if channel is not None and channel.handle == endpoint.handle:
            del self._channels[endpoint.guid]
            self._busy.pop(endpoint.guid, None)
            channel.close()

    def _read(self, data: bytes) -> list[Write | WriteRun]:
        return frames.parse_frame(data, self._name, self.topic_name)

    def poll(self, inbox: Inbox) -> None:
        """Move up to a turn's share of samples into the inbox."""
        self.read(inbox)
        if self.plain is not None:
            self.plain.poll(inbox)

    @property
    def waits(self) -> bool:
        """Return whether it must be polled in each turn, even without new data."""
        return self.plain is not None and self.plain.waits

    def read(self, inbox: Inbox) -> bool:
        """Move up to a turn's share of qsctl's producers' samples into the inbox; return False if none is left."""
        return read_share(self._take, self._put, inbox)

    def _take(self) -> list[list[Write | WriteRun]] | None:
        return self._reader.take(FRAMES_AT_ONCE)

    def _put(self, taken: list[list[Write | WriteRun]], inbox: Inbox) -> None:
        for writes in taken:
            inbox.receive(writes)
            if self.plain is not None and self.plain.copies_are_wanted:
                self.plain.copy([write for each in writes for write in each.singles()])
                self._unsent[self] = None

    def answer(self, queue: str, guid: Guid, answers: Sequence[WriteAcknowledgment | RunAccepted]) -> None:
        """Send a producer the answers of one of the queues."""
        label = self.queues.get(queue)
        self._unsent[self] = None
        if label is None or (self.plain is not None and self.plain.answer(label, guid, answers)):
            return
        channel = self._channels.get(guid)
        if channel is not None:
            channel.put(label, answers)
            self._busy[guid] = channel
        elif self._unclaimed_count < UNCLAIMED_ANSWERS_MAX:
            singles = [answer for each in answers for answer in each.singles()]
            self._unclaimed.setdefault(guid, []).append((label, singles))
            self._unclaimed_count += len(singles)

    def end(self, queue: str) -> None:
        """Notify the producers that one of the queues was deleted [QS 5.4.2]."""
        label = self.queues.get(queue)
        if label is not None:
            for channel in self._channels.values():
                channel.end(label)

    def flush(self) -> bool:
        """Send this turn's answers; return False if some wait for room."""
        if self._busy:
            self._busy = {guid: channel for guid, channel in self._busy.items() if not channel.flush()}
        return (self.plain is None or self.plain.flush()) and not self._busy

    def writer_vanished(self, guid: Guid) -> None:
        """Drop the answers kept for a producer that is gone."""
        self._unclaimed_count -= sum(len(answers) for _, answers in self._unclaimed.pop(guid, ()))

    def close(self) -> None:
        """Delete all entities."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()
        self._busy.clear()
        self._reader.close()
        if self.plain is not None:
            self.plain.close()


class QueueEndpoints:
    """A queue's announcement, its consumers and their answers."""

    def __init__(
        self,
        participant: Participant,
        name: str,
        subscriber: str,
        settings: SharedReaderQueueSettings,
        service: str,
        unsent: Unsent | None = None,
    ) -> None:
        self._unsent: Unsent = {} if unsent is None else unsent
        self._participant = participant
        self.name = name
        self.settings = settings
        self.topic_name = consumer_topic(settings.topic_name, subscriber)
        self.answer_topic_name = consumer_acknowledgment_topic(settings.topic_name, subscriber)
        assert participant.entity is not None
        self._topic = participant.topic(self.topic_name, WireFrame)
        self._qos_extra = map_qos(settings.qos.get("datawriter_qos", "")).policies
        self._traits = {
            "role": "queue",
            "service": QUEUING_SERVICE,
            "name": service,
            "topic": settings.topic_name,
            "subscriber": subscriber,
            "acks": str(int(settings.app_ack_sample_to_producer)),
            "dead_letter": str(int(settings.is_dead_letter)),
            "answers_end": "1",
        }
        self.replica = replica_mark(service) if settings.replication.enabled else NIL_GUID
        """Identifier of this service's replica for producers; nil: the queue is not replicated."""
        if self.replica != NIL_GUID:
            self._traits["replica"] = self.replica.hex()
        self._joining: list[SampleChannel] = []
        self._channels: dict[Guid, SampleChannel] = {}
        self._busy: dict[Guid, SampleChannel] = {}
        self._early_questions: dict[Guid, Acknowledgment] = {}
        """Questions of consumers that have not joined yet."""
        self._availabilities: dict[Guid, ConsumerAvailability] = {}
        """Latest availability of each consumer, for consumers that have not joined yet or that reappear."""
        self.plain = PlainConsumers(participant, name, subscriber, settings, self._qos_extra, self)
        """The consumers without qsctl."""
        self._availability: SerializedReader[ConsumerAvailability] | None = None
        with ExitStack() as made:
            answers = participant.topic(self.answer_topic_name, WireAcknowledgmentFrame)
            reader = DataReader(participant.entity, answers, qos=reader_qos())
            self._answers = SerializedReader(
                participant, reader, lambda data: frames.parse_consumer_answers(data, name), owner=self
            )
            made.callback(self._answers.close)
            if settings.distribution.allow_consumer_feedback:
                feedback_name = availability_topic(settings.topic_name, subscriber)
                feedback = participant.topic(feedback_name, WireConsumerAvailability)
                reader = DataReader(participant.entity, feedback, qos=reader_qos())
                self._availability = SerializedReader(
                    participant, reader, lambda data: availability_from_octets(name, data), owner=self
                )
                made.callback(self._availability.close)
            # Last, so that a peer that sees the queue announced finds its readers.
            self._announcement = FrameWriter(participant, self._topic, traits=self._traits)
            made.pop_all()

    @property
    def concerned(self) -> set[str]:
        """Return the names of the DDS topics whose endpoints of peers may concern this queue."""
        return {self.topic_name, *self.plain.concerned}

    def reader_appeared(self, endpoint: RemoteEndpoint) -> None:
        """Process a reader of the queue's topic: a consumer if it names the subscriber, otherwise an observer."""
        guid = endpoint.guid
        if (
            guid == NIL_GUID
            or endpoint.traits.get("subscriber") != self._traits["subscriber"]
            or guid.hex() not in endpoint.partitions
        ):
            return
        channel = SampleChannel(
            self._participant,
            self._topic,
            endpoint,
            traits={"role": "lane", "service": QUEUING_SERVICE},
            extra=self._qos_extra,
        )
        self._joining.append(channel)

    def reader_vanished(self, endpoint: RemoteEndpoint, inbox: Inbox) -> None:
        """Remove a consumer that left, or whose lease has expired."""
        for at, channel in enumerate(self._joining):
            if channel.handle == endpoint.handle:
                del self._joining[at]
                channel.close()
                return
        joined = self._channels.get(endpoint.guid)
        if joined is not None and joined.handle == endpoint.handle:
            self._leave(joined, inbox)
            joined.close()

    def _leave(self, channel: SampleChannel, inbox: list[Inbound]) -> None:
        """Report that a consumer vanished, with the positions of samples that were never written."""
        del self._channels[channel.guid]
        self._busy.pop(channel.guid, None)
        inbox.append(ConsumerLeft(self.name, channel.guid, unsent=channel.take_back()))

    def _let_go(self, inbox: Inbox) -> None:
        """Remove consumers whose reader was found to be gone while sending, before discovery reports it.

        Their channels are kept until discovery reports the reader, as gone or as appeared again.
        """
        lost = [channel for channel in self._busy.values() if channel.is_lost]
        if lost:
            read_all(self._read_answers, inbox)
        for channel in lost:
            if self._channels.get(channel.guid) is channel:
                self._leave(channel, inbox)
                self._joining.append(channel)

    def announce_again(self) -> None:
        """Replace the announcement, so that producers send unanswered samples again, as to a restarted service."""
        former = self._announcement
        self._announcement = FrameWriter(self._participant, self._topic, traits=self._traits)
        former.close()

    @property
    def is_joining(self) -> bool:
        """Return whether a consumer is discovered and not reached yet."""
        return bool(self._joining) or self.plain.is_joining

    @property
    def waits(self) -> bool:
        """Return whether it must be polled in each turn, even without new data."""
        return bool(self._joining) or self.plain.waits or any(channel.is_lost for channel in self._busy.values())

    def poll(self, inbox: Inbox) -> bool:
        """Move up to a turn's share of messages into the inbox: joined consumers, availability, answers.

        Return False if no answer is left.
        """
        if self._busy:
            self._let_go(inbox)
        if self._joining:
            self._let_join(inbox)
        if self._availability is not None:
            self._poll_availability(self._availability, inbox)
        self.plain.poll(inbox)
        return self._read_answers(inbox)

    def _read_answers(self, inbox: Inbox) -> bool:
        return read_share(self._take, self._put, inbox)

    def _take(self) -> list[frames.ConsumerAnswers] | None:
        return self._answers.take(FRAMES_AT_ONCE)

    def _put(self, taken: list[frames.ConsumerAnswers], inbox: Inbox) -> None:
        for sender, answers in taken:
            if not answers:
                self._take_leave(sender, inbox)
            elif sender not in self._channels and _is_question(last := answers[-1]):
                self._keep(self._early_questions, sender, last)
                continue
            inbox.receive(answers)

    def _take_leave(self, guid: Guid, inbox: list[Inbound]) -> None:
        self._availabilities.pop(guid, None)
        channel = self._channels.pop(guid, None)
        if channel is not None:
            self._busy.pop(guid, None)
            channel.close()
            inbox.append(ConsumerLeft(self.name, guid, hands_back=True))

    def deliver(self, guid: Guid, deliveries: Sequence[Delivery | RunDelivery]) -> None:
        """Put samples into their consumer's channel; without one the consumer is leaving, and they are redelivered."""
        channel = self._channels.get(guid)
        self._unsent[self] = None
        if channel is not None:
            channel.put(deliveries)
            self._busy[guid] = channel
        else:
            self.plain.deliver(guid, deliveries)

    def flush(self) -> bool:
        """Send this turn's samples; return False if some wait for room."""
        if self._busy:
            self._busy = {guid: channel for guid, channel in self._busy.items() if not channel.flush()}
        return self.plain.flush() and not self._busy

    def close(self) -> None:
        """Delete all entities; the consumers see the queue vanish."""
        for channel in (*self._channels.values(), *self._joining):
            channel.close()
        self._channels.clear()
        self._joining.clear()
        self._busy.clear()
        self.plain.close()
        self._announcement.close()
        self._answers.close()
        if self._availability is not None:
            self._availability.close()

    def _let_join(self, inbox: list[Inbound]) -> None:
        still: list[SampleChannel] = []
        for channel in self._joining:
            if not channel.reaches_peer():
                still.append(channel)
                continue
            former = self._channels.get(channel.guid)
            if former is not None:
                # The same consumer reappeared before its former reader's lease expired.
                self._leave(former, inbox)
                former.close()
            self._channels[channel.guid] = channel
            endpoint = channel.endpoint
            inbox.append(
                ConsumerJoined(
                    self.name, channel.guid, endpoint.source_guid, unacked_threshold=endpoint.unacked_threshold
                )
            )
            said = self._availabilities.get(channel.guid)
            if said is not None:
                inbox.append(said)
            asked = self._early_questions.pop(channel.guid, None)
            if asked is not None:
                inbox.append(asked)
        self._joining = still

    def _poll_availability(self, reader: SerializedReader[ConsumerAvailability], inbox: list[Inbound]) -> None:
        for each in reader.take() or ():
            self._keep(self._availabilities, each.consumer_guid, each)
            if each.consumer_guid in self._channels:
                inbox.append(each)

    def _keep(self, kept: dict[Guid, _Said], guid: Guid, said: _Said) -> None:
        """Keep a consumer's latest message; above the bound the oldest entry is dropped."""
        kept.pop(guid, None)
        kept[guid] = said
        if len(kept) > AVAILABILITIES_MAX:
            del kept[next(iter(kept))]


def _is_question(answer: Acknowledgment | RunAcknowledgment) -> TypeGuard[Acknowledgment]:
    """Return whether a consumer asks by this answer whether there is more for it; no run has questions."""
    return answer.identity.writer_guid == NIL_GUID


def replica_mark(service: str) -> Guid:
    """Return the identifier, derived from a service's application name, that its replicas put into their answers."""
    return Guid(hashlib.sha256(service.encode()).digest()[:16])


def availability_from_octets(queue: str, data: bytes) -> ConsumerAvailability:
    """Decode a consumer's availability for a queue [QS 2.10.2].

    Raises:
        Malformed: the octets are not a `ConsumerAvailability_t`.
    """
    wire: Any = read_wire(WireConsumerAvailability, data)
    return ConsumerAvailability(
        queue, Guid(bytes(wire.consumer_guid.value)), bool(wire.reception_enabled), int(wire.unacked_threshold)
    )
