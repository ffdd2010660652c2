"""How a broker's queue is written, what is refused, and that settings change the load of no message."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from qsctl.errors import InvalidInput, UsageError
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import INFINITE_NS, MILLISECOND_NS, SECOND_NS
from qsctl.sim.broker_queue.run import prepare
from qsctl.sim.replication import simulate_figures
from qsctl.sim.scenario.forms.text import scenario_digest, scenario_text
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.parts.work_time import BACK_OFF, TIMEOUTS, WORK, WorkKind, WorkTime
from qsctl.sim.scenario.rules.scenario import check_rules
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import read_scenario
from qsctl.sim.sizing.targets import parse_setting
from qsctl.sim.sweep import Axis, Point, Task, plan_sweep, run_task
from tests.sim.random_queues import RanQueue, random_queue
from tests.sim.scenario_files import problems_of, written

GOOD = """<scenario name="jobs" model="queue" horizon="20s">
  <queue name="jobs" order="fifo">
    <publisher name="p" keys="3"><poisson rate="20/s"/></publisher>
    <class name="short" work="exponential:100ms" weight="3"/>
    <class name="long" work="lognormal:300ms,p99=2s" fails="10%"/>
    <consumer name="w" count="3" prefetch="2"><work class="long" time="uniform:1ms..2ms"/></consumer>
    <visibility timeout="2s"/>
    <limits max-messages="50"/>
    <dead-letters/>
    <outage start="3s" duration="1s" class="long"/>
    <autoscaling consumer="w" messages-per-consumer="10" maximum="5"/>
    <objective done="1s"/>
  </queue>
</scenario>
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("horizon", "horizon", ""),
        ('<class name="short" work="exponential:100ms" weight="3"/>', "", ""),
        ('name="p"', 'name="p" class="shrot"', "there is no class 'shrot'; did you mean 'short'?"),
        ('class="long" time', 'class="lang" time', "there is no class 'lang'"),
        ('autoscaling consumer="w"', 'autoscaling consumer="x"', "there is no consumer 'x'"),
        ('maximum="5"', 'maximum="2"', "consumer 'w' begins with 3"),
        ('maximum="5"', 'maximum="5" minimum="9"', "the minimum is above the maximum"),
        ('order="fifo"', 'order="fifo" partitions="4"', "partitions without order by key"),
        ('order="fifo"', 'order="fifo" rebalance="4s"', "rebalance without anything to assign"),
        ('order="fifo"', 'order="key" access="exclusive" partitions="2"', "partitions of an exclusive queue"),
        ('weight="3"', 'weight="3" priority="2"', "class 'short' has priority 2"),
        ('<limits max-messages="50"/>', '<limits overflow="drop-head"/>', ""),
        ("<dead-letters/>", '<retry to="tail"/>', ""),
        ("<dead-letters/>", '<dead-letters name="jobs"/>', "the dead letters have the queue's name"),
        ("<dead-letters/>", '<retry on-failure="silent"/>', ""),
        ('<visibility timeout="2s"/>', '<retry on-failure="silent"/>', "failures are silent, and nothing times out"),
        ('timeout="2s"', 'timeout="2s" heartbeat="3s"', "the heartbeat comes after the time-out"),
        ('timeout="2s"', 'timeout="0s"', "timeout is '0s'"),
        ('order="fifo"', 'order="fifo" connection-loss="time-out"', ""),
        ('order="fifo"', 'order="fifo" time-to-live="0s"', "the time to live is 0"),
        ('prefetch="2"', 'prefetch="2" receive="poll" wait="0s"', "would poll without end at one instant"),
        ('<poisson rate="20/s"/>', '<closed sources="2" think="0s"/>', "the sources think for no time"),
        ('<poisson rate="20/s"/>', '<schedule><rate at="1s" rate="1/s"/></schedule>', "are not ascending from 0"),
        ('<poisson rate="20/s"/>', '<schedule><rate at="0s" rate="0/s"/></schedule>', "all rates are 0"),
        ("lognormal:300ms,p99=2s", "lognormal:300ms,p99=200ms", "work is 'lognormal:300ms,p99=200ms'"),
        ("lognormal:300ms,p99=2s", "0s", "would fail without end at one instant"),
        ("lognormal:300ms,p99=2s", "empirical:none.csv", "cannot be read"),
        ("lognormal:300ms,p99=2s", "gamma:1s", "work is 'gamma:1s'"),
        ('start="3s"', 'start="30s" every="1s"', "it would begin again before it has ended"),
        ("<dead-letters/>", "", ""),
        ('<limits max-messages="50"/><dead-letters/>', '<limits overflow="reject-dead-letter"/>', ""),
    ],
)  # fmt: skip
def test_rules_across_the_elements_of_a_queue(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = GOOD.replace(old, new)
    if message:
        assert message in "\n".join(found for _, found in problems_of(tmp_path, text))
    else:
        read_scenario(written(tmp_path, text), {}, {})


def test_dead_letters_of_refused_messages_need_their_queue(tmp_path: Path) -> None:
    text = GOOD.replace("<dead-letters/>", "").replace('max-messages="50"', 'overflow="reject-dead-letter"')
    assert "there are no dead letters" in "\n".join(found for _, found in problems_of(tmp_path, text))


@pytest.mark.parametrize("missing", ["publisher", "class", "consumer"])
def test_a_queue_without_publishers_classes_or_consumers_is_one_problem(tmp_path: Path, missing: str) -> None:
    lines = [line for line in GOOD.splitlines() if f"<{missing}" not in line]
    assert f"<queue> has no <{missing}>" in "\n".join(found for _, found in problems_of(tmp_path, "\n".join(lines)))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (WORK, "250ms"), (WORK, "0s"), (WORK, "exponential:2s"), (WORK, "lognormal:45s,p99=280s"),
        (WORK, "gamma:45s,cv=0.5"), (WORK, "uniform:1s..3s"), (WORK, "histogram:1s=20,2s=50,10s=3.5"),
        (WORK, "empirical:work.csv"), (BACK_OFF, "0s"), (BACK_OFF, "1s,5s,30s"),
        (BACK_OFF, "exponential:1s,factor=2,max=300s"), (TIMEOUTS, "30s"), (TIMEOUTS, "1s,5s,infinite"),
    ],
)  # fmt: skip
def test_distributions_and_delays_are_written_as_they_are_read(value: object, text: str) -> None:
    assert value.write(value.parse(text)) == text  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "", "fast", "exponential", "exponential:0s", "lognormal:1s", "lognormal:1s,p99=16s", "lognormal:1s,p90=2s",
        "gamma:1s,cv=0", "gamma:1s,cv=1000", "uniform:3s..1s", "uniform:1s", "histogram:1s=0", "histogram:1s",
        "empirical:", "normal:1s", "infinite", "1001d",
    ],
)  # fmt: skip
def test_what_is_no_distribution_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a duration as in"):
        WORK.parse(text)


