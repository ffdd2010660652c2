"""The recorder's process: parts that close, a disk that fills, a process that is killed, a service that is too fast."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qsctl.eventlog.reader import batches_of
from qsctl.eventlog.recording.sampling import Sampling
from qsctl.eventlog.recording.story import RecordingEnded, encode
from qsctl.eventlog.run_folder import RecordingEnd, RunStatus
from qsctl.identity import SampleIdentity
from qsctl.service.recording._feed import LENGTH, Feed
from tests.patience import PATIENCE_S, eventually
from tests.processes import end
from tests.service.recorder_process import READER, WRITER, Recorded, steps
from tests.service.small_disk import SmallDisk as SmallDisk
from tests.service.small_disk import small_disk as small_disk


@pytest.fixture
def recorders() -> Iterator[list[Recorded]]:
    started: list[Recorded] = []
    yield started
    for each in started:
        each.socket.close()
        end(each.process)


def test_parts_close_and_are_read_while_it_goes_on(tmp_path: Path, recorders: list[Recorded]) -> None:
    recorder = Recorded(tmp_path / "rec", tmp_path, 0.1)
    recorders.append(recorder)
    for first in range(0, 3_000, 1_000):
        recorder.tell(steps(first, 1_000))
        assert eventually(lambda first=first: recorder.info.arrived_messages == first + 1_000)  # type: ignore[misc]
        assert recorder.info.status is RunStatus.RUNNING
        assert recorder.sizes() == (first + 1_000, first + 1_000)
    assert len(list((tmp_path / "rec" / "messages").rglob("part-*"))) >= 3
    # Those of the part before the last are removed once the new ones are listed, a moment later.
    assert eventually(lambda: len(list((tmp_path / "rec" / "counters").rglob("part-*"))) <= 2)
    recorder.tell(RecordingEnded(10_000_000))
    assert recorder.last_words().end == RecordingEnd.STOPPED
    assert recorder.info.status is RunStatus.COMPLETE
    assert recorder.info.horizon_ns == 10_000_000
    assert len(list((tmp_path / "rec" / "counters").rglob("part-*"))) == 1


@pytest.mark.slow
def test_killed_recorder_leaves_its_complete_parts(tmp_path: Path, recorders: list[Recorded]) -> None:
    recorder = Recorded(tmp_path / "rec", tmp_path, 0.5)
    recorders.append(recorder)
    recorder.tell(steps(0, 1_000))
    assert eventually(lambda: recorder.info.arrived_messages == 1_000)
    recorder.tell(steps(1_000, 70_000))  # a row group of them is in a part that is not complete
    assert eventually(lambda: bool(list((tmp_path / "rec" / "messages").rglob(".part-*"))))
    os.kill(recorder.process.pid, signal.SIGKILL)
    recorder.process.wait()
    rows, arrived = recorder.sizes()
    assert rows == arrived
    assert recorder.info.status is RunStatus.RUNNING
    assert recorder.recording.end is RecordingEnd.NOT_YET


@pytest.mark.slow
def test_size_ends_it_with_all_that_came_until_then(tmp_path: Path, recorders: list[Recorded]) -> None:
    recorder = Recorded(tmp_path / "rec", tmp_path, 60, max_bytes=2 << 20)
    recorders.append(recorder)
    with pytest.raises(OSError):
        for first in range(0, 10_000_000, 10_000):
            recorder.tell(steps(first, 10_000))
    status = recorder.last_words()
    assert status.end == RecordingEnd.LIMIT
    assert 2 << 20 <= status.bytes < 8 << 20
    assert recorder.info.status is RunStatus.PARTIAL
    assert recorder.recording.end is RecordingEnd.LIMIT
    rows, arrived = recorder.sizes()
    assert rows == arrived > 10_000


@pytest.mark.slow
def test_full_disk_ends_it_and_what_is_there_is_read(
    tmp_path: Path, small_disk: SmallDisk, recorders: list[Recorded]
) -> None:
    recorder = Recorded(small_disk.directory / "rec", tmp_path, 0.1)
    recorders.append(recorder)
    recorder.tell(steps(0, 1_000))
    assert eventually(lambda: recorder.info.arrived_messages == 1_000)
    small_disk.fill()
    with contextlib.suppress(OSError):  # it may have ended before it has heard all
        recorder.tell(steps(1_000, 60_000))
    status = recorder.last_words()
    assert status.end == RecordingEnd.FAILED
    assert "No space left" in status.text
    rows, arrived = recorder.sizes()
    assert rows == arrived == 1_000


def test_a_service_that_sends_nothing_any_more_is_gone(tmp_path: Path, recorders: list[Recorded]) -> None:
    recorder = Recorded(tmp_path / "rec", tmp_path, 60)
    recorders.append(recorder)
    recorder.tell(steps(0, 10, delivered=False))
    octets = encode(steps(10, 10))
    recorder.socket.sendall(LENGTH.pack(len(octets)) + octets[:100])
    recorder.socket.close()
    assert recorder.last_words().end == RecordingEnd.SERVICE_GONE
    assert recorder.sizes() == (10, 10)
    assert recorder.info.status is RunStatus.PARTIAL


def test_service_that_is_too_fast_ends_it(tmp_path: Path, recorders: list[Recorded]) -> None:
    recorder = Recorded(tmp_path / "rec", tmp_path, 60)
    recorders.append(recorder)
    recorder.tell(steps(0, 10))
    recorder.tell(RecordingEnded(1, overrun=True))
    status = recorder.last_words()
    assert (status.end, "record a share" in status.text) == (RecordingEnd.OVERRUN, True)
    assert recorder.recording.end is RecordingEnd.OVERRUN
    assert recorder.sizes() == (10, 10)


def test_rows_are_of_a_share_of_the_samples_and_counters_of_all(tmp_path: Path, recorders: list[Recorded]) -> None:
    recorder = Recorded(tmp_path / "rec", tmp_path, 60, sample_share=0.1)
    recorders.append(recorder)
    recorder.tell(steps(0, 20_000))
    recorder.tell(RecordingEnded(1))
    assert recorder.last_words().end == RecordingEnd.STOPPED
    found = {
        table: {
            (row["producer"], row["sequence_number"])
            for batch in batches_of(recorder.folder, recorder.info, table)
            for row in batch.to_pylist()
        }
        for table in ("arrivals", "deliveries")
    }
    assert found["arrivals"] == found["deliveries"]
    rows, arrived = recorder.sizes()
    assert (rows, arrived) == (len(found["arrivals"]), 20_000)
    assert recorder.recording.sample_share == 0.1


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_sampling_chooses_its_share_of_numbers_that_follow_one_another(share: float) -> None:
    count = 100_000
    for writer in (WRITER, READER):
        sampling = Sampling(share)
        chosen = sum(sampling.chooses(SampleIdentity(writer, number)) for number in range(count))
        assert abs(chosen - share * count) < 5 * (count * share * (1 - share)) ** 0.5


class Deaf:
    """A socket that is connected to, and not read."""

    def __init__(self, tmp_path: Path) -> None:
        self.address = str(tmp_path / "socket")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.address)
        self.listener.listen()

    def heard(self) -> bytes:
        connection, _ = self.listener.accept()
        with connection:
            return b"".join(iter(lambda: connection.recv(1 << 20), b""))


def test_feed_never_waits_and_gives_up_beyond_its_bound(tmp_path: Path) -> None:
    deaf = Deaf(tmp_path)
    feed = Feed(deaf.address, 4 << 20)
    part = steps(0, 1_000)
    began = time.monotonic()
    while not feed.is_over:
        feed.put(part, 7)
        assert time.monotonic() - began < PATIENCE_S
    feed.put(part, 8)
    assert not feed.is_closed, "what waits is still to leave"
    from threading import Thread

    reader = Thread(target=feed.wait, args=(PATIENCE_S,))
    reader.start()
    octets = deaf.heard()
    reader.join()
    assert feed.is_closed
    assert octets.endswith(encode(RecordingEnded(7, overrun=True)))
    deaf.listener.close()


def test_a_beginning_of_any_size_is_sent(tmp_path: Path) -> None:
    deaf = Deaf(tmp_path)
    feed = Feed(deaf.address, 1 << 20)
    feed.put_beginning([steps(0, 10_000)])
    feed.put(steps(0, 1_000), 7)
    assert not feed.is_over, "what follows has the bound for itself"
    feed.close()
    deaf.listener.close()


def test_feed_whose_recorder_is_gone_is_over(tmp_path: Path) -> None:
    deaf = Deaf(tmp_path)
    feed = Feed(deaf.address)
    deaf.listener.accept()[0].close()
    deaf.listener.close()
    for _ in range(2):
        feed.put(steps(0, 10), 1)
        feed.push()
    assert feed.is_over
    assert feed.is_closed
