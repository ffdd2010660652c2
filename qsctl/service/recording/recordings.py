"""The recording of a service: its commands, its status, its log lines, the recorder's process.

Decides: that a service has one recording at a time, and the figures of its status. The processes whose engines report
are reached through `report_to`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final, TypeGuard

import msgspec

from qsctl.config.settings import ServiceConfiguration
from qsctl.core.admin.command import Command, GetRecording, RecordingCommand, StartRecording, StopRecording
from qsctl.core.admin.reply import RecordingStatus, Reply, ReturnCode, refusal
from qsctl.core.messages import CommandReply, CommandRequest, Inbound
from qsctl.core.settings import ServiceSettings
from qsctl.endings import TemporaryFolder
from qsctl.errors import UNREADABLE, QsctlError, Refused
from qsctl.eventlog.run_folder import RecordingEnd
from qsctl.service.process.logger import ServiceLog
from qsctl.service.recording.new_folder import begin_folder
from qsctl.service.run.open_service import SHARE_COUNT

PART_S: Final = 60.0
"""Seconds after which a recorder closes its parts."""

_LEAVE_S: Final = 20.0
"""Time that a leaving service waits for its recorder to finish the folder."""


def is_recording_request(message: Inbound) -> TypeGuard[CommandRequest]:
    """Return whether a message is a command about recordings, which the engine does not handle."""
    return isinstance(message, CommandRequest) and isinstance(message.command, RecordingCommand)


class Recordings:
    """The recordings of one service, one after the other.

    Args:
        configuration: the service's configuration at its start.
        settings: returns the service's current settings.
        processes: returns the number of processes that report.
        report_to: makes every process report to the recorder at an address from now on; empty: stop reporting.
        log: the service's log.
        part_s: seconds after which parts are closed.
    """

    def __init__(
        self,
        configuration: ServiceConfiguration,
        settings: Callable[[], ServiceSettings],
        processes: Callable[[], int],
        report_to: Callable[[str], None],
        log: ServiceLog,
        *,
        part_s: float = PART_S,
    ) -> None:
        self._configuration = configuration
        self._settings = settings
        self._processes = processes
        self._report_to = report_to
        self._log = log
        self._part_s = part_s
        self._current: _Recorder | None = None
        self.status = RecordingStatus()
        """Of the recording in progress, or of the last one."""

    def answer(self, request: CommandRequest) -> CommandReply:
        """Execute a peer's command and return its reply."""
        name = self._settings().application_name
        try:
            reply = self._answer(request.command)
        except QsctlError as error:
            reply = refusal(error)
        return CommandReply(request.request, name, reply)

    def _answer(self, command: Command) -> Reply:
        self.poll()
        match command:
            case StartRecording():
                self.start(command)
            case StopRecording():
                self.stop()
            case GetRecording():
                pass
            case _:
                raise AssertionError(f"{command} is not about recordings")
        return Reply(ReturnCode.OK, "" if self.status.folder else "there was no recording", self.status)

    def start(self, command: StartRecording) -> None:
        """Start a recording.

        Raises:
            UsageError: an option of the command is invalid.
            Refused: a recording is in progress already.
            InvalidInput: the folder is not empty, or cannot be written.
        """
        if self._current is not None:
            raise Refused(
                f"a recording is in progress, in {self.status.folder}", remedy="End it with `qsctl record stop`."
            )
        started_at_ns = time.time_ns()
        folder, _ = begin_folder(
            command,
            self._configuration,
            self._settings(),
            started_at_ns,
            processes=self._processes(),
            share_count=SHARE_COUNT,
        )
        self.status = RecordingStatus(
            str(folder),
            level=command.level,
            sample_share=command.sample_share,
            max_bytes=command.max_bytes,
            started_at_ns=started_at_ns,
        )
        self._current = _Recorder(folder, self._processes(), self._part_s)
        self._report_to(self._current.address)
        self._log.info(
            "recording", folder=str(folder), detail=command.level, share=command.sample_share, pid=self._current.pid
        )

    def stop(self) -> None:
        """End the recording in progress; the recorder finishes the folder.

        Raises:
            Refused: no recording is in progress.
        """
        if self._current is None:
            raise Refused("no recording is in progress", remedy="Begin one with `qsctl record start DIR`.")
        self._report_to("")

    def poll(self) -> None:
        """Update the status from the recorder's reports, and log the end of a recording once; to be called
        regularly.
        """
        recorder = self._current
        if recorder is None:
            return
        latest = recorder.latest
        if latest is not None:
            self.status = msgspec.structs.replace(
                latest,
                level=self.status.level,
                sample_share=self.status.sample_share,
                max_bytes=self.status.max_bytes,
            )
        if not (recorder.has_ended or self.status.is_complete):
            return
        self._current = None
        if not self.status.is_complete:
            how = recorder.how_it_ended()
            self.status = msgspec.structs.replace(
                self.status, end=RecordingEnd.FAILED.value, text=f"the recorder {how}", is_complete=True
            )
        self._report_to("")
        recorder.close()
        fields = {"folder": self.status.folder, "rows": self.status.message_rows, "bytes": self.status.bytes}
        if self.status.end == RecordingEnd.STOPPED:
            self._log.info("recording_ended", **fields)
        else:
            self._log.error("recording_ended", **fields, cause=self.status.end, text=self.status.text)

    def close(self) -> None:
        """Wait for the recorder, after the service has reported its end."""
        if self._current is not None:
            self._current.wait(_LEAVE_S)
            self.poll()
        if self._current is not None:
            self._current.close()
            self._current = None


class _Recorder:
    """A recorder's process, and the reports of its progress."""

    def __init__(self, folder: Path, processes: int, part_s: float) -> None:
        self._place = TemporaryFolder("qsctl-recorder-")
        self.address = str(self._place.path / "socket")
        self.latest: RecordingStatus | None = None
        """Its latest report; written by the thread that reads them."""
        self.has_ended = False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(self.address)
            listener.listen(socket.SOMAXCONN)
            listener.set_inheritable(True)
            number = listener.fileno()
            module = "qsctl.service.recording._recorder"
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(folder), str(number), str(processes), str(part_s)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(number,),
                start_new_session=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"},
            )
        assert self._process.stdout is not None
        self._errors = b""
        self._threads = [
            threading.Thread(target=self._hear, args=(self._process.stdout,), name="recorder", daemon=True),
            threading.Thread(
                target=self._hear_errors, args=(self._process.stderr,), name="recorder errors", daemon=True
            ),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def how_it_ended(self) -> str:
        """Return a text with the exit status, for a recorder that ended without a report."""
        self._threads[1].join(1.0)
        code = self._process.wait()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
        last = self._errors.decode(errors="replace").strip().rpartition("\n")[2]
        return f"{how}: {last}" if last else how

    def wait(self, timeout_s: float) -> None:
        """Wait until the process has ended, at most the given time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
            self._threads[0].join(1.0)

    def close(self) -> None:
        """Release the process without ending it: it ends by itself once its sockets are closed."""
        self._place.remove()

    def _hear(self, stream: IO[bytes]) -> None:
        decoder = msgspec.json.Decoder(RecordingStatus)
        with contextlib.suppress(OSError), stream:
            for line in stream:
                with contextlib.suppress(*UNREADABLE):
                    self.latest = decoder.decode(line)
        self._process.wait()
        self.has_ended = True

    def _hear_errors(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError), stream:
            for line in stream:
                self._errors = line
