"""A program to be killed: it produces and consumes with an embedded service until somebody ends it.

It reads lines from standard input, `<state directory> <seed>`, and for each forks a child that works on that directory
and whose standard output is this program's. The first line of a child is its process id. Every line is one write:

    pid N        the child's process id
    write K …    about to be written
    kept K …     acknowledged by the queue
    got K …      delivered to the consumer; `K*` where it was flagged redelivered
    settle K …   about to be acknowledged
    settled K …  acknowledged, and the service said so
    reject K …   about to be rejected
    buried K …   delivered from the dead-letter queue, `K*` where it was flagged
    exhume K …   about to be acknowledged there
    exhumed K …  acknowledged there, and the service said so

Where the queue has dead letters, it also rejects, lets deliveries time out, writes samples of short life, and consumes
dead letters, of which the queue holds few.
"""

from __future__ import annotations

import os
import random
import sys
import time
import traceback
from collections.abc import Iterable
from pathlib import Path

from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    ConsumerJoined,
    Delivery,
    Inbound,
    SampleFlag,
    Write,
    WriteAcknowledgment,
    one_by_one,
)
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, MILLISECOND_NS
from qsctl.service.directory.embedded import EmbeddedService, open_embedded
from qsctl.service.run.loop import ServiceLoop
from qsctl.storage.sqlite import store as sqlite
from qsctl.storage.streams import logged
from qsctl.transport.dds.wire import frames
from tests.service.crash_settings import service_in

PARTICIPANT, TOPIC, QUEUE, DEAD = "P", "Order", "P/S/orders", "P/S/dead"

TIME_OUT_S = 0.005
SHORT_LIFE_NS = 20 * MILLISECOND_NS


def say(word: str, keys: Iterable[str]) -> None:
    os.write(1, f"{word} {' '.join(keys)}\n".encode())


def work(state_dir: Path, seed: int) -> None:
    chance = random.Random(seed)
    number = 0
    while True:
        with open_embedded(state_dir) as service:
            subscriber = service.settings.participants[0].subscribers[0]
            buries = any(queue.is_dead_letter for queue in subscriber.queues)
            for _ in range(chance.randint(1, 4)):
                if chance.random() < 0.5:
                    number = write(service, chance, seed, number, buries)
                elif buries and chance.random() < 0.3:
                    consume_dead_letters(service, chance)
                else:
                    consume(service, chance, buries)


def write(service: EmbeddedService, chance: random.Random, seed: int, number: int, buries: bool) -> int:
    keys = [f"{seed}:{number + at}" for at in range(chance.randint(1, 20))]
    writes = [
        Write(
            PARTICIPANT,
            TOPIC,
            identity(key),
            key.encode() + bytes(chance.randint(0, 400)),
            lifespan_ns=SHORT_LIFE_NS if buries and chance.random() < 0.2 else INFINITE_NS,
        )
        for key in keys
    ]
    say("write", keys)
    answers = service.write(writes)
    assert all(answer.response is AckResponse.ACCEPTED for answer in answers), answers
    say("kept", [key_of(answer.identity) for answer in answers])
    return number + len(keys)


def consume(service: EmbeddedService, chance: random.Random, buries: bool) -> None:
    deliveries = service.receive(QUEUE, chance.randint(1, 15), 0.0)
    assert all(each.payload.rstrip(b"\0").decode() == key_of(each.identity) for each in deliveries)
    if not deliveries:
        return
    say("got", map(flagged, deliveries))
    keys = [key_of(each.identity) for each in deliveries]
    drawn = chance.random()
    if buries and drawn < 0.4:
        say("reject", keys)
        service.acknowledge_all(deliveries, ok=False)
    elif drawn < 0.8:
        say("settle", keys)
        service.acknowledge_all(deliveries, ok=True)
        say("settled", keys)
    elif buries:
        time.sleep(TIME_OUT_S)  # the deliveries time out in the next turn


def consume_dead_letters(service: EmbeddedService, chance: random.Random) -> None:
    letters = service.receive(DEAD, chance.randint(1, 10), 0.0)
    assert all(each.payload.rstrip(b"\0").decode() == key_of(each.original_identity) for each in letters)
    if letters:
        say("buried", map(flagged, letters))
        if chance.random() < 0.7:
            keys = [key_of(each.original_identity) for each in letters]
            say("exhume", keys)
            service.acknowledge_all(letters, ok=True)
            say("exhumed", keys)


