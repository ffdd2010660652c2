"""`qsctl bridge` between two running services while it, and each of them, is killed.

The journals of the producer and the consumer alone are judged: every accepted sample is consumed, and whatever is
consumed after its first time carries the flag. The number of kills is QSCTL_TEST_BRIDGE_KILLS.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.client.administration import Administration
from qsctl.identity import SampleIdentity
from qsctl.resource import parse_resource
from tests.campaigns import trials
from tests.dds.cluster import Cluster
from tests.dds.service_process import QUICK, ServiceProcess, eventually
from tests.patience import PATIENCE_S
from tests.processes import end, start

LOG = logging.getLogger(__name__)
KILLS = trials("QSCTL_TEST_BRIDGE_KILLS", 3, 60)
ROUND_COUNT = 1_500
_S = "/domain_participant/P/shared_subscriber/S/shared_reader_queue"
_QUEUE = """
<shared_reader_queue name="{name}" session="s">
  <topic_name>{name}</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos>
    <persistence><kind>PERSISTENT</kind></persistence>
    <redelivery><max_delivery_retries>{retries}</max_delivery_retries></redelivery>
  </queue_qos>
</shared_reader_queue>
"""


def queues(*names: str, retries: int) -> str:
    return "".join(_QUEUE.format(name=name, retries=retries) for name in names)


@dataclass
class Journals:
    """What the clients wrote down."""

    accepted: list[SampleIdentity] = field(default_factory=list)
    consumed: list[tuple[SampleIdentity, bool]] = field(default_factory=list)

    @property
    def missing(self) -> set[SampleIdentity]:
        return set(self.accepted) - {identity for identity, _ in self.consumed}

    @property
    def unflagged_doubles(self) -> list[SampleIdentity]:
        seen: set[SampleIdentity] = set()
        found: list[SampleIdentity] = []
        for identity, flagged in self.consumed:
            if identity in seen and not flagged:
                found.append(identity)
            seen.add(identity)
        return found


@pytest.fixture
def services(tmp_path: Path, domain: int) -> Iterator[tuple[ServiceProcess, ServiceProcess]]:
    with contextlib.ExitStack() as stack:
        running = []
        for name, of_it in (("Near", queues("Outgoing", retries=0)), ("Far", queues("Orders", "Places", retries=1000))):
            running.append(ServiceProcess(tmp_path, domain, "--lease", "2s", name=name, queues=of_it))
            stack.callback(running[-1].end)
        yield running[0], running[1]


def bridge(
    directory: Path, domain: int, *options: str, near: str = "Near", far: str = "Far"
) -> subprocess.Popen[bytes]:
    place = ("--service", f"dds:{domain}", "--target", near, "--to-target", far, "--timeout", "2s")
    with (directory / "bridge.log").open("ab") as log:
        return start(
            [sys.executable, "-m", "qsctl", "bridge", "Outgoing", "Orders", *place, *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=directory,
        )


@pytest.mark.campaign
@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("mirror", [False, True])
def test_no_kill_of_the_bridge_or_of_a_service_loses_a_sample_or_doubles_one_without_the_flag(
    services: tuple[ServiceProcess, ServiceProcess], tmp_path: Path, domain: int, mirror: bool
) -> None:
    chance = random.Random(7)
    journals = Journals()
    options = ("--mirror", "--places", "Places") if mirror else ("--exclusive",)
    process = bridge(tmp_path, domain, *options)
    try:
        with (
            QueueProducer("Outgoing", domain, settings=QUICK) as producer,
            QueueConsumer("Orders", "S", domain, settings=QUICK) as consumer,
            consumer.processing(lambda each: journals.consumed.append((each.identity, each.redelivered))),
        ):
            producer.wait_for_queue(PATIENCE_S)
            for kill in range(KILLS):
                before = len(journals.consumed)
                journals.accepted += [producer.write(os.urandom(300)) for _ in range(ROUND_COUNT)]
                producer.flush()
                assert eventually(lambda before=before: len(journals.consumed) > before, 2 * PATIENCE_S)
                time.sleep(chance.uniform(0.0, 0.2))  # they cross at this moment
                victim = (None, *services)[kill % 3]
                if victim is None:
                    end(process)
                    process = bridge(tmp_path, domain, *options)
                else:
                    victim.stop(signal.SIGKILL)
                    time.sleep(chance.uniform(0.0, 0.5))
                    victim.start()
                if process.poll() is not None:  # a service was killed while the bridge began
                    assert process.returncode == 8, (tmp_path / "bridge.log").read_text()
                    process = bridge(tmp_path, domain, *options)
                assert producer.wait_for_acknowledgments(PATIENCE_S) == 0
            deadline = time.monotonic() + 3 * PATIENCE_S
            while journals.missing and time.monotonic() < deadline:
                time.sleep(0.5)
                if process.poll() == 8:
                    process = bridge(tmp_path, domain, *options)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, (tmp_path / "bridge.log").read_text()
    finally:
        end(process)
    assert not journals.missing, f"lost; {(tmp_path / 'bridge.log').read_text()}"
    assert not journals.unflagged_doubles
    with contextlib.closing(services[0].connection()) as connection:
        found = Administration(connection, "Near").messages(parse_resource(f"{_S}/Outgoing"))
        left = {each.body.identity for each in found}
    assert left == (set(journals.accepted) if mirror else set())
    flagged_count = sum(flagged for _, flagged in journals.consumed)
    LOG.info(
        "%d kills, %d accepted, %d consumed, %d of them flagged",
        KILLS,
        len(journals.accepted),
        len(journals.consumed),
        flagged_count,
    )


@pytest.mark.slow
@pytest.mark.parametrize("mirror", [False, True])
def test_bridge_between_replicated_queues_goes_on_when_each_master_is_killed(
    tmp_path: Path, domain: int, mirror: bool
) -> None:
    journals = Journals()
    options = ("--mirror", "--places", "Places") if mirror else ("--exclusive",)
    with contextlib.ExitStack() as stack:
        near = Cluster(tmp_path, domain, name="Near", prefix="Near", queues=queues("Outgoing", retries=0))
        stack.callback(near.end)
        far = Cluster(tmp_path, domain, name="Far", prefix="Far", queues=queues("Orders", "Places", retries=1000))
        stack.callback(far.end)
        led = {"P/S/Outgoing": near, "P/S/Orders": far}
        for queue, cluster in led.items():
            cluster.await_all(queue)
        process = bridge(tmp_path, domain, *options, near="Near*", far="Far*")
        stack.callback(end, process)
        log = tmp_path / "bridge.log"
        producer = stack.enter_context(QueueProducer("Outgoing", domain, settings=QUICK))
        consumer = stack.enter_context(QueueConsumer("Orders", "S", domain, settings=QUICK))
        stack.enter_context(
            consumer.processing(lambda each: journals.consumed.append((each.identity, each.redelivered)))
        )
        producer.wait_for_queue(PATIENCE_S)
        for queue, cluster in led.items():
            before = len(journals.consumed)
            journals.accepted += [producer.write(os.urandom(300)) for _ in range(ROUND_COUNT)]
            producer.flush()
            assert eventually(lambda before=before: len(journals.consumed) > before, PATIENCE_S), log.read_text()
            master = cluster.master(queue)
            cluster.kill(master)
            cluster.master(queue, other_than=master)
            assert producer.wait_for_acknowledgments(PATIENCE_S) == 0
            cluster.services[master].start()
        assert eventually(lambda: not journals.missing, PATIENCE_S), log.read_text()
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, log.read_text()
    assert not journals.unflagged_doubles


def test_bridge_waits_for_a_service_that_is_away_and_reports_it_once(
    services: tuple[ServiceProcess, ServiceProcess], tmp_path: Path, domain: int
) -> None:
    _, far = services
    process = bridge(tmp_path, domain)
    log = tmp_path / "bridge.log"
    try:
        write(domain, 3)
        connection = far.connection()
        orders = parse_resource(f"{_S}/Orders")
        assert eventually(lambda: len(Administration(connection, "Far").messages(orders)) == 3, PATIENCE_S)
        far.stop(signal.SIGKILL)
        write(domain, 2)
        assert eventually(lambda: "Waiting." in log.read_text(), PATIENCE_S), log.read_text()
        time.sleep(3.0)  # for another attempt
        far.start()
        assert eventually(lambda: len(Administration(connection, "Far").messages(orders)) == 5, 2 * PATIENCE_S)
        assert eventually(lambda: "Samples cross again." in log.read_text(), PATIENCE_S)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        assert log.read_text().count("Waiting.") == 1, log.read_text()
    finally:
        end(process)


def write(domain: int, count: int) -> None:
    with QueueProducer("Outgoing", domain, settings=QUICK) as producer:
        producer.wait_for_queue(PATIENCE_S)
        for _ in range(count):
            producer.write(b"x")
        assert producer.wait_for_acknowledgments(PATIENCE_S) == 0
