"""A run's slow subscribers: since when each is slow, the tightest limit of its connection, and a change that lifts it.

The application, link, window, loss and the broker's port each limit the rate of a client's connection. The lowest of
these rates is the reason if it is below the offered rate; else the pauses of its readers are. The command changes this
one setting of the scenario, so that the simulated client keeps up.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, assert_never

from qsctl.eventlog.run_folder import SCENARIO_FILE
from qsctl.instant import SECOND_NS, Nanoseconds, format_duration
from qsctl.profiles.listings.slowness import (
    REASONS,
    SlowClient,
    cubic_loss_limit_bits_per_second,
    loss_limit_bits_per_second,
    window_limit_bits_per_second,
)
from qsctl.sim.listings.run_state import ClientState, RunState
from qsctl.sim.model import EVENT_NAMES, Event
from qsctl.sim.scenario.changes import read_changes
from qsctl.sim.scenario.parts import client as c
from qsctl.sim.scenario.parts.client import READERS_MAX
from qsctl.sim.scenario.scenario import CongestionControl, Scenario

ROOM: Final = 1.25
"""A lifted limit carries what is offered and a quarter more, so that bursts drain."""
BLOCKED_PERCENT: Final = 5.0
"""A client that was blocked for less of its last minute is not listed: the begin of a connection blocks for moments."""
_SINCE: Final = frozenset({EVENT_NAMES[Event.SLOW_SUBSCRIBER], EVENT_NAMES[Event.DISCONNECTED_SLOW]})


@dataclass(slots=True)
class _Traffic:
    """The offered and delivered traffic of a client in the observed time."""

    offered_bits_per_second: float = 0.0
    delivered_bits_per_second: float = 0.0
    discarded_messages: int = 0
    mean_size_bytes: float = 0.0


def explain_slow_clients(state: RunState, folder: Path) -> list[SlowClient]:
    """Return the clients that were slow subscribers or blocked in a replication, by the instant they became slow.

    Args:
        state: the state of the replication.
        folder: the run folder, which the commands name.

    Raises:
        Damaged: a part of its event log is missing or was changed.
    """
    first = _first_slow(state)
    traffic = [_traffic(client) for client in state.clients]
    found = []
    for client in state.clients:
        lost = traffic[client.number].discarded_messages
        since = first.get(client.number)
        blocked = (client.slow_percent or 0.0) >= BLOCKED_PERCENT or (client.slow_percent is None and lost > 0)
        if since is None and not client.slow and not blocked:
            continue
        reason, evidence, changes = _reason(state, client, traffic, since)
        words = ["qsctl", "simulate", str(folder / SCENARIO_FILE), "--by", "group"]
        command = shlex.join([*words, *(word for change in changes for word in ("--set", change))]) if changes else ""
        found.append(
            SlowClient(
                client.name,
                REASONS[reason],
                evidence,
                is_slow=True if since is not None else client.slow,
                blocked_percent=client.slow_percent,
                since_ns=since,
                discarded_messages=lost,
                command=command,
            )
        )
    return sorted(found, key=lambda each: (math.inf if each.since_ns is None else each.since_ns, each.name))


def _first_slow(state: RunState) -> dict[int, Nanoseconds]:
    """Return the instant at which each client, by number, first became a slow subscriber, where the log contains it."""
    first: dict[int, Nanoseconds] = {}
    if state.run.info.log_level == "events":
        for batch in state.run.events():
            columns = [batch.column(name).to_pylist() for name in ("event", "client_id", "at_ns", "replication")]
            for event, client, at_ns, replication in zip(*columns, strict=True):
                if event in _SINCE and replication == state.replication.replication:
                    first[client] = min(at_ns, first.get(client, at_ns))
        return first
    names = {client.name: client.number for client in state.clients}
    for each in state.replication.happenings:
        if each.event in _SINCE and each.first_client in names:
            number = names[each.first_client]
            first[number] = min(each.first_ns, first.get(number, each.first_ns))
    return first


def _traffic(client: ClientState) -> _Traffic:
    size = _mean_size_bytes(client.counters.values())
    found = _Traffic(mean_size_bytes=size)
    for row in client.counters.values():
        seconds = row["observed_ns"] / SECOND_NS
        found.offered_bits_per_second += row["arrived_messages"] * size * 8 / seconds
        found.delivered_bits_per_second += row["delivered_bytes"] * 8 / seconds
        found.discarded_messages += row["discarded_messages"]
    return found


def _mean_size_bytes(rows: Iterable[Mapping[str, Any]]) -> float:
    """Return the mean size of a client's delivered messages or, without any, of its queued ones."""
    kept = list(rows)
    delivered = sum(row["delivered_messages"] for row in kept)
    if delivered:
        return float(sum(row["delivered_bytes"] for row in kept) / delivered)
    held = sum(row["length_messages"] for row in kept)
    return 2048.0 * sum(row["length_work_units"] for row in kept) / held if held else 0.0