class Client:
    """Producer and consumer of a service that works on while its disk syncs; a message that left is what they know."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.seed = seed
        self.number = 0
        self.guid = Guid((1_000_000 + seed).to_bytes(16, "big"))
        loop = service_in(directory)
        loop.engine.hosted.reports_each_step = False  # as a service without a recorder, which holds runs of samples
        self.pipeline = ServiceLoop(loop.engine, loop.stores, quick_sync_s=0)

    def run(self) -> None:
        inbox: list[Inbound] = [ConsumerJoined(queue, self.guid, unacked_threshold=10) for queue in (QUEUE, DEAD)]
        while True:
            if self.chance.random() < 0.5:
                inbox += self.write()
            self.pipeline.begin(inbox)
            ready = self.pipeline.drain() if self.chance.random() < 0.3 else self.pipeline.pop_finished()
            messages = [message for each in ready for message in one_by_one(each.messages)]
            kept = [each for each in messages if isinstance(each, WriteAcknowledgment)]
            say("kept", [key_of(each.identity) for each in kept if each.response is AckResponse.ACCEPTED])
            deliveries = [each for each in messages if isinstance(each, Delivery)]
            inbox = [
                *self.answer([each for each in deliveries if each.queue == QUEUE]),
                *self.exhume([each for each in deliveries if each.queue == DEAD]),
            ]
            if self.chance.random() < 0.05:
                self.pipeline.compact_on()

    def write(self) -> list[Inbound]:
        count = self.chance.randint(1, 20)
        keys = [f"{self.seed}:{self.number + at}" for at in range(count)]
        self.number += count
        say("write", keys)
        life, other = (SHORT_LIFE_NS if self.chance.random() < 0.2 else INFINITE_NS for _ in range(2))
        lives = [life] * count if self.chance.random() < 0.7 else [self.chance.choice((life, other)) for _ in keys]
        packed = [
            frames.pack_sample(identity(key), key.encode(), lifespan_ns=each)
            for key, each in zip(keys, lives, strict=True)
        ]
        return [*frames.parse_frame(frames.frame_of(packed), PARTICIPANT, TOPIC)]

    def answer(self, deliveries: list[Delivery]) -> list[Inbound]:
        if not deliveries:
            return []
        say("got", map(flagged, deliveries))
        drawn = self.chance.random()
        if drawn > 0.8:
            time.sleep(TIME_OUT_S)
            return []
        keys = [key_of(each.identity) for each in deliveries]
        say("reject" if drawn < 0.4 else "settle", keys)
        response = AckResponse.REJECTED if drawn < 0.4 else AckResponse.ACCEPTED
        packed = [frames.pack_answer(each.identity, response) for each in deliveries]
        return [*frames.parse_consumer_answers(frames.answers_of(self.guid, "", packed), QUEUE).answers]

    def exhume(self, letters: list[Delivery]) -> list[Inbound]:
        if not letters:
            return []
        say("buried", map(flagged, letters))
        if self.chance.random() < 0.3:
            return []
        say("exhume", [key_of(each.original_identity) for each in letters])
        return [Acknowledgment(DEAD, self.guid, each.identity) for each in letters]


def flagged(delivery: Delivery) -> str:
    mark = "*" if delivery.flags & SampleFlag.REDELIVERED else ""
    return f"{key_of(delivery.original_identity)}{mark}"


def identity(key: str) -> SampleIdentity:
    seed, _, number = key.partition(":")
    return SampleIdentity(Guid(int(seed).to_bytes(16, "big")), int(number))


def key_of(sample: SampleIdentity) -> str:
    return f"{int.from_bytes(sample.writer_guid, 'big')}:{sample.sequence_number}"


def main() -> None:
    logged.DEAD_BODY_COUNT_MIN = sqlite.DEAD_RECORD_COUNT_MIN = 100  # so that kills fall into compactions too
    for line in sys.stdin:
        directory, _, seed = line.strip().rpartition(" ")
        child = os.fork()
        if child == 0:
            say("pid", [str(os.getpid())])
            try:
                if Path(directory).name.startswith("service-"):
                    Client(Path(directory), int(seed)).run()
                work(Path(directory), int(seed))
            finally:
                traceback.print_exc()
                os._exit(1)
        os.waitpid(child, 0)
        say("ended", [])


if __name__ == "__main__":
    main()
