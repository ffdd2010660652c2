"""One window of arrivals drawn from every stream: gaps, sizes and topics from counter-based random numbers.

Two passes over the streams: the first draws times, and counts the arrivals in each short span of the window; the second
draws sizes and topics, and writes each row into its span. So a row is written once, and nearly in its place;
`merge.sort_within_spans` completes the order.
"""

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
        ("pending", "i8"),
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

GUIDES: Final = 4
"""Entries of the guide for each share, see `find_step`: three of four draws need one look."""

TRACE_ROW: Final = np.dtype(
    [("time", "i8"), ("bytes", "i4"), ("topic", "i4"), ("client", "i4"), ("queue", "i4")], align=True
)
"""A recorded arrival; `client` and `queue` are -1 where the trace leaves them to the traffic."""


@part
def find_step(table: Any, first: int, entries: int, u: float) -> int:
    """Return the index of the first cumulative share above `u`.

    The search begins at an entry of the guide table that `quantities.guided` placed behind the shares, at most a few
    steps before the result (Chen and Asau, "On generating random variates from an empirical distribution", AIIE
    Transactions 6, 1974). With the alias method, a small change of one share would change draws everywhere.
    """
    guide = first + 2 * entries
    found = int(table[guide + int(u * float(GUIDES * entries))])
    while found < entries - 1 and table[first + found] <= u:
        found += 1
    while found > 0 and table[first + found - 1] > u:
        found -= 1
    return found


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
    """Return the time of the stream's next message, after one at `t`; FOREVER at its end."""
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
    """Change the state of a modulated stream, and draw the time it remains in the new one.

    The new state is drawn uniformly among the others, or is the next one where the states are a cycle.
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


@part
def draw_units(stream: Any, wanted: float, units: Any) -> int:
    """Draw a block of exponential numbers of mean 1, from which the stream's next gaps are computed.

    A block lets the loop run without branches. Unused numbers are drawn again, with the same values, by the next block.

    Returns:
        The number drawn: `wanted`, or the room in `units`.
    """
    count = int(min(max(wanted, 1.0), float(len(units))))
    key, first = stream.key_gap, stream.gaps
    for i in range(count):
        units[i] = -logarithm(uniform(key, first + i))
    return count


@kernel
def draw_times(
    streams: Any, first: int, start: int, until: int, shift: int, times: Any, used: int, counts: Any, units: Any,
    table: Any, trace: Any,
) -> tuple[int, int]:  # fmt: skip
    """Append the times of the messages before `until`, stream after stream, and count the arrivals of each span.

    Args:
        streams: rows of STREAM, changed in place: `pending` counts the messages that were appended.
        first: the stream to begin with.
        start: the beginning of the window; a span of it is 2 to the power `shift` nanoseconds.
        until: the window's end.
        shift: see `start`.
        times: int64, filled from index `used` on.
        used: the number of times already in `times`.
        counts: int32 for each span, increased by its arrivals.
        units: float64, scratch.
        table: that of the streams' distributions.
        trace: of TRACE_ROW.

    Returns:
        The new number of times, and the stream to continue with. That is the number of streams when all are done; else
        `times` is full, and the call is to be repeated with a longer copy.
    """
    capacity = len(times)
    for i in range(first, len(streams)):
        stream = streams[i]
        t = stream.next
        if t >= until:
            continue
        kind = stream.kind
        copies = stream.count
        end = min(until, stream.stop)
        begin = used
        ready = 0
        place = 0
        while t < end and used < capacity:
            times[used] = t
            used += 1
            span = (t - start) >> shift
            if kind == TRACE:
                recorded = stream.cursor + stream.pending + used - begin
                counts[span] += copies if trace[recorded - 1].client < 0 else 1
                t = trace[recorded].time if recorded < stream.cursor_end else FOREVER
                continue
            counts[span] += copies
            if kind == POISSON:
                if place == ready:
                    ready = draw_units(stream, float(end - t) / stream.mean_gap, units)
                    place = 0
                t += int(units[place] * stream.mean_gap + 0.5)
                place += 1
                stream.gaps += 1
                continue
            if kind == CONSTANT:
                t = draw_next(stream, t, table)
                continue
            while True:
                mean_gap = table[stream.state_table + stream.state]
                if mean_gap > 0.0:
                    if place == ready:
                        ready = draw_units(stream, float(min(end, stream.switch) - t) / mean_gap + 1.0, units)
                        place = 0
                    gap = units[place] * mean_gap
                    place += 1
                    stream.gaps += 1
                    if gap < 9.0e18 and t + int(gap + 0.5) < stream.switch:
                        t += int(gap + 0.5)
                        break
                t = stream.switch
                if t >= stream.stop:
                    t = FOREVER
                    break
                begin_stay(stream, t, table)
        stream.pending += used - begin
        if t >= stream.stop:
            t = FOREVER
        stream.next = t
        if t < until:
            return used, i
    return used, len(streams)


@kernel
def end_spans(counts: Any) -> int:
    """Replace the arrivals of each span by the sum of those before it; return the total."""
    total = 0
    for span in range(len(counts)):
        here = counts[span]
        counts[span] = total
        total += here
    return total


@part
def draw_sizes(stream: Any, first: int, count: int, table: Any, reals: Any, sizes: Any) -> None:
    """Draw the lengths of a block of messages, vectorized for the common distributions."""
    kind, key, longest = stream.size_kind, stream.key_size, float(stream.size_max)
    a, b = stream.size_a, stream.size_b
    if kind in (SIZE_LOGNORMAL, SIZE_EXPONENTIAL):
        if kind == SIZE_LOGNORMAL:
            for k in range(count):
                reals[k] = normal(key, first + k)
            for k in range(count):
                reals[k] = exponential(a + b * reals[k])
        else:
            for k in range(count):
                reals[k] = -logarithm(uniform(key, first + k)) * a
        for k in range(count):
            sizes[k] = int(max(1.0, min(longest, np.floor(reals[k] + 0.5))))
        return
    for k in range(count):
        sizes[k] = draw_size(stream, first + k, table)


@kernel
def place_rows(
    streams: Any, start: int, shift: int, times: Any, places: Any, rows: Any, reals: Any, sizes: Any, table: Any,
    trace: Any,
) -> None:  # fmt: skip
    """Write the arrivals whose times were drawn, each into its span; within a span they are in the order of drawing.

    Args:
        streams: of STREAM, changed in place: nothing is pending then.
        start: as that of `draw_times`.
        shift: as that of `draw_times`.
        times: int64, as `draw_times` appended them.
        places: int32: where the rows of each span begin; changed to where they end.
        rows: of ARRIVAL, filled.
        reals: float64, scratch.
        sizes: int64, scratch of the same length.
        table: that of the streams' distributions.
        trace: of TRACE_ROW.
    """
    done = 0
    for i in range(len(streams)):
        stream = streams[i]
        left = stream.pending
        stream.pending = 0
        while left > 0:
            count = min(left, len(sizes))
            kind = stream.kind
            if kind != TRACE:
                draw_sizes(stream, stream.emitted, count, table, reals, sizes)
            topic_table, topics, base_topic = stream.topic_table, stream.topics, stream.topic_base
            first_client, copies, base_tag = stream.first, stream.count, stream.tag
            for k in range(count):
                begin = first_client
                end = begin + copies
                tag = base_tag
                topic = base_topic
                if kind == TRACE:
                    recorded = trace[stream.cursor + k]
                    sizes[k] = recorded.bytes
                    topic += recorded.topic
                    if recorded.client >= 0:
                        begin += recorded.client
                        end = begin + 1
                    if recorded.queue >= 0:
                        tag = (tag & ~7) | recorded.queue
                elif topics > 1:
                    u = uniform(stream.key_topic, stream.emitted + k)
                    topic += find_step(table, topic_table, topics, u)
                t = times[done + k]
                span = (t - start) >> shift
                place = places[span]
                places[span] = place + (end - begin)
                tag |= ARRIVAL_FIRST
                for client in range(begin, end):
                    row = rows[place]
                    row.time = t
                    row.client = client
                    row.bytes = min(sizes[k], SIZE_MASK)
                    row.topic = topic
                    row.tag = tag
                    tag &= ~ARRIVAL_FIRST
                    place += 1
            done += count
            left -= count
            stream.emitted += count
            if kind == TRACE:
                stream.cursor += count
