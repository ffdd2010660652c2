"""A disk that is full or refuses concerns the queues that it refuses, and them only until it does no more (2.4)."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from qsctl.core.admin.command import CreateQueue, DeleteQueue, FlushQueue, GetStatus
from qsctl.core.admin.reply import ReturnCode
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    CommandReply,
    CommandRequest,
    ConsumerJoined,
    Delivery,
)
from qsctl.core.queue.settings import PersistenceSettings
from qsctl.core.records import ConfigurationFollowed
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.errors import Damaged, Refused
from qsctl.identity import SampleIdentity
from qsctl.resource import ResourceKind
from qsctl.service.directory.embedded import open_embedded
from qsctl.service.stores.recovery import AGAIN_AFTER_NS
from qsctl.service.stores.stores import Stores
from qsctl.storage.sqlite import store as sqlite
from tests.service import embedded_commands
from tests.service.disk_trials import QUEUES, VOLATILE, Trial, refusing, restarted
from tests.service.pipelines import IN_MEMORY, ON_DISK, READER, SUBSCRIBER, queue, service
from tests.service.small_disk import SmallDisk, small_disk

__all__ = ["small_disk"]

STORED = ("segments", "database")


def assert_kept(directory: Path, before: Trial) -> None:
    """A restart has what was answered 1, no more and no less."""
    with restarted(directory) as after:
        assert not after.loop.stores.damage
        for name in STORED:
            after.kept[name] = dict(before.kept[name])
            after.consume(name, 1_000)
            assert not after.kept[name], f"{name}: lost {len(after.kept[name])}"


@contextmanager
def read_only(trial: Trial) -> Iterator[None]:
    """The disk as the system makes it after an error: no file that is open can be written any more, and none made."""
    connections: list[sqlite3.Connection] = []
    real_open, real_connect = os.open, sqlite.connect

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def open_file(path: str, flags: int, *arguments: int) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            refuse()
        return real_open(path, flags, *arguments)

    def connect(*arguments: Any) -> sqlite3.Connection:
        connection = real_connect(*arguments)
        connection.execute("PRAGMA query_only = ON")
        connections.append(connection)
        return connection

    store = trial.loop.stores.queues["P/S/database"]
    assert isinstance(store, sqlite.SqliteStorage)
    store._connection.execute("PRAGMA query_only = ON")
    with pytest.MonkeyPatch.context() as patches:
        for name in ("pwrite", "ftruncate", "fsync", "fdatasync", "rename", "unlink"):
            patches.setattr(os, name, refuse)
        patches.setattr(os, "open", open_file)
        patches.setattr(sqlite, "connect", connect)
        yield
    for each in connections:
        with contextlib.suppress(sqlite3.ProgrammingError):  # closed meanwhile
            each.execute("PRAGMA query_only = OFF")


def test_a_disk_that_fills_empties_goes_read_only_and_returns(small_disk: SmallDisk) -> None:
    trial = Trial(small_disk.directory)
    for name in STORED:
        assert trial.fill_up(name) > 10 or name == "database"
        assert trial.write("volatile") is AckResponse.ACCEPTED
    assert ("storage_scarce", "") in trial.reports
    assert trial.consume("segments", 3) == 3, "what is held can be consumed"
    while trial.consume("segments", 50):
        pass
    trial.recover()
    for name in QUEUES:
        assert trial.write(name) is AckResponse.ACCEPTED

    small_disk.fill()
    for _ in range(20):
        for name in QUEUES:
            trial.write(name, 5_000)
    assert trial.refused["segments"], "there is no room"
    assert trial.refused["database"]
    assert not trial.refused["volatile"]
    assert trial.consume("segments", 1) == 1
    assert trial.consume("database", 1) == 1
    small_disk.empty()
    trial.recover()
    for name in QUEUES:
        assert trial.write(name) is AckResponse.ACCEPTED

    with read_only(trial):
        for name, expected in (("volatile", 1), ("segments", 0), ("database", 0)):
            assert trial.write(name) == expected, name
        trial.turn()
        assert ("storage_failed", "P/S/segments") in trial.reports
        assert ("storage_failed", "P/S/database") in trial.reports
        assert trial.consume("segments", 1) == 0, "nothing is delivered of which no record can be stored"
    trial.recover()
    for name in QUEUES:
        assert trial.write(name) is AckResponse.ACCEPTED
        assert trial.consume(name, 1) == 1
    trial.close()
    assert_kept(small_disk.directory, trial)


def test_a_directory_that_cannot_be_written_is_refused_at_the_start(small_disk: SmallDisk) -> None:
    small_disk.set_read_only(True)
    with pytest.raises(Refused, match="cannot be written: Read-only file system"):
        Trial(small_disk.directory)


def test_queues_are_flushed_and_deleted_on_a_full_disk(small_disk: SmallDisk) -> None:
    trial = Trial(small_disk.directory, keeps_state=True)
    for name in STORED:
        for _ in range(5):
            trial.write(name, 5_000)
    small_disk.fill()
    for name in STORED:
        resource = SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, name)
        for each in (FlushQueue(resource), DeleteQueue(resource)):
            replies = [
                message.reply
                for message in trial.turn([CommandRequest(SampleIdentity(READER, 1), "*", each)])
                if isinstance(message, CommandReply)
            ]
            assert [reply.retcode for reply in replies] == [ReturnCode.OK], (each, replies)
    trial.close()
    small_disk.empty()


@pytest.mark.parametrize("persistence", [VOLATILE, IN_MEMORY, ON_DISK], ids=["volatile", "segments", "database"])
def test_an_embedded_service_gives_room_back_on_a_full_disk(
    small_disk: SmallDisk, persistence: PersistenceSettings
) -> None:
    state = small_disk.directory / "state"
    for_queue = embedded_commands.SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "Orders")
    with open_embedded(state) as service:
        embedded_commands.create(service, embedded_commands.queue(persistence=persistence))
        embedded_commands.write(service, *(b"%d" % number * 5_000 for number in range(6)))
    small_disk.fill()
    with open_embedded(state) as service:
        assert embedded_commands.write(service, b"more", start=10) == [AckResponse.REJECTED]
    assert service.warnings_of_failures == [
        f"{state}: the disk is nearly full, and queues refuse samples. Free space on it."
    ]
    with open_embedded(state) as service:
        (first,) = service.receive(embedded_commands.FULL_NAME + "Orders", 1, 0.0)
        service.acknowledge(first, ok=True)
    with open_embedded(state) as service:
        assert len(embedded_commands.messages(service)) == 5
    for command_ in (FlushQueue(for_queue), DeleteQueue(for_queue)):
        with open_embedded(state) as service:
            assert [each.reply.retcode for each in service.request(command_)] == [ReturnCode.OK]
    with open_embedded(state) as service:
        assert not service.damage


@pytest.mark.parametrize(
    ("calls", "error"), [("pwrite", errno.ENOSPC), ("pwrite", errno.EIO), ("fdatasync", errno.EIO)]
)
def test_a_store_that_fails_suspends_its_queue_until_the_whole_of_it_is_stored_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: str, error: int
) -> None:
    trial = Trial(tmp_path)
    for name in QUEUES:
        for _ in range(4):
            assert trial.write(name) is AckResponse.ACCEPTED
    trial.loop.stores.files.room.release()  # else what is refused for lack of room is written all the same
    monkeypatch.setattr(os, calls, refusing(error, calls=calls, only="QSlog@"))
    assert trial.write("segments") is AckResponse.REJECTED
    assert trial.write("segments") is AckResponse.REJECTED
    assert trial.write("volatile") is AckResponse.ACCEPTED
    assert trial.write("database") is AckResponse.ACCEPTED
    assert trial.consume("segments", 10) == 0, "it rests"
    resource = SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "segments").at(ResourceKind.STATUS)
    (status,) = trial.turn([CommandRequest(SampleIdentity(READER, 1), "*", GetStatus(resource))])
    assert isinstance(status, CommandReply)
    assert "cannot be stored" in status.reply.text
    assert [each for each in trial.reports if "segments" in each[1]] == [("storage_failed", "P/S/segments")]
    files_before = set(tmp_path.glob("*Segments*_m*"))
    monkeypatch.undo()
    trial.recover()
    assert set(tmp_path.glob("*Segments*_m*")) - files_before, "metadata is in new files"
    assert trial.write("segments") is AckResponse.ACCEPTED
    assert trial.consume("segments", 1) == 1
    assert ("storage_recovered", "P/S/segments") in trial.reports
    trial.close()
    assert_kept(tmp_path, trial)


def test_a_sync_that_failed_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial(tmp_path)
    trial.write("segments")
    synced: list[str] = []
    real, fails = os.fdatasync, [True]

    def sync(descriptor: int) -> None:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        if fails and "QSlog@" in name:
            fails.clear()
            raise OSError(errno.EIO, "Input/output error")
        synced.append(name)
        real(descriptor)

    monkeypatch.setattr(os, "fdatasync", sync)
    assert trial.write("segments") is AckResponse.REJECTED, "though every later sync says that all is well"
    trial.recover()
    assert trial.write("segments") is AckResponse.ACCEPTED
    trial.close()
    assert_kept(tmp_path, trial)


def test_a_sample_that_was_refused_may_be_written_again_under_its_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial(tmp_path)
    trial.loop.stores.files.room.release()
    monkeypatch.setattr(os, "fdatasync", refusing(errno.EIO, calls="fdatasync", only="QSlog@"))
    assert trial.write("segments") is AckResponse.REJECTED
    monkeypatch.undo()
    trial.recover()
    trial._number -= 1
    trial.refused["segments"].clear()
    assert trial.write("segments") is AckResponse.ACCEPTED
    assert trial.consume("segments", 10) == 1
    trial.close()


def test_a_sample_with_a_consumer_when_the_store_fails_comes_again_with_the_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial(tmp_path)
    trial.write("segments")
    joined = ConsumerJoined("P/S/segments", READER, unacked_threshold=10, reception_enabled=True)
    (first,) = [each for each in trial.turn([joined]) if isinstance(each, Delivery)]
    monkeypatch.setattr(os, "fdatasync", refusing(errno.EIO, calls="fdatasync", only="QSlog@"))
    trial.write("segments")
    monkeypatch.undo()
    until, again = time.monotonic() + 60, []
    while not again and time.monotonic() < until:
        time.sleep(AGAIN_AFTER_NS / 5e9)
        again = [each for each in trial.turn() if isinstance(each, Delivery)]
    assert [each.identity for each in again] == [first.identity]
    assert again[0].flags & 1, "redelivered"
    trial.close()


def balance_of(trial: Trial, name: str) -> int:
    """Return by how many samples a queue's counters differ from what it holds."""
    resource = SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, name).at(ResourceKind.STATUS)
    (answer,) = trial.turn([CommandRequest(SampleIdentity(READER, 1), "*", GetStatus(resource))])
    assert isinstance(answer, CommandReply)
    status = answer.reply.body
    assert isinstance(status, SharedReaderQueueStatus)
    held_count = status.current_message_count + status.current_waiting_message_count
    return status.additional.held_count(status.total) - held_count


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("is_read", [True, False], ids=["the store is read", "it is not at once"])
def test_counters_balance_when_acknowledged_samples_come_back(
    name: str, is_read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their removals could not be stored: they were counted as acknowledged, and will be once more."""
    trial = Trial(tmp_path)
    for _ in range(4):
        trial.write(name)
    joined = ConsumerJoined(f"P/S/{name}", READER, unacked_threshold=9, reception_enabled=True)
    first = [each for each in trial.turn([joined]) if isinstance(each, Delivery)]
    trial.loop.stores.files.room.release()

    def refuse(*_: object) -> None:
        raise Damaged("disk I/O error")

    for calls in ("fdatasync", "pwrite"):
        monkeypatch.setattr(os, calls, refusing(errno.EIO, calls=calls, only="QSlog@"))
    for method in ("append", "compact"):
        monkeypatch.setattr(sqlite.SqliteStorage, method, refuse)
    if not is_read:
        monkeypatch.setattr(Stores, "reopen", refuse)
    trial.turn([Acknowledgment(f"P/S/{name}", READER, each.identity) for each in first[:3]])
    assert trial.write(name) is AckResponse.REJECTED
    monkeypatch.undo()
    again: list[Delivery] = []
    until = time.monotonic() + 60
    while (len(again) < 4 or trial.loop.recovery.is_needed) and time.monotonic() < until:
        time.sleep(AGAIN_AFTER_NS / 5e9)
        again += [each for each in trial.turn() if isinstance(each, Delivery)]
    assert len(again) == 4, "all of them came back"
    assert balance_of(trial, name) == 0
    trial.turn([Acknowledgment(f"P/S/{name}", READER, each.identity) for each in again])
    assert balance_of(trial, name) == 0
    trial.close()


def refuse_configurations(patch: pytest.MonkeyPatch) -> None:
    """Let the disk refuse every change of a database file."""

    def refuse(self: sqlite.SqliteStorage, *_: object) -> None:
        raise Damaged(f"{self.path}: disk I/O error")

    for method in ("append", "compact", "renew"):
        patch.setattr(sqlite.SqliteStorage, method, refuse)


def create(trial: Trial, name: str) -> ReturnCode:
    request = CommandRequest(SampleIdentity(READER, 1), "*", CreateQueue(SUBSCRIBER, queue(name)))
    (reply,) = [each for each in trial.turn([request]) if isinstance(each, CommandReply)]
    return reply.reply.retcode


def configuration_in(directory: Path) -> tuple[set[str], ConfigurationFollowed | None]:
    """Return the names of the queues that a start finds, and what it has followed of a cluster's log."""
    again = service(directory, keeps_state=True)
    names = {resource.name for resource in again.engine.hosted.queues()}
    again.stores.close()
    return names, again.engine.hosted.followed


def test_a_configuration_that_cannot_be_stored_is_answered_with_an_error_and_stored_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial(tmp_path, keeps_state=True)
    with monkeypatch.context() as disk:
        refuse_configurations(disk)
        assert create(trial, "more") is ReturnCode.ERROR
        assert create(trial, "others") is ReturnCode.ERROR
        assert trial.write("segments") is AckResponse.ACCEPTED
    trial.recover()
    assert create(trial, "others") is ReturnCode.OK
    trial.close()
    assert configuration_in(tmp_path) == ({*QUEUES, "more", "others"}, None)


def test_what_a_member_followed_is_not_stored_without_the_change_that_it_made_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by a world: the disk refused a change and took the entry that asks for it, and the process ended there."""
    directory, ended_here = tmp_path / "s", tmp_path / "ended-here"
    directory.mkdir()
    trial, followed = Trial(directory, keeps_state=True), ConfigurationFollowed("log", 9, {})
    with monkeypatch.context() as disk:
        refuse_configurations(disk)
        assert create(trial, "more") is ReturnCode.ERROR
        trial.turn()
    trial.loop.engine.hosted.follow_cluster(followed)
    trial.turn()
    shutil.copytree(directory, ended_here)
    trial.recover()
    trial.close()
    assert configuration_in(ended_here) == ({*QUEUES}, None)
    assert configuration_in(directory) == ({*QUEUES, "more"}, followed)
