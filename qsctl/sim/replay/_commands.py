"""Recorded commands as the engine receives them."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from qsctl.core.admin.command import (
    Command,
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    FlushQueue,
    UpdateQueue,
)
from qsctl.core.messages import CommandRequest
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.errors import UNREADABLE, Damaged
from qsctl.eventlog.recording.schema import CommandKind
from qsctl.identity import NIL_GUID, SampleIdentity
from qsctl.resource import parse_resource
from qsctl.sim.replay.recording import CommandRow

Target: TypeAlias = str
"""The full name of a queue; empty: no queue that is there yet."""


def request_of(row: CommandRow, service: str) -> tuple[CommandRequest, Target] | None:
    """Return a recorded command and its target, or None for the shutdown of a service, which is not replayed.

    Args:
        row: the recorded command.
        service: the application name of the service.

    Raises:
        Damaged: the row is not a command as a recorder writes it.
    """
    try:
        return _request_of(row, service)
    except UNREADABLE as error:
        raise Damaged(
            f"the recording has a command that cannot be read, at step {row.step}: {error}",
            remedy="Restore the recording from a copy.",
        ) from None


def _request_of(row: CommandRow, service: str) -> tuple[CommandRequest, Target] | None:
    resource = parse_resource(row.resource)
    command: Command
    target = "/".join(name for _, name in resource.names)
    match CommandKind(row.command):
        case CommandKind.CREATE_QUEUE:
            command, target = CreateQueue(resource, msgspec.json.decode(row.body, type=SharedReaderQueueSettings)), ""
        case CommandKind.CREATE_SUBSCRIBER:
            settings = msgspec.json.decode(row.body, type=SharedSubscriberSettings)
            command, target = CreateSubscriber(resource, settings), ""
        case CommandKind.UPDATE_QUEUE:
            command = UpdateQueue(resource, msgspec.json.decode(row.body, type=SharedReaderQueueSettings))
        case CommandKind.DELETE_QUEUE:
            command = DeleteQueue(resource)
        case CommandKind.DELETE_SUBSCRIBER:
            command, target = DeleteSubscriber(resource), ""
        case CommandKind.FLUSH_QUEUE:
            command = FlushQueue(resource, row.body)
        case CommandKind.SHUTDOWN:
            return None
    return CommandRequest(SampleIdentity(NIL_GUID, row.step), service, command), target
