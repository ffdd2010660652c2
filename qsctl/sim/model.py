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
    """A kind of event, the meaning of `EVENT_ROW.event`; `EVENT_NAMES` are the names in the event log."""

    SLOW_SUBSCRIBER = 0
    """A client's slowness passed the threshold; value: percent × 100."""
    SLOW_SUBSCRIBER_CLEARED = 1
    BUFFER_LOAD_SET = 2
    """NAB Buffer Load Factor reached its set threshold; value: percent."""
    BUFFER_LOAD_CLEARED = 3
    DISCONNECTED = 4
    """A client disconnected; value: messages dropped with it. `queue` is -1."""
    DISCONNECTED_SLOW = 5
    """Disconnected as the slowest while the buffer load was above 100 %; value: messages dropped with it."""
    CONNECTED = 6
    PAUSED = 7
    RESUMED = 8
    DEPTH_CHANGED = 9
    """A timed change set a maximum depth; value: the new one in work units."""
    BURST_CHANGED = 10
    """A timed change set a minimum burst; value: the new one in messages."""
    MAX_ELIDING_TOPICS = 11
    """One-shot: a topic was not elided because the limit was reached; value: the limit."""
    MESSAGE_TOO_BIG = 12
    """A message was refused at ingress; value: its bytes."""
    INGRESS_DISCARD = 13
    """A message was refused at ingress: its publisher exceeded its fair share of the buffers; value: its bytes."""
    CONGESTION_DISCARDS = 14
    """Total at the end: discarded because the queue was full (Egress Congestion, Transmit Congestion)."""
    NOT_CONNECTED_DISCARDS = 15
    """Total at the end: messages that arrived while the client was absent."""
    SPOOL_DISCARDS = 16
    """Total at the end: messages refused by a full or congested endpoint."""
    RETURNED = 17
    """Total at the end: guaranteed messages discarded from G-1 and returned to their endpoint."""
    RETRANSMISSIONS = 18
    """Total at the end: segments lost on the link and sent again."""
    SLOW_PERCENT = 19
    """At the end: the slowness of the last minute; value: percent × 100."""
    DISCONNECT_DISCARDS = 20
    """Total at the end: messages that were in a queue when its client disconnected."""
    LARGE_MESSAGE = 21
    """One-shot for each client: a message exceeded the broker's large-message size; value: its bytes."""
    MISSED_KEEPALIVES = 22
    """Total at the end: keepalive probes of idle connections that were not answered."""
    SPOOL_USAGE_SET = 23
    """An endpoint's use of a quota, in messages or bytes, reached the upper threshold; value: percent."""
    SPOOL_USAGE_CLEARED = 24
    SUBSCRIPTIONS_SET = 25
    """A client's subscriptions reached the upper threshold of its max-subscriptions; value: percent."""
    TOO_MANY_SUBSCRIPTIONS = 26
    """One-shot for each client: subscriptions were refused; value: their number."""
    THREAD_STOPPED = 27
    """An integration engine crashed. `queue` is -1."""
    THREAD_STARTED = 28
    PROCESS_STOPPED = 29
    """A reader thread of an engine crashed; value: messages lost with it, which were in no database."""
    PROCESS_STARTED = 30
    """A reader thread of an engine restarted; value: messages that it found in the recovery database."""
    FAILED_MESSAGES = 31
    """Total at the end: messages of this thread that were written to the error database."""
    MASTER_ELECTED = 32
    """A cluster elected a master; value: nanoseconds since the last one. `queue` is -1."""
    INSTANCE_ENDED = 33
    """A service instance of a cluster lost its power or ended itself."""
    INSTANCE_STARTED = 34
    RULE_BROKEN = 35
    """A rule of a cluster was broken; value: the rule's number, from 1 in the order of the verdicts."""
    LONGEST_STALL = 36
    """Total at the end: nanoseconds in which samples of a queue waited and none moved."""
    TIME_OUTS = 37
    """Total at the end: retransmission time-outs of a connection that loses segments."""
    EXPIRED_TO_DMQ = 38
    """Total at the end: messages of a durable queue whose time to live expired, moved to the dead message queue."""
    REDELIVERED_TO_DMQ = 39
    """Total at the end: messages at their redelivery limit, moved to the dead message queue."""
    REJECTED_TO_DMQ = 40
    """Total at the end: messages that an application rejected, moved to the dead message queue."""
    BLOCKED_TIME = 41
    """Total at the end, from the warm-up on: nanoseconds in which the client had data to send and could not."""


EVENT_NAMES: Final[tuple[str, ...]] = tuple(event.name.lower().replace("_", "-") for event in Event)


class Stop(IntEnum):
    """The reason for which `ModelRun.step` returned."""

    UNTIL = 0
    """The simulation has reached the requested instant."""
    LOG_FULL = 1
    """The log chunk is full: take the log and the events, then step again to the same instant."""
    CROSSED = 2
    """The importance of the watched queue left its bounds; only in runs that `sim.splitting` branches."""


class ModelRun(Protocol):
    """One repetition in progress.

    Usage: `while run.step(until) is Stop.LOG_FULL: write(run.take_log())`, then `write(run.take_log())`; then the same
    loop with `finish`; then `counters`.
    """

    @property
    def now_ns(self) -> Nanoseconds:
        """The instant up to which the run is simulated."""
        ...

    @property
    def messages(self) -> int:
        """Arrivals simulated so far, warm-up included."""
        ...

    def step(self, until_ns: Nanoseconds) -> Stop:
        """Simulate to `until_ns` (exclusive, at most the horizon) or until the log chunk is full."""
        ...

    def take_log(self) -> Rows:
        """Return the rows since the last call, a view that the next `step` overwrites; empty at log level counters."""
        ...

    def take_events(self) -> Rows:
        """Return a copy of the events since the last call; empty below log level events."""
        ...

    def finish(self) -> Stop:
        """Log the messages still in the broker as `held` or `waiting`; to be called again while it returns LOG_FULL."""
        ...

    def counters(self) -> dict[str, Any]:
        """Return one row for each client and queue that carried traffic, as columns.

        Keys are the names of `eventlog.schema.COUNTERS` less `run_id`; values are int64 arrays, except `client_id`
        (int32), `client` (list of str), `queue` (list of str), `first_discard_ns` (int64, NEVER for null) and the two
        histogram columns (lists of arrays).
        """
        ...


class CompiledModel(Protocol):
    """A model that prepares runs of scenarios."""

    def prepare(self, scenario: Scenario, replication: int, level: LogLevel, chunk_rows: int = CHUNK_ROWS) -> ModelRun:
        """Check the scenario, lay out its arrays and seed the random streams of this repetition.

        Raises:
            InvalidInput: the scenario cannot be simulated: an unknown port, profile or group, a value out of range.
        """
        ...
