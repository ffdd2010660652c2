"""Conversions of a recording to a scenario, and of a scenario's `<queue>` elements to a service's settings."""

from __future__ import annotations

from pathlib import Path

from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import (
    DomainParticipantSettings,
    ServiceSettings,
    SharedSubscriberSettings,
    queues_by_name,
    with_queues,
)
from qsctl.sim.scenario.forms.form import value_at, with_value
from qsctl.sim.scenario.forms.replay import VARIED
from qsctl.sim.scenario.parts.replay import Replay, ReplayedQueue
from qsctl.sim.scenario.rules.replay import short_names
from qsctl.sim.scenario.scenario import Model, Scenario

from qsctl.eventlog.location import Location  # isort: skip
from qsctl.eventlog.run_folder import RunInfo  # isort: skip


def scenario_of(folder: Location, info: RunInfo, service: ServiceSettings) -> Scenario:
    """Return the scenario that replays a recording with this service, unchanged."""
    return Scenario(
        name=f"{info.scenario}-replay",
        model=Model.REPLAY,
        horizon_ns=info.horizon_ns,
        warm_up_ns=info.warm_up_ns,
        replay=Replay(place_of(folder), service, replayed_queues(service)),
        description=f"The recording {folder.name}, replayed.",
    )


def place_of(folder: Location) -> str:
    """Return the absolute path or URI of a recording."""
    return str(folder.absolute()) if isinstance(folder, Path) else str(folder)


def replayed_queues(service: ServiceSettings) -> tuple[ReplayedQueue, ...]:
    """Return the `<queue>` elements with the service's values for every queue."""
    queues = queues_by_name(service)
    plain = SharedReaderQueueSettings("", "")
    return tuple(
        ReplayedQueue(name, _varied(plain, queues[full_name])) for name, full_name in short_names(service).items()
    )


def changed_service(replay: Replay) -> ServiceSettings:
    """Return the service with the values of the scenario's `<queue>` elements."""
    by_full_name = {short_names(replay.service)[queue.name]: queue for queue in replay.queues}

    def changed(
        participant: DomainParticipantSettings, subscriber: SharedSubscriberSettings, queue: SharedReaderQueueSettings
    ) -> SharedReaderQueueSettings:
        element = by_full_name.get(f"{participant.name}/{subscriber.name}/{queue.name}")
        return queue if element is None else _varied(queue, element.settings)

    return with_queues(replay.service, changed)


def _varied(settings: SharedReaderQueueSettings, by: SharedReaderQueueSettings) -> SharedReaderQueueSettings:
    """Return a queue's settings with the values of `by` for the settings that a replay can vary."""
    for field in VARIED:
        settings = with_value(settings, field, value_at(by, field))
    return settings
