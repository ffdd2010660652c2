"""A `<shared_reader_queue>` or `<dead_letter_shared_reader_queue>` to settings (manual, Tables 3.14 to 3.16).

Decides: what each value of a queue is, own, inherited or default. What the values mean together is for the rules.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from lxml import etree
from lxml.etree import _Element

from qsctl.config import defaults, values
from qsctl.config.document import text_of
from qsctl.config.flatten import origins_of
from qsctl.config.inheritance import Layer, Reading, Scope
from qsctl.config.problems import Problem, did_you_mean, problem_at
from qsctl.config.qos import QosLibraries
from qsctl.config.qos_tree import QosNode, canonical_text
from qsctl.core.queue.settings import (
    UNLIMITED,
    DistributionKind,
    DistributionSettings,
    HistoricalStatistics,
    MonitoringSettings,
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    ReplacementKind,
    ReplicationSettings,
    ResourceLimitSettings,
    SampleBufferSettings,
    SharedReaderQueueSettings,
    StatisticsSettings,
)

DEAD_LETTER_TAG = "dead_letter_shared_reader_queue"
QUEUE_TAGS = ("shared_reader_queue", DEAD_LETTER_TAG)
QUEUE_QOS_TAGS = (
    "datareader_qos",
    "datawriter_qos",
    "redistribution_datawriter_qos",
    "update_datareader_qos",
    "update_datawriter_qos",
)
_UNFIT = re.compile(r"[^A-Za-z0-9_.]")


@dataclass(frozen=True)
class Inherited:
    """What a queue inherits from further out, the nearest first (sections 3.3.4.2.1, 3.3.4.3, 7.1.3)."""

    reading: Reading
    libraries: QosLibraries
    monitoring: Scope
    statistics: Scope
    replication: Scope
    """`<replication>` of the session and `<shared_reader_queue_replication>` of the service QoS."""
    replication_settings: Scope
    """`<replication_settings>` of the service."""
    general_monitoring: bool
    sample_buffer: SampleBufferSettings = SampleBufferSettings()


def build_queue(element: _Element, inherited: Inherited, parent_path: str) -> SharedReaderQueueSettings:
    """The settings of one queue; problems go to the reading."""
    tag = str(element.tag)
    is_dead_letter = tag == DEAD_LETTER_TAG
    topic = _text(element, "topic_name")
    name = " ".join((element.get("name") or "").split()) or generated_name(topic, parent_path)
    reading = inherited.reading
    scope = Scope(reading, f"{parent_path}/{tag}[{name}]", (Layer(element),))
    reading.elements[scope.path] = element
    if not scope.attribute("name"):
        reading.origins[f"{scope.path}/@name"] = "generated from the topic (Table 3.16)"
    for tag_with_text in ("topic_name", "type_name", "reply_type", "reply_topic"):
        child = element.find(tag_with_text)
        if child is not None:
            reading.note(f"{scope.path}/{tag_with_text}", child)
    reply_type = "" if is_dead_letter else _text(element, "reply_type")
    qos = scope.inside("queue_qos")
    dds_qos = build_qos(scope, QUEUE_QOS_TAGS, inherited.libraries)
    return SharedReaderQueueSettings(
        name=name,
        topic_name=topic,
        type_name="" if is_dead_letter else _text(element, "type_name"),
        reply_type=reply_type,
        reply_topic=_reply_topic(scope, element, topic) if reply_type else "",
        session=scope.attribute("session"),
        dead_letter_queue=scope.attribute("dead_letter_queue"),
        is_dead_letter=is_dead_letter,
        distribution=build_distribution(qos.inside("distribution")),
        lifespan_ns=qos.length_of_time("lifespan", defaults.LIFESPAN, held=True),
        redelivery=_redelivery(qos.inside("redelivery")),
        persistence=_persistence(qos.inside("persistence")),
        app_ack_sample_to_producer=qos.inside("reliability").value(
            "app_ack_sample_to_producer", values.boolean, defaults.APP_ACK_SAMPLE_TO_PRODUCER
        ),
        limits=_limits(qos.inside("resource_limits"), dds_qos.get("datareader_qos", "")),
        sample_buffer=inherited.sample_buffer,
        statistics=build_statistics(scope.inside("statistics").then(inherited.statistics)),
        monitoring=build_monitoring(
            scope.inside("entity_monitoring").then(inherited.monitoring), inherited.general_monitoring
        ),
        replication=build_replication(
            qos.inside("replication").then(inherited.replication), inherited.replication_settings
        ),
        qos=dds_qos,
    )


def _text(element: _Element, tag: str) -> str:
    child = element.find(tag)
    return text_of(child) if child is not None else ""


def generated_name(topic: str, parent_path: str) -> str:
    """The name of a queue that has none: the topic and eight digits from its place, the same at every start.

    The manual says random; our reading: it must not change between starts, or nobody finds the queue again.
    """
    digest = hashlib.sha256(f"{parent_path}/{topic}".encode()).hexdigest()[:8]
    return f"{_UNFIT.sub('_', topic)[:64]}_{digest}"


def _reply_topic(scope: Scope, element: _Element, topic: str) -> str:
    own = _text(element, "reply_topic")
    if own:
        return own
    scope.default("reply_topic", defaults.REPLY_TOPIC_SUFFIX)
    return topic + defaults.REPLY_TOPIC_SUFFIX.value


def build_distribution(scope: Scope) -> DistributionSettings:
    """`<distribution>`: its properties may stand in one `<value>` or in several."""
    threshold, feedback = defaults.UNACKED_THRESHOLD, defaults.ALLOW_CONSUMER_FEEDBACK
    settings = DistributionSettings(
        kind=scope.value("kind", values.kind(DistributionKind), defaults.DISTRIBUTION_KIND),
        mark_last_undelivered_sample=scope.value(
            "mark_last_undelivered_sample", values.boolean, defaults.MARK_LAST_UNDELIVERED_SAMPLE
        ),
        unacked_threshold=scope.default("property/UNACKED_THRESHOLD", threshold),
        allow_consumer_feedback=scope.default("property/ALLOW_CONSUMER_FEEDBACK", feedback),
    )
    changes: dict[str, int | bool] = {}
    for element in scope.nearest.findall("property/value/element") if scope.nearest is not None else ():
        name, value = _text(element, "name"), element.find("value")
        if value is None:
            continue
        try:
            if name == "UNACKED_THRESHOLD":
                changes["unacked_threshold"] = values.unacked_threshold(text_of(value))
            elif name == "ALLOW_CONSUMER_FEEDBACK":
                changes["allow_consumer_feedback"] = values.boolean(text_of(value))
            else:
                scope.reading.problems.append(_unknown_property(element, name))
                continue
        except values.ValueForm as form:
            scope.wrong(value, form.allowed)
            continue
        scope.reading.note(f"{scope.path}/property/{name}", value)
    return DistributionSettings(
        kind=settings.kind,
        mark_last_undelivered_sample=settings.mark_last_undelivered_sample,
        unacked_threshold=int(changes.get("unacked_threshold", settings.unacked_threshold)),
        allow_consumer_feedback=bool(changes.get("allow_consumer_feedback", settings.allow_consumer_feedback)),
    )


def _unknown_property(element: _Element, name: str) -> Problem:
    known = ("UNACKED_THRESHOLD", "ALLOW_CONSUMER_FEEDBACK")
    return problem_at(
        element,
        "the dispatch policy has no such property (Table 3.15)",
        found=name or "(no name)",
        allowed=" or ".join(known),
        suggestion=did_you_mean(name.upper(), known),
    )


def _redelivery(scope: Scope) -> RedeliverySettings:
    return RedeliverySettings(
        max_delivery_retries=scope.value("max_delivery_retries", values.count, defaults.MAX_DELIVERY_RETRIES),
        response_timeout_ns=scope.length_of_time("response_timeout", defaults.RESPONSE_TIMEOUT, held=True),
    )


def _persistence(scope: Scope) -> PersistenceSettings:
    return PersistenceSettings(
        kind=scope.value("kind", values.kind(PersistenceKind), defaults.QUEUE_PERSISTENCE_KIND),
        in_memory_state=scope.value("in_memory_state", values.boolean, defaults.IN_MEMORY_STATE),
        restore=scope.value("restore", values.boolean, defaults.QUEUE_RESTORE),
    )


def _limits(scope: Scope, datareader_qos: str) -> ResourceLimitSettings:
    counts = scope.inside("queue_allocation_settings")
    watermarks = scope.inside("queue_watermark_settings")
    return ResourceLimitSettings(
        initial_count=counts.value("initial_count", values.positive_count, defaults.INITIAL_COUNT),
        max_count=counts.value("max_count", values.limit, defaults.MAX_COUNT),
        incremental_count=counts.value("incremental_count", values.increment, defaults.INCREMENTAL_COUNT),
        max_in_memory_bytes=counts.value("max_in_memory_bytes", values.limit, defaults.MAX_IN_MEMORY_BYTES),
        high_watermark_percent=watermarks.value("high_watermark", values.optional_percent, defaults.WATERMARK),
        low_watermark_percent=watermarks.value("low_watermark", values.optional_percent, defaults.WATERMARK),
        replacement=scope.inside("replacement_policy").value(
            "kind", values.kind(ReplacementKind), defaults.REPLACEMENT
        ),
        waiting_count_max=waiting_count_max(datareader_qos),
    )


def waiting_count_max(datareader_qos: str) -> int:
    """How many samples may wait outside a full queue: what the reader's cache may hold (section 2.15.4)."""
    if "max_samples" not in datareader_qos:
        return UNLIMITED
    text = etree.fromstring(datareader_qos).findtext("resource_limits/max_samples") or ""
    try:
        most = values.whole_number(text)
    except values.ValueForm:
        return UNLIMITED
    return most if most > 0 else UNLIMITED


