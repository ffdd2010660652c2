"""The layout of a scenario as the record arrays of the egress kernels, with the checks that this requires."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from qsctl.errors import InvalidInput
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.sim.arrivals.streams import client_ranges
from qsctl.sim.egress.clients.durable_queue import PRIORITIES
from qsctl.sim.egress.layout._receivers import lay_receivers, reading_matters
from qsctl.sim.egress.layout.client_names import ClientNames
from qsctl.sim.egress.transmission.tcp import TIME_OUT_MAX_NS
from qsctl.sim.kernel.lines import zeros_in_lines
from qsctl.sim.kernel.random import stream_keys
from qsctl.sim.kernel.records import (
    ABSENCES,
    BACKLOG,
    CLIENT,
    DEPTH,
    DURABLE,
    EAGER,
    ELIDED,
    ELIDING,
    ENDPOINT,
    EXCLUSIVE,
    FIT,
    FLOW,
    FOREVER,
    HOLD,
    LINK,
    LOSS,
    LOSSY,
    MORE,
    NON_EXCLUSIVE,
    NONE,
    PARTITIONED,
    PAUSE,
    PORT,
    QUEUE,
    QUEUES,
    READS,
    SEGMENT_RECORDS_MAX,
    SHARED,
    SPOOL,
    TAIL,
    TALLY,
    TCP,
    TRACKED,
    TRAFFIC,
    WEIGHTED,
)
from qsctl.sim.scenario.changes import Outages
from qsctl.sim.scenario.scenario import (
    QUEUE_ORDER,
    Access,
    Admission,
    ClientGroup,
    CongestionControl,
    DurableQueue,
    Endpoint,
    GuaranteedOverflow,
    Model,
    Profile,
    Queue,
    Scenario,
    Scheduler,
    flow_endpoint,
)

PORTS_MAX: Final = 2**15 - 1
WINDOW_BYTES_MAX: Final = 2**30
"""The largest window that TCP's window scale option can express (RFC 7323)."""
WINDOW_SEGMENTS_MAX: Final = 2**20
"""The largest window of a connection that loses segments: more than one of 1 GiB in segments of 1,460 bytes."""
LIMIT_MAX: Final = 2**31 - 1
"""Of a depth in work units, and of a burst in messages."""
NS_A_BYTE_AT_ONE_BIT: Final = 8_000_000_000
Named = TypeVar("Named")


@dataclass(slots=True)
class Layout:
    """The arrays of one repetition in their initial state."""

    names: Sequence[str]
    """Names of the clients, then of the durable queues, whose numbers follow those of the clients."""
    clients: npt.NDArray[Any]
    more: npt.NDArray[Any]
    queues: npt.NDArray[Any]
    ports: npt.NDArray[Any]
    tallies: npt.NDArray[Any]
    losses: npt.NDArray[Any]
    endpoints: npt.NDArray[Any]
    receivers: npt.NDArray[Any]
    readers: npt.NDArray[Any]
    shares: npt.NDArray[Any]
    connections: npt.NDArray[Any]
    """The connections of clients whose links lose segments."""
    pauses: npt.NDArray[Any]
    elided: npt.NDArray[Any]
    durables: npt.NDArray[Any]
    flows: npt.NDArray[Any]
    backlogs: npt.NDArray[Any]
    traffics: npt.NDArray[Any]
    rare: bool = False
    """Whether a client has a trait, or guaranteed messages arrive that may return to their endpoint."""
    segments_room: int = 0
    """The maximum number of segment and acknowledgment records that one event of a connection may need."""


def line_rate(what: str, bits_per_second: int) -> tuple[int, int]:
    """Return the nanoseconds per byte of a rate, as a reduced fraction (numerator, denominator).

    Raises:
        InvalidInput: the rate is not above zero.
    """
    if not 0 < bits_per_second <= 10**15:
        raise InvalidInput(f"{what}: {bits_per_second} bits a second is not a line rate", remedy="Give a rate above 0.")
    divisor = gcd(NS_A_BYTE_AT_ONE_BIT, bits_per_second)
    return NS_A_BYTE_AT_ONE_BIT // divisor, bits_per_second // divisor


def set_port_rate(links: npt.NDArray[Any], port: str, bits_per_second: int) -> None:
    """Set the line rate of all links of a port; used for the initial rate and for timed changes.

    Raises:
        InvalidInput: the rate is not above zero.
    """
    links["num"], links["den"] = line_rate(f"port {port!r}", bits_per_second)


