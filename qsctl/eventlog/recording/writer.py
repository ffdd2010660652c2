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
from qsctl.eventlog.outcomes import DISCARDS, column_of
from qsctl.eventlog.recording.queue_state import Row
from qsctl.eventlog.recording.tables import ROW_SCHEMAS, table_of
from qsctl.eventlog.run_folder import (
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
from qsctl.eventlog.schema import COUNTERS
from qsctl.eventlog.writer import PartWriter
from qsctl.instant import Nanoseconds

GROUP_ROWS: Final = 50_000
"""Rows of a table that are converted and written together."""

REPLICATION: Final = 0


class RecordingWriter:
    """The folder of one recording. Every method raises OSError, or an error of Arrow that is one, where it refuses.

    Args:
        folder: claimed, with the `run.json` of a recording that has just begun.
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
        self._waiting: dict[str, list[Row]] = {name: [] for name in ROW_SCHEMAS}

    def write(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Accept rows; those of a table that are enough for a row group are written."""
        for name, new in rows.items():
            waiting = self._waiting[name]
            waiting += new
            if len(waiting) >= GROUP_ROWS:
                self._write_waiting(name)

    @property
    def bytes(self) -> int:
        """The size of the folder: what is finished, and what of the open parts is on the disk."""
        finished = sum(each.bytes for parts in self._parts.values() for each in parts.files.values())
        texts = sum(each.bytes for each in self._info.files.values())
        return finished + texts + sum(parts.open_bytes for parts in self._parts.values())

    @property
    def message_rows(self) -> int:
        """Return how many rows of `messages` there are, those included that wait to be written."""
        return self._parts["messages"].rows + len(self._waiting["messages"])

    def close_parts(
        self, counters: Mapping[str, Any], at_ns: Nanoseconds, happenings: tuple[Happening, ...], held_messages: int
    ) -> None:
        """Finish the open parts, with the counters of the same instant, and list them in `run.json`."""
        self._require_folder()
        for name in self._waiting:
            self._write_waiting(name)
        for parts in self._parts.values():
            parts.close()
        self._counters.write(counter_table(counters, self._info.run_id))
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
            fingerprint=fingerprint_of(self._info.files),
        )
        write_run_info(self._folder, self._info)

    def _remove_unlisted(self) -> None:
        """Remove what no reader believes: counters of earlier parts, and what a full disk left half done."""
        for name in (*self._parts, "counters"):
            for path in (self._folder / name).rglob("*part-*"):
                if path_within(self._folder, path) not in self._info.files:
                    path.unlink(missing_ok=True)

    def _require_folder(self) -> None:
        """Refuse to make a folder anew that was removed: half a recording would look like a whole one."""
        if not self._folder.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self._folder))

    def _write_waiting(self, name: str) -> None:
        rows = self._waiting[name]
        if rows:
            self._require_folder()
            self._parts[name].write(table_of(name, rows, self._info.run_id))
            rows.clear()

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
        write_run_info(self._folder, self._info)


def _sum(counters: Mapping[str, Any], column: str) -> int:
    return int(sum(counters[column]))
