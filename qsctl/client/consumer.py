"""The blocking consumer [QS 8.2], a context manager that belongs to one thread.

Samples are octets, or values when a codec is given. `aio.QueueConsumer` is the same for tasks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Final, Generic, TypedDict, Unpack, overload

import msgspec

from qsctl.client._attempts import process_samples
from qsctl.client._background import working
from qsctl.client._deprecation import warn_of_former
from qsctl.client._retry import ONCE, Retry
from qsctl.client.codec import Codec, RawOctets, Value, codec_of
from qsctl.client.session import FOREVER_S, ClientSession, Wrapper, new_guid, no_answer
from qsctl.core.client.consumer import UNLIMITED_THRESHOLD, Arrivals, QueueEnd, QueueReader, SampleAnswers
from qsctl.core.messages import AckResponse, Delivery, SampleFlag
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.transport.dds.clients.client_ports import ConsumerPort
from qsctl.transport.dds.participant import DomainSettings
from qsctl.transport.dds.peers.matches import QueueAppeared
from qsctl.transport.dds.wire import frames

_LOG: Final = logging.getLogger("qsctl.client")

# Reading a member of an enumeration by its name takes longer than the step it is read in.
_ACCEPTED: Final = AckResponse.ACCEPTED
_REJECTED: Final = AckResponse.REJECTED

UNANSWERED_S: Final = 0.3
"""Silence after which a service that does not answer whether there is more counts as one of an earlier version."""

ASK_AGAIN_S: Final = 1.0
"""A replica that has just become the master does not know what its predecessor was asked."""

FEEDBACK_TIMEOUT_S: Final = 10.0
"""The longest wait for a queue that reads consumer feedback."""


class ReceivedSample(msgspec.Struct, Generic[Value], frozen=True, eq=False, gc=False):
    """A sample that a queue delivered to this consumer, to be acknowledged once."""

    _consumer: QueueConsumer[Value]
    _octets: frames.SampleOctets
    value: Value

    @property
    def delivery(self) -> Delivery:
        """The sample with all its members, undecoded."""
        state = self._consumer.state
        return frames.delivery_of(self._octets, state.queue, state.consumer_guid)

    @property
    def identity(self) -> SampleIdentity:
        """The GUID of the sample's writer, and its number among the writer's samples."""
        return frames.identity_of(self._octets[1])

    @property
    def key(self) -> bytes:
        """The identity as octets, by which the consumer's state finds the sample."""
        return self._octets[1]

    @property
    def redelivered(self) -> bool:
        """Return whether a consumer may have processed the sample before [QS 2.9]."""
        return bool(frames.flags_of_octets(self._octets) & SampleFlag.REDELIVERED)

    @property
    def is_last(self) -> bool:
        """Return whether the queue had no further sample for this consumer [QS Table 2.1], if the queue marks that."""
        return bool(frames.flags_of_octets(self._octets) & SampleFlag.LAST_SHARED_READER_QUEUE)

    def acknowledge(self, accepted: bool | None = None) -> None:
        """Acknowledge the sample, so that the queue removes it. `accepted` is deprecated: use `reject`."""
        if accepted is not None:
            warn_of_former("acknowledge(accepted)", "acknowledge() or reject()")
        self._consumer.answer((self._octets[1],), _REJECTED if accepted is False else _ACCEPTED)

    def reject(self) -> None:
        """Reject the sample: the queue redelivers it, if possible to another consumer, until its retries are
        exhausted.
        """
        self._consumer.answer((self._octets[1],), _REJECTED)


class ConsumerOptions(TypedDict, total=False):
    """The keyword arguments of `QueueConsumer` besides its codec."""

    feedback: bool
    consumer_guid: Guid | None
    source_guid: Guid
    unacked_threshold: int | None
    settings: DomainSettings | None
    session: ClientSession | None


