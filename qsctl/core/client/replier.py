"""The replier: sends each reply to the requester of its request [QS 2.11.2 and 2.11.3]."""

from __future__ import annotations

from qsctl.core.client.producer import Producer, SampleTraits
from qsctl.core.messages import Delivery
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, SampleIdentity


class Replier:
    """A producer of replies."""

    def __init__(self, producer: Producer) -> None:
        self.producer = producer

    def reply(self, request: Delivery, payload: bytes) -> SampleIdentity:
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
        traits = SampleTraits(related_source_guid=request.source_guid, related_identity=request.identity)
        return self.producer.write(payload, traits=traits)
