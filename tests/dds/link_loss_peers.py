"""A producer or a consumer in a network namespace: `link_loss_peers.py ROLE DOMAIN INTERFACE SECONDS PEER…`.

It prints what became of its samples, as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.instant import SECOND_NS
from qsctl.transport.dds.participant import DomainSettings

PATIENCE_S = 60


def produce(domain: int, settings: DomainSettings, seconds: float) -> dict[str, float]:
    """Write one sample after the other; what became of them."""
    accepted: set[int] = set()
    rejected: set[int] = set()
    written, stall_s, latest_s, end_s = 0, 0.0, time.monotonic(), time.monotonic() + seconds
    with QueueProducer("Orders", domain, settings=settings, window_count=50) as producer:
        producer.wait_for_queue(PATIENCE_S)
        while time.monotonic() < end_s:
            written += 1
            producer.write(b"%d" % written, timeout_s=PATIENCE_S)
            producer.flush()
            if outcomes := producer.pop_acknowledged():
                stall_s, latest_s = max(stall_s, time.monotonic() - latest_s), time.monotonic()
            for each in outcomes:
                (accepted if each.accepted else rejected).add(each.identity.sequence_number)
            time.sleep(0.005)
        producer.wait_for_acknowledgments(PATIENCE_S)
        for each in producer.pop_acknowledged():
            (accepted if each.accepted else rejected).add(each.identity.sequence_number)
    return {"written": written, "accepted": len(accepted), "rejected": len(rejected), "stall_s": round(stall_s, 2)}


def consume(domain: int, settings: DomainSettings, seconds: float) -> dict[str, float]:
    """Acknowledge whatever comes; what came, and how often."""
    received: Counter[int] = Counter()
    unflagged: Counter[int] = Counter()
    end_s = time.monotonic() + seconds
    with QueueConsumer("Orders", "S", domain, settings=settings) as consumer:
        consumer.wait_for_queue(PATIENCE_S)
        while time.monotonic() < end_s:
            for sample in consumer.receive(100, 0.2):
                received[sample.identity.sequence_number] += 1
                unflagged[sample.identity.sequence_number] += not sample.redelivered
                sample.acknowledge()
            consumer.flush()
    twice = sum(count > 1 for count in unflagged.values())
    return {"distinct": len(received), "received": received.total(), "unflagged_twice": twice}


if __name__ == "__main__":
    role, domain, interface, seconds, *peers = sys.argv[1:]
    settings = DomainSettings(interface=interface, lease_duration_ns=2 * SECOND_NS, peers=tuple(peers))
    found = (produce if role == "produce" else consume)(int(domain), settings, float(seconds))
    sys.stdout.write(json.dumps(found))
