"""Those who look on: plain readers, the monitoring topic, the distributed log, Prometheus [QS 2.8, 3.5, 6]."""

from __future__ import annotations

import os
import re
import signal
import time
import urllib.request
from collections.abc import Callable
from typing import Any

from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader, Subscriber

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.qos import last_value_qos, partition_qos, reader_qos, writer_qos
from qsctl.transport.dds.wire import frames
from qsctl.transport.dds.wire.raw import RawReader, RawWriter
from qsctl.transport.dds.wire.wire_monitoring import MONITORING_TOPIC, monitoring_class
from qsctl.transport.dds.wire.wire_types import (
    LOGGER_TOPIC,
    WireAcknowledgmentFrame,
    WireFrame,
    WireLogMessage,
    consumer_acknowledgment_topic,
)
from tests.dds.service_process import eventually
from tests.patience import PATIENCE_S

MONITORED = """
<monitoring><domain_id>{domain}</domain_id>
  <status_publication_period><sec>0</sec><nanosec>400000000</nanosec></status_publication_period></monitoring>
<statistics><statistics_sampling_period><sec>0</sec><nanosec>100000000</nanosec></statistics_sampling_period></statistics>
"""
LOGGED = "<distributed_logger><enabled>true</enabled></distributed_logger>"


def test_observers_see_copies_status_log_and_figures_and_change_nothing(
    start_service: Callable[..., Any], domain: int
) -> None:
    participant = Participant(domain)
    assert participant.entity is not None
    wide = Subscriber(participant.entity, qos=partition_qos("*"))
    copies = RawReader(DataReader(wide, participant.topic("Orders@S", WireFrame), qos=reader_qos()))
    log = DataReader(participant.entity, participant.topic(LOGGER_TOPIC, WireLogMessage), qos=reader_qos())
    service = start_service("--metrics-port", "0", service=MONITORED.format(domain=domain), administration=LOGGED)
    with QueueProducer("Orders", domain) as producer, QueueConsumer("Orders", "S", domain) as consumer:
        producer.wait_for_queue()
        consumer.wait_for_queue()
        for number in range(10):
            producer.write(bytes([number]))
        assert producer.wait_for_acknowledgments() == 0
        taken: list[Any] = []
        while len(taken) < 10:
            taken += consumer.receive(10)
        consumer.acknowledge_all()
        consumer.flush()

        seen: list[bytes] = []

        def all_seen() -> bool:
            for data in copies.take():
                found = frames.parse_frame(data, "", "Orders@S")
                seen.extend(write.payload for each in found for write in each.singles())
            return len(seen) >= 10

        assert eventually(all_seen), seen
        assert seen == [bytes([number]) for number in range(10)], "a plain reader gets a copy of each sample sent"

        # A reader that comes late gets the last status: the writer is transient-local.
        statuses = DataReader(
            participant.entity,
            participant.topic(MONITORING_TOPIC, monitoring_class("Monitoring::SharedReaderQueueStatus")),
            qos=last_value_qos(),
        )
        found: list[Any] = []

        def published() -> bool:
            found.extend(each for each in statuses.take(10) if each.sample_info.valid_data)
            return any(each.acknowledged_message_count == 10 for each in found)

        assert eventually(published)
        assert found[-1].queue_name == "P/S/Orders"
        assert found[-1].enqueue_throughput.publication_period_metrics.period_ms == 400
        begun = time.monotonic()
        found.clear()
        assert eventually(lambda: published() and len(found) >= 3)
        assert time.monotonic() - begun > 0.3, "one a period"

        port = int(re.findall(r"metrics_port=(\d+)", service.log.read_text())[-1])
        figures = lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S).read().decode()  # noqa: E731
        assert eventually(lambda: 'qsctl_queue_samples{queue="P/S/Orders"} 0.0' in figures())
        assert 'qsctl_queue_events_total{event="received",queue="P/S/Orders"} 10.0' in figures()
    lines: list[Any] = []

    def logged() -> bool:
        lines.extend(each for each in log.take(100) if each.sample_info.valid_data)
        return bool(lines)

    os.kill(service.pid, signal.SIGTERM)
    assert eventually(logged), "the distributed log carries what standard error does"
    assert {line.service_name for line in lines} == {"Test"}
    participant.close()
    assert service.process.wait(PATIENCE_S) == 0


def test_frames_that_only_a_faulty_peer_sends_do_not_affect_others(
    start_service: Callable[..., Any], domain: int
) -> None:
    start_service()
    participant = Participant(domain)
    assert participant.entity is not None
    topic = participant.topic(consumer_acknowledgment_topic("Orders", "S"), WireAcknowledgmentFrame)
    answers = RawWriter(DataWriter(participant.entity, topic, qos=writer_qos()))
    samples = RawWriter(DataWriter(participant.entity, participant.topic("Orders", WireFrame), qos=writer_qos()))
    assert eventually(lambda: answers.matched_count() > 0 and samples.matched_count() > 0)
    with QueueProducer("Orders", domain) as producer:
        producer.wait_for_queue()
        producer.write(b"held")
        assert producer.wait_for_acknowledgments() == 0
        held = SampleIdentity(producer.state.writer_guid, 1)
        for sender in (NIL_GUID, Guid(b"s" * 16)):
            for pairs in ([(held, 1)], [(held, 9)], [(NIL_IDENTITY, 0)], []):
                answers.write(
                    frames.answers_of(sender, "Elsewhere@Nobody", [frames.pack_answer(*each) for each in pairs])
                )
        answers.flush()
        for packed in ([], [frames.pack_sample(NIL_IDENTITY, b"", flags=0xFFFF_FFFF, lifespan_ns=0)]):
            samples.write(frames.frame_of(packed))
        samples.flush()
        producer.write(b"still served")
        assert producer.wait_for_acknowledgments() == 0
        with QueueConsumer("Orders", "S", domain) as consumer:
            consumer.wait_for_queue()
            values: list[bytes] = []
            while len(values) < 2:
                batch = consumer.receive(10, 5.0)
                assert batch, values
                values += [sample.value for sample in batch if sample.identity.writer_guid == held.writer_guid]
                consumer.acknowledge_all()
            assert values == [b"held", b"still served"], "a stranger's answer settles nothing"
    participant.close()
