"""A producer and a consumer of a benchmark, each in a process of its own [QS 8.1 and 8.2].

Decides: the order of work. A producer writes the samples that are due, and reads acknowledgments in between; a consumer
receives, records the instant, and acknowledges at once. Both receive the start time, and report their counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from typing import Final

from qsctl.client.bench.load import GRACE_NS, STAMP, BenchLoad, ProducerSchedule
from qsctl.client.bench.measured import BenchCounts, Latencies
from qsctl.client.consumer import QueueConsumer
from qsctl.client.producer import ApplicationAcknowledgment, QueueProducer
from qsctl.endings import end_with_parent, whole_process
from qsctl.errors import QsctlError
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.transport.dds.participant import DomainSettings

READY: Final = "ready"
BATCH_COUNT: Final = 256
"""Number of samples that are written, or received, before the other direction is polled."""

DRAIN_S: Final = 30.0
"""The longest wait for the acknowledgments of what was written last."""

POLL_S: Final = 0.05


@dataclass(frozen=True)
class BenchPlace:
    """The queue, and the DDS settings to reach it."""

    topic_name: str
    subscriber: str
    domain_id: int
    settings: DomainSettings
    timeout_s: float


@dataclass
class Told:
    """The final report of a process: counts, a histogram, or an error."""

    counts: BenchCounts
    latencies: bytes = b""
    error: str = ""
    remedy: str = ""


def produce(link: Connection, place: BenchPlace, load: BenchLoad, number: int) -> None:
    """Run a producer, as the main function of a process."""
    end_with_parent()
    with whole_process():
        try:
            link.send(_produce(link, place, load, number))
        except QsctlError as error:
            link.send(Told(BenchCounts(), error=error.message, remedy=error.remedy))


def consume(link: Connection, place: BenchPlace, load: BenchLoad, received: Synchronized[int]) -> None:
    """Run a consumer, as the main function of a process; `received` is increased by each sample."""
    end_with_parent()
    with whole_process():
        try:
            link.send(_consume(link, place, load, received))
        except QsctlError as error:
            link.send(Told(BenchCounts(), error=error.message, remedy=error.remedy))


def _produce(link: Connection, place: BenchPlace, load: BenchLoad, number: int) -> Told:
    counts, latencies = BenchCounts(), Latencies()
    due_at: list[Nanoseconds] = []
    measured_from_ns = 0

    def acknowledged(acknowledgment: ApplicationAcknowledgment) -> None:
        if acknowledgment.accepted:
            counts.accepted += 1
        else:
            counts.rejected += 1
        due_ns = due_at[acknowledgment.identity.sequence_number - 1]
        if due_ns >= measured_from_ns:
            latencies.record(time.monotonic_ns() - due_ns)

    with QueueProducer(
        place.topic_name,
        place.domain_id,
        window_count=load.window_count,
        on_application_acknowledgment=acknowledged,
        settings=place.settings,
    ) as producer:
        producer.wait_for_queue(place.timeout_s)
        link.send(READY)
        start_ns: Nanoseconds = link.recv()
        measured_from_ns = start_ns + int(load.warm_up_s * SECOND_NS)
        schedule = ProducerSchedule(load, number, start_ns)
        while (due_ns := schedule.due(time.monotonic_ns())) is not None:
            now_ns, written = time.monotonic_ns(), 0
            while due_ns is not None and due_ns <= now_ns and written < BATCH_COUNT and producer.has_room():
                producer.write(schedule.take(due_ns))
                due_at.append(due_ns)
                counts.written_in_time += measured_from_ns <= now_ns < schedule.end_ns
                written += 1
                due_ns = schedule.due(now_ns)
            counts.written += written
            producer.flush()
            if time.monotonic_ns() >= schedule.end_ns + GRACE_NS:
                break  # what is due and was not written is the shortfall of the rate
            if not written:
                wait_ns = SECOND_NS // 1000 if due_ns is None else min(max(due_ns - now_ns, 0), SECOND_NS // 1000)
                producer.session.domain.turn(wait_ns)
                producer.turn()
        deadline = time.monotonic() + DRAIN_S
        while not producer.is_acknowledged() and time.monotonic() < deadline:
            producer.session.domain.turn(SECOND_NS // 1000)
            producer.turn()
        counts.overdue = schedule.overdue_count()
        counts.unanswered = producer.state.unacknowledged_count
    return Told(counts, latencies.encoded())


def _consume(link: Connection, place: BenchPlace, load: BenchLoad, received: Synchronized[int]) -> Told:
    counts, latencies = BenchCounts(), Latencies()
    with QueueConsumer(place.topic_name, place.subscriber, place.domain_id, settings=place.settings) as consumer:
        consumer.wait_for_queue(place.timeout_s)
        link.send(READY)
        start_ns: Nanoseconds = link.recv()
        measured_from_ns = start_ns + int(load.warm_up_s * SECOND_NS)
        measured_to_ns = start_ns + int(load.total_s * SECOND_NS)
        while not link.poll():
            samples = consumer.receive(BATCH_COUNT, POLL_S)
            now_ns = time.monotonic_ns()
            for sample in samples:
                (due_ns,) = STAMP.unpack_from(sample.value)
                counts.redelivered += sample.redelivered
                if measured_from_ns <= due_ns < measured_to_ns:
                    latencies.record(now_ns - due_ns)
            counts.received += len(samples)
            counts.received_in_time += len(samples) if measured_from_ns <= now_ns < measured_to_ns else 0
            consumer.acknowledge_all()
            consumer.flush()
            with received.get_lock():
                received.value += len(samples)
        link.recv()
    return Told(counts, latencies.encoded())
