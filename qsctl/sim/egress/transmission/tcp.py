"""The connection of a client whose link loses segments: TCP as a sender and a receiver of segments.

Sources: slow start, congestion avoidance, fast retransmit and fast recovery are RFC 5681 with the partial
acknowledgments of RFC 6582 (NewReno), one new segment for each of the first two duplicates (RFC 3042) and growth by
what is acknowledged (RFC 3465); a recovery ends with the window at the threshold (RFC 6582, 3.2, the second way of
step 3); the time-out is RFC 6298, with Karn's rule; CUBIC is RFC 9438, see `congestion`. The receiver acknowledges
every second segment, or one alone when its timer is over, and at once whatever is out of order or fills a gap (RFC
5681, 4.2).

Our readings:

- a segment takes up to one MSS of the bytes that wait in the TCP transmit queue, whatever message they belong to; no
  segment waits for more bytes (Nagle's algorithm is off, as brokers have it); a segment that is sent again is the same;
- a link loses each segment by itself with the same probability, behind the port and the client's link; it loses no
  acknowledgment. There are no selective acknowledgments;
- the congestion window is counted in segments, as Linux counts it; the bytes in flight stay within the maximum window,
  too, and one segment may always be in flight;
- a message leaves the transmit queue when its last byte is acknowledged, and its client receives it when that byte and
  all before it have arrived;
- the receive buffer admits a segment that fits beside all that it holds, and the rest of the only message that it
  holds a part of;
- the window grows even while the application does not fill it.

The receiver has no events: segments arrive in the order of their sending, so that the sending of a segment decides at
once which acknowledgment follows from it and when that arrives. A delayed one is
certain when no other segment arrives before its timer is over; until then the next segment may bring it forward. And
segments of full size that are sent at one instant, none of them lost, are one record, and so are their acknowledgments.

Where all segments in flight arrive and are acknowledged before a time-out, nothing is sent again: the acknowledgments
are processed later, when the client needs their room for a message or something observes its state. Those of one
record, for segments of one record, are then one step; only the measured round trips and the window are computed for
each. A message that needs no room is sent at once, without processing acknowledgments.

For a client without loss, see `clients.connection`.
"""

from __future__ import annotations

from typing import Any, Final

from qsctl.sim.egress.transmission.congestion import grow, note_loss, opened
from qsctl.sim.egress.transmission.port import leave_port, leave_port_in_turn, serialization
from qsctl.sim.egress.transmission.receiver import expect
from qsctl.sim.kernel.jit import inlined_part, part, quotient, row, wide
from qsctl.sim.kernel.random import uniform_bits
from qsctl.sim.kernel.records import (
    ARRIVED,
    CLIENT,
    FOREVER,
    LATER,
    LINK,
    MORE,
    NODE,
    NONE,
    PORT,
    READS,
    RECEIVER,
    SEGMENT,
    SENT_AGAIN,
    SIZE_MASK,
    STATE,
    TCP,
)

TIME_OUT_MAX_NS: Final = 60_000_000_000
"""The least upper bound of a time-out that RFC 6298, 2.5, allows."""
PACE_MAX_NS: Final = 2**30 - 1
"""Between segments of one record: twice of it fits a record's field."""
DUPLICATES: Final = 3
"""Acknowledgments of the same segment, after which the next one counts as lost."""


@inlined_part
def allocate_segment(state: Any) -> int:
    """Allocate a record from the free list, which every event finds long enough for its needs."""
    broker = row(state, 0, STATE)
    place = wide(broker.segment_free)
    segment = row(broker.segments, place, SEGMENT)
    broker.segment_free = segment.next
    segment.next = NONE
    segment.count = 1
    broker.segments_left -= 1
    if broker.segments_left < broker.segments_room:
        broker.short = 1
    return place


@inlined_part
def append(state: Any, first: int, last: int) -> tuple[int, int]:
    """Append a record to the list from `first` (NONE where it is empty) to `last`; return its new ends."""
    place = allocate_segment(state)
    if first == NONE:
        return place, place
    row(row(state, 0, STATE).segments, last, SEGMENT).next = place
    return first, place


