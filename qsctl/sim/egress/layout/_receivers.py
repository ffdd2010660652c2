"""The clients' ends of their connections as record arrays: receive buffers, readers, distributions of service times."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qsctl.errors import InvalidInput
from qsctl.sim.arrivals.quantities import lay_quantity
from qsctl.sim.kernel.lines import zeros_in_lines
from qsctl.sim.kernel.random import stream_keys
from qsctl.sim.kernel.records import NONE, READER, RECEIVER, SHARE
from qsctl.sim.scenario.changes import Outages
from qsctl.sim.scenario.parts.client import READERS_MAX, ConstantTime
from qsctl.sim.scenario.scenario import ClientGroup, Profile, Scenario


def reading_matters(group: ClientGroup, profile: Profile, outages: Outages) -> bool:
    """Return whether a group's clients need time or room to read; else TCP's acknowledgments describe them completely.

    While messages are read on arrival, a buffer as large as the maximum window limits nothing beyond the window.
    """
    small = 0 < group.receive_buffer_bytes < profile.tcp.max_window_bytes
    return bool(outages.pauses.get(group.name)) or group.service_time != ConstantTime() or small


def lay_receivers(
    scenario: Scenario, replication: int, outages: Outages
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the arrays RECEIVER, READER and SHARE of all clients.

    Raises:
        InvalidInput: a group without a reader, or a buffer or service time out of range.
    """
    profiles = {profile.name: profile for profile in scenario.profiles}
    count = sum(max(0, group.count) for group in scenario.groups) + len(scenario.durable_queues)
    receivers = zeros_in_lines(count, RECEIVER)
    receivers["unread_head"] = receivers["unread_tail"] = NONE
    shares: list[float] = [0.0]
    readers = first = 0
    for group in scenario.groups:
        profile = profiles.get(group.profile)
        if group.receive_buffer_bytes < 0 or not 1 <= group.readers <= READERS_MAX:
            raise InvalidInput(
                f"client group {group.name!r}: {group.readers} readers, receive buffer {group.receive_buffer_bytes}",
                remedy=f"Give from 1 to {READERS_MAX} readers, and a buffer of at least 0 bytes.",
            )
        span = receivers[first : first + group.count]
        first += group.count
        if profile is None or not reading_matters(group, profile, outages):
            continue
        span["buffer"] = group.receive_buffer_bytes or profile.tcp.max_window_bytes
        span["back"] = group.round_trip_ns // 2
        span["latency"] = group.acknowledgment_latency_ns
        span["key_size"] = stream_keys(scenario.seed, replication, ("service", group.name), len(span))
        span["readers"] = group.readers
        span["reader"] = readers + np.arange(len(span)) * group.readers
        readers += len(span) * group.readers
        # No time at all is a service time, too.
        if not lay_quantity(span, group.service_time, shares) and group.service_time != ConstantTime():
            raise InvalidInput(
                f"client group {group.name!r}: the service time {group.service_time} is none of at least 1 ns",
                remedy="Give times of at least 1 ns, minimum ≤ maximum, and a weight for each time.",
            )
    return receivers, np.zeros(max(1, readers), READER), np.array(shares, np.float64).view(SHARE)
