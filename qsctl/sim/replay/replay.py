"""The replay of a recording into a run folder in one call, for `qsctl replay` and for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from qsctl.core.settings import ServiceSettings, queues_by_name
from qsctl.errors import UNREADABLE, Damaged, Interrupted, InvalidInput
from qsctl.eventlog.checked_files import checked_text
from qsctl.eventlog.location import Location
from qsctl.eventlog.run_folder import RunInfo, describe_text, write_run_info
from qsctl.eventlog.schema import LogLevel
from qsctl.sim.replay.difference import ReplayDifference, difference_of
from qsctl.sim.replay.recording import read_recording
from qsctl.sim.replay.settings import changed_service, place_of, scenario_of
from qsctl.sim.run import ReplicationProgress, RunReport, run
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.parts.replay import AnotherRecording
from qsctl.sim.scenario.rules.replay import has_arrivals
from qsctl.sim.scenario.rules.scenario import check_rules
from qsctl.sim.scenario.scenario import Scenario

DIFFERENCE_FILE: Final = "replay.json"
"""Of a run folder: what became of the recording, `ReplayDifference` as JSON."""

CONFIG: Final = "config"
"""Name among the changes of a configuration of its own."""


def with_recordings(scenario: Scenario, folders: Sequence[Location]) -> Scenario:
    """Return a replay of several recordings, one for each repetition, up to the end of the longest one.

    Args:
        scenario: the result of `recorded_scenario` for the first recording.
        folders: the folders of the other recordings.

    Raises:
        NotFound: a folder is not a run.
        InvalidInput: a recording has no arrivals, concerns queues that the service lacks, or equals another one.
    """
    assert scenario.replay is not None
    known = set(queues_by_name(scenario.replay.service))
    horizon_ns = scenario.horizon_ns
    for folder in folders:
        recorded = read_recording(folder)
        unknown = sorted({arrival.queue for arrival in recorded.arrivals} - known)
        if unknown:
            raise InvalidInput(
                f"{folder} has samples of the queue {unknown[0]!r}, which the service of the first recording lacks",
                remedy=f"Name recordings of one service. Its queues are {', '.join(sorted(known))}.",
            )
        horizon_ns = max(horizon_ns, recorded.info.horizon_ns)
    others = tuple(AnotherRecording(place_of(folder)) for folder in folders)
    changed = dataclasses.replace(
        scenario, horizon_ns=horizon_ns, replay=dataclasses.replace(scenario.replay, others=others)
    )
    check_rules(changed)
    return changed


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """A finished replay: its folder with its counters, and its differences from the recording."""

    run: RunReport
    difference: ReplayDifference


def recorded_scenario(
    folder: Location, service: ServiceSettings | None = None, overrides: Mapping[str, str] | None = None
) -> Scenario:
    """Return the scenario that replays a recording.

    Args:
        folder: the folder of the recording.
        service: replaces the recorded service.
        overrides: values of the scenario by their paths, as with `--set`.

    Raises:
        NotFound: the folder is not a run.
        InvalidInput: it has no arrivals to replay, or a value is not valid.
        UsageError: a path names no setting.
    """
    recorded = read_recording(folder)
    plain = scenario_of(folder, recorded.info, service or recorded.service)
    changed = apply_overrides(plain, overrides or {})
    check_rules(changed)
    assert changed.replay is not None
    # The run folder's own service is the changed one: it can be replayed in its turn.
    effective = dataclasses.replace(changed.replay, service=changed_service(changed.replay))
    return dataclasses.replace(changed, replay=effective)


def replay(
    folder: Location,
    out: Location,
    *,
    service: ServiceSettings | None = None,
    config: str = "",
    overrides: Mapping[str, str] | None = None,
    seed: int | None = None,
    replications: int | None = None,
    progress: Callable[[ReplicationProgress], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    workers: int = 1,
    reproduce: str = "",
) -> ReplayReport:
    """Replay a recording into a run folder, and compare the outcome of every sample.

    Args:
        folder: the folder of the recording.
        out: the run folder, which must be new or empty.
        service: replaces the recorded service; `config` is its name among the changes.
        config: see `service`.
        overrides: values of the scenario by their paths.
        seed: of the draws where the replay departs from the recording.
        replications: runs with draws of their own; the first is compared.
        progress: called about ten times a second.
        stop: called as often; True ends the replay early.
        workers: processes for replications.
        reproduce: the command that makes this run again.

    Raises:
        NotFound: the folder is not a run.
        InvalidInput: it has no arrivals to replay, or a value is not valid.
        UsageError: a path names no setting.
        Interrupted: `stop` ended it before the first arrival; later, what there is is compared.
    """
    changes = ({CONFIG: config or "another one"} if service is not None else {}) | dict(overrides or {})
    scenario = recorded_scenario(folder, service, overrides)
    report = run(
        dataclasses.replace(scenario, log_level=LogLevel.EVENTS),
        out,
        seed=seed,
        replications=replications,
        progress=progress,
        stop=stop,
        workers=workers,
        reproduce=reproduce,
        overrides=changes,
    )
    if not has_arrivals(report.info):
        raise Interrupted(f"the replay was ended before the first arrival: {out} has nothing that can be compared")
    difference = difference_of(read_recording(folder), read_recording(out), place_of(folder), changes)
    info = _with_difference(out, report.info, difference)
    return ReplayReport(dataclasses.replace(report, info=info), difference)


def difference_in(folder: Location, info: RunInfo) -> ReplayDifference | None:
    """Return the difference stored in a replay's folder; None where the run is not a replay.

    Raises:
        Damaged: the file is missing or was changed.
    """
    if DIFFERENCE_FILE not in info.files:
        return None
    try:
        return msgspec.json.decode(checked_text(folder, info, DIFFERENCE_FILE), type=ReplayDifference)
    except UNREADABLE as error:
        raise Damaged(f"{folder / DIFFERENCE_FILE} is damaged: {error}") from None


def _with_difference(folder: Location, info: RunInfo, difference: ReplayDifference) -> RunInfo:
    text = msgspec.json.format(msgspec.json.encode(difference), indent=2) + b"\n"
    (folder / DIFFERENCE_FILE).write_bytes(text)
    changed = msgspec.structs.replace(info, files=info.files | {DIFFERENCE_FILE: describe_text(text)})
    write_run_info(folder, changed)
    return changed
