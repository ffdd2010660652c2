"""What each counter of a queue's status counts."""

from __future__ import annotations

import typing

import pytest

from qsctl.core.events import (
    BounceReason,
    DuplicateDropped,
    Event,
    HighWatermarkPassed,
    LateAcknowledgment,
    LowWatermarkPassed,
    QueueFilled,
    ReturnReason,
    SampleBounced,
    SampleDeadLettered,
    SampleEnqueued,
    SampleReceived,
    SampleRemoved,
    SampleReturned,
    SampleSent,
)
from qsctl.core.queue.settings import HistoricalStatistics, MonitoringSettings, SharedReaderQueueSettings
from qsctl.core.queue.settings import StatisticsSettings as Statistics
from qsctl.core.records import DeadLetterReason, RemovalCause
from qsctl.core.statistics._counters import _COUNT, QueueStatistics
from qsctl.core.statistics.status import Counters, CurrentCounts
from qsctl.errors import Damaged
from qsctl.identity import NIL_GUID, NIL_IDENTITY
from qsctl.instant import SECOND_NS

NOTHING_HELD = CurrentCounts(0, 0, 0, 0)
SETTINGS = SharedReaderQueueSettings("Orders", "Orders")
Q = "P/S/Orders"


def sent(at_ns: int, attempt: int = 1, enqueued_at_ns: int = 0) -> SampleSent:
    return SampleSent(at_ns, Q, NIL_IDENTITY, NIL_GUID, attempt, enqueued_at_ns)


def removed(cause: RemovalCause, at_ns: int = 0) -> SampleRemoved:
    return SampleRemoved(at_ns, Q, NIL_IDENTITY, cause, 10, 0, 0)


ONE_EACH: list[tuple[Event, dict[str, int]]] = [
    (SampleReceived(0, Q, NIL_IDENTITY, 10), {"received_message_count": 1}),
    (SampleEnqueued(0, Q, NIL_IDENTITY, 10, 0), {}),
    (SampleBounced(0, Q, NIL_IDENTITY, BounceReason.QUEUE_FULL), {"bounced_message_count": 1}),
    (SampleBounced(0, Q, NIL_IDENTITY, BounceReason.EXPIRED), {"bounced_message_count": 1}),
    (DuplicateDropped(0, Q, NIL_IDENTITY), {}),
    (sent(0), {"sent_message_count": 1}),
    (sent(0, attempt=2), {"sent_message_count": 1, "redelivered_message_count": 1}),
    # A restart cut a delivery short: the next one is the first attempt still, and may be the second delivery.
    (
        SampleSent(0, Q, NIL_IDENTITY, NIL_GUID, 1, 0, redelivered=True),
        {"sent_message_count": 1, "redelivered_message_count": 1},
    ),
    (SampleReturned(0, Q, NIL_IDENTITY, NIL_GUID, ReturnReason.TIMED_OUT), {"timeout_message_count": 1}),
    (SampleReturned(0, Q, NIL_IDENTITY, NIL_GUID, ReturnReason.REJECTED), {}),
    (SampleReturned(0, Q, NIL_IDENTITY, NIL_GUID, ReturnReason.CONSUMER_LEFT), {}),
    (removed(RemovalCause.DELIVERED), {"acknowledged_message_count": 1}),
    (removed(RemovalCause.EXPIRED), {"expired_message_count": 1}),
    (removed(RemovalCause.FAILED_DELIVERY), {"failed_delivery_message_count": 1}),
    (removed(RemovalCause.FLUSHED), {}),
    (SampleDeadLettered(0, Q, NIL_IDENTITY, "D", DeadLetterReason.LIFESPAN, True), {}),
    (LateAcknowledgment(0, Q, NIL_IDENTITY, NIL_GUID, True), {"late_acknowledgment_message_count": 1}),
    (HighWatermarkPassed(0, Q), {"high_watermark_count": 1}),
    (LowWatermarkPassed(0, Q), {"low_watermark_count": 1}),
    (QueueFilled(0, Q), {"queue_full_count": 1}),
]


@pytest.mark.parametrize(("event", "expected"), ONE_EACH, ids=lambda value: type(value).__name__)
def test_an_event_moves_its_counters_and_no_other(event: Event, expected: dict[str, int]) -> None:
    statistics = QueueStatistics(SETTINGS, 0)
    statistics.count(event)
    assert statistics.counters() == Counters(**expected)


def test_every_kind_of_event_is_counted_or_left_out_on_purpose() -> None:
    assert set(_COUNT) == set(typing.get_args(Event))


