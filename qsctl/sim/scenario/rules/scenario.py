"""Rules for a scenario across its elements: references resolve, and times are compatible.

They are checked when a file is read and again after overrides; the reader adds the line numbers.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from qsctl.core.settings import queues_of
from qsctl.declared.problems import InvalidFile, shown
from qsctl.errors import InvalidInput
from qsctl.instant import INFINITE_NS, Nanoseconds, format_duration
from qsctl.sim.scenario.changes import read_changes, spans
from qsctl.sim.scenario.forms.elements import PROFILE, SCENARIO
from qsctl.sim.scenario.parts.broker_queue import BrokerQueue, QueueArrivals, QueuePublisher, WorkOutage
from qsctl.sim.scenario.parts.client import MixedTime, ParetoTime, ServiceTime, UniformTime
from qsctl.sim.scenario.parts.engine import Engine
from qsctl.sim.scenario.parts.world import WorldScenario
from qsctl.sim.scenario.places import Breach, place_of, problem_in
from qsctl.sim.scenario.rules._engine import engine_breaches
from qsctl.sim.scenario.rules.broker_queue import broker_queue_breaches
from qsctl.sim.scenario.rules.replay import replay_breaches
from qsctl.sim.scenario.scenario import (
    TIBCO_QUEUE,
    Access,
    ClientGroup,
    ClientInterval,
    ConstantArrivals,
    DurableQueue,
    ExponentialSize,
    GuaranteedOverflow,
    LognormalSize,
    MixedSize,
    MmppArrivals,
    Model,
    OnOffArrivals,
    ParetoSize,
    PoissonArrivals,
    Profile,
    Queue,
    Scenario,
    ScheduleArrivals,
    Size,
    TimedChange,
    TraceArrivals,
    Traffic,
    UniformSize,
    Workload,
    WorkloadProducer,
)

PARQUET_SUFFIXES: Final = frozenset({".parquet", ".pq"})
"""Trace files with these endings are Parquet; CSV ends in `.csv`."""

NEIGHBOR_CONNECTIONS: Final = 4
"""TCP data connections of a neighbour link [SOL-QUEUES, "Showing CSPF Neighbor Stats Queues"]."""
NEIGHBOR_DEPTH_MIN_WORK_UNITS: Final = 50
"""Of a neighbour's queues, by the vendor's public reference; a client's may have 2."""


def check_rules(scenario: Scenario) -> None:
    """Refuse a scenario that breaks a rule, with all breaches in one message.

    Raises:
        InvalidInput: at least one rule does not hold; of a scenario that was read from a file a InvalidFile, which
            names file, line and element, and what was set since.
    """
    breaches = list(breaches_of(scenario))
    places = scenario.places
    if breaches and places is not None:
        problems = []
        for each in breaches:
            place = place_of(scenario, each.owner, places)
            assert place is not None, "the scenario itself has one"
            problems.append(problem_in(place, places, each.message, each.found, each.allowed))
        raise InvalidFile(problems, "the scenario")
    if breaches:
        lines = [each.message + (f" (allowed: {each.allowed})" if each.allowed else "") for each in breaches]
        raise InvalidInput(f"scenario {scenario.name!r}: " + "\n".join(lines))


