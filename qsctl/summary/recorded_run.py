"""A run's facts that a summary needs before Spark reads it: `run.json`, and the completed replications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from qsctl.config.files.document import parse_document
from qsctl.errors import Damaged, NotFound, QsctlError
from qsctl.eventlog.checked_files import TABLES, ListedFile, check_all, check_footers, checked_text, listed_parts
from qsctl.eventlog.location import Location
from qsctl.eventlog.reader import RecordedRun as OpenedRun
from qsctl.eventlog.reader import part_batches
from qsctl.eventlog.run_folder import SCENARIO_FILE, RunInfo, read_run_info
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import Nanoseconds
from qsctl.sim.scenario.scenario import GuaranteedOverflow, Model
from qsctl.summary.measures.by_run import RUN_NUMBER
from qsctl.summary.measures.observation import Holding


@dataclass(frozen=True, slots=True)
class SummarizedRun:
    """A run in its folder.

    `replications` are those whose counters are written; if a run was killed, its message log may hold the start of
    another one, which is omitted. `bytes` is the size of the files to read, `message_rows` the number of messages in
    the log over all replications. `parts` are the files of each table; no other file of the folder is read. The
    checksums of the counters and of the footers of messages and events are verified here; Spark verifies their pages.
    """

    folder: Location
    info: RunInfo
    replications: tuple[int, ...]
    parts: Mapping[str, Sequence[ListedFile]]

    @property
    def has_messages(self) -> bool:
        """Return whether there is a message log; that of a run without messages is empty."""
        return bool(self.parts["messages"])

    @property
    def bytes(self) -> int:
        """The size of the message log and the counters in bytes."""
        return sum(part.info.bytes for table in ("messages", "counters") for part in self.parts[table])

    @property
    def message_rows(self) -> int:
        """Number of rows of the message log."""
        return sum(part.info.rows for part in self.parts["messages"])

    @property
    def warm_up_ns(self) -> Nanoseconds:
        """The end of the warm-up, from which statistics are counted."""
        return self.info.warm_up_ns

    @property
    def horizon_ns(self) -> Nanoseconds:
        """Return the end of the run; for a run that was stopped, the end of its last replication."""
        stopped = [each.simulated_ns for each in self.info.done if not each.complete]
        return min(stopped, default=self.info.horizon_ns)

    @property
    def level(self) -> str:
        """The level of the log: `messages` or `counters`."""
        return "messages" if self.has_messages else "counters"

    @property
    def has_slow_percentages(self) -> bool:
        """Return whether the events contain percentages of slow subscribers, as those of egress queues do."""
        egress = self.info.model in {Model.SOLACE, Model.TIBCO}
        return (
            egress and self.info.log_level == LogLevel.EVENTS and any(part.info.rows for part in self.parts["events"])
        )


def read_run(folder: Location) -> SummarizedRun:
    """Read a run folder's `run.json`, and verify the checksums of its counters and of its logs' footers.

    Raises:
        NotFound: the folder does not exist or is not a run folder.
        Damaged: `run.json` is invalid, no replication has counters, a file is missing or belongs to another run, or a
            verified file was changed.
    """
    folder = folder.resolve()
    info = read_run_info(folder)
    parts = {table: listed_parts(folder, info, table) for table in TABLES}
    check_all(parts["counters"])
    check_footers([*parts["messages"], *parts["events"]])
    replications = tuple(sorted({part.replication for part in parts["counters"]}))
    if not replications:
        raise Damaged(
            f"{folder} has no counters of any replication: the run was cut off (its status is {info.status.value})",
            remedy="Run the simulation again.",
        )
    _check_rows(folder, info, parts)
    return SummarizedRun(folder, info, replications, parts)


def read_these(folders: Sequence[Location], *, skip_damaged: bool) -> tuple[list[SummarizedRun], tuple[str, ...]]:
    """Read several runs as `read_run` does; return them, and a sentence for each omitted one.

    Args:
        folders: run folders.
        skip_damaged: omit folders that are damaged or lack a `run.json`; else they are an error, which states the first
            fault and the number of others.

    Raises:
        NotFound: a folder does not exist; without `skip_damaged` also one that is not a run folder.
        Damaged: a run is damaged, or all of them.
    """
    found: list[SummarizedRun] = []
    faults: list[QsctlError] = []
    for folder in folders:
        try:
            found.append(read_run(folder))
        except Damaged as error:
            faults.append(error)
        except NotFound as error:
            if not skip_damaged or not folder.is_dir():
                raise
            faults.append(error)
    if not faults or (skip_damaged and found):
        return found, tuple(f"{fault.message}: the run was left out." for fault in faults)
    first = faults[0]
    if len(folders) == 1:
        raise first
    others = len(faults) - 1
    more = f" ({others} more of the {len(folders)} runs cannot be read)" if others else ""
    switch = "" if skip_damaged else " Or leave out such runs with --skip-damaged (skip_damaged=True)."
    raise Damaged(f"{first.message}{more}", remedy=f"{first.remedy}{switch}")


def without_damaged(runs: Sequence[SummarizedRun]) -> tuple[list[SummarizedRun], tuple[str, ...]]:
    """Verify the checksums of whole logs; return the undamaged runs, and a sentence for each other one."""
    whole: list[SummarizedRun] = []
    skipped: list[str] = []
    for run in runs:
        try:
            check_logs([run])
        except Damaged as error:
            skipped.append(f"{error.message}: the run was left out.")
        else:
            whole.append(run)
    return whole, tuple(skipped)


def check_logs(runs: Sequence[SummarizedRun]) -> None:
    """Verify the checksums of whole logs, for instance after Spark failed for an unknown reason.

    A changed bit in a page's header, which has no checksum of its own, may cause any exception of Java.

    Raises:
        Damaged: a file was changed, or cannot be read.
    """
    for run in runs:
        check_all([*run.parts["messages"], *run.parts["events"]])


def marks_of(run: SummarizedRun, number: int = 0) -> pa.Table:
    """Return the marks, limits and observed time of each client's queue and replication, which messages do not have.

    The files are small and read in this process, since a Spark job has an overhead of a second or two.

    Args:
        run: the run whose counters are read.
        number: its `run_number` among the runs that are read together.

    Raises:
        Damaged: a file of counters cannot be read.
    """
    batches = [
        batch.select([*MARKS, "replication"])
        for part in run.parts["counters"]
        for batch in part_batches(part.path, part.replication, "counters", MARKS)
    ]
    rows = pa.Table.from_batches(batches)
    made = {
        name: rows[name].cast(pa.string()) if name in {"client", "queue"} else rows[name] for name in rows.column_names
    }
    return pa.table({**made, RUN_NUMBER: pa.array([number] * rows.num_rows, pa.int32())})


MARKS: Final = (
    "client_id", "client", "queue", "high_water_mark_work_units", "max_depth_work_units", "observed_ns",
    "evicted_messages", "done_messages",
)  # fmt: skip


def holding_of(run: SummarizedRun | OpenedRun) -> Holding:
    """Return which queues of the run hold messages until they are acknowledged.

    Raises:
        Damaged: the run's scenario is missing or was changed.
    """
    if run.info.model in {Model.SHARED_READER_QUEUE, Model.WORLD, Model.REPLAY, Model.QUEUE}:
        return Holding(everywhere=True)
    if run.info.model != Model.SOLACE or SCENARIO_FILE not in run.info.files:
        return Holding()
    text = checked_text(run.folder, run.info, SCENARIO_FILE)
    root = parse_document(text.encode(), SCENARIO_FILE).root
    lets_go = {
        profile.get("name")
        for profile in root.findall("profile")
        if profile.get("guaranteed-overflow") == GuaranteedOverflow.REDELIVER
    }
    holders: set[int] = set()
    first = 0
    for group in root.findall("group"):
        count = int(str(group.get("count", "1")))
        if group.get("profile") not in lets_go:
            holders.update(range(first, first + count))
        first += count
    return Holding(frozenset(holders))


def _check_rows(folder: Location, info: RunInfo, parts: Mapping[str, Sequence[ListedFile]]) -> None:
    """Check that every replication has the number of rows that was counted while it was written."""
    for each in info.done:
        for table, written in (("messages", each.message_rows), ("events", each.event_rows)):
            found = sum(part.info.rows for part in parts[table] if part.replication == each.replication)
            if found != written:
                raise Damaged(
                    f"{folder}: replication {each.replication} has {found} rows of {table}; it wrote {written}",
                    remedy="Run the simulation again.",
                )
