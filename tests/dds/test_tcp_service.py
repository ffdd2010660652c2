"""A service and its clients over TCP [QS 9.1], on the loopback."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qsctl.client import QueueProducer
from qsctl.config.qos_libraries.dds_library import has_tcp
from qsctl.config.qos_libraries.transport_properties import TcpTransport
from qsctl.errors import Unavailable
from qsctl.transport.dds.participant import DomainSettings, Participant
from tests.dds.service_process import CONFIGURATION, ORDERS
from tests.processes import run

PARTICIPANT_QOS = """
<participant_qos><property><value>
  <element><name>dds.transport.load_plugins</name><value>dds.transport.tcp</value></element>
  <element><name>dds.transport.tcp.library</name><value>nddstransporttcp</value></element>
  <element><name>dds.transport.tcp.parent.classid</name><value>NDDS_TRANSPORT_CLASSID_TCPV4_WAN</value></element>
  <element><name>dds.transport.tcp.create_function</name><value>NDDS_Transport_TCPv4_create</value></element>
  <element><name>dds.transport.tcp.server_bind_port</name><value>{port}</value></element>
  <element><name>dds.transport.tcp.public_address</name><value>127.0.0.1:{port}</value></element>
</value></property></participant_qos>
"""


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def configuration_over_tcp(port: int) -> str:
    """The configuration of a service whose one participant asks for TCP; without administration, which has UDP."""
    qos = PARTICIPANT_QOS.format(port=port)
    over_tcp = CONFIGURATION.replace(
        "<domain_id>{domain}</domain_id>\n      <shared", f"<domain_id>{{domain}}</domain_id>{qos}<shared"
    )
    over_tcp = over_tcp.replace(
        "<administration><domain_id>{domain}</domain_id>{administration}</administration>", "{administration}"
    )
    assert "dds.transport.tcp" in over_tcp
    return over_tcp


def test_a_service_without_tcp_support_reports_it_and_one_with_it_serves(
    tmp_path: Path, start_service: Callable[..., Any], free_port: int, domain: int
) -> None:
    over_tcp = configuration_over_tcp(free_port)
    if not has_tcp():
        file = tmp_path / "tcp.xml"
        values = {
            "name": "Tcp", "domain": domain, "types": "", "administration": "", "service": "", "subscriber": "S",
            "sessions": '<session name="s"/>', "queues": ORDERS,
        }  # fmt: skip
        file.write_text(over_tcp.format(**values), encoding="utf-8")
        ran = run([sys.executable, "-m", "qsctl", "serve", str(file)], cwd=tmp_path)
        assert ran.returncode == 7, ran.stderr
        assert "<domain_participant> asks for TCP, and the installed Cyclone DDS is built without TCP" in ran.stderr
        assert "--without-tcp" in ran.stderr
        assert not list(tmp_path.glob("*.db"))
        return
    start_service(configuration=over_tcp)
    settings = DomainSettings(peers=(f"127.0.0.1:{free_port}",), tcp=TcpTransport())
    with QueueProducer("Orders", domain, settings=settings) as producer:
        producer.wait_for_queue()
        producer.write(b"x")
        assert producer.wait_for_acknowledgments() == 0


def test_a_participant_that_asks_for_tcp_is_served_over_udp_by_consent(
    start_service: Callable[..., Any], free_port: int, domain: int
) -> None:
    service = start_service("--without-tcp", configuration=configuration_over_tcp(free_port))
    with QueueProducer[bytes]("Orders", domain) as producer:
        producer.wait_for_queue()
        producer.write(b"x")
        assert producer.wait_for_acknowledgments() == 0
    assert "asks for TCP, and is served over UDP alone" in service.log.read_text()
    with socket.create_server(("127.0.0.1", free_port)):
        pass  # the port that the file names is free


def test_the_library_has_tcp_exactly_where_it_is_found_to_have_it(domain: int, free_port: int) -> None:
    """What is found in the file of the library, without starting it, is what it says when it is asked for TCP."""
    try:
        Participant(domain, DomainSettings(tcp=TcpTransport(free_port))).close()
        starts = True
    except Unavailable as refusal:
        assert "over TCP" in refusal.message
        starts = False
    assert has_tcp() is starts
