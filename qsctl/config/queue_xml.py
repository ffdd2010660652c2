"""Queues, sessions and subscribers as canonical XML: every value written out, in one order, in one spelling.

Reading the XML gives the settings back, and writing those gives the same XML. QoS is laid over the manual's own QoS
defaults (Table 3.14) where `with_qos_defaults` is asked for, as `qsctl render` does.
"""

from __future__ import annotations

from collections.abc import Iterable

from lxml import etree
from lxml.etree import _Element

from qsctl.config.defaults import QOS_DEFAULTS, qos_holder
from qsctl.config.qos_tree import merge, read_qos, to_element
from qsctl.config.values import duration_texts
from qsctl.core.queue.settings import (
    UNLIMITED,
    MonitoringSettings,
    ReplicationSettings,
    ResourceLimitSettings,
    SessionSettings,
    SharedReaderQueueSettings,
    StatisticsSettings,
)
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.instant import Nanoseconds


def leaf(tag: str, value: object) -> _Element:
    """An element with a value: truth values as true and false."""
    element = etree.Element(tag)
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    if text:
        element.text = text
    return element


def branch(tag: str, children: Iterable[_Element], **attributes: str) -> _Element:
    """An element with children; empty attributes are left out."""
    element = etree.Element(tag, {key: value for key, value in attributes.items() if value})
    element.extend(list(children))
    return element


def length_of_time(tag: str, length: Nanoseconds) -> _Element:
    """A duration as `<sec>` and `<nanosec>`."""
    sec, nanosec = duration_texts(length)
    return branch(tag, [leaf("sec", sec), leaf("nanosec", nanosec)])


def _held_length_of_time(tag: str, length: Nanoseconds) -> _Element:
    return branch(tag, [length_of_time("duration", length)])


def _limit(tag: str, value: int) -> _Element:
    return leaf(tag, "LENGTH_UNLIMITED" if value == UNLIMITED else value)


def queue_element(queue: SharedReaderQueueSettings, *, with_qos_defaults: bool = False) -> _Element:
    """A `<shared_reader_queue>`, or a `<dead_letter_shared_reader_queue>`."""
    tag = "dead_letter_shared_reader_queue" if queue.is_dead_letter else "shared_reader_queue"
    children = [leaf("topic_name", queue.topic_name)]
    if not queue.is_dead_letter:
        children.append(leaf("type_name", queue.type_name))
    if queue.reply_type:
        children += [leaf("reply_type", queue.reply_type), leaf("reply_topic", queue.reply_topic)]
    children += [
        _queue_qos(queue),
        monitoring_element("entity_monitoring", queue.monitoring),
        statistics_element(queue.statistics),
        *qos_elements(tag, queue.qos, with_qos_defaults=with_qos_defaults),
    ]
    return branch(tag, children, name=queue.name, session=queue.session, dead_letter_queue=queue.dead_letter_queue)


def _queue_qos(queue: SharedReaderQueueSettings) -> _Element:
    persistence = queue.persistence
    return branch(
        "queue_qos",
        [
            _distribution(queue),
            _held_length_of_time("lifespan", queue.lifespan_ns),
            branch(
                "persistence",
                [
                    leaf("kind", persistence.kind),
                    leaf("in_memory_state", persistence.in_memory_state),
                    leaf("restore", persistence.restore),
                ],
            ),
            branch(
                "redelivery",
                [
                    leaf("max_delivery_retries", queue.redelivery.max_delivery_retries),
                    _held_length_of_time("response_timeout", queue.redelivery.response_timeout_ns),
                ],
            ),
            branch("reliability", [leaf("app_ack_sample_to_producer", queue.app_ack_sample_to_producer)]),
            replication_element("replication", queue.replication),
            _resource_limits(queue.limits),
        ],
    )


def _distribution(queue: SharedReaderQueueSettings) -> _Element:
    settings = queue.distribution
    properties = {
        "UNACKED_THRESHOLD": settings.unacked_threshold,
        "ALLOW_CONSUMER_FEEDBACK": int(settings.allow_consumer_feedback),
    }
    elements = [branch("element", [leaf("name", name), leaf("value", value)]) for name, value in properties.items()]
    return branch(
        "distribution",
        [
            leaf("kind", settings.kind),
            leaf("mark_last_undelivered_sample", settings.mark_last_undelivered_sample),
            branch("property", [branch("value", elements)]),
        ],
    )


