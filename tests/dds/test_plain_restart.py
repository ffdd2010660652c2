"""A service that stops, or is killed, among applications without qsctl: they go on by themselves."""

from __future__ import annotations

import signal

from cyclonedds.util import duration

from tests.dds.peer.plain_types import Octets
from tests.dds.plain_peer import PlainConsumer, plain_peers
from tests.dds.service_process import StartService, eventually

ORDERS = """
<shared_reader_queue name="Orders" session="s">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos><persistence><kind>PERSISTENT</kind></persistence></queue_qos>
</shared_reader_queue>
"""


def test_plain_applications_survive_an_orderly_stop_and_a_kill(start_service: StartService, domain: int) -> None:
    """What was written before an orderly stop is there after it; what was not acknowledged comes again, flagged."""
    count = 100
    with plain_peers(domain) as make:
        service = start_service(queues=ORDERS)
        peer = make()
        writer = peer.writer("Orders", Octets)
        for number in range(count):
            writer.write(Octets(b"%d" % number))
        assert writer.wait_for_acks(duration(seconds=60))
        assert service.stop() == 0
        service.start()
        consumer = PlainConsumer(peer, "Orders")
        held = consumer.receive(count)
        assert [int(bytes(each.payload)) for each in held] == list(range(count))
        for delivery in held[:-40]:
            consumer.answer(delivery)
        consumer.writer.wait_for_acks(duration(seconds=60))
        service.stop(signal.SIGKILL)
        service.start()
        again = consumer.receive(1)
        while again[-1].identity != held[-1].identity:
            again += consumer.receive(1)
        assert {each.identity.sequence_number for each in again} >= {
            each.identity.sequence_number for each in held[-40:]
        }, "what was not acknowledged comes again"
        assert all(each.flags & 1 for each in again), "flagged"
        assert eventually(lambda: writer.get_publication_matched_status().current_count > 0)
        for delivery in again:
            consumer.answer(delivery)
        assert eventually(lambda: _writes_on(writer, consumer)), "the same writer goes on"


def _writes_on(writer: object, consumer: PlainConsumer) -> bool:
    writer.write(Octets(b"more"))  # type: ignore[attr-defined]
    return [bytes(each.payload) for each in consumer.receive(1, patience_s=0.1)] == [b"more"]
