"""A program to be killed: it produces and consumes with an embedded service until somebody ends it.

It reads lines from standard input, `<state directory> <seed>`, and for each forks a child that works on that directory
and whose standard output is this program's. The first line of a child is its process id. Every line is one write:

    pid N        the child's process id
    write K …    about to be written
    kept K …     acknowledged by the queue
    got K …      delivered to the consumer
    settle K …   about to be acknowledged
    settled K …  acknowledged, and the service said so
"""

from __future__ import annotations

import os
import random
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

from qsctl.core.messages import AckResponse, Write
from qsctl.identity import Guid, SampleIdentity
from qsctl.service.embedded import open_embedded
from qsctl.storage import segments, sqlite

PARTICIPANT, TOPIC, QUEUE = "P", "Order", "P/S/orders"


def say(word: str, keys: Iterable[str]) -> None:
    os.write(1, f"{word} {' '.join(keys)}\n".encode())


def work(state_dir: Path, seed: int) -> None:
    chance = random.Random(seed)
    number = 0
    while True:
        with open_embedded(state_dir) as service:
            for _ in range(chance.randint(1, 4)):
                if chance.random() < 0.5:
                    count = chance.randint(1, 20)
                    keys = [f"{seed}:{number + at}" for at in range(count)]
                    number += count
                    writes = [
                        Write(PARTICIPANT, TOPIC, identity(key), key.encode() + bytes(chance.randint(0, 400)))
                        for key in keys
                    ]
                    say("write", keys)
                    answers = service.write(writes)
                    assert all(answer.response is AckResponse.ACCEPTED for answer in answers), answers
                    say("kept", [key_of(answer.identity) for answer in answers])
                else:
                    deliveries = service.receive(QUEUE, chance.randint(1, 15), 0.0)
                    assert all(each.payload.rstrip(b"\0").decode() == key_of(each.identity) for each in deliveries)
                    if not deliveries:
                        continue
                    keys = [key_of(each.identity) for each in deliveries]
                    say("got", keys)
                    if chance.random() < 0.8:
                        say("settle", keys)
                        service.acknowledge_all(deliveries, ok=True)
                        say("settled", keys)


def identity(key: str) -> SampleIdentity:
    seed, _, number = key.partition(":")
    return SampleIdentity(Guid(int(seed).to_bytes(16, "big")), int(number))


def key_of(sample: SampleIdentity) -> str:
    return f"{int.from_bytes(sample.writer_guid, 'big')}:{sample.sequence_number}"


def main() -> None:
    segments.DEAD_RECORD_COUNT_MIN = sqlite.DEAD_RECORD_COUNT_MIN = 100  # so that kills fall into compactions too
    for line in sys.stdin:
        directory, _, seed = line.strip().rpartition(" ")
        child = os.fork()
        if child == 0:
            say("pid", [str(os.getpid())])
            try:
                work(Path(directory), int(seed))
            finally:
                traceback.print_exc()
                os._exit(1)
        os.waitpid(child, 0)
        say("ended", [])


if __name__ == "__main__":
    main()
