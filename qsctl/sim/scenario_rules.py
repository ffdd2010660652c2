"""What a scenario must be beyond its elements' own values: references that lead somewhere, times that fit together.

Checked when a file is read and again after overrides; the reader adds the lines.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from qsctl.errors import InvalidInput
from qsctl.instant import INFINITE_NS, format_duration
from qsctl.sim.models.changes import read_changes
from qsctl.sim.scenario import (
    Interval,
    MixedSize,
    Model,
    Queue,
    Scenario,
    TimedChange,
    TraceArrivals,
    Traffic,
    UniformSize,
    Workload,
    WorkloadProducer,
)


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that does not hold; `owner` is the object that breaks it."""

    owner: object
    message: str
    found: str = ""
    allowed: str = ""


def check_rules(scenario: Scenario) -> None:
    """Refuse a scenario that breaks a rule, with all breaches in one message.

    Raises:
        InvalidInput: at least one rule does not hold.
    """
    breaches = list(breaches_of(scenario))
    if breaches:
        lines = [each.message + (f" (allowed: {each.allowed})" if each.allowed else "") for each in breaches]
        raise InvalidInput(f"scenario {scenario.name!r}: " + "\n".join(lines))


def breaches_of(scenario: Scenario) -> Iterator[Breach]:
    """Every rule that the scenario breaks."""
    yield from _times(scenario)
    yield from _parts(scenario)
    yield from _references(scenario)
    for group in scenario.groups:
        for interval in (*group.pauses, *group.absences):
            yield from _interval(interval)
    for traffic in scenario.traffic:
        yield from _traffic(scenario, traffic)
    for change in scenario.changes:
        yield from _change(scenario, change)
    if scenario.broker.load_factor_clear_percent > scenario.broker.load_factor_set_percent:
        yield Breach(
            scenario.broker,
            "load-factor-clear is above load-factor-set",
            str(scenario.broker.load_factor_clear_percent),
            f"at most {scenario.broker.load_factor_set_percent}",
        )
    if scenario.workload is not None:
        yield from _workload(scenario.workload)


def _times(scenario: Scenario) -> Iterator[Breach]:
    if scenario.horizon_ns >= INFINITE_NS:
        yield Breach(scenario, "the horizon is infinite", "infinite", "a finite duration")
    if scenario.warm_up_ns >= scenario.horizon_ns:
        yield Breach(
            scenario,
            f"warm-up is {format_duration(scenario.warm_up_ns)}: nothing is left to observe",
            format_duration(scenario.warm_up_ns),
            f"less than the horizon, {format_duration(scenario.horizon_ns)}",
        )


def _parts(scenario: Scenario) -> Iterator[Breach]:
    if scenario.model is Model.SHARED_READER_QUEUE:
        if scenario.workload is None:
            yield Breach(scenario, "there is no <workload>", allowed="a <workload> in a shared_reader_queue scenario")
        for name, parts in (("traffic", scenario.traffic), ("group", scenario.groups)):
            if parts:
                yield Breach(
                    parts[0], f"<{name}> stands in a shared_reader_queue scenario", allowed="producers and consumers"
                )
        return
    if scenario.workload is not None:
        yield Breach(
            scenario.workload,
            f"<workload> stands in a {scenario.model} scenario",
            str(scenario.model),
            'model="shared_reader_queue"',
        )
    if not scenario.traffic:
        yield Breach(scenario, "there is no <traffic>: nothing would happen", allowed="at least one <traffic>")


def _references(scenario: Scenario) -> Iterator[Breach]:
    ports = [port.name for port in scenario.ports]
    profiles = [profile.name for profile in scenario.profiles]
    groups = [group.name for group in scenario.groups]
    for group in scenario.groups:
        yield from _named(group, "port", group.port, ports)
        yield from _named(group, "profile", group.profile, profiles)
    for traffic in scenario.traffic:
        yield from _named(traffic, "group", traffic.to, groups)
    for endpoint in scenario.endpoints:
        yield from _named(endpoint, "group", endpoint.to, groups)


