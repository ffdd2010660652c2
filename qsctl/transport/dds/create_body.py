"""Settings as the XML snippet that a CREATE command carries (manual, sections 5.4.1 and 5.4.7).

Decides: which values are written: those that differ from the manual's defaults. What is left out is the service's to
inherit (sections 3.3.4.2.1 and 3.3.4.3), as it is for a snippet written by hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lxml import etree

from qsctl.core.queue.settings import (
    UNLIMITED,
    DistributionSettings,
    HistoricalStatistics,
    MonitoringSettings,
    PersistenceSettings,
    RedeliverySettings,
    ReplicationSettings,
    ResourceLimitSettings,
    SessionSettings,
    SharedReaderQueueSettings,
    StatisticsSettings,
)
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.instant import INFINITE_NS, SECOND_NS, Nanoseconds

DEFAULT_SESSION: Final = "session"
"""The session of a shared subscriber that was described without one: a service needs one (Table 3.12)."""

_DEFAULT: Final = SharedReaderQueueSettings(name="", topic_name="")
_SUBSCRIBER_QOS: Final = ("publisher_qos", "subscriber_qos")


def queue_snippet(settings: SharedReaderQueueSettings) -> str:
    """`<shared_reader_queue …>` or `<dead_letter_shared_reader_queue …>`."""
    return etree.tostring(_queue(settings), encoding="unicode")


def subscriber_snippet(settings: SharedSubscriberSettings) -> str:
    """`<shared_subscriber …>` with its sessions and queues."""
    element = etree.Element("shared_subscriber", name=settings.name)
    _qos(element, settings.qos)
    sessions = etree.SubElement(element, "session_settings")
    for session in settings.sessions or (SessionSettings(DEFAULT_SESSION),):
        _session(sessions, session)
    for queue in settings.queues:
        element.append(_queue(queue))
    return etree.tostring(element, encoding="unicode")


def _queue(settings: SharedReaderQueueSettings) -> etree._Element:
    tag = "dead_letter_shared_reader_queue" if settings.is_dead_letter else "shared_reader_queue"
    element = etree.Element(tag, name=settings.name)
    if settings.session:
        element.set("session", settings.session)
    if settings.dead_letter_queue:
        element.set("dead_letter_queue", settings.dead_letter_queue)
    _text(element, "topic_name", settings.topic_name)
    if not settings.is_dead_letter:
        _text(element, "type_name", settings.type_name)
        if settings.reply_type:
            _text(element, "reply_type", settings.reply_type)
            _text(element, "reply_topic", settings.reply_topic)
    _qos(element, settings.qos)
    queue_qos = etree.Element("queue_qos")
    _distribution(queue_qos, settings.distribution)
    if settings.lifespan_ns != _DEFAULT.lifespan_ns:
        _duration(etree.SubElement(etree.SubElement(queue_qos, "lifespan"), "duration"), settings.lifespan_ns)
    _redelivery(queue_qos, settings.redelivery)
    _persistence(queue_qos, settings.persistence)
    if not settings.app_ack_sample_to_producer:
        _text(etree.SubElement(queue_qos, "reliability"), "app_ack_sample_to_producer", "false")
    _limits(queue_qos, settings.limits)
    _replication(queue_qos, settings.replication)
    if len(queue_qos):
        element.append(queue_qos)
    _monitoring(element, settings.monitoring)
    _statistics(element, settings.statistics)
    return element


def _qos(element: etree._Element, qos: dict[str, str]) -> None:
    for text in qos.values():
        element.append(etree.fromstring(text.encode()))


def _distribution(parent: etree._Element, settings: DistributionSettings) -> None:
    if settings == DistributionSettings():
        return
    element = etree.SubElement(parent, "distribution")
    _text(element, "kind", settings.kind.value)
    _text(element, "mark_last_undelivered_sample", _boolean(settings.mark_last_undelivered_sample))
    value = etree.SubElement(etree.SubElement(element, "property"), "value")
    for name, number in (
        ("UNACKED_THRESHOLD", settings.unacked_threshold),
        ("ALLOW_CONSUMER_FEEDBACK", int(settings.allow_consumer_feedback)),
    ):
        item = etree.SubElement(value, "element")
        _text(item, "name", name)
        _text(item, "value", str(number))


def _redelivery(parent: etree._Element, settings: RedeliverySettings) -> None:
    if settings == RedeliverySettings():
        return
    element = etree.SubElement(parent, "redelivery")
    _text(element, "max_delivery_retries", str(settings.max_delivery_retries))
    if settings.response_timeout_ns < INFINITE_NS:
        timeout = etree.SubElement(element, "response_timeout")
        _duration(etree.SubElement(timeout, "duration"), settings.response_timeout_ns)


def _persistence(parent: etree._Element, settings: PersistenceSettings) -> None:
    if settings == PersistenceSettings():
        return
    element = etree.SubElement(parent, "persistence")
    _text(element, "kind", settings.kind.value)
    _text(element, "in_memory_state", _boolean(settings.in_memory_state))
    _text(element, "restore", _boolean(settings.restore))


def _limits(parent: etree._Element, settings: ResourceLimitSettings) -> None:
    default = ResourceLimitSettings()
    if settings == default:
        return
    element = etree.SubElement(parent, "resource_limits")
    allocation = etree.SubElement(element, "queue_allocation_settings")
    _text(allocation, "initial_count", str(settings.initial_count))
    _text(allocation, "max_count", _length(settings.max_count))
    _text(allocation, "incremental_count", str(settings.incremental_count))
    if settings.max_in_memory_bytes != UNLIMITED:
        _text(allocation, "max_in_memory_bytes", str(settings.max_in_memory_bytes))
    if settings.high_watermark_percent is not None or settings.low_watermark_percent is not None:
        watermarks = etree.SubElement(element, "queue_watermark_settings")
        if settings.high_watermark_percent is not None:
            _text(watermarks, "high_watermark", str(settings.high_watermark_percent))
        if settings.low_watermark_percent is not None:
            _text(watermarks, "low_watermark", str(settings.low_watermark_percent))
    if settings.replacement != default.replacement:
        _text(etree.SubElement(element, "replacement_policy"), "kind", settings.replacement.value)


def _replication(parent: etree._Element, settings: ReplicationSettings) -> None:
    default = ReplicationSettings()
    if settings == default:
        return
    element = etree.SubElement(parent, "replication")
    _text(element, "enabled", _boolean(settings.enabled))
    details = etree.SubElement(element, "replication_settings")
    _text(details, "queue_instances", str(settings.queue_instances))
    _duration(etree.SubElement(details, "master_timeout"), settings.master_timeout_ns)
    _text(details, "synchronize_consumer_assignment", _boolean(settings.synchronize_consumer_assignment))
    _duration(etree.SubElement(details, "sample_timeout"), settings.sample_timeout_ns)


def _monitoring(parent: etree._Element, settings: MonitoringSettings) -> None:
    if settings == MonitoringSettings():
        return
    element = etree.SubElement(parent, "entity_monitoring")
    _text(element, "enabled", _boolean(settings.enabled))
    _duration(etree.SubElement(element, "status_publication_period"), settings.status_publication_period_ns)


def _statistics(parent: etree._Element, settings: StatisticsSettings) -> None:
    if settings == StatisticsSettings():
        return
    element = etree.SubElement(parent, "statistics")
    if settings.historical != HistoricalStatistics():
        windows = etree.SubElement(element, "historical_statistics")
        for name in ("five_second", "one_minute", "five_minute", "one_hour", "up_time"):
            _text(windows, name, _boolean(getattr(settings.historical, name)))
    _duration(etree.SubElement(element, "statistics_sampling_period"), settings.sampling_period_ns)


def _session(parent: etree._Element, settings: SessionSettings) -> None:
    element = etree.SubElement(parent, "session", name=settings.name)
    default = SessionSettings(settings.name)
    if settings.dequeue_period_ns != default.dequeue_period_ns:
        _duration(etree.SubElement(element, "dequeue_period"), settings.dequeue_period_ns)
    threads: Iterable[tuple[str, str, str]] = (
        ("mask", settings.thread_mask, default.thread_mask),
        ("priority", settings.thread_priority, default.thread_priority),
        ("stack_size", settings.thread_stack_size, default.thread_stack_size),
    )
    changed = [(tag, value) for tag, value, usual in threads if value != usual]
    if changed:
        thread = etree.SubElement(element, "thread")
        for tag, value in changed:
            _text(thread, tag, value)


def _duration(element: etree._Element, duration_ns: Nanoseconds) -> None:
    if duration_ns >= INFINITE_NS:
        _text(element, "sec", "DURATION_INFINITE_SEC")
        _text(element, "nanosec", "DURATION_INFINITE_NSEC")
    else:
        sec, nanosec = divmod(duration_ns, SECOND_NS)
        _text(element, "sec", str(sec))
        _text(element, "nanosec", str(nanosec))


def _text(parent: etree._Element, tag: str, text: str) -> None:
    etree.SubElement(parent, tag).text = text


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _length(value: int) -> str:
    return "LENGTH_UNLIMITED" if value == UNLIMITED else str(value)
