"""`qsctl show`: a run's listing is its counters, to the figure; captured listings in every format; wildcards."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner, Result

from qsctl.cli.monitoring.listing_source import no_match
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.schema import LogLevel
from qsctl.profiles.formats.file import parse_profiles
from qsctl.profiles.listings.model import ListedQueueStatistics
from qsctl.profiles.listings.read import read_listings
from qsctl.sim.run import run as simulate
from qsctl.sim.scenario.xml import read_scenario
from tests.commands import command_line

FIXTURES = Path(__file__).parents[3] / "fixtures" / "listings"
SCENARIO = """<scenario name="shown" horizon="20s" seed="3" replications="2">
  <port name="p1" rate="50 Mbit/s"/>
  <profile name="web"><queue name="D-1" max-depth="60"/><eliding enabled="true" max-topics="5"/></profile>
  <profile name="plain"><queue name="D-2" max-depth="50"/><queue name="D-3" max-depth="7000"/></profile>
  <group name="web" port="p1" profile="web" count="3"><pause start="2s" duration="16s"/></group>
  <group name="desk" port="p1" profile="plain" count="2" loss="1%">
    <pause start="3s" duration="2500ms"/><absence start="5s" duration="3s"/>
  </group>
  <group name="10.0.0.9" port="p1" profile="plain" count="4" round-trip="80ms" neighbor="true"/>
  <traffic name="a" to="web" topics="9"><poisson rate="60/s"/><size bytes="4 KB"/></traffic>
  <traffic name="b" to="desk" queue="D-2"><poisson rate="80/s"/><size bytes="3 KB"/></traffic>
  <traffic name="g" to="desk" delivery="guaranteed" cos="3"><poisson rate="20/s"/></traffic>
  <traffic name="n" to="10.0.0.9" queue="D-2"><poisson rate="300/s"/><size bytes="20 KB"/></traffic>
  <broker slow-threshold="20" slow-penalty="0" large-message="3500"/>
  <change at="9s" path="profile[plain]/queue[D-3]/max-depth" value="9000"/>
</scenario>
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run at level events and one at level counters."""
    parent = tmp_path_factory.mktemp("runs")
    (parent / "shown.xml").write_text(SCENARIO, encoding="utf-8")
    scenario = read_scenario(parent / "shown.xml")
    simulate(scenario, parent / "events", level=LogLevel.EVENTS)
    simulate(scenario, parent / "counters", level=LogLevel.COUNTERS)
    return parent


def qsctl(*arguments: str) -> Result:
    return CliRunner().invoke(command_line(), ["show", *arguments])


def shown(*arguments: str) -> str:
    done = qsctl(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def counted(folder: Path, replication: int) -> dict[tuple[str, str], ListedQueueStatistics]:
    """The run's counters, as a listing has them."""
    return {
        (row["client"], row["queue"]): ListedQueueStatistics(
            row["queue"], row["length_messages"], row["length_work_units"], row["high_water_mark_work_units"],
            row["max_depth_work_units"], row["discarded_messages"] + row["evicted_messages"], row["delivered_messages"],
        )
        for row in open_run(folder).counters().to_pylist()
        if row["replication"] == replication
    }  # fmt: skip


@pytest.mark.parametrize("level", ["events", "counters"])
@pytest.mark.parametrize("replication", [0, 1])
def test_a_run_s_listing_reads_back_to_its_counters(runs: Path, level: str, replication: int) -> None:
    source = ("--run", str(runs / level), "--replication", str(replication))
    text = shown("client", "*", "stats", "queue", *source)
    links = shown("cspf", "neighbor", "*", "stats", "queues", *source)
    found = read_listings((text + links).encode(), "listing")
    read = {(client.name, queue.queue): queue for client in found.clients for queue in client.queues}
    for neighbor in found.neighbors:
        for number, connection in enumerate(neighbor.connections, 1):
            assert connection.name == f"Conn-{number}"
            read |= {(f"{neighbor.name}/{number}", queue.queue): queue for queue in connection.queues}
    counters = counted(runs / level, replication)
    assert any(each.discarded_messages for each in counters.values())
    others = open_run(runs / level).counters()["disconnected_messages"].to_pylist()
    assert any(others), "losses by other causes are no discards of the queue's limit"
    assert {key: read[key] for key in counters} == counters
    for key in set(read) - set(counters):
        depth = 9000 if key[1] == "D-3" and not key[0].startswith("web") else read[key].max_depth_work_units
        assert read[key] == ListedQueueStatistics(key[1], 0, 0, 0, depth, 0, 0)
    assert [client.name for client in found.clients] == ["web/1", "web/2", "web/3", "desk/1", "desk/2"]


