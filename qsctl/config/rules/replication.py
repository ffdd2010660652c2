"""What replication needs [QS 7.1.3 and 7.2], and that this version has none.

Decides: the one judgement of replicated queues. `validate`, `serve`, CREATE, `init` and the embedded service ask here,
so that all of them answer the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from qsctl.config.problems import Problem
from qsctl.config.rules.place import Place, QueuePlace
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import ServiceSettings, queues_of
from qsctl.errors import Refused
from qsctl.instant import format_duration

_NO_REPLICATION: Final = "is to be replicated (manual, chapter 7), and this version has no replication"
NOT_REPLICATED_REMEDY: Final = "Set <replication><enabled> to false, or use <persistence> to survive a restart."
_QUEUE_STEP: Final = "queue_qos/replication/enabled"


def queue_is_served(queue: SharedReaderQueueSettings) -> str:
    """Why this version cannot host a queue, in words; empty where it can."""
    return f"queue {queue.name} {_NO_REPLICATION}" if queue.replication.enabled else ""


def configuration_is_served(configuration: ServiceConfiguration) -> str:
    """Why this version cannot replicate a service's configuration, in words; empty where nobody asks."""
    enabled = configuration.service_qos.configuration_replication.replication.enabled
    return f"the configuration {_NO_REPLICATION}" if enabled else ""


def unserved(hosted: ServiceConfiguration | ServiceSettings) -> list[str]:
    """Everything of a service that is to be replicated, in words."""
    service = hosted.service if isinstance(hosted, ServiceConfiguration) else hosted
    found = [queue_is_served(queue) for _, _, queue in queues_of(service)]
    if isinstance(hosted, ServiceConfiguration):
        found.append(configuration_is_served(hosted))
    return [each for each in found if each]


def refuse_replication(hosted: ServiceConfiguration | ServiceSettings) -> None:
    """Refuse to host what would silently not be replicated.

    Raises:
        Refused: names everything that is to be replicated.
    """
    if found := unserved(hosted):
        raise Refused("; ".join(found), remedy=NOT_REPLICATED_REMEDY)


def no_queue_is_replicated(place: QueuePlace) -> Iterator[Problem]:
    """A queue that is not replicated must not be taken for one that is [QS 7.1]."""
    if message := queue_is_served(place.queue):
        yield place.unsupported(_QUEUE_STEP, message, found="true", suggestion=NOT_REPLICATED_REMEDY)


def no_configuration_is_replicated(place: Place) -> Iterator[Problem]:
    """A configuration that is not replicated must not be taken for one that is [QS 7.2]."""
    if message := configuration_is_served(place.configuration):
        path = f"{place.path}/service_qos/configuration_replication/enabled"
        yield place.unsupported(path, message, found="true", suggestion=NOT_REPLICATED_REMEDY)


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
