"""The scenarios that come with qsctl, for the option `--list` of the commands that run them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qsctl.cli.simulation.results.simulate import ReadyScenario, ReadyScenarios

if TYPE_CHECKING:
    from qsctl.sim.scenario.scenario import Model


def ready_of_model(model: Model | None, command: str) -> ReadyScenarios:
    """Return the ready scenarios of a model (None: of all), with the command that runs one."""
    from qsctl.sim.scenario.xml import read_scenario, ready_scenarios

    found = []
    for name, path in ready_scenarios().items():
        read = read_scenario(path)
        if model is None or read.model is model:
            found.append(ReadyScenario(name, str(read.model), read.description, str(path)))
    return ReadyScenarios(tuple(found), command)
