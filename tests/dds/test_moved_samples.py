"""`move` and `requeue` over DDS, between queues of one process and of two, and where the service is killed meanwhile.

Kills are a long run: QSCTL_TEST_MOVE_KILLS=100, or any other number. The embedded service is killed in every run, see
`tests/service/test_crash_moves.py`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.client.administration import Administration
from qsctl.core.inserted_sample import InsertedSample
from qsctl.errors import Refused
from qsctl.identity import SampleIdentity, guid_from_hex
from qsctl.resource import ResourceIdentifier, parse_resource
from tests.dds.moved_samples import _S, DEAD, KILLS, ORDERS, QUEUES, SESSIONS, held, transfer
from tests.dds.service_process import QUICK, ServiceProcess, eventually
from tests.patience import PATIENCE_S

LOG = logging.getLogger(__name__)

QUOTES = parse_resource(f"{_S}/shared_reader_queue/Quotes")


@pytest.fixture
def service(tmp_path: Path, domain: int) -> Iterator[ServiceProcess]:
    """Orders and their dead letters in one process, Quotes in another."""
    running = ServiceProcess(tmp_path, domain, "--lease", "2s", queues=QUEUES, sessions=SESSIONS)
    yield running
    running.end()


def fill(domain: int, count: int) -> list[SampleIdentity]:
    with QueueProducer("Orders", domain, settings=QUICK) as producer:
        producer.wait_for_queue(PATIENCE_S)
        identities = [producer.write(f"{at}".encode() + bytes(300)) for at in range(count)]
        assert producer.wait_for_acknowledgments(PATIENCE_S) == 0
    return identities


@pytest.mark.slow
def test_samples_go_from_one_session_to_another_and_dead_letters_back(service: ServiceProcess) -> None:
    administration = Administration(service.connection())
    check_there_and_back(administration, fill(service.domain, 600))
    administration.flush_queue(ORDERS)
    check_dead_letters(service, administration)
    check_large_sample(administration)
    sample = InsertedSample(SampleIdentity(guid_from_hex("7"), 1), b"")
    with pytest.raises(Refused, match="names 2001 samples"):
        administration.insert_samples(QUOTES, [sample] * 2001)


def check_there_and_back(administration: Administration, identities: list[SampleIdentity]) -> None:
    there = transfer(administration, ORDERS, QUOTES, limit=500)
    assert (there.moved_count, there.results[QUOTES].refused_count) == (500, 0)
    assert [each.identity for each in held(administration, QUOTES)] == identities[:500]
    assert [each.identity for each in held(administration, ORDERS)] == identities[500:]
    assert transfer(administration, QUOTES, ORDERS).moved_count == 500
    back = held(administration, ORDERS)
    assert {each.identity for each in back} == set(identities)
    assert sum(each.redelivered for each in back) == 500
    assert all((each.payload or b"")[-300:] == bytes(300) for each in back)


def check_dead_letters(service: ServiceProcess, administration: Administration) -> None:
    identities = fill(service.domain, 5)
    assert [each for each, _ in consumed(service, 5, accepted=False)] == identities
    assert eventually(lambda: len(held(administration, DEAD)) == 5, PATIENCE_S)
    assert transfer(administration, DEAD, ORDERS, begins_anew=True).moved_count == 5
    assert consumed(service, 5, accepted=True) == [(each, False) for each in identities], "in one process, in one step"
    assert not held(administration, DEAD)


def consumed(service: ServiceProcess, count: int, *, accepted: bool) -> list[tuple[SampleIdentity, bool]]:
    with QueueConsumer("Orders", "S", service.domain, settings=QUICK) as consumer:
        consumer.wait_for_queue(PATIENCE_S)
        found: list[tuple[SampleIdentity, bool]] = []
        while len(found) < count:
            for sample in consumer.receive(count, PATIENCE_S):
                found.append((sample.identity, sample.redelivered))
                sample.acknowledge() if accepted else sample.reject()
            consumer.flush()
    return found


def check_large_sample(administration: Administration) -> None:
    payload = os.urandom(3_000_000)
    sample = InsertedSample(SampleIdentity(guid_from_hex("7"), 1), payload)
    assert administration.insert_samples(QUOTES, [sample]).done_count == 1
    assert transfer(administration, QUOTES, ORDERS).moved_count == 1
    (there,) = held(administration, ORDERS)
    assert there.payload == payload


@pytest.mark.campaign
@pytest.mark.skipif(not KILLS, reason="a long run, see QSCTL_TEST_MOVE_KILLS")
def test_no_kill_of_the_service_or_of_the_command_loses_a_moved_sample(
    service: ServiceProcess, run_python: Callable[..., subprocess.Popen[str]]
) -> None:
    """Samples go to and fro; by turns the service and the program that moves them are killed."""
    chance = random.Random(5)
    expected = set(fill(service.domain, 400))
    there_and_back = [(ORDERS, QUOTES), (QUOTES, ORDERS)]
    both_count = killed_midway_count = 0
    for kill in range(KILLS):
        source, target = there_and_back[kill % 2]
        mover = run_python(
            "import os, sys; sys.stdin.readline(); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])",
            *("-m", "qsctl", "move", str(source), str(target), "--service", f"dds:{service.domain}"),
            *("--rate", "400", "--timeout", "5s"),
        )
        assert mover.stdin is not None
        with contextlib.closing(service.connection()) as connection:
            administration = Administration(connection)
            before = len(held(administration, target))
            mover.stdin.write("\n")
            mover.stdin.flush()
            wait_for_some(administration, target, before, mover)
        time.sleep(chance.uniform(0.0, 0.3))
        if kill % 2:
            os.kill(service.pid, signal.SIGKILL)
            service.stop(signal.SIGKILL)
            mover.wait(PATIENCE_S)
            service.start()
        else:
            mover.kill()
            mover.wait(PATIENCE_S)
        with contextlib.closing(service.connection()) as connection:
            administration = Administration(connection)
            found = {queue: [each.identity for each in held(administration, queue)] for queue in (ORDERS, QUOTES)}
            assert expected == {*found[ORDERS], *found[QUOTES]}, f"after kill {kill}: lost, or not sent"
            both = set(found[ORDERS]) & set(found[QUOTES])
            both_count += len(both)
            killed_midway_count += bool(found[source])
            for queue in (ORDERS, QUOTES):
                assert len(found[queue]) == len(set(found[queue])), f"after kill {kill}: twice in a queue"
                unflagged = [each.identity for each in held(administration, queue) if not each.redelivered]
                assert not both & set(unflagged), f"after kill {kill}: a duplicate without the flag"
            transfer(administration, source, target)
            assert not held(administration, source)
            assert {each.identity for each in held(administration, target)} == expected
    LOG.info("%d kills, %d of them midway, %d samples found in both queues", KILLS, killed_midway_count, both_count)


def wait_for_some(
    administration: Administration, queue: ResourceIdentifier, before: int, process: subprocess.Popen[str]
) -> None:
    """Wait until the first sample has come to a queue, or the program is over."""
    deadline = time.monotonic() + PATIENCE_S
    while len(administration.messages(queue, count=before + 1)) <= before and process.poll() is None:
        assert time.monotonic() < deadline, "nothing moves"
