"""One row for every tag of the manual's tables: accepted, its default, and a wrong value refused with line and reason."""

# A table with one row a line reads better than one with a value a line.
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from qsctl.config.filesystem import JournalMode, Synchronization, Vacuum
from qsctl.config.settings import DistributedLoggerSettings, ServiceConfiguration
from qsctl.core.queue.settings import (
    DistributionSettings,
    HistoricalStatistics,
    PersistenceKind,
    RedeliverySettings,
    ReplicationSettings,
    ResourceLimitSettings,
    SampleBufferSettings,
    SharedReaderQueueSettings,
)
from qsctl.instant import INFINITE_NS, SECOND_NS
from qsctl.shipped import shipped

ADMIN = "<administration><domain_id>3</domain_id>{}</administration>"
MONITORING = "<monitoring><domain_id>4</domain_id>{}</monitoring>"
FILES = "<persistence_settings><filesystem>{}</filesystem></persistence_settings>"
SRQ = "<service_qos><shared_reader_queue_replication>{}</shared_reader_queue_replication></service_qos>"
CONF = "<administration><domain_id>3</domain_id></administration><service_qos><configuration_replication>{}</configuration_replication></service_qos>"
SESSION = '<session name="A">{}</session>'
DEPTH = "<history><kind>KEEP_ALL_HISTORY_QOS</kind></history>"
TWO_SECONDS = "<sec>2</sec><nanosec>0</nanosec>"
BAD_SECONDS = "<sec>-2</sec>"


def queue(c: ServiceConfiguration) -> SharedReaderQueueSettings:
    return next(each for each in subscriber(c).queues if not each.is_dead_letter)


def subscriber(c: ServiceConfiguration) -> Any:
    return c.service.participants[0].subscribers[0]


def session(c: ServiceConfiguration) -> Any:
    return subscriber(c).sessions[0]


@dataclass(frozen=True)
class Tag:
    """`given` and `wrong` replace parts of a service; `read` finds the value in the settings."""

    table: str
    tag: str
    given: dict[str, str]
    wrong: dict[str, str]
    read: Callable[[ServiceConfiguration], object]
    value: object
    default: object


def in_part(part: str, frame: str, good: str, bad: str) -> tuple[dict[str, str], dict[str, str]]:
    return {part: frame.format(good)}, {part: frame.format(bad)}


def tag(table: str, name: str, part: str, frame: str, good: str, bad: str, read: Any, value: Any, default: Any) -> Tag:
    return Tag(table, name, *in_part(part, frame, good, bad), read, value, default)


def leaf(table: str, name: str, part: str, frame: str, good: str, bad: str, read: Any, value: Any, default: Any) -> Tag:
    return tag(table, name, part, frame, f"<{name}>{good}</{name}>", f"\n<{name}>{bad}</{name}>", read, value, default)


def qos(table: str, name: str, part: str, frame: str, read: Callable[[ServiceConfiguration], dict[str, str]]) -> Tag:
    inside = "<user_data><value>x</value></user_data>"
    policy = {"publisher_qos": "partition", "subscriber_qos": "partition"}.get(name)
    if policy:
        inside = "<partition><name><element>x</element></name></partition>"
    canonical = f"<{name}>{inside}</{name}>"
    bad = f"\n<{name}><entity_factory><autoenable_created_entities>maybe</autoenable_created_entities></entity_factory></{name}>"
    if name.endswith(("reader_qos", "writer_qos")):
        bad = f"\n<{name}><deadline><period><sec>-1</sec></period></deadline></{name}>"
    return tag(table, name, part, frame, canonical, bad, lambda c: read(c).get(name), canonical, None)


