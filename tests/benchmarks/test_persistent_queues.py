"""What the shared write-ahead log costs a service of several persistent queues, synchronization FULL.

Run it alone: `pytest tests/benchmarks/test_persistent_queues.py -s`. The loop of a service without DDS: turns of 100
samples, each written, delivered, acknowledged and removed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from statistics import median

from qsctl.core.messages import Acknowledgment, ConsumerJoined, Delivery, Inbound, Write
from qsctl.identity import SampleIdentity
from qsctl.service.loop import ServiceLoop
from tests.service.pipelines import READER, WRITER, queue, service

TURN = 100
SAMPLES = 20_000
ROUNDS = 7
PAYLOAD = bytes(256)
RATIO_MIN = 0.9


class Load:
    """Samples for queues of one service, the same number for each."""

    def __init__(self, directory: Path, queues: int) -> None:
        directory.mkdir()
        self.names = [f"orders{number}" for number in range(queues)]
        self.loop: ServiceLoop = service(directory, *map(queue, self.names))
        self.loop.turn([ConsumerJoined(f"P/S/{name}", READER) for name in self.names])
        self._numbers = count(1)

    def run(self) -> float:
        """Samples a second."""
        answers: Sequence[Inbound] = ()
        topics = [name.capitalize() for name in self.names]
        done, began = 0, time.perf_counter()
        while done < SAMPLES:
            share = TURN // len(topics)
            writes = [
                Write("P", topic, SampleIdentity(WRITER, next(self._numbers)), PAYLOAD)
                for topic in topics
                for _ in range(share)
            ]
            ready = self.loop.turn([*writes, *answers])
            answers = [
                Acknowledgment(each.queue, each.consumer_guid, each.identity)
                for each in ready.messages
                if type(each) is Delivery
            ]
            done += len(answers)
        self.loop.turn(answers)
        return done / (time.perf_counter() - began)


def test_ten_queues_together_take_nine_tenths_of_what_one_takes(tmp_path: Path) -> None:
    loads = [Load(tmp_path / "one", 1), Load(tmp_path / "ten", 10)]
    rounds = [[load.run() for load in loads] for _ in range(ROUNDS + 1)][1:]
    one, ten = (median(each) for each in zip(*rounds, strict=True))
    ratio = median(ten / one for one, ten in rounds)
    sys.stdout.write(f"\none queue {one:,.0f} samples/s, ten together {ten:,.0f}: {ratio:.2f} times\n")
    assert ratio >= RATIO_MIN
