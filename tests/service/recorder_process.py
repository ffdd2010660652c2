"""A recorder as a process, and a socket to it."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from qsctl.config.settings import ServiceConfiguration
from qsctl.core.admin.command import StartRecording
from qsctl.core.admin.reply import RecordingStatus
from qsctl.core.events import SampleEnqueued, SampleReceived, SampleRemoved, SampleSent
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.records import RemovalCause
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.eventlog.reader import batches_of, counters_of, open_run
from qsctl.eventlog.recording.story import Begun, Happened, Part, encode
from qsctl.eventlog.run_folder import Recording, RunInfo
from qsctl.identity import Guid, SampleIdentity
from qsctl.service.recording._feed import LENGTH
from qsctl.service.recording.new_folder import begin_folder
from qsctl.summary.recorded_run import read_run
from tests.patience import PATIENCE_S
from tests.processes import start

NAME = "P/S/Orders"
WRITER, READER = Guid(b"w" * 16), Guid(b"r" * 16)
ORDERS = SharedReaderQueueSettings("Orders", "O")

SETTINGS = ServiceSettings(
    "svc",
    (DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", (), (ORDERS,)),)),),
)


class Recorded:
    """A recorder's process, and a socket to it."""

    def __init__(
        self, folder: Path, tmp_path: Path, part_s: float, settings: ServiceSettings = SETTINGS, **options: Any
    ) -> None:
        command = StartRecording(str(folder), **options)
        begin_folder(command, ServiceConfiguration("svc", settings), settings, 0, processes=1, share_count=0)
        self.folder = folder
        self.address = str(tmp_path / "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(self.address)
            listener.listen()
            number = listener.fileno()
            module = "qsctl.service.recording._recorder"
            self.process = start(
                [sys.executable, "-m", module, str(folder), str(number), "1", str(part_s)],
                stdout=subprocess.PIPE,
                pass_fds=(number,),
            )
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(self.address)
        self.tell(Begun(0, [], []))

    def tell(self, part: Part) -> None:
        octets = encode(part)
        self.socket.sendall(LENGTH.pack(len(octets)) + octets)

    def last_words(self) -> RecordingStatus:
        lines = self.process.communicate(timeout=PATIENCE_S)[0].splitlines()
        return msgspec.json.decode(lines[-1], type=RecordingStatus)

    @property
    def info(self) -> RunInfo:
        return open_run(self.folder).info

    @property
    def recording(self) -> Recording:
        recording = self.info.recording
        assert isinstance(recording, Recording)
        return recording

    def sizes(self) -> tuple[int, int]:
        """Rows of messages, and arrivals by the counters of the same instant."""
        read_run(self.folder)
        rows = sum(len(batch) for batch in batches_of(self.folder, self.info, "messages"))
        return rows, sum(counters_of(self.folder, self.info)["arrived_messages"].to_pylist())


def steps(first: int, count: int, *, delivered: bool = True) -> Happened:
    """The usual way of samples."""
    events: list[Any] = []
    for number in range(first, first + count):
        identity, at = SampleIdentity(WRITER, number), 1_000 * number
        events += [
            SampleReceived(at, NAME, identity, 100),
            SampleEnqueued(at, NAME, identity, 100, at),
            SampleSent(at, NAME, identity, READER, 1, at),
        ]
        if delivered:
            events.append(SampleRemoved(at + 500, NAME, identity, RemovalCause.DELIVERED, 100, at, at))
    return Happened(events, [])
