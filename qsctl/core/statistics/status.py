"""`SharedReaderQueueStatus` [QS 2.15.3, 3.3.4.3, 6.2]: names and order as on the wire."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from qsctl.identity import Guid

CONSUMERS_MAX: Final = 100
"""Consumers that a status names; those with the most outstanding samples, where there are more."""


class StatisticMetrics(msgspec.Struct, frozen=True, array_like=True):
    """One window of a variable: `count` is the sum of the values, the rest describe them."""

    period_ms: int
    count: int = 0
    mean: float = 0.0
    minimum: float = 0.0
    maximum: float = 0.0
    std_dev: float = 0.0


class StatisticVariable(msgspec.Struct, frozen=True, array_like=True):
    """The window between two publications, and the historical windows that are on, shortest first."""

    publication_period_metrics: StatisticMetrics
    historical_metrics: tuple[StatisticMetrics, ...] = ()


class Counters(msgspec.Struct, frozen=True):
    """Since the service started, or since the status was last read (`…_change` on the wire)."""

    received_message_count: int = 0
    sent_message_count: int = 0
    acknowledged_message_count: int = 0
    failed_delivery_message_count: int = 0
    late_acknowledgment_message_count: int = 0
    bounced_message_count: int = 0
    redelivered_message_count: int = 0
    expired_message_count: int = 0
    timeout_message_count: int = 0
    high_watermark_count: int = 0
    low_watermark_count: int = 0
    queue_full_count: int = 0

    def since(self, before: Counters) -> Counters:
        """Return what was counted after `before`."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(before), strict=True)
        return Counters(*(now - then for now, then in pairs))


class AdditionalCounters(msgspec.Struct, frozen=True):
    """Counters beyond the twelve: each sample is counted once by its origin and once by its end.

    With them the rows balance at every instant, also after a restart and after a pause in which producers wrote again:

        held = restored + received - duplicate - bounced - waiting
               - acknowledged - expired - failed_delivery - flushed

    where `waiting` are the samples outside a full queue. All count since the service started: samples that a restart
    finds in the store are restored, not received.
    """

    restored_message_count: int = 0
    duplicate_message_count: int = 0
    flushed_message_count: int = 0

    def held_count(self, counters: Counters) -> int:
        """Return how many samples are held, and outside, by these and the twelve counters."""
        came = self.restored_message_count + counters.received_message_count
        refused = self.duplicate_message_count + counters.bounced_message_count
        went = (
            counters.acknowledged_message_count
            + counters.expired_message_count
            + counters.failed_delivery_message_count
            + self.flushed_message_count
        )
        return came - refused - went


class CurrentCounts(NamedTuple):
    """The contents of a queue at this instant.

    Unacknowledged samples are all that are held and not acknowledged, sent ones are with a consumer. Waiting ones are
    outside a full queue [QS 2.15.4]; undeliverable ones are held because the dead-letter queue has no room.
    """

    message_count: int
    acknowledged_message_count: int
    unacknowledged_message_count: int
    sent_message_count: int
    waiting_message_count: int = 0
    undeliverable_message_count: int = 0
    consumer_count: int = 0


class ConsumerStatus(msgspec.Struct, frozen=True):
    """One consumer of a queue [QS 2.10]."""

    consumer_guid: Guid
    source_guid: Guid
    """Of a requester's reader: what replies are addressed to; nil: any sample of the queue may go to it."""
    outstanding_count: int
    unacked_threshold: int
    """It may be sent a sample while this many, or fewer, are outstanding; -1: always."""
    reception_enabled: bool


class ReplicationStatus(msgspec.Struct, frozen=True):
    """One replica of a queue [QS 7.1]. Only the master has figures of the others: elsewhere they are 0."""

    role: str
    """`master`, `slave`, `candidate`, `learner` (it has no vote before it has caught up) or `failed` (its store)."""
    epoch: int
    master: str
    """The application name of the present master; empty: none is known."""
    replica_count: int
    """`<queue_instances>`."""
    quorum_count: int
    up_to_date_count: int
    """The replicas that hold all that is committed, the master too."""
    has_quorum: bool
    """Whether the master is confirmed by a quorum, or the replica follows a master."""
    lag_count: int
    """Entries that the replica furthest behind lacks; elsewhere those that are not known to be committed."""
    last_index: int
    commit_index: int
    reason: str
    """The reason of its role."""


class SharedReaderQueueStatus(msgspec.Struct, frozen=True, tag="status"):
    """The operational status of one queue. Latency is in milliseconds, throughput in samples a second.

    The last six are ours, and not members of the type of [QS 6.2]. `replication` None: it is not replicated.
    `consumers` is set where the status of this one queue was requested, with at most `CONSUMERS_MAX` of them.
    """

    queue_name: str
    total: Counters
    change: Counters
    current_message_count: int
    current_acknowledged_message_count: int
    current_unacknowledged_message_count: int
    current_sent_message_count: int
    sending_latency: StatisticVariable
    enqueue_throughput: StatisticVariable
    dequeue_throughput: StatisticVariable
    sending_throughput: StatisticVariable
    additional: AdditionalCounters = AdditionalCounters()
    current_waiting_message_count: int = 0
    current_undeliverable_message_count: int = 0
    replication: ReplicationStatus | None = None
    consumer_count: int = 0
    consumers: tuple[ConsumerStatus, ...] = ()
