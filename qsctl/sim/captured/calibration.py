"""The comparison of a scenario's predictions with captures, and the fit of one parameter of a client in trouble.

Each group is simulated with one of its clients alone: losses to a client's own connection do not depend on the others,
unless the port is full. For a client that lost messages, each parameter that may limit it is fitted in turn, with the
others off: the value at which the simulated share of discards is the captured one. Its interval has the captured
share's random error, the simulation's own, and that of the time between the captures; the captured figure is compared
with the spread of replications of the same length, and the application's times may vary as much as exponential ones, so
that the interval keeps its confidence (`tests/sim/captured/test_calibration.py`). It does not where they vary more, or
where the captured load was not steady.

Decides: the compared figures, how values are searched for (by bisection of the logarithm, since discards grow with each
parameter one way), and which parameter explains best: the one whose other figures (depth, blocked percentage) are
nearest, and which the windows of the captured connection do not contradict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Final

from qsctl.instant import SECOND_NS
from qsctl.profiles.client_profile import Queue
from qsctl.sim.captured.observed import CapturedClients
from qsctl.sim.captured.scenario import CapturedGroup
from qsctl.sim.model import EVENT_NAMES, Event
from qsctl.sim.replication import simulate_counters_and_happenings
from qsctl.sim.scenario.parts.client import ClientGroup, ConstantTime
from qsctl.sim.scenario.scenario import Scenario

CONFIDENCE: Final = 0.95
REPLICATIONS: Final = 8
_STUDENT: Final = {4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 10: 2.262, 16: 2.131, 32: 2.040}
"""Two-sided 95 % of Student's t with one less degree of freedom, by the number of replications."""
SIMULATED_S_MAX: Final = 60
"""Of one replication: the captured share of a longer time has a smaller error, which the interval does not use."""
MINUTE_S: Final = 60
_STEPS: Final = 10
"""Of the bisection: a value is found to a thousandth of its range's logarithm; one step of Newton's method follows."""
_STEP: Final = 0.05
"""Relative difference of the two values that the slope is from."""
_BLOCKED: Final = EVENT_NAMES[Event.SLOW_PERCENT]
_PERCENT: Final = 100
_NEAR: Final = 0.05
"""Scores that differ by less do not distinguish parameters."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """One figure of a group's clients, captured and predicted, in `unit`, with the spread over replications."""

    group: str
    clients: int
    queue: str
    measure: str
    unit: str
    captured: float
    predicted: float
    half_width: float
    """The half-width of the 95 % prediction interval: a run as long as the captures deviates less from the mean."""

    @property
    def error(self) -> float:
        """The predicted minus the captured figure."""
        return self.predicted - self.captured

    @property
    def agrees(self) -> bool:
        """Return whether the captured figure is within the spread."""
        return abs(self.error) <= self.half_width


@dataclass(frozen=True, slots=True)
class FittedParameter:
    """The value of one parameter at which the simulated share of discards equals the captured one."""

    group: str
    path: str
    value: float
    low: float
    high: float
    """The upper end of the interval that starts at `low` and has `CONFIDENCE`, if this parameter is the cause."""
    unit: str
    mismatch: float
    """The distance of the simulated depth, blocked percentage and windows from the captured ones; 0: they agree."""
    is_best: bool = False
    setting: str = ""
    """The value as `--set` accepts it."""


