"""Recorded commands as the engine receives them again: what the fold writes is what the replay reads."""

from __future__ import annotations

import msgspec
import pytest

from qsctl.core.admin.command import Command, CreateQueue, DeleteQueue, FlushQueue, UpdateQueue
from qsctl.core.messages import CommandRequest
from qsctl.core.queue.settings import ResourceLimitSettings, SharedReaderQueueSettings
from qsctl.eventlog.recording.fold import Fold
from qsctl.eventlog.schema import LogLevel
from qsctl.identity import NIL_GUID, SampleIdentity
from qsctl.resource import parse_resource
from qsctl.sim.replay._commands import request_of
from qsctl.sim.replay.recording import CommandRow

SUBSCRIBER = parse_resource("/domain_participant/P/shared_subscriber/S")
ORDERS = parse_resource(f"{SUBSCRIBER}/shared_reader_queue/Orders")
SETTINGS = SharedReaderQueueSettings("Orders", "Orders", limits=ResourceLimitSettings(max_count=7))


@pytest.mark.parametrize(
    "command",
    [
        CreateQueue(SUBSCRIBER, SETTINGS),
        UpdateQueue(ORDERS, SETTINGS),
        DeleteQueue(ORDERS),
        FlushQueue(ORDERS, "1 = 1"),
    ],
)
def test_command_is_replayed_as_it_was_recorded(command: Command) -> None:
    fold = Fold("svc", [("P/S/Orders", -1)], 0, LogLevel.EVENTS)
    fold._command(5, command)
    ((step, at_ns, kind, resource, body),) = fold._recorded.rows["commands"].parts
    found = request_of(CommandRow(at_ns, step, kind, resource, body), "svc")
    assert found is not None
    assert msgspec.structs.replace(found[0], request=SampleIdentity(NIL_GUID, 1)) == CommandRequest(
        SampleIdentity(NIL_GUID, 1), "svc", command
    )


def test_limit_of_a_queue_in_a_recording_is_the_changed_one() -> None:
    fold = Fold("svc", [("P/S/Orders", -1)], 0, LogLevel.EVENTS)
    fold._command(5, UpdateQueue(ORDERS, SETTINGS))
    assert fold._queue("P/S/Orders").max_count == 7
