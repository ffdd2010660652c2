"""Messages in transit from one thread to another by ICL [CLOVERLEAF].

Decides: the outcome for a message whose receiver stops meanwhile: it returns to its former queue, at its position. A
message in transit when the sending process ends is lost from memory, and does not arrive.
"""

from __future__ import annotations

from typing import NamedTuple

from qsctl.core.integration._lifecycle import HeldMessage, MessageCause
from qsctl.core.integration._message_queue import MessageQueue
from qsctl.core.integration._neighbours import Receiver
from qsctl.core.integration._site import Site
from qsctl.core.integration.message import MessageId


class _Flight(NamedTuple):
    """A message in transit."""

    held: HeldMessage
    queue: MessageQueue
    """The queue that it left."""
    receiver: Receiver


class Hop:
    """The messages that one thread has sent and that have not arrived yet."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._in_flight: dict[MessageId, _Flight] = {}

    def send(self, queue: MessageQueue, receiver: Receiver) -> None:
        """Send every message of a queue while the receiver is running; otherwise they remain in it, in order.

        A starting thread wakes the threads that send to it.
        """
        site = self._site
        while receiver.is_running and (held := site.take(queue)) is not None:
            held.move(MessageCause.HOP, entered_at_ns=site.now)
            site.ledger.save(held)
            flight = self._in_flight[held.message.mid] = _Flight(held, queue, receiver)
            site.after(site.settings.icl_delay_ns, lambda flight=flight: self._end(flight))  # type: ignore[misc]

    def take_back(self, receiver: Receiver) -> None:
        """Return the messages in transit to a stopping thread to their former queues, at their positions.

        This happens at once, because a message that is sent after a restart of the thread must not arrive before them.
        """
        for flight in [each for each in self._in_flight.values() if each.receiver is receiver]:
            message = flight.held.message
            del self._in_flight[message.mid]
            self._site.enter(flight.held, flight.queue, MessageCause.RETURN, position=message.position)

    def crash(self) -> None:
        """Forget the messages in transit: their process ended."""
        self._in_flight.clear()

    def _end(self, flight: _Flight) -> None:
        mid = flight.held.message.mid
        if self._in_flight.get(mid) is flight:
            del self._in_flight[mid]
            flight.receiver.arrive(flight.held)
