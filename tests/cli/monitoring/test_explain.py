"""`qsctl explain discards`: every cause with its lever, and commands that the program takes."""

from __future__ import annotations

import itertools
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from qsctl.cli.monitoring.explain import READY_COMMANDS
from qsctl.eventlog.outcomes import LOSSES, column_of
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.schema import LogLevel
from qsctl.profiles.listings.discards import BY_KEY, BY_OUTCOME, CAUSES
from qsctl.sim.run import run as simulate
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.rules.scenario import check_rules
from qsctl.sim.scenario.xml import find_scenario, read_scenario, ready_scenarios
from qsctl.sim.sizing.targets import parse_setting, parse_target
from qsctl.summary.sweeps.points import EVERY_MEASURE
from tests.commands import command_line

FIXTURES = Path(__file__).parents[3] / "fixtures" / "listings"
LOSSY = """<scenario name="lossy" horizon="4s">
  <port name="p1" rate="20 Mbit/s"/>
  <profile name="p"><queue name="D-1" max-depth="10"/><eliding enabled="true" delay="200ms"/></profile>
  <profile name="q"><queue name="D-2" max-depth="20"/></profile>
  <group name="web" port="p1" profile="p" count="2"/>
  <group name="desk" port="p1" profile="q"><absence start="1s" duration="1s"/></group>
  <traffic name="a" to="web" topics="3"><poisson rate="200/s"/></traffic>
  <traffic name="b" to="desk" queue="D-2"><poisson rate="2000/s"/><size bytes="9 KB"/></traffic>
  <traffic name="c" to="desk" delivery="guaranteed"><poisson rate="300/s"/><size bytes="1 KB"/></traffic>
  <traffic name="d" to="desk" queue="D-3"><poisson rate="20/s"/><size bytes="60 KB"/></traffic>
  <endpoint to="desk" max-messages="30" acknowledge-delay="1s"/>
  <broker max-message="50 KB" ingress-rate="100 Mbit/s" ingress-buffer="300 KB"/>
  <change at="3s" path="client[desk]/absence" value="100ms"/>
</scenario>
"""


def explained(source: Path | str) -> dict[str, Any]:
    done = CliRunner().invoke(command_line(), ["explain", "discards", str(source), "-o", "json"])
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def assert_taken(command: str) -> None:
    """The command names a scenario that is there, and every change, target and setting of it can be had."""
    words = shlex.split(command)
    assert words[0] == "qsctl"
    assert words[1] in {"simulate", "size"}
    scenario = read_scenario(find_scenario(words[2]))
    pairs = list(itertools.pairwise(words[3:]))
    changed = apply_overrides(scenario, dict(value.split("=", 1) for option, value in pairs if option == "--set"))
    check_rules(changed)
    for option, value in pairs:
        if option == "--target":
            parse_target(value, EVERY_MEASURE)
        elif option == "--vary":
            setting = parse_setting(value)
            check_rules(apply_overrides(changed, {setting.path: str(setting.high)}))


@pytest.mark.parametrize("name", ["discards.txt", "discards_captured.xml"])
def test_the_captured_total_is_mostly_not_congestion(name: str) -> None:
    document = explained(FIXTURES / name)
    egress = {row["cause"]: row for row in document["causes"] if (row["of"], row["side"]) == ("broker", "egress")}
    assert {key: row["messages"] for key, row in egress.items()} == {
        "transmit_congestion": 893, "client_not_connected": 5_672, "msg_spool_egress": 56_934_618,
    }  # fmt: skip
    assert {"of": "broker", "side": "egress", "messages": 56_941_183} in document["totals"]
    assert sum(row["messages"] for row in egress.values()) == 56_941_183
    assert egress["transmit_congestion"]["share"] == 893 / 56_941_183
    table = CliRunner().invoke(command_line(), ["explain", "discards", str(FIXTURES / name)]).stdout
    assert "broker: 56,941,183 egress discards in total." in table
    for row in document["causes"]:
        assert row["lever"]
        if row["command"]:
            assert_taken(row["command"])


def test_the_spool_names_its_causes_and_comes_to_the_broker_s_figure() -> None:
    document = explained(FIXTURES / "discards.txt")
    spool = {row["cause"]: row for row in document["causes"] if row["of"] == "message spool"}
    assert {key for key, row in spool.items() if row["side"] == "egress" and row["is_loss"]} == {
        "ttl_expired", "redelivery_exceeded",
    }  # fmt: skip
    assert "max-redelivery" in spool["redelivery_exceeded"]["lever"]
    assert not spool["ttl_expired_to_dmq"]["is_loss"]
    table = CliRunner().invoke(command_line(), ["explain", "discards", str(FIXTURES / "discards.txt")]).stdout
    assert "message spool: its egress causes come to 56,934,618 of these 56,934,618." in table
    assert "capture" not in " ".join(document["notes"])


def test_usage_of_the_spool_and_its_queues_is_shown(tmp_path: Path) -> None:
    document = explained(FIXTURES / "discards.txt")
    assert document["usage"] == ["message spool: 68,223.8 of 75,000 MB, 61,880,124 messages spooled."]
    lines = "".join(
        f"\nName : q{number}\nMessage VPN : v\nCurrent Spool Usage (MB) : {usage}\nMax Spool Usage (MB) : 100\n"
        for number, usage in enumerate((79, 99, 80))
    )
    (tmp_path / "queues.txt").write_text(f"r> show queue * detail\n{lines}", encoding="utf-8")
    assert explained(tmp_path / "queues.txt")["usage"] == [
        "queue q1: 99 of 100 MB spooled.", "queue q2: 80 of 100 MB spooled.",
    ]  # fmt: skip


