"""The stream of a recording with a limit for each trigger, and support of the trigger `availableNow`; for PySpark 4.2
and later.

Earlier versions lack the imported classes; they read all new parts at each trigger (`RecordingStream`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from qsctl.eventlog.location import Location
from qsctl.summary.spark._recording_stream import Offset, RecordingStream
from qsctl.summary.spark._shown_remedies import remedies_shown


class LimitedStream(RecordingStream, SupportsTriggerAvailableNow):
    """The parts of one table of a recording, of which a trigger reads a limited number.

    Args:
        folder: as for `RecordingStream`.
        table: as for `RecordingStream`.
        columns: as for `RecordingStream`.
        parts_at_once: largest number of parts that a trigger reads; None: all new ones.
    """

    def __init__(self, folder: Location, table: str, columns: Sequence[str], parts_at_once: int | None) -> None:
        super().__init__(folder, table, columns)
        self._parts_at_once = parts_at_once
        self._until: int | None = None
        """With the trigger `availableNow`, the number of parts when the query began; else None."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of the option `maxPartsPerTrigger`."""
        return ReadAllAvailable() if self._parts_at_once is None else ReadMaxFiles(self._parts_at_once)

    @remedies_shown()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note the current last part, after which the query ends."""
        self._until = len(self._listed().parts)

    @remedies_shown()
    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # type: ignore[override]  # noqa: N802
        """Return the offset up to which the next trigger reads.

        Raises:
            InvalidInput: the folder holds another recording than at the query's begin, or an older copy.
        """
        listed = self._listed()
        first = listed.checked(start)
        last = len(listed.parts) if self._until is None else min(self._until, len(listed.parts))
        if isinstance(limit, ReadMaxFiles):
            last = min(last, first + limit.max_files)
        return listed.offset(max(first, last))

    @remedies_shown()
    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """Return the offset after all parts, for the report of the query's progress."""
        return self._listed().offset()
