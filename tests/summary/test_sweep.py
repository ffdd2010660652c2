"""Sweeps on Spark give what the same tasks give in this process, go on where they stopped, and size what follows."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from qsctl.errors import Damaged, InvalidInput, UsageError
from qsctl.instant import SECOND_NS
from qsctl.report.sweep_report import sweep_page
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    ClientInterval,
    ConstantArrivals,
    ConstantSize,
    Endpoint,
    Port,
    Profile,
    Queue,
    Scenario,
    Traffic,
)
from qsctl.sim.sizing.targets import TargetKind, parse_setting, parse_target
from qsctl.sim.sweep import Point, Task, parse_axes, plan_sweep, point_seed
from qsctl.summary.comparison.compare import MeasureVerdict, compare, read_figures
from qsctl.summary.comparison.compare_sentence import sentence
from qsctl.summary.inference.statistics import interval_of
from qsctl.summary.spark.session import SparkOptions
from qsctl.summary.sweeps._spark_runner import SparkRunner
from qsctl.summary.sweeps.points import EVERY_MEASURE, MEASURES, point_measures
from qsctl.summary.sweeps.size import size
from qsctl.summary.sweeps.sweep import SweepProgress, run_sweep
from qsctl.summary.sweeps.sweep_folder import finished, open_sweep, read_results
from tests.summary.overloaded import DEPTH, overloaded, results_here
from tests.summary.runners import Here
from tests.summary.written_sweep import write_results

TCP_QUEUE_BYTES = 262_144


def test_axes_are_paths_with_values_also_where_a_name_holds_an_equals_sign() -> None:
    axes = parse_axes(["profile[a=b]/queue[D-1]/max-depth=1,2", "horizon=1s"])
    assert [(axis.path, axis.values) for axis in axes] == [
        ("profile[a=b]/queue[D-1]/max-depth", ("1", "2")),
        ("horizon", ("1s",)),
    ]


@pytest.mark.parametrize("text", ["horizon", "horizon=", "=1", "horizon=1s,,2s", "horizon=1s,1s"])
def test_an_axis_that_is_none_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="--grid"):
        parse_axes([text])


def test_a_plan_refuses_a_path_that_leads_nowhere_and_a_value_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="no profile"):
        plan_sweep(overloaded(), parse_axes(["profile[none]/queue[D-1]/max-depth=1,2"]), 1)
    with pytest.raises(InvalidInput):
        plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100,many"]), 1)
    with pytest.raises(UsageError, match="0 replications"):
        plan_sweep(overloaded(), (), 0)


def test_a_point_s_seed_depends_on_its_values_alone() -> None:
    small = plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100,200"]), 2)
    large = plan_sweep(overloaded(), parse_axes([f"{DEPTH}=50,100,200", "horizon=1s"]), 3)
    seeds = {task.point.key: task.seed for task in small.tasks()}
    assert len(set(seeds.values())) == 2
    other = Point((("horizon", "1s"), (DEPTH, "100")))
    assert point_seed(11, other) == point_seed(11, Point(tuple(reversed(other.values))))
    assert point_seed(11, other) != point_seed(12, other)
    common = plan_sweep(overloaded(), large.axes, 2, common_random_numbers=True)
    assert {task.seed for task in common.tasks()} == {11}


def test_a_folder_takes_up_the_same_sweep_and_refuses_another(tmp_path: Path) -> None:
    plan = plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100,200"]), 2)
    open_sweep(tmp_path / "sweep", plan)
    results = results_here(plan)
    write_results(tmp_path / "sweep", results[:3])
    write_results(tmp_path / "sweep", results[3:])
    read = read_results(tmp_path / "sweep")
    assert sorted(read, key=str) == sorted(results, key=str)
    open_sweep(tmp_path / "sweep", plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100,200,300"]), 5))
    with pytest.raises(InvalidInput, match="another seed"):
        open_sweep(tmp_path / "sweep", plan_sweep(overloaded(seed=12), plan.axes, 2))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(InvalidInput, match="holds no sweep"):
        open_sweep(tmp_path / "full", plan)


@pytest.fixture
def swept(tmp_path: Path) -> Path:
    """A sweep of two points in two parts."""
    plan = plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100,200"]), 2)
    open_sweep(tmp_path / "sweep", plan)
    results = results_here(plan)
    write_results(tmp_path / "sweep", results[:2])
    write_results(tmp_path / "sweep", results[2:])
    return tmp_path / "sweep"


def refused(folder: Path, *words: str) -> None:
    """Every reader of a sweep's folder gives the same error."""
    for reader in (read_results, read_figures, sweep_page):
        with pytest.raises(Damaged) as error:
            reader(folder)
        assert error.value.remedy
        for word in words:
            assert word in error.value.message


