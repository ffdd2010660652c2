"""A binary heap of (time, client) records inside an array: earliest first, the lower client at equal times.

It contains only clients that wait for an acknowledgment, so it is short; 16-byte records keep it in few cache lines.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.kernel.jit import inlined_part, part, row
from qsctl.sim.kernel.records import HEAP


@part
def push(heap: Any, count: int, time: int, client: int) -> None:
    """Insert an entry into a heap of `count` entries; the caller increases the count."""
    i = count
    while i > 0:
        parent = (i - 1) >> 1
        above = row(heap, parent, HEAP)
        if above.time < time or (above.time == time and above.client <= client):
            break
        place = row(heap, i, HEAP)
        place.time = above.time
        place.client = above.client
        i = parent
    place = row(heap, i, HEAP)
    place.time = time
    place.client = client


@inlined_part
def replace_top(heap: Any, count: int, time: int, client: int) -> None:
    """Replace the earliest entry by another one."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= count:
            break
        below = row(heap, child, HEAP)
        if child + 1 < count:
            right = row(heap, child + 1, HEAP)
            if right.time < below.time or (right.time == below.time and right.client < below.client):
                child += 1
                below = right
        if time < below.time or (time == below.time and client <= below.client):
            break
        place = row(heap, i, HEAP)
        place.time = below.time
        place.client = below.client
        i = child
    place = row(heap, i, HEAP)
    place.time = time
    place.client = client


@part
def drop_top(heap: Any, count: int) -> None:
    """Remove the earliest of `count` entries; the caller decreases the count."""
    last = row(heap, count - 1, HEAP)
    replace_top(heap, count - 1, last.time, last.client)
