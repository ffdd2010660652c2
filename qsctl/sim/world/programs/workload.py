"""The programs that a scenario's workload declares: producers and consumers, with their queues, names and GUIDs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from qsctl.core.messages import AckResponse, Write
from qsctl.errors import InvalidInput
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import SECOND_NS
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.service.peers import CONSUMER, PRODUCER, HostedQueue, guid_of, queue_named, service_rate
from qsctl.sim.world.environment.agenda import WorldAgenda
from qsctl.sim.world.programs.consuming import ConsumerProgram
from qsctl.sim.world.programs.producing import ProducerProgram

LIVES_MAX: Final = 10_000
"""Number of starts of one consumer's program that have distinct GUIDs."""


def producers_of(
    scenario: Scenario,
    queues: Sequence[HostedQueue],
    agenda: WorldAgenda,
    random: Callable[[str], Random],
    on_write: Callable[[int, Write], None],
    on_refused: Callable[[str, Write], None],
    on_outcome: Callable[[SampleIdentity, bool], None],
) -> list[ProducerProgram]:
    """Return every producer, numbered from 1 in the order of the scenario.

    Raises:
        InvalidInput: no queue has a producer's topic.
    """
    assert scenario.workload is not None
    assert scenario.world is not None
    programs: list[ProducerProgram] = []
    for declared in scenario.workload.producers:
        hosts = [queue for queue in queues if queue.topic_name == declared.topic_name]
        if not hosts:
            raise InvalidInput(f"no queue is for the topic {declared.topic_name!r}")
        hosts = [queue for queue in hosts if queue.participant == hosts[0].participant]
        for _ in range(declared.count):
            number = len(programs)
            own = random(f"producer-{number + 1}")
            programs.append(
                ProducerProgram(
                    f"producer-{number + 1}",
                    guid_of(PRODUCER, number),
                    hosts,
                    lifespan_ns=declared.lifespan_ns,
                    window_count=declared.window_samples,
                    writes_again_ns=scenario.world.write_again_ns,
                    persistence=scenario.world.persistence,
                    relays=own.random() < scenario.world.relayed,
                    agenda=agenda,
                    random=own,
                    on_write=on_write,
                    on_refused=on_refused,
                    on_outcome=on_outcome,
                )
            )
    return programs


def consumers_of(
    scenario: Scenario,
    queues: Sequence[HostedQueue],
    agenda: WorldAgenda,
    random: Callable[[str], Random],
    on_answer: Callable[[Guid, str, SampleIdentity, AckResponse], None],
) -> list[ConsumerProgram]:
    """Return every consumer, numbered from 1 in the order of the scenario.

    Raises:
        InvalidInput: a queue that the service does not have or that is ambiguous, or a service rate of 0.
    """
    assert scenario.workload is not None
    programs: list[ConsumerProgram] = []
    for declared in scenario.workload.consumers:
        queue = queue_named(declared.queue, list(queues))
        for _ in range(declared.count):
            number = len(programs)
            programs.append(
                ConsumerProgram(
                    f"consumer-{number + 1}",
                    queue,
                    _guids(number),
                    mean_service_ns=SECOND_NS / service_rate(declared),
                    rejects=declared.rejects,
                    silent=declared.silent,
                    agenda=agenda,
                    random=random(f"consumer-{number + 1}"),
                    on_answer=on_answer,
                )
            )
    return programs


def _guids(number: int) -> Callable[[int], Guid]:
    return lambda life: guid_of(CONSUMER, number * LIVES_MAX + life)
