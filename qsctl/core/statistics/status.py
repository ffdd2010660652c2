"""`SharedReaderQueueStatus` [QS 2.15.3, 3.3.4.3, 6.2]: the status of a queue, with names and order of the wire."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from qsctl.identity import Guid
from qsctl.instant import Nanoseconds

CONSUMERS_MAX: Final = 100
"""Bound of the consumers listed in a status; of more, those with the most outstanding samples are listed."""

MEMBERS_MAX: Final = 64
"""Bound of the members listed in a status."""


class StatisticMetrics(msgspec.Struct, frozen=True, array_like=True):
    """The metrics of one window of a statistic variable; `count` is the sum of the values."""

    period_ms: int
    count: int = 0
    mean: float = 0.0
    minimum: float = 0.0
    maximum: float = 0.0
    std_dev: float = 0.0


class StatisticVariable(msgspec.Struct, frozen=True, array_like=True):
    """The metrics of the publication period, and of the enabled historical windows, shortest first."""

    publication_period_metrics: StatisticMetrics
    historical_metrics: tuple[StatisticMetrics, ...] = ()


class Counters(msgspec.Struct, frozen=True):
    """The twelve counters of [QS 6.2]: totals, or changes since a command read the status (`…_change` on the wire)."""

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
        """Return the difference of each counter to an earlier value of it."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(before), strict=True)
        return Counters(*(now - then for now, then in pairs))


class AdditionalCounters(msgspec.Struct, frozen=True):
    """Counters beyond the twelve: each sample is counted once by its origin and once by its end.

    With them the counters balance at every instant, also after a restart and after producers repeated writes:

        held = restored + received - duplicate - bounced - waiting
               - acknowledged - expired - failed_delivery - flushed

    where `waiting` are the samples outside a full queue. Samples that a restart finds in the store count as restored,
    not as received; so do samples that come back because their removal could not be stored.
    """

    restored_message_count: int = 0
    duplicate_message_count: int = 0
    flushed_message_count: int = 0

    def held_count(self, counters: Counters) -> int:
        """Compute from all counters the number of samples that are in the queue or wait outside it while it is full."""
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
    """The numbers of a queue's samples and consumers at one instant.

    Unacknowledged samples are all samples in the queue; sent ones are outstanding at a consumer. Waiting ones are
    outside a full queue [QS 2.15.4]; undeliverable ones remain in the queue because the dead-letter queue is full.
    """

    message_count: int
    acknowledged_message_count: int
    unacknowledged_message_count: int
    sent_message_count: int
    waiting_message_count: int = 0
    undeliverable_message_count: int = 0
    consumer_count: int = 0


class ConsumerStatus(msgspec.Struct, frozen=True):
    """The status of one consumer of a queue [QS 2.10]."""

    consumer_guid: Guid
    source_guid: Guid
    """GUID of a requester, whose replies this consumer receives; nil: it receives any sample of the queue."""
    outstanding_count: int
    unacked_threshold: int
    """Number of outstanding samples up to which the consumer is sent another one; -1: no bound."""
    reception_enabled: bool


class MemberStatus(msgspec.Struct, frozen=True):
    """The status of one member of a replication group in the record of the reporting replica; None: unknown.

    A master has the figures that the others confirmed and reported to it; another replica has its own, and the age of
    its master's latest frame.
    """

    name: str
    is_voter: bool
    """Whether the log lists it with a vote; otherwise it is a learner."""
    role: str = ""
    """As in `ReplicationStatus`; empty: unknown, as of a member that confirmed nothing within `master_timeout`."""
    durable_index: int | None = None
    """The last entry of its log that is durable and agrees with the master's."""
    applied_index: int | None = None
    """The entry up to which its queues have followed the log."""
    lag_count: int | None = None
    """Entries of the master's log that it lacks."""
    lag_bytes: int | None = None
    """Octets of payloads in these; None also where the master has them in a snapshot alone."""
    lag_ns: Nanoseconds | None = None
    """Time since it held all entries that were committed; 0: it does."""
    silent_ns: Nanoseconds | None = None
    """Time since the latest frame was sent that it confirmed, or of the master, since its latest frame arrived."""
    version: int | None = None
    """Version in its letters, see `versions`."""
    disk: str = ""
    """`ok`, `hangs` (no sync ends), `none` (a volatile queue); empty: unknown."""
    master_priority: int | None = None
    """Its priority as master; None also of a member that announced none lately."""
    is_witness: bool = False
    """Whether the log lists it as one that holds no payloads and is no master."""


class ReplicationStatus(msgspec.Struct, frozen=True):
    """The status of one replica of a queue [QS 7.1]; the counts of other replicas are 0 except at the master."""

    role: str
    """`master`, `slave`, `candidate`, `learner` (without a vote until it has caught up) or `failed` (of its store)."""
    epoch: int
    master: str
    """Application name of the current master; empty: none is known."""
    replica_count: int
    """Number of voters."""
    quorum_count: int
    up_to_date_count: int
    """Number of voters that have all committed entries, the master included."""
    has_quorum: bool
    """Whether the master is confirmed by a quorum, or the replica follows a master."""
    lag_count: int
    """At the master, the entries that the slowest replica lacks; elsewhere, those not known to be committed."""
    last_index: int
    commit_index: int
    reason: str
    """Reason for the role."""
    members: tuple[MemberStatus, ...] = ()
    """The members of the group, by name, at most `MEMBERS_MAX`."""
    group: str = ""
    """The group's name: a queue and its dead-letter queue have the same one, and change their master together."""
    is_current: bool = False
    """Whether no other replica can have more that is committed: it is the master, and a quorum confirmed that within
    half of `master_timeout`. False also where an earlier version does not state it."""
    behind_ns: Nanoseconds | None = None
    """Time since the latest frame of its master arrived, or since a quorum confirmed one of its own; None: unknown, or
    there was none."""

    @property
    def learner_count(self) -> int:
        """Return the number of members without a vote."""
        return sum(not each.is_voter for each in self.members)

    def has_member(self, name: str) -> bool:
        """Return whether a service is a member of the group, or may be, for the list is empty or too long."""
        return not 0 < len(self.members) < MEMBERS_MAX or any(each.name == name for each in self.members)


class SharedReaderQueueStatus(msgspec.Struct, frozen=True, tag="status"):
    """The operational status of one queue. Latency is in milliseconds, throughput in samples a second.

    The last six members are qsctl's own, not those of the type of [QS 6.2]. `replication` is None for a queue that is
    not replicated. `consumers` is set in the answer to a request for this one queue, at most `CONSUMERS_MAX` of them.
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
