"""The compiled Solace model against the plain one: equal to the message."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from qsctl.sim.scenario.scenario import Scenario
from tests.example_counts import examples
from tests.sim.compared_solace import (
    compare,
)
from tests.sim.random_scenarios import partitioned_scenarios, solace_scenarios


@settings(max_examples=examples(25))
@given(solace_scenarios())
def test_the_kernel_and_the_plain_model_agree_to_the_message(scenario: Scenario) -> None:
    compare(scenario)


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(partitioned_scenarios())
def test_partitions_that_are_handed_over_agree_to_the_message(scenario: Scenario) -> None:
    compare(scenario)
