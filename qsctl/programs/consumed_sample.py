"""A sample that a program consumes through `qsctl.Service`."""

from __future__ import annotations

from collections.abc import Callable

from qsctl.core.messages import Delivery, SampleFlag
from qsctl.errors import UsageError


class ConsumedSample:
    """A consumed sample, which the program acknowledges or rejects once.

    Args:
        delivery: the message from the service.
        answer: sends the acknowledgment of the delivery: True accepts it, False rejects it.
    """

    def __init__(self, delivery: Delivery, answer: Callable[[Delivery, bool], None]) -> None:
        self._delivery = delivery
        self._answer = answer
        self.is_answered = False
        """True once it was acknowledged or rejected."""

    @property
    def payload(self) -> bytes:
        """The payload in octets, as it was written."""
        return self._delivery.payload or b""

    @property
    def identity(self) -> str:
        """The sample's identity as text: the writer's GUID, a colon and the sequence number."""
        return str(self._delivery.identity)

    @property
    def redelivered(self) -> bool:
        """The redelivered flag, which is set if another consumer may have processed the sample already."""
        return bool(self._delivery.flags & SampleFlag.REDELIVERED)

    @property
    def dead_letter_from(self) -> str:
        """The queue, as TOPIC@SUBSCRIBER, from which a dead letter came; else empty."""
        return self._delivery.dead_letter_from

    def acknowledge(self) -> None:
        """Accept the sample, which the service removes from the queue.

        Raises:
            UsageError: the sample was acknowledged or rejected before.
        """
        self._answered(True)

    def reject(self) -> None:
        """Reject the sample, which the service redelivers or moves to the dead-letter queue [QS 2.5].

        Raises:
            UsageError: the sample was acknowledged or rejected before.
        """
        self._answered(False)

    def __repr__(self) -> str:
        return f"ConsumedSample({self.identity}, {self.payload[:40]!r}, redelivered={self.redelivered})"

    def _answered(self, ok: bool) -> None:
        if self.is_answered:
            raise UsageError(
                f"sample {self.identity} was acknowledged or rejected before", remedy="Answer each sample once."
            )
        self._answer(self._delivery, ok)
        self.is_answered = True
