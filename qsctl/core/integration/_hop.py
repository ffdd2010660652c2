"""Messages on their way from one thread to another by ICL [CLOVERLEAF].

Decides: what happens to a message whose receiver stops meanwhile: it returns to the queue that it left, at its place.
What is on its way when the sending process ends is no longer in memory, and does not arrive.
"""

from __future__ import annotations

from typing import NamedTuple

from qsctl.core.integration._lifecycle import HeldMessage, MessageCause
from qsctl.core.integration._message_queue import MessageQueue
from qsctl.core.integration._neighbours import Receiver
from qsctl.core.integration._site import Site
from qsctl.core.integration.message import MessageId


class _Flight(NamedTuple):
    """A message on its way."""

    held: HeldMessage
    queue: MessageQueue
    """That it left."""
    receiver: Receiver


class Hop:
    """Messages that one thread has sent and its receivers do not have yet."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._in_flight: dict[MessageId, _Flight] = {}

    def send(self, queue: MessageQueue, receiver: Receiver) -> None:
        """Send every message of a queue while the receiver runs; else they stay there, in sequence.

        A thread that starts wakes those that send to it.
        """
        site = self._site
        while receiver.is_running and (held := site.take(queue)) is not None:
            held.move(MessageCause.HOP, entered_at_ns=site.now)
            site.ledger.save(held)
            flight = self._in_flight[held.message.mid] = _Flight(held, queue, receiver)
            site.after(site.settings.icl_delay_ns, lambda flight=flight: self._end(flight))  # type: ignore[misc]

    def take_back(self, receiver: Receiver) -> None:
        """Return what is on its way to a thread that stops to the queue that it left, at its place, in sequence.

        At once: what is sent when the thread runs again must not arrive before it.
        """
        for flight in [each for each in self._in_flight.values() if each.receiver is receiver]:
            message = flight.held.message
            del self._in_flight[message.mid]
            self._site.enter(flight.held, flight.queue, MessageCause.RETURN, position=message.position)

    def crash(self) -> None:
        """Forget what is on its way: its process ended."""
        self._in_flight.clear()

    def _end(self, flight: _Flight) -> None:
        mid = flight.held.message.mid
        if self._in_flight.get(mid) is flight:
            del self._in_flight[mid]
            flight.receiver.arrive(flight.held)
