"""Why a client is a slow subscriber: what limits its connection, and how captured figures show it.

A broker counts the seconds in which it had data for a client and could not send it. The causes are few, and the figures
of the connection distinguish them: the advertised window is closed (the application reads more slowly than messages
arrive), segments are lost (the congestion window stays small), the window is full (no more than a window a round trip,
W8), or none of these, so that the data waits for the link or for the port behind the window.

A guaranteed consumer that reads and acknowledges late is never a slow subscriber: its flow's window is used up before
that of TCP (W6).

Source: Message Delivery Resources, "Client Egress Queue Structure Overview"; Mathis, Semke, Mahdavi and Ott, "The
Macroscopic Behavior of the TCP Congestion Avoidance Algorithm", 1997.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from qsctl.profiles.listings.model import ClientConnection, ClientQueues, Discards, Listings, SlowSubscriber

MATHIS: Final = 1.22
"""The constant of Mathis et al. for a receiver that acknowledges each segment: throughput = 1.22 MSS ÷ (RTT √p)."""
CUBIC: Final = 1.054
"""The constant of RFC 9438, 5.1: the mean window in segments is 1.054 (RTT ÷ p)^(3/4), RTT in seconds."""
DEFAULT_MSS_BYTES: Final = 1460
_LOSS_SEEN: Final = 1e-4
"""Retransmissions a segment from which on they explain a small congestion window."""


@dataclass(frozen=True, slots=True)
class Reason:
    """The cause that limits a client, as text, with the remedy."""

    key: str
    words: str
    lever: str


REASONS: Final = {
    each.key: each
    for each in (
        Reason(
            "application", "the application reads too slowly: its receive buffer is full and the window closed",
            "a faster consumer: more readers, less work in the callback, several clients with a shared subscription; "
            "eliding, or a queue for what may not be lost",
        ),
        Reason(
            "loss", "segments are lost: TCP keeps its congestion window small",
            "the network between broker and client: errors, policers, an overbooked link; several connections",
        ),
        Reason(
            "window", "the window over the round trip is less than what is offered",
            "a larger window at both ends, or a client nearer to the broker",
        ),
        Reason(
            "link", "the link to the client is slower than what is offered",
            "a faster link, compression, fewer subscriptions, or eliding",
        ),
        Reason(
            "port", "the broker's port is full: the client shares it with all others",
            "a faster port, clients on another one, or less traffic to it",
        ),
        Reason(
            "behind", "neither window nor loss stops it: the data waits for the link or for the broker's port",
            "whichever is full: compare the rates of `show interface` with that of the link",
        ),
        Reason("unknown", "these figures do not show why", "the figures of its connection"),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of a connection: `bits_per_second` is None where no formula gives it."""

    bits_per_second: float | None = None
    round_trip_us: int = 0
    window_bytes: int = 0
    loss: float = 0.0


@dataclass(frozen=True, slots=True)
class SlowClient:
    """A client to which its broker cannot send as fast as messages arrive; None where a value is not known."""

    name: str
    reason: Reason
    evidence: str
    """The figures from which the reason follows."""
    is_slow: bool | None = None
    """Whether the broker called it a slow subscriber."""
    blocked_percent: float | None = None
    since_ns: int | None = None
    """From the start of the run, when it first became one."""
    discarded_messages: int | None = None
    limit: Limit = Limit()
    """From captured figures."""
    command: str = ""
    """A simulation that shows the mechanism, or checks the lever."""


def loss_limit_bits_per_second(mss_bytes: int, round_trip_s: float, loss: float) -> float:
    """Return the throughput of a long-lived TCP connection that loses segments with a probability (Mathis et al.)."""
    if loss <= 0 or round_trip_s <= 0:
        return math.inf
    return MATHIS * mss_bytes * 8 / (round_trip_s * math.sqrt(loss))


def cubic_loss_limit_bits_per_second(mss_bytes: int, round_trip_s: float, loss: float) -> float:
    """Return the throughput of such a connection with CUBIC, at least that without it (RFC 9438, 5.1)."""
    limit = loss_limit_bits_per_second(mss_bytes, round_trip_s, loss)
    if math.isinf(limit):
        return limit
    segments = float(CUBIC * (round_trip_s / loss) ** 0.75)
    return max(limit, segments * mss_bytes * 8 / round_trip_s)


def window_limit_bits_per_second(window_bytes: float, round_trip_s: float) -> float:
    """Return the throughput that a window allows: one window a round trip (W8)."""
    return math.inf if round_trip_s <= 0 else window_bytes * 8 / round_trip_s


def slow_clients(found: Listings) -> list[SlowClient]:
    """Return the clients of captured listings that were slow, blocked or lost messages, the slowest first.

    All listings of one client are combined: its queues, its connection, its row of `slow-subscriber`.
    """
    connections = {each.name: each for each in found.connections}
    flags = {each.name: each for each in found.slow_subscribers}
    queues = {each.name: each for each in found.clients}
    lost = {each.of: _congestion(each) for each in found.discards}
    made = []
    for name in dict.fromkeys((*flags, *connections, *queues)):
        one = _slow_client(name, flags.get(name), connections.get(name), queues.get(name), lost.get(f"client {name}"))
        if one is not None:
            made.append(one)
    return sorted(
        made, key=lambda each: (not each.is_slow, -(each.blocked_percent or 0), -(each.discarded_messages or 0))
    )


def _congestion(discards: Discards) -> int | None:
    """Return the discards by congestion, or all at egress where the statistics have no causes; None without any."""
    return dict(discards.causes).get("transmit_congestion", discards.total_egress)


