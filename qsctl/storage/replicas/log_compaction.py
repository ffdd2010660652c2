"""The compaction of the replicas' log, beside its writes [QS 7.1].

Decides: what a crash leaves. Writes go to a file behind the place of the base. Before the base has its name, the log is
what was written; after that, the base and what was written behind it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from qsctl.storage.log.file_sequence import SEAL
from qsctl.storage.log.segment_file import Replacement
from qsctl.storage.log.segment_log import SegmentLog
from qsctl.storage.replicas.replica_operations import RecordsCodec, body_of, stream_operations
from qsctl.storage.replicas.replica_stream import MembersKnown, StoredStream
from qsctl.storage.room import refusal


class LogCompaction:
    """The replacement of what a log contains by the streams that result from it.

    Call `begin`, then `write`, then `put`. Any of them raises Damaged where an I/O error occurs: the log then
    has its former content, and the compaction has ended.

    Args:
        log: the files. Nothing may be written to them before `begin` has returned.
        members: the names of the cluster's members.
        streams: the streams; their records do not change.
        records: the codec of the records.
        put_base: replaces the files before a base by it.
    """

    def __init__(
        self,
        log: SegmentLog,
        members: Sequence[str],
        streams: Mapping[str, StoredStream],
        records: RecordsCodec,
        put_base: Callable[[Replacement], None],
    ) -> None:
        self._log = log
        self._members = list(members)
        self._streams = streams
        self._records = records
        self._put_base = put_base
        self._place = 0
        self._base: Replacement | None = None
        self._is_cancelled = False

    def begin(self) -> None:
        """Write to another file from now on."""
        with self._refusing():
            self._place = self._log.make_place()

    def write(self) -> None:
        """Write the streams to the base. Other threads may write to the log meanwhile."""
        with self._refusing():
            base = self._base = self._log.begin_base(self._place)
            base.add([body_of(MembersKnown(self._members))])
            for name, stream in self._streams.items():
                for operation in stream_operations(name, stream, self._records):
                    if self._is_cancelled:
                        return
                    base.add([body_of(operation)])
            base.add([SEAL])

    def put(self) -> None:
        """Replace the files before the base by it, atomically."""
        assert self._base is not None, "it was written"
        with self._refusing():
            self._put_base(self._base)

    def cancel(self) -> None:
        """Let `write` return early: the base will not be put."""
        self._is_cancelled = True

    def abandon(self) -> None:
        """Delete the base, which is not being written to."""
        if self._base is not None:
            self._base.abandon()

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise refusal(self._log.stem, error, is_clean=not self._log.has_failed) from error
