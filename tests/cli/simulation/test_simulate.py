"""`qsctl simulate`: tables, every format, the same bytes for the same seed, Spark's figures equal the simulator's."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from qsctl.errors import ExitStatus
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.run_folder import RunStatus
from qsctl.summary import run_summary
from tests.commands import command_line
from tests.patience import PATIENCE_S, eventually
from tests.processes import running

SMALL = """<scenario name="small" horizon="2s" warm-up="$(WARM_UP)">
  <port name="p1" rate="10 Mbit/s"/>
  <profile name="default"><queue name="D-1" max-depth="20"/><tcp transmit-queue="4 KB"/></profile>
  <group name="slow" port="p1" profile="default" count="2" link-rate="1 Mbit/s"/>
  <group name="quick" port="p1" profile="default" count="$(QUICK)"/>
  <traffic name="a" to="slow"><poisson rate="250/s"/><size bytes="1 KB"/></traffic>
  <traffic name="b" to="quick" queue="D-3"><poisson rate="50/s"/></traffic>
</scenario>
"""
COUNTS = (
    *run_summary.COUNTS, "lost_messages", "high_water_mark_work_units", "max_depth_work_units", "first_discard_ns",
    "wait_max_ns", "observed_ns",
)  # fmt: skip


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUICK", "3")
    monkeypatch.setenv("WARM_UP", "0")
    path = tmp_path / "small.xml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command_line(), ["simulate", *arguments])


def document(*arguments: str) -> dict[str, Any]:
    done = run(*arguments, "-o", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_the_table_is_the_one_that_operators_know(small: Path) -> None:
    done = run(str(small))
    assert done.exit_code == 0, done.output
    heading = next(line for line in done.stdout.splitlines() if "HWMark" in line)
    assert re.split(r"\s{2,}", heading)[:8] == [
        "Client", "Queue", "Length (Msgs)", "Length (Work)", "HWMark (Work)", "Max (Work)", "Discards (Msgs)",
        "Delivered (Msgs)",
    ]  # fmt: skip
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[:2] for line in lines if line and line[0].startswith(("slow", "quick"))][:5] == [
        ["slow/1", "D-1"], ["slow/2", "D-1"], ["quick/1", "D-3"], ["quick/2", "D-3"], ["quick/3", "D-3"],
    ]  # fmt: skip
    assert "Losses by queue and cause, the earliest first" in done.stdout
    assert "Run folder: qsctl-runs/small-1" in done.stdout


def test_many_clients_are_summed_by_group_and_by_queue_when_asked(small: Path) -> None:
    many = document(str(small), "--var", "QUICK=30")
    assert [(row["client"], row["queue"]) for row in many["queues"]] == [("slow", "D-1"), ("quick", "D-3")]
    by_client = document(str(small), "--var", "QUICK=30", "--by", "client")
    assert len(by_client["queues"]) == 32
    by_queue = document(str(small), "--var", "QUICK=30", "--by", "queue")
    assert [(row["client"], row["queue"]) for row in by_queue["queues"]] == [(None, "D-1"), (None, "D-3")]
    for name in ("arrived_messages", "delivered_messages", "discarded_messages", "wait_sum_ns"):
        total = sum(row[name] for row in by_client["queues"])
        assert sum(row[name] for row in many["queues"]) == sum(row[name] for row in by_queue["queues"]) == total
    assert {row["wait_max_ns"] for row in by_queue["queues"]} == {row["wait_max_ns"] for row in many["queues"]}


def test_a_row_of_several_clients_marks_sums_and_maxima(small: Path) -> None:
    for by, marked in (("client", False), ("group", True), ("queue", True)):
        shown = run(str(small), "--by", by).stdout
        for heading in ("Length (Msgs) Σ", "HWMark (Work) max", "Max (Work) max", "Discards (Msgs) Σ"):
            assert (heading in shown) is marked, (by, heading)


def test_formats_hold_the_same_rows(small: Path) -> None:
    rows = document(str(small), "--seed", "3")["queues"]
    lines = [json.loads(line) for line in run(str(small), "--seed", "3", "-o", "jsonl").stdout.splitlines()]
    cells = list(csv.DictReader(io.StringIO(run(str(small), "--seed", "3", "-o", "csv").stdout)))
    assert lines == rows
    assert [int(row["delivered_messages"]) for row in cells] == [row["delivered_messages"] for row in rows]


def test_the_same_seed_gives_byte_identical_logs_and_another_does_not(small: Path) -> None:
    first = document(str(small), "--out", "a", "--replications", "2", "--level", "events")
    again = document(str(small), "--out", "b", "--replications", "2", "--level", "events")
    other = document(str(small), "--out", "c", "--replications", "2", "--level", "events", "--seed", "9")
    assert first["fingerprint"] == again["fingerprint"] != other["fingerprint"]

    def parts(name: str) -> dict[str, bytes]:
        folder = Path(name)
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    assert parts("a") == parts("b")
    assert any(name.startswith("messages/replication=1") for name in parts("a"))


@pytest.mark.slow
def test_any_number_of_workers_writes_the_same_bytes(small: Path) -> None:
    alone = document(str(small), "--out", "a", "--replications", "2", "--workers", "1")
    pooled = document(str(small), "--out", "b", "--replications", "2", "--workers", "2")
    assert alone["fingerprint"] == pooled["fingerprint"]
    assert alone["queues"] == pooled["queues"]


def test_an_override_changes_the_run_and_is_recorded(small: Path) -> None:
    plain = document(str(small))
    deep = document(str(small), "--set", "profile[default]/queue[D-1]/max-depth=20000", "--set", "horizon=1s")
    assert plain["queues"][0]["discarded_messages"] > 0
    assert deep["queues"][0]["discarded_messages"] == 0
    assert deep["horizon_ns"] == 10**9
    assert "--set horizon=1s" in deep["reproduce"]
    assert open_run(Path(deep["folder"])).info.overrides["horizon"] == "1s"


def test_the_folder_s_own_scenario_makes_the_same_run(small: Path) -> None:
    first = document(str(small), "--out", "a", "--set", "group[slow]/count=3", "--seed", "5")
    again = document("a/scenario.xml", "--out", "b")
    assert again["fingerprint"] == first["fingerprint"]


def test_runs_never_overwrite(small: Path) -> None:
    assert [document(str(small))["folder"] for _ in range(2)] == ["qsctl-runs/small-1", "qsctl-runs/small-2"]
    document(str(small), "--out", "mine")
    refused = run(str(small), "--out", "mine")
    assert refused.exit_code == ExitStatus.NO
    assert "is not empty" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("nowhere",), ExitStatus.NOT_FOUND, "no ready scenario of that name"),
        (("n" * 400,), ExitStatus.NOT_FOUND, "a name of 400 characters"),
        (("burst", "--set", "traffic[quotes]/topic-skew=1e999"), ExitStatus.NO, "a number from 0 to 1e9"),
        (("small.xml", "--set", "horizon"), ExitStatus.USAGE, "is not PATH=VALUE"),
        (("small.xml", "--set", "horizont=1s"), ExitStatus.USAGE, "did you mean horizon?"),
        (("small.xml", "--set", "horizon=soon"), ExitStatus.NO, "'soon' is not a duration"),
        (("small.xml", "--set", "traffic[a]/to=nobody"), ExitStatus.NO, "there is no group 'nobody'"),
        (("small.xml", "--var", "QUICK=many"), ExitStatus.NO, "count is 'many'"),
    ],
)
def test_wrong_input_is_one_clear_error_and_leaves_nothing_behind(
    small: Path, arguments: tuple[str, ...], status: ExitStatus, message: str
) -> None:
    done = run(*arguments)
    assert done.exit_code == status
    assert message in done.stderr
    assert sorted(path.name for path in small.parent.iterdir()) == ["small.xml"]


def test_the_ready_scenarios_are_listed() -> None:
    done = run("--list", "-o", "json")
    names = [row["name"] for row in json.loads(done.stdout)]
    assert {"steady", "burst", "slow-subscriber", "web-messaging", "guaranteed", "fan-out-10000"} <= set(names)
    assert {"trace-solace", "trace-tibco", "shared-reader-queue"} <= set(names)


@pytest.mark.slow
def test_a_simulated_service_is_shown_by_its_queues(small: Path) -> None:
    shown = document("shared-reader-queue", "--set", "horizon=3s", "--set", "warm-up=0")
    assert [(row["client"], row["queue"]) for row in shown["queues"]] == [
        ("orders", "DeadOrders"), ("orders", "OrderQueue"),
    ]  # fmt: skip
    assert shown["queues"][1]["delivered_messages"] > 1000
    again = document(str(Path(shown["folder"]) / "scenario.xml"))
    assert again["fingerprint"] == shown["fingerprint"]


def test_solace_and_tibco_lose_opposite_messages_of_the_same_trace(small: Path) -> None:
    solace, tibco = document("trace-solace"), document("trace-tibco")
    assert solace["queues"][0]["arrived_messages"] == tibco["queues"][0]["arrived_messages"] == 3390

    def lost(folder: str) -> dict[str, list[tuple[int, int]]]:
        rows = [row for batch in open_run(Path(folder)).messages() for row in batch.to_pylist()]
        return {
            outcome: sorted((row["enqueued_ns"], row["size_bytes"]) for row in rows if row["outcome"] == outcome)
            for outcome in ("discarded", "delivered")
        }

    oldest, arriving = lost(solace["folder"]), lost(tibco["folder"])
    assert oldest["discarded"] and arriving["discarded"]
    assert oldest["discarded"][0] < arriving["discarded"][0], "Solace discards messages that came earlier"
    assert set(oldest["discarded"]) != set(arriving["discarded"])


@pytest.mark.slow
def test_control_c_shows_and_keeps_what_was_simulated(small: Path) -> None:
    command = [
        sys.executable, "-m", "qsctl", "simulate", "small.xml", "--set", "horizon=2000h", "--out", "long", "-o", "json"
    ]  # fmt: skip
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert eventually(lambda: list((small.parent / "long").glob("messages/*/.part-*")))
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == ExitStatus.INTERRUPTED, error
    shown = json.loads(out)
    assert shown["status"] == "partial"
    opened = open_run(small.parent / "long")
    assert opened.info.status is RunStatus.PARTIAL
    assert 0 < opened.info.done[0].simulated_ns < 2000 * 3600 * 10**9
    assert sum(row["delivered_messages"] for row in shown["queues"]) == opened.info.delivered_messages > 0


def test_nothing_but_errors_is_on_standard_error_in_a_pipe(small: Path) -> None:
    assert run(str(small)).stderr == ""


@pytest.mark.spark
def test_spark_and_the_simulator_agree_to_the_message(small: Path) -> None:
    own = document("small.xml", "--var", "WARM_UP=500ms", "--replications", "2")
    spark = document(
        "small.xml", "--var", "WARM_UP=500ms", "--replications", "2", "--spark", "--master", "local[2]"
    )  # fmt: skip
    assert (own["computed_by"], spark["computed_by"]) == ("simulator", "spark")
    assert own["fingerprint"] == spark["fingerprint"]
    check_figures(own, spark["queues"])


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(
    "arguments",
    [("small.xml",), ("shared-reader-queue", "--set", "horizon=3s", "--set", "warm-up=1s")],
    ids=" ".join,
)
def test_summary_and_the_simulator_agree_to_the_message(small: Path, arguments: tuple[str, ...]) -> None:
    own = document(*arguments, "--replications", "2")
    done = CliRunner().invoke(command_line(), ["summarize", own["folder"], "-o", "json"])
    assert done.exit_code == 0, done.output
    check_figures(own, json.loads(done.stdout)["queues"])


def check_figures(own: dict[str, Any], queues: list[dict[str, Any]]) -> None:
    """Compare the simulator's figures of a run with those of its event log."""
    theirs = {(row["client"], row["queue"]): row for row in queues}
    for row in own["queues"]:
        if not row["arrived_messages"]:
            continue  # no row of the log tells of a queue that nothing came to
        for name in COUNTS:
            assert theirs[row["client"], row["queue"]][name] == row[name], (row["client"], name)
        for rank in ("50", "99"):
            exact = theirs[row["client"], row["queue"]][f"wait_p{rank}_ns"]
            if not row["delivered_messages"]:
                assert (exact, row[f"wait_p{rank}_ns"]) == (None, None)
                continue
            assert exact <= row[f"wait_p{rank}_ns"] <= exact * (1 + row["percentile_error"]) + 1


