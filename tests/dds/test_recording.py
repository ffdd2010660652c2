"""A running service is recorded: what is in the folder is what its own counters say, whoever is killed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.client.administration import Administration
from qsctl.core.admin.command import StartRecording
from qsctl.core.admin.reply import RecordingStatus
from qsctl.core.settings import ServiceSettings
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.errors import Refused
from qsctl.eventlog.reader import counters_of, open_run
from qsctl.eventlog.recording.schema import REPLAY_TABLES
from qsctl.eventlog.run_folder import SERVICE_FILE, Recording, RecordingEnd, RunInfo, RunStatus
from qsctl.resource import parse_resource
from qsctl.summary.recorded_run import read_run
from tests.dds.service_process import ServiceProcess, StartService, eventually
from tests.dds.several_sessions import SeveralSessions, take, write

QUEUES = """
<dead_letter_shared_reader_queue name="Dead" session="s"><topic_name>Dead</topic_name></dead_letter_shared_reader_queue>
<shared_reader_queue name="Orders" session="s" dead_letter_queue="Dead">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
  <queue_qos>
    <resource_limits><queue_allocation_settings><max_count>20</max_count></queue_allocation_settings>
      <replacement_policy><kind>REJECT_WITHOUT_REPLACEMENT</kind></replacement_policy></resource_limits>
    <redelivery><max_delivery_retries>1</max_delivery_retries>
      <response_timeout><duration><sec>0</sec><nanosec>500000000</nanosec></duration></response_timeout></redelivery>
  </queue_qos>
</shared_reader_queue>
"""
ORDERS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/Orders")


def tables_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Every row of a recording, its files compared with what `run.json` says of them."""
    run = read_run(folder)
    from qsctl.eventlog.reader import batches_of

    names = ("messages", *REPLAY_TABLES)
    return {name: [row for batch in batches_of(folder, run.info, name) for row in batch.to_pylist()] for name in names}


def recording_of(info: RunInfo) -> Recording:
    assert isinstance(info.recording, Recording)
    return info.recording


def finished(administration: Administration) -> RecordingStatus:
    administration.stop_recording()
    assert eventually(lambda: administration.recordings()[0].body.is_complete)
    return administration.recordings()[0].body


def check_against_status(folder: Path, status: SharedReaderQueueStatus) -> None:
    """Hold the recording of a queue against the status of the same time."""
    queue = status.queue_name
    short = queue.rpartition("/")[2]
    tables = tables_of(folder)
    rows = {name: [row for row in each if row.get("queue") in (queue, short)] for name, each in tables.items()}
    total, ours = status.total, status.additional
    outcomes = Counter(row["outcome"] for row in rows["messages"])
    answers = Counter(row["answer"] for row in rows["arrivals"])
    ends = Counter(row["answer"] for row in rows["deliveries"])
    assert len(rows["arrivals"]) == total.received_message_count
    assert answers["bounced"] == total.bounced_message_count
    assert answers["duplicate"] == ours.duplicate_message_count
    assert len(rows["deliveries"]) == total.sent_message_count
    again = sum(row["attempt"] > 1 or row["redelivered"] for row in rows["deliveries"])
    assert again == total.redelivered_message_count
    assert ends["timed_out"] == total.timeout_message_count
    assert outcomes["delivered"] == total.acknowledged_message_count
    assert outcomes["expired"] == total.expired_message_count
    assert outcomes["dead"] == total.failed_delivery_message_count
    assert outcomes["discarded"] == total.bounced_message_count + ours.flushed_message_count
    assert outcomes["held"] == status.current_message_count
    counters = {row["queue"]: row for row in counters_of(folder, open_run(folder).info).to_pylist()}[short]
    for column, outcome in (
        ("delivered_messages", "delivered"),
        ("expired_messages", "expired"),
        ("dead_messages", "dead"),
        ("discarded_messages", "discarded"),
        ("length_messages", "held"),
    ):
        assert counters[column] == outcomes[outcome], column
    assert counters["arrived_messages"] == len(rows["messages"])
    late = sum(row["late_ns"] is not None for row in rows["deliveries"])
    assert late == total.late_acknowledgment_message_count


