"""End to end: samples a second and latency of the service beside RabbitMQ and Redis, in one harness and one run.

Every contender runs the same way: one broker process, n producer and n consumer processes in Python, 256 B or 1 KiB,
acknowledgments both ways, at most 1000 samples unacknowledged a producer. Latency is taken at half of the load that the
same run reached. Run it alone: `pytest tests/benchmarks/test_dds.py -s`. A broker that is not installed is skipped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from tests.benchmarks.brokers import CONTENDERS, DOMAINS, FULL, QUEUE, TIMES_THE_PEER, run_peers, stop_service
from tests.benchmarks.ratios import keep_ratio
from tests.dds.service_process import ServiceProcess

SAMPLE_COUNT = int(os.environ.get("QSCTL_BENCHMARK_COUNT", "200000"))
ROUNDS = 9
P99_MS = 3.0


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    contender, persistent = request.param
    name, where, stop_broker = CONTENDERS[contender](tmp_path, persistent)
    yield name, where
    stop_broker()


@pytest.mark.parametrize("peers", [1, 4])
@pytest.mark.parametrize("size_bytes", [256, 1024])
@pytest.mark.parametrize(
    "broker",
    [(name, persistent) for persistent in (False, True) for name in CONTENDERS],
    indirect=True,
    ids=[f"{name}-{'persistent' if persistent else 'volatile'}" for persistent in (False, True) for name in CONTENDERS],
)
def test_samples_a_second_and_latency(broker: tuple[str, str], size_bytes: int, peers: int) -> None:
    full = run_peers(broker, SAMPLE_COUNT, size_bytes, peers, 0.0)
    half = run_peers(broker, SAMPLE_COUNT, size_bytes, peers, full["samples_per_second"] / 2)
    sys.stdout.write(
        f"\n{broker[0]:>18} {peers}→{peers} {size_bytes:>5} B: {full['samples_per_second']:>9,.0f} samples/s; "
        f"at half load p50 {half['p50_ms']:.2f} ms, p99 {half['p99_ms']:.2f} ms"
    )
    assert full["samples_per_second"] > 0


@pytest.mark.parametrize("persistent", [False, True], ids=["volatile", "persistent"])
def test_twice_as_fast_as_redis_streams_and_99_of_100_samples_in_3_ms(tmp_path: Path, persistent: bool) -> None:
    """Redis with its client's pipelines, and, shown beside it, with answers read beside; in turns; medians count."""
    figures: dict[str, list[tuple[float, float]]] = {"qsctl": [], "redis-pipeline": [], "redis": []}
    for turn in range(ROUNDS):
        for contender in figures:
            directory = tmp_path / f"{contender}{turn}"
            directory.mkdir()
            name, where, stop_broker = CONTENDERS[contender](directory, persistent)
            full = run_peers((name, where), SAMPLE_COUNT, 256, 1, 0.0)["samples_per_second"]
            p99_ms = run_peers((name, where), SAMPLE_COUNT, 256, 1, full / 2)["p99_ms"]
            stop_broker()
            figures[contender].append((full, p99_ms))
    rates = {contender: median(full for full, _ in each) for contender, each in figures.items()}
    latencies = {contender: median(p99_ms for _, p99_ms in each) for contender, each in figures.items()}
    times = {
        peer: median(ours / theirs for (ours, _), (theirs, _) in zip(figures["qsctl"], figures[peer], strict=True))
        for peer in ("redis-pipeline", "redis")
    }
    kind = "persistent" if persistent else "volatile"
    sys.stdout.write(f"\n{kind}: {rates['qsctl']:,.0f} samples/s, Redis Streams")
    for peer, way in (("redis-pipeline", "by pipelines"), ("redis", "with answers read beside")):
        sys.stdout.write(f" {way} {rates[peer]:,.0f} ({times[peer]:.2f} times)")
    sys.stdout.write(f"; at half load p99 {latencies['qsctl']:.2f} ms, of Redis {latencies['redis']:.2f} ms")
    sys.stdout.write(f"; in turns {[round(p99_ms, 2) for _, p99_ms in figures['qsctl']]}")
    keep_ratio(f"samples a second to Redis by pipelines, {kind}", times["redis-pipeline"])
    p99 = latencies["qsctl"] / latencies["redis"]
    keep_ratio(f"p99 at half load to that of Redis, {kind}", p99, higher_is_better=False)
    assert times["redis-pipeline"] >= TIMES_THE_PEER
    assert latencies["qsctl"] <= P99_MS


def test_ten_persistent_queues_together_take_nine_tenths_of_what_one_takes(tmp_path: Path) -> None:
    """One producer and one consumer process for all of them: the queues share one write-ahead log."""
    one = QUEUE.format(kind="PERSISTENT")
    ten = "".join(one.replace("Orders", f"Orders{number}") for number in range(10))
    rates: dict[str, list[float]] = {"": [], "/10": []}
    for turn in range(ROUNDS):
        for suffix, queues in (("", one), ("/10", ten)):
            directory = tmp_path / f"{turn}{len(suffix)}"
            directory.mkdir()
            domain = next(DOMAINS)
            arguments = ("--persistent-storage-path", str(directory))
            service = ServiceProcess(directory, domain, *arguments, service=FULL, queues=queues)
            figures = run_peers(("qsctl", f"{domain}{suffix}"), SAMPLE_COUNT, 256, 1, 0)
            stop_service(service)
            rates[suffix].append(figures["samples_per_second"])
    ratio = median(ten / one for one, ten in zip(*rates.values(), strict=True))
    one_rate, ten_rate = (median(each) for each in rates.values())
    sys.stdout.write(f"\none queue {one_rate:,.0f} samples/s, ten together {ten_rate:,.0f}: {ratio:.2f} times\n")
    keep_ratio("ten queues to one", ratio)
    assert ratio >= 0.9
