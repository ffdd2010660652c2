"""What the commands that simulate many times read: a scenario with its changes, and a confidence."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.sim.scenario.scenario import Scenario


def open_scenario(
    name: str, variables: Mapping[str, str], assignments: Mapping[str, str], seed: int | None = None
) -> Scenario:
    """A scenario by file or name, with `--var`, `--set` and `--seed` applied.

    Raises:
        NotFound: there is no such scenario.
        InvalidInput: the file, or a value set, is not valid.
    """
    from qsctl.sim.scenario.overrides import apply_overrides
    from qsctl.sim.scenario.xml import find_scenario, read_scenario

    scenario = apply_overrides(read_scenario(find_scenario(name), variables), assignments)
    return scenario if seed is None else dataclasses.replace(scenario, seed=seed)


def checked_confidence(confidence: float) -> float:
    """The confidence, when it is one.

    Raises:
        UsageError: it is not between 0 and 1.
    """
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"--confidence {confidence} is not between 0 and 1", remedy="Write it as in 0.95.")
    return confidence
