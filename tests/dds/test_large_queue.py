"""A queue with many samples is looked at, taken, handed back and emptied while the service goes on [QS 5.4]."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.client.administration import Administration, FromService
from qsctl.client.dds_connection import DdsConnection
from qsctl.core.admin.reply import MessageData
from qsctl.resource import ResourceIdentifier
from qsctl.storage.log.segment_file import decode_header, stream_of
from tests.dds.service_process import ServiceProcess, StartService, eventually
from tests.patience import PATIENCE_S

SAMPLES = 20_000
REDELIVERED = "<redelivery><max_delivery_retries>1</max_delivery_retries></redelivery>"
PERSISTENT = "<persistence><kind>PERSISTENT</kind></persistence>"
QUEUES = "".join(
    f'<shared_reader_queue name="{name}" session="s"><topic_name>{name}</topic_name><type_name>DDS::Octets</type_name>'
    f"<queue_qos>{REDELIVERED}</queue_qos></shared_reader_queue>"
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
    with contextlib.ExitStack() as stack:
        stack.callback(running.end)
        with QueueProducer("Orders", domain) as producer:
            producer.wait_for_queue()
            for number in range(SAMPLES):
                producer.write(str(number).encode())
            assert producer.wait_for_acknowledgments() == 0
        yield running


ALL = [str(number).encode() for number in range(SAMPLES)]


def while_another_writes(service: ServiceProcess, done: Callable[[Administration, ResourceIdentifier], None]) -> None:
    """Do something with the large queue, in a thread, while a producer writes to the other one."""
    connection = DdsConnection(service.domain, PATIENCE_S)
    administration = Administration(connection)
    queue = administration.queue_named("Orders")
    with ThreadPoolExecutor(1) as threads, QueueProducer("Bills", service.domain) as producer:
        producer.wait_for_queue()
        doing = threads.submit(done, administration, queue)
        while not doing.done():
            producer.write(b"x")
            assert producer.wait_for_acknowledgments() == 0
        doing.result()
    connection.close()


def taken(service: ServiceProcess, count: int, *, acknowledges: bool) -> list[bytes]:
    """What a consumer takes, which leaves then."""
    payloads: list[bytes] = []
    with QueueConsumer("Orders", "S", service.domain) as consumer:
        consumer.wait_for_queue()
        while len(payloads) < count:
            samples = consumer.receive(1000, 30)
            assert samples
            payloads += [sample.value for sample in samples]
            if acknowledges:
                consumer.acknowledge_all()
    return payloads


@pytest.mark.slow
def test_a_large_queue_is_shown_whole_while_others_write(service: ServiceProcess) -> None:
    found: list[FromService[MessageData]] = []
    while_another_writes(service, lambda administration, queue: found.extend(administration.messages(queue)))
    assert [each.body.payload for each in found] == ALL


@pytest.mark.slow(beyond=1)
def test_a_consumer_that_leaves_with_all_of_it_leaves_all_to_the_next(service: ServiceProcess) -> None:
    def take_twice(*_: object) -> None:
        assert taken(service, SAMPLES, acknowledges=False) == ALL
        assert sorted(taken(service, SAMPLES, acknowledges=True)) == sorted(ALL)

    while_another_writes(service, take_twice)


def test_a_large_queue_is_flushed_and_deleted_whole_while_others_write(service: ServiceProcess) -> None:
    texts: list[str] = []

    def empty(administration: Administration, queue: ResourceIdentifier) -> None:
        texts.extend(each.reply.text for each in administration.flush_queue(queue))
        assert administration.messages(queue) == []
        texts.extend(each.reply.text for each in administration.delete_queue(queue))
        assert [each.queue_name for each in administration.hosted().queues] == ["P/S/Bills"]

    while_another_writes(service, empty)
    assert texts == [f"{SAMPLES} samples removed from queue P/S/Orders", "queue P/S/Orders is deleted"]


@pytest.mark.slow(beyond=1)
def test_the_first_few_of_many_are_given_alone(service: ServiceProcess) -> None:
    connection = DdsConnection(service.domain, PATIENCE_S)
    administration = Administration(connection)
    found = administration.messages(administration.queue_named("Orders"), count=3)
    connection.close()
    assert [each.body.payload for each in found] == [b"0", b"1", b"2"]


@pytest.mark.slow
def test_a_store_that_is_compacted_beside_the_work_restores_what_was_left(
    start_service: StartService, tmp_path: Path, domain: int
) -> None:
    queues = QUEUES.replace(REDELIVERED, PERSISTENT)
    service = start_service("--persistent-storage-path", str(tmp_path), queues=queues)
    with QueueProducer("Orders", domain) as producer:
        producer.wait_for_queue()
        for payload in ALL:
            producer.write(payload)
        assert producer.wait_for_acknowledgments() == 0
    with QueueConsumer("Orders", "S", domain) as consumer:
        consumer.wait_for_queue()
        gone = [sample.value for sample in consumer.receive(SAMPLES * 3 // 4, 30)]
        while len(gone) < SAMPLES * 3 // 4:
            gone += [sample.value for sample in consumer.receive(SAMPLES * 3 // 4 - len(gone), 30)]
        consumer.acknowledge_all()
        consumer.flush()
        assert eventually(lambda: any(map(is_base, tmp_path.glob("QSOrders@*_m*.db")))), "the store is compacted"
    service.stop(signal.SIGKILL)
    service.start()
    left = taken(service, SAMPLES - len(gone), acknowledges=True)
    assert sorted(gone + left) == sorted(ALL)


def is_base(metadata: Path) -> bool:
    """Whether a metadata file supersedes those before it."""
    header = decode_header(metadata.read_bytes(), stream_of(metadata))
    return header is not None and header.is_base
