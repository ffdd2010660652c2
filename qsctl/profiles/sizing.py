"""The arithmetic of a client profile under a load of guaranteed messages: what fits, what is required, what it takes.

Decides: the formulas, each shown with its numbers. They are bounds without queueing: a simulation shows the effect of a
load between them (`difference_from_simulation`). The simulator's bound on memory uses the same functions.

Source: Message Delivery Resources, "Queue Max Depths", "Configuring Egress Queue Minimum Message Bursts"; the vendor's
tuning guide for flows, windows and G-1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.profiles.client_profile import QUEUE_ORDER, WORK_UNIT_BYTES, ClientProfile, Queue, burst_field, depth_field
from qsctl.profiles.client_profile import work_units as work_units_of
from qsctl.profiles.ranges import BY_FIELD

KILOBYTE_BYTES: Final = 1024
DEFAULT_WINDOW_MESSAGES: Final = 255
"""Of a consumer's flow, in the vendor's APIs."""
DEFAULT_UNACKNOWLEDGED_LIMIT: Final = 10_000
"""Of each flow of an endpoint: max-delivered-unacked-msgs-per-flow."""


@dataclass(frozen=True, slots=True)
class ClientLoad:
    """The load of one client, and the number of clients.

    Args:
        flows: consumer flows of one client.
        window_messages: of one flow, on their way to the client's library, which acknowledges them to the broker.
        message_bytes: length of a message.
        clients: with this profile.
        round_trip_ns: from a message's entry into G-1 to the library's acknowledgment; 0 where it is not known.
        bits_per_second: wanted for one client; 0 where it is not known.
        unacknowledged_limit: of one flow, delivered messages that the application has not acknowledged.
        acknowledge_after_ns: from a message's delivery to the application's acknowledgment; 0 where it is not known.
    """

    flows: int = 1
    window_messages: int = DEFAULT_WINDOW_MESSAGES
    message_bytes: int = 1024
    clients: int = 1
    round_trip_ns: Nanoseconds = 0
    bits_per_second: int = 0
    unacknowledged_limit: int = DEFAULT_UNACKNOWLEDGED_LIMIT
    acknowledge_after_ns: Nanoseconds = 0

    @property
    def messages_per_second(self) -> float:
        """The required rate; 0 where it is not known."""
        return self.bits_per_second / (8 * self.message_bytes)


@dataclass(frozen=True, slots=True)
class SizingLine:
    """One result: what it is, its formula, the numbers in it, its value and unit."""

    quantity: str
    formula: str
    numbers: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class ClientSizing:
    """The lines in order, what limits the guaranteed delivery of one client, and the settings that suffice."""

    lines: tuple[SizingLine, ...]
    limit: str
    is_enough: bool
    burst_needed: int
    depth_needed_work_units: int
    memory_bytes: int

    def line(self, quantity: str) -> SizingLine:
        """Return the line of a quantity."""
        return next(line for line in self.lines if line.quantity == quantity)


def direct_work_units(depth: int, burst: int, largest: int) -> int:
    """Return the most work units that a direct queue can hold, of messages of up to `largest` work units.

    A message is accepted whole while the depth is below the maximum, and up to the burst whatever their sizes.
    """
    return max(depth - 1 + largest, burst * largest)


def guaranteed_work_units(depth: int, burst: int, largest: int, wanted_messages: int | None = None) -> int:
    """Return the most work units that G-1 can hold: within its depth or its burst, and no more than the windows allow.

    Args:
        depth: of G-1, in work units.
        burst: of G-1, in messages.
        largest: work units of a message.
        wanted_messages: flows × window; None where nothing bounds them.
    """
    held = max(depth, max(1, burst) * largest)
    return held if wanted_messages is None else min(held, wanted_messages * largest)


def admitted_messages(depth: int, burst: int, units: int) -> int:
    """Return how many messages of the given work units G-1 admits: the greater of the burst and what fits the depth."""
    return max(1, burst, depth // units)


def size(profile: ClientProfile, load: ClientLoad) -> ClientSizing:
    """Return the arithmetic of a profile under a load."""
    units = work_units_of(load.message_bytes)
    g_1 = profile.queue(Queue.G_1)
    wanted = load.flows * load.window_messages
    admitted = admitted_messages(g_1.max_depth_work_units, g_1.min_msg_burst, units)
    in_flight = min(wanted, admitted)
    lines = [
        SizingLine("work units of a message", "max(1, ceil(length ÷ 2048))", f"ceil({load.message_bytes} ÷ 2048)",
             units, "work units"),
        SizingLine("wanted in flight", "flows × window", f"{load.flows} × {load.window_messages}", wanted, "messages"),
        SizingLine("wanted in G-1", "flows × window × work units", f"{wanted} × {units}", wanted * units, "work units"),
        SizingLine("admitted by G-1", "max(min-msg-burst, max-depth ÷ work units)",
             f"max({g_1.min_msg_burst}, {g_1.max_depth_work_units} ÷ {units})", admitted, "messages"),
        SizingLine("in flight", "min(wanted, admitted)", f"min({wanted}, {admitted})", in_flight, "messages"),
    ]  # fmt: skip
    memory = _memory(profile, units, wanted, load.clients, lines)
    limits: dict[str, float] = {}
    inner = "the flows' windows" if wanted <= admitted else "G-1"
    if load.round_trip_ns:
        limits |= _rates(profile, load, in_flight, inner, lines)
    if load.acknowledge_after_ns:
        limits |= _acknowledged(load, lines)
    limit = min(limits, key=lambda each: limits[each]) if limits else inner
    return ClientSizing(tuple(lines), limit, wanted <= admitted, wanted, wanted * units, memory)


def _memory(profile: ClientProfile, units: int, wanted: int, clients: int, lines: list[SizingLine]) -> int:
    g_1 = profile.queue(Queue.G_1)
    guaranteed = guaranteed_work_units(g_1.max_depth_work_units, g_1.min_msg_burst, units, wanted)
    direct = 0
    for queue in QUEUE_ORDER[1:]:
        limits = profile.queue(queue)
        direct += direct_work_units(limits.max_depth_work_units, limits.min_msg_burst, units)
    one = (guaranteed + direct) * WORK_UNIT_BYTES
    lines += [
        SizingLine("G-1 at most", "min(max(max-depth, min-msg-burst × work units), wanted)",
             f"min(max({g_1.max_depth_work_units}, {g_1.min_msg_burst} × {units}), {wanted * units})", guaranteed,
             "work units"),
        SizingLine("direct and control queues at most", "Σ max(max-depth - 1 + work units, min-msg-burst × work units)",
             "over D-1, D-2, D-3, C-1", direct, "work units"),
        SizingLine("memory of one client", "(G-1 + others) × 2048", f"({guaranteed} + {direct}) × 2048", one, "bytes"),
        SizingLine("memory of all clients", "clients × memory of one", f"{clients} × {one}", clients * one, "bytes"),
    ]  # fmt: skip
    return clients * one


def tcp_bits_per_second(profile: ClientProfile, round_trip_ns: Nanoseconds) -> float:
    """Return the maximum rate of a TCP connection, one maximum window a round trip, in bits a second (W8)."""
    return profile.tcp_max_window_kb * KILOBYTE_BYTES * 8 * SECOND_NS / round_trip_ns


def _rates(
    profile: ClientProfile, load: ClientLoad, in_flight: int, inner: str, lines: list[SizingLine]
) -> dict[str, float]:
    """Return the rate that each limit allows in a round trip, in messages a second, by the limit's name."""
    seconds = load.round_trip_ns / SECOND_NS
    window = profile.tcp_max_window_kb * KILOBYTE_BYTES
    by_tcp = max(1.0, window / load.message_bytes)
    lines += [
        SizingLine("guaranteed messages at most", "in flight ÷ round trip", f"{in_flight} ÷ {seconds:g} s",
             in_flight / seconds, "messages/s"),
        SizingLine("TCP connection at most", "maximum window × 8 ÷ round trip", f"{window} × 8 ÷ {seconds:g} s",
             tcp_bits_per_second(profile, load.round_trip_ns), "bit/s"),
        SizingLine("one client at most", "min(in flight, window ÷ length) ÷ round trip",
             f"min({in_flight}, {window} ÷ {load.message_bytes}) ÷ {seconds:g} s",
             min(in_flight, by_tcp) / seconds, "messages/s"),
    ]  # fmt: skip
    if load.bits_per_second:
        lines.append(
            SizingLine("TCP window needed", "rate × round trip ÷ 8", f"{load.bits_per_second} × {seconds:g} s ÷ 8",
                 load.bits_per_second * seconds / 8, "bytes")
        )  # fmt: skip
    return {inner: in_flight / seconds, "the TCP window": by_tcp / seconds}


