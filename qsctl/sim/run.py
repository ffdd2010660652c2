"""A run: all repetitions of a scenario in one folder, simulated by the given number of processes and threads.

Decides seeds, the folder's status and its fingerprint. The same scenario and seed write the same bytes with any number
of workers; nothing depends on the clock.
"""

from __future__ import annotations

import dataclasses
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from qsctl import __version__
from qsctl.errors import InvalidInput
from qsctl.eventlog.location import Location, remove_tree
from qsctl.eventlog.outcomes import DISCARDS, column_of
from qsctl.eventlog.run_folder import (
    SCENARIO_FILE,
    SERVICE_FILE,
    FileInfo,
    RunInfo,
    RunStatus,
    claim_folder,
    describe_text,
    fingerprint_of,
    release_claim,
    write_run_info,
)
from qsctl.eventlog.schema import LogLevel
from qsctl.sim.model import CompiledModel
from qsctl.sim.replication import ReplicationOutcome, ReplicationProgress, simulate_counters, simulate_replication
from qsctl.sim.scenario.forms.text import scenario_digest, scenario_text
from qsctl.sim.scenario.rules.scenario import check_rules
from qsctl.sim.scenario.scenario import Scenario

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ReplicationProgress", "RunReport", "run", "simulate_counters"]

NOTE_SHARE = 20
"""After each writing of `run.json` the next one waits this many times as long as it lasted."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """A finished run: its folder, info and counters; `counters` has a column `replication` after `run_id`."""

    folder: Location
    info: RunInfo
    counters: pa.Table
    compile_s: float = 0.0
    """Compile time in seconds of the process that compiled the longest."""


def run(
    scenario: Scenario,
    folder: Location,
    *,
    seed: int | None = None,
    replications: int | None = None,
    level: LogLevel | None = None,
    progress: Callable[[ReplicationProgress], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    workers: int = 1,
    threads: int | None = None,
    reproduce: str = "",
    overrides: Mapping[str, str] | None = None,
    model: CompiledModel | None = None,
) -> RunReport:
    """Simulate a scenario into a new folder.

    Args:
        scenario: the scenario to simulate.
        folder: the run folder; created, or must be empty.
        seed: overrides the scenario's seed.
        replications: overrides the scenario's number of repetitions.
        level: overrides the scenario's log level.
        progress: called about ten times a second with a repetition's progress.
        stop: called as often; True ends the run early, as Ctrl-C does: the folder is readable and marked as partial.
        workers: number of processes for repetitions; 1 runs them in this process.
        threads: number of threads of each repetition, for ports that are independent; None: workers ÷ replications, at
            least 1.
        reproduce: the command that reproduces this run; by default the one that runs the folder's own scenario file.
        overrides: the settings overridden in the scenario, recorded in the folder.
        model: replaces the scenario's model, in this process.

    Raises:
        InvalidInput: the folder is not empty, or the scenario cannot be simulated; no file is left behind then.
    """
    scenario = dataclasses.replace(
        scenario,
        seed=scenario.seed if seed is None else seed,
        replications=scenario.replications if replications is None else replications,
        log_level=str(level or scenario.log_level),
    )
    if model is None:
        check_rules(scenario)
    claim_folder(folder)
    info = RunInfo(
        run_id=scenario_digest(scenario),
        status=RunStatus.RUNNING,
        scenario=scenario.name,
        model=str(scenario.model),
        seed=scenario.seed,
        log_level=str(scenario.log_level),
        horizon_ns=scenario.horizon_ns,
        warm_up_ns=scenario.warm_up_ns,
        replications=scenario.replications,
        version=__version__,
        reproduce=reproduce or _reproduce(folder),
        overrides=dict(overrides or {}),
    )
    info = msgspec.structs.replace(info, files=_write_texts(folder, scenario))
    write_run_info(folder, info)
    release_claim(folder)
    outcomes: list[ReplicationOutcome] = []
    next_note_at = 0.0

    def note(outcome: ReplicationOutcome) -> None:
        """Record an outcome; the list of all outcomes is not rewritten for each of thousands of short repetitions."""
        nonlocal next_note_at
        outcomes.append(outcome)
        begins_at = time.monotonic()
        if begins_at >= next_note_at:
            write_run_info(folder, _with_outcomes(info, outcomes))
            ends_at = time.monotonic()
            next_note_at = ends_at + NOTE_SHARE * (ends_at - begins_at)

    threads = threads or max(1, workers // scenario.replications)
    try:
        if workers > 1 and scenario.replications > 1 and model is None:
            from qsctl.sim._workers import simulate_in_workers

            simulate_in_workers(scenario, folder, info.run_id, workers, note, progress, stop, threads)
        else:
            for replication in range(scenario.replications):
                if outcomes and (stop() or not outcomes[-1].info.complete):
                    break
                note(
                    simulate_replication(
                        scenario,
                        folder,
                        info.run_id,
                        replication,
                        progress=progress,
                        stop=stop,
                        model=model,
                        threads=threads,
                    )
                )
    except InvalidInput:
        if not outcomes:
            remove_tree(folder)  # it was made, or empty: a scenario that cannot run leaves nothing behind
        raise
    return _finish(folder, scenario, info, outcomes)


def _write_texts(folder: Location, scenario: Scenario) -> dict[str, FileInfo]:
    """Write the scenario and its input files to the folder beside the log; return the files by name."""
    texts = {SCENARIO_FILE: scenario_text(scenario).encode("utf-8")}
    if scenario.service is not None:
        service = msgspec.json.encode(scenario.service, order="deterministic")
        texts[SERVICE_FILE] = msgspec.json.format(service, indent=2) + b"\n"
    for name, text in texts.items():
        (folder / name).write_bytes(text)
    return {name: describe_text(text) for name, text in texts.items()}


def _reproduce(folder: Location) -> str:
    return f"qsctl simulate {shlex.quote(str(folder / SCENARIO_FILE))}"


def _with_outcomes(info: RunInfo, outcomes: list[ReplicationOutcome]) -> RunInfo:
    in_order = sorted(outcomes, key=lambda each: each.info.replication)
    files = dict(info.files)
    for each in in_order:
        files |= each.files
    return msgspec.structs.replace(info, done=tuple(each.info for each in in_order), files=files)


def _finish(folder: Location, scenario: Scenario, info: RunInfo, outcomes: list[ReplicationOutcome]) -> RunReport:
    """Merge the outcomes, write the tables of names and the fingerprint, and record whether the run is complete."""
    from qsctl.eventlog.names import write_names
    from qsctl.eventlog.reader import counters_of
    from qsctl.sim.run_names import names_of_run

    info = _with_outcomes(info, outcomes)
    whole = len(info.done) == info.replications and all(each.complete for each in info.done)
    counters = counters_of(folder, info)
    info = msgspec.structs.replace(
        info,
        status=RunStatus.COMPLETE if whole else RunStatus.PARTIAL,
        arrived_messages=_total(counters, "arrived_messages"),
        delivered_messages=_total(counters, "delivered_messages"),
        discarded_messages=sum(_total(counters, column_of(outcome)) for outcome in DISCARDS),
    )
    files = info.files | write_names(folder, names_of_run(folder, scenario, info, counters))
    info = msgspec.structs.replace(info, files=files, fingerprint=fingerprint_of(files))
    write_run_info(folder, info)
    return RunReport(folder, info, counters, max((each.compile_s for each in outcomes), default=0.0))


def _total(counters: pa.Table, column: str) -> int:
    # Not pyarrow.compute: its import takes longer than adding a few thousand numbers.
    return sum(counters[column].to_pylist())
