"""Lifecycles of runs of samples beside those of single samples, in the core: `pytest tests/benchmarks/test_runs.py -s`.

Usual steps are counted, as in a service without a recording. Both take turns in one process, in processor time.
"""

from __future__ import annotations

import time
from itertools import count
from statistics import median

import pytest

from qsctl.core.messages import (
    Acknowledgment,
    ConsumerJoined,
    Delivery,
    Inbound,
    RunAcknowledgment,
    RunDelivery,
    Write,
    WriteRun,
)
from qsctl.identity import Guid, SampleIdentity
from tests.benchmarks.core_queues import PAYLOAD_BYTES, QUEUES, WRITER, engine
from tests.benchmarks.ratios import keep_ratio

PAIRS = 9
TURNS = 60
FRAME_SAMPLES = 100
QUEUE = "P/S/orders"


class Trial:
    """One engine that is given frames of runs of one length."""

    def __init__(self, kind: str, length: int, consumer_count: int) -> None:
        self.one = engine(**QUEUES[kind])
        self.one.hosted.reports_each_step = False
        self.length = length
        self._numbers, self._instants = count(1, length), count(10**9, 1_000)
        for number in range(1, consumer_count + 1):
            self.one.receive(0, ConsumerJoined(QUEUE, Guid(number.to_bytes(16, "big"))))

    def frame(self) -> list[Inbound]:
        payload = bytes(PAYLOAD_BYTES)
        firsts = [SampleIdentity(WRITER, next(self._numbers)) for _ in range(FRAME_SAMPLES // self.length)]
        if self.length == 1:
            return [Write("P", "Order", each, payload) for each in firsts]
        return [WriteRun("P", "Order", each, (payload,) * self.length) for each in firsts]

    def seconds(self) -> float:
        """Return the processor time of some turns, each from the entry of its samples to their acknowledgment."""
        spent = 0.0
        for _ in range(TURNS):
            frame, now = self.frame(), next(self._instants)
            began = time.process_time()
            self.one.receive_all(now, frame)
            messages = self.one.take_ready().messages
            spent += time.process_time() - began
            answers: list[Inbound] = []
            for each in messages:
                if isinstance(each, Delivery):
                    answers.append(Acknowledgment(QUEUE, each.consumer_guid, each.identity))
                elif isinstance(each, RunDelivery):
                    answers.append(
                        RunAcknowledgment(QUEUE, each.consumer_guid, each.identity, len(each.payloads), each.step)
                    )
            began = time.process_time()
            self.one.receive_all(now, answers)
            self.one.take_ready()
            spent += time.process_time() - began
        return spent


@pytest.mark.parametrize(("kind", "consumer_count"), [("volatile", 1), ("everything on", 1), ("volatile", 4)])
def test_runs_of_50_have_at_least_three_times_the_lifecycles(kind: str, consumer_count: int) -> None:
    single, runs = Trial(kind, 1, consumer_count), Trial(kind, 50, consumer_count)
    ratios = [single.seconds() / runs.seconds() for _ in range(PAIRS)]
    keep_ratio(f"runs of 50 to single samples, {kind}, {consumer_count} consumers, lifecycles/s", median(ratios))
    for trial in (single, runs):
        (queue,) = trial.one.hosted.queues()
        status = trial.one.hosted.status(0, queue)
        assert status.total.acknowledged_message_count == PAIRS * TURNS * FRAME_SAMPLES
    assert median(ratios) >= 3
