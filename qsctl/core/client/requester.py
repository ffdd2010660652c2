"""The requester: sends requests and assigns each reply to its request [QS 2.11].

Decides: the correlation by the identity of the request. A reply that belongs to no open request is acknowledged and
dropped; otherwise it would be delivered again for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from qsctl.core.client.producer import Producer
from qsctl.core.messages import Delivery
from qsctl.identity import SampleIdentity


class Requester:
    """A producer of requests and a consumer of replies that share one source GUID.

    Args:
        producer: writes the requests; its source GUID is the requester's.
        receive: returns the replies that have arrived, of a consumer attached to the reply queue with the same source
            GUID [QS 2.11.3].
        acknowledge: acknowledges a reply.
        acknowledges: whether each reply is acknowledged on arrival. If not, the caller acknowledges its own, and
            replies to requests of another process with the same source GUID remain for that process.
    """

    def __init__(
        self,
        producer: Producer,
        receive: Callable[[], Iterable[Delivery]],
        acknowledge: Callable[[Delivery], object],
        *,
        acknowledges: bool = True,
    ) -> None:
        self.producer = producer
        self._receive = receive
        self._acknowledge = acknowledge
        self._acknowledges = acknowledges
        self._replies: dict[SampleIdentity, list[Delivery]] = {}
        self.dropped_count = 0

    def request(self, payload: bytes) -> SampleIdentity:
        """Send a request; its replies are kept until `forget`.

        Raises:
            UsageError: the producer's window is full.
        """
        identity = self.producer.write(payload)
        self._replies[identity] = []
        return identity

    def sort_replies(self) -> None:
        """Assign every reply that has arrived to its request, and acknowledge it unless the caller does."""
        for delivery in self._receive():
            kept = self._replies.get(delivery.related_identity)
            if kept is None:
                self.dropped_count += 1
            else:
                kept.append(delivery)
            if self._acknowledges:
                self._acknowledge(delivery)

    def reply_count(self, request: SampleIdentity) -> int:
        """Return the number of replies to a request that `pop_replies` would return."""
        return len(self._replies.get(request, ()))

    def pop_replies(self, request: SampleIdentity) -> list[Delivery]:
        """Return the replies to a request that have arrived since the last call."""
        kept = self._replies.get(request)
        if not kept:
            return []
        self._replies[request] = []
        return kept

    def forget(self, request: SampleIdentity) -> None:
        """Drop the replies to this request that have not been returned, and any that arrive later."""
        self._replies.pop(request, None)