@inlined_part
def append_answer(state: Any, c: int) -> Any:
    """Append an acknowledgment to those in flight to the sender; return its record."""
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    first, last = append(state, wide(tcp.answer_first), wide(tcp.answer_last))
    tcp.answer_first = first
    tcp.answer_last = last
    return row(broker.segments, last, SEGMENT)


@inlined_part
def append_segment(state: Any, c: int, t: int, size: int, count: int) -> int:
    """Append `count` new segments of `size` bytes, sent at `t`, to those in flight.

    Return the index of their record.
    """
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    first, place = append(state, wide(tcp.first), wide(tcp.last))
    tcp.first = first
    tcp.last = place
    segment = row(broker.segments, place, SEGMENT)
    segment.time = t
    segment.number = tcp.newest
    segment.bytes = size
    segment.marks = 0
    segment.count = count
    tcp.newest += count
    tcp.upcoming = tcp.newest
    row(broker.clients, c, CLIENT).inflight += size * count
    return place


@inlined_part
def release_segment(state: Any, place: int) -> None:
    """Return a record to the free list."""
    broker = row(state, 0, STATE)
    row(broker.segments, place, SEGMENT).next = broker.segment_free
    broker.segment_free = place
    broker.segments_left += 1


@inlined_part
def return_acknowledgment(state: Any, c: int, arrived: int, back: int) -> None:
    """Have the receiver acknowledge all segments received in order; the sender receives it at `arrived` + `back`.

    A delayed acknowledgment that is still unsent at `arrived` is replaced by this one.
    """
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    if tcp.delayed_until < arrived:
        append_answer(state, c)
        if tcp.received == tcp.answered:
            tcp.repeated = arrived + back
    tcp.delayed_until = NONE
    tcp.answered = tcp.received
    answer = row(broker.segments, tcp.answer_last, SEGMENT)
    answer.time = arrived + back
    answer.number = tcp.received


@inlined_part
def delay_acknowledgment(state: Any, c: int, arrived: int) -> None:
    """Start the receiver's delayed acknowledgment for the segment that arrived in order at `arrived`."""
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    due = wide(arrived + tcp.delay)
    tcp.delayed_until = NONE
    return_acknowledgment(state, c, due, wide(tcp.back))
    tcp.delayed_until = due


@inlined_part
def receive_bytes(state: Any, c: int, size: int, arrived: int) -> None:
    """Record which messages are complete at a client with readers, after `size` more bytes arrived in order."""
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    tcp.bytes_arrived += size
    while tcp.arriving != NONE:
        node = row(broker.nodes, tcp.arriving, NODE)
        whole = wide(node.tag & SIZE_MASK)
        if tcp.bytes_arrived < whole:
            break
        tcp.bytes_arrived -= whole
        row(broker.later, tcp.arriving, LATER).reached = arrived
        tcp.arriving = node.next


@part
def arrive_at_client(state: Any, c: int, place: int, arrived: int) -> None:
    """Receive a segment at the client's end at `arrived`, and decide on its acknowledgment."""
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    segment = row(broker.segments, place, SEGMENT)
    back = wide(tcp.back)
    if segment.number != tcp.received:
        if segment.number > tcp.received and segment.marks & ARRIVED == 0:
            segment.marks |= ARRIVED
            tcp.beyond += 1
        return_acknowledgment(state, c, arrived, back)
        return
    reads = row(broker.clients, c, CLIENT).traits & READS != 0
    filled = tcp.beyond != 0
    segment.marks |= ARRIVED
    if not filled and not reads:
        tcp.received += 1
        if tcp.delay == 0 or tcp.delayed_until >= arrived:
            return_acknowledgment(state, c, arrived, back)
        else:
            delay_acknowledgment(state, c, arrived)
        return
    tcp.beyond += 1
    here = place
    while here != NONE:
        next_one = row(broker.segments, here, SEGMENT)
        if next_one.marks & ARRIVED == 0:
            break
        tcp.received += 1
        tcp.beyond -= 1
        if reads:
            receive_bytes(state, c, wide(next_one.bytes), arrived)
        here = wide(next_one.next)
    if filled or tcp.delay == 0 or tcp.delayed_until >= arrived:
        return_acknowledgment(state, c, arrived, back)
    else:
        delay_acknowledgment(state, c, arrived)