def by_name(kind: str, things: Iterable[Named]) -> dict[str, tuple[int, Named]]:
    """Return each part's index and the part itself by name.

    Raises:
        InvalidInput: two parts have the same name.
    """
    found: dict[str, tuple[int, Named]] = {}
    for index, thing in enumerate(things):
        name = getattr(thing, "name")  # noqa: B009 - Named has no common base
        if name in found:
            raise InvalidInput(f"two {kind}s are named {name!r}", remedy="Give each its own name.")
        found[name] = index, thing
    return found


def look_up(of: str, kind: str, name: str, known: Mapping[str, tuple[int, Named]]) -> tuple[int, Named]:
    """Return the index and the part of a scenario by its name.

    Raises:
        InvalidInput: no part has that name; the message lists the existing names.
    """
    if name not in known:
        raise InvalidInput(
            f"{of} names the {kind} {name!r}; there is {', '.join(known) or 'none'}", remedy=f"Name a {kind} there is."
        )
    return known[name]


def port_links(scenario: Scenario) -> dict[str, slice]:
    """Return the range of each port's links among the port records; each link is a FIFO of its own."""
    found: dict[str, slice] = {}
    first = 0
    for port in scenario.ports:
        found[port.name] = slice(first, first + port.links)
        first += port.links
    return found


def lay_out(
    scenario: Scenario,
    replication: int,
    outages: Outages,
    topic_ranges: dict[str, tuple[int, int]],
    guaranteed: frozenset[str],
) -> Layout:
    """Lay out every port, client, queue and endpoint; `guaranteed` names the groups that receive messages of G-1.

    Raises:
        InvalidInput: an unknown name, a count, limit, rate or probability out of range.
    """
    ports_by_name = by_name("port", scenario.ports)
    profiles = by_name("profile", scenario.profiles)
    by_name("group", scenario.groups)
    ranges = client_ranges(scenario)
    count = sum(group.count for group in scenario.groups)
    if count == 0:
        raise InvalidInput("the scenario has no clients", remedy="Give at least one client group.")
    if sum(port.links for port in scenario.ports) > PORTS_MAX:
        raise InvalidInput(f"the scenario has {len(scenario.ports)} ports", remedy=f"Give at most {PORTS_MAX} links.")
    links = port_links(scenario)
    ports = np.zeros(sum(port.links for port in scenario.ports), PORT)
    for port in scenario.ports:
        span = links[port.name]
        set_port_rate(ports[span], port.name, port.rate_bits_per_second)
    receivers, readers, shares = lay_receivers(scenario, replication, outages)
    count += len(scenario.durable_queues)
    durables, flows, backlogs = lay_durable_queues(scenario, ranges)
    layout = Layout(
        names=ClientNames(scenario),
        clients=zeros_in_lines(count, CLIENT),
        more=zeros_in_lines(count, MORE),
        queues=zeros_in_lines(count * QUEUES, QUEUE),
        tallies=zeros_in_lines(count * QUEUES, TALLY),
        losses=zeros_in_lines(count * QUEUES, LOSS),
        ports=ports,
        endpoints=zeros_in_lines(count, ENDPOINT),
        receivers=receivers,
        readers=readers,
        shares=shares,
        connections=np.zeros(max(1, sum(each.count for each in scenario.groups if each.loss_probability > 0)), TCP),
        pauses=np.zeros(max(1, sum(len(pauses) for pauses in outages.pauses.values())), PAUSE),
        elided=np.zeros(1, ELIDED),
        durables=durables,
        flows=flows,
        backlogs=backlogs,
        traffics=_lay_traffics(scenario, ranges),
    )
    layout.more["durable"] = NONE
    endpoints = _endpoints(scenario, ranges)
    pause_rows = 0
    eliding_slots = lossy = 0
    for group in scenario.groups:
        first, size = ranges[group.name]
        if size <= 0:
            raise InvalidInput(f"client group {group.name!r} has {size} clients", remedy="Give at least 1.")
        look_up(f"client group {group.name!r}", "port", group.port, ports_by_name)
        _, profile = look_up(f"client group {group.name!r}", "profile", group.profile, profiles)
        span = slice(first, first + size)
        pauses = outages.pauses.get(group.name, [])
        layout.pauses[pause_rows : pause_rows + len(pauses)] = [(start, min(end, FOREVER)) for start, end in pauses]
        more = layout.more[span]
        more["pause"], more["pause_end"] = pause_rows, pause_rows + len(pauses)
        pause_rows += len(pauses)
        _lay_connection(scenario, group, profile, layout.clients[span], more)
        span_of_links = links[group.port]
        layout.clients["port"][span] = span_of_links.start + np.arange(first, first + size) % (
            span_of_links.stop - span_of_links.start
        )
        if group.loss_probability > 0:
            more["key"] = stream_keys(scenario.seed, replication, ("loss", group.name), size)
            more["connection"] = np.arange(lossy, lossy + size)
            most = _lay_tcp(group, profile, layout.connections[lossy : lossy + size])
            layout.segments_room = max(layout.segments_room, 2 * most + SEGMENT_RECORDS_MAX)
            lossy += size
        more["endpoint"] = np.arange(first, first + size)
        queues = slice(first * QUEUES, (first + size) * QUEUES)
        _lay_queues(scenario, profile, layout.queues[queues], layout.tallies[queues])
        flags = _flags(scenario, group, profile, endpoints.get(group.name), group.name in guaranteed, outages)
        layout.clients["traits"][span] = flags
        more["next_absence"] = outages.next_absence(group.name, -1)
        _lay_endpoint(layout.endpoints[span], flags & TRACKED != 0)
        if group.name in endpoints:
            _lay_flows(layout.endpoints[span], endpoints[group.name])
        if flags & ELIDING:
            low, high = topic_ranges.get(group.name, (0, 1))
            more["elide"] = eliding_slots + np.arange(size) * (high - low)
            more["elide_topics"], more["topic_base"] = high - low, low
            eliding_slots += size * (high - low)
    for d, queue in enumerate(scenario.durable_queues):
        _lay_durable_queue(scenario, replication, layout, d, queue, ranges)
    layout.elided = np.zeros(max(1, eliding_slots), ELIDED)
    layout.elided["node"] = NONE
    layout.rare = bool(layout.clients["traits"].any()) or bool(guaranteed) or any(t.shared for t in scenario.traffic)
    return layout


