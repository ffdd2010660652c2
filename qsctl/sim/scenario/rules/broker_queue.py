"""Rules across the elements of a queue of any broker; `scenario.py` applies them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

from qsctl.declared.problems import shown
from qsctl.errors import InvalidInput
from qsctl.instant import INFINITE_NS, Nanoseconds, format_duration
from qsctl.sim.scenario.parts.broker_queue import (
    BrokerQueue,
    ClosedArrivals,
    ConnectionLoss,
    DeliveryOrder,
    FailureReport,
    OverflowRule,
    QueueAccess,
    QueuePublisher,
    QueueWorkers,
    ReceiveMode,
    ReturnPlace,
)
from qsctl.sim.scenario.parts.empirical import read_times
from qsctl.sim.scenario.parts.traffic import ConstantSize, TraceArrivals
from qsctl.sim.scenario.parts.work_time import WorkKind, WorkTime
from qsctl.sim.scenario.places import Breach


def broker_queue_breaches(queue: BrokerQueue) -> Iterator[Breach]:
    """Yield every violation of a rule by a queue."""
    yield from _references(queue)
    yield from _order(queue)
    for publisher in queue.publishers:
        yield from _publisher(publisher)
    for workers in queue.workers:
        yield from _workers(workers)
    yield from _lives(queue)
    yield from _visibility(queue)
    yield from _limits(queue)
    yield from _autoscaling(queue)
    yield from _endless(queue)
    for owner, work in works_of(queue):
        if work.kind is WorkKind.EMPIRICAL:
            try:
                read_times(Path(work.path))
            except InvalidInput as error:
                yield Breach(owner, error.message, shown(work.path), error.remedy)


def works_of(queue: BrokerQueue) -> Iterator[tuple[object, WorkTime]]:
    """Yield each distribution of a queue, with the object that has it."""
    for each in queue.classes:
        yield each, each.work
    for workers in queue.workers:
        for own in workers.works:
            yield own, own.time
    for outage in queue.outages:
        if outage.work is not None:
            yield outage, outage.work
    for rule in queue.autoscaling:
        yield rule, rule.start_up
    for publisher in queue.publishers:
        if isinstance(publisher.arrivals, ClosedArrivals):
            yield publisher.arrivals, publisher.arrivals.think


def _references(queue: BrokerQueue) -> Iterator[Breach]:
    classes = [each.name for each in queue.classes]
    for publisher in queue.publishers:
        if publisher.work_class:
            yield from _named(publisher, "class", publisher.work_class, classes)
    if queue.backlog is not None and queue.backlog.work_class:
        yield from _named(queue.backlog, "class", queue.backlog.work_class, classes)
    for workers in queue.workers:
        for own in workers.works:
            yield from _named(own, "class", own.work_class, classes)
    for outage in queue.outages:
        if outage.work_class:
            yield from _named(outage, "class", outage.work_class, classes)
    for rule in queue.autoscaling:
        yield from _named(rule, "consumer", rule.workers, [each.name for each in queue.workers])
    drawn = any(not each.work_class for each in queue.publishers)
    drawn = drawn or (queue.backlog is not None and not queue.backlog.work_class)
    if drawn and sum(each.weight for each in queue.classes) <= 0:
        yield Breach(queue.classes[0], "all weights are 0", "0", "at least one class with a weight above 0")
    if queue.dead_letters is not None and queue.dead_name == queue.name:
        yield Breach(queue.dead_letters, "the dead letters have the queue's name", queue.name, "a name of their own")


def _named(owner: object, kind: str, name: str, known: Sequence[str]) -> Iterator[Breach]:
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    yield Breach(owner, f"there is no {kind} {name!r}{hint}", name, ", ".join(known) or f"no {kind} is defined")


def _order(queue: BrokerQueue) -> Iterator[Breach]:
    keyed = queue.order is DeliveryOrder.KEY
    if queue.partitions and not keyed:
        yield Breach(queue, "partitions without order by key", str(queue.partitions), 'order="key", or no partitions')
    if queue.partitions and queue.access is QueueAccess.EXCLUSIVE:
        yield Breach(queue, "partitions of an exclusive queue", "exclusive", 'access="shared", or no partitions')
    if queue.rebalance_ns and not queue.partitions and queue.access is not QueueAccess.EXCLUSIVE:
        yield Breach(
            queue,
            "rebalance without anything to assign",
            format_duration(queue.rebalance_ns),
            'partitions, or access="exclusive"',
        )
    if keyed and queue.retry.to is ReturnPlace.TAIL:
        yield Breach(queue.retry, "a message of a key cannot return behind later ones", "tail", 'to="head"')
    if keyed and queue.limits.overflow is OverflowRule.DROP_HEAD:
        yield Breach(queue.limits, "a queue in order of keys has no one head", "drop-head", "another overflow")
    levels = queue.priorities if queue.order is DeliveryOrder.PRIORITY else 1
    for each in queue.classes:
        if each.priority >= levels:
            allowed = f"at most {levels - 1}" if levels > 1 else 'order="priority" of the queue, or no priority'
            yield Breach(each, f"class {each.name!r} has priority {each.priority}", str(each.priority), allowed)


def _publisher(publisher: QueuePublisher) -> Iterator[Breach]:
    arrivals = publisher.arrivals
    if publisher.stop_ns <= publisher.start_ns:
        yield Breach(
            publisher,
            f"publisher {publisher.name!r} stops before it starts",
            format_duration(publisher.stop_ns),
            f"later than its start, {format_duration(publisher.start_ns)}",
        )
    if publisher.batch > 1 and isinstance(arrivals, TraceArrivals | ClosedArrivals):
        yield Breach(publisher, "a batch of a trace or of closed sources", str(publisher.batch), 'batch="1"')
    if isinstance(arrivals, ClosedArrivals) and longest_ns(arrivals.think) == 0:
        yield Breach(arrivals, "the sources think for no time: they would never end", "0s", "a time above 0")
    if isinstance(arrivals, ClosedArrivals) and not isinstance(publisher.size, ConstantSize):
        yield Breach(publisher.size, "messages of closed sources have one size", allowed='<size bytes="…"/>')


def _workers(workers: QueueWorkers) -> Iterator[Breach]:
    if workers.receive is ReceiveMode.POLL and not (
        workers.wait_ns or workers.poll_interval_ns or workers.round_trip_ns
    ):
        yield Breach(
            workers,
            f"consumer {workers.name!r} would poll without end at one instant",
            "0s",
            "a wait, a poll-interval or a round-trip above 0",
        )


def _lives(queue: BrokerQueue) -> Iterator[Breach]:
    """Yield every time to live of 0, with which a message would expire before its delivery."""
    for owner in (queue, *queue.publishers, *queue.classes, *((queue.dead_letters,) if queue.dead_letters else ())):
        if owner.time_to_live_ns == 0:
            yield Breach(owner, "the time to live is 0", "0s", "a time above 0, or infinite")


def _visibility(queue: BrokerQueue) -> Iterator[Breach]:
    visibility = queue.visibility
    ends = visibility is not None and min(visibility.timeouts_ns) < INFINITE_NS
    if queue.connection_loss is ConnectionLoss.TIME_OUT and not ends:
        yield Breach(queue, "there is no time-out for lost connections", "time-out", "a finite <visibility timeout>")
    if queue.retry.on_failure is FailureReport.SILENT and not ends:
        yield Breach(queue.retry, "failures are silent, and nothing times out", "silent", "a <visibility timeout>")
    if visibility is not None and visibility.heartbeat_ns >= min(visibility.timeouts_ns):
        yield Breach(
            visibility,
            "the heartbeat comes after the time-out",
            format_duration(visibility.heartbeat_ns),
            f"less than {format_duration(min(visibility.timeouts_ns))}",
        )


def _limits(queue: BrokerQueue) -> Iterator[Breach]:
    if queue.limits.overflow is OverflowRule.REJECT_DEAD_LETTER and queue.dead_letters is None:
        yield Breach(queue.limits, "there are no dead letters", "reject-dead-letter", "<dead-letters> too")


def _autoscaling(queue: BrokerQueue) -> Iterator[Breach]:
    scaled: set[str] = set()
    workers = {each.name: each for each in queue.workers}
    for rule in queue.autoscaling:
        if rule.minimum > rule.maximum:
            yield Breach(rule, "the minimum is above the maximum", str(rule.minimum), f"at most {rule.maximum}")
        if rule.workers in scaled:
            yield Breach(rule, f"a second rule for {rule.workers!r}", rule.workers, "one for each consumer")
        scaled.add(rule.workers)
        found = workers.get(rule.workers)
        if found is not None and not rule.minimum <= found.count <= rule.maximum:
            yield Breach(
                rule,
                f"consumer {rule.workers!r} begins with {found.count}",
                str(found.count),
                f"a count from {rule.minimum} to {rule.maximum}",
            )
        if found is not None and found.absences:
            yield Breach(rule, f"consumer {rule.workers!r} has absences", rule.workers, "either of them")


def _endless(queue: BrokerQueue) -> Iterator[Breach]:
    """Yield the classes whose messages could be retried endlessly at one simulated instant."""
    if queue.retry.max_deliveries > 0 or min(queue.retry.back_off.table()) > 0:
        return
    if all(workers.round_trip_ns > 0 for workers in queue.workers):
        return
    for each in queue.classes:
        fails = each.fails > 0 or each.poison > 0 or any(o.work_class in ("", each.name) for o in queue.outages)
        works = [each.work, *(own.time for w in queue.workers for own in w.works if own.work_class == each.name)]
        works += [o.work for o in queue.outages if o.work is not None and o.work_class in ("", each.name)]
        if fails and any(longest_ns(work) == 0 for work in works):
            yield Breach(
                each,
                f"messages of class {each.name!r} would fail without end at one instant",
                "0s",
                "work that takes time, a back-off, a round-trip, or max-deliveries",
            )


def longest_ns(work: WorkTime) -> Nanoseconds:
    """Return the longest time of a distribution; INFINITE_NS if it is unbounded."""
    match work.kind:
        case WorkKind.CONSTANT | WorkKind.UNIFORM:
            return work.times_ns[-1]
        case WorkKind.HISTOGRAM:
            return max(time for time, weight in zip(work.times_ns, work.weights, strict=True) if weight > 0)
        case _:
            return INFINITE_NS
