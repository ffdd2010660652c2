"""A recording that grows when a test wants it to, written by the parts of the recorder's process in this one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qsctl.config.settings import ServiceConfiguration
from qsctl.core.admin.command import StartRecording
from qsctl.core.events import SampleEnqueued, SampleReceived, SampleRemoved, SampleSent
from qsctl.core.records import RemovalCause
from qsctl.eventlog.recording.story import Begun, Happened, RecordingEnded
from qsctl.eventlog.recording.writer import RecordingWriter
from qsctl.eventlog.run_folder import RecordingEnd
from qsctl.identity import SampleIdentity
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.service.recording._recorder import fold_of
from qsctl.service.recording.new_folder import begin_folder
from tests.service.recorder_process import NAME, READER, SETTINGS, WRITER

STARTED_AT_NS = 1_790_000_000_123_456_789


class GrowingRecording:
    """A recording of one queue, `Orders`: every third sample stays in it."""

    def __init__(self, folder: Path, *, started_at_ns: int = STARTED_AT_NS, level: str = "messages") -> None:
        command = StartRecording(str(folder), level=level)
        configuration = ServiceConfiguration("svc", SETTINGS)
        self.folder, info = begin_folder(
            command, configuration, SETTINGS, started_at_ns, processes=1, share_count=0
        )  # fmt: skip
        self.started_at_ns = started_at_ns
        self._fold = fold_of(folder, info)
        self._fold.note(Begun(started_at_ns, [], []))
        self.writer = RecordingWriter(folder, info)
        self._samples = 0

    def happen(self, count: int, apart_ns: int = 7 * MILLISECOND_NS + 1) -> None:
        """Let samples come to the queue, and most of them leave it 3 s later than they came."""
        events: list[Any] = []
        for number in range(self._samples, self._samples + count):
            identity, at = SampleIdentity(WRITER, number), self.started_at_ns + number * apart_ns
            events += [
                SampleReceived(at, NAME, identity, 100),
                SampleEnqueued(at, NAME, identity, 100, at),
                SampleSent(at + MILLISECOND_NS, NAME, identity, READER, 1, at),
            ]
            if number % 3:
                done = at + 3 * SECOND_NS
                events.append(SampleRemoved(done, NAME, identity, RemovalCause.DELIVERED, 100, at, at + MILLISECOND_NS))
        self._samples += count
        self._fold.note(Happened(events, []))

    def close(self) -> None:
        """Close the parts in hand, as the recorder does once a minute."""
        fold = self._fold
        self.writer.write(fold.take_rows())
        at_ns = max(1, fold.now_ns)
        self.writer.close_parts(
            fold.counters(at_ns), at_ns, fold.happenings(), fold.held_at_start_count, fold.full_names
        )

    def grow(self, *counts: int) -> None:
        """Add a part with each number of samples."""
        for count in counts:
            self.happen(count)
            self.close()

    def finish(self) -> None:
        """End the recording in good order."""
        self._fold.note(RecordingEnded(self.started_at_ns + self._fold.now_ns))
        self._fold.end()
        self.close()
        self.writer.finish(RecordingEnd.STOPPED)
