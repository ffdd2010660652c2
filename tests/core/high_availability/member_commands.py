"""Commands to the members of a cluster."""

from __future__ import annotations

from qsctl.core.admin.command import Command
from qsctl.core.messages import CommandRequest
from qsctl.identity import Guid, SampleIdentity
from qsctl.resource import parse_resource

RESOURCE = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/orders")
SUBSCRIBER = parse_resource("/domain_participant/P/shared_subscriber/S")


def command(number: int, given: Command) -> CommandRequest:
    return CommandRequest(SampleIdentity(Guid(b"q" * 16), number), "*", given)
