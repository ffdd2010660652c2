"""Figures of an engine's databases at one instant: queues, errors by number, last messages by thread.

Decides: how one instant is compared with an earlier one. A message that is new in a queue has arrived, one that is
missing has left: both counts are lower bounds, since messages that arrived and left in between are in neither. The
change of a queue's length is exact, and so is the time at which it would be empty at that rate.

A listing has the clock of its host, a date or not, or UTC: `TakenAt` has the instant on both, and an age is counted on
the clock of its source.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from qsctl.core.integration.message import MessageId, State
from qsctl.dumps.groups import NO_THREAD, thread_of
from qsctl.dumps.model import ListedMessage
from qsctl.dumps.moments import DAY_NS, SECOND_NS, Moment
from qsctl.dumps.states import is_error, meaning_of

_SKEW_NS: Final = 300 * SECOND_NS
"""By how much a time of day may be later than the listing that it is in: the clocks of two hosts."""


class TakenAt(NamedTuple):
    """The time of a listing, or the latest time of a database's clock."""

    local: Moment
    """On the clock of the engine's host."""
    utc_ns: int

    @classmethod
    def of_clock(cls, seconds: float) -> TakenAt:
        """Return an instant of this machine's clock, in seconds since 1970."""
        local = datetime.fromtimestamp(seconds)
        return cls(_moment_of(local), round(seconds * SECOND_NS))

    @classmethod
    def of_local(cls, local: datetime) -> TakenAt:
        """Return an instant of this machine's local clock."""
        return cls(_moment_of(local), round(local.timestamp()) * SECOND_NS)

    @classmethod
    def of_engine(cls, at_ns: int) -> TakenAt:
        """Return an instant of an engine's own clock."""
        return cls(Moment(at_ns, is_utc=True), at_ns)

    def age_ns(self, created: Moment) -> int:
        """Return the time from `created` to this instant; a time of day without date is taken to be of the last day."""
        if created.has_date:
            now_ns = self.utc_ns if created.is_utc else self.local.at_ns
            return max(0, now_ns - created.at_ns)
        since_ns = (self.local.at_ns - created.at_ns) % DAY_NS
        return 0 if DAY_NS - since_ns <= _SKEW_NS else since_ns


def _moment_of(local: datetime) -> Moment:
    days = local.toordinal() - datetime(1970, 1, 1).toordinal()
    within_s = local.hour * 3600 + local.minute * 60 + local.second
    return Moment(days * DAY_NS + within_s * SECOND_NS)


def queue_owner(message: ListedMessage) -> str:
    """Return the thread whose queue a message is in: of a post-translation queue its destination, whichever thread
    holds it.
    """
    is_for_destination = message.state in {State.POST_TRANSLATION, State.SENT_TO_DESTINATION}
    return message.destination if is_for_destination and message.destination else thread_of(message)


class QueueKey(NamedTuple):
    """The key of a queue: several threads have one of each kind."""

    thread: str
    state: int
    name: str


@dataclass(slots=True)
class WaitingMessages:
    """The messages of one queue at one instant."""

    mids: set[int] | array[int] = field(default_factory=set)
    """Hashes of the message ids, of 64 bits, since a series has millions of them; an array after `seal`."""
    size_bytes: int = 0
    oldest_age_ns: int | None = None


@dataclass
class EngineFigures:
    """Figures of the recovery and the error database at one instant."""

    taken: TakenAt
    sources: tuple[str, ...] = ()
    """The files that the figures were read from."""
    queues: dict[QueueKey, WaitingMessages] = field(default_factory=dict)
    errors: dict[int, int] = field(default_factory=dict)
    """Number of messages in the error database, by error number."""
    errors_of: dict[tuple[str, int], int] = field(default_factory=dict)
    """Number of messages in the error database, by the thread in which they failed and the error number."""
    newest_age_ns: dict[str, int] = field(default_factory=dict)
    """Age of the newest message in either database, by source thread."""
    received: Mapping[str, int] = field(default_factory=dict)
    """Number of messages that each inbound thread received in all runs; known for qsctl's own databases only."""
    delivered: Mapping[str, int] = field(default_factory=dict)
    _failed: set[MessageId] = field(default_factory=set)

    def add(self, messages: Iterable[ListedMessage]) -> None:
        """Add messages to the figures; a message that another file contained already is not counted again."""
        for message in messages:
            age_ns = None if message.created is None else self.taken.age_ns(message.created)
            source = message.source or NO_THREAD
            if age_ns is not None:
                self.newest_age_ns[source] = min(age_ns, self.newest_age_ns.get(source, age_ns))
            if is_error(message.state):
                if message.mid not in self._failed:
                    self._failed.add(message.mid)
                    self.errors[message.state] = self.errors.get(message.state, 0) + 1
                    failed = thread_of(message), message.state
                    self.errors_of[failed] = self.errors_of.get(failed, 0) + 1
                continue
            key = QueueKey(queue_owner(message), message.state, message.queue or meaning_of(message.state).name)
            queue = self.queues.setdefault(key, WaitingMessages())
            assert isinstance(queue.mids, set), "figures that are sealed"
            known = hash(message.mid)
            if known in queue.mids:
                continue
            queue.mids.add(known)
            queue.size_bytes += message.size_bytes or 0
            if age_ns is not None:
                queue.oldest_age_ns = max(age_ns, queue.oldest_age_ns or 0)

    def seal(self) -> None:
        """Convert the figures to a compact form, after the last message was added."""
        self._failed.clear()
        for queue in self.queues.values():
            queue.mids = array("q", queue.mids)

    @property
    def recovery_messages(self) -> int:
        """Messages of the recovery database."""
        return sum(len(each.mids) for each in self.queues.values())

    @property
    def error_messages(self) -> int:
        """Messages of the error database."""
        return sum(self.errors.values())