PROTOCOL = "<replication_settings>{}</replication_settings>"
TAGS = [
    Tag("3.1", "queuing_service", {}, {"service": "<domain_id>1</domain_id>"}, lambda c: c.name, "S", "S"),
    Tag(
        "3.1", "qos_library",
        {"dds": f'<qos_library name="L"><qos_profile name="R"><datareader_qos>{DEPTH}</datareader_qos></qos_profile></qos_library>',
         "queue": '<datareader_qos base_name="L::R"/>'},
        {"dds": '\n<qos_library/>'},
        lambda c: queue(c).qos.get("datareader_qos"), f"<datareader_qos>{DEPTH}</datareader_qos>", None,
    ),
    Tag(
        "3.1", "types", {"dds": '<types><struct name="Foo"><member name="x" type="long"/></struct></types>'},
        {"dds": '<types>\n<struct name="Foo"><member name="x" type="lung"/></struct></types>'},
        lambda c: list(c.types.definitions), ["Foo"], [],
    ),
    tag("3.2", "administration", "service", "<administration>{}</administration>", "<domain_id>3</domain_id>", "\n<domain_id>x</domain_id>", lambda c: c.administration and c.administration.domain_id, 3, None),
    Tag("3.2", "domain_participant", {}, {"participant": "\n<domain_name/>"}, lambda c: c.service.participants[0].name, "P", "P"),
    tag("3.2", "monitoring", "service", "<monitoring>{}</monitoring>", "<domain_id>4</domain_id>", "\n<domain_id>233</domain_id>", lambda c: c.monitoring and c.monitoring.domain_id, 4, None),
    tag("3.2", "persistence_settings", "service", "<persistence_settings>{}</persistence_settings>", "<filesystem><file_prefix>Z</file_prefix></filesystem>", "\n<filesystem><file_prefix>a/b</file_prefix></filesystem>", lambda c: c.filesystem.file_prefix, "Z", "QS"),
    tag("3.2", "replication_settings", "service", PROTOCOL, "<queue_instances>5</queue_instances>", "\n<queue_instances>0</queue_instances>", lambda c: c.service.replication.queue_instances, 5, 2),
    tag("3.2", "service_qos", "service", "<service_qos>{}</service_qos>", "<persistence><kind>PERSISTENT</kind></persistence>", "\n<persistence><kind>PERSISTANT</kind></persistence>", lambda c: c.service_qos.persistence.kind, PersistenceKind.PERSISTENT, PersistenceKind.VOLATILE),
    tag("3.2", "statistics", "service", "<statistics>{}</statistics>", f"<statistics_sampling_period>{TWO_SECONDS}</statistics_sampling_period>", f"\n<statistics_sampling_period>{BAD_SECONDS}</statistics_sampling_period>", lambda c: queue(c).statistics.sampling_period_ns, 2 * SECOND_NS, SECOND_NS),
    tag("3.3", "configuration_replication", "service", CONF, "", "\n<enabled>perhaps</enabled>", lambda c: c.service_qos.configuration_replication.replication.enabled, True, False),
    tag("3.3", "persistence", "service", "<service_qos><persistence>{}</persistence></service_qos>", "<restore>false</restore>", "\n<restore>>true</restore>", lambda c: c.service_qos.persistence.restore, False, True),
    tag("3.3", "shared_reader_queue_replication", "service", SRQ, "", "\n<enabled>2</enabled>", lambda c: queue(c).replication.enabled, True, False),
    *(qos("3.4", name, "service", ADMIN, lambda c: c.administration.qos if c.administration else {}) for name in ("datareader_qos", "datawriter_qos", "participant_qos", "publisher_qos", "subscriber_qos")),
    tag("3.4", "distributed_logger", "service", ADMIN, "<distributed_logger><enabled>true</enabled></distributed_logger>", "\n<distributed_logger><enabled>on</enabled></distributed_logger>", lambda c: c.distributed_logger, DistributedLoggerSettings(enabled=True), DistributedLoggerSettings()),
    leaf("3.4", "domain_id", "service", "<administration>{}</administration>", "0x10", "0x1000", lambda c: c.administration and c.administration.domain_id, 16, None),
    tag("3.4", "memory_management", "service", ADMIN, "<memory_management><sample_buffer_min_size>-1</sample_buffer_min_size></memory_management>", "\n<memory_management><sample_buffer_min_size>-2</sample_buffer_min_size></memory_management>", lambda c: c.administration and c.administration.reply_buffer.min_size_bytes, -1, None),
    leaf("3.5", "enabled", "service", MONITORING, "false", "nein", lambda c: queue(c).monitoring.enabled, False, False),
    *(qos("3.5", name, "service", MONITORING, lambda c: c.monitoring.qos if c.monitoring else {}) for name in ("datawriter_qos", "participant_qos", "publisher_qos")),
    leaf("3.5", "domain_id", "service", "<monitoring>{}</monitoring>", "232", "233", lambda c: c.monitoring and c.monitoring.domain_id, 232, None),
    leaf("3.5", "status_publication_period", "service", MONITORING, TWO_SECONDS, BAD_SECONDS, lambda c: queue(c).monitoring.status_publication_period_ns, 2 * SECOND_NS, 5 * SECOND_NS),
    Tag("3.6", "enabled", {"service": MONITORING.format(""), "queue": "<entity_monitoring><enabled>true</enabled></entity_monitoring>"}, {"queue": "<entity_monitoring>\n<enabled>x</enabled></entity_monitoring>"}, lambda c: queue(c).monitoring.enabled, True, False),
    leaf("3.6", "status_publication_period", "queue", "<entity_monitoring>{}</entity_monitoring>", TWO_SECONDS, "<sec>DURATION_INFINIT_SEC</sec>", lambda c: queue(c).monitoring.status_publication_period_ns, 2 * SECOND_NS, 5 * SECOND_NS),
    leaf("3.7", "historical_statistics", "queue", "<statistics>{}</statistics>", "<one_hour>1</one_hour>", "<one_hour>60</one_hour>", lambda c: queue(c).statistics.historical, HistoricalStatistics(one_hour=True), HistoricalStatistics()),
    leaf("3.7", "statistics_sampling_period", "queue", "<statistics>{}</statistics>", "<nanosec>5</nanosec>", "<nanosec>1000000000</nanosec>", lambda c: queue(c).statistics.sampling_period_ns, 5, SECOND_NS),
    leaf("3.8", "filesystem", "service", "<persistence_settings>{}</persistence_settings>", "<vacuum>NONE</vacuum>", "<vacuum>SOME</vacuum>", lambda c: c.filesystem.vacuum, Vacuum.NONE, Vacuum.FULL),
    leaf("3.9", "directory", "service", FILES, ".", "./no/such/directory", lambda c: c.filesystem.directory, Path(), None),
    leaf("3.9", "file_max_size", "service", FILES, "7", "0", lambda c: c.filesystem.file_max_size_kb, 7, 1000),
    leaf("3.9", "file_prefix", "service", FILES, "My-QS_1.", "../QS", lambda c: c.filesystem.file_prefix, "My-QS_1.", "QS"),
    leaf("3.9", "journal_mode", "service", FILES, "WAL", "WALL", lambda c: c.filesystem.journal_mode, JournalMode.WAL, JournalMode.DELETE),
    leaf("3.9", "synchronization", "service", FILES, "FULL", "HALF", lambda c: c.filesystem.synchronization, Synchronization.FULL, Synchronization.OFF),
    leaf("3.9", "trace_file", "service", FILES, "trace.sql", "<name/>", lambda c: c.filesystem.trace_file, Path("trace.sql"), None),
    leaf("3.9", "vacuum", "service", FILES, "NONE", "none at all", lambda c: c.filesystem.vacuum, Vacuum.NONE, Vacuum.FULL),
    Tag("3.10", "domain_id", {"domain": "<domain_id>77</domain_id>"}, {"domain": "\n<domain_id>-1</domain_id>"}, lambda c: c.service.participants[0].domain_id, 77, 1),
    leaf("3.10", "memory_management", "participant", "{}", "<sample_buffer_trim_to_size> 0\n</sample_buffer_trim_to_size>", "<sample_buffer_min_size>0</sample_buffer_min_size>", lambda c: queue(c).sample_buffer, SampleBufferSettings(256, False), SampleBufferSettings(256, True)),
    qos("3.10", "participant_qos", "participant", "{}", lambda c: c.service.participants[0].qos),
    Tag("3.10", "shared_subscriber", {}, {"subscriber": "\n<queue/>"}, lambda c: subscriber(c).name, "U", "U"),
    tag("3.11", "dead_letter_shared_reader_queue", "subscriber", '<dead_letter_shared_reader_queue name="D" session="A"><topic_name>X</topic_name>{}</dead_letter_shared_reader_queue>', "", "\n<type_name>Foo</type_name>", lambda c: [each.name for each in subscriber(c).queues if each.is_dead_letter], ["D"], []),
    qos("3.11", "publisher_qos", "subscriber", "{}", lambda c: subscriber(c).qos),
    Tag("3.11", "session_settings", {"session_settings": '<session_settings><session name="A"/><session name="B"/></session_settings>'}, {"session_settings": "<!-- none -->"}, lambda c: len(subscriber(c).sessions), 2, 1),
    Tag("3.11", "shared_reader_queue", {}, {"type": "<!-- none -->"}, lambda c: queue(c).name, "Q", "Q"),
    qos("3.11", "subscriber_qos", "subscriber", "{}", lambda c: subscriber(c).qos),
    Tag("3.12", "session", {"sessions": '<session name="A"/><session name="B"/>'}, {"sessions": "<!-- none -->"}, lambda c: [each.name for each in subscriber(c).sessions], ["A", "B"], ["A"]),
    leaf("3.13", "dequeue_period", "sessions", SESSION, TWO_SECONDS, BAD_SECONDS, lambda c: session(c).dequeue_period_ns, 2 * SECOND_NS, 10_000_000),
    leaf("3.13", "monitoring", "sessions", SESSION, f"<status_publication_period>{TWO_SECONDS}</status_publication_period>", "<domain_id>3</domain_id>", lambda c: queue(c).monitoring.status_publication_period_ns, 2 * SECOND_NS, 5 * SECOND_NS),
    leaf("3.13", "replication", "sessions", SESSION, "<enabled>true</enabled>", "<enabled>tru</enabled>", lambda c: queue(c).replication.enabled, True, False),
    leaf("3.13", "statistics", "sessions", SESSION, f"<statistics_sampling_period>{TWO_SECONDS}</statistics_sampling_period>", "<period/>", lambda c: queue(c).statistics.sampling_period_ns, 2 * SECOND_NS, SECOND_NS),
    leaf("3.13", "thread", "sessions", SESSION, "<priority>THREAD_PRIORITY_HIGH</priority>", "<priority>VERY_HIGH</priority>", lambda c: (session(c).thread_mask, session(c).thread_priority, session(c).thread_stack_size), ("MASK_DEFAULT", "THREAD_PRIORITY_HIGH", "THREAD_STACK_SIZE_DEFAULT"), ("MASK_DEFAULT", "THREAD_PRIORITY_DEFAULT", "THREAD_STACK_SIZE_DEFAULT")),
    *(qos("3.14", name, "queue", "{}", lambda c: queue(c).qos) for name in ("datareader_qos", "datawriter_qos", "update_datareader_qos", "update_datawriter_qos")),
    Tag("3.14", "queue_qos", {"queue_qos": "<lifespan><duration><sec>1</sec></duration></lifespan>"}, {"queue_qos": "\n<livespan/>"}, lambda c: queue(c).lifespan_ns, SECOND_NS, INFINITE_NS),
    Tag("3.14", "reply_topic", {"queue": "<reply_type>DDS::String</reply_type><reply_topic>R</reply_topic>"}, {"queue": "<reply_type>DDS::String</reply_type>\n<reply_topic>a b</reply_topic>"}, lambda c: queue(c).reply_topic, "R", ""),
    Tag("3.14", "reply_type", {"queue": "<reply_type>DDS::String</reply_type>"}, {"queue": "\n<reply_type>a-b</reply_type>"}, lambda c: (queue(c).reply_type, queue(c).reply_topic), ("DDS::String", "TReply"), ("", "")),
    Tag("3.14", "topic_name", {"topic": "<topic_name>rti/a@b:c-1</topic_name>"}, {"topic": "\n<topic_name>a*</topic_name>"}, lambda c: queue(c).topic_name, "rti/a@b:c-1", "T"),
    Tag("3.14", "type_name", {"type": "<type_name>\n DDS::String </type_name>"}, {"type": "\n<type_name>::</type_name>"}, lambda c: queue(c).type_name, "DDS::String", "DDS::Octets"),
    leaf("3.15", "distribution", "queue_qos", "{}", "<kind>ROUND_ROBIN</kind><property><value><element><name>UNACKED_THRESHOLD</name><value>3</value></element></value></property>", "<kind>RANDOM</kind>", lambda c: queue(c).distribution, DistributionSettings(unacked_threshold=3), DistributionSettings()),
    leaf("3.15", "lifespan", "queue_qos", "{}", f"<duration>{TWO_SECONDS}</duration>", TWO_SECONDS, lambda c: queue(c).lifespan_ns, 2 * SECOND_NS, INFINITE_NS),
    leaf("3.15", "persistence", "queue_qos", "{}", "<in_memory_state>false</in_memory_state>", "<kind>EPHEMERAL</kind>", lambda c: (queue(c).persistence.kind, queue(c).persistence.in_memory_state), (PersistenceKind.VOLATILE, False), (PersistenceKind.VOLATILE, True)),
    leaf("3.15", "redelivery", "queue_qos", "{}", f"<max_delivery_retries>\n10\n</max_delivery_retries><response_timeout><duration>{TWO_SECONDS}</duration></response_timeout>", "<max_delivery_retries>-1</max_delivery_retries>", lambda c: queue(c).redelivery, RedeliverySettings(10, 2 * SECOND_NS), RedeliverySettings()),
    leaf("3.15", "reliability", "queue_qos", "{}", "<app_ack_sample_to_producer>0\n   </app_ack_sample_to_producer>", "<app_ack_sample_to_producer>never</app_ack_sample_to_producer>", lambda c: queue(c).app_ack_sample_to_producer, False, True),
    leaf("3.15", "resource_limits", "queue_qos", "{}", "<queue_allocation_settings><max_count>9</max_count></queue_allocation_settings>", "<queue_allocation_settings><max_count>0x8000000000000000</max_count></queue_allocation_settings>", lambda c: queue(c).limits, ResourceLimitSettings(max_count=9), ResourceLimitSettings()),
    Tag("3.16", "@dead_letter_queue", {"attributes": ' name="Q" session="A" dead_letter_queue="D"', "subscriber": '<dead_letter_shared_reader_queue name="D" session="A"><topic_name>X</topic_name></dead_letter_shared_reader_queue>'}, {"attributes": ' name="Q" session="A" dead_letter_queue="E"'}, lambda c: queue(c).dead_letter_queue, "D", ""),
    Tag("3.16", "@name", {"attributes": ' name=" N " session="A"'}, {"attributes": ' name="a b" session="A"'}, lambda c: queue(c).name, "N", "Q"),
    Tag("3.16", "@session", {"sessions": '<session name="B"/>', "attributes": ' name="Q" session="B"'}, {"attributes": ' name="Q" session="B"'}, lambda c: queue(c).session, "B", "A"),
    leaf("7.1", "enabled", "service", SRQ, "true", "no way", lambda c: queue(c).replication.enabled, True, False),
    tag("7.1", "replication_settings", "service", SRQ.format(PROTOCOL), "<queue_instances>4</queue_instances>", "\n<queue_instances>4.5</queue_instances>", lambda c: queue(c).replication.queue_instances, 4, 2),
    leaf("7.2", "enabled", "queue_qos", "<replication>{}</replication>", "1", "11", lambda c: queue(c).replication.enabled, True, False),
    tag("7.2", "replication_settings", "queue_qos", "<replication>{}</replication>", PROTOCOL.format("<queue_instances>7</queue_instances>"), "\n" + PROTOCOL.format("<instances>7</instances>"), lambda c: queue(c).replication.queue_instances, 7, 2),
    leaf("7.3", "queue_instances", "service", PROTOCOL, "0x3", "0x0", lambda c: queue(c).replication.queue_instances, 3, 2),
    leaf("7.3", "master_timeout", "service", PROTOCOL, TWO_SECONDS, BAD_SECONDS, lambda c: queue(c).replication.master_timeout_ns, 2 * SECOND_NS, 5 * SECOND_NS),
    leaf("7.3", "synchronize_consumer_assignment", "service", PROTOCOL, "true", "later", lambda c: queue(c).replication.synchronize_consumer_assignment, True, False),
    leaf("7.3", "sample_timeout", "service", PROTOCOL, TWO_SECONDS, "<sec>1.5</sec>", lambda c: queue(c).replication.sample_timeout_ns, 2 * SECOND_NS, 7 * SECOND_NS),
    leaf("7.4", "enabled", "service", CONF, "false", "wrong", lambda c: c.service_qos.configuration_replication.replication.enabled, False, False),
    qos("7.4", "participant_qos", "service", CONF, lambda c: c.service_qos.configuration_replication.qos),
    tag("7.4", "replication_settings", "service", CONF, PROTOCOL.format("<queue_instances>3</queue_instances>"), "\n" + PROTOCOL.format("<queue_instances>x</queue_instances>"), lambda c: c.service_qos.configuration_replication.replication, ReplicationSettings(enabled=True, queue_instances=3), ReplicationSettings()),
]  # fmt: skip
ids = [f"{row.table} {row.tag}" for row in TAGS]


