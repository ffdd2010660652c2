"""The network between replicas: datagrams that may be lost, doubled, late, overtaken, held, or cut off.

Which pairs are cut off holds for the links to clients too, see `session`. A node is a name: a replica's number, or
the name of a client's program.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from qsctl.instant import MICROSECOND_NS, Nanoseconds
from qsctl.sim.world.environment.agenda import Action, WorldAgenda


@dataclass(slots=True)
class Conditions:
    """The conditions of a network: delays, losses and cut links; a schedule may change them at any time."""

    delay_min_ns: Nanoseconds = 50 * MICROSECOND_NS
    delay_max_ns: Nanoseconds = 50 * MICROSECOND_NS
    loss: float = 0.0
    """The probability that a datagram never arrives."""
    duplication: float = 0.0
    """The probability that one arrives twice."""


class Network:
    """Carries datagrams from node to node."""

    def __init__(self, agenda: WorldAgenda, random: Random, conditions: Conditions) -> None:
        self._agenda = agenda
        self._random = random
        self.conditions = conditions
        self._blocked: set[tuple[str, str]] = set()
        self._clogged: dict[tuple[str, str], list[Action]] = {}
        self.on_change: list[Action] = []
        """Called when a pair is cut off or joined again."""

    def delay_ns(self) -> Nanoseconds:
        """Draw how long something is on its way."""
        conditions = self.conditions
        spread = conditions.delay_max_ns - conditions.delay_min_ns
        return conditions.delay_min_ns + (int(self._random.random() * spread) if spread > 0 else 0)

    def is_lost(self) -> bool:
        """Draw whether a datagram is lost."""
        return self.conditions.loss > 0 and self._random.random() < self.conditions.loss

    @property
    def is_whole(self) -> bool:
        """Return whether everything gets through."""
        return not self._blocked and not self._clogged

    def is_blocked(self, sender: str, receiver: str) -> bool:
        """Return whether nothing gets through from one node to another."""
        return (sender, receiver) in self._blocked

    def is_clogged(self, sender: str, receiver: str) -> bool:
        """Return whether everything from one node to another is held."""
        return (sender, receiver) in self._clogged

    def send(self, sender: str, receiver: str, arrive: Action) -> None:
        """Carry one datagram: `arrive` is called at each arrival of it."""
        if self.is_blocked(sender, receiver) or self.is_lost():
            return
        copies = 1
        if self.conditions.duplication > 0 and self._random.random() < self.conditions.duplication:
            copies = 2
        for _ in range(copies):
            self._agenda.after(self.delay_ns(), lambda: self._arrive(sender, receiver, arrive))

    def block(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Let nothing through between these nodes, in this direction; what is on its way is lost too."""
        self._blocked.update(pairs)
        self._changed()

    def clog(self, sender: str, receiver: str) -> None:
        """Hold everything from one node to another, until `heal`."""
        self._clogged.setdefault((sender, receiver), [])

    def heal(self, pairs: Iterable[tuple[str, str]] | None = None) -> None:
        """Let everything through again, or between these nodes only; what was held arrives now, in its order."""
        healed = sorted({*self._blocked, *self._clogged} if pairs is None else set(pairs))
        for pair in healed:
            self._blocked.discard(pair)
            for arrive in self._clogged.pop(pair, ()):
                self._agenda.after(self.delay_ns(), arrive)
        self._changed()

    def _arrive(self, sender: str, receiver: str, arrive: Action) -> None:
        if self.is_blocked(sender, receiver):
            return
        held = self._clogged.get((sender, receiver))
        if held is None:
            arrive()
        else:
            held.append(arrive)

    def _changed(self) -> None:
        for action in self.on_change:
            action()