def _named(owner: object, kind: str, name: str, known: Sequence[str]) -> Iterator[Breach]:
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    yield Breach(owner, f"there is no {kind} {name!r}{hint}", name, ", ".join(known) or f"no {kind} is defined")


def _interval(interval: Interval) -> Iterator[Breach]:
    if interval.every_ns <= interval.duration_ns < INFINITE_NS:
        yield Breach(
            interval,
            "it would begin again before it has ended",
            format_duration(interval.every_ns),
            f"every: more than its duration, {format_duration(interval.duration_ns)}",
        )
    if interval.every_ns < INFINITE_NS <= interval.duration_ns:
        yield Breach(interval, "it never ends and comes again", "infinite", "a finite duration, or no 'every'")


def _traffic(scenario: Scenario, traffic: Traffic) -> Iterator[Breach]:
    if traffic.stop_ns <= traffic.start_ns:
        yield Breach(
            traffic,
            f"traffic {traffic.name!r} stops before it starts",
            format_duration(traffic.stop_ns),
            f"later than its start, {format_duration(traffic.start_ns)}",
        )
    if scenario.model is Model.TIBCO and traffic.queue is not Queue.D_1:
        yield Breach(
            traffic,
            f"traffic {traffic.name!r} is for {traffic.queue}: a TIBCO client has one queue",
            str(traffic.queue),
            "egress (written as D-1)",
        )
    yield from _stream(traffic)


def _stream(stream: Traffic | WorkloadProducer) -> Iterator[Breach]:
    size = stream.size
    if isinstance(size, UniformSize) and size.minimum_bytes > size.maximum_bytes:
        yield Breach(size, "the minimum is above the maximum", str(size.minimum_bytes), f"at most {size.maximum_bytes}")
    if isinstance(size, MixedSize) and sum(size.weights) <= 0:
        yield Breach(size, "all weights are 0", "0", "at least one above 0")
    arrivals = stream.arrivals
    if isinstance(arrivals, TraceArrivals):
        path = Path(arrivals.path)
        if not path.is_file():
            yield Breach(arrivals, f"there is no trace file {arrivals.path}", arrivals.path, "a CSV or Parquet file")
        elif path.suffix.lower() not in {".csv", ".parquet"}:
            yield Breach(arrivals, f"{path.name} is no trace", path.suffix, "a file that ends in .csv or .parquet")


def _change(scenario: Scenario, change: TimedChange) -> Iterator[Breach]:
    if change.at_ns >= scenario.horizon_ns:
        end = format_duration(scenario.horizon_ns)
        yield Breach(change, "the change comes after the end", format_duration(change.at_ns), f"before {end}")
    try:
        read_changes(dataclasses.replace(scenario, changes=(change,)))
    except InvalidInput as error:
        yield Breach(change, error.message, f"{change.path} = {change.value}", error.remedy)


def _workload(workload: Workload) -> Iterator[Breach]:
    topics: list[str] = []
    queues: list[str] = []
    for participant in workload.service.participants:
        for subscriber in participant.subscribers:
            for queue in subscriber.queues:
                queues.append(f"{participant.name}/{subscriber.name}/{queue.name}")
                topics.append(queue.topic_name)
    if not queues:
        yield Breach(workload, "the service has no queue", workload.service.application_name, "at least one queue")
        return
    if not workload.producers:
        yield Breach(workload, "there is no <producer>: nothing would happen", allowed="at least one <producer>")
    for producer in workload.producers:
        yield from _named(producer, "queue of topic", producer.topic_name, sorted({each for each in topics if each}))
        yield from _stream(producer)
    for consumer in workload.consumers:
        matches = [name for name in queues if name == consumer.queue or name.endswith(f"/{consumer.queue}")]
        if len(matches) > 1:
            yield Breach(consumer, f"{consumer.queue!r} is ambiguous", consumer.queue, " or ".join(matches))
        elif not matches:
            yield from _named(consumer, "queue", consumer.queue, queues)
        if consumer.rejects + consumer.silent > 1:
            yield Breach(
                consumer, "rejects and silent are more than 1 together", str(consumer.rejects + consumer.silent), "1"
            )
        for interval in consumer.absences:
            yield from _interval(interval)
