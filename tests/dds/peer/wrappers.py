"""The same as the programs of `fixtures/foreign`, with the wrappers of qsctl.

wrappers.py produce TYPES DOMAIN TOPIC COUNT FIRST; wrappers.py consume TYPES DOMAIN TOPIC SUBSCRIBER REJECT IGNORE.
A consumer prints number, 0 (a wrapper does not say which attempt it is), flags and response of each order, and ends
with SIGTERM.
"""

from __future__ import annotations

import signal
import sys
from typing import Any

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.config.sample_types.type_file import read_type_file

REDELIVERED = 1
PATIENCE_S = 180.0


def produce(codec: Any, domain: int, topic: str, count: int, first: int) -> None:
    with QueueProducer[Any](topic, domain, codec=codec) as producer:
        producer.wait_for_queue(PATIENCE_S)
        for number in range(first, first + count):
            producer.write({"number": number, "text": f"order {number} from a wrapper"})
        rejected = producer.wait_for_acknowledgments(PATIENCE_S)
    sys.stdout.write(f"{count} written, {rejected} rejected\n")


def consume(codec: Any, domain: int, topic: str, subscriber: str, reject: int, ignore: int) -> None:
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: ended.append(number))
    seen: set[int] = set()
    with QueueConsumer[Any](topic, subscriber, domain, codec=codec) as consumer:
        sys.stderr.write("ready\n")
        sys.stderr.flush()
        while not ended:
            for sample in consumer.receive(64, 0.2):
                number = sample.value["number"]
                is_first = number not in seen and not sample.redelivered
                seen.add(number)
                if is_first and ignore and number % ignore == 0 and number % reject:
                    response = "-"
                else:
                    accepts = not (is_first and reject and number % reject == 0)
                    sample.acknowledge(accepts)
                    response = str(int(accepts))
                flags = REDELIVERED if sample.redelivered else 0
                sys.stdout.write(f"{number} 0 {flags} {response}\n")
            consumer.flush()
            sys.stdout.flush()


def main() -> None:
    role, types, domain, topic, *rest = sys.argv[1:]
    codec = read_type_file(types).codec("Order")
    if role == "produce":
        produce(codec, int(domain), topic, int(rest[0]), int(rest[1]))
    else:
        consume(codec, int(domain), topic, rest[0], int(rest[1]), int(rest[2]))


main()