@part
def arrive_in_turn(state: Any, c: int, arrived: int, pace: int, count: int) -> None:
    """Receive `count` segments in order, the first at `arrived` and each next one `pace` later.

    The receiver acknowledges each of them, or every second one; its timer does not expire between two of them.
    """
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    left = count
    here = arrived
    each = wide(1)
    if tcp.delay != 0:
        each = wide(2)
        if tcp.delayed_until >= here:
            tcp.received += 1
            return_acknowledgment(state, c, here, wide(tcp.back))
            here += pace
            left -= 1
    answers = left // each
    if answers > 0:
        answer = append_answer(state, c)
        answer.time = here + (each - 1) * pace + tcp.back
        answer.number = tcp.received + each
        answer.bytes = each * pace
        answer.marks = each
        answer.count = answers
        tcp.received += each * answers
        tcp.answered = tcp.received
        tcp.delayed_until = NONE
        here += each * answers * pace
    if left > each * answers:
        tcp.received += 1
        delay_acknowledgment(state, c, here)


@part
def transmit(state: Any, c: int, t: int, place: int) -> int:
    """Send a segment at `t`, for the first time or again; return the time at which its last byte leaves the port."""
    broker = row(state, 0, STATE)
    more = row(broker.more, c, MORE)
    tcp = row(broker.connections, more.connection, TCP)
    segment = row(broker.segments, place, SEGMENT)
    client = row(broker.clients, c, CLIENT)
    size = wide(segment.bytes)
    depart = leave_port(broker.ports, wide(client.port), t, size)
    left = depart
    if client.traits & LINK:
        left = max(wide(more.link_free), depart) + serialization(size, more.link_num, more.link_den)
        more.link_free = left
    draw = wide(more.sent)
    more.sent += 1
    if uniform_bits(more.key, draw) >= more.loss:
        arrive_at_client(state, c, place, wide(left + tcp.forth))
    if tcp.due == FOREVER:
        tcp.due = t + tcp.time_out
    return depart


@inlined_part
def send_again(state: Any, c: int, t: int, place: int) -> None:
    """Send the first segment of a record again, after moving the record's other segments to a record of their own."""
    broker = row(state, 0, STATE)
    segment = row(broker.segments, place, SEGMENT)
    if segment.count > 1:
        rest_place = allocate_segment(state)
        rest = row(broker.segments, rest_place, SEGMENT)
        rest.time = segment.time
        rest.number = segment.number + 1
        rest.bytes = segment.bytes
        rest.marks = segment.marks
        rest.next = segment.next
        rest.count = segment.count - 1
        segment.next = rest_place
        segment.count = 1
        tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
        if tcp.last == place:
            tcp.last = rest_place
    segment.marks |= SENT_AGAIN
    row(broker.more, c, MORE).retransmissions += 1
    transmit(state, c, t, place)


@inlined_part
def new_segment_size(state: Any, c: int) -> int:
    """Return the bytes of the next new segment that both windows allow in addition to those in flight; 0 if none."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    more = row(broker.more, c, MORE)
    tcp = row(broker.connections, more.connection, TCP)
    size = min(wide(more.mss), wide(tcp.unsent_bytes))
    if tcp.upcoming != tcp.oldest and client.inflight + size > client.window_max:
        return wide(0)
    if client.traits & READS:
        receiver = row(broker.receivers, c, RECEIVER)
        if receiver.occupied > 0 and receiver.occupied + size > receiver.buffer:
            if receiver.occupied > tcp.bytes_sent:
                return wide(0)
            rest = (row(broker.nodes, client.unsent, NODE).tag & SIZE_MASK) - tcp.bytes_sent
            size = min(size, wide(rest))
    return size


@inlined_part
def cut_segment(state: Any, c: int, t: int, size: int) -> None:
    """Send the next `size` bytes of the transmit queue as a new segment."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    place = append_segment(state, c, t, size, wide(1))
    tcp.unsent_bytes -= size
    if client.traits & READS:
        row(broker.receivers, c, RECEIVER).occupied += size
        if tcp.arriving == NONE:
            tcp.arriving = client.unsent
    depart = transmit(state, c, t, place)
    leave_queue(state, c, size, depart, wide(0), size)


