"""Explanations of events for an operator, one line a kind, and the merging of several replications' results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from qsctl.eventlog.run_folder import Happening, QueueWorker, ReplicatedQueue, ReplicationInfo, RuleVerdict, WorkedQueue

REASONS: Final = {
    "slow-subscriber": "data could not be sent for too much of the last minute: see `qsctl explain slow-subscriber`",
    "slow-percent": "blocked seconds of the last minute and penalties for retransmissions and missed keepalives",
    "buffer-load-set": "the NAB Buffer Load Factor reached its threshold: data of clients that do not acknowledge it",
    "buffer-load-cleared": "the load factor fell to its lower threshold",
    "disconnected-slow": "the load factor was above 100 %: the slowest subscriber was disconnected to make room",
    "disconnected": "the client left: its queued direct messages were discarded, others come again",
    "max-eliding-topics": "more topics than the profile's max-topics: those beyond it are not elided",
    "message-too-big": "the message is larger than the broker's max-message: refused at ingress",
    "ingress-discard": "the publisher sent more than its part of the ingress buffers: refused at ingress",
    "large-message": "the message is larger than the broker's large-message",
    "retransmissions": "segments were lost on the link and sent again: each is a penalty on the client's slowness",
    "time-outs": "too few segments followed a lost one: nothing was sent until the retransmission timer was over",
    "missed-keepalives": "probes of idle connections were lost: each is a penalty on the client's slowness",
    "spool-usage-set": "the endpoint holds 80 % of its quota: its consumers are slower than its publishers",
    "subscriptions-set": "a client has 80 % of the subscriptions that its profile allows",
    "too-many-subscriptions": "topics beyond the profile's max-subscriptions: refused, their messages do not come",
    "master-elected": "a service instance became master of a replicated queue; peak: the longest time without one",
    "instance-ended": "a service instance lost its power, or ended itself because of an I/O error",
    "rule-broken": "something that the cluster must keep does not hold: see the verdicts",
    "longest-stall": "samples waited, and nothing was accepted or delivered",
    "returned": "G-1 was full and its oldest message went back (guaranteed-overflow redeliver), or a consumer rejected "
    "a sample, was silent or left",
    "queue-full": "the queue had no room for another sample: its consumers are slower than its producers",
    "high-watermark": "the queue rose above its high watermark",
    "low-watermark": "the queue fell below its low watermark",
    "late-acknowledgment": "a consumer answered after its delivery was over: its response_timeout is too short",
    "dead-lettered": "a sample was moved to the dead letters: it expired, or its delivery attempts were spent",
    "dead-letter-deferred": "a dead sample waits in its queue: the dead-letter queue is full",
    "restored": "a service found samples of an earlier run in its files",
    "expired-to-dmq": "a message's time to live was over at its queue: it was moved to the dead message queue",
    "redelivered-to-dmq": "a message reached its queue's redelivery limit: it was moved to the dead message queue",
    "rejected-to-dmq": "an application rejected a message: it was moved to the dead message queue",
}
"""By event; one that is not named is shown without a reason, or not at all (`QUIET`)."""

QUIET: Final = frozenset(
    {
        "slow-subscriber-cleared", "spool-usage-cleared", "connected", "paused", "resumed", "depth-changed",
        "burst-changed", "instance-started", "congestion-discards", "not-connected-discards", "disconnect-discards",
        "spool-discards", "blocked-time",
    }
)  # fmt: skip
"""Events that follow from another one or from the scenario, and totals that the losses show: in the log alone."""

_PERCENT_TIMES_100: Final = frozenset({"slow-subscriber", "slow-percent"})
_PERCENT: Final = frozenset({"buffer-load-set", "buffer-load-cleared", "spool-usage-set", "subscriptions-set"})
_NANOSECONDS: Final = frozenset({"master-elected", "longest-stall"})
_BYTES: Final = frozenset({"message-too-big", "ingress-discard", "large-message"})


def merged_happenings(replications: Iterable[ReplicationInfo]) -> tuple[Happening, ...]:
    """Merge the happenings of all replications: counts are added; the first instant, the largest peak and spread
    count.
    """
    found: dict[str, Happening] = {}
    for replication in replications:
        for each in replication.happenings:
            if each.event in QUIET:
                continue
            other = found.get(each.event)
            if other is None:
                found[each.event] = each
                continue
            first = min(other, each, key=lambda one: one.first_ns)
            found[each.event] = Happening(
                event=each.event,
                count=other.count + each.count,
                clients=max(other.clients, each.clients),
                first_ns=first.first_ns,
                first_client=first.first_client,
                peak=max(other.peak, each.peak),
            )
    return tuple(sorted(found.values(), key=lambda each: (each.first_ns, each.event)))


def peak_text(happening: Happening) -> str:
    """Return the largest value with its unit; empty if it adds no information to the count."""
    if happening.event in _PERCENT_TIMES_100:
        return f"{happening.peak / 100:g} %"
    if happening.event in _PERCENT:
        return f"{happening.peak} %"
    if happening.event in _NANOSECONDS:
        return f"{happening.peak / 1e6:,.0f} ms"
    return f"{happening.peak:,} B" if happening.event in _BYTES else ""


def reason_of(happening: Happening) -> str:
    """Return the reason why an event was raised."""
    return REASONS.get(happening.event, "")


def merged_verdicts(replications: Iterable[ReplicationInfo]) -> tuple[RuleVerdict, ...]:
    """Merge the verdicts of all replications: counts are added, and the first violation of each rule is kept."""
    found: dict[str, RuleVerdict] = {}
    for replication in replications:
        for each in replication.verdicts:
            other = found.get(each.rule)
            if other is None:
                found[each.rule] = each
                continue
            shown = other if other.violations else each
            found[each.rule] = RuleVerdict(
                rule=each.rule,
                meaning=each.meaning,
                checked=other.checked + each.checked,
                violations=other.violations + each.violations,
                first_ns=shown.first_ns,
                first=shown.first,
                replay=shown.replay,
            )
    return tuple(found.values())


def merged_replicated_queues(replications: Iterable[ReplicationInfo]) -> tuple[ReplicatedQueue, ...]:
    """Merge the figures of replicated queues over all replications: counts are added, the longest times count.

    A time is absent if the queue had no master, or accepted nothing, in one of the replications.
    """
    found: dict[str, ReplicatedQueue] = {}
    for replication in replications:
        for each in replication.replicated_queues:
            other = found.get(each.queue)
            if other is None:
                found[each.queue] = each
                continue
            later = each if _is_later(each.first_master_ns, other.first_master_ns) else other
            answered = each if _is_later(each.first_accepted_ns, other.first_accepted_ns) else other
            found[each.queue] = ReplicatedQueue(
                queue=each.queue,
                replicas=max(other.replicas, each.replicas),
                first_master=later.first_master,
                first_master_ns=later.first_master_ns,
                refused_before=other.refused_before + each.refused_before,
                first_accepted_ns=answered.first_accepted_ns,
                refused_later=other.refused_later + each.refused_later,
                elected=other.elected + each.elected,
                longest_without_master_ns=max(other.longest_without_master_ns, each.longest_without_master_ns),
            )
    return tuple(found.values())


def merged_worked_queues(replications: Iterable[ReplicationInfo]) -> tuple[WorkedQueue, ...]:
    """Merge the figures of brokers' queues over all replications: counts and working times added, maxima of longest
    times.

    `backlog_mean` is the mean over the replications.
    """
    found: dict[str, list[WorkedQueue]] = {}
    for replication in replications:
        for each in replication.worked_queues:
            found.setdefault(each.queue, []).append(each)
    return tuple(_merged_queue(queue, each) for queue, each in found.items())


def _merged_queue(queue: str, found: Sequence[WorkedQueue]) -> WorkedQueue:
    drains = [each.drain_ns for each in found if each.drain_ns is not None]
    decided = [each for each in found if each.within is not None]
    return WorkedQueue(
        queue=queue,
        duplicates=sum(each.duplicates for each in found),
        parallel_duplicates=sum(each.parallel_duplicates for each in found),
        backlog_mean=sum(each.backlog_mean for each in found) / len(found),
        backlog_max=max(each.backlog_max for each in found),
        ready_max=max(each.ready_max for each in found),
        oldest_ns=max(each.oldest_ns for each in found),
        drain_ns=max(drains, default=None),
        busy_ns=sum(each.busy_ns for each in found),
        served_ns=sum(each.served_ns for each in found),
        worker_ns=sum(each.worker_ns for each in found),
        requests=sum(each.requests for each in found),
        cost=sum(each.cost for each in found),
        within=sum(each.within or 0 for each in decided) if decided else None,
        missed=sum(each.missed or 0 for each in decided) if decided else None,
    )


def merged_workers(replications: Iterable[ReplicationInfo]) -> tuple[QueueWorker, ...]:
    """Merge the consumers of brokers' queues over all replications, adding their figures."""
    found: dict[str, QueueWorker] = {}
    for replication in replications:
        for each in replication.workers:
            other = found.get(each.consumer)
            found[each.consumer] = each if other is None else QueueWorker(
                consumer=each.consumer,
                group=each.group,
                present_ns=other.present_ns + each.present_ns,
                busy_ns=other.busy_ns + each.busy_ns,
                paid_ns=other.paid_ns + each.paid_ns,
                servers=each.servers,
                succeeded=other.succeeded + each.succeeded,
                failed=other.failed + each.failed,
            )  # fmt: skip
    return tuple(found.values())


def _is_later(one_ns: int | None, other_ns: int | None) -> bool:
    """Return whether one instant comes after another; None means never."""
    return other_ns is not None and (one_ns is None or one_ns > other_ns)
