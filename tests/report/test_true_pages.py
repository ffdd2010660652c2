"""Pages state what was shown: growing queues, refused writes, bounds of zero, intervals, numbers as numbers."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from qsctl.errors import UsageError
from qsctl.eventlog.location import location
from qsctl.eventlog.run_folder import RunInfo, RunStatus
from qsctl.instant import SECOND_NS
from qsctl.report._charts import Picture, depth_chart, front_chart, line_chart, picture
from qsctl.report._html import page_html
from qsctl.report._terminal_charts import chart_lines
from qsctl.report.page import Page, PageTable
from qsctl.report.run_report import connection_tables, growing_queues, loss_tables, verdict
from qsctl.report.sweep_report import memory_and_loss, points_of, sweep_page
from qsctl.sim.sweep import parse_axes, plan_sweep, run_task
from qsctl.summary.measures import tables
from qsctl.summary.run_summary import QueueFigures, RunSummary
from qsctl.summary.sweeps.selection import parse_criteria
from qsctl.summary.sweeps.sweep_folder import PointResult, open_sweep
from tests.commands import command_line
from tests.summary.paused_client import paused
from tests.summary.written_sweep import write_results

DEPTH = "profile[default]/queue[D-1]/max-depth"


def info_of(model: str, horizon_s: int = 100) -> RunInfo:
    return RunInfo(
        run_id="r", status=RunStatus.COMPLETE, scenario="s", model=model, seed=1, log_level="messages",
        horizon_ns=horizon_s * SECOND_NS, warm_up_ns=0, replications=1, done=(), files={},
    )  # fmt: skip


def figures(**changes: Any) -> QueueFigures:
    names = {field.name: 0 for field in dataclasses.fields(QueueFigures) if field.default is dataclasses.MISSING}
    return QueueFigures(**{**names, "queue": "Q", "client": None, "first_discard_ns": None, **changes})


def windows(arrived: list[int], gone: list[int], replications: int = 1) -> list[dict[str, Any]]:
    return [
        {
            "queue": "Q", "replication": replication, "window_start_ns": at * SECOND_NS, "window_ns": SECOND_NS,
            "arrived_messages": came, "delivered_messages": left, "discarded_messages": 0, "elided_messages": 0,
            "lost_messages": 0,
        }
        for replication in range(replications)
        for at, (came, left) in enumerate(zip(arrived, gone, strict=True))
    ]  # fmt: skip


def summary(queues: list[QueueFigures], tables: dict[str, Any]) -> RunSummary:
    return RunSummary(("r",), ("queue",), True, "messages", 0, 100 * SECOND_NS, 1, SECOND_NS, tuple(queues), tables)


def test_a_queue_that_grows_without_end_is_named_and_its_page_is_not_good() -> None:
    info = info_of("solace")
    grows = summary([figures(delivered_messages=2_700)], {"windows": windows([10] * 100, [9] * 100, 3)})
    (found,) = growing_queues(info, grows)
    assert (found.queue, found.half, found.end) == ("Q", 50, 100)
    sentences = " ".join(verdict(info, grows, summary([], {})))
    assert "No message was lost, so far." in sentences
    assert "Q grows all the time: 50 messages were not done at half of the run, 100 at its end." in sentences


@pytest.mark.parametrize(
    ("arrived", "gone"),
    [
        ([10] * 100, [10] * 100),
        ([100] * 10 + [0] * 90, [20] * 50 + [0] * 50),  # a burst that is worked off
        ([10] * 100, [0] * 20 + [10] * 80),  # a backlog that stays
        ([1000] * 100, [999] * 20 + [1001] * 20 + [1000] * 60),
    ],
)
def test_a_queue_that_comes_to_rest_does_not_grow(arrived: list[int], gone: list[int]) -> None:
    assert growing_queues(info_of("solace"), summary([figures()], {"windows": windows(arrived, gone)})) == []


def test_growth_is_not_reported_without_windows() -> None:
    assert growing_queues(info_of("solace"), summary([figures()], {})) == []


def test_writes_that_a_cluster_refused_are_not_lost() -> None:
    refused = figures(arrived_messages=1000, delivered_messages=918, discarded_messages=82)
    sentences = " ".join(verdict(info_of("world"), summary([refused], {}), summary([], {})))
    assert "lost 8.2" not in sentences
    assert "No message was lost." in sentences
    assert "Q refused 8.2 % of the writes, by an answer of 0 each" in sentences
    others = " ".join(verdict(info_of("solace"), summary([refused], {}), summary([], {})))
    assert "Q lost 8.2 % of its messages" in others
    dead = dataclasses.replace(refused, dead_messages=10)
    assert "Q lost 1.08 %" in " ".join(verdict(info_of("world"), summary([dead], {}), summary([], {})))


def test_losses_of_more_than_one_cause_have_a_table_of_causes() -> None:
    both = figures(arrived_messages=100, delivered_messages=80, expired_messages=12, rejected_messages=8)
    one = figures(arrived_messages=100, delivered_messages=99, rejected_messages=1)
    none = figures(arrived_messages=100, delivered_messages=100)
    (found,) = loss_tables(info_of("solace"), [both, none])
    assert list(found.headings) == ["Queue", "Expired", "Rejected by the application"]
    assert [list(row) for row in found.rows] == [["Q", "12", "8"]]
    assert loss_tables(info_of("solace"), [one, none]) == []
    assert "Q lost 1 (rejected by the application)." in verdict(info_of("solace"), summary([one], {}), summary([], {}))


def happened(client: str, **changes: Any) -> dict[str, Any]:
    names = [field.name for field in tables.CONNECTIONS.fields]
    return {**dict.fromkeys(names, 0), "client": client, "replication": 0, "first_slow_ns": None, **changes}


def test_what_happened_at_the_clients_is_a_table_of_what_is_not_zero_the_most_blocked_first() -> None:
    rows = [
        happened("quick"), happened("lossy", blocked_ns=SECOND_NS, retransmissions=1234, time_outs=5),
        happened("slow", blocked_ns=40 * SECOND_NS, slow_periods=1, first_slow_ns=30 * SECOND_NS, disconnections=2),
        happened("work", expired_to_dmq_messages=3, redelivered_to_dmq_messages=4, rejected_to_dmq_messages=5),
    ]  # fmt: skip
    (found,) = connection_tables(summary([], {"connections": rows}))
    assert [row[0] for row in found.rows] == ["slow", "lossy", "work"]
    assert list(found.rows[1]) == ["lossy", "1 s", "0", "–", "0", "1,234", "5", "0", "0", "0"]
    assert found.note.endswith("3 of 3; `qsctl summarize` lists all of them.")
    (few,) = connection_tables(summary([], {"connections": rows[:2]}))
    assert list(few.headings) == ["Client", "Blocked", "Sent again (segments)", "Time-outs"]
    (each,) = connection_tables(summary([], {"connections": [rows[1], {**rows[1], "replication": 1}]}))
    assert [list(row[:2]) for row in each.rows] == [["lossy", "0"], ["lossy", "1"]]
    assert connection_tables(summary([], {"connections": rows[:1]})) == connection_tables(summary([], {})) == []


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = plan_sweep(paused(), parse_axes([f"{DEPTH}=2,50,100,10000"]), 3)
    folder = tmp_path_factory.mktemp("sweep") / "sweep"
    open_sweep(location(str(folder)), plan)
    write_results(
        location(str(folder)),
        [
            PointResult(task.point, task.replication, task.seed, tuple(run_task(plan.scenario, task)))
            for task in plan.tasks()
        ],
    )
    return folder


def test_points_without_a_loss_have_a_bound_and_the_table_has_intervals(swept: Path) -> None:
    page = sweep_page(location(str(swept)))
    assert (
        "2 of 4 points lost nothing in 3 replications, which shows that less than 63.2 % of runs lose any there: "
        in (page.verdict[0])
    )
    (table,) = page.tables
    assert any("±" in cell for row in table.rows for cell in row)


def test_the_front_of_memory_and_loss_has_no_point_that_another_beats(swept: Path) -> None:
    from qsctl.summary.comparison.compared_settings import scenario_in
    from qsctl.summary.sweeps.sweep_folder import read_results

    folder = location(str(swept))
    scenario = scenario_in(folder)
    assert scenario is not None
    rows = sorted(memory_and_loss(points_of(read_results(folder)), scenario), key=lambda row: row["x"])
    assert [row["label"] for row in rows] == ["2", "50", "100", "10000"]
    # A depth of 100 loses nothing, and needs less memory than one of 10,000.
    assert [row["label"] for row in rows if row["front"]] == ["2", "50", "100"]
    assert rows[-1]["y"] == rows[-2]["y"] == 0.0
    assert any(each.title == "Memory against loss" for each in sweep_page(folder).pictures)


def selected(folder: Path, *asked: str) -> Page:
    criteria = [parse_criteria(text, 1 + text.count(","), "--best") for text in asked]
    return sweep_page(location(str(folder)), criteria)


@pytest.mark.slow
def test_the_best_point_and_the_front_are_first_on_a_page_that_is_asked_for_them(swept: Path) -> None:
    page = selected(swept, "lost(D-1)", "high_water_mark(D-1),loss_ratio(D-1)")
    assert page.verdict[0] == (
        f"Best by lost(D-1): 2 of 4 points had the same best value in every replication: {DEPTH}=100; {DEPTH}=10000."
    )
    assert page.verdict[1].startswith("Pareto front of high_water_mark(D-1), loss_ratio(D-1): ")
    assert [each.title for each in page.pictures[:2]] == [
        "Best by lost(D-1)",
        "Pareto front of high_water_mark(D-1) and loss_ratio(D-1)",
    ]
    best, front, _ = page.tables
    assert [row[-1] for row in best.rows] == ["may be", "may be", f"no: {DEPTH}=100", f"no: {DEPTH}=100"]
    assert best.headings[1:] == ["lost(D-1)", "The best"]
    assert front.headings[1:] == ["high_water_mark(D-1)", "loss_ratio(D-1)", "On the front"]
    assert all(each.narrow.startswith("<svg") for each in page.pictures[:2])


def test_the_best_point_is_asked_of_a_queue_that_there_is(swept: Path) -> None:
    with pytest.raises(UsageError, match=r"no point has 3 replications with lost\(D-9\)"):
        selected(swept, "lost(D-9)")


def test_only_a_sweep_has_a_best_point(tmp_path: Path) -> None:
    found = CliRunner().invoke(command_line(), ["report", str(tmp_path), "--best", "lost(D-1)"])
    assert found.exit_code == 2, found.output
    assert "is not a folder of a sweep" in " ".join(found.output.split())


def of(points: list[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"x": x, "queue": "Q", "mean": y, "low": y / 2, "high": 2 * y} for x, y in points]


def test_numbers_are_drawn_to_scale_and_intervals_are_bands() -> None:
    near = line_chart(of([("100", 1.0), ("200", 2.0), ("1000", 3.0)]), "x", "y").to_dict()
    assert near["layer"][0]["encoding"]["x"]["type"] == "quantitative"
    assert near["layer"][0]["encoding"]["x"]["scale"].get("type") is None
    assert near["layer"][1]["mark"]["type"] == "area"
    far = line_chart(of([("100", 1.0), ("200", 2.0), ("10000", 3.0)]), "x", "y").to_dict()
    assert far["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"
    named = line_chart(of([("1 Gbit/s", 1.0), ("10 Gbit/s", 2.0)]), "x", "y").to_dict()
    assert named["layer"][0]["encoding"]["x"]["type"] == "ordinal"
    assert named["layer"][1]["mark"]["type"] == "rule"


def test_each_number_on_an_axis_has_its_own_label() -> None:
    svg = picture("t", "c", lambda: line_chart(of([("500", 1.0), ("1000", 2.0), ("8000", 3.0)]), "depth", "ms")).wide
    assert [re.search(f">{label}<", svg) is not None for label in ("500", "1k", "8k")] == [True] * 3


def test_many_numbers_over_decades_have_an_axis_of_decades() -> None:
    many = of([(str(3**power), 1.0) for power in range(1, 11)])
    svg = picture("t", "c", lambda: line_chart(many, "depth", "ms")).wide
    assert [label for label in ("10", "100", "1k", "10k", "20", "30", "5k") if f">{label}<" in svg] == [
        "10", "100", "1k", "10k",
    ]  # fmt: skip


def test_text_labels_an_axis_by_its_values() -> None:
    numbers = picture("t", "c", lambda: line_chart(of([("500", 1.0), ("1000", 2.0), ("2000", 3.0)]), "depth", "ms"))
    assert "1,000" in chart_lines(numbers, 70, is_unicode=True)[-1]
    words = picture("t", "c", lambda: line_chart(of([("1 Gbit/s", 1.0), ("10 Gbit/s", 2.0)]), "rate", "ms"))
    assert "(0: 1 Gbit/s, 1: 10 Gbit/s)" in chart_lines(words, 90, is_unicode=True)[0]


def depth_of(peaks: dict[str, int]) -> Picture:
    depths = [
        {"seconds": at, "queue": queue, "work_units": peak * at / 10}
        for queue, peak in peaks.items()
        for at in range(11)
    ]
    return picture("Depth", "c", lambda: depth_chart(depths, [], [], 10.0))


def test_queues_whose_depths_differ_much_have_a_scale_each() -> None:
    assert "vconcat" not in depth_of({"D-1": 100, "D-2": 50}).chart().to_dict()
    parts = depth_of({"D-1": 10_000, "D-2": 5}).chart().to_dict()["vconcat"]
    assert [part["layer"][0]["encoding"]["y"]["scale"]["domain"][1] for part in parts] == pytest.approx([11_200.0, 5.6])
    assert depth_of({"D-1": 10_000, "D-2": 5}).narrow.startswith("<svg")
    text = chart_lines(depth_of({"D-1": 10_000, "D-2": 5}), 60, is_unicode=False)
    assert sum("depth (work units)" in line for line in text) == 2


def test_a_front_is_drawn_and_a_wide_table_shows_that_there_is_more() -> None:
    points = [{"x": 1.0, "y": 0.5, "label": "2", "front": True}, {"x": 3.0, "y": 0.6, "label": "3", "front": False}]
    drawn = picture("Front", "c", lambda: front_chart(points, "memory", "loss"))
    table = PageTable("T", ["a"], [["1"]])
    page = Page("t", "s", True, ["v"], [drawn], [table], {}, "r", "<x/>")
    assert "background-attachment: local, local, scroll, scroll" in page_html(page)
    assert chart_lines(drawn, 60, is_unicode=True) == []
