"""Rules across elements: the prohibitions in the text of [QS] that a schema cannot express. One function a rule.

A rule of the tree reads elements as written, so that it applies even where the schema rejects them. A rule of a queue
or of a service reads settings, everything inherited and defaulted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from lxml.etree import _Element

from qsctl.config._reader import ServiceReading
from qsctl.config.rules import (
    _counts as counts,
)
from qsctl.config.rules import (
    _delivery_policies as delivery_policies,
)
from qsctl.config.rules import (
    _durations as durations,
)
from qsctl.config.rules import (
    _names as names,
)
from qsctl.config.rules import (
    _qos as qos,
)
from qsctl.config.rules import (
    _queues as queues,
)
from qsctl.config.rules import (
    _references as references,
)
from qsctl.config.rules import (
    _service as service,
)
from qsctl.config.rules import (
    _storage as storage,
)
from qsctl.config.rules import (
    replication,
    transports,
)
from qsctl.config.rules._place import QueuePlace, ServicePlace, places_of_queues
from qsctl.config.settings import ServiceConfiguration
from qsctl.config.tables.queue import form_of
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import DomainParticipantSettings, SharedSubscriberSettings
from qsctl.declared.problems import Problem, Severity

TreeRule: TypeAlias = Callable[[_Element], Iterator[Problem]]
QueueRule: TypeAlias = Callable[[QueuePlace], Iterator[Problem]]
ServiceRule: TypeAlias = Callable[[ServicePlace], Iterator[Problem]]

TREE_RULES: Final[tuple[TreeRule, ...]] = (
    counts.required_and_single_children,
    names.services_have_distinct_names,
    names.participants_have_distinct_names,
    names.subscribers_have_distinct_names,
    names.sessions_have_distinct_names,
    names.queues_have_distinct_names,
    names.queues_have_distinct_topics,
    names.profiles_have_distinct_names,
    references.sessions_exist,
    references.dead_letter_queues_exist,
    durations.infinite_nanoseconds_need_infinite_seconds,
    durations.dequeue_period_stands_once,
    queues.properties_are_given_once,
)
QUEUE_RULES: Final[tuple[QueueRule, ...]] = (
    names.names_fit_the_wire,
    names.topics_are_no_endpoints_own,
    queues.initial_count_is_within_max_count,
    queues.low_watermark_is_below_high_watermark,
    queues.watermarks_need_a_limit,
    queues.reply_topic_needs_reply_type,
    queues.reply_queue_does_not_collide,
    queues.type_is_known_or_discovered,
    queues.type_is_of_samples,
    queues.waiting_needs_a_bounded_reader,
    queues.lifespan_lets_a_sample_live,
    queues.monitoring_needs_general_monitoring,
    durations.sampling_is_shorter_than_publication,
    durations.periods_are_positive,
    storage.memory_limit_counts_only_in_memory,
    storage.persistent_names_are_file_names,
    replication.sample_timeout_exceeds_master_timeout,
    replication.one_replica_is_no_replication,
    replication.letters_of_all_queues_are_the_same,
    replication.an_even_number_survives_no_more,
    delivery_policies.policies_without_equivalent_are_said,
    qos.fixed_values_stay,
    qos.policies_are_consistent,
)
SERVICE_RULES: Final[tuple[ServiceRule, ...]] = (
    names.application_name_fits_the_wire,
    service.administration_for_configuration_replication,
    service.participants_have_subscribers_of_distinct_files,
    service.administration_key_can_be_read,
    service.administration_qos_stays,
    service.queues_are_within_the_limit,
    qos.policies_of_containers_are_consistent,
    durations.sessions_dequeue_periodically,
    replication.replicas_have_distinct_application_names,
    replication.queue_instances_are_equal,
    replication.an_even_number_of_members_survives_no_more,
    transports.transports_are_served,
    transports.initial_peers_are_given_to_serve,
    transports.one_transport_a_domain,
    transports.domains_have_ports,
    storage.directory_exists,
    storage.unsafe_journal,
    storage.unsynchronized_persistence,
    storage.write_ahead_log_without_full_synchronization,
    storage.database_settings_without_a_database_are_said,
    storage.trace_file_holds_payloads,
    storage.application_name_is_a_file_name,
)


def tree_problems(root: _Element) -> list[Problem]:
    """Return what the rules of the tree find in a document."""
    return [problem for rule in TREE_RULES for problem in rule(root)]


def service_problems(
    configuration: ServiceConfiguration,
    reading: ServiceReading,
    element: _Element,
    working_directory: Path,
    *,
    named_application: bool,
    is_elsewhere: bool = False,
    without_tcp: bool = False,
) -> list[Problem]:
    """Return what the rules of services and queues find in a configuration."""
    place = ServicePlace(
        configuration, reading, element, working_directory, named_application, is_elsewhere, without_tcp
    )
    problems = [problem for rule in SERVICE_RULES for problem in rule(place)]
    for queue in places_of_queues(place):
        problems.extend(problem for rule in QUEUE_RULES for problem in rule(queue))
    return problems


def queue_problems(
    queues: Sequence[SharedReaderQueueSettings],
    configuration: ServiceConfiguration,
    reading: ServiceReading,
    element: _Element,
    subscriber: SharedSubscriberSettings | None = None,
    participant: DomainParticipantSettings | None = None,
) -> list[Problem]:
    """Return what the rules of queues find in queues that a command creates in a running service.

    What is valid and not supported is left to the service that creates them: it may be another version.
    """
    place = ServicePlace(configuration, reading, element, Path(), named_application=True)
    around = subscriber or SharedSubscriberSettings("")
    participant = participant or DomainParticipantSettings("", 0)
    path = f"/shared_subscriber[{around.name}]"
    places = [
        QueuePlace(place, participant, around, each, f"{path}/{form_of(each).tag}[{each.name}]") for each in queues
    ]
    found = [problem for each in places for rule in QUEUE_RULES for problem in rule(each)]
    return [problem for problem in found if problem.severity is not Severity.UNSUPPORTED]
