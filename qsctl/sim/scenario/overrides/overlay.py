"""A broker's client profile in place of a profile of a scenario: the profile that it replaces, and the changed values.

Decides which settings of a client profile are simulated (the column `scenario` of the settings table). Weights, the
transmit queue and the admission remain those of the scenario.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from qsctl.errors import InvalidInput, UsageError
from qsctl.profiles.client_profile import ClientProfile
from qsctl.profiles.formats.xml import scenario_text
from qsctl.profiles.ranges import SETTINGS
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import Model, Scenario


@dataclass(frozen=True, slots=True)
class Overlaid:
    """A scenario with a client profile's values; `overrides` are the changed ones, as `--set` accepts them."""

    scenario: Scenario
    profile: str
    overrides: Mapping[str, str]


def overlay(scenario: Scenario, profile: ClientProfile, target: str | None = None) -> Overlaid:
    """Return a copy of the scenario in which one profile has the values of a broker's client profile.

    Args:
        scenario: of the Solace model.
        profile: the broker's.
        target: the scenario's profile; None: the one of the same name, else the only one.

    Raises:
        InvalidInput: the scenario is of another model, and so has no such profile.
        UsageError: the profile does not exist, or several could be meant.
    """
    if scenario.model is not Model.SOLACE:
        raise InvalidInput(
            f"scenario {scenario.name!r} is of model {scenario.model}: a client profile means nothing there",
            remedy="Take a scenario of model solace.",
        )
    name = _target(scenario, profile.name, target)
    overrides: dict[str, str] = {}
    for setting in SETTINGS:
        if setting.scenario:
            path = f"profile[{name}]/{setting.scenario}"
            change = {path: scenario_text(profile, setting)}
            changed = apply_overrides(scenario, change)
            if changed != scenario:
                scenario, overrides = changed, overrides | change
    return Overlaid(scenario, name, overrides)


def _target(scenario: Scenario, name: str, target: str | None) -> str:
    names = [profile.name for profile in scenario.profiles]
    wanted = target or (name if name in names else names[0] if len(names) == 1 else "")
    if wanted in names:
        return wanted
    there = ", ".join(names) or "none"
    if target is not None:
        raise UsageError(f"scenario {scenario.name!r} has no profile {target!r}", remedy=f"It has {there}.")
    raise UsageError(
        f"scenario {scenario.name!r} has {len(names)} profiles and none is named {name!r}: name the one that is meant",
        remedy=f"Write --client-profile PROFILE=FILE with one of: {there}.",
    )
