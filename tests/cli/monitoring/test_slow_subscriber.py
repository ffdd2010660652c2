"""`qsctl explain slow-subscriber`: who, since when, why; reasons of listings and of runs, each lever checked."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from qsctl.cli.monitoring.listing_source import load_run
from qsctl.cli.monitoring.slow_subscriber import mechanism
from qsctl.eventlog.schema import LogLevel
from qsctl.profiles.listings.model import (
    ClientConnection,
    ClientQueues,
    ListedQueueStatistics,
    Listings,
    SlowSubscriber,
)
from qsctl.profiles.listings.slowness import REASONS, loss_limit_bits_per_second, slow_clients
from qsctl.profiles.listings.write import write_connections
from qsctl.sim.listings.broker_listings import connections
from qsctl.sim.listings.slowness import mean_service_time_ns
from qsctl.sim.run import run as simulate
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.parts import client as c
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from tests.commands import command_line

FIXTURES = Path(__file__).parents[3] / "fixtures" / "listings"
OPEN = {
    "state": "ESTAB", "maximum_segment_bytes": 1460, "advertised_window_bytes": 262_144,
    "congestion_window_bytes": 262_144, "send_queue_bytes": 262_144, "round_trip_us": 100_000, "blocked_percent": 60.0,
}  # fmt: skip
SCENARIO = """<scenario name="slow" horizon="60s" log-level="events">
  <port name="p1" rate="{port}"/>
  <profile name="p"><queue name="D-1" max-depth="200"/>{tcp}</profile>
  <group name="quick" port="p1" profile="p"/>
  <group name="slow" port="p1" profile="p" {group}>{inside}</group>
  <traffic name="a" to="quick"><poisson rate="100/s"/><size bytes="1 KB"/></traffic>
  <traffic name="b" to="slow"><poisson rate="3000/s"/><size bytes="1 KB"/></traffic>
