"""Answers to status commands from the summary that the last command left in a state directory.

A command that restores the service reads every sample, which takes seconds where a million are held; most commands need
the number of samples only. So a command that leaves an instance at rest, with nothing in progress, writes the hosted
queues and their sizes to `index.bin`; the next one answers GET of the status and of the data from this summary, by the
usual code, over queues whose samples were not read.

Decides: when the summary is valid. It lists each file of the service with its inode, size and times. It is invalid once
a file was written, replaced, copied or lost, if it is of another version or from the future, and from the first
deadline of a queue on. For any other command the service is restored, and a valid summary is deleted before anything
changes. It is not synced: after a power failure it may be missing, torn, or older than the files, and is then invalid.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from zlib import crc32

import msgspec

from qsctl import __version__
from qsctl.core.admin.command import Command, GetData, GetStatus
from qsctl.core.admin.handle import handle
from qsctl.core.admin.target import matches
from qsctl.core.hosted_service import HeldAtRest, HostedService
from qsctl.core.messages import CommandReply, QueueName
from qsctl.core.records import ServiceStarted
from qsctl.core.settings import ServiceSettings
from qsctl.errors import UNREADABLE, QsctlError
from qsctl.identity import NIL_INCARNATION, Incarnation, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.service.directory.state_directory import FORMAT_VERSION, STAMP_BYTES, Instance, StateDirectory

_MAGIC: Final = b"QSIX"
_CHECKSUM_BYTES: Final = 4


class Index(msgspec.Struct, frozen=True, array_like=True):
    """The summary of an instance at rest, valid from one instant until another."""

    since_ns: Nanoseconds
    until_ns: Nanoseconds
    started: ServiceStarted
    held: dict[QueueName, HeldAtRest]
    warnings: tuple[str, ...]


def write_index(directory: StateDirectory, instance: Instance, index: Index) -> None:
    """Write the summary of an instance at rest, after its files were closed. Errors are ignored: it is optional."""
    with suppress(OSError, QsctlError):
        body = __version__.encode() + b"\0" + directory.stamp(instance) + msgspec.msgpack.encode(index)
        directory.write_index(_MAGIC + crc32(body).to_bytes(_CHECKSUM_BYTES) + body)


def find_at_rest(directory: StateDirectory, now: Nanoseconds) -> AtRest | None:
    """Return the service from the summary of its last command, or None where no valid summary exists."""
    try:
        octets = directory.read_index()
        head, body = octets[: len(_MAGIC) + _CHECKSUM_BYTES], octets[len(_MAGIC) + _CHECKSUM_BYTES :]
        if head != _MAGIC + crc32(body).to_bytes(_CHECKSUM_BYTES):
            return None
        version, _, rest = body.partition(b"\0")
        instance = directory.read_instance() if version == __version__.encode() else None
        if instance is None or instance.format != FORMAT_VERSION:
            return None
        if directory.stamp(instance) != rest[:STAMP_BYTES]:
            return None  # and it never will be
        found = AtRest(directory, instance, msgspec.msgpack.decode(rest[STAMP_BYTES:], type=Index), now)
    except (OSError, QsctlError, *UNREADABLE):
        return None  # whatever it is, the restored service reports it
    if found.is_true(now):
        return found
    directory.forget_index()
    return None


class AtRest:
    """A service answered from its summary, without reading its samples.

    Args:
        directory: its state directory, locked.
        instance: the content of its instance file.
        index: the summary.
        now: Unix nanoseconds.

    Raises:
        Damaged: the statistics cannot be read.
    """

    def __init__(self, directory: StateDirectory, instance: Instance, index: Index, now: Nanoseconds) -> None:
        self.instance = instance
        self.warnings: Sequence[str] = index.warnings
        """Warnings about the service's configuration for the user."""
        self._directory = directory
        self._index = index
        self._was_read = False
        settings = index.started.settings
        self.hosted = HostedService(
            ServiceSettings(settings.application_name),
            instance.started_at_ns,
            draw=_draw_none,
            journals_everything=True,
        )
        self.hosted.replay(instance.started_at_ns, index.started)
        self.hosted.rest(now, index.held)
        if (stored := directory.read_statistics()) is not None:
            self.hosted.statistics.restore(stored)

    def is_true(self, now: Nanoseconds) -> bool:
        """Return whether no deadline has passed since the summary was written, and the clock was not set back."""
        return self._index.since_ns <= now < self._index.until_ns

    def answers(
        self, now: Nanoseconds, identity: SampleIdentity, command: Command, target: str
    ) -> list[CommandReply] | None:
        """Return the replies to a command, or None where it needs the restored service."""
        if not (isinstance(command, GetStatus | GetData) and self.is_true(now)):
            return None
        name = self.hosted.application_name
        if not matches(target, name):
            return []
        replies = handle(self.hosted, now, command)
        assert isinstance(replies, Sequence)  # it removes and reads no samples
        self._was_read |= isinstance(command, GetStatus)
        last = len(replies) - 1
        return [CommandReply(identity, name, reply, intermediate=at < last) for at, reply in enumerate(replies)]

    def close(self) -> None:
        """Record that the status was read: its `change` counts from zero again in the next command [QS 5.4.4]."""
        if self._was_read:
            with suppress(OSError):  # on a full disk the figures of the last command stay
                self._directory.write_statistics(self.hosted.statistics.snapshot())
                write_index(self._directory, self.instance, self._index)


def _draw_none() -> Incarnation:
    """Return the nil incarnation: hosted queues have those of the summary."""
    return NIL_INCARNATION
