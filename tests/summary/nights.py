"""Recordings of nights for tests: simulated runs with the times of day that a service's recordings have."""

from __future__ import annotations

from pathlib import Path

import msgspec

from qsctl.eventlog.run_folder import read_run_info, write_run_info
from qsctl.instant import SECOND_NS
from qsctl.shipped import shipped
from qsctl.sim.run import run
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.xml import find_scenario, read_scenario

DAY_NS = 24 * 3600 * SECOND_NS


def record_night(folder: Path, number: int, *, depth: int = 2000, days: int = 7) -> Path:
    """Write the run of a night, each with other random numbers, some days after the one before."""
    recording = read_run_info(Path(str(shipped("fixtures/recordings/monday")))).recording
    assert recording is not None
    settings = {"horizon": "1s", "profile[trading]/queue[D-1]/max-depth": str(depth)}
    run(apply_overrides(read_scenario(find_scenario("burst")), settings), folder, seed=number + 1)
    info = read_run_info(folder)
    begun = msgspec.structs.replace(recording, started_at_ns=recording.started_at_ns + number * days * DAY_NS)
    write_run_info(folder, msgspec.structs.replace(info, run_id=f"night-{number:03}", recording=begun))
    return folder
