"""What replicas ask to be stored, in the log of their process: at a failure, a deletion and another start [QS 7.1]."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.admin.command import CreateQueue, DeleteQueue
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.high_availability._log import LastEntry
from qsctl.core.high_availability.frames import Entries
from qsctl.core.high_availability.member import Member
from qsctl.core.high_availability.roles import Role
from qsctl.core.messages import CommandReply, CommandRequest, Write
from qsctl.core.queue.hosting import queue_identifier, subscriber_identifier
from qsctl.core.records import Enqueued, EpochBegan
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.core.turn import Turn
from qsctl.errors import Damaged
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.instant import INFINITE_NS, SECOND_NS
from qsctl.service.replicas import _replica_stores as replica_stores
from qsctl.service.replicas._replica_writes import WRITTEN_AT_ONCE_BYTES, ReplicaWrites
from qsctl.storage.base import Sync
from qsctl.storage.file_system import HostFileSystem
from qsctl.storage.register import Register
from qsctl.storage.replicas.replica_log import ReplicaLog
from qsctl.storage.replicas.replica_stream import Operation
from tests.core.high_availability.cluster import queue
from tests.storage.power_loss import Disk, kill_log

FULL = FilesystemSettings(synchronization=Synchronization.FULL)
WRITER = Guid(b"w" * 16)
ALONE = queue("orders", instances=1)
STREAM = "P/S/orders"


class Process:
    """A member of a cluster of one, with its log; a quorum is itself."""

    def __init__(
        self, directory: Path, *, hosts: bool = True, names: Sequence[str] = ("A",), seconds: int = 10
    ) -> None:
        directory.mkdir(exist_ok=True)
        queues = (queue("orders" if hosts else "other", instances=len(names)),)
        subscriber = SharedSubscriberSettings("S", (), queues)
        settings = ServiceSettings("A", (DomainParticipantSettings("P", 0, (subscriber,)),))
        self.now = SECOND_NS
        engine = ServiceEngine(settings, started_at=self.now, draw=counted_incarnations(), journal=Journal.REPLICATED)
        register = Register(directory / "stores@A.json")
        self.log = ReplicaLog(
            directory / "replicas@A", FULL, replica_stores.RECORDS, register.extent("replicas@A"),
            lambda extent: register.note({"replicas@A": extent}),
        )  # fmt: skip
        self.member = Member(engine, names, started_at=self.now, jitter=lambda: 0.0)
        resting = replica_stores.restore(self.member, self.log)
        self.failures: list[Damaged] = []
        self.writes = ReplicaWrites(
            self.member, self.log, resting, lambda: self.now, on_synced=lambda: None, quick_sync_s=9.0
        )
        self.writes.report_failure = self.failures.append
        self.member.start(self.now)
        self.turn = Turn(self.member, self.member.admit)
        self.replies: list[CommandReply] = []
        self.run(seconds=seconds)

    def run(self, *messages: Write | CommandRequest, seconds: int = 1) -> None:
        for _ in range(10 * seconds):
            self.now += SECOND_NS // 10
            self.turn.receive(messages)
            messages = ()
            while self.turn.step(self.now):
                self.writes.go_on(waits=True)
                while (group := self.turn.to_write()) is not None:
                    for ready in group.turns:
                        for batch in ready.batches:
                            self.turn.durable(batch.stream, batch.last_index)
                for released in self.turn.to_send():
                    self.replies += [each for each in released.messages if isinstance(each, CommandReply)]

    def write(self, *numbers: int) -> None:
        self.run(*(Write("P", "Orders", SampleIdentity(WRITER, number), b"%d" % number) for number in numbers))

    def command(self, command: CreateQueue | DeleteQueue) -> None:
        self.run(CommandRequest(SampleIdentity(WRITER, 1_000 + len(self.replies)), "*", command))

    @property
    def role(self) -> Role:
        return self.member.replicas[STREAM].role

    @property
    def held(self) -> list[int]:
        return [each.identity.sequence_number for each in self.member.engine.hosted.by_name[STREAM].held]


def test_a_replica_goes_on_with_what_its_process_stored(tmp_path: Path) -> None:
    first = Process(tmp_path)
    assert first.role is Role.MASTER
    first.write(1, 2, 3)
    kill_log(first.log._log)
    again = Process(tmp_path)
    assert (again.role, again.held) == (Role.MASTER, [1, 2, 3])
    assert again.member.replicas[STREAM].epoch > 1


def test_large_writes_are_encoded_and_written_in_another_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop sends heartbeats meanwhile: a snapshot of 400 MB took seconds."""
    threads: list[tuple[int, int]] = []
    write = ReplicaLog.write

    def noted(log: ReplicaLog, operations: Iterable[Operation]) -> Sync | None:
        operations = list(operations)
        threads.append((threading.get_ident(), sum(len(getattr(each, "data", b"")) for each in operations)))
        return write(log, operations)

    monkeypatch.setattr(ReplicaLog, "write", noted)
    first = Process(tmp_path)
    first.run(*(Write("P", "Orders", SampleIdentity(WRITER, at), bytes(2 * 1024 * 1024)) for at in range(1, 9)))
    own = threading.get_ident()
    assert sum(size for thread, size in threads if thread != own) > 16 * 1024 * 1024
    assert max(size for thread, size in threads if thread == own) < WRITTEN_AT_ONCE_BYTES
    kill_log(first.log._log)
    assert Process(tmp_path).held == [*range(1, 9)]