@dataclass(frozen=True, slots=True)
class _Simulated:
    """The figures of one client, one value a replication: discards and depths by queue, and blocked percentages."""

    losses: dict[Queue, list[float]]
    discarded_per_s: dict[Queue, list[float]]
    depths: dict[Queue, list[float]]
    blocked_percent: list[float]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A parameter that may limit a client, with the range in which its value is searched for."""

    name: str
    path: str
    unit: str
    reasons: frozenset[str]
    """The reasons of `slowness.REASONS` that do not contradict this parameter as the cause."""
    low: float
    high: float
    grows: bool
    """Whether discards increase with the parameter; else they decrease."""
    apply: Callable[[ClientGroup, float], ClientGroup]
    write: Callable[[float], str]
    variation: float = 0.0
    """The assumed coefficient of variation from message to message, which no listing contains; 1: exponential."""


_CANDIDATES: Final = (
    _Candidate(
        "the application's time for a message", "service-time/duration", "s", frozenset({"application"}), 1e-7, 10.0,
        True, lambda group, value: replace(group, service_time=ConstantTime(max(1, round(value * SECOND_NS)))),
        lambda value: f"{max(1, round(value * SECOND_NS))}ns", 1.0,
    ),
    _Candidate(
        "the rate of its link", "link-rate", "bit/s", frozenset({"link", "behind", "port"}), 1e3, 1e10, False,
        lambda group, value: replace(group, link_rate_bits_per_second=max(1, round(value))),
        lambda value: f"{max(1, round(value))} bit/s",
    ),
    _Candidate(
        "its round trip", "round-trip", "s", frozenset({"window"}), 1e-6, 30.0, True,
        lambda group, value: replace(group, round_trip_ns=max(1, round(value * SECOND_NS))),
        lambda value: f"{max(1, round(value * SECOND_NS))}ns",
    ),
    _Candidate(
        "the loss of segments", "loss", "", frozenset({"loss"}), 1e-6, 0.3, True,
        lambda group, value: replace(group, loss_probability=value), lambda value: f"{value:.4g}",
    ),
)  # fmt: skip


def predictions(
    scenario: Scenario, groups: Sequence[CapturedGroup], observation: CapturedClients, replications: int = REPLICATIONS
) -> list[Predicted]:
    """Return the figures that the scenario predicts for each group, each with the captured figure.

    Args:
        scenario: its groups are matched to `groups` by name; a group that it lacks is left out.
        groups: the groups of captured clients.
        observation: the captured figures of all clients.
        replications: number of replications of each group's simulation.
    """
    found: list[Predicted] = []
    for group in groups:
        if group.name not in {each.name for each in scenario.groups}:
            continue
        alone = _alone(scenario, group, observation)
        if not alone.traffic:
            continue
        simulated = _simulate(alone, replications)
        found += _compared(group, simulated, replications)
    return found


def fits(
    scenario: Scenario, group: CapturedGroup, observation: CapturedClients, replications: int = REPLICATIONS
) -> list[FittedParameter]:
    """Return the parameters that explain the discards of the group's client, with their fitted values, best first.

    The list is empty where the client lost no message, and where no value of any parameter explains the loss.
    """
    worst = _worst(group)
    if worst is None or group.name not in {each.name for each in scenario.groups}:
        return []
    alone = _alone(scenario, group, observation)
    found = []
    for candidate in _CANDIDATES:
        fitted = _fit(alone, group, worst, candidate, observation, replications)
        if fitted is not None:
            found.append(fitted)
    found.sort(key=lambda each: each.mismatch)
    return [replace(each, is_best=each.mismatch < found[0].mismatch + _NEAR) for each in found]


def _worst(group: CapturedGroup) -> Queue | None:
    """Return the queue that lost the largest share of its messages, or None where no queue lost a message."""
    rows = {queue: row for queue in Queue if (row := group.queue(queue)) is not None and row.discarded_messages}
    return max(rows, key=lambda queue: rows[queue].loss, default=None)


def _alone(scenario: Scenario, captured: CapturedGroup, observation: CapturedClients) -> Scenario:
    """Return the scenario with one client of the group alone, observed for as long as the captures.

    The warm-up is as long as the captured clients were connected before, at most a minute: the broker's percentage of
    blocked seconds covers the last minute.
    """
    name = captured.name
    seconds = min(SIMULATED_S_MAX, max(1, round(observation.seconds or SIMULATED_S_MAX)))
    uptime_s = captured.mean(lambda each: each.uptime_s)
    warm_up_s = MINUTE_S if uptime_s is None else min(MINUTE_S, max(1, round(uptime_s) - seconds))
    group = replace(next(each for each in scenario.groups if each.name == name), count=1)
    return replace(
        scenario,
        groups=(group,),
        traffic=tuple(each for each in scenario.traffic if each.to == name),
        endpoints=tuple(each for each in scenario.endpoints if each.to == name),
        durable_queues=(),
        changes=(),
        warm_up_ns=warm_up_s * SECOND_NS,
        horizon_ns=(warm_up_s + seconds) * SECOND_NS,
        log_level="counters",
        replications=1,
    )


def _simulate(scenario: Scenario, replications: int) -> _Simulated:
    found = _Simulated({}, {}, {}, [])
    for replication in range(replications):
        rows, happenings = simulate_counters_and_happenings(scenario, replication)
        for row in rows:
            queue = Queue(row["queue"])
            lost = row["discarded_messages"] + row["evicted_messages"]
            seconds = row["observed_ns"] / SECOND_NS
            found.losses.setdefault(queue, []).append(
                lost / row["arrived_messages"] if row["arrived_messages"] else 0.0
            )
            found.discarded_per_s.setdefault(queue, []).append(lost / seconds)
            found.depths.setdefault(queue, []).append(row["length_work_units"])
        peaks = [each.peak / _PERCENT for each in happenings if each.event == _BLOCKED]
        found.blocked_percent.append(max(peaks, default=0.0))
    return found


def _compared(group: CapturedGroup, simulated: _Simulated, replications: int) -> list[Predicted]:
    found = []

    def compare(queue: str, measure: str, unit: str, captured: float, values: Sequence[float]) -> None:
        found.append(
            Predicted(
                group.name,
                len(group.clients),
                queue,
                measure,
                unit,
                captured,
                fmean(values),
                _spread(values, replications),
            )
        )

    for queue, values in simulated.discarded_per_s.items():
        row = group.queue(queue)
        if row is not None:
            compare(str(queue), "discards", "messages/s", row.discarded_per_s, values)
            compare(str(queue), "depth", "work units", row.depth_work_units, simulated.depths[queue])
    blocked = group.mean(lambda each: each.blocked_percent)
    if blocked is not None:
        compare("", "blocked", "%", blocked, simulated.blocked_percent)
    return found


def _spread(values: Sequence[float], replications: int) -> float:
    """Return the half-width of the prediction interval for another replication, with `CONFIDENCE`."""
    if len(values) < 2:
        return math.inf
    return student(replications) * stdev(values) * math.sqrt(1 + 1 / len(values))


def student(replications: int) -> float:
    """Return the two-sided 95 % quantile of Student's t for this number of replications, rounded up."""
    known = [count for count in _STUDENT if count <= replications]
    return _STUDENT[max(known)] if known else 12.71


