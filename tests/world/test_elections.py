"""W10: a queue with replicas refuses its first writes until a master is elected [QS 7.1.2]; what users see of it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from qsctl.cli.options import ScenarioChanges
from qsctl.cli.simulation.results.sweep import SweepTable
from qsctl.cli.simulation.sweep import broken_runs
from qsctl.core.high_availability.roles import Role, RoleChanged
from qsctl.errors import ExitStatus
from qsctl.eventlog.explained import merged_replicated_queues
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.run_folder import ReplicatedQueue, ReplicationInfo, RuleVerdict
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.report._cluster_tables import cluster_tables
from qsctl.sim.replication import simulate_figures
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.sim.simulate import simulate
from qsctl.sim.sweep import parse_axes, plan_sweep, run_task
from qsctl.sim.world.results.elections import Elections
from qsctl.sim.world.results.verdict import JudgedWorld
from qsctl.summary.sweeps.points import point_measures
from qsctl.summary.sweeps.sweep_folder import PointResult
from tests.commands import command_line
from tests.core.high_availability import mutants

INTERVAL_NS = 10 * MILLISECOND_NS
"""Between two writes of the scenario `election`."""
DELAY_NS = MILLISECOND_NS // 5


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def outcomes_of(settings: dict[str, str], seed: int = 1) -> tuple[list[tuple[int, str]], ReplicatedQueue]:
    """Simulate; return each sample's first writing and outcome, in this order, and the queue's figures."""
    report = simulate("election", settings=settings, seed=seed, level="messages")
    parts = open_run(report.folder).messages(["enqueued_ns", "outcome"])
    rows = [row for part in parts for row in part.to_pylist()]
    (queue,) = report.info.done[0].replicated_queues
    return sorted((row["enqueued_ns"], str(row["outcome"])) for row in rows), queue


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("instances", "timeout_ms"), [(2, 400), (2, 1000), (3, 200), (5, 700)])
def test_w10_the_first_writes_are_refused_until_the_master_is_elected(
    instances: int, timeout_ms: int, seed: int
) -> None:
    settings = {"world/instances": str(instances), "world/master-timeout": f"{timeout_ms}ms", "horizon": "3500ms"}
    samples, queue = outcomes_of(settings, seed)
    elected_ns = queue.first_master_ns
    assert elected_ns is not None
    assert timeout_ms * MILLISECOND_NS < elected_ns < 2.1 * timeout_ms * MILLISECOND_NS
    assert queue.replicas == instances
    before = [outcome for written_ns, outcome in samples if written_ns + DELAY_NS < elected_ns]
    after = [outcome for written_ns, outcome in samples if written_ns + DELAY_NS >= elected_ns]
    waited_count = before.count("delivered")
    assert waited_count * INTERVAL_NS < timeout_ms * MILLISECOND_NS / 3, "those of before the group formed may wait"
    assert before.count("discarded") == len(before) - waited_count == queue.refused_before
    assert set(after) == {"delivered"}
    assert (queue.refused_later, queue.elected, queue.longest_without_master_ns) == (0, 1, 0)
    assert queue.first_accepted_ns is not None
    assert 0 < queue.first_accepted_ns - elected_ns < 2 * INTERVAL_NS


@pytest.mark.slow
def test_what_was_refused_is_accepted_when_it_is_written_again() -> None:
    samples, queue = outcomes_of({"world/persistence": "1"})
    assert {outcome for _, outcome in samples} == {"delivered"}
    once = outcomes_of({})[1]
    assert queue.first_master_ns == once.first_master_ns
    assert queue.refused_before > once.refused_before, "those of the first 50 ms are refused twice"


def test_one_of_two_members_elects_no_master_and_refuses_everything() -> None:
    Path("one.txt").write_text("at 200ms crash 2\n", encoding="utf-8")
    samples, queue = outcomes_of({"world/schedule": "one.txt"})
    assert {outcome for written_ns, outcome in samples if written_ns > 100 * MILLISECOND_NS} == {"discarded"}
    assert queue.first_master_ns is not None
    assert queue.first_master_ns > 4 * SECOND_NS, "the other one comes back when the faults end"
    assert queue.refused_before > len(samples) - 12
    assert queue.first_accepted_ns is None


def test_one_of_two_that_are_no_group_yet_answers_nothing() -> None:
    """A replica without a log does not know whether there is a master that has the sample."""
    Path("one.txt").write_text("at 1ms crash 2\n", encoding="utf-8")
    samples, queue = outcomes_of({"world/schedule": "one.txt"})
    assert "discarded" not in {outcome for _, outcome in samples}
    assert queue.refused_before == 0


def test_a_lost_master_is_missed_until_the_next_one_and_writes_are_refused_again() -> None:
    Path("crash.txt").write_text("await master 3\nafter 500ms crash 3\n", encoding="utf-8")
    settings = {"world/instances": "3", "world/schedule": "crash.txt", "world/write-again": "100ms"}
    _, queue = outcomes_of(settings)
    assert queue.elected == 2
    assert 400 * MILLISECOND_NS < queue.longest_without_master_ns < SECOND_NS
    assert queue.refused_later > 0


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("tenths", [1, 4, 7])
def test_the_first_candidate_is_master_two_round_trips_after_its_wait(tenths: int, seed: int) -> None:
    timeout_ns, round_trip_ns = 200 * MILLISECOND_NS, tenths * 20 * MILLISECOND_NS
    settings = {
        "world/instances": "3", "world/master-timeout": f"{timeout_ns}ns", "workload/delay": f"{round_trip_ns // 2}ns",
        "horizon": "1500ms",
    }  # fmt: skip
    _, queue = outcomes_of(settings, seed)
    assert (queue.elected, queue.longest_without_master_ns) == (1, 0)
    assert queue.first_master_ns is not None
    assert queue.first_master_ns < 2 * timeout_ns + 3 * round_trip_ns, "the group forms by a question before"


@pytest.mark.parametrize("seed", [1, 2])
def test_members_that_are_paused_for_most_of_the_time_are_without_a_master_for_less_than_four_timeouts(
    seed: int,
) -> None:
    timeout_ms, run_ms, pause_ms = 200, 50, 150
    pauses = []
    for number in (1, 2, 3):
        for at_ms in range(10 + number * (run_ms + pause_ms) // 3, 2000, run_ms + pause_ms):
            pauses += [(at_ms, f"pause {number}"), (at_ms + pause_ms, f"resume {number}")]
    lines = [f"at {at_ms}ms {what}\n" for at_ms, what in sorted(pauses)]
    Path("pauses.txt").write_text("".join(lines), encoding="utf-8")
    settings = {"world/instances": "3", "world/master-timeout": f"{timeout_ms}ms", "world/schedule": "pauses.txt",
                "horizon": "3s"}  # fmt: skip
    _, queue = outcomes_of(settings, seed)
    assert queue.longest_without_master_ns < 4 * timeout_ms * MILLISECOND_NS


def test_a_master_whose_disk_hangs_is_missed_as_one_that_is_killed_and_takes_part_again() -> None:
    lines = ["await master 3", "after 500ms hang-disk 3", "after 1500ms repair-disk 3", "after 400ms crash 2"]
    Path("hang.txt").write_text("\n".join(lines), encoding="utf-8")
    settings = {
        "world/instances": "3", "world/schedule": "hang.txt", "world/write-again": "100ms",
        "world/master-timeout": "200ms", "horizon": "5s",
    }  # fmt: skip
    report = simulate("election", settings=settings, seed=1, level="messages")
    (queue,) = report.info.done[0].replicated_queues
    assert queue.elected in (2, 3), "the third one where the successor is the one that crashes"
    assert 200 * MILLISECOND_NS < queue.longest_without_master_ns < 800 * MILLISECOND_NS
    assert not [each for each in report.info.done[0].verdicts if each.violations]


class Lines:
    """A service's log of which the events are kept."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def info(self, event: str, **fields: object) -> None:
        self.events.append(event)

    warning = error = info


