"""A client's participant and the loop that polls its ports.

Decides: the work of a turn, and the order in which a client leaves: its last messages are received before its peers see
it leave.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, Protocol

from qsctl.instant import MILLISECOND_NS, SECOND_NS, Nanoseconds
from qsctl.transport.dds.diagnosis.library_log import LIBRARY_LOG
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import Changes, Discovery

LEAVE_NS: Final[Nanoseconds] = 2 * SECOND_NS
"""Time that a leaving client waits for the receipt of its last messages, which a crashed service never confirms."""


class DomainPort(Protocol):
    """A port of a client domain, which the client's thread polls."""

    def look(self, changes: Changes) -> None:
        """Process the endpoints that appeared and vanished."""

    def flush(self) -> bool:
        """Send the pending messages; return False if some wait for room."""

    def drain(self, timeout_ns: Nanoseconds) -> None:
        """Wait, at most for the timeout, until the sent messages are received."""

    def close(self) -> None:
        """Delete its DDS entities."""


class ClientDomain:
    """A client's participant and its ports, polled by one loop.

    Args:
        participant: of the client.
        discovery: of the participant, if it exists already.
        leave_to: offered the participant and its discovery, without ports, when this is closed; if it returns False,
            they are deleted.
    """

    def __init__(
        self,
        participant: Participant,
        discovery: Discovery | None = None,
        *,
        leave_to: Callable[[Participant, Discovery], bool] = lambda _participant, _discovery: False,
    ) -> None:
        self.participant = participant
        self.discovery = discovery if discovery is not None else Discovery(participant)
        self._leave_to = leave_to
        self._ports: list[DomainPort] = []
        self._is_left = False

    @contextmanager
    def left_on_failure(self) -> Iterator[None]:
        """Close the domain if the `with` block fails, because the caller then has no object to close."""
        with ExitStack() as undo:
            undo.callback(self.close)
            yield
            undo.pop_all()

    def add(self, port: DomainPort) -> None:
        """Add a port to the loop; it is passed the endpoints that are known already."""
        port.look(Changes(self.discovery.endpoints()))
        self._ports.append(port)

    def turn(self, timeout_ns: Nanoseconds) -> None:
        """Send, wait for an event, and let every port process the changes; do nothing after `close`."""
        if self._is_left:  # the participant may be another client's
            return
        done = self._flush()
        if timeout_ns > 0:
            waits_ns = self.participant.boundary.time.waits_ns() if done else MILLISECOND_NS
            self.participant.waiter.wait(timeout_ns if waits_ns is None else min(timeout_ns, waits_ns))
        LIBRARY_LOG.turn()
        self.participant.boundary.turn()
        changes = self.discovery.look()
        for port in self._ports:
            port.look(changes)

    def _flush(self) -> bool:
        done = True
        for port in self._ports:
            done = port.flush() and done
        return done

    def wake(self) -> None:
        """End the wait of another thread's `turn`."""
        if not self._is_left:
            self.participant.waiter.wake()

    def close(self) -> None:
        """Send the pending messages, wait for their receipt, then leave the domain. A second call does nothing.

        Peers are notified of the departure on another path than of the data, and possibly earlier; hence the wait.
        """
        if self._is_left:
            return
        deadline = time.monotonic_ns() + LEAVE_NS
        while not self._flush() and time.monotonic_ns() < deadline:
            self.participant.waiter.wait(MILLISECOND_NS)
        for port in self._ports:
            port.drain(deadline - time.monotonic_ns())
        for port in self._ports:
            port.close()
        self._ports.clear()
        self._is_left = True
        if not self._leave_to(self.participant, self.discovery):
            self.discovery.close()
            self.participant.close()