def test_the_spools_of_message_vpns_are_its_causes_where_all_of_it_is_not_captured(tmp_path: Path) -> None:
    text = (FIXTURES / "discards.txt").read_text(encoding="utf-8").replace("Message VPN:\n", "Message VPN: a\n")
    (tmp_path / "f.txt").write_text(text, encoding="utf-8")
    table = CliRunner().invoke(command_line(), ["explain", "discards", str(tmp_path / "f.txt")]).stdout
    assert "message spool: its egress causes come to 56,934,618 of these 56,934,618." in table
    assert "show message-spool stats`." not in table


def test_what_the_spool_did_is_asked_for_where_its_statistics_are_missing() -> None:
    notes = explained(FIXTURES / "discards_captured.xml")["notes"]
    assert any("show message-spool stats" in note for note in notes)


def test_a_total_that_its_causes_do_not_add_up_to_is_reported(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("Total Egress Discards: 10\nTransmit Congestion: 4\n", encoding="utf-8")
    table = CliRunner().invoke(command_line(), ["explain", "discards", str(tmp_path / "f.txt")]).stdout
    assert "10 egress discards in total; 6 by causes that are not listed" in table


@pytest.mark.slow
def test_a_run_has_every_cause_that_its_counters_have(tmp_path: Path) -> None:
    (tmp_path / "lossy.xml").write_text(LOSSY, encoding="utf-8")
    simulate(read_scenario(tmp_path / "lossy.xml"), tmp_path / "run", level=LogLevel.COUNTERS)
    rows = open_run(tmp_path / "run").counters().to_pylist()
    counted = {
        BY_OUTCOME[outcome.value].key: sum(row[column_of(outcome)] for row in rows)
        for outcome in LOSSES
        if sum(row[column_of(outcome)] for row in rows)
    }
    counted["message_elided"] = sum(row["elided_messages"] for row in rows)
    assert set(counted) >= {
        "transmit_congestion", "client_not_connected", "client_disconnected", "msg_spool_ingress", "ingress_rate",
        "msg_too_big",
    }  # fmt: skip
    document = explained(tmp_path / "run")
    assert {row["cause"]: row["messages"] for row in document["causes"]} == counted
    for row in document["causes"]:
        assert row["command"], row
        assert_taken(row["command"])
    commands = {row["cause"]: row["command"] for row in document["causes"]}
    assert "'group[desk]/absence[*]/duration=1ms'" in commands["client_not_connected"]
    assert "'change[1]/value=1ms'" in commands["client_not_connected"]
    assert "--vary 'max-depth(D-2)'" in commands["transmit_congestion"]


def test_without_the_cause_the_discards_are_gone(tmp_path: Path) -> None:
    """The check of a lever is one: what the command simulates has none of these discards."""
    (tmp_path / "lossy.xml").write_text(LOSSY, encoding="utf-8")
    scenario = read_scenario(tmp_path / "lossy.xml")
    simulate(scenario, tmp_path / "run", level=LogLevel.COUNTERS)
    for row in explained(tmp_path / "run")["causes"]:
        if row["cause"] in {"msg_too_big", "ingress_rate", "msg_spool_ingress", "message_elided"}:
            words = shlex.split(row["command"])
            changes = dict(value.split("=", 1) for option, value in itertools.pairwise(words) if option == "--set")
            changed = apply_overrides(read_scenario(Path(words[2])), changes)
            report = simulate(changed, tmp_path / row["cause"], level=LogLevel.COUNTERS)
            column = f"{BY_KEY[row['cause']].outcome}_messages"
            assert sum(each[column] for each in report.counters.to_pylist()) == 0, row


def test_queues_of_a_listing_are_congestion() -> None:
    (row,) = explained(FIXTURES / "clients.txt")["causes"]
    assert (row["of"], row["cause"], row["messages"], row["most"]) == (
        "queue D-1", "transmit_congestion", 38_280, "desk-1: 38,280",
    )  # fmt: skip
    assert_taken(row["command"])


UNREADABLE = '{"data": [{"clientName": "a", "txDiscardedMsgCount": "x"}]}'
NONE_DISCARDED = """Total Egress Discards:                                           0
Total Ingress Discards:                                          0
"""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (NONE_DISCARDED, "no message was discarded"),
        ((FIXTURES / "client_flowed.txt").read_text(), "no discard is listed"),
        (UNREADABLE, "no discard is listed"),
    ],
    ids=["all counted", "queues alone", "unreadable"],
)
def test_nothing_discarded_is_reported_where_it_was_counted(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "captured").write_text(content)
    done = CliRunner().invoke(command_line(), ["explain", "discards", str(tmp_path / "captured")])
    assert f": {said}.\n" in done.stdout, done.output
    assert done.stdout.count("txDiscardedMsgCount") == (content == UNREADABLE)


@pytest.mark.parametrize("key", READY_COMMANDS)
def test_commands_for_captured_figures_are_taken(key: str) -> None:
    assert key in BY_KEY
    assert_taken(READY_COMMANDS[key].format(queue="D-1"))


def test_every_loss_of_a_run_is_a_cause_and_every_cause_has_a_lever() -> None:
    assert {outcome.value for outcome in LOSSES} <= set(BY_OUTCOME)
    assert len({cause.key for cause in CAUSES}) == len(CAUSES)
    assert all(cause.words and cause.lever for cause in CAUSES)
    assert len(ready_scenarios()) > 5