def test_what_happened_is_shown_with_its_reason_whatever_is_logged(small: Path) -> None:
    del small
    shown = run("slow-subscriber", "--level", "counters").stdout
    for event in ("slow-subscriber", "buffer-load-set", "disconnected-slow", "Not connected", "Disconnected"):
        assert event in shown
    assert "explain slow-subscriber" in shown
    kept = document("slow-subscriber", "--level", "counters", "--set", "broker/slow-disconnect=false")
    events = {row["event"]: row for row in kept["events"]}
    assert "disconnected-slow" not in events
    assert events["slow-subscriber"]["clients"] == 3
    assert events["slow-subscriber"]["first_client"].startswith("stalled/")


def test_a_tibco_run_speaks_of_its_own_queue_and_counter(small: Path) -> None:
    del small
    shown = run("trace-tibco").stdout
    assert "Transmit Congestion--Slow Consumer (Msgs)" in shown
    assert "D-1" not in shown
    assert {row["queue"] for row in document("trace-tibco")["queues"]} == {"egress"}
    assert run("trace-tibco", "--set", "profile[default]/queue[egress]/min-msg-burst=4").exit_code == ExitStatus.DONE
    refused = run("trace-tibco", "--set", "profile[default]/max-subscriptions=4")
    assert refused.exit_code == ExitStatus.NO
    assert "means nothing in a tibco scenario" in refused.stderr


