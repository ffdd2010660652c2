"""Producers, consumers, requesters and repliers of a service's queues, opened by the queue's name.

Decides the domain, topic and shared subscriber of a client: those that the service reports for the queue. The clients
are closed when the service's `with` block is left, with the exception that left it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from qsctl.client.administration import Administration
from qsctl.client.codec import Codec
from qsctl.client.connection import LocatesQueues
from qsctl.client.consumer import QueueConsumer
from qsctl.client.producer import QueueProducer
from qsctl.client.replier import QueueReplier
from qsctl.client.requester import QueueRequester
from qsctl.client.session import Wrapper
from qsctl.core.admin.resolve import short_name
from qsctl.errors import Refused
from qsctl.transport.dds.participant import DomainSettings

Value = TypeVar("Value")
Request = TypeVar("Request")
Reply = TypeVar("Reply")
Client = TypeVar("Client", bound=Wrapper)
Place = tuple[str, str, int, DomainSettings | None]
"""Topic, shared subscriber, domain and DDS settings of a queue's clients."""


class QueueClients:
    """The clients that a service has opened for a program and closes at its end."""

    def __init__(self) -> None:
        self._open: list[Wrapper] = []

    def producer(self, place: Place, codec: Codec[Value] | type[Value] | None) -> QueueProducer[Value]:
        """Open a producer, and wait until its queue is discovered."""
        topic, _, domain_id, settings = place
        made: Callable[..., QueueProducer[Value]] = QueueProducer
        return self._opened(made(topic, domain_id, codec=codec, settings=settings))

    def consumer(
        self, place: Place, codec: Codec[Value] | type[Value] | None, unacked_threshold: int | None
    ) -> QueueConsumer[Value]:
        """Open a consumer, and wait until its queue is discovered."""
        topic, subscriber, domain_id, settings = place
        made: Callable[..., QueueConsumer[Value]] = QueueConsumer
        threshold = unacked_threshold
        return self._opened(
            made(topic, subscriber, domain_id, codec=codec, unacked_threshold=threshold, settings=settings)
        )

    def requester(
        self, place: Place, codec: Codec[Request] | type[Request] | None, reply_codec: Codec[Reply] | type[Reply] | None
    ) -> QueueRequester[Request, Reply]:
        """Open a requester, and wait until its queues are discovered."""
        topic, subscriber, domain_id, settings = place
        made: Callable[..., QueueRequester[Request, Reply]] = QueueRequester
        return self._opened(made(topic, subscriber, domain_id, codec=codec, reply_codec=reply_codec, settings=settings))

    def replier(
        self, place: Place, codec: Codec[Request] | type[Request] | None, reply_codec: Codec[Reply] | type[Reply] | None
    ) -> QueueReplier[Request, Reply]:
        """Open a replier, and wait until its queues are discovered."""
        topic, subscriber, domain_id, settings = place
        made: Callable[..., QueueReplier[Request, Reply]] = QueueReplier
        return self._opened(made(topic, subscriber, domain_id, codec=codec, reply_codec=reply_codec, settings=settings))

    def _opened(self, client: Client) -> Client:
        try:
            client.wait_for_queue()
        except BaseException:
            client.close()
            raise
        self._open = [each for each in self._open if each.session.is_usable]
        self._open.append(client)
        return client

    def leave(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the clients in reverse order, with the exception that left the service's block."""
        while self._open:
            client = self._open.pop()
            if client.session.is_usable:
                client.__exit__(kind, error, trace)


def place_of(administration: Administration, queue: str) -> Place:
    """Return the topic, shared subscriber, domain and DDS settings by which clients reach a queue.

    Raises:
        NotFound: the queue does not exist.
        Refused: the service is embedded, so its queues cannot be reached over DDS.
    """
    resource = administration.queue_named(queue)
    connection = administration.connection
    if not isinstance(connection, LocatesQueues):
        raise Refused(
            f"queue {queue} is embedded, and clients of qsctl.client are on DDS",
            remedy="Use produce() and consume(), or start the service with Service.serve() or qsctl serve.",
        )
    return (*connection.place_of(short_name(resource)), connection.dds_settings)
