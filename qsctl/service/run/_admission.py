"""The refusal to create what a service cannot store, offer or replicate [QS 2.14.2, 5.4.1, 7].

The engine does not depend on files, DDS or replicas. So a command to create a queue whose names cannot be part of a
file name, whose endpoints cannot be created, or that must be replicated and cannot, is refused here, before any part of
the queue exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from qsctl.config.budgets import TOO_MANY_QUEUES_REMEDY, ServiceLimits
from qsctl.config.rules.replication import NOT_REPLICATED_REMEDY, queue_is_hosted_alone
from qsctl.core.admin.command import CreateQueue, CreateSubscriber
from qsctl.core.admin.reply import Reply, ReturnCode
from qsctl.core.admin.target import matches
from qsctl.core.engine import ServiceEngine
from qsctl.core.messages import CommandReply, CommandRequest, QueueName
from qsctl.core.queue.hosting import implicit_reply_queue, participant_identifier, reply_topic
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.errors import Damaged, InvalidInput, QsctlError, Refused
from qsctl.service.stores.places import HostedPlace
from qsctl.service.stores.stores import Stores

EndpointTrial: TypeAlias = Callable[[QueueName, str, SharedReaderQueueSettings], None]
"""Raises `Refused` where the endpoints of a queue of this shared subscriber cannot be made."""


def refusal_of(
    engine: ServiceEngine,
    stores: Stores,
    request: CommandRequest,
    try_endpoints: EndpointTrial | None = None,
    *,
    limits: Callable[[], ServiceLimits] = ServiceLimits,
    replicates: bool = False,
) -> CommandReply | None:
    """Return the refusal of a change whose queues could not have stores, endpoints or replicas; None if it is possible.

    Args:
        engine: the engine that hosts the queues.
        stores: the queues' stores.
        request: the command that requests the change.
        try_endpoints: tests whether a queue's endpoints can be created.
        limits: returns the service's limits.
        replicates: whether the service is a member of a replication cluster.
    """
    if not matches(request.target, engine.hosted.application_name):
        return None
    if (failure := stores.failures.service) is not None:
        return _refusal(engine, request, failure.error)
    created = list(_created_places(engine, request))
    hosted = engine.hosted.by_name
    count = len(hosted) + sum(name not in hosted for name, _ in created)
    if created and (message := limits().too_many_queues(count)):
        return _refusal(engine, request, Refused(message, remedy=TOO_MANY_QUEUES_REMEDY))
    try:
        for name, place in created:
            if not replicates and (message := queue_is_hosted_alone(place.settings)):
                reply = Reply(ReturnCode.UNSUPPORTED, f"{message}. {NOT_REPLICATED_REMEDY}")
                return CommandReply(request.request, engine.hosted.application_name, reply)
            stores.check(name, place)
            if try_endpoints is not None:
                try_endpoints(name, place.subscriber, place.settings)
    except (InvalidInput, Refused, Damaged) as refused:
        return _refusal(engine, request, refused)
    return None


def _refusal(engine: ServiceEngine, request: CommandRequest, error: QsctlError) -> CommandReply:
    reply = Reply(ReturnCode.ERROR, f"{error.message}. {error.remedy}".strip())
    return CommandReply(request.request, engine.hosted.application_name, reply)


def _created_places(engine: ServiceEngine, request: CommandRequest) -> Iterator[tuple[QueueName, HostedPlace]]:
    """Yield the queues that a command would create, if the engine has the subscriber that they belong to."""
    queues: tuple[SharedReaderQueueSettings, ...]
    match request.command:
        case CreateQueue(subscriber, settings) if len(subscriber.names) == 2:
            (_, participant), (_, subscriber_name) = subscriber.names
            queues = (settings,)
        case CreateSubscriber(resource, settings) if len(resource.names) == 1:
            participant, subscriber_name = resource.name, settings.name
            queues = settings.queues
        case _:
            return
    hosted = engine.hosted.participants().get(participant_identifier(participant))
    if hosted is None:
        return
    for queue in queues:
        each = [queue, implicit_reply_queue(queue)] if reply_topic(queue) else [queue]
        for created in each:
            name = f"{participant}/{subscriber_name}/{created.name}"
            yield name, HostedPlace(hosted.domain_id, subscriber_name, created)
