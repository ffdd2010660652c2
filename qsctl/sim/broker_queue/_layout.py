"""A scenario's queue as the arrays of the kernel, and its publishers as streams of arrivals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.instant import INFINITE_NS
from qsctl.sim.broker_queue import _records as r
from qsctl.sim.broker_queue._durations import lay_work
from qsctl.sim.kernel.random import stream_key
from qsctl.sim.scenario.intervals import occurrences
from qsctl.sim.scenario.parts.broker_queue import (
    BrokerQueue,
    ClosedArrivals,
    ConnectionLoss,
    DeadOverflow,
    DeliveryOrder,
    ExpiryPlace,
    FailureReport,
    LateAcknowledgmentRule,
    LimitScope,
    OverflowRule,
    QueueAccess,
    QueueBacklog,
    QueuePublisher,
    ReceiveMode,
    RefusalReaction,
    ReturnPlace,
)
from qsctl.sim.scenario.parts.work_time import WorkTime
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    ClientInterval,
    ConstantArrivals,
    ConstantSize,
    Scenario,
    Traffic,
)

BACKLOG_NAME: Final = "/backlog"
"""Of the stream of the messages that are there at the beginning: no publisher has this name."""
_PURPOSES: Final = ("kind", "poison", "work", "fails", "think", "jitter", "key")

_ORDERS: Final = {DeliveryOrder.FIFO: r.FIFO, DeliveryOrder.PRIORITY: r.PRIORITY, DeliveryOrder.KEY: r.KEY}
_LATE: Final = {
    LateAcknowledgmentRule.ACCEPTED: r.LATE_ACCEPTED,
    LateAcknowledgmentRule.UNTIL_REDELIVERED: r.LATE_UNTIL_REDELIVERED,
    LateAcknowledgmentRule.IGNORED: r.LATE_IGNORED,
}
_OVERFLOWS: Final = {
    OverflowRule.REJECT: r.OVERFLOW_REJECT,
    OverflowRule.REJECT_DEAD_LETTER: r.OVERFLOW_REJECT_DEAD_LETTER,
    OverflowRule.DROP_HEAD: r.OVERFLOW_DROP_HEAD,
    OverflowRule.DROP_TAIL: r.OVERFLOW_DROP_TAIL,
    OverflowRule.BLOCK: r.OVERFLOW_BLOCK,
}
_REACTIONS: Final = {
    RefusalReaction.LOSE: r.REFUSED_LOSE,
    RefusalReaction.RETRY: r.REFUSED_RETRY,
    RefusalReaction.BLOCK: r.REFUSED_BLOCK,
}


def publishers_of(queue: BrokerQueue) -> list[QueuePublisher | QueueBacklog]:
    """Return the publishers of a queue in the order of their numbers: the backlog first."""
    return [*((queue.backlog,) if queue.backlog is not None else ()), *queue.publishers]


def arrivals_scenario(scenario: Scenario) -> Scenario:
    """Return the publishers as traffic to groups of clients, of which the streams of arrivals of all models are made.

    A batch is one arrival for each client of a group; the backlog is one that comes once.
    """
    assert scenario.queue is not None
    groups: list[ClientGroup] = []
    traffic: list[Traffic] = []
    for number, each in enumerate(publishers_of(scenario.queue)):
        name = f"{number}"
        if isinstance(each, QueueBacklog):
            groups.append(ClientGroup(name, "", "", each.messages))
            traffic.append(
                Traffic(
                    BACKLOG_NAME, name, ConstantArrivals(1.0), each.size, topics=each.keys, topic_skew=each.key_skew,
                    fan_out=True, stop_ns=1,
                )
            )  # fmt: skip
            continue
        arrivals = each.arrivals
        stop_ns = each.stop_ns
        if isinstance(arrivals, ClosedArrivals):
            arrivals, stop_ns = ConstantArrivals(1.0), 0  # they are the kernel's; this keeps the numbers in step
        groups.append(ClientGroup(name, "", "", each.batch))
        traffic.append(
            Traffic(
                each.name, name, arrivals, each.size, topics=each.keys, topic_skew=each.key_skew,
                fan_out=each.batch > 1, start_ns=each.start_ns, stop_ns=stop_ns,
            )
        )  # fmt: skip
    return Scenario(
        scenario.name,
        seed=scenario.seed,
        horizon_ns=scenario.horizon_ns,
        groups=tuple(groups),
        traffic=tuple(traffic),
    )


@dataclass(slots=True)
class QueueLayout:
    """The initial content of the kernel's arrays."""

    arrays: dict[str, npt.NDArray[Any]]
    numbers: dict[str, int | float]
    names: list[str]
    """Of the consumers."""
    backlog: int
    """Messages that come at once."""