def _endpoints(scenario: Scenario, ranges: Mapping[str, tuple[int, int]]) -> dict[str, Endpoint]:
    found: dict[str, Endpoint] = {}
    for endpoint in scenario.endpoints:
        if endpoint.to not in ranges or endpoint.to in found:
            raise InvalidInput(
                f"an endpoint is for the client group {endpoint.to!r}, which is unknown or has one already",
                remedy=f"Give one endpoint for a group of {', '.join(ranges) or 'the scenario'}.",
            )
        if endpoint.flows < 1 or endpoint.window_messages < 1:
            raise InvalidInput(
                f"the endpoint for {endpoint.to!r} has {endpoint.flows} flows of {endpoint.window_messages} messages",
                remedy="Give at least one flow and a window of at least one message.",
            )
        found[endpoint.to] = endpoint
    return found


def _flags(
    scenario: Scenario,
    group: ClientGroup,
    profile: Profile,
    endpoint: Endpoint | None,
    comes: bool,
    outages: Outages,
) -> int:
    """Return the traits of a group's clients as bits; `comes`: guaranteed messages are sent to the group."""
    guaranteed = scenario.model is Model.SOLACE
    hold = guaranteed and comes and profile.guaranteed_overflow is GuaranteedOverflow.HOLD
    explicit = endpoint is not None
    absent = bool(outages.absences.get(group.name))
    buffers = scenario.broker.egress_buffer_bytes > 0
    flags = LOSSY if group.loss_probability > 0 else 0
    reads = reading_matters(group, profile, outages)
    flags |= READS if reads else 0
    flags |= LINK if group.link_rate_bits_per_second > 0 else 0
    flags |= ELIDING if guaranteed and profile.eliding.enabled else 0
    flags |= ABSENCES if absent else 0
    flags |= WEIGHTED if guaranteed and profile.scheduler is Scheduler.WEIGHTED else 0
    flags |= HOLD if hold else 0
    limited = comes and scenario.broker.unacknowledged_limit_messages >= 0  # whose deliveries count, from the first one
    flags |= TRACKED if guaranteed and (explicit or hold or absent or buffers or limited) else 0
    # Of a message that G-1 holds only a disconnect and the buffers cannot wait for the client's own next arrival.
    patient = hold and not absent
    counted = scenario.broker.unacknowledged_limit_messages >= 0 and flags & TRACKED
    return flags | (EAGER if buffers or counted or (flags & TRACKED and not patient) else 0)


