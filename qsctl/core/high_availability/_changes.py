"""Changes of a configuration that a member of a cluster can make by itself [QS 5.4 and 7.2].

Decides: which changes are refused. Commands are not ordered together with samples. Where the configuration is not
replicated they are not ordered at all, and each member makes a change when it receives the command. That is safe for a
replication group as a whole: a group that is new at a member is sent the others' log. It is not for a part of a group:
the others would follow its log without that part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from qsctl.core.admin.command import Command, CreateQueue, CreateSubscriber, DeleteQueue
from qsctl.core.admin.reply import refusal
from qsctl.core.hosted_service import HostedService
from qsctl.core.messages import CommandReply, CommandRequest
from qsctl.core.queue.settings import ReplicationSettings, SharedReaderQueueSettings
from qsctl.errors import NotFound, Refused


def refuse_change(hosted: HostedService, member_count: int, request: CommandRequest) -> CommandReply | None:
    """Return the refusal of a command that would change a part of a replication group, or make one of another size."""
    try:
        check_change(hosted, member_count, request.command)
    except NotFound:
        return None  # the engine reports it
    except Refused as error:
        return CommandReply(request.request, hosted.application_name, refusal(error))
    return None


def check_size(queues: Iterable[SharedReaderQueueSettings], member_count: int) -> None:
    """Compare `queue_instances` with the members that there are.

    Raises:
        Refused: names the first queue that has another number.
    """
    for queue in queues:
        instances = queue.replication.queue_instances
        if queue.replication.enabled and instances != member_count:
            raise Refused(
                f"queue {queue.name!r} has queue_instances {instances}, and the cluster has {member_count} members",
                remedy="Give queue_instances the number of members.",
            )


def check_names(name: str, names: Sequence[str], *, is_joining: bool = False) -> None:
    """Compare the names of a cluster's members with that of one of them, or of one that joins them.

    Raises:
        Refused: it is not among them, or it joins and is; or one is there twice.
    """
    if len(set(names)) < len(names) or (name in names) is is_joining:
        raise Refused(
            f"the members of the cluster are {', '.join(sorted(names))}, and this one is {name!r}",
            remedy="Give each instance an application name of its own, and name all of them.",
        )


def strictest(settings: Sequence[ReplicationSettings]) -> ReplicationSettings:
    """Return the settings of a group, whose queues share a log: the shortest time-outs, and synchronized if any is."""
    return replace(
        settings[0],
        master_timeout_ns=min(each.master_timeout_ns for each in settings),
        sample_timeout_ns=min(each.sample_timeout_ns for each in settings),
        synchronize_consumer_assignment=any(each.synchronize_consumer_assignment for each in settings),
    )


def check_change(hosted: HostedService, member_count: int, command: Command) -> None:
    """Refuse a command that would change a part of a replication group, or make one of another size.

    Raises:
        NotFound: there is no such queue.
        Refused: the message names the part, or the size.
    """
    match command:
        case CreateQueue(_, settings):
            check_size((settings,), member_count)
            if settings.replication.enabled and settings.dead_letter_queue:
                raise Refused(
                    f"{settings.name!r} would join the replication group of {settings.dead_letter_queue!r}",
                    remedy="Create both with a shared subscriber of their own: a group comes and goes as a whole.",
                )
        case CreateSubscriber(_, subscriber):
            check_size(subscriber.queues, member_count)
        case DeleteQueue(resource):
            queue = hosted.queue(resource.bare)
            if queue.is_replicated and len(_group(hosted, queue.stream.name)) > 1:
                raise Refused(
                    f"{resource.bare} is in a replication group with its dead-letter queue",
                    remedy="Delete the shared subscriber: a group comes and goes as a whole.",
                )
        case _:
            pass


def _group(hosted: HostedService, stream: str) -> Sequence[str]:
    return [name for name, queue in hosted.by_name.items() if queue.is_replicated and queue.stream.name == stream]