def build_statistics(scope: Scope) -> StatisticsSettings:
    """`<statistics>`: the nearest `<historical_statistics>` counts whole, a window it does not name is off."""
    windows = scope.inside("historical_statistics")
    windows = Scope(windows.reading, windows.path, windows.layers[:1])

    def window(tag: str) -> bool:
        return windows.value(tag, values.boolean, defaults.HISTORICAL_WINDOW)

    return StatisticsSettings(
        sampling_period_ns=scope.length_of_time("statistics_sampling_period", defaults.STATISTICS_SAMPLING_PERIOD),
        historical=HistoricalStatistics(
            five_second=window("five_second"),
            one_minute=window("one_minute"),
            five_minute=window("five_minute"),
            one_hour=window("one_hour"),
            up_time=window("up_time"),
        ),
    )


def build_monitoring(scope: Scope, general_monitoring: bool) -> MonitoringSettings:
    """`<entity_monitoring>`; where general monitoring is off, so is the queue's, but its period still counts."""
    enabled = scope.value("enabled", values.boolean, defaults.ENTITY_MONITORING_ENABLED)
    if not general_monitoring:
        scope.reading.origins[f"{scope.path}/enabled"] = "off, for general monitoring is off (Table 3.5)"
    return MonitoringSettings(
        enabled=enabled and general_monitoring,
        status_publication_period_ns=scope.length_of_time(
            "status_publication_period", defaults.STATUS_PUBLICATION_PERIOD
        ),
    )


