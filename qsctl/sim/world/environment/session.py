"""The connection between one program and one service: reliable and in order, as in DDS, until the service considers it
gone.

Lost messages are sent again, so that loss is delay; those at a cut link wait for it. A program from which a service has
received nothing for the lease is gone there: messages in transit in either direction are lost, and it is discovered
anew once it sends again [DDS 2.2.3.11].
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
"""After this a message that was lost is sent again."""

RETRANSMISSIONS_MAX: Final = 20

Message = TypeVar("Message")
Deliver: TypeAlias = Callable[[Message], None]


class _Direction(Generic[Message]):
    """One way of a session: in order."""

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
        """Drop what is on its way: it never arrives."""
        self._generation += 1
        self._held.clear()

    def sender_ended(self) -> None:
        """Drop what meets a cut link from now on: the sender, which would send it again, is gone."""
        self._sends_again = False
        if self._network.is_blocked(*self._nodes):
            self._held.clear()

    def go_on(self) -> None:
        """Deliver what waited for the link, if it is there again."""
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
    """One program and one service.

    Args:
        agenda: the clock.
        network: which pairs are cut off.
        program: the program's node.
        service: the service's node.
        lease_ns: after this much silence the service takes the program for gone.
        at_service: receives what the program sends.
        at_program: receives what the service sends.
        opened: called when the service has discovered the program.
        lapsed: called when the service takes the program for gone.
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
        """Whether the service knows the program."""
        self._silent_since: Nanoseconds | None = None
        self._discovery = 0

    def send_to_service(self, messages: Sequence[Inbound]) -> None:
        """Send the program's messages; without a session they are lost."""
        if self.is_open:
            for message in messages:
                self._to_service.send(message)

    def send_to_program(self, message: Outbound) -> None:
        """Send the service's messages; without a session they are lost."""
        if self.is_open:
            self._to_program.send(message)

    def service_started(self) -> None:
        """Note that the service runs, and knows no program yet."""
        self._service_is_up = True
        self.network_changed()

    def service_ended(self) -> None:
        """Note that the service is gone, with what it knew and what was on its way."""
        self._service_is_up = False
        self._close()

    def program_ended(self) -> None:
        """Note that the program is gone without a word; the service finds out by its silence. It never comes back."""
        self._program_is_up = False
        self._to_program.lose_all()
        self._to_service.sender_ended()
        self.network_changed()

    def network_changed(self) -> None:
        """Look at the link again, and at who is there."""
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
