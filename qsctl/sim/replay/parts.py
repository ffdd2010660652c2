"""A service in parts that do not concern each other: each is stepped at the instants at which its own queues were.

What must stay together is what a running service keeps in one process, too: a queue, its dead letters and the queue of
its replies. A part is stepped where the recording has something of it, so that two sessions do not wake each other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from qsctl.core.queue.hosting import reply_topic
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import ServiceSettings, SharedSubscriberSettings, queues_of
from qsctl.sim.replay.recording import Recorded
from qsctl.sim.scenario.replay import AS_RECORDED, Replay
from qsctl.sim.scenario.replay_rules import short_names


def parts_of(service: ServiceSettings) -> list[ServiceSettings]:
    """Return the service once for each of its parts, with the queues of that part alone."""
    together: dict[str, set[str]] = {}
    for participant in service.participants:
        for subscriber in participant.subscribers:
            place = f"{participant.name}/{subscriber.name}"
            for queue in subscriber.queues:
                together.setdefault(f"{place}/{queue.name}", {f"{place}/{queue.name}"})
            for one, other in _tied(subscriber):
                joined = together[f"{place}/{one}"] | together[f"{place}/{other}"]
                together.update(dict.fromkeys(joined, joined))
    return [_part(service, names) for names in dict.fromkeys(map(frozenset, together.values()))]


def changed_queues(service: ServiceSettings, recorded: Recorded, replay: Replay) -> set[str]:
    """Return the full names of the queues whose settings or consumers are others than recorded."""
    then, now = (
        {f"{one.name}/{two.name}/{queue.name}": queue for one, two, queue in queues_of(each)}
        for each in (recorded.service, service)
    )
    names = short_names(replay.service)
    others = {names[each.name] for each in replay.queues if each.consumers != AS_RECORDED or each.service_factor != 1.0}
    return others | {name for name in then.keys() | now.keys() if then.get(name) != now.get(name)}


def _tied(subscriber: SharedSubscriberSettings) -> Iterator[tuple[str, str]]:
    by_name = {queue.name: queue for queue in subscriber.queues}
    by_topic = {queue.topic_name: queue for queue in subscriber.queues}
    for queue in subscriber.queues:
        if queue.dead_letter_queue in by_name:
            yield queue.name, queue.dead_letter_queue
        if reply_topic(queue) in by_topic:
            yield queue.name, by_topic[reply_topic(queue)].name


def _part(service: ServiceSettings, names: frozenset[str]) -> ServiceSettings:
    def queues(participant: str, subscriber: SharedSubscriberSettings) -> tuple[SharedReaderQueueSettings, ...]:
        return tuple(each for each in subscriber.queues if f"{participant}/{subscriber.name}/{each.name}" in names)

    return dataclasses.replace(
        service,
        participants=tuple(
            dataclasses.replace(
                participant,
                subscribers=tuple(
                    dataclasses.replace(each, queues=queues(participant.name, each)) for each in participant.subscribers
                ),
            )
            for participant in service.participants
        ),
    )
