"""A benchmark of an embedded service: one program alternately writes due samples, receives and acknowledges them.

Decides: the turns. Each writes the due samples, at most a batch; after a full batch the next turn follows at once. The
engine and its stores are measured, without a transport and without other processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Final

from qsctl.client.batches import ALL
from qsctl.client.bench.load import GRACE_NS, STAMP, BenchLoad, ProducerSchedule
from qsctl.client.bench.measured import BenchResult
from qsctl.client.connection import AcknowledgesMany, Connection
from qsctl.core.messages import AckResponse, Delivery, SampleFlag, Write
from qsctl.errors import UsageError
from qsctl.identity import GUID_SIZE_BYTES, Guid, SampleIdentity
from qsctl.instant import SECOND_NS, Nanoseconds

BATCH_COUNT: Final = 1000
PAUSE_S: Final = 0.001


def run_embedded(connection: Connection, participant: str, topic_name: str, queue: str, load: BenchLoad) -> BenchResult:
    """Run a load on a queue of an embedded service, with one consumer.

    Args:
        connection: the service.
        participant: the name of the queue's domain participant.
        topic_name: the queue's topic.
        queue: its full name.
        load: the samples to write.

    Raises:
        UsageError: the load has several consumers.
    """
    if load.consumer_count != 1:
        raise UsageError(
            f"an embedded service has one consumer at a time, not {load.consumer_count}",
            remedy="Leave --consumers out, or give a running service with --service dds:DOMAIN.",
        )
    return _Bench(connection, participant, topic_name, queue, load).run()


class _Bench:
    def __init__(self, connection: Connection, participant: str, topic_name: str, queue: str, load: BenchLoad) -> None:
        self._connection = connection
        self._participant = participant
        self._topic_name = topic_name
        self._queue = queue
        self._load = load
        self._measured = BenchResult()
        self._writers = [Guid(os.urandom(GUID_SIZE_BYTES)) for _ in range(load.producer_count)]
        self._written = [0] * load.producer_count
        self._start_ns = self._measured_from_ns = self._end_ns = 0

    def run(self) -> BenchResult:
        load = self._load
        self._start_ns = time.monotonic_ns()
        self._measured_from_ns = self._start_ns + int(load.warm_up_s * SECOND_NS)
        self._end_ns = self._start_ns + int(load.total_s * SECOND_NS)
        schedules = [ProducerSchedule(load, number, self._start_ns) for number in range(load.producer_count)]
        while (now_ns := time.monotonic_ns()) < self._end_ns + GRACE_NS:
            if not self._write(schedules):
                if now_ns >= self._end_ns:
                    break
                time.sleep(PAUSE_S)
            self._consume()
        while self._consume():
            pass
        self._measured.counts.overdue = sum(each.overdue_count() for each in schedules)
        return self._measured

    def _write(self, schedules: Sequence[ProducerSchedule]) -> int:
        """Write the due samples, and count their acknowledgments; return the number written."""
        now_ns = time.monotonic_ns()
        samples: list[Write] = []
        due_at: dict[SampleIdentity, Nanoseconds] = {}
        share = max(1, min(BATCH_COUNT, self._load.window_count) // len(schedules))
        for number, schedule in enumerate(schedules):
            for _ in range(share):
                due_ns = schedule.due(now_ns)
                if due_ns is None or due_ns > now_ns:
                    break
                self._written[number] += 1
                identity = SampleIdentity(self._writers[number], self._written[number])
                due_at[identity] = due_ns
                samples.append(Write(self._participant, self._topic_name, identity, schedule.take(due_ns)))
        if not samples:
            return 0
        counts = self._measured.counts
        answers = self._connection.write(samples)
        answered_ns = time.monotonic_ns()
        counts.written += len(samples)
        counts.written_in_time += len(samples) if self._measured_from_ns <= now_ns < self._end_ns else 0
        for answer in answers:
            is_accepted = answer.response is AckResponse.ACCEPTED
            counts.accepted += is_accepted
            counts.rejected += not is_accepted
            if due_at[answer.identity] >= self._measured_from_ns:
                self._measured.to_acknowledgment.record(answered_ns - due_at[answer.identity])
        counts.unanswered += len(samples) - len(answers)
        return len(samples)

    def _consume(self) -> int:
        connection = self._connection
        received = connection.receive(self._queue, min(ALL, BATCH_COUNT), 0.0)
        now_ns = time.monotonic_ns()
        if not received:
            return 0
        self._count(received, now_ns)
        assert isinstance(connection, AcknowledgesMany)
        connection.acknowledge_all(received, True)
        return len(received)

    def _count(self, received: Sequence[Delivery], now_ns: Nanoseconds) -> None:
        counts = self._measured.counts
        for each in received:
            (due_ns,) = STAMP.unpack_from(each.payload or bytes(STAMP.size))
            counts.redelivered += bool(each.flags & SampleFlag.REDELIVERED)
            if self._measured_from_ns <= due_ns < self._end_ns:
                self._measured.to_consumer.record(now_ns - due_ns)
        counts.received += len(received)
        counts.received_in_time += len(received) if self._measured_from_ns <= now_ns < self._end_ns else 0