class QueueConsumer(Wrapper, Generic[Value]):
    """Consumes samples from a queue [QS 8.2].

    Args:
        topic_name, subscriber: the queue `<topic_name>@<subscriber>`.
        codec: converts payloads to values; a type means JSON of that type; None: values are octets.
        feedback: whether this consumer announces its availability, to a queue that allows it [QS 2.10.2].
        source_guid: only samples whose related source GUID equals it are received [QS 2.11.3].
        unacked_threshold: number of unacknowledged samples up to which the queue sends more to this consumer; None or
            -1: the queue's own threshold applies [QS 2.10.1].
        consumer_guid: the consumer's GUID, that of no other live consumer of the queue; a random one unless given.
        settings: how to take part in the domain; the loopback by default.
        session: a session to use together with other wrappers; `domain_id` and `settings` are then unused.

    A sample whose payload the codec cannot decode is rejected, logged and counted in `undecodable_count`; its queue
    delivers it elsewhere, or dead-letters it.
    """

    @overload
    def __init__(
        self: QueueConsumer[bytes],
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: Codec[Value] | type[Value],
        **options: Unpack[ConsumerOptions],
    ) -> None: ...

    def __init__(
        self,
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: Codec[Value] | type[Value] | None = None,
        feedback: bool = False,
        consumer_guid: Guid | None = None,
        source_guid: Guid = NIL_GUID,
        unacked_threshold: int | None = None,
        settings: DomainSettings | None = None,
        session: ClientSession | None = None,
    ) -> None:
        super().__init__(domain_id, settings, session)
        with self._making():
            self._codec = codec_of(codec)
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
            self.state: QueueReader[bytes, frames.SampleOctets] = QueueReader(
                self._port.queue, guid, frames.identity_of
            )
            self._session.domain.add(self._port)
            self._is_matched = False
            self._in_body: dict[bytes, None] = {}
            """Samples of a batch, or of `process`, that the program works on and has not acknowledged itself."""
            self._asked_at_s: float | None = None
            self._began_at_s = 0.0
            self._reported_epoch = 0
            self.undecodable_count = 0
            """Samples that were rejected because the codec could not decode them."""

    @property
    def is_matched(self) -> bool:
        """Return whether the queue is matched now [QS 2.13]; False after `close`."""
        if not self._session.is_usable:
            return False
        self._session.domain.turn(0)
        self.turn()
        return self._is_matched

    @property
    def request_queue(self) -> str:
        """Return `<topic>@<subscriber>` of the consumer's queue."""
        return self.state.queue

    def has_queue(self) -> bool:
        """Return whether the queue was matched at the last turn."""
        return self._is_matched

    def has_samples(self) -> bool:
        """Return whether samples have arrived that `receive` has not returned."""
        return self.state.waiting_count > 0

    def has_feedback(self) -> bool:
        """Return whether the queue reads this consumer's availability.

        Raises:
            UsageError: the consumer was opened without feedback.
        """
        self._port.require_feedback()
        return self._port.is_feedback_matched

    def wait_for_queue(self, timeout_s: float = 10.0) -> None:
        """Wait until the queue is matched.

        Raises:
            NoAnswer: the queue is not matched in time.
        """
        self._require(self.has_queue, timeout_s, f"queue {self.state.queue!r}")

    def receive(self, max_samples: int = 1, timeout_s: float = 10.0) -> list[ReceivedSample[Value]]:
        """Wait for samples; return all available ones, at most `max_samples`.

        The list is empty if none arrived in time, or `stop` was called.
        """
        if self.state.waiting_count and (received := self._decoded(self.state.deliver(max_samples))):
            return received
        deadline = time.monotonic() + timeout_s
        while True:
            if not self.has_samples():
                self._run_until(self.has_samples_or_stops, deadline - time.monotonic())
            received = self._decoded(self.state.deliver(max_samples))
            # None may be left of those that came: the codec could not decode them.
            is_over = self._is_stopping or not self._session.may_wait or time.monotonic() >= deadline
            if received or is_over:
                return received

    def has_samples_or_stops(self) -> bool:
        """Return whether samples have arrived, or `stop` was called."""
        return self.state.waiting_count > 0 or self._is_stopping

    def deliveries(self) -> list[Delivery]:
        """Return the samples that arrived, undecoded."""
        state = self.state
        arrived = state.deliver(state.waiting_count)
        return [frames.delivery_of(each, state.queue, state.consumer_guid) for each in arrived]

    def _decoded(self, arrived: list[frames.SampleOctets]) -> list[ReceivedSample[Value]]:
        """Return the samples with their values; reject those that the codec cannot decode."""
        codec: object = self._codec
        if type(codec) is RawOctets:
            make: Any = ReceivedSample  # no call of a codec for each: the value is the payload
            return [make(self, each, each[3]) for each in arrived]
        samples: list[ReceivedSample[Value]] = []
        for each in arrived:
            try:
                value = self._codec.decode(each[3])
            except Exception as error:  # a codec of the program's own may raise anything
                self.undecodable_count += 1
                self.state.acknowledge((each[1],), AckResponse.REJECTED)
                identity = frames.identity_of(each[1])
                _LOG.warning(
                    "queue %s: sample %s cannot be decoded, and is rejected: %s", self.state.queue, identity, error
                )
            else:
                samples.append(ReceivedSample(self, each, value))
        return samples

    def receive_available(self, max_samples: int = 1, timeout_s: float = 10.0) -> list[ReceivedSample[Value]]:
        """Return the samples that the queue has for this consumer now, at most `max_samples`; empty if it has none.

        The query follows all acknowledgments, and its answer follows all samples sent. Samples beyond this consumer's
        unacknowledged threshold are not included.

        Raises:
            NoAnswer: a service did not answer in time.
        """
        if not self.has_samples() and not self._run_until(self.has_samples_or_end, timeout_s):
            self._asked_at_s = None
            raise no_answer(f"the answer of a service whether queue {self.state.queue!r} has more", timeout_s)
        received = self.receive(max_samples, 0.0) if self.has_samples() else []
        self._asked_at_s = None
        return received

    def has_samples_or_end(self) -> bool:
        """Return whether samples or the end of the queue have arrived; if not, query each service for the end."""
        if self.has_samples():
            return True
        now, asked_at_s, expected = time.monotonic(), self._asked_at_s, self._port.answering_count
        if asked_at_s is None:
            self._asked_at_s = self._began_at_s = now
        elif expected is None:
            return now > self._began_at_s + UNANSWERED_S
        elif 0 < expected <= self.state.end_count:
            return True
        elif now < asked_at_s + ASK_AGAIN_S:
            return False
        if expected is not None:
            self._asked_at_s = now
            question = SampleAnswers(AckResponse.ACCEPTED, [frames.key_of(self.state.ask())])
            self._port.send([*self.state.pop_answers(), question])
            self._port.flush()
        return False

    def __iter__(self) -> Iterator[ReceivedSample[Value]]:
        """Yield samples as they arrive, until `stop`. Acknowledgments made by the loop body are sent before the next
        wait.

        Samples that arrived and were not yielded return to the queue, without counting an attempt, when the consumer
        closes.
        """
        state = self.state
        while not self._is_stopping:
            if not state.waiting_count:
                self._run_until(self.has_samples_or_stops, FOREVER_S)
            yield from self._decoded(state.deliver(1))

    def batches(self, size: int = 100, *, max_samples: int | None = None) -> Iterator[list[ReceivedSample[Value]]]:
        """Yield available samples in lists of 1 to `size`, until `stop`, without waiting for a list to be full.

        A batch is acknowledged when the loop requests the next one, or ends by `stop` or `max_samples`, except for
        samples that the body acknowledged or rejected itself. Leaving the loop by `break` or an exception leaves the
        batch unacknowledged: the program may acknowledge or reject it; otherwise it is rejected when an `Exception`
        leaves the consumer's `with` block, and else returns to the queue as redelivered when the consumer closes. It
        also returns if the program ends without closing: each sample is delivered at least once.

        A queue sends at most `unacked_threshold` unacknowledged samples: a threshold below `size` limits the batches.

        Args:
            size: largest number of samples in a batch.
            max_samples: number of samples after which to end; None: no bound.

        Raises:
            UsageError: `size` is less than 1.
        """
        check_size(size)
        finished = 0
        while not self._is_stopping and (max_samples is None or finished < max_samples):
            if batch := self.receive_batch(bounded(size, max_samples, finished), FOREVER_S):
                finished += len(batch)
                yield batch
                self.finish_batch(batch)

    def receive_batch(self, size: int, timeout_s: float) -> list[ReceivedSample[Value]]:
        """Receive samples that `finish_batch` acknowledges."""
        batch = self.receive(size, timeout_s)
        self._in_body.update(dict.fromkeys([each.key for each in batch]))
        return batch

    def finish_batch(self, batch: list[ReceivedSample[Value]]) -> None:
        """Accept the samples of a batch that the loop body has not acknowledged, and send the acknowledgments."""
        self._acknowledge_once([each.key for each in batch], AckResponse.ACCEPTED)
        self.flush()

    def abandon(self, response: AckResponse) -> None:
        """Acknowledge, with this response, the samples of batches whose loops were left."""
        self._acknowledge_once(list(self._in_body), response)

    def process(
        self,
        handler: Callable[[ReceivedSample[Value]], object],
        *,
        retry: Retry = ONCE,
        max_samples: int | None = None,
    ) -> int:
        """Call a handler with each arriving sample, until `stop`; return the number of samples processed.

        A sample is acknowledged when the handler returns, unless it did that itself. When the handler raises an
        `Exception` it is called again after a pause, and the sample is rejected after the last attempt: the queue
        delivers it elsewhere, or dead-letters it. Whatever else it raises, such as `KeyboardInterrupt`, returns the
        sample to the queue as redelivered, and leaves this call; so does `stop` during a pause, without an error.

        Args:
            handler: processes one sample.
            retry: attempts and pauses for one sample.
            max_samples: number of samples after which to end; None: no bound.
        """
        return process_samples(self, handler, retry, max_samples)

    def processing(
        self, handler: Callable[[ReceivedSample[Value]], object], *, retry: Retry = ONCE
    ) -> AbstractContextManager[None]:
        """Call a handler as `process` does, in a separate thread during a `with` block.

        The consumer belongs to that thread until the block ends, and is stopped then: the sample in progress is
        finished. A failure of the thread is raised at the end of the block.

        Args:
            handler: processes one sample; called in the thread.
            retry: attempts and pauses for one sample.
        """
        return working(self, lambda: self.process(handler, retry=retry))

    def begin(self, sample: ReceivedSample[Value]) -> None:
        """Register that a handler is processing a sample, for `acknowledge_once`."""
        self._in_body[sample.key] = None

    def acknowledge_once(self, sample: ReceivedSample[Value], response: AckResponse) -> None:
        """Acknowledge a sample, unless its handler did.

        A sample that the handler rejected may have been received again: that delivery is not acknowledged here.
        """
        self._acknowledge_once((sample.key,), response)

    def _acknowledge_once(self, keys: Iterable[bytes], response: AckResponse) -> None:
        ours = [key for key in keys if key in self._in_body]
        for key in ours:
            del self._in_body[key]
        self.state.acknowledge([key for key in ours if self.state.holds(key)], response)

    def answer(self, keys: Iterable[bytes], response: AckResponse) -> None:
        """Acknowledge samples, by their keys, with the program's response.

        Raises:
            UsageError: a sample was acknowledged before, or was received by another consumer.
        """
        self.state.acknowledge(keys, response)
        if self._in_body:
            for key in keys:
                self._in_body.pop(key, None)

    def acknowledge(
        self,
        samples: ReceivedSample[Value] | Delivery | Iterable[ReceivedSample[Value] | Delivery],
        accepted: bool | None = None,
    ) -> None:
        """Acknowledge a sample, or each of several [QS 2.5]: they leave the queue.

        The acknowledgments are sent with the next call that waits, or with `flush`. `accepted` is deprecated: `reject`
        is the negative acknowledgment.

        Raises:
            UsageError: one was acknowledged before, or is not this consumer's.
        """
        if accepted is not None:
            warn_of_former("acknowledge(…, accepted)", "acknowledge(…) or reject(…)")
        self._answer(samples, _response(accepted))

    def reject(self, samples: ReceivedSample[Value] | Delivery | Iterable[ReceivedSample[Value] | Delivery]) -> None:
        """Reject a sample, or each of several [QS 2.5]: they are delivered again, or dead-lettered; sent as
        acknowledgments are.

        Raises:
            UsageError: one was acknowledged before, or is not this consumer's.
        """
        self._answer(samples, AckResponse.REJECTED)

    def _answer(
        self,
        samples: ReceivedSample[Value] | Delivery | Iterable[ReceivedSample[Value] | Delivery],
        response: AckResponse,
    ) -> None:
        given = (samples,) if isinstance(samples, ReceivedSample | Delivery) else samples
        keys = [frames.key_of(each.identity) if isinstance(each, Delivery) else each.key for each in given]
        self.answer(keys, response)

    def acknowledge_all(self, accepted: bool | None = None) -> int:
        """Acknowledge every sample received so far; return their number. `accepted` is deprecated: see `reject_all`."""
        if accepted is not None:
            warn_of_former("acknowledge_all(accepted)", "acknowledge_all() or reject_all()")
        self._in_body.clear()
        return self.state.acknowledge_all(_response(accepted))

    def reject_all(self) -> int:
        """Reject every sample received so far; return their number."""
        self._in_body.clear()
        return self.state.acknowledge_all(AckResponse.REJECTED)

    def set_availability(self, reception_enabled: bool, unacked_threshold: int = UNLIMITED_THRESHOLD) -> None:
        """Announce whether the queue may send, and how many samples may be unacknowledged [QS 2.10.2].

        Raises:
            UsageError: the consumer was opened without feedback.
            NoAnswer: the queue does not read it.
        """
        availability = self.state.availability(reception_enabled, unacked_threshold)
        self._require(self.has_feedback, FEEDBACK_TIMEOUT_S, "a queue that reads consumer feedback")
        self._port.report(availability)
        self.flush()

    def flush(self) -> None:
        """Send the acknowledgments, and process received messages; do not wait.

        Raises:
            Refused: the consumer was closed.
        """
        self._session.require_usable()
        self.turn()
        self._session.domain.turn(0)
        self.turn()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave(kind)
        super().__exit__(kind, error, trace)

    def leave(self, kind: type[BaseException] | None) -> None:
        """Reject the samples of a loop that an exception of the program left; interruptions do not count."""
        if kind is not None and issubclass(kind, Exception) and self._session.is_usable:
            self.abandon(AckResponse.REJECTED)

    def close(self) -> None:
        """Send the acknowledgments, then leave the queue, which redelivers unacknowledged samples to other consumers.

        Unacknowledged samples that `receive` returned count as failed deliveries; samples that it has not returned do
        not. A batch whose loop was left returns as redelivered, without counting an attempt.
        """
        if self._session.is_usable:
            self.abandon(AckResponse.RETURNED)
            self.turn()
            if not self.state.touched_count:
                self._port.detach()
        super().close()

    def turn(self) -> None:
        """Process received messages and put messages to be sent into the DDS ports; do not wait."""
        state = self.state
        for change in self._port.poll():
            if type(change) is Arrivals:
                state.receive(change)
            elif type(change) is QueueEnd:
                state.receive_end(change)
            else:
                self._is_matched = type(change) is QueueAppeared
                state.forget_epoch()
        if state.epoch not in (0, self._reported_epoch):
            self._reported_epoch = state.epoch
            _LOG.info("queue %s: a replica delivers as master of epoch %d", state.queue, state.epoch)
        answers = state.pop_answers()
        if answers:
            self._port.send(answers)
            self._port.flush()


def check_size(size: int) -> None:
    """Raise an error for a batch size below 1.

    Raises:
        UsageError: the size is less than 1.
    """
    if size < 1:
        raise UsageError(f"batches of {size} samples hold nothing", remedy="Give 1 or more.")


def bounded(size: int, max_samples: int | None, finished: int) -> int:
    """Return the size of the next batch, limited by `max_samples` less the number finished."""
    return size if max_samples is None else min(size, max_samples - finished)


def _response(accepted: bool | None) -> AckResponse:
    return _REJECTED if accepted is False else _ACCEPTED
