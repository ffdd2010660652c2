"""Parts of a scenario whose clients do not influence one another, so that each part can be simulated separately.

Resources that clients share, by the sources and in the kernels:

- a port: its clients send through one FIFO (of each link of an aggregation group), as do those of a slower link behind
  it. A port is never divided, and a scenario of one port is one part;
- a durable queue: its flows' clients compete for its messages, and its dead message queue receives the messages that it
  removes [SOL-ENDPOINTS]. Groups with flows of one queue, and queues connected by dead messages, are one part. A shared
  subscription, a fan-out and an endpoint belong to one group, and so to one port;
- the whole broker: egress buffers, whose load disconnects the slowest client; the ingress rate, first come first
  served, and the ingress buffers that it fills [SOL-QUEUES, "Data Buffer Management"]; the limit of unacknowledged
  deliveries of all flows. A scenario that sets one of them is one part.

Everything else belongs to one client: its queues, connection, window, endpoint, slowness and keepalives, and its random
numbers, whose keys are derived from names (`sim.arrivals.streams`). Profiles are limits, not shared state, and a timed
change of one applies to each of its clients.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from qsctl.instant import SECOND_NS
from qsctl.sim.scenario.changes import changed_part
from qsctl.sim.scenario.scenario import (
    MmppArrivals,
    OnOffArrivals,
    Scenario,
    ScheduleArrivals,
    TraceArrivals,
    Traffic,
)

MOST_PARTS: Final = 8
"""Each part has arrays and windows of arrivals of its own; ports beyond are put together, the loads about equal."""
TRACE_ROW_BYTES: Final = 20
"""About what a row of a trace takes in its file."""

Node = tuple[str, str]
"""`port`, `group` or `queue`, and a name."""


def independent_parts(scenario: Scenario) -> tuple[Scenario, ...]:
    """Return the parts of a scenario, in the order of their first groups; the scenario alone where it is one part.

    The parts depend on the scenario alone, never on the machine. A scenario with an unknown or duplicate name is one
    part:
    its layout raises the error.
    """
    broker = scenario.broker
    if broker.egress_buffer_bytes > 0 or broker.ingress_rate_bits_per_second > 0:
        return (scenario,)
    if broker.unacknowledged_limit_messages >= 0:
        return (scenario,)
    nodes: list[Node] = [
        *(("port", each.name) for each in scenario.ports),
        *(("group", each.name) for each in scenario.groups),
        *(("queue", each.name) for each in scenario.durable_queues),
    ]
    whole = _joined(nodes, _links(scenario))
    if whole is None or any(each.count < 1 for each in scenario.groups):
        return (scenario,)
    if any((changed := changed_part(each)) is not None and changed not in whole for each in scenario.changes):
        return (scenario,)
    loads = dict.fromkeys(whole.values(), 0.0)
    for traffic in scenario.traffic:
        kind = "group" if ("group", traffic.to) in whole else "queue"
        if (kind, traffic.to) not in whole:
            return (scenario,)
        loads[whole[kind, traffic.to]] += expected_arrivals(scenario, traffic)
    loaded = {each: load for each, load in loads.items() if load > 0 and _has_clients(whole, each)}
    if len(loaded) < 2:
        return (scenario,)
    place = _places(loaded)
    parts = sorted(set(place.values()), key=lambda part: _first_group(scenario, whole, place, part))
    return tuple(
        _part(scenario, {node for node, first in whole.items() if place.get(first, parts[0]) == part}) for part in parts
    )


def expected_arrivals(scenario: Scenario, traffic: Traffic) -> float:
    """Return the approximate number of messages of a traffic, counted once for each client that receives them."""
    clients = next((each.count for each in scenario.groups if each.name == traffic.to), 1)
    copies = 1 if traffic.shared else clients
    arrivals = traffic.arrivals
    if isinstance(arrivals, TraceArrivals):
        path = Path(arrivals.path)
        return path.stat().st_size / TRACE_ROW_BYTES if path.is_file() else 0.0
    if isinstance(arrivals, MmppArrivals):
        total = max(1, sum(arrivals.mean_stays_ns))
        rate = sum(r * s for r, s in zip(arrivals.rates_per_second, arrivals.mean_stays_ns, strict=False)) / total
    elif isinstance(arrivals, ScheduleArrivals):
        ends = (*arrivals.instants_ns[1:], arrivals.period_ns)
        stays = [end - start for start, end in zip(arrivals.instants_ns, ends, strict=True)]
        rate = sum(r * s for r, s in zip(arrivals.rates_per_second, stays, strict=False)) / max(1, arrivals.period_ns)
    elif isinstance(arrivals, OnOffArrivals):
        rate = arrivals.rate_per_second * arrivals.on_ns / max(1, arrivals.on_ns + arrivals.off_ns)
    else:
        rate = arrivals.rate_per_second
    return copies * rate * max(0, min(traffic.stop_ns, scenario.horizon_ns) - traffic.start_ns) / SECOND_NS


def _links(scenario: Scenario) -> Iterable[tuple[Node, Node]]:
    """Yield pairs of groups, ports and queues that share a resource."""
    for group in scenario.groups:
        yield ("group", group.name), ("port", group.port)
    for queue in scenario.durable_queues:
        for flow in queue.flows:
            yield ("queue", queue.name), ("group", flow.group)
        if queue.dead_message_queue:
            yield ("queue", queue.name), ("queue", queue.dead_message_queue)
    for endpoint in scenario.endpoints:
        yield ("group", endpoint.to), ("group", endpoint.to)


def _joined(nodes: list[Node], links: Iterable[tuple[Node, Node]]) -> dict[Node, Node] | None:
    """Return for each node the representative of its component; None where a name is unknown or used twice."""
    first = {node: node for node in nodes}
    if len(first) < len(nodes):
        return None

    def root(node: Node) -> Node:
        while first[node] != node:
            node = first[node]
        return node

    for one, other in links:
        if one not in first or other not in first:
            return None
        first[root(other)] = root(one)
    return {node: root(node) for node in nodes}


def _has_clients(whole: dict[Node, Node], component: Node) -> bool:
    return any(kind == "group" and whole[kind, name] == component for kind, name in whole)


def _places(loads: dict[Node, float]) -> dict[Node, int]:
    """Return the part of each component by its load: the largest first, each to the part with the least load so far."""
    totals = [0.0] * min(MOST_PARTS, len(loads))
    places: dict[Node, int] = {}
    for component in sorted(loads, key=lambda each: -loads[each]):
        part = min(range(len(totals)), key=totals.__getitem__)
        places[component] = part
        totals[part] += loads[component]
    return places


def _first_group(scenario: Scenario, whole: dict[Node, Node], places: dict[Node, int], part: int) -> int:
    return next(i for i, each in enumerate(scenario.groups) if places.get(whole["group", each.name]) == part)


def _part(scenario: Scenario, own: set[Node]) -> Scenario:
    """Return the scenario reduced to one part's ports, groups and queues and the elements that refer to them."""
    changes = [(change, changed_part(change)) for change in scenario.changes]
    return replace(
        scenario,
        ports=tuple(each for each in scenario.ports if ("port", each.name) in own),
        groups=tuple(each for each in scenario.groups if ("group", each.name) in own),
        durable_queues=tuple(each for each in scenario.durable_queues if ("queue", each.name) in own),
        traffic=tuple(each for each in scenario.traffic if ("group", each.to) in own or ("queue", each.to) in own),
        endpoints=tuple(each for each in scenario.endpoints if ("group", each.to) in own),
        changes=tuple(change for change, changed in changes if changed is None or changed in own),
    )
