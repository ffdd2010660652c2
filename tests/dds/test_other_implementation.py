"""Another implementation of DDS in another language, with the names of section 5.3 alone: Cyclone DDS in C, as Debian
packages it, and a Python program without qsctl.

The C program is built here from its own IDL for administration, and from qsctl's for monitoring. Install
`cyclonedds-dev`, `cyclonedds-tools` and a C compiler to run it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from qsctl.client import QueueProducer
from qsctl.transport.dds.wire.wire_monitoring import monitoring_class
from tests.dds.c_peer import ENVIRONMENT, build, needs_c
from tests.dds.service_process import StartService
from tests.processes import run

SUBSCRIBER = "/domain_participant/P/shared_subscriber/S"
MONITORING = "<monitoring><enabled>true</enabled><domain_id>{domain}</domain_id></monitoring>"
PATIENCE_S = 150.0
IDLS = ("service_admin.idl", "schemas/qsctl_monitoring.idl")

OPTIONS = {
    "as idlc makes it": ("-DEXTENSIBILITY=@appendable",),
    "without type information": ("-t", "-DEXTENSIBILITY=@appendable"),
    "final, without type information": ("-t", "-DEXTENSIBILITY=@final"),
}
"""The first reads XCDR2 only and compares types; the last reads XCDR1, too, and compares names."""


@pytest.fixture(scope="module", params=OPTIONS)
def peer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("peer"), IDLS, "peer.c", *OPTIONS[request.param])


def ask(peer: Path, domain: int, action: str, resource: str, body: str = "") -> tuple[int, str, bytes]:
    ran = run([str(peer), str(domain), action, resource, body], env=ENVIRONMENT)
    assert ran.returncode == 0, ran.stderr
    retcode, text, octets = ran.stdout.rstrip("\n").split("\t")
    return int(retcode), text, bytes.fromhex(octets)


@pytest.mark.slow(beyond=1)
@needs_c
def test_a_program_in_c_administers_and_monitors_a_service(
    start_service: StartService, peer: Path, domain: int
) -> None:
    service = start_service(service=MONITORING.format(domain=domain))
    xml = (
        '<shared_reader_queue name="FromC" session="s"><topic_name>FromC</topic_name>'
        "<type_name>DDS::Octets</type_name></shared_reader_queue>"
    )
    assert ask(peer, domain, "CREATE", SUBSCRIBER, f'str://"{xml}"')[0] == 0
    retcode, text, _ = ask(peer, domain, "CREATE", SUBSCRIBER, f'str://"{xml}"')
    assert (retcode, "same configuration" in text) == (5, True)
    with QueueProducer("FromC", domain) as producer:
        producer.wait_for_queue(PATIENCE_S)
        for _ in range(7):
            producer.write(b"seven")
        producer.wait_for_acknowledgments(PATIENCE_S)
    queue = f"{SUBSCRIBER}/shared_reader_queue/FromC"
    retcode, _, octets = ask(peer, domain, "GET", f"{queue}/status")
    assert retcode == 0
    status: Any = monitoring_class("Monitoring::SharedReaderQueueStatus").deserialize(octets)
    assert (status.queue_name, status.received_message_count, status.current_message_count) == ("P/S/FromC", 7, 7)
    _, name, period_ms = ask(peer, domain, "MONITOR", "P/S/FromC")
    assert (name, int.from_bytes(period_ms)) == ("P/S/FromC", 5000)
    retcode, text, _ = ask(peer, domain, "GET", f"{SUBSCRIBER}/shared_reader_queue/Nobody/status")
    assert (retcode, "no shared reader queue" in text) == (2, True)
    assert ask(peer, domain, "DELETE", queue)[0] == 0
    assert ask(peer, domain, "GET", f"{queue}/status")[0] == 2
    assert ask(peer, domain, "SHUTDOWN", "/")[0] == 0
    assert service.process is not None
    assert service.process.wait(PATIENCE_S) == 0


def test_a_python_program_without_qsctl_administers_and_monitors_a_service(
    start_service: StartService, domain: int
) -> None:
    service = start_service(service=MONITORING.format(domain=domain))
    program = Path(__file__).parent / "peer" / "administrator.py"
    ran = run([sys.executable, "-I", str(program), str(domain)], env=ENVIRONMENT)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["OK", "DUPLICATED", "OK", "P/S/New", "OK", "OK"]
    assert service.process is not None
    assert service.process.wait(PATIENCE_S) == 0
