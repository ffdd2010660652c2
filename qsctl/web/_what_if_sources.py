"""Sources of the view "What if": built-in scenarios, files, client profiles, recordings and brokers' presets.

A file or a local recording is read again when it has changed. A request names a source of this list; it never contains
a path.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from qsctl.cli.simulation.options.command_line import command_line
from qsctl.errors import NotFound
from qsctl.eventlog.run_folder import RUN_FILE
from qsctl.instant import SECOND_NS, format_duration
from qsctl.sim.brokers.kinds import BrokerKind
from qsctl.sim.scenario.scenario import Model, Scenario
from qsctl.web._what_if_answerer import expected_messages

COMPILED: Final = frozenset({Model.SOLACE, Model.TIBCO, Model.QUEUE})
"""Models whose kernels are compiled: they simulate a million messages a second."""
_MESSAGES_COMPILED: Final = 400_000
_MESSAGES_PLAIN: Final = 3_000
_WARM_UPS: Final = 3
"""Least ratio of the horizon that the page chooses to the warm-up."""


class SourceKind(StrEnum):
    """The kind of a source."""

    READY = "ready scenario"
    FILE = "scenario file"
    PROFILE = "client profile"
    RECORDING = "recording"
    PRESET = "broker preset"


@dataclass(slots=True)
class Source:
    """A source of the view; `argument` and `options` are those of a command that uses it."""

    name: str
    kind: SourceKind
    read: Callable[[], Scenario]
    argument: str | None
    options: tuple[tuple[str, str], ...] = ()
    stamp: Callable[[], object] = lambda: None
    """Returns a value that changes when the source must be read again."""
    _known: tuple[object, Scenario] | None = field(default=None, repr=False)

    def scenario(self) -> Scenario:
        """Return the scenario of the source, read again if its file has changed.

        Raises:
            QsctlError: the source cannot be read.
        """
        stamp = self.stamp()
        if self._known is None or self._known[0] != stamp:
            self._known = (stamp, self.read())
        return self._known[1]

    def command(self, name: str, options: Sequence[tuple[str, object]], settings: Mapping[str, str]) -> str:
        """Return a command line that uses this source; for a recording, `replay` replaces `simulate`."""
        if self.kind is SourceKind.RECORDING and name != "simulate":
            return command_line(name, None, [("--from", self.argument), *options], {}, settings)
        own = "replay" if self.kind is SourceKind.RECORDING else name
        return command_line(own, self.argument, [*self.options, *options], {}, settings)


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a server by name, in the order of the page."""

    by_name: Mapping[str, Source]

    def find(self, name: str) -> Source:
        """Return a source by name.

        Raises:
            NotFound: no source has this name.
        """
        found = self.by_name.get(name)
        if found is None:
            raise NotFound(
                f"there is no source {name[:80]!r}",
                remedy="Choose one of the list, or name its file on the command line.",
            )
        return found


def sources_of(scenarios: Sequence[Path] = (), profiles: Sequence[str] = (), recordings: Sequence[str] = ()) -> Sources:
    """Return the sources: those of the command line first, then built-in scenarios and presets.

    Args:
        scenarios: scenario files.
        profiles: files of client profiles, in the syntax of `--client-profile`; each is applied to the first of
            `scenarios`, or to the built-in scenario burst.
        recordings: run folders of recordings.
    """
    from qsctl.sim.scenario.xml import ready_scenarios

    found = [_of_file(path) for path in scenarios]
    found += [_of_profile(option, str(scenarios[0]) if scenarios else "burst") for option in profiles]
    found += [_of_recording(place) for place in recordings]
    ready = sorted(ready_scenarios(), key=lambda name: name != "burst")
    found += [_of_ready(name) for name in ready]
    found += [_of_preset(kind) for kind in BrokerKind]
    by_name: dict[str, Source] = {}
    for each in found:
        by_name.setdefault(each.name, each)
    return Sources(by_name)


def _of_ready(name: str) -> Source:
    from qsctl.sim.simulate import open_scenario

    return Source(name, SourceKind.READY, lambda: open_scenario(name, {}, {}), name)


def _of_file(path: Path) -> Source:
    from qsctl.sim.simulate import open_scenario

    return Source(str(path), SourceKind.FILE, lambda: open_scenario(path, {}, {}), str(path), (), lambda: _stamp(path))


def _of_profile(option: str, scenario: str) -> Source:
    from qsctl.cli.profiles.options import file_and_name
    from qsctl.cli.simulation.options.profile_overlay import with_client_profile
    from qsctl.sim.simulate import open_scenario

    file, _ = file_and_name(option.rpartition("=")[2])
    return Source(
        f"{option} in {scenario}", SourceKind.PROFILE,
        lambda: with_client_profile(open_scenario(scenario, {}, {}), option)[0], scenario,
        (("--client-profile", option),), lambda: _stamp(Path(file)),
    )  # fmt: skip


def _of_recording(place: str) -> Source:
    def read() -> Scenario:
        from qsctl.eventlog.location import location
        from qsctl.sim.replay.replay import recorded_scenario

        return recorded_scenario(location(place))

    return Source(f"recording {place}", SourceKind.RECORDING, read, place, (), lambda: _stamp(Path(place) / RUN_FILE))


def _of_preset(kind: BrokerKind) -> Source:
    def read() -> Scenario:
        from qsctl.cli.simulation.options.foreign_queue import read_in
        from qsctl.sim.brokers.draft import draft_of

        with tempfile.TemporaryDirectory() as folder:
            found = read_in(draft_of(kind, {}).scenario_text(), Path(folder))
        return replace(found, places=None)  # the lines refer to a file that no longer exists

    return Source(f"preset {kind}", SourceKind.PRESET, read, f"{kind}.xml")


def _stamp(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def usual_settings(scenario: Scenario) -> dict[str, str]:
    """Return the initial settings of the page: a horizon short enough for results within an interactive delay."""
    if scenario.replay is not None:
        return {}
    most = _MESSAGES_COMPILED if scenario.model in COMPILED else _MESSAGES_PLAIN
    expected = expected_messages(scenario)
    if expected is None and scenario.engine is not None:
        from qsctl.sim.site.flows import mean_rate

        inbound = [each.inbound for process in scenario.engine.processes for each in process.threads]
        rates = [mean_rate(each.arrivals) or 0.0 for each in inbound if each is not None]
        expected = sum(rates) * scenario.horizon_ns / SECOND_NS
    if not expected or expected <= most:
        return {}
    wanted = max(scenario.horizon_ns * most / expected, _WARM_UPS * scenario.warm_up_ns)
    horizon = _round_down(wanted)
    return {"horizon": format_duration(horizon)} if scenario.warm_up_ns < horizon < scenario.horizon_ns else {}


def _round_down(duration_ns: float) -> int:
    """Return the largest of 1, 2, 5, 10, … that is not above a number."""
    power: int = 10 ** (len(str(int(duration_ns))) - 1)
    return next(step * power for step in (5, 2, 1) if step * power <= duration_ns)