@inlined_part
def leave_queue(state: Any, c: int, size: int, depart: int, pace: int, sent: int) -> None:
    """Record departure times of the messages whose last bytes are among the next `sent` bytes of the transmit queue.

    The first `size` of these bytes leave the port at `depart`, and each further `size` bytes `pace` later.
    """
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    node = wide(client.unsent)
    end = -wide(tcp.bytes_sent)
    tcp.bytes_sent += sent
    while node != NONE:
        whole = wide(row(broker.nodes, node, NODE).tag & SIZE_MASK)
        if tcp.bytes_sent < whole:
            break
        tcp.bytes_sent -= whole
        end += whole
        row(broker.nodes, node, NODE).time = depart
        if pace != 0:
            row(broker.nodes, node, NODE).time += quotient(end - 1, size) * pace
        node = wide(row(broker.nodes, node, NODE).next)
    client.unsent = node


@inlined_part
def next_of_connection(state: Any, c: int) -> int:
    """Return the time of the next acknowledgment or of the end of the retransmission timer; FOREVER for neither."""
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    due = wide(tcp.due)
    if tcp.answer_first != NONE:
        due = min(due, wide(row(broker.segments, tcp.answer_first, SEGMENT).time))
    return due


@inlined_part
def sent_in_turn(state: Any, c: int, allowed: int, size: int) -> int:
    """Return the number of segments of `size` bytes that may be sent now and arrive in order, none of them lost.

    Nothing happens between them: they are sent at one instant, and share one record. 0 where the first of them is lost
    or out of order, and where the client has readers or a link of its own, which has another pace.
    """
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    more = row(broker.more, c, MORE)
    tcp = row(broker.connections, more.connection, TCP)
    if tcp.received != tcp.newest or client.traits & (READS | LINK) != 0:
        return wide(0)
    most = wide(1)
    left = min(wide(tcp.unsent_bytes), wide(client.window_max - client.inflight))
    if left >= 2 * size:
        port = row(broker.ports, client.port, PORT)
        pace = serialization(size, port.num, port.den)
        if pace <= PACE_MAX_NS and (tcp.delay == 0 or tcp.delay >= pace):
            most = wide(allowed - (tcp.newest - tcp.oldest))
    count = wide(0)
    while count < most and left >= size and uniform_bits(more.key, more.sent + count) >= more.loss:
        left -= size
        count += 1
    return count


@inlined_part
def send_alike(state: Any, c: int, t: int, size: int, count: int) -> int:
    """Send `count` new segments of `size` bytes at `t`, none of which is lost.

    Returns the time at which the last byte leaves the port.
    """
    broker = row(state, 0, STATE)
    more = row(broker.more, c, MORE)
    tcp = row(broker.connections, more.connection, TCP)
    begin, pace = leave_port_in_turn(broker.ports, wide(row(broker.clients, c, CLIENT).port), t, size, count)
    row(broker.segments, append_segment(state, c, t, size, count), SEGMENT).marks = ARRIVED
    more.sent += count
    if tcp.due == FOREVER:
        tcp.due = t + tcp.time_out
    arrive_in_turn(state, c, wide(begin + pace + tcp.forth), pace if count > 1 else wide(0), count)
    return wide(begin + count * pace)


@inlined_part
def cut_segments(state: Any, c: int, t: int, size: int, count: int) -> None:
    """Send the next bytes of the transmit queue as `count` new segments of `size` bytes, none of which is lost."""
    broker = row(state, 0, STATE)
    row(broker.connections, row(broker.more, c, MORE).connection, TCP).unsent_bytes -= size * count
    last = send_alike(state, c, t, size, count)
    pace = wide(0)
    if count > 1:
        port = row(broker.ports, row(broker.clients, c, CLIENT).port, PORT)
        pace = wide(serialization(size, port.num, port.den))
    leave_queue(state, c, size, last - (count - 1) * pace, pace, size * count)


