"""`compare` names what differs first, has no winner on what follows another load, and compares two runs by samples."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.eventlog.location import location
from qsctl.eventlog.schema import LogLevel, bucket_of
from qsctl.instant import SECOND_NS
from qsctl.sim.replay.replay import replay
from qsctl.sim.run import run
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    ConstantSize,
    PoissonArrivals,
    Port,
    Profile,
    Scenario,
    Traffic,
)
from qsctl.sim.sweep import plan_sweep
from qsctl.summary.comparison.compare import Comparison, Difference, MeasureVerdict, compare
from qsctl.summary.comparison.compare_sentence import sentence
from qsctl.summary.comparison.compared_settings import setting_differences
from qsctl.summary.comparison.one_run import (
    BOOTSTRAP,
    SAMPLES,
    QueueMessages,
    blocks_of,
    buckets_of,
    by_blocks,
    messages_of,
    paired_by_samples,
)
from qsctl.summary.sweeps.sweep_folder import open_sweep
from tests.campaigns import trials
from tests.summary.runners import Here
from tests.summary.written_sweep import write_results

TRIALS = trials("QSCTL_CONFIDENCE_TRIALS", 0, 200)
MONDAY = Path(__file__).parents[2] / "fixtures" / "recordings" / "monday"


def overloaded(**changes: Any) -> Scenario:
    """One client, one queue, more than the port carries, for a second."""
    plain = Scenario(
        name="overloaded", horizon_ns=SECOND_NS, seed=11, ports=(Port("p", 8_000_000),), profiles=(Profile("default"),),
        groups=(ClientGroup("c", port="p", profile="default"),),
        traffic=(Traffic("t", to="c", arrivals=PoissonArrivals(2000), size=ConstantSize(1000)),),
    )  # fmt: skip
    return dataclasses.replace(plain, **changes)


def swept(folder: Path, scenario: Scenario, replications: int = 4) -> Path:
    plan = plan_sweep(scenario, (), replications)
    open_sweep(folder, plan)
    write_results(folder, Here(scenario).run(list(plan.tasks())))
    return folder


def of(comparison: Comparison, measure: str, queue: str = "D-1") -> Difference:
    return next(each for each in comparison.differences if (each.measure, each.queue) == (measure, queue))


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording, replayed with five consumers of its orders."""
    folder = tmp_path_factory.mktemp("replay") / "five"
    replay(location(MONDAY), location(folder), overrides={"queue[Orders]/consumers": "5"})
    return folder


def test_a_recording_and_its_replay_have_a_winner_and_the_setting_that_makes_it(five: Path) -> None:
    """Both hold the same samples: p99 of 82 and of 45 ms was "no difference, simulate more replications" before."""
    comparison = compare(location(MONDAY), location(five), 0.95)
    text = sentence(comparison)
    assert text.startswith(
        "Different: replay/queue[Orders]/consumers recorded → 5. B is better on p99 time in the queue of Orders"
    )
    p99 = of(comparison, "time_in_queue_p99", "Orders")
    assert (p99.verdict, p99.difference.method, p99.paired) == (MeasureVerdict.B, SAMPLES, True)
    assert p99.difference.high < 0
    assert of(comparison, "time_in_queue_p99", "Jobs").verdict is MeasureVerdict.SAME


def test_a_recording_against_itself_has_no_winner() -> None:
    comparison = compare(location(MONDAY), location(MONDAY), 0.95)
    assert sentence(comparison) == "A and B give the same."
    assert not comparison.settings


