"""A CREATE that waited behind a DELETE that came later does not bring back what was deleted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from qsctl.core.admin.command import (
    Command,
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    GetData,
)
from qsctl.core.admin.reply import Reply, ReturnCode
from qsctl.core.messages import CommandReply, CommandRequest
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity
from qsctl.resource import ResourceIdentifier, ResourceKind, parse_resource
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.serving._arrival_order import REMEMBERED_MAX, ArrivalOrder
from qsctl.transport.dds.serving.administration import AdminEndpoints
from qsctl.transport.dds.wire.bodies import octets_of
from qsctl.transport.dds.wire.commands import wire_request
from qsctl.transport.dds.wire.wire_types import COMMAND_REQUEST_TOPIC, WireCommandRequest
from tests.dds.domains import claim_domain, release_domain
from tests.patience import PATIENCE_S

PARTICIPANT = parse_resource("/domain_participant/P")
SUBSCRIBER = parse_resource("/domain_participant/P/shared_subscriber/S")
QUEUE = SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "Q")
CREATE = CreateQueue(SUBSCRIBER, SharedReaderQueueSettings("Q", "T", session="s"))
OTHER = CreateQueue(SUBSCRIBER, SharedReaderQueueSettings("R", "T2", session="s"))


class Numbered:
    """Commands with identities of their own."""

    def __init__(self) -> None:
        self.order = ArrivalOrder()
        self.count = 0

    def begin(self, command: Command, arrival: int) -> str:
        self.count += 1
        return self.order.begin(CommandRequest(SampleIdentity(Guid(b"a" * 16), self.count), "*", command), arrival)

    def end(self, retcode: ReturnCode = ReturnCode.OK) -> None:
        self.order.end(CommandReply(SampleIdentity(Guid(b"a" * 16), self.count), "Test", Reply(retcode, "")))


@pytest.mark.parametrize(
    ("deletion", "creation"),
    [
        (DeleteQueue(QUEUE), CREATE),
        (DeleteSubscriber(SUBSCRIBER), CREATE),
        (DeleteSubscriber(SUBSCRIBER), CreateSubscriber(PARTICIPANT, SharedSubscriberSettings("S"))),
    ],
)
def test_a_creation_that_came_before_a_deletion_is_refused_behind_it(deletion: Command, creation: Command) -> None:
    commands = Numbered()
    assert not commands.begin(deletion, 5)
    commands.end()
    assert "send it again" in commands.begin(creation, 4)
    assert not commands.begin(creation, 6)
    assert not commands.begin(OTHER, 4) or isinstance(deletion, DeleteSubscriber)


def test_a_deletion_that_deleted_nothing_does_not_precede_a_create() -> None:
    commands = Numbered()
    assert not commands.begin(DeleteQueue(QUEUE), 5)
    assert not commands.begin(CREATE, 4), "it is not answered yet"
    commands.count -= 1
    commands.end(ReturnCode.ERROR)
    assert not commands.begin(CREATE, 3)


def test_what_concerns_no_command_that_waits_is_forgotten() -> None:
    commands = Numbered()
    commands.begin(DeleteQueue(QUEUE), 5)
    commands.end()
    commands.order.forget_before(4)
    assert commands.begin(CREATE, 4)
    commands.order.forget_before(5)
    assert not commands.begin(CREATE, 4)
    for number in range(REMEMBERED_MAX + 1):
        commands.begin(DeleteQueue(SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, f"Q{number}")), 10 + number)
        commands.end()
    assert len(commands.order._deleted) == REMEMBERED_MAX


class Snippets:
    """Reads a body as the name of a queue."""

    def queue(self, _xml: str, _subscriber: ResourceIdentifier) -> SharedReaderQueueSettings:
        return CREATE.settings

    def subscriber(self, xml: str, _participant: ResourceIdentifier) -> SharedSubscriberSettings:
        raise AssertionError(xml)


class Administrators:
    """Two processes that send commands to an administration, which a test turns."""

    def __init__(self, domain: int) -> None:
        self.participants = [Participant(domain) for _ in range(3)]
        own, *peers = self.participants
        self.admin = AdminEndpoints(own, "Test", Snippets())
        self.writers = [FrameWriter(each, each.topic(COMMAND_REQUEST_TOPIC, WireCommandRequest)) for each in peers]
        self.until(lambda: all(each.writer.matched_count() for each in self.writers))
        self.count = 0

    def until(self, is_so: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def send(self, sender: int, command: Command) -> None:
        """Send a command, and wait until it is in line."""
        self.count += 1
        identity = SampleIdentity(Guid(bytes([sender + 1]) * 16), self.count)
        self.writers[sender].put(octets_of(wire_request(command, "*", identity)))
        assert self.writers[sender].flush()

        def is_in_line() -> bool:
            self.admin.receive((self.admin,))
            return sum(map(len, self.admin._lines.values())) == before + 1

        before = sum(map(len, self.admin._lines.values()))
        self.until(is_in_line)

    def carry_out(self) -> Iterator[Command]:
        while self.admin.is_waiting:
            for request in self.admin.poll(one=True):
                yield request.command
                self.admin.reply(CommandReply(request.request, "Test", Reply(ReturnCode.OK, "")), {})

    def close(self) -> None:
        self.admin.close()
        for writer in self.writers:
            writer.close()
        for each in self.participants:
            each.close()


@pytest.fixture
def administrators() -> Iterator[Administrators]:
    domain = claim_domain()
    found = Administrators(domain)
    yield found
    found.close()
    release_domain(domain)


def test_the_order_of_arrival_holds_where_administrators_take_turns(administrators: Administrators) -> None:
    look = GetData(ResourceIdentifier().at(ResourceKind.DATA))
    for _ in range(3):
        administrators.send(0, look)
    administrators.send(0, CREATE)
    administrators.send(1, DeleteQueue(QUEUE))
    administrators.send(0, CREATE)
    carried_out = [type(each) for each in administrators.carry_out()]
    assert carried_out == [GetData, DeleteQueue, GetData, GetData, CreateQueue], "the first CREATE came before"
    administrators.send(1, CREATE)
    assert [type(each) for each in administrators.carry_out()] == [CreateQueue]
