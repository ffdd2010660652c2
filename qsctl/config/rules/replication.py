"""Requirements of replication [QS 7.1.3 and 7.2], and the parts that a service supports.

Decides: whether replicated queues are possible. `validate`, `serve`, CREATE, `init` and the embedded service use these
rules, so that all of them answer the same. A replicated queue needs a running service, which is a member of a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from qsctl.config.rules._place import QueuePlace, ServicePlace
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.queue.settings import ReplicationSettings, SharedReaderQueueSettings
from qsctl.core.settings import ServiceSettings, queues_of
from qsctl.declared.problems import Problem
from qsctl.errors import Refused
from qsctl.instant import format_duration

_ALONE: Final = "is to be replicated [QS 7], and this service is not a member of a cluster"
NOT_REPLICATED_REMEDY: Final = (
    "Run the instances with qsctl serve and a configuration that has a replicated queue, or set "
    "<replication><enabled> to false."
)
_UNEQUAL_REMEDY: Final = "Give all replicated queues of the service, and its configuration, the same queue_instances."
_PROTOCOL: Final = "replication_settings"
_SETTINGS: Final = f"queue_qos/replication/{_PROTOCOL}"
_LETTERS: Final = ("update_datareader_qos", "update_datawriter_qos")


def queue_is_hosted_alone(queue: SharedReaderQueueSettings) -> str:
    """Return why a service that is not a member of a cluster cannot host a queue; empty where it can."""
    return f"queue {queue.name} {_ALONE}" if queue.replication.enabled else ""


def configuration_is_hosted_alone(configuration: ServiceConfiguration) -> str:
    """Return why a service outside of a cluster cannot replicate its configuration; empty where it need not."""
    return f"the configuration {_ALONE}" if configuration_replication_of(configuration) is not None else ""


def configuration_replication_of(configuration: ServiceConfiguration) -> ReplicationSettings | None:
    """Return how a service's configuration is to be replicated [QS 7.2]; None: it is not."""
    settings = configuration.service_qos.configuration_replication.replication
    return settings if settings.enabled else None


def replicated_queues(service: ServiceSettings) -> list[SharedReaderQueueSettings]:
    """Return the queues of a service that are to be replicated."""
    return [queue for _, _, queue in queues_of(service) if queue.replication.enabled]


def unequal_instances(service: ServiceSettings, configuration: ReplicationSettings | None = None) -> str:
    """Return a sentence about two parts of a service that expect different numbers of members; empty without one."""
    counts = [(f"queue {each.name}", each.replication.queue_instances) for each in replicated_queues(service)]
    if configuration is not None:
        counts.append(("the configuration", configuration.queue_instances))
    for what, count in counts:
        if count != counts[0][1]:
            return (
                f"{counts[0][0]} has queue_instances {counts[0][1]}, and {what} {count}: what a service replicates "
                "has the same members"
            )
    return ""


def instances_of(service: ServiceSettings, configuration: ReplicationSettings | None = None) -> int:
    """Return how many members the cluster of a service has: the `queue_instances` of what is replicated; 0: nothing is.

    Args:
        service: whose queues may be replicated.
        configuration: how its configuration is replicated; None: it is not.

    Raises:
        Refused: two parts name different numbers.
    """
    if found := unequal_instances(service, configuration):
        raise Refused(found, remedy=_UNEQUAL_REMEDY)
    if configuration is not None:
        return configuration.queue_instances
    queues = replicated_queues(service)
    return queues[0].replication.queue_instances if queues else 0


def unserved(hosted: ServiceConfiguration | ServiceSettings) -> list[str]:
    """Return the parts of a service that are to be replicated, in words: outside of a cluster it replicates none."""
    service = hosted.service if isinstance(hosted, ServiceConfiguration) else hosted
    found = [queue_is_hosted_alone(queue) for _, _, queue in queues_of(service)]
    if isinstance(hosted, ServiceConfiguration):
        found.append(configuration_is_hosted_alone(hosted))
    return [each for each in found if each]


def refuse_replication(hosted: ServiceConfiguration | ServiceSettings) -> None:
    """Raise an error if a service outside of a cluster has anything that is to be replicated.

    Raises:
        Refused: names everything that is to be replicated.
    """
    if found := unserved(hosted):
        raise Refused("; ".join(found), remedy=NOT_REPLICATED_REMEDY)


