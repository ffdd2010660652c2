"""`Service.serve` and `Service.connect`: a daemon that a program starts for itself, over DDS."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import qsctl
from qsctl.client import QueueProducer
from qsctl.declared.problems import InvalidFile
from qsctl.errors import QsctlError, Refused, UsageError
from qsctl.programs._started_service import free_domain
from qsctl.programs.service import Service
from tests.processes import running

pytest.importorskip("cyclonedds", reason="there is no DDS library")


def children() -> set[int]:
    """The child processes of this one that serve."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            is_served = b"served_process" in (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == os.getpid() and is_served:
            found.add(int(status.parent.name))
    return found


@pytest.mark.slow
def test_a_served_queue_is_written_by_a_producer_and_consumed_over_a_second_connection() -> None:
    with Service.serve() as service:
        service.create_queue("Orders")
        assert service.domain_id is not None
        with QueueProducer("Orders", service.domain_id) as producer:
            producer.wait_for_queue()
            producer.write(b"first")
            assert producer.wait_for_acknowledgments() == 0
        with Service.connect(f"dds:{service.domain_id}") as other:
            (sample,) = other.consume("Orders", count=1, timeout="10s")
            assert sample.payload == b"first"
            sample.acknowledge()
            with pytest.raises(UsageError, match="before"):
                sample.acknowledge()
        service.wait("Orders", empty=True)
        with free_domain() as another:
            assert another != service.domain_id
    with pytest.raises(Refused, match="is closed"):
        service.status()
    assert not children()


@pytest.mark.slow
def test_a_service_stops_when_its_block_fails() -> None:
    with free_domain() as domain, pytest.raises(ZeroDivisionError), Service.serve(domain=domain) as service:
        assert service.domain_id == domain
        assert len(children()) == 1
        _ = 1 // 0
    assert not children()


@pytest.mark.slow
def test_a_service_ends_with_a_program_that_is_killed() -> None:
    program = (
        "import qsctl, sys\n"
        "service = qsctl.Service.serve()\n"
        "sys.stdout.write('served\\n'); sys.stdout.flush(); sys.stdin.read()"
    )
    with running([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"served\n"
        served = [
            int(each.parent.name)
            for each in Path("/proc").glob("[0-9]*/stat")
            if each.read_text().rpartition(")")[2].split()[1] == str(starter.pid)
        ]
        assert len(served) == 1
        pidfd = os.pidfd_open(served[0])
        starter.send_signal(signal.SIGKILL)
        ended, _, _ = select.select([pidfd], [], [], 60)
        os.close(pidfd)
    assert ended


def test_a_wrong_configuration_starts_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile):
        qsctl.Service.serve(tmp_path / "none.xml")
    (tmp_path / "bad.xml").write_text("<dds><queuing_service/></dds>", encoding="utf-8")
    with pytest.raises(InvalidFile):
        qsctl.Service.serve(tmp_path / "bad.xml")
    assert not children()


def test_what_the_daemon_refuses_is_raised_with_its_words() -> None:
    with pytest.raises(QsctlError, match="domain"):
        qsctl.Service.serve(domain=5_000)
    assert not children()


def test_a_domain_with_a_participant_is_not_free() -> None:
    with free_domain() as domain, free_domain() as other:
        assert other != domain
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as participant:
        participant.bind(("", 7400 + 250 * domain))
        for _ in range(20):
            with free_domain() as other:
                assert other != domain