def test_measured_durations_are_found_beside_the_scenario_and_count_by_their_content(tmp_path: Path) -> None:
    (tmp_path / "work.csv").write_text("duration_ms,count\n10,3\n200,1\n")
    path = written(tmp_path, GOOD.replace("exponential:100ms", "empirical:work.csv"))
    read = read_scenario(path)
    assert read.queue is not None
    assert read.queue.classes[0].work == WorkTime(WorkKind.EMPIRICAL, (), path=str(tmp_path / "work.csv"))
    digest = scenario_digest(read)
    moved = tmp_path / "elsewhere.csv"
    moved.write_text((tmp_path / "work.csv").read_text())
    assert scenario_digest(apply_overrides(read, {"class[short]/work": f"empirical:{moved}"})) == digest
    moved.write_text("duration_ms\n10\n")
    assert scenario_digest(apply_overrides(read, {"class[short]/work": f"empirical:{moved}"})) != digest


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("time\n1\n", "no column of durations"), ("duration_s\nfast\n", "line 2: duration_s is 'fast'"),
        ("duration_s\n-1\n", "line 2: duration_s is '-1'"), ("duration_s,count\n1,x\n", "line 2: count is 'x'"),
        ("duration_s\n", "has 0 distinct durations"), ("duration_s,count\n1,0\n", "has 1 distinct durations"),
    ],
)  # fmt: skip
def test_a_file_of_durations_is_refused_with_its_line(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "work.csv").write_text(content)
    text = GOOD.replace("exponential:100ms", "empirical:work.csv")
    assert message in "\n".join(found for _, found in problems_of(tmp_path, text))


def test_the_canonical_text_of_random_queues_reads_back(tmp_path: Path) -> None:
    for number in range(60):
        scenario = random_queue(number)
        path = written(tmp_path, scenario_text(scenario))
        assert read_scenario(path) == scenario, number


def test_a_model_without_its_queue_is_refused() -> None:
    with pytest.raises(InvalidInput, match="there is no <queue>"):
        check_rules(Scenario("x", Scenario("y").model.__class__("queue")))
    with pytest.raises(InvalidInput, match="no queue to simulate"):
        prepare(Scenario("x"), 0, LogLevel.COUNTERS)


def test_messages_are_the_same_whatever_the_settings_are(tmp_path: Path) -> None:
    """Common random numbers: arrival, size and class of each message stay."""
    read = read_scenario(written(tmp_path, GOOD))
    plain = RanQueue(read).rows
    for change in ({"consumer/count": "1"}, {"visibility/timeout": "50ms"}, {"limits/max-messages": "3"}):
        changed = RanQueue(apply_overrides(read, change)).rows
        assert {(row[0], row[4], row[5]) for row in plain if row[7] == 0} == {
            (row[0], row[4], row[5]) for row in changed if row[7] == 0
        }


def test_a_sweep_varies_time_outs_and_distributions(tmp_path: Path) -> None:
    read = read_scenario(written(tmp_path, GOOD))
    axes = (Axis("visibility/timeout", ("50ms", "10s")), Axis("class[short]/work", ("exponential:1ms", "50ms")))
    plan = plan_sweep(read, axes, 1)
    duplicates = {
        str(task.point): run_task(read, task)[0].duplicates for task in plan.tasks() if isinstance(task, Task)
    }
    assert duplicates[str(Point((("visibility/timeout", "10s"), ("class[short]/work", "50ms"))))] == 0
    assert duplicates[str(Point((("visibility/timeout", "50ms"), ("class[short]/work", "50ms"))))] != 0


