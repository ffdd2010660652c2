"""The vendor's transport properties: what is mapped, noted, warned of, and refused by name [QS 9]."""

from __future__ import annotations

from pathlib import Path

import pytest

from qsctl.config.qos_libraries.dds_library import built_with_tcp, has_tcp, library_path
from qsctl.config.qos_libraries.transport_properties import Consequence, TcpTransport, map_transport
from qsctl.transport.dds.participant import DomainSettings

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


def test_the_service_of_section_9_1_listens_on_its_port_and_names_its_public_address() -> None:
    mapping = map_transport(PLUGIN | SERVICE)
    assert mapping.unmet == ()
    assert mapping.tcp == TcpTransport(15000, "192.0.2.32:15000")
    document = DomainSettings(tcp=mapping.tcp).document()
    assert "<Transport>tcp</Transport>" in document
    assert "<Port>15000</Port>" in document
    assert "<ExternalNetworkAddress>192.0.2.32</ExternalNetworkAddress>" in document


def test_an_application_outside_only_connects() -> None:
    mapping = map_transport(PLUGIN | {"dds.transport.tcp.server_bind_port": "0"})
    assert mapping.tcp == TcpTransport(0, "")
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
        (PLUGIN | {"dds.transport.tcp.tls.verify.ca_file": "ca.pem"}, "dds.transport.tcp.tls.verify.ca_file"),
        (PLUGIN | {"dds.transport.tcp.server_bind_port": "many"}, "'many' is not a port"),
        (PLUGIN | {"dds.transport.tcp.server_bind_port": "²"}, "'²' is not a port"),
        (PLUGIN | SERVICE | {"dds.transport.tcp.public_address": "192.0.2.1:7"}, "port 7 and 15000 is bound"),
        ({"dds.transport.load_plugins": "dds.transport.dtls"}, "Cyclone DDS has no transport dds.transport.dtls"),
        (
            PLUGIN | {"dds.transport.tcp.create_function": "NDDS_Transport_DTLS_create"},
            "Cyclone DDS has no transport NDDS_Transport_DTLS_create",
        ),
        ({"dds.sec.auth.identity_ca": "file:ca.pem"}, "dds.sec.auth.identity_ca: this build of Cyclone DDS has no DDS"),
        ({"com.rti.serv.secure.library": "nddssecurity"}, "com.rti.serv.secure.library"),
    ],
)
def test_what_breaks_a_promise_is_refused_by_name(properties: dict[str, str], name: str) -> None:
    assert name in "; ".join(map(str, map_transport(properties).refused))


@pytest.mark.parametrize(
    ("properties", "consequence"),
    [
        (PLUGIN | {"dds.transport.tcp.negotiate_session_id": "1"}, Consequence.NOTED),
        (PLUGIN | {"dds.transport.tcp.parent.message_size_max": "65536"}, Consequence.NOTED),
        ({"dds.transport.shmem.builtin.recv_buffer_size": "9"}, Consequence.WARNED),
        ({"dds.transport.shmem.builtin.receive_buffer_size": "9"}, Consequence.NOTED),
        ({"dds.transport.UDPv4.builtin.send_socket_buffer_size": "9"}, Consequence.NOTED),
        ({"dds.transport.UDPv4.builtin.parent.allow_interfaces_list": "192.0.2.1"}, Consequence.WARNED),
        ({"dds.transport.tcp.server_bind_port": "15000"}, Consequence.WARNED),
        (PLUGIN | {"dds.transport.tcp.negotiate_sesion_id": "1"}, Consequence.WARNED),
    ],
)
def test_what_only_tunes_another_implementation_is_not_refused(
    properties: dict[str, str], consequence: Consequence
) -> None:
    mapping = map_transport(properties)
    assert mapping.refused == ()
    assert [each.consequence for each in mapping.unmet] == [consequence]


def test_a_build_with_tcp_is_distinguished_from_one_without(tmp_path: Path) -> None:
    with_tcp, without = tmp_path / "with", tmp_path / "without"
    with_tcp.write_bytes(b"\\0TCP\\0NoDelay\\0AlwaysUsePeeraddrForUnicast\\0")
    without.write_bytes(b"\\0tcp6\\0ddsi_tcp_read\\0")
    assert built_with_tcp(with_tcp)
    assert not built_with_tcp(without)


def test_the_installed_library_is_the_one_that_the_binding_loads() -> None:
    import cyclonedds.__library__

    assert library_path() == Path(str(cyclonedds.__library__.library_path))
    assert has_tcp() is built_with_tcp(Path(str(cyclonedds.__library__.library_path)))


def test_plain_tcp_is_left_out_by_consent_and_nothing_else_is() -> None:
    both = PLUGIN | SERVICE | {"dds.transport.load_plugins": "dds.transport.tcp, dds.transport.tcp2"}
    wrong = {"dds.transport.tcp.server_bind_port": "many", "dds.transport.tcp.public_address": "192.0.2.1:7"}
    mapping = map_transport(both | wrong, without_tcp=True)
    assert (mapping.tcp, mapping.unmet) == (None, ())
    assert mapping.left_out == ("dds.transport.tcp", "dds.transport.tcp2")
    assert map_transport({"dds.transport.shmem.builtin.parent.address_bit_count": "1"}, without_tcp=True).left_out == ()
    for promise in (
        {"dds.transport.tcp.parent.classid": "NDDS_TRANSPORT_CLASSID_TLSV4_WAN"},
        {"dds.transport.tcp.tls.verify.ca_file": "ca.pem"},
        {"dds.sec.auth.identity_ca": "file:ca.pem"},
        {"dds.transport.tcp.create_function": "NDDS_Transport_DTLS_create"},
    ):
        with_tcp, without = (map_transport(PLUGIN | promise, without_tcp=each).refused for each in (False, True))
        assert without == with_tcp
        assert len(without) == 1
