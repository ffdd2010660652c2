"""The names of a simulated integration engine's threads, in the order of their numbers in a log [CLOVERLEAF]."""

from __future__ import annotations

from qsctl.sim.scenario.scenario import Scenario


def client_names(scenario: Scenario) -> list[str]:
    """Return the threads by number: for each process its protocol threads, then its translation thread."""
    assert scenario.engine is not None
    return [
        name
        for process in scenario.engine.processes
        for name in (*(thread.name for thread in process.threads), f"{process.name}_xlate")
    ]