class Unending:
    """A write in another thread that goes on."""

    is_done = False


@pytest.mark.parametrize("progresses", [True, False])
def test_disk_hangs_only_where_a_long_write_does_not_progress(tmp_path: Path, progresses: bool) -> None:
    first = Process(tmp_path)
    replica = first.member.replicas[STREAM]
    first.writes._in_progress = Unending()  # type: ignore[assignment]
    replica.outgoing.write_hard_state(replica.ballot.state)
    for _ in range(30):
        first.now += SECOND_NS // 10
        first.log.progress_count += progresses
        first.writes.go_on()
        first.member.advance(first.now)
    assert replica.disk.hangs is not progresses


class HeldSyncs:
    """A runner that runs nothing until a test lets it."""

    def __init__(self) -> None:
        self.held: Sync | None = None
        self.is_done = False
        self._error: Damaged | None = None

    def begin(self, sync: Sync) -> bool:
        self.held, self.is_done = sync, False
        return False

    def run(self) -> None:
        assert self.held is not None
        try:
            self.held()
        except Damaged as error:
            self._error = error
        self.held, self.is_done = None, True

    def end(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def close(self) -> None:
        if self.held is not None:
            self.run()


@pytest.fixture
def compacting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Process, HeldSyncs]:
    """A process whose log is being compacted."""
    process, held = Process(tmp_path), HeldSyncs()
    monkeypatch.setattr(process.writes.compactions, "_syncs", held)
    process.log._compacted_over_bytes = 1_000
    process.write(*range(1, 21))
    assert held.held is not None, "its base is to be written"
    return process, held


def test_writes_go_on_while_the_log_is_compacted(tmp_path: Path, compacting: tuple[Process, HeldSyncs]) -> None:
    """Found: while a group was filled, nothing was written during each compaction, votes and confirmations neither."""
    process, held = compacting
    process.write(21, 22)
    outgoing = process.member.replicas[STREAM].outgoing
    assert outgoing.is_durable, "written, synced and reported"
    assert (process.role, process.held) == (Role.MASTER, [*range(1, 23)])
    held.run()
    process.write(23)
    kill_log(process.log._log)
    assert len(list(tmp_path.glob("*.db"))) == 2, "the base, and what was written behind it"
    again = Process(tmp_path)
    assert (again.role, again.held) == (Role.MASTER, [*range(1, 24)])
    assert not again.log.damage


def test_base_is_begun_before_anything_else_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process, syncs, held = Process(tmp_path), HeldSyncs(), HeldSyncs()
    process.write(*range(1, 21))
    process.log._compacted_over_bytes = 1_000
    monkeypatch.setattr(process.writes, "_syncs", syncs)
    monkeypatch.setattr(process.writes.compactions, "_syncs", held)
    for number in (21, 22):  # the second one waits for the sync of the first, with which the log is due
        process.turn.receive((Write("P", "Orders", SampleIdentity(WRITER, number), b"%d" % number),))
        while process.turn.step(process.now):
            process.writes.go_on()
    while syncs.held is not None or held.held is not None:
        (held if syncs.held is None else syncs).run()
        process.writes.go_on()
    kill_log(process.log._log)
    assert len(list(tmp_path.glob("*.db"))) == 2, "the base, and what was written behind it"
    again = Process(tmp_path)
    assert again.held == [*range(1, 23)]
    assert not again.log.damage


