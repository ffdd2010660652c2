"""The tables of one run folder, read from the folder's state at the time of the request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pyarrow as pa

from qsctl.errors import Damaged
from qsctl.eventlog.checked_files import check_all, checked_text, listed_parts
from qsctl.eventlog.described import stored, viewed, with_durations
from qsctl.eventlog.location import Location, RemotePath
from qsctl.eventlog.names import NAME_TABLES, REPLICATION, names_from
from qsctl.eventlog.reader import batches_of, counters_of, names_of
from qsctl.eventlog.recording.names import names_in_folder
from qsctl.eventlog.recording.schema import REPLAY_TABLES
from qsctl.eventlog.run_folder import SCENARIO_FILE, SERVICE_FILE, RunInfo, RunStatus, read_run_info
from qsctl.eventlog.schema import LogLevel
from qsctl.eventlog.tables import LOG_TABLES, tables_of_level
from qsctl.sim.run_names import names_of_run
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import read_scenario

FoundT = TypeVar("FoundT")

_OF_SCENARIO = frozenset({"topics", "settings"})
"""Tables of names that cannot be derived from the counters, but only from the scenario."""


class RunTables:
    """The tables of a run folder.

    Raises:
        NotFound: the folder is not a run folder.
        Damaged: its `run.json` cannot be read.
    """

    def __init__(self, folder: Location) -> None:
        self._folder = folder
        self.info = read_run_info(folder)
        """The content of `run.json` when the folder was opened."""
        replays = bool(self.info.recording) or any(name.partition("/")[0] in REPLAY_TABLES for name in self.info.files)
        self.names = (*tables_of_level(LogLevel(self.info.log_level), replays=replays), "counters", *NAME_TABLES)
        """The tables of the folder, including empty ones."""

    def schema(self, table: str) -> pa.Schema:
        """Return the schema of a table."""
        if table in NAME_TABLES:
            return stored(NAME_TABLES[table])
        return stored(LOG_TABLES[table]).append(REPLICATION)

    def batches(self, table: str, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a table, with durations in a duration type."""
        if table in NAME_TABLES or self.info.status is RunStatus.RUNNING:
            whole = self._now(lambda info: self._whole(table, info))
            yield from (whole if columns is None else whole.select(list(columns))).to_batches()
            return
        yield from self._log(table, self.info, columns)

    def files(self, table: str) -> Sequence[str] | None:
        """Return the verified files of a table of the event log, for DuckDB; None for a table without such files."""
        if table in NAME_TABLES or table == "counters" or isinstance(self._folder, RemotePath):
            return None

        def checked(info: RunInfo) -> Sequence[str]:
            parts = listed_parts(self._folder, info, table)
            check_all(parts)
            return [str(part.path) for part in parts]

        return self._now(checked)

    def _log(self, table: str, info: RunInfo, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        schema = self.schema(table)
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        read = [name for name in schema.names if name != REPLICATION.name]
        # At least one column of the file must be read, to count its rows.
        for batch in batches_of(self._folder, info, table, read or ["run_id"]):
            yield viewed(batch.select(schema.names), schema)

    def _whole(self, table: str, info: RunInfo) -> pa.Table:
        if table in LOG_TABLES:
            return pa.Table.from_batches(self._log(table, info, None), self.schema(table))
        found = names_of(self._folder, info, table)
        return with_durations(self._made(table, info) if found is None else found)

    def _made(self, table: str, info: RunInfo) -> pa.Table:
        """Compute a table of names that is missing in the folder of an earlier version or of a run that was cut off."""
        counters = counters_of(self._folder, info)
        if info.recording:
            return names_in_folder(self._folder, info, counters)[table]
        if table not in _OF_SCENARIO:
            return names_from(info, counters, topics=(), settings=())[table]
        return names_of_run(self._folder, self._scenario(info), info, counters)[table]

    def _scenario(self, info: RunInfo) -> Scenario:
        """Return the simulated scenario, read from a local copy of its files, since the folder may be in an object
        store.
        """
        with TemporaryDirectory(prefix="qsctl-") as copy:
            for name in (SCENARIO_FILE, SERVICE_FILE):
                if name in info.files:
                    Path(copy, name).write_text(checked_text(self._folder, info, name), encoding="utf-8")
            return read_scenario(Path(copy, SCENARIO_FILE))

    def _now(self, read: Callable[[RunInfo], FoundT]) -> FoundT:
        """Read the folder in its current state; repeat if a recording in progress replaced files meanwhile.

        Raises:
            Damaged: a file that the folder lists is missing.
        """
        info = read_run_info(self._folder) if self.info.status is RunStatus.RUNNING else self.info
        while True:
            try:
                return read(info)
            except Damaged:
                later = read_run_info(self._folder)
                if later == info:
                    raise
                info = later
