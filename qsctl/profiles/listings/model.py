"""The content of a listing, independent of its form: clients and their queues, neighbours, connections, discards.

Counts are messages, depths work units of 2,048 bytes. None: the listing lacks it ("unspecified").
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

PRIORITY_QUEUES: Final = ("G-1", "D-1", "D-2", "D-3", "C-1")
"""Of a client, lowest priority first [SOL-QUEUES, "Showing Client Stats Queue"]."""

NEIGHBOR_QUEUES: Final = PRIORITY_QUEUES[:4]
"""Of each data connection of a neighbour link [SOL-QUEUES, "Showing CSPF Neighbor Stats Queues"]."""

APPLICATION_QUEUE: Final = "egress"
"""The one queue of a TIBCO client [P7500]."""

LARGEST_COUNT: Final = 2**64 - 1
"""Of the broker's counters."""


@dataclass(frozen=True, slots=True)
class ListedQueueStatistics:
    """One row of a table of queues, its columns in the table's order. None: the figure could not be read."""

    queue: str
    length_messages: int | None
    length_work_units: int | None
    high_water_mark_work_units: int | None
    max_depth_work_units: int | None
    discarded_messages: int | None
    delivered_messages: int | None


@dataclass(frozen=True, slots=True)
class ClientQueues:
    """One client of `show client … stats queue`."""

    name: str
    client_type: str | None = None
    client_profile: str | None = None
    acl_profile: str | None = None
    subscriptions: int | None = None
    eliding_enabled: bool | None = None
    eliding_topics: int | None = None
    eliding_topics_high_water_mark: int | None = None
    local_priority: int | None = None
    network_priority: int | None = None
    client_id: int | None = None
    message_vpn: str | None = None
    uptime_s: int | None = None
    slow_subscriber: bool | None = None
    client_username: str | None = None
    user: str | None = None
    computer: str | None = None
    process_id: int | None = None
    description: str | None = None
    software_version: str | None = None
    software_date: str | None = None
    platform: str | None = None
    large_message: bool | None = None
    message_too_big: bool | None = None
    parse_error: bool | None = None
    max_eliding_topics: bool | None = None
    client_address: str | None = None
    """Of SEMP replies; the listing has no such line."""
    others: tuple[tuple[str, str], ...] = ()
    """Labelled lines that the sources do not name, as a newer broker may print them."""
    queues: tuple[ListedQueueStatistics, ...] = ()


@dataclass(frozen=True, slots=True)
class ControlQueue:
    """One row of a neighbour's control queues."""

    queue: str
    length_messages: int | None
    high_water_mark_messages: int | None


@dataclass(frozen=True, slots=True)
class NeighborConnection:
    """One of the TCP data connections of a neighbour link: Conn-1 to Conn-4."""

    name: str
    queues: tuple[ListedQueueStatistics, ...]


@dataclass(frozen=True, slots=True)
class NeighborQueues:
    """One neighbour of `show cspf neighbor … stats queues`."""

    name: str
    connect_via: str | None = None
    control_port: str | None = None
    others: tuple[tuple[str, str], ...] = ()
    control_queues: tuple[ControlQueue, ...] = ()
    connections: tuple[NeighborConnection, ...] = ()


@dataclass(frozen=True, slots=True)
class SlowSubscriber:
    """One client of `show client … slow-subscriber`."""

    name: str
    message_vpn: str | None = None
    client_username: str | None = None
    client_address: str | None = None
    slow_subscriber: bool | None = None
    blocked_percent: float | None = None
    """Seconds of the last minute in which it had data to send and could not, with penalties, in percent."""


@dataclass(frozen=True, slots=True)
class ClientConnection:
    """One connection of `show client … connections wide`."""

    name: str
    message_vpn: str | None = None
    client_address: str | None = None
    local_address: str | None = None
    state: str | None = None
    receive_queue_bytes: int | None = None
    send_queue_bytes: int | None = None
    maximum_segment_bytes: int | None = None
    sent_bytes: int | None = None
    round_trip_us: int | None = None
    advertised_window_bytes: int | None = None
    congestion_window_bytes: int | None = None
    fast_retransmits: int | None = None
    timed_retransmits: int | None = None
    uptime_s: int | None = None
    blocked_percent: float | None = None


