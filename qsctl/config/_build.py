"""The builder from a `<queuing_service>`, or one container or queue inside it, to settings: the parts that tables do
not express [QS 3.3].

The reader converts each element by its table. Here: which element inherits from which, names, domains, reply topics and
the values that follow from others. The last step checks every value's type with pydantic; ranges were the schema's,
relations are the rules'. The same builder reads files and the bodies of CREATE commands.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lxml import etree
from lxml.etree import _Element

from qsctl.config._reader import Reader, ServiceReading
from qsctl.config.files.document import text_of
from qsctl.config.qos_libraries.qos import QosLibraries
from qsctl.config.sample_types.types import TypeLibrary
from qsctl.config.settings import ServiceConfiguration
from qsctl.config.tables.containers import PARTICIPANT, SESSION, SUBSCRIBER
from qsctl.config.tables.queue import DEAD_LETTER_QUEUE, QUEUE_FORMS
from qsctl.config.tables.service import SERVICE
from qsctl.config.tables.shared import ENTITY_MONITORING
from qsctl.core.queue.settings import (
    UNLIMITED,
    MonitoringSettings,
    SampleBufferSettings,
    SessionSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.declared.problems import Problem, problem_at
from qsctl.declared.values import ValueForm, whole_number

if TYPE_CHECKING:
    from pydantic import TypeAdapter

REPLY_TOPIC_SUFFIX: Final = "Reply"
"""Suffix of a reply queue's topic after that of its queue [QS Table 3.14]."""

DOMAIN_ID_MAX: Final = 232
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.]")


@dataclass(frozen=True)
class BuildContext:
    """The context of building a service beside its element; the last two override the values for its files."""

    application_name: str
    domain_id_base: int = 0
    working_directory: Path = Path()
    libraries: QosLibraries = field(default_factory=QosLibraries)
    types: TypeLibrary = field(default_factory=TypeLibrary)
    substituted: Mapping[_Element, str] = field(default_factory=dict)
    storage_directory: Path | None = None
    file_prefix: str | None = None


def build_service(element: _Element, context: BuildContext) -> tuple[ServiceConfiguration, ServiceReading]:
    """Return the configuration of one service, and what reading it left: problems and origins."""
    builder = ServiceBuilder(element, context)
    configuration = builder.service()
    builder.reading.problems.extend(settings_problems(configuration, element))
    return configuration, builder.reading


