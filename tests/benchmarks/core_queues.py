"""Engines with one queue, for benchmarks of the core."""

from __future__ import annotations

from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.queue.settings import (
    DistributionSettings,
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import Guid, counted_incarnations
from qsctl.instant import SECOND_NS

PAYLOAD_BYTES = 256
WRITER = Guid(b"w" * 16)
PERSISTENT = PersistenceSettings(PersistenceKind.PERSISTENT)
QUEUES = {
    "volatile": {},
    "persistent": {"persistence": PERSISTENT},
    "everything on": {
        "distribution": DistributionSettings(unacked_threshold=1_000, mark_last_undelivered_sample=True),
        "redelivery": RedeliverySettings(3, 30 * SECOND_NS),
        "lifespan_ns": 60 * SECOND_NS,
        "limits": ResourceLimitSettings(
            max_count=10**6, max_in_memory_bytes=10**9, high_watermark_percent=90, low_watermark_percent=10
        ),
    },
}


def engine(**given: object) -> ServiceEngine:
    queue = SharedReaderQueueSettings("orders", "Order", **given)  # type: ignore[arg-type]
    subscriber = SharedSubscriberSettings("S", (), (queue,))
    settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (subscriber,)),))
    made = ServiceEngine(settings, started_at=0, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)
    made.finish_restore(0)
    made.take_ready()
    return made
