"""A process that took part in a domain ends with its own status: the library, which aborts at times, is not ended.

`QSCTL_TEST_DDS_ENDS` is the number of starts and ends, side by side and beside a service (by default four); Cyclone DDS
11.0.1 aborts at times where a domain is deleted whose table of types is not empty (eclipse-cyclonedds/cyclonedds#2426).
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.processes import run

ENDS = int(os.environ.get("QSCTL_TEST_DDS_ENDS", "4"))
AT_ONCE = 4
DOMAIN = 88

PROGRAM = """
import sys
import cyclonedds.domain
from qsctl.transport.dds.participant import DomainSettings, IDLE_DOMAINS_MAX, Participant
from qsctl.transport.dds.wire_types import WireFrame

deleted, delete = [], cyclonedds.domain.Domain._delete
def note(self, reference):
    if isinstance(self, cyclonedds.domain.Domain):
        deleted.append(self)
        print("a domain is deleted", flush=True)
    return delete(self, reference)
cyclonedds.domain.Domain._delete = note
{body}
"""


def program(body: str, tmp_path: Path) -> tuple[int, str, str]:
    done = run([sys.executable, "-c", PROGRAM.format(body=body)], cwd=tmp_path)
    return done.returncode, done.stdout, done.stderr


def test_a_domain_is_kept_to_the_end_of_the_process_and_used_again(tmp_path: Path) -> None:
    body = f"""
for lease_ns in (5 * 10**9, 5 * 10**9, 4 * 10**9):
    participant = Participant({DOMAIN}, DomainSettings(lease_duration_ns=lease_ns))
    participant.topic("T", WireFrame)
    print(participant._own_id, flush=True)
    participant.close()
"""
    assert program(body, tmp_path) == (0, f"{DOMAIN}\n{DOMAIN}\n{DOMAIN + 1000 * 231}\n", "")


def test_domains_of_one_number_in_a_process_are_one_on_the_wire(tmp_path: Path) -> None:
    body = f"""
import time
from cyclonedds.sub import DataReader
from cyclonedds.pub import DataWriter
Participant({DOMAIN}, DomainSettings(lease_duration_ns=4 * 10**9)).close()
one, other = Participant({DOMAIN}, DomainSettings()), Participant({DOMAIN}, DomainSettings(), instance=1)
writer = DataWriter(one.entity, one.topic("T", WireFrame))
reader = DataReader(other.entity, other.topic("T", WireFrame))
deadline = time.monotonic() + 60
while not writer.get_publication_matched_status().current_count and time.monotonic() < deadline:
    time.sleep(0.01)
print(one._own_id != other._own_id, writer.get_publication_matched_status().current_count)
"""
    assert program(body, tmp_path) == (0, "True 1\n", "")


def test_a_process_that_goes_through_many_domains_keeps_some(tmp_path: Path) -> None:
    body = """
import qsctl.transport.dds.participant as module
module.IDLE_DOMAINS_MAX = 1
for number in (88, 89, 90):
    Participant(number, DomainSettings()).close()
print(len(deleted), [number for number in module._DOMAINS._open])
"""
    assert program(body, tmp_path) == (0, "a domain is deleted\na domain is deleted\n2 [90]\n", "")


def test_settings_of_a_domain_in_use_are_refused(tmp_path: Path) -> None:
    body = f"""
from qsctl.errors import Refused
used = Participant({DOMAIN}, DomainSettings())
try:
    Participant({DOMAIN}, DomainSettings(lease_duration_ns=4 * 10**9))
except Refused as error:
    print(error.message)
"""
    status, said, _ = program(body, tmp_path)
    assert status == 0
    assert f"DDS domain {DOMAIN} is in use in this process with another interface" in said


@pytest.mark.parametrize("at", range(0, ENDS, AT_ONCE))
def test_commands_over_dds_end_with_their_own_status(at: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "qsctl", "get", "data", "--service", f"dds:{DOMAIN}", "--timeout", "0.1s"]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ended = list(pool.map(lambda _: run(command, cwd=tmp_path), range(at, min(at + AT_ONCE, ENDS))))
    assert {(each.returncode, each.stderr.splitlines()[0][:20]) for each in ended} == {(8, "Error: no service an")}
