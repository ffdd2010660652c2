"""A scenario built from captured clients: its values are captured, derived from captured ones, or assumed.

Decides: which clients form one group (similar in profile, rate, round trip and size of messages, and without trouble;
one that is slow or loses messages is a group of its own), and which parameter limits a client in trouble. A parameter
that no capture contains gets a default, and is listed with its path, so that `--set` and `calibrate` find it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean
from typing import Final

from qsctl.errors import InvalidInput
from qsctl.instant import MICROSECOND_NS, MILLISECOND_NS, SECOND_NS, format_duration
from qsctl.profiles.client_profile import ClientProfile, Queue
from qsctl.profiles.listings.slowness import SlowClient
from qsctl.sim.captured.observed import CapturedClients, ObservedClient, ObservedQueue
from qsctl.sim.scenario.overrides.overlay import overlay
from qsctl.sim.scenario.parts.client import ClientInterval, ConstantTime
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    ConstantSize,
    Endpoint,
    PoissonArrivals,
    Port,
    Profile,
    QueueLimits,
    Scenario,
    Traffic,
    default_queue_limits,
)

PORT: Final = "p1"
PORT_BITS_PER_SECOND: Final = 1_000_000_000
SIZE_BYTES: Final = 1024
ROUND_TRIP_NS: Final = MILLISECOND_NS
SHORTEST_S: Final = 10
LONGEST_S: Final = 600
UNKNOWN_S: Final = 60
"""Horizon where there was one capture alone."""
GROUPS_MAX: Final = 500
FLOWS_MAX: Final = 10_000
WINDOW_MAX: Final = 65_535
_LEAST_PER_S: Final = 0.001
"""Of a stream: what comes more seldom is none."""


class ValueOrigin(StrEnum):
    """The origin of a scenario's value: captured, derived or assumed."""

    CAPTURED = "captured"
    DERIVED = "derived"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class CapturedParameter:
    """A value of the scenario, with the path that `--set` accepts and the value's origin."""

    path: str
    value: str
    origin: ValueOrigin
    why: str


@dataclass(frozen=True, slots=True)
class CapturedGroup:
    """A group of the scenario, and the similar captured clients that it represents."""

    name: str
    clients: tuple[ObservedClient, ...]

    @property
    def trouble(self) -> SlowClient | None:
        """The limit that slows the group's only client; None: it has no trouble, or the group has several clients."""
        return self.clients[0].trouble if len(self.clients) == 1 else None

    def mean(self, of: Callable[[ObservedClient], float | None]) -> float | None:
        """Return the mean of a figure over the clients for which it is known, or None where it is known for none."""
        known = [value for each in self.clients if (value := of(each)) is not None]
        return fmean(known) if known else None

    def queue(self, queue: Queue) -> ObservedQueue | None:
        """Return the mean figures of a priority queue over the clients that have it, or None where no client has it."""
        rows = [each.queues[queue] for each in self.clients if queue in each.queues]
        if not rows:
            return None
        count = len(self.clients)
        return ObservedQueue(
            sum(each.arrived_per_s for each in rows) / count,
            sum(each.discarded_per_s for each in rows) / count,
            sum(each.arrived_messages for each in rows),
            sum(each.discarded_messages for each in rows),
            round(sum(each.depth_work_units for each in rows) / count),
            max(each.high_water_mark_work_units for each in rows),
            max(each.max_depth_work_units for each in rows),
        )


@dataclass(frozen=True, slots=True)
class CapturedScenario:
    """A scenario built from captures, its groups, and the parameters that the user should review."""

    scenario: Scenario
    groups: tuple[CapturedGroup, ...]
    parameters: tuple[CapturedParameter, ...]


def grouped(observation: CapturedClients) -> tuple[CapturedGroup, ...]:
    """Return the groups of similar clients, those in trouble first, each with a unique name.

    Raises:
        InvalidInput: there are more groups than a scenario should have.
    """
    members: dict[tuple[object, ...], list[ObservedClient]] = {}
    for each in observation.clients:
        members.setdefault(_likeness(each), []).append(each)
    if len(members) > GROUPS_MAX:
        raise InvalidInput(
            f"the captures have {len(members):,} kinds of clients", remedy=f"Capture fewer: at most {GROUPS_MAX}."
        )
    names: set[str] = set()
    ordered = sorted(members.values(), key=lambda each: not each[0].is_troubled)
    return tuple(CapturedGroup(_unique(_name_of(each), names), tuple(each)) for each in ordered)


