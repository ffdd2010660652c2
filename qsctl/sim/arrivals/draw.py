"""Drawing one window of arrivals from every stream: gaps, sizes and topics from counter-based random numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from qsctl.sim.kernel.jit import kernel, part
from qsctl.sim.kernel.random import exponential, logarithm, normal, uniform
from qsctl.sim.kernel.records import ARRIVAL_FIRST, FOREVER, SIZE_MASK

STREAM: Final = np.dtype(
    [
        ("next", "i8"),
        ("stop", "i8"),
        ("start", "i8"),
        ("gaps", "i8"),
        ("emitted", "i8"),
        ("key_gap", "u8"),
        ("key_stay", "u8"),
        ("key_size", "u8"),
        ("key_topic", "u8"),
        ("mean_gap", "f8"),
        ("offset", "f8"),
        ("size_a", "f8"),
        ("size_b", "f8"),
        ("switch", "i8"),
        ("stays", "i8"),
        ("kind", "i4"),
        ("first", "i4"),
        ("count", "i4"),
        ("tag", "i4"),
        ("size_kind", "i4"),
        ("size_max", "i4"),
        ("size_table", "i4"),
        ("size_entries", "i4"),
        ("topics", "i4"),
        ("topic_base", "i4"),
        ("topic_table", "i4"),
        ("state", "i4"),
        ("states", "i4"),
        ("state_table", "i4"),
        ("fixed", "i4"),
        ("cursor", "i8"),
        ("cursor_end", "i8"),
    ],
    align=True,
)
"""One source of arrivals: `next` is its next one (FOREVER when it ended), `gaps` and `emitted` count its draws."""

POISSON: Final = 0
CONSTANT: Final = 1
MODULATED: Final = 2
TRACE: Final = 3

CYCLE: Final = 2
"""Of `fixed`: states of a modulated stream that follow each other, each for exactly its stay; 1: drawn, and so long."""

SIZE_CONSTANT: Final = 0
SIZE_UNIFORM: Final = 1
SIZE_LOGNORMAL: Final = 2
SIZE_MIXED: Final = 3
SIZE_EXPONENTIAL: Final = 4
SIZE_PARETO: Final = 5

TRACE_ROW: Final = np.dtype(
    [("time", "i8"), ("bytes", "i4"), ("topic", "i4"), ("client", "i4"), ("queue", "i4")], align=True
)
"""A recorded arrival; `client` and `queue` are -1 where the trace leaves them to the traffic."""


@part
def find_step(table: Any, first: int, entries: int, u: float) -> int:
    """Return the index whose cumulative share is the first one above `u`."""
    low = 0
    high = entries - 1
    while low < high:
        middle = (low + high) >> 1
        if table[first + middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


@part
def whole(drawn: float, longest: int) -> int:
    """Return a drawn quantity rounded to a whole number, from 1 to the longest."""
    return max(1, min(longest, int(np.floor(min(drawn, 4.0e18) + 0.5))))


@part
def draw_quantity(source: Any, n: int) -> int:
    """Return draw `n` of a length or a time, at least 1, of any kind but SIZE_MIXED.

    `source` is a record with the fields of a distribution: `size_kind`, `size_a`, `size_b`, `size_max`, `key_size`.
    """
    kind = source.size_kind
    longest = int(source.size_max)
    if kind == SIZE_CONSTANT:
        return longest
    if kind == SIZE_LOGNORMAL:
        return whole(exponential(source.size_a + source.size_b * normal(source.key_size, n)), longest)
    u = uniform(source.key_size, n)
    if kind == SIZE_EXPONENTIAL:
        return whole(-logarithm(u) * source.size_a, longest)
    if kind == SIZE_PARETO:
        return whole(source.size_a * exponential(-logarithm(u) / source.size_b), longest)
    return int(source.size_a) + int(u * (source.size_b - source.size_a + 1.0))


@part
def draw_size(stream: Any, n: int, table: Any) -> int:
    """Return the length of message `n`, at least one byte."""
    if stream.size_kind != SIZE_MIXED:
        return draw_quantity(stream, n)
    entry = find_step(table, stream.size_table, stream.size_entries, uniform(stream.key_size, n))
    return int(table[stream.size_table + stream.size_entries + entry])


@part
def draw_next(stream: Any, t: int, table: Any) -> int:
    """Return when the stream's next message comes, after one at `t`; FOREVER at its end."""
    kind = stream.kind
    if kind == POISSON:
        gap = -logarithm(uniform(stream.key_gap, stream.gaps)) * stream.mean_gap
        stream.gaps += 1
        return t + int(gap + 0.5)
    if kind == CONSTANT:
        stream.gaps += 1
        return int(stream.start) + int((float(stream.gaps) + stream.offset) * stream.mean_gap)
    while True:
        mean_gap = table[stream.state_table + stream.state]
        if mean_gap > 0.0:
            gap = -logarithm(uniform(stream.key_gap, stream.gaps)) * mean_gap
            stream.gaps += 1
            if gap < 9.0e18 and t + int(gap + 0.5) < stream.switch:
                return t + int(gap + 0.5)
        t = stream.switch
        if t >= stream.stop:
            return FOREVER
        begin_stay(stream, t, table)


