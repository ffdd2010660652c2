"""From a recording to a scenario, and from a scenario's `<queue>` elements back to a service's settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import ServiceSettings, queues_of
from qsctl.sim.scenario.replay import Replay, ReplayedQueue
from qsctl.sim.scenario.replay_rules import short_names
from qsctl.sim.scenario.scenario import Model, Scenario

from qsctl.eventlog.location import Location  # isort: skip
from qsctl.eventlog.run_folder import RunInfo  # isort: skip


def scenario_of(folder: Location, info: RunInfo, service: ServiceSettings) -> Scenario:
    """Return the scenario that replays a recording with this service, without a change."""
    return Scenario(
        name=f"{info.scenario}-replay",
        model=Model.REPLAY,
        horizon_ns=info.horizon_ns,
        warm_up_ns=info.warm_up_ns,
        replay=Replay(place_of(folder), service, replayed_queues(service)),
        description=f"The recording {folder.name}, replayed.",
    )


def place_of(folder: Location) -> str:
    """Return where a recording is, whatever the working directory."""
    return str(folder.absolute()) if isinstance(folder, Path) else str(folder)


def replayed_queues(service: ServiceSettings) -> tuple[ReplayedQueue, ...]:
    """Return every queue's values, as the service has them."""
    settings = [queue for _, _, queue in queues_of(service)]
    return tuple(_element(name, queue) for name, queue in zip(short_names(service), settings, strict=True))


def changed_service(replay: Replay) -> ServiceSettings:
    """Return the service with the values of the `<queue>` elements."""
    by_full_name = {short_names(replay.service)[queue.name]: queue for queue in replay.queues}

    def changed(full_name: str, settings: SharedReaderQueueSettings) -> SharedReaderQueueSettings:
        element = by_full_name.get(full_name)
        return settings if element is None else _applied(settings, element)

    return _each_queue(replay.service, changed)


def _element(name: str, queue: SharedReaderQueueSettings) -> ReplayedQueue:
    limits, redelivery = queue.limits, queue.redelivery
    return ReplayedQueue(
        name,
        limits.max_count,
        limits.max_in_memory_bytes,
        limits.replacement,
        limits.waiting_count_max,
        queue.distribution.unacked_threshold,
        redelivery.max_delivery_retries,
        redelivery.response_timeout_ns,
        queue.lifespan_ns,
    )


def _applied(settings: SharedReaderQueueSettings, element: ReplayedQueue) -> SharedReaderQueueSettings:
    return dataclasses.replace(
        settings,
        lifespan_ns=element.lifespan_ns,
        limits=dataclasses.replace(
            settings.limits,
            max_count=element.max_count,
            max_in_memory_bytes=element.max_in_memory_bytes,
            replacement=element.replacement,
            waiting_count_max=element.waiting_count_max,
        ),
        distribution=dataclasses.replace(settings.distribution, unacked_threshold=element.unacked_threshold),
        redelivery=dataclasses.replace(
            settings.redelivery,
            max_delivery_retries=element.max_delivery_retries,
            response_timeout_ns=element.response_timeout_ns,
        ),
    )


def _each_queue(
    service: ServiceSettings, changed: Callable[[str, SharedReaderQueueSettings], SharedReaderQueueSettings]
) -> ServiceSettings:
    return dataclasses.replace(
        service,
        participants=tuple(
            dataclasses.replace(
                participant,
                subscribers=tuple(
                    dataclasses.replace(
                        subscriber,
                        queues=tuple(
                            changed(f"{participant.name}/{subscriber.name}/{queue.name}", queue)
                            for queue in subscriber.queues
                        ),
                    )
                    for subscriber in participant.subscribers
                ),
            )
            for participant in service.participants
        ),
    )