def build_replication(scope: Scope, service_settings: Scope) -> ReplicationSettings:
    """`<replication>`: off where no layer has the tag, on where one has, unless the nearest says otherwise.

    A value of the protocol that the nearest `<replication_settings>` does not give comes from the next one out.
    """
    absent = defaults.REPLICATION_ENABLED if scope.present else defaults.REPLICATION_OFF
    nearest = Scope(scope.reading, scope.path, scope.layers[:1])
    protocol = scope.inside("replication_settings").then(service_settings)
    return ReplicationSettings(
        enabled=nearest.value("enabled", values.boolean, absent),
        queue_instances=protocol.value("queue_instances", values.positive_count, defaults.QUEUE_INSTANCES),
        master_timeout_ns=protocol.length_of_time("master_timeout", defaults.MASTER_TIMEOUT),
        synchronize_consumer_assignment=protocol.value(
            "synchronize_consumer_assignment", values.boolean, defaults.SYNCHRONIZE_CONSUMER_ASSIGNMENT
        ),
        sample_timeout_ns=protocol.length_of_time("sample_timeout", defaults.SAMPLE_TIMEOUT),
    )


def build_qos(scope: Scope, tags: tuple[str, ...], libraries: QosLibraries) -> dict[str, str]:
    """The QoS elements of an entity, inheritance resolved, as canonical text by tag."""
    qos: dict[str, str] = {}
    for tag in tags:
        element = scope.nearest.find(tag) if scope.nearest is not None else None
        node = libraries.default_for(tag) if element is None else libraries.resolve(element)
        if node is None:
            continue
        if element is not None:
            scope.reading.note(f"{scope.path}/{tag}", element)
        note_qos(scope, node)
        qos[tag] = canonical_text(node)
    return qos


def note_qos(scope: Scope, node: QosNode) -> None:
    """Remember where each value of a QoS element came from."""
    for path, origin in origins_of(node, f"{scope.path}/{node.tag}"):
        if origin:
            scope.reading.origins[path] = origin