def test_log_of_a_queue_that_is_filled_is_not_compacted_and_one_that_is_emptied_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found: the log of a queue that was filled was compacted whenever it had doubled, to what it was before."""
    process, held = Process(tmp_path), HeldSyncs()
    monkeypatch.setattr(process.writes.compactions, "_syncs", held)
    process.log._compacted_over_bytes = 1_000
    replica = process.member.replicas[STREAM]
    process.run(*(Write("P", "Orders", SampleIdentity(WRITER, at), bytes(5_000)) for at in range(1, 21)))
    assert held.held is None
    replica.log.compact(replica.log.commit_index, replica.log.base.records)  # as if all had been consumed
    process.write(21)
    assert held.held is not None
    held.run()
    process.writes.go_on(waits=True)
    kill_log(process.log._log)
    assert sum(path.stat().st_size for path in tmp_path.glob("*.db")) < 5_000


@pytest.mark.parametrize("refused", ["write_at", "rename"])
def test_replicas_go_on_where_the_disk_refuses_a_compaction(
    tmp_path: Path, compacting: tuple[Process, HeldSyncs], monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    process, held = compacting
    reports: list[Damaged] = []
    process.writes.compactions.report_failure = reports.append
    with monkeypatch.context() as patch:
        patch.setattr(HostFileSystem, refused, refuse)
        held.run()
        process.writes.go_on(waits=True)
    process.write(21, 22)
    (report,) = reports
    assert "No space left" in report.message
    assert process.failures == []
    assert (process.role, process.held) == (Role.MASTER, [*range(1, 23)])
    assert held.held is None, "the log has not doubled since"
    process.write(*range(23, 60))
    assert held.held is not None, "it has"
    held.run()
    process.writes.close()
    again = Process(tmp_path)
    assert (again.role, again.held) == (Role.MASTER, [*range(1, 60)])


def test_compaction_in_progress_is_given_up_at_the_end(tmp_path: Path, compacting: tuple[Process, HeldSyncs]) -> None:
    process, _ = compacting
    process.writes.close()
    assert not list(tmp_path.glob("*.tmp"))
    assert Process(tmp_path).held == [*range(1, 21)]


def refuse(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_replica_has_no_vote_where_its_log_is_gone_or_damaged(tmp_path: Path) -> None:
    three = ("A", "B", "C")
    first = Process(tmp_path, names=three)
    assert first.role is Role.LEARNER, "the others may know it from before"
    first.member.replicas[STREAM]._vote_again(first.now, 3, "B", LastEntry(0, 0), "as the others say")
    first.run()
    assert first.role in (Role.SLAVE, Role.CANDIDATE)
    first.log.close()
    again = Process(tmp_path, names=three)
    assert again.role in (Role.SLAVE, Role.CANDIDATE)
    again.log.close()
    (path,) = tmp_path.glob("*.db")
    content = bytearray(path.read_bytes())
    content[content.index(b"P/S/orders")] ^= 1
    path.write_bytes(content)
    assert Process(tmp_path, names=three).role is Role.LEARNER


def test_a_failed_sync_silences_the_replicas_and_is_not_tried_again(tmp_path: Path) -> None:
    with Disk(tmp_path) as disk:
        process = Process(tmp_path)
        process.write(1)
        disk.refuses_next = True
        process.write(2)
        assert process.role is Role.FAILED
        process.write(3)
    (failure,) = process.failures
    assert "replicas@A" in failure.message
    kill_log(process.log._log)
    again = Process(tmp_path)
    assert again.role is Role.MASTER
    assert again.held[:1] == [1]
    assert 3 not in again.held


def test_a_queue_that_is_created_after_the_log_failed_is_failed_too(tmp_path: Path) -> None:
    """No replica is there to fall silent when the log refuses a deletion: the next one must not write either."""
    with Disk(tmp_path) as disk:
        process = Process(tmp_path)
        process.write(1, 2)
        disk.refuses_next = True
        process.command(DeleteQueue(queue_identifier("P", "S", ALONE)))
        assert len(process.failures) == 1
        assert list(process.member.engine.hosted.deleted) == [STREAM], "until its log is dropped"
        process.command(CreateQueue(subscriber_identifier("P", "S"), ALONE))
        assert process.role is Role.FAILED
        process.write(3)
        assert process.held == []
    kill_log(process.log._log)
    assert Process(tmp_path).role is Role.MASTER


def test_a_queue_that_was_deleted_and_created_again_is_another(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.write(1, 2)
    process.command(DeleteQueue(queue_identifier("P", "S", ALONE)))
    assert process.member.engine.hosted.deleted == {}, "the log has nothing of it"
    process.command(CreateQueue(subscriber_identifier("P", "S"), ALONE))
    process.run(seconds=10)
    process.write(7)
    kill_log(process.log._log)
    again = Process(tmp_path)
    assert again.held == [7]
    assert not again.log.is_damaged, again.log.damage


def test_a_queue_that_is_deleted_before_a_process_wrote_of_it_is_another(tmp_path: Path) -> None:
    three = ("A", "B", "C")
    first = Process(tmp_path, names=three)
    first.member.replicas[STREAM]._vote_again(first.now, 3, "B", LastEntry(0, 0), "as the others say")
    sample = Enqueued(STREAM, 1, SampleIdentity(WRITER, 1), 0, INFINITE_NS, payload=b"1")
    records = (EpochBegan(STREAM, 4, "B", flags_all=False), sample)
    first.member.receive_frames(first.now, [Entries(STREAM, "B", 4, 0, 0, records, 2, first.now)])
    first.run()
    assert len(first.member.replicas[STREAM].log) == 2
    kill_log(first.log._log)
    again = Process(tmp_path, names=three)
    assert len(again.member.replicas[STREAM].log) == 2
    deleted = queue("orders", instances=3)
    again.command(DeleteQueue(queue_identifier("P", "S", deleted)))
    again.command(CreateQueue(subscriber_identifier("P", "S"), deleted))
    kill_log(again.log._log)
    third = Process(tmp_path, names=three)
    assert len(third.member.replicas[STREAM].log) == 0, "nothing of the deleted queue"
    assert not third.log.is_damaged, third.log.damage


@pytest.mark.parametrize("compacts", [False, True])
def test_a_stream_that_is_not_hosted_rests_until_its_queue_is_created(tmp_path: Path, compacts: bool) -> None:
    process = Process(tmp_path)
    process.write(1, 2)
    kill_log(process.log._log)
    other = Process(tmp_path, hosts=False)
    assert STREAM not in other.member.replicas
    if compacts:
        other.writes.compactions.begin(
            {**other.writes._resting, **replica_stores.present(other.member.replicas.values())}
        )
        while (step := other.writes.compactions.next_step()) is not None or other.writes.compactions._current:
            if step is not None:
                step()
    kill_log(other.log._log)
    third = Process(tmp_path, hosts=False)
    third.command(CreateQueue(subscriber_identifier("P", "S"), ALONE))
    third.run(seconds=10)
    third.write(3)
    assert third.held == [1, 2, 3]
    kill_log(third.log._log)
    fourth = Process(tmp_path)
    assert fourth.held == [1, 2, 3]
    assert not fourth.log.is_damaged, fourth.log.damage


def test_a_log_that_lost_its_end_after_an_orderly_stop_has_no_vote(tmp_path: Path) -> None:
    """Found: each of 25 cuts was taken for a crash, and the replica voted as if it remembered."""
    first = Process(tmp_path / "whole")
    first.write(*range(1, 10))
    first.writes.close()
    (path,) = (tmp_path / "whole").glob("*.db")
    size_bytes = path.stat().st_size
    again = Process(tmp_path / "whole")
    assert (again.role, again.held) == (Role.MASTER, list(range(1, 10)))
    again.writes.close()
    size_bytes = path.stat().st_size
    cut_count = 25
    for number in range(cut_count):
        directory = tmp_path / f"cut {number}"
        shutil.copytree(tmp_path / "whole", directory)
        os.truncate(directory / path.name, size_bytes * number // cut_count)
        cut = Process(directory, seconds=0)
        assert cut.member.replicas[STREAM].ballot.is_learner, number
        assert not cut.member.replicas[STREAM].ballot.is_new, number
        assert any("missing" in report.what for report in cut.log.damage) or number == 0


def test_a_missing_log_is_a_loss_where_the_register_has_it(tmp_path: Path) -> None:
    first = Process(tmp_path, names=("A", "B", "C"))
    assert first.member.replicas[STREAM].ballot.is_new
    first.writes.close()
    for path in tmp_path.glob("*.db"):
        path.unlink()
    again = Process(tmp_path, names=("A", "B", "C"))
    assert again.member.replicas[STREAM].ballot.is_learner
    assert not again.member.replicas[STREAM].ballot.is_new


def test_the_group_that_was_deleted_is_remembered_by_the_next_process(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.write(1)
    incarnation = process.member.replicas[STREAM].incarnation
    assert incarnation > 0
    process.command(DeleteQueue(queue_identifier("P", "S", ALONE)))
    process.writes.close()
    again = Process(tmp_path, hosts=False)
    again.command(CreateQueue(subscriber_identifier("P", "S"), ALONE))
    state = again.member.replicas[STREAM].ballot.state
    assert state.left == (incarnation,)
    assert state.incarnation not in (0, incarnation)
    again.writes.close()
    third = Process(tmp_path)
    assert third.member.replicas[STREAM].ballot.state.left == (incarnation,)
    assert third.role is Role.MASTER
