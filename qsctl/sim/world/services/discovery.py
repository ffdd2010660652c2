"""Discovery in a world: the other processes that each service has discovered [QS 7.1].

Decides: a service discovers another one once datagrams pass in both directions, and considers it gone after it was
silent for the lease.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from qsctl.instant import Nanoseconds
from qsctl.sim.world.environment.agenda import WorldAgenda
from qsctl.sim.world.environment.network import Network
from qsctl.sim.world.services.service import SimulatedService
from qsctl.transport.dds.replicas.letter_box import Seen


class SimulatedDiscovery:
    """The discovery of services by each other.

    Args:
        services: by number.
        agenda: the clock.
        network: contains the cut links.
        lease_ns: after this much silence a process is considered gone.
    """

    def __init__(
        self, services: Mapping[int, SimulatedService], agenda: WorldAgenda, network: Network, lease_ns: Nanoseconds
    ) -> None:
        self._services = services
        self._agenda = agenda
        self._network = network
        self._lease_ns = lease_ns
        self._handle = 0
        self._known: dict[tuple[int, int], tuple[int, int, int]] = {}
        """By pair of services: the life counts of both when one discovered the other, and the handle of the discovery.
        """
        self._silent: dict[tuple[int, int], Nanoseconds] = {}
        """Since when a discovered service has been silent, by pair."""

    def changed(self) -> None:
        """Update discovery and silence of all pairs, after a process began or ended or the network changed."""
        for one, service in self._services.items():
            for other, its in self._services.items():
                if one == other or service.process is None:
                    continue
                known = self._known.get((one, other))
                if known is not None and known[0] != service.life_count:
                    known = None
                    self._known.pop((one, other))
                    self._silent.pop((one, other), None)
                is_heard = its.process is not None and not self._is_cut(one, other)
                if known is not None and (not is_heard or known[1] != its.life_count):
                    self._fall_silent(one, other)
                elif known is not None:
                    self._silent.pop((one, other), None)
                if is_heard and (known is None or known[1] != its.life_count):
                    lives = (service.life_count, its.life_count)
                    self._agenda.after(self._network.delay_ns(), partial(self._appear, (one, other), lives))

    def left(self, number: int) -> None:
        """Let the other services lose a process at once that deleted its endpoints."""
        for pair in [pair for pair in self._known if pair[1] == number]:
            life_count, _, handle = self._known.pop(pair)
            self._silent.pop(pair, None)
            self._vanish(self._services[pair[0]], life_count, handle)

    def introduce(self, service: SimulatedService, seen: Seen) -> None:
        """Let a service discover a stranger, for the time of the lease."""
        process = service.process
        if process is None:
            return
        self._handle += 1
        handle, life_count = self._handle, service.life_count
        for link in process.links.opened.values():
            link.box.appeared(handle, seen)
        self._agenda.after(self._lease_ns, lambda: self._vanish(service, life_count, handle))

    def _is_cut(self, one: int, other: int) -> bool:
        blocked = self._network.is_blocked
        return blocked(str(one), str(other)) or blocked(str(other), str(one))

    def _fall_silent(self, one: int, other: int) -> None:
        if (one, other) in self._silent:
            return
        since = self._silent[one, other] = self._agenda.now
        self._agenda.after(self._lease_ns, lambda: self._lapse((one, other), since))

    def _lapse(self, pair: tuple[int, int], since: Nanoseconds) -> None:
        known = self._known.get(pair)
        if known is None or self._silent.get(pair) != since:
            return
        del self._known[pair], self._silent[pair]
        self._vanish(self._services[pair[0]], known[0], known[2])
        self.changed()

    def _appear(self, pair: tuple[int, int], lives: tuple[int, int]) -> None:
        service, its = (self._services[each] for each in pair)
        if service.process is None or its.process is None or (service.life_count, its.life_count) != lives:
            return
        if self._is_cut(*pair):
            return
        former = self._known.get(pair)
        if former is not None and former[:2] == lives:
            return
        self._handle += 1
        for kind, link in service.process.links.opened.items():
            if kind in its.process.links.opened:
                link.box.appeared(self._handle, its.process.links.own)
        if former is not None:  # the lease of the name's earlier process has not expired
            self._agenda.after(self._lease_ns, lambda: self._vanish(service, lives[0], former[2]))
        self._known[pair] = (*lives, self._handle)
        self._silent.pop(pair, None)
        service.look_again()

    def _vanish(self, service: SimulatedService, life_count: int, handle: int) -> None:
        if service.process is None or service.life_count != life_count:
            return
        for link in service.process.links.opened.values():
            link.box.vanished(handle)
        service.look_again()
