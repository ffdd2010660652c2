"""The log of a process's replicas: records that must be durable before a replica votes, confirms or acknowledges
[QS 7.1].

Decides: the content of the files `<stem>_r[index].db`, and how it is read after a crash. All replicas of a process
share one log, so that one sync covers all of them; queues that are not replicated have another log, and do not wait for
this one. A replica keeps its whole log in memory. So the files are read at the start only, and a compaction writes the
records that the replicas pass, while the log is written to (`log_compaction`): positions of several queues may overlap,
and a snapshot may include records that were never stored here.

Each write is a group that begins with a mark, and is written once the group before it is durable: after a crash an
incomplete group behind the last mark is cut, and frames missing before it are damage. An operation is read whole or not
at all. One with many records, or large ones, is written as several, and a snapshot as parts that have an effect once
the last one is there: other threads go on in between, and no length is too large for a frame. The register of the
directory has the extent of the log when it was closed properly: a shorter one has lost its end. An intact operation of
an unknown kind is of a later version: the log is refused, since a damaged one is compacted to what was read of it. The
files with damage, and those behind, of which little is read, are kept under other names then: what they have may be in
no other replica's log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, assert_never, get_args

import msgspec

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.errors import UNREADABLE, Damaged
from qsctl.storage._frames import Scan
from qsctl.storage.base import Extent, Sync
from qsctl.storage.codec import Record
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.file_system import HOST, FileSystem
from qsctl.storage.log.file_sequence import shortfall
from qsctl.storage.log.log_frames import mark_body, without_unfinished_tail, written_last
from qsctl.storage.log.segment_file import HEADER_SIZE_BYTES, Replacement, SegmentContent, refuse_form
from qsctl.storage.log.segment_log import SegmentLog
from qsctl.storage.replicas.log_compaction import LogCompaction
from qsctl.storage.replicas.replica_operations import (
    BODY_BYTES,
    IS_OPERATION,
    RecordsCodec,
    append_operations,
    body_of,
    snapshot_operations,
)
from qsctl.storage.replicas.replica_stream import (
    Appended,
    Dropped,
    MembersKnown,
    Operation,
    SnapshotPart,
    SnapshotPut,
    StateSet,
    StoredStream,
    StreamReader,
)
from qsctl.storage.room import refusal

COMPACTED_OVER_BYTES: Final = 8 * 1024 * 1024
"""A log that is shorter is not worth compacting."""

EXTENT_KIND: Final = "replicas"
"""The kind of files, for the register of the directory."""

GROUP_BYTES: Final = 8 * BODY_BYTES
"""Octets of bodies from which on the next one begins another group, where a write has several."""

_TIMES_FILE_MAX_SIZE: Final = 8
_IS_MARK: Final = b"M"[0]

_decode = msgspec.msgpack.Decoder(Operation).decode
_KIND_MAX: Final[int] = max(each.__struct_config__.tag for each in get_args(Operation))


class ReplicaLog:
    """The log of all replicas of one process; the first write makes its files.

    Args:
        stem: directory and beginning of the files' names.
        settings: the configured synchronization and file size.
        records: the codec of the records.
        known: its least extent, from the register of the directory; None: unknown.
        note: called with its extent, for the register: at the first write, after a compaction, and at `close`.
        disk: the files' file system.
        compacted_over_bytes: a shorter log is not compacted.

    Raises:
        InvalidInput: a link or a device is in a file's place.
        Refused: a later version wrote an operation of a kind that this one does not know; no file is changed.
        Damaged: an I/O error occurs.
    """

    def __init__(
        self,
        stem: Path,
        settings: FilesystemSettings,
        records: RecordsCodec,
        known: Extent | None = None,
        note: Callable[[Extent], None] = lambda _: None,
        disk: FileSystem = HOST,
        *,
        compacted_over_bytes: int = COMPACTED_OVER_BYTES,
    ) -> None:
        self._settings = settings
        self._records = records
        self._log = SegmentLog(
            stem,
            "r",
            contiguous=True,
            mark=int.from_bytes(disk.draw(4)) or 1,
            file_max_size_bytes=_TIMES_FILE_MAX_SIZE * settings.file_max_size_bytes,
            synchronization=settings.synchronization,
            judge=_without_what_was_never_synced,
            unsure_from=written_last,
            in_sectors=True,
            disk=disk,
        )
        self._streams: dict[str, StreamReader] = {}
        self.members: Sequence[str] = ()
        """The names of the cluster's members, as they were written last."""
        try:
            self._read()
        except OSError as error:
            raise refusal(stem, error, is_clean=True) from error
        self._log.damage += shortfall(self._log.path, known, self.extent, self._log.damage)
        self._note = note
        self._compacted_over_bytes = compacted_over_bytes
        self._compacted_bytes = 0
        self._attempted_bytes = 0
        """Length at which the latest compaction was begun; 0: it succeeded, or there was none."""
        self.progress_count = 0
        """Number of parts that were written by `store`."""

    @property
    def extent(self) -> Extent:
        """Return the log's extent for the register; less at the next opening means lost records."""
        index = self._log.last_index
        return Extent(EXTENT_KIND, index, self._log.sizes.get(index, 0))

    @property
    def damage(self) -> Sequence[DamageReport]:
        """Damage that was found, torn tails included."""
        return self._log.damage

    @property
    def is_damaged(self) -> bool:
        """Return whether durable records are missing, so that the streams found may be incomplete."""
        return any(report.kind is not DamageKind.TORN_TAIL for report in self._log.damage)

    @property
    def has_failed(self) -> bool:
        """Return whether a write or a sync failed: the content of the disk is unknown then."""
        return self._log.has_failed

    def pop_found(self) -> dict[str, StoredStream]:
        """Return the streams that were read at the start, and forget them."""
        streams, self._streams = self._streams, {}
        found: dict[str, StoredStream] = {}
        for name, reader in streams.items():
            try:
                found[name] = reader.read(self._records.decode)
            except UNREADABLE as error:
                self._report(self._log.last_index, 0, 0, f"records of {name} that this version cannot read: {error}")
                self._log.damaged_indexes.update(self._log.sizes)
                found[name] = StoredStream(reader.hard_state)
        return found

    def pop_kept(self) -> list[Path]:
        """Return the files that a compaction has kept under other names since the last call."""
        kept, self._log.kept = self._log.kept, []
        return kept

    def write(self, operations: Iterable[Operation]) -> Sync | None:
        """Write operations, in order; return the pending sync, or None where no sync is needed.

        The sync of the write before must have returned.

        Raises:
            Damaged: an I/O error occurred; some of the operations may have been written.
        """
        self._refuse_if_failed()
        operations = list(operations)
        bodies = [mark_body(self._durable_count), *map(body_of, operations)]
        is_first = not self._log.sizes
        try:
            self._log.write(bodies)
            if is_first:
                self._note(Extent(EXTENT_KIND, self._log.last_index))
        except OSError as error:
            self._log.has_failed = True
            raise refusal(self._log.stem, error, is_clean=False) from error
        for operation in operations:
            if isinstance(operation, MembersKnown):
                self.members = operation.names
        if self._settings.synchronization is not Synchronization.FULL:
            return None
        return self._sync

    def is_worth_compacting(self, live_bytes: Callable[[], int]) -> bool:
        """Return whether the log has grown to twice its compacted length plus a fixed allowance, or is damaged.

        At least half of it must be superseded, and after an attempt that failed it must have doubled.

        Args:
            live_bytes: returns the octets that a compacted log would have now, or fewer.
        """
        if self.has_failed:
            return False
        over_bytes = 0 if self.is_damaged else self._compacted_over_bytes + 2 * self._compacted_bytes
        written_bytes = self._written_bytes
        return written_bytes > max(over_bytes, 2 * self._attempted_bytes) and written_bytes > 2 * live_bytes()

    def compact(self, streams: Mapping[str, StoredStream]) -> LogCompaction:
        """Return a compaction to these streams, which are all that the log contains."""
        self._attempted_bytes = self._written_bytes
        return LogCompaction(self._log, self.members, streams, self._records, self.put_base)

    def store(self, operations: Iterable[Operation]) -> Sync:
        """Return a function that writes many operations in groups and syncs each; it may be called in another thread.

        Nothing may be written before it has returned. It raises Damaged where an I/O error occurs.
        """

        def store() -> None:
            group: list[Operation] = []
            size_bytes = 0
            for operation in operations:
                group.append(operation)
                size_bytes += len(getattr(operation, "data", b""))
                if size_bytes >= GROUP_BYTES:
                    self._write_durably(group)
                    group, size_bytes = [], 0
            self._write_durably(group)

        return store

    def _write_durably(self, operations: Sequence[Operation]) -> None:
        sync = self.write(operations)
        if sync is not None:
            sync()
        self.progress_count += 1

    def append(
        self, stream: str, first_index: int, records: Sequence[Record], *, truncates: bool
    ) -> Iterator[Appended]:
        """Yield the operations that append records to a stream; with `truncates` they replace those from `first_index`
        on.
        """
        return append_operations(stream, first_index, records, self._records, truncates=truncates)

    def snapshot(self, stream: str, index: int, records: Sequence[Record]) -> Iterator[Operation]:
        """Yield the operations that replace a whole stream by a snapshot of the records up to an index."""
        return snapshot_operations(stream, index, records, self._records)

    def close(self) -> None:
        """Sync the log, record its extent, and close the files.

        Raises:
            Damaged: an I/O error occurs.
        """
        try:
            if self.has_failed:
                self._log.abandon()
            else:
                self._log.close()
                if self._log.sizes:
                    self._note(self.extent)
        except OSError as error:
            raise refusal(self._log.stem, error, is_clean=True) from error

    def put_base(self, base: Replacement) -> None:
        """Replace the files before a finished base by it, for `LogCompaction.put`.

        Raises:
            OSError: an I/O error occurs.
        """
        self._log.put_base(base, lambda _: None)
        self._log.damage = [report for report in self._log.damage if report.kind is DamageKind.TORN_TAIL]
        self._compacted_bytes, self._attempted_bytes = base.size_bytes, 0
        self._note(Extent(EXTENT_KIND, base.header.file_index, base.size_bytes))

    @property
    def _written_bytes(self) -> int:
        return sum(self._log.sizes.values())

    def _sync(self) -> None:
        try:
            self._log.sync()
        except OSError as error:
            raise refusal(self._log.stem, error, is_clean=False) from error

    @property
    def _durable_count(self) -> int | None:
        """Return the number of durable frames in the current file, which are all; None where nothing waits for
        syncs.
        """
        if self._settings.synchronization is not Synchronization.FULL:
            return None
        return 0 if self._log.is_full else self._log.next_number

    def _read(self) -> None:
        """Read the files. Behind damage the order of records is uncertain: only epochs and votes are read there."""
        for index, content in self._log.open():
            path = self._log.path(index)
            reports = [each for each in self._log.damage if each.kind is not DamageKind.TORN_TAIL]
            behind = min((each.offset if each.file == path else 0 for each in reports), default=len(content.buffer))
            for start, end in content.found.bodies:
                body = content.buffer[start:end]
                if body[0] == _IS_MARK:
                    continue
                try:
                    if body[:1] != IS_OPERATION:
                        raise ValueError("no operation")
                    operation = _decode(body[1:])
                    if start < behind:
                        self._do(operation)
                    elif isinstance(operation, StateSet):
                        self._streams.setdefault(operation.stream, StreamReader()).remember(operation.state)
                except (*UNREADABLE, LookupError) as error:
                    if _is_of_later_version(body):
                        refuse_form(path)
                    self._report(index, start, end - start, f"it does not follow from what is before it: {error}")
                    behind = min(behind, start)
            if behind < len(content.buffer):
                self._log.damaged_indexes.add(index)

    def _report(self, index: int, offset: int, size_bytes: int, what: str) -> None:
        path = self._log.path(max(0, index))
        self._log.damage.append(DamageReport(path, offset, size_bytes, DamageKind.UNREADABLE, what))

    def _do(self, operation: Operation) -> None:
        match operation:
            case Dropped(name):
                self._streams.pop(name, None)
            case MembersKnown(names):
                self.members = names
            case StateSet() | SnapshotPart() | SnapshotPut() | Appended():
                self._streams.setdefault(operation.stream, StreamReader()).do(operation)
            case _:
                assert_never(operation)

    def _refuse_if_failed(self) -> None:
        if self.has_failed:
            raise Damaged(
                f"{self._log.stem.name}: an earlier write may not have reached the disk",
                remedy="Restart the service: it restores what did.",
            )


def _without_what_was_never_synced(content: SegmentContent) -> SegmentContent:
    """Return the last file without its unfinished tail; without any content where the header was never synced."""
    if content.header is None and not any(content.buffer[:HEADER_SIZE_BYTES]):
        return content._replace(buffer=b"", found=Scan([], [], HEADER_SIZE_BYTES, 0))
    return without_unfinished_tail(content)


def _is_of_later_version(body: bytes) -> bool:
    """Return whether a body has an operation of a kind that only later versions of this program write."""
    try:
        match msgspec.msgpack.decode(body[1:]):
            case [int(kind), *_]:
                return kind > _KIND_MAX
            case _:
                return False
    except msgspec.MsgspecError:
        return False
