"""The peers of a simulated integration engine as its database stores them: senders, receivers and the virtual clock.

Decides the state that a run needs to continue after an earlier one ended or was killed. Each transaction ends with one
such record, with the changes since the previous one. So an engine that is killed after any transaction continues with
senders that hold exactly the messages that it does not have.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from qsctl.core.integration.database import Database
from qsctl.core.integration.message import MessageType
from qsctl.core.integration.records import STREAM, Record
from qsctl.identity import NIL_INCARNATION
from qsctl.instant import Nanoseconds
from qsctl.sim.engine.behaviours import label_of, new_payload
from qsctl.sim.kernel.random import logarithm, uniform
from qsctl.sim.scenario.parts.engine import EngineOutbound


class SenderChange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A change at the sender of one inbound thread."""

    thread: str
    number: int
    """The number of its newest message."""
    sent_count: int
    """The number of messages, from the oldest on, that the engine received of those it held before."""
    sizes_bytes: tuple[int, ...]
    """The sizes of the messages that it has held since then."""


class PeersChanged(msgspec.Struct, frozen=True, array_like=True, tag=6, gc=False):
    """The clock, the totals of all runs, and the changes of senders and receivers since the previous record."""

    stream: str
    position: int
    at_ns: Nanoseconds
    arrived_count: int
    """The number of messages of this instant that senders had to send."""
    planned_count: int
    """The number of stops, outages and failures of this instant that have begun or ended."""
    offered: int
    delivered: int
    failed: int
    lost: int
    unbacked: int
    """The number of messages that are in memory only."""
    incarnation: int = NIL_INCARNATION
    """The incarnation of the database."""
    senders: tuple[SenderChange, ...] = ()
    receivers: tuple[tuple[str, int], ...] = ()
    """For each thread the number of messages it processed."""


class DatabaseMade(msgspec.Struct, frozen=True, array_like=True, tag=7, gc=False):
    """The identity of a recovery database, in its first record and in each snapshot.

    A copy of the file has the same identity.
    """

    stream: str
    position: int
    format: int
    incarnation: int
    """The incarnation, drawn when the database was created, as a queue's is."""
    scenario: str
    """The scenario of its engine."""


StoredRecord: TypeAlias = Record | PeersChanged | DatabaseMade
"""The records of a recovery database's transaction."""


@dataclass(slots=True)
class SenderState:
    """The sender of one inbound thread: the number of its newest message, and the sizes of the messages it holds."""

    number: int = 0
    sizes_bytes: deque[int] = field(default_factory=deque)


@dataclass(slots=True)
class Peers:
    """The state of the engine's peers by the records of a database; `is_known` is False without such a record."""

    is_known: bool = False
    at_ns: Nanoseconds = 0
    arrived_count: int = 0
    planned_count: int = 0
    offered: int = 0
    delivered: int = 0
    failed: int = 0
    lost: int = 0
    unbacked: int = 0
    incarnation: int = NIL_INCARNATION
    senders: dict[str, SenderState] = field(default_factory=dict)
    processed: dict[str, int] = field(default_factory=dict)
    """By outbound thread."""

    def apply(self, record: PeersChanged) -> None:
        """Apply a record; records are applied in their order."""
        self.is_known = True
        self.at_ns, self.arrived_count, self.planned_count = record.at_ns, record.arrived_count, record.planned_count
        self.offered, self.delivered, self.failed = record.offered, record.delivered, record.failed
        self.lost, self.unbacked, self.incarnation = record.lost, record.unbacked, record.incarnation
        for change in record.senders:
            sender = self.senders.setdefault(change.thread, SenderState())
            sender.number = change.number
            for _ in range(min(change.sent_count, len(sender.sizes_bytes))):
                sender.sizes_bytes.popleft()
            sender.sizes_bytes.extend(change.sizes_bytes)
        self.processed.update(record.receivers)

    def snapshot(self) -> PeersChanged:
        """Return a single record with the whole state."""
        return PeersChanged(
            STREAM, 0, self.at_ns, self.arrived_count, self.planned_count, self.offered, self.delivered, self.failed,
            self.lost, self.unbacked, self.incarnation,
            tuple(SenderChange(name, each.number, 0, tuple(each.sizes_bytes)) for name, each in self.senders.items()),
            tuple(self.processed.items()),
        )  # fmt: skip


def peers_of_earlier(database: Database) -> Peers:
    """Return the peers' state estimated from a database of an earlier version; `is_known` is False.

    Such a database has no record of senders: the clock is the latest instant in it, and the number of a sender's newest
    message is that of the newest one in the database.
    """
    made = Peers(at_ns=database.latest_ns)
    for message in (*database.recovery.values(), *database.errors.values()):
        if message.type is MessageType.DATA:
            try:
                label = label_of(message.payload)
            except ValueError:  # an operator sent other data again
                continue
            sender = made.senders.setdefault(label.thread, SenderState())
            sender.number = max(sender.number, label.number)
    return made


@dataclass(slots=True)
class Sender:
    """A sender of one inbound thread, which sends its messages in order and holds those that it cannot send yet."""

    thread: str
    number: int = 0
    held: deque[tuple[int, int]] = field(default_factory=deque)
    """The number and size of each message held."""
    _recorded_count: int = 0
    """The number of messages held when that was last recorded."""
    _sent_count: int = 0
    _is_changed: bool = False

    def offer(self, size_bytes: int) -> None:
        """Add a message to those to be sent."""
        self.number += 1
        self.held.append((self.number, size_bytes))
        self._is_changed = True

    def send(self) -> tuple[int, bytes]:
        """Remove the oldest held message; return its number and data."""
        number, size_bytes = self.held.popleft()
        self._sent_count += 1
        self._is_changed = True
        return number, new_payload(self.thread, number, size_bytes)

    def take_change(self) -> SenderChange | None:
        """Return the change since the last call, or None."""
        if not self._is_changed:
            return None
        sent_count = min(self._sent_count, self._recorded_count)
        added = len(self.held) - (self._recorded_count - sent_count)
        sizes = tuple(self.held[at][1] for at in range(-added, 0)) if added else ()
        self._recorded_count, self._sent_count, self._is_changed = len(self.held), 0, False
        return SenderChange(self.thread, self.number, sent_count, sizes)


def sender_of(thread: str, state: SenderState) -> Sender:
    """Return a sender that continues from a recorded state."""
    count = len(state.sizes_bytes)
    held = deque(enumerate(state.sizes_bytes, state.number - count + 1))
    return Sender(thread, state.number, held, count)


@dataclass(slots=True)
class OutboundPeer:
    """The receiver of one outbound thread, which processes one message at a time."""

    thread: str
    mean_service_ns: float
    is_exponential: bool
    declared: EngineOutbound
    service_key: Any
    answer_key: Any
    reply_key: Any
    processed: int = 0
    presence: int = 0
    """Number of outages and restarts; a service or reply begun before the latest one is void."""
    is_changed: bool = False
    """Whether `processed` has changed and has to be recorded."""

    def service_ns(self) -> Nanoseconds:
        """Return the service time of the message that it begins."""
        if not self.is_exponential:
            return round(self.mean_service_ns)
        return max(1, round(-float(logarithm(uniform(self.service_key, self.processed))) * self.mean_service_ns))

    def refuses(self) -> bool:
        """Return whether it refuses the message in service."""
        return float(uniform(self.answer_key, self.processed)) < self.declared.refuses

    def is_silent(self) -> bool:
        """Return whether it sends no reply to the message in service."""
        return float(uniform(self.reply_key, self.processed)) < self.declared.silent
