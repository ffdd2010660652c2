"""The wrappers of chapter 8 for programs that block: producer and consumer; `blocking_requests` has the other two.

Each is a context manager and belongs to one thread. Payloads are octets, or values when a codec is given. The awaitable
ones, in `queue_producer` and its siblings, are these with their waits in a worker thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, Self, TypeAlias, cast

import msgspec

from qsctl.client.session import FOREVER_S, ClientSession, Codec, RawOctets, Value, Wrapper, new_guid, no_answer
from qsctl.core.client.consumer import UNLIMITED_THRESHOLD, Consumer
from qsctl.core.client.producer import WINDOW_COUNT, Producer, Settled, ranges_of
from qsctl.core.messages import AckResponse, Delivery, SampleFlag, WriteAcknowledgment
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.transport.dds.client_ports import ConsumerPort, ProducerPort
from qsctl.transport.dds.client_ports import require_size as _require_size
from qsctl.transport.dds.matches import QueueAppeared, QueueDeleted, QueueVanished
from qsctl.transport.dds.participant import DomainSettings

SETTLED_KEPT_COUNT: Final = 100_000
"""Settled samples that a producer keeps for `take_settled`: one that is never asked must not grow."""


class ApplicationAcknowledgment(msgspec.Struct, frozen=True, gc=False):
    """What one queue answered for one sample (section 2.4): what `on_application_acknowledgment` is called with.

    `accepted` is the single byte of the answer, 1 or 0. `queue_deleted`: the queue was deleted before it answered.
    """

    queue: str
    """`<topic>@<subscriber>`."""
    identity: SampleIdentity
    accepted: bool
    queue_deleted: bool = False


AcknowledgmentListener: TypeAlias = Callable[[ApplicationAcknowledgment], object]


class ReceivedSample(msgspec.Struct, Generic[Value], frozen=True, eq=False, gc=False):
    """A sample that a queue gave to this consumer, to be acknowledged once."""

    _consumer: QueueConsumer[Value]
    delivery: Delivery
    value: Value

    @property
    def identity(self) -> SampleIdentity:
        """Who wrote it, and which of its samples this is."""
        return self.delivery.identity

    @property
    def redelivered(self) -> bool:
        """Whether somebody may have processed it before (section 2.9)."""
        return bool(self.delivery.flags & SampleFlag.REDELIVERED)

    @property
    def is_last(self) -> bool:
        """Whether the queue had no more for this consumer (Table 2.1); only where the queue marks it."""
        return bool(self.delivery.flags & SampleFlag.LAST_SHARED_READER_QUEUE)

    def acknowledge(self, accepted: bool = True) -> None:
        """Settle it: accepted retires it, rejected sends it to somebody else."""
        self._consumer.acknowledge(self, accepted)


class QueueProducer(Wrapper, Generic[Value]):
    """Writes samples to the queues of a topic (section 8.1).

    Args:
        topic_name: the queue's `<topic_name>`.
        domain_id: the domain of the queue's domain participant.
        codec: how values become payloads; without one they are octets.
        window_count: samples written and not settled; `write` blocks when so many are out.
        source_guid: whom replies go to (section 2.11.1); nil: the writer itself.
        writer_guid: the writer of its samples' identities, for a program that gives identities or goes on with those of
            an earlier run; one that no other producer uses. Without it a random one.
        on_application_acknowledgment: called for each sample and queue as their answers come, in the program's thread,
            inside the call that took notice of them (section 2.4). It may write. What it raises reaches that call.
    """

    def __init__(
        self,
        topic_name: str,
        domain_id: int = 0,
        *,
        codec: Codec[Value] | None = None,
        window_count: int = WINDOW_COUNT,
        source_guid: Guid = NIL_GUID,
        writer_guid: Guid | None = None,
        on_application_acknowledgment: AcknowledgmentListener | None = None,
        settings: DomainSettings | None = None,
        session: ClientSession | None = None,
    ) -> None:
        super().__init__(domain_id, settings, session)
        self._codec = codec or cast("Codec[Value]", RawOctets())
        guid = writer_guid if writer_guid is not None and writer_guid != NIL_GUID else new_guid()
        self.state = Producer(topic_name, guid, window_count=window_count, source_guid=source_guid)
        self._listener = on_application_acknowledgment
        self._heard: deque[ApplicationAcknowledgment] = deque()
        self._port = ProducerPort(self._session.domain.participant, topic_name, self.state.writer_guid)
        self._session.domain.add(self._port)
        self._settled: deque[Settled] = deque(maxlen=SETTLED_KEPT_COUNT)
        self._rejected_count = 0

    def __enter__(self) -> Self:
        return self

    @property
    def matched_queues(self) -> tuple[str, ...]:
        """The queues of the topic that are there now (section 2.13)."""
        self._session.domain.turn(0)
        self.turn()
        return self.state.matched_queues

    def wait_for_queue(self, timeout_s: float = 10.0) -> tuple[str, ...]:
        """Wait until a queue of the topic is matched.

        Raises:
            NoAnswer: none is there in time.
        """
        self._require(lambda: bool(self.state.matched_queues), timeout_s, f"a queue of topic {self.state.topic_name!r}")
        return self.state.matched_queues

    def write(
        self,
        value: Value,
        *,
        identity: SampleIdentity | None = None,
        related_identity: SampleIdentity = NIL_IDENTITY,
        related_source_guid: Guid = NIL_GUID,
        lifespan_ns: Nanoseconds = INFINITE_NS,
        timeout_s: float = FOREVER_S,
    ) -> SampleIdentity:
        """Write a sample; blocks while the window is full: that is the queue's back-pressure.

        It leaves at the latest with the next call that waits; `flush` sends it now.

        Args:
            value: the sample.
            identity: its identity, with this producer's `writer_guid`, a number from 1, and of no sample that is still
                unacknowledged; without it the next number behind all before. To write a sample again, give its identity
                again: a queue that has it, or had it lately, acknowledges it and drops it (section 5.2.2).
            related_identity: of a reply: the identity of the request (section 2.11.2).
            related_source_guid: of a reply: the requester's source GUID (section 2.11.3).
            lifespan_ns: how long it may stay in a queue; finite, it goes before the queue's (section 2.9).
            timeout_s: how long to wait for room in the window.

        Returns:
            The sample's identity, by which its acknowledgments name it.

        Raises:
            NoAnswer: the window stayed full; names the samples in it.
            UsageError: the sample is too large, or the identity cannot be its.
        """
        payload = self._codec.encode(value)
        _require_size(len(payload))
        if not self.state.has_room:
            self._require(lambda: self.state.has_room, timeout_s, f"room in the window of {self.unacknowledged_text()}")
        return self.state.write(
            payload,
            identity=identity,
            lifespan_ns=lifespan_ns,
            related_source_guid=related_source_guid,
            related_identity=related_identity,
        )

    def unacknowledged_text(self) -> str:
        """The samples that are not acknowledged, for people: how many, and their identities."""
        identities = self.state.unacknowledged()
        return f"{len(identities)} samples ({ranges_of(identities)})"

    def flush(self) -> None:
        """Send what was written, and take notice of what has come; does not wait."""
        self.turn()
        self._session.domain.turn(0)
        self.turn()

    def wait_for_acknowledgments(self, timeout_s: float = 10.0) -> int:
        """Wait until every sample is acknowledged; gives how many were rejected since the last call.

        A queue that is deleted (section 5.4.2) rejects what it has not answered; `take_settled` and the listener name
        each. For one that vanished, with its service, samples wait on: it may come back.

        Raises:
            NoAnswer: some queue did not answer in time; names the samples.
        """
        if not self._run_until(lambda: self.state.unacknowledged_count == 0, timeout_s):
            raise no_answer(f"the acknowledgment of {self.unacknowledged_text()}", timeout_s)
        rejected, self._rejected_count = self._rejected_count, 0
        return rejected

    def take_settled(self) -> list[Settled]:
        """The samples settled since the last call, in the order of their answers; the last `SETTLED_KEPT_COUNT`."""
        settled = list(self._settled)
        self._settled.clear()
        return settled

    def turn(self) -> None:
        """Move what has come into the state, and what is to go into the ports; does not wait."""
        for news in self._port.poll():
            if type(news) is WriteAcknowledgment:
                if self.state.receive(news) and self._listener is not None:
                    self._heard.append(ApplicationAcknowledgment(news.queue, news.identity, bool(news.response)))
            elif type(news) is QueueDeleted:
                refused = self.state.queue_deleted(news.queue)
                if self._listener is not None:
                    self._heard += [ApplicationAcknowledgment(news.queue, each, False, True) for each in refused]
            elif type(news) is QueueAppeared:
                self.state.queue_appeared(news.queue, news.acknowledges)
            elif type(news) is QueueVanished:
                self.state.queue_vanished(news.queue)
        writes = self.state.take_writes()
        if writes:
            self._port.send(writes)
            self._port.flush()
        settled = self.state.take_settled()
        if settled:
            self._settled += settled
            self._rejected_count += sum(not each.accepted for each in settled)
        while self._heard and self._listener is not None:
            # One that writes or waits comes back here: what it has not been called with yet stays, in order.
            self._listener(self._heard.popleft())


class QueueConsumer(Wrapper, Generic[Value]):
    """Takes samples out of a queue (section 8.2).

    Args:
        topic_name, subscriber: the queue `<topic_name>@<subscriber>`.
        codec: how payloads become values; without one they are octets.
        feedback: whether the queue allows consumer feedback (section 2.10.2) and this consumer wants to give it.
        source_guid: only samples whose related source GUID equals it (section 2.11.3).
        unacked_threshold: a bound of this consumer's own: it may be sent to while at most so many samples of its are
            unacknowledged; without one the queue's holds (section 2.10.1).
    """

    def __init__(
        self,
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: Codec[Value] | None = None,
        feedback: bool = False,
        consumer_guid: Guid | None = None,
        source_guid: Guid = NIL_GUID,
        unacked_threshold: int | None = None,
        settings: DomainSettings | None = None,
        session: ClientSession | None = None,
    ) -> None:
        super().__init__(domain_id, settings, session)
        self._codec = codec or cast("Codec[Value]", RawOctets())
        guid = consumer_guid or new_guid()
        self._port = ConsumerPort(
            self._session.domain.participant,
            topic_name,
            subscriber,
            guid,
            source_guid=source_guid,
            feedback=feedback,
            unacked_threshold=unacked_threshold,
        )
        self.state = Consumer(self._port.queue, guid, source_guid=source_guid)
        self._session.domain.add(self._port)
        self._is_matched = False

    def __enter__(self) -> Self:
        return self

    @property
    def is_matched(self) -> bool:
        """Whether the queue is there now (section 2.13)."""
        self._session.domain.turn(0)
        self.turn()
        return self._is_matched

    def has_queue(self) -> bool:
        """Whether the queue was there when this was last looked at."""
        return self._is_matched

    def has_feedback(self) -> bool:
        """Whether the queue reads this consumer's availability.

        Raises:
            UsageError: the consumer was opened without feedback.
        """
        self._port.require_feedback()
        return self._port.is_feedback_matched

    def wait_for_queue(self, timeout_s: float = 10.0) -> None:
        """Wait until the queue is matched.

        Raises:
            NoAnswer: it is not there in time.
        """
        self._require(self.has_queue, timeout_s, f"queue {self.state.queue!r}")

    def receive(self, max_samples: int = 1, timeout_s: float = 10.0) -> list[ReceivedSample[Value]]:
        """Wait for samples; gives all that are there, at most `max_samples`; an empty list: none came in time."""
        if not self.state.waiting_count:
            self._run_until(lambda: self.state.waiting_count > 0, timeout_s)
        return [
            ReceivedSample(self, each, self._codec.decode(each.payload or b"")) for each in self.state.take(max_samples)
        ]

    def __iter__(self) -> Iterator[ReceivedSample[Value]]:
        """Samples as they come, for ever. What the body acknowledged leaves before the next wait."""
        while True:
            yield from self.receive(max_samples=256, timeout_s=FOREVER_S)

    def acknowledge(self, sample: ReceivedSample[Value] | Delivery, accepted: bool = True) -> None:
        """Settle a sample (section 2.5); the answer leaves with the next call that waits, or with `flush`.

        Raises:
            UsageError: it was settled before, or is not this consumer's.
        """
        self.state.acknowledge(sample.identity, AckResponse.ACCEPTED if accepted else AckResponse.REJECTED)

    def acknowledge_all(self, accepted: bool = True) -> int:
        """Settle every sample received so far; gives their number."""
        return self.state.acknowledge_all(AckResponse.ACCEPTED if accepted else AckResponse.REJECTED)

    def set_availability(self, reception_enabled: bool, unacked_threshold: int = UNLIMITED_THRESHOLD) -> None:
        """Tell the queue whether to send, and how many samples may be unacknowledged (section 2.10.2).

        Raises:
            UsageError: the consumer was opened without feedback.
            NoAnswer: the queue does not read it.
        """
        availability = self.state.availability(reception_enabled, unacked_threshold)
        self._require(self.has_feedback, 10.0, "a queue that takes consumer feedback")
        self._port.tell(availability)
        self.flush()

    def flush(self) -> None:
        """Send the answers, and take notice of what has come; does not wait."""
        self.turn()
        self._session.domain.turn(0)
        self.turn()

    def close(self) -> None:
        """Send the answers given, then leave the queue: what is held goes to somebody else.

        Samples that were received and not acknowledged count as failed deliveries; those that nobody took out of this
        consumer do not.
        """
        if self._session.is_open:
            self.turn()
            if not self.state.touched_count:
                self._port.take_leave()
        super().close()

    def turn(self) -> None:
        """Move what has come into the state, and what is to go into the ports; does not wait."""
        for news in self._port.poll():
            if type(news) is Delivery:
                self.state.receive(news)
            else:
                self._is_matched = type(news) is QueueAppeared
        answers = self.state.take_answers()
        if answers:
            self._port.send(answers)
            self._port.flush()