@dataclass(frozen=True, slots=True)
class ClientStatistics:
    """The traffic sent to one client and received from it, of all its queues together, by SEMP v2 monitoring.

    Counts are of data messages where the broker keeps these apart; rates are its averages over the last minute.
    """

    name: str
    message_vpn: str | None = None
    client_profile: str | None = None
    client_username: str | None = None
    client_address: str | None = None
    uptime_s: int | None = None
    slow_subscriber: bool | None = None
    eliding_enabled: bool | None = None
    eliding_topics: int | None = None
    eliding_topics_high_water_mark: int | None = None
    sent_messages: int | None = None
    sent_bytes: int | None = None
    received_messages: int | None = None
    received_bytes: int | None = None
    discarded_messages: int | None = None
    """Discarded messages on their way to the client (egress)."""
    sent_messages_per_second: int | None = None
    sent_bytes_per_second: int | None = None
    received_messages_per_second: int | None = None
    received_bytes_per_second: int | None = None


@dataclass(frozen=True, slots=True)
class EgressFlow:
    """One flow of guaranteed messages to a client, by SEMP v2 monitoring: its window and unacknowledged messages."""

    name: str
    """The name of the client."""
    message_vpn: str | None = None
    endpoint: str | None = None
    window_messages: int | None = None
    used_window_messages: int | None = None
    unacknowledged_messages: int | None = None


@dataclass(frozen=True, slots=True)
class Discards:
    """The discards of one broker, message VPN or client, by cause."""

    of: str
    """`broker`, `client NAME`, `message VPN NAME`."""
    causes: tuple[tuple[str, int], ...]
    """Keys of `discards.CAUSES`, in the order in which they were read; each once."""
    total_egress: int | None = None
    total_ingress: int | None = None


@dataclass(frozen=True, slots=True)
class SpoolUsage:
    """The message spool of a broker or of a message VPN, of `show message-spool [message-vpn *] [detail]`."""

    of: str
    """`message spool`, or `message spool of message VPN NAME`."""
    config_status: str | None = None
    operational_status: str | None = None
    maximum_usage_mb: float | None = None
    usage_mb: float | None = None
    spooled_messages: int | None = None
    message_count_percent: float | None = None
    """In percent of the messages that the broker can spool; the other resources are percentages, too."""
    unacknowledged_percent: float | None = None
    spool_files_percent: float | None = None
    disk_partition_percent: float | None = None


@dataclass(frozen=True, slots=True)
class EndpointUsage:
    """One queue or topic endpoint of `show queue *` and its siblings, in the table's form or as `detail`."""

    name: str
    kind: str = "queue"
    """`queue` or `topic endpoint`."""
    message_vpn: str | None = None
    spooled_messages: int | None = None
    usage_mb: float | None = None
    high_water_mark_mb: float | None = None
    maximum_usage_mb: float | None = None
    bind_count: int | None = None
    max_bind_count: int | None = None
    unacknowledged_messages: int | None = None
    max_unacknowledged_per_flow: int | None = None
    access_type: str | None = None
    max_redelivery: int | None = None
    max_message_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Listings:
    """The listings of a file, in its order. `notes` are remarks for the reader, such as a missing page."""

    clients: tuple[ClientQueues, ...] = ()
    neighbors: tuple[NeighborQueues, ...] = ()
    slow_subscribers: tuple[SlowSubscriber, ...] = ()
    connections: tuple[ClientConnection, ...] = ()
    statistics: tuple[ClientStatistics, ...] = ()
    flows: tuple[EgressFlow, ...] = ()
    discards: tuple[Discards, ...] = ()
    spools: tuple[SpoolUsage, ...] = ()
    endpoints: tuple[EndpointUsage, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was listed, as where no client matched."""
        return not any(getattr(self, each.name) for each in fields(self) if each.name != "notes")
