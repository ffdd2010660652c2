"""The wrappers of chapter 8 for programs that block: requester and replier (manual, sections 2.11, 8.3 and 8.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, Self

from qsctl.client.blocking import QueueConsumer, QueueProducer, ReceivedSample
from qsctl.client.session import FOREVER_S, ClientSession, Codec, RawOctets, Value, Wrapper, new_guid
from qsctl.core.client.replier import Replier
from qsctl.core.client.requester import Requester
from qsctl.core.messages import AckResponse, Delivery
from qsctl.errors import NoAnswer, Refused
from qsctl.identity import Guid, SampleIdentity
from qsctl.transport.dds.client_ports import require_size
from qsctl.transport.dds.participant import DomainSettings


class QueueRequester(Wrapper):
    """Sends requests and waits for their replies (section 8.3).

    Args:
        topic_name: the topic of the request queue.
        subscriber: the shared subscriber of the reply queue.
        reply_topic: the topic of the reply queue; `<topic_name>Reply` as the manual's default.
        source_guid: keep it over restarts, and replies to an earlier run still find this requester (section 2.11.1).
        acknowledges: whether replies are acknowledged as they come; if not, `held_replies` gives them and
            `acknowledge` acknowledges them.
    """

    def __init__(
        self,
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        reply_topic: str = "",
        codec: Codec[Any] | None = None,
        reply_codec: Codec[Any] | None = None,
        source_guid: Guid | None = None,
        acknowledges: bool = True,
        settings: DomainSettings | None = None,
        session: ClientSession | None = None,
    ) -> None:
        super().__init__(domain_id, settings, session)
        guid = source_guid or new_guid()
        self._reply_codec: Codec[Any] = reply_codec or RawOctets()
        self._producer: QueueProducer[Any] = QueueProducer(
            topic_name, codec=codec, source_guid=guid, session=self._session
        )
        self._consumer: QueueConsumer[Any] = QueueConsumer(
            reply_topic or f"{topic_name}Reply", subscriber, source_guid=guid, session=self._session
        )
        self.state = Requester(self._producer.state, self._consumer.state, acknowledges=acknowledges)
        self._rejected: set[SampleIdentity] = set()
        self._codec: Codec[Any] = codec or RawOctets()

    def __enter__(self) -> Self:
        return self

    @property
    def source_guid(self) -> Guid:
        """Whom replies go to."""
        return self._producer.state.source_guid

    def has_queues(self) -> bool:
        """Whether both queues were there when this was last looked at."""
        return self._consumer.has_queue() and bool(self._producer.state.matched_queues)

    def has_room(self) -> bool:
        """Whether something may be sent now."""
        return self._producer.state.has_room

    def wait_for_queues(self, timeout_s: float = 10.0) -> None:
        """Wait until the request queue and the reply queue are matched.

        Raises:
            NoAnswer: one is not there in time.
        """
        self._producer.wait_for_queue(timeout_s)
        self._consumer.wait_for_queue(timeout_s)

    def send(self, value: Any) -> SampleIdentity:
        """Send a request and do not wait.

        Raises:
            NoAnswer: the window stays full for ten seconds.
            UsageError: the request is too large.
        """
        payload = self._codec.encode(value)
        require_size(len(payload))
        self._require(self.has_room, 10.0, "room in the window")
        identity = self.state.request(payload)
        self.turn()
        return identity

    def replies(self, request: SampleIdentity, count: int = 1, timeout_s: float = 10.0) -> list[Any]:
        """Wait for `count` replies to a request; fewer when the time is over.

        Raises:
            Refused: the request was rejected by its queue.
        """
        return [self._decoded(each) for each in self.held_replies(request, count, timeout_s)]

    def held_replies(self, request: SampleIdentity, count: int = 1, timeout_s: float = 10.0) -> list[Delivery]:
        """As `replies`, undecoded.

        Raises:
            Refused: the request was rejected by its queue.
        """
        found: list[Delivery] = []

        def is_done() -> bool:
            found.extend(self._take_replies(request))
            return len(found) >= count

        self._run_until(is_done, timeout_s)
        self.turn()
        self._session.domain.turn(0)
        return found

    def acknowledge(self, replies: Iterable[Delivery]) -> None:
        """Acknowledge replies of `held_replies`; the answers leave with the next call that waits, or with `close`.

        Raises:
            UsageError: one is not held: acknowledged before.
        """
        self.state.acknowledge(replies)

    def close(self) -> None:
        """Send what is to go, then leave: replies that were not acknowledged wait again, as redelivered."""
        if self._session.is_open:
            self._consumer.state.acknowledge_all(AckResponse.RETURNED)
            self._consumer.close()
        super().close()

    def take_replies(self, request: SampleIdentity) -> list[Any]:
        """The replies to a request that are there; does not wait.

        Raises:
            Refused: the request was rejected by its queue.
        """
        return [self._decoded(each) for each in self._take_replies(request)]

    def _decoded(self, reply: Delivery) -> Any:
        return self._reply_codec.decode(reply.payload or b"")

    def _take_replies(self, request: SampleIdentity) -> list[Delivery]:
        self.state.sort_replies()
        self._rejected.update(each.identity for each in self._producer.take_settled() if not each.accepted)
        if request in self._rejected:
            self._rejected.discard(request)
            self.state.forget(request)
            raise Refused(f"request {request} was rejected by its queue", remedy="The queue may be full.")
        return self.state.take_replies(request)

    def request(self, value: Any, timeout_s: float = 10.0) -> Any:
        """Send a request and wait for its one reply.

        Raises:
            NoAnswer: no reply came in time.
            Refused: the queue rejected the request.
        """
        identity = self.send(value)
        found = self.replies(identity, 1, timeout_s)
        self.state.forget(identity)
        if not found:
            raise NoAnswer(
                f"no reply to request {identity} came in {timeout_s:g} s", remedy="Check that a replier is running."
            )
        return found[0]

    def turn(self) -> None:
        """Move what has come into the state, and what is to go into the ports; does not wait."""
        self._producer.turn()
        self._consumer.turn()


class QueueReplier(Wrapper, Generic[Value]):
    """Takes requests and sends replies (section 8.4).

    Args:
        topic_name, subscriber: the request queue `<topic_name>@<subscriber>`.
        reply_topic: the topic of the reply queue; `<topic_name>Reply` as the manual's default.
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
        self._reply_codec: Codec[Any] = reply_codec or RawOctets()
        self._consumer: QueueConsumer[Value] = QueueConsumer(topic_name, subscriber, codec=codec, session=self._session)
        self._producer: QueueProducer[Any] = QueueProducer(reply_topic or f"{topic_name}Reply", session=self._session)
        self.state = Replier(self._consumer.state, self._producer.state)

    def __enter__(self) -> Self:
        return self

    def has_queues(self) -> bool:
        """Whether both queues were there when this was last looked at."""
        return self._consumer.has_queue() and bool(self._producer.state.matched_queues)

    def has_room(self) -> bool:
        """Whether something may be sent now."""
        return self._producer.state.has_room

    def wait_for_queues(self, timeout_s: float = 10.0) -> None:
        """Wait until the request queue and the reply queue are matched.

        Raises:
            NoAnswer: one is not there in time.
        """
        self._consumer.wait_for_queue(timeout_s)
        self._producer.wait_for_queue(timeout_s)

    def receive(self, max_requests: int = 1, timeout_s: float = 10.0) -> list[ReceivedSample[Value]]:
        """Wait for requests; an empty list: none came in time."""
        self._run_until(lambda: self.state.consumer.waiting_count > 0, timeout_s)
        return self._consumer.receive(max_requests, 0.0)

    def __iter__(self) -> Iterator[ReceivedSample[Value]]:
        """Requests as they come, for ever."""
        while True:
            yield from self.receive(max_requests=256, timeout_s=FOREVER_S)

    def reply(self, request: ReceivedSample[Value], value: Any, *, finish: bool = True) -> SampleIdentity:
        """Reply to a request; `finish` acknowledges the request too, after its last reply.

        Raises:
            UsageError: the request names no source, or was finished before.
            NoAnswer: the window stays full for ten seconds.
        """
        payload = self._reply_codec.encode(value)
        require_size(len(payload))
        self._require(self.has_room, 10.0, "room in the window")
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
        """Send the request to another replier."""
        self.state.finish(request.delivery, AckResponse.REJECTED)
        self.turn()

    def wait_for_acknowledgments(self, timeout_s: float = 10.0) -> int:
        """Wait until every reply is stored in the reply queue; gives how many were rejected.

        Raises:
            NoAnswer: the queue did not answer in time.
        """
        return self._producer.wait_for_acknowledgments(timeout_s)

    def turn(self) -> None:
        """Move what has come into the state, and what is to go into the ports; does not wait."""
        self._consumer.turn()
        self._producer.turn()