@inlined_part
def arrives_in_order(state: Any, c: int, size: int) -> bool:
    """Return whether a message can be sent at once, before any other, and all its segments arrive in order.

    True also where returned acknowledgments are still unprocessed.
    """
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    more = row(broker.more, c, MORE)
    tcp = row(broker.connections, more.connection, TCP)
    if tcp.received != tcp.newest or tcp.upcoming != tcp.newest or tcp.recovering != 0 or tcp.duplicates != 0:
        return False
    mss = wide(more.mss)
    open_segments = wide(tcp.window - (tcp.newest - tcp.oldest))
    if open_segments * mss < size or client.inflight + size > client.window_max:
        return False
    count = wide(1)
    if size > mss:
        port = row(broker.ports, client.port, PORT)
        pace = serialization(mss, port.num, port.den)
        if pace > PACE_MAX_NS or (tcp.delay != 0 and tcp.delay < pace):
            return False
        count = quotient(size + mss - 1, mss)
    least = uniform_bits(more.key, more.sent)
    for draw in range(more.sent + 1, more.sent + count):
        least = min(least, uniform_bits(more.key, draw))  # all of them, side by side: nearly always none is below
    return bool(least >= more.loss)


@inlined_part
def send_in_order(state: Any, c: int, t: int, size: int) -> int:
    """Send a message for which `arrives_in_order` is true at `t`; return when its last byte leaves the port."""
    broker = row(state, 0, STATE)
    mss = wide(row(broker.more, c, MORE).mss)
    depart = wide(t)
    last = wide(size)
    if size > mss:
        count = quotient(size, mss)
        last -= count * mss
        depart = send_alike(state, c, t, mss, count)
    if last > 0:
        depart = send_alike(state, c, t, last, wide(1))
    expect(state, c, next_of_connection(state, c))
    return depart


@part
def send_segments(state: Any, c: int, t: int) -> None:
    """Send the segments that the windows allow at `t`: first those to be sent again after a time-out, then new ones."""
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    allowed = wide(tcp.window)
    if tcp.recovering == 0:
        allowed += tcp.duplicates  # of which there are at most two then
    begin = wide(row(broker.more, c, MORE).sent)
    while tcp.upcoming < tcp.newest and (tcp.upcoming == tcp.oldest or tcp.upcoming - tcp.oldest < allowed):
        place = wide(tcp.first) if tcp.upcoming == tcp.oldest else wide(tcp.again)
        tcp.upcoming += 1
        send_again(state, c, t, place)
        tcp.again = row(broker.segments, place, SEGMENT).next
    while tcp.unsent_bytes > 0 and tcp.upcoming == tcp.newest:
        if tcp.upcoming != tcp.oldest and tcp.upcoming - tcp.oldest >= allowed:
            break
        size = min(wide(row(broker.more, c, MORE).mss), wide(tcp.unsent_bytes))
        count = sent_in_turn(state, c, allowed, size)
        if count > 0:
            cut_segments(state, c, t, size, count)
            continue
        size = new_segment_size(state, c)
        if size == 0:
            break
        cut_segment(state, c, t, size)
    if row(broker.more, c, MORE).sent != begin:
        expect(state, c, next_of_connection(state, c))


@inlined_part
def expects_no_loss(state: Any, c: int) -> bool:
    """Return whether all segments in flight have arrived and are acknowledged before any time-out.

    Nothing is sent again then, so that the acknowledgments can remain unprocessed until the client has something to
    send.
    """
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    if tcp.newest == tcp.oldest:
        return bool(tcp.duplicates == 0 and tcp.answer_first == NONE)
    if tcp.received != tcp.newest or tcp.upcoming != tcp.newest or tcp.recovering != 0 or tcp.duplicates != 0:
        return False
    first = wide(row(broker.segments, tcp.answer_first, SEGMENT).time)
    answer = row(broker.segments, tcp.answer_last, SEGMENT)
    last = wide(answer.time)
    if answer.count > 1:
        last += (answer.count - 1) * answer.bytes
    return bool(first > tcp.repeated and last <= min(wide(tcp.due), first + tcp.least_time_out))


