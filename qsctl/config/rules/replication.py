"""What replication needs [QS 7.1.3 and 7.2], and which of it a service can do.

Decides: the one judgement of replicated queues. `validate`, `serve`, CREATE, `init` and the embedded service ask here,
so that all of them answer the same. A replicated queue needs a running service, which is a member of a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from qsctl.config.problems import Problem
from qsctl.config.rules.place import Place, QueuePlace
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import ServiceSettings, queues_of
from qsctl.errors import Refused
from qsctl.instant import format_duration

_ALONE: Final = "is to be replicated [QS 7], and this service is not a member of a cluster"
NOT_REPLICATED_REMEDY: Final = (
    "Run the instances with qsctl serve and a configuration that has a replicated queue, or set "
    "<replication><enabled> to false."
)
_NO_CONFIGURATION_REPLICATION: Final = "is to be replicated [QS 7.2], and this version replicates queues only"
_CONFIGURATION_REMEDY: Final = (
    "Set <configuration_replication><enabled> to false, give each instance the same file, and send each command to all."
)
_UNEQUAL_REMEDY: Final = "Give all replicated queues of the service the same queue_instances."
_SETTINGS: Final = "queue_qos/replication/replication_settings"
_QUEUE_STEP: Final = "queue_qos/replication/enabled"


def queue_is_hosted_alone(queue: SharedReaderQueueSettings) -> str:
    """Why a service that is not a member of a cluster cannot host a queue, in words; empty where it can."""
    return f"queue {queue.name} {_ALONE}" if queue.replication.enabled else ""


def configuration_is_served(configuration: ServiceConfiguration) -> str:
    """Why this version cannot replicate a service's configuration, in words; empty where nobody asks."""
    enabled = configuration.service_qos.configuration_replication.replication.enabled
    return f"the configuration {_NO_CONFIGURATION_REPLICATION}" if enabled else ""


def replicated_queues(service: ServiceSettings) -> list[SharedReaderQueueSettings]:
    """Return the queues of a service that are to be replicated."""
    return [queue for _, _, queue in queues_of(service) if queue.replication.enabled]


def instances_of(service: ServiceSettings) -> int:
    """Return how many members the cluster of a service has: the `queue_instances` of its queues; 0: none is replicated.

    Raises:
        Refused: two queues name different numbers.
    """
    queues = replicated_queues(service)
    for queue in queues:
        if queue.replication.queue_instances != queues[0].replication.queue_instances:
            raise Refused(_unequal(queues[0], queue), remedy=_UNEQUAL_REMEDY)
    return queues[0].replication.queue_instances if queues else 0


def unserved(hosted: ServiceConfiguration | ServiceSettings) -> list[str]:
    """Everything of a service that is to be replicated, in words: none of it is where one service lives alone."""
    service = hosted.service if isinstance(hosted, ServiceConfiguration) else hosted
    found = [queue_is_hosted_alone(queue) for _, _, queue in queues_of(service)]
    if isinstance(hosted, ServiceConfiguration):
        found.append(configuration_is_served(hosted))
    return [each for each in found if each]


def refuse_replication(hosted: ServiceConfiguration | ServiceSettings) -> None:
    """Refuse to host alone what would silently not be replicated.

    Raises:
        Refused: names everything that is to be replicated.
    """
    if found := unserved(hosted):
        raise Refused("; ".join(found), remedy=NOT_REPLICATED_REMEDY)


def refuse_configuration_replication(configuration: ServiceConfiguration) -> None:
    """Refuse to host what would silently not be replicated.

    Raises:
        Refused: the configuration is to be replicated.
    """
    if found := configuration_is_served(configuration):
        raise Refused(found, remedy=_CONFIGURATION_REMEDY)