@dataclass(frozen=True, slots=True)
class QueueTrend:
    """One queue at one instant, and what happened to it since an earlier one."""

    key: QueueKey
    messages: int
    size_bytes: int
    oldest_age_ns: int | None
    arrived: int | None = None
    """Lower bound of the messages that arrived since then; None: there is no earlier instant."""
    left: int | None = None
    before: int | None = None
    """Messages that were in it then."""
    span_ns: int = 0

    @property
    def growth_per_s(self) -> float | None:
        """The growth of the queue in messages a second; negative if it shrinks."""
        if self.before is None or self.span_ns <= 0:
            return None
        return (self.messages - self.before) * SECOND_NS / self.span_ns

    @property
    def empty_after_ns(self) -> int | None:
        """The time until the queue is empty at this rate; None if it never is, or is empty already."""
        growth = self.growth_per_s
        if growth is None or growth >= 0 or not self.messages:
            return None
        return round(self.messages / -growth * SECOND_NS)


def trends(now: EngineFigures, before: EngineFigures | None) -> list[QueueTrend]:
    """Return the trends of all queues, including those that became empty since `before`, by thread and stage."""
    nothing = WaitingMessages()
    if before is None:
        return [
            QueueTrend(key, len(each.mids), each.size_bytes, each.oldest_age_ns)
            for key, each in sorted(now.queues.items())
        ]
    span_ns = now.taken.utc_ns - before.taken.utc_ns
    found = []
    for key in sorted({*now.queues, *before.queues}):
        held, then = now.queues.get(key, nothing), before.queues.get(key, nothing)
        these, those = set(held.mids), set(then.mids)
        arrived, left = len(these - those), len(those - these)
        figures = len(held.mids), held.size_bytes, held.oldest_age_ns
        found.append(QueueTrend(key, *figures, arrived, left, len(then.mids), span_ns))
    return found


@dataclass(frozen=True)
class EngineHistory:
    """The observations of an engine: the newest instant, the one that it is compared with, and earlier ones."""

    now: EngineFigures
    before: EngineFigures | None
    last_receive_ns: Mapping[str, int]
    """Time from the arrival of the newest message in any listing to the newest instant, by source thread."""
    looks: Sequence[EngineFigures] = ()
    """Every observed instant, in the order of time."""

    def trends(self) -> list[QueueTrend]:
        """Return the trends of all queues from `before` to `now`."""
        return trends(self.now, self.before)

    @property
    def threads(self) -> set[str]:
        """The threads that were observed."""
        known = {key.thread for each in (self.now, self.before) if each is not None for key in each.queues}
        return known | set(self.last_receive_ns) | set(self.now.received) | set(self.now.delivered)


def history_of(looks: Sequence[EngineFigures], over_ns: int = 0) -> EngineHistory:
    """Return the history of an engine observed at several instants.

    Args:
        looks: in the order of time; at least one.
        over_ns: how far back the newest one is compared: with the newest of those that are at least that much earlier,
            or the oldest where none is. 0: with the one before it.
    """
    *earlier, now = looks
    last_receive_ns: dict[str, int] = {}
    for each in looks:
        since_ns = now.taken.utc_ns - each.taken.utc_ns
        for thread, age_ns in each.newest_age_ns.items():
            last_receive_ns[thread] = min(age_ns + since_ns, last_receive_ns.get(thread, age_ns + since_ns))
    before = None
    if earlier:
        old_enough = [each for each in earlier if now.taken.utc_ns - each.taken.utc_ns >= over_ns]
        before = old_enough[-1] if old_enough else earlier[0]
    return EngineHistory(now, before, last_receive_ns, looks)