def breaches_of(scenario: Scenario) -> Iterator[Breach]:
    """Yield every violation of a rule by the scenario."""
    yield from _times(scenario)
    yield from _parts(scenario)
    yield from _references(scenario)
    yield from _durable_queues(scenario)
    for group in scenario.groups:
        for interval in (*group.pauses, *group.absences):
            yield from _interval(interval, scenario.horizon_ns)
        if group.neighbor:
            yield from _neighbor(scenario, group)
        yield from _service_time(group.service_time)
    for traffic in scenario.traffic:
        yield from _traffic(scenario, traffic)
    for change in scenario.changes:
        yield from _change(scenario, change)
    if scenario.broker.ingress_buffer_bytes and not scenario.broker.ingress_rate_bits_per_second:
        yield Breach(
            scenario.broker,
            "ingress-buffer without ingress-rate: messages are taken in at once, so that it never fills",
            str(scenario.broker.ingress_buffer_bytes),
            "an ingress-rate too, or no ingress-buffer",
        )
    if scenario.broker.load_factor_clear_percent > scenario.broker.load_factor_set_percent:
        yield Breach(
            scenario.broker,
            "load-factor-clear is above load-factor-set",
            str(scenario.broker.load_factor_clear_percent),
            f"at most {scenario.broker.load_factor_set_percent}",
        )
    if scenario.workload is not None:
        yield from _workload(scenario.workload, scenario.horizon_ns)
        if scenario.model is Model.SHARED_READER_QUEUE:
            yield from _one_instance(scenario.workload)
    if scenario.replay is not None:
        yield from replay_breaches(scenario.replay)
    if scenario.world is not None:
        yield from _world(scenario, scenario.world)
    if scenario.queue is not None:
        yield from broker_queue_breaches(scenario.queue)
        for publisher in scenario.queue.publishers:
            yield from _stream(publisher)
        if scenario.queue.backlog is not None:
            yield from _size(scenario.queue.backlog.size)
        for each in _queue_intervals(scenario.queue):
            yield from _interval(each, scenario.horizon_ns)
    if scenario.engine is not None:
        yield from engine_breaches(scenario.engine)
        for interval in _engine_intervals(scenario.engine):
            yield from _interval(interval, scenario.horizon_ns)


def _queue_intervals(queue: BrokerQueue) -> Iterator[ClientInterval | WorkOutage]:
    yield from queue.outages
    for workers in queue.workers:
        yield from workers.pauses
        yield from workers.absences


def _engine_intervals(engine: Engine) -> Iterator[ClientInterval]:
    yield from engine.failures
    for process in engine.processes:
        yield from process.crashes
        for thread in process.threads:
            yield from thread.stops
            yield from thread.outbound.outages if thread.outbound is not None else ()


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
    """Yield the parts that the scenario's model does not have, and the required parts that the scenario lacks."""
    for child in SCENARIO.children:
        form = child.forms[0]
        found = getattr(scenario, child.field)
        default = next(each.default for each in dataclasses.fields(Scenario) if each.name == child.field)
        if scenario.model not in form.models and found != default:
            yield Breach(
                found[0] if child.many else found,
                f"<{form.element}> means nothing in a {scenario.model} scenario",
                form.element,
                " or ".join(f'model="{model}"' for model in sorted(form.models)),
            )
    if scenario.model in {Model.SHARED_READER_QUEUE, Model.WORLD}:
        if scenario.workload is None:
            yield Breach(scenario, "there is no <workload>", allowed=f"a <workload> in a {scenario.model} scenario")
        if scenario.model is Model.WORLD and scenario.world is None:
            yield Breach(scenario, "there is no <world>", allowed="a <world> in a world scenario")
        return
    if scenario.model is Model.REPLAY:
        if scenario.replay is None:
            yield Breach(scenario, "there is no <replay>", allowed="a <replay> in a replay scenario")
        return
    if scenario.model is Model.INTEGRATION:
        if scenario.engine is None:
            yield Breach(scenario, "there is no <engine>", allowed="an <engine> in an integration scenario")
        return
    if scenario.model is Model.QUEUE:
        if scenario.queue is None:
            yield Breach(scenario, "there is no <queue>", allowed="a <queue> in a queue scenario")
        return
    if not scenario.traffic:
        yield Breach(scenario, "there is no <traffic>: nothing would happen", allowed="at least one <traffic>")
    for profile in scenario.profiles if scenario.model is Model.TIBCO else ():
        yield from _tibco_profile(profile)


def _tibco_profile(profile: Profile) -> Iterator[Breach]:
    """Yield the violations of a TIBCO profile, which must state exactly one queue's depth (no default is published)."""
    needed = f'<queue name="{TIBCO_QUEUE}" max-depth="…"/>'
    if Queue.D_1 not in profile.queues:
        yield Breach(profile, f"profile {profile.name!r} gives its queue no max-depth", allowed=needed)
    for name in profile.queues:
        if name is not Queue.D_1:
            yield Breach(profile, f"profile {profile.name!r} has a queue {name}", name, f"only {needed}")
    plain = Profile(profile.name, profile.queues, profile.tcp)
    for attribute in PROFILE.attributes:
        value = getattr(profile, attribute.field)
        if Model.TIBCO not in attribute.models and value != getattr(plain, attribute.field):
            yield Breach(profile, f"{attribute.name!r} means nothing in a tibco scenario", str(value), 'model="solace"')
    if profile.eliding != plain.eliding:
        yield Breach(profile.eliding, "<eliding> means nothing in a tibco scenario", "eliding", 'model="solace"')


