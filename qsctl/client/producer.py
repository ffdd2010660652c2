"""The blocking producer [QS 8.1], a context manager that belongs to one thread.

Samples are octets, or values when a codec is given. `aio.QueueProducer` is the same for tasks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Final, Generic, TypeAlias, TypedDict, Unpack, overload

import msgspec

from qsctl.client._retry import Retry
from qsctl.client.codec import Codec, Value, codec_of
from qsctl.client.session import FOREVER_S, ClientSession, Wrapper, new_guid, no_answer
from qsctl.core.client.producer import (
    WINDOW_COUNT,
    Outcomes,
    Producer,
    QueueAnswers,
    SampleTraits,
    WriteOutcome,
    ranges_of,
)
from qsctl.core.messages import SampleFlag
from qsctl.errors import Refused
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.transport.dds.clients.client_ports import ProducerPort, require_size
from qsctl.transport.dds.participant import DomainSettings
from qsctl.transport.dds.peers.matches import DeletedByCommand, QueueAppeared, QueueVanished

_REPLICATE: Final = int(SampleFlag.REPLICATE)
_PLAIN: Final = (INFINITE_NS, NIL_GUID, NIL_IDENTITY, False)
"""The arguments of `write` by which a sample has no traits."""

ACKNOWLEDGED_KEPT_COUNT: Final = 100_000
"""Acknowledged samples that a producer keeps for `pop_acknowledged`: where it is never called memory must not grow."""


class ApplicationAcknowledgment(msgspec.Struct, frozen=True, gc=False):
    """One queue's acknowledgment of one sample [QS 2.4], as passed to `on_application_acknowledgment`.

    `accepted` is whether its single byte is 1. `queue_deleted`: the queue was deleted before it acknowledged.
    """

    queue: str
    """`<topic>@<subscriber>`."""
    identity: SampleIdentity
    accepted: bool
    queue_deleted: bool = False


DEFAULT_RETRY: Final = Retry()

AcknowledgmentListener: TypeAlias = Callable[[ApplicationAcknowledgment], object]


class ProducerOptions(TypedDict, total=False):
    """The keyword arguments of `QueueProducer` besides its codec."""

    window_count: int
    source_guid: Guid
    writer_guid: Guid | None
    on_application_acknowledgment: AcknowledgmentListener | None
    settings: DomainSettings | None
    session: ClientSession | None


class QueueProducer(Wrapper, Generic[Value]):
    """Writes samples to the queues of a topic [QS 8.1].

    Args:
        topic_name: the queue's `<topic_name>`.
        domain_id: the domain of the queue's domain participant.
        codec: converts values to payloads; a type means JSON of that type; None: values are octets.
        window_count: largest number of unacknowledged samples; `write` waits when it is reached.
        source_guid: GUID of the requester that replies are addressed to [QS 2.11.1]; nil: the writer's.
        writer_guid: the writer of its samples' identities, for a program that gives identities or goes on with those of
            an earlier run; one that no other producer uses. Without it a random one.
        on_application_acknowledgment: called for each sample and queue as acknowledgments come, in the program's
            thread, inside the call that processed them [QS 2.4]. It may write. Its exceptions leave that call.
        settings: how to take part in the domain; the loopback by default.
        session: a session to use together with other wrappers; `domain_id` and `settings` are then unused.
    """

    @overload
    def __init__(
        self: QueueProducer[bytes],
        topic_name: str,
        domain_id: int = 0,
        *,
        codec: None = None,
        **options: Unpack[ProducerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        topic_name: str,
        domain_id: int = 0,
        *,
        codec: Codec[Value] | type[Value],
        **options: Unpack[ProducerOptions],
    ) -> None: ...

    def __init__(
        self,
        topic_name: str,
        domain_id: int = 0,
        *,
        codec: Codec[Value] | type[Value] | None = None,
        window_count: int = WINDOW_COUNT,
        source_guid: Guid = NIL_GUID,
        writer_guid: Guid | None = None,
        on_application_acknowledgment: AcknowledgmentListener | None = None,
        settings: DomainSettings | None = None,
        session: ClientSession | None = None,
    ) -> None:
        super().__init__(domain_id, settings, session)
        with self._making():
            self._codec = codec_of(codec)
            guid = writer_guid if writer_guid is not None and writer_guid != NIL_GUID else new_guid()
            self.state = Producer(topic_name, guid, window_count=window_count, source_guid=source_guid)
            self._listener = on_application_acknowledgment
            self._unreported: deque[ApplicationAcknowledgment] = deque()
            self._port = ProducerPort(self._session.domain.participant, topic_name, self.state.writer_guid)
            self._session.domain.add(self._port)
            self._acknowledged: deque[Outcomes] = deque()
            self._acknowledged_count = 0
            self._rejected_count = 0
            self._awaiting: list[AwaitedSamples[Value]] = []

    @property
    def matched_queues(self) -> tuple[str, ...]:
        """The queues of the topic that are matched now [QS 2.13]."""
        if not self._session.is_usable:
            return ()
        self._session.domain.turn(0)
        self.turn()
        return self.state.matched_queues

    def has_queue(self) -> bool:
        """Return whether a queue of the topic was matched at the last turn."""
        return bool(self.state.matched_queues)

    def has_room(self) -> bool:
        """Return whether the window has room for another unacknowledged sample."""
        return self.state.has_room

    def is_acknowledged(self) -> bool:
        """Return whether every sample is acknowledged."""
        return self.state.unacknowledged_count == 0

    def wait_for_queue(self, timeout_s: float = 10.0) -> tuple[str, ...]:
        """Wait until a queue of the topic is matched.

        Raises:
            NoAnswer: no queue is matched in time.
        """
        self._require(self.has_queue, timeout_s, f"a queue of topic {self.state.topic_name!r}")
        return self.state.matched_queues

    def write(
        self,
        value: Value,
        *,
        identity: SampleIdentity | None = None,
        related_identity: SampleIdentity = NIL_IDENTITY,
        related_source_guid: Guid = NIL_GUID,
        lifespan_ns: Nanoseconds = INFINITE_NS,
        replicate: bool = False,
        timeout_s: float = FOREVER_S,
    ) -> SampleIdentity:
        """Write a sample; wait while the window is full: that is the queue's back-pressure.

        The sample is sent at the latest by the next call that waits; `flush` sends it at once.

        Args:
            value: the sample.
            identity: its identity, with this producer's `writer_guid`, a number from 1, and of no sample that is still
                unacknowledged; without it the next number behind all before. To write a sample again, give its identity
                again: a queue that has it, or had it lately, acknowledges it and drops it [QS 5.2.2].
            related_identity: of a reply: the identity of the request [QS 2.11.2].
            related_source_guid: of a reply: the requester's source GUID [QS 2.11.3].
            lifespan_ns: longest stay in a queue; a finite one overrides the queue's [QS 2.9].
            replicate: whether a service that gets the sample passes it on to the other replicas of a replicated queue
                (DDS_REPLICATE_SAMPLE, [QS 7.1.1.1]), for a producer that does not reach all of them.
            timeout_s: longest wait for room in the window.

        Returns:
            The sample's identity, by which its acknowledgments name it.

        Raises:
            NoAnswer: the window stayed full; names the samples in it.
            UsageError: the sample is too large, or the identity cannot be its.
        """
        payload = self._codec.encode(value)
        require_size(len(payload))
        state = self.state
        # What is in the window is named only where it is to be read: a thousand identities cost more than the wait.
        if not state.has_room and not self._run_until(self.has_room, timeout_s):
            raise no_answer(f"room in the window of {self.unacknowledged_text()}", timeout_s)
        if (lifespan_ns, related_source_guid, related_identity, replicate) == _PLAIN:
            return state.write(payload, identity)
        flags = _REPLICATE if replicate else 0
        return state.write(payload, identity, SampleTraits(lifespan_ns, related_source_guid, related_identity, flags))

    def write_many(self, values: Iterable[Value], *, timeout_s: float = 10.0) -> list[Value]:
        """Write all values of an iterable, and wait for their acknowledgments; return the rejected values.

        The list has the values that a full or deleted queue rejected, in the order of writing: write them again later,
        as new samples. The acknowledgments are not reported by `wait_for_acknowledgments` and `pop_acknowledged`. When
        this raises, samples before may be in the queue.

        Args:
            values: the samples; an iterator is read as the window has room.
            timeout_s: longest wait for room in the window, and for the last acknowledgments.

        Raises:
            NoAnswer: the window stayed full, or a queue did not acknowledge in time; names the samples.
            UsageError: a sample is too large.
        """
        with self.awaiting() as many:
            for value in values:
                many.write(value, timeout_s=timeout_s)
            if not self._run_until(many.are_acknowledged, timeout_s):
                raise no_answer(f"the acknowledgment of {self.unacknowledged_text()}", timeout_s)
            return many.rejected()

    @contextmanager
    def awaiting(self) -> Iterator[AwaitedSamples[Value]]:
        """Report the outcomes of the samples that are written by what this yields there only, within the block."""
        awaited = AwaitedSamples(self)
        self._awaiting.append(awaited)
        try:
            yield awaited
        finally:
            self._awaiting.remove(awaited)

    def write_until_accepted(
        self,
        value: Value,
        *,
        lifespan_ns: Nanoseconds = INFINITE_NS,
        timeout_s: float = FOREVER_S,
        retry: Retry = DEFAULT_RETRY,
    ) -> SampleIdentity:
        """Write a sample and wait for its acknowledgment; write it again if a full queue rejects it.

        Every attempt has the same identity: a queue that has accepted it drops the next. `wait_for_acknowledgments`
        and `pop_acknowledged` do not report it.

        Args:
            value: the sample.
            lifespan_ns: longest stay in a queue; a finite one overrides the queue's [QS 2.9].
            timeout_s: longest wait for room in the window, and for the acknowledgment of one attempt.
            retry: attempts, and pauses between them.

        Returns:
            The sample's identity.

        Raises:
            NoAnswer: the window stayed full, or an attempt was not acknowledged.
            Refused: a queue rejected the last attempt.
            UsageError: the sample is too large.
        """
        pauses = retry.pauses()
        identity: SampleIdentity | None = None
        while True:
            with self.awaiting() as attempt:
                identity = attempt.write(value, identity, lifespan_ns, timeout_s)
                if not self._run_until(attempt.are_acknowledged, timeout_s):
                    raise no_answer(f"the acknowledgment of sample {identity}", timeout_s)
            if not attempt.rejected():
                return identity
            self._run_until(lambda: self._is_stopping, self.next_pause(pauses, identity, retry))

    def next_pause(self, pauses: Iterator[float], identity: SampleIdentity, retry: Retry) -> float:
        """Return the pause before the next attempt.

        Raises:
            Refused: the attempts are exhausted.
        """
        pause_s = None if self._is_stopping else next(pauses, None)
        if pause_s is None:
            raise Refused(
                f"sample {identity} was rejected by a queue of topic {self.state.topic_name!r}, after at most "
                f"{retry.attempts} attempts",
                remedy="The queue may be full: `qsctl get status`. Give more attempts, or longer pauses.",
            )
        return pause_s

    def unacknowledged_text(self) -> str:
        """Return the number and the identities of the unacknowledged samples, for messages."""
        identities = self.state.unacknowledged()
        return f"{len(identities)} samples ({ranges_of(identities)})"

    def flush(self) -> None:
        """Send the written samples, and process received messages; do not wait.

        Raises:
            Refused: the producer was closed.
        """
        self._session.require_usable()
        self.turn()
        self._session.domain.turn(0)
        self.turn()

    def wait_for_acknowledgments(self, timeout_s: float = 10.0) -> int:
        """Wait until every sample is acknowledged; return how many were rejected since the last call.

        A queue that is deleted [QS 5.4.2] rejects its unacknowledged samples; `pop_acknowledged` and the listener
        report each. Samples for a queue that vanished with its service stay unacknowledged, as it may return.

        Raises:
            NoAnswer: some queue did not acknowledge in time; names the samples.
        """
        if not self._run_until(self.is_acknowledged, timeout_s):
            raise no_answer(f"the acknowledgment of {self.unacknowledged_text()}", timeout_s)
        rejected, self._rejected_count = self._rejected_count, 0
        return rejected

    def pop_acknowledged(self) -> list[WriteOutcome]:
        """Return the samples acknowledged since the last call, in that order; at most the last
        `ACKNOWLEDGED_KEPT_COUNT`.
        """
        guid = self.state.writer_guid
        acknowledged = [
            WriteOutcome(SampleIdentity(guid, number), each.accepted)
            for each in self._acknowledged
            for number in each.numbers
        ]
        self._acknowledged.clear()
        self._acknowledged_count = 0
        return acknowledged[-ACKNOWLEDGED_KEPT_COUNT:]

    def replace_listener(self, listener: AcknowledgmentListener) -> AcknowledgmentListener | None:
        """Replace the listener, if one was given; return the former one."""
        former = self._listener
        if former is not None:
            self._listener = listener
        return former

    def turn(self) -> None:
        """Process received messages and put messages to be sent into the DDS ports; do not wait."""
        self._send()  # first: a sample is late by what is done before, an acknowledgment is not
        for change in self._port.poll():
            if type(change) is QueueAnswers:
                answered = self.state.receive(change)
                if self._listener is not None:
                    self._unreported += [
                        ApplicationAcknowledgment(
                            change.queue, SampleIdentity(self.state.writer_guid, number), change.accepted
                        )
                        for number in answered
                    ]
            elif type(change) is DeletedByCommand:
                refused = self.state.queue_deleted(change.queue)
                if self._listener is not None:
                    self._unreported += [ApplicationAcknowledgment(change.queue, each, False, True) for each in refused]
            elif type(change) is QueueAppeared:
                self.state.queue_appeared(change.queue, change.acknowledges)
            elif type(change) is QueueVanished:
                self.state.queue_vanished(change.queue)
        self._send()
        for outcomes in self.state.pop_outcomes():
            self._report(outcomes)
        while self._unreported and self._listener is not None:
            # One that writes or waits comes back here: what it has not been called with yet stays, in order.
            self._listener(self._unreported.popleft())

    def _report(self, outcomes: Outcomes) -> None:
        for each in self._awaiting:
            outcomes = each.receive(outcomes)
        if not outcomes.numbers:
            return
        count = len(outcomes.numbers)
        self._rejected_count += 0 if outcomes.accepted else count
        self._acknowledged.append(outcomes)
        self._acknowledged_count += count
        while self._acknowledged_count - len(self._acknowledged[0].numbers) >= ACKNOWLEDGED_KEPT_COUNT:
            self._acknowledged_count -= len(self._acknowledged.popleft().numbers)

    def _send(self) -> None:
        runs = self.state.pop_runs()
        if runs:
            self._port.send_runs(runs)
            self._port.flush()


class AwaitedSamples(Generic[Value]):
    """Samples whose outcomes the call that writes them awaits; the values of the rejected ones."""

    def __init__(self, producer: QueueProducer[Value]) -> None:
        self._producer = producer
        self._values: dict[int, Value] = {}
        self._rejected: dict[int, Value] = {}

    def write(
        self,
        value: Value,
        identity: SampleIdentity | None = None,
        lifespan_ns: Nanoseconds = INFINITE_NS,
        timeout_s: float = 0.0,
    ) -> SampleIdentity:
        """Write a sample as the producer does, and await its outcome."""
        identity = self._producer.write(value, identity=identity, lifespan_ns=lifespan_ns, timeout_s=timeout_s)
        self._values[identity.sequence_number] = value
        return identity

    def receive(self, outcomes: Outcomes) -> Outcomes:
        """Process the outcomes of these samples; return those of others."""
        values, (numbers, accepted) = self._values, outcomes
        others = [number for number in numbers if number not in values]
        if len(others) == len(numbers):
            return outcomes
        for number in numbers:
            if number in values:
                value = values.pop(number)
                if not accepted:
                    self._rejected[number] = value
        return Outcomes(others, accepted)

    def are_acknowledged(self) -> bool:
        """Return whether every sample is acknowledged."""
        return not self._values

    def rejected(self) -> list[Value]:
        """Return the values of the rejected samples, in the order of their numbers, which is that of writing."""
        return [value for _, value in sorted(self._rejected.items(), key=itemgetter(0))]
