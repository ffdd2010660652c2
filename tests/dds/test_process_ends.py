"""A process that took part in a domain ends with its own status: the library, which aborts at times, is not ended.

Cyclone DDS 11.0.1 aborts at times where a domain is deleted whose table of types is not empty
(eclipse-cyclonedds/cyclonedds#2426). `QSCTL_TEST_DDS_ENDS` is the number of starts and ends, twelve side by side and
beside a service; each is a process of its own, forked from one that has imported the program (`tests/fork_server.py`).
With `-s` it prints how often each exit status was, also of a run that is interrupted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.campaigns import trials
from tests.dds.service_process import StartService
from tests.patience import PATIENCE_S
from tests.processes import run

ENDS = trials("QSCTL_TEST_DDS_ENDS", 4, 10_000)
AT_ONCE = 12
ENDS_PER_SERVICE = 250

PROGRAM = """
import cyclonedds.domain
from qsctl import endings
from qsctl.transport.dds.participant import DomainSettings, Participant
from qsctl.transport.dds.wire.wire_types import WireFrame

delete = cyclonedds.domain.Domain._delete
def note(self, reference):
    if isinstance(self, cyclonedds.domain.Domain):
        print("a domain is deleted", flush=True)
    return delete(self, reference)
cyclonedds.domain.Domain._delete = note
{body}
"""

TAKE_PART = """
for lease_ns in (5 * 10**9, 5 * 10**9, 4 * 10**9):
    participant = Participant({domain}, DomainSettings(lease_duration_ns=lease_ns))
    participant.topic("T", WireFrame)
    print(lease_ns // 10**9, flush=True)
    participant.close()
"""

DELETED = "a domain is deleted"


def lines_of(body: str, domain: int, tmp_path: Path) -> list[str]:
    done = run([sys.executable, "-c", PROGRAM.format(body=body.replace("{domain}", str(domain)))], cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_a_process_that_leaves_by_itself_keeps_its_domain_and_uses_it_again(domain: int, tmp_path: Path) -> None:
    body = f"with endings.whole_process():{TAKE_PART}".replace("\n", "\n    ")
    assert lines_of(body, domain, tmp_path) == ["5", "5", DELETED, "4"], "deleted where other settings are wanted"


def test_another_process_gives_its_domain_back(domain: int, tmp_path: Path) -> None:
    assert lines_of(TAKE_PART, domain, tmp_path) == ["5", DELETED, "5", DELETED, "4", DELETED]


ASK = """
import sys
from qsctl import endings
from qsctl.client.dds_connection import DdsConnection
from qsctl.core.admin.command import GetData
from qsctl.resource import parse_resource
from qsctl.transport.dds.participant import DomainSettings
with endings.whole_process():
    for _ in sys.stdin:
        connection = DdsConnection(int(sys.argv[1]), float(sys.argv[2]), DomainSettings())
        print(*(each.reply.retcode.name for each in connection.request(GetData(parse_resource("/data")))), flush=True)
        connection.close()
"""


@pytest.mark.slow
def test_participants_one_after_the_other_in_a_kept_domain_are_answered(
    start_service: StartService, domain: int, run_python: Callable[..., subprocess.Popen[str]]
) -> None:
    """Also by a service that was started anew while the process was not in the domain."""
    service = start_service()
    asking = run_python(ASK, str(domain), str(PATIENCE_S))
    assert asking.stdin is not None
    assert asking.stdout is not None
    for turn in range(6):
        if turn in {2, 4}:
            service.stop(signal.SIGKILL if turn == 2 else signal.SIGTERM)
            service.start()
        asking.stdin.write("ask\n")
        asking.stdin.flush()
        assert asking.stdout.readline() == "OK\n", turn
    asking.stdin.close()
    assert asking.wait(PATIENCE_S) == 0


@pytest.mark.campaign
@pytest.mark.parametrize("at", range(0, ENDS, ENDS_PER_SERVICE))
def test_commands_over_dds_end_with_their_own_status(
    at: int, start_service: StartService, domain: int, tmp_path: Path
) -> None:
    start_service()
    location = ["--service", f"dds:{domain}", "--timeout", f"{PATIENCE_S}s"]
    command = [sys.executable, "-m", "qsctl", "get", "data", *location]
    ended: Counter[tuple[int, str]] = Counter()
    began_at, processor_s = time.monotonic(), _processor_s()
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for each in pool.map(lambda _: run(command, cwd=tmp_path), range(at, min(at + ENDS_PER_SERVICE, ENDS))):
                ended[each.returncode, each.stderr] += 1
    finally:
        sys.stderr.write(
            f"\nfrom {at}: {dict(ended)}, {time.monotonic() - began_at:.0f} s, "
            f"{_processor_s() - processor_s:.0f} s of processor time, load {os.getloadavg()[0]:.1f}\n"
        )
    assert set(ended) == {(0, "")}


def _processor_s() -> float:
    """Return the processor time of the processes that this one waited for."""
    times = os.times()
    return times.children_user + times.children_system
