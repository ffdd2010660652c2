"""A queue with many samples is looked at while the service goes on (manual, section 5.4.6)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from qsctl.client.admin import Administration, Told
from qsctl.client.blocking import QueueProducer
from qsctl.client.dds_connection import DdsConnection
from qsctl.core.admin.reply import MessageData
from tests.dds.service_process import ServiceProcess

SAMPLES = 20_000
QUEUES = "".join(
    f'<shared_reader_queue name="{name}" session="s"><topic_name>{name}</topic_name><type_name>DDS::Octets</type_name>'
    "</shared_reader_queue>"
    for name in ("Orders", "Bills")
)


class Sessions(ServiceProcess):
    """A service that has a process for each of its two sessions."""

    def start(self) -> None:
        text = self.file.read_text()
        text = text.replace('<session name="s"/>', '<session name="s"/><session name="t"/>')
        self.file.write_text(text.replace('"Bills" session="s"', '"Bills" session="t"'))
        super().start()


@pytest.fixture(params=[ServiceProcess, Sessions], ids=["one process", "a process a session"])
def service(request: pytest.FixtureRequest, tmp_path: Path, domain: int) -> Iterator[ServiceProcess]:
    """A service with many samples in one of two queues."""
    running: ServiceProcess = request.param(tmp_path, domain, queues=QUEUES)
    with QueueProducer[bytes]("Orders", domain) as producer:
        producer.wait_for_queue()
        for number in range(SAMPLES):
            producer.write(str(number).encode())
        assert producer.wait_for_acknowledgments(60) == 0
    yield running
    running.end()


def test_a_large_queue_is_shown_whole_while_others_write(service: ServiceProcess) -> None:
    found: list[Told[MessageData]] = []
    connection = DdsConnection(service.domain, 30.0)
    administration = Administration(connection)
    queue = administration.queue_named("Orders")
    looking = threading.Thread(target=lambda: found.extend(administration.messages(queue)), daemon=True)
    with QueueProducer[bytes]("Bills", service.domain) as producer:
        producer.wait_for_queue()
        looking.start()
        while looking.is_alive():
            producer.write(b"x")
            assert producer.wait_for_acknowledgments(30) == 0
    looking.join(30)
    connection.close()
    assert [each.body.payload for each in found] == [str(number).encode() for number in range(SAMPLES)]


def test_the_first_few_of_many_are_given_alone(service: ServiceProcess) -> None:
    connection = DdsConnection(service.domain, 30.0)
    administration = Administration(connection)
    found = administration.messages(administration.queue_named("Orders"), count=3)
    connection.close()
    assert [each.body.payload for each in found] == [b"0", b"1", b"2"]