def exchanged(a: QueueMessages, b: QueueMessages, draw: np.random.Generator) -> tuple[QueueMessages, QueueMessages]:
    """Exchange the two in random stretches of messages: neither is better than the other then."""
    count = len(a.wait_ns)
    take = draw.integers(0, 2, 40).astype(bool)[np.arange(count) * 40 // count]
    sides = []
    for first, second in ((a, b), (b, a)):
        sides.append(
            QueueMessages(
                a.arrivals,
                *(
                    np.where(take, getattr(first, name), getattr(second, name))
                    for name in ("wait_ns", "done_ns", "lost")
                ),
                a.elided,
                a.discarded,
            )
        )
    return sides[0], sides[1]


@pytest.mark.slow
@pytest.mark.campaign
def test_resamples_without_a_difference_get_a_winner_no_more_often_than_stated(five: Path) -> None:
    a, b = messages_of(location(MONDAY))["Orders"], messages_of(location(five))["Orders"]
    draw = np.random.default_rng(4)
    named = {"time_in_queue_mean": 0, "time_in_queue_p99": 0}
    uses = TRIALS or 8
    for _ in range(uses):
        blocks = blocks_of(*exchanged(a, b, draw))
        for measure in named:
            named[measure] += paired_by_samples(*blocks, measure, 1.0, 0.95, draw).p_value <= 0.05
    most = 0.05 * uses + 3 * math.sqrt(0.05 * 0.95 * uses)
    assert all(count <= most for count in named.values()), named


def test_another_horizon_is_compared_a_second_and_grows_no_winner(tmp_path: Path) -> None:
    """Twice the time was twice the discards, and a winner."""
    a = swept(tmp_path / "a", overloaded())
    b = swept(tmp_path / "b", overloaded(horizon_ns=2 * SECOND_NS))
    comparison = compare(location(a), location(b), 0.95)
    assert [str(each) for each in comparison.settings or ()] == ["horizon 1s → 2s"]
    assert comparison.load_differs
    delivered = of(comparison, "delivered")
    assert delivered.unit == "messages/s"
    assert delivered.mean_b == pytest.approx(delivered.mean_a, rel=0.2)
    assert of(comparison, "high_water_mark").verdict is MeasureVerdict.NOT_COMPARED
    assert sentence(comparison).startswith("The loads differ: horizon 1s → 2s. ")


def test_other_traffic_has_no_winner_on_counts_and_other_clients_are_compared_each(tmp_path: Path) -> None:
    plain = overloaded()
    faster = (dataclasses.replace(plain.traffic[0], arrivals=PoissonArrivals(4000)),)
    a, b = swept(tmp_path / "a", plain), swept(tmp_path / "b", overloaded(traffic=faster))
    comparison = compare(location(a), location(b), 0.95)
    assert of(comparison, "discards").verdict is MeasureVerdict.NOT_COMPARED
    assert of(comparison, "throughput").verdict is MeasureVerdict.NOT_COMPARED
    assert "No winner is named on discards and throughput" in sentence(comparison)
    two = dataclasses.replace(plain.groups[0], count=2)
    c = swept(tmp_path / "c", overloaded(groups=(two,)))
    clients = compare(location(a), location(c), 0.95)
    assert of(clients, "throughput").unit == "messages/s and client"
    assert of(clients, "throughput").mean_b < 0.7 * of(clients, "throughput").mean_a


def test_one_run_of_each_is_compared_by_samples_or_by_blocks(tmp_path: Path) -> None:
    for name, changes in (("a", {}), ("b", {"ports": (Port("p", 40_000_000),)}), ("c", {"seed": 12})):
        steady = apply_overrides(
            overloaded(**changes), {"profile[default]/queue[D-1]/max-depth": "100", "horizon": "3s"}
        )
        run(steady, location(tmp_path / name), level=LogLevel.MESSAGES)
    a, b, c = (location(tmp_path / name) for name in "abc")
    samples = compare(a, b, 0.95)
    assert of(samples, "time_in_queue_p99").difference.method == SAMPLES
    assert of(samples, "time_in_queue_mean").verdict is MeasureVerdict.B
    blocks = compare(a, c, 0.95)
    assert of(blocks, "time_in_queue_mean").difference.method == BOOTSTRAP
    assert of(blocks, "time_in_queue_mean").verdict is MeasureVerdict.UNDECIDED


@pytest.mark.campaign
def test_runs_of_one_law_differ_by_blocks_no_more_often_than_stated() -> None:
    """Waits of M/M/1 at ρ = 0.5, in its steady state."""
    draw = np.random.default_rng(8)

    def waits() -> QueueMessages:
        steps = draw.exponential(1.0, 6000) - draw.exponential(2.0, 6000)
        sums = np.concatenate([[0.0], np.cumsum(steps)])
        wait = (sums - np.minimum.accumulate(np.minimum(sums, 0.0)))[1000:6000] * 1e6
        none = np.zeros(5000, bool)
        return QueueMessages(np.zeros((5000, 2)), wait.astype(np.int64), np.full(5000, -1), none, none, none)

    named = 0
    uses = TRIALS or 20
    for _ in range(uses):
        sides = waits(), waits()
        difference = float(sides[1].wait_ns.mean() - sides[0].wait_ns.mean())
        named += by_blocks(*blocks_of(*sides), "time_in_queue_mean", difference, 0.95, draw).p_value <= 0.05
    assert named <= 0.05 * uses + 3 * math.sqrt(0.05 * 0.95 * uses)


@given(st.lists(st.integers(0, 2**52), min_size=1, max_size=20))
def test_buckets_of_arrays_are_those_of_numbers(durations: list[int]) -> None:
    assert buckets_of(np.array(durations)).tolist() == [bucket_of(each) for each in durations]


def test_settings_are_named_by_their_paths() -> None:
    plain = overloaded()
    more = dataclasses.replace(plain, groups=(dataclasses.replace(plain.groups[0], count=3),), seed=99, name="other")
    (found,) = setting_differences(plain, more)
    assert (found.path, found.a, found.b, found.is_load) == ("group[c]/count", "", "3", True)
    assert str(found) == "group[c]/count (default) → 3"
