"""The recording of a service that lives in a state directory and runs inside each command.

No process runs between two commands that could write rows, and a sample's row spans several commands. So each command
writes its events to a file of the event history, in the recording's folder, and the command that ends the recording
makes the rows from all files. Samples that a command had received and not acknowledged when it ended are assigned to no
consumer afterwards (`Resumed`).

Decides: which state outlives a command. A recording that cannot be written ends, without making a command fail.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from qsctl.config.settings import ServiceConfiguration
from qsctl.core.admin.command import GetRecording, RecordingCommand, StartRecording, StopRecording
from qsctl.core.admin.reply import RecordingStatus, Reply, ReturnCode, refusal
from qsctl.core.engine import ServiceEngine
from qsctl.core.turn import Released
from qsctl.errors import UNREADABLE, QsctlError, Refused
from qsctl.eventlog.recording.story import Happened, Part, RecordingEnded, Resumed, decode, encode
from qsctl.eventlog.run_folder import Recording, RecordingEnd, read_run_info
from qsctl.instant import Nanoseconds
from qsctl.service.recording._beginning import beginning
from qsctl.service.recording._feed import LENGTH
from qsctl.service.recording.new_folder import begin_folder

STATE_FILE: Final = "recording.json"
"""In the state directory: the status of the recording, while it goes on and after."""

_NUMBER: Final = "state_directory"
"""In that file, beside the status: the numbers of the state directory and of its file system."""

STORY_FOLDER: Final = ".story"


class EmbeddedRecording:
    """The recording of one state directory, for one command.

    Args:
        state_directory: the directory with its status.
        engine: the restored engine, before its first turn.
        now: Unix nanoseconds.
    """

    def __init__(self, state_directory: Path, engine: ServiceEngine, now: Callable[[], Nanoseconds]) -> None:
        self._state_file = state_directory / STATE_FILE
        self._engine = engine
        self._now = now
        self._opened_at_ns = now()
        self._story: Path | None = None
        """The file of this command, once it has reported something."""
        self.warnings: list[str] = []
        """Why a recording ended, for people."""
        self.status = self._read()
        if self.warnings:
            self._write()
        engine.hosted.reports_inputs = self.status.is_on

    def answer(self, command: RecordingCommand, configuration: ServiceConfiguration) -> Reply:
        """Execute a command about recordings and return its reply."""
        try:
            match command:
                case StartRecording():
                    self._start(command, configuration)
                case StopRecording():
                    if not self.status.is_on:
                        raise Refused("no recording is in progress", remedy="Begin one with `qsctl record start DIR`.")
                    self.end(RecordingEnd.STOPPED)
                case GetRecording():
                    pass
        except QsctlError as error:
            return refusal(error)
        return Reply(ReturnCode.OK, "" if self.status.folder else "there was no recording", self.status)

    def report(self, released: Released) -> None:
        """Append the events of a turn to the event history."""
        if self.status.is_on and (released.events or released.inputs):
            self._append([Happened(released.events, list(released.inputs))])

    def end(self, end: RecordingEnd, text: str = "") -> None:
        """Make the rows of the whole event history, and record how the recording ended."""
        if not self.status.is_on:
            return
        self._engine.hosted.reports_inputs = False
        try:
            self._finish(end, text)
        except (OSError, QsctlError) as error:
            self._fail(str(error))

    def _start(self, command: StartRecording, configuration: ServiceConfiguration) -> None:
        if self.status.is_on:
            raise Refused(
                f"a recording is in progress, in {self.status.folder}", remedy="End it with `qsctl record stop`."
            )
        now = self._now()
        settings = self._engine.hosted.settings()
        folder, _ = begin_folder(command, configuration, settings, now, processes=1, share_count=0)
        self.status = RecordingStatus(
            str(folder),
            level=command.level,
            sample_share=command.sample_share,
            max_bytes=command.max_bytes,
            started_at_ns=now,
        )
        self._opened_at_ns = 0
        self._engine.hosted.reports_inputs = True
        self._append(list(beginning(self._engine, now)))
        self._write()

    def _append(self, parts: list[Part]) -> None:
        """Append parts to this command's file, which begins with the state left by the last command."""
        try:
            if self._story is None:
                folder = Path(self.status.folder) / STORY_FOLDER
                if not self._opened_at_ns:
                    folder.mkdir(0o700)
                else:
                    parts = [Resumed(self._opened_at_ns), *parts]
                self._story = folder / f"{sum(1 for _ in folder.iterdir()):08}"
            with self._story.open("ab") as file:
                for part in parts:
                    octets = encode(part)
                    file.write(LENGTH.pack(len(octets)) + octets)
        except OSError as error:
            self._fail(f"{error.strerror}: {error.filename or self._story}")
            return
        size = self._size()
        self.status = msgspec.structs.replace(self.status, bytes=size, duration_ns=self._now() - self._started_at_ns)
        if self.status.max_bytes and size >= self.status.max_bytes:
            self.end(RecordingEnd.LIMIT, f"the folder has reached {self.status.max_bytes} bytes")
        else:
            self._write()

    @property
    def _started_at_ns(self) -> Nanoseconds:
        return self.status.started_at_ns

    def _size(self) -> int:
        return sum(path.stat().st_size for path in Path(self.status.folder).rglob("*") if path.is_file())

    def _finish(self, end: RecordingEnd, text: str) -> None:
        """Fold the event history into rows; the imports for that are needed by this command only."""
        from qsctl.eventlog.recording.writer import RecordingWriter
        from qsctl.service.recording._recorder import fold_of

        folder = Path(self.status.folder)
        info = read_run_info(folder)
        assert isinstance(info.recording, Recording)
        fold, writer = fold_of(folder, info), RecordingWriter(folder, info)
        stories = sorted((folder / STORY_FOLDER).iterdir())
        for story in stories:
            for part in _parts(story):
                fold.note(part)
                writer.write(fold.take_rows())
        fold.note(RecordingEnded(self._now()))
        fold.end()
        writer.write(fold.take_rows())
        at_ns = max(1, fold.now_ns)
        writer.close_parts(fold.counters(at_ns), at_ns, fold.happenings(), fold.held_at_start_count, fold.full_names)
        writer.finish(end, text)
        for story in stories:
            story.unlink()
        (folder / STORY_FOLDER).rmdir()
        self.status = msgspec.structs.replace(
            self.status,
            end=end.value,
            text=text,
            duration_ns=at_ns,
            message_rows=writer.message_rows,
            bytes=writer.bytes,
            is_complete=True,
        )
        self._write()
        if end is not RecordingEnd.STOPPED:
            self.warnings.append(f"the recording in {folder} has ended: {text}")

    def _fail(self, text: str) -> None:
        self._engine.hosted.reports_inputs = False
        self.status = msgspec.structs.replace(self.status, end=RecordingEnd.FAILED.value, text=text, is_complete=True)
        self.warnings.append(f"the recording in {self.status.folder} has failed: {text}")
        self._write()

    def _read(self) -> RecordingStatus:
        """Return the stored status; a copy of a state directory does not continue the original's recording.

        A directory moved in its file system keeps its inode, and a copy has another.
        """
        try:
            text = self._state_file.read_bytes()
            status = msgspec.json.decode(text, type=RecordingStatus)
            noted = msgspec.json.decode(text).get(_NUMBER, self._number)
        except (OSError, *UNREADABLE):
            return RecordingStatus()
        if status.is_on and noted != self._number:
            why = "this state directory is a copy, and its original records into that folder"
            self.warnings.append(f"the recording in {status.folder} is not continued: {why}")
            return msgspec.structs.replace(status, end=RecordingEnd.FAILED.value, text=why)
        return status

    @property
    def _number(self) -> list[int]:
        found = self._state_file.parent.stat()
        return [found.st_dev, found.st_ino]

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            temporary = self._state_file.with_name(f".{STATE_FILE}.tmp")
            status = msgspec.to_builtins(self.status) | {_NUMBER: self._number}
            temporary.write_bytes(msgspec.json.encode(status))
            temporary.rename(self._state_file)


def _parts(story: Path) -> Iterator[Part]:
    """Yield the parts written by one command; a killed one may have left an incomplete last part, which is skipped."""
    octets = story.read_bytes()
    at = 0
    while at + LENGTH.size <= len(octets):
        (length,) = LENGTH.unpack_from(octets, at)
        end = at + LENGTH.size + length
        if end > len(octets):
            return
        yield decode(octets[at + LENGTH.size : end])
        at = end
