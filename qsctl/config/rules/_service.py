"""Rules across the parts of a service [QS 2.14.2 and 7.2, Table 3.4]."""

from __future__ import annotations

from collections.abc import Iterator

from qsctl.config.budgets import TOO_MANY_QUEUES_REMEDY
from qsctl.config.rules._place import ServicePlace, places_of_queues
from qsctl.config.rules._qos import changed_fixed_values
from qsctl.config.rules._storage import file_topics
from qsctl.config.signing_keys import read_keys
from qsctl.core.queue.settings import PersistenceKind
from qsctl.declared.problems import Problem
from qsctl.errors import QsctlError


def administration_for_configuration_replication(place: ServicePlace) -> Iterator[Problem]:
    """Check that remote administration is on where configurations are replicated through it [QS 7.2]."""
    replicated = place.configuration.service_qos.configuration_replication.replication.enabled
    if replicated and place.configuration.administration is None:
        yield place.error(
            f"{place.path}/service_qos/configuration_replication/enabled",
            "configuration replication needs remote administration [QS 7.2]",
            found="no <administration>",
            allowed="<administration> with the domain that all instances share",
        )


def participants_have_subscribers_of_distinct_files(place: ServicePlace) -> Iterator[Problem]:
    """Check that persistent queues differ in topic, subscriber, domain or application, which name files [QS 2.14.2]."""
    first: dict[tuple[str, str, int], str] = {}
    for each in places_of_queues(place):
        if each.queue.persistence.kind is not PersistenceKind.PERSISTENT:
            continue
        participant, subscriber = each.participant, each.subscriber
        for _, topic in file_topics(each.queue):
            key = (topic, subscriber.name, participant.domain_id)
            if key in first and first[key] != participant.name:
                yield place.error(
                    each.path,
                    f"a queue of the participant {first[key]} has the same files",
                    found=f"{topic}@{subscriber.name}@{participant.domain_id}",
                    allowed="another topic, subscriber or domain",
                )
            first.setdefault(key, participant.name)


def queues_are_within_the_limit(place: ServicePlace) -> Iterator[Problem]:
    """Check that a service hosts no more queues than its limit; CREATE obeys the same limit."""
    count = sum(1 for _ in places_of_queues(place))
    if message := place.configuration.limits.too_many_queues(count):
        yield place.error(
            f"{place.path}/service_limits/max_queues",
            message,
            found=str(count),
            allowed=f"at most {place.configuration.limits.max_queues}",
            suggestion=TOO_MANY_QUEUES_REMEDY,
        )


def administration_key_can_be_read(place: ServicePlace) -> Iterator[Problem]:
    """Check that the file of administration keys can be read, as the service reads it when it starts."""
    administration = place.configuration.administration
    if place.is_elsewhere or administration is None or administration.key_file is None:
        return
    try:
        read_keys(place.working_directory / administration.key_file)
    except QsctlError as error:
        yield place.error(
            f"{place.path}/administration/key_file",
            error.message,
            found=str(administration.key_file),
            allowed="a file of keys that no other user can read",
            suggestion=error.remedy,
        )


def administration_qos_stays(place: ServicePlace) -> Iterator[Problem]:
    """Check that no QoS of the administration is set that cannot be changed [QS Table 3.4]."""
    administration = place.configuration.administration
    if administration is None:
        return
    for tag, step, found, fixed in changed_fixed_values("administration", administration.qos):
        yield place.error(
            f"{place.path}/administration/{tag}/{step}",
            f"{step} of <{tag}> cannot be changed here [QS Table 3.4]",
            found=found,
            allowed=fixed,
        )
