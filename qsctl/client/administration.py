"""Administration as typed calls over a connection [QS 5].

Decides: which reply is an error, and which error. A service answers with a return code; OK returns, and every other
code raises the error with its exit status. A target pattern may match several services: results are returned by
service, and the error of one includes the replies of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar, assert_never

from qsctl.client.connection import Connection, KnowsSettings, ReachesServices, SendsBodies
from qsctl.core.admin.command import (
    ChangeMembers,
    Command,
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    Drain,
    FlagSamples,
    FlushQueue,
    ForceQuorum,
    GetConfiguration,
    GetData,
    GetMessages,
    GetRecording,
    GetStatus,
    HeldSample,
    InsertSamples,
    MemberAction,
    MoveSamples,
    RemoveSamples,
    Shutdown,
    StartRecording,
    StepDown,
    StopRecording,
    UpdateQueue,
)
from qsctl.core.admin.reply import (
    ConfigurationText,
    MessageData,
    QueueData,
    RecordingStatus,
    Reply,
    ReturnCode,
    SamplesChanged,
    ServiceData,
)
from qsctl.core.admin.resolve import resolve_participant, resolve_queue, resolve_subscriber, short_name
from qsctl.core.admin.target import check_pattern
from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.messages import CommandReply
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.errors import ExitStatus, NoAnswer, NotFound, QsctlError, Refused
from qsctl.identity import NIL_INCARNATION, Incarnation
from qsctl.resource import ResourceIdentifier, ResourceKind

_Body = TypeVar(
    "_Body", SharedReaderQueueStatus, QueueData, ServiceData, MessageData, RecordingStatus, ConfigurationText
)

SERVICE = ResourceIdentifier()


class Duplicated(QsctlError):
    """The error for creating a resource that exists already, with the same configuration [QS 5.4.1]."""

    exit_status = ExitStatus.DUPLICATED


class AlreadyExists(QsctlError):
    """The error for creating a resource that exists already, with a different configuration [QS 5.4.1]."""

    exit_status = ExitStatus.ALREADY_EXISTS


class FromService(NamedTuple, Generic[_Body]):
    """The reply of one service; `service` is its application name."""

    service: str
    body: _Body


def error_of(reply: Reply) -> QsctlError | None:
    """Return the error of a return code: none for OK; `Duplicated`, `AlreadyExists`, `NotFound` or `Refused`."""
    message = f"{reply.retcode.name}: {reply.text}"
    match reply.retcode:
        case ReturnCode.OK | ReturnCode.ANNOUNCEMENT:
            return None
        case ReturnCode.DUPLICATED:
            return Duplicated(message, remedy="With --idempotent this counts as done.")
        case ReturnCode.ALREADY_EXISTS:
            return AlreadyExists(message, remedy="Delete it first, or choose another name.")
        case ReturnCode.ERROR:
            return NotFound(message) if reply.not_found else Refused(message)
        case ReturnCode.UNSUPPORTED:
            return Refused(message)
        case _:
            assert_never(reply.retcode)


class Administration:
    """The administration commands for the services that match `target`.

    Every method raises `NoAnswer` when no service answers, and the first of the errors of `error_of`. Methods that
    create or delete have `idempotent`: with it, a state that exists already is a success.
    """

    def __init__(self, connection: Connection, target: str = "*") -> None:
        self.connection = connection
        self.on_notice: Callable[[str], None] = lambda _text: None
        """Called with what a service adds in words to what was asked for: why a queue is suspended."""
        self._target = check_pattern(target)

    def tolerate_silence(self) -> None:
        """Accept the replies of the services that answer; the others are listed in `silent`."""
        if isinstance(self.connection, ReachesServices):
            self.connection.tolerates_silence = True

    @property
    def silent(self) -> tuple[str, ...]:
        """The names of the services that did not answer the latest command."""
        silent = self.connection.silent if isinstance(self.connection, ReachesServices) else ()
        return tuple(sorted(name or "a nameless one" for name in silent))

    def send(self, command: Command) -> list[CommandReply]:
        """Send any command; return all its replies, whatever their return codes."""
        return self._answered(self.connection.request(command, self._target))

    def create_from_body(self, container: ResourceIdentifier, body: str) -> list[CommandReply] | None:
        """Send CREATE with its body unchanged; None where the services of this connection do not read bodies."""
        if not isinstance(self.connection, SendsBodies):
            return None
        return self._answered(self.connection.create_from_body(container, body, self._target))

    def update_from_body(self, queue: ResourceIdentifier, body: str) -> list[CommandReply] | None:
        """Send UPDATE with its body unchanged; None where the services of this connection do not read bodies."""
        if not isinstance(self.connection, SendsBodies):
            return None
        return self._answered(self.connection.update_from_body(queue, body, self._target))

    def create_as_described(
        self, container: ResourceIdentifier, body: str, *, idempotent: bool = False
    ) -> list[CommandReply] | None:
        """Create what a body describes, read by the service; None where the connection's services read no bodies."""
        replies = self.create_from_body(container, body)
        if replies is not None:
            failed = [each for each in replies if not (idempotent and each.reply.retcode is ReturnCode.DUPLICATED)]
            _raise_first(failed, replies)
        return replies

    def _answered(self, replies: list[CommandReply]) -> list[CommandReply]:
        if not replies:
            if self._target == "*":
                what, remedy = "no service", "One must run with remote administration: `qsctl serve --help`."
                if isinstance(self.connection, ReachesServices):
                    remedy = self.connection.why_silent()
            else:
                what, remedy = f"no service named {self._target!r}", "`qsctl get data` lists the services."
            if not isinstance(self.connection, KnowsSettings):  # one embedded here answers at once, or never
                remedy += " Or give it more time with --timeout."
            place = f" in {self.connection.place}" if isinstance(self.connection, ReachesServices) else ""
            raise NoAnswer(f"{what} answered{place}", remedy=remedy)
        return replies

    def create_queue(
        self, subscriber: ResourceIdentifier, settings: SharedReaderQueueSettings, *, idempotent: bool = False
    ) -> list[CommandReply]:
        """Create a queue in a shared subscriber [QS 5.4.1]."""
        return self._done(CreateQueue(subscriber, settings), idempotent=idempotent)

    def create_subscriber(
        self, participant: ResourceIdentifier, settings: SharedSubscriberSettings, *, idempotent: bool = False
    ) -> list[CommandReply]:
        """Create a shared subscriber in a domain participant [QS 5.4.7]."""
        return self._done(CreateSubscriber(participant, settings), idempotent=idempotent)

    def create_exactly(self, command: CreateQueue | CreateSubscriber, body: str) -> list[CommandReply]:
        """Create a resource with exactly these settings, without inherited ones; one that exists with them is a
        success.

        Args:
            command: the command, for a service that accepts settings.
            body: the same as XML with every value, for a service that reads bodies.
        """
        container = command.subscriber if isinstance(command, CreateQueue) else command.participant
        replies = self.create_from_body(container, body)
        replies = self.send(command) if replies is None else replies
        _raise_first([each for each in replies if not _is_so_already(command, each.reply)], replies)
        return replies

    def update_queue(self, queue: ResourceIdentifier, settings: SharedReaderQueueSettings) -> list[CommandReply]:
        """Change a queue in place to these settings; see `core.queue.change` for those that can be changed."""
        return self._done(UpdateQueue(queue, settings))

    def delete_queue(
        self, queue: ResourceIdentifier, *, idempotent: bool = False, only_if_empty: bool = False
    ) -> list[CommandReply]:
        """Delete a queue with its samples [QS 5.4.2]; with `only_if_empty` a service refuses where there are any."""
        return self._done(DeleteQueue(queue, only_if_empty), idempotent=idempotent)

    def delete_subscriber(
        self, subscriber: ResourceIdentifier, *, idempotent: bool = False, only_if_empty: bool = False
    ) -> list[CommandReply]:
        """Delete a shared subscriber with its queues [QS 5.4.8]; `only_if_empty` as for `delete_queue`."""
        return self._done(DeleteSubscriber(subscriber, only_if_empty), idempotent=idempotent)

    def flush_queue(self, queue: ResourceIdentifier, selector: str = "") -> list[CommandReply]:
        """Remove the samples that the selector matches [QS 5.4.3]; return the replies.

        The master of a replicated queue removes them for all members. The refusals of the others are left out, and
        count where no other service answered.
        """
        replies = self.send(FlushQueue(queue.at(ResourceKind.MESSAGE), selector))
        judged = [each for each in replies if not each.reply.not_master] or replies
        _raise_first(judged, replies)
        return judged

    def force_quorum(self, queue: ResourceIdentifier | None, *, is_trial: bool = False) -> list[CommandReply]:
        """Let a replicated queue elect a master after the loss of most of its logs, by the longest remaining one.

        Args:
            queue: the queue; None: the replicated configuration.
            is_trial: whether nothing is changed; the replies state the outcome for each member's replica.

        Raises:
            Refused: the queue can still elect a master; the message states the remedy.
        """
        return self._done(ForceQuorum(queue, is_trial))

    def change_members(
        self, queue: ResourceIdentifier | None, action: MemberAction, member: str, *, is_trial: bool = False
    ) -> CommandReply:
        """Change one member of a replication group; return the reply of its master once the change is committed.

        Args:
            queue: a queue of the group; None: the replicated configuration.
            action: the change.
            member: the application name of the member.
            is_trial: whether nothing is changed; the reply states the members that there would be.

        Raises:
            Refused: the change cannot be made, or not now; the message states the remedy.
        """
        return self._by_master(ChangeMembers(queue, action, member, is_trial))

    def step_down(
        self, queue: ResourceIdentifier | None, successor: str = "", *, is_trial: bool = False
    ) -> CommandReply:
        """Let the master of a replication group hand over; return its reply.

        Args:
            queue: a queue of the group; None: the replicated configuration.
            successor: the member that becomes the master; empty: the most up to date.
            is_trial: whether nothing is changed; the reply states which member it would be.

        Raises:
            Refused: no member, or not this one, holds all that is committed; the message states the remedy.
        """
        return self._by_master(StepDown(queue, successor, is_trial))

    def drain(self, *, is_trial: bool = False) -> list[CommandReply]:
        """Let a service hand over all that it is the master of; return its reply once it has.

        Args:
            is_trial: whether nothing is changed; the reply states what it would hand over.

        Raises:
            Refused: for some of it no other member holds all that is committed.
        """
        return self._done(Drain(is_trial))

    def _by_master(self, command: Command) -> CommandReply:
        """Send a command that the master of a group alone carries out; return its reply."""
        replies = self.send(command)
        for each in replies:
            if each.reply.retcode is ReturnCode.OK:
                return each
        _raise_first(replies, replies)
        raise Refused(
            "no master carried out the command",
            remedy="Check with `qsctl member list` that there is a master, and that its version has the command.",
        )

    def shut_down(self) -> list[CommandReply]:
        """Stop the service [QS 5.4.9]."""
        return self._done(Shutdown())

    def statuses(self, queue: ResourceIdentifier = SERVICE) -> list[FromService[SharedReaderQueueStatus]]:
        """Return the status of a queue, or of every queue [QS 5.4.4]. Reading starts `change` again from zero."""
        return self._bodies(GetStatus(queue.at(ResourceKind.STATUS)), SharedReaderQueueStatus)

    def configuration_statuses(self) -> list[FromService[SharedReaderQueueStatus]]:
        """Return the status of the replicated configuration, from each member that reports it.

        Raises:
            Refused: no service does: none has a replicated configuration, or those that do are of an earlier version.
        """
        replies = self.send(GetStatus(None))
        found = [
            FromService(each.replying_service, each.reply.body)
            for each in replies
            if isinstance(each.reply.body, SharedReaderQueueStatus)
        ]
        if not found:
            _raise_first(replies, replies)
            names = ", ".join(sorted(each.replying_service for each in replies))
            raise Refused(
                f"{names}: the members of a configuration are not reported by a service of an earlier version",
                remedy="Update the services, one after the other.",
            )
        return found

    def service_data(self) -> list[FromService[ServiceData]]:
        """Return the hosted resources of each service [QS 5.4.5]."""
        return self._bodies(GetData(SERVICE.at(ResourceKind.DATA)), ServiceData)

    def queue_data(self, queue: ResourceIdentifier) -> list[FromService[QueueData]]:
        """Return one queue's configuration data, from each service that hosts it [QS 5.4.5]."""
        return self._bodies(GetData(queue.at(ResourceKind.DATA)), QueueData)

    def require_delivering(self, queue: ResourceIdentifier) -> None:
        """Raise an error where a service has suspended the queue.

        Raises:
            Refused: a service has suspended it, because its disk is full or fails.
        """
        for each in self.send(GetData(queue.at(ResourceKind.DATA))):
            if each.reply.retcode is ReturnCode.OK and each.reply.text:
                raise Refused(
                    f"queue {short_name(queue)} of service {each.replying_service} delivers nothing: {each.reply.text}",
                    remedy="Make room on the service's disk: the queue continues by itself, and has kept its samples.",
                )

    def messages(
        self,
        queue: ResourceIdentifier,
        selector: str = "",
        count: int = 0,
        after_position: int = 0,
        incarnation: Incarnation = NIL_INCARNATION,
        *,
        allows_stale: bool = False,
    ) -> list[FromService[MessageData]]:
        """Return the samples that the selector matches, in queue order [QS 5.4.6]; at most `count` a service, 0: all.

        The samples stay in the queue. Those that are removed while it is read may be missing. A long queue is read in
        parts with `after_position`, which selects the samples behind that position. With `allows_stale` members
        without a master answer, too.

        Raises:
            Refused: `incarnation`, the one of the samples read before, is not that of the queue that has the name now.
        """
        command = GetMessages(
            queue.at(ResourceKind.MESSAGE), selector, count, after_position, incarnation, allows_stale
        )
        found = self._bodies(command, MessageData, one_suffices=True)
        # A service of an earlier version, which does not know `allows_stale`, begins at the first sample each time.
        return [each for each in found if each.body.position > after_position] if allows_stale else found

    def insert_samples(self, queue: ResourceIdentifier, samples: Sequence[InsertedSample]) -> SamplesChanged:
        """Enqueue samples with their identities in this queue only, and in no other of the topic.

        The master of a replicated queue does it. On return all samples that were not refused are stored as the queue's
        samples are.
        """
        return self._changed(InsertSamples(queue.at(ResourceKind.MESSAGE), tuple(samples)))

    def flag_samples(self, queue: ResourceIdentifier, samples: Sequence[HeldSample]) -> SamplesChanged:
        """Flag the given samples as redelivered, except those that are gone or with a consumer."""
        return self._changed(FlagSamples(queue.at(ResourceKind.MESSAGE), tuple(samples)))

    def remove_samples(self, queue: ResourceIdentifier, samples: Sequence[HeldSample]) -> SamplesChanged:
        """Remove the given samples, as far as they are held."""
        return self._changed(RemoveSamples(queue.at(ResourceKind.MESSAGE), tuple(samples)))

    def move_samples(
        self,
        source: ResourceIdentifier,
        target: ResourceIdentifier,
        samples: Sequence[HeldSample],
        incarnation: Incarnation = NIL_INCARNATION,
        *,
        begins_anew: bool = False,
        payloads: Sequence[bytes] = (),
    ) -> SamplesChanged | None:
        """Move the given samples from a queue to another one of the same service, each in one step.

        On return the moves are stored as the samples of both queues are.

        Args:
            source: the queue that holds them.
            target: the queue that is to hold them.
            samples: the samples.
            incarnation: the incarnation of the source; nil: any.
            begins_anew: whether their lifespans begin now.
            payloads: the payload of each, for a target that keeps in memory what the source has on disk only.

        Returns:
            The outcome; None: no service can do it in one step, because the queues are in different services,
            processes or logs of replicas, or the service is of an earlier version. Nothing was changed then.
        """
        command = MoveSamples(
            source.at(ResourceKind.MESSAGE),
            target.at(ResourceKind.MESSAGE),
            tuple(samples),
            incarnation,
            begins_anew,
            tuple(payloads),
        )
        bodies = (each.reply.body for each in self.send(command))
        return next((body for body in bodies if isinstance(body, SamplesChanged)), None)

    def configurations(self) -> list[FromService[ConfigurationText]]:
        """Return the current configuration of each service."""
        return self._bodies(GetConfiguration(), ConfigurationText)

    def start_recording(self, command: StartRecording) -> list[FromService[RecordingStatus]]:
        """Start a recording by each service; return the recordings."""
        return self._bodies(command, RecordingStatus)

    def stop_recording(self) -> list[FromService[RecordingStatus]]:
        """Stop the recordings; each folder is complete once `is_complete` is True."""
        return self._bodies(StopRecording(), RecordingStatus)

    def recordings(self) -> list[FromService[RecordingStatus]]:
        """Return each service's recording in progress, or its last one."""
        return self._bodies(GetRecording(), RecordingStatus)

    def hosted(self) -> ServiceData:
        """Return the resources that all services host; one hosted by several, such as replicas, is included once."""
        found = [each.body for each in self.service_data()]
        return ServiceData(
            tuple({queue.resource: queue for data in found for queue in data.queues}.values()),
            tuple(dict.fromkeys(name for data in found for name in data.participants)),
            tuple(dict.fromkeys(name for data in found for name in data.subscribers)),
        )

    def queue_named(self, text: str) -> ResourceIdentifier:
        """Return the queue with this short name or full identifier."""
        return resolve_queue(text, self._known_for(text))

    def subscriber_named(self, text: str) -> ResourceIdentifier:
        """Return the shared subscriber with this name; for an empty name the only one that exists."""
        return resolve_subscriber(text, self._known_for(text))

    def participant_named(self, text: str) -> ResourceIdentifier:
        """Return the domain participant with this name; for an empty name the only one that exists."""
        return resolve_participant(text, self._known_for(text))

    def _known_for(self, text: str) -> ServiceData:
        """Return the hosted resources to find a name in; for a full identifier none, without asking a service."""
        return ServiceData(()) if text.startswith("/") else self.hosted()

    def _done(self, command: Command, *, idempotent: bool = False) -> list[CommandReply]:
        replies = self.send(command)
        _raise_first([each for each in replies if not (idempotent and _is_so_already(command, each.reply))], replies)
        return replies

    def _changed(self, command: InsertSamples | FlagSamples | RemoveSamples) -> SamplesChanged:
        """Return the reply of the one service that executed a command: the master, or the only host of the queue."""
        replies = self.send(command)
        for each in replies:
            if isinstance(each.reply.body, SamplesChanged):
                return each.reply.body
        _raise_first([each for each in replies if not each.reply.not_found] or replies, replies)
        raise Refused("no service changed its samples", remedy="The service may be of an earlier version.")

    def _bodies(self, command: Command, kind: type[_Body], *, one_suffices: bool = False) -> list[FromService[_Body]]:
        replies = self.send(command)
        # Several services need not all have what is asked for.
        having = [each for each in replies if not each.reply.not_found]
        if one_suffices:  # of several members of a cluster one may have no master
            having = [each for each in replies if each.reply.retcode is ReturnCode.OK] or having
        _raise_first(having or replies, replies)
        bodies: list[FromService[_Body]] = []
        for each in having:
            body = each.reply.body
            if body is not None:
                assert isinstance(body, kind), f"{type(command).__name__} was answered with {type(body)}"
                if each.reply.text and isinstance(body, SharedReaderQueueStatus | QueueData):
                    self.on_notice(f"queue {body.queue_name} of service {each.replying_service}: {each.reply.text}")
                bodies.append(FromService(each.replying_service, body))
        return bodies


def _is_so_already(command: Command, reply: Reply) -> bool:
    if isinstance(command, CreateQueue | CreateSubscriber):
        return reply.retcode is ReturnCode.DUPLICATED
    return reply.not_found


def _raise_first(judged: list[CommandReply], replies: list[CommandReply]) -> None:
    """Raise the error of the first failed reply in `judged`; with several services it includes all replies."""
    error = next((error for error in (error_of(each.reply) for each in judged) if error is not None), None)
    if error is None:
        return
    if len({each.replying_service for each in replies}) > 1:
        replied = (f"{each.replying_service}: {each.reply.retcode.name}: {each.reply.text}" for each in replies)
        error = type(error)("\n".join(dict.fromkeys(replied)), remedy=error.remedy)
    raise error
