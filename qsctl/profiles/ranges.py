"""The table of a client profile's settings: range, default, unit, source and the name that each format has for it.

Decides: the settings for readers, writers, help, errors and the simulator's limits. Where the sample of "Showing Client
Profile Detail" shows other numbers than the vendor's defaults, the sample is of one broker and the defaults are used
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from qsctl.profiles.client_profile import QUEUE_ORDER, ClientProfile, Queue, Threshold, burst_field, depth_field
from qsctl.profiles.setting import ProfileSetting, Value, ValueKind

DEFAULT_NAME: Final = "default"
DEFAULT_MESSAGE_VPN: Final = "default"

QUEUE_DEPTH_MIN_WORK_UNITS: Final = 2
QUEUE_DEPTH_MAX_WORK_UNITS: Final = 262_144
QUEUE_DEPTH_DEFAULT_WORK_UNITS: Final = 20_000
QUEUE_BURST_MAX_MESSAGES: Final = 262_144
WEB_DEPTH_WORK_UNITS: Final = 100
"""Recommended for web messaging clients that elide nothing ("Configuring Max Egress Queue Depths")."""

_DELIVERY: Final = "Message Delivery Resources"
_DETAIL: Final = f'{_DELIVERY}, "Showing Client Profile Detail"'
_TCP: Final = "TCP Settings"
_SEMP: Final = "SEMP v2 configuration reference, msgVpnClientProfile"
_EVENTS: Final = "Configuring Client Event Thresholds"
_COUNT_MAX: Final = 4_294_967_295
_IGNORED: Final = "current brokers ignore it"
_SEMP_QUEUES: Final = dict(zip(QUEUE_ORDER, ("Guaranteed1", "Direct1", "Direct2", "Direct3", "Control1"), strict=True))


def _queue(queue: Queue) -> tuple[ProfileSetting, ProfileSetting]:
    semp = _SEMP_QUEUES[queue]
    element = f"{semp[:-1].lower()}-{semp[-1]}"
    depth = ProfileSetting(
        depth_field(queue), ValueKind.INTEGER, "work units", QUEUE_DEPTH_DEFAULT_WORK_UNITS,
        f'{_DELIVERY}, "Configuring Max Egress Queue Depths"', f"queue{semp}MaxDepth",
        f"maximum depth of {queue}", QUEUE_DEPTH_MIN_WORK_UNITS, QUEUE_DEPTH_MAX_WORK_UNITS,
        semp_v1=f"{element}-queue-max-depth", cli=("queue", queue.value, "max-depth"), listing=queue.value,
        scenario=f"queue[{queue}]/max-depth",
    )  # fmt: skip
    burst = ProfileSetting(
        burst_field(queue), ValueKind.INTEGER, "messages", 255 if queue is Queue.G_1 else 4,
        f'{_DELIVERY}, "Configuring Egress Queue Minimum Message Bursts"', f"queue{semp}MinMsgBurst",
        f"messages that always enter {queue}", 0, QUEUE_BURST_MAX_MESSAGES,
        semp_v1=f"{element}-queue-min-burst", cli=("queue", queue.value, "min-msg-burst"), listing=queue.value,
        scenario=f"queue[{queue}]/min-msg-burst",
    )  # fmt: skip
    return depth, burst


def _integer(
    field: str, unit: str, default: int | None, span: tuple[int, int], source: str, semp_v2: str, summary: str,
    **names: Any,
) -> ProfileSetting:  # fmt: skip
    return ProfileSetting(field, ValueKind.INTEGER, unit, default, source, semp_v2, summary, span[0], span[1], **names)


def _switch(field: str, semp_v2: str, summary: str, *, default: bool = False, **names: Any) -> ProfileSetting:
    return ProfileSetting(field, ValueKind.BOOLEAN, "", default, names.pop("source", _SEMP), semp_v2, summary, **names)


def _name(field: str, semp_v2: str, summary: str, **names: Any) -> ProfileSetting:
    return ProfileSetting(field, ValueKind.TEXT, "", "", _SEMP, semp_v2, summary, **names)


def _threshold(field: str, semp_v2: str, words: tuple[str, ...], listing: str, limit: str, most: int) -> ProfileSetting:
    return ProfileSetting(
        field, ValueKind.THRESHOLD, "", Threshold(80, 60), _EVENTS, semp_v2,
        f"levels of the event {' '.join(words)}", 0, most, cli=("event", *words, "thresholds"), listing=listing,
        limit=limit,
    )  # fmt: skip


_SPOOL: Final = "message-spool"

SETTINGS: Final[tuple[ProfileSetting, ...]] = (
    *(setting for queue in QUEUE_ORDER for setting in _queue(queue)),
    _integer("tcp_mss_bytes", "bytes", 1460, (256, 1460), _TCP, "tcpMaxSegmentSize", "TCP maximum segment size",
             semp_v1="tcp/mss", cli=("tcp", "mss"), listing="MSS", scenario="tcp/mss"),
    _integer("tcp_initial_window_segments", "segments", 2, (2, 7826), _TCP, "tcpCongestionWindowSize",
             "TCP initial congestion window", semp_v1="tcp/initial-congestion-window", cli=("tcp", "initial-cwnd"),
             listing="Initial Window", scenario="tcp/initial-window", deprecated=_IGNORED),
    _integer("tcp_max_window_kb", "KB", 256, (16, 65_536), _TCP, "tcpMaxWindowSize", "TCP maximum window",
             semp_v1="tcp/maximum-tcp-window-size-in-KB", cli=("tcp", "max-wnd"), listing="Maximum Window",
             scenario="tcp/maximum-window", deprecated=_IGNORED),
    _integer("tcp_keepalive_count", "probes", 5, (2, 5), _TCP, "tcpKeepaliveCount", "TCP keepalive probes",
             semp_v1="tcp/keepalive/count", cli=("tcp", "keepalive", "count"), listing="Count"),
    _integer("tcp_keepalive_idle_s", "seconds", 3, (3, 120), _TCP, "tcpKeepaliveIdleTime",
             "idle time before the first TCP keepalive probe", semp_v1="tcp/keepalive/idle",
             cli=("tcp", "keepalive", "idle"), listing="Idle"),
    _integer("tcp_keepalive_interval_s", "seconds", 1, (1, 30), _TCP, "tcpKeepaliveInterval",
             "time between TCP keepalive probes", semp_v1="tcp/keepalive/interval",
             cli=("tcp", "keepalive", "interval"), listing="Interval"),
    _switch("eliding_enabled", "elidingEnabled", "eliding of direct messages", source=_DETAIL,
            semp_v1="eliding-enabled", cli=("eliding", "shutdown"), cli_inverted=True, listing="Enabled",
            scenario="eliding/enabled"),
    _integer("eliding_delay_ms", "milliseconds", 0, (0, 60_000), _DETAIL, "elidingDelay",
             "least time between two messages of an elided topic", semp_v1="eliding-delay", cli=("eliding", "delay"),
             listing="Delay", scenario="eliding/delay"),
    _integer("eliding_max_topics", "topics", 256, (1, 32_000), _DETAIL, "elidingMaxTopicCount",
             "topics elided for each client", semp_v1="eliding-max-topics", cli=("eliding", "max-topics"),
             listing="Max Topics", scenario="eliding/max-topics"),
    _switch("allow_guaranteed_message_send", "allowGuaranteedMsgSendEnabled", "sending of guaranteed messages",
            semp_v1="allow-guaranteed-message-send", cli=(_SPOOL, "allow-guaranteed-message-send"),
            listing="Guaranteed Message Send"),
    _switch("allow_guaranteed_message_receive", "allowGuaranteedMsgReceiveEnabled",
            "receiving of guaranteed messages", semp_v1="allow-guaranteed-message-receive",
            cli=(_SPOOL, "allow-guaranteed-message-receive"), listing="Guaranteed Message Receive"),
    _switch("allow_guaranteed_endpoint_create", "allowGuaranteedEndpointCreateEnabled", "creation of endpoints",
            semp_v1="allow-guaranteed-endpoint-create", cli=(_SPOOL, "allow-guaranteed-endpoint-create"),
            listing="Guaranteed Endpoint Create"),
    ProfileSetting("guaranteed_endpoint_create_durability", ValueKind.CHOICE, "", "all", _SEMP,
            "allowGuaranteedEndpointCreateDurability", "durability of the endpoints that clients may create",
            cli=(_SPOOL, "allow-guaranteed-endpoint-create-durability"), choices=("all", "durable", "non-durable")),
    _switch("allow_transacted_sessions", "allowTransactedSessionsEnabled", "transacted sessions",
            semp_v1="allow-transacted-sessions", cli=(_SPOOL, "allow-transacted-sessions"),
            listing="Transacted Sessions"),
    _switch("allow_bridge_connections", "allowBridgeConnectionsEnabled", "connections of bridges",
            semp_v1="allow-bridge-connections", cli=("allow-bridge-connections",),
            listing="Allow Bridge Connections"),
    _switch("allow_shared_subscriptions", "allowSharedSubscriptionsEnabled", "shared subscriptions",
            cli=("allow-shared-subscriptions",)),
    _switch("allow_cut_through_forwarding", "allowCutThroughForwardingEnabled", "cut-through forwarding",
            cli=(_SPOOL, "allow-cut-through-forwarding"), deprecated="deprecated since SEMP 2.22"),
    _switch("allow_compression", "compressionEnabled", "compressed connections", default=True,
            cli=("compression",)),
    _switch("allow_clients_when_standby", "replicationAllowClientConnectWhenStandbyEnabled",
            "connections while replication is on standby", cli=("replication", "allow-client-connect-when-standby"),
            listing="Allow Clients When Standby"),
    _switch("allow_downgrade_to_plain_text", "tlsAllowDowngradeToPlainTextEnabled",
            "downgrade of an encrypted connection to plain text", default=True,
            cli=("ssl", "allow-downgrade-to-plain-text")),
    _switch("reject_on_no_subscription_match", "rejectMsgToSenderOnNoSubscriptionMatchEnabled",
            "negative acknowledgment of a guaranteed message that matches no subscription",
            cli=(_SPOOL, "reject-msg-to-sender-on-no-subscription-match")),
    _integer("max_egress_flows", "flows", 1000, (0, 200_000), _SEMP, "maxEgressFlowCount",
             "guaranteed flows to one client", semp_v1="maximum-egress-flows", cli=(_SPOOL, "max-egress-flows"),
             listing="Max Egress Flows"),
    _integer("max_ingress_flows", "flows", 1000, (0, 1_000_000), _SEMP, "maxIngressFlowCount",
             "guaranteed flows from one client", semp_v1="maximum-ingress-flows", cli=(_SPOOL, "max-ingress-flows"),
             listing="Max Ingress Flows"),
    _integer("max_amqp_links", "links", None, (0, _COUNT_MAX), _SEMP, "maxAmqpLinkCount",
             "AMQP links of one client (since SEMP 2.46)"),
    _integer("max_endpoints_per_username", "endpoints", 1000, (0, 200_000), _SEMP,
             "maxEndpointCountPerClientUsername", "endpoints created with one client username",
             semp_v1="maximum-endpoints-per-client-username", cli=(_SPOOL, "max-endpoints-per-client-username"),
             listing="Max Endpoints per client-username"),
    _integer("max_transacted_sessions", "sessions", 10, (0, 30_000), _SEMP, "maxTransactedSessionCount",
             "transacted sessions of one client", semp_v1="maximum-transacted-sessions",
             cli=(_SPOOL, "max-transacted-sessions"), listing="Max Transacted Sessions"),
    _integer("max_transactions", "transactions", None, (0, 50_000), _SEMP, "maxTransactionCount",
             "transactions of one client", semp_v1="maximum-transactions", cli=(_SPOOL, "max-transactions")),
    _integer("max_messages_per_transaction", "messages", 256, (1, 20_000), _SEMP, "maxMsgsPerTransaction",
             "messages in one transaction", cli=(_SPOOL, "max-messages-per-transaction")),
    _integer("max_subscriptions", "subscriptions", None, (0, _COUNT_MAX), _SEMP, "maxSubscriptionCount",
             "subscriptions of one client", semp_v1="max-subscriptions", cli=("max-subscriptions",),
             listing="Max # Subscriptions"),
    _integer("max_connections_per_username", "connections", None, (0, 200_000), _SEMP,
             "maxConnectionCountPerClientUsername", "connections with one client username",
             semp_v1="max-connections-per-client-username", cli=("max-connections-per-client-username",),
             listing="Max # Connections per client-username"),
    _integer("max_smf_connections_per_username", "connections", None, (0, 200_000), _SEMP,
             "serviceSmfMaxConnectionCountPerClientUsername", "SMF connections with one client username",
             cli=("service", "smf", "max-connections-per-client-username"), listing="Service SMF"),
    _integer("max_web_connections_per_username", "connections", None, (0, 200_000), _SEMP,
             "serviceWebMaxConnectionCountPerClientUsername", "web connections with one client username",
             cli=("service", "web-transport", "max-connections-per-client-username"), listing="Web Transport"),
    _integer("web_inactive_timeout_s", "seconds", 30, (1, _COUNT_MAX), _DETAIL, "serviceWebInactiveTimeout",
             "time until an inactive web session ends", cli=("service", "web-transport", "inactive-timeout"),
             listing="Inactive Timeout"),
    _integer("web_max_payload_bytes", "bytes", 1_000_000, (300, 10_000_000), _DETAIL, "serviceWebMaxPayload",
             "largest web payload that is not fragmented", cli=("service", "web-transport", "max-web-payload"),
             listing="Max Web Payload"),
    _integer("min_keepalive_timeout_s", "seconds", 30, (3, 3600), _SEMP, "serviceMinKeepaliveTimeout",
             "least keepalive time-out of a client", cli=("service", "min-keepalive-timeout")),
    _switch("smf_min_keepalive_enabled", "serviceSmfMinKeepaliveEnabled",
            "enforcement of the least keepalive time-out for SMF", cli=("service", "smf", "min-keepalive-enabled")),
    _name("copy_from_queue", "apiQueueManagementCopyFromOnCreateName",
          "queue whose settings new queues copy", cli=(_SPOOL, "api-queue-management", "copy-from-on-create"),
          listing="Copy-from queue", deprecated="deprecated since SEMP 2.14: name a template"),
    _name("copy_from_queue_template", "apiQueueManagementCopyFromOnCreateTemplateName",
          "queue template whose settings new queues copy",
          cli=(_SPOOL, "api-queue-management", "copy-from-on-create-template")),
    _name("copy_from_topic_endpoint", "apiTopicEndpointManagementCopyFromOnCreateName",
          "topic endpoint whose settings new ones copy",
          cli=(_SPOOL, "api-topic-endpoint-management", "copy-from-on-create"), listing="Copy-from Topic Endpoint",
          deprecated="deprecated since SEMP 2.14: name a template"),
    _name("copy_from_topic_endpoint_template", "apiTopicEndpointManagementCopyFromOnCreateTemplateName",
          "topic endpoint template whose settings new ones copy",
          cli=(_SPOOL, "api-topic-endpoint-management", "copy-from-on-create-template")),
    _threshold("subscriptions_threshold", "eventSubscriptionCountThreshold", ("subscriptions",),
               "Subscriptions (#subs)", "max_subscriptions", _COUNT_MAX),
    _threshold("connections_per_username_threshold", "eventConnectionCountPerClientUsernameThreshold",
               ("connections-per-client-username",), "Connections per client-username",
               "max_connections_per_username", 200_000),
    _threshold("smf_connections_per_username_threshold", "eventServiceSmfConnectionCountPerClientUsernameThreshold",
               ("service", "smf", "connections-per-client-username"), "Service SMF",
               "max_smf_connections_per_username", 200_000),
    _threshold("web_connections_per_username_threshold", "eventServiceWebConnectionCountPerClientUsernameThreshold",
               ("service", "web-transport", "connections-per-client-username"), "Service WEB",
               "max_web_connections_per_username", 200_000),
    _threshold("endpoint_spool_usage_threshold", "eventClientProvisionedEndpointSpoolUsageThreshold",
               ("client-provisioned-endpoint-spool-usage",), "Provisioned endpt spool usage (%)", "", 0),
    _threshold("transacted_sessions_threshold", "eventTransactedSessionCountThreshold", ("transacted-sessions",),
               "Transacted sessions (#)", "max_transacted_sessions", _COUNT_MAX),
    _threshold("transactions_threshold", "eventTransactionCountThreshold", ("transactions",), "", "max_transactions",
               _COUNT_MAX),
    _threshold("endpoints_per_username_threshold", "eventEndpointCountPerClientUsernameThreshold",
               ("endpoints-per-client-username",), "Endpoints per client-username (#)", "max_endpoints_per_username",
               _COUNT_MAX),
    _threshold("egress_flows_threshold", "eventEgressFlowCountThreshold", ("egress-flows",), "Egress flows (#)",
               "max_egress_flows", _COUNT_MAX),
    _threshold("ingress_flows_threshold", "eventIngressFlowCountThreshold", ("ingress-flows",), "Ingress flows (#)",
               "max_ingress_flows", _COUNT_MAX),
)  # fmt: skip
"""Every setting, in the order of the listing where the listing has it."""

BY_FIELD: Final[Mapping[str, ProfileSetting]] = MappingProxyType({setting.field: setting for setting in SETTINGS})
BY_SEMP_V2: Final[Mapping[str, ProfileSetting]] = MappingProxyType({setting.semp_v2: setting for setting in SETTINGS})


def default_profile(name: str = DEFAULT_NAME, message_vpn: str = DEFAULT_MESSAGE_VPN) -> ClientProfile:
    """Return a profile in which every setting has its default."""
    values: dict[str, Any] = {setting.field: setting.default for setting in SETTINGS}
    return ClientProfile(name=name, message_vpn=message_vpn, **values)


def value_of(profile: ClientProfile, setting: ProfileSetting) -> Value:
    """Return the profile's value of a setting."""
    value: Value = getattr(profile, setting.field)
    return value


def limit_of(profile: ClientProfile, threshold: ProfileSetting) -> int | None:
    """Return the limit that a threshold's percentages refer to; None if the platform decides it or there is none."""
    limit = getattr(profile, threshold.limit) if threshold.limit else None
    assert limit is None or isinstance(limit, int)
    return limit