def _lay_connection(
    scenario: Scenario,
    group: ClientGroup,
    profile: Profile,
    clients: npt.NDArray[Any],
    more: npt.NDArray[Any],
) -> None:
    tcp = profile.tcp
    limits = {
        "the segment size": tcp.mss_bytes,
        "the initial window": tcp.initial_window_segments,
        "the maximum window": tcp.max_window_bytes,
        "the TCP transmit queue": tcp.transmit_queue_bytes,
    }
    for what, value in limits.items():
        if value < 1:
            raise InvalidInput(f"profile {profile.name!r}: {what} is {value}", remedy="Give at least 1.")
    if tcp.max_window_bytes > WINDOW_BYTES_MAX:
        raise InvalidInput(
            f"profile {profile.name!r}: the maximum window is {tcp.max_window_bytes} bytes",
            remedy=f"Give at most {WINDOW_BYTES_MAX}, the largest window of TCP.",
        )
    if not 0 <= group.loss_probability < 1 or group.round_trip_ns < 0 or group.acknowledgment_latency_ns < 0:
        raise InvalidInput(
            f"client group {group.name!r}: loss {group.loss_probability}, round trip {group.round_trip_ns} ns, "
            f"acknowledgment latency {group.acknowledgment_latency_ns} ns",
            remedy="The loss is a probability below 1; times are not below 0.",
        )
    for field in ("unsent", "head", "tail"):
        clients[field] = NONE
    clients["next_ack"] = FOREVER
    clients["window"] = min(tcp.mss_bytes * tcp.initial_window_segments, tcp.max_window_bytes)
    clients["window_max"] = tcp.max_window_bytes
    clients["tcp_limit"] = tcp.transmit_queue_bytes
    clients["delay"] = group.round_trip_ns + group.acknowledgment_latency_ns
    if scenario.model is Model.TIBCO:
        clients["admission"] = TAIL
    else:
        clients["admission"] = FIT if profile.admission is Admission.FIT else DEPTH
    more["window_initial"] = clients["window"]
    more["mss"] = tcp.mss_bytes
    more["loss"] = int(group.loss_probability * 2.0**64)
    more["timer"] = FOREVER
    more["elide_max"] = profile.eliding.max_topics
    more["elide_delay"] = profile.eliding.delay_ns
    more["redelivery_delay"] = max(1, profile.redelivery_delay_ns)
    if group.link_rate_bits_per_second > 0:
        what = f"client group {group.name!r}"
        more["link_num"], more["link_den"] = line_rate(what, group.link_rate_bits_per_second)


