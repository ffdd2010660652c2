"""Reports: one file, nothing fetched, every text escaped; opened in a browser where there is one."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from qsctl.cli.output.results import TextBlock
from qsctl.cli.simulation.results.summarize import loss_blocks
from qsctl.errors import InvalidInput, NotFound
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.report._charts import picture, rate_chart
from qsctl.report._html import page_html
from qsctl.report._run_pictures import latency_shares
from qsctl.report._words import count_text, duration_text, listed
from qsctl.report.document_report import document_page
from qsctl.report.formats import ReportFormat, contents, write_report
from qsctl.report.page import Page, PageTable
from qsctl.report.run_report import nice_window, run_page
from qsctl.report.sweep_report import sweep_page
from qsctl.sim.run import run
from qsctl.sim.scenario.scenario import (
    ClientGroup,
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
from qsctl.sim.sweep import parse_axes, plan_sweep, run_task
from qsctl.summary.job import summarize_run
from qsctl.summary.sweeps.sweep_folder import PointResult, open_sweep
from tests.summary.written_sweep import write_results

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Tags(HTMLParser):
    """Checks that elements close in order, and keeps what would be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        for name, value in attrs:
            if name in {"src", "href", "xlink:href"} and not (value or "").startswith("#"):
                self.fetched.append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(html: str) -> str:
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert tags.fetched == []
    assert tags.scripts == 0
    assert "url(http" not in html
    assert "@import" not in html
    names = re.findall(r'\bid="([^"]+)"', html)
    assert len(names) == len(set(names)), "names inside the drawings are unique in the page"
    return html


def overloaded() -> Scenario:
    limits = default_queue_limits() | {Queue.D_1: QueueLimits(max_depth_work_units=150)}
    return Scenario(
        name="overloaded <b>", horizon_ns=SECOND_NS, ports=(Port("p", 8_000_000),),
        profiles=(Profile("default", queues=limits),), groups=(ClientGroup("c", port="p", profile="default", count=2),),
        traffic=(
            Traffic("low", to="c", arrivals=PoissonArrivals(900), size=ConstantSize(1000)),
            Traffic("high", to="c", arrivals=PoissonArrivals(50), size=ConstantSize(100), queue=Queue.D_3),
        ),
    )  # fmt: skip


