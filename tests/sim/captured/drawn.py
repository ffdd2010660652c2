"""Captures made by the simulator: two runs of a hidden scenario, the later one going on where the first ended."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import SECOND_NS
from qsctl.profiles.listings.model import ClientConnection, Listings
from qsctl.profiles.listings.read import read_listings
from qsctl.profiles.listings.write import write_clients, write_connections
from qsctl.sim.listings.broker_listings import client_queues, connections
from qsctl.sim.listings.run_state import read_run_state
from qsctl.sim.run import run
from qsctl.sim.scenario.parts.client import ClientGroup, ConstantTime, ExponentialTime
from qsctl.sim.scenario.scenario import (
    ConstantSize,
    PoissonArrivals,
    Port,
    Profile,
    Queue,
    QueueLimits,
    Scenario,
    Traffic,
    default_queue_limits,
)


@dataclass(frozen=True)
class Hidden:
    """What calibration has to find: a client in trouble beside one that is not."""

    scenario: Scenario
    path: str
    value: float


def hidden(seed: int, kind: str = "service-time") -> Hidden:
    """Draw one: an overload of 20 to 200 %, messages of 100 B to 10 KB, a queue of 50 to 1,000 work units."""
    drawn = random.Random(seed)
    rate = round(drawn.uniform(200, 2000), 1)
    size = round(10 ** drawn.uniform(2, 4))
    capacity = rate / drawn.uniform(1.2, 3.0)
    queues = default_queue_limits()
    queues[Queue.D_1] = QueueLimits(drawn.randint(50, 1000), 4)
    group = ClientGroup("desk", "p1", "p", round_trip_ns=round(drawn.uniform(0.2, 5) * 1e6))
    if kind == "service-time":
        mean_ns = round(SECOND_NS / capacity)
        time = ConstantTime(mean_ns) if drawn.random() < 0.5 else ExponentialTime(mean_ns)
        group, value = replace(group, service_time=time), mean_ns / 1e9
    else:
        bits = round(capacity * size * 8)
        group, value = replace(group, link_rate_bits_per_second=bits), float(bits)
    scenario = Scenario(
        "hidden",
        seed=1000 + seed,
        ports=(Port("p1"),),
        profiles=(Profile("p", queues),),
        groups=(group, ClientGroup("quick", "p1", "p", count=2)),
        traffic=(
            Traffic("t", "desk", PoissonArrivals(rate), ConstantSize(size)),
            Traffic("q", "quick", PoissonArrivals(50.0), ConstantSize(500)),
        ),
    )
    return Hidden(scenario, f"group[desk]/{'service-time/duration' if kind == 'service-time' else kind}", value)


def captured(scenario: Scenario, at_s: int, folder: Path) -> Listings:
    """Return what the broker of the scenario would list at an instant: text, read again."""
    run(replace(scenario, horizon_ns=at_s * SECOND_NS), folder, level=LogLevel.COUNTERS)
    state = read_run_state(folder)
    text = write_clients(client_queues(state)) + "\n" + write_connections(list(connections(state)))
    return read_listings(text.encode(), "capture")


def with_windows(found: Listings, name: str, advertised: int) -> Listings:
    """Return the listings with windows of a connection: a run lists none."""

    def windowed(each: ClientConnection) -> ClientConnection:
        if each.name != name:
            return each
        windows = {"advertised_window_bytes": advertised, "congestion_window_bytes": 262_144}
        return replace(each, send_queue_bytes=262_144, **windows)

    return replace(found, connections=tuple(map(windowed, found.connections)))