@pytest.mark.parametrize(
    ("text", "low", "high", "choices", "last"),
    [
        ("visibility/timeout=30s..600s", 30, 600, (), "600s"),
        ("visibility/timeout=30s,5s", 5, 30, (5, 30), "30s"),
        ("consumer/count=1..8", 1, 8, (), "8"),
    ],
)
def test_a_search_varies_times_of_one_unit(text: str, low: int, high: int, choices: tuple[int, ...], last: str) -> None:
    setting = parse_setting(text)
    assert (setting.low, setting.high, setting.choices) == (low, high, choices)
    assert setting.value_text(setting.high) == last


@pytest.mark.parametrize("values", ["30s..5min", "30s..60", "fast..slow", "1.5s..3s"])
def test_a_search_over_mixed_units_is_refused(values: str) -> None:
    with pytest.raises(UsageError, match=r"is neither LOW\.\.HIGH nor whole numbers"):
        parse_setting(f"visibility/timeout={values}")


def test_a_run_of_any_chunk_and_step_is_the_same() -> None:
    for number in (3, 8, 21):
        scenario = random_queue(number)
        assert sorted(RanQueue(scenario, chunk_rows=1).rows) == sorted(RanQueue(scenario, chunk_rows=10_000).rows)
        counted, logged = RanQueue(scenario, LogLevel.COUNTERS), RanQueue(scenario)
        assert counted.worked == logged.worked
        assert counted.counters["done_count"][0].tolist() == logged.counters["done_count"][0].tolist()


def test_a_backlog_larger_than_the_first_arrays_is_drained(tmp_path: Path) -> None:
    text = GOOD.replace("<dead-letters/>", '<backlog messages="5000"/>').replace('<limits max-messages="50"/>', "")
    text = text.replace('<visibility timeout="2s"/>', "")
    read = read_scenario(written(tmp_path, text.replace('horizon="20s"', 'horizon="1h"')))
    read = apply_overrides(read, {"consumer/prefetch": "unlimited", "publisher/rate": "1/s"})
    (figures,) = simulate_figures(read)
    assert figures.arrived_messages >= 5000 + 3000
    assert figures.unfinished_messages is not None and figures.unfinished_messages < 50
    assert figures.backlog_max == 5000


def test_the_time_to_drain_is_of_the_last_outage_and_the_rest_of_the_run_at_least(tmp_path: Path) -> None:
    read = read_scenario(written(tmp_path, GOOD))
    (figures, *_) = simulate_figures(read)
    assert figures.drain_ns is not None
    late = apply_overrides(read, {"outage/start": "18s", "consumer/count": "1", "publisher/rate": "200/s"})
    late = dataclasses.replace(late, horizon_ns=20 * SECOND_NS)
    (figures, *_) = simulate_figures(apply_overrides(late, {"limits/max-messages": "unlimited"}))
    assert figures.drain_ns == SECOND_NS, "it lasts when the run ends"


def test_a_publisher_that_is_blocked_or_tries_again_loses_nothing(tmp_path: Path) -> None:
    read = read_scenario(written(tmp_path, GOOD.replace('keys="3"', 'on-refusal="retry" retry-after="30ms"')))
    tight = apply_overrides(read, {"limits/max-messages": "2", "publisher/rate": "40/s"})
    for overflow in ("reject", "block"):
        (figures, *_) = simulate_figures(apply_overrides(tight, {"limits/overflow": overflow}))
        assert figures.lost_messages == 0
        assert figures.waiting_messages > 0
    lossy = dataclasses.replace(tight, horizon_ns=5 * SECOND_NS)
    (figures, *_) = simulate_figures(apply_overrides(lossy, {"publisher/on-refusal": "lose"}))
    assert figures.spool_refused_messages > 0


def test_costs_are_of_requests_and_hours_of_consumers(tmp_path: Path) -> None:
    text = GOOD.replace("<dead-letters/>", '<price million-requests="1000000" worker-hour="3600"/>')
    text = text.replace('<autoscaling consumer="w" messages-per-consumer="10" maximum="5"/>', "")
    (figures,) = simulate_figures(read_scenario(written(tmp_path, text)))
    assert figures.requests is not None and figures.worker_hours == pytest.approx(60 / 3600)
    assert figures.cost == pytest.approx(figures.requests + 60.0)


def test_infinite_time_outs_and_lists_of_them(tmp_path: Path) -> None:
    read = read_scenario(written(tmp_path, GOOD.replace('timeout="2s"', 'timeout="1ms,infinite"')))
    assert read.queue is not None and read.queue.visibility is not None
    assert read.queue.visibility.timeouts_ns == (MILLISECOND_NS, INFINITE_NS)
    (figures, *_) = simulate_figures(apply_overrides(read, {"outage/duration": "1ms", "class[long]/fails": "0"}))
    assert 0 < figures.redelivered_messages < figures.arrived_messages * 2
