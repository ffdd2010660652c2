"""Admission to the broker: first come first served at a limited rate, with a fair share of buffers for each publisher.

[SOL-QUEUES], "Ingress Data Buffer Management": a publishing client cannot take ingress resources at the expense of
others. Our reading: the buffers are divided equally among the publishers (one for each traffic); a message with which
its publisher would exceed its part is refused. A message above the size limit is refused with an event. Fanned-out
copies of one message enter once.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from qsctl.sim.egress.transmission.port import serialization
from qsctl.sim.kernel.jit import kernel
from qsctl.sim.kernel.records import ARRIVAL_FIRST, ARRIVAL_TRAFFIC_SHIFT

TOO_BIG_REASON: Final = 2

BUFFERED: Final = np.dtype([("departure", "i8"), ("bytes", "i8"), ("publisher", "i8")])
"""A message in the ingress buffers until its departure."""
REFUSAL: Final = np.dtype([("time", "i8"), ("bytes", "i8"), ("publisher", "i8"), ("too_big", "i8")])
"""A refused message: `too_big` is 1 for its size, 0 for its publisher's share."""


@kernel
def admit_ingress(
    rows: Any,
    count: int,
    size_max: int,
    numerator: int,
    denominator: int,
    share: int,
    held: Any,
    ring: Any,
    cursor: Any,
    refusals: Any,
    turned: Any,
) -> tuple[int, int, int]:
    """Keep the rows that the broker accepts, and set their time to the instant at which they are received completely.

    Arrays and numbers:
        rows: ARRIVAL in time order; the first `count` are compacted in place.
        numerator, denominator: nanoseconds per byte, or a numerator of 0 for no limit.
        share: bytes of ingress buffers for each publisher, or 0 for no limit.
        held: int64[publishers] bytes in the buffers. ring: BUFFERED, the messages in the buffers. cursor: int64[4]:
            first and next place in the ring (both ever growing), the instant at which the input is free, whether the
            message of the current fan-out was refused (1: by the share, 2: too big).
        refusals: REFUSAL, filled.
        turned: ARRIVAL, filled with the refused rows, every copy of a fanned-out message, with the reason as `tag`'s
            traffic: 1 the share, 2 too big.

    Returns:
        The numbers of rows kept, of refusals, and of rows refused. The ring's length must exceed `count` plus the
        messages in it.
    """
    kept = 0
    refused = 0
    away = 0
    places = len(ring)
    for i in range(count):
        row = rows[i]
        t = row.time
        size = row.bytes
        publisher = row.tag >> ARRIVAL_TRAFFIC_SHIFT
        if row.tag & ARRIVAL_FIRST:
            while cursor[0] < cursor[1] and ring[cursor[0] % places].departure <= t:
                first = ring[cursor[0] % places]
                held[first.publisher] -= first.bytes
                cursor[0] += 1
            too_big = size > size_max
            full = share > 0 and numerator > 0 and held[publisher] + size > share
            cursor[3] = TOO_BIG_REASON if too_big else (1 if full else 0)
            if cursor[3] != 0:
                refusal = refusals[refused]
                refusal.time = t
                refusal.bytes = size
                refusal.publisher = publisher
                refusal.too_big = 1 if too_big else 0
                refused += 1
            elif numerator > 0:
                cursor[2] = max(cursor[2], t) + serialization(size, numerator, denominator)
                place = ring[cursor[1] % places]
                place.departure = cursor[2]
                place.bytes = size
                place.publisher = publisher
                held[publisher] += size
                cursor[1] += 1
        if cursor[3] == 0:
            rows[kept] = row
            if numerator > 0:
                rows[kept].time = cursor[2]
            kept += 1
        else:
            turned[away] = row
            turned[away].tag = (row.tag & 7) | (cursor[3] << ARRIVAL_TRAFFIC_SHIFT)
            away += 1
    return kept, refused, away