def _lay_tcp(group: ClientGroup, profile: Profile, connections: npt.NDArray[Any]) -> int:
    """Lay out the connections of a group whose links lose segments; return the largest window in segments."""
    tcp = profile.tcp
    most = max(1, tcp.max_window_bytes // tcp.mss_bytes)
    if most > WINDOW_SEGMENTS_MAX or tcp.minimum_time_out_ns < 1 or group.delayed_acknowledgment_ns < 0:
        raise InvalidInput(
            f"client group {group.name!r} loses segments: its maximum window is {most} of them, its least time-out "
            f"{tcp.minimum_time_out_ns} ns, its acknowledgments are delayed by {group.delayed_acknowledgment_ns} ns",
            remedy=f"Give at most {WINDOW_SEGMENTS_MAX} segments, a time-out above 0 and a delay of at least 0.",
        )
    back = group.round_trip_ns // 2
    first = group.round_trip_ns + group.acknowledgment_latency_ns  # of the handshake
    for field in ("first", "last", "answer_first", "answer_last", "arriving", "recover", "delayed_until", "epoch",
                  "answered", "repeated"):  # fmt: skip
        connections[field] = NONE
    connections["most"] = most
    connections["initial"] = connections["window"] = min(tcp.initial_window_segments, most)
    connections["threshold"] = connections["due"] = FOREVER
    connections["least_time_out"] = tcp.minimum_time_out_ns
    connections["smoothed"], connections["variation"] = first, first // 2
    wanted = max(tcp.minimum_time_out_ns, first + 4 * (first // 2))
    connections["time_out"] = min(wanted, max(TIME_OUT_MAX_NS, tcp.minimum_time_out_ns))
    connections["delay"] = min(group.delayed_acknowledgment_ns, FOREVER)
    connections["forth"] = group.round_trip_ns - back
    connections["back"] = back + group.acknowledgment_latency_ns
    connections["cubic"] = tcp.congestion_control is CongestionControl.CUBIC
    return most


def _lay_queues(
    scenario: Scenario, profile: Profile, queues: npt.NDArray[Any], tallies: npt.NDArray[Any]
) -> None:  # fmt: skip
    queues["head"] = queues["tail"] = NONE
    for index, name in enumerate(QUEUE_ORDER):
        limits = profile.queues.get(name)
        if limits is None and scenario.model is Model.TIBCO and name is not Queue.D_1:
            continue
        if limits is None:
            raise InvalidInput(f"profile {profile.name!r} has nothing on queue {name}", remedy="Give its limits.")
        depth, burst = limits.max_depth_work_units, limits.min_msg_burst
        if not (1 <= depth <= LIMIT_MAX and 0 <= burst <= LIMIT_MAX and limits.weight >= 1):
            raise InvalidInput(
                f"profile {profile.name!r}, queue {name}: depth {depth}, burst {burst}, weight {limits.weight}",
                remedy=f"Depth and weight are at least 1, the burst at least 0, none above {LIMIT_MAX}.",
            )
        queues["max_depth"][index::QUEUES] = limits.max_depth_work_units
        queues["burst"][index::QUEUES] = limits.min_msg_burst
        if profile.scheduler is Scheduler.WEIGHTED:
            tallies["weight"][index::QUEUES] = limits.weight


def _lay_endpoint(endpoints: npt.NDArray[Any], tracked: bool) -> None:
    """Initialize endpoints without limits; `tracked`: whether deliveries count until they are acknowledged."""
    for end in ("head", "tail"):
        for list_name in ("waiting", "returned", "reading"):
            endpoints[f"{list_name}_{end}"] = NONE
    endpoints["tracked"] = tracked
    endpoints["batch_head"] = NONE
    endpoints["window"] = endpoints["limit"] = endpoints["library_due"] = FOREVER
    endpoints["threshold"] = 1
    endpoints["held_max"] = endpoints["bytes_max"] = endpoints["low_max"] = NONE


def _lay_flows(endpoints: npt.NDArray[Any], given: Endpoint) -> None:
    """Set the limits of a client's endpoint and of its flows, which are alike, so that windows and limits add up."""
    delay: Nanoseconds = given.acknowledge_delay_ns
    limit = given.unacknowledged_limit_messages
    endpoints["window"] = window = given.flows * given.window_messages
    endpoints["limit"] = FOREVER if limit < 0 else given.flows * limit
    endpoints["threshold"] = max(1, -(-window * given.library_threshold_percent // 100))
    endpoints["timer"] = min(given.library_timer_ns, FOREVER)
    endpoints["held_max"] = given.max_messages
    endpoints["bytes_max"] = given.max_spool_usage_bytes
    endpoints["low_max"] = given.low_priority_limit_messages
    endpoints["acknowledge_delay"] = FOREVER if delay >= INFINITE_NS else delay


def _lay_traffics(scenario: Scenario, ranges: Mapping[str, tuple[int, int]]) -> npt.NDArray[Any]:
    """Return the array TRAFFIC, in the order of the scenario's traffic."""
    traffics = np.zeros(max(1, len(scenario.traffic)), TRAFFIC)
    for number, traffic in enumerate(scenario.traffic):
        laid = traffics[number]
        laid["time_to_live"] = 0 if traffic.time_to_live_ns >= INFINITE_NS else traffic.time_to_live_ns
        laid["priority"] = traffic.priority
        laid["dead_eligible"] = traffic.dead_message_eligible
        laid["first"], laid["members"] = ranges[traffic.to]
    return traffics


def _lay_durable_queue(
    scenario: Scenario,
    replication: int,
    layout: Layout,
    d: int,
    queue: DurableQueue,
    ranges: Mapping[str, tuple[int, int]],
) -> None:
    """Lay out the client that represents a durable queue, and the flows of the queue's clients."""
    number = int(layout.durables["number"][d])
    client, more, endpoint = (
        array[number : number + 1] for array in (layout.clients, layout.more, layout.endpoints)
    )  # fmt: skip
    client["unsent"] = client["head"] = client["tail"] = NONE
    client["next_ack"] = more["timer"] = FOREVER
    client["traits"] = SPOOL | TRACKED
    more["endpoint"] = number
    more["durable"] = d
    more["next_absence"] = INFINITE_NS
    queues = slice(number * QUEUES, (number + 1) * QUEUES)
    layout.queues["head"][queues] = layout.queues["tail"][queues] = NONE
    _lay_endpoint(endpoint, tracked=True)
    endpoint["held_max"] = queue.max_messages
    endpoint["bytes_max"] = queue.max_spool_usage_bytes
    endpoint["low_max"] = queue.low_priority_limit_messages
    for flow in queue.flows:
        first, size = ranges[flow.group]
        span = slice(first, first + size)
        layout.more["durable"][span] = d
        layout.clients["traits"][span] |= SHARED | HOLD | TRACKED | EAGER
        _lay_endpoint(layout.endpoints[span], tracked=True)
        flows = layout.endpoints[span]
        _lay_flows(flows, flow_endpoint(queue, flow))
        flows["held_max"] = flows["bytes_max"] = flows["low_max"] = NONE
        flows["fails"] = min(int(flow.fails * 2.0**64), 2**64 - 1)
        flows["refuses"] = min(int((flow.fails + flow.rejects) * 2.0**64), 2**64 - 1)
        flows["fail_key"] = stream_keys(scenario.seed, replication, ("fails", flow.group), size)


def lay_durable_queues(
    scenario: Scenario, ranges: Mapping[str, tuple[int, int]]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the arrays DURABLE, FLOW and BACKLOG of all durable queues.

    Raises:
        InvalidInput: a flow names a group that does not exist.
    """
    durables = np.zeros(max(1, len(scenario.durable_queues)), DURABLE)
    durables["rebalances"] = durables["handoff"] = FOREVER
    numbers = {queue.name: d for d, queue in enumerate(scenario.durable_queues)}
    lines = 0
    clients: list[int] = []
    bound: list[int] = []
    for d, queue in enumerate(scenario.durable_queues):
        durables["number"][d] = ranges[queue.name][0]
        durables["flow"][d] = len(clients)
        for flow in queue.flows:
            if flow.group not in ranges:
                raise InvalidInput(
                    f"durable queue {queue.name!r} has flows of the group {flow.group!r}, which is unknown",
                    remedy="Name a group of the scenario.",
                )
            first, size = ranges[flow.group]
            clients.extend(range(first, first + size))
        durables["flows"][d] = durables["binds"][d] = len(clients) - durables["flow"][d]
        bound.extend(range(len(clients) - len(bound)))
        durables["access"][d] = NON_EXCLUSIVE if queue.access is Access.NON_EXCLUSIVE else EXCLUSIVE
        if queue.partitions > 0:
            durables["access"][d] = PARTITIONED
        durables["backlog"][d] = lines
        durables["backlogs"][d] = queue.partitions or (PRIORITIES if queue.respects_priority else 1)
        lines += int(durables["backlogs"][d])
        durables["respects_time_to_live"][d] = queue.respects_time_to_live
        durables["max_time_to_live"][d] = 0 if queue.max_time_to_live_ns >= INFINITE_NS else queue.max_time_to_live_ns
        durables["max_redelivery"][d] = max(0, queue.max_redelivery)
        durables["rebalance_delay"][d] = queue.rebalance_delay_ns
        durables["handoff_max"][d] = queue.max_handoff_ns
        durables["dead_queue"][d] = numbers.get(queue.dead_message_queue, NONE)
    flows = np.zeros(max(1, len(clients)), FLOW)
    flows["client"][: len(clients)] = clients
    flows["bound"][: len(bound)] = bound
    backlogs = np.zeros(max(1, lines), BACKLOG)
    for field in ("head", "tail", "client", "upcoming", "dealt"):
        backlogs[field] = NONE
    for durable in durables:
        if durable["access"] == PARTITIONED and durable["flows"]:
            partitions = backlogs[durable["backlog"] : durable["backlog"] + durable["backlogs"]]
            places = durable["flow"] + np.arange(len(partitions)) % durable["flows"]
            partitions["client"] = flows["client"][places]
    return durables, flows, backlogs
