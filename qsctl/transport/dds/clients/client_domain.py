"""A client's participant and the pump that turns its ports.

Decides: what a turn does, and how a client leaves: its last words are received before its peers see it go.
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
"""Time that a leaving client waits until its last messages are received; a service that is gone never receives them."""


class DomainPort(Protocol):
    """The ports of a client domain that its thread polls."""

    def look(self, changes: Changes) -> None:
        """Process the endpoints that appeared and vanished."""

    def flush(self) -> bool:
        """Send what was put. False: some waits for room."""

    def drain(self, timeout_ns: Nanoseconds) -> None:
        """Wait until what was sent is received, at most so long."""

    def close(self) -> None:
        """Delete the entities."""


class ClientDomain:
    """A client's participant, its ports, and one pump for all of them.

    Args:
        participant: of the client.
        discovery: of the participant, where there is one already.
        leave_to: receives the participant and its discovery, without ports, when this is closed; False: it does not
            keep them, and they are deleted.
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
        """Leave the domain again where what is made inside cannot be: its maker never gets it, to close it."""
        with ExitStack() as undo:
            undo.callback(self.close)
            yield
            undo.pop_all()

    def add(self, port: DomainPort) -> None:
        """Let the pump turn this port; it learns of the endpoints that are there already."""
        port.look(Changes(self.discovery.endpoints()))
        self._ports.append(port)

    def turn(self, timeout_ns: Nanoseconds) -> None:
        """Send, wait for something to happen, and let every port process what changed; nothing, once it was closed."""
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
        """Send what can be sent, let it be received, then leave the domain.

        A peer learns of the departure on another way than of the data, and may learn of it first. May be repeated.
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