def test_one_line_of_the_log_is_about_a_hanging_disk_and_one_about_its_answer() -> None:
    Path("hang.txt").write_text("await master 3\nhang-disk 3\nafter 2s repair-disk 3\n", encoding="utf-8")
    settings = {"world/instances": "3", "world/schedule": "hang.txt", "world/master-timeout": "200ms"}
    judged = JudgedWorld(apply_overrides(read_scenario(find_scenario("election")), settings))
    judged.begin()
    process, lines = judged.world.services[3].process, Lines()
    assert process is not None
    assert process.replication is not None
    process.replication._log = lines
    while judged.next_instant < judged.world.scenario.horizon_ns:
        judged.step()
    assert [each for each in lines.events if "disk" in each] == ["replica_disk_hangs", "replica_disk_answers"]


@pytest.mark.slow
def test_repetitions_are_shown_together() -> None:
    arguments = ["simulate", "election", "--out", "run", "--replications", "2", "-o", "json"]
    result = CliRunner().invoke(command_line(), arguments)
    assert result.exit_code == ExitStatus.DONE, result.output
    run = json.loads(result.stdout)
    (queue,) = run["replicated_queues"]
    each = [info.replicated_queues[0] for info in open_run(Path("run")).info.done]
    assert queue["refused_before"] == sum(one.refused_before for one in each) == run["queues"][0]["discarded_messages"]
    assert queue["first_master_ns"] == max(one.first_master_ns or 0 for one in each)


