"""Who is flagged as redelivered after the master was killed: what a consumer has, and nothing that none was sent.

`QSCTL_TEST_FAILOVERS`: how often the master is killed.
"""

import time
from pathlib import Path

import pytest

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.client.consumer import ReceivedSample
from tests.campaigns import trials
from tests.dds.cluster import MASTER_TIMEOUT_MS, SERVICE, Cluster
from tests.dds.domains import claim_domain, release_domain
from tests.patience import PATIENCE_S

FAILOVERS = trials("QSCTL_TEST_FAILOVERS", 1, 20)
ASSIGNED, UNSEEN = 100, 1000

pytestmark = pytest.mark.xdist_group("cluster")


def received(consumer: QueueConsumer[bytes], count: int) -> list[ReceivedSample[bytes]]:
    found: list[ReceivedSample[bytes]] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        found += consumer.receive(count - len(found), 0.2)
    return found


@pytest.mark.slow
@pytest.mark.campaign
def test_only_what_was_assigned_is_flagged_after_the_master_was_killed(tmp_path: Path) -> None:
    domain = claim_domain()
    service = SERVICE.replace("<synchronize_consumer_assignment>true<", "<synchronize_consumer_assignment>false<")
    cluster = Cluster(tmp_path, domain, service=service)
    try:
        for _ in range(FAILOVERS):
            master = cluster.await_all("P/S/Orders")
            with (
                QueueProducer("Orders", domain, window_count=100) as producer,
                QueueConsumer("Orders", "S", domain, unacked_threshold=ASSIGNED - 1) as consumer,
            ):
                producer.wait_for_queue(PATIENCE_S)
                consumer.wait_for_queue(PATIENCE_S)
                for number in range(ASSIGNED + UNSEEN):
                    producer.write(b"%d" % number, timeout_s=PATIENCE_S)
                assert producer.wait_for_acknowledgments(PATIENCE_S) == 0
                held = received(consumer, ASSIGNED)
                assert not any(each.redelivered for each in held)
                time.sleep(2 * MASTER_TIMEOUT_MS / 1000)  # some heartbeats: nothing is sent ahead any more
                cluster.kill(master)
                cluster.master("P/S/Orders", other_than=master)
                flags: dict[bytes, bool] = {}
                while len(flags) < ASSIGNED + UNSEEN:
                    samples = received(consumer, min(ASSIGNED, ASSIGNED + UNSEEN - len(flags)))
                    assert samples, len(flags)
                    for sample in samples:
                        assert sample.value not in flags, "once after the failover"
                        flags[sample.value] = sample.redelivered
                        sample.acknowledge()
                    consumer.flush()
                assert {value for value, flag in flags.items() if flag} == {each.value for each in held}
            cluster.services[master].start()
    finally:
        cluster.end()
        release_domain(domain)
