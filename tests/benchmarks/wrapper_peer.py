"""Orders in the wrappers' frames: wrapper_peer.py produce|consume DOMAIN COUNT; a consumer prints a line a sample.

The payloads are serialized before, and are not read: what is measured is the way, not Python's making of values.
"""

from __future__ import annotations

import struct
import sys

from qsctl.client import QueueConsumer, QueueProducer

PATIENCE_S = 60.0
HEADER = b"\x00\x01\x00\x00"


def order(number: int) -> bytes:
    text = f"order {number} from C".encode() + b"\0"
    return HEADER + struct.pack("<iI", number, len(text)) + text


def produce(domain: int, count: int) -> None:
    payloads = [order(number) for number in range(1, count + 1)]
    with QueueProducer("Orders", domain, window_count=1000) as producer:
        producer.wait_for_queue(PATIENCE_S)
        for begin in range(0, count, 50):
            for payload in payloads[begin : begin + 50]:
                producer.write(payload)
            producer.flush()
        assert producer.wait_for_acknowledgments(PATIENCE_S) == 0


def consume(domain: int, count: int) -> None:
    with QueueConsumer("Orders", "Desk", domain) as consumer:
        consumer.wait_for_queue(PATIENCE_S)
        sys.stderr.write("ready\n")
        sys.stderr.flush()
        while count > 0:
            samples = consumer.receive(1000, PATIENCE_S)
            sys.stdout.write("".join(f"{struct.unpack_from('<i', each.value, 4)[0]} 1 0 1\n" for each in samples))
            sys.stdout.flush()
            consumer.acknowledge_all()
            consumer.flush()
            count -= len(samples)


{"produce": produce, "consume": consume}[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))