def members_of(configuration: ServiceConfiguration, names: Sequence[str], *, joins: bool = False) -> tuple[str, ...]:
    """Return the given names of the cluster's members, after a check that they can be its members.

    Raises:
        Refused: nothing is replicated; or the number of names is not `queue_instances`, a name occurs twice, or this
            service is not among them, unless it joins them.
    """
    count = instances_of(configuration.service, configuration_replication_of(configuration))
    own = configuration.service.application_name
    if joins and not count:
        raise Refused("the service is to join a cluster, and nothing is replicated", remedy="Leave --join out.")
    if not names:
        return ()
    if not count:
        raise Refused("members are named, and nothing is replicated", remedy="Leave --members out.")
    if len(set(names)) < len(names) or len(names) != count or not (joins or own in names):
        raise Refused(
            f"the members named are {', '.join(names)}; queue_instances is {count}, and this service is {own}",
            remedy="Name each instance once by its application name (-appName), this one too unless it joins (--join).",
        )
    return tuple(names)


def queue_instances_are_equal(place: ServicePlace) -> Iterator[Problem]:
    """Check that all replicated parts of a service expect the same number of members: our reading of [QS 7.3]."""
    configuration = place.configuration
    if message := unequal_instances(configuration.service, configuration_replication_of(configuration)):
        yield place.unsupported(place.path, message, suggestion=_UNEQUAL_REMEDY)


def an_even_number_of_members_survives_no_more(place: ServicePlace) -> Iterator[Problem]:
    """Find an even number of members for the configuration, which survives no more losses than one member less."""
    settings = configuration_replication_of(place.configuration)
    if settings is not None:
        path = f"{place.path}/service_qos/configuration_replication/{_PROTOCOL}/queue_instances"
        yield from _even(place, path, settings.queue_instances)


def replicas_have_distinct_application_names(place: ServicePlace) -> Iterator[Problem]:
    """Note that each instance of a replicated service needs an application name of its own [QS 7.2]."""
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
    """Find an even number of `<queue_instances>`: it survives no more losses than one instance less [QS 7.1.1.2]."""
    if place.queue.replication.enabled:
        yield from _even(place, f"{_SETTINGS}/queue_instances", place.queue.replication.queue_instances)


def one_replica_is_no_replication(place: QueuePlace) -> Iterator[Problem]:
    """Find a replicated queue of one instance: `<queue_instances>` includes the master [QS Table 7.3]."""
    replication = place.queue.replication
    if replication.enabled and replication.queue_instances < 2:
        yield place.warning(
            "queue_qos/replication/replication_settings/queue_instances",
            "a single instance is not replicated",
            found=str(replication.queue_instances),
            allowed="2 or more",
        )


def sample_timeout_exceeds_master_timeout(place: QueuePlace) -> Iterator[Problem]:
    """Find a sample timeout below the master timeout: samples are refused before a new master can be elected."""
    replication = place.queue.replication
    if replication.enabled and replication.sample_timeout_ns <= replication.master_timeout_ns:
        yield place.warning(
            "queue_qos/replication/replication_settings/sample_timeout",
            "samples give up before a new master can be elected",
            found=f"{format_duration(replication.sample_timeout_ns)}, master_timeout "
            f"{format_duration(replication.master_timeout_ns)}",
            allowed=f"more than {format_duration(replication.master_timeout_ns)}",
        )


def letters_of_all_queues_are_the_same(place: QueuePlace) -> Iterator[Problem]:
    """Find QoS of a queue's replication that is not used: all queues of a service share one reader and writer."""
    if not place.queue.replication.enabled:
        return
    first = next(iter(replicated_queues(place.service.configuration.service)), place.queue)
    for tag in _LETTERS:
        if place.queue.qos.get(tag, "") != first.qos.get(tag, ""):
            yield place.warning(
                tag,
                f"<{tag}> of queue {place.queue.name} is not used: that of the first replicated queue holds for all",
                found=place.queue.name,
                allowed=f"the same as in queue {first.name}",
            )


def _even(place: ServicePlace | QueuePlace, path: str, count: int) -> Iterator[Problem]:
    if count >= 2 and count % 2 == 0:
        survived = count // 2 - 1
        yield place.warning(
            path,
            "two instances survive the loss of none: a quorum is both"
            if count == 2
            else f"{count} instances survive the loss of {survived}, as {count - 1} do",
            found=str(count),
            allowed=f"{count + 1}, to survive the loss of {survived + 1}",
        )
