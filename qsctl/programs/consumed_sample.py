"""A sample that a program consumes through `qsctl.Service`."""

from __future__ import annotations

from collections.abc import Callable

from qsctl.core.messages import Delivery, SampleFlag
from qsctl.errors import UsageError


class ConsumedSample:
    """A sample, to be acknowledged or rejected once.

    Args:
        delivery: what the service sent.
        answer: acknowledges the delivery: true accepts it, false rejects it.
    """

    def __init__(self, delivery: Delivery, answer: Callable[[Delivery, bool], None]) -> None:
        self._delivery = delivery
        self._answer = answer
        self.is_answered = False
        """True once it was acknowledged or rejected."""

    @property
    def payload(self) -> bytes:
        """The content, as it was written."""
        return self._delivery.payload or b""

    @property
    def identity(self) -> str:
        """The identity as text, the GUID of its writer and a sequence number with a colon between."""
        return str(self._delivery.identity)

    @property
    def redelivered(self) -> bool:
        """The redelivered flag, set where a consumer may have processed it already."""
        return bool(self._delivery.flags & SampleFlag.REDELIVERED)

    @property
    def dead_letter_from(self) -> str:
        """The queue, TOPIC@SUBSCRIBER, that a dead letter came from; else empty."""
        return self._delivery.dead_letter_from

    def acknowledge(self) -> None:
        """Accept the sample: it leaves the queue.

        Raises:
            UsageError: it was acknowledged or rejected before.
        """
        self._answered(True)

    def reject(self) -> None:
        """Reject the sample: it is delivered again, or becomes a dead letter [QS 2.5].

        Raises:
            UsageError: it was acknowledged or rejected before.
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
