"""The vendor's transport and security properties, and what Cyclone DDS has in their place [QS 9].

Decides: which `dds.transport.*` properties become TCP settings, which only tune what Cyclone DDS does by itself, and
which promise something that Cyclone DDS lacks. Only the last are refused, by name: a service that silently ran without
TLS would be worse than one that does not start. Plain TCP can be left out by consent (`--without-tcp`), TLS cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from lxml import etree

from qsctl.identity import decimal_from_text

LOAD_PLUGINS: Final = "dds.transport.load_plugins"

DOMAIN_ID_MAX: Final = 230
"""Above it the ports of the standard mapping do not fit 16 bits, with as many participants as Cyclone DDS looks for."""

_TRANSPORT: Final = "dds.transport."
_SECURITY_PREFIXES: Final = ("dds.sec.", "com.rti.serv.secure.", "com.rti.serv.load_plugin")
_PLAIN_CLASSES: Final = frozenset({"NDDS_TRANSPORT_CLASSID_TCPV4_LAN", "NDDS_TRANSPORT_CLASSID_TCPV4_WAN"})
_TCP_CREATE_FUNCTION: Final = "NDDS_Transport_TCPv4_create"
_OF_THE_PLUGIN: Final = frozenset({"library", "create_function"})
"""Properties that name the vendor's library of a transport; Cyclone DDS has its own built in."""

_TUNING: Final = frozenset(
    {
        "aliases",
        "connection_liveliness_enabled",
        "connection_liveliness_lease_duration",
        "control_attribute_preallocation",
        "control_buffer_preallocation",
        "control_message_preallocation",
        "disable_interface_tracking",
        "disable_nagle",
        "enable_keep_alive",
        "force_asynchronous_send",
        "force_interface_poll_detection",
        "ignore_loopback_interface",
        "ignore_nonrunning_interfaces",
        "ignore_nonup_interfaces",
        "initial_handshake_timeout",
        "interface_poll_period",
        "keep_alive_interval",
        "keep_alive_retry_count",
        "keep_alive_time",
        "logging_verbosity_bitmap",
        "max_packet_size",
        "negotiate_session_id",
        "no_zero_copy",
        "outstanding_connection_cookies",
        "outstanding_connection_cookies_life_span",
        "read_buffer_preallocation",
        "receive_buffer_size",
        "received_message_count_max",
        "recv_decode_buffer_size",
        "recv_socket_buffer_size",
        "reuse_multicast_receive_resource",
        "send_blocking",
        "send_crc",
        "send_max_wait_sec",
        "send_socket_buffer_size",
        "server_connection_negotiation_timeout",
        "server_socket_backlog",
        "socket_monitoring_kind",
        "thread_name_prefix",
        "transport_priority_mapping_high",
        "transport_priority_mapping_low",
        "transport_priority_mask",
        "use_checksum",
        "user_timeout",
        "windows_iocp",
        "write_buffer_preallocation",
    }
)
"""Buffers, timers, threads and checks of the vendor's transports: no promise rests on them."""

_TUNED_PARENT: Final = frozenset(
    {
        "address_bit_count",
        "gather_send_buffer_count_max",
        "max_interface_count",
        "message_size_max",
        "thread_name_prefix",
    }
)
_INTERFACE_LISTS: Final = frozenset(
    {
        "allow_interfaces_list",
        "deny_interfaces_list",
        "allow_multicast_interfaces_list",
        "deny_multicast_interfaces_list",
    }
)
_BUILTIN: Final = frozenset({"UDPv4", "UDPv6", "shmem", "SHMEM", "udpv4", "udpv6"})

_PORT_MAX: Final = 65535

_NOT_TUNED: Final = "Cyclone DDS sets this by itself; the value is not used"
_NO_PLUGIN: Final = "no plug-in of that name is loaded; the value is not used"
_UNKNOWN: Final = "no transport here has such a property; the value is not used"
_CHOSEN_ELSEWHERE: Final = "the interface is that of --interface, by default the loopback; the list is not used"


@dataclass(frozen=True, slots=True)
class TcpTransport:
    """TCP in place of UDP. `listen_port` 0: connections are only made, never accepted."""

    listen_port: int = 0
    public_address: str = ""


class Consequence(StrEnum):
    """The consequence of a property that is not met."""

    REFUSED = "refused"
    """A promise would be broken without it: the participant is not created."""
    WARNED = "warned"
    """It is not used, and a reader of the file may expect that it is."""
    NOTED = "noted"
    """It is not used, and nothing that is promised rests on it."""


@dataclass(frozen=True, slots=True)
class UnmetProperty:
    """A property without an equivalent: its name, why it is not met, and what follows."""

    name: str
    reason: str
    consequence: Consequence = Consequence.REFUSED

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class TransportMapping:
    """The result of mapping a participant's properties."""

    tcp: TcpTransport | None = None
    unmet: tuple[UnmetProperty, ...] = ()
    left_out: tuple[str, ...] = ()
    """The TCP plug-ins that are left out by consent."""

    @property
    def refused(self) -> tuple[UnmetProperty, ...]:
        """Return the unmet properties without which the participant is not created."""
        return tuple(each for each in self.unmet if each.consequence is Consequence.REFUSED)


