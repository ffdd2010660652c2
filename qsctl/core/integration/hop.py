"""Messages on their way from one thread to another by ICL [CLOVERLEAF].

Decides: what happens to a message whose receiver stops meanwhile: it returns to the queue that it left, at its place.
What is on its way when the sending process ends is no longer in memory, and does not arrive.
"""

from __future__ import annotations

from typing import Protocol

from qsctl.core.integration.lifecycle import Cause, Held
from qsctl.core.integration.message import MessageId
from qsctl.core.integration.message_queue import MessageQueue
from qsctl.core.integration.site import Site


class Receiver(Protocol):
    """A thread that messages are sent to."""

    is_running: bool

    def arrive(self, held: Held) -> None:
        """Receive a message."""


class Hop:
    """What one thread has sent and its receivers do not have yet."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._in_flight: dict[MessageId, Held] = {}

    def send(self, queue: MessageQueue, receiver: Receiver) -> None:
        """Send every message of a queue while the receiver runs; else they stay there, in sequence.

        A thread that starts wakes those that send to it.
        """
        site = self._site
        while receiver.is_running and (held := site.take(queue)) is not None:
            held.move(Cause.HOP, entered_at_ns=site.now)
            site.ledger.save(held)
            self._in_flight[held.message.mid] = held
            site.after(site.settings.icl_delay_ns, lambda held=held: self._end(held, queue, receiver))  # type: ignore[misc]

    def crash(self) -> None:
        """Forget what is on its way: its process ended."""
        self._in_flight.clear()

    def _end(self, held: Held, queue: MessageQueue, receiver: Receiver) -> None:
        mid = held.message.mid
        if self._in_flight.get(mid) is not held:
            return
        del self._in_flight[mid]
        if receiver.is_running:
            receiver.arrive(held)
        else:
            self._site.enter(held, queue, Cause.RETURN, position=held.message.position)
