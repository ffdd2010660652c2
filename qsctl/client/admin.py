"""Administration as typed calls over a connection (manual, chapter 5).

Decides: which reply is an error, and which error. A service answers with a return code; here OK returns, and every
other code raises the error that carries its exit status.
"""

from __future__ import annotations

from typing import TypeVar, assert_never

from qsctl.client.connection import Connection
from qsctl.core.admin.command import (
    Command,
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    FlushQueue,
    GetData,
    GetMessages,
    GetStatus,
    Shutdown,
)
from qsctl.core.admin.reply import MessageData, QueueData, Reply, ReturnCode, ServiceData
from qsctl.core.admin.resolve import resolve_participant, resolve_queue, resolve_subscriber
from qsctl.core.admin.target import check_pattern
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.errors import ExitStatus, NoAnswer, NotFound, QsctlError, Refused
from qsctl.resource import ResourceIdentifier, ResourceKind

_Body = TypeVar("_Body", SharedReaderQueueStatus, QueueData, ServiceData, MessageData)

SERVICE = ResourceIdentifier()


class Duplicated(QsctlError):
    """It exists already, with the same configuration (section 5.4.1)."""

    exit_status = ExitStatus.DUPLICATED


class AlreadyExists(QsctlError):
    """It exists already, with a different configuration (section 5.4.1)."""

    exit_status = ExitStatus.ALREADY_EXISTS


def raise_unless_ok(reply: Reply) -> None:
    """Do nothing after OK; otherwise raise what the return code means.

    Raises:
        Duplicated, AlreadyExists: it exists already, with the same or another configuration.
        NotFound: the service does not have what was named.
        Refused: any other ERROR, or UNSUPPORTED.
    """
    message = f"{reply.retcode.name}: {reply.text}"
    match reply.retcode:
        case ReturnCode.OK | ReturnCode.ANNOUNCEMENT:
            return
        case ReturnCode.DUPLICATED:
            raise Duplicated(message, remedy="With --idempotent this counts as done.")
        case ReturnCode.ALREADY_EXISTS:
            raise AlreadyExists(message, remedy="Delete it first, or choose another name.")
        case ReturnCode.ERROR:
            raise NotFound(message) if reply.not_found else Refused(message)
        case ReturnCode.UNSUPPORTED:
            raise Refused(message)
        case _:
            assert_never(reply.retcode)


class Administration:
    """The administrator's view of the services that `target` means.

    Every method raises `NoAnswer` when no service answers, and what `raise_unless_ok` raises.
    """

    def __init__(self, connection: Connection, target: str = "*") -> None:
        self._connection = connection
        self._target = check_pattern(target)

    def send(self, command: Command) -> list[Reply]:
        """Any command, with all its replies, whatever their return codes."""
        replies = self._connection.request(command, self._target)
        if not replies:
            raise NoAnswer(
                f"no service named {self._target!r} answered",
                remedy="Check the name with `qsctl get data`, or give it more time with --timeout.",
            )
        return replies

    def create_queue(self, subscriber: ResourceIdentifier, settings: SharedReaderQueueSettings) -> Reply:
        """Create a queue in a shared subscriber (5.4.1)."""
        return self._done(CreateQueue(subscriber, settings))

    def create_subscriber(self, participant: ResourceIdentifier, settings: SharedSubscriberSettings) -> Reply:
        """Create a shared subscriber in a domain participant (5.4.7)."""
        return self._done(CreateSubscriber(participant, settings))

    def delete_queue(self, queue: ResourceIdentifier) -> Reply:
        """Delete a queue with its samples (5.4.2)."""
        return self._done(DeleteQueue(queue))

    def delete_subscriber(self, subscriber: ResourceIdentifier) -> Reply:
        """Delete a shared subscriber with its queues (5.4.8)."""
        return self._done(DeleteSubscriber(subscriber))

    def flush_queue(self, queue: ResourceIdentifier, selector: str = "") -> Reply:
        """Remove the samples that the selector picks (5.4.3)."""
        return self._done(FlushQueue(queue.at(ResourceKind.MESSAGE), selector))

    def shut_down(self) -> Reply:
        """Stop the service (5.4.9)."""
        return self._done(Shutdown())

    def statuses(self, queue: ResourceIdentifier = SERVICE) -> list[SharedReaderQueueStatus]:
        """The status of a queue, or of every queue (5.4.4). Reading starts `change` again from zero."""
        return self._bodies(GetStatus(queue.at(ResourceKind.STATUS)), SharedReaderQueueStatus)

    def service_data(self) -> ServiceData:
        """What the service hosts (5.4.5); of several services, all of it."""
        found = self._bodies(GetData(SERVICE.at(ResourceKind.DATA)), ServiceData)
        return ServiceData(
            tuple(queue for data in found for queue in data.queues),
            tuple(name for data in found for name in data.participants),
            tuple(name for data in found for name in data.subscribers),
        )

    def queue_data(self, queue: ResourceIdentifier) -> QueueData:
        """One queue's configuration data (5.4.5)."""
        return self._bodies(GetData(queue.at(ResourceKind.DATA)), QueueData)[0]

    def messages(self, queue: ResourceIdentifier, selector: str = "") -> list[MessageData]:
        """The samples that the selector picks, in queue order (5.4.6). They stay in the queue."""
        return self._bodies(GetMessages(queue.at(ResourceKind.MESSAGE), selector), MessageData)

    def queue_named(self, text: str) -> ResourceIdentifier:
        """The queue that a short name or a full identifier means."""
        return resolve_queue(text, ServiceData(()) if text.startswith("/") else self.service_data())

    def subscriber_named(self, text: str) -> ResourceIdentifier:
        """The shared subscriber that a name means; an empty one: the only one there is."""
        return resolve_subscriber(text, ServiceData(()) if text.startswith("/") else self.service_data())

    def participant_named(self, text: str) -> ResourceIdentifier:
        """The domain participant that a name means; an empty one: the only one there is."""
        return resolve_participant(text, ServiceData(()) if text.startswith("/") else self.service_data())

    def _done(self, command: Command) -> Reply:
        replies = self.send(command)
        for reply in replies:
            raise_unless_ok(reply)
        return replies[-1]

    def _bodies(self, command: Command, kind: type[_Body]) -> list[_Body]:
        bodies: list[_Body] = []
        for reply in self.send(command):
            raise_unless_ok(reply)
            if reply.body is not None:
                assert isinstance(reply.body, kind), f"{type(command).__name__} was answered with {type(reply.body)}"
                bodies.append(reply.body)
        return bodies
