"""The vendor's transport and security properties, and what Cyclone DDS has in their place (manual, chapter 9).

Decides: which `dds.transport.*` properties become TCP settings, which name only the vendor's plug-in and are met
anyway, and which have no equivalent here. What has none is named, never passed over: a service that silently ran
without TLS would be worse than one that does not start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lxml import etree

from qsctl.errors import Refused

LOAD_PLUGINS: Final = "dds.transport.load_plugins"

_TRANSPORT: Final = "dds.transport."
_SECURITY_PREFIXES: Final = ("dds.sec.", "com.rti.serv.secure.", "com.rti.serv.load_plugin")
_PLAIN_CLASSES: Final = frozenset({"NDDS_TRANSPORT_CLASSID_TCPV4_LAN", "NDDS_TRANSPORT_CLASSID_TCPV4_WAN"})
_PLUGIN_NAMES: Final = frozenset({"library", "create_function"})
"""They say which library of the vendor's holds the transport; Cyclone DDS has its own built in."""

_PORT_MAX: Final = 65535


@dataclass(frozen=True, slots=True)
class TcpSettings:
    """TCP in place of UDP. `listen_port` 0: connections are only made, never taken."""

    listen_port: int = 0
    public_address: str = ""


@dataclass(frozen=True, slots=True)
class UnmetProperty:
    """A property without an equivalent: its name, and why it cannot be met."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class TransportMapping:
    """What became of a participant's properties."""

    tcp: TcpSettings | None = None
    unmet: tuple[UnmetProperty, ...] = ()


def properties_of(qos_xml: str) -> dict[str, str]:
    """The name and value pairs of a QoS element's `<property>`, from its canonical XML text."""
    if not qos_xml.strip():
        return {}
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    element = etree.fromstring(qos_xml.encode(), parser)
    return {
        (each.findtext("name") or "").strip(): (each.findtext("value") or "").strip()
        for each in element.iterfind("property/value/element")
    }


def map_transport(properties: Mapping[str, str]) -> TransportMapping:
    """Read the properties of one participant.

    One TCP transport a participant has an equivalent. A second one, as in the manual's section 9.2, has none: Cyclone
    DDS listens on one port, which serves both sides where they can be reached by the same address.
    """
    unmet = [
        UnmetProperty(name, "this build of Cyclone DDS has no DDS Security")
        for name in properties
        if name.startswith(_SECURITY_PREFIXES)
    ]
    plugins = [name.strip() for name in properties.get(LOAD_PLUGINS, "").split(",") if name.strip()]
    known = {name for name in properties if name == LOAD_PLUGINS or name.startswith(_SECURITY_PREFIXES)}
    tcp: TcpSettings | None = None
    for plugin in plugins:
        own = {name: value for name, value in properties.items() if name.startswith(f"{plugin}.")}
        known |= own.keys()
        if tcp is not None:
            unmet.append(UnmetProperty(plugin, "Cyclone DDS has one TCP transport a process and domain"))
            continue
        tcp = _tcp(plugin, own, unmet)
    unmet += [
        UnmetProperty(name, "Cyclone DDS has no such property, or no plug-in of that name is loaded")
        for name in properties
        if name.startswith(_TRANSPORT) and name not in known
    ]
    return TransportMapping(tcp, tuple(unmet))


def require_met(mapping: TransportMapping, where: str) -> TcpSettings | None:
    """The TCP settings, when everything asked for can be had.

    Raises:
        Refused: names every property that cannot be met.
    """
    if mapping.unmet:
        raise Refused(
            f"{where} asks for what DDS cannot do here: {'; '.join(map(str, mapping.unmet))}",
            remedy="Remove these properties, or run the service where they exist; nothing is left out silently.",
        )
    return mapping.tcp


def _tcp(plugin: str, own: Mapping[str, str], unmet: list[UnmetProperty]) -> TcpSettings:
    port = 0
    address = ""
    for name, value in own.items():
        match name.removeprefix(f"{plugin}."):
            case "parent.classid":
                if value not in _PLAIN_CLASSES:
                    unmet.append(UnmetProperty(name, f"{value} is not plain TCP over IPv4; there is no TLS here"))
            case "server_bind_port":
                if value.isdecimal() and int(value) <= _PORT_MAX:
                    port = int(value)
                else:
                    unmet.append(UnmetProperty(name, f"{value!r} is no port; ports are 0 to {_PORT_MAX}"))
            case "public_address":
                address = value
            case rest if rest not in _PLUGIN_NAMES:
                unmet.append(UnmetProperty(name, "Cyclone DDS has no such property"))
            case _:
                pass
    told_port = address.rpartition(":")[2]
    if ":" in address and told_port != str(port):
        unmet.append(
            UnmetProperty(f"{plugin}.public_address", f"port {told_port} is told and {port} is bound; they must agree")
        )
    return TcpSettings(port, address)
