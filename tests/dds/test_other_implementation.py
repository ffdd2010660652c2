"""Another implementation of DDS in another language: Cyclone DDS in C, as Debian packages it.

The program is built here from its own IDL. Install `cyclonedds-dev`, `cyclonedds-tools` and a C compiler to run it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qsctl.client.blocking import QueueProducer
from qsctl.transport.dds.wire_types import WireQueueStatus

PEER = Path(__file__).parent / "peer"
COMPILER = shutil.which("cc") or shutil.which("gcc")
IDLC = shutil.which("idlc")
HEADER = Path("/usr/include/dds/dds.h")

URI = """<CycloneDDS><Domain Id="any"><General><Interfaces><NetworkInterface name="lo"/></Interfaces>
<AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>
<MaxAutoParticipantIndex>99</MaxAutoParticipantIndex><Peers><Peer address="127.0.0.1"/></Peers></Discovery>
</Domain></CycloneDDS>"""

pytestmark = pytest.mark.skipif(
    COMPILER is None or IDLC is None or not HEADER.exists(),
    reason="needs a C compiler, and cyclonedds-dev and cyclonedds-tools of Debian",
)


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("peer")
    for source in ("service_admin.idl", "peer.c"):
        shutil.copy(PEER / source, directory)
    subprocess.run([str(IDLC), "-t", "service_admin.idl"], cwd=directory, check=True, timeout=60)
    program = directory / "peer"
    subprocess.run(
        [str(COMPILER), "-O1", "-o", str(program), "peer.c", "service_admin.c", "-lddsc"],
        cwd=directory,
        check=True,
        timeout=120,
    )
    return program


def ask(peer: Path, domain: int, action: str, resource: str, body: str = "") -> tuple[int, str, bytes]:
    ran = subprocess.run(
        [str(peer), str(domain), action, resource, body],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "CYCLONEDDS_URI": URI},
    )
    assert ran.returncode == 0, ran.stderr
    retcode, text, octets = ran.stdout.rstrip("\n").split("\t")
    return int(retcode), text, bytes.fromhex(octets)


def test_a_program_in_c_creates_a_queue_and_reads_its_status(
    start_service: Callable[..., Any], peer: Path, domain: int
) -> None:
    start_service()
    xml = (
        '<shared_reader_queue name="FromC" session="s"><topic_name>FromC</topic_name>'
        "<type_name>DDS::Octets</type_name></shared_reader_queue>"
    )
    subscriber = "/domain_participant/P/shared_subscriber/S"
    assert ask(peer, domain, "CREATE", subscriber, f'str://"{xml}"')[0] == 0
    retcode, text, _ = ask(peer, domain, "CREATE", subscriber, f'str://"{xml}"')
    assert (retcode, "same configuration" in text) == (5, True)
    with QueueProducer[bytes]("FromC", domain) as producer:
        producer.wait_for_queue()
        for _ in range(7):
            producer.write(b"seven")
        producer.wait_for_acknowledgments()
    retcode, _, octets = ask(peer, domain, "GET", f"{subscriber}/shared_reader_queue/FromC/status")
    assert retcode == 0
    status: Any = WireQueueStatus.deserialize(octets)
    assert (status.queue_name, status.received_message_count, status.current_message_count) == ("P/S/FromC", 7, 7)
    retcode, text, _ = ask(peer, domain, "GET", f"{subscriber}/shared_reader_queue/Nobody/status")
    assert (retcode, "no shared reader queue" in text) == (2, True)