def test_any_flipped_bit_of_a_sweep_s_part_is_damage(swept: Path) -> None:
    part = next((swept / "points").glob("part-*"))
    whole = part.read_bytes()
    for place in range(0, len(whole), 251):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        part.write_bytes(changed)
        with pytest.raises(Damaged, match=rf"{part.name} was changed after it was written"):
            read_results(swept)
    refused(swept, part.name, "was changed")


def test_a_missing_part_of_a_sweep_is_named(swept: Path) -> None:
    part = next((swept / "points").glob("part-*"))
    part.unlink()
    refused(swept, part.name, "is missing")


def test_a_doubled_or_foreign_part_of_a_sweep_is_refused(swept: Path, tmp_path: Path) -> None:
    part = next((swept / "points").glob("part-*"))
    copy = swept / "points" / "part-copy.parquet"
    copy.write_bytes(part.read_bytes())
    refused(swept, "part-copy.parquet", "does not belong to this sweep")
    copy.unlink()
    other = plan_sweep(overloaded(seed=12), parse_axes([f"{DEPTH}=100,200"]), 1)
    open_sweep(tmp_path / "other", other)
    write_results(tmp_path / "other", results_here(other))
    foreign = next((tmp_path / "other" / "points").glob("part-*"))
    (swept / "points" / foreign.name).write_bytes(foreign.read_bytes())
    refused(swept, foreign.name, "belongs to another sweep")


def test_a_changed_sweep_json_is_damage(swept: Path) -> None:
    file = swept / "sweep.json"
    text = file.read_text()
    file.write_text(text.replace('"replications": 2', '"replications": 3'))
    refused(swept, "sweep.json was changed after it was written", "its seal is")
    file.write_text(text.replace('"format": 5', '"format": 1'))
    refused(swept, "has format 1; this qsctl reads 5")
    file.write_text(text)
    (swept / "scenario.xml").write_text("<other/>")
    with pytest.raises(Damaged, match=r"scenario\.xml was changed"):
        sweep_page(swept)


def test_a_part_that_was_not_yet_listed_when_its_driver_was_killed_counts(swept: Path) -> None:
    whole = read_results(swept)
    plan = plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100,200"]), 2)
    listing = (swept / "sweep.json").read_text()
    more = plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100,200,300"]), 2)
    added = [each for each in results_here(more) if each not in whole]
    write_results(swept, added)
    (swept / "sweep.json").write_text(listing)
    assert {(each.point.key, each.replication) for each in added} <= finished(read_results(swept))
    open_sweep(swept, plan)
    assert len(read_results(swept)) == len(whole) + len(added)


