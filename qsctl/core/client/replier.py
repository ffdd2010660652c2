"""The replier: receives requests and sends each reply to the requester of its request [QS 2.11.2 and 2.11.3]."""

from __future__ import annotations

from qsctl.core.client.consumer import QueueReader
from qsctl.core.client.producer import Producer
from qsctl.core.messages import AckResponse, Delivery
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds


class Replier:
    """A consumer of requests and a producer of replies."""

    def __init__(self, consumer: QueueReader, producer: Producer) -> None:
        self.consumer = consumer
        self.producer = producer

    def reply(self, request: Delivery, payload: bytes, *, lifespan_ns: Nanoseconds = INFINITE_NS) -> SampleIdentity:
        """Write a reply to the requester that sent `request`; the request itself remains to be acknowledged.

        The reply carries the request's identity and source GUID, so that it reaches the requester even after a restart
        with the same source GUID.

        Raises:
            UsageError: the request has no source GUID, or the producer's window is full.
        """
        if request.source_guid == NIL_GUID:
            raise UsageError(
                f"request {request.identity} names no source GUID: there is no requester to reply to",
                remedy="Send requests with a requester, or set a source GUID.",
            )
        return self.producer.write(
            payload,
            lifespan_ns=lifespan_ns,
            related_source_guid=request.source_guid,
            related_identity=request.identity,
        )

    def finish(self, request: Delivery, response: AckResponse = AckResponse.ACCEPTED) -> None:
        """Acknowledge the request.

        Raises:
            UsageError: the request is not held: it was answered before.
        """
        self.consumer.acknowledge(request.identity, response)
