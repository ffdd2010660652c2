"""The vendor's transport properties: what is mapped, and what is refused by name (manual, chapter 9)."""

from __future__ import annotations

import pytest

from qsctl.errors import Refused
from qsctl.transport.dds.participant import DomainSettings
from qsctl.transport.dds.tcp import TcpSettings, map_transport, require_met

PLUGIN = {
    "dds.transport.load_plugins": "dds.transport.tcp",
    "dds.transport.tcp.library": "nddstransporttcp",
    "dds.transport.tcp.parent.classid": "NDDS_TRANSPORT_CLASSID_TCPV4_WAN",
    "dds.transport.tcp.create_function": "NDDS_Transport_TCPv4_create",
}
SERVICE = {
    "dds.transport.tcp.server_bind_port": "15000",
    "dds.transport.tcp.public_address": "192.0.2.32:15000",
}


def test_the_service_of_section_9_1_listens_on_its_port_and_tells_its_public_address() -> None:
    mapping = map_transport(PLUGIN | SERVICE)
    assert mapping.unmet == ()
    assert mapping.tcp == TcpSettings(15000, "192.0.2.32:15000")
    document = DomainSettings(tcp=mapping.tcp).document()
    assert "<Transport>tcp</Transport>" in document
    assert "<Port>15000</Port>" in document
    assert "<ExternalNetworkAddress>192.0.2.32</ExternalNetworkAddress>" in document


def test_an_application_outside_only_connects() -> None:
    mapping = map_transport(PLUGIN | {"dds.transport.tcp.server_bind_port": "0"})
    assert mapping.tcp == TcpSettings(0, "")
    assert "<Port>-1</Port>" in DomainSettings(tcp=mapping.tcp).document()


def test_properties_of_other_things_are_left_alone() -> None:
    assert map_transport({"dds.data_reader.shared_subscriber_name": "S"}).tcp is None
    assert map_transport({}).unmet == ()


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        (
            PLUGIN | {"dds.transport.load_plugins": "dds.transport.tcp,dds.transport.tcp2"},
            "dds.transport.tcp2: Cyclone DDS has one TCP transport",
        ),
        (
            PLUGIN | {"dds.transport.tcp.parent.classid": "NDDS_TRANSPORT_CLASSID_TLSV4_LAN"},
            "dds.transport.tcp.parent.classid: NDDS_TRANSPORT_CLASSID_TLSV4_LAN is not plain TCP",
        ),
        (PLUGIN | {"dds.transport.tcp.server_bind_port": "many"}, "'many' is no port"),
        (PLUGIN | {"dds.transport.tcp.negotiate_session_id": "1"}, "dds.transport.tcp.negotiate_session_id"),
        (PLUGIN | SERVICE | {"dds.transport.tcp.public_address": "192.0.2.1:7"}, "port 7 is told and 15000 is bound"),
        ({"dds.transport.shmem.builtin.recv_buffer_size": "9"}, "dds.transport.shmem.builtin.recv_buffer_size"),
        ({"dds.sec.auth.identity_ca": "file:ca.pem"}, "dds.sec.auth.identity_ca: this build of Cyclone DDS has no DDS"),
        ({"com.rti.serv.secure.library": "nddssecurity"}, "com.rti.serv.secure.library"),
    ],
)
def test_what_has_no_equivalent_is_refused_by_name(properties: dict[str, str], name: str) -> None:
    with pytest.raises(Refused) as refused:
        require_met(map_transport(properties), "<administration>")
    assert name in refused.value.message
    assert refused.value.message.startswith("<administration> asks for")
