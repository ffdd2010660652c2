"""The connection between one program and one service: reliable and in order, as in DDS, until the lease expires.

A lost message is retransmitted, so that loss becomes delay; messages at a cut link wait until it is joined. Once a
service has received nothing from a program for the lease, it considers the program gone: messages in transit in either
direction are lost, and the program is discovered anew when it can be received again [DDS 2.2.3.11].
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from qsctl.core.messages import Inbound, Outbound
from qsctl.instant import MILLISECOND_NS, Nanoseconds
from qsctl.sim.world.environment.agenda import Action, WorldAgenda
from qsctl.sim.world.environment.network import Network

RETRANSMISSION_NS: Final[Nanoseconds] = 10 * MILLISECOND_NS
"""The delay after which a lost message is retransmitted."""

RETRANSMISSIONS_MAX: Final = 20

Message = TypeVar("Message")
Deliver: TypeAlias = Callable[[Message], None]


class _Direction(Generic[Message]):
    """One direction of a session; it delivers in order."""

    def __init__(
        self, agenda: WorldAgenda, network: Network, sender: str, receiver: str, deliver: Deliver[Message]
    ) -> None:
        self._agenda = agenda
        self._network = network
        self._nodes = (sender, receiver)
        self._deliver = deliver
        self._last_ns: Nanoseconds = 0
        self._generation = 0
        self._held: deque[Message] = deque()
        self._sends_again = True

    @property
    def is_cut(self) -> bool:
        return self._network.is_blocked(*self._nodes) or self._network.is_clogged(*self._nodes)

    def send(self, message: Message) -> None:
        network = self._network
        delay_ns = network.delay_ns()
        for _ in range(RETRANSMISSIONS_MAX):
            if not network.is_lost():
                break
            delay_ns += RETRANSMISSION_NS
        self._last_ns = max(self._last_ns, self._agenda.now + delay_ns)
        generation = self._generation
        self._agenda.at(self._last_ns, lambda: self._arrive(generation, message))

    def lose_all(self) -> None:
        """Drop all messages in transit."""
        self._generation += 1
        self._held.clear()

    def sender_ended(self) -> None:
        """Drop from now on the messages that reach a cut link: the sender that would retransmit them has ended."""
        self._sends_again = False
        if self._network.is_blocked(*self._nodes):
            self._held.clear()

    def go_on(self) -> None:
        """Deliver the messages that waited for the link, if it is joined again."""
        while self._held and not self.is_cut:
            self._deliver(self._held.popleft())

    def _arrive(self, generation: int, message: Message) -> None:
        if generation != self._generation:
            return
        if not self._sends_again and self._network.is_blocked(*self._nodes):
            return
        if self.is_cut or self._held:
            self._held.append(message)
        else:
            self._deliver(message)


class Session:
    """The connection between one program and one service.

    Args:
        agenda: the clock.
        network: contains the links that are cut off.
        program: the program's node.
        service: the service's node.
        lease_ns: after this much silence the service considers the program gone.
        at_service: receives the program's messages.
        at_program: receives the service's messages.
        opened: called when the service has discovered the program.
        lapsed: called when the service considers the program gone.
    """

    def __init__(
        self,
        agenda: WorldAgenda,
        network: Network,
        program: str,
        service: str,
        lease_ns: Nanoseconds,
        *,
        at_service: Deliver[Inbound],
        at_program: Deliver[Outbound],
        opened: Action,
        lapsed: Action,
    ) -> None:
        self._agenda = agenda
        self._network = network
        self.program = program
        self.service = service
        self._lease_ns = lease_ns
        self._to_service: _Direction[Inbound] = _Direction(agenda, network, program, service, at_service)
        self._to_program: _Direction[Outbound] = _Direction(agenda, network, service, program, at_program)
        self._opened = opened
        self._lapsed = lapsed
        self._program_is_up = True
        self._service_is_up = False
        self.is_open = False
        """Whether the service has discovered the program."""
        self._silent_since: Nanoseconds | None = None
        self._discovery = 0

    def send_to_service(self, messages: Sequence[Inbound]) -> None:
        """Send messages of the program; they are lost unless the service has discovered it."""
        if self.is_open:
            for message in messages:
                self._to_service.send(message)

    def send_to_program(self, message: Outbound) -> None:
        """Send a message of the service; it is lost unless the service has discovered the program."""
        if self.is_open:
            self._to_program.send(message)

    def service_started(self) -> None:
        """Note that the service runs and has to discover the program."""
        self._service_is_up = True
        self.network_changed()

    def service_ended(self) -> None:
        """Note that the service ended: close the connection and drop the messages in transit."""
        self._service_is_up = False
        self._close()

    def program_ended(self) -> None:
        """Note that the program ended, which the service notices by its silence; a restart uses a new session."""
        self._program_is_up = False
        self._to_program.lose_all()
        self._to_service.sender_ended()
        self.network_changed()

    def network_changed(self) -> None:
        """Begin or end the silence or the discovery, after a change of the link or of either side."""
        is_heard = self._program_is_up and not self._network.is_blocked(self.program, self.service)
        if self.is_open:
            if is_heard:
                self._silent_since = None
            elif self._silent_since is None:
                self._silent_since = self._agenda.now
                since = self._agenda.now
                self._agenda.after(self._lease_ns, lambda: self._lapse(since))
            self._to_service.go_on()
            self._to_program.go_on()
        elif is_heard and self._service_is_up:
            self._discovery += 1
            discovery = self._discovery
            self._agenda.after(self._network.delay_ns(), lambda: self._discover(discovery))

    def _discover(self, discovery: int) -> None:
        heard = self._program_is_up and not self._network.is_blocked(self.program, self.service)
        if discovery == self._discovery and not self.is_open and heard and self._service_is_up:
            self.is_open = True
            self._silent_since = None
            self._opened()

    def _lapse(self, since: Nanoseconds) -> None:
        if self._silent_since == since and self.is_open:
            self._close()
            self._lapsed()
            self.network_changed()

    def _close(self) -> None:
        self.is_open = False
        self._silent_since = None
        self._to_service.lose_all()
        self._to_program.lose_all()
