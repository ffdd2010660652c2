"""A status and the data of a service, with another value in each member."""

from __future__ import annotations

from typing import Final

from qsctl.core.admin.reply import QueueData, ServiceData
from qsctl.core.statistics.status import (
    ConsumerStatus,
    Counters,
    SharedReaderQueueStatus,
    StatisticMetrics,
    StatisticVariable,
)
from qsctl.identity import NIL_GUID, Guid
from qsctl.resource import ResourceKind, parse_resource

SUBSCRIBER: Final = parse_resource("/domain_participant/P/shared_subscriber/S")
QUEUE: Final = SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "Q")

STATUS: Final = SharedReaderQueueStatus(
    "P/S/Q",
    Counters(*range(1, 13)),
    Counters(*range(21, 33)),
    7,
    0,
    7,
    3,
    *[
        StatisticVariable(StatisticMetrics(5000, at, 0.5, 0.25, 1.0, 0.125), (StatisticMetrics(60_000, at),))
        for at in range(4)
    ],
    consumer_count=200,
    consumers=(
        ConsumerStatus(Guid(b"c" * 16), NIL_GUID, 3, -1, True),
        ConsumerStatus(Guid(b"d" * 16), Guid(b"s" * 16), 0, 10, False),
    ),
)
DATA: Final = ServiceData(
    (QueueData("P/S/Q", "T", str(QUEUE), "Type", False, True), QueueData("P/S/D", "D", "/x", "", True, False)),
    ("/domain_participant/P",),
    (str(SUBSCRIBER),),
    is_daemon=True,
)
