"""The names of tables and labelled lines: headings, other names that headings may have, SEMP elements.

The layouts of `slow-subscriber` and `connections wide` are not public: columns are recognized by any known heading, in
any order, and written in the style of the event thresholds of [SOL-QUEUES]. Queues, topic endpoints and the message
spool are listed as tables or, with `detail`, in lines of a label and a value; one table here has the words of both.
Element names are those of SEMP v1 replies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from qsctl.profiles.listings.labels import COUNT, TEXT, UPTIME, YES_NO, LabelKind, Value


def read_percent(text: str) -> float:
    """Return a percentage, with or without its sign.

    Raises:
        ValueError: it is not a number from 0 to 100.
    """
    number = text.removesuffix("%").strip()
    if not number.replace(".", "", 1).isdecimal() or not number.isascii() or len(number) > 20:
        raise ValueError(text)
    percent = float(number)
    if not 0.0 <= percent <= 100.0:
        raise ValueError(text)
    return percent


def _write_percent(value: Value) -> str:
    return f"{float(value or 0):.2f}"


PERCENT: Final = LabelKind("a percentage from 0 to 100", read_percent, _write_percent)


def read_megabytes(text: str) -> float:
    """Return a size in MB, with or without its unit.

    Raises:
        ValueError: it is not a size, or is larger than any spool.
    """
    if _SIZE.fullmatch(text) is None:
        raise ValueError(text)
    number = float(re.split(r" ?M", text, maxsplit=1, flags=re.IGNORECASE)[0])
    if number > _LARGEST_MB:
        raise ValueError(text)
    return number


_SIZE: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?(?:e[-+]?[0-9]{1,2})?(?: ?(?:MB|MiB))?", re.IGNORECASE)
_LARGEST_MB: Final = 1e12
MEGABYTES: Final = LabelKind("a size in MB", read_megabytes, str)


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column: `heading` as it is written, `aliases` other headings in plain form (letters, digits and % alone)."""

    field: str
    heading: str
    kind: LabelKind
    aliases: tuple[str, ...] = ()
    element: str = ""
    """Of a SEMP reply, below `<client>` or its `<connection>`."""
    element_kind: LabelKind | None = None
    """The reply's form, where it differs from the table's."""
    other_elements: tuple[str, ...] = ()
    """Of replies to a sibling command, or of another version."""

    @property
    def keys(self) -> frozenset[str]:
        """The texts that a heading may have, normalized."""
        return frozenset({plain_heading(self.heading), plain_heading(self.field), *self.aliases})


def plain_heading(text: str) -> str:
    """Return a heading in plain form: lower case, without blanks and punctuation."""
    return "".join(character for character in text.lower() if character.isalnum() or character == "%")


_NAME: Final = TableColumn("name", "Client", TEXT, ("clientname",), "name")
_VPN: Final = TableColumn("message_vpn", "Message VPN", TEXT, ("vpn", "msgvpn", "messagevpnname"), "message-vpn")
_ADDRESS: Final = TableColumn(
    "client_address", "Client Address", TEXT, ("address", "foreignaddress", "remoteaddress"), "client-address"
)
_BLOCKED: Final = TableColumn(
    "blocked_percent", "Blocked %", PERCENT,
    ("blocked", "%blocked", "blockedpercent", "blockedpct", "blockedpercentage", "blockedcycles%", "blockedcycles",
     "blockedcyclespercent"),
    "blocked-cycles-percent",
)  # fmt: skip

SLOW_COLUMNS: Final = (
    _NAME,
    _VPN,
    TableColumn("client_username", "Client Username", TEXT, ("username", "user"), "client-username"),
    _ADDRESS,
    TableColumn("slow_subscriber", "Slow Subscriber", YES_NO, ("slow", "isslow"), "slow-subscriber"),
    _BLOCKED,
)
CONNECTION_COLUMNS: Final = (
    _NAME,
    _VPN,
    TableColumn(
        "client_address", "Client Address", TEXT, ("address", "foreignaddress", "remoteaddress"), "foreign-address"
    ),
    TableColumn("local_address", "Local Address", TEXT, ("local",), "local-address"),
    TableColumn("state", "State", TEXT, ("tcpstate",), "state"),
    TableColumn("receive_queue_bytes", "Recv-Q", COUNT, ("recvqbytes", "receivequeue", "rxq"), "receive-queue-bytes"),
    TableColumn("send_queue_bytes", "Send-Q", COUNT, ("sendqbytes", "sendqueue", "txq"), "send-queue-bytes"),
    TableColumn("maximum_segment_bytes", "MSS", COUNT, ("maximumsegmentsize", "segmentsize"), "maximum-segment-size"),
    TableColumn("sent_bytes", "Bytes Sent", COUNT, ("sentbytes", "txbytes"), "bytes-sent-32bits"),
    TableColumn(
        "round_trip_us", "Round Trip (us)", COUNT, ("rtt", "rttus", "roundtrip", "roundtriptimeus"),
        "round-trip-time-smooth-us",
    ),
    TableColumn(
        "advertised_window_bytes", "Advertised Window", COUNT, ("advwindow", "advertisedwindowsize"),
        "advertised-window-size",
    ),
    TableColumn(
        "congestion_window_bytes", "Congestion Window", COUNT, ("cwnd", "congwindow", "congestionwindowsize"),
        "congestion-window-size",
    ),
    TableColumn("fast_retransmits", "Fast Retransmits", COUNT, ("fastretx", "fastretrans"), "fast-retransmits"),
    TableColumn("timed_retransmits", "Timed Retransmits", COUNT, ("timedretx", "timedretrans"), "timed-retransmits"),
    TableColumn("uptime_s", "Uptime", UPTIME, ("connectionuptime",), "connection-uptime-s", COUNT),
    _BLOCKED,
)  # fmt: skip

