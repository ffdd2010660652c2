"""The directory of an embedded service, damaged anywhere: it opens as it was, or refuses and changes nothing.

Where the user gives up what is damaged, the rest is restored, and the next command finds no damage.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.admin.command import GetMessages, GetStatus
from qsctl.core.admin.reply import MessageData, ReturnCode
from qsctl.core.messages import Write
from qsctl.core.queue.settings import PersistenceKind, PersistenceSettings, SharedReaderQueueSettings
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.errors import Damaged, InvalidInput, NoAnswer, Refused
from qsctl.identity import Guid, SampleIdentity
from qsctl.resource import parse_resource
from qsctl.service.directory.embedded import EmbeddedService, open_embedded
from tests.fuzz.edits import edited, read_files, write_files

SHORT_COUNT = 60

_WRITER = Guid(b"w" * 16)
_NAMES = ("volatile", "segments", "database")
_PERSISTENT = PersistenceKind.PERSISTENT
_QUEUES = (
    SharedReaderQueueSettings("volatile", "volatile"),
    SharedReaderQueueSettings("segments", "segments", persistence=PersistenceSettings(_PERSISTENT)),
    SharedReaderQueueSettings(
        "database", "database", persistence=PersistenceSettings(_PERSISTENT, in_memory_state=False)
    ),
)
_CONFIGURATION = ServiceConfiguration(
    "fuzz",
    ServiceSettings("qsctl", (DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", queues=_QUEUES),)),)),
    filesystem=FilesystemSettings(file_max_size_kb=1, synchronization=Synchronization.FULL),
)
_PLACE = "/domain_participant/P/shared_subscriber/S/shared_reader_queue/"
_DECLARED = (Damaged, InvalidInput, NoAnswer, Refused)
_COUNT = 6


def _payload(name: str, number: int) -> bytes:
    return f"{name} {number:04} ".encode() * 3


def _held(service: EmbeddedService) -> dict[str, list[bytes]]:
    found = {}
    for name in _NAMES:
        resource = parse_resource(_PLACE + name)
        for command in (GetStatus(resource), GetMessages(resource)):
            replies = service.request(command)
        bodies = [each.reply.body for each in replies if each.reply.retcode is ReturnCode.OK]
        found[name] = [each.payload or b"" for each in bodies if isinstance(each, MessageData)]
    return found


class _Original:
    """A directory in which a service lived, and what it held."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="qsctl-fuzz-", dir=_memory()))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.place = self.folder / "state"
        with open_embedded(self.place, configuration=_CONFIGURATION) as service:
            for name in _NAMES:
                service.write(
                    [
                        Write("P", name, SampleIdentity(_WRITER, number), _payload(name, number))
                        for number in range(_COUNT)
                    ]
                )
        with open_embedded(self.place) as service:
            self.held = _held(service)
        self.files = read_files(self.place)


_originals: list[_Original] = []


def one_input(data: bytes) -> None:
    if not _originals:
        _originals.append(_Original())
    original = _originals[0]
    files = edited(original.files, data)
    if files == original.files:
        return
    shutil.rmtree(original.place)
    write_files(original.place, files)
    discards = False
    try:
        with open_embedded(original.place, wait_s=0.5):
            pass
    except Damaged:
        discards = True
        gone = files.keys() - read_files(original.place).keys() - {"lock.holder", "lock"}
        assert not gone, f"refused, and yet changed: {gone}"
    except _DECLARED:
        return
    shutil.rmtree(original.place)
    write_files(original.place, files)
    try:
        with open_embedded(original.place, wait_s=0.5, discard_damaged=discards) as service:
            found = _held(service)
            damage = service.damage
        with open_embedded(original.place, wait_s=0.5) as service:
            assert _held(service) == found, "what is whole stays"
    except Damaged as error:
        assert "instance.json" in error.message, "what was discarded once is not damaged any more"
        return
    except _DECLARED:
        return
    assert found == original.held or damage, f"silent: {found}"
    for name in _NAMES:
        strange = set(found[name]) - {_payload(name, number) for number in range(_COUNT)} - {b""}
        assert not strange, f"never written: {strange}"


def _memory() -> str | None:
    """A file system in memory, where there is one: the disk is not what is tried here."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
