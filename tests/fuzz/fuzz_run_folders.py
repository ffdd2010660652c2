"""Folders of runs and sweeps with files changed at random: each reader gives the true figures, or a declared error.

The first byte of an input chooses the reader, the rest is a list of edits, each of one file. Where the first byte is
odd, `run.json` and `sweep.json` get the seal that fits what they now hold, as if somebody had written them on purpose:
then the figures may differ, but the errors are the declared ones still.
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from qsctl.errors import Damaged, NotFound
from qsctl.eventlog import run_folder
from qsctl.eventlog.checked_files import checked_text
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.run_folder import ReplicationInfo, RunInfo, RunStatus, describe_text, fingerprint_of
from qsctl.eventlog.writer import ReplicationWriter
from qsctl.sim.figures import Figures
from qsctl.sim.model import EVENT_NAMES, EVENT_ROW, LOG_ROW
from qsctl.sim.scenario.scenario import ClientGroup, PoissonArrivals, Port, Profile, Scenario, Traffic
from qsctl.sim.sweep import parse_axes, plan_sweep
from qsctl.summary.comparison.compare import read_figures
from qsctl.summary.recorded_run import holding_of, marks_of, read_run
from qsctl.summary.sweeps import sweep_folder
from tests.fuzz.target import MEMORY
from tests.summary.written_sweep import write_results

DICTIONARY = (
    b"complete", b"running", b'"done"', b'"files"', b"replication=1", b"part-00001", b"1e400", b"-1", b"null", b"[]",
)  # fmt: skip

EDITS = 8
"""An edit: operation, file, other file, place (2 bytes), length, two bytes of content."""

_temporary = tempfile.TemporaryDirectory(prefix="qsctl-fuzz-run-", dir=MEMORY)


def one_input(data: bytes) -> None:
    folder, files = _made()
    truth = _truth()
    choice, edits = (data[0] if data else 0), data[1:]
    name = list(READERS)[(choice >> 1) % len(READERS)]
    names = sorted(files)
    for at in range(0, min(len(edits), 16 * EDITS), EDITS):
        _edit(folder, names, edits[at : at + EDITS].ljust(EDITS, b"\0"), edits[at + EDITS :])
    try:
        is_forged = bool(choice & 1) and _seal_again(folder)
        try:
            found = READERS[name](folder)
        except (Damaged, NotFound) as error:
            assert error.remedy or isinstance(error, NotFound), error.message
        else:
            assert is_forged or found == truth[name], f"{name} gives other figures without an error"
    finally:
        _restore(folder, files)


def _edit(folder: Path, names: list[str], edit: bytes, rest: bytes) -> None:
    operation, one, other, high, low, length, first, second = edit
    path, source = folder / names[one % len(names)], folder / names[other % len(names)]
    if not path.exists():
        return
    content = bytearray(path.read_bytes())
    place = ((high << 8) | low) % (len(content) + 1)
    match operation % 9:
        case 0:
            if content:
                content[place % len(content)] ^= 1 << length % 8
        case 1:
            del content[place:]
        case 2:
            content[place : place + length] = rest[: length or 1]
        case 3:
            content[place:place] = bytes((first, second))
        case 4:
            del content[place : place + length]
        case 5:
            path.unlink()
            return
        case 6:
            content = bytearray(source.read_bytes()) if source.exists() else content
        case 7:
            path = path.with_name(("part-00001.parquet", "copy.parquet", ".hidden.parquet", "x.tmp")[length % 4])
        case _:
            if path.name.endswith(".json"):
                content = bytearray(rest)
    path.write_bytes(content)


def _seal_again(folder: Path) -> bool:
    """Whether a document got a seal that fits it."""
    run, sweep, done = folder / "run/run.json", folder / "sweep/sweep.json", False
    try:
        info = msgspec.json.decode(run.read_bytes(), type=RunInfo)
        run_folder.write_run_info(run.parent, msgspec.structs.replace(info, seal=""))
        done = True
    except (OSError, msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        document = json.loads(sweep.read_bytes())
        if isinstance(document, dict):
            sweep_folder._write_document(sweep.parent, document)
            done = True
    except (OSError, ValueError, RecursionError):
        pass
    return done


def _summary(folder: Path) -> Any:
    """What `summarize` reads before Spark."""
    run = read_run(folder / "run")
    marks = marks_of(run).to_pydict()
    return (run.horizon_ns, run.warm_up_ns, run.message_rows, run.replications), marks, holding_of(run)


READERS: dict[str, Callable[[Path], Any]] = {
    "messages": lambda folder: [batch.to_pydict() for batch in open_run(folder / "run").messages()],
    "events": lambda folder: [batch.to_pydict() for batch in open_run(folder / "run").events()],
    "counters": lambda folder: open_run(folder / "run").counters().to_pydict(),
    "scenario": lambda folder: checked_text(folder / "run", open_run(folder / "run").info, "scenario.xml"),
    "compare": lambda folder: read_figures(folder / "run"),
    "summary": _summary,
    "sweep": lambda folder: read_figures(folder / "sweep"),
    "sweep's scenario": lambda folder: sweep_folder.sweep_scenario(
        folder / "sweep", sweep_folder.read_sweep(folder / "sweep")
    ),
}


@functools.cache
def _made() -> tuple[Path, dict[str, bytes]]:
    """A folder with a run of two replications and a sweep of two points, and the content of each file."""
    folder = Path(_temporary.name)
    _make_run(folder / "run")
    _make_sweep(folder / "sweep")
    return folder, {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@functools.cache
def _truth() -> dict[str, Any]:
    folder, _ = _made()
    return {name: reader(folder) for name, reader in READERS.items()}


def _restore(folder: Path, files: dict[str, bytes]) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and str(path.relative_to(folder)) not in files:
            path.unlink()
    for name, content in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


def _make_run(folder: Path) -> None:
    folder.mkdir()
    (folder / "scenario.xml").write_bytes(b"<scenario/>\n")
    files = {"scenario.xml": describe_text(b"<scenario/>\n")}
    done = []
    for replication in range(2):
        count = 20 + replication
        rows, events = np.zeros(count, LOG_ROW), np.zeros(3, EVENT_ROW)
        rows["enqueued_ns"] = np.arange(count) * 10
        rows["wait_ns"] = np.arange(count)
        rows["size_bytes"] = 100
        with ReplicationWriter(folder, replication, "run", ["D-1"], EVENT_NAMES) as writer:
            writer.messages(rows)
            writer.events(events)
            zeros = run_columns()
            writer.counters(
                zeros | {"client": ["c"], "queue": ["D-1"], "delivered_messages": [count],
                         "histogram_bucket": [[1]], "histogram_count": [[count]]}
            )  # fmt: skip
        files |= writer.files
        done.append(
            ReplicationInfo(
                replication=replication, complete=True, simulated_ns=1000, messages=count, message_rows=count,
                event_rows=3,
            )
        )  # fmt: skip
    info = RunInfo(
        run_id="run", status=RunStatus.COMPLETE, scenario="made", model="solace", seed=1, log_level="events",
        horizon_ns=1000, warm_up_ns=50, replications=2, done=tuple(done), files=files,
        fingerprint=fingerprint_of(files),
    )  # fmt: skip
    run_folder.write_run_info(folder, info)


def run_columns() -> dict[str, list[object]]:
    """Return counters of one queue where nothing happened."""
    from qsctl.eventlog.schema import COUNTERS

    return {field.name: [[] if pa.types.is_list(field.type) else 0] for field in COUNTERS if field.name != "run_id"}


def _make_sweep(folder: Path) -> None:
    scenario = Scenario(
        name="small", horizon_ns=10**9, seed=11, ports=(Port("p", 8_000_000),), profiles=(Profile("default"),),
        groups=(ClientGroup("c", port="p", profile="default"),),
        traffic=(Traffic("t", to="c", arrivals=PoissonArrivals(1)),),
    )  # fmt: skip
    plan = plan_sweep(scenario, parse_axes(["group[c]/count=1,2"]), 1)
    sweep_folder.open_sweep(folder, plan)
    fields = Figures.__dataclass_fields__
    for number, task in enumerate(plan.tasks()):
        figures = Figures(**{name: number for name in fields if name != "queue"}, queue="D-1")
        result = sweep_folder.PointResult(task.point, task.replication, task.seed, (figures,))
        write_results(folder, [result])
