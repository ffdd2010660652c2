"""The differing settings of two runs or sweeps, and whether their loads differ.

A difference of figures is due to settings only if the loads are equal; therefore a comparison reports the differing
settings first. Settings are compared by the canonical text of the scenarios. The scenario of a recording is that of a
replay without changes, so that a recording and its replay differ by the changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lxml import etree

from qsctl.endings import TemporaryFolder
from qsctl.errors import QsctlError
from qsctl.eventlog.location import Location
from qsctl.eventlog.run_folder import RUN_FILE, SCENARIO_FILE, SERVICE_FILE
from qsctl.sim.scenario.forms.text import scenario_text
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import read_scenario

_NO_SETTING: Final = ("name", "seed", "replications", "log-level", "description", "replay/recording")
_KEYS: Final = ("name", "to", "at")
_LOAD: Final = ("traffic", "workload", "trace", "group[", "engine", "horizon", "warm-up")
_COUNT: Final = "count"


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A differing setting by its path, with the value of each side; empty where a side has the default."""

    path: str
    a: str
    b: str

    @property
    def is_load(self) -> bool:
        """Return whether the setting belongs to the load: traffic, the number of clients, or the duration."""
        if self.path.startswith("group["):
            return self.path.endswith(f"/{_COUNT}")
        return self.path.startswith(_LOAD)

    def __str__(self) -> str:
        return f"{self.path} {self.a or '(default)'} → {self.b or '(default)'}"


def scenario_in(folder: Location) -> Scenario | None:
    """Return the scenario of a run or sweep folder, for a recording that of its replay; None if it cannot be read."""
    try:
        if not (folder / SCENARIO_FILE).is_file():
            if not (folder / RUN_FILE).is_file():
                return None
            from qsctl.sim.replay.replay import recorded_scenario

            return recorded_scenario(folder)
        with TemporaryFolder() as here:
            for name in (SCENARIO_FILE, SERVICE_FILE):
                if (folder / name).is_file():
                    (here / name).write_bytes((folder / name).read_bytes())
            # The text is canonical, and has neither variables nor references to the environment.
            return read_scenario(here / SCENARIO_FILE, {}, {})
    except (QsctlError, OSError):
        # The file was edited by hand, or its trace was moved.
        return None


def setting_differences(a: Scenario, b: Scenario) -> tuple[SettingDifference, ...]:
    """Return the settings that differ between two scenarios, in the order of their texts."""
    left, right = (dict(_values(etree.fromstring(scenario_text(each).encode()))) for each in (a, b))
    return tuple(
        SettingDifference(path, left.get(path, ""), right.get(path, ""))
        for path in dict.fromkeys((*left, *right))
        if left.get(path) != right.get(path) and path not in _NO_SETTING
    )


def _values(element: etree._Element, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield each attribute of an XML element and its descendants: its path and its value."""
    texts = {str(name): str(value) for name, value in element.attrib.items()}
    key = next((name for name in _KEYS if place and name in texts), None)
    for name, value in texts.items():
        if not name.startswith("{") and name != key:
            yield f"{place}{name}", value
    counts: dict[str, int] = {}
    for child in element:
        tag = str(child.tag)
        counts[tag] = counts.get(tag, 0) + 1
        of_child = {str(name): str(value) for name, value in child.attrib.items()}
        named = next((of_child[name] for name in _KEYS if name in of_child), None)
        number = str(counts[tag]) if len(element.findall(tag)) > 1 else None
        label = named if named is not None else number
        yield from _values(child, f"{place}{tag}/" if label is None else f"{place}{tag}[{label}]/")