class _ArrayBuilder:
    def __init__(self, scenario: Scenario, replication: int, topics: list[tuple[int, int]]) -> None:
        assert scenario.queue is not None
        self.scenario = scenario
        self.queue = scenario.queue
        self.replication = replication
        self.topics = topics
        self.works: list[tuple[int, int, int, int, float, float]] = []
        self.values: list[float] = []
        self.controls: list[tuple[int, int, int, int]] = []
        self.kinds = [each.name for each in self.queue.classes]

    def work(self, work: WorkTime) -> int:
        """Add a distribution, and return its row."""
        self.works.append(lay_work(work, self.values))
        return len(self.works) - 1

    def key(self, *names: object) -> int:
        """Return the key of a random stream."""
        return stream_key(self.scenario.seed, self.replication, "queue", *names)

    def consumers(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], list[str]]:
        """Return the arrays of consumers and groups, and their names; collect the controls planned for them."""
        queue, horizon = self.queue, self.scenario.horizon_ns
        most = {rule.workers: rule.maximum for rule in queue.autoscaling}
        groups = np.zeros(len(queue.workers), r.GROUP)
        rows: list[npt.NDArray[Any]] = []
        names: list[str] = []
        for number, each in enumerate(queue.workers):
            count = most.get(each.name, each.count)
            own = {work.work_class: work.time for work in each.works}
            places = [self.work(own.get(kind.name, kind.work)) for kind in queue.classes]
            groups[number] = (
                len(names), count, each.batch, each.wait_ns, each.poll_interval_ns, each.acknowledge_batch,
                each.acknowledge_interval_ns, places[0], each.speed,
            )  # fmt: skip
            made = np.zeros(count, r.CONSUMER)
            for name in r.CONSUMER.names or ():
                if name.startswith(("buffer_", "ack_head", "ack_tail", "able_", "d_", "available_")):
                    made[name] = r.NONE
            made["group"] = number
            made["prefetch"] = each.prefetch
            made["servers"] = made["idle"] = each.servers
            made["polls"] = each.receive is ReceiveMode.POLL
            made["half"] = each.round_trip_ns // 2
            absences = occurrences(each.absences, horizon)
            for place in range(count):
                c = len(names) + place
                if place < each.count and not any(start == 0 for start, _ in absences):
                    self.controls.append((0, r.JOIN, c, 0))
                for start, end in absences:
                    self.controls += [(start, r.LEAVE, c, 0), (end, r.JOIN, c, 1)]
                for start, end in occurrences(each.pauses, horizon):
                    self.controls += [(start, r.PAUSE_BEGINS, c, 0), (end, r.PAUSE_ENDS, c, 0)]
            rows.append(made)
            names += [f"{each.name}-{place + 1}" for place in range(count)]
        return np.concatenate([*rows, np.zeros(0, r.CONSUMER)]), groups, names

    def publishers(self) -> npt.NDArray[Any]:
        """Return the array of publishers."""
        found = publishers_of(self.queue)
        made = np.zeros(len(found), r.PUBLISHER)
        for number, each in enumerate(found):
            name = each.name if isinstance(each, QueuePublisher) else BACKLOG_NAME
            one = made[number]
            one["kind"] = self.kinds.index(each.work_class) if each.work_class else r.NONE
            one["first_key"], one["keys"] = self.topics[number][0], each.keys
            one["stop"] = r.FOREVER
            for purpose in _PURPOSES:
                one[f"key_{purpose}"] = self.key(name, purpose)
            if isinstance(each, QueuePublisher):
                one["on_refusal"] = _REACTIONS[each.on_refusal]
                one["retry_after"], one["retries"] = each.retry_after_ns, each.retries
                one["start"], one["stop"] = each.start_ns, min(each.stop_ns, r.FOREVER)
                if isinstance(each.arrivals, ClosedArrivals) and isinstance(each.size, ConstantSize):
                    one["sources"] = each.arrivals.sources
                    one["think"] = self.work(each.arrivals.think)
                    one["size_bytes"] = each.size.size_bytes
        return made

    def lives(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the lists of times to live, and for each publisher and class the number of its list."""
        queue = self.queue
        lengths: list[int] = []
        lifetimes: list[int] = []
        for each in publishers_of(queue):
            own = each.time_to_live_ns if isinstance(each, QueuePublisher) else INFINITE_NS
            for kind in queue.classes:
                length = min(own, kind.time_to_live_ns, queue.time_to_live_ns)
                if length < INFINITE_NS and length not in lengths:
                    lengths.append(length)
                lifetimes.append(lengths.index(length) if length < INFINITE_NS else r.NONE)
        lists = np.full(len(lengths) + 1, r.NONE, np.int64).repeat(3).view(r.LIVES)
        lists["length"][: len(lengths)] = lengths
        return lists, np.array(lifetimes, np.int64).view(r.LIFE)

    def kinds_of(self) -> npt.NDArray[Any]:
        """Return the array of message classes; collect the outages planned for them."""
        queue = self.queue
        made = np.zeros(len(queue.classes), r.KIND)
        total = sum(each.weight for each in queue.classes) or 1.0
        share = 0.0
        for number, each in enumerate(queue.classes):
            share += each.weight
            made[number]["priority"] = each.priority
            made[number]["fails"], made[number]["poison"] = _chance(each.fails), _chance(each.poison)
            made[number]["share"] = share / total
            made[number]["outage_work"] = r.NONE
        for outage in queue.outages:
            subject = self.kinds.index(outage.work_class) if outage.work_class else r.NONE
            work = r.NONE if outage.work is None else self.work(outage.work)
            interval = ClientInterval(outage.start_ns, outage.duration_ns, outage.every_ns)
            for start, end in occurrences((interval,), self.scenario.horizon_ns):
                self.controls += [(start, r.OUTAGE_BEGINS, subject, work), (end, r.OUTAGE_ENDS, subject, work)]
        return made

    def rules(self, groups: list[str]) -> npt.NDArray[Any]:
        """Return the array of autoscaling rules."""
        made = np.zeros(len(self.queue.autoscaling), r.RULE)
        for number, each in enumerate(self.queue.autoscaling):
            made[number] = (
                groups.index(each.workers), each.messages_per_consumer, each.minimum, each.maximum, each.every_ns,
                self.work(each.start_up), each.scale_in_delay_ns, r.NONE, 0, 0, self.key(each.workers, "start-up"),
            )  # fmt: skip
        return made


def _chance(probability: float) -> int:
    """Return a probability as a threshold of random 64-bit numbers: those up to it count as a hit; 0 means never."""
    return min(2**64 - 1, int(probability * 2**64))


def lay_out_queue(scenario: Scenario, replication: int, topics: list[tuple[int, int]]) -> QueueLayout:
    """Return the arrays of a scenario's queue.

    Args:
        scenario: of model queue.
        replication: which repetition: its random streams are its own.
        topics: the first key and the number of keys of each publisher, by its number.
    """
    builder = _ArrayBuilder(scenario, replication, topics)
    queue = builder.queue
    consumers, groups, names = builder.consumers()
    publishers = builder.publishers()
    lives, lifetimes = builder.lives()
    kinds = builder.kinds_of()
    rules = builder.rules([each.name for each in queue.workers])
    if scenario.warm_up_ns:
        builder.controls.append((scenario.warm_up_ns, r.WARM_UP, 0, 0))
    ordered = sorted((each for each in builder.controls if each[0] < scenario.horizon_ns), key=lambda each: each[:2])
    timeouts = queue.visibility.timeouts_ns if queue.visibility is not None else ()
    watched = np.full(3 * max(1, len(timeouts)), r.NONE, np.int64).view(r.TIMEOUTS)
    for place, length in enumerate(timeouts):
        watched[place]["length"] = length if length < INFINITE_NS else r.NONE
    keys = max((first + count for first, count in topics), default=1)
    line_count = {
        DeliveryOrder.FIFO: 1, DeliveryOrder.PRIORITY: queue.priorities, DeliveryOrder.KEY: queue.partitions or keys
    }[queue.order]  # fmt: skip
    lines = np.zeros(line_count, r.LINE)
    for name in ("head", "tail", "back_head", "back_tail", "available_next", "available_before", "owner"):
        lines[name] = r.NONE
    back_offs = np.array(queue.retry.back_off.table(), np.float64).view(r.VALUE)
    limits, dead = queue.limits, queue.dead_letters
    counts = np.zeros(2, r.COUNT)
    counts["first_discard"] = r.NONE
    arrays = {
        "consumers": consumers, "groups": groups, "lines": lines, "timeouts": watched, "lives": lives,
        "publishers": publishers, "lifetimes": lifetimes, "kinds": kinds,
        "distributions": np.array(builder.works, r.DISTRIBUTION), "rules": rules,
        "values": np.array(builder.values or [0.0], np.float64).view(r.VALUE),
        "controls": np.array(ordered, r.CONTROL), "counts": counts, "back_offs": back_offs,
    }  # fmt: skip
    numbers: dict[str, int | float] = {
        name: r.NONE
        for name in r.SCALARS
        if name.endswith(("_head", "_tail")) or name in {"active", "draining_since", "drain_max"}
    }
    numbers |= {
        "warm_up": scenario.warm_up_ns,
        "line_count": line_count,
        "group_count": len(groups),
        "kind_count": len(kinds),
        "consumer_count": len(consumers),
        "timeout_count": len(timeouts),
        "life_count": len(lives) - 1,
        "control_count": len(ordered),
        "publisher_count": len(publishers),
        "rule_count": len(rules),
        "order": _ORDERS[queue.order],
        "partitions": queue.partitions,
        "exclusive": queue.access is QueueAccess.EXCLUSIVE,
        "rebalance": queue.rebalance_ns,
        "out_max": _limit(queue.max_unacknowledged),
        "delay": queue.delay_ns,
        "at_head": queue.expires is ExpiryPlace.HEAD,
        "loss_returns": queue.connection_loss is ConnectionLoss.RETURN,
        "heartbeat": queue.visibility.heartbeat_ns if queue.visibility is not None else 0,
        "late": _LATE[queue.visibility.late] if queue.visibility is not None else r.LATE_IGNORED,
        "deliveries_max": queue.retry.max_deliveries,
        "to_tail": queue.retry.to is ReturnPlace.TAIL,
        "silent": queue.retry.on_failure is FailureReport.SILENT,
        "back_off_count": len(back_offs),
        "jitter": queue.retry.jitter,
        "messages_max": _limit(limits.max_messages),
        "bytes_max": _limit(limits.max_bytes),
        "counts_ready": limits.counts is LimitScope.READY,
        "overflow": _OVERFLOWS[limits.overflow],
        "dead_letters": dead is not None,
        "dead_messages_max": _limit(dead.max_messages if dead is not None else -1),
        "dead_bytes_max": _limit(dead.max_bytes if dead is not None else -1),
        "dead_life": min(r.FOREVER, dead.time_to_live_ns) if dead is not None else r.FOREVER,
        "dead_drops_tail": dead is not None and dead.overflow is DeadOverflow.DROP_TAIL,
        "objective": queue.objective.done_ns if queue.objective is not None else r.FOREVER,
        "most_at_once": max([1, *(each.batch for each in queue.workers)]),
        "drains": 0,
    }
    return QueueLayout(arrays, numbers, names, queue.backlog.messages if queue.backlog is not None else 0)


def _limit(value: int) -> int:
    return r.FOREVER if value < 0 else value