def _references(scenario: Scenario) -> Iterator[Breach]:
    ports = [port.name for port in scenario.ports]
    profiles = [profile.name for profile in scenario.profiles]
    groups = [group.name for group in scenario.groups]
    for group in scenario.groups:
        yield from _named(group, "port", group.port, ports)
        yield from _named(group, "profile", group.profile, profiles)
    queues = [queue.name for queue in scenario.durable_queues]
    for traffic in scenario.traffic:
        yield from _named(traffic, "group or durable queue" if queues else "group", traffic.to, groups + queues)
    for endpoint in scenario.endpoints:
        yield from _named(endpoint, "group", endpoint.to, groups)
    for queue in scenario.durable_queues:
        for flow in queue.flows:
            yield from _named(flow, "group", flow.group, groups)


def _durable_queues(scenario: Scenario) -> Iterator[Breach]:
    """Yield durable queues whose name is in use, or whose clients have flows to another queue or an endpoint."""
    taken = {group.name for group in scenario.groups}
    endpoints = {endpoint.to for endpoint in scenario.endpoints}
    profiles = {profile.name: profile for profile in scenario.profiles}
    profile_of = {group.name: profiles.get(group.profile) for group in scenario.groups}
    queue_of: dict[str, str] = {}
    for queue in scenario.durable_queues:
        if queue.name in taken:
            yield Breach(
                queue, f"there is another group or durable queue {queue.name!r}", queue.name, "a name of its own"
            )
        taken.add(queue.name)
        for flow in queue.flows:
            if flow.group in queue_of or flow.group in endpoints:
                other = f"durable queue {queue_of[flow.group]!r}" if flow.group in queue_of else "an <endpoint>"
                yield Breach(
                    flow,
                    f"the clients of group {flow.group!r} have {other} already",
                    flow.group,
                    "one durable queue or one <endpoint> for each group",
                )
            if flow.fails + flow.rejects > 1:
                yield Breach(flow, "fails and rejects are more than 1 together", str(flow.fails + flow.rejects), "1")
            queue_of.setdefault(flow.group, queue.name)
            profile = profile_of.get(flow.group)
            if profile is not None and profile.guaranteed_overflow is not GuaranteedOverflow.HOLD:
                yield Breach(
                    flow,
                    f"group {flow.group!r} has the profile {profile.name!r}, whose G-1 pushes messages out again",
                    str(profile.guaranteed_overflow),
                    'a profile with guaranteed-overflow="hold" for flows of a durable queue',
                )
        yield from _removal(queue, [each.name for each in scenario.durable_queues])
        if queue.partitions and (queue.access is not Access.NON_EXCLUSIVE or queue.respects_priority):
            yield Breach(
                queue,
                f"the durable queue {queue.name!r} has partitions",
                f"access={queue.access}, respect-message-priority={str(queue.respects_priority).lower()}",
                'access="non-exclusive" without respect-message-priority for a queue with partitions',
            )
    queues = {queue.name for queue in scenario.durable_queues}
    for traffic in scenario.traffic:
        if traffic.shared and (traffic.to in queues or traffic.fan_out or traffic.queue is Queue.G_1):
            yield Breach(
                traffic,
                f"traffic {traffic.name!r} is shared, and not of direct messages that each go to one client of a group",
                "shared",
                "direct traffic to a group, without fan-out",
            )
        if traffic.queue is Queue.G_1 and traffic.to in queue_of:
            yield Breach(
                traffic,
                f"traffic {traffic.name!r} is guaranteed and for the clients of {traffic.to!r}, whose flows are of the "
                f"durable queue {queue_of[traffic.to]!r}",
                traffic.to,
                f'to="{queue_of[traffic.to]}"',
            )
        if traffic.to in queues and traffic.queue is not Queue.G_1:
            yield Breach(
                traffic,
                f"traffic {traffic.name!r} is for {traffic.queue}: a durable queue has guaranteed messages",
                str(traffic.queue),
                'delivery="guaranteed"',
            )


