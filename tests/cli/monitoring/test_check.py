"""`qsctl check`: the statuses and the line of monitoring plug-ins, from listings, runs and the embedded service."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from qsctl.cli.monitoring._nagios import CheckStatus, Range, number, parse_range, performance, status_of
from qsctl.errors import UsageError
from qsctl.eventlog.schema import LogLevel
from qsctl.sim.run import run as simulate
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.xml import read_scenario
from tests.commands import command_line

LISTING = str(Path(__file__).parents[3] / "fixtures" / "listings" / "clients.txt")
WIDE = str(Path(__file__).parents[3] / "fixtures" / "listings" / "connections_wide.txt")
LINE = re.compile(
    r"(OK|WARNING|CRITICAL|UNKNOWN): [^|\n]+( \|( '([^']|'')+'=-?[\d.]+(%|c|ms|s)?(;[^; ]*){0,4})+)?\n"
)  # fmt: skip


def check(*arguments: str) -> Result:
    done = CliRunner().invoke(command_line(), ["check", *arguments])
    assert LINE.fullmatch(done.stdout), done.output
    assert done.exit_code == CheckStatus[done.stdout.partition(":")[0]]
    return done


@pytest.mark.parametrize(
    ("text", "well", "alert"),
    [
        ("10", [0, 10, 5.5], [-1, 10.1]),
        ("10:", [10, 1e9], [9.9, -1]),
        ("~:10", [-1e9, 10], [10.5]),
        ("10:20", [10, 20], [9, 21]),
        ("@10:20", [9, 21], [10, 15, 20]),
        ("@10", [-1, 11], [0, 10]),
        (":5", [0, 5], [-1, 6]),
        ("-5:5", [-5, 0], [-6, 6]),
        (".5:1.25", [0.5, 1.25], [0.4, 1.3]),
    ],
)
def test_ranges_are_those_of_the_guidelines(text: str, well: list[float], alert: list[float]) -> None:
    limit = parse_range(text, "-w")
    assert [value for value in [*well, *alert] if limit.alerts(value)] == alert


@pytest.mark.parametrize("text", ["", "@", ":", "a", "1:2:3", "20:10", "~", "1e3", "10:~", "1;2", "१"])
def test_other_texts_are_no_ranges(text: str) -> None:
    with pytest.raises(UsageError):
        parse_range(text, "-w")


@given(st.text("0123456789:@~.- ", max_size=12))
def test_any_text_is_a_range_or_a_usage_error(text: str) -> None:
    try:
        limit = parse_range(text, "-w")
    except UsageError:
        return
    assert limit.low <= limit.high
    assert not (math.isnan(limit.low) or math.isnan(limit.high))


def test_critical_comes_before_warning_and_no_threshold_is_none() -> None:
    low, high = Range("5", 0, 5), Range("9", 0, 9)
    assert [status_of(value, low, high) for value in (5, 6, 9, 10)] == [
        CheckStatus.OK, CheckStatus.WARNING, CheckStatus.WARNING, CheckStatus.CRITICAL,
    ]  # fmt: skip
    assert status_of(6, None, high) is CheckStatus.OK


def test_performance_data_has_label_value_unit_and_thresholds() -> None:
    assert performance("a=b 'c'", 12.5, "%", parse_range("10", ""), parse_range("~:20", ""), 100.0) == (
        "'a_b ''c'''=12.5%;10;~:20;0;100"
    )
    assert performance("x", 3, "c", None, None) == "'x'=3c;;;0"
    assert (number(1 / 3), number(7.0), number(2**53)) == ("0.3333", "7", str(2**53))


def test_the_worst_queue_of_the_clients_decides() -> None:
    done = check("client", "desk-*", "--queue", "D-1", "-w", "0", "-c", "50000", "--listing", LISTING)
    assert done.exit_code == CheckStatus.WARNING
    assert done.stdout == (
        "WARNING: desk-1 D-1: discarded_messages is 38280, allowed is 0 (1 of 2 are not well) | "
        "'desk-1 D-1'=38280c;0;50000;0 'desk-2 D-1'=0c;0;50000;0\n"
    )
    assert check("client", "desk-1", "-c", "38279", "--listing", LISTING).exit_code == CheckStatus.CRITICAL
    assert check("client", "desk-2", "-c", "0", "--listing", LISTING).exit_code == CheckStatus.OK


def test_a_queue_is_looked_at_for_every_client() -> None:
    done = check("queue", "D-1", "-w", "80", "-c", "100", "--listing", LISTING)
    assert done.exit_code == CheckStatus.CRITICAL
    assert "desk-1 D-1: depth_percent is 100.05%" in done.stdout
    assert check("queue", "G-1", "-w", "12.5", "--listing", LISTING).exit_code == CheckStatus.OK
    assert check("queue", "?-1", "-m", "high_water_mark_work_units", "-c", "2500", "--listing", LISTING).exit_code == 0


def test_how_long_a_client_was_blocked() -> None:
    done = check("client", "desk-1", "-m", "blocked_percent", "-w", "20", "-c", "95", "--listing", WIDE)
    assert done.exit_code == CheckStatus.WARNING
    assert "'desk-1'=93.33%;20;95;0;100" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("client", "desk-1", "--listing", LISTING), "no threshold is given"),
        (("client", "nobody", "-w", "1", "--listing", LISTING), "has no client 'nobody'"),
        (("client", "desk-1", "--queue", "X", "-w", "1", "--listing", LISTING), "has no queue of desk-1 'X'"),
        (("client", "desk-1", "-m", "colour", "-w", "1", "--listing", LISTING), "there is no measure 'colour'"),
        (("client", "desk-1", "-w", "5:1", "--listing", LISTING), "begins above its end"),
        (("client", "desk-1", "-w", "1", "--listing", "absent"), "there is no file absent"),
        (("client", "desk-1", "-w", "1"), "there is no run in qsctl-runs"),
        (("client",), "Missing argument"),
        (("client", "x", "--colour", "red"), "No such option"),
        (("queue", "Orders", "-w", "many"), "is not a range"),
        (("queue", "Orders", "-w", "1"), "there is no queue 'Orders'"),
        (("queue", "Orders", "-w", "1", "--service", "nonsense"), "is not a service location"),
        (("queue", "D-1", "-w", "1", "--run", "absent"), "absent is not a folder"),
    ],
)
def test_whatever_goes_wrong_is_unknown_in_one_line(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = check(*arguments)
    assert (done.exit_code, words in done.stdout) == (CheckStatus.UNKNOWN, True)


def test_our_own_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (["create-queue", "Orders"], *(["produce", "Orders", "--text", "x"] for _ in range(3))):
        assert CliRunner().invoke(command_line(), command).exit_code == 0
    assert check("queue", "Orders", "-w", "3", "-c", "5").exit_code == CheckStatus.OK
    done = check("queue", "Orders", "-w", "2", "-c", "5")
    assert done.exit_code == CheckStatus.WARNING
    assert "current_message_count is 3, allowed is 2" in done.stdout
    counter = check("queue", "Orders", "-m", "received_message_count", "-c", "@3:3")
    assert counter.exit_code == CheckStatus.CRITICAL
    assert "=3c;;@3:3;0" in counter.stdout


def test_shared_reader_queues_of_a_run(tmp_path: Path) -> None:
    scenario = Path(__file__).parents[3] / "fixtures" / "scenarios" / "shared-reader-queue.xml"
    brief = apply_overrides(read_scenario(scenario), {"horizon": "200ms", "warm-up": "0s"})
    report = simulate(brief, tmp_path / "run", level=LogLevel.COUNTERS)
    queues = {row["queue"]: row["delivered_messages"] for row in report.counters.to_pylist()}
    name, delivered = next(iter(queues.items()))
    done = check("queue", name, "-m", "delivered_messages", "-c", f"{delivered}:", "--run", str(tmp_path / "run"))
    assert done.exit_code == CheckStatus.OK
    assert f"={delivered}c;" in done.stdout


def test_json_has_every_value() -> None:
    arguments = ["check", "client", "desk-2", "-w", "1", "--listing", LISTING, "-o", "json"]
    document = json.loads(CliRunner().invoke(command_line(), arguments).stdout)
    assert (document["status"], len(document["values"])) == ("OK", 5)
