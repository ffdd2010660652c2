"""Samples of replicated queues are moved by their masters, and survive the loss of one [QS 7.1]."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from qsctl.client import QueueProducer
from qsctl.client.administration import Administration
from qsctl.errors import NoAnswer
from qsctl.identity import SampleIdentity
from qsctl.resource import ResourceIdentifier, parse_resource
from tests.dds.cluster import Cluster
from tests.dds.moved_samples import KILLS, held, transfer
from tests.dds.service_process import QUICK
from tests.patience import PATIENCE_S, eventually

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(not KILLS, reason="a long run, see QSCTL_TEST_MOVE_KILLS"),
]

_S = "/domain_participant/P/shared_subscriber/S"
ORDERS = parse_resource(f"{_S}/shared_reader_queue/Orders")
QUICK_QUEUE = parse_resource(f"{_S}/shared_reader_queue/Quick")


def test_moved_samples_survive_the_loss_of_the_master(tmp_path: Path, domain: int) -> None:
    cluster = Cluster(tmp_path, domain)
    try:
        for queue in ("P/S/Orders", "P/S/Quick"):
            cluster.await_all(queue)
        with QueueProducer("Orders", domain, settings=QUICK) as producer:
            producer.wait_for_queue(PATIENCE_S)
            identities = [producer.write(f"{at}".encode() + bytes(300)) for at in range(50)]
            assert producer.wait_for_acknowledgments(PATIENCE_S) == 0
        any_service = next(iter(cluster.services.values()))
        administration = Administration(any_service.connection())
        moved = transfer(administration, ORDERS, QUICK_QUEUE)
        assert (moved.moved_count, moved.results[QUICK_QUEUE].refused_count) == (50, 0)
        assert eventually(lambda: not held(administration, ORDERS))  # slaves answer too, a moment later
        assert transfer(administration, QUICK_QUEUE, ORDERS, limit=20).moved_count == 20
        master = cluster.master("P/S/Quick")
        cluster.services[master].stop(signal.SIGKILL)
        for queue in ("P/S/Orders", "P/S/Quick"):
            cluster.master(queue, other_than=master)
        survivor = next(each for name, each in cluster.services.items() if name != master)
        administration = Administration(survivor.connection(3.0))
        assert eventually(lambda: identities_of(administration, ORDERS) == set(identities[:20]))
        assert eventually(lambda: identities_of(administration, QUICK_QUEUE) == set(identities[20:]))
        found = held(administration, ORDERS)
        assert all(each.redelivered and (each.payload or b"")[-300:] == bytes(300) for each in found)
    finally:
        cluster.end()


def identities_of(administration: Administration, queue: ResourceIdentifier) -> set[SampleIdentity]:
    """What is held; nothing, as long as the killed service is waited for."""
    try:
        return {each.identity for each in held(administration, queue)}
    except NoAnswer:
        return set()
