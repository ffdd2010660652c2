"""Durable queues that several clients share, and their flows.

Names and defaults are those of the brokers' configuration [SOL-ENDPOINTS, "Configuring Queues"].
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from qsctl.instant import INFINITE_NS, SECOND_NS, Nanoseconds


class Access(StrEnum):
    """The flows that a durable queue sends to."""

    EXCLUSIVE = "exclusive"
    """The one that bound first; the next one when its client disconnects."""
    NON_EXCLUSIVE = "non-exclusive"
    """All in turn, each as far as its window goes."""


@dataclass(frozen=True, kw_only=True)
class FlowSettings:
    """The window of a flow, and when the client's library and application acknowledge what it delivers."""

    window_messages: int = 255
    acknowledge_delay_ns: Nanoseconds = 0
    """From a message's end of service to the application's acknowledgment; INFINITE_NS: it never acknowledges."""
    library_threshold_percent: int = 60
    """Of the window: so much read, and the client's library acknowledges it; 0: each message as it is read."""
    library_timer_ns: Nanoseconds = SECOND_NS
    """After the first message read that the library has not acknowledged, it does so at the latest."""


@dataclass(frozen=True, kw_only=True)
class SpoolSettings:
    """The limits of what keeps guaranteed messages: of an endpoint or a durable queue."""

    unacknowledged_limit_messages: int = 10_000
    """Deliveries of a flow that the application has not acknowledged; -1: no limit."""
    max_messages: int = -1
    max_spool_usage_bytes: int = -1
    """Bytes of the messages that it may hold; one that would carry it beyond is refused. -1: no limit."""
    low_priority_limit_messages: int = -1


@dataclass(frozen=True, slots=True)
class Flow(FlowSettings):
    """The flows of a group to a durable queue: one for each client, which bind in the order of their names."""

    group: str
    fails: float = 0.0
    """The probability that the application fails on a message instead of acknowledging it: it is redelivered."""
    rejects: float = 0.0
    """The probability that it rejects a message: it is removed at once, as one whose redelivery limit is reached."""


@dataclass(frozen=True, slots=True)
class DurableQueue(SpoolSettings):
    """A queue on the broker's message spool, with flows of the clients of one group or more."""

    name: str
    access: Access = Access.EXCLUSIVE
    respects_priority: bool = False
    """Whether messages of a higher priority are delivered first."""
    partitions: int = 0
    """Of a non-exclusive queue: the number of partitions; each key's messages are in one, which has one flow; 0:
    none.
    """
    rebalance_delay_ns: Nanoseconds = 5 * SECOND_NS
    """After a flow came or went, the partitions are dealt out again."""
    max_handoff_ns: Nanoseconds = 3 * SECOND_NS
    """Longest time that a partition whose flow changes waits for messages that its old flow has not acknowledged."""
    respects_time_to_live: bool = False
    max_time_to_live_ns: Nanoseconds = INFINITE_NS
    max_redelivery: int = -1
    """Deliveries after the first; a message that would need another one is removed. -1: no limit."""
    dead_message_queue: str = ""
    """The durable queue that removed messages are moved to, if they are eligible; empty: all are deleted."""
    flows: tuple[Flow, ...] = ()
