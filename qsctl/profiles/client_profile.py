"""A client profile as a frozen dataclass: queues, TCP, eliding, limits and event thresholds of one set of clients.

Decides: which settings there are, their names and units. Ranges, defaults and the names that other formats use are in
`ranges.py`; a test holds that both have the same fields. The vocabulary of egress queues (their names, the work unit)
is defined here, and the simulator uses it.

Source: Message Delivery Resources, "Configuring Egress Per-Client Priority Queues" and "Showing Client Profile Detail".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

WORK_UNIT_BYTES: Final = 2048
"""One work unit of a queue's depth (Message Delivery Resources; TIBCO P-7500, chapter 10)."""


class Queue(StrEnum):
    """The egress priority queues of one client, lowest priority first ("Showing Client Stats Queue")."""

    G_1 = "G-1"
    D_1 = "D-1"
    D_2 = "D-2"
    D_3 = "D-3"
    C_1 = "C-1"


QUEUE_ORDER: Final[tuple[Queue, ...]] = tuple(Queue)
"""Index in kernels and logs: 0 is G-1, 4 is C-1."""


def depth_field(queue: Queue) -> str:
    """Return the field of `ClientProfile` that holds a queue's maximum depth."""
    return f"{queue.value.replace('-', '_').lower()}_max_depth_work_units"


def burst_field(queue: Queue) -> str:
    """Return the field of `ClientProfile` that holds a queue's minimum message burst."""
    return f"{queue.value.replace('-', '_').lower()}_min_msg_burst"


def work_units(size_bytes: int) -> int:
    """Return the work units of a message: its length divided by 2,048, rounded up, at least 1 ("Queue Max Depths")."""
    return max(1, -(-size_bytes // WORK_UNIT_BYTES))


@dataclass(frozen=True, slots=True)
class Threshold:
    """Levels at which an event is raised (`set_at`) and withdrawn (`clear_at`).

    With `is_percent` both are percentages of the limit that the threshold belongs to, else counts.
    """

    set_at: int
    clear_at: int
    is_percent: bool = True


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """`max-depth` and `min-msg-burst` of one priority queue."""

    max_depth_work_units: int
    min_msg_burst: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProfile:
    """Every setting of a client profile; None is a limit that the broker's platform decides.

    Fields have no defaults here: `ranges.default_profile` returns a profile of the defaults.
    """

    name: str
    message_vpn: str

    g_1_max_depth_work_units: int
    g_1_min_msg_burst: int
    d_1_max_depth_work_units: int
    d_1_min_msg_burst: int
    d_2_max_depth_work_units: int
    d_2_min_msg_burst: int
    d_3_max_depth_work_units: int
    d_3_min_msg_burst: int
    c_1_max_depth_work_units: int
    c_1_min_msg_burst: int

    tcp_mss_bytes: int
    tcp_initial_window_segments: int
    tcp_max_window_kb: int
    tcp_keepalive_count: int
    tcp_keepalive_idle_s: int
    tcp_keepalive_interval_s: int

    eliding_enabled: bool
    eliding_delay_ms: int
    eliding_max_topics: int

    allow_guaranteed_message_send: bool
    allow_guaranteed_message_receive: bool
    allow_guaranteed_endpoint_create: bool
    guaranteed_endpoint_create_durability: str
    allow_transacted_sessions: bool
    allow_bridge_connections: bool
    allow_shared_subscriptions: bool
    allow_cut_through_forwarding: bool
    allow_compression: bool
    allow_clients_when_standby: bool
    allow_downgrade_to_plain_text: bool
    reject_on_no_subscription_match: bool

    max_egress_flows: int
    max_ingress_flows: int
    max_amqp_links: int | None
    max_endpoints_per_username: int
    max_transacted_sessions: int
    max_transactions: int | None
    max_messages_per_transaction: int
    max_subscriptions: int | None
    max_connections_per_username: int | None
    max_smf_connections_per_username: int | None
    max_web_connections_per_username: int | None

    web_inactive_timeout_s: int
    web_max_payload_bytes: int
    min_keepalive_timeout_s: int
    smf_min_keepalive_enabled: bool

    copy_from_queue: str
    copy_from_queue_template: str
    copy_from_topic_endpoint: str
    copy_from_topic_endpoint_template: str

    subscriptions_threshold: Threshold
    connections_per_username_threshold: Threshold
    smf_connections_per_username_threshold: Threshold
    web_connections_per_username_threshold: Threshold
    endpoint_spool_usage_threshold: Threshold
    transacted_sessions_threshold: Threshold
    transactions_threshold: Threshold
    endpoints_per_username_threshold: Threshold
    egress_flows_threshold: Threshold
    ingress_flows_threshold: Threshold

    def queue(self, queue: Queue) -> QueueSettings:
        """Return the depth and the burst of one priority queue."""
        return QueueSettings(getattr(self, depth_field(queue)), getattr(self, burst_field(queue)))
