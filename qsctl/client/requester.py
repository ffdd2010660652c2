"""The blocking requester [QS 2.11, 8.3]; `aio.QueueRequester` is the same for tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, TypedDict, TypeVar, Unpack, overload

from qsctl.client._deprecation import warn_of_former
from qsctl.client.codec import Codec, codec_of
from qsctl.client.consumer import QueueConsumer
from qsctl.client.producer import QueueProducer
from qsctl.client.session import ClientSession, Wrapper, new_guid
from qsctl.core.client.requester import Requester
from qsctl.core.messages import AckResponse, Delivery
from qsctl.errors import NoAnswer, Refused
from qsctl.identity import Guid, SampleIdentity
from qsctl.transport.dds.clients.client_ports import require_size
from qsctl.transport.dds.participant import DomainSettings

ROOM_TIMEOUT_S: Final = 10.0
"""The longest wait of a request or reply for room in the window."""


Request = TypeVar("Request")
Reply = TypeVar("Reply")


class RequesterOptions(TypedDict, total=False):
    """The keyword arguments of `QueueRequester` besides its codecs."""

    reply_topic: str
    source_guid: Guid | None
    acknowledges: bool
    settings: DomainSettings | None
    session: ClientSession | None


class QueueRequester(Wrapper, Generic[Request, Reply]):
    """Sends requests and waits for their replies [QS 8.3].

    Args:
        topic_name: the topic of the request queue.
        subscriber: the shared subscriber of the reply queue.
        reply_topic: the topic of the reply queue; `<topic_name>Reply` unless given [QS 2.11].
        codec, reply_codec: how requests become payloads, and payloads replies, or their types, whose payloads
            are JSON; without one they are octets.
        source_guid: GUID that replies are addressed to; with the same one after a restart replies to the earlier run
            still reach this requester [QS 2.11.1].
        acknowledges: whether replies are acknowledged as they come; if not, `held_replies` returns them and
            `acknowledge` acknowledges them.
        settings: how to take part in the domain; the loopback by default.
        session: a session to use together with other wrappers; `domain_id` and `settings` are then unused.
    """

    @overload
    def __init__(
        self: QueueRequester[bytes, bytes],
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: None = None,
        reply_codec: None = None,
        **options: Unpack[RequesterOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: QueueRequester[bytes, Reply],
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: None = None,
        reply_codec: Codec[Reply] | type[Reply],
        **options: Unpack[RequesterOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: QueueRequester[Request, bytes],
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: Codec[Request] | type[Request],
        reply_codec: None = None,
        **options: Unpack[RequesterOptions],
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
        **options: Unpack[RequesterOptions],
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
        source_guid: Guid | None = None,
        acknowledges: bool = True,
        settings: DomainSettings | None = None,
        session: ClientSession | None = None,
    ) -> None:
        super().__init__(domain_id, settings, session)
        with self._making():
            guid = source_guid or new_guid()
            self._codec = codec_of(codec)
            self._reply_codec = codec_of(reply_codec)
            self._producer = QueueProducer(topic_name, source_guid=guid, session=self._session)
            self._consumer = QueueConsumer(
                reply_topic or f"{topic_name}Reply", subscriber, source_guid=guid, session=self._session
            )
            consumer = self._consumer
            self.state = Requester(
                self._producer.state, consumer.deliveries, consumer.acknowledge, acknowledges=acknowledges
            )
            self._rejected: set[SampleIdentity] = set()

    @property
    def source_guid(self) -> Guid:
        """The GUID that replies are addressed to."""
        return self._producer.state.source_guid

    def has_queue(self) -> bool:
        """Return whether both queues were matched at the last turn."""
        return self._consumer.has_queue() and bool(self._producer.state.matched_queues)

    def has_room(self) -> bool:
        """Return whether the window has room for another unacknowledged sample."""
        return self._producer.state.has_room

    def wait_for_queue(self, timeout_s: float = 10.0) -> None:
        """Wait until the request queue and the reply queue are matched.

        Raises:
            NoAnswer: a queue is not matched in time.
        """
        self._producer.wait_for_queue(timeout_s)
        self._consumer.wait_for_queue(timeout_s)

    def wait_for_queues(self, timeout_s: float = 10.0) -> None:
        """Wait as `wait_for_queue`, of which this is the former name (deprecated)."""
        warn_of_former("wait_for_queues", "wait_for_queue")
        self.wait_for_queue(timeout_s)

    def send(self, value: Request) -> SampleIdentity:
        """Send a request; do not wait for replies.

        Raises:
            NoAnswer: the window stays full for ten seconds.
            UsageError: the request is too large.
        """
        payload = self._codec.encode(value)
        require_size(len(payload))
        self._require(self.has_room, ROOM_TIMEOUT_S, "room in the window")
        identity = self.state.request(payload)
        self.turn()
        return identity

    def replies(self, request: SampleIdentity, count: int = 1, timeout_s: float = 10.0) -> list[Reply]:
        """Wait for `count` replies to a request; return fewer if the time limit passes.

        Raises:
            Refused: the request was rejected by its queue.
        """
        return [self._decoded(each) for each in self.held_replies(request, count, timeout_s)]

    def held_replies(self, request: SampleIdentity, count: int = 1, timeout_s: float = 10.0) -> list[Delivery]:
        """Wait for replies as `replies` does; return them undecoded.

        Raises:
            Refused: the request was rejected by its queue.
        """
        self._run_until(lambda: self.has_replies(request, count), timeout_s)
        self.has_replies(request)  # sorts what came last
        if request in self._rejected:
            self._rejected.discard(request)
            self.state.forget(request)
            raise Refused(f"request {request} was rejected by its queue", remedy="The queue may be full.")
        found = self.state.pop_replies(request)
        self.turn()
        self._session.domain.turn(0)
        return found

    def has_replies(self, request: SampleIdentity, count: int = 1, timeout_s: float = 0.0) -> bool:  # noqa: ARG002
        """Return, without waiting, whether the given number of replies to a request arrived, or its queue has rejected
        it.
        """
        self.state.sort_replies()
        self._rejected.update(each.identity for each in self._producer.pop_acknowledged() if not each.accepted)
        return request in self._rejected or self.state.reply_count(request) >= count

    def acknowledge(self, replies: Iterable[Delivery]) -> None:
        """Acknowledge replies of `held_replies`, with the next call that waits, or with `close`.

        Raises:
            UsageError: a reply was acknowledged before.
        """
        self._consumer.acknowledge(replies)

    def close(self) -> None:
        """Send pending messages, then leave: unacknowledged replies return to the queue as redelivered."""
        if self._session.is_usable:
            self._consumer.state.acknowledge_all(AckResponse.RETURNED)
            self._consumer.close()
        super().close()

    def _decoded(self, reply: Delivery) -> Reply:
        return self._reply_codec.decode(reply.payload or b"")

    def request(self, value: Request, timeout_s: float = 10.0) -> Reply:
        """Send a request and wait for its one reply.

        Raises:
            NoAnswer: no reply arrived in time.
            Refused: the queue rejected the request.
        """
        identity = self.send(value)
        try:
            return self.only_reply(identity, self.replies(identity, 1, timeout_s), timeout_s)
        finally:
            self.state.forget(identity)

    def only_reply(self, request: SampleIdentity, replies: list[Reply], timeout_s: float) -> Reply:
        """Return the first of the received replies to a request, of which one is expected.

        Raises:
            NoAnswer: `replies` is empty.
        """
        if not replies:
            raise NoAnswer(
                f"no reply to request {request} arrived in {timeout_s:g} s", remedy="Check that a replier is running."
            )
        return replies[0]

    def turn(self) -> None:
        """Process received messages and put messages to be sent into the DDS ports; do not wait."""
        self._producer.turn()
        self._consumer.turn()
