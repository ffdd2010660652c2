"""Options of `create-queue` as a queue's configuration."""

from __future__ import annotations

import pytest

from qsctl.cli.administer.queue_options import QueueOptions
from qsctl.cli.administer.snippets import Snippet, SnippetPlace, queue_of
from qsctl.core.queue.settings import (
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
    SessionSettings,
    SharedReaderQueueSettings,
    StatisticsSettings,
)
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.errors import UsageError
from qsctl.instant import HOUR_NS, SECOND_NS


def test_no_options_give_the_manual_s_defaults_and_the_name_as_topic() -> None:
    assert QueueOptions().settings("Orders") == SharedReaderQueueSettings("Orders", "Orders", "DDS::String")


def test_every_option_reaches_its_setting() -> None:
    options = QueueOptions(
        topic="T",
        type="Order",
        reply_type="Bill",
        session="Slow",
        persistent=True,
        max_count=10,
        max_bytes=1000,
        high_watermark=90,
        low_watermark=10,
        when_full="wait",
        lifespan="1h",
        max_delivery_retries=3,
        response_timeout="30s",
        unacked_threshold=0,
        consumer_feedback=True,
        dead_letter="Dead",
    )
    assert options.settings("Orders") == SharedReaderQueueSettings(
        "Orders",
        "T",
        "Order",
        reply_type="Bill",
        reply_topic="TReply",
        session="Slow",
        dead_letter_queue="Dead",
        distribution=DistributionSettings(unacked_threshold=0, allow_consumer_feedback=True),
        lifespan_ns=HOUR_NS,
        redelivery=RedeliverySettings(3, 30 * SECOND_NS),
        persistence=PersistenceSettings(PersistenceKind.PERSISTENT),
        limits=ResourceLimitSettings(
            max_count=10,
            max_in_memory_bytes=1000,
            high_watermark_percent=90,
            low_watermark_percent=10,
            replacement=ReplacementKind.WAIT_WITHOUT_REPLACEMENT,
        ),
    )


def test_options_and_xml_give_the_same_queue_with_what_it_inherits() -> None:
    participant = DomainParticipantSettings(
        "P", 0, (SharedSubscriberSettings("S", (SessionSettings("Slow"),)),), SampleBufferSettings(1024, False)
    )
    service = ServiceSettings(
        "here",
        (participant,),
        monitoring=MonitoringSettings(True, 3 * SECOND_NS),
        statistics=StatisticsSettings(2 * SECOND_NS, HistoricalStatistics(one_minute=True)),
        replication=ReplicationSettings(queue_instances=3),
    )
    around = SnippetPlace(service, participant, participant.subscribers[0])
    xml = """
        <shared_reader_queue name="Orders" session="Slow">
          <topic_name>T</topic_name>
          <type_name>DDS::Octets</type_name>
          <queue_qos>
            <persistence><kind>PERSISTENT</kind></persistence>
            <lifespan><duration><sec>60</sec></duration></lifespan>
            <resource_limits>
              <queue_allocation_settings><max_count>10</max_count></queue_allocation_settings>
            </resource_limits>
          </queue_qos>
        </shared_reader_queue>"""
    options = QueueOptions(topic="T", type="DDS::Octets", persistent=True, lifespan="60s", max_count=10)
    from_options = queue_of("Orders", options, None, around)
    assert from_options == queue_of("", QueueOptions(), Snippet(xml, "x"), around)
    assert from_options.statistics == service.statistics
    assert (from_options.session, from_options.sample_buffer.min_size_bytes) == ("Slow", 1024)
    nameless = xml.replace('name="Orders" ', "")
    assert queue_of("Orders", QueueOptions(), Snippet(nameless, "x"), around) == from_options
    with pytest.raises(UsageError, match="called 'Bills' on the command line and 'Orders' in x"):
        queue_of("Bills", QueueOptions(), Snippet(xml, "x"), around)


def test_a_dead_letter_queue_has_no_type() -> None:
    settings = QueueOptions(as_dead_letter=True).settings("Dead")
    assert (settings.is_dead_letter, settings.type_name) == (True, "")


def test_the_options_that_were_given_are_named_as_they_are_typed() -> None:
    assert QueueOptions().given() == []
    assert QueueOptions(type="T", max_count=0, as_dead_letter=True).given() == [
        "--type",
        "--max-count",
        "--as-dead-letter",
    ]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("", QueueOptions(), "the queue has no name"),
        ("a b", QueueOptions(), "'a b' is not a name for a queue"),
        ("../etc", QueueOptions(), "is not a name"),
        ("Q" * 256, QueueOptions(), "has 256 characters"),
        ("Q", QueueOptions(topic=""), "--topic '' is not a topic"),
        ("Q", QueueOptions(topic="a@b"), "--topic 'a@b' is not a topic"),
        ("Q", QueueOptions(max_count=0), "--max-count 0 leaves no room"),
        ("Q", QueueOptions(max_bytes=0), "--max-bytes 0 leaves no room"),
        ("Q", QueueOptions(lifespan="0s"), "--lifespan 0 leaves no time"),
        ("Q", QueueOptions(lifespan="soon"), "--lifespan: 'soon' is not a duration"),
        ("Q", QueueOptions(response_timeout="5"), "--response-timeout: '5' is not a duration"),
        ("Q", QueueOptions(high_watermark=90), "the queue has none"),
        ("Q", QueueOptions(low_watermark=90, high_watermark=10, max_count=5), "--low-watermark 90 lies above"),
        ("Q", QueueOptions(as_dead_letter=True, type="T"), "takes no --type"),
        ("Q", QueueOptions(as_dead_letter=True, dead_letter="D"), "takes no --dead-letter"),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, options: QueueOptions, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        options.settings(name)
    assert message in caught.value.message
    assert caught.value.remedy