def test_recording_goes_on_when_samples_of_different_sizes_are_acknowledged_singly(
    start_service: StartService, tmp_path: Path, domain: int
) -> None:
    folder = tmp_path / "rec"
    service = start_service("--record", str(folder))
    administration = Administration(service.connection())
    with QueueProducer("Orders", domain) as producer, QueueConsumer("Orders", "S", domain) as consumer:
        producer.wait_for_queue()
        consumer.wait_for_queue()
        for number in range(20):
            producer.write(bytes(number))
        producer.wait_for_acknowledgments()
        for _ in range(5):
            (sample,) = consumer.receive(1)
            consumer.acknowledge(sample)
            consumer.flush()
        assert eventually(lambda: administration.statuses()[0].body.total.acknowledged_message_count == 5)
    recording = finished(administration)
    assert recording.end == RecordingEnd.STOPPED, recording
    check_against_status(folder, administration.statuses()[0].body)


def test_figures_equal_the_status_of_the_same_time(start_service: StartService, tmp_path: Path, domain: int) -> None:
    folder = tmp_path / "rec"
    service = start_service("--record", str(folder), "--record-level", "events", queues=QUEUES)
    administration = Administration(service.connection())
    with QueueProducer("Orders", domain) as producer, QueueConsumer("Orders", "S", domain) as consumer:
        producer.wait_for_queue()
        consumer.wait_for_queue()
        for number in range(12):
            producer.write(bytes([number]) * 100)
        producer.flush()
        samples: list[Any] = []
        while len(samples) < 12:
            samples += consumer.receive(12)
        consumer.acknowledge(samples[0])
        consumer.reject(samples[1])
        consumer.flush()
        assert eventually(lambda: administration.statuses(ORDERS)[0].body.total.failed_delivery_message_count >= 5)
        for sample in samples[2:6]:
            consumer.acknowledge(sample)  # late
        consumer.flush()
        producer.write(b"short-lived", lifespan_ns=1_000_000)
        assert producer.wait_for_acknowledgments() >= 0
        for number in range(30):
            producer.write(bytes([number]))
        producer.wait_for_acknowledgments()
    assert eventually(lambda: administration.statuses(ORDERS)[0].body.current_sent_message_count == 0)
    administration.flush_queue(ORDERS, "@sample_queue_status = UNDELIVERED_MESSAGE_STATUS")
    statuses = {each.body.queue_name: each.body for each in administration.statuses()}
    assert finished(administration).end == RecordingEnd.STOPPED
    for each in statuses.values():
        check_against_status(folder, each)
    info = open_run(folder).info
    assert info.status is RunStatus.COMPLETE
    total = statuses["P/S/Orders"].total
    assert min(total.timeout_message_count, total.bounced_message_count, total.failed_delivery_message_count) > 0
    happened = {each.event: each.count for each in info.done[0].happenings}
    assert happened["late-acknowledgment"] == sum(
        each.total.late_acknowledgment_message_count for each in statuses.values()
    )
    tables = tables_of(folder)
    assert [row["command"] for row in tables["commands"]] == ["flush_queue"]
    assert {"consumer_joined", "producer_seen"} <= {row["happening"] for row in tables["peers"]}


def test_recording_begins_and_ends_on_a_running_service(
    start_service: StartService, tmp_path: Path, domain: int
) -> None:
    service = start_service(queues=QUEUES)
    administration = Administration(service.connection())
    write(domain, "Orders", b"1", b"22", b"333")
    (used := tmp_path / "used").mkdir()
    (used / "file").write_text("")
    with pytest.raises(Refused, match="is not an empty folder"):
        administration.start_recording(StartRecording(str(used)))
    with pytest.raises(Refused, match="not a level"):
        administration.start_recording(StartRecording(str(tmp_path / "x"), "everything"))
    with pytest.raises(Refused, match="no recording is in progress"):
        administration.stop_recording()
    (started,) = administration.start_recording(StartRecording("rec"))
    folder = tmp_path / "rec"
    assert started.body.folder == str(folder), "relative to the service's working directory"
    with pytest.raises(Refused, match="a recording is in progress"):
        administration.start_recording(StartRecording("other"))
    assert take(domain, "Orders", 3) == [b"1", b"22", b"333"]
    write(domain, "Orders", b"4444")
    assert finished(administration).end == RecordingEnd.STOPPED
    tables = tables_of(folder)
    assert [(row["origin"], row["size_bytes"], row["at_ns"] < 0) for row in tables["arrivals"]] == [
        ("held", 1, True), ("held", 2, True), ("held", 3, True), ("producer", 4, False),
    ]  # fmt: skip
    assert [row["answer"] for row in tables["deliveries"]] == ["acknowledged"] * 3
    assert recording_of(open_run(folder).info).held_messages == 3
    (counters,) = [each for each in counters_of(folder, open_run(folder).info).to_pylist() if each["queue"] == "Orders"]
    assert (counters["arrived_messages"], counters["delivered_messages"], counters["length_messages"]) == (1, 3, 1)
    (again,) = administration.start_recording(StartRecording("again", "counters"))
    assert again.body.is_on
    assert service.stop() == 0
    assert open_run(tmp_path / "again").info.status is RunStatus.COMPLETE, "the end of the service ends it"


