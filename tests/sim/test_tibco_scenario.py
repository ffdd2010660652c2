"""What a TIBCO scenario knows: one queue with a depth that is given, and no setting of another broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from qsctl.errors import InvalidInput, UsageError
from qsctl.sim.scenario import scenario as s
from qsctl.sim.scenario.forms.text import scenario_text
from qsctl.sim.scenario.overrides.set_values import apply_overrides, paths_of
from qsctl.sim.scenario.xml import read_scenario
from tests.sim.scenario_files import problems_of, written

TIBCO = """<scenario name="good" model="tibco" horizon="2s">
  <port name="p1"/>
  <profile name="default"><queue name="egress" max-depth="500"/></profile>
  <group name="web" port="p1" profile="default"/>
  <traffic name="a" to="web"><poisson rate="2 k/s"/><size bytes="1 KB"/></traffic>
  <change at="1s" path="profile[default]/queue[egress]/max-depth" value="100"/>
</scenario>
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (' max-depth="500"', "", 3, "attribute 'max-depth' is missing"),
        ('<queue name="egress" max-depth="500"/>', "", 3, "gives its queue no max-depth"),
        ('max-depth="500"', 'max-depth="500" weight="1"', 3, "'weight' means nothing in a tibco scenario"),
        ('<profile name="default">', '<profile name="default" scheduler="strict">', 3, "'scheduler' means nothing"),
        ("</profile>", '<eliding enabled="false"/></profile>', 3, "<eliding> means nothing in a tibco scenario"),
        ("</group>", "", 0, ""),
        ('to="web"', 'to="web" cos="1"', 5, "'cos' means nothing in a tibco scenario"),
        ('to="web"', 'to="web" queue="D-1"', 5, "queue is 'D-1'"),
        ("queue[egress]/max-depth", "queue[egress]/weight", 6, "which a tibco client does not have"),
        ("queue[egress]", "queue[D-1]", 6, "there is no queue 'D-1', but egress"),
        ("</scenario>", '<endpoint to="web"/></scenario>', 7, "<endpoint> means nothing in a tibco scenario"),
        ("</scenario>", '<broker egress-buffer="1 MB"/></scenario>', 7, "<broker> means nothing in a tibco scenario"),
    ],
)  # fmt: skip
def test_a_tibco_scenario_refuses_what_the_model_does_not_know(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    text = TIBCO.replace(old, new)
    if line == 0:
        assert read_scenario(written(tmp_path, text), {}, {}).profiles[0].queues == {s.Queue.D_1: s.QueueLimits(500, 0)}
    else:
        found = problems_of(tmp_path, text)
        assert [(at, True) for at, said in found if message in said] == [(line, True)], found


def test_the_minimum_burst_is_read_and_changed(tmp_path: Path) -> None:
    text = TIBCO.replace('max-depth="500"', 'max-depth="500" min-msg-burst="3"')
    read = read_scenario(written(tmp_path, text), {}, {})
    assert read.profiles[0].queues == {s.Queue.D_1: s.QueueLimits(500, 3)}
    changed = apply_overrides(read, {"profile[default]/queue[egress]/min-msg-burst": "9"})
    assert changed.profiles[0].queues[s.Queue.D_1].min_msg_burst == 9
    again = tmp_path / "again"
    again.mkdir()
    assert read_scenario(written(again, scenario_text(changed)), {}, {}).profiles == changed.profiles


@pytest.mark.parametrize("path", ["weight"])
def test_an_override_of_what_the_model_does_not_know_is_refused(tmp_path: Path, path: str) -> None:
    read = read_scenario(written(tmp_path, TIBCO), {}, {})
    assert f"profile[default]/queue[egress]/{path}" not in paths_of(read)
    with pytest.raises(InvalidInput, match="means nothing in a tibco scenario"):
        apply_overrides(read, {f"profile[default]/queue[egress]/{path}": "9"})
    assert apply_overrides(read, {"profile[default]/queue[egress]/max-depth": "9"}).profiles[0].queues[
        s.Queue.D_1
    ] == s.QueueLimits(9, 0)
    with pytest.raises(UsageError, match=r"has no queue\[D-1\]"):
        apply_overrides(read, {"profile[default]/queue[D-1]/max-depth": "9"})
