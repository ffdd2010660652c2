"""What breaks a rule after `--set` is told with file, line and element, and with what was set."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from qsctl.declared.problems import InvalidFile
from qsctl.errors import InvalidInput
from qsctl.sim.scenario.forms.text import scenario_text
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.places import Places, parts, place_of
from qsctl.sim.scenario.rules.scenario import check_rules
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import read_scenario, ready_scenarios
from qsctl.sim.sweep import Axis, plan_sweep

TEXT = """<scenario name="placed" horizon="10s">
  <port name="p1"/>
  <profile name="a"/>
  <group name="g" port="p1" profile="a">
    <pause start="1s" duration="1s" every="5s"/>
  </group>
  <traffic name="t" to="g">
    <poisson rate="10/s"/>
    <uniform-size minimum="10" maximum="20"/>
  </traffic>
  <change at="2s" path="profile[a]/queue[D-1]/max-depth" value="30"/>
</scenario>
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    (tmp_path / "s.xml").write_text(TEXT, encoding="utf-8")
    return read_scenario(tmp_path / "s.xml")


@pytest.mark.parametrize(
    ("path", "value", "line", "element", "message"),
    [
        ("warm-up", "11s", 1, "scenario[placed]", "warm-up is 11s: nothing is left to observe"),
        ("group[g]/profile", "b", 4, "scenario[placed]/group[g]", "there is no profile 'b'"),
        ("group[g]/pause/duration", "6s", 5, "scenario[placed]/group[g]/pause", "it would begin again before it has"),
        ("traffic[t]/rate", "0/s", 8, "scenario[placed]/traffic[t]/poisson", "the rate is 0: nothing would arrive"),
        ("traffic[t]/minimum", "30", 9, "scenario[placed]/traffic[t]/uniform-size", "the minimum is above the maximum"),
        ("change/at", "20s", 11, "scenario[placed]/change", "the change comes after the end"),
        ("broker/load-factor-clear", "90", 1, "scenario[placed]", "load-factor-clear is above load-factor-set"),
    ],
)  # fmt: skip
def test_a_rule_broken_by_an_override_names_the_element_that_was_changed(
    scenario: Scenario, path: str, value: str, line: int, element: str, message: str
) -> None:
    with pytest.raises(InvalidFile) as error:
        check_rules(apply_overrides(scenario, {path: value}))
    (problem,) = error.value.problems
    assert problem.message.startswith(message)
    assert (Path(problem.file).name, problem.line, problem.path) == ("s.xml", line, element)
    assert f"{path}={value}" in problem.suggestion


def test_a_value_that_cannot_be_names_the_element_s_line(scenario: Scenario) -> None:
    with pytest.raises(InvalidInput, match=r"s\.xml:4: group\[g\]/count: '0' is not a whole"):
        apply_overrides(scenario, {"group[g]/count": "0"})
    with pytest.raises(InvalidInput, match=r"s\.xml:3: profile/queue\[D-1\]/max-depth: '1' is not"):
        apply_overrides(scenario, {"profile/queue[D-1]/max-depth": "1"})


def test_a_point_of_a_sweep_names_them_too(scenario: Scenario) -> None:
    with pytest.raises(InvalidInput, match=r"traffic\[t\]/minimum=30: [\s\S]*s\.xml:9: error: the minimum is above"):
        plan_sweep(scenario, [Axis("traffic[t]/minimum", ("5", "30"))], 1)


def test_a_scenario_made_by_a_program_has_no_places_and_the_same_message(scenario: Scenario) -> None:
    plain = dataclasses.replace(scenario, places=None, warm_up_ns=scenario.horizon_ns)
    with pytest.raises(InvalidInput, match="scenario 'placed': warm-up is 10s"):
        check_rules(plain)


def test_places_are_no_part_of_what_a_scenario_is(scenario: Scenario) -> None:
    assert scenario == dataclasses.replace(scenario, places=None)
    assert scenario_text(scenario) == scenario_text(dataclasses.replace(scenario, places=None))
    assert "places" not in repr(scenario)


@pytest.mark.parametrize("path", ready_scenarios().values(), ids=lambda path: path.stem)
def test_every_part_of_a_ready_scenario_has_a_place_in_its_file(path: Path) -> None:
    scenario = read_scenario(path)
    assert isinstance(scenario.places, Places)
    found = [place_of(scenario, part, scenario.places) for _, part in parts(scenario)]
    assert None not in found
    length = len(path.read_text(encoding="utf-8").splitlines())
    assert all(place is not None and 0 < place.line <= length for place in found if place is not None)