@pytest.mark.slow
def test_a_sweep_measures_how_long_a_cluster_is_without_a_master() -> None:
    schedule = find_scenario("world").parents[1] / "schedules" / "master-killed.txt"
    base = apply_overrides(read_scenario(find_scenario("world")), {"world/schedule": str(schedule)})
    plan = plan_sweep(base, parse_axes(["world/master-timeout=200ms,800ms"]), 2)
    times: dict[str, list[int]] = {}
    for task in plan.tasks():
        figures = run_task(plan.scenario, task)
        (queue,) = figures
        assert (queue.queue, queue.elections, queue.broken_rules) == ("OrderQueue", 2, 0)
        assert queue.time_without_master_ns is not None
        times.setdefault(dict(task.point.values)["world/master-timeout"], []).append(queue.time_without_master_ns)
    assert min(times["200ms"]) > 200 * MILLISECOND_NS
    assert max(times["200ms"]) < 800 * MILLISECOND_NS < min(times["800ms"])
    measured = point_measures([PointResult(task.point, task.replication, task.seed, tuple(figures))], 0.95)
    assert {"time_to_master", "time_without_master", "elections"} < {each.measure for each in measured}


def test_figures_of_other_models_have_no_masters() -> None:
    short = apply_overrides(read_scenario(find_scenario("trace-solace")), {"horizon": "100ms"})
    (queue, *_) = simulate_figures(short)
    assert queue.broken_rules is queue.time_to_master_ns is None


def test_a_broken_rule_is_counted_by_a_sweep_and_makes_its_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    mutants.acknowledges_on_append(monkeypatch)
    base = read_scenario(find_scenario("world"))
    plan = plan_sweep(base, parse_axes(["world/loss=0.01"]), 2)
    results = [
        PointResult(task.point, task.replication, task.seed, tuple(run_task(plan.scenario, task)))
        for task in plan.tasks()
    ]
    broken = [each for each in results if each.figures[0].broken_rules]
    assert broken
    found = tuple(broken_runs("world", ScenarioChanges(), results))
    assert len(found) == len(broken)
    again = CliRunner().invoke(command_line(), [*shlex.split(found[0].command)[1:], "-o", "json"])
    assert again.exit_code == ExitStatus.NO, again.output
    table = SweepTable(Path("s"), "world", 2, 1, 0, 0.95, tuple(point_measures(results, 0.95)), found)
    assert table.exit_status is ExitStatus.NO
    assert found[0].command in "".join(str(block) for block in table.blocks())


def figures(number: int, **changes: Any) -> ReplicationInfo:
    queue = ReplicatedQueue(queue="Q", replicas=2, **changes)
    return ReplicationInfo(replication=number, complete=True, simulated_ns=1, messages=1, replicated_queues=(queue,))


def test_repetitions_add_counts_and_keep_the_longest_times() -> None:
    one = figures(0, first_master="a", first_master_ns=5, first_accepted_ns=9, refused_before=1, elected=1)
    other = figures(1, first_master="b", first_master_ns=7, first_accepted_ns=8, refused_before=2, elected=3)
    for both in ((one, other), (other, one)):
        (merged,) = merged_replicated_queues(both)
        assert (merged.first_master, merged.first_master_ns, merged.first_accepted_ns) == ("b", 7, 9)
        assert (merged.refused_before, merged.elected) == (3, 4)
    for never in ((one, figures(2, refused_before=4)), (figures(2, refused_before=4), one)):
        (merged,) = merged_replicated_queues(never)
        assert (merged.first_master, merged.first_master_ns, merged.refused_before) == ("", None, 5)


def test_the_time_without_a_master_lasts_until_the_end_where_none_comes() -> None:
    now = 0
    elections = Elections(lambda: now, lambda *_: None)
    elections.watch("Q", "stream")
    now = 3
    elections.changed(1, RoleChanged(now, "stream", Role.MASTER, 1, "instance-1", "elected"))
    now = 10
    elections.ended(1)
    now = 25
    (queue,) = elections.figures(2, {"Q": "Q"})
    assert (queue.first_master_ns, queue.longest_without_master_ns) == (3, 15)


def test_a_report_has_the_masters_and_the_broken_rules() -> None:
    queue = figures(0, first_master="instance-2", first_master_ns=5 * SECOND_NS, refused_before=12).replicated_queues
    broken = RuleVerdict(rule="P7", meaning="stored first", checked=3, violations=1, first="accepted too early")
    masters, rules = cluster_tables(queue, [broken])
    assert masters.rows[0][2:5] == ["instance-2", "5 s", "12"]
    assert rules.rows == [["P7", "stored first", "3", "broken", "accepted too early"]]
    assert cluster_tables((), ()) == []
