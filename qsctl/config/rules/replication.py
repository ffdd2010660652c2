"""What replication needs (sections 7.1.3 and 7.2)."""

from __future__ import annotations

from collections.abc import Iterator

from qsctl.config.problems import Problem
from qsctl.config.rules.place import Place, QueuePlace
from qsctl.instant import format_duration


def replicas_have_distinct_application_names(place: Place) -> Iterator[Problem]:
    """Instances that replicate each other are told apart by their application names (section 7.2)."""
    replicated = place.configuration.service_qos.configuration_replication.replication.enabled or any(
        queue.replication.enabled
        for participant in place.configuration.service.participants
        for subscriber in participant.subscribers
        for queue in subscriber.queues
    )
    if replicated and not place.named_application:
        yield place.note(
            f"{place.path}/service_qos",
            "each instance of a replicated service needs an application name of its own",
            found=place.configuration.service.application_name,
            suggestion="Start each instance with another -appName that has the same beginning.",
        )


def one_replica_is_no_replication(place: QueuePlace) -> Iterator[Problem]:
    """`<queue_instances>` counts the master too (Table 7.3)."""
    replication = place.queue.replication
    if replication.enabled and replication.queue_instances < 2:
        yield place.warning(
            "queue_qos/replication/replication_settings/queue_instances",
            "a single instance is no replication",
            found=str(replication.queue_instances),
            allowed="2 or more",
        )


def sample_timeout_exceeds_master_timeout(place: QueuePlace) -> Iterator[Problem]:
    """A sample must outlive an election, or every change of master refuses samples (Table 7.3)."""
    replication = place.queue.replication
    if replication.enabled and replication.sample_timeout_ns <= replication.master_timeout_ns:
        yield place.warning(
            "queue_qos/replication/replication_settings/sample_timeout",
            "samples give up before a new master can be elected",
            found=f"{format_duration(replication.sample_timeout_ns)}, master_timeout "
            f"{format_duration(replication.master_timeout_ns)}",
            allowed=f"more than {format_duration(replication.master_timeout_ns)}",
        )