@part
def take_acknowledgment(state: Any, c: int, t: int) -> bool:
    """Process the event whose time `next_of_connection` returned: an acknowledgment received at `t`, else the time-out.

    Returns whether new bytes were acknowledged; `bytes_acknowledged` counts them.
    """
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    place = wide(tcp.answer_first)
    if place == NONE or row(broker.segments, place, SEGMENT).time != t:
        time_out(state, c)
        return False
    answer = row(broker.segments, place, SEGMENT)
    upto = wide(answer.number)
    if answer.count > 1:
        answer.count -= 1
        answer.time += answer.bytes
        answer.number += answer.marks
    else:
        tcp.answer_first = answer.next
        release_segment(state, place)
    if upto > tcp.oldest:
        advance_to(state, c, t, upto)
        return True
    if tcp.newest > tcp.oldest:
        take_duplicate(state, c, t)
    return False


@inlined_part
def acknowledge_before(state: Any, c: int, t: int, upto: int) -> None:
    """Remove the segments before `upto`, which an acknowledgment at `t` covers, and measure their round trip."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    sent = wide(row(broker.segments, tcp.first, SEGMENT).time)
    marks = wide(0)
    size = wide(0)
    left = wide(upto - tcp.oldest)
    while left > 0:
        place = wide(tcp.first)
        segment = row(broker.segments, place, SEGMENT)
        marks |= segment.marks
        count = min(wide(segment.count), left)
        size += count * segment.bytes
        left -= count
        if count < segment.count:
            segment.number += count
            segment.count -= count
        else:
            tcp.first = segment.next
            release_segment(state, place)
    client.inflight -= size
    tcp.bytes_acknowledged += size
    tcp.oldest = upto
    if marks & SENT_AGAIN == 0:  # else it is unknown which copy was acknowledged (Karn)
        measured = t - sent
        tcp.variation = (3 * tcp.variation + abs(tcp.smoothed - measured)) >> 2
        tcp.smoothed = (7 * tcp.smoothed + measured) >> 3


@inlined_part
def acknowledge_in_turn(state: Any, c: int, place: int, until: int) -> int:
    """Process several acknowledgments of one record in one step; return the time of the last one, or NONE for none.

    These are those up to `until`, except the record's last one, of segments of one record and before the last byte of
    the first message.
    """
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    answer = row(broker.segments, place, SEGMENT)
    segment = row(broker.segments, tcp.first, SEGMENT)
    each = wide(answer.marks)
    if answer.number - tcp.oldest != each or segment.marks & SENT_AGAIN:
        return wide(NONE)
    size = wide(segment.bytes)
    rest = wide((row(broker.nodes, client.head, NODE).tag & SIZE_MASK) - tcp.bytes_acknowledged)
    left = wide(segment.count)
    more = wide(answer.count - 1)
    pace = wide(answer.bytes)
    t = wide(answer.time)
    sent = wide(segment.time)
    variation, smoothed = wide(tcp.variation), wide(tcp.smoothed)
    window, threshold, credit, most = wide(tcp.window), wide(tcp.threshold), wide(tcp.credit), wide(tcp.most)
    reno = tcp.cubic == 0
    while more > 0 and t <= until and each < left and each * size < rest and (reno or window < threshold):
        variation = (3 * variation + abs(smoothed - (t - sent))) >> 2
        smoothed = (7 * smoothed + (t - sent)) >> 3
        window, credit = opened(window, threshold, credit, each)
        window = min(window, most)
        t += pace
        left -= each
        rest -= each * size
        more -= 1
    done = wide(segment.count - left)
    if done == 0:
        return wide(NONE)
    tcp.variation = variation
    tcp.smoothed = smoothed
    tcp.window = window
    tcp.credit = credit
    tcp.oldest += done
    tcp.bytes_acknowledged += done * size
    client.inflight -= done * size
    segment.count = left
    segment.number += done
    answer.count = more + 1
    answer.number += done
    answer.time = t
    return wide(t - pace)


@inlined_part
def start_timer_again(state: Any, c: int, t: int) -> None:
    """Restart the retransmission timer at `t`, when new segments were acknowledged and others are in flight."""
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    set_time_out(state, c)
    tcp.backed_off = 0
    tcp.due = FOREVER
    if tcp.newest > tcp.oldest:
        tcp.due = t + tcp.time_out


@part
def advance_to(state: Any, c: int, t: int, upto: int) -> None:
    """Process an acknowledgment, at `t`, of all segments before `upto`, at least one of which is new."""
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    acknowledged = wide(upto - tcp.oldest)
    acknowledge_before(state, c, t, upto)
    if tcp.upcoming < upto:
        tcp.upcoming = upto
    start_timer_again(state, c, t)
    if tcp.recovering == 0:
        tcp.duplicates = 0
        grow(state, c, t, acknowledged)
    elif upto > tcp.recover:
        tcp.recovering = 0
        tcp.duplicates = 0
        tcp.credit = 0
        tcp.window = tcp.threshold
    else:
        tcp.window = max(wide(tcp.window) - acknowledged + 1, 1)
        send_again(state, c, t, wide(tcp.first))


@inlined_part
def set_time_out(state: Any, c: int) -> None:
    """Compute the retransmission time-out from the measured round trips (RFC 6298, 2)."""
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    wanted = max(wide(tcp.least_time_out), tcp.smoothed + 4 * tcp.variation)
    tcp.time_out = min(wanted, max(TIME_OUT_MAX_NS, wide(tcp.least_time_out)))


@part
def take_duplicate(state: Any, c: int, t: int) -> None:
    """Process a duplicate acknowledgment: one that covers no new segment while segments are in flight.

    Until all segments sent before the loss was noticed are acknowledged, no further loss is counted (RFC 6582, 3.2).
    """
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    if tcp.recovering != 0:
        tcp.window += 1
    elif tcp.oldest > tcp.recover:
        tcp.duplicates += 1
        if tcp.duplicates == DUPLICATES:
            note_loss(state, c)
            tcp.recovering = 1
            tcp.recover = tcp.newest - 1
            tcp.window = tcp.threshold + DUPLICATES
            send_again(state, c, t, wide(tcp.first))


@part
def time_out(state: Any, c: int) -> None:
    """Process the end of the retransmission timer: all segments in flight are sent again, in slow start."""
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    tcp.time_outs += 1
    if tcp.backed_off == 0:
        note_loss(state, c)
    tcp.backed_off = 1
    tcp.window = 1
    tcp.credit = 0
    tcp.duplicates = 0
    tcp.recovering = 0
    tcp.recover = tcp.newest - 1
    tcp.upcoming = tcp.oldest
    tcp.time_out = min(2 * tcp.time_out, max(TIME_OUT_MAX_NS, wide(tcp.least_time_out)))
    tcp.due = FOREVER  # the first segment starts it again


@part
def forget_segments(state: Any, c: int) -> None:
    """Reset the connection: nothing in flight, the initial window, no known loss, the handshake's round trip."""
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    place = wide(tcp.first) if tcp.newest > tcp.oldest else wide(NONE)
    while place != NONE:
        after = wide(row(broker.segments, place, SEGMENT).next)
        release_segment(state, place)
        place = after
    place = wide(tcp.answer_first)
    while place != NONE:
        after = wide(row(broker.segments, place, SEGMENT).next)
        release_segment(state, place)
        place = after
    tcp.first = NONE
    tcp.last = NONE
    tcp.answer_first = NONE
    tcp.answer_last = NONE
    tcp.arriving = NONE
    tcp.oldest = 0
    tcp.upcoming = 0
    tcp.newest = 0
    tcp.received = 0
    tcp.beyond = 0
    tcp.recover = NONE
    tcp.delayed_until = NONE
    tcp.answered = NONE
    tcp.repeated = NONE
    tcp.unsent_bytes = 0
    tcp.bytes_sent = 0
    tcp.bytes_acknowledged = 0
    tcp.bytes_arrived = 0
    tcp.window = tcp.initial
    tcp.threshold = FOREVER
    tcp.credit = 0
    tcp.duplicates = 0
    tcp.recovering = 0
    tcp.backed_off = 0
    tcp.due = FOREVER
    tcp.smoothed = tcp.forth + tcp.back
    tcp.variation = tcp.smoothed >> 1
    set_time_out(state, c)
    tcp.peak = 0
    tcp.prior = 0
    tcp.epoch = NONE