def test_what_single_clients_did_is_in_the_listing_where_the_log_knows_it(runs: Path) -> None:
    listing = read_listings(shown("client", "*", "stats", "queue", "--run", str(runs / "events")).encode(), "f")
    web, desk = listing.clients[0], listing.clients[3]
    assert (web.eliding_enabled, web.max_eliding_topics, web.eliding_topics, web.subscriptions) == (True, True, 5, 9)
    assert (web.slow_subscriber, web.large_message, web.parse_error) == (True, True, False)
    # One segment of a hundred is sent again: that makes a client slow, too.
    assert (desk.slow_subscriber, desk.large_message, desk.eliding_topics) == (True, False, 0)
    assert (web.uptime_s, desk.uptime_s) == (20, 12)
    assert (web.client_username, web.client_profile) == ("web", "web")
    done = qsctl("client", "web/?", "stats", "queue", "--run", str(runs / "counters"))
    counters = read_listings(done.stdout.encode(), "f")
    assert counters.clients[1].slow_subscriber is counters.clients[1].max_eliding_topics is None
    assert "with --level events every figure of single clients is known" in done.stderr


def test_slow_subscribers_and_connections_of_a_run(runs: Path) -> None:
    slow = read_listings(shown("client", "*", "slow-subscriber", "--run", str(runs / "events")).encode(), "f")
    assert {row.name for row in slow.slow_subscribers} == {"web/1", "web/2", "web/3", "desk/1", "desk/2"}
    assert all(row.slow_subscriber for row in slow.slow_subscribers)
    assert all((row.blocked_percent or 0) >= 20 for row in slow.slow_subscribers if row.name.startswith("web"))
    wide = read_listings(shown("client", "*", "connections", "wide", "--run", str(runs / "events")).encode(), "f")
    rows = {row.name: row for row in wide.connections}
    assert set(rows) == {"web/1", "web/2", "web/3", "desk/1", "desk/2"}
    assert rows["web/1"].blocked_percent == next(
        row.blocked_percent for row in slow.slow_subscribers if row.name == "web/1"
    )
    assert (rows["desk/1"].fast_retransmits or 0) > 0
    assert rows["web/1"].fast_retransmits == 0


def test_clients_of_which_none_is_slow_are_no_error(tmp_path: Path) -> None:
    said = "No client that fits 'desk-2' is a slow subscriber."
    listing = str(FIXTURES / "clients.txt")
    assert shown("client", "desk-2", "slow-subscriber", "--listing", listing).strip() == said
    brief = SCENARIO.replace('horizon="20s"', 'horizon="2s"').replace('at="9s"', 'at="1s"')
    (tmp_path / "quiet.xml").write_text(brief, encoding="utf-8")
    simulate(read_scenario(tmp_path / "quiet.xml"), tmp_path / "run", level=LogLevel.COUNTERS)
    answer = shown("client", "web/*", "slow-subscriber", "--run", str(tmp_path / "run"))
    assert "No client that fits 'web/*' is a slow subscriber." in answer


def test_every_format_has_the_same_figures() -> None:
    source = ("client", "desk-*", "stats", "queue", "--listing", str(FIXTURES / "clients.txt"))
    document: dict[str, Any] = json.loads(shown(*source, "-o", "json"))
    nested = [
        (client["name"], queue["queue"], queue["delivered_messages"])
        for client in document["clients"]
        for queue in client["queues"]
    ]
    rows = list(csv.DictReader(io.StringIO(shown(*source, "-o", "csv"))))
    assert [(row["client"], row["queue"], int(row["delivered_messages"])) for row in rows] == nested
    lines = [json.loads(line) for line in shown(*source, "-o", "jsonl").splitlines()]
    assert [(row["client"], row["queue"], row["delivered_messages"]) for row in lines] == nested
    samples = [
        (sample.labels["client"], sample.labels["queue"], sample.value)
        for family in text_string_to_metric_families(shown(*source, "-o", "prometheus"))
        for sample in family.samples
        if sample.name == "qsctl_client_queue_delivered_messages_total"
    ]
    assert samples == nested
    assert len(nested) == 10