ONLY_OF_CONNECTIONS: Final = frozenset(column.field for column in CONNECTION_COLUMNS) - {
    column.field for column in SLOW_COLUMNS
}
"""A table with one of these is of connections."""

ENDPOINT_COLUMNS: Final = (
    TableColumn(
        "name", "Queue Name", TEXT,
        ("queue", "name", "endpointname", "topicendpointname", "topicendpoint", "queuenamemessagevpn",
         "topicendpointnamemessagevpn", "endpointnamemessagevpn"),
        "name",
    ),
    TableColumn("message_vpn", "Message VPN", TEXT, ("vpn", "msgvpn", "messagevpnname"), "message-vpn"),
    TableColumn(
        "spooled_messages", "Messages Spooled", COUNT,
        ("currentmessagesspooled", "nummessagesspooled", "msgsspooled", "spooledmsgs", "spooledmessages"),
        "num-messages-spooled",
    ),
    TableColumn(
        "usage_mb", "Spool Usage (MB)", MEGABYTES, ("currentspoolusagemb", "usagemb", "currentspoolusage"),
        "current-spool-usage-in-mb",
    ),
    TableColumn("high_water_mark_mb", "HWM (MB)", MEGABYTES, ("highwatermarkmb",), "high-water-mark-in-mb"),
    TableColumn(
        "maximum_usage_mb", "Max Spool Usage (MB)", MEGABYTES,
        ("quotamb", "quota", "spoolquotamb", "maximumspoolusagemb", "maxspoolusage", "maximumspoolusage"), "quota",
    ),
    TableColumn("bind_count", "Bind Count", COUNT, ("bindcount", "currentbindcount"), "bind-count"),
    TableColumn("max_bind_count", "Max Bind Count", COUNT, ("maximumbindcount",), "max-bind-count"),
    TableColumn(
        "unacknowledged_messages", "Total Delivered Unacked Msgs", COUNT,
        ("deliveredunackedmsgs", "unackedmsgs", "totaldeliveredunackedmessages"), "total-delivered-unacked-msgs",
    ),
    TableColumn(
        "max_unacknowledged_per_flow", "Max Delivered Unacked Msgs Per Flow", COUNT, (),
        "max-delivered-unacked-msgs-per-flow",
    ),
    TableColumn("access_type", "Access Type", TEXT, ("access",), "access-type"),
    TableColumn("max_redelivery", "Max Redelivery", COUNT, ("maxredeliverycount",), "max-redelivery"),
    TableColumn("max_message_bytes", "Max Message Size", COUNT, ("maxmessagesizeb",), "max-message-size"),
)  # fmt: skip
"""Of `show queue …` and `show topic-endpoint …`; a heading may have the message VPN below the name."""

SPOOL_COLUMNS: Final = (
    TableColumn("name", "Message VPN", TEXT, ("messagevpnname", "vpnname", "vpn"), "name"),
    TableColumn("config_status", "Config Status", TEXT, ("messagespoolconfigstatus",), "config-status"),
    TableColumn("operational_status", "Operational Status", TEXT, (), "operational-status"),
    TableColumn(
        "maximum_usage_mb", "Maximum Spool Usage", MEGABYTES,
        ("maximumspoolusagemb", "maxspoolusagemb", "maxspoolusage", "quotamb", "spoolquotamb", "maximummb"),
        "max-disk-usage", other_elements=("maximum-spool-usage-mb",),
    ),
    TableColumn(
        "usage_mb", "Current Persistent Store Usage (MB)", MEGABYTES,
        ("currentspoolusagemb", "currentspoolusage", "spoolusagemb", "currentmessagespoolusagemb", "usagemb"),
        "current-persist-usage", other_elements=("current-spool-usage-mb",),
    ),
    TableColumn(
        "spooled_messages", "Number of Messages Currently Spooled", COUNT,
        ("currentmessagesspooled", "messagesspooled", "nummessagesspooled", "messagescurrentlyspooled"),
        "total-messages-currently-spooled", other_elements=("current-messages-spooled",),
    ),
    TableColumn(
        "message_count_percent", "Message Count Utilization", PERCENT, ("queuemessageresourceutilization",),
        "message-count-utilization-percentage",
    ),
    TableColumn(
        "unacknowledged_percent", "Delivered Unacked Msgs Utilization", PERCENT, (),
        "delivered-unacked-msgs-utilization-percentage",
    ),
    TableColumn(
        "spool_files_percent", "Spool Files Utilization", PERCENT, (), "spool-files-utilization-percentage"
    ),
    TableColumn(
        "disk_partition_percent", "Active Disk Partition Usage", PERCENT, ("diskpartitionusage",),
        "active-disk-partition-usage",
    ),
)  # fmt: skip
"""Of `show message-spool`, whose table of message VPNs has their names in the first column."""
