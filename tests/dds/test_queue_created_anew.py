"""A queue that is deleted and created again while its service runs: another queue, also after a kill."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.client.administration import Administration
from qsctl.core.admin.reply import MessageData
from qsctl.core.queue.settings import PersistenceKind, PersistenceSettings, SharedReaderQueueSettings
from qsctl.errors import QsctlError
from qsctl.identity import guid_from_hex
from qsctl.resource import ResourceIdentifier
from tests.dds.moved_samples import DEAD, ORDERS, QUEUES, SESSIONS
from tests.dds.service_process import QUICK, ServiceProcess, eventually
from tests.patience import PATIENCE_S

AGAIN = SharedReaderQueueSettings(
    "Orders",
    "Orders",
    "DDS::Octets",
    session="s",
    dead_letter_queue="Dead",
    persistence=PersistenceSettings(PersistenceKind.PERSISTENT),
)


def write(domain: int, payload: bytes) -> None:
    """Write the first sample of one writer."""
    with QueueProducer("Orders", domain, settings=QUICK, writer_guid=guid_from_hex("7")) as producer:
        producer.wait_for_queue(PATIENCE_S)
        producer.write(payload)
        assert producer.wait_for_acknowledgments(PATIENCE_S) == 0


def reject(domain: int) -> None:
    with QueueConsumer("Orders", "S", domain, settings=QUICK) as consumer:
        consumer.wait_for_queue(PATIENCE_S)
        for sample in consumer.receive(1, PATIENCE_S):
            sample.reject()
        consumer.flush()


def held(administration: Administration, queue: ResourceIdentifier) -> list[MessageData]:
    return [each.body for each in administration.messages(queue)]


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("storage", ["FULL", "NORMAL"])
def test_sample_of_a_queue_created_anew_survives_a_kill(tmp_path: Path, domain: int, storage: str) -> None:
    """The earlier queue's dead letter has its label, position and identity; only the incarnation is another."""
    filesystem = f"<filesystem><synchronization>{storage}</synchronization></filesystem>"
    storage = f"<persistence_settings>{filesystem}</persistence_settings>"
    service = ServiceProcess(tmp_path, domain, "--lease", "2s", queues=QUEUES, sessions=SESSIONS, service=storage)
    try:
        administration = Administration(service.connection())
        write(domain, b"a")
        (first,) = held(administration, ORDERS)
        reject(domain)
        assert eventually(lambda: len(held(administration, DEAD)) == 1, PATIENCE_S)
        administration.delete_queue(ORDERS)
        administration.create_queue(ORDERS.parent, AGAIN)
        write(domain, b"b")
        (second,) = held(administration, ORDERS)
        assert (second.position, second.identity) == (first.position, first.identity)
        assert second.incarnation != first.incarnation
        with pytest.raises(QsctlError, match="of a queue P/S/Orders that is gone"):
            administration.messages(ORDERS, after_position=1, incarnation=first.incarnation)
        service.stop(signal.SIGKILL)
        service.start()
        administration = Administration(service.connection())
        assert eventually(lambda: held(administration, DEAD) != [], PATIENCE_S)
        (restored,) = held(administration, ORDERS)
        assert (restored.payload, restored.incarnation) == (second.payload, second.incarnation)
        reject(domain)
        assert eventually(lambda: len(held(administration, DEAD)) == 2, PATIENCE_S)
        assert [each.payload for each in held(administration, DEAD)] == [first.payload, second.payload]
    finally:
        service.end()