def test_no_tag_of_the_manual_is_forgotten() -> None:
    lines = shipped("fixtures/config/manual_tags.txt").read_text(encoding="utf-8").splitlines()
    listed = [line for line in lines if line and not line.startswith("#")]
    assert set(ids) - set(listed) == set(), "TAGS has the tags of [QS] alone: a setting of ours needs no row"
    assert sorted(ids) == sorted(listed), "a row of TAGS is missing, or there twice"
    assert len(listed) == 83


@pytest.mark.parametrize("row", TAGS, ids=ids)
def test_a_tag_is_accepted_and_read(row: Tag, text: Any, load: Any) -> None:
    assert row.read(load(text(**row.given).xml()).configuration) == row.value


@pytest.mark.parametrize("row", TAGS, ids=ids)
def test_a_tag_that_is_not_given_has_its_default(row: Tag, text: Any, load: Any) -> None:
    assert row.read(load(text().xml()).configuration) == row.default


@pytest.mark.parametrize("row", TAGS, ids=ids)
def test_a_wrong_value_is_refused_with_its_line_and_what_is_allowed(row: Tag, text: Any, errors: Any) -> None:
    xml = text(**row.wrong).xml()
    found = errors(xml)
    assert found
    first = found[0]
    assert 1 < first.line <= len(xml.splitlines())
    assert first.path.startswith("dds/")
    assert first.allowed or first.suggestion
    assert first.message
