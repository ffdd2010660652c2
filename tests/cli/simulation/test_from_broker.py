"""`init --from-broker` and `calibrate`: from captures, or from a broker that is asked twice, to a scenario and back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qsctl.cli.broker_options import PASSWORD, USERNAME
from qsctl.errors import ExitStatus
from qsctl.profiles.listings.model import Listings
from qsctl.profiles.listings.write import write_clients, write_connections
from qsctl.sim.scenario.xml import read_scenario
from tests import broker_server as b
from tests.cli.shell import Shell
from tests.sim.captured.drawn import captured, hidden, with_windows

WRONG = ("--set", "group[desk]/service-time/duration=1ns")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Listings, Listings]:
    """Captures of a hidden scenario, 20 s apart."""
    scenario = hidden(2).scenario
    folder = tmp_path_factory.mktemp("hidden")
    made = (captured(scenario, 10, folder / "a"), captured(scenario, 30, folder / "b"))
    return with_windows(made[0], "desk", 0), with_windows(made[1], "desk", 0)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(USERNAME, b.USERNAME)
    monkeypatch.setenv(PASSWORD, b.PASSWORD)
    return Shell(tmp_path / "state")


@pytest.fixture
def files(two: tuple[Listings, Listings], shell: Shell) -> tuple[str, ...]:
    for name, found in zip(("before.txt", "after.txt"), two, strict=True):
        Path(name).write_text(write_clients(found.clients) + "\n" + write_connections(found.connections))
    return ("--from-broker", "before.txt", "--from-broker", "after.txt")


def test_two_captures_become_a_scenario_that_can_be_simulated(shell: Shell, files: tuple[str, ...]) -> None:
    done = shell("init", "s.xml", *files, "--interval", "20s", "-o", "json")
    assert done.status == 0, done.err
    assert (done.document["clients"], done.document["groups"]) == (3, 2)
    truth = hidden(2).scenario
    read = read_scenario(Path("s.xml"))
    desk, quick = read.groups
    assert (desk.name, quick.count) == ("desk", 2)
    assert abs(desk.round_trip_ns - truth.groups[0].round_trip_ns) < 1000
    streams = {each.to: each for each in read.traffic}
    assert streams["desk"].arrivals.rate_per_second == pytest.approx(
        truth.traffic[0].arrivals.rate_per_second, rel=0.05
    )
    assert streams["desk"].size.size_bytes == truth.traffic[0].size.size_bytes
    assert read.profiles[0].queues[truth.traffic[0].queue] == truth.profiles[0].queues[truth.traffic[0].queue]
    origins = {each["path"]: each["origin"] for each in done.document["parameters"]}
    assert origins["group[desk]/service-time/duration"] == "derived"
    assert origins["port[p1]/rate"] == "assumed"
    assert "port[p1]/rate=1 Gbit/s" in read.description
    for path in origins:
        value = "1" if "flows" in path else "1ms" if "round-trip" in path or "duration" in path else None
        if value:
            assert shell("simulate", "s.xml", "--set", f"{path}={value}", "--set", "horizon=1s").status == 0
    assert shell("init", "s.xml", *files).status == ExitStatus.USAGE, "it exists"
    assert shell("init", *files).status == 0
    assert Path("scenario.xml").exists()


@pytest.mark.slow
def test_a_scenario_is_compared_with_the_captures_and_the_cause_is_found(shell: Shell, files: tuple[str, ...]) -> None:
    shell("init", "s.xml", *files, "--interval", "20s")
    done = shell("calibrate", "s.xml", *files, "--interval", "20s", "--replications", "4", "-o", "json")
    assert done.status == 0, done.err
    figures = {(row["group"], row["measure"]): row for row in done.document["figures"]}
    assert figures["desk", "discards"]["agrees"], figures["desk", "discards"]
    best = [each for each in done.document["fits"] if each["is_best"]]
    truth = hidden(2)
    assert [each["path"] for each in best] == [truth.path], "its window was closed: the others are contradicted"
    assert best[0]["low"] <= truth.value <= best[0]["high"]
    assert best[0]["high"] / best[0]["low"] < 1.2
    table = shell("calibrate", "s.xml", *files, "--interval", "20s", "--replications", "4", *WRONG)
    assert "Best: service-time/duration." in table.out
    assert re.search(r"desk +D-1 discards .* no\n", table.out)


@pytest.fixture
def server(two: tuple[Listings, Listings]) -> Iterator[b.BrokerServer]:
    """A broker that lists the first capture once, and then the second."""
    state = b.BrokerState()
    state.add_profile("default", "p", queueDirect1MaxDepth=777)
    state.vpns["default"]["clients"] = [b.client_object(each.name, clientProfileName="p") for each in two[0].clients]
    server = b.BrokerServer(state)
    shown = iter([*two, *two])
    show = server._show

    def later(request: Any, body: bytes) -> None:
        if b"<queues" in body:
            found = getattr(server, "shown", lambda each: each)(next(shown))
            state.queues, state.connections = list(found.clients), list(found.connections)
            for each, client in zip(state.vpns["default"]["clients"], found.clients, strict=True):
                each["dataTxMsgCount"] = sum(row.delivered_messages or 0 for row in client.queues)
        show(request, body)

    server._show = later  # type: ignore[method-assign]
    with server:
        yield server


def test_a_broker_that_is_asked_twice_becomes_a_scenario_with_its_profiles(
    server: b.BrokerServer, shell: Shell
) -> None:
    done = shell("init", "s.xml", "--from-broker", server.url, "--interval", "100ms", "-o", "json")
    assert done.status == 0, done.err
    read = read_scenario(Path("s.xml"))
    assert [each.name for each in read.profiles] == ["p"]
    assert next(iter(read.profiles[0].queues.values())).max_depth_work_units == 20_000
    assert 777 in {each.max_depth_work_units for each in read.profiles[0].queues.values()}
    assert not any("min-msg-burst" in each["path"] for each in done.document["parameters"])
    assert b.PASSWORD not in done.out + done.err + Path("s.xml").read_text()


def test_the_flows_of_guaranteed_clients_are_asked_for(server: b.BrokerServer, shell: Shell) -> None:
    def guaranteed(found: Listings) -> Listings:
        rows = {each.name: each for each in found.clients}
        desk = rows["desk"]
        queues = tuple(
            replace(each, queue={"D-1": "G-1", "G-1": "D-1"}.get(each.queue, each.queue)) for each in desk.queues
        )
        return replace(found, clients=(replace(desk, queues=queues), *(rows[name] for name in rows if name != "desk")))

    flow = {"msgVpnName": "default", "clientName": "desk", "endpointName": "q", "windowSize": 33, "usedWindowSize": 1}
    server.state.vpns["default"]["txFlows"] = [flow, {**flow, "endpointName": "r"}]
    server.shown = guaranteed  # type: ignore[attr-defined]
    done = shell("init", "s.xml", "--from-broker", server.url, "--interval", "100ms", "-o", "json")
    assert done.status == 0, done.err
    (endpoint,) = read_scenario(Path("s.xml")).endpoints
    assert (endpoint.to, endpoint.flows, endpoint.window_messages) == ("desk", 2, 33)
    assert not any("endpoint" in each["path"] for each in done.document["parameters"])


def test_one_capture_has_the_rates_since_each_client_connected(shell: Shell, files: tuple[str, ...]) -> None:
    done = shell("init", "s.xml", *files[2:], "-o", "json")
    assert done.status == 0, done.err
    assert any("a second one has those of now" in note for note in done.document["notes"])
    rate = next(each.arrivals.rate_per_second for each in read_scenario(Path("s.xml")).traffic if each.to == "desk")
    assert rate == pytest.approx(hidden(2).scenario.traffic[0].arrivals.rate_per_second, rel=0.05)


def test_monitoring_replies_alone_become_a_scenario(shell: Shell) -> None:
    for name, sent in (("a.json", 1000), ("b.json", 7000)):
        clients = [
            b.client_object("c 1", "v", uptime=60 + sent // 100, dataTxMsgCount=sent, dataTxByteCount=sent * 500),
            b.client_object("c 1", "w", uptime=60 + sent // 100),
        ]
        Path(name).write_text(json.dumps({"data": clients, "meta": {"responseCode": 200}}))
    done = shell("init", "s.xml", "--from-broker", "a.json", "--from-broker", "b.json", "-o", "json")
    assert done.status == 0, done.err
    (stream,) = read_scenario(Path("s.xml")).traffic
    assert (stream.to, stream.arrivals.rate_per_second, stream.size.size_bytes) == ("c_1", 100.0, 500)


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("init", "s.xml", "--from-broker", "no.txt"), ExitStatus.NOT_FOUND, "there is no file no.txt"),
        (("init", "s.xml", *(("--from-broker", "before.txt") * 3)), ExitStatus.USAGE, "is given 3 times"),
        (("init", "s.xml", "--from-broker", "after.txt", "--from-broker", "before.txt"), ExitStatus.NO, "not known"),
        (("init", "s.xml", "--from-broker", "before.txt", "--interval", "0s"), ExitStatus.USAGE, "not a time between"),
        (("init", "s.xml", "--from-broker", "slow.txt"), ExitStatus.NO, "has no client"),
        (("calibrate", "s.xml"), ExitStatus.USAGE, "nothing to compare with"),
        (("calibrate", "burst", "--from-broker", "before.txt"), ExitStatus.NO, "none of the captured groups"),
    ],
)
def test_what_is_wrong_is_one_error(
    shell: Shell, files: tuple[str, ...], words: tuple[str, ...], status: ExitStatus, text: str
) -> None:
    Path("slow.txt").write_text("Neighbor: x\n")
    done = shell(*words)
    assert done.status == status, done.err
    assert text in done.err or words[-1] == "slow.txt"
    assert not Path("s.xml").exists()


def test_a_client_that_takes_nothing_is_paused(two: tuple[Listings, Listings]) -> None:
    from qsctl.sim.captured.observed import observe
    from qsctl.sim.captured.scenario import scenario_of
    from qsctl.sim.scenario.rules.scenario import check_rules

    before, after = two
    stopped = replace(
        after,
        clients=tuple(
            replace(
                each,
                queues=tuple(
                    replace(row, delivered_messages=old.delivered_messages)
                    for row, old in zip(each.queues, then.queues, strict=True)
                ),
            )
            if each.name == "desk"
            else each
            for each, then in zip(after.clients, before.clients, strict=True)
        ),
    )
    made = scenario_of(observe(stopped, before, 20.0)).scenario
    check_rules(made)
    assert made.groups[0].pauses
