"""A queue whose records its service cannot store any more: a client learns why nothing is delivered."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from qsctl.client import QueueProducer
from qsctl.errors import ExitStatus
from tests.dds.service_process import ServiceProcess
from tests.dds.several_sessions import SeveralSessions
from tests.patience import PATIENCE_S
from tests.processes import run

QUEUES = """
<shared_reader_queue name="Orders" session="s">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos><persistence><kind>PERSISTENT</kind></persistence></queue_qos>
</shared_reader_queue>
"""
SAMPLE_BYTES = 30_000
FILE_BYTES_MAX = 100_000


def qsctl(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "qsctl", *arguments])


def limit_files(service: ServiceProcess, size_bytes: int) -> None:
    """Let no process of the service write further into a file than this, as a full disk would."""
    pids = service.processes().values() if isinstance(service, SeveralSessions) else [service.pid]
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))


def in_one_process(directory: Path, domain: int) -> ServiceProcess:
    return ServiceProcess(directory, domain, queues=QUEUES)


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("start", [in_one_process, SeveralSessions])
def test_consume_and_status_report_a_queue_that_cannot_be_stored(
    tmp_path: Path, domain: int, start: Callable[[Path, int], ServiceProcess]
) -> None:
    service = start(tmp_path, domain)
    place = ("--service", f"dds:{domain}")
    try:
        with QueueProducer("Orders", domain) as producer:
            producer.wait_for_queue()
            for _ in range(10):
                producer.write(bytes(SAMPLE_BYTES))
            assert producer.wait_for_acknowledgments() == 0
        limit_files(service, FILE_BYTES_MAX)
        done = qsctl("consume", "Orders", "--count", "0", "-o", "jsonl", *place)
        assert done.returncode == ExitStatus.REFUSED, done
        assert "queue P/S/Orders of service Test delivers nothing: suspended, for it cannot be stored" in done.stderr
        status = qsctl("get", "status", "Orders", *place)
        assert status.returncode == ExitStatus.DONE
        assert "queue P/S/Orders of service Test: suspended, for it cannot be stored" in status.stderr
        limit_files(service, resource.RLIM_INFINITY)
        done = qsctl("consume", "Orders", "--count", "10", "--timeout", f"{PATIENCE_S:g}s", "-o", "jsonl", *place)
        assert len(done.stdout.splitlines()) == 10, "it continues by itself"
    finally:
        service.end()