@pytest.mark.parametrize(
    ("pattern", "names"), [("desk-?", ["desk-1", "desk-2"]), ("*2", ["desk-2"]), ("*", ["desk-1", "desk-2"])]
)
def test_names_are_matched_as_the_broker_does(pattern: str, names: list[str]) -> None:
    text = shown("client", pattern, "stats", "queue", "--listing", str(FIXTURES / "clients.txt"))
    assert [line.split()[1] for line in text.splitlines() if line.startswith("Client:")] == names


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("client", "x", "stats", "queue", "--listing", "clients.txt"), 4, "clients.txt has no client with queues 'x'"),
        (("client", "x", "stats"), 2, "show client x 'stats' is not a listing"),
        (("client", "x", "stats", "queue", "--listing", "a", "--run", "b"), 2, "--run and --listing are both given"),
        (("client", "x", "stats", "queue", "--listing", "absent.txt"), 4, "there is no file absent.txt"),
        (("cspf", "neighbour", "x", "stats", "queues"), 2, "is not a listing"),
        (("client", "x", "stats", "queue"), 4, "there is no run in qsctl-runs"),
        (("client", "x", "stats", "queue", "--listing", "bad.txt"), 1, "bad.txt:1: error: there is no listing in it"),
        (("client", "x", "stats", "queue", "-o", "xml"), 2, "prints no XML"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_one_error_with_its_status(
    arguments: tuple[str, ...], status: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clients.txt").write_bytes((FIXTURES / "clients.txt").read_bytes())
    (tmp_path / "bad.txt").write_text("once upon a time\n", encoding="utf-8")
    done = qsctl(*arguments)
    assert (done.exit_code, done.stdout) == (status, "")
    assert words in done.stderr


def test_a_run_without_a_neighbour_names_the_attribute_to_set(runs: Path, tmp_path: Path) -> None:
    done = qsctl("cspf", "neighbor", "10.0.0.8", "stats", "queues", "--run", str(runs / "events"))
    assert (done.exit_code, "There is 10.0.0.9" in done.stderr) == (4, True)
    scenario = tmp_path / "none.xml"
    text = SCENARIO.replace('neighbor="true"', "").replace('horizon="20s"', 'horizon="10s"')
    scenario.write_text(text.replace('replications="2"', ""), encoding="utf-8")
    simulate(read_scenario(scenario), tmp_path / "none", level=LogLevel.COUNTERS)
    done = qsctl("cspf", "neighbor", "*", "stats", "queues", "--run", str(tmp_path / "none"))
    assert (done.exit_code, 'neighbor="true"' in done.stderr) == (4, True)


def test_the_newest_run_is_shown_unless_one_is_named(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qsctl-runs").mkdir()
    (tmp_path / "qsctl-runs" / "shown-1").symlink_to(runs / "events")
    assert shown("client", "web/1", "stats", "queue") == shown(
        "client", "web/1", "stats", "queue", "--run", str(runs / "events")
    )


def test_an_unknown_name_lists_the_first_names_when_none_is_near() -> None:
    assert "There is a, b;" in no_match(["a", "b"], "zzz", "client", "x").remedy


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('count="4" round-trip', 'count="3" round-trip'), "the neighbor '10.0.0.9' has 3 connections"),
        (('name="D-2" max-depth="50"', 'name="D-2" max-depth="49"'), "has max-depth 49"),
        (('to="10.0.0.9" queue="D-2"', 'to="10.0.0.9" queue="C-1"'), "the control card's, which is not simulated"),
        (('horizon="20s"', 'horizon="20s" model="tibco"'), "'neighbor' means nothing in a tibco scenario"),
    ],
)
def test_a_neighbour_is_what_a_link_can_be(change: tuple[str, str], words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.xml").write_text(SCENARIO.replace(*change), encoding="utf-8")
    with pytest.raises(Exception, match=r"error") as error:
        read_scenario(tmp_path / "bad.xml")
    assert words in str(error.value)


def test_the_profiles_of_a_run_are_listed_and_read_back(runs: Path) -> None:
    text = shown("client-profile", "*", "detail", "--run", str(runs / "events"))
    web, plain = (each.profile for each in parse_profiles(text.encode(), "listing").profiles)
    assert (web.name, web.d_1_max_depth_work_units, web.eliding_enabled, web.eliding_max_topics) == ("web", 60, True, 5)
    assert (plain.name, plain.d_2_max_depth_work_units, plain.d_3_max_depth_work_units) == ("plain", 50, 7000)
    assert (plain.g_1_min_msg_burst, plain.d_1_min_msg_burst, plain.tcp_max_window_kb) == (255, 4, 256)
    users = [line.split() for line in text.splitlines() if line.startswith("CU")]
    assert users == [["CU", "web", "3"], ["CU", "desk", "2"]]
    (one,) = json.loads(shown("client-profile", "we?", "detail", "--run", str(runs / "events"), "-o", "json"))
    assert (one["name"], one["users"]) == ("web", [{"type": "CU", "name": "web", "active": 3}])


@pytest.mark.parametrize("words", [(), ("message-vpn", "x"), ("detail", "detail")])
def test_only_the_detail_of_a_profile_is_a_listing(runs: Path, words: tuple[str, ...]) -> None:
    done = qsctl("client-profile", "web", *words, "--run", str(runs / "events"))
    assert (done.exit_code, "is not a listing" in done.stderr) == (2, True)
    vpn = qsctl("client-profile", "web", "message-vpn", "d*", "detail", "--run", str(runs / "events"))
    assert vpn.exit_code == 0