def test_messages_refused_at_ingress_are_in_the_verdict(small: Path) -> None:
    del small
    shown = run("ingress").stdout
    assert "No message was lost" not in shown
    assert "Ingress rate" in shown
    assert "Too big" in shown
    for row in document("ingress")["queues"]:
        there = row["length_messages"] + row["waiting_messages"]
        assert row["arrived_messages"] == row["delivered_messages"] + row["lost_messages"] + there


def test_intervals_are_of_the_replications_or_within_one_run_with_what_speaks_against_it(small: Path) -> None:
    one = document(str(small), "--confidence", "0.9", "--level", "messages", "--replications", "1")
    assert {row["method"] for row in one["intervals"]} == {"overlapping batch means of one run"}
    assert all(row["messages"] > 0 for row in one["intervals"])
    several = document(str(small), "--confidence", "0.9", "--replications", "3")
    assert {(row["method"], row["messages"]) for row in several["intervals"]} == {("Student's t", 0)}
    assert all(row["half_width"] is not None for row in several["intervals"])
    assert document(str(small))["intervals"] == []
    shown = run(str(small), "--confidence", "0.9", "--replications", "3").stdout
    assert "90 % intervals (Student's t)" in shown
    assert run(str(small), "--confidence", "2").exit_code == ExitStatus.USAGE
