"""A whole configuration of a service: what the engine needs and what its drivers need beside it [QS 3].

Frozen values with their defaults. QoS elements are kept as canonical XML text by tag name, inheritance resolved:
only a transport reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from qsctl.config.budgets import ServiceLimits
from qsctl.config.filesystem import FilesystemSettings
from qsctl.config.qos_libraries.qos import QosLibraries
from qsctl.config.sample_types.types import TypeLibrary
from qsctl.core.queue.settings import PersistenceKind, ReplicationSettings
from qsctl.core.settings import ServiceSettings
from qsctl.instant import SECOND_NS, Nanoseconds

DEFAULT_APPLICATION_NAME: Final = "RTI_Queueing_Service"
"""Name of an execution when neither -appName nor -cfgName is given ([QS Table 4.1], in its spelling)."""


@dataclass(frozen=True, slots=True)
class ReplyBufferSettings:
    """`<memory_management>` of the administration [QS 3.3.3.1]: the buffer for the body of a command reply."""

    min_size_bytes: int = 32768
    trim_to_size: bool = False


@dataclass(frozen=True, slots=True)
class DistributedLoggerSettings:
    """`<distributed_logger>` [QS 3.5]. None: the logger's own default."""

    enabled: bool = False
    filter_level: str | None = None
    queue_size: int | None = None
    echo_to_stdout: bool | None = None
    log_infrastructure_messages: bool | None = None
    concurrency_level: int | None = None
    thread_mask: str | None = None
    thread_priority: str | None = None
    thread_stack_size: str | None = None


@dataclass(frozen=True, slots=True)
class AdministrationSettings:
    """`<administration>` [QS Table 3.4]: remote administration is on, in this domain."""

    domain_id: int
    reply_buffer: ReplyBufferSettings = ReplyBufferSettings()
    distributed_logger: DistributedLoggerSettings = DistributedLoggerSettings()
    qos: dict[str, str] = field(default_factory=dict)
    key_file: Path | None = None
    """The keys that commands must be signed with (an extension); None: they need no signature."""


@dataclass(frozen=True, slots=True)
class MonitoringPublicationSettings:
    """`<monitoring>` of the service [QS Table 3.5]: statuses are published in this domain while `enabled`."""

    domain_id: int
    enabled: bool = True
    status_publication_period_ns: Nanoseconds = 5 * SECOND_NS
    qos: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServicePersistenceSettings:
    """`<persistence>` of the service [QS Table 3.3, 2.14.1]: whether changes made at run time are kept."""

    kind: PersistenceKind = PersistenceKind.VOLATILE
    restore: bool = True


@dataclass(frozen=True, slots=True)
class ConfigurationReplicationSettings:
    """`<configuration_replication>` [QS Table 7.4, 7.2]; it runs in the administration domain."""

    replication: ReplicationSettings = ReplicationSettings()
    qos: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServiceQosSettings:
    """`<service_qos>` [QS Table 3.3]. `shared_reader_queue_replication` is what queues inherit."""

    persistence: ServicePersistenceSettings = ServicePersistenceSettings()
    configuration_replication: ConfigurationReplicationSettings = ConfigurationReplicationSettings()
    shared_reader_queue_replication: ReplicationSettings = ReplicationSettings()


@dataclass(frozen=True, slots=True)
class ServiceConfiguration:
    """One `<queuing_service>` with everything resolved.

    -cfgName selects a service by `name`; commands address the run by `service.application_name`. `administration` and
    `monitoring` None: off, as they are by default. `notes` are hints for the reader, such as builtin libraries.
    """

    name: str
    service: ServiceSettings
    administration: AdministrationSettings | None = None
    monitoring: MonitoringPublicationSettings | None = None
    filesystem: FilesystemSettings = FilesystemSettings()
    limits: ServiceLimits = ServiceLimits()
    service_qos: ServiceQosSettings = ServiceQosSettings()
    types: TypeLibrary = field(default_factory=TypeLibrary)
    qos_libraries: QosLibraries = field(default_factory=QosLibraries, compare=False, repr=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def distributed_logger(self) -> DistributedLoggerSettings:
        """The distributed logger's settings; off where administration is off [QS 3.5]."""
        return self.administration.distributed_logger if self.administration else DistributedLoggerSettings()
