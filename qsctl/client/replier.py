"""The blocking replier [QS 2.11, 8.4]; `aio.QueueReplier` is the same for tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Generic, TypedDict, Unpack, overload

from qsctl.client._attempts import process_samples
from qsctl.client._background import working
from qsctl.client._deprecation import warn_of_former
from qsctl.client._retry import ONCE, Retry
from qsctl.client.codec import Codec, codec_of
from qsctl.client.consumer import QueueConsumer, ReceivedSample
from qsctl.client.producer import QueueProducer
from qsctl.client.requester import ROOM_TIMEOUT_S, Reply, Request
from qsctl.client.session import FOREVER_S, ClientSession, Wrapper
from qsctl.core.client.replier import Replier
from qsctl.core.messages import AckResponse
from qsctl.identity import SampleIdentity
from qsctl.transport.dds.clients.client_ports import require_size
from qsctl.transport.dds.participant import DomainSettings


class ReplierOptions(TypedDict, total=False):
    """The keyword arguments of `QueueReplier` besides its codecs."""

    reply_topic: str
    settings: DomainSettings | None
    session: ClientSession | None


class QueueReplier(Wrapper, Generic[Request, Reply]):
    """Receives requests and sends replies [QS 8.4].

    Args:
        topic_name, subscriber: the request queue `<topic_name>@<subscriber>`.
        reply_topic: the topic of the reply queue; `<topic_name>Reply` unless given [QS 2.11].
        codec, reply_codec: how payloads become requests, and replies payloads, or their types, whose payloads
            are JSON; without one they are octets.
        settings: how to take part in the domain; the loopback by default.
        session: a session to use together with other wrappers; `domain_id` and `settings` are then unused.
    """

    @overload
    def __init__(
        self: QueueReplier[bytes, bytes],
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: None = None,
        reply_codec: None = None,
        **options: Unpack[ReplierOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: QueueReplier[bytes, Reply],
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: None = None,
        reply_codec: Codec[Reply] | type[Reply],
        **options: Unpack[ReplierOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: QueueReplier[Request, bytes],
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: Codec[Request] | type[Request],
        reply_codec: None = None,
        **options: Unpack[ReplierOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: Codec[Request] | type[Request],
        reply_codec: Codec[Reply] | type[Reply],
        **options: Unpack[ReplierOptions],
    ) -> None: ...

    def __init__(
        self,
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        reply_topic: str = "",
        codec: Codec[Request] | type[Request] | None = None,
        reply_codec: Codec[Reply] | type[Reply] | None = None,
        settings: DomainSettings | None = None,
        session: ClientSession | None = None,
    ) -> None:
        super().__init__(domain_id, settings, session)
        with self._making():
            self._reply_codec = codec_of(reply_codec)
            self._consumer = QueueConsumer(
                topic_name,
                subscriber,
                codec=codec_of(codec),
                session=self._session,
            )
            self._producer = QueueProducer(reply_topic or f"{topic_name}Reply", session=self._session)
            self.state = Replier(self._producer.state)

    @property
    def request_queue(self) -> str:
        """Return `<topic>@<subscriber>` of the request queue."""
        return self._consumer.state.queue

    def has_queue(self) -> bool:
        """Return whether both queues were matched at the last turn."""
        return self._consumer.has_queue() and bool(self._producer.state.matched_queues)

    def has_room(self) -> bool:
        """Return whether the window has room for another unacknowledged sample."""
        return self._producer.state.has_room

    def has_samples(self) -> bool:
        """Return whether requests have arrived that `receive` has not returned."""
        return self._consumer.has_samples()

    def is_acknowledged(self) -> bool:
        """Return whether every reply is acknowledged by the reply queue."""
        return self._producer.is_acknowledged()

    def wait_for_queue(self, timeout_s: float = 10.0) -> None:
        """Wait until the request queue and the reply queue are matched.

        Raises:
            NoAnswer: a queue is not matched in time.
        """
        self._consumer.wait_for_queue(timeout_s)
        self._producer.wait_for_queue(timeout_s)

    def wait_for_queues(self, timeout_s: float = 10.0) -> None:
        """Wait as `wait_for_queue`, of which this is the former name (deprecated)."""
        warn_of_former("wait_for_queues", "wait_for_queue")
        self.wait_for_queue(timeout_s)

    def receive(
        self, max_samples: int = 1, timeout_s: float = 10.0, *, max_requests: int | None = None
    ) -> list[ReceivedSample[Request]]:
        """Wait for requests; return all available ones, at most `max_samples`.

        The list is empty if none arrived in time, or `stop` was called. `max_requests` is the former name of
        `max_samples` (deprecated).
        """
        if max_requests is not None:
            warn_of_former("max_requests", "max_samples")
            max_samples = max_requests
        self._run_until(self.has_samples_or_stops, timeout_s)
        return self._consumer.receive(max_samples, 0.0)

    def has_samples_or_stops(self) -> bool:
        """Return whether requests have arrived, or `stop` was called."""
        return self._consumer.has_samples() or self._is_stopping

    def __iter__(self) -> Iterator[ReceivedSample[Request]]:
        """Yield requests as they arrive, until `stop`; those not yielded return to the queue."""
        while not self._is_stopping:
            yield from self.receive(1, FOREVER_S)

    def reply(self, request: ReceivedSample[Request], value: Reply, *, finish: bool = True) -> SampleIdentity:
        """Reply to a request; `finish` acknowledges the request too, after its last reply.

        Raises:
            UsageError: the request has no source GUID to reply to, or was finished before.
            NoAnswer: the window stays full for ten seconds.
        """
        payload = self._reply_codec.encode(value)
        require_size(len(payload))
        self._require(self.has_room, ROOM_TIMEOUT_S, "room in the window")
        identity = self.state.reply(request.delivery, payload)
        if finish:
            self._consumer.acknowledge(request)
        self.turn()
        return identity

    def process(
        self,
        handler: Callable[[ReceivedSample[Request]], Reply],
        *,
        retry: Retry = ONCE,
        max_samples: int | None = None,
    ) -> int:
        """Reply to each arriving request with the result of a handler, until `stop`; return the number of replies.

        The request is acknowledged with its reply. When the handler raises an `Exception`, or what it returns cannot be
        encoded, it is called again after a pause, and the request is rejected after the last attempt. Whatever else
        it raises returns the request to the queue as redelivered, and leaves this call; so does `stop` during a pause,
        without an error. A process that ends between the reply and the acknowledgment replies twice.

        Args:
            handler: returns the reply to one request.
            retry: attempts and pauses for one request.
            max_samples: number of requests after which to end; None: no bound.
        """
        return process_samples(self, partial(self._answer, handler), retry, max_samples)

    def processing(
        self, handler: Callable[[ReceivedSample[Request]], Reply], *, retry: Retry = ONCE
    ) -> AbstractContextManager[None]:
        """Reply to requests as `process` does, in a separate thread during a `with` block.

        The replier belongs to that thread until the block ends, and is stopped then: the request in progress is
        answered. A failure of the thread is raised at the end of the block.

        Args:
            handler: returns the reply to one request; called in the thread.
            retry: attempts and pauses for one request.
        """
        return working(self, lambda: self.process(handler, retry=retry))

    def _answer(self, handler: Callable[[ReceivedSample[Request]], Reply], request: ReceivedSample[Request]) -> None:
        self.reply(request, handler(request))

    def begin(self, request: ReceivedSample[Request]) -> None:
        """Register that a handler is processing a request, for `acknowledge_once`."""
        self._consumer.begin(request)

    def acknowledge_once(self, request: ReceivedSample[Request], response: AckResponse) -> None:
        """Acknowledge a request, unless its reply or its handler did."""
        self._consumer.acknowledge_once(request, response)
        self.turn()

    def acknowledge(self, requests: ReceivedSample[Request] | Iterable[ReceivedSample[Request]]) -> None:
        """Acknowledge a request, or each of several, whose replies were sent with `finish=False`.

        Raises:
            UsageError: one was acknowledged before.
        """
        self._consumer.acknowledge(requests)
        self.turn()

    def finish(self, request: ReceivedSample[Request]) -> None:
        """Acknowledge a request as `acknowledge`, of which this is the former name (deprecated)."""
        warn_of_former("finish", "acknowledge")
        self.acknowledge(request)

    def reject(self, requests: ReceivedSample[Request] | Iterable[ReceivedSample[Request]]) -> None:
        """Reject a request, or each of several: they are delivered again, to another replier where there is one.

        Raises:
            UsageError: one was acknowledged before.
        """
        self._consumer.reject(requests)
        self.turn()

    def wait_for_acknowledgments(self, timeout_s: float = 10.0) -> int:
        """Wait until the reply queue has acknowledged every reply; return the number rejected.

        Raises:
            NoAnswer: the queue did not acknowledge in time.
        """
        return self._producer.wait_for_acknowledgments(timeout_s)

    def flush(self) -> None:
        """Send replies and acknowledgments, and process received messages; do not wait.

        Raises:
            Refused: the replier was closed.
        """
        self._session.require_usable()
        self.turn()
        self._session.domain.turn(0)
        self.turn()

    def turn(self) -> None:
        """Process received messages and put messages to be sent into the DDS ports; do not wait."""
        self._consumer.turn()
        self._producer.turn()