class ServiceBuilder:
    """Builds what is inside one `<queuing_service>` element."""

    def __init__(self, element: _Element, context: BuildContext) -> None:
        self.context = context
        self.reading = ServiceReading(substituted=dict(context.substituted))
        self._element = element
        self._path = f"queuing_service[{_name(element)}]"
        self._reader = Reader(self.reading, context.libraries, element)
        general = element.find("monitoring")
        self._monitoring = MonitoringSettings()
        if general is not None:
            self._monitoring = MonitoringSettings(
                **self._reader.values(ENTITY_MONITORING, general, f"{self._path}/monitoring")
            )

    def service(self) -> ServiceConfiguration:
        """Return the whole service."""
        context, path = self.context, self._path
        values = self._reader.values(SERVICE, self._element, path)
        service = ServiceSettings(
            application_name=context.application_name,
            participants=tuple(self._participant(each) for each in self._element.findall(PARTICIPANT.tag)),
            monitoring=self._monitoring,
            statistics=values.pop("service.statistics"),
            replication=values["service_qos"].shared_reader_queue_replication,
        )
        for tag in ("administration", "monitoring"):
            if tag in values:
                domain_id = self._domain_id(values[tag].domain_id, f"{path}/{tag}")
                values[tag] = replace(values[tag], domain_id=domain_id)
        files = values["filesystem"]
        values["filesystem"] = replace(
            files,
            directory=context.storage_directory or files.directory,
            file_prefix=files.file_prefix if context.file_prefix is None else context.file_prefix,
        )
        return ServiceConfiguration(service=service, types=context.types, qos_libraries=context.libraries, **values)

    def _domain_id(self, given: int, path: str) -> int:
        """Return the domain with -domainIdBase added [QS Table 4.1]."""
        domain_id = given + self.context.domain_id_base
        element = self.reading.elements.get(f"{path}/domain_id")
        if element is not None and not 0 <= domain_id <= DOMAIN_ID_MAX:
            self.reading.problems.append(
                problem_at(
                    element,
                    "the domain is out of range with the domain base added (Table 4.1)",
                    found=f"{given} + {self.context.domain_id_base} = {domain_id}",
                    allowed=f"0 to {DOMAIN_ID_MAX}",
                )
            )
        return domain_id

    def _participant(self, element: _Element) -> DomainParticipantSettings:
        path = f"{self._path}/{PARTICIPANT.tag}[{_name(element)}]"
        values = self._reader.values(PARTICIPANT, element, path)
        values["domain_id"] = self._domain_id(values["domain_id"], path)
        subscribers = element.findall(SUBSCRIBER.tag)
        values["subscribers"] = tuple(self.subscriber(each, path, values["sample_buffer"]) for each in subscribers)
        return DomainParticipantSettings(**values)

    def subscriber(
        self, element: _Element, parent_path: str, sample_buffer: SampleBufferSettings
    ) -> SharedSubscriberSettings:
        """Return a `<shared_subscriber>` with its sessions and queues."""
        path = f"{parent_path}/{SUBSCRIBER.tag}[{_name(element)}]"
        values = self._reader.values(SUBSCRIBER, element, path)
        sessions: list[SessionSettings] = []
        readers: dict[str, Reader] = {}
        for each in element.findall("session_settings/session"):
            name = _name(each)
            of_session = self._reader.values(SESSION, each, f"{path}/session_settings/session[{name}]")
            sessions.append(SessionSettings(**of_session))
            readers[name] = Reader(self.reading, self.context.libraries, self._element, each)
        values["sessions"] = tuple(sessions)
        values["queues"] = tuple(
            self.queue(each, path, sample_buffer, readers.get(_name(each, "session")))
            for each in element
            if each.tag in QUEUE_FORMS
        )
        return SharedSubscriberSettings(**values)

    def queue(
        self, element: _Element, parent_path: str, sample_buffer: SampleBufferSettings, of_session: Reader | None = None
    ) -> SharedReaderQueueSettings:
        """Return a queue; `of_session` reads what it inherits from its session."""
        form = QUEUE_FORMS[str(element.tag)]
        topic = element.find("topic_name")
        name = _name(element) or generated_name("" if topic is None else text_of(topic), parent_path)
        path = f"{parent_path}/{form.tag}[{name}]"
        values = (of_session or self._reader).values(form, element, path)
        values |= {"name": name, "sample_buffer": sample_buffer, "is_dead_letter": form is DEAD_LETTER_QUEUE}
        if not values.get("reply_type"):
            values["reply_topic"] = ""
        elif not values["reply_topic"]:
            values["reply_topic"] = values["topic_name"] + REPLY_TOPIC_SUFFIX
        if not self._monitoring.enabled:
            values["monitoring"] = replace(values["monitoring"], enabled=False)
            note = "off, for general monitoring is off (Table 3.5)"
            self.reading.origins[f"{path}/entity_monitoring/enabled"] = note
        waiting_max = waiting_count_max(values["qos"].get("datareader_qos", ""))
        if waiting_max != UNLIMITED:
            values["limits"] = replace(values["limits"], waiting_count_max=waiting_max)
        return SharedReaderQueueSettings(**values)


def _name(element: _Element, attribute: str = "name") -> str:
    return " ".join((element.get(attribute) or "").split())


def generated_name(topic: str, parent_path: str) -> str:
    """Return the name of a queue that has none: the topic and eight digits from its place, the same at every start.

    [QS 3.3.10] has a random one; our reading: it must not change between starts, or the queue is not found again.
    """
    digest = hashlib.sha256(f"{parent_path}/{topic}".encode()).hexdigest()[:8]
    return f"{_UNFIT.sub('_', topic)[:64]}_{digest}"


def waiting_count_max(datareader_qos: str) -> int:
    """Return how many samples may wait outside a full queue: what the reader's cache may hold [QS 2.15.4]."""
    if "max_samples" not in datareader_qos:
        return UNLIMITED
    text = etree.fromstring(datareader_qos).findtext("resource_limits/max_samples") or ""
    try:
        most = whole_number(text)
    except ValueForm:
        return UNLIMITED
    return most if most > 0 else UNLIMITED


@cache
def _settings_type() -> TypeAdapter[tuple[ServiceConfiguration]]:
    from pydantic import ConfigDict, TypeAdapter

    # A tuple around the dataclass: only then may the configuration of the check be given here.
    return TypeAdapter(
        tuple[ServiceConfiguration],
        config=ConfigDict(strict=True, revalidate_instances="always", arbitrary_types_allowed=True),
    )


def settings_problems(configuration: ServiceConfiguration, element: _Element) -> list[Problem]:
    """Return a problem for each setting that has a value of another type than its own, in our words."""
    from pydantic import ValidationError

    try:
        _settings_type().validate_python((configuration,))
    except ValidationError as error:
        return [
            problem_at(
                element,
                f"the setting {'.'.join(str(step) for step in each['loc'][1:])} has a value of another kind",
                found=str(each["input"]),
                allowed=each["msg"],
            )
            for each in error.errors()
        ]
    return []
