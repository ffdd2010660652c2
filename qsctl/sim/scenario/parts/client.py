"""The clients of a broker: their connections, their applications' service times, their pauses and absences.

The distributions of the service time are those that the lengths of messages have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from qsctl.instant import INFINITE_NS, MILLISECOND_NS, SECOND_NS, Nanoseconds

LONGEST_NS: Final = 3600 * SECOND_NS
"""Bound of a distribution without one unless its maximum sets it."""


@dataclass(frozen=True, slots=True)
class ConstantTime:
    """The same time for every message; 0: any number of messages is read immediately."""

    duration_ns: Nanoseconds = 0


@dataclass(frozen=True, slots=True)
class UniformTime:
    """Any time from minimum to maximum, both included."""

    minimum_ns: Nanoseconds
    maximum_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class LognormalTime:
    """Lognormal times, by the median and the sigma of the logarithm; at most the maximum, at least one nanosecond."""

    median_ns: Nanoseconds
    sigma: float
    maximum_ns: Nanoseconds = LONGEST_NS


@dataclass(frozen=True, slots=True)
class ExponentialTime:
    """Exponential times around a mean; cut at the maximum, never below a nanosecond."""

    mean_ns: Nanoseconds
    maximum_ns: Nanoseconds = LONGEST_NS


@dataclass(frozen=True, slots=True)
class ParetoTime:
    """Many short and few very long: P(time > x) = (minimum ÷ x)^shape; cut at the maximum."""

    minimum_ns: Nanoseconds
    shape: float
    maximum_ns: Nanoseconds = LONGEST_NS


@dataclass(frozen=True, slots=True)
class MixedTime:
    """Times drawn from a list with weights."""

    times_ns: tuple[Nanoseconds, ...]
    weights: tuple[float, ...]


ServiceTime: TypeAlias = ConstantTime | UniformTime | LognormalTime | ExponentialTime | ParetoTime | MixedTime


@dataclass(frozen=True, slots=True)
class ClientInterval:
    """An interval of `duration_ns` from `start_ns`, repeated if it has a period."""

    start_ns: Nanoseconds
    duration_ns: Nanoseconds
    every_ns: Nanoseconds = INFINITE_NS


RECEIVE_BUFFER_BYTES_MAX: Final = 2**30
"""The largest window that TCP's window scale option can express (RFC 7323)."""
READERS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class ClientGroup:
    """A group of `count` equal clients. In `pauses` they begin no message; in `absences` they are disconnected."""

    name: str
    port: str
    profile: str
    count: int = 1
    round_trip_ns: Nanoseconds = MILLISECOND_NS
    link_rate_bits_per_second: int = 0
    """The rate of a slower link between port and client, in bits a second; 0: the port's rate."""
    loss_probability: float = 0.0
    """Probability that a TCP segment sent to the client is lost."""
    delayed_acknowledgment_ns: Nanoseconds = 40 * MILLISECOND_NS
    """A segment that no second one follows for this long is acknowledged alone (RFC 1122, 4.2.3.2), where segments are
    lost; 0: each is acknowledged as it arrives. 40 ms is Linux's."""
    acknowledgment_latency_ns: Nanoseconds = 0
    """Time that TCP's acknowledgments take beyond the round trip; it limits a rate only through the window."""
    receive_buffer_bytes: int = 0
    """The size of a connection's receive buffer, for bytes whose reading has not begun; 0: the profile's maximum
    window.
    """
    readers: int = 1
    """Number of messages that the application works on in parallel, in the order of arrival."""
    service_time: ServiceTime = ConstantTime()
    """Time that a reader needs for a message."""
    neighbor: bool = False
    """The four TCP data connections of the link to a neighbour broker of this name, not clients [SOL-QUEUES]."""
    pauses: tuple[ClientInterval, ...] = ()
    absences: tuple[ClientInterval, ...] = ()
