"""The network between nodes: datagrams that are lost, duplicated, delayed, reordered, held, or cut off.

With a bandwidth each direction between two nodes is a line of its own that sends one datagram after the other, those
that pass others first.

The pairs that are cut off are cut off for the links to clients, too (`session.py`). A node is a name: a replica's
number, or the name of a client's program.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from qsctl.instant import MICROSECOND_NS, SECOND_NS, Nanoseconds
from qsctl.sim.world.environment.agenda import Action, WorldAgenda


@dataclass(slots=True)
class Conditions:
    """The delays and the probabilities of loss and duplication of a network; a schedule may change them at any time."""

    delay_min_ns: Nanoseconds = 50 * MICROSECOND_NS
    delay_max_ns: Nanoseconds = 50 * MICROSECOND_NS
    loss: float = 0.0
    """The probability that a datagram never arrives."""
    duplication: float = 0.0
    """The probability that a datagram arrives twice."""


class ThrottledLink:
    """One direction between two nodes: a message is sent once the last of its datagrams is.

    Args:
        agenda: the clock.
        bits_per_second: the bandwidth.
    """

    def __init__(self, agenda: WorldAgenda, bits_per_second: int) -> None:
        self._agenda = agenda
        self._bits_per_second = bits_per_second
        self._passing: deque[tuple[int, Action | None]] = deque()
        self._others: deque[tuple[int, Action | None]] = deque()
        """Octets of each datagram that waits, and what follows once it is sent."""
        self._is_busy = False

    def put(self, sizes_bytes: Sequence[int], sent: Action, *, passes: bool) -> None:
        """Append the datagrams of a message."""
        waiting = self._passing if passes else self._others
        waiting += [(size_bytes, None) for size_bytes in sizes_bytes[:-1]]
        waiting.append((sizes_bytes[-1], sent))
        if not self._is_busy:
            self._send_next()

    def _send_next(self) -> None:
        waiting = self._passing or self._others
        self._is_busy = bool(waiting)
        if waiting:
            size_bytes, sent = waiting.popleft()
            duration_ns = 8 * size_bytes * SECOND_NS // self._bits_per_second
            self._agenda.after(duration_ns, partial(self._end, sent))

    def _end(self, sent: Action | None) -> None:
        if sent is not None:
            sent()
        self._send_next()


class Network:
    """A datagram network whose links can be cut off or clogged, by pair of nodes and direction.

    Args:
        agenda: the clock.
        random: draws delays, losses and duplicates.
        conditions: the present ones.
        bits_per_second: the bandwidth of each direction between two nodes; 0: unlimited.
    """

    def __init__(self, agenda: WorldAgenda, random: Random, conditions: Conditions, bits_per_second: int = 0) -> None:
        self._agenda = agenda
        self._random = random
        self.conditions = conditions
        self._blocked: set[tuple[str, str]] = set()
        self._clogged: dict[tuple[str, str], list[Action]] = {}
        self._bits_per_second = bits_per_second
        self._lines: dict[tuple[str, str], ThrottledLink] = {}
        self.on_change: list[Action] = []
        """Called when links are cut or joined again."""

    def delay_ns(self) -> Nanoseconds:
        """Draw the delay of one datagram."""
        conditions = self.conditions
        spread = conditions.delay_max_ns - conditions.delay_min_ns
        return conditions.delay_min_ns + (int(self._random.random() * spread) if spread > 0 else 0)

    def is_lost(self) -> bool:
        """Draw whether a datagram is lost."""
        return self.conditions.loss > 0 and self._random.random() < self.conditions.loss

    @property
    def is_whole(self) -> bool:
        """Return whether no link is cut off or clogged."""
        return not self._blocked and not self._clogged

    def is_blocked(self, sender: str, receiver: str) -> bool:
        """Return whether the link from one node to another is cut: datagrams are dropped."""
        return (sender, receiver) in self._blocked

    def is_clogged(self, sender: str, receiver: str) -> bool:
        """Return whether the link from one node to another is clogged: datagrams are held until `heal`."""
        return (sender, receiver) in self._clogged

    def send_message(
        self, sender: str, receiver: str, arrive: Action, sizes_bytes: Sequence[int], *, passes: bool
    ) -> None:
        """Send the datagrams of a message as the bandwidth allows; `arrive` is called once for each copy that arrives.

        Args:
            sender: the node that sends.
            receiver: the node that it is sent to.
            arrive: processes the message.
            sizes_bytes: the octets of each datagram.
            passes: whether it is sent before messages that wait and do not pass others.
        """
        if not self._bits_per_second:
            self.send(sender, receiver, arrive)
            return
        line = self._lines.setdefault((sender, receiver), ThrottledLink(self._agenda, self._bits_per_second))
        line.put(sizes_bytes, lambda: self.send(sender, receiver, arrive), passes=passes)

    def send(self, sender: str, receiver: str, arrive: Action) -> None:
        """Send one datagram; `arrive` is called once for each copy that arrives."""
        if self.is_blocked(sender, receiver) or self.is_lost():
            return
        copies = 1
        if self.conditions.duplication > 0 and self._random.random() < self.conditions.duplication:
            copies = 2
        for _ in range(copies):
            self._agenda.after(self.delay_ns(), lambda: self._arrive(sender, receiver, arrive))

    def block(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Cut links in the given direction; datagrams in transit on them are lost, too."""
        self._blocked.update(pairs)
        self._changed()

    def clog(self, sender: str, receiver: str) -> None:
        """Hold all datagrams from one node to another until `heal`."""
        self._clogged.setdefault((sender, receiver), [])

    def heal(self, pairs: Iterable[tuple[str, str]] | None = None) -> None:
        """Join these links again, or all of them; the held datagrams then arrive in their order."""
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
