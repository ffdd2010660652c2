"""Tables of a service: administration, monitoring, files and its own QoS ([QS Tables 3.2 to 3.9], [QS 7.2])."""

from __future__ import annotations

from dataclasses import replace

from qsctl.config.budgets import ServiceLimits
from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization, Vacuum
from qsctl.config.form import Element, QosElements, Repeated, Setting, Shape
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
from qsctl.config.tables.containers import PARTICIPANT
from qsctl.config.tables.shared import REPLICATION, STATISTICS, buffers, domain, thread
from qsctl.core.queue.settings import PersistenceKind
from qsctl.declared.values import (
    BOOLEAN,
    COUNT,
    DURATION,
    LIMIT,
    MEMORY_PERCENT,
    PATH,
    POSITIVE_COUNT,
    choice,
    text,
    word,
)

DISTRIBUTED_LOGGER = Element("distributed_logger", (
    Setting("enabled", "enabled", BOOLEAN, "section 3.5", "Whether log messages are published.", default=True),
    Setting("filter_level", "filter_level", word("log_level"), "section 3.5", "Least urgent level that is published."),
    Setting("queue_size", "queue_size", POSITIVE_COUNT, "section 3.5", "Messages that may wait for publication."),
    Setting("echo_to_stdout", "echo_to_stdout", BOOLEAN, "section 3.5", "Whether messages are also printed."),
    Setting("log_infrastructure_messages", "log_infrastructure_messages", BOOLEAN, "section 3.5",
            "Whether messages of the DDS library are published too."),
    Setting("concurrency_level", "concurrency_level", COUNT, "section 3.5", "Threads that may log at the same time."),
    thread("section 3.5"),
), DistributedLoggerSettings, "distributed_logger", switch=True)  # fmt: skip

ADMINISTRATION = Element("administration", (
    domain("that commands arrive in"),
    Setting("key_file", "key_file", PATH, "an extension",
            "File of the keys that commands must be signed with, but for GET; none, unless given: then no command "
            "needs a signature."),
    DISTRIBUTED_LOGGER,
    buffers(ReplyBufferSettings, "reply_buffer", "section 3.3.3.1"),
    QosElements(("participant_qos", "publisher_qos", "subscriber_qos", "datareader_qos", "datawriter_qos")),
), AdministrationSettings, "administration", switch=True)  # fmt: skip

MONITORING = Element("monitoring", (
    Setting("enabled", "enabled", BOOLEAN, "Table 3.5", "Whether anything is published; false overrules the entities."),
    domain("that statuses are published in"),
    Setting("status_publication_period", "status_publication_period_ns", DURATION, "Table 3.5",
            "Time between two publications of a status.", Shape.DURATION),
    QosElements(("participant_qos", "publisher_qos", "datawriter_qos")),
), MonitoringPublicationSettings, "monitoring", switch=True)  # fmt: skip

FILESYSTEM = Element("filesystem", (
    Setting("directory", "directory", PATH, "Table 3.9",
            "Directory of the files; it must exist. The working directory, unless given."),
    Setting("file_max_size", "file_max_size_kb", POSITIVE_COUNT, "Table 3.9",
            "Size in KB past which a queue with in-memory state begins a new file."),
    Setting("file_prefix", "file_prefix", text("file_prefix_text"), "Table 3.9", "First part of every file name."),
    Setting("journal_mode", "journal_mode", choice(JournalMode, "journal_mode"), "Table 3.9",
            "Journal of database files; not used by queues with in-memory state."),
    Setting("synchronization", "synchronization", choice(Synchronization, "synchronization"), "Table 3.9",
            "When data must be on the physical disk."),
    Setting("trace_file", "trace_file", PATH, "Table 3.9",
            "File for every statement executed, for debugging; none, unless given."),
    Setting("vacuum", "vacuum", choice(Vacuum, "vacuum"), "Table 3.9",
            "Whether database files shrink; not used by queues with in-memory state."),
), FilesystemSettings, "filesystem")  # fmt: skip

SERVICE_QOS = Element("service_qos", (
    Element("configuration_replication", (replace(REPLICATION, tag=""), QosElements(("participant_qos",))),
            ConfigurationReplicationSettings, "configuration_replication"),
    Element("persistence", (
        Setting("kind", "kind", choice(PersistenceKind, "persistence_kind"), "Table 3.3",
                "VOLATILE: changes at run time are lost at the end. PERSISTENT: they are kept."),
        Setting("restore", "restore", BOOLEAN, "Table 3.3", "Whether a kept configuration is restored at the start."),
    ), ServicePersistenceSettings, "persistence"),
    replace(REPLICATION, tag="shared_reader_queue_replication", field="shared_reader_queue_replication"),
), ServiceQosSettings, "service_qos")  # fmt: skip

LIMITS = Element("service_limits", (
    Setting("max_memory_percent", "max_memory_percent", MEMORY_PERCENT, "an extension",
            "Memory of the service's process in percent of the machine's or the container's; above it producers are "
            "held back. 100: no such limit."),
    Setting("max_memory_bytes", "max_memory_bytes", LIMIT, "an extension",
            "Memory of the service's process in bytes; above it producers are held back."),
    Setting("max_queues", "max_queues", LIMIT, "an extension",
            "Largest number of queues that the service hosts."),
    Setting("max_consumers_per_peer", "max_consumers_per_peer", LIMIT, "an extension",
            "Largest number of consumers of one DDS participant; further ones receive nothing."),
    Setting("max_endpoints_per_peer", "max_endpoints_per_peer", LIMIT, "an extension",
            "Largest number of readers and writers of one DDS participant; further ones are ignored."),
), ServiceLimits, "limits")  # fmt: skip

SERVICE = Element("queuing_service", (
    Setting("name", "name", text("name"), "Table 3.2", "Name that -cfgName selects.", Shape.ATTRIBUTE),
    ADMINISTRATION,
    MONITORING,
    replace(STATISTICS, field="service.statistics"),
    Element("persistence_settings", (FILESYSTEM,)),
    SERVICE_QOS,
    LIMITS,
    Repeated("service.participants", (PARTICIPANT,)),
), ServiceConfiguration)  # fmt: skip
"""The whole: what a file's service may hold."""
