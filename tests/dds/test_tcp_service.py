"""A service and its clients over TCP (manual, section 9.1), on the loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qsctl.client.blocking import QueueProducer
from qsctl.errors import Unavailable
from qsctl.transport.dds.participant import DomainSettings, Participant
from qsctl.transport.dds.tcp import TcpSettings
from tests.dds.service_process import CONFIGURATION, ORDERS

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


def tcp_is_built_in(port: int, domain: int) -> bool:
    """Whether this build of Cyclone DDS has TCP: it says so only when it is asked for."""
    try:
        Participant(domain, DomainSettings(tcp=TcpSettings(port))).close()
    except Unavailable as refusal:
        assert "over TCP" in refusal.message
        assert "its wheels have none" in refusal.remedy
        return False
    return True


def test_a_service_that_cannot_have_tcp_says_so_and_one_that_can_serves(
    tmp_path: Path, start_service: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, free_port: int, domain: int
) -> None:
    qos = PARTICIPANT_QOS.format(port=free_port)
    over_tcp = CONFIGURATION.replace(
        "<domain_id>{domain}</domain_id>\n      <shared", f"<domain_id>{{domain}}</domain_id>{qos}<shared"
    )
    over_tcp = over_tcp.replace(
        "<administration><domain_id>{domain}</domain_id>{administration}</administration>", "{administration}"
    )
    assert "dds.transport.tcp" in over_tcp
    if not tcp_is_built_in(free_port, domain):
        file = tmp_path / "tcp.xml"
        values = {"name": "Tcp", "domain": domain, "administration": "", "service": "", "queues": ORDERS}
        file.write_text(over_tcp.format(**values), encoding="utf-8")
        ran = subprocess.run(
            [sys.executable, "-m", "qsctl", "serve", str(file)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=60,
        )
        assert ran.returncode == 7, ran.stderr
        assert "over TCP" in ran.stderr
        return
    monkeypatch.setattr("tests.dds.service_process.CONFIGURATION", over_tcp)
    start_service()
    settings = DomainSettings(peers=(f"127.0.0.1:{free_port}",), tcp=TcpSettings())
    with QueueProducer[bytes]("Orders", domain, settings=settings) as producer:
        producer.wait_for_queue()
        producer.write(b"x")
        assert producer.wait_for_acknowledgments() == 0
