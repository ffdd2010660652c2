"""The writer of a recording: parts of every table that close from time to time, and a `run.json` that lists the closed
ones.

Decides: when parts close, the content of `run.json` meanwhile, and when the folder is full. Counters are written with
every closing, as they are at that instant, and the file before the last one is removed: so that a reader of the folder
of a recording in progress, or of one that was killed, finds rows and counters up to the same instant.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from qsctl.eventlog.columns import counter_table
from qsctl.eventlog.location import path_within
from qsctl.eventlog.names import NAME_TABLES, write_names
from qsctl.eventlog.outcomes import DISCARDS, column_of
from qsctl.eventlog.recording.names import names_of_recording
from qsctl.eventlog.recording.rows import RowRange, TableRows
from qsctl.eventlog.recording.schema import PEERS
from qsctl.eventlog.recording.tables import ROW_SCHEMAS, table_of
from qsctl.eventlog.run_folder import (
    SERVICE_FILE,
    FileInfo,
    Happening,
    Recording,
    RecordingEnd,
    ReplicationInfo,
    RunInfo,
    RunStatus,
    fingerprint_of,
    write_run_info,
)
from qsctl.eventlog.schema import COUNTERS, LogLevel
from qsctl.eventlog.tables import tables_of_level
from qsctl.eventlog.writer import PartWriter
from qsctl.instant import Nanoseconds

GROUP_ROWS: Final = 50_000
"""Rows of a table that are converted and written together."""

REPLICATION: Final = 0

_PEER, _GUID = (PEERS.get_field_index(name) - 1 for name in ("peer", "guid"))
"""Places in a row of `peers`, which has no `run_id` yet."""


class RecordingWriter:
    """The writer of one recording's folder. Every method raises OSError, or an Arrow error derived from it, if a write
    fails.

    Args:
        folder: the claimed folder, with the `run.json` of a new recording.
        info: that `run.json`.
    """

    def __init__(self, folder: Path, info: RunInfo) -> None:
        assert isinstance(info.recording, Recording)
        self._folder = folder
        self._info = info
        self.recording: Recording = info.recording
        self._parts = {name: PartWriter(folder, name, REPLICATION, schema) for name, schema in ROW_SCHEMAS.items()}
        self._counters = PartWriter(folder, "counters", REPLICATION, COUNTERS)
        self._counter_files: list[str] = []
        self._waiting = {name: TableRows() for name in ROW_SCHEMAS}
        self._peers: dict[int, str] = {}
        self._full_names: Mapping[str, str] = {}
        self._counted = COUNTERS.empty_table()
        self._names_number = 0

    def write(self, rows: Mapping[str, TableRows]) -> None:
        """Accept rows, and write those of tables that have enough for a row group."""
        if (peers := rows.get("peers")) is not None:
            singles = (row for row in peers.parts if not isinstance(row, RowRange))  # each of them is by itself
            self._peers.update((row[_PEER], row[_GUID]) for row in singles)
        for name, new in rows.items():
            waiting = self._waiting[name]
            waiting.append_all(new)
            if len(waiting) >= GROUP_ROWS:
                self._write_waiting(name)

    @property
    def bytes(self) -> int:
        """The size of the folder, including the octets of open parts that are on the disk."""
        finished = sum(each.bytes for parts in self._parts.values() for each in parts.files.values())
        texts = sum(each.bytes for each in self._info.files.values())
        return finished + texts + sum(parts.open_bytes for parts in self._parts.values())

    @property
    def message_rows(self) -> int:
        """Return the number of rows of `messages`, including those not written yet."""
        return self._parts["messages"].rows + len(self._waiting["messages"])

    def close_parts(
        self,
        counters: Mapping[str, Any],
        at_ns: Nanoseconds,
        happenings: tuple[Happening, ...],
        held_messages: int,
        full_names: Mapping[str, str],
    ) -> None:
        """Finish the open parts, with the counters of the same instant, and list them in `run.json`.

        Args:
            counters: the present counters.
            at_ns: the present instant.
            happenings: the events until now.
            held_messages: the number of samples held when the recording began.
            full_names: the queues' full names, by their names in the counters.
        """
        self._require_folder()
        self._full_names = full_names
        for name in self._waiting:
            self._write_waiting(name)
        for name in tables_of_level(LogLevel(self._info.log_level), replays=True):
            self._parts[name].begin()
        for parts in self._parts.values():
            parts.close()
        self._counted = counter_table(counters, self._info.run_id)
        self._counters.write(self._counted)
        self._counters.close()
        self._counter_files += sorted(self._counters.files.keys() - set(self._counter_files))
        newest = self._counter_files[-1]
        done = ReplicationInfo(
            replication=REPLICATION,
            complete=False,
            simulated_ns=at_ns,
            messages=_sum(counters, "arrived_messages"),
            message_rows=self._parts["messages"].rows,
            event_rows=self._parts["events"].rows,
            happenings=happenings,
        )
        self.recording = msgspec.structs.replace(self.recording, held_messages=held_messages)
        self._list(done, {newest: self._counters.files[newest]}, counters)
        for name in self._counter_files[:-2]:
            (self._folder / name).unlink(missing_ok=True)
        del self._counter_files[:-2]

    def finish(self, end: RecordingEnd, text: str = "") -> None:
        """Record in `run.json` how the recording ended, after the last `close_parts`."""
        is_complete = end is RecordingEnd.STOPPED
        self._remove_unlisted()
        self.recording = msgspec.structs.replace(self.recording, end=end, end_text=text)
        done = tuple(msgspec.structs.replace(each, complete=is_complete) for each in self._info.done)
        self._info = msgspec.structs.replace(
            self._info,
            status=RunStatus.COMPLETE if is_complete else RunStatus.PARTIAL,
            done=done,
            recording=self.recording,
        )
        earlier = self._write_names()
        self._info = msgspec.structs.replace(self._info, fingerprint=fingerprint_of(self._info.files))
        write_run_info(self._folder, self._info)
        self._remove(earlier)

    def _remove_unlisted(self) -> None:
        """Delete files that `run.json` does not list: earlier counters, and incomplete files after a full disk."""
        for name in (*self._parts, "counters", *NAME_TABLES):
            for path in (self._folder / name).rglob("*part-*"):
                if path_within(self._folder, path) not in self._info.files:
                    path.unlink(missing_ok=True)

    def _require_folder(self) -> None:
        """Raise an error if the folder was removed: a recreated one would look complete."""
        if not self._folder.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self._folder))

    def _write_waiting(self, name: str) -> None:
        rows = self._waiting[name]
        if rows:
            self._require_folder()
            self._parts[name].write(table_of(name, rows, self._info.run_id))
            self._waiting[name] = TableRows()

    def _list(self, done: ReplicationInfo, counters: dict[str, FileInfo], columns: Mapping[str, Any]) -> None:
        files = {name: each for name, each in self._info.files.items() if not name.endswith(".parquet")}
        for parts in self._parts.values():
            files |= parts.files
        self._info = msgspec.structs.replace(
            self._info,
            horizon_ns=max(1, done.simulated_ns),
            done=(done,),
            recording=self.recording,
            files=files | counters,
            arrived_messages=done.messages,
            delivered_messages=_sum(columns, "delivered_messages"),
            discarded_messages=sum(_sum(columns, column_of(outcome)) for outcome in DISCARDS),
        )
        earlier = self._write_names()
        write_run_info(self._folder, self._info)
        self._remove(earlier)

    def _write_names(self) -> list[str]:
        """Write the present tables of names and list them; return the files that they replace."""
        service = (self._folder / SERVICE_FILE).read_bytes()
        tables = names_of_recording(
            self._info, self._counted, peers=self._peers, full_names=self._full_names, service=service
        )
        earlier = [name for name in self._info.files if name.partition("/")[0] in NAME_TABLES]
        files = {name: each for name, each in self._info.files.items() if name not in earlier}
        written = write_names(self._folder, tables, self._names_number)
        self._names_number += 1
        self._info = msgspec.structs.replace(self._info, files=files | written)
        return earlier

    def _remove(self, names: Sequence[str]) -> None:
        for name in names:
            (self._folder / name).unlink(missing_ok=True)


def _sum(counters: Mapping[str, Any], column: str) -> int:
    return int(sum(counters[column]))
