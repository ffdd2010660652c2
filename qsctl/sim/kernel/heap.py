"""A binary heap of (time, client) records inside an array: earliest first, the lower client at equal times.

Only clients that wait for an acknowledgment stand in it, so it is short; 16-byte records keep it in few cache lines.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.kernel.jit import kernel


@kernel
def push(heap: Any, count: int, time: int, client: int) -> None:
    """Add an entry to the `count` there are; the caller counts."""
    i = count
    while i > 0:
        parent = (i - 1) >> 1
        above = heap[parent].time
        if above < time or (above == time and heap[parent].client <= client):
            break
        heap[i].time = above
        heap[i].client = heap[parent].client
        i = parent
    heap[i].time = time
    heap[i].client = client


@kernel
def replace_top(heap: Any, count: int, time: int, client: int) -> None:
    """Put another entry in the place of the earliest one."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= count:
            break
        right = child + 1
        if right < count and (
            heap[right].time < heap[child].time
            or (heap[right].time == heap[child].time and heap[right].client < heap[child].client)
        ):
            child = right
        below = heap[child].time
        if time < below or (time == below and client <= heap[child].client):
            break
        heap[i].time = below
        heap[i].client = heap[child].client
        i = child
    heap[i].time = time
    heap[i].client = client


@kernel
def drop_top(heap: Any, count: int) -> None:
    """Remove the earliest of `count` entries; the caller counts."""
    last = count - 1
    replace_top(heap, last, heap[last].time, heap[last].client)
