"""Rare events: a run that branches is exact, an estimate is unbiased, and intervals hold what theory says.

By default what is not so rare is estimated a few times. `QSCTL_TEST_RARE_USES=100` makes that many estimates of
losses of 10⁻⁶, and a third as many of 10⁻⁹, and counts how many intervals hold the exact value: some two hours of one
core.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsctl.core.queue.settings import ReplacementKind, ResourceLimitSettings
from qsctl.errors import InvalidInput, UsageError
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.sim.egress.runs._run import EgressRun
from qsctl.sim.egress.runs.trajectory import EgressTrajectory
from qsctl.sim.kernel.records import QUEUES
from qsctl.sim.model import Stop
from qsctl.sim.scenario.scenario import (
    ConstantArrivals,
    ConstantSize,
    OnOffArrivals,
    PoissonArrivals,
    Queue,
    Scenario,
    Traffic,
    WorkloadConsumer,
    WorkloadProducer,
)
from qsctl.sim.splitting.branchable import trajectory_of
from qsctl.sim.splitting.levels import pilot_samples, plan_levels
from qsctl.sim.splitting.question import Question, parse_question
from qsctl.sim.splitting.restart import NEVER_ABOVE, NEVER_BELOW, Levels, SplitRun
from qsctl.sim.splitting.samples import draw_samples
from qsctl.sim.splitting.trajectory import QueueTally, Trajectory
from qsctl.summary.sweeps.rare import PILOTS, RareEstimate, draw_enough, effective, estimate, samples_needed
from tests.campaigns import trials
from tests.example_counts import examples
from tests.sim.brokers import BYTE_A_NS, ONE_AT_A_TIME, broker, limits
from tests.sim.random_scenarios import solace_scenarios, tibco_scenarios
from tests.sim.simulated_service import queue_settings, scenario_of
from tests.sim.sizes import geometric, moments

LOSS = parse_question("loss_ratio(D-1)")
SIZES = geometric(100, 2048)
"""Nearly exponential, and no longer than one work unit."""
USES = trials("QSCTL_TEST_RARE_USES", 0, 30)


def exact_loss(load: float, places: int) -> float:
    """Return the loss of M/M/1/K."""
    return (1 - load) * load**places / (1 - load ** (places + 1))


@cache
def exact_loss_by_sizes(load: float, places: int) -> float:
    """Return the loss of M/G/1/K whose services are `SIZES`: by the chain at departures, without a subtraction.

    It is 2 % below that of M/M/1/K at 9 places and 7 % at 29: a length is a whole number of bytes, and has an end.
    """
    weights = np.array(SIZES.weights) / sum(SIZES.weights)
    arrivals = load * np.array(SIZES.sizes_bytes) / moments(SIZES)[0]
    come = [float((weights * np.exp(-arrivals) * arrivals**k).sum()) / math.factorial(k) for k in range(places)]
    chain = np.zeros((places, places))
    for left in range(places):
        begun = max(left - 1, 0)
        chain[left, begun : places - 1] = come[: places - 1 - begun]
        chain[left, -1] = 1.0 - chain[left, :-1].sum()
    for k in range(places - 1, 0, -1):  # Grassmann, Taksar and Heyman 1985
        chain[:k, k] /= chain[k, :k].sum()
        chain[:k, :k] += np.outer(chain[:k, k], chain[k, :k])
    probabilities = [1.0]
    for k in range(1, places):
        probabilities.append(float(np.dot(probabilities, chain[:k, k])))
    return 1.0 - 1.0 / (1.0 / math.fsum(probabilities) + load)


def one_server(load: float, places: int, messages: int = 1000, warm_up: int = 0, **changed: Any) -> Scenario:
    """Return M/G/1/K of a broker: the message that is sent is in no queue. The warm-up is in messages, too.

    A byte takes a microsecond, so that arrivals and departures are hardly ever in the same nanosecond: with a byte a
    nanosecond that made losses at 13 places 5 % rarer.
    """
    rate = load / moments(SIZES)[0] * SECOND_NS / 1000
    return broker(
        Traffic("t", "c", PoissonArrivals(rate), size=SIZES), rate_bits_per_second=BYTE_A_NS // 1000,
        tcp=ONE_AT_A_TIME, round_trip_ns=0, queues=limits(places - 1), horizon_ns=int(messages / rate * SECOND_NS),
        warm_up_ns=int(warm_up / rate * SECOND_NS), **changed,
    )  # fmt: skip


def own_server(load: float, places: int, seconds: float = 1.0, **changed: Any) -> Scenario:
    """M/M/1/K of a shared reader queue, which holds what is being served."""
    held = ResourceLimitSettings(max_count=places, replacement=ReplacementKind.REJECT_WITHOUT_REPLACEMENT)
    return scenario_of(
        queue_settings(limits=held), producers=(WorkloadProducer("T", PoissonArrivals(1000.0 * load)),),
        consumers=(WorkloadConsumer("Q", PoissonArrivals(1000.0)),), delay_ns=0, horizon_ns=int(seconds * SECOND_NS),
        **changed,
    )  # fmt: skip


def estimated(
    scenario: Scenario, question: Question, levels: Levels, count: int, confidence: float = 0.95
) -> RareEstimate:
    samples = draw_samples(scenario, question, levels, count)
    assert samples is not None
    return estimate(samples, question, confidence)


def played(run: Trajectory) -> tuple[QueueTally, int]:
    while run.advance(NEVER_BELOW, NEVER_ABOVE):
        pass
    return run.tally(), run.messages


def detoured(run: Trajectory, high: int) -> tuple[QueueTally, int]:
    """Go on at each crossing of `high` upwards as a branch, up to the horizon, and come back."""
    branch, inside = 0, False
    while run.advance(high if inside else NEVER_BELOW, NEVER_ABOVE if inside else high):
        inside = run.importance() >= high
        if inside and branch < 3:
            saved, branch = run.save(), branch + 1
            run.resume(saved, branch)
            played(run)
            run.resume(saved, None)
    return run.tally(), run.messages


def first_queue(scenario: Scenario) -> str:
    names = [traffic.queue.value for traffic in scenario.traffic]
    return "egress" if str(scenario.model) == "tibco" else names[0]


@settings(max_examples=examples(15))
@given(st.one_of(solace_scenarios(), tibco_scenarios()), st.integers(1, 6))
def test_a_run_that_was_left_and_gone_back_to_goes_on_as_if_it_had_not(scenario: Scenario, level: int) -> None:
    question = parse_question(f"P(high_water_mark({first_queue(scenario)})>={level})")
    tally, messages = played(EgressTrajectory(scenario, 0, question))
    assert detoured(EgressTrajectory(scenario, 0, question), level) == (tally, messages)
    plain = EgressRun(scenario, 0, LogLevel.COUNTERS)
    while plain.step(scenario.horizon_ns) is Stop.LOG_FULL:
        plain.take_log()
    assert plain.messages == messages
    place = plain.queue_names.index(question.queue)
    assert tally.high_water_mark == plain.arrays.queues["high_water"][place::5].max()


def test_a_service_that_was_left_and_gone_back_to_goes_on_as_if_it_had_not() -> None:
    scenario = own_server(0.9, 6, 0.3, warm_up_ns=100 * MILLISECOND_NS)
    question = parse_question("loss_ratio(Q)")
    tally, messages = played(trajectory_of(scenario, 0, question))
    assert tally.lost > 0
    assert detoured(trajectory_of(scenario, 0, question), 4) == (tally, messages)


@pytest.mark.parametrize(
    "arrivals",
    [PoissonArrivals(900.0), OnOffArrivals(3000.0, 20 * MILLISECOND_NS, 40 * MILLISECOND_NS)],
)
def test_a_branch_has_the_arrivals_before_it_and_others_after_it(arrivals: Any) -> None:
    scenario = broker(
        Traffic("t", "c", arrivals), horizon_ns=SECOND_NS, rate_bits_per_second=10_000_000, tcp=ONE_AT_A_TIME,
        round_trip_ns=0,
    )  # fmt: skip
    question = parse_question("P(high_water_mark(D-1)>=2)")
    run = EgressTrajectory(scenario, 0, question)
    assert run.advance(NEVER_BELOW, 2)
    saved, before = run.save(), (run.tally(), run.messages, run.importance())
    ends = set()
    for branch in (1, 2, 2):
        run.resume(saved, branch)
        assert (run.tally(), run.messages, run.importance()) == before
        ends.add(played(run))
    assert len(ends) == 2


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize("levels", [Levels((2, 4), (3, 2)), Levels((1, 3), (2, 3))])
def test_a_split_run_loses_as_m_m_1_k(levels: Levels) -> None:
    found = estimated(one_server(0.5, 5, 400), LOSS, levels, 40, 0.9999)
    assert found.low < exact_loss_by_sizes(0.5, 5) < found.high
    assert found.half_width < 0.6 * found.value


@pytest.mark.slow
@pytest.mark.statistics
def test_a_split_run_of_a_service_loses_as_m_m_1_k() -> None:
    found = estimated(own_server(0.5, 3, 0.2), parse_question("loss_ratio(Q)"), Levels((2, 3), (2, 2)), 24, 0.9999)
    assert found.value == pytest.approx(exact_loss(0.5, 3), rel=0.5)  # four standard errors


@pytest.mark.slow
@pytest.mark.statistics
def test_the_probability_of_runs_is_that_of_plain_runs() -> None:
    scenario = one_server(0.5, 100, 60)
    question = parse_question("P(high_water_mark(D-1)>=7)")
    plain = estimated(scenario, question, Levels(), 400, 0.9999)
    split = estimated(scenario, question, Levels((3, 5), (3, 3)), 200, 0.9999)
    assert plain.half_width + split.half_width > abs(plain.value - split.value)
    assert 0.0 < split.half_width < plain.half_width * 1.5


@pytest.mark.slow
@pytest.mark.statistics
def test_levels_are_found_and_reach_a_loss_that_no_plain_run_sees() -> None:
    scenario = one_server(0.5, 12, 300)
    plan = plan_levels(scenario, LOSS, trajectory_of(scenario, 0, LOSS).most)
    assert plan is not None
    assert plan.is_whole
    assert 2 <= len(plan.levels.thresholds) <= 8
    assert 50 < math.prod(plan.levels.factors) < 10_000
    found = estimated(scenario, LOSS, plan.levels, 40, 0.9999)
    assert found.low < exact_loss_by_sizes(0.5, 12) < found.high
    assert found.plain_messages > found.messages  # 132 times as many at 20 places


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize(
    ("scenario", "queue", "level", "count"),
    [(one_server(0.5, 100, 60), "D-1", 7, 200), (own_server(0.4, 9, 0.1), "Q", 5, 60)],
)
def test_levels_are_found_up_to_a_depth_and_estimate_it_as_plain_runs_do(
    scenario: Scenario, queue: str, level: int, count: int
) -> None:
    question = parse_question(f"P(high_water_mark({queue})>={level})")
    plan = plan_levels(scenario, question, level)
    assert plan is not None
    assert plan.is_whole
    plain = estimated(scenario, question, Levels(), 2 * count, 0.9999)
    split = estimated(scenario, question, plan.levels, count, 0.9999)
    assert plain.half_width + split.half_width > abs(plain.value - split.value)
    assert 0.0 < split.half_width < plain.half_width * 2


def test_a_queue_that_cannot_fill_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qsctl.sim.splitting.levels.MESSAGES_MAX", 20_000)
    scenario = broker(Traffic("t", "c", PoissonArrivals(10.0), ConstantSize(100)), horizon_ns=SECOND_NS)
    plan = plan_levels(scenario, parse_question("P(high_water_mark(D-1)>=5)"), 5)
    assert plan is not None
    assert not plan.is_whole


@pytest.mark.slow
def test_samples_are_the_same_in_two_processes() -> None:
    scenario = one_server(0.5, 5, 100)
    levels = Levels((2, 4), (2, 2))
    alone = draw_samples(scenario, LOSS, levels, 4)
    assert alone == draw_samples(scenario, LOSS, levels, 4, workers=2)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("loss(D-1)", "none of the figures"),
        ("P(discards(D-1)>0)", "none of the figures"),
        ("P(lost(D-1)>2)", "3 lost messages"),
        ("P(high_water_mark(D-1)>=0)", "every queue"),
        ("P(high_water_mark(D-1)>=many)", "not a whole number"),
    ],
)
def test_a_question_of_another_form_is_refused(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        parse_question(text)


def test_a_queue_that_nothing_comes_to_is_refused() -> None:
    scenario = broker(Traffic("t", "c", ConstantArrivals(10.0), queue=Queue.D_2))
    with pytest.raises(InvalidInput, match="no messages reach a queue 'D-1'") as raised:
        trajectory_of(scenario, 0, LOSS)
    assert "D-2" in str(raised.value.remedy)


def test_few_runs_that_saw_it_give_no_interval() -> None:
    samples = [SplitRun(float(i < 9), 100.0, 100, 1, [], 100.0) for i in range(90)]
    assert not estimate(samples, LOSS, 0.95).has_interval
    samples[9:20] = [samples[0]] * 11
    found = estimate(samples, LOSS, 0.95)
    assert found.value == pytest.approx(20 / 9000)
    assert found.has_interval
    assert found.low < found.value < found.high < math.inf
    assert samples_needed(samples, 0.95, 0.2) > samples_needed(samples, 0.95, 0.4) > 30


def test_few_states_that_contribute_most_give_no_interval() -> None:
    """A hundred runs saw it, nine tenths of what they saw came from one state."""
    samples = [SplitRun(1.0, 100.0, 100, 1, [4], 100.0, [0.25]) for _ in range(100)]
    assert effective(samples) == pytest.approx(100.0)
    assert estimate(samples, LOSS, 0.95).has_interval
    samples[0] = replace(samples[0], value=900.0, squares=[900.0**2])
    found = estimate(samples, LOSS, 0.95)
    assert found.effective == pytest.approx(1.23, abs=0.01)
    assert not found.has_interval
    # The same where each run has a state that much of it comes from, and several such states have one ancestor.
    samples = [SplitRun(1.0, 100.0, 100, 1, [4, 4], 100.0, [25.0, 0.25]) for _ in range(100)]
    assert effective(samples) == pytest.approx(4.0)
    assert samples_needed(samples, 0.95, 0.9) == 750  # 30 such states
    assert not estimate(samples, LOSS, 0.95).has_interval


def test_contributions_of_states_make_up_the_value() -> None:
    scenario = one_server(0.5, 5, 300)
    samples = draw_samples(scenario, LOSS, Levels((2, 3, 4), (3, 2, 2)), 8)
    assert samples is not None
    assert any(sample.value for sample in samples)
    for sample in samples:
        for crossings, squares in zip(sample.crossings, sample.squares, strict=True):
            assert squares <= sample.value**2 * (1 + 1e-9)  # one state contributed all
            assert squares * (crossings + 1) >= sample.value**2 * (1 - 1e-9)  # each the same


@settings(max_examples=examples(15))
@given(st.one_of(solace_scenarios(), tibco_scenarios()), st.integers(1, 6))
def test_the_bytes_that_wait_are_those_of_the_queue(scenario: Scenario, level: int) -> None:
    """What is found from the counters is what the queue's messages have, and is half of the importance."""
    run = EgressTrajectory(scenario, 0, parse_question(f"P(high_water_mark({first_queue(scenario)})>={level})"))
    inside = False
    for _ in range(200):
        if not run.advance(level if inside else NEVER_BELOW, NEVER_ABOVE if inside else level):
            break
        inside = run.importance() >= level
        watches = run.arrays.watches
        known = watches["bytes"].copy()
        watches["length"] = 0  # so that it goes through the queue
        run.importance()
        assert (known == watches["bytes"]).all()
        unit = int(run.arrays.state["watched_bytes"])
        depths = run.arrays.queues["work"][watches["client"] * QUEUES + run.arrays.state["watched_queue"]]
        halves = np.minimum(level - 1, (depths * unit + known) // (2 * max(1, unit)))
        nearest = np.where(depths >= level, level, halves) if unit else depths
        assert run.importance() == max(0, nearest.max(initial=0))


@pytest.mark.campaign
@pytest.mark.skipif(not USES, reason="QSCTL_TEST_RARE_USES")
@pytest.mark.parametrize(("places", "least_ratio"), [(13, 5), (19, 100), (29, 100)])
def test_intervals_hold_the_exact_loss_as_often_as_stated(places: int, least_ratio: int) -> None:
    """With a hundredth of the messages of plain runs, or less: those are computed for independent losses.

    Losses of 6·10⁻⁵, where that saves little, 9·10⁻⁷ and 9·10⁻¹⁰. A third of the uses are made of the last.
    """
    exact = exact_loss_by_sizes(0.5, places)
    uses, holds, shown, ratios = max(1, USES // 3) if places > 20 else USES, 0, 0, []
    for use in range(uses):
        scenario = one_server(0.5, places, 1600, 100, seed=1000 + use)
        found = rare_estimate(scenario, LOSS, places - 1, precision=0.4)
        shown += found.has_interval
        holds += found.has_interval and found.low <= exact <= found.high
        ratios.append(found.plain_messages / found.messages)
        print(  # noqa: T201 - of a campaign
            f"{places} places, use {use}: {found.value / exact:.3f} of the exact loss, {found.low / exact:.3f} to "
            f"{found.high / exact:.3f}, {found.effective:.0f} states; {holds} of {shown} hold, {ratios[-1]:.0f} times"
        )
    assert shown >= 0.8 * uses  # of the others it says that nothing is shown, and to give more runs
    assert holds >= 0.95 * shown - 2.6 * math.sqrt(0.95 * 0.05 * shown)
    assert sorted(ratios)[len(ratios) // 2] >= least_ratio


def rare_estimate(scenario: Scenario, question: Question, most: int, precision: float) -> RareEstimate:
    """Return what `simulate --rare` finds, with the messages of pilot runs."""
    plan = plan_levels(scenario, question, most)
    assert plan is not None
    pilots = pilot_samples(scenario, question, plan, 0, PILOTS)
    assert pilots is not None
    samples = draw_enough(
        lambda first, count: draw_samples(scenario, question, plan.levels, count, first=first),
        samples_needed(pilots, 0.95, precision),
    )
    assert samples is not None
    found = estimate(samples, question, 0.95)
    return replace(found, messages=found.messages + plan.messages + sum(sample.messages for sample in pilots))
