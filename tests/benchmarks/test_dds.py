"""End to end: samples a second and latency of the service beside other brokers, in one harness and one run.

Each contender runs the same way: one broker process, producer and consumer processes in Python, acknowledgments both
ways, at most 1000 samples unacknowledged a producer. Latency is taken at half of the load that the same run reached.
Run it alone: `pytest tests/benchmarks/test_dds.py -s`. A broker that is not installed is skipped; RabbitMQ is in
test_latency.py.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from statistics import median

import pytest

from tests.benchmarks.brokers import (
    CONTENDERS,
    TIMES_THE_PEER,
    jetstream,
    qsctl_service,
    rabbitmq,
    redis,
    redis_by_pipeline,
    run_peers,
)
from tests.benchmarks.ratios import keep_ratio

SAMPLE_COUNT = int(os.environ.get("QSCTL_BENCHMARK_COUNT", "200000"))
ROUNDS = 9
SHAPES = ["1-1", "1-4", "4-4", "ten-queues"]
SHAPE_ROUNDS = 3
QUICK = {"qsctl": qsctl_service, "redis": redis, "redis-pipeline": redis_by_pipeline}
SLOW = {"rabbitmq": rabbitmq, "jetstream": jetstream}
"""They take a tenth of the samples, once. Several consumers of JetStream's Python client wait for whole batches."""
P99_MS = 3.0


@pytest.mark.parametrize("persistent", [False, True], ids=["volatile", "persistent"])
@pytest.mark.parametrize("size_bytes", [256, 1024])
@pytest.mark.parametrize(
    ("producers", "consumers", "queue_count"), [(1, 1, 1), (1, 4, 1), (4, 4, 1), (1, 1, 10)], ids=SHAPES
)
def test_samples_a_second_beside_the_best_broker(
    tmp_path: Path, producers: int, consumers: int, queue_count: int, size_bytes: int, persistent: bool
) -> None:
    """Redis by pipelines and with answers read beside, in turns, RabbitMQ and JetStream once; the best one counts."""
    rates: dict[str, list[float]] = {}
    for contender, broker in SLOW.items() if queue_count == 1 else ():
        if consumers == 1 or contender == "rabbitmq":
            directory = tmp_path / contender
            directory.mkdir()
            name, where, stop_broker = broker(directory, persistent)
            figures = run_peers((name, where), SAMPLE_COUNT // 20, size_bytes, (producers, consumers), 0.0)
            stop_broker()
            rates[contender] = [figures["samples_per_second"]] * SHAPE_ROUNDS
    for turn in range(SHAPE_ROUNDS):
        for contender, start in QUICK.items():
            directory = tmp_path / f"{contender}{turn}"
            directory.mkdir()
            name, where, stop_broker = start(directory, persistent, queue_count)
            figures = run_peers((name, where), SAMPLE_COUNT // 2, size_bytes, (producers, consumers), 0.0)
            stop_broker()
            rates.setdefault(contender, []).append(figures["samples_per_second"])
    ours, theirs = rates["qsctl"], [each for contender, each in rates.items() if contender != "qsctl"]
    times = median(one / max(peers) for one, *peers in zip(ours, *theirs, strict=True))
    shape = f"{producers}→{consumers}, {queue_count} queues" if queue_count > 1 else f"{producers}→{consumers}"
    what = f"{shape}, {size_bytes} B, {'persistent' if persistent else 'volatile'}"
    shown = ", ".join(f"{contender} {median(each):,.0f}" for contender, each in rates.items())
    sys.stdout.write(f"\n{what}: {shown} samples/s ({times:.2f} times the best)")
    keep_ratio(f"samples a second to the best broker, {what}", times)


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
    rates: dict[int, list[float]] = {1: [], 10: []}
    for turn in range(ROUNDS):
        for queue_count in rates:
            directory = tmp_path / f"{turn}of{queue_count}"
            directory.mkdir()
            name, where, stop_broker = qsctl_service(directory, True, queue_count)
            figures = run_peers((name, where), SAMPLE_COUNT, 256, 1, 0)
            stop_broker()
            rates[queue_count].append(figures["samples_per_second"])
    ratio = median(ten / one for one, ten in zip(*rates.values(), strict=True))
    one_rate, ten_rate = (median(each) for each in rates.values())
    sys.stdout.write(f"\none queue {one_rate:,.0f} samples/s, ten together {ten_rate:,.0f}: {ratio:.2f} times\n")
    keep_ratio("ten queues to one", ratio)
    assert ratio >= 0.9
