"""QoS values that a queue cannot have [QS Table 3.14], and policies that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from qsctl.config.qos_libraries.qos_consistency import inconsistencies
from qsctl.config.rules._place import QueuePlace, ServicePlace
from qsctl.config.tables.qos import QOS_FIXED
from qsctl.declared.problems import Problem


def changed_fixed_values(holder: str, qos: dict[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield each fixed value that the QoS changes: its tag, its path in that, the value found, the fixed value."""
    for (owner, tag), fixed_values in QOS_FIXED.items():
        if owner != holder or tag not in qos:
            continue
        element = etree.fromstring(qos[tag])
        for step, fixed in fixed_values.items():
            found = element.findtext(step)
            if found is not None and found != fixed:
                yield tag, step, found, fixed


def fixed_values_stay(place: QueuePlace) -> Iterator[Problem]:
    """Check that QoS does not change reliability, history or service kind, which the service sets [QS Table 3.14]."""
    for tag, step, found, fixed in changed_fixed_values("shared_reader_queue", place.queue.qos):
        yield place.error(
            f"{tag}/{step}",
            f"{step} of <{tag}> cannot be changed here [QS Table 3.14]",
            found=found,
            allowed=fixed,
        )


def policies_are_consistent(place: QueuePlace) -> Iterator[Problem]:
    """Check that policies of an entity do not contradict each other (DDS 1.4, 2.2.3; Table 3.14)."""
    for tag, text in place.queue.qos.items():
        for wrong in inconsistencies(text):
            yield place.error(
                f"{tag}/{wrong.step}", f"{wrong.message} (<{tag}>)", found=wrong.found, allowed=wrong.allowed
            )


def policies_of_containers_are_consistent(place: ServicePlace) -> Iterator[Problem]:
    """Check that policies of administration, monitoring, participants, publishers and subscribers do not contradict
    each other [QS Tables 3.4 to 3.10].
    """
    service = place.configuration.service
    holders: list[tuple[str, dict[str, str]]] = []
    if place.configuration.administration is not None:
        holders.append((f"{place.path}/administration", place.configuration.administration.qos))
    if place.configuration.monitoring is not None:
        holders.append((f"{place.path}/monitoring", place.configuration.monitoring.qos))
    for participant in service.participants:
        path = f"{place.path}/domain_participant[{participant.name}]"
        holders.append((path, participant.qos))
        holders += [(f"{path}/shared_subscriber[{each.name}]", each.qos) for each in participant.subscribers]
    for path, qos in holders:
        for tag, text in qos.items():
            for wrong in inconsistencies(text):
                yield place.error(
                    f"{path}/{tag}/{wrong.step}",
                    f"{wrong.message} (<{tag}>)",
                    found=wrong.found,
                    allowed=wrong.allowed,
                )
