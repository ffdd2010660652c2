"""The client's ports to a topic and to a queue [QS 2.4, 2.5 and 2.13].

Decides: when a queue counts as matched: for a producer, once the queue is announced and its service's reader has
matched our writer; for a consumer, once the queue is announced and its service reads our answers. Nothing is written
before, so nothing is lost.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from cyclonedds.sub import DataReader, Subscriber

from qsctl.core.client.consumer import UNLIMITED_THRESHOLD, Arrivals, QueueEnd, SampleAnswers, require_threshold
from qsctl.core.client.producer import OutgoingRun, QueueAnswers
from qsctl.core.client.unanswered import Unanswered
from qsctl.core.messages import AckResponse, ConsumerAvailability, Write, WriteAcknowledgment
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.transport.dds.channels import FrameWriter, Handshake
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import Changes, RemoteEndpoint
from qsctl.transport.dds.peers.matches import DeletedByCommand, Matches, QueueAppeared, QueueVanished, ReappearedPeers
from qsctl.transport.dds.qos import partition_qos, reader_qos
from qsctl.transport.dds.serialized_reader import SerializedReader
from qsctl.transport.dds.serving.endpoints import SAMPLE_SIZE_BYTES_MAX
from qsctl.transport.dds.wire import frames
from qsctl.transport.dds.wire.bodies import octets_of
from qsctl.transport.dds.wire.raw import close_entity
from qsctl.transport.dds.wire.wire_identity import WireGuid
from qsctl.transport.dds.wire.wire_types import (
    WireAcknowledgmentFrame,
    WireConsumerAvailability,
    WireFrame,
    availability_topic,
    consumer_acknowledgment_topic,
    consumer_topic,
    producer_acknowledgment_topic,
)

ProducerNews: TypeAlias = QueueAppeared | QueueVanished | DeletedByCommand | QueueAnswers
ConsumerNews: TypeAlias = QueueAppeared | QueueVanished | Arrivals[bytes, frames.SampleOctets] | QueueEnd

_LOG: Final = logging.getLogger("qsctl.client")

_ACCEPTED: Final = AckResponse.ACCEPTED


class ProducerPort:
    """A producer's port: a writer on a topic and a reader of the answers."""

    def __init__(self, participant: Participant, topic_name: str, guid: Guid) -> None:
        assert participant.entity is not None
        self.guid = guid
        self.topic_name = topic_name
        self._matches = Matches()
        self._readers: dict[int, bytes] = {}
        self._news: list[ProducerNews] = []
        self._is_settled = False
        """Whether all discovered queues are matched: there is nothing to do until discovery reports a change."""
        self._unanswered = Unanswered()
        self._replicas: dict[str, set[str]] = {}
        """The replicas of the matched queues that are replicated."""
        answers = participant.topic(producer_acknowledgment_topic(topic_name), WireAcknowledgmentFrame)
        self._participant = participant
        self._answer_topic = answers
        self._reappeared = ReappearedPeers(self._is_of_a_service)
        self._subscriber = Subscriber(participant.entity, qos=partition_qos(guid.hex()))
        self._answers = self._listen()
        self._writer = FrameWriter(
            participant, participant.topic(topic_name, WireFrame), traits={"role": "producer", "guid": guid.hex()}
        )
        self._handshake = Handshake(self._writer, frames.frame_of([]))

    def _listen(self) -> SerializedReader[frames.AnswerRuns]:
        traits = {"role": "answers", "guid": self.guid.hex()}
        reader = DataReader(self._subscriber, self._answer_topic, qos=reader_qos(traits=traits))
        return SerializedReader(self._participant, reader, lambda data: frames.parse_answer_runs(data, self.guid))

    def _is_of_a_service(self, endpoint: RemoteEndpoint) -> bool:
        return endpoint.traits.get("role") == "queue" and endpoint.traits.get("topic") == self.topic_name

    def look(self, changes: Changes) -> None:
        """Process appeared and vanished queues and readers of services."""
        if self._is_settled and not changes:
            return
        if self._reappeared.look(changes):
            # The service's channel to this reader ended here and not there: what it writes may be dropped. To a new
            # reader it opens a new one.
            self._news += self._receive()
            self._answers.close()
            self._answers = self._listen()
        self._news += self._matches.look(changes, key="topic", value=self.topic_name)
        for endpoint in changes.vanished:
            self._readers.pop(endpoint.handle, None)
        for endpoint in changes.appeared:
            if not endpoint.is_writer and endpoint.topic_name == self.topic_name:
                self._readers[endpoint.handle] = endpoint.participant
        if not self._matches.is_complete:
            reached = self._handshake.ready_readers(self._readers.keys())
            new = self._matches.newly({self._readers[handle] for handle in reached})
            self._news += new
            if new:
                self._note_replicas()
        if changes.vanished:
            self._note_replicas()
        self._is_settled = self._matches.is_complete

    def _note_replicas(self) -> None:
        former, self._replicas = self._replicas, self._matches.replicas()
        for queue in former.keys() | self._replicas.keys():
            before, now = former.get(queue, set()), self._replicas.get(queue, set())
            if now != before:
                _LOG.info("queue %s: %d replicas are there, %d were", queue, len(now), len(before))

    def matched_queues(self) -> dict[str, bool]:
        """Return the queues that are matched now, and whether each acknowledges."""
        return self._matches.matched()

    def poll(self) -> list[ProducerNews]:
        """Return the events and answers since the last call."""
        news, self._news = self._news, []
        news += self._receive()
        if len(self._unanswered):
            now = time.monotonic_ns()
            news += _joined(self._unanswered.pop_refused(now, self._replicas))
            again = self._unanswered.pop_due(now, self._replicas)
            if again:
                _LOG.info("topic %s: %d samples without an answer are written again", self.topic_name, len(again))
                self._put(map(_packed, again))
                self.flush()
        return news

    def give_up(self) -> list[QueueAnswers]:
        """Return the refusals of the samples that every replica refuses at present, for lack of a master."""
        return _joined(self._unanswered.pop_refused(time.monotonic_ns(), self._replicas, gives_up=True))

    def _receive(self) -> list[ProducerNews]:
        received: list[ProducerNews] = []
        while (answers := self._answers.take()) is not None:
            self._participant.boundary.time.note_samples()
            for frame in answers:
                queue = frame.queue_name
                if not frame.whole_count and queue:
                    self._unanswered.forget(queue)
                    received.append(DeletedByCommand(queue))
                if frame.sender != NIL_GUID:
                    received += self._of_replica(frame)
                else:
                    received += [
                        QueueAnswers(queue, numbers, response == _ACCEPTED) for numbers, response in frame.runs
                    ]
        return received

    def _of_replica(self, frame: frames.AnswerRuns) -> list[QueueAnswers]:
        """Process a replica's answers; return those that decide the answer of the queue."""
        queue, replica = frame.queue_name, frame.sender.hex()
        answers = (
            frames.answer_of(queue, SampleIdentity(self.guid, number), response)
            for numbers, response in frame.runs
            for number in numbers
        )
        return _joined([each for each in answers if self._unanswered.receive(each, replica, self._replicas)])

    def send_runs(self, runs: Sequence[OutgoingRun]) -> None:
        """Pack samples into frames, in order, as `send` does. None is larger than the service accepts."""
        if self._replicas:
            self.send([write for run in runs for write in run.writes()])
        else:
            self._put([packed for run in runs for packed in frames.pack_run(run)])

    def send(self, writes: Sequence[Write]) -> None:
        """Pack samples into frames, in order. Samples that replicated queues do not answer are written again.

        Raises:
            UsageError: a sample is larger than the service accepts.
        """
        require_size(max((len(write.payload) for write in writes), default=0))
        if self._replicas:
            writes = self._unanswered.sent(time.monotonic_ns(), writes, self._replicas)
        self._put(map(_packed, writes))

    def _put(self, packed: Iterable[bytes]) -> None:
        for frame, _ in frames.frames_of(packed):
            self._writer.put(frame)

    def flush(self) -> bool:
        """Send pending frames; return False if some wait for room, or a handshake with a service is in progress."""
        return self._writer.flush() and not self._handshake.is_in_progress

    @property
    def backlog_count(self) -> int:
        """Return the number of frames that wait for room."""
        return self._writer.backlog_count

    def drain(self, timeout_ns: Nanoseconds) -> None:
        """Wait until the services have received the sent frames."""
        self._writer.drain(timeout_ns)

    def close(self) -> None:
        """Delete its DDS entities."""
        self._writer.close()
        self._answers.close()
        close_entity(self._subscriber)


