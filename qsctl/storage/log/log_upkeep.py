"""The upkeep of the write-ahead log: its oldest file is deleted once all streams have copied what they need [QS
2.14.2].

Decides: the order. Streams copy the records of the oldest file that they still need to their own files, and sync; then
the log records this durably; only then is the file deleted. An interrupted step is repeated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from qsctl.config.filesystem import FilesystemSettings
from qsctl.errors import Damaged
from qsctl.storage.base import Extent
from qsctl.storage.codec import RecordCodec
from qsctl.storage.damage import DamageReport
from qsctl.storage.file_system import HOST, FileSystem
from qsctl.storage.log.write_ahead_log import FILES_MAX, WriteAheadLog
from qsctl.storage.room import DiskFull
from qsctl.storage.streams.logged import LoggedStorage

Streams: TypeAlias = Callable[[], Sequence[LoggedStorage] | None]
"""The streams of a log that are open now; None: one of them cannot write for now."""

OnFailure: TypeAlias = Callable[[LoggedStorage, Damaged], None]
"""Called with a stream whose own files could not be written, and the error."""


def keep_short(
    log: WriteAheadLog, streams: Streams, on_failure: OnFailure, files_max: int = FILES_MAX, *, copies: bool = True
) -> Iterator[None]:
    """Checkpoint and delete the oldest files until at most `files_max` are left, one step between two yields.

    Records may be appended between steps. It ends early where a stream is being compacted, its own files are full or
    fail, or its needed records are not committed; without `copies`, also where the file has payloads that are held.

    Raises:
        Damaged: an I/O error occurs at the log.
    """
    while (opened := streams()) is not None and not any(stream.is_compacting for stream in opened):
        _drop_unneeded(log, opened)
        oldest = log.files[0] if log.files else log.last_file
        if len(log.files) <= files_max or oldest == log.last_file:
            return
        done: list[LoggedStorage] = []
        for stream in opened:
            if not copies and stream.live_count_to(oldest):
                return
            try:
                yield from stream.checkpoint(oldest)
            except DiskFull:
                return
            except Damaged as error:
                on_failure(stream, error)
                return
            done.append(stream)
        opened = streams() or ()
        if any(stream not in done and stream.has_records_to(oldest) for stream in opened):
            continue
        left = [stream for stream in done if stream in opened]
        for stream in left:
            stream.checkpointed(oldest)
        log.commit((), oldest_file=oldest + 1)
        for stream in left:
            stream.drop_dead()
        yield


def make_room(log: WriteAheadLog, streams: Streams, on_failure: OnFailure) -> None:
    """Delete all files without held payloads, the current file among them.

    Raises:
        Damaged: an I/O error occurs at the log.
    """
    if log.last_file >= 0 and log.has_records:
        log.seal()
        log.commit(())
    for _ in keep_short(log, streams, on_failure, files_max=1, copies=False):
        pass


def checkpoint_all(
    log: WriteAheadLog, names: Iterable[str], codec: RecordCodec, *, discards_damaged: bool = True
) -> None:
    """Copy all that the log has of these streams, which are not open, to their own files.

    Raises:
        Damaged: records are lost in those, see `LoggedStorage`, or an I/O error occurs.
    """
    with_records = [name for name in names if any(True for _ in log.records(log.stream(name).number))]
    if not with_records:
        return
    log.seal()
    for name in with_records:
        own = log.stem.with_name(name)
        stream = LoggedStorage(own, log.settings, log, codec, discards_damaged=discards_damaged)
        for _ in stream.checkpoint(log.last_file):
            pass
        stream.checkpointed(log.last_file)
        log.commit(())
        stream.close()


def carry_over(
    stem: Path,
    settings: FilesystemSettings,
    codec: RecordCodec,
    known: Extent | None,
    disk: FileSystem = HOST,
    *,
    discards_damaged: bool = True,
) -> Sequence[DamageReport]:
    """Copy all records of a log to the streams' own files and delete it: its process will not be started again.

    Returns the damage that was found in the log.

    Raises:
        Damaged: records are lost, see `WriteAheadLog`, or an I/O error occurs; the call can be repeated.
    """
    log = WriteAheadLog(stem, settings, known, discards_damaged=discards_damaged, disk=disk)
    try:
        checkpoint_all(log, log.names(), codec, discards_damaged=discards_damaged)
    except Damaged:
        log.abandon()
        raise
    log.destroy(keeps_damaged=True)
    return log.damage


def existing_logs(stem: Path, disk: FileSystem = HOST) -> set[Path]:
    """Return the stems of the existing logs, of all processes that a service has had."""
    pattern = re.compile(rf"({re.escape(stem.name)}(?:@[A-Za-z0-9_.-]+)?)_w[0-9]+\.db")
    found = (pattern.fullmatch(name) for name in disk.names(stem.parent))
    return {stem.with_name(match[1]) for match in found if match}


def _drop_unneeded(log: WriteAheadLog, streams: Sequence[LoggedStorage]) -> None:
    """Delete the oldest files as long as no stream has records in them."""
    needed = min((min(each.in_log.usage.files) for each in streams if each.in_log.usage.files), default=log.last_file)
    if log.files and needed > log.files[0]:
        log.commit((), oldest_file=needed)
