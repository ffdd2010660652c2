"""What a service cannot store it refuses to create (manual, sections 2.14.2 and 5.4.1).

The engine knows nothing of files: a queue whose names cannot be part of a file name is answered here, before it is
created and its store cannot be.
"""

from __future__ import annotations

from collections.abc import Iterator

from qsctl.core.admin.command import CreateQueue, CreateSubscriber
from qsctl.core.admin.reply import Reply, ReturnCode
from qsctl.core.admin.target import matches
from qsctl.core.engine import ServiceEngine
from qsctl.core.messages import CommandReply, CommandRequest, QueueName
from qsctl.core.queue.hosting import implicit_reply_queue, participant_identifier, reply_topic
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.errors import InvalidInput, Refused
from qsctl.service.places import Place
from qsctl.service.stores import Stores


def refusal_of(engine: ServiceEngine, stores: Stores, request: CommandRequest) -> CommandReply | None:
    """The reply to a command whose queues could have no store of their own; None: the engine may answer it."""
    if not matches(request.target, engine.application_name):
        return None
    try:
        for name, place in _created_places(engine, request):
            stores.check(name, place)
    except (InvalidInput, Refused) as error:
        reply = Reply(ReturnCode.ERROR, f"{error.message}. {error.remedy}".strip())
        return CommandReply(request.request, engine.application_name, reply)
    return None


def _created_places(engine: ServiceEngine, request: CommandRequest) -> Iterator[tuple[QueueName, Place]]:
    """The queues that a command would create, where the engine has what they would stand in."""
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
    hosted = engine.participants().get(participant_identifier(participant))
    if hosted is None:
        return
    for queue in queues:
        each = [queue, implicit_reply_queue(queue)] if reply_topic(queue) else [queue]
        for created in each:
            name = f"{participant}/{subscriber_name}/{created.name}"
            yield name, Place(hosted.domain_id, subscriber_name, created)