def _resource_limits(limits: ResourceLimitSettings) -> _Element:
    watermarks = [
        leaf(tag, percent)
        for tag, percent in (
            ("high_watermark", limits.high_watermark_percent),
            ("low_watermark", limits.low_watermark_percent),
        )
        if percent is not None
    ]
    children = [
        branch(
            "queue_allocation_settings",
            [
                leaf("initial_count", limits.initial_count),
                _limit("max_count", limits.max_count),
                leaf("incremental_count", limits.incremental_count),
                _limit("max_in_memory_bytes", limits.max_in_memory_bytes),
            ],
        )
    ]
    if watermarks:
        children.append(branch("queue_watermark_settings", watermarks))
    children.append(branch("replacement_policy", [leaf("kind", limits.replacement)]))
    return branch("resource_limits", children)


def monitoring_element(tag: str, monitoring: MonitoringSettings) -> _Element:
    """`<entity_monitoring>`, or what a session or a service says in the same words."""
    return branch(
        tag,
        [
            leaf("enabled", monitoring.enabled),
            length_of_time("status_publication_period", monitoring.status_publication_period_ns),
        ],
    )


def statistics_element(statistics: StatisticsSettings) -> _Element:
    """`<statistics>` with every window named."""
    windows = statistics.historical
    return branch(
        "statistics",
        [
            branch(
                "historical_statistics",
                [
                    leaf("five_second", windows.five_second),
                    leaf("one_minute", windows.one_minute),
                    leaf("five_minute", windows.five_minute),
                    leaf("one_hour", windows.one_hour),
                    leaf("up_time", windows.up_time),
                ],
            ),
            length_of_time("statistics_sampling_period", statistics.sampling_period_ns),
        ],
    )


def replication_element(tag: str, replication: ReplicationSettings, further: Iterable[_Element] = ()) -> _Element:
    """`<replication>`, or one of the tags of the service QoS that say the same."""
    return branch(
        tag,
        [
            leaf("enabled", replication.enabled),
            *further,
            branch(
                "replication_settings",
                [
                    leaf("queue_instances", replication.queue_instances),
                    length_of_time("master_timeout", replication.master_timeout_ns),
                    leaf("synchronize_consumer_assignment", replication.synchronize_consumer_assignment),
                    length_of_time("sample_timeout", replication.sample_timeout_ns),
                ],
            ),
        ],
    )


def session_element(session: SessionSettings) -> _Element:
    """A `<session>`."""
    return branch(
        "session",
        [
            length_of_time("dequeue_period", session.dequeue_period_ns),
            branch(
                "thread",
                [
                    leaf("mask", session.thread_mask),
                    leaf("priority", session.thread_priority),
                    leaf("stack_size", session.thread_stack_size),
                ],
            ),
        ],
        name=session.name,
    )


def subscriber_element(subscriber: SharedSubscriberSettings, *, with_qos_defaults: bool = False) -> _Element:
    """A `<shared_subscriber>` with its sessions and queues."""
    return branch(
        "shared_subscriber",
        [
            branch("session_settings", [session_element(session) for session in subscriber.sessions]),
            *qos_elements("shared_subscriber", subscriber.qos, with_qos_defaults=with_qos_defaults),
            *(queue_element(queue, with_qos_defaults=with_qos_defaults) for queue in subscriber.queues),
        ],
        name=subscriber.name,
    )


def qos_elements(holder: str, qos: dict[str, str], *, with_qos_defaults: bool) -> list[_Element]:
    """The QoS elements of an entity in alphabetical order, over the manual's defaults where asked for."""
    texts = dict(qos)
    if with_qos_defaults:
        key = qos_holder(holder)
        for owner, tag in QOS_DEFAULTS:
            if owner == key:
                texts[tag] = effective_qos(holder, tag, qos.get(tag))
    return [etree.fromstring(texts[tag]) for tag in sorted(texts)]


def effective_qos(holder: str, tag: str, given: str | None) -> str:
    """A QoS element with the manual's defaults for its place laid under it (Tables 3.4, 3.5 and 3.14).

    Args:
        holder: the tag that holds the element, such as `shared_reader_queue` or `administration`.
        tag: the element's own tag.
        given: what the configuration says, None for nothing.

    Returns:
        Canonical XML; an empty element where neither says anything.
    """
    default = QOS_DEFAULTS.get((qos_holder(holder), tag))
    if default is None:
        return given or f"<{tag}/>"
    if given is None:
        return default.value
    element = etree.fromstring(given)
    node = read_qos(element)
    over = merge(read_qos(etree.fromstring(default.value)), node)
    result = to_element(over)
    base_name = element.get("base_name")
    if base_name:
        result.set("base_name", base_name)
    return etree.tostring(result, encoding="unicode")
