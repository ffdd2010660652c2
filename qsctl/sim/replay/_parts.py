"""The independent parts of a service, each stepped at the recorded instants of its own queues.

A running service keeps the same queues in one process: a queue, its dead letter queue and the queue of its replies. A
part is stepped only at instants with a recorded action of it, so that two parts do not fire each other's timers.
"""

from __future__ import annotations

from qsctl.core.queue.hosting import tied_queues
from qsctl.core.settings import ServiceSettings, queues_by_name, with_queues
from qsctl.sim.replay.recording import Recorded
from qsctl.sim.scenario.parts.replay import AS_RECORDED, Replay
from qsctl.sim.scenario.rules.replay import short_names


def parts_of(service: ServiceSettings) -> list[ServiceSettings]:
    """Return the service's settings once for each of its parts, reduced to the queues of that part."""
    together: dict[str, set[str]] = {}
    for participant in service.participants:
        for subscriber in participant.subscribers:
            place = f"{participant.name}/{subscriber.name}"
            for queue in subscriber.queues:
                together.setdefault(f"{place}/{queue.name}", {f"{place}/{queue.name}"})
            for one, other in tied_queues(subscriber.queues):
                joined = together[f"{place}/{one.name}"] | together[f"{place}/{other.name}"]
                together.update(dict.fromkeys(joined, joined))
    return [_part(service, names) for names in dict.fromkeys(map(frozenset, together.values()))]


def changed_queues(service: ServiceSettings, recorded: Recorded, replay: Replay) -> set[str]:
    """Return the full names of the queues whose settings or consumers differ from the recorded ones."""
    then, now = queues_by_name(recorded.service), queues_by_name(service)
    names = short_names(replay.service)
    others = {names[each.name] for each in replay.queues if each.consumers != AS_RECORDED or each.service_factor != 1.0}
    return others | {name for name in then.keys() | now.keys() if then.get(name) != now.get(name)}


def _part(service: ServiceSettings, names: frozenset[str]) -> ServiceSettings:
    return with_queues(
        service,
        lambda participant, subscriber, queue: (
            queue if f"{participant.name}/{subscriber.name}/{queue.name}" in names else None
        ),
    )