@part
def begin_stay(stream: Any, t: int, table: Any) -> None:
    """Go to another state of a modulated stream, and draw how long it lasts.

    It is drawn uniformly among the others, or is the next one where the states are a cycle.
    """
    if stream.fixed == CYCLE:
        stream.state = stream.stays % stream.states
    elif stream.stays > 0 and stream.states > 1:
        other = int(uniform(stream.key_stay, 2 * stream.stays) * float(stream.states - 1))
        stream.state = other if other < stream.state else other + 1
    stay = table[stream.state_table + stream.states + stream.state]
    if stream.fixed == 0:
        stay *= -logarithm(uniform(stream.key_stay, 2 * stream.stays + 1))
    stream.stays += 1
    stream.switch = t + int(min(stay, 4.0e18 - float(t)) + 0.5)


@kernel
def start_streams(streams: Any, table: Any, trace: Any) -> None:
    """Draw every stream's first arrival."""
    for i in range(len(streams)):
        stream = streams[i]
        if stream.kind == TRACE:
            stream.next = trace[stream.cursor].time if stream.cursor < stream.cursor_end else FOREVER
            continue
        if stream.kind == CONSTANT:
            stream.gaps = -1
        elif stream.kind == MODULATED:
            begin_stay(stream, stream.start, table)
        stream.next = draw_next(stream, stream.start, table)


@kernel
def fill_window(streams: Any, first: int, until: int, rows: Any, count: int, table: Any, trace: Any) -> tuple[int, int]:
    """Append the arrivals before `until`, stream after stream, each in time order.

    Returns:
        The rows there are now, and the stream to go on with: the number of streams when all are done, else `rows`
        is full; give a longer one with the same beginning.
    """
    capacity = len(rows)
    for i in range(first, len(streams)):
        stream = streams[i]
        while stream.next < until:
            t = stream.next
            if t >= stream.stop:
                stream.next = FOREVER
                break
            if count + stream.count > capacity:
                return count, i
            begin = stream.first
            end = begin + stream.count
            tag = stream.tag
            topic = stream.topic_base
            if stream.kind == TRACE:
                recorded = trace[stream.cursor]
                size = recorded.bytes
                topic += recorded.topic
                if recorded.client >= 0:
                    begin += recorded.client
                    end = begin + 1
                if recorded.queue >= 0:
                    tag = (tag & ~7) | recorded.queue
            else:
                size = draw_size(stream, stream.emitted, table)
                if stream.topics > 1:
                    u = uniform(stream.key_topic, stream.emitted)
                    topic += find_step(table, stream.topic_table, stream.topics, u)
            tag |= ARRIVAL_FIRST
            for client in range(begin, end):
                row = rows[count]
                row.time = t
                row.client = client
                row.bytes = min(size, SIZE_MASK)
                row.topic = topic
                row.tag = tag
                tag &= ~ARRIVAL_FIRST
                count += 1
            stream.emitted += 1
            if stream.kind == TRACE:
                stream.cursor += 1
                stream.next = trace[stream.cursor].time if stream.cursor < stream.cursor_end else FOREVER
            else:
                stream.next = draw_next(stream, t, table)
    return count, len(streams)