</scenario>
"""
"""24.6 Mbit/s are offered to the slow one."""
REASONED = {
    "application": {"inside": '<service-time duration="500us"/>'},
    "application pause": {"inside": '<pause start="5s" duration="50s"/>'},
    "application lognormal": {"inside": '<lognormal-service-time median="1ms" sigma="1"/>', "group": 'readers="2"'},
    "window buffer": {"group": 'round-trip="50ms" receive-buffer="64 KB"'},
    "window": {"group": 'round-trip="100ms"', "tcp": '<tcp maximum-window="128 KB" transmit-queue="128 KB"/>'},
    "link": {"group": 'link-rate="10 Mbit/s"'},
    "port": {"port": "20 Mbit/s"},
    "loss": {"group": 'round-trip="50ms" loss="0.002"'},
    "loss cubic": {"group": 'round-trip="50ms" loss="0.002"', "tcp": '<tcp congestion-control="cubic"/>'},
}


def explained(source: Path | str, *more: str) -> dict[str, Any]:
    done = CliRunner().invoke(command_line(), ["explain", "slow-subscriber", str(source), *more, "-o", "json"])
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def scenario_text(**parts: str) -> str:
    return SCENARIO.format(**{"port": "1 Gbit/s", "tcp": "", "group": "", "inside": "", **parts})


def simulated(command: str, out: Path) -> Path:
    """The run of a `qsctl simulate SCENARIO … --set …`."""
    words = shlex.split(command)
    assert words[:2] == ["qsctl", "simulate"]
    changes = dict(value.split("=", 1) for option, value in itertools.pairwise(words) if option == "--set")
    simulate(apply_overrides(read_scenario(find_scenario(words[2])), changes), out, level=LogLevel.EVENTS)
    return out


def test_each_reason_of_a_listing_has_its_figures() -> None:
    clients = {row["client"]: row for row in explained(FIXTURES / "connections_slow.txt")["clients"]}
    assert {name: row["reason"] for name, row in clients.items()} == {
        "desk-1": "application", "desk-2": "loss", "desk-3": "window", "desk-4": "behind",
    }  # fmt: skip
    assert "about 9.0 Mbit/s at a round trip of 50 ms" in clients["desk-2"]["evidence"]  # W13
    assert "about 21.0 Mbit/s at a round trip of 100 ms" in clients["desk-3"]["evidence"]  # W8
    assert all(row["lever"] and row["command"] for row in clients.values())


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, "window"),
        ({"advertised_window_bytes": 1459}, "application"),
        ({"advertised_window_bytes": 1460, "send_queue_bytes": 0}, "window"),
        ({"congestion_window_bytes": 30_000}, "window"),
        ({"congestion_window_bytes": 30_000, "fast_retransmits": 9, "sent_bytes": 146_000}, "loss"),
        ({"congestion_window_bytes": 30_000, "fast_retransmits": 1, "sent_bytes": 146_000_000}, "window"),
        ({"fast_retransmits": 9, "sent_bytes": 146_000}, "window"),
        ({"send_queue_bytes": 260_000}, "behind"),
        ({"send_queue_bytes": None}, "unknown"),
        ({"advertised_window_bytes": None}, "window"),
        ({"advertised_window_bytes": None, "congestion_window_bytes": None}, "unknown"),
        ({"round_trip_us": None}, "window"),
    ],
)
def test_the_figures_decide(changed: dict[str, Any], reason: str) -> None:
    (client,) = slow_clients(Listings(connections=(ClientConnection("a", **{**OPEN, **changed}),)))
    assert client.reason is REASONS[reason]
    assert client.evidence
    assert bool(mechanism(client)) is (reason != "unknown" and changed.get("round_trip_us", 1) is not None)


def test_what_is_listed_of_a_client_is_one_client_and_one_that_keeps_up_is_none() -> None:
    queues = tuple(ListedQueueStatistics(name, 0, 0, 0, 20_000, 0, 9) for name in ("G-1", "D-2", "D-3", "C-1"))
    full = ListedQueueStatistics("D-1", 700, 1500, 2000, 2000, 12, 40)
    found = Listings(
        clients=(ClientQueues("a", queues=(queues[0], full, *queues[1:])), ClientQueues("b", queues=queues)),
        slow_subscribers=(SlowSubscriber("a", slow_subscriber=True, blocked_percent=93.0),),
        connections=(ClientConnection("b", **{**OPEN, "send_queue_bytes": 0, "blocked_percent": 0.0}),),
    )
    (client,) = slow_clients(found)
    assert (client.name, client.is_slow, client.blocked_percent, client.discarded_messages) == ("a", True, 93.0, 12)
    assert client.evidence == "no figures of its connection; D-1 holds 1,500 of 2,000 work units"
    assert client.reason is REASONS["unknown"]


def test_what_semp_v2_has_is_used() -> None:
    (row,) = explained(FIXTURES / "semp_v2_clients.json")["clients"]
    assert (row["client"], row["slow_subscriber"], row["discarded_messages"], row["reason"]) == (
        "desk-1", True, 38_280, "unknown",
    )  # fmt: skip
    assert "262,144 B wait in its TCP transmit queue; 0 retransmissions; a round trip of 0.9 ms" in row["evidence"]


def test_what_a_listing_lacks_is_asked_for() -> None:
    notes = " ".join(explained(FIXTURES / "slow_subscribers.txt")["notes"])
    assert "connections wide" in notes
    assert "no times" in notes


@pytest.mark.parametrize("name", ["desk-1", "desk-2", "desk-3", "desk-4"])
def test_the_command_of_a_listing_simulates_what_the_listing_shows(name: str, tmp_path: Path) -> None:
    row = next(each for each in explained(FIXTURES / "connections_slow.txt")["clients"] if each["client"] == name)
    (first, *_) = explained(simulated(row["command"], tmp_path / "run"))["clients"]
    assert first["client"].startswith("stalled")
    assert first["reason"] == {"behind": "port"}.get(row["reason"], row["reason"])
    assert first["slow_subscriber"]


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize("reason", REASONED)
def test_each_reason_of_a_run_is_found_and_its_command_lifts_it(reason: str, tmp_path: Path) -> None:
    (tmp_path / "slow.xml").write_text(scenario_text(**REASONED[reason]), encoding="utf-8")
    simulate(read_scenario(tmp_path / "slow.xml"), tmp_path / "run", level=LogLevel.EVENTS)
    found = {row["client"]: row for row in explained(tmp_path / "run")["clients"]}
    row = found["slow"]
    assert (row["reason"], row["slow_subscriber"]) == (reason.split()[0], True)
    # Thirty blocked seconds; where segments are lost the penalties for those sent again count as well.
    assert (10 if row["reason"] == "loss" else 20) < row["since_seconds"] < 60
    assert row["discarded_messages"] > 0
    after = simulated(row["command"], tmp_path / "after")
    assert explained(after)["clients"] == []


def test_a_run_with_loss_has_what_was_sent_again_beside_the_formula(tmp_path: Path) -> None:
    (tmp_path / "slow.xml").write_text(scenario_text(**REASONED["loss"]), encoding="utf-8")
    simulate(read_scenario(tmp_path / "slow.xml"), tmp_path / "run", level=LogLevel.EVENTS)
    (row,) = explained(tmp_path / "run")["clients"]
    assert row["evidence"].startswith(
        "6.37 Mbit/s by 1.22 MSS ÷ (RTT √p) with MSS 1460 B, round trip 50ms, loss 0.2 % ("
    )
    again = re.search(r"\((\d+) segments sent again, (\d+) time-outs\)", row["evidence"])
    assert again is not None
    assert pytest.approx(int(again[1]), rel=0.25) == 60 * 6.37e6 / (1460 * 8) * 0.002
    assert int(again[2]) < int(again[1])
    assert "network" in row["lever"]
    (listed,) = (each for each in run_connections(tmp_path / "run") if each.name == "slow")
    assert (listed.fast_retransmits or 0) + (listed.timed_retransmits or 0) == int(again[1])
    assert listed.timed_retransmits == int(again[2])


def run_connections(folder: Path) -> list[ClientConnection]:
    return list(connections(load_run(folder, 0)))


def test_penalties_for_segments_sent_again_are_loss_where_the_rate_is_not_the_reason(tmp_path: Path) -> None:
    text = scenario_text(group='loss="0.002"')
    (tmp_path / "slow.xml").write_text(text, encoding="utf-8")
    simulate(read_scenario(tmp_path / "slow.xml"), tmp_path / "run", level=LogLevel.EVENTS)
    (row,) = explained(tmp_path / "run")["clients"]
    assert (row["reason"], row["slow_subscriber"], row["discarded_messages"]) == ("loss", True, 0)
    assert "each segment sent again counts 1 % for a minute" in row["evidence"]
    assert explained(simulated(row["command"], tmp_path / "after"))["clients"] == []


def test_a_client_that_keeps_up_is_not_slow(tmp_path: Path) -> None:
    (tmp_path / "slow.xml").write_text(scenario_text(), encoding="utf-8")
    simulate(read_scenario(tmp_path / "slow.xml"), tmp_path / "run", level=LogLevel.EVENTS)
    assert explained(tmp_path / "run")["clients"] == []
    done = CliRunner().invoke(command_line(), ["explain", "slow-subscriber", str(tmp_path / "run")])
    assert "no client is slow" in done.stdout


def test_a_listing_shows_no_more_than_it_contains(tmp_path: Path) -> None:
    reply = tmp_path / "reply.json"
    reply.write_text('{"data": [{"clientName": "a", "slowSubscriber": "maybe"}]}')
    done = CliRunner().invoke(command_line(), ["explain", "slow-subscriber", str(reply)])
    assert "no client is listed as slow" in done.stdout
    assert "1 figure could not be read: slowSubscriber of a" in done.stdout


def test_a_run_without_event_rows_names_the_first_and_asks_for_the_rest(tmp_path: Path) -> None:
    (tmp_path / "slow.xml").write_text(scenario_text(**REASONED["link"]), encoding="utf-8")
    simulate(read_scenario(tmp_path / "slow.xml"), tmp_path / "run", level=LogLevel.COUNTERS)
    document = explained(tmp_path / "run")
    assert [row["client"] for row in document["clients"]] == ["slow"]
    assert document["clients"][0]["since_seconds"] is not None
    assert any("--level events" in note for note in document["notes"])


def test_a_pause_that_begins_later_is_not_the_reason(tmp_path: Path) -> None:
    parts = {**REASONED["link"], "inside": '<pause start="58s" duration="1s"/>'}
    (tmp_path / "slow.xml").write_text(scenario_text(**parts), encoding="utf-8")
    simulate(read_scenario(tmp_path / "slow.xml"), tmp_path / "run", level=LogLevel.EVENTS)
    (row,) = explained(tmp_path / "run")["clients"]
    assert row["reason"] == "link"


@pytest.mark.parametrize(
    ("time", "mean_ns"),
    [
        (c.ConstantTime(7), 7), (c.UniformTime(2, 4), 3), (c.LognormalTime(1000, 1.0), 1648.7),
        (c.ExponentialTime(1000), 1000), (c.ExponentialTime(1000, 1000), 632.1), (c.ParetoTime(100, 2.0), 200),
        (c.ParetoTime(100, 1.0, 200), 169.3), (c.MixedTime((10, 30), (3.0, 1.0)), 15),
    ],
)  # fmt: skip
def test_the_mean_of_a_service_time_is_that_of_its_draws(time: c.ServiceTime, mean_ns: float) -> None:
    assert mean_service_time_ns(time) == pytest.approx(mean_ns, rel=1e-3)


def test_loss_without_end_is_mathis() -> None:
    assert round(loss_limit_bits_per_second(1460, 0.05, 0.001) / 1e6, 1) == 9.0
    assert round(loss_limit_bits_per_second(1460, 0.05, 0.01) / 1e6, 1) == 2.8
    assert loss_limit_bits_per_second(1460, 0.05, 0.0) == float("inf")


def test_a_printed_listing_is_explained_the_same() -> None:
    rows = [ClientConnection("a", message_vpn="v", **OPEN)]
    done = CliRunner().invoke(command_line(), ["explain", "slow-subscriber", "-"], input=write_connections(rows))
    assert "the window over the round trip" in done.stdout


@pytest.mark.parametrize("level", [LogLevel.COUNTERS, LogLevel.EVENTS])
def test_the_clients_of_a_run_with_durable_queues_are_listed_and_explained_without_the_queues(
    level: LogLevel, tmp_path: Path
) -> None:
    changes = {"horizon": "2s", "group[worker]/loss": "0.02", "durable-queue[work]/flow[*]/rejects": "0.2"}
    scenario = apply_overrides(read_scenario(find_scenario("dead-messages")), changes)
    simulate(scenario, tmp_path / "run", level=level)
    assert explained(tmp_path / "run")["clients"] == []
    for words in (["stats", "queue"], ["slow-subscriber"], ["connections", "wide"]):
        done = CliRunner().invoke(
            command_line(), ["show", "client", "*", *words, "--run", str(tmp_path / "run"), "-o", "json"]
        )
        assert done.exit_code == 0, done.output
        names = set(re.findall(r"worker/\d|work\b|dead\b", done.stdout))
        assert names == (set() if words == ["slow-subscriber"] else {f"worker/{number}" for number in range(1, 5)})
