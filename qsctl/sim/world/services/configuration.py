"""The configuration of each instance of a cluster: the scenario's service, as changed by its `<world>`."""

from __future__ import annotations

import dataclasses

from qsctl.core.queue.settings import ReplicationSettings, SharedReaderQueueSettings
from qsctl.core.settings import ServiceSettings, queues_of
from qsctl.sim.scenario.parts.world import WorldScenario
from qsctl.sim.scenario.scenario import Scenario


def instance_name(number: int) -> str:
    """Return the application name of the instance of this number, from 1."""
    return f"instance-{number}"


def instance_count(scenario: Scenario) -> int:
    """Return the number of instances that the scenario sets, else the largest that a replicated queue expects."""
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


def configuration_settings(scenario: Scenario) -> ReplicationSettings | None:
    """Return how the configuration is replicated, with the timeouts of a replicated queue; None if it is not."""
    assert scenario.workload is not None
    assert scenario.world is not None
    if not scenario.world.replicates_configuration:
        return None
    own = next((each.replication for each in _queues(scenario) if each.replication.enabled), ReplicationSettings())
    return dataclasses.replace(
        own,
        enabled=True,
        queue_instances=instance_count(scenario),
        master_timeout_ns=scenario.world.master_timeout_ns or own.master_timeout_ns,
    )


def created_settings(scenario: Scenario, name: str, number: int) -> SharedReaderQueueSettings:
    """Return the settings of a queue that a command creates: like the scenario's first queue, but not replicated.

    Equal names with different `number`s give different settings.
    """
    first = _queues(scenario)[0]
    return dataclasses.replace(
        first,
        name=name,
        topic_name=name,
        reply_type="",
        dead_letter_queue="",
        is_dead_letter=False,
        type_name=first.type_name or "Created",
        replication=ReplicationSettings(),
        distribution=dataclasses.replace(first.distribution, unacked_threshold=number),
    )


def _changed(queue: SharedReaderQueueSettings, world: WorldScenario, count: int) -> SharedReaderQueueSettings:
    if not queue.replication.enabled:
        return queue
    master_timeout_ns = world.master_timeout_ns or queue.replication.master_timeout_ns
    replication = dataclasses.replace(queue.replication, queue_instances=count, master_timeout_ns=master_timeout_ns)
    return dataclasses.replace(queue, replication=replication)


def _queues(scenario: Scenario) -> list[SharedReaderQueueSettings]:
    assert scenario.workload is not None
    return [queue for _, _, queue in queues_of(scenario.workload.service)]
