"""The table of a queue: `<shared_reader_queue>` and `<dead_letter_shared_reader_queue>` [QS Tables 3.14 to 3.16]."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from qsctl.config.form import Element, Inherit, InheritedOrigin, Option, QosElements, Setting, Shape
from qsctl.config.tables.shared import ENTITY_MONITORING, REPLICATION, STATISTICS
from qsctl.core.queue.settings import (
    DistributionKind,
    DistributionSettings,
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    ReplacementKind,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.declared.values import (
    BOOLEAN,
    COUNT,
    DURATION,
    INCREMENT,
    LIMIT,
    NUMERIC_BOOLEAN,
    PERCENT,
    POSITIVE_COUNT,
    UNACKED_THRESHOLD,
    choice,
    text,
)

_LIMITS: Final = "Limits"
_DELIVERY: Final = "Delivery"
_NO_LIMIT: Final = "-1, no limit"

DISTRIBUTION = Element("distribution", (
    Setting("kind", "kind", choice(DistributionKind, "distribution_kind"), "Table 3.15", "Dispatch policy."),
    Setting("mark_last_undelivered_sample", "mark_last_undelivered_sample", BOOLEAN, "Table 3.15",
            "Whether the last sample in the queue for a consumer is flagged as such."),
    Setting("UNACKED_THRESHOLD", "unacked_threshold", UNACKED_THRESHOLD, "Table 3.15",
            "Outstanding samples up to which a consumer is sent more; -1: always.", Shape.PROPERTY,
            option=Option("--unacked-threshold", _DELIVERY, default="-1"), replay="unacked-threshold"),
    Setting("ALLOW_CONSUMER_FEEDBACK", "allow_consumer_feedback", NUMERIC_BOOLEAN, "Table 3.15",
            "Permission for consumers to announce whether they accept samples.", Shape.PROPERTY,
            option=Option("--consumer-feedback", _DELIVERY, help="Let consumers announce whether they accept samples.",
                          given=True, default="off")),
), DistributionSettings, "distribution")  # fmt: skip

PERSISTENCE = Element("persistence", (
    Setting("kind", "kind", choice(PersistenceKind, "persistence_kind"), "Table 3.15",
            "VOLATILE: samples are in memory. PERSISTENT: on disk.",
            option=Option("--persistent", help="Keep the samples on disk, across restarts.",
                          given=PersistenceKind.PERSISTENT, default="in memory only")),
    Setting("in_memory_state", "in_memory_state", BOOLEAN, "Table 3.15",
            "Whether a persistent queue also keeps the state of its samples in memory."),
    Setting("restore", "restore", BOOLEAN, "section 2.14.2.1",
            "Whether stored samples are restored when the queue is created."),
), PersistenceSettings, "persistence")  # fmt: skip

REDELIVERY = Element("redelivery", (
    Setting("max_delivery_retries", "max_delivery_retries", COUNT, "Table 3.15",
            "Deliveries of a sample after the first one.", option=Option("--max-delivery-retries", _DELIVERY),
            replay="max-delivery-retries"),
    Setting("response_timeout", "response_timeout_ns", DURATION, "Table 3.15",
            "Longest wait for an acknowledgment, a duration such as 30s.", Shape.HELD_DURATION,
            option=Option("--response-timeout", _DELIVERY, metavar="DURATION"), replay="response-timeout"),
), RedeliverySettings, "redelivery")  # fmt: skip

RESOURCE_LIMITS = Element("resource_limits", (
    Element("queue_allocation_settings", (
        Setting("initial_count", "initial_count", POSITIVE_COUNT, "section 2.15.1.1",
                "Samples allocated in advance; at most max_count."),
        Setting("max_count", "max_count", LIMIT, "section 2.15.1.1", "Largest number of samples in the queue.",
                option=Option("--max-count", _LIMITS, default=_NO_LIMIT), replay="max-count"),
        Setting("incremental_count", "incremental_count", INCREMENT, "section 2.15.1.1",
                "Samples added when more are needed; -1 doubles."),
        Setting("max_in_memory_bytes", "max_in_memory_bytes", LIMIT, "section 2.15.1.2",
                "Size of all samples in memory, metadata included, in bytes.",
                option=Option("--max-bytes", _LIMITS, default=_NO_LIMIT), replay="max-in-memory-bytes"),
        Setting("max_sample_bytes", "max_sample_bytes", LIMIT, "an extension",
                "Size of the largest sample that the queue accepts, in bytes of its serialized form.",
                option=Option("--max-sample-bytes", _LIMITS, default=_NO_LIMIT), replay="max-sample-bytes"),
    )),
    Element("queue_watermark_settings", (
        Setting("high_watermark", "high_watermark_percent", PERCENT, "section 2.15.3",
                "Fill level that counts as passed above it, in percent of the limits.",
                option=Option("--high-watermark", _LIMITS)),
        Setting("low_watermark", "low_watermark_percent", PERCENT, "section 2.15.3",
                "Fill level that counts as passed below it, in percent of the limits.",
                option=Option("--low-watermark", _LIMITS)),
    )),
    Element("replacement_policy", (
        Setting("kind", "replacement", choice(ReplacementKind, "replacement_kind"), "section 2.15.4",
                "Policy of a full queue: reject new samples, or let their producers wait.",
                option=Option("--when-full", _LIMITS, default="reject",
                              words={"reject": ReplacementKind.REJECT_WITHOUT_REPLACEMENT,
                                     "wait": ReplacementKind.WAIT_WITHOUT_REPLACEMENT}),
                replay="replacement"),
    )),
), ResourceLimitSettings, "limits")  # fmt: skip

QUEUE_QOS = Element("queue_qos", (
    DISTRIBUTION,
    Setting("lifespan", "lifespan_ns", DURATION, "Table 3.15",
            "Time that a sample is kept; a finite lifespan of the producer comes first.", Shape.HELD_DURATION,
            option=Option("--lifespan", _DELIVERY, "Longest stay of a sample in the queue, a duration such as 1h.",
                          "DURATION"), replay="lifespan"),
    PERSISTENCE,
    REDELIVERY,
    Element("reliability", (
        Setting("app_ack_sample_to_producer", "app_ack_sample_to_producer", BOOLEAN, "Table 3.15",
                "Whether the producer of a sample is notified that it was stored."),
    )),
    replace(REPLICATION, inherits=(Inherit(InheritedOrigin.SESSION, "replication"),
                                   Inherit(InheritedOrigin.SERVICE, "service_qos/shared_reader_queue_replication"))),
    RESOURCE_LIMITS,
))  # fmt: skip

_NAME = Setting(
    "name", "name", text("name"), "Table 3.16", "Name in resource identifiers, and for references.", Shape.ATTRIBUTE
)
_SESSION = Setting(
    "session", "session", text("name"), "Table 3.16", "Session of the shared subscriber that works for this queue.",
    Shape.ATTRIBUTE, option=Option("--session", default="the subscriber's first one", metavar="SESSION"),
)  # fmt: skip
_TOPIC = Setting(
    "topic_name", "topic_name", text("topic_name_text"), "Table 3.14",
    "Topic that producers write; consumers read TOPIC@SUBSCRIBER.",
    option=Option("--topic", default="NAME", metavar="TOPIC"),
)  # fmt: skip
_INHERITING = (
    replace(ENTITY_MONITORING, inherits=(
        Inherit(InheritedOrigin.SESSION, "monitoring"), Inherit(InheritedOrigin.SERVICE, "monitoring"),
    )),
    replace(STATISTICS, inherits=(
        Inherit(InheritedOrigin.SESSION, "statistics"), Inherit(InheritedOrigin.SERVICE, "statistics"),
    )),
    QosElements(("datareader_qos", "datawriter_qos", "redistribution_datawriter_qos", "update_datareader_qos",
                 "update_datawriter_qos")),
)  # fmt: skip

QUEUE = Element("shared_reader_queue", (
    _NAME,
    _SESSION,
    Setting("dead_letter_queue", "dead_letter_queue", text("name"), "Table 3.16",
            "Name of the subscriber's dead-letter queue, for undeliverable samples.", Shape.ATTRIBUTE,
            option=Option("--dead-letter", _DELIVERY, metavar="QUEUE", default="none, they are dropped")),
    _TOPIC,
    Setting("type_name", "type_name", text("type_reference"), "Table 3.14",
            "Type of the samples: defined in <types>, built in or discovered.",
            option=Option("--type", help="Type of the samples.", metavar="TYPE", default="DDS::String")),
    Setting("reply_type", "reply_type", text("type_reference"), "Table 3.14",
            "Type of the replies; naming one creates a reply queue like this one.",
            option=Option("--reply-type", metavar="TYPE", default="none, no reply queue")),
    Setting("reply_topic", "reply_topic", text("topic_name_text"), "Table 3.14",
            "Topic of the reply queue: the topic's name and Reply, unless given."),
    QUEUE_QOS,
    *_INHERITING,
), SharedReaderQueueSettings)  # fmt: skip

DEAD_LETTER_QUEUE = Element(
    "dead_letter_shared_reader_queue", (_NAME, _SESSION, _TOPIC, QUEUE_QOS, *_INHERITING), SharedReaderQueueSettings
)

QUEUE_FORMS: Final = {form.tag: form for form in (QUEUE, DEAD_LETTER_QUEUE)}
"""By tag."""


def form_of(queue: SharedReaderQueueSettings) -> Element:
    """Return the table that a queue is written by."""
    return DEAD_LETTER_QUEUE if queue.is_dead_letter else QUEUE
