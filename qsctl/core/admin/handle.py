"""The answers to administration commands [QS 5.4].

Decides: return codes and texts; `HostedService` makes the changes. Every command gets at least one reply; an invalid
one gets an ERROR that states the fault and the allowed values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, assert_never

from qsctl.core.admin._reading import SampleReading
from qsctl.core.admin._removal import SampleRemoval
from qsctl.core.admin._samples import flag_samples, insert_samples, move_samples, remove_samples
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
    InsertSamples,
    MoveSamples,
    RemoveSamples,
    Shutdown,
    StartRecording,
    StepDown,
    StopRecording,
    UpdateQueue,
)
from qsctl.core.admin.reply import QueueData, Reply, ReturnCode, ServiceData, refusal
from qsctl.core.admin.resolve import nearest, short_name
from qsctl.core.hosted_service import HostedService
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.selector.parse import parse_selector
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.errors import NotFound, QsctlError, Refused
from qsctl.instant import Nanoseconds
from qsctl.resource import ResourceIdentifier, ResourceKind

LongAnswer: TypeAlias = SampleReading | SampleRemoval
"""A command that works in quanta: call `go_on` once a turn until it `is_over`."""


def handle(host: HostedService, now: Nanoseconds, command: Command) -> Sequence[Reply] | LongAnswer:
    """Carry out a command and return its replies, or a `LongAnswer` that carries it out over several turns.

    Only GET of samples and GET of the whole service's status have several replies [QS 5.4.4 and 5.4.6]. Commands that
    may concern millions of samples return a `LongAnswer`. Recordings and the text of the whole configuration belong to
    the driver, which answers those commands before they get here.
    """
    try:
        match command:
            case CreateQueue(subscriber, settings):
                return [_create_queue(host, now, subscriber.bare, settings)]
            case UpdateQueue(queue, settings):
                return [_update_queue(host, now, _queue(host, queue), settings)]
            case DeleteQueue(queue, only_if_empty):
                return _delete_queue(host, now, _queue(host, queue), only_if_empty=only_if_empty)
            case FlushQueue(queue, selector):
                return _flush(host, _queue(host, queue), selector)
            case GetStatus(queue) if queue is not None:
                return _statuses(host, now, queue.bare)
            case GetData(resource):
                return [_data(host, resource.bare)]
            case GetMessages(queue, selector, count, after_position, incarnation):
                expression = parse_selector(selector)
                return SampleReading(host, _queue(host, queue), expression, count, after_position, incarnation)
            case InsertSamples(queue, samples):
                return [insert_samples(host, now, _queue(host, queue), samples)]
            case FlagSamples(queue, held):
                return [flag_samples(host, _queue(host, queue), held)]
            case RemoveSamples(queue, held):
                return [remove_samples(host, now, _queue(host, queue), held)]
            case MoveSamples(queue, target):
                return [move_samples(host, now, _queue(host, queue), _queue(host, target), command)]
            case CreateSubscriber(participant, settings):
                return [_create_subscriber(host, now, participant.bare, settings)]
            case DeleteSubscriber(subscriber, only_if_empty):
                return _delete_subscriber(host, now, _subscriber(host, subscriber), only_if_empty=only_if_empty)
            case Shutdown():
                return [_shut_down(host)]
            case GetStatus(queue) | ForceQuorum(queue) | ChangeMembers(queue) | StepDown(queue):
                what = "the configuration" if queue is None else short_name(_queue(host, queue))
                raise Refused(
                    f"{what} has no replicas here",
                    remedy="Only a replicated queue of a cluster has, and a configuration that is replicated.",
                )
            case Drain():
                return [
                    Reply(ReturnCode.OK, f"service {host.application_name} is in no cluster, and master of nothing")
                ]
            case StartRecording() | StopRecording() | GetRecording():
                return [Reply(ReturnCode.UNSUPPORTED, f"service {host.application_name} cannot record here")]
            case GetConfiguration():
                return [Reply(ReturnCode.UNSUPPORTED, f"service {host.application_name} writes no configuration here")]
            case _:
                assert_never(command)
    except QsctlError as error:
        return [refusal(error)]


def _create_queue(
    host: HostedService, now: Nanoseconds, subscriber: ResourceIdentifier, settings: SharedReaderQueueSettings
) -> Reply:
    subscriber = _subscriber(host, subscriber)
    if not settings.name:
        raise Refused("the queue has no name", remedy="Give it one; it is how commands address it.")
    shown = f"{short_name(subscriber)}/{settings.name}"
    queues = host.queues()
    for kind in (ResourceKind.SHARED_READER_QUEUE, ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE):
        resource = subscriber.child(kind, settings.name)
        if resource in queues and host.is_shut(resource):
            raise Refused(f"queue {shown} is being deleted", remedy="Create it when it is gone.")
        if resource in queues:
            return _exists(f"queue {shown}", same=queues[resource] == settings)
    sessions = [each.name for each in host.subscribers()[subscriber].sessions]
    if settings.session and settings.session not in sessions:
        raise Refused(
            f"shared subscriber {short_name(subscriber)} has no session {settings.session!r}",
            remedy=f"Its sessions: {', '.join(sessions)}" if sessions else "It has none: leave the session out.",
        )
    host.create_queue(now, subscriber, settings)
    return _done(f"queue {shown} is created")


def _update_queue(
    host: HostedService, now: Nanoseconds, queue: ResourceIdentifier, settings: SharedReaderQueueSettings
) -> Reply:
    if host.change_queue(now, queue, settings):
        return _done(f"queue {short_name(queue)} is changed")
    return _done(f"queue {short_name(queue)} has these settings already")


def _create_subscriber(
    host: HostedService, now: Nanoseconds, participant: ResourceIdentifier, settings: SharedSubscriberSettings
) -> Reply:
    participant = _known(participant, ResourceKind.DOMAIN_PARTICIPANT, host.participants())
    if not settings.name:
        raise Refused("the shared subscriber has no name", remedy="Give it one; it is how commands address it.")
    resource = participant.child(ResourceKind.SHARED_SUBSCRIBER, settings.name)
    existing = host.subscribers().get(resource)
    if existing is not None:
        return _exists(f"shared subscriber {short_name(resource)}", same=_holds_all_of(existing, settings))
    host.create_subscriber(now, participant, settings)
    return _done(f"shared subscriber {short_name(resource)} is created")


def _holds_all_of(existing: SharedSubscriberSettings, wanted: SharedSubscriberSettings) -> bool:
    """Return whether creating `wanted` would add nothing to `existing`.

    Our reading: queues created since in the existing subscriber do not make its configuration a different one, so a
    script that creates a subscriber and then its queues may run again.
    """
    return (
        existing.sessions == wanted.sessions
        and existing.qos == wanted.qos
        and all(queue in existing.queues for queue in wanted.queues)
    )


def _flush(host: HostedService, queue: ResourceIdentifier, selector: str) -> SampleRemoval:
    def finish(_now: Nanoseconds, count: int) -> Reply:
        return _done(f"{count} {'sample' if count == 1 else 'samples'} removed from queue {short_name(queue)}")

    return SampleRemoval(host, [queue], finish, parse_selector(selector))


def _delete_queue(
    host: HostedService, now: Nanoseconds, queue: ResourceIdentifier, *, only_if_empty: bool
) -> SampleRemoval:
    def finish(then: Nanoseconds) -> Reply:
        host.delete_queue(then, queue)
        return _done(f"queue {short_name(queue)} is deleted")

    return _empty(host, now, host.deleted_with(queue), finish, only_if_empty=only_if_empty)


def _delete_subscriber(
    host: HostedService, now: Nanoseconds, subscriber: ResourceIdentifier, *, only_if_empty: bool
) -> SampleRemoval:
    def finish(then: Nanoseconds) -> Reply:
        host.delete_subscriber(then, subscriber)
        return _done(f"shared subscriber {short_name(subscriber)} is deleted")

    inside = [queue for queue in host.queues() if queue.parent == subscriber]
    return _empty(host, now, inside, finish, only_if_empty=only_if_empty)


def _empty(
    host: HostedService,
    now: Nanoseconds,
    queues: Sequence[ResourceIdentifier],
    finish: Callable[[Nanoseconds], Reply],
    *,
    only_if_empty: bool,
) -> SampleRemoval:
    """Stop the queues from accepting samples, and return the removal of all that they hold, before they are deleted.

    Raises:
        Refused: with `only_if_empty`, a queue holds samples; nothing was changed.
    """
    for queue in queues if only_if_empty else ():
        found = host.queue(queue)
        if held := len(found.held) + len(found.reader_cache):
            raise Refused(
                f"queue {short_name(queue)} holds {held} {'sample' if held == 1 else 'samples'}",
                remedy="Consume, move or flush them first, or delete the queue with them.",
            )
    for queue in queues:
        host.shut(now, queue)
    queues = [queue for queue in queues if not host.is_following(queue)]
    return SampleRemoval(host, queues, lambda then, _count: finish(then))


def _statuses(host: HostedService, now: Nanoseconds, queue: ResourceIdentifier) -> list[Reply]:
    if queue.kind is not None:
        return [Reply(ReturnCode.OK, body=host.status(now, _queue(host, queue), with_consumers=True))]
    replies = [Reply(ReturnCode.OK, body=host.status(now, each)) for each in host.queues()]
    return replies or [_done(f"service {host.application_name} holds no queue")]


def _data(host: HostedService, resource: ResourceIdentifier) -> Reply:
    if resource.kind is None:
        return Reply(
            ReturnCode.OK,
            body=ServiceData(
                tuple(_queue_data(each, settings) for each, settings in host.queues().items()),
                tuple(map(str, host.participants())),
                tuple(map(str, host.subscribers())),
                is_daemon=not host.stops_on_command,
            ),
        )
    queue = _queue(host, resource)
    return Reply(ReturnCode.OK, body=_queue_data(queue, host.queues()[queue]))


def _queue_data(queue: ResourceIdentifier, settings: SharedReaderQueueSettings) -> QueueData:
    return QueueData(
        short_name(queue),
        settings.topic_name,
        str(queue),
        settings.type_name,
        settings.is_dead_letter,
        settings.app_ack_sample_to_producer,
    )


def _shut_down(host: HostedService) -> Reply:
    try:
        host.request_shutdown()
    except Refused as error:
        return refusal(error, ReturnCode.UNSUPPORTED)
    return _done(f"service {host.application_name} is shutting down")


def _queue(host: HostedService, resource: ResourceIdentifier) -> ResourceIdentifier:
    if not resource.is_queue():
        raise Refused(f"{resource} names no queue", remedy="End it with /shared_reader_queue/NAME.")
    return _known(resource.bare, resource.kind or ResourceKind.SHARED_READER_QUEUE, host.queues())


def _subscriber(host: HostedService, resource: ResourceIdentifier) -> ResourceIdentifier:
    return _known(resource.bare, ResourceKind.SHARED_SUBSCRIBER, host.subscribers())


def _known(resource: ResourceIdentifier, kind: ResourceKind, known: Iterable[ResourceIdentifier]) -> ResourceIdentifier:
    """Return the resource itself if the service has it.

    Raises:
        Refused: the resource is of another kind.
        NotFound: the service has no resource of that name.
    """
    spoken = kind.replace("_", " ")
    if resource.kind is not kind:
        raise Refused(f"{resource} names no {spoken}", remedy=f"End it with /{kind}/NAME.")
    resources = list(known)
    if resource not in resources:
        names = [short_name(each) for each in resources if each.kind is kind]
        raise NotFound(f"there is no {spoken} {short_name(resource)}", remedy=nearest(short_name(resource), names))
    return resource


def _exists(what: str, *, same: bool) -> Reply:
    if same:
        return Reply(ReturnCode.DUPLICATED, f"{what} exists already, with the same configuration")
    return Reply(ReturnCode.ALREADY_EXISTS, f"{what} exists already, with a different configuration")


def _done(text: str) -> Reply:
    return Reply(ReturnCode.OK, text)
