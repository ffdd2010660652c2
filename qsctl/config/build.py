"""A `<queuing_service>` to a `ServiceConfiguration`: own, inherited and default values put together (manual, 3.3).

The last step checks every value's type with pydantic; ranges were the schema's, relations are the rules'.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lxml.etree import _Element

from qsctl.config import defaults, values
from qsctl.config.build_queue import build_monitoring, build_qos, build_replication, build_statistics
from qsctl.config.build_subscriber import BuildContext, SubscriberBuilder
from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization, Vacuum
from qsctl.config.inheritance import Layer, Reading, Scope
from qsctl.config.problems import Problem, problem_at
from qsctl.config.settings import (
    AdministrationSettings,
    ConfigurationReplicationSettings,
    DistributedLoggerSettings,
    MonitoringPublicationSettings,
    ReplyBufferSettings,
    ServiceConfiguration,
    ServicePersistenceSettings,
    ServiceQosSettings,
)
from qsctl.core.queue.settings import PersistenceKind, ReplicationSettings, SampleBufferSettings
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings

if TYPE_CHECKING:
    from pydantic import TypeAdapter

DOMAIN_ID_MAX = 232


@cache
def _settings_type() -> TypeAdapter[tuple[ServiceConfiguration]]:
    from pydantic import ConfigDict, TypeAdapter

    # A tuple around the dataclass: only then may the configuration of the check be given here.
    return TypeAdapter(
        tuple[ServiceConfiguration],
        config=ConfigDict(strict=True, revalidate_instances="always", arbitrary_types_allowed=True),
    )


def build_service(element: _Element, context: BuildContext) -> tuple[ServiceConfiguration, Reading]:
    """The configuration of one service, and what reading it left: problems and origins."""
    builder = _ServiceBuilder(element, context)
    configuration = builder.build()
    builder.reading.problems.extend(settings_problems(configuration, element))
    return configuration, builder.reading


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


class _ServiceBuilder(SubscriberBuilder):
    def build(self) -> ServiceConfiguration:
        scope = self.scope
        monitoring = scope.inside("monitoring").labelled("<monitoring> of the service")
        service = ServiceSettings(
            application_name=self.context.application_name,
            participants=tuple(self._participant(each) for each in self._all(scope, "domain_participant")),
            monitoring=build_monitoring(monitoring.at(f"{scope.path}/monitoring"), self.general_monitoring),
            statistics=build_statistics(scope.inside("statistics")),
            replication=self._queue_replication(),
        )
        return ServiceConfiguration(
            name=self.name,
            service=service,
            administration=self._administration(),
            monitoring=self._monitoring(),
            filesystem=self._filesystem(scope.inside("persistence_settings").inside("filesystem")),
            service_qos=ServiceQosSettings(
                persistence=self._service_persistence(scope.inside("service_qos").inside("persistence")),
                configuration_replication=self._configuration_replication(),
                shared_reader_queue_replication=service.replication,
            ),
            types=self.context.types,
            qos_libraries=self.libraries,
        )

    def _all(self, scope: Scope, tag: str) -> list[_Element]:
        return scope.nearest.findall(tag) if scope.nearest is not None else []

    def _queue_replication(self) -> ReplicationSettings:
        return build_replication(self.queue_replication_scope(), self.protocol())

    def _domain_id(self, scope: Scope) -> int:
        """The domain with -domainIdBase added (Table 4.1)."""
        given = scope.value("domain_id", values.domain_id, defaults.Default(0, "section 3.3"))
        domain_id = given + self.context.domain_id_base
        element = scope.nearest.find("domain_id") if scope.nearest is not None else None
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

    def _administration(self) -> AdministrationSettings | None:
        scope = self.scope.inside("administration")
        if not scope.present:
            return None
        buffer = scope.inside("memory_management")
        return AdministrationSettings(
            domain_id=self._domain_id(scope),
            reply_buffer=ReplyBufferSettings(
                buffer.value("sample_buffer_min_size", values.buffer_size_bytes, defaults.REPLY_BUFFER_MIN_SIZE),
                buffer.value("sample_buffer_trim_to_size", values.boolean, defaults.REPLY_BUFFER_TRIM_TO_SIZE),
            ),
            distributed_logger=_distributed_logger(scope.inside("distributed_logger")),
            qos=build_qos(
                scope,
                ("participant_qos", "publisher_qos", "subscriber_qos", "datareader_qos", "datawriter_qos"),
                self.libraries,
            ),
        )

    def _monitoring(self) -> MonitoringPublicationSettings | None:
        scope = self.scope.inside("monitoring")
        if not scope.present:
            return None
        return MonitoringPublicationSettings(
            domain_id=self._domain_id(scope),
            enabled=scope.value("enabled", values.boolean, defaults.MONITORING_ENABLED),
            status_publication_period_ns=scope.length_of_time(
                "status_publication_period", defaults.STATUS_PUBLICATION_PERIOD
            ),
            qos=build_qos(scope, ("participant_qos", "publisher_qos", "datawriter_qos"), self.libraries),
        )

    def _filesystem(self, scope: Scope) -> FilesystemSettings:
        directory = scope.value("directory", values.text, defaults.DIRECTORY)
        trace_file = scope.value("trace_file", values.text, defaults.TRACE_FILE)
        file_prefix = scope.value("file_prefix", values.text, defaults.FILE_PREFIX)
        return FilesystemSettings(
            directory=self.context.storage_directory or (Path(directory) if directory else None),
            file_prefix=file_prefix if self.context.file_prefix is None else self.context.file_prefix,
            file_max_size_kb=scope.value("file_max_size", values.positive_count, defaults.FILE_MAX_SIZE),
            journal_mode=scope.value("journal_mode", values.kind(JournalMode), defaults.JOURNAL_MODE),
            synchronization=scope.value("synchronization", values.kind(Synchronization), defaults.SYNCHRONIZATION),
            trace_file=Path(trace_file) if trace_file else None,
            vacuum=scope.value("vacuum", values.kind(Vacuum), defaults.VACUUM),
        )

    def _service_persistence(self, scope: Scope) -> ServicePersistenceSettings:
        return ServicePersistenceSettings(
            kind=scope.value("kind", values.kind(PersistenceKind), defaults.SERVICE_PERSISTENCE_KIND),
            restore=scope.value("restore", values.boolean, defaults.SERVICE_PERSISTENCE_RESTORE),
        )

    def _configuration_replication(self) -> ConfigurationReplicationSettings:
        scope = self.scope.inside("service_qos").inside("configuration_replication")
        return ConfigurationReplicationSettings(
            replication=build_replication(scope, self.protocol()),
            qos=build_qos(scope, ("participant_qos",), self.libraries) if scope.present else {},
        )

    def _participant(self, element: _Element) -> DomainParticipantSettings:
        name = " ".join((element.get("name") or "").split())
        scope = Scope(self.reading, f"{self.scope.path}/domain_participant[{name}]", (Layer(element),))
        self.reading.elements[scope.path] = element
        buffer = scope.inside("memory_management")
        sample_buffer = SampleBufferSettings(
            buffer.value("sample_buffer_min_size", values.buffer_size_bytes, defaults.SAMPLE_BUFFER_MIN_SIZE),
            buffer.value("sample_buffer_trim_to_size", values.boolean, defaults.SAMPLE_BUFFER_TRIM_TO_SIZE),
        )
        subscribers = self._all(scope, "shared_subscriber")
        return DomainParticipantSettings(
            name=name,
            domain_id=self._domain_id(scope),
            subscribers=tuple(self.subscriber(each, scope.path, sample_buffer) for each in subscribers),
            sample_buffer=sample_buffer,
            qos=build_qos(scope, ("participant_qos",), self.libraries),
        )


def _distributed_logger(scope: Scope) -> DistributedLoggerSettings:
    if not scope.present:
        return DistributedLoggerSettings()

    def word(tag: str, *, inside: Scope = scope) -> str | None:
        child = inside.nearest.find(tag) if inside.nearest is not None else None
        return inside.value(tag, values.word, defaults.Default("", "")) if child is not None else None

    def flag(tag: str) -> bool | None:
        return None if word(tag) is None else scope.value(tag, values.boolean, defaults.Default(False, ""))

    def number(tag: str) -> int | None:
        return None if word(tag) is None else scope.value(tag, values.count, defaults.Default(0, ""))

    thread = scope.inside("thread")
    return DistributedLoggerSettings(
        enabled=scope.value("enabled", values.boolean, defaults.DISTRIBUTED_LOGGER_ENABLED),
        filter_level=word("filter_level"),
        queue_size=number("queue_size"),
        echo_to_stdout=flag("echo_to_stdout"),
        log_infrastructure_messages=flag("log_infrastructure_messages"),
        concurrency_level=number("concurrency_level"),
        thread_mask=word("mask", inside=thread),
        thread_priority=word("priority", inside=thread),
        thread_stack_size=word("stack_size", inside=thread),
    )
