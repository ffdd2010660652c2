"""An upper bound of the memory of a scenario's queues under its settings, bursts and large messages included.

A queue may exceed its maximum depth: a message of any size enters while the depth is below the maximum, and the
messages of the minimum burst always enter. So the bound depends on the largest message that may arrive. A guaranteed
message enters G-1 only where it fits, or within the burst; and the windows of the flows bound their number.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from qsctl.profiles.sizing import direct_work_units, guaranteed_work_units
from qsctl.sim.scenario.parts.replay import Replay
from qsctl.sim.scenario.rules.replay import short_names
from qsctl.sim.scenario.scenario import (
    QUEUE_ORDER,
    WORK_UNIT_BYTES,
    Admission,
    ClientGroup,
    ConstantSize,
    Endpoint,
    GuaranteedOverflow,
    MixedSize,
    Model,
    Profile,
    Queue,
    QueueLimits,
    Scenario,
    TraceArrivals,
    Traffic,
    UniformSize,
    flow_endpoint,
)

SMALLEST: Final = 1
"""Work units of the messages of a queue to which none comes."""


def memory_bytes(scenario: Scenario) -> int:
    """Return the largest content of all queues of all clients in bytes; for a replay, of all queues of the service."""
    if scenario.replay is not None:
        return _replayed_bytes(scenario.replay)
    profiles = {profile.name: profile for profile in scenario.profiles}
    endpoints = {endpoint.to: endpoint for endpoint in scenario.endpoints}
    endpoints |= {flow.group: flow_endpoint(queue, flow) for queue in scenario.durable_queues for flow in queue.flows}
    largest = _largest_work_units(scenario)
    return WORK_UNIT_BYTES * sum(
        group.count
        * sum(
            queue_work_units(
                scenario, profiles[group.profile], name, limits, largest.get((group.name, name), SMALLEST),
                endpoints.get(group.name),
            )
            for name, limits in profiles[group.profile].queues.items()
        )
        for group in scenario.groups
        if group.profile in profiles
    )  # fmt: skip


def queue_work_units(
    scenario: Scenario, profile: Profile, name: Queue, limits: QueueLimits, largest: int, endpoint: Endpoint | None
) -> int:
    """Return the most work units that one queue may hold, of messages of up to `largest` work units."""
    depth, burst = limits.max_depth_work_units, limits.min_msg_burst
    if scenario.model is Model.TIBCO:
        return direct_work_units(depth, burst, largest)
    if name is Queue.G_1 and profile.guaranteed_overflow is GuaranteedOverflow.HOLD:
        return guaranteed_work_units(depth, burst, largest, None if endpoint is None else window_messages(endpoint))
    if profile.admission is Admission.FIT:
        return max(depth, largest, burst * largest)
    return direct_work_units(depth, burst, largest)


def window_messages(endpoint: Endpoint) -> int:
    """Return the largest number of unacknowledged deliveries of all flows of an endpoint."""
    limit = endpoint.unacknowledged_limit_messages
    window = endpoint.window_messages if limit < 0 else min(limit, endpoint.window_messages)
    return endpoint.flows * window


def _replayed_bytes(replay: Replay) -> int:
    """Return the largest payload in the queues of a service in bytes: their limits or, without any, all arrivals."""
    return max(_bytes_of_recording(replay, each) for each in replay.recordings)


def _bytes_of_recording(replay: Replay, recording: str) -> int:
    from qsctl.eventlog.location import location
    from qsctl.sim.replay.recording import read_recording

    sizes: dict[str, list[int]] = {}
    for row in read_recording(location(recording)).arrivals:
        sizes.setdefault(row.queue, []).append(row.size_bytes)
    names = short_names(replay.service)
    total = 0
    for queue in replay.queues:
        came = sizes.get(names[queue.name], [])
        count_max = queue.settings.limits.max_count
        count = len(came) if count_max < 0 else min(len(came), count_max)
        total += sum(sorted(came, reverse=True)[:count])
    return total


def _largest_work_units(scenario: Scenario) -> dict[tuple[str, Queue], int]:
    """Return by group and queue the work units of the largest message that may arrive."""
    groups: dict[str, ClientGroup] = {group.name: group for group in scenario.groups}
    found: dict[tuple[str, Queue], int] = {}
    consumers = {queue.name: [flow.group for flow in queue.flows] for queue in scenario.durable_queues}
    for traffic in scenario.traffic:
        if traffic.to not in groups and traffic.to not in consumers:
            continue
        clients = groups[traffic.to].count if traffic.to in groups else 1
        for queue, size_bytes in _largest_bytes(traffic, clients):
            size_bytes = min(size_bytes, scenario.broker.max_message_bytes)
            for group in consumers.get(traffic.to, [traffic.to]):
                key = (group, Queue.G_1 if traffic.to in consumers else queue)
                found[key] = max(found.get(key, SMALLEST), -(-size_bytes // WORK_UNIT_BYTES))
    return found


def _largest_bytes(traffic: Traffic, clients: int) -> list[tuple[Queue, int]]:
    size: Any = traffic.size
    if isinstance(traffic.arrivals, TraceArrivals):
        from qsctl.sim.arrivals.trace import read_trace

        rows = read_trace(Path(traffic.arrivals.path), clients)
        queues = [(QUEUE_ORDER[number], rows["bytes"][rows["queue"] == number]) for number in range(len(QUEUE_ORDER))]
        found = [(queue, int(sizes.max())) for queue, sizes in queues if len(sizes)]
        plain = rows["bytes"][rows["queue"] < 0]
        return found + ([(traffic.queue, int(plain.max()))] if len(plain) else [])
    if isinstance(size, ConstantSize):
        return [(traffic.queue, size.size_bytes)]
    if isinstance(size, MixedSize):
        likely = [each for each, weight in zip(size.sizes_bytes, size.weights, strict=True) if weight > 0]
        return [(traffic.queue, max(likely))]
    assert isinstance(size, UniformSize) or hasattr(size, "maximum_bytes")
    return [(traffic.queue, size.maximum_bytes)]
