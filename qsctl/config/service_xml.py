"""A whole configuration as canonical XML: what `qsctl render` prints and what a service persists of itself.

Everything is resolved: no variable, no base_name of the own libraries, no default left out. Types stay as they were
written, with their includes read in.
"""

from __future__ import annotations

from lxml import etree
from lxml.etree import _Element

from qsctl.config.queue_xml import (
    branch,
    leaf,
    length_of_time,
    qos_elements,
    replication_element,
    statistics_element,
    subscriber_element,
)
from qsctl.config.settings import AdministrationSettings, DistributedLoggerSettings, ServiceConfiguration
from qsctl.config.type_xml import types_element
from qsctl.core.settings import DomainParticipantSettings


def configuration_element(configuration: ServiceConfiguration, *, with_qos_defaults: bool = False) -> _Element:
    """`<dds>` with the types and the one service."""
    children = []
    if configuration.types.definitions:
        children.append(types_element(configuration.types))
    children.append(service_element(configuration, with_qos_defaults=with_qos_defaults))
    return branch("dds", children)


def configuration_text(configuration: ServiceConfiguration, *, with_qos_defaults: bool = False) -> str:
    """The same as text, indented."""
    element = configuration_element(configuration, with_qos_defaults=with_qos_defaults)
    etree.indent(element)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + etree.tostring(element, encoding="unicode") + "\n"


def service_element(configuration: ServiceConfiguration, *, with_qos_defaults: bool = False) -> _Element:
    """The `<queuing_service>`."""
    children = []
    if configuration.administration:
        children.append(_administration(configuration.administration, with_qos_defaults))
    if configuration.monitoring:
        monitoring = configuration.monitoring
        children.append(
            branch(
                "monitoring",
                [
                    leaf("enabled", monitoring.enabled),
                    leaf("domain_id", monitoring.domain_id),
                    length_of_time("status_publication_period", monitoring.status_publication_period_ns),
                    *qos_elements("monitoring", monitoring.qos, with_qos_defaults=with_qos_defaults),
                ],
            )
        )
    children += [
        statistics_element(configuration.service.statistics),
        _persistence_settings(configuration),
        _service_qos(configuration, with_qos_defaults),
        *(_participant(each, with_qos_defaults) for each in configuration.service.participants),
    ]
    return branch("queuing_service", children, name=configuration.name)


def _administration(administration: AdministrationSettings, with_qos_defaults: bool) -> _Element:
    buffer = administration.reply_buffer
    children = [leaf("domain_id", administration.domain_id)]
    if administration.distributed_logger != DistributedLoggerSettings():
        children.append(_distributed_logger(administration.distributed_logger))
    children.append(
        branch(
            "memory_management",
            [
                leaf("sample_buffer_min_size", buffer.min_size_bytes),
                leaf("sample_buffer_trim_to_size", buffer.trim_to_size),
            ],
        )
    )
    children += qos_elements("administration", administration.qos, with_qos_defaults=with_qos_defaults)
    return branch("administration", children)


def _distributed_logger(logger: DistributedLoggerSettings) -> _Element:
    children = [
        leaf(tag, value)
        for tag, value in (
            ("enabled", logger.enabled),
            ("filter_level", logger.filter_level),
            ("queue_size", logger.queue_size),
            ("echo_to_stdout", logger.echo_to_stdout),
            ("log_infrastructure_messages", logger.log_infrastructure_messages),
            ("concurrency_level", logger.concurrency_level),
        )
        if value is not None
    ]
    thread = [
        leaf(tag, value)
        for tag, value in (
            ("mask", logger.thread_mask),
            ("priority", logger.thread_priority),
            ("stack_size", logger.thread_stack_size),
        )
        if value is not None
    ]
    return branch("distributed_logger", [*children, branch("thread", thread)] if thread else children)


def _persistence_settings(configuration: ServiceConfiguration) -> _Element:
    filesystem = configuration.filesystem
    children = []
    if filesystem.directory is not None:
        children.append(leaf("directory", filesystem.directory))
    children += [
        leaf("file_max_size", filesystem.file_max_size_kb),
        leaf("file_prefix", filesystem.file_prefix),
        leaf("journal_mode", filesystem.journal_mode),
        leaf("synchronization", filesystem.synchronization),
    ]
    if filesystem.trace_file is not None:
        children.append(leaf("trace_file", filesystem.trace_file))
    children.append(leaf("vacuum", filesystem.vacuum))
    return branch("persistence_settings", [branch("filesystem", children)])


def _service_qos(configuration: ServiceConfiguration, with_qos_defaults: bool) -> _Element:
    qos = configuration.service_qos
    replicated = qos.configuration_replication
    return branch(
        "service_qos",
        [
            replication_element(
                "configuration_replication",
                replicated.replication,
                qos_elements("configuration_replication", replicated.qos, with_qos_defaults=with_qos_defaults),
            ),
            branch("persistence", [leaf("kind", qos.persistence.kind), leaf("restore", qos.persistence.restore)]),
            replication_element("shared_reader_queue_replication", configuration.service.replication),
        ],
    )


def _participant(participant: DomainParticipantSettings, with_qos_defaults: bool) -> _Element:
    buffer = participant.sample_buffer
    return branch(
        "domain_participant",
        [
            leaf("domain_id", participant.domain_id),
            branch(
                "memory_management",
                [
                    leaf("sample_buffer_min_size", buffer.min_size_bytes),
                    leaf("sample_buffer_trim_to_size", buffer.trim_to_size),
                ],
            ),
            *qos_elements("domain_participant", participant.qos, with_qos_defaults=with_qos_defaults),
            *(subscriber_element(each, with_qos_defaults=with_qos_defaults) for each in participant.subscribers),
        ],
        name=participant.name,
    )
