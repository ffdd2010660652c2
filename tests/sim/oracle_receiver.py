"""A client's end of a connection in plain Python: its receive buffer, its readers, how long each message takes.

All in the client's own time; what the broker learns of it half a round trip later is the connection's affair.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qsctl.instant import INFINITE_NS
from qsctl.sim.kernel.random import exponential, logarithm, normal, stream_key, uniform
from qsctl.sim.kernel.records import FOREVER
from qsctl.sim.scenario.parts.client import (
    ConstantTime,
    ExponentialTime,
    LognormalTime,
    MixedTime,
    ParetoTime,
    ServiceTime,
    UniformTime,
)


def drawn(time: ServiceTime, key: int, n: int) -> int:
    """Return draw `n` of a service time."""
    bits = np.uint64(key)
    with np.errstate(over="ignore"):
        match time:
            case ConstantTime(duration_ns):
                return duration_ns
            case LognormalTime(median_ns, sigma, maximum_ns):
                wanted = exponential(logarithm(float(median_ns)) + sigma * normal(bits, n))
            case ExponentialTime(mean_ns, maximum_ns):
                wanted = -logarithm(uniform(bits, n)) * mean_ns
            case ParetoTime(minimum_ns, shape, maximum_ns):
                wanted = minimum_ns * exponential(-logarithm(uniform(bits, n)) / shape)
            case UniformTime(minimum_ns, maximum_ns):
                return minimum_ns + int(uniform(bits, n) * (float(maximum_ns) - minimum_ns + 1.0))
            case MixedTime(times_ns, weights):
                u, reached = uniform(bits, n), 0.0
                for value, weight in zip(times_ns, weights, strict=True):
                    reached += weight
                    if reached / sum(weights) > u:
                        return value
                return times_ns[-1]
    return max(1, min(maximum_ns, int(np.floor(wanted + 0.5))))


@dataclass(eq=False)
class Receiver:
    """The application of one client, over all of its connections."""

    group: Any
    profile: Any
    pauses: list[tuple[int, int]]
    service_key: int
    served: int = 0
    free_at: list[int] = field(default_factory=list)
    """When each reader is free, in the order of the readers."""

    def __post_init__(self) -> None:
        self.connect()

    def connect(self) -> None:
        """Begin a connection: nothing is read."""
        self.free_at = [0] * self.group.readers

    @property
    def buffer_bytes(self) -> int:
        return int(self.group.receive_buffer_bytes or self.profile.tcp.max_window_bytes)

    @property
    def reads(self) -> bool:
        """Whether reading takes time or room: else a message is read as it arrives."""
        small = 0 < self.group.receive_buffer_bytes < self.profile.tcp.max_window_bytes
        return bool(self.pauses) or self.group.service_time != ConstantTime() or small

    def read(self, arrived: int) -> tuple[int, int]:
        """Return when a reader begins the message that has arrived at `arrived`, and when it has done it."""
        first = min(self.free_at)
        begins = max(arrived, first)
        for start, end in self.pauses:
            if start <= begins < end:
                begins = end
                break
        begins = FOREVER if begins >= INFINITE_NS else min(begins, FOREVER)
        service = drawn(self.group.service_time, self.service_key, self.served)
        self.served += 1
        done = min(begins + service, FOREVER)
        self.free_at[self.free_at.index(first)] = done
        return begins, done


def receiver_of(scenario: Any, outages: Any, replication: int, group: Any, profile: Any, number: int) -> Receiver:
    """Return the receiver of a group's client."""
    key = stream_key(scenario.seed, replication, "service", group.name, number)
    return Receiver(group, profile, outages.pauses.get(group.name, []), key)