def _reason(
    state: RunState, client: ClientState, traffic: list[_Traffic], since: Nanoseconds | None
) -> tuple[str, str, list[str]]:
    """Return the key of the tightest limit, a text with its figures, and the changes (`--set`) that lift it."""
    offered = traffic[client.number].offered_bits_per_second
    limits = _limits(state, client, traffic)
    reason = min(limits, key=lambda each: limits[each][0])
    limit, formula, changes = limits[reason]
    figures = f"{_rate(offered)} offered"
    if limit < offered:
        return reason, f"{_rate(limit)} by {formula}; {figures}", changes
    paused = _paused(state.scenario, client.group.name, since)
    if paused:
        return "application", f"its readers pause: {paused}", _without_pauses(state.scenario, client.group.name)
    if _is_penalized(state, client):
        words = f"each segment sent again counts {state.scenario.broker.slow_penalty_percent:g} % for a minute"
        return "loss", f"{words}{_sent_again(client)}; {figures}", [f"group[{client.group.name}]/loss=0"]
    return "unknown", f"{figures} on average; {_rate(limit)} by {formula}: it was blocked by bursts", []


def _limits(state: RunState, client: ClientState, traffic: list[_Traffic]) -> dict[str, tuple[float, str, list[str]]]:
    """Return the limit of each part of the connection in bits a second, its formula, and the changes that lift it."""
    group, tcp, scenario = client.group, client.profile.tcp, state.scenario
    wanted = traffic[client.number].offered_bits_per_second * ROOM
    round_trip = group.round_trip_ns / SECOND_NS
    buffer = group.receive_buffer_bytes or tcp.max_window_bytes
    window = min(tcp.max_window_bytes, tcp.transmit_queue_bytes, buffer)
    needed = max(math.ceil(wanted * round_trip / 8), tcp.mss_bytes)
    profile = f"profile[{client.profile.name}]/tcp"
    lifted = [f"{profile}/maximum-window={needed}", f"{profile}/transmit-queue={needed}"]
    lifted += [f"group[{group.name}]/receive-buffer={needed}"] if group.receive_buffer_bytes else []
    service_s = mean_service_time_ns(group.service_time) / SECOND_NS
    size_bits = traffic[client.number].mean_size_bytes * 8
    reads = math.inf if service_s <= 0 else group.readers * size_bits / service_s
    readers = math.ceil(wanted * service_s / size_bits) if size_bits else 1
    port = next(each for each in scenario.ports if each.name == group.port)
    others = sum(
        traffic[each.number].delivered_bits_per_second
        for each in state.clients
        if each.group.port == port.name and each.number != client.number
    )
    everybody = sum(
        traffic[each.number].offered_bits_per_second for each in state.clients if each.group.port == port.name
    )
    return {
        "loss": (*_loss_limit(client), [f"group[{group.name}]/loss=0"]),
        "window": (
            window_limit_bits_per_second(window, round_trip),
            f"window {window:,} B ÷ round trip {format_duration(group.round_trip_ns)}",
            lifted,
        ),
        "application": (
            reads,
            f"its application: {group.readers} reader{'s' * (group.readers > 1)}, "
            f"{format_duration(round(service_s * SECOND_NS))} a message",
            [f"group[{group.name}]/readers={min(readers, READERS_MAX)}"],
        ),
        "link": (
            group.link_rate_bits_per_second or math.inf,
            "its link",
            [f"group[{group.name}]/link-rate=0"],
        ),
        "port": (
            max(port.rate_bits_per_second * port.links - others, 0.0),
            f"port {port.name} of {_rate(port.rate_bits_per_second * port.links)} less {_rate(others)} of its others",
            [f"port[{port.name}]/rate={math.ceil(everybody * ROOM / port.links / 1e6)} Mbit/s"],
        ),
    }