def test_change_starts_again_when_a_command_reads_the_status() -> None:
    statistics = QueueStatistics(SETTINGS, 0)
    statistics.count(QueueFilled(0, Q))
    assert statistics.status(1, Q, NOTHING_HELD).change.queue_full_count == 1
    statistics.count(QueueFilled(2, Q))
    statistics.count(QueueFilled(2, Q))
    status = statistics.status(3, Q, NOTHING_HELD)
    assert (status.total.queue_full_count, status.change.queue_full_count) == (3, 2)


def test_a_publication_does_not_reset_change() -> None:
    statistics = QueueStatistics(SETTINGS, 0)
    statistics.count(QueueFilled(0, Q))
    statistics.publication(1, Q, NOTHING_HELD)
    assert statistics.publication(2, Q, NOTHING_HELD).change.queue_full_count == 1


def test_the_status_shows_what_the_queue_holds_now() -> None:
    status = QueueStatistics(SETTINGS, 0).status(0, Q, CurrentCounts(5, 1, 4, 2))
    assert status.queue_name == Q
    assert status.current_message_count == 5
    assert status.current_acknowledged_message_count == 1
    assert status.current_unacknowledged_message_count == 4
    assert status.current_sent_message_count == 2


def test_without_monitoring_nothing_is_ever_due() -> None:
    statistics = QueueStatistics(SETTINGS, 0)
    assert statistics.next_deadline() is None
    assert not statistics.advance(10**15)


def test_publications_are_due_once_a_period_and_missed_ones_are_skipped() -> None:
    settings = SharedReaderQueueSettings("Q", "Q", monitoring=MonitoringSettings(True, 5 * SECOND_NS))
    statistics = QueueStatistics(settings, 100)
    assert statistics.next_deadline() == 100 + 5 * SECOND_NS
    assert not statistics.advance(100 + 5 * SECOND_NS - 1)
    assert statistics.advance(100 + 5 * SECOND_NS)
    assert statistics.next_deadline() == 100 + 10 * SECOND_NS
    assert statistics.advance(100 + 27 * SECOND_NS)
    assert statistics.next_deadline() == 100 + 30 * SECOND_NS


HISTORY = Statistics(historical=HistoricalStatistics(five_second=True, one_minute=True, up_time=True))


def busy(statistics: QueueStatistics, seconds: int) -> None:
    for second in range(seconds):
        at = second * SECOND_NS + 1
        for _ in range(second + 1):
            statistics.count(SampleReceived(at, Q, NIL_IDENTITY, 1))
            statistics.count(SampleEnqueued(at, Q, NIL_IDENTITY, 1, at))
            statistics.count(sent(at + 1000, enqueued_at_ns=at))
            statistics.count(removed(RemovalCause.DELIVERED, at + 2000))


def test_statistics_go_on_after_a_restart_as_if_there_had_been_none() -> None:
    settings = SharedReaderQueueSettings("Orders", "Orders", statistics=HISTORY)
    whole = QueueStatistics(settings, 0)
    first = QueueStatistics(settings, 0)
    for statistics in (whole, first):
        busy(statistics, 8)
        statistics.status(8 * SECOND_NS, Q, NOTHING_HELD)
    second = QueueStatistics(settings, 9 * SECOND_NS)
    second.restore(first.snapshot())
    for statistics in (whole, second):
        statistics.count(SampleEnqueued(9 * SECOND_NS, Q, NIL_IDENTITY, 1, 0))
        statistics.count(sent(9 * SECOND_NS + 5, enqueued_at_ns=9 * SECOND_NS))
    now = 10 * SECOND_NS + 7
    assert second.status(now, Q, NOTHING_HELD) == whole.status(now, Q, NOTHING_HELD)


def test_a_snapshot_of_another_sampling_period_keeps_the_counters_and_drops_the_windows() -> None:
    statistics = QueueStatistics(SETTINGS, 0)
    busy(statistics, 3)
    other = QueueStatistics(SharedReaderQueueSettings("Orders", "Orders", statistics=Statistics(7)), 0)
    other.restore(statistics.snapshot())
    assert other.counters() == statistics.counters()
    assert other.status(4 * SECOND_NS, Q, NOTHING_HELD).enqueue_throughput.publication_period_metrics.count == 0


@pytest.mark.parametrize("octets", [b"", b"{}", b"nonsense", b'{"total": {}}', b"[1,2,3]"])
def test_octets_that_are_no_snapshot_are_refused_and_change_nothing(octets: bytes) -> None:
    statistics = QueueStatistics(SETTINGS, 0)
    statistics.count(QueueFilled(0, Q))
    with pytest.raises(Damaged, match="Orders"):
        statistics.restore(octets)
    assert statistics.counters().queue_full_count == 1