def _packed(write: Write) -> bytes:
    return frames.pack_sample(
        write.identity,
        write.payload,
        write.source_guid,
        write.related_source_guid,
        write.related_identity,
        write.related_reader_guid,
        write.flags if not write.attempt else frames.flags_of(write),
        write.lifespan_ns,
    )


def _joined(answers: Iterable[WriteAcknowledgment]) -> list[QueueAnswers]:
    """Return answers to samples of one writer; equal ones with ascending numbers, so each sample's once, as one."""
    joined: list[QueueAnswers] = []
    numbers = [0]
    for each in answers:
        number, accepted = each.identity.sequence_number, each.response == _ACCEPTED
        if not joined or number <= numbers[-1] or (joined[-1].queue, joined[-1].accepted) != (each.queue, accepted):
            numbers = []
            joined.append(QueueAnswers(each.queue, numbers, accepted))
        numbers.append(number)
    return joined


class ConsumerPort:
    """A consumer's port: a reader of a queue in its own partition, and a writer of the answers."""

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
        has_threshold = unacked_threshold is not None and unacked_threshold != UNLIMITED_THRESHOLD
        if unacked_threshold is not None:
            require_threshold(unacked_threshold)
        self.guid = guid
        self.queue = consumer_topic(topic_name, subscriber)
        self._matches = Matches()
        self._reappeared = ReappearedPeers(lambda endpoint: endpoint.is_writer and endpoint.topic_name == self.queue)
        self._answer_topic_name = consumer_acknowledgment_topic(topic_name, subscriber)
        self._answer_readers: dict[int, bytes] = {}
        self._is_heard = False
        self._unsent: list[bytes] = []
        self._reported: bytes | None = None
        self._reports_again = False
        self._news: list[ConsumerNews] = []
        self._is_settled = False
        """Whether all discovered services are matched: there is nothing to do until discovery reports a change."""
        answers = participant.topic(self._answer_topic_name, WireAcknowledgmentFrame)
        self._writer = FrameWriter(participant, answers, traits={"role": "answers", "guid": guid.hex()})
        self._availability: FrameWriter | None = None
        if feedback:
            topic = participant.topic(availability_topic(topic_name, subscriber), WireConsumerAvailability)
            self._availability = FrameWriter(participant, topic)
        traits = {"role": "consumer", "guid": guid.hex()}
        if source_guid != NIL_GUID:
            traits["source"] = source_guid.hex()
        if has_threshold:
            traits["threshold"] = str(unacked_threshold)
        self._subscriber = Subscriber(participant.entity, qos=partition_qos(guid.hex()))
        self._participant = participant
        self._qos = reader_qos(traits=traits, subscriber=subscriber)
        self._samples = self._join()

    def _join(self) -> SerializedReader[list[Arrivals[bytes, frames.SampleOctets] | QueueEnd]]:
        topic = self._participant.topic(self.queue, WireFrame)
        reader = DataReader(self._subscriber, topic, qos=self._qos)
        return SerializedReader(self._participant, reader, frames.parse_arrivals)

    def look(self, changes: Changes) -> None:
        """Process the changes that discovery found for the queue."""
        if self._is_settled and not changes:
            return
        self._news += self._matches.look(changes, key="", value=self.queue)
        if self._reappeared.look(changes):
            # Samples that the queue sent while it was unreachable are lost, and it awaits answers: it must take all
            # of them back and restart. Samples already received here arrive again, flagged as redelivered.
            self._samples.close()
            self._samples = self._join()
        if changes.vanished or changes.appeared or not self._is_heard:
            self._is_heard = self._reaches_services(changes)
        if not self._matches.is_complete and self._is_heard:
            new = self._matches.newly(self._matches.participants)
            self._news += new
            # A restarted service has not received the reports to the former one.
            self._reports_again |= bool(new) and self._reported is not None
        if self._reports_again and self._reported is not None and self.is_feedback_matched:
            self._reports_again = False
            self.require_feedback().put(self._reported)
        self._is_settled = self._is_heard and self._matches.is_complete and not self._reports_again

    def _reaches_services(self, changes: Changes) -> bool:
        """Return whether each service that announces the queue reads the answers: earlier answers would be lost."""
        for endpoint in changes.vanished:
            self._answer_readers.pop(endpoint.handle, None)
        for endpoint in changes.appeared:
            if not endpoint.is_writer and endpoint.topic_name == self._answer_topic_name:
                self._answer_readers[endpoint.handle] = endpoint.participant
        services = self._matches.participants
        if not services:
            return False
        matched = self._writer.writer.matched_handles()
        return services <= {each for handle, each in self._answer_readers.items() if handle in matched}

    def poll(self) -> list[ConsumerNews]:
        """Return the events and samples since the last call."""
        news, self._news = self._news, []
        news += self._receive()
        return news

    def _receive(self) -> list[ConsumerNews]:
        received: list[ConsumerNews] = []
        while (samples := self._samples.take()) is not None:
            self._participant.boundary.time.note_samples()
            for arrivals in samples:
                received += arrivals
        return received

    def send(self, answers: Iterable[SampleAnswers[bytes]]) -> None:
        """Pack answers into frames, in order."""
        self._unsent += frames.answer_frames(self.guid, self.queue, answers)

    @property
    def answering_count(self) -> int | None:
        """Return the number of services that answer the question for the end of the queue; None: one does not."""
        return self._matches.answering_count()

    def detach(self) -> None:
        """Leave in good order: samples that the program did not receive wait again as if never sent."""
        self._unsent.append(frames.answers_of(self.guid, self.queue, []))
        self.flush()

    def report(self, availability: ConsumerAvailability) -> None:
        """Send this consumer's availability report to the queue [QS 2.10.2].

        Raises:
            UsageError: the port was opened without feedback.
        """
        channel = self.require_feedback()
        make: Any = WireConsumerAvailability
        guid: Any = bytes(availability.consumer_guid)
        self._reported = octets_of(make(WireGuid(guid), availability.reception_enabled, availability.unacked_threshold))
        channel.put(self._reported)

    def require_feedback(self) -> FrameWriter:
        """Return the writer of availability reports.

        Raises:
            UsageError: the port was opened without feedback.
        """
        if self._availability is None:
            raise UsageError("this consumer was opened without feedback", remedy="Open it with feedback=True.")
        return self._availability

    @property
    def is_feedback_matched(self) -> bool:
        """Return whether the queue reads the reports of `report`."""
        return self._availability is not None and self._availability.writer.matched_count() > 0

    def flush(self) -> bool:
        """Send pending frames; return False if some wait for room, or for the service to match."""
        if self._unsent and self._is_heard:
            for frame in self._unsent:
                self._writer.put(frame)
            self._unsent.clear()
        done = self._writer.flush() and not (self._unsent and self._matches.participants)
        if self._availability is not None:
            done = self._availability.flush() and done
        return done

    def drain(self, timeout_ns: Nanoseconds) -> None:
        """Wait until the queue has the answers: samples of a consumer that leaves earlier count as unanswered."""
        self._writer.drain(timeout_ns)

    def close(self) -> None:
        """Leave the queue; its held samples are redelivered."""
        self._samples.close()
        close_entity(self._subscriber)
        self._writer.close()
        if self._availability is not None:
            self._availability.close()


def require_size(size_bytes: int) -> None:
    """Check the size of a sample.

    Raises:
        UsageError: the sample is larger than the service accepts.
    """
    if size_bytes > SAMPLE_SIZE_BYTES_MAX:
        raise UsageError(
            f"a sample of {size_bytes} octets is too large",
            remedy=f"The service accepts at most {SAMPLE_SIZE_BYTES_MAX}; send the data in parts.",
        )