def members_of(configuration: ServiceConfiguration, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the cluster's members as they were given, where they can be its.

    Raises:
        Refused: they are not as many as `queue_instances`, or this service is not among them, or one is there twice; or
            no queue is replicated.
    """
    count, own = instances_of(configuration.service), configuration.service.application_name
    if not names:
        return ()
    if not count:
        raise Refused("members are named, and no queue is replicated", remedy="Leave --members out.")
    if len(set(names)) < len(names) or len(names) != count or own not in names:
        raise Refused(
            f"the members named are {', '.join(names)}; queue_instances is {count}, and this service is {own}",
            remedy="Name each instance once, this one too, by its application name (-appName).",
        )
    return tuple(names)


def queue_instances_are_equal(place: Place) -> Iterator[Problem]:
    """The members of a cluster have all replicated queues of a service in common: our reading of [QS 7.3]."""
    queues = replicated_queues(place.configuration.service)
    for queue in queues:
        if queue.replication.queue_instances != queues[0].replication.queue_instances:
            yield place.unsupported(place.path, _unequal(queues[0], queue), suggestion=_UNEQUAL_REMEDY)
            return


def no_configuration_is_replicated(place: Place) -> Iterator[Problem]:
    """A configuration that is not replicated must not be taken for one that is [QS 7.2]."""
    if message := configuration_is_served(place.configuration):
        path = f"{place.path}/service_qos/configuration_replication/enabled"
        yield place.unsupported(path, message, found="true", suggestion=_CONFIGURATION_REMEDY)


def replicas_have_distinct_application_names(place: Place) -> Iterator[Problem]:
    """Instances that replicate each other are told apart by their application names [QS 7.2]."""
    replicated = place.configuration.service_qos.configuration_replication.replication.enabled or any(
        queue.replication.enabled for _, _, queue in queues_of(place.configuration.service)
    )
    if replicated and not place.named_application:
        yield place.note(
            f"{place.path}/service_qos",
            "each instance of a replicated service needs an application name of its own",
            found=place.configuration.service.application_name,
            suggestion="Start each instance with another -appName that has the same beginning.",
        )


def an_even_number_survives_no_more(place: QueuePlace) -> Iterator[Problem]:
    """A quorum is more than half of `<queue_instances>` [QS 7.1.1.2]: of two, both."""
    replication = place.queue.replication
    count = replication.queue_instances
    if replication.enabled and count >= 2 and count % 2 == 0:
        survived = count // 2 - 1
        yield place.warning(
            f"{_SETTINGS}/queue_instances",
            "two instances survive the loss of none: a quorum is both"
            if count == 2
            else f"{count} instances survive the loss of {survived}, as {count - 1} do",
            found=str(count),
            allowed=f"{count + 1}, to survive the loss of {survived + 1}",
        )


def one_replica_is_no_replication(place: QueuePlace) -> Iterator[Problem]:
    """`<queue_instances>` counts the master too [QS Table 7.3]."""
    replication = place.queue.replication
    if replication.enabled and replication.queue_instances < 2:
        yield place.warning(
            "queue_qos/replication/replication_settings/queue_instances",
            "a single instance is no replication",
            found=str(replication.queue_instances),
            allowed="2 or more",
        )


def sample_timeout_exceeds_master_timeout(place: QueuePlace) -> Iterator[Problem]:
    """A sample must outlive an election, or every change of master refuses samples [QS Table 7.3]."""
    replication = place.queue.replication
    if replication.enabled and replication.sample_timeout_ns <= replication.master_timeout_ns:
        yield place.warning(
            "queue_qos/replication/replication_settings/sample_timeout",
            "samples give up before a new master can be elected",
            found=f"{format_duration(replication.sample_timeout_ns)}, master_timeout "
            f"{format_duration(replication.master_timeout_ns)}",
            allowed=f"more than {format_duration(replication.master_timeout_ns)}",
        )


def _unequal(one: SharedReaderQueueSettings, other: SharedReaderQueueSettings) -> str:
    return (
        f"queue {one.name} has queue_instances {one.replication.queue_instances}, and queue {other.name} "
        f"{other.replication.queue_instances}: the queues of a service have the same members"
    )
