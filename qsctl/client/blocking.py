"""The wrappers of chapter 8 for programs that block: producer and consumer; `blocking_requests` has the other two.

Each is a context manager and belongs to one thread. Payloads are octets, or values when a codec is given. The awaitable
ones, in `queue_producer` and its siblings, are these with their waits in a worker thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Generic, Self, cast

import msgspec

from qsctl.client.session import FOREVER_S, ClientSession, Codec, RawOctets, Value, Wrapper, new_guid
from qsctl.core.client.consumer import UNLIMITED_THRESHOLD, Consumer
from qsctl.core.client.producer import WINDOW_COUNT, Producer, Settled
from qsctl.core.messages import AckResponse, Delivery, SampleFlag, WriteAcknowledgment
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.transport.dds.client_ports import ConsumerPort, ProducerPort
from qsctl.transport.dds.client_ports import require_size as _require_size
from qsctl.transport.dds.matches import QueueAppeared, QueueVanished
from qsctl.transport.dds.participant import DomainSettings

SETTLED_KEPT_COUNT: Final = 100_000
"""Settled samples that a producer keeps for `take_settled`: one that is never asked must not grow."""


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
    """

    def __init__(
        self,
        topic_name: str,
        domain_id: int = 0,
        *,
        codec: Codec[Value] | None = None,
        window_count: int = WINDOW_COUNT,
        source_guid: Guid = NIL_GUID,
        settings: DomainSettings | None = None,
        session: ClientSession | None = None,
    ) -> None:
        super().__init__(domain_id, settings, session)
        self._codec = codec or cast("Codec[Value]", RawOctets())
        self.state = Producer(topic_name, new_guid(), window_count=window_count, source_guid=source_guid)
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
        self, value: Value, *, lifespan_ns: Nanoseconds = INFINITE_NS, timeout_s: float = FOREVER_S
    ) -> SampleIdentity:
        """Write a sample; blocks while the window is full: that is the queue's back-pressure.

        It leaves at the latest with the next call that waits; `flush` sends it now.

        Raises:
            NoAnswer: the window stayed full.
            UsageError: the sample is too large.
        """
        payload = self._codec.encode(value)
        _require_size(len(payload))
        if not self.state.has_room:
            self._require(lambda: self.state.has_room, timeout_s, "room in the window")
        return self.state.write(payload, lifespan_ns=lifespan_ns)

    def flush(self) -> None:
        """Send what was written, and take notice of what has come; does not wait."""
        self.turn()
        self._session.domain.turn(0)
        self.turn()

    def wait_for_acknowledgments(self, timeout_s: float = 10.0) -> int:
        """Wait until every sample is settled; gives how many were rejected since the last call.

        Raises:
            NoAnswer: some queue did not answer in time.
        """
        self._require(
            lambda: self.state.unacknowledged_count == 0,
            timeout_s,
            f"the acknowledgment of {self.state.unacknowledged_count} samples",
        )
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
                self.state.receive(news)
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
