"""The differences between two configurations, as paths of canonical XML with both values.

Decides: which differences are in queues, which commands can change, and which are in other elements, which only a
restart changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from qsctl.client.desired.steps import SettingChange
from qsctl.config.configuration_xml import configuration_element
from qsctl.config.flatten import values_of
from qsctl.config.settings import ServiceConfiguration
from qsctl.config.tables.queue import form_of
from qsctl.config.writer import write
from qsctl.core.queue.settings import SharedReaderQueueSettings

INHERITED: Final = ("monitoring.", "statistics.", "sample_buffer.")
"""Fields that follow what the service and its participants have: only a restart changes them, and loses nothing."""


def queue_changes(live: SharedReaderQueueSettings, wanted: SharedReaderQueueSettings) -> tuple[SettingChange, ...]:
    """Return the values in which two queues of one name differ; paths begin inside the queue."""
    one, other = (write(form_of(each), each, with_qos_defaults=True) for each in (live, wanted))
    return tuple(
        replace(each, path=each.path.partition("/")[2])
        for each in _changes(dict(values_of(one)), dict(values_of(other)))
    )


def with_inherited(wanted: SharedReaderQueueSettings, live: SharedReaderQueueSettings) -> SharedReaderQueueSettings:
    """Return the wanted settings, except that those which only a restart changes are the live ones."""
    return replace(wanted, monitoring=live.monitoring, statistics=live.statistics, sample_buffer=live.sample_buffer)


def other_changes(live: ServiceConfiguration, wanted: ServiceConfiguration) -> Iterator[SettingChange]:
    """Yield the values that differ outside of queues and outside of subscribers that only one of the two has.

    The service's own name is not compared. A participant that only one has is one value: its domain.
    """
    theirs, ours = ({each.name: each for each in one.service.participants} for one in (live, wanted))
    for name in dict.fromkeys((*theirs, *ours)):
        if name not in theirs or name not in ours:
            has, shall = (f"domain {found[name].domain_id}" if name in found else None for found in (theirs, ours))
            yield SettingChange(f"domain_participant[{name}]", has, shall)
    yield from _changes(_values(_in_common(live, wanted)), _values(_in_common(wanted, live)))


def _in_common(one: ServiceConfiguration, other: ServiceConfiguration) -> ServiceConfiguration:
    """Return a configuration without queues, with only the participants and subscribers that `other` has too."""
    known = {each.name: {sub.name for sub in each.subscribers} for each in other.service.participants}
    participants = tuple(
        replace(
            each,
            subscribers=tuple(
                replace(subscriber, queues=()) for subscriber in each.subscribers if subscriber.name in known[each.name]
            ),
        )
        for each in one.service.participants
        if each.name in known
    )
    return replace(one, service=replace(one.service, participants=participants))


def _values(configuration: ServiceConfiguration) -> Mapping[str, str]:
    element = configuration_element(configuration, with_qos_defaults=True)
    service = element.find("queuing_service")
    assert service is not None  # the writer has put it there
    del service.attrib["name"]
    return {path.removeprefix("dds/queuing_service/"): value for path, value in values_of(element)}


def _changes(live: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[SettingChange]:
    for path in dict.fromkeys((*live, *wanted)):
        if live.get(path) != wanted.get(path):
            yield SettingChange(path, live.get(path), wanted.get(path))
