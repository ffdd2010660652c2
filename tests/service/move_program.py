"""A program to be killed: it writes, consumes, requeues and moves samples with an embedded service until it is ended.

It is run as `crash_program` is, and says the same words:

    pid N        the child's process id
    kept K …     acknowledged by the queue
    got K …      delivered to a consumer; `K*` where it was flagged redelivered
    settle K …   about to be acknowledged
    reject K …   about to be rejected: without retries the sample is a dead letter then
    moved N …    so many samples were moved or requeued in one call
"""

from __future__ import annotations

import os
import random
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from qsctl.client.administration import Administration
from qsctl.client.transfer import Transfer
from qsctl.core.admin.reply import MessageData
from qsctl.core.messages import AckResponse, Write
from qsctl.resource import ResourceIdentifier, parse_resource
from qsctl.service.directory.embedded import EmbeddedService, open_embedded
from qsctl.storage.sqlite import store as sqlite
from qsctl.storage.streams import logged
from tests.service.crash_program import PARTICIPANT, TOPIC, flagged, identity, key_of, say

_S = "/domain_participant/P/shared_subscriber/S"
ORDERS = parse_resource(f"{_S}/shared_reader_queue/orders")
ARCHIVE = parse_resource(f"{_S}/shared_reader_queue/archive")
DEAD = parse_resource(f"{_S}/dead_letter_shared_reader_queue/dead")


def work(state_dir: Path, seed: int) -> None:
    chance = random.Random(seed)
    number = 0
    steps: list[Callable[[EmbeddedService, random.Random], None]] = [
        lambda service, chance: consume(service, chance, "P/S/orders"),
        lambda service, chance: consume(service, chance, "P/S/archive"),
        lambda service, chance: move(service, chance, ORDERS, ARCHIVE),
        lambda service, chance: move(service, chance, ARCHIVE, ORDERS),
        lambda service, chance: move(service, chance, DEAD, ORDERS),
        lambda service, chance: move(service, chance, DEAD, ORDERS),
    ]
    while True:
        with open_embedded(state_dir) as service:
            for _ in range(chance.randint(1, 5)):
                if chance.random() < 0.25:
                    number = write(service, chance, seed, number)
                else:
                    chance.choice(steps)(service, chance)


def write(service: EmbeddedService, chance: random.Random, seed: int, number: int) -> int:
    keys = [f"{seed}:{number + at}" for at in range(chance.randint(1, 30))]
    answers = service.write(
        [Write(PARTICIPANT, TOPIC, identity(key), key.encode() + bytes(chance.randint(0, 400))) for key in keys]
    )
    assert all(answer.response is AckResponse.ACCEPTED for answer in answers), answers
    say("kept", [key_of(answer.identity) for answer in answers])
    return number + len(keys)


def consume(service: EmbeddedService, chance: random.Random, queue: str) -> None:
    deliveries = service.receive(queue, chance.randint(1, 10), 0.0)
    assert all((each.payload or b"").rstrip(b"\0").decode() == key_of(each.identity) for each in deliveries)
    if not deliveries:
        return
    say("got", map(flagged, deliveries))
    rejects = chance.random() < 0.6 and queue == "P/S/orders"
    say("reject" if rejects else "settle", [key_of(each.identity) for each in deliveries])
    service.acknowledge_all(deliveries, ok=not rejects)


def move(
    service: EmbeddedService, chance: random.Random, source: ResourceIdentifier, target: ResourceIdentifier
) -> None:
    def target_of(sample: MessageData) -> ResourceIdentifier:
        assert bool(sample.dead_letter_from) is (source == DEAD)
        return target

    transfer = Transfer(Administration(service), source, target_of, limit=chance.choice([None, 1, 7]))
    for _ in transfer.steps():
        pass
    assert not any(each.refused_count for each in transfer.results.values())
    say("moved", [str(transfer.moved_count)])


def main() -> None:
    logged.DEAD_BODY_COUNT_MIN = sqlite.DEAD_RECORD_COUNT_MIN = 100  # so that kills fall into compactions too
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
