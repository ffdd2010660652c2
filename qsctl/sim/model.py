"""The interface of a compiled model for the code that runs it: prepare, step, drain, finish, counters.

A model is stepped until an instant; it stops early when its log chunk is full, so that a run of any length needs
bounded memory. `run.py` owns replications, folders, progress and interruption; a model owns the simulated time.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, Protocol, TypeAlias

import numpy.typing as npt

from qsctl.eventlog.queue_counts import NEVER as NEVER
from qsctl.eventlog.schema import LogLevel, Outcome
from qsctl.instant import Nanoseconds
from qsctl.sim.kernel.records import EVENT_ROW as EVENT_ROW
from qsctl.sim.kernel.records import LOG_ROW as LOG_ROW
from qsctl.sim.scenario.scenario import Scenario

Rows: TypeAlias = npt.NDArray[Any]
"""A structured array: `LOG_ROW` or `EVENT_ROW`."""

OUTCOMES: Final[tuple[Outcome, ...]] = tuple(Outcome)
"""Index in `LOG_ROW`: 0 delivered, 1 discarded, 2 elided and so on; `kernel.records` has the numbers too."""

CHUNK_ROWS: Final = 1 << 14
"""Rows of a log chunk unless the caller asks for another size: few enough to stay in the cache until they are spread
into columns. With a million rows a run took 0.1 s and 50 MB more."""


class Event(IntEnum):
    """The meaning of `EVENT_ROW.event`; `EVENT_NAMES` are the names in the event log."""

    SLOW_SUBSCRIBER = 0
    """The slowness passed the threshold; value: percent × 100."""
    SLOW_SUBSCRIBER_CLEARED = 1
    BUFFER_LOAD_SET = 2
    """NAB Buffer Load Factor reached its set threshold; value: percent."""
    BUFFER_LOAD_CLEARED = 3
    DISCONNECTED = 4
    """Value: messages dropped with it. `queue` is -1."""
    DISCONNECTED_SLOW = 5
    """Disconnected as the slowest while the buffer load was above 100 %; value: messages dropped with it."""
    CONNECTED = 6
    PAUSED = 7
    RESUMED = 8
    DEPTH_CHANGED = 9
    """Value: the new maximum depth in work units."""
    BURST_CHANGED = 10
    """Value: the new minimum burst in messages."""
    MAX_ELIDING_TOPICS = 11
    """One-shot: a topic was not elided because the limit was reached; value: the limit."""
    MESSAGE_TOO_BIG = 12
    """Refused at ingress; value: its bytes."""
    INGRESS_DISCARD = 13
    """Refused at ingress by a publisher's fair share of the buffers; value: its bytes."""
    CONGESTION_DISCARDS = 14
    """Total at the end: discarded because the queue was full (Egress Congestion, Transmit Congestion)."""
    NOT_CONNECTED_DISCARDS = 15
    """Total at the end: came while the client was absent."""
    SPOOL_DISCARDS = 16
    """Total at the end: refused by a full or congested endpoint."""
    RETURNED = 17
    """Total at the end: guaranteed messages discarded from G-1, which went back to their endpoint."""
    RETRANSMISSIONS = 18
    """Total at the end: segments lost on the link and sent again."""
    SLOW_PERCENT = 19
    """At the end: the slowness of the last minute; value: percent × 100."""
    DISCONNECT_DISCARDS = 20
    """Total at the end: in a queue when its client disconnected."""
    LARGE_MESSAGE = 21
    """One-shot for each client: a message above the broker's large-message; value: its bytes."""
    MISSED_KEEPALIVES = 22
    """Total at the end: probes of idle connections that no answer came to."""
    SPOOL_USAGE_SET = 23
    """An endpoint holds its upper threshold's share of a quota, in messages or bytes; value: percent."""
    SPOOL_USAGE_CLEARED = 24
    SUBSCRIPTIONS_SET = 25
    """A client has its upper threshold's share of its max-subscriptions; value: percent."""
    TOO_MANY_SUBSCRIPTIONS = 26
    """One-shot for each client: subscriptions were refused; value: how many."""
    THREAD_STOPPED = 27
    """Of an integration engine. `queue` is -1."""
    THREAD_STARTED = 28
    PROCESS_STOPPED = 29
    """Value: messages lost with it, which were in no database."""
    PROCESS_STARTED = 30
    """Value: messages that it found in the recovery database."""
    FAILED_MESSAGES = 31
    """Total at the end: messages of this thread that went to the error database."""
    MASTER_ELECTED = 32
    """Of a world; value: nanoseconds since there was none. `queue` is -1."""
    INSTANCE_ENDED = 33
    """A service instance lost its power, or ended itself."""
    INSTANCE_STARTED = 34
    RULE_BROKEN = 35
    """Value: which of the rules of a world, from 1 in the order of the verdicts."""
    LONGEST_STALL = 36
    """At the end; value: nanoseconds in which samples waited and nothing moved."""
    TIME_OUTS = 37
    """Total at the end: retransmission time-outs of a connection that loses segments."""
    EXPIRED_TO_DMQ = 38
    """Total at the end: messages of a durable queue whose time to live was over, moved to the dead message queue."""
    REDELIVERED_TO_DMQ = 39
    """Total at the end: messages whose redelivery limit was reached, moved to the dead message queue."""
    REJECTED_TO_DMQ = 40
    """Total at the end: messages that an application rejected, moved to the dead message queue."""
    BLOCKED_TIME = 41
    """At the end; value: nanoseconds since the warm-up in which the client had data to send and could not."""


EVENT_NAMES: Final[tuple[str, ...]] = tuple(event.name.lower().replace("_", "-") for event in Event)


class Stop(IntEnum):
    """Why `ModelRun.step` returned."""

    UNTIL = 0
    """The instant asked for is reached."""
    LOG_FULL = 1
    """Take the log and the events, then step again to the same instant."""
    CROSSED = 2
    """The importance of what is watched left its bounds: of runs that `sim.splitting` branches alone."""


class ModelRun(Protocol):
    """One replication in progress.

    The loop: `while run.step(until) is Stop.LOG_FULL: write(run.take_log())`, and again after it; then `finish` in the
    same way; then `counters`.
    """

    @property
    def now_ns(self) -> Nanoseconds:
        """Simulated up to here."""
        ...

    @property
    def messages(self) -> int:
        """Arrivals simulated so far, warm-up included."""
        ...

    def step(self, until_ns: Nanoseconds) -> Stop:
        """Simulate to `until_ns` (exclusive, at most the horizon) or until the log chunk is full."""
        ...

    def take_log(self) -> Rows:
        """Return the rows since the last call: a view that the next `step` overwrites. Empty at level counters."""
        ...

    def take_events(self) -> Rows:
        """Return the events since the last call, a copy. Empty below level events."""
        ...

    def finish(self) -> Stop:
        """Write what is still in the broker as `held` or `waiting`; call it again while it answers LOG_FULL."""
        ...

    def counters(self) -> dict[str, Any]:
        """Return one row a client and queue that carried traffic, as columns.

        Keys are the names of `eventlog.schema.COUNTERS` less `run_id`; values are int64 arrays, except `client_id`
        (int32), `client` (list of str), `queue` (list of str), `first_discard_ns` (int64, NEVER for null) and the two
        histogram columns (lists of arrays).
        """
        ...


class CompiledModel(Protocol):
    """Builds runs of one model."""

    def prepare(self, scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> ModelRun:
        """Check the scenario, lay out the arrays, seed the streams of this replication.

        Raises:
            InvalidInput: the scenario cannot be simulated: an unknown port, profile or group, a value out of range.
        """
        ...
