"""The observed rates, sizes and limits of each client, from captured counters of one instant or of two.

The difference of two captures counts the messages between them. A single capture contains counts since the client
connected, or the broker's averages of the last minute; where it contains neither, the rate is unknown.

Decides: how listings of one client are merged, how long the time between two captures was, and that a counter that
decreased (the client reconnected, or the statistics were cleared) counts from zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from qsctl.errors import InvalidInput
from qsctl.profiles.client_profile import Queue
from qsctl.profiles.listings.model import (
    ClientConnection,
    ClientQueues,
    ClientStatistics,
    EgressFlow,
    ListedQueueStatistics,
    Listings,
    SlowSubscriber,
)
from qsctl.profiles.listings.slowness import SlowClient, slow_clients


@dataclass(frozen=True, slots=True)
class ObservedQueue:
    """The captured figures of one priority queue of a client; rates in messages a second."""

    arrived_per_s: float
    discarded_per_s: float
    arrived_messages: int
    discarded_messages: int
    """The number of `arrived_messages` that were discarded, between the captures or in the time that one covers."""
    depth_work_units: int
    high_water_mark_work_units: int
    max_depth_work_units: int

    @property
    def loss(self) -> float:
        """The share of arrived messages that were discarded; 0 without arrivals."""
        return self.discarded_messages / self.arrived_messages if self.arrived_messages else 0.0


@dataclass(frozen=True, slots=True)
class ObservedClient:
    """The captured figures of one client; None: no capture contains the figure."""

    name: str
    message_vpn: str
    profile: str
    queues: Mapping[Queue, ObservedQueue]
    mean_size_bytes: float | None = None
    round_trip_us: int | None = None
    is_slow: bool | None = None
    blocked_percent: float | None = None
    uptime_s: int | None = None
    flows: int | None = None
    window_messages: int | None = None
    """The window of one flow of guaranteed messages, in messages."""
    trouble: SlowClient | None = None
    """The limit that slows the client, derived from the figures of its connection; None: it has no trouble."""

    @property
    def is_troubled(self) -> bool:
        """Return whether the client lost messages, or was slow or blocked."""
        return self.trouble is not None

    @property
    def delivered_per_s(self) -> float:
        """The messages a second that its queues accepted: arrived minus discarded."""
        return sum(each.arrived_per_s - each.discarded_per_s for each in self.queues.values())


@dataclass(frozen=True, slots=True)
class CapturedClients:
    """The captured clients of a broker, with remarks on the figures (`notes`) for the user."""

    clients: tuple[ObservedClient, ...]
    seconds: float | None
    """The time between the two captures; None: there was only one."""
    error_s: float = 0.0
    """Largest error of `seconds`: uptimes are whole seconds."""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Listed:
    """The rows of all listings of one capture that concern one client."""

    queues: ClientQueues | None = None
    statistics: ClientStatistics | None = None
    connection: ClientConnection | None = None
    flag: SlowSubscriber | None = None
    flows: list[EgressFlow] = field(default_factory=list)

    @property
    def uptime_s(self) -> int | None:
        found = (each.uptime_s for each in (self.queues, self.statistics, self.connection) if each is not None)
        return next((each for each in found if each is not None), None)

    @property
    def sent_bytes(self) -> int | None:
        """Bytes sent to the client: the count of its messages, or where it is missing, that of its connection."""
        if self.statistics is not None and self.statistics.sent_bytes is not None:
            return self.statistics.sent_bytes
        return None if self.connection is None else self.connection.sent_bytes


@dataclass(slots=True)
class _Capture:
    """The clients of one capture by message VPN and name."""

    by_key: dict[tuple[str, str], _Listed] = field(default_factory=dict)

    def of(self, vpn: str | None, name: str) -> _Listed:
        return self.by_key.setdefault((vpn or "default", name), _Listed())


def observe(after: Listings, before: Listings | None = None, seconds: float | None = None) -> CapturedClients:
    """Return the figures of a broker's clients from one capture or two.

    Args:
        after: the capture; of two, the later one.
        before: the earlier capture, or None.
        seconds: the time between the two; None: the difference of the clients' uptimes.

    Raises:
        InvalidInput: the later capture contains no client, or the time between the two cannot be determined.
    """
    late = _by_client(after)
    if not late.by_key:
        raise InvalidInput(
            "the capture has no client with figures",
            remedy="Capture `show client * stats queue` and `show client * connections wide`, or ask the broker.",
        )
    early = _Capture() if before is None else _by_client(before)
    between = _seconds_between(early, late, seconds) if before is not None else None
    troubles = {each.name: each for each in slow_clients(after)}
    clients, unknown = [], 0
    for (vpn, name), listed in late.by_key.items():
        queues = _queues(listed, early.by_key.get((vpn, name)), between, is_first=before is None)
        unknown += queues is None
        clients.append(_client(vpn, name, listed, early.by_key.get((vpn, name)), queues or {}, troubles.get(name)))
    notes = list(after.notes)
    if before is None:
        notes.append("One capture has no rates but those since each client connected: a second one has those of now.")
    if unknown:
        notes.append(f"{unknown} of {len(clients)} clients have no rate: no messages are simulated for them.")
    return CapturedClients(tuple(clients), between, 1.0 if seconds is None else 0.0, tuple(notes))


def _by_client(found: Listings) -> _Capture:
    capture = _Capture()
    for client in found.clients:
        capture.of(client.message_vpn, client.name).queues = client
    for statistics in found.statistics:
        capture.of(statistics.message_vpn, statistics.name).statistics = statistics
    for connection in found.connections:
        capture.of(connection.message_vpn, connection.name).connection = connection
    for flow in found.flows:
        capture.of(flow.message_vpn, flow.name).flows.append(flow)
    for flag in found.slow_subscribers:
        capture.of(flag.message_vpn, flag.name).flag = flag
    return capture


def _seconds_between(early: _Capture, late: _Capture, given: float | None) -> float:
    """Return the time between the captures: the median over clients that stayed connected.

    Raises:
        InvalidInput: no client has an uptime, or the uptimes show the reverse order.
    """
    if given is not None:
        return given
    differences = [
        now - then
        for key, listed in late.by_key.items()
        if key in early.by_key
        and (now := listed.uptime_s) is not None
        and (then := early.by_key[key].uptime_s) is not None
    ]
    between = float(median(differences)) if differences else 0.0
    if between <= 0:
        found = f": uptimes differ by {between:g} s" if differences else ""
        raise InvalidInput(
            f"how long the second capture is after the first is not known{found}",
            remedy="Give it with --interval, and the earlier capture first.",
        )
    return between


def _queues(
    now: _Listed, then: _Listed | None, between: float | None, *, is_first: bool
) -> dict[Queue, ObservedQueue] | None:
    """Return a client's priority queues with their rates, or None where no rate is known."""
    if now.queues is not None and now.queues.queues:
        seconds = now.uptime_s if is_first else between
        if not seconds:
            return None
        before = {} if then is None or then.queues is None else {each.queue: each for each in then.queues.queues}
        return {
            Queue(row.queue): _queue(row, before.get(row.queue), seconds)
            for row in now.queues.queues
            if row.queue in set(Queue)
        }
    return _of_statistics(now.statistics, None if then is None else then.statistics, between, is_first=is_first)


