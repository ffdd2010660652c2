"""The load of `qsctl bench`: when samples are due, and that a latency runs from then, whoever is late."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pytest

from qsctl.client.bench import embedded
from qsctl.client.bench.embedded import run_embedded
from qsctl.client.bench.load import STAMP, BenchLoad, ProducerSchedule
from qsctl.client.bench.measured import BenchCounts, Latencies
from qsctl.core.messages import AckResponse, CommandReply, Delivery, Write, WriteAcknowledgment
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, Guid
from qsctl.instant import MILLISECOND_NS, SECOND_NS


def a_load(**parts: object) -> BenchLoad:
    values: dict[str, object] = {
        "producer_count": 1,
        "consumer_count": 1,
        "size_bytes": 64,
        "per_second": 100.0,
        "duration_s": 1.0,
        "warm_up_s": 0.0,
        "window_count": 1000,
    }
    return BenchLoad(**values | parts)  # type: ignore[arg-type]


def all_due(schedule: ProducerSchedule) -> list[int]:
    found = []
    while (due_ns := schedule.due(10**18)) is not None:
        found.append(due_ns)
        schedule.take(due_ns)
    return found


def test_samples_of_all_producers_are_due_evenly() -> None:
    due_at = [each for number in range(4) for each in all_due(ProducerSchedule(a_load(producer_count=4), number, 5))]
    assert sorted(due_at) == [5 + at * SECOND_NS // 100 for at in range(100)]


def test_what_is_due_does_not_depend_on_when_it_is_written() -> None:
    schedule = ProducerSchedule(a_load(), 0, 0)
    assert schedule.due(SECOND_NS // 2) == 0, "late by half a second, and still due at the beginning"
    payload = schedule.take(0)
    assert STAMP.unpack_from(payload) == (0,)
    assert len(payload) == 64
    assert schedule.due(0) == 10 * MILLISECOND_NS
    assert schedule.overdue_count() == 99


def test_without_a_rate_a_sample_is_due_when_it_is_written_until_the_end() -> None:
    schedule = ProducerSchedule(a_load(per_second=0.0), 0, 100)
    assert schedule.due(7 * MILLISECOND_NS) == 7 * MILLISECOND_NS
    assert schedule.due(100 + SECOND_NS) is None
    assert schedule.overdue_count() == 0


def test_latencies_of_processes_are_added() -> None:
    one, other = Latencies(), Latencies()
    for latency_us in range(1, 1001):
        one.record(latency_us * 1000)
    other.record(5_000_000_000_000)
    one.add(other.encoded())
    figures = one.figures()
    assert one.count == 1001
    assert figures["p50_us"] == pytest.approx(501, rel=0.002)
    assert figures["max_us"] == pytest.approx(1e9, rel=0.002), "what is longer than the longest counts as that"
    assert set(Latencies().figures().values()) == {0.0}


def test_a_latency_is_known_to_a_thousandth() -> None:
    for latency_us in (1, 2047, 2048, 2049, 123_456, 999_999_999):
        latencies = Latencies()
        latencies.record(latency_us * 1000)
        assert latency_us <= latencies.figures()["p99_us"] <= latency_us * 1.001


def test_counts_are_added_field_by_field() -> None:
    total = BenchCounts()
    total.add([BenchCounts(written=3, received=1), BenchCounts(written=4, overdue=2)])
    assert total == BenchCounts(written=7, received=1, overdue=2)


class StallingService:
    """A service that takes each sample at once, and once takes a long time: the clock goes on."""

    def __init__(self, clock: Clock, stall_ns: int) -> None:
        self.clock = clock
        self.stall_ns = stall_ns
        self.held: list[Delivery] = []
        self.positions = count(1)

    def request(self, command: object, target: str = "*") -> list[CommandReply]:
        raise AssertionError("no command is sent")

    def write(self, samples: Sequence[Write]) -> list[WriteAcknowledgment]:
        if self.stall_ns and self.clock.now_ns > 200 * MILLISECOND_NS:
            self.clock.now_ns += self.stall_ns
            self.stall_ns = 0
        self.clock.now_ns += 10_000
        self.held += [Delivery("q", NIL_GUID, next(self.positions), each.identity, each.payload) for each in samples]
        return [WriteAcknowledgment("q", each.identity, AckResponse.ACCEPTED) for each in samples]

    def receive(self, queue: str, max_samples: int, timeout_s: float, source_guid: Guid = NIL_GUID) -> list[Delivery]:
        held, self.held = self.held, []
        return held

    def acknowledge(self, delivery: Delivery, ok: bool) -> None:
        raise AssertionError("all are acknowledged at once")

    def acknowledge_all(self, deliveries: Sequence[Delivery], ok: bool) -> None:
        assert ok


class Clock:
    """A clock that goes on when somebody waits."""

    def __init__(self) -> None:
        self.now_ns = 0

    def monotonic_ns(self) -> int:
        self.now_ns += 1_000
        return self.now_ns

    def sleep(self, wait_s: float) -> None:
        self.now_ns += int(wait_s * SECOND_NS)


@pytest.mark.parametrize("stall_ms", [0, 300])
def test_a_stall_counts_for_all_that_was_due_in_it(monkeypatch: pytest.MonkeyPatch, stall_ms: int) -> None:
    """A tenth of the samples are due in a stall of 300 ms out of 3 s: a benchmark that waits for answers sees one."""
    clock = Clock()
    monkeypatch.setattr(embedded, "time", clock)  # and not that of other threads of this process
    service = StallingService(clock, stall_ms * MILLISECOND_NS)
    measured = run_embedded(service, "P", "T", "q", a_load(duration_s=3.0, per_second=1000.0))
    figures = measured.to_acknowledgment.figures()
    assert measured.to_acknowledgment.count == measured.counts.written == measured.counts.received == 3000
    if stall_ms:
        assert figures["p90_us"] < 10_000
        assert figures["p99_us"] > 250_000
        assert figures["max_us"] == pytest.approx(300_000, rel=0.02)
    else:
        assert figures["max_us"] < 3_000


def test_embedded_service_has_one_consumer() -> None:
    with pytest.raises(UsageError, match="one consumer"):
        run_embedded(StallingService(Clock(), 0), "P", "T", "q", a_load(consumer_count=2))
    assert embedded.BATCH_COUNT > 1
