"""What counting costs a sample, and what a selector costs: `pytest tests/benchmarks --benchmark-only`."""

from __future__ import annotations

from pytest_benchmark.fixture import BenchmarkFixture

from qsctl.core.events import Event, SampleEnqueued, SampleReceived, SampleRemoved, SampleSent
from qsctl.core.queue.settings import HistoricalStatistics, SharedReaderQueueSettings, StatisticsSettings
from qsctl.core.records import RemovalCause
from qsctl.core.selector.expression import StatusMask
from qsctl.core.selector.matches import matches
from qsctl.core.selector.parse import parse_selector
from qsctl.core.statistics._counters import QueueStatistics
from qsctl.core.statistics.status import CurrentCounts
from qsctl.identity import NIL_GUID, SampleIdentity

SAMPLES = 20_000
IDENTITY = SampleIdentity(NIL_GUID, 1)
EVERY_WINDOW = StatisticsSettings(historical=HistoricalStatistics(True, True, True, True, True))


def lifecycles() -> list[Event]:
    events: list[Event] = []
    for number in range(SAMPLES):
        at = number * 4000
        events += [
            SampleReceived(at, "Q", IDENTITY, 256),
            SampleEnqueued(at, "Q", IDENTITY, 256, at),
            SampleSent(at + 5, "Q", IDENTITY, NIL_GUID, 1, at),
            SampleRemoved(at + 9, "Q", IDENTITY, RemovalCause.DELIVERED, 256, at, at + 5),
        ]
    return events


def test_telling_an_event_takes_less_than_a_microsecond(benchmark: BenchmarkFixture) -> None:
    events = lifecycles()
    statistics = QueueStatistics(SharedReaderQueueSettings("Q", "T", statistics=EVERY_WINDOW), 0)

    def count_each() -> None:
        count = statistics.count
        for event in events:
            count(event)

    benchmark(count_each)
    assert benchmark.stats.stats.median / len(events) < 1e-6


def test_reading_a_status_with_every_window_takes_less_than_ten_milliseconds(benchmark: BenchmarkFixture) -> None:
    statistics = QueueStatistics(SharedReaderQueueSettings("Q", "T", statistics=EVERY_WINDOW), 0)
    for second in range(3600):
        statistics.count(SampleSent(second * 10**9 + 5, "Q", IDENTITY, NIL_GUID, 1, second * 10**9))
    benchmark(statistics.publication, 3600 * 10**9, "Q", CurrentCounts(0, 0, 0, 0))
    assert benchmark.stats.stats.median < 1e-2


def test_a_selector_looks_at_a_sample_in_less_than_ten_microseconds(benchmark: BenchmarkFixture) -> None:
    expression = parse_selector(
        "@sample_queue_status = SENT_MESSAGE_STATUS | UNDELIVERED_MESSAGE_STATUS AND NOT "
        "@original_sample_identity.sequence_number = (0,7)"
    )
    benchmark(matches, expression, IDENTITY, StatusMask.SENT_MESSAGE_STATUS)
    assert benchmark.stats.stats.median < 1e-5
