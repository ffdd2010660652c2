"""Message rows and counters from an integration engine's events: one row for each visit of a message to a queue.

Decides: what a visit is. It begins when a message is enqueued and ends when the message is dequeued for work or sent:
its duration is the wait. A message that returns, from a procedure that requested another run or from a stopped thread,
begins another visit. Clients are the threads; of the post-translation queues, the destination. The last queue of an
outbound thread has acknowledgments: its visit is recorded once the connection has acknowledged the message (with a
reply, where one is awaited), or once the message returned or failed, or the run ends.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from qsctl.core.integration.events import Changed, Ended, Entered, Event, Fate, Left, Recovered
from qsctl.core.integration.message import STATE_NAMES, MessageId, State
from qsctl.eventlog.outcomes import Outcome
from qsctl.eventlog.queue_counts import QueueCounts, counter_columns
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.sim.model import EVENT_ROW, NEVER, Rows
from qsctl.sim.model import Event as LogEvent
from qsctl.sim.recording.queue_log import QueueLog

QUEUES: Final = (
    State.INBOUND_PRE_TPS,
    State.INBOUND_POST_TPS,
    State.PRE_TRANSLATION,
    State.ROUTE_DETAIL,
    State.PARTIAL,
    State.POST_TRANSLATION,
    State.OUTBOUND_PRE_TPS,
    State.OUTBOUND_POST_TPS,
)
"""The eight queues, in the order in which a message meets them."""

QUEUE_NAMES: Final = tuple(STATE_NAMES[state].replace(" ", "-") for state in QUEUES)
_LAST: Final = State.OUTBOUND_POST_TPS
_INDEX: Final = {state: index for index, state in enumerate(QUEUES)}
_OUTCOME: Final = {
    Fate.PASSED: Outcome.DELIVERED,
    Fate.INTERRUPTED: Outcome.ELIDED,
    Fate.LOST: Outcome.DISCARDED,
    Fate.ABANDONED: Outcome.DISCARDED,
    Fate.DELETED: Outcome.DISCARDED,
}
"""`elided`, which is not a loss: its process ended, and another visit of the message comes from the recovery
database.
"""


class VisitLog:
    """The event log of a simulated engine: rows until they are collected, counters until the end."""

    def __init__(self, clients: list[str], warm_up_ns: Nanoseconds, *, keeps_rows: bool, rows_max: int) -> None:
        self._log = QueueLog[tuple[str, State]](warm_up_ns, keeps_rows=keeps_rows, rows_max=rows_max, tries=True)
        self._clients = {name: number for number, name in enumerate(clients)}
        self._events: list[tuple[int, ...]] = []
        self._written: dict[MessageId, tuple[str, Nanoseconds, int, int]] = {}
        """Visits to the last queue of messages on their way: owner, when it began, size, wait."""
        self._inside: dict[tuple[MessageId, State], tuple[Nanoseconds, int, str]] = {}
        self._failed: dict[str, int] = {}
        self._lost = 0
        self._recovered = 0

    @property
    def is_full(self) -> bool:
        """Return whether the rows must be collected."""
        return self._log.is_full

    def collect(self) -> Rows:
        """Return the rows since the last call."""
        return self._log.collect()

    def take_events(self) -> Rows:
        """Return the events since the last call."""
        rows = np.array(self._events, EVENT_ROW)
        self._events = []
        return rows

    def note(self, event: Event) -> None:
        """Add one event to the rows and counters."""
        self._log.reach(event.at_ns)
        match event:
            case Entered(at_ns, _, owner, queue, mid, _, payload):
                size_bytes = len(payload)
                if queue is _LAST:
                    self._end_written(mid, NEVER)
                self._inside[mid, queue] = (at_ns, size_bytes, owner)
                self._log.of((owner, queue)).grow(size_bytes)
            case Left(at_ns, _, owner, queue, mid, fate):
                entered_ns, size_bytes, _ = self._inside.pop((mid, queue))
                self._log.of((owner, queue)).shrink(size_bytes)
                if queue is _LAST and fate is Fate.PASSED:
                    self._written[mid] = (owner, entered_ns, size_bytes, at_ns - entered_ns)
                else:
                    self._end(owner, queue, entered_ns, size_bytes, at_ns - entered_ns, _OUTCOME[fate])
            case Ended(at_ns, mid, _, _, thread, fate):
                self._end_written(mid, at_ns if fate is Fate.DELIVERED else NEVER)
                if fate is Fate.FAILED:
                    self._failed[thread] = self._failed.get(thread, 0) + 1
                self._lost += fate is Fate.LOST
            case Recovered():
                self._recovered += 1
            case Changed(at_ns, what, name, is_up):
                self._changed(at_ns, what, name, is_up)
            case _:
                pass  # the others add nothing to what is in the rows

    def hold(self) -> None:
        """End the run: messages still in a queue get the outcome `held`."""
        for mid in list(self._written):
            self._end_written(mid, NEVER)
        for (_, queue), (entered_ns, size_bytes, owner) in self._inside.items():
            self._end(owner, queue, entered_ns, size_bytes, NEVER, Outcome.HELD)
        self._inside.clear()

    def by_queue(self) -> dict[tuple[str, State], QueueCounts]:
        """Return the counters by thread and queue; queues in the order in which a message passes them."""
        counts = self._log.counts
        return {key: counts[key] for key in sorted(counts, key=lambda key: (self._clients[key[0]], _INDEX[key[1]]))}

    def counters(self, observed_ns: Nanoseconds) -> dict[str, Any]:
        """Return the counters as columns, with one row for each thread and queue that a message entered."""
        if observed_ns > 0:
            self._log.reach(INFINITE_NS)
        keys = self.by_queue()
        return counter_columns(
            list(keys.values()),
            [self._clients[owner] for owner, _ in keys],
            [owner for owner, _ in keys],
            [QUEUE_NAMES[_INDEX[queue]] for _, queue in keys],
            [0] * len(keys),
            observed_ns,
            [queue is _LAST for _, queue in keys],
        )

    def totals(self, at_ns: Nanoseconds) -> None:
        """Add the events that are totals of the run, at its end."""
        for thread, count in sorted(self._failed.items()):
            self._raise(at_ns, LogEvent.FAILED_MESSAGES, thread, count)

    def _changed(self, at_ns: Nanoseconds, what: str, name: str, is_up: bool) -> None:
        if what == "process":
            kind = LogEvent.PROCESS_STARTED if is_up else LogEvent.PROCESS_STOPPED
            self._raise(at_ns, kind, f"{name}_xlate", self._recovered if is_up else self._lost)
            self._lost = self._recovered = 0
        elif what == "connection":
            self._raise(at_ns, LogEvent.CONNECTED if is_up else LogEvent.DISCONNECTED, name, 0)
        else:
            self._raise(at_ns, LogEvent.THREAD_STARTED if is_up else LogEvent.THREAD_STOPPED, name, 0)

    def _raise(self, at_ns: Nanoseconds, kind: LogEvent, client: str, value: int) -> None:
        self._events.append((at_ns, value, self._clients[client], -1, int(kind)))

    def _end_written(self, mid: MessageId, acknowledged_at_ns: Nanoseconds) -> None:
        """Record the visit to the last queue of a message that was sent, unless it is recorded already."""
        written = self._written.pop(mid, None)
        if written is not None:
            owner, entered_ns, size_bytes, wait_ns = written
            acknowledge_ns = NEVER if acknowledged_at_ns == NEVER else acknowledged_at_ns - entered_ns
            self._end(owner, _LAST, entered_ns, size_bytes, wait_ns, Outcome.DELIVERED, acknowledge_ns)

    def _end(
        self,
        owner: str,
        queue: State,
        entered_ns: Nanoseconds,
        size_bytes: int,
        wait_ns: int,
        outcome: Outcome,
        acknowledge_ns: int = NEVER,
    ) -> None:
        self._log.end(
            (owner, queue), _INDEX[queue], outcome, entered_ns, 0, wait_ns, NEVER, acknowledge_ns,
            self._clients[owner], 0, size_bytes, int(outcome is Outcome.DELIVERED),
        )  # fmt: skip