def _fit(
    alone: Scenario, group: CapturedGroup, queue: Queue, candidate: _Candidate, observation: CapturedClients,
    replications: int,
) -> FittedParameter | None:  # fmt: skip
    """Return the parameter's value at which the share of discards is the captured one, or None without one."""
    row = group.queue(queue)
    assert row is not None

    def at(value: float, count: int) -> _Simulated:
        return _simulate(_limited_by(alone, candidate, value), count)

    def share(value: float) -> float:
        return fmean(at(value, 1).losses.get(queue, [0.0]))

    low, high = math.log(candidate.low), math.log(candidate.high)
    if (share(math.exp(high)) < row.loss) == candidate.grows or (share(math.exp(low)) > row.loss) == candidate.grows:
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if (share(math.exp(middle)) < row.loss) == candidate.grows:
            low = middle
        else:
            high = middle
    value = math.exp((low + high) / 2)
    simulated = at(value, replications)
    losses = simulated.losses[queue]
    # By the same random numbers on both sides.
    slope = (share(value * (1 + _STEP)) - share(value / (1 + _STEP))) / (2 * math.log(1 + _STEP))
    if not slope:
        return None
    value *= math.exp((row.loss - fmean(losses)) / slope)
    seconds = observation.seconds or 0.0
    rate_error = observation.error_s / seconds if seconds else 1.0
    delivered = max(1, row.arrived_messages - row.discarded_messages)
    varied = student(replications) * candidate.variation / math.sqrt(delivered)
    half = math.hypot(_spread(losses, replications) / abs(slope), varied) + rate_error + (high - low) ** 2
    mismatch = _mismatch(group, candidate, simulated)
    return FittedParameter(
        group.name,
        f"group[{group.name}]/{candidate.path}",
        value,
        value * math.exp(-half),
        value * math.exp(half),
        candidate.unit,
        mismatch,
        setting=candidate.write(value),
    )


def _limited_by(alone: Scenario, candidate: _Candidate, value: float) -> Scenario:
    """Return the scenario with the parameter at `value` and every other parameter that may limit the client off."""
    (group,) = alone.groups
    free = replace(
        group,
        service_time=ConstantTime(0),
        link_rate_bits_per_second=0,
        loss_probability=0.0,
        receive_buffer_bytes=0,
        pauses=(),
    )
    return replace(alone, groups=(candidate.apply(free, value),))


def _mismatch(group: CapturedGroup, candidate: _Candidate, simulated: _Simulated) -> float:
    parts = []
    for queue, depths in simulated.depths.items():
        row = group.queue(queue)
        if row is not None and row.max_depth_work_units:
            parts.append(min(1.0, abs(fmean(depths) - row.depth_work_units) / row.max_depth_work_units))
    blocked = group.mean(lambda each: each.blocked_percent)
    if blocked is not None:
        parts.append(abs(fmean(simulated.blocked_percent) - blocked) / _PERCENT)
    reason = group.trouble.reason.key if group.trouble is not None else "unknown"
    contradicted = reason != "unknown" and reason not in candidate.reasons
    return (fmean(parts) if parts else 0.0) + (1.0 if contradicted else 0.0)