@pytest.mark.parametrize("place", ["points", "sweep.json"])
def test_a_full_disk_ends_a_sweep_with_what_was_done_and_it_goes_on(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100,200"]), 2)
    results = results_here(plan)
    open_sweep(tmp_path / "sweep", plan)
    write_results(tmp_path / "sweep", results[:1])
    write = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if place in str(path):
            write(path, content[:10])
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write(path, content)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(InvalidInput, match="cannot be written: No space left on device") as caught:
            write_results(tmp_path / "sweep", results[1:3])
    assert str(tmp_path / "sweep") in caught.value.message
    assert "Free some space" in caught.value.remedy
    assert "--out" in caught.value.remedy
    assert not list((tmp_path / "sweep").rglob(".*.tmp")), "half a file is left"
    assert read_results(tmp_path / "sweep") == sorted(
        results[: 1 if place == "points" else 3], key=lambda each: (each.point.key, each.replication)
    )
    open_sweep(tmp_path / "sweep", plan)
    write_results(tmp_path / "sweep", results[1:])
    assert len(read_results(tmp_path / "sweep")) == len(results)


def test_a_sweep_without_a_message_is_not_one_that_loses_none(tmp_path: Path) -> None:
    silent = overloaded(traffic=(Traffic("t", to="c", arrivals=ConstantArrivals(1), start_ns=SECOND_NS // 2),))
    plan = plan_sweep(silent, parse_axes(["horizon=100ms,1s"]), 2)
    open_sweep(tmp_path / "sweep", plan)
    write_results(tmp_path / "sweep", results_here(plan))
    assert {each.point.key for each in read_results(tmp_path / "sweep")} == {point.key for point in plan.points()}
    verdict = " ".join(sweep_page(tmp_path / "sweep").verdict)
    assert "No message was observed after the warm-up at 1 of 2 points." in verdict
    assert "1 of 2 points lost nothing" in verdict
    none = plan_sweep(silent, parse_axes(["horizon=100ms,200ms"]), 2)
    open_sweep(tmp_path / "none", none)
    write_results(tmp_path / "none", results_here(none))
    assert sweep_page(tmp_path / "none").verdict == ["No message was observed after the warm-up at any point."]


@pytest.mark.spark
def test_a_sweep_on_spark_gives_what_the_tasks_give_here_and_goes_on_where_it_stopped(
    tmp_path: Path, options: SparkOptions
) -> None:
    plan = plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100,400", "group[c]/count=1,2"]), 2)
    expected = results_here(plan)
    open_sweep(tmp_path / "sweep", plan)
    write_results(tmp_path / "sweep", expected[:3])
    told: list[SweepProgress] = []
    assert run_sweep(plan, tmp_path / "sweep", options, told.append) == expected
    assert (told[0].done, told[0].reused, told[-1].done) == (3, 3, 8)
    assert finished(read_results(tmp_path / "sweep")) == {(each.point.key, each.replication) for each in expected}
    told.clear()
    assert run_sweep(plan, tmp_path / "sweep", options, told.append) == expected
    assert [progress.reused for progress in told] == [8]


@pytest.mark.spark
def test_a_task_that_cannot_be_simulated_is_one_message_with_its_point(options: SparkOptions) -> None:
    point = Point((("traffic[t]/to", "nobody"),))
    with pytest.raises(InvalidInput, match="to=nobody"):
        SparkRunner(overloaded(), options).run([Task(point, 0, 1)])


def test_two_sweeps_with_common_random_numbers_are_paired(tmp_path: Path) -> None:
    folders = []
    for name, scenario in (("a", overloaded()), ("b", overloaded(ports=(Port("p", 12_000_000),)))):
        plan = plan_sweep(scenario, parse_axes([f"{DEPTH}=100,400"]), 3)
        open_sweep(tmp_path / name, plan)
        write_results(tmp_path / name, results_here(plan))
        folders.append(tmp_path / name)
    comparison = compare(*folders, 0.95)
    losses = [each for each in comparison.differences if each.measure == "loss_ratio"]
    assert len(losses) == 2
    assert all(each.paired and each.verdict is MeasureVerdict.B for each in losses)
    assert "B is better on losses of D-1" in sentence(comparison)
    assert sentence(compare(folders[0], folders[0], 0.95)) == "A and B give the same."
    with pytest.raises(InvalidInput, match="not of one kind"):
        compare(folders[0], tmp_path, 0.95)


def test_an_interval_holds_the_mean_and_one_observation_has_no_width() -> None:
    assert interval_of([1.0, 3.0], 0.95).mean == 2.0
    assert interval_of([1.0, 3.0], 0.95).half_width == pytest.approx(12.7062047362)
    assert interval_of([5.0], 0.95).half_width == float("inf")


def test_measures_of_a_point_are_means_over_its_replications() -> None:
    results = results_here(plan_sweep(overloaded(), parse_axes([f"{DEPTH}=100"]), 3))
    discards = next(each for each in point_measures(results, 0.95) if each.measure == "discards")
    values = [result.figures[0].discarded_messages for result in results]
    assert discards.interval.mean == pytest.approx(sum(values) / 3)
    assert (discards.smallest, discards.largest) == (min(values), max(values))


@pytest.mark.parametrize(
    "text",
    ["discards", "discards(D-1)", "speed(D-1)<1", "discards(D-1)=5", "loss_ratio(D-1)<x", "time_in_queue_p99(D-1)<5"],
)
def test_a_target_that_is_none_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse_target(text, tuple(MEASURES))


def test_targets_and_settings_are_read_as_written() -> None:
    target = parse_target("time_in_queue_p99(G-1) < 50ms", tuple(MEASURES))
    assert (target.measure, target.queue, target.operator, target.bound) == ("time_in_queue_p99", "G-1", "<", 50e6)
    assert parse_target("loss_ratio(D-1)<=0.1%", tuple(MEASURES)).bound == pytest.approx(0.001)
    setting = parse_setting("max-depth(D-1)")
    assert (setting.path, setting.low, setting.high) == ("profile[*]/queue[D-1]/max-depth", 2, 262_144)
    assert parse_setting("group[c]/count=1,5,3").choices == (1, 3, 5)
    share = parse_target("P(discards(D-1) > 0) < 5%", tuple(MEASURES))
    assert (share.kind, share.share, share.wanted, share.at_most) == (TargetKind.SHARE, 0.05, False, True)
    assert (share.met_by(0.0), share.met_by(1.0)) == (True, False)
    wanted = parse_target("P(time_in_queue_p99(G-1)<50ms)>=90%", tuple(MEASURES))
    assert (wanted.kind, wanted.wanted, wanted.at_most) == (TargetKind.SHARE, True, True)
    assert wanted.share == pytest.approx(0.1)
    assert (wanted.met_by(49e6), wanted.met_by(50e6)) == (True, False)
    for text in ("P(discards(D-1)>0)=0", "P(discards(D-1)>0)<0", "P(discards)<5%", "P(discards(D-1)>0)<x"):
        with pytest.raises(UsageError):
            parse_target(text, tuple(MEASURES))
    for text in ("max-depth(Z-9)", "max-depth(D-1)=1..5", "group[c]/count", "max-depth(D-1)=a..b"):
        with pytest.raises(UsageError):
            parse_setting(text)


def paused_client() -> Scenario:
    """200 messages a second to a client that reads nothing for two seconds."""
    return Scenario(
        name="paused", horizon_ns=6 * SECOND_NS, ports=(Port("p"),), profiles=(Profile("default"),),
        groups=(ClientGroup("c", port="p", profile="default", receive_buffer_bytes=1,
                            pauses=(ClientInterval(SECOND_NS, 2 * SECOND_NS),)),),
        traffic=(Traffic("t", to="c", arrivals=ConstantArrivals(200), size=ConstantSize(2048)),),
    )  # fmt: skip


def burst() -> Scenario:
    """2,000 messages a second of 1,000 bytes for two seconds, to a port that carries 1,000 a second."""
    return Scenario(
        name="burst", horizon_ns=6 * SECOND_NS, ports=(Port("p", 8_000_000),), profiles=(Profile("default"),),
        groups=(ClientGroup("c", port="p", profile="default", round_trip_ns=1000),),
        traffic=(
            Traffic("t", to="c", arrivals=ConstantArrivals(2000), size=ConstantSize(1000), stop_ns=2 * SECOND_NS),
        ),
    )  # fmt: skip


def flows() -> Scenario:
    """Worked example W1: ten flows with a window of 255 messages of 20,480 bytes, all outstanding at once."""
    return Scenario(
        name="flows", horizon_ns=4 * SECOND_NS, ports=(Port("p"),), profiles=(Profile("default"),),
        groups=(ClientGroup("c", port="p", profile="default", pauses=(ClientInterval(0, 3 * SECOND_NS),)),),
        endpoints=(Endpoint("c", flows=10, window_messages=255),),
        traffic=(
            Traffic("t", to="c", queue=Queue.G_1, arrivals=ConstantArrivals(2000), size=ConstantSize(20480)),
        ),
    )  # fmt: skip


KNOWN: Sequence[tuple[Scenario, str, str, int]] = [
    # What arrives in the pause, less what the TCP transmit queue takes: a message may enter while that is below its
    # maximum.
    (paused_client(), "discards(D-1)=0", "max-depth(D-1)=100..500", 2 * 200 - TCP_QUEUE_BYTES // 2048),
    # Arrivals less departures during the burst, less the transmit queue, which overshoots by one message.
    (burst(), "discards(D-1)=0", "max-depth(D-1)=1000..2500", (2000 - 1000) * 2 - (TCP_QUEUE_BYTES // 1000 + 1) + 1),
    # Ten flows with a window of 255 messages of ten work units: G-1 holds them until they are acknowledged.
    (flows(), "high_water_mark_work_units(G-1)>=25500", "max-depth(G-1)=20000..30000", 25_500),
]


@pytest.mark.slow
@pytest.mark.spark
def test_sizing_on_spark_finds_what_it_finds_here(options: SparkOptions) -> None:
    scenario, target, setting, _ = KNOWN[0]
    found = [
        size(
            scenario,
            [parse_target(target, tuple(EVERY_MEASURE))],
            [parse_setting(setting)],
            confidence=0.95,
            most_replications=2,
            **where,
        )
        for where in ({"options": options}, {"runner": Here(scenario)})
    ]
    assert found[0] == found[1]
    assert found[0].answer is not None


@pytest.mark.parametrize(("scenario", "target", "setting", "known"), KNOWN, ids=["pause", "burst", "flows"])
def test_sizing_finds_what_follows_from_the_scenario(scenario: Scenario, target: str, setting: str, known: int) -> None:
    sizing = size(
        scenario,
        [parse_target(target, tuple(EVERY_MEASURE))],
        [parse_setting(setting)],
        confidence=0.95,
        most_replications=2,
        runner=Here(scenario),
    )
    assert sizing.answer is not None
    assert sizing.answer.values == (known,)
    assert sizing.monotone
    assert sizing.deterministic
    assert {candidate.replications for candidate in sizing.candidates} == {1}
    tried = {candidate.values[0]: candidate.met for candidate in sizing.candidates}
    assert tried[known]
    assert not tried[known - 1]


def test_a_candidate_needs_one_replication_where_its_own_settings_leave_nothing_to_chance() -> None:
    targets = [parse_target("discards(D-1)=0", tuple(MEASURES))]
    topics = parse_setting("traffic[t]/topics=1,5")
    sizing = size(paused_client(), targets, [topics], confidence=0.95, runner=Here(paused_client()))
    # The other draws topics, so that its losing nothing takes as many runs as show that, with half of the error: what
    # more topics do is unknown.
    assert {each.values: each.replications for each in sizing.candidates} == {(1,): 1, (5,): 72}
    assert not sizing.deterministic


def test_sizing_reports_when_nothing_in_the_range_suffices_and_when_a_queue_is_empty() -> None:
    targets = [parse_target("discards(D-1)=0", tuple(MEASURES))]
    arguments: dict[str, Any] = {"confidence": 0.95, "most_replications": 2, "runner": Here(paused_client())}
    small = size(paused_client(), targets, [parse_setting("max-depth(D-1)=10..20")], **arguments)
    assert small.answer is None
    with pytest.raises(UsageError, match="no message reaches a queue D-3"):
        size(
            paused_client(),
            [parse_target("discards(D-3)=0", tuple(MEASURES))],
            [parse_setting("max-depth(D-1)")],
            **arguments,
        )


def test_sizing_among_listed_values_takes_the_one_with_the_least_memory() -> None:
    sizing = size(
        paused_client(),
        [
            parse_target("discards(D-1)=0", tuple(MEASURES)),
            parse_target("time_in_queue_max(D-1)<10s", tuple(MEASURES)),
        ],
        [parse_setting("max-depth(D-1)=100,300,900"), parse_setting("max-depth(G-1)=10,20")],
        confidence=0.95,
        most_replications=2,
        runner=Here(paused_client()),
    )
    assert sizing.answer is not None
    assert sizing.answer.values == (300, 10)
    assert len(sizing.candidates) == 6
    assert json.dumps([candidate.memory_bytes for candidate in sizing.candidates])
