"""A recorded load drawn anew by blocks: what is kept, what is drawn, and what is stated of it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import pytest

from qsctl.eventlog.location import location
from qsctl.eventlog.recording.schema import Origin
from qsctl.sim.figures import Figures
from qsctl.sim.replay.recording import Recorded, RecordedArrival, read_recording
from qsctl.sim.replay.replay import recorded_scenario
from qsctl.sim.replay.resampled import block_ns, resampled
from qsctl.sim.replication import simulate_figures
from qsctl.sim.scenario.scenario import Scenario

MONDAY = Path(__file__).parents[2] / "fixtures" / "recordings" / "monday"


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    return read_recording(location(str(MONDAY)))


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return recorded_scenario(location(str(MONDAY)))


def writes(load: Recorded) -> list[RecordedArrival]:
    return [row for row in load.arrivals if row.origin == Origin.PRODUCER]


def orders(scenario: Scenario, replication: int) -> Figures:
    return next(each for each in simulate_figures(scenario, replication) if each.queue == "Orders")


def test_samples_of_a_block_come_as_they_did(recorded: Recorded) -> None:
    load = resampled(recorded, 20, 1, 3)
    there = {(row.producer, row.sequence_number, row.queue): row for row in writes(recorded)}
    length = block_ns(recorded, 20)
    shifts: dict[int, Counter[int]] = {}
    first = min(row.at_ns for row in writes(recorded))
    for row in writes(load.recorded):
        producer, number = load.original[row.producer, row.sequence_number]
        was = there[producer, number, row.queue]
        assert (row.size_bytes, row.lifespan_ns, row.address) == (was.size_bytes, was.lifespan_ns, was.address)
        shifts.setdefault((row.at_ns - first) // length, Counter())[row.at_ns - was.at_ns] += 1
    # A block that goes over the end of the recording has two shifts; a second write may be late.
    assert all(len(each) <= 3 for each in shifts.values())
    assert len(shifts) == 20


def test_each_sample_is_one_of_its_producer_s_own_and_none_comes_twice(recorded: Recorded) -> None:
    load = resampled(recorded, 20, 1, 3)
    identities = Counter((row.producer, row.sequence_number, row.queue) for row in writes(load.recorded))
    before = Counter((row.producer, row.sequence_number, row.queue) for row in writes(recorded))
    assert max(identities.values()) <= max(before.values())
    assert all(origin[0] == key[0] for key, origin in load.original.items())
    assert max(Counter(load.original.values()).values()) > 1


@pytest.mark.slow
def test_loads_have_the_recorded_rate_on_average_and_differ(recorded: Recorded) -> None:
    counts = [len(writes(resampled(recorded, 20, 1, number).recorded)) for number in range(1, 101)]
    assert sum(counts) / 100 == pytest.approx(len(writes(recorded)), rel=0.02)
    assert len(set(counts)) > 30
    assert resampled(recorded, 20, 1, 5) == resampled(recorded, 20, 1, 5)
    assert resampled(recorded, 20, 1, 5) != resampled(recorded, 20, 2, 5)


def test_a_recording_without_writes_stays_as_it_is(recorded: Recorded) -> None:
    empty = dataclasses.replace(recorded, arrivals=())
    assert resampled(empty, 20, 1, 1).recorded == empty


@pytest.mark.slow
def test_the_first_replication_is_the_recording_and_the_others_are_drawn(scenario: Scenario) -> None:
    first, *others = [orders(scenario, number) for number in range(4)]
    assert (first.arrived_messages, first.wait_p99_ns) == (1107, 81_788_927)
    assert len({each.wait_mean_ns for each in (first, *others)}) == 4
    assert all(each.arrived_messages == each.delivered_messages + each.dead_messages for each in others)
    mean = sum(each.done_mean_ns or 0.0 for each in others) / 3
    assert mean == pytest.approx(first.done_mean_ns, rel=0.4)


def test_without_resampling_replications_have_one_load(scenario: Scenario) -> None:
    assert scenario.replay is not None
    fixed = dataclasses.replace(scenario, replay=dataclasses.replace(scenario.replay, resample_blocks=0))
    assert orders(fixed, 0) == orders(fixed, 1)