@dataclass
class _PropertyReading:
    """The properties that are not met, collected while one participant's are read."""

    unmet: list[UnmetProperty] = field(default_factory=list)

    def refuse(self, name: str, reason: str) -> None:
        self.unmet.append(UnmetProperty(name, reason))

    def warn(self, name: str, reason: str) -> None:
        self.unmet.append(UnmetProperty(name, reason, Consequence.WARNED))

    def note(self, name: str, reason: str) -> None:
        self.unmet.append(UnmetProperty(name, reason, Consequence.NOTED))


def properties_of(qos_xml: str) -> dict[str, str]:
    """Return the name and value pairs of a QoS element's `<property>`, from its canonical XML text."""
    if not qos_xml.strip():
        return {}
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    element = etree.fromstring(qos_xml.encode(), parser)
    return {
        (each.findtext("name") or "").strip(): (each.findtext("value") or "").strip()
        for each in element.iterfind("property/value/element")
    }


def map_transport(properties: Mapping[str, str], *, without_tcp: bool = False) -> TransportMapping:
    """Map the transport properties of one participant to Cyclone DDS.

    One TCP transport a participant has an equivalent. A second one, as in [QS 9.2], has none: Cyclone DDS listens on
    one port, which serves both sides where they can be reached by the same address.

    Args:
        properties: those of its QoS, by name.
        without_tcp: whether its plain TCP transports are left out; what they ask for beyond it, as TLS, is not.
    """
    reading = _PropertyReading()
    for name in properties:
        if name.startswith(_SECURITY_PREFIXES):
            reading.refuse(name, "this build of Cyclone DDS has no DDS Security")
    plugins = [name.strip() for name in properties.get(LOAD_PLUGINS, "").split(",") if name.strip()]
    known = {name for name in properties if name == LOAD_PLUGINS or name.startswith(_SECURITY_PREFIXES)}
    tcp: TcpTransport | None = None
    left_out: list[str] = []
    for plugin in plugins:
        own = {name: value for name, value in properties.items() if name.startswith(f"{plugin}.")}
        known |= own.keys()
        create = own.get(f"{plugin}.create_function", _TCP_CREATE_FUNCTION if "tcp" in plugin.lower() else "")
        if create != _TCP_CREATE_FUNCTION:
            reading.refuse(plugin, f"Cyclone DDS has no transport {create or plugin}")
        elif without_tcp:
            left_out.append(plugin)
            _tls(plugin, own, reading)
        elif tcp is not None:
            reading.refuse(plugin, "Cyclone DDS has one TCP transport a process and domain")
        else:
            tcp = _tcp(plugin, own, reading)
    for name in properties:
        if name.startswith(_TRANSPORT) and name not in known:
            _without_plugin(name, reading)
    return TransportMapping(tcp, tuple(reading.unmet), tuple(left_out))


def _tls(plugin: str, own: Mapping[str, str], reading: _PropertyReading) -> None:
    """Refuse the properties that ask for TLS, or for a transport class other than plain TCP."""
    for name, value in own.items():
        rest = name.removeprefix(f"{plugin}.")
        if rest == "parent.classid" and value not in _PLAIN_CLASSES:
            reading.refuse(name, f"{value} is not plain TCP over IPv4; there is no TLS here")
        elif rest.startswith("tls."):
            reading.refuse(name, "there is no TLS here")


def _tcp(plugin: str, own: Mapping[str, str], reading: _PropertyReading) -> TcpTransport:
    port = 0
    address = ""
    _tls(plugin, own, reading)
    for name, value in own.items():
        match name.removeprefix(f"{plugin}."):
            case "server_bind_port":
                if (number := decimal_from_text(value, _PORT_MAX)) is not None:
                    port = number
                else:
                    reading.refuse(name, f"{value!r} is not a port; ports are 0 to {_PORT_MAX}")
            case "public_address":
                address = value
            case "bind_interface_address":
                reading.warn(name, _CHOSEN_ELSEWHERE)
            case rest if rest not in _OF_THE_PLUGIN and rest != "parent.classid" and not rest.startswith("tls."):
                _tuning(name, rest, reading)
            case _:
                pass
    address_port = address.rpartition(":")[2]
    if ":" in address and address_port != str(port):
        reading.refuse(f"{plugin}.public_address", f"it names port {address_port} and {port} is bound; they must agree")
    return TcpTransport(port, address)


def _without_plugin(name: str, reading: _PropertyReading) -> None:
    """Note a property of a builtin transport, or of a transport that is not loaded: without effect in either case."""
    group, _, rest = name.removeprefix(_TRANSPORT).partition(".")
    if group in _BUILTIN and rest.startswith("builtin."):
        _tuning(name, rest.removeprefix("builtin."), reading)
    elif group.startswith("use_") and not rest:
        reading.note(name, _NOT_TUNED)
    else:
        reading.warn(name, _NO_PLUGIN)


def _tuning(name: str, rest: str, reading: _PropertyReading) -> None:
    own = rest.removeprefix("parent.")
    if own in _INTERFACE_LISTS:
        reading.warn(name, _CHOSEN_ELSEWHERE)
    elif own in (_TUNED_PARENT if own != rest else _TUNING) or rest.startswith("parent.parent."):
        reading.note(name, _NOT_TUNED)
    else:
        reading.warn(name, _UNKNOWN)
