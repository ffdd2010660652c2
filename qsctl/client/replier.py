"""The replier for programs that block [QS 2.11, 8.4]; `aio.QueueReplier` is the same for tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic

from qsctl.client.codec import Codec, RawOctets, Value
from qsctl.client.consumer import QueueConsumer, ReceivedSample
from qsctl.client.producer import QueueProducer
from qsctl.client.requester import ROOM_TIMEOUT_S
from qsctl.client.session import FOREVER_S, ClientSession, Wrapper
from qsctl.core.client.replier import Replier
from qsctl.core.messages import AckResponse
from qsctl.identity import SampleIdentity
from qsctl.transport.dds.clients.client_ports import require_size
from qsctl.transport.dds.participant import DomainSettings


class QueueReplier(Wrapper, Generic[Value]):
    """Receives requests and sends replies [QS 8.4].

    Args:
        topic_name, subscriber: the request queue `<topic_name>@<subscriber>`.
        reply_topic: the topic of the reply queue; `<topic_name>Reply` unless given [QS 2.11].
        settings: how to take part in the domain; the loopback by default.
        session: a session to use together with other wrappers; `domain_id` and `settings` are then unused.
    """

    def __init__(
        self,
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        reply_topic: str = "",
        codec: Codec[Value] | None = None,
        reply_codec: Codec[Any] | None = None,
        settings: DomainSettings | None = None,
        session: ClientSession | None = None,
    ) -> None:
        super().__init__(domain_id, settings, session)
        with self._making():
            self._reply_codec: Codec[Any] = reply_codec or RawOctets()
            self._consumer: QueueConsumer[Value] = QueueConsumer(
                topic_name, subscriber, codec=codec, session=self._session
            )
            self._producer: QueueProducer[Any] = QueueProducer(
                reply_topic or f"{topic_name}Reply", session=self._session
            )
            self.state = Replier(self._consumer.state, self._producer.state)

    def has_queues(self) -> bool:
        """Return whether both queues were matched at the last turn."""
        return self._consumer.has_queue() and bool(self._producer.state.matched_queues)

    def has_room(self) -> bool:
        """Return whether the window has room."""
        return self._producer.state.has_room

    def has_requests(self) -> bool:
        """Return whether requests have come that `receive` has not returned."""
        return self._consumer.has_samples()

    def is_acknowledged(self) -> bool:
        """Return whether every reply is acknowledged by the reply queue."""
        return self._producer.is_acknowledged()

    def wait_for_queues(self, timeout_s: float = 10.0) -> None:
        """Wait until the request queue and the reply queue are matched.

        Raises:
            NoAnswer: one is not there in time.
        """
        self._consumer.wait_for_queue(timeout_s)
        self._producer.wait_for_queue(timeout_s)

    def receive(self, max_requests: int = 1, timeout_s: float = 10.0) -> list[ReceivedSample[Value]]:
        """Wait for requests; return all that are there, at most `max_requests`; an empty list: none came in time."""
        self._run_until(self.has_requests, timeout_s)
        return self._consumer.receive(max_requests, 0.0)

    def __iter__(self) -> Iterator[ReceivedSample[Value]]:
        """Yield requests as they come, without end."""
        while True:
            yield from self.receive(max_requests=256, timeout_s=FOREVER_S)

    def reply(self, request: ReceivedSample[Value], value: Any, *, finish: bool = True) -> SampleIdentity:
        """Reply to a request; `finish` acknowledges the request too, after its last reply.

        Raises:
            UsageError: the request names no requester, or was finished before.
            NoAnswer: the window stays full for ten seconds.
        """
        payload = self._reply_codec.encode(value)
        require_size(len(payload))
        self._require(self.has_room, ROOM_TIMEOUT_S, "room in the window")
        identity = self.state.reply(request.delivery, payload)
        if finish:
            self.state.finish(request.delivery)
        self.turn()
        return identity

    def finish(self, request: ReceivedSample[Value]) -> None:
        """Acknowledge a request whose replies were sent with `finish=False`."""
        self.state.finish(request.delivery)
        self.turn()

    def reject(self, request: ReceivedSample[Value]) -> None:
        """Reject the request: it is delivered to another replier."""
        self.state.finish(request.delivery, AckResponse.REJECTED)
        self.turn()

    def wait_for_acknowledgments(self, timeout_s: float = 10.0) -> int:
        """Wait until the reply queue has every reply; return how many it rejected.

        Raises:
            NoAnswer: the queue did not acknowledge in time.
        """
        return self._producer.wait_for_acknowledgments(timeout_s)

    def turn(self) -> None:
        """Move what has come into the state, and what is to be sent into the ports; do not wait."""
        self._consumer.turn()
        self._producer.turn()
