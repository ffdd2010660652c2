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
    """Only the flow that bound first, and the next one after its client disconnects."""
    NON_EXCLUSIVE = "non-exclusive"
    """All flows in turn, each within its window."""


@dataclass(frozen=True, kw_only=True)
class FlowSettings:
    """The window of a flow, and when the client's library and application acknowledge what it delivers."""

    window_messages: int = 255
    acknowledge_delay_ns: Nanoseconds = 0
    """From a message's end of service to the application's acknowledgment; INFINITE_NS: it never acknowledges."""
    library_threshold_percent: int = 60
    """Fraction of the window after whose reading the client's library acknowledges; 0: it acknowledges each message."""
    library_timer_ns: Nanoseconds = SECOND_NS
    """Maximum time from reading a message to the library's acknowledgment."""


@dataclass(frozen=True, kw_only=True)
class SpoolSettings:
    """The limits of an endpoint or a durable queue, which stores guaranteed messages."""

    unacknowledged_limit_messages: int = 10_000
    """Maximum number of deliveries of a flow that the application has not acknowledged; -1: no limit."""
    max_messages: int = -1
    max_spool_usage_bytes: int = -1
    """Maximum total bytes of stored messages; a message that would exceed it is refused. -1: no limit."""
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
    """Number of partitions of a non-exclusive queue; a key belongs to one partition, a partition to one flow; 0:
    not partitioned.
    """
    rebalance_delay_ns: Nanoseconds = 5 * SECOND_NS
    """Delay from a flow's bind or unbind to the new assignment of the partitions."""
    max_handoff_ns: Nanoseconds = 3 * SECOND_NS
    """Longest time that a partition whose flow changes waits for messages that its old flow has not acknowledged."""
    respects_time_to_live: bool = False
    max_time_to_live_ns: Nanoseconds = INFINITE_NS
    max_redelivery: int = -1
    """Maximum number of redeliveries, after which a message is removed. -1: no limit."""
    dead_message_queue: str = ""
    """The durable queue that removed messages are moved to, if they are eligible; empty: all are deleted."""
    flows: tuple[Flow, ...] = ()
