"""The recorder: a process that receives the event history of a service and writes it into a run folder.

Run as `python -m qsctl.service.recording._recorder FOLDER SOCKET PROCESSES PART_SECONDS`, where SOCKET is the number of
an inherited socket that listens. It reports its progress on standard output, a line of JSON about once a second and one
at the end, and ends when every process of the service has ended its event history or is gone.

Decides: when parts of the log are closed, and for which reasons a recording ends. It ignores signals: it ends after the
service.
"""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from qsctl.core.admin.reply import RecordingStatus
from qsctl.core.settings import ServiceSettings, queues_by_name
from qsctl.eventlog.recording.fold import Fold
from qsctl.eventlog.recording.sampling import Sampling
from qsctl.eventlog.recording.story import RecordingEnded, decode
from qsctl.eventlog.recording.writer import GROUP_ROWS, RecordingWriter
from qsctl.eventlog.run_folder import SERVICE_FILE, Recording, RecordingEnd, RunInfo, read_run_info
from qsctl.eventlog.schema import LogLevel
from qsctl.service.recording._feed import LENGTH

PART_S: Final = 60.0
"""Seconds after which the open parts are closed: so much is lost where the recorder itself is killed."""

_REPORT_S: Final = 0.5
_CHUNK_BYTES: Final = 1 << 20
_NICE: Final = 10
"""Niceness of the recorder: the service precedes it where processors are short."""

_FIRST_WORD_S: Final = 60.0
"""A recorder that has received nothing for so long has been forgotten."""


class _Reporter:
    """The events received so far from one process of the service."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._received = bytearray()

    def frames(self, octets: bytes) -> list[bytes]:
        """Return the parts that are complete with these octets."""
        self._received += octets
        found: list[bytes] = []
        at = 0
        while len(self._received) - at >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._received, at)
            end = at + LENGTH.size + length
            if end > len(self._received):
                break
            found.append(bytes(self._received[at + LENGTH.size : end]))
            at = end
        del self._received[:at]
        return found


class Recorder:
    """One recording, from its first part to its end.

    Args:
        folder: the folder, which has a `run.json` and a `service.json`.
        listener: the socket to which the processes of the service connect.
        processes: the number of those processes.
        part_s: see `PART_S`.
    """

    def __init__(self, folder: Path, listener: socket.socket, processes: int, part_s: float) -> None:
        self._folder = folder
        self._listener = listener
        self._left = processes
        self._part_s = part_s
        info = read_run_info(folder)
        self._fold = fold_of(folder, info)
        self._writer = RecordingWriter(folder, info)
        self._selector = selectors.DefaultSelector()
        self._end = RecordingEnd.NOT_YET
        self._text = ""

    def run(self) -> None:
        """Receive events until the recording ends, and finish the folder."""
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        began = time.monotonic()
        closes_at, reports_at = began + self._part_s, began
        is_spoken_to = False
        closed_step = 0
        try:
            while self._left and not self._end:
                heard = self._listen()
                is_spoken_to = is_spoken_to or heard
                now = time.monotonic()
                if self._fold.row_count >= GROUP_ROWS:
                    self._writer.write(self._fold.take_rows())
                    self._check_size()
                if now >= closes_at and not self._end:
                    if self._fold.step > closed_step:
                        self._close_parts()
                        self._check_size()
                    closed_step = self._fold.step
                    closes_at = time.monotonic() + self._part_s
                if now >= reports_at:
                    self._report()
                    reports_at = now + _REPORT_S
                if not is_spoken_to and now - began > _FIRST_WORD_S:
                    self._end = RecordingEnd.SERVICE_GONE
            self._fold.end()
            self._close_parts()
            self._writer.finish(self._end or RecordingEnd.STOPPED, self._text)
        except (OSError, pa.ArrowException) as error:
            self._fail(str(error))
        self._report(is_complete=True)

    def _fail(self, text: str) -> None:
        """End the recording with the events that are in the folder, and record the failure there, if possible."""
        self._end, self._text = RecordingEnd.FAILED, text
        with contextlib.suppress(OSError, pa.ArrowException):
            self._writer.finish(self._end, text)

    def _listen(self) -> bool:
        """Receive and fold events, waiting briefly for them; return whether any arrived."""
        ready = self._selector.select(_REPORT_S)
        for key, _ in ready:
            if key.fileobj is self._listener:
                connection, _ = self._listener.accept()
                connection.setblocking(True)
                self._selector.register(connection, selectors.EVENT_READ, _Reporter(connection))
            else:
                self._receive(key.data)
        return bool(ready)

    def _receive(self, reporter: _Reporter) -> None:
        try:
            octets = reporter.connection.recv(_CHUNK_BYTES)
        except ConnectionError:
            octets = b""
        for frame in reporter.frames(octets):
            part = decode(frame)
            self._fold.note(part)
            if isinstance(part, RecordingEnded):
                if part.overrun:
                    self._end = RecordingEnd.OVERRUN
                    self._text = "the service did more than could be written: record a share of its samples"
                self._forget(reporter)
                return
        if not octets:
            self._end = RecordingEnd.SERVICE_GONE
            self._forget(reporter)

    def _forget(self, reporter: _Reporter) -> None:
        self._left -= 1
        self._selector.unregister(reporter.connection)
        reporter.connection.close()

    def _close_parts(self) -> None:
        fold = self._fold
        self._writer.write(fold.take_rows())
        at_ns = max(1, fold.now_ns)
        self._writer.close_parts(
            fold.counters(at_ns), at_ns, fold.happenings(), fold.held_at_start_count, fold.full_names
        )

    def _check_size(self) -> None:
        limit = self._writer.recording.max_bytes
        if limit and self._writer.bytes >= limit:
            self._end = RecordingEnd.LIMIT
            self._text = f"the folder has reached {limit} bytes"

    def _report(self, *, is_complete: bool = False) -> None:
        recording = self._writer.recording
        with contextlib.suppress(OSError):
            size = self._writer.bytes
            status = RecordingStatus(
                str(self._folder),
                (self._end or RecordingEnd.STOPPED).value if is_complete else "",
                self._text,
                started_at_ns=recording.started_at_ns,
                duration_ns=self._fold.now_ns,
                message_rows=self._writer.message_rows,
                bytes=size,
                is_complete=is_complete,
            )
            os.write(sys.stdout.fileno(), msgspec.json.encode(status) + b"\n")


def fold_of(folder: Path, info: RunInfo) -> Fold:
    """Return the fold for a recording's folder."""
    recording = info.recording
    assert isinstance(recording, Recording)
    settings = msgspec.json.decode((folder / SERVICE_FILE).read_bytes(), type=ServiceSettings)
    queues = [(name, queue.limits.max_count) for name, queue in queues_by_name(settings).items()]
    level, sampling = LogLevel(info.log_level), Sampling(recording.sample_share)
    return Fold(recording.service, queues, recording.started_at_ns, level, sampling)


def main(arguments: list[str]) -> None:
    """Run the recorder with the arguments described at the module."""
    folder, number, processes, part_s = arguments
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    os.umask(0o077)  # what samples hold is for the service's user alone, as in its state directory
    os.nice(_NICE)
    gc.set_threshold(200_000, 50, 50)  # millions of rows, and no cycles among them
    with socket.socket(fileno=int(number)) as listener:
        Recorder(Path(folder), listener, int(processes), float(part_s)).run()


if __name__ == "__main__":
    main(sys.argv[1:])