def scenario_of(
    observation: CapturedClients, profiles: Iterable[ClientProfile] = (), name: str = "captured"
) -> CapturedScenario:
    """Return a scenario of the captured clients.

    Args:
        observation: the captured figures of the clients.
        profiles: the broker's client profiles; where one is missing, its depths are those of the listed queues.
        name: name of the scenario.
    """
    groups = grouped(observation)
    notes: list[CapturedParameter] = []
    known = {(each.message_vpn, each.name): each for each in profiles}
    made_profiles = _profiles(groups, known, notes)
    several = _several_vpns(groups)
    clients = [_group(each, several, notes) for each in groups]
    traffic = [stream for each in groups for stream in _traffic(each, notes)]
    guaranteed = {each.to for each in traffic if each.queue is Queue.G_1}
    endpoints = [_endpoint(each, notes) for each in groups if each.name in guaranteed]
    if traffic:
        notes.append(
            CapturedParameter(
                "traffic[*]/topics", "1", ValueOrigin.ASSUMED, "no listing has them; they matter to eliding"
            )
        )
    seconds = observation.seconds or UNKNOWN_S
    offered = sum(_bits(each, clients) for each in traffic)
    port = max(PORT_BITS_PER_SECOND, 10 ** math.ceil(math.log10(max(1.0, 2 * offered))))
    notes.insert(
        0, CapturedParameter(f"port[{PORT}]/rate", f"{port // 10**9} Gbit/s", ValueOrigin.ASSUMED, "no listing has it")
    )
    scenario = Scenario(
        name,
        horizon_ns=min(LONGEST_S, max(SHORTEST_S, round(seconds))) * SECOND_NS,
        log_level="events",
        ports=(Port(PORT, port),),
        profiles=tuple(Profile(each) for each in made_profiles),
        groups=tuple(clients),
        traffic=tuple(traffic),
        endpoints=tuple(endpoints),
        description=_description(observation, notes),
    )
    for profile, made in made_profiles.items():
        if isinstance(made, ClientProfile):
            scenario = overlay(scenario, replace(made, name=profile), profile).scenario
        else:
            scenario = replace(
                scenario,
                profiles=tuple(
                    replace(each, queues=made) if each.name == profile else each for each in scenario.profiles
                ),
            )
    return CapturedScenario(scenario, groups, tuple(notes))


def _profile_name(client: ObservedClient, several_vpns: bool) -> str:
    """Return the scenario's name for a client's profile; it begins with the message VPN if there are several."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", client.profile)[:32] or "default"
    if not several_vpns:
        return name
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', client.message_vpn)}_{name}"[:32]


def _likeness(client: ObservedClient) -> tuple[object, ...]:
    """Return a key that clients of one group share: their kind, and their figures to the nearest power of two."""
    if client.is_troubled:
        return client.message_vpn, client.name
    rates = tuple((queue, _power(each.arrived_per_s)) for queue, each in client.queues.items() if each.arrived_per_s)
    return (
        client.message_vpn, client.profile, rates, _power(client.mean_size_bytes or 0),
        _power(client.round_trip_us or 0), client.flows,
        client.window_messages,
    )  # fmt: skip


def _power(value: float) -> int | None:
    return round(math.log2(value)) if value > 0 else None


def _name_of(clients: Sequence[ObservedClient]) -> str:
    text = clients[0].name if len(clients) == 1 else f"{clients[0].profile}-clients"
    return re.sub(r"[^A-Za-z0-9_.:@/\-]", "_", text)[:100] or "client"


def _unique(name: str, taken: set[str]) -> str:
    number, made = 1, name
    while made in taken:
        number += 1
        made = f"{name}-{number}"
    taken.add(made)
    return made


def _several_vpns(groups: Sequence[CapturedGroup]) -> bool:
    return len({each.message_vpn for group in groups for each in group.clients}) > 1


def _profiles(
    groups: Sequence[CapturedGroup], known: Mapping[tuple[str, str], ClientProfile], notes: list[CapturedParameter]
) -> dict[str, ClientProfile | dict[Queue, QueueLimits]]:
    """Return the profiles of the groups by name in the scenario: the broker's profile, or else the listed depths."""
    several = _several_vpns(groups)
    made: dict[str, ClientProfile | dict[Queue, QueueLimits]] = {}
    for group in groups:
        first = group.clients[0]
        name = _profile_name(first, several)
        if name in made:
            continue
        profile = known.get((first.message_vpn, first.profile))
        if profile is not None:
            made[name] = profile
            continue
        limits = default_queue_limits()
        for client in (each for one in groups for each in one.clients if _profile_name(each, several) == name):
            for queue, row in client.queues.items():
                if row.max_depth_work_units:
                    limits[queue] = replace(limits[queue], max_depth_work_units=row.max_depth_work_units)
        made[name] = limits
        notes.append(
            CapturedParameter(
                f"profile[{name}]/queue[D-1]/min-msg-burst", str(limits[Queue.D_1].min_msg_burst), ValueOrigin.ASSUMED,
                "the broker's profile was not given: bursts and TCP are the vendor's defaults",
            )
        )  # fmt: skip
    return made


def _group(group: CapturedGroup, several_vpns: bool, notes: list[CapturedParameter]) -> ClientGroup:
    round_trip_us = group.mean(lambda each: each.round_trip_us)
    path = f"group[{group.name}]"
    if round_trip_us is None:
        notes.append(
            CapturedParameter(
                f"{path}/round-trip",
                format_duration(ROUND_TRIP_NS),
                ValueOrigin.ASSUMED,
                "its connection is not captured",
            )
        )
    made = ClientGroup(
        group.name,
        PORT,
        _profile_name(group.clients[0], several_vpns),
        len(group.clients),
        ROUND_TRIP_NS if round_trip_us is None else round(round_trip_us * MICROSECOND_NS),
    )
    return made if group.trouble is None else _limited(made, group, group.trouble, notes)


