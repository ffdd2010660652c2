"""Whatever a disk does, and when: each message leaves once, in the order of its stream, and never too early."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from qsctl.core.admin.command import FlushQueue, GetStatus
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    ConsumerJoined,
    Inbound,
    Outbound,
    Write,
)
from qsctl.core.queue.settings import (
    RedeliverySettings,
)
from qsctl.core.ready import SERVICE_STREAM, Ready
from qsctl.core.turn import Released
from qsctl.identity import SampleIdentity
from tests.core.turns import ORDERS, PERSISTENT, READER, WRITER, command, queue, report, run, turn_of


class Story:
    """Random messages, and a disk that writes when it likes and reports the streams when it likes."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.turn = turn_of(
            queue("orders", persistence=PERSISTENT, redelivery=RedeliverySettings(2, 20), dead_letter_queue="dead"),
            queue("bills", persistence=PERSISTENT),
            queue("news"),
            queue("dead", persistence=PERSISTENT, is_dead_letter=True),
        )
        self.now = 0
        self.records: dict[str, int] = defaultdict(int)
        self.written: dict[str, int] = defaultdict(int)
        self.durable: dict[str, int] = defaultdict(int)
        self.engine_sent: list[Outbound] = []
        self.sent: list[Outbound] = []
        real = self.turn.engine.take_ready

        def noted() -> Ready:
            ready = real()
            self.engine_sent += ready.messages
            return ready

        self.turn.engine.take_ready = noted  # type: ignore[method-assign]

    def messages(self) -> list[Inbound]:
        chance = self.chance
        found: list[Inbound] = []
        for _ in range(chance.randint(0, 4)):
            name = chance.choice(["orders", "bills", "news", "dead"])
            identity = SampleIdentity(WRITER, chance.randint(1, 12))
            found.append(
                chance.choice(
                    [
                        Write("P", name.capitalize(), identity, b"x"),
                        Write("P", name.capitalize(), identity, b"x"),
                        ConsumerJoined(f"P/S/{name}", READER),
                        Acknowledgment(f"P/S/{name}", READER, identity, chance.choice(list(AckResponse))),
                        command(FlushQueue(ORDERS)),
                        command(GetStatus(ORDERS)),
                    ]
                )
            )
        return found

    def step(self) -> None:
        self.now += self.chance.randint(0, 8)
        what = self.chance.random()
        if what < 0.5:
            run(self.turn, *self.messages(), now=self.now)
        elif what < 0.7:
            group = self.turn.to_write()
            for ready in group.turns if group is not None else ():
                for batch in ready.batches:
                    assert batch.first_index == self.written[batch.stream] + 1, "indexes are consecutive"
                    self.written[batch.stream] = batch.last_index
        else:
            behind = [each for each in self.written if self.durable[each] < self.written[each]]
            if behind:
                stream = self.chance.choice(behind)
                self.durable[stream] = self.chance.randint(self.durable[stream], self.written[stream])
                self.turn.durable(stream, self.durable[stream])
        self.collect(self.turn.to_send())

    def collect(self, released: list[Released]) -> None:
        for message in (message for each in released for message in each.messages):
            assert message.rests_on <= self.durable[message.queue] or message.queue == SERVICE_STREAM
            self.sent.append(message)

    def finish(self) -> None:
        for _ in range(100):
            while self.turn.step(self.now):
                pass
            self.durable = defaultdict(lambda: 10**9)
            for stream in self.written:
                self.turn.durable(stream, self.written[stream])
            while (group := self.turn.to_write()) is not None:
                report(self.turn, group)
            self.collect(self.turn.to_send())
            if self.turn.is_idle:
                return
        raise AssertionError("the turn does not come to rest")


@pytest.mark.parametrize("seed", range(40))
def test_with_any_disk_every_message_leaves_once_in_the_order_of_its_stream_and_never_too_early(seed: int) -> None:
    story = Story(seed)
    for _ in range(150):
        story.step()
    story.finish()
    assert len(story.sent) == len(story.engine_sent) > 50
    for name in {message.queue for message in story.engine_sent}:
        expected = [id(message) for message in story.engine_sent if message.queue == name]
        of_stream = set(expected)
        assert [id(message) for message in story.sent if id(message) in of_stream] == expected