def _queue(row: ListedQueueStatistics, before: ListedQueueStatistics | None, seconds: float) -> ObservedQueue:
    lost, delivered, held = _counts(row)
    if before is not None:
        lost_before, delivered_before, held_before = _counts(before)
        if lost >= lost_before and delivered >= delivered_before:
            lost, delivered, held = lost - lost_before, delivered - delivered_before, held - held_before
    arrived = max(0, lost + delivered + held)
    return ObservedQueue(
        arrived / seconds, lost / seconds, arrived, lost, row.length_work_units or 0,
        row.high_water_mark_work_units or 0, row.max_depth_work_units or 0,
    )  # fmt: skip


def _counts(row: ListedQueueStatistics) -> tuple[int, int, int]:
    """Return the discarded, delivered and queued messages of a row; an unreadable figure counts as 0."""
    return row.discarded_messages or 0, row.delivered_messages or 0, row.length_messages or 0


def _of_statistics(
    now: ClientStatistics | None, then: ClientStatistics | None, between: float | None, *, is_first: bool
) -> dict[Queue, ObservedQueue] | None:
    """Return a client's messages as one queue of direct messages: its statistics do not distinguish priorities."""
    if now is None or now.sent_messages is None:
        return None
    sent, lost = now.sent_messages, now.discarded_messages or 0
    if is_first:
        if not now.uptime_s:
            return None
        seconds = float(now.uptime_s)
    else:
        if between is None:
            return None
        seconds = between
        if then is not None and (then.sent_messages or 0) <= sent and (then.discarded_messages or 0) <= lost:
            sent -= then.sent_messages or 0
            lost -= then.discarded_messages or 0
    arrived = sent + lost
    return {Queue.D_1: ObservedQueue(arrived / seconds, lost / seconds, arrived, lost, 0, 0, 0)}


def _client(
    vpn: str,
    name: str,
    now: _Listed,
    then: _Listed | None,
    queues: Mapping[Queue, ObservedQueue],
    trouble: SlowClient | None,
) -> ObservedClient:
    profile = next(
        (each.client_profile for each in (now.queues, now.statistics) if each is not None and each.client_profile), ""
    )
    flags = [each.slow_subscriber for each in (now.queues, now.statistics, now.flag) if each is not None]
    known = [each for each in flags if each is not None]
    blocked = [each.blocked_percent for each in (now.connection, now.flag) if each is not None]
    return ObservedClient(
        name,
        vpn,
        profile or "default",
        queues,
        mean_size_bytes=_mean_size(now, then),
        round_trip_us=None if now.connection is None else now.connection.round_trip_us,
        is_slow=any(known) if known else None,
        blocked_percent=max((each for each in blocked if each is not None), default=None),
        uptime_s=now.uptime_s,
        flows=len(now.flows) or None,
        window_messages=max((each.window_messages or 0 for each in now.flows), default=0) or None,
        trouble=trouble,
    )


def _mean_size(now: _Listed, then: _Listed | None) -> float | None:
    """Return the mean size in bytes of the messages sent to a client, or None where bytes or messages are unknown."""
    sent, octets = _sent(now), now.sent_bytes
    if sent is None or octets is None:
        return None
    if then is not None:
        before, octets_before = _sent(then), then.sent_bytes
        if before is not None and octets_before is not None and before < sent and octets_before < octets:
            sent, octets = sent - before, octets - octets_before
    return octets / sent if sent and octets else None


def _sent(listed: _Listed) -> int | None:
    if listed.statistics is not None and listed.statistics.sent_messages is not None:
        return listed.statistics.sent_messages
    if listed.queues is None or not listed.queues.queues:
        return None
    return sum(each.delivered_messages or 0 for each in listed.queues.queues)
