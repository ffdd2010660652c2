"""The columns of `slow-subscriber` and `connections wide`: names, other names that headings may have, SEMP elements.

The look of these two tables is not public: they are read by whatever heading they have, in any order, and written in
the style of the event thresholds of [SOL-QUEUES]. Element names are those of SEMP v1 replies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qsctl.profiles.listings.labels import COUNT, TEXT, UPTIME, YES_NO, LabelKind, Value


def read_percent(text: str) -> float:
    """Return a percentage, with or without its sign.

    Raises:
        ValueError: it is none, or not from 0 to 100.
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


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column: `heading` as we write it, `aliases` other headings, plain (letters, digits and % alone)."""

    field: str
    heading: str
    kind: LabelKind
    aliases: tuple[str, ...] = ()
    element: str = ""
    """Of a SEMP reply, below `<client>` or its `<connection>`."""
    element_kind: LabelKind | None = None
    """Where the reply writes it in another way than the table."""

    @property
    def keys(self) -> frozenset[str]:
        """What a heading may be, plain."""
        return frozenset({plain_heading(self.heading), *self.aliases})


def plain_heading(text: str) -> str:
    """Return a heading without case, blanks and punctuation."""
    return "".join(character for character in text.lower() if character.isalnum() or character == "%")


_NAME: Final = TableColumn("name", "Client", TEXT, ("clientname", "name"), "name")
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
