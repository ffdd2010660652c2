"""A service in a state directory is recorded over its commands."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from qsctl.core.admin.command import GetRecording, RecordingCommand, Shutdown, StartRecording, StopRecording
from qsctl.core.admin.reply import RecordingStatus, Reply, ReturnCode
from qsctl.eventlog.reader import batches_of, counters_of, open_run
from qsctl.eventlog.run_folder import Recording, RecordingEnd, RunStatus
from qsctl.service.directory.embedded import EmbeddedService, open_embedded
from qsctl.service.recording.embedded import STORY_FOLDER
from tests.service.embedded_commands import FULL_NAME, create, queue, status, write


def reply_to(service: EmbeddedService, command: RecordingCommand) -> Reply:
    (reply,) = service.request(command)
    return reply.reply


def state_of(service: EmbeddedService, command: RecordingCommand) -> RecordingStatus:
    reply = reply_to(service, command)
    assert reply.retcode is ReturnCode.OK, reply.text
    assert isinstance(reply.body, RecordingStatus)
    return reply.body


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    return [row for batch in batches_of(folder, open_run(folder).info, table) for row in batch.to_pylist()]


def begin(state: Path, folder: Path, **options: Any) -> None:
    with open_embedded(state) as service:
        create(service, queue())
        assert state_of(service, StartRecording(str(folder), **options)).is_on


def receive(service: EmbeddedService, count: int, *, accepted: bool | None) -> int:
    found = service.receive(f"{FULL_NAME}Orders", count, 0)
    if accepted is not None:
        service.acknowledge_all(found, accepted)
    return len(found)


def test_recording_spans_commands(tmp_path: Path) -> None:
    state, folder = tmp_path / "state", tmp_path / "rec"
    begin(state, folder)
    with open_embedded(state) as service:
        write(service, b"1", b"22", b"333")
        write(service, b"1")
    with open_embedded(state) as service:
        assert receive(service, 1, accepted=True) == 1
    with open_embedded(state) as service:
        assert receive(service, 2, accepted=None) == 2, "taken, and not acknowledged when the command ends"
    with open_embedded(state) as service:
        assert receive(service, 1, accepted=False) == 1
        shown = status(service)
        assert state_of(service, StopRecording()).end == RecordingEnd.STOPPED
    answers = Counter(row["answer"] for row in rows(folder, "deliveries"))
    assert answers == {"acknowledged": 1, "consumer_left": 2, "rejected": 1}
    assert Counter(row["answer"] for row in rows(folder, "arrivals")) == {"enqueued": 3, "duplicate": 1}
    assert Counter(row["outcome"] for row in rows(folder, "messages")) == {"delivered": 1, "held": 2}
    total = shown.total
    assert (total.received_message_count, total.sent_message_count, total.acknowledged_message_count) == (4, 4, 1)
    info = open_run(folder).info
    assert info.status is RunStatus.COMPLETE
    (counters,) = counters_of(folder, info).to_pylist()
    assert (counters["arrived_messages"], counters["delivered_messages"], counters["length_messages"]) == (3, 1, 2)
    assert not (folder / STORY_FOLDER).exists()


def test_samples_of_before_are_held_at_the_beginning(tmp_path: Path) -> None:
    state, folder = tmp_path / "state", tmp_path / "rec"
    with open_embedded(state) as service:
        create(service, queue())
        write(service, b"1", b"22")
    with open_embedded(state) as service:
        state_of(service, StartRecording(str(folder)))
    with open_embedded(state) as service:
        assert receive(service, 2, accepted=True) == 2
        state_of(service, StopRecording())
    assert [(row["origin"], row["at_ns"] < 0) for row in rows(folder, "arrivals")] == [("held", True)] * 2
    recording = open_run(folder).info.recording
    assert isinstance(recording, Recording)
    assert recording.held_messages == 2


def test_a_killed_command_leaves_the_events_it_had_recorded(tmp_path: Path) -> None:
    state, folder = tmp_path / "state", tmp_path / "rec"
    begin(state, folder)
    with open_embedded(state) as service:
        write(service, b"1", b"22")
    story = sorted((folder / STORY_FOLDER).iterdir())[-1]
    story.write_bytes(story.read_bytes() + b"\xff\0\0\0half of a part")
    with open_embedded(state) as service:
        write(service, b"333", start=2)
        state_of(service, StopRecording())
    assert sorted(row["size_bytes"] for row in rows(folder, "messages")) == [1, 2, 3]


def test_no_command_fails_for_a_recording(tmp_path: Path) -> None:
    state, folder = tmp_path / "state", tmp_path / "rec"
    begin(state, folder)
    shutil.rmtree(folder)
    with open_embedded(state) as service:
        assert write(service, b"1") == [1]
        assert "No such file or directory" in service.warnings_of_failures[0]
        assert state_of(service, GetRecording()).end == RecordingEnd.FAILED
    with open_embedded(state) as service:
        assert receive(service, 1, accepted=True) == 1
        assert service.warnings_of_failures == []


def test_size_ends_it(tmp_path: Path) -> None:
    state, folder = tmp_path / "state", tmp_path / "rec"
    begin(state, folder, max_bytes=1 << 20)
    with open_embedded(state) as service:
        for start in range(0, 12_000, 2_000):
            write(service, *[b"x"] * 2_000, start=start)
        shown = state_of(service, GetRecording())
    assert (shown.end, shown.is_complete) == (RecordingEnd.LIMIT, True)
    info = open_run(folder).info
    assert info.status is RunStatus.PARTIAL
    assert len(rows(folder, "messages")) == info.arrived_messages > 2_000


def test_shutdown_ends_it(tmp_path: Path) -> None:
    state, folder = tmp_path / "state", tmp_path / "rec"
    begin(state, folder)
    with open_embedded(state) as service:
        write(service, b"1")
        service.request(Shutdown())
    assert open_run(folder).info.status is RunStatus.COMPLETE
    with open_embedded(state) as service:
        assert state_of(service, GetRecording()).end == RecordingEnd.STOPPED


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (StartRecording("/proc/nowhere"), "the folder cannot be created"),
        (StartRecording("rec", "everything"), "is not a level"),
        (StartRecording("rec", sample_share=2.0), "is not a fraction"),
        (StartRecording("rec", max_bytes=5), "is too small"),
        (StartRecording(""), "has no folder"),
        (StopRecording(), "no recording is in progress"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, command: RecordingCommand, text: str) -> None:
    with open_embedded(tmp_path / "state") as service:
        reply = reply_to(service, command)
        assert reply.retcode is ReturnCode.ERROR
        assert text in reply.text
