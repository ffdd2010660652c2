"""The steps from a member's configuration to that of its cluster, one change at a time [QS 7.2].

Decides: the next change. Entities that only the member's file has are deleted; one that a command deleted and created
again while the member was away is deleted here, too, though it looks the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from qsctl.core.admin.command import CreateQueue, CreateSubscriber, DeleteQueue, DeleteSubscriber, UpdateQueue
from qsctl.core.high_availability.cluster_configuration import Change, Subscribers
from qsctl.core.queue.change import fixed_differences
from qsctl.core.queue.hosting import participant_identifier, queue_identifier, subscriber_identifier
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings


def lacking_participants(hosted: Subscribers, wanted: Subscribers) -> list[str]:
    """Return the domain participants that the cluster has queues in, and this member has not at all."""
    return sorted(name for name, subscribers in wanted.items() if subscribers and name not in hosted)


def next_change(
    hosted: Subscribers, made_by: Mapping[str, int], wanted: Subscribers, created: Mapping[str, int]
) -> Change | None:
    """Return the next command that brings a member closer to its cluster; None: they have the same.

    Args:
        hosted: what the member has.
        made_by: the entries that created what it has.
        wanted: what the cluster has.
        created: the entries that created that.
    """
    return (
        next(_deletions(hosted, made_by, wanted, created), None)
        or next(_creations(hosted, wanted), None)
        or next(_updates(hosted, wanted), None)
    )


def _deletions(
    hosted: Subscribers, made_by: Mapping[str, int], wanted: Subscribers, created: Mapping[str, int]
) -> Iterator[Change]:
    for participant, subscribers in hosted.items():
        targets = {each.name: each for each in wanted.get(participant, ())}
        for subscriber in subscribers:
            where = f"{participant}/{subscriber.name}"
            target = targets.get(subscriber.name)
            is_same = (
                target is not None
                and (target.sessions, target.qos) == (subscriber.sessions, subscriber.qos)
                and made_by.get(where, 0) == created.get(where, 0)
            )
            if target is None or not is_same:
                yield DeleteSubscriber(subscriber_identifier(participant, subscriber.name))
                continue
            remaining = {queue.name: queue for queue in target.queues}
            going = [
                queue
                for queue in subscriber.queues
                if not _remains(queue, remaining.get(queue.name))
                or made_by.get(f"{where}/{queue.name}", 0) != created.get(f"{where}/{queue.name}", 0)
            ]
            if _goes_as_a_whole(subscriber, {queue.name for queue in going}):
                yield DeleteSubscriber(subscriber_identifier(participant, subscriber.name))
            for queue in sorted(going, key=lambda each: each.is_dead_letter):
                yield DeleteQueue(queue_identifier(participant, subscriber.name, queue))


def _remains(queue: SharedReaderQueueSettings, target: SharedReaderQueueSettings | None) -> bool:
    """Return whether a queue is as it shall be, or can be made so with its samples in it."""
    if target is None or queue == target:
        return target is not None
    return not queue.replication.enabled and not fixed_differences(queue, target)


def _goes_as_a_whole(subscriber: SharedSubscriberSettings, going: set[str]) -> bool:
    """Return whether a dead-letter queue goes and one that uses it stays, or the other way round in a replication
    group.
    """
    for queue in subscriber.queues:
        letters = queue.dead_letter_queue
        if letters and (queue.name in going) != (letters in going):
            return letters in going or queue.replication.enabled
    return False


def _creations(hosted: Subscribers, wanted: Subscribers) -> Iterator[Change]:
    for participant, subscribers in wanted.items():
        present = {each.name: each for each in hosted.get(participant, ())}
        for subscriber in subscribers:
            own = present.get(subscriber.name)
            if own is None:
                yield CreateSubscriber(participant_identifier(participant), replace(subscriber))
                continue
            names = {queue.name for queue in own.queues}
            for queue in sorted(subscriber.queues, key=lambda each: not each.is_dead_letter):
                if queue.name not in names:
                    yield CreateQueue(subscriber_identifier(participant, subscriber.name), queue)


def _updates(hosted: Subscribers, wanted: Subscribers) -> Iterator[Change]:
    for participant, subscribers in wanted.items():
        present = {each.name: each for each in hosted.get(participant, ())}
        for subscriber in subscribers:
            held = {queue.name: queue for queue in present[subscriber.name].queues}
            for queue in subscriber.queues:
                if held[queue.name] != queue:
                    yield UpdateQueue(queue_identifier(participant, subscriber.name, queue), queue)