def _slow_client(
    name: str,
    flag: SlowSubscriber | None,
    connection: ClientConnection | None,
    client: ClientQueues | None,
    counted: int | None,
) -> SlowClient | None:
    flags = [each.slow_subscriber for each in (flag, client) if each is not None and each.slow_subscriber is not None]
    is_slow = any(flags) if flags else None
    percents = [
        each.blocked_percent for each in (flag, connection) if each is not None and each.blocked_percent is not None
    ]
    blocked = max(percents, default=None)
    lost = _lost(client) if client is not None and client.queues else counted
    is_closed = connection is not None and _is_closed(connection)
    if not (is_slow or blocked or lost or is_closed):
        return None
    limit = Limit()
    if connection is None:
        reason, evidence = REASONS["unknown"], "no figures of its connection"
    else:
        reason, evidence, limit = _reason(connection)
    if client is not None:
        evidence = "; ".join(each for each in (evidence, _queued(client)) if each)
    return SlowClient(name, reason, evidence, is_slow, blocked, discarded_messages=lost, limit=limit)


def _lost(client: ClientQueues) -> int:
    return sum(queue.discarded_messages or 0 for queue in client.queues)


def _queued(client: ClientQueues) -> str:
    """Return the queues that are at least half full, with their depths; empty where none is."""
    full = [
        f"{each.queue} holds {length:,} of {most:,} work units"
        for each in client.queues
        if (length := each.length_work_units or 0) * 2 >= (most := each.max_depth_work_units or 0) > 0
    ]
    return ", ".join(full)


def _is_closed(connection: ClientConnection) -> bool:
    """Return whether the client advertises a window of less than a segment."""
    window = connection.advertised_window_bytes
    return window is not None and window < (connection.maximum_segment_bytes or DEFAULT_MSS_BYTES)


def _reason(connection: ClientConnection) -> tuple[Reason, str, Limit]:
    """Return what limits a connection, the figures that show it, and the limit itself."""
    advertised, congestion = connection.advertised_window_bytes, connection.congestion_window_bytes
    mss = connection.maximum_segment_bytes or DEFAULT_MSS_BYTES
    waiting = connection.send_queue_bytes
    round_trip_us = connection.round_trip_us or 0
    if _is_closed(connection):
        more = "" if not waiting else f", while {waiting:,} B wait in its TCP transmit queue"
        words = f"it advertises a window of {advertised:,} B, less than a segment{more}"
        return REASONS["application"], words, Limit(0.0, round_trip_us)
    if advertised is None and congestion is None:
        return REASONS["unknown"], "; ".join(("its listing has no windows", *_known(connection))), Limit()
    loss = _loss(connection, mss)
    window = min(each for each in (advertised, congestion) if each is not None)
    is_small = congestion is not None and (advertised is None or congestion < advertised)
    if is_small and loss >= _LOSS_SEEN:
        rate = loss_limit_bits_per_second(mss, round_trip_us / 1e6, loss)
        limit = Limit(None if math.isinf(rate) else rate, round_trip_us, advertised or 0, loss)
        return REASONS["loss"], _loss_words(connection, mss, limit), limit
    if waiting is None:
        return REASONS["unknown"], "its listing has no Send-Q", Limit()
    if waiting < window - mss:
        words = f"{waiting:,} B in its TCP transmit queue are less than the window of {window:,} B"
        return REASONS["behind"], words, Limit(None, round_trip_us, window)
    rate = window_limit_bits_per_second(window, round_trip_us / 1e6)
    limit = Limit(None if math.isinf(rate) else rate, round_trip_us, window)
    kind = "congestion" if is_small else "advertised"
    return REASONS["window"], f"its {kind} window of {window:,} B is in flight{_rate_words(limit)}", limit


def _known(connection: ClientConnection) -> Iterator[str]:
    """Yield a phrase for each other figure of a connection whose listing has no windows."""
    if connection.send_queue_bytes:
        yield f"{connection.send_queue_bytes:,} B wait in its TCP transmit queue"
    if connection.fast_retransmits is not None or connection.timed_retransmits is not None:
        again = (connection.fast_retransmits or 0) + (connection.timed_retransmits or 0)
        yield f"{again:,} retransmission{'s' * (again != 1)}"
    if connection.round_trip_us is not None:
        yield f"a round trip of {connection.round_trip_us / 1000:g} ms"


def _loss(connection: ClientConnection, mss: int) -> float:
    """Return the number of retransmissions per segment, at most 1; 0 where they are not listed.

    The broker counts bytes in 32 bits: of a connection that sent more than 4 GiB it is too large.
    """
    again = (connection.fast_retransmits or 0) + (connection.timed_retransmits or 0)
    return min(1.0, again / max(1.0, connection.sent_bytes / mss)) if connection.sent_bytes else 0.0


def _loss_words(connection: ClientConnection, mss: int, limit: Limit) -> str:
    fast, timed = connection.fast_retransmits or 0, connection.timed_retransmits or 0
    segments = (connection.sent_bytes or 0) / mss
    return (
        f"{fast:,} fast and {timed:,} timed retransmissions in {segments:,.0f} segments ({100 * limit.loss:.2g} %)"
        f"{_rate_words(limit)}"
    )


def _rate_words(limit: Limit) -> str:
    if limit.bits_per_second is None:
        return ""
    return f": about {limit.bits_per_second / 1e6:.1f} Mbit/s at a round trip of {limit.round_trip_us / 1000:g} ms"
