"""The five programs of the page `programs` run as they stand there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

import qsctl
from qsctl.shipped import shipped
from tests.dds.service_process import ServiceProcess
from tests.documents import page, programs
from tests.patience import PATIENCE_S

TASKS, BATCHES, REQUESTS, TEST, VARIANTS = programs(page("programs"))
PROGRAMS = {"tasks": TASKS, "batches": BATCHES, "requests": REQUESTS, "test_orders": TEST, "variants": VARIANTS}
SHOWN = {
    "tasks": [f"Order(number={number}, text='paper') False" for number in range(3)],
    "batches": ["499500"],
    "requests": ["b'HOW MUCH IS PAPER?'"],
}


LINES = {"tasks": (15, 38), "batches": (7, 15), "requests": (4, 16), "test_orders": (9, 18), "variants": (4, 15)}
"""Lines of code that each program may have, and those that it took before: for the tasks with the wrappers, their words
and codecs alone (`WITHOUT_PROCESSING`), without the clients of a `qsctl.Service`, for the test without the plug-in
(`WITHOUT_PLUG_IN`), for the variants with the plot made by hand.
"""

WITHOUT_PROCESSING = """
import asyncio
import json
from dataclasses import asdict, dataclass

from qsctl.client import ReceivedSample, aio


@dataclass
class Order:
    number: int
    text: str


class OrderCodec:
    def encode(self, value: Order) -> bytes:
        return json.dumps(asdict(value)).encode()

    def decode(self, payload: bytes) -> Order:
        return Order(**json.loads(payload))


async def fulfil(order: ReceivedSample[Order]) -> None:
    print(order.value, order.redelivered)


async def attempt(order: ReceivedSample[Order]) -> None:
    for left in (2, 1, 0):
        try:
            await fulfil(order)
        except Exception:
            if left == 0:
                order.reject()
            else:
                await asyncio.sleep(2.0**-left)
        else:
            order.acknowledge()
            break


async def main(domain: int = 0) -> None:
    async with aio.QueueProducer("Orders", domain, codec=OrderCodec()) as producer:
        await producer.wait_for_queue()
        for number in range(3):
            await producer.write(Order(number, "paper"))
        await producer.wait_for_acknowledgments()
    async with aio.QueueConsumer("Orders", "SharedSubscriber", domain, codec=OrderCodec()) as consumer:
        for _ in range(3):
            [order] = await consumer.receive(1)
            await asyncio.shield(attempt(order))


asyncio.run(main())
"""
"""The tasks of the page without `process`, `Retry`, `write_many` and a codec of a type."""

WITHOUT_PLUG_IN = """
import subprocess
import sys
import time

from qsctl.client import QueueConsumer, QueueProducer


def test_an_order_that_no_consumer_acknowledges_comes_again() -> None:
    command = [sys.executable, "-m", "qsctl", "serve", "service.xml"]
    service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert service.stderr is not None
        assert any("is up" in line for line in service.stderr)
        with QueueProducer("Orders", DOMAIN) as producer, QueueConsumer("Orders", "S", DOMAIN) as consumer:
            producer.write_many([b"7"])
            assert [sample.redelivered for sample in consumer.receive(1)] == [False]
            time.sleep(1.1)
            assert [sample.redelivered for sample in consumer.receive(1)] == [True]
    finally:
        service.terminate()
        service.communicate()
"""
"""The test of the page without `qsctl_service`; its service's configuration is a file that is not counted."""

TEST_SERVICE = """
<dds><queuing_service name="Test"><domain_participant name="P"><domain_id>DOMAIN</domain_id>
<shared_subscriber name="S"><session_settings><session name="s"/></session_settings>
<shared_reader_queue name="Orders" session="s"><topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
<queue_qos><redelivery><response_timeout><duration><sec>1</sec></duration></response_timeout>
<max_delivery_retries>1</max_delivery_retries></redelivery></queue_qos>
</shared_reader_queue></shared_subscriber></domain_participant></queuing_service></dds>
"""


def lines_of(program: str) -> int:
    return len([line for line in program.splitlines() if line.strip()])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_stays_short(name: str) -> None:
    """Each has at most half the lines that it took before."""
    count, (bound, former) = lines_of(PROGRAMS[name]), LINES[name]
    assert count <= bound <= former / 2
    assert LINES["tasks"][1] == lines_of(WITHOUT_PROCESSING)
    assert LINES["test_orders"][1] == lines_of(WITHOUT_PLUG_IN)


class MinimalService(ServiceProcess):
    """The service that the page's reader starts."""

    def start(self) -> None:
        file = self.directory / "USER_QUEUING_SERVICE.xml"
        text = shipped("fixtures/config/starter/minimal.xml").read_text(encoding="utf-8")
        file.write_text(text.replace("<domain_id>0<", f"<domain_id>{self.domain}<"), encoding="utf-8")
        self._arguments = (str(file),)
        super().start()


def test_tasks_batches_and_requests_print_what_they_should(
    tmp_path: Path, domain: int, run_python: Callable[..., Any]
) -> None:
    service = MinimalService(tmp_path, domain)
    try:
        with qsctl.Service.connect(f"dds:{domain}") as connected:
            connected.create_queue("Orders")
            connected.create_queue("Requests", reply_type="DDS::Octets")
        for name, lines in (*SHOWN.items(), ("tasks before", SHOWN["tasks"])):
            program = PROGRAMS.get(name, WITHOUT_PROCESSING)
            here = program.replace("domain: int = 0", f"domain: int = {domain}").replace("dds:0", f"dds:{domain}")
            assert here != program
            running = run_python(here)
            shown, _ = running.communicate(timeout=PATIENCE_S)
            assert (shown.splitlines(), running.returncode) == (lines, 0), name
    finally:
        service.end()


def test_the_test_of_an_application_passes(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(TEST)
    is_found = any(each.name == "qsctl" for each in entry_points(group="pytest11"))
    plugin = () if is_found else ("-p", "qsctl.testing.plugin")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, "test_orders.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


@pytest.mark.slow
def test_the_test_of_an_application_passes_at_twice_the_length_without_the_plug_in(tmp_path: Path, domain: int) -> None:
    (tmp_path / "service.xml").write_text(TEST_SERVICE.replace("DOMAIN", str(domain)), encoding="utf-8")
    (tmp_path / "test_orders.py").write_text(WITHOUT_PLUG_IN.replace("DOMAIN", str(domain)), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_orders.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_twenty_variants_become_a_picture(tmp_path: Path, run_python: Callable[..., Any]) -> None:
    running = run_python(VARIANTS)
    shown, _ = running.communicate(timeout=PATIENCE_S)
    assert (shown, running.returncode) == ("", 0)
    picture = (tmp_path / "depths.svg").read_text()
    assert "<svg" in picture
    assert "Share of messages lost" in picture
    assert "20 points" in picture
