"""A service that lives in a state directory, answered from what its last command noted of it.

A command that restores the service reads every sample, which takes seconds where a million are held. What most look at
is how many there are. So a command that leaves an instance at rest, with nothing in progress, notes in `index.bin` what
is hosted and how much each queue holds; the next one answers GET of the status and of the data from it, by the code
that answers them always, over queues whose samples were not read.

Decides: when the note may be believed. It names each file of the service with its number, size and times. A file that
was written, put back, copied or lost since is another, and so is a note of another version or of an instant that the
clock has not reached; at the first deadline of a queue the note is over. Whatever else a command wants, the service is
restored for, and a note that was true is deleted before that changes anything. It is not synced: after a loss of power
it may be missing or torn, and it is of earlier files where they were written since.
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
    """Note what an instance is at rest, once its files are closed. Nothing depends on it: errors are passed over."""
    with suppress(OSError, QsctlError):
        body = __version__.encode() + b"\0" + directory.stamp(instance) + msgspec.msgpack.encode(index)
        directory.write_index(_MAGIC + crc32(body).to_bytes(_CHECKSUM_BYTES) + body)


def find_at_rest(directory: StateDirectory, now: Nanoseconds) -> AtRest | None:
    """Return the service as its last command noted it; None: there is no note that is true now."""
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
    """An instance whose samples are not read.

    Args:
        directory: where it lives, locked.
        instance: what its file contains.
        index: what was noted.
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
        """Return whether nothing has become due since it was noted, and the clock was not set back."""
        return self._index.since_ns <= now < self._index.until_ns

    def answers(
        self, now: Nanoseconds, identity: SampleIdentity, command: Command, target: str
    ) -> list[CommandReply] | None:
        """Answer a command; None: only the restored service can."""
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
        """Have the next command know that the status was read: its `change` begins again from zero [QS 5.4.4]."""
        if self._was_read:
            with suppress(OSError):  # on a full disk the figures of the last command stay
                self._directory.write_statistics(self.hosted.statistics.snapshot())
                write_index(self._directory, self.instance, self._index)


def _draw_none() -> Incarnation:
    """Return the nil incarnation: what is hosted has those that were noted."""
    return NIL_INCARNATION