@pytest.mark.slow
def test_a_run_without_a_message_is_not_one_that_loses_none(tmp_path: Path) -> None:
    silent = dataclasses.replace(overloaded(), traffic=(
        Traffic("t", to="c", arrivals=PoissonArrivals(900), size=ConstantSize(1000), stop_ns=SECOND_NS // 2),
    ), warm_up_ns=SECOND_NS * 9 // 10)  # fmt: skip
    for name, scenario, expected in (
        ("late", silent, "No message was observed after the warm-up, so the run does not show whether any is lost."),
        ("some", dataclasses.replace(silent, warm_up_ns=SECOND_NS // 10, ports=(Port("p", 8_000_000_000),)),
         "No message was lost."),
    ):  # fmt: skip
        run(scenario, tmp_path / name, replications=1)
        assert run_page(tmp_path / name).verdict[0] == expected
        figures = summarize_run(tmp_path / name, by=("queue",)).queues
        (block,) = loss_blocks(figures)
        assert isinstance(block, TextBlock)
        assert block.text == expected


@pytest.fixture
def sweep_folder(tmp_path: Path) -> Path:
    plan = plan_sweep(
        overloaded(), parse_axes(["profile[default]/queue[D-1]/max-depth=50,100", "port[p]/rate=8 Mbit/s,80 Mbit/s"]), 2
    )
    folder = tmp_path / "sweep"
    open_sweep(folder, plan)
    write_results(
        folder,
        [
            PointResult(task.point, task.replication, task.seed, tuple(run_task(plan.scenario, task)))
            for task in plan.tasks()
        ],
    )
    return folder


def page(**changes: Any) -> Page:
    values: dict[str, Any] = {
        "title": "A <script> & more", "subtitle": "s", "good": True, "verdict": ["Fine."], "pictures": [],
        "tables": [PageTable("T", ["A"], [["<i>"]])], "facts": {"k": "<v>"},
        "reproduce": "qsctl x > y", "configuration": "<xml/>",
    }  # fmt: skip
    return Page(**{**values, **changes})


def test_every_text_is_escaped() -> None:
    html = checked(page_html(page()))
    assert "A &lt;script&gt; &amp; more" in html
    assert "<i>" not in html
    assert "&lt;xml/&gt;" in html


def test_a_page_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_report(contents(page(), tmp_path / "no" / "such" / "folder.html", ReportFormat.HTML, ""))


@pytest.mark.slow
def test_a_drawing_has_a_name_scales_with_the_page_and_takes_its_colour() -> None:
    drawn = picture(
        "Rates & more", "c", lambda: rate_chart([{"seconds": 0, "queue": "D-1", "per_second": 3}], "x", 1.0)
    )
    for svg in (drawn.wide, drawn.narrow):
        assert svg.startswith("<svg ")
        assert 'aria-label="Rates &amp; more"' in svg
        assert "viewBox=" in svg.split(">")[0]
        assert " width=" not in svg.split(">")[0]
        assert "currentColor" in svg
    assert "#d95f02" in drawn.wide


@pytest.mark.slow
def test_a_sweep_over_two_values_has_a_heat_map_for_each_queue_that_shows_something(sweep_folder: Path) -> None:
    made = sweep_page(sweep_folder)
    assert "Share of messages lost: D-1" in [each.title for each in made.pictures]
    assert any("points lost nothing" in each for each in made.verdict)
    assert "--grid 'profile[default]/queue[D-1]/max-depth=50,100'" in made.reproduce
    checked(page_html(made))


def test_a_comparison_and_a_sizing_are_recognized_by_their_json(tmp_path: Path) -> None:
    difference = {
        "point": "the scenario as it is", "queue": "D-1", "measure": "loss_ratio", "unit": "ratio", "mean_a": 0.2,
        "mean_b": 0.1, "difference": -0.1, "half_width": 0.01, "paired": True, "better": "B",
    }  # fmt: skip
    comparison = tmp_path / "c.json"
    comparison.write_text(
        json.dumps({"sentence": "B is better.", "a": "x", "b": "y", "confidence": 0.95, "differences": [difference]})
    )
    made = document_page(comparison)
    assert made.verdict == ["B is better."]
    assert len(made.pictures) == 1
    (table,) = made.tables
    assert table.headings[0] == "Queue", "two runs have no points"
    assert table.rows == [["D-1", "loss_ratio", "20 %", "10 %", "−10 % ± 1 %", "B"]]
    assert "percentage points" in table.note
    checked(page_html(made))
    candidate = {
        "settings": {"p": 5}, "met": True, "chosen": True, "replications": 5, "memory_bytes": 1 << 20,
        "evidence": [
            {"target": "discards(D-1)=0", "basis": "share", "runs": 59, "violating_runs": 0, "mean": 0.0,
             "half_width": 0.0, "bound": None, "met": True},
        ],
    }  # fmt: skip
    sizing = tmp_path / "s.json"
    document = {
        "sentence": "p = 5: the smallest that was shown.",
        "scenario": "x", "confidence": 0.95, "targets": ["discards(D-1)=0"], "answer": candidate, "monotone": True,
        "candidates": [candidate], "reproduce": "qsctl size x --target 'discards(D-1)=0' --vary p=1..9",
    }  # fmt: skip
    sizing.write_text(json.dumps(document))
    made = document_page(sizing)
    assert made.verdict == ["p = 5: the smallest that was shown."]
    assert made.tables[0].rows[0][1] == "0 of 59 runs violate"
    assert made.reproduce == "qsctl size x --target 'discards(D-1)=0' --vary p=1..9 -o json > s.json"
    checked(page_html(document_page(sizing)))


def test_a_comparison_of_sweeps_names_points_and_each_side_has_a_sentence(tmp_path: Path) -> None:
    difference = {
        "point": "max-depth=5", "queue": "D-1", "measure": "throughput", "unit": "messages/s", "mean_a": 2.0,
        "mean_b": 1.0, "difference": -1.0, "half_width": 0.01, "paired": True, "better": "A",
    }  # fmt: skip
    sentence = "Different: rate 1.5 → 2. A is better on throughput of D-1 (-50 %); B is better on losses of D-1."
    comparison = tmp_path / "c.json"
    comparison.write_text(
        json.dumps({"sentence": sentence, "a": "x", "b": "y", "confidence": 0.95, "differences": [difference]})
    )
    made = document_page(comparison)
    assert made.verdict == [
        "Different: rate 1.5 → 2.", "A is better on throughput of D-1 (-50 %).", "B is better on losses of D-1.",
    ]  # fmt: skip
    assert made.tables[0].rows == [["max-depth=5", "D-1", "throughput", "2", "1", "−1 ± 0.01", "A"]]


@pytest.mark.parametrize("basis", ["mean", "share"])
@pytest.mark.parametrize("paths", [("p",), ("p", "q"), ("p", "q", "r")])
def test_a_sizing_has_a_curve_over_one_setting_and_a_map_over_two(
    tmp_path: Path, paths: tuple[str, ...], basis: str
) -> None:
    candidates = [
        {
            "settings": {path: value * (at + 1) for at, path in enumerate(paths)},
            "met": True, "chosen": value == 1, "replications": 5, "memory_bytes": 1 << 20,
            "evidence": [
                {"target": "time_in_queue_p99(D-1)<1s", "basis": basis, "runs": 4, "violating_runs": value,
                 "mean": None if basis == "share" else value * 1e6, "half_width": 1e5, "bound": None, "met": True},
            ],
        }
        for value in (2, 1)
    ]  # fmt: skip
    sizing = tmp_path / "s.json"
    document = {
        "sentence": "One.", "scenario": "x", "confidence": 0.95, "targets": ["time_in_queue_p99(D-1)<1s"],
        "answer": candidates[1], "monotone": True, "candidates": candidates, "reproduce": "qsctl size x",
    }  # fmt: skip
    sizing.write_text(json.dumps(document))
    pictures = document_page(sizing).pictures
    assert len(pictures) == (len(paths) < 3)
    for each in pictures:
        drawn = json.dumps(each.chart().to_dict())
        assert ('"mark": {"type": "rect"}' in drawn) is (len(paths) == 2)
        assert ("0.25" in drawn) is (basis == "share"), "one of four runs"


@pytest.mark.parametrize("text", ["{}", "[]", "not JSON", '{"differences": [{}]}', '{"candidates": 5}'])
def test_what_is_no_comparison_and_no_sizing_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "f.json"
    file.write_text(text)
    with pytest.raises(InvalidInput):
        document_page(file)
    with pytest.raises(NotFound):
        document_page(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("horizon", "window"),
    [(10 * SECOND_NS, 50 * MILLISECOND_NS), (SECOND_NS, 5 * MILLISECOND_NS), (MILLISECOND_NS, MILLISECOND_NS)],
)
def test_windows_are_round_and_few(horizon: int, window: int) -> None:
    assert nice_window(horizon) == window


def test_figures_are_short_and_whole_numbers_stay_whole() -> None:
    assert (duration_text(1_500_000), duration_text(None), duration_text(float("inf"))) == ("1.5 ms", "–", "∞")
    assert (count_text(1234567), count_text(0.25), count_text(None)) == ("1,234,567", "0.25", "–")
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a", "b", "c"], most=2) == "a, b and 1 more"


@pytest.mark.slow
def test_a_run_s_report_shows_losses_and_opens_in_a_browser(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    report = run(overloaded(), folder, level=LogLevel.EVENTS)
    made = run_page(folder)
    assert made.verdict[0].startswith("D-1 lost ")
    assert not made.good
    titles = [each.title for each in made.pictures]
    assert titles == ["Depth over time", "Latency by priority", "Throughput", "Congestion discards"]
    assert made.facts["Fingerprint"] == report.info.fingerprint
    discarded = {row[0]: row[3] for row in made.tables[0].rows}
    assert discarded == {"D-1": count_text(report.info.discarded_messages), "D-3": "0"}
    assert [row[1] for row in made.tables[1].rows] == ["D-1", "D-1", "D-3", "D-3"]
    assert [(made.tables[-1].title, len(made.tables[-1].rows))] == [("What happened at the clients", 2)]
    assert all(0 < share["share"] < 1 for share in latency_shares(folder, report.info))
    file = tmp_path / "report.html"
    write_report(contents(made, file, ReportFormat.HTML, ""))
    checked(file.read_text())
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: the page was not opened")
    for width in (1200, 500):
        shot = tmp_path / f"{width}.png"
        subprocess.run(
            [
                CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / f'profile-{width}'}", f"--window-size={width},900",
                f"--screenshot={shot}", file.as_uri(),
            ],
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        assert shot.stat().st_size > 10_000
