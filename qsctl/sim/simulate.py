"""`qsctl.simulate`: simulate a scenario, given by name, into a run folder in one call, for programs and notebooks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from os import PathLike

from qsctl.errors import UsageError
from qsctl.eventlog.location import Location, location
from qsctl.eventlog.run_folder import new_folder
from qsctl.eventlog.schema import LogLevel
from qsctl.sim.run import ReplicationProgress, RunReport, run
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.rules.scenario import check_rules
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario


def simulate(
    scenario: str | PathLike[str] | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    seed: int | None = None,
    replications: int | None = None,
    level: str | None = None,
    out: Location | str | None = None,
    workers: int = 1,
    progress: Callable[[ReplicationProgress], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> RunReport:
    """Simulate a scenario into a run folder, as `qsctl simulate` does; return its folder and its counters.

    The same scenario, settings and seed give the same run, with any number of workers.

    Args:
        scenario: a file, or the name of a ready scenario (`qsctl simulate --list`); None: the ready one `burst`.
        settings: values by their paths, as with `--set`: {"horizon": "2s", "group[desks]/count": "40"}.
        variables: values of `$(NAME)` in the file, as with `--var`.
        seed: of the random numbers; None: the scenario's.
        replications: None: the scenario's.
        level: detail of the event log, counters, messages or events; None: the scenario's.
        out: the run folder, which must be new or empty, by path or URI; None: a new one in `qsctl-runs`.
        workers: number of processors to use: processes for replications, and, where workers exceed replications,
            threads for the independent ports of a broker; 1 uses only this process and thread.
        progress: called about ten times a second.
        stop: called as often; true ends the run early, and the folder is marked as partial.

    Returns:
        `folder`; `info`, with the seed, status and fingerprint of the run; `counters`, an Arrow table with one row for
        each replication, client and queue. `qsctl.summary.summarize` computes the rest from the folder.

    Raises:
        NotFound: the scenario does not exist.
        InvalidInput: the scenario, a value set or `out` is not valid; nothing is left behind then.
        UsageError: a path of `settings` names no setting, or `level` is not a level.
    """
    read = open_scenario(scenario, variables or {}, settings or {})
    check_rules(read)
    return run(
        read,
        location(out) if out is not None else new_folder(read.name),
        seed=seed,
        replications=replications,
        level=None if level is None else _level(level),
        progress=progress,
        stop=stop,
        workers=workers,
        overrides=dict(settings or {}),
    )


def _level(name: str) -> LogLevel:
    try:
        return LogLevel(name)
    except ValueError:
        raise UsageError(f"level {name!r} is none", remedy=f"Give one of {', '.join(LogLevel)}.") from None


def open_scenario(
    name: str | PathLike[str] | None,
    variables: Mapping[str, str],
    settings: Mapping[str, str],
    seed: int | None = None,
) -> Scenario:
    """Return a scenario by file or name, with variables, settings and seed applied.

    Raises:
        NotFound: the scenario does not exist.
        InvalidInput: the file, or a value set, is not valid.
    """
    found = find_scenario(None if name is None else str(name))
    scenario = apply_overrides(read_scenario(found, dict(variables)), settings)
    return scenario if seed is None else dataclasses.replace(scenario, seed=seed)