def test_sessions_are_recorded_as_one_run(tmp_path: Path, domain: int) -> None:
    folder = tmp_path / "rec"
    service = SeveralSessions(tmp_path, domain, "--record", str(folder))
    try:
        write(domain, "Orders", b"1", b"2")
        write(domain, "Quotes", b"3")
        assert take(domain, "Orders", 1) == [b"1"]
        administration = Administration(service.connection())
        statuses = [each.body for each in administration.statuses()]
        assert finished(administration).end == RecordingEnd.STOPPED
        for status in statuses:
            check_against_status(folder, status)
        recording = recording_of(open_run(folder).info)
        assert recording.processes == 2
    finally:
        service.end()


def test_killed_service_leaves_a_folder_that_is_finished(
    start_service: StartService, tmp_path: Path, domain: int
) -> None:
    folder = tmp_path / "rec"
    service = start_service("--record", str(folder), queues=QUEUES)
    administration = Administration(service.connection())
    write(domain, "Orders", *[b"x"] * 7)
    written_ns = time.time_ns()
    write(domain, "Orders", b"later")  # where the recorder has this, or what comes with it, it has all before it

    def is_received() -> bool:
        status = administration.recordings()[0].body
        return status.started_at_ns + status.duration_ns >= written_ns

    assert eventually(is_received)
    service.stop(signal.SIGKILL)
    assert eventually(lambda: open_run(folder).info.status is RunStatus.PARTIAL)
    assert recording_of(open_run(folder).info).end is RecordingEnd.SERVICE_GONE
    outcomes = [row["outcome"] for row in tables_of(folder)["messages"]]
    assert outcomes in (["held"] * 7, ["held"] * 8)


def recorder_of(service: ServiceProcess) -> int:
    return int(re.findall(r"'recording'.* pid=(\d+)", service.log.read_text())[-1])


def test_service_goes_on_without_its_recorder(start_service: StartService, tmp_path: Path, domain: int) -> None:
    service = start_service("--record", "rec", queues=QUEUES)
    administration = Administration(service.connection())
    os.kill(recorder_of(service), signal.SIGKILL)
    write(domain, "Orders", b"1", b"2")
    assert eventually(lambda: administration.recordings()[0].body.end == RecordingEnd.FAILED)
    assert "was killed by signal 9" in administration.recordings()[0].body.text
    assert take(domain, "Orders", 2) == [b"1", b"2"]
    assert "recording_ended" in service.log.read_text()
    assert open_run(tmp_path / "rec").info.status is RunStatus.RUNNING
    administration.start_recording(StartRecording("again"))
    assert finished(administration).end == RecordingEnd.STOPPED


def test_folder_that_vanishes_ends_the_recording_alone(
    start_service: StartService, tmp_path: Path, domain: int
) -> None:
    service = start_service("--record", "rec", queues=QUEUES)
    administration = Administration(service.connection())
    write(domain, "Orders", b"1")
    assert eventually(lambda: administration.recordings()[0].body.bytes > 0)
    shutil.rmtree(tmp_path / "rec")
    status = finished(administration)
    assert status.end == RecordingEnd.FAILED
    assert "No such file or directory" in status.text
    assert take(domain, "Orders", 1) == [b"1"]


def test_service_file_is_what_was_hosted(start_service: StartService, tmp_path: Path) -> None:
    import msgspec

    service = start_service("--record", "rec", queues=QUEUES)
    assert service.stop() == 0
    settings = msgspec.json.decode((tmp_path / "rec" / SERVICE_FILE).read_bytes(), type=ServiceSettings)
    (participant,) = settings.participants
    assert [queue.name for queue in participant.subscribers[0].queues] == ["Dead", "Orders"]
    assert "<max_count>20</max_count>" in (tmp_path / "rec" / "config.xml").read_text()