def _limited(
    made: ClientGroup, group: CapturedGroup, trouble: SlowClient, notes: list[CapturedParameter]
) -> ClientGroup:
    """Return a group with the parameter set that limits its client, as derived from the figures of its connection."""
    path, delivered = f"group[{made.name}]", group.clients[0].delivered_per_s
    is_losing = any(each.discarded_messages for each in group.clients[0].queues.values())

    def note(name: str, value: str, why: str) -> None:
        notes.append(CapturedParameter(f"{path}/{name}", value, ValueOrigin.DERIVED, why))

    match trouble.reason.key:
        case "application" if delivered > 0:
            service_ns = max(1, round(SECOND_NS / delivered))
            note(
                "service-time/duration", format_duration(service_ns), f"it receives {delivered:,.6g} messages a second"
            )
            return replace(made, service_time=ConstantTime(service_ns))
        case "application":
            note("pause[*]/duration", "the whole run", "its window is closed and it receives no message")
            return replace(made, pauses=(ClientInterval(0, LONGEST_S * SECOND_NS),))
        case "loss" if trouble.limit.loss:
            note("loss", f"{trouble.limit.loss:.3g}", "retransmissions a segment")
            return replace(made, loss_probability=float(f"{trouble.limit.loss:.3g}"))
        case "window" if trouble.limit.window_bytes:
            note("receive-buffer", f"{trouble.limit.window_bytes} B", "its advertised window is full")
            return replace(made, receive_buffer_bytes=trouble.limit.window_bytes)
        case _ if is_losing and delivered > 0:
            bits = max(1, round(delivered * _size(group) * 8))
            note("link-rate", f"{bits} bit/s", "the rate sent to it while it loses messages; the cause is not captured")
            return replace(made, link_rate_bits_per_second=bits)
        case _:
            return made


def _size(group: CapturedGroup) -> int:
    size = group.mean(lambda each: each.mean_size_bytes)
    return SIZE_BYTES if size is None else max(1, round(size))


def _traffic(group: CapturedGroup, notes: list[CapturedParameter]) -> list[Traffic]:
    streams = []
    for queue in Queue:
        row = group.queue(queue)
        if queue is Queue.C_1 or row is None or row.arrived_per_s < _LEAST_PER_S:
            continue
        name = f"{group.name}:{queue}"
        if group.mean(lambda each: each.mean_size_bytes) is None:
            notes.append(
                CapturedParameter(
                    f"traffic[{name}]/size/bytes", f"{SIZE_BYTES}", ValueOrigin.ASSUMED, "sent bytes are not captured"
                )
            )
        rate = float(f"{row.arrived_per_s:.6g}")
        streams.append(Traffic(name, group.name, PoissonArrivals(rate), ConstantSize(_size(group)), queue))
    return streams


def _endpoint(group: CapturedGroup, notes: list[CapturedParameter]) -> Endpoint:
    """Return the endpoint of a group's clients, with the number of flows and their window."""
    made = Endpoint(group.name)
    first = group.clients[0]
    if not 1 <= (first.flows or 0) <= FLOWS_MAX or not 1 <= (first.window_messages or 0) <= WINDOW_MAX:
        notes.append(
            CapturedParameter(
                f"endpoint[{group.name}]/window", str(made.window_messages), ValueOrigin.ASSUMED,
                "its flows are not captured: one, with the vendor's window",
            )
        )  # fmt: skip
        return made
    return replace(made, flows=first.flows or 1, window_messages=first.window_messages or 1)


def _bits(stream: Traffic, clients: Sequence[ClientGroup]) -> float:
    """Return the load that a traffic stream offers to all clients of its group, in bits a second."""
    count = next(each.count for each in clients if each.name == stream.to)
    assert isinstance(stream.arrivals, PoissonArrivals)
    assert isinstance(stream.size, ConstantSize)
    return stream.arrivals.rate_per_second * stream.size.size_bytes * 8 * count


def _description(observation: CapturedClients, notes: Sequence[CapturedParameter]) -> str:
    over = "since each connected" if observation.seconds is None else f"over {observation.seconds:g} s"
    lines = [f"{len(observation.clients)} clients as a broker listed them, with their rates {over}."]
    for origin in (ValueOrigin.ASSUMED, ValueOrigin.DERIVED):
        of_it = [f"{each.path}={each.value} ({each.why})" for each in notes if each.origin is origin]
        if of_it:
            shown = "; ".join(of_it[:20]) + (f"; and {len(of_it) - 20} more" if len(of_it) > 20 else "")
            lines.append(f"{origin.capitalize()}: {shown}.")
    return "\n    ".join(lines)
