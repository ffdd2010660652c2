"""The configuration of each instance of a cluster, out of the scenario's service and what its `<world>` changes."""

from __future__ import annotations

import dataclasses

from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import ServiceSettings, queues_of
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.world import World


def instance_name(number: int) -> str:
    """Return the application name of an instance."""
    return f"instance-{number}"


def instance_count(scenario: Scenario) -> int:
    """Return how many instances there are: as many as the replicated queues expect, unless the scenario says."""
    assert scenario.workload is not None
    assert scenario.world is not None
    if scenario.world.instances:
        return scenario.world.instances
    return max((each.replication.queue_instances for each in _queues(scenario) if each.replication.enabled), default=1)


def instance_settings(scenario: Scenario, number: int) -> ServiceSettings:
    """Return the configuration of the instance of this number, from 1."""
    assert scenario.workload is not None
    assert scenario.world is not None
    service, world = scenario.workload.service, scenario.world
    count = instance_count(scenario)
    participants = tuple(
        dataclasses.replace(
            participant,
            subscribers=tuple(
                dataclasses.replace(
                    subscriber, queues=tuple(_changed(queue, world, count) for queue in subscriber.queues)
                )
                for subscriber in participant.subscribers
            ),
        )
        for participant in service.participants
    )
    return dataclasses.replace(service, application_name=instance_name(number), participants=participants)


def _changed(queue: SharedReaderQueueSettings, world: World, count: int) -> SharedReaderQueueSettings:
    if not queue.replication.enabled:
        return queue
    master_timeout_ns = world.master_timeout_ns or queue.replication.master_timeout_ns
    replication = dataclasses.replace(queue.replication, queue_instances=count, master_timeout_ns=master_timeout_ns)
    return dataclasses.replace(queue, replication=replication)


def _queues(scenario: Scenario) -> list[SharedReaderQueueSettings]:
    assert scenario.workload is not None
    return [queue for _, _, queue in queues_of(scenario.workload.service)]