def acknowledged_per_second(load: ClientLoad) -> float:
    """Return the messages a second that the flows' limits of unacknowledged messages allow a client (W12)."""
    return load.flows * load.unacknowledged_limit * SECOND_NS / load.acknowledge_after_ns


def _acknowledged(load: ClientLoad, lines: list[SizingLine]) -> dict[str, float]:
    """Return the rate that the application's acknowledgments allow, independent of the flow's window."""
    seconds = load.acknowledge_after_ns / SECOND_NS
    rate = acknowledged_per_second(load)
    lines.append(
        SizingLine("acknowledged by the application", "flows × unacknowledged limit ÷ time to acknowledge",
             f"{load.flows} × {load.unacknowledged_limit} ÷ {seconds:g} s", rate, "messages/s")
    )  # fmt: skip
    return {"the limit of unacknowledged messages": rate}


def levers(profile: ClientProfile, load: ClientLoad, sizing: ClientSizing) -> tuple[str, ...]:
    """Return what to change if G-1 admits less than the flows require; empty if it admits enough."""
    if sizing.is_enough:
        return ()
    burst, depth = BY_FIELD[burst_field(Queue.G_1)], BY_FIELD[depth_field(Queue.G_1)]
    admitted = int(sizing.line("admitted by G-1").value)
    found = []
    if sizing.burst_needed <= burst.maximum:
        found.append(f"min-msg-burst of G-1 at least {sizing.burst_needed:,} (it is {profile.g_1_min_msg_burst:,})")
    if sizing.depth_needed_work_units <= depth.maximum:
        found.append(
            f"or max-depth of G-1 at least {sizing.depth_needed_work_units:,} work units "
            f"(it is {profile.g_1_max_depth_work_units:,})"
        )
    if admitted >= load.flows:
        found.append(f"or windows of at most {admitted // load.flows:,} messages a flow")
    return tuple(found)


def difference_from_simulation(load: ClientLoad) -> tuple[str, ...]:
    """Return the reasons why a simulation of the same load may find smaller settings sufficient."""
    reasons = [
        "the arithmetic takes every window as full; the simulation holds what the load has in flight: rate × time "
        "from entry to acknowledgment, which is less until a consumer stops",
        "time from entry to acknowledgment includes waiting for the port and the TCP window, which the round trip "
        "alone does not: slow start and a busy port fill windows that the load alone would not",
    ]  # fmt: skip
    if load.clients > 1:
        reasons.append("memory is the sum of what each queue may hold; clients are rarely all full at once")
    return tuple(reasons)
