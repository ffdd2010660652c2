"""Results that a search knows without a simulation are, figure for figure, those of a simulation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from qsctl.sim.figures import Figures
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.simulate import open_scenario
from qsctl.sim.sizing.targets import parse_setting, parse_target
from qsctl.sim.sweep import Point, Task, run_task
from qsctl.summary.sweeps._known_results import DepthsOfSearch
from qsctl.summary.sweeps.points import EVERY_MEASURE
from qsctl.summary.sweeps.size import Sizing, size
from tests.sim.random_scenarios import solace_scenarios
from tests.summary.runners import Here

QUEUES = ("G-1", "D-1", "D-2", "D-3", "C-1")


def simulated(scenario: Scenario, depths: dict[str, int]) -> tuple[Figures, ...]:
    point = Point(tuple((f"profile[*]/queue[{queue}]/max-depth", str(depth)) for queue, depth in depths.items()))
    return tuple(run_task(scenario, Task(point, 0, scenario.seed)))


@pytest.mark.slow
@given(scenario=solace_scenarios(), depth=st.integers(2, 200), share=st.floats(0.0, 1.0), data=st.data())
def test_a_depth_that_a_queue_never_reached_gives_the_figures_of_a_lower_one(
    scenario: Scenario, depth: int, share: float, data: st.DataObject
) -> None:
    """Each rule of discarding, G-1's window, minimum bursts, eliding, clients that come and go: whatever there is."""
    used = sorted({str(each.queue) for each in scenario.traffic} & set(QUEUES))
    assume(used)
    queues = data.draw(st.lists(st.sampled_from(used), min_size=1, max_size=2, unique=True))
    scenario = replace(scenario, changes=(), warm_up_ns=0)
    search = DepthsOfSearch.of(scenario, [parse_setting(f"max-depth({name})") for name in queues])
    assert [name for _, name in search.queues] == list(queues)
    higher = [depth] * len(queues)
    figures = simulated(scenario, dict(zip(queues, higher, strict=True)))
    marks = {each.queue: each.high_water_mark_work_units for each in figures}
    assume(all(marks.get(name, depth + 1) <= depth for name in queues))
    least = [max(2, marks[name]) for name in queues]
    lower = [round(each + share * (depth - each)) for each in least]
    known = search.result(lower, [(higher, figures)])
    assert known == simulated(scenario, dict(zip(queues, lower, strict=True)))
    below = [marks[queues[0]] - 1, *lower[1:]]
    assert search.result(below, [(higher, figures)]) is None
    assert search.result([depth + 1, *higher[1:]], [(higher, figures)]) is None


def test_what_no_client_received_of_a_durable_queue_keeps_its_depth_of_none() -> None:
    changes = {"horizon": "5ms", "group[desks]/count": "1", "port[p1]/rate": "10 Gbit/s"}
    scenario = apply_overrides(open_scenario("burst", {}, {}), changes)
    search = DepthsOfSearch.of(scenario, [parse_setting("max-depth(D-1)")])
    figures = [each for each in simulated(scenario, {"D-1": 900}) if each.queue == "D-1"]
    shown = [search.result([800], [([900], (replace(each, max_depth_work_units=depth),))])
             for each in figures for depth in (900, 0)]  # fmt: skip
    assert [row[0].max_depth_work_units for row in shown if row is not None] == [800, 0]


@pytest.mark.parametrize(
    ("setting", "changes"),
    [
        ("max-depth(D-1)", {"warm-up": "100ms"}),
        ("min-msg-burst(D-1)", {}),
        ("profile[trading]/queue[D-1]/max-depth=10..2000", {}),
        ("port[p1]/rate=1000000..1000000000", {}),
    ],
    ids=["warm-up", "burst", "one profile", "no depth"],
)
def test_nothing_is_known_where_a_mark_or_a_depth_is_of_a_part(setting: str, changes: dict[str, str]) -> None:
    scenario = apply_overrides(open_scenario("burst", {}, {}), {"horizon": "200ms", **changes})
    assert not DepthsOfSearch.of(scenario, [parse_setting(setting)]).queues


class Counted(Here):
    """Counts what is simulated."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.count = 0

    def run(self, tasks):  # type: ignore[no-untyped-def]
        self.count += len(tasks)
        return super().run(tasks)


def searched(scenario: Scenario, setting: str) -> tuple[Sizing, int]:
    runner = Counted(scenario)
    targets = [parse_target("discards(D-1)=0", tuple(EVERY_MEASURE))]
    return size(scenario, targets, [parse_setting(setting)], confidence=0.95, runner=runner), runner.count


@pytest.mark.slow
def test_a_search_simulates_what_is_open_and_gives_the_same_answer() -> None:
    """The path of the only profile is the same setting, of which nothing is known."""
    changes = {
        "horizon": "60ms",
        "group[desks]/count": "2",
        "traffic[quotes]/on-off/off": "1ms",
        "port[p1]/rate": "10 Mbit/s",
    }
    scenario = apply_overrides(open_scenario("burst", {}, {}), changes)
    quick, few = searched(scenario, "max-depth(D-1)")
    slow, many = searched(scenario, "profile[trading]/queue[D-1]/max-depth=2..262144")
    assert quick.answer is not None
    assert slow.answer is not None
    assert quick.answer.values == slow.answer.values
    assert quick.answer.evidence == slow.answer.evidence
    assert [each.values for each in quick.candidates] == [each.values for each in slow.candidates]
    assert few < many / 2