def _named(owner: object, kind: str, name: str, known: Sequence[str]) -> Iterator[Breach]:
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    yield Breach(owner, f"there is no {kind} {name!r}{hint}", name, ", ".join(known) or f"no {kind} is defined")


def _removal(queue: DurableQueue, names: Sequence[str]) -> Iterator[Breach]:
    """Yield a dead message queue that does not exist, and limits that have no effect."""
    if queue.dead_message_queue and queue.dead_message_queue not in names:
        yield from _named(queue, "durable queue", queue.dead_message_queue, names)
    elif queue.dead_message_queue == queue.name:
        others = ", ".join(name for name in names if name != queue.name) or "no other durable queue is defined"
        yield Breach(queue, f"{queue.name!r} is its own dead message queue", queue.name, others)
    if queue.max_time_to_live_ns < INFINITE_NS and not queue.respects_time_to_live:
        yield Breach(
            queue,
            f"the durable queue {queue.name!r} has a max-ttl, and respects no time to live",
            format_duration(queue.max_time_to_live_ns),
            'respect-ttl="true" too, or no max-ttl',
        )


def _neighbor(scenario: Scenario, group: ClientGroup) -> Iterator[Breach]:
    """Yield the violations of a neighbour link: a wrong number of connections, control traffic, or small queues."""
    if group.count != NEIGHBOR_CONNECTIONS:
        yield Breach(
            group,
            f"the neighbor {group.name!r} has {group.count} connections",
            str(group.count),
            f'count="{NEIGHBOR_CONNECTIONS}", the data connections of a neighbour link',
        )
    for traffic in scenario.traffic:
        if traffic.to == group.name and traffic.queue is Queue.C_1:
            yield Breach(
                traffic,
                f"traffic {traffic.name!r} is for C-1 of the neighbor {group.name!r}: a link's control queues are the "
                "control card's, which is not simulated",
                str(traffic.queue),
                "G-1, D-1, D-2 or D-3",
            )
    for profile in scenario.profiles:
        for queue, limits in profile.queues.items() if profile.name == group.profile else ():
            if limits.max_depth_work_units < NEIGHBOR_DEPTH_MIN_WORK_UNITS:
                yield Breach(
                    profile,
                    f"queue {queue} of profile {profile.name!r} has max-depth {limits.max_depth_work_units}, and the "
                    f"neighbor {group.name!r} has this profile",
                    str(limits.max_depth_work_units),
                    f"at least {NEIGHBOR_DEPTH_MIN_WORK_UNITS} work units for a neighbour",
                )


def _interval(interval: ClientInterval | WorkOutage, horizon_ns: Nanoseconds) -> Iterator[Breach]:
    try:
        spans([interval], horizon_ns)
    except InvalidInput as error:
        yield Breach(interval, error.message, allowed=error.remedy)
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
            TIBCO_QUEUE,
        )
    yield from _stream(traffic)


def _stream(stream: Traffic | WorkloadProducer | QueuePublisher) -> Iterator[Breach]:
    yield from _size(stream.size)
    yield from _arrivals(stream.arrivals)


def _size(size: Size) -> Iterator[Breach]:
    if isinstance(size, UniformSize) and size.minimum_bytes > size.maximum_bytes:
        yield Breach(size, "the minimum is above the maximum", str(size.minimum_bytes), f"at most {size.maximum_bytes}")
    if isinstance(size, MixedSize) and sum(size.weights) <= 0:
        yield Breach(size, "all weights are 0", "0", "at least one above 0")
    if isinstance(size, ParetoSize) and (size.shape <= 0 or size.minimum_bytes > size.maximum_bytes):
        yield Breach(size, "the shape is 0, or the minimum above the maximum", str(size.shape), "a shape above 0")
    if isinstance(size, LognormalSize | ExponentialSize) and size.maximum_bytes < 1:
        yield Breach(size, "the maximum is below 1 byte", str(size.maximum_bytes), "at least 1")