def _loss_limit(client: ClientState) -> tuple[float, str]:
    """Return the limit in bits a second of a connection that loses segments, and its formula."""
    group, tcp = client.group, client.profile.tcp
    round_trip, loss = group.round_trip_ns / SECOND_NS, group.loss_probability
    figures = f"MSS {tcp.mss_bytes} B, round trip {format_duration(group.round_trip_ns)}, loss {100 * loss:g} %"
    limit = loss_limit_bits_per_second(tcp.mss_bytes, round_trip, loss)
    words = f"1.22 MSS ÷ (RTT √p) with {figures}"
    if tcp.congestion_control is CongestionControl.CUBIC:
        cubic = cubic_loss_limit_bits_per_second(tcp.mss_bytes, round_trip, loss)
        if cubic > limit:
            limit, words = cubic, f"1.054 MSS ÷ RTT × (RTT ÷ p)^(3/4) with {figures}"
    return limit, f"{words}{_sent_again(client)}"


def _sent_again(client: ClientState) -> str:
    if client.retransmissions is None or client.time_outs is None:
        return ""
    return f" ({client.retransmissions:,} segments sent again, {client.time_outs:,} time-outs)"


def _is_penalized(state: RunState, client: ClientState) -> bool:
    """Return whether penalties for retransmitted segments make up at least half of a client's slowness."""
    seconds = (state.scenario.horizon_ns - state.scenario.warm_up_ns) / SECOND_NS
    a_minute = (client.retransmissions or 0) * min(1.0, 60 / seconds)
    return a_minute > 0 and 2 * a_minute * state.scenario.broker.slow_penalty_percent >= (client.slow_percent or 0.0)


def mean_service_time_ns(time: c.ServiceTime) -> float:
    """Return the mean service time of a message; the cut at the maximum is included, except for a lognormal."""
    match time:
        case c.ConstantTime(duration_ns=duration):
            return duration
        case c.UniformTime(minimum_ns=low, maximum_ns=high):
            return (low + high) / 2
        case c.LognormalTime(median_ns=median, sigma=sigma, maximum_ns=longest):
            return min(median * math.exp(sigma * sigma / 2), longest)
        case c.ExponentialTime(mean_ns=mean, maximum_ns=longest):
            return mean * -math.expm1(-longest / mean)
        case c.ParetoTime(minimum_ns=low, shape=shape, maximum_ns=high):
            if shape == 1.0:
                return low * (1 + math.log(high / low))
            return float(low * (shape - (high / low) ** (1 - shape)) / (shape - 1))
        case c.MixedTime(times_ns=times, weights=weights):
            return sum(each * weight for each, weight in zip(times, weights, strict=True)) / sum(weights)
        case _:
            assert_never(time)


def _paused(scenario: Scenario, group: str, since: Nanoseconds | None) -> str:
    """Return a text with the start and duration of a group's first pause; empty if it is not before it became slow."""
    spans = sorted(read_changes(scenario)[1].pauses.get(group, []))
    if not spans or (since is not None and spans[0][0] > since):
        return ""
    start, end = spans[0]
    more = f", and {len(spans) - 1} more times" if len(spans) > 1 else ""
    return f"from {format_duration(start)} for {format_duration(end - start)}{more}"


def _without_pauses(scenario: Scenario, group: str) -> list[str]:
    changes = []
    if any(each.pauses for each in scenario.groups if each.name == group):
        changes.append(f"group[{group}]/pause[*]/duration=1ms")
    for number, change in enumerate(scenario.changes, 1):
        if change.path == f"client[{group}]/pause":
            changes.append(f"change[{number}]/value=1ms")
    return changes


def _rate(bits_per_second: float) -> str:
    for scale, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits_per_second >= scale:
            return f"{bits_per_second / scale:.3g} {unit}"
    return f"{bits_per_second:.3g} bit/s"