def _arrivals(arrivals: QueueArrivals) -> Iterator[Breach]:
    if isinstance(arrivals, PoissonArrivals | ConstantArrivals | OnOffArrivals) and arrivals.rate_per_second <= 0:
        yield Breach(arrivals, "the rate is 0: nothing would arrive", "0", "a rate above 0, or no such element")
    if isinstance(arrivals, MmppArrivals) and max(arrivals.rates_per_second, default=0) <= 0:
        yield Breach(arrivals, "all rates are 0: nothing would arrive", "0", "a rate above 0 in one <state>")
    if isinstance(arrivals, ScheduleArrivals):
        instants = arrivals.instants_ns
        if list(instants) != sorted(set(instants)) or instants[0] != 0 or instants[-1] >= arrivals.period_ns:
            yield Breach(
                arrivals,
                "the instants of the schedule are not ascending from 0",
                ", ".join(map(format_duration, instants)),
                f"the first at 0, each later than the one before, all before {format_duration(arrivals.period_ns)}",
            )
        if max(arrivals.rates_per_second) <= 0:
            yield Breach(arrivals, "all rates are 0: nothing would arrive", "0", "a rate above 0")
    if isinstance(arrivals, TraceArrivals):
        path = Path(arrivals.path)
        if not is_trace_file(path):
            name = shown(arrivals.path)
            yield Breach(arrivals, f"there is no trace file {name}", name, "a CSV or Parquet file")
        elif path.suffix.lower() not in {".csv", *PARQUET_SUFFIXES}:
            yield Breach(arrivals, f"{path.name} is not a trace", path.suffix, "a file that ends in .csv or .parquet")


def is_trace_file(path: Path) -> bool:
    """Return whether a path is a regular file; false also for a name that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _service_time(time: ServiceTime) -> Iterator[Breach]:
    if isinstance(time, UniformTime | ParetoTime) and time.minimum_ns > time.maximum_ns:
        longest = format_duration(time.maximum_ns)
        yield Breach(time, "the minimum is above the maximum", format_duration(time.minimum_ns), f"at most {longest}")
    if isinstance(time, ParetoTime) and time.shape <= 0:
        yield Breach(time, "the shape is 0", str(time.shape), "a shape above 0")
    if isinstance(time, MixedTime) and sum(time.weights) <= 0:
        yield Breach(time, "all weights are 0", "0", "at least one above 0")


def _change(scenario: Scenario, change: TimedChange) -> Iterator[Breach]:
    if change.at_ns >= scenario.horizon_ns:
        end = format_duration(scenario.horizon_ns)
        yield Breach(change, "the change comes after the end", format_duration(change.at_ns), f"before {end}")
    try:
        read_changes(dataclasses.replace(scenario, changes=(change,)))
    except InvalidInput as error:
        yield Breach(change, error.message, f"{change.path} = {change.value}", error.remedy)


def _world(scenario: Scenario, world: WorldScenario) -> Iterator[Breach]:
    if world.recovery_ns >= scenario.horizon_ns:
        yield Breach(
            world,
            "the time without faults takes up the whole run: nothing would be written",
            format_duration(world.recovery_ns),
            f"recovery: less than the horizon, {format_duration(scenario.horizon_ns)}",
        )
    if world.schedule and not is_trace_file(Path(world.schedule)):
        yield Breach(world, "there is no such schedule", shown(world.schedule), "a file of lines")


def _one_instance(workload: Workload) -> Iterator[Breach]:
    """Yield the replicated queues of a service, since this model simulates a single instance."""
    for participant, subscriber, queue in queues_of(workload.service):
        if queue.replication.enabled:
            yield Breach(
                workload,
                f"queue {participant.name}/{subscriber.name}/{queue.name} is replicated, and a shared_reader_queue "
                "scenario simulates one instance",
                "replicated",
                'model="world" with a <world>, which simulates the replicas, or a queue that is not replicated',
            )


def _workload(workload: Workload, horizon_ns: Nanoseconds) -> Iterator[Breach]:
    topics: list[str] = []
    queues: list[str] = []
    for participant, subscriber, queue in queues_of(workload.service):
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
            yield from _interval(interval, horizon_ns)
