"""Samples move between queues of one service, of every kind of store: whatever is written of it, each is in one queue.

What the process or the power leaves is looked at between the writes to two stores, and within an append to the log,
octet by octet in a campaign: QSCTL_TEST_MOVE_CUTS=1, or any other step in octets.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import msgspec
import pytest

from qsctl.core.admin.command import HeldSample, InsertSamples, MoveSamples
from qsctl.core.admin.reply import ReturnCode, SamplesChanged
from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.messages import CommandReply, CommandRequest, Outbound, Write
from qsctl.core.queue.settings import PersistenceSettings
from qsctl.core.records import Enqueued, MovedFrom, Record
from qsctl.errors import Refused
from qsctl.identity import Incarnation, SampleIdentity
from qsctl.resource import ResourceIdentifier, ResourceKind
from qsctl.service.run.loop import ServiceLoop
from qsctl.service.stores import _queue_codec as queue_codec
from qsctl.service.stores._queue_codec import QUEUE_CODEC
from qsctl.service.stores.stores import Stores
from qsctl.storage.base import Sync
from qsctl.storage.codec import Positions
from qsctl.storage.damage import DamageKind
from qsctl.storage.log import segment_file
from qsctl.storage.log.write_ahead_log import WriteAheadLog
from qsctl.storage.sqlite import store as sqlite
from qsctl.storage.sqlite.store import SqliteStorage
from qsctl.storage.streams.logged import LoggedStorage
from tests.campaigns import is_campaign, trials
from tests.earlier_formats import contents
from tests.patience import PATIENCE_S
from tests.service.disk_trials import refusing
from tests.service.pipelines import IN_MEMORY, ON_DISK, READER, SUBSCRIBER, WRITER, queue, service

QUEUES = {
    "segments": IN_MEMORY,
    "segments2": IN_MEMORY,
    "database": ON_DISK,
    "database2": ON_DISK,
    "volatile": PersistenceSettings(),
    "dead": IN_MEMORY,
}
MOVES = (
    [each for each in permutations(QUEUES, 2) if each[1] != "dead"]
    if is_campaign()
    else [
        ("segments", "segments2"),
        ("segments", "database"),
        ("database", "segments"),
        ("database", "database2"),
        ("segments", "volatile"),
        ("volatile", "database"),
        ("dead", "segments"),
        ("dead", "database"),
    ]
)
HARMLESS = (DamageKind.TORN_TAIL, DamageKind.MENDED)
"""What is reported of an end that no sync covered: a frame of it, or one of a header's two copies."""

STEP_OCTETS = trials("QSCTL_TEST_MOVE_CUTS", 79, 1)


def opened(directory: Path) -> ServiceLoop:
    queues = (replace(queue(name, persistence), is_dead_letter=name == "dead") for name, persistence in QUEUES.items())
    return service(directory, *queues)


def resource_of(name: str) -> ResourceIdentifier:
    dead = ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE
    return SUBSCRIBER.child(dead if name == "dead" else ResourceKind.SHARED_READER_QUEUE, name)


def sent(loop: ServiceLoop, *messages: Write | CommandRequest) -> list[Outbound]:
    found = list(loop.turn(messages).messages)
    while (deadline := loop.next_deadline()) is not None and deadline <= loop.clock():
        found += loop.turn().messages
    return found


def filled(directory: Path, name: str) -> ServiceLoop:
    """A service that holds three samples in one queue."""
    loop = opened(directory)
    identities = [SampleIdentity(WRITER, number) for number in range(3)]
    if name == "dead":
        letters = tuple(
            InsertedSample(
                each, b"%d" % number, redelivered=False, dead_letter_from="Orders@S", dead_letter_reason="MAX_RETRIES"
            )
            for number, each in enumerate(identities)
        )
        sent(loop, CommandRequest(SampleIdentity(READER, 1), "*", InsertSamples(resource_of(name), letters)))
    else:
        sent(loop, *(Write("P", name.capitalize(), each, b"%d" % number) for number, each in enumerate(identities)))
    return loop


def move(loop: ServiceLoop, source: str, target: str) -> CommandReply:
    """Move two of the samples."""
    held = [
        HeldSample(each.position, each.original_identity, "" if each.dead_letter is None else each.dead_letter.queue)
        for each in loop.engine.hosted.by_name[f"P/S/{source}"].held
    ]
    payloads = tuple(b"%d" % each.identity.sequence_number for each in held[:2])
    command = MoveSamples(resource_of(source), resource_of(target), tuple(held[:2]), payloads=payloads)
    (reply,) = sent(loop, CommandRequest(SampleIdentity(READER, 1), "*", command))
    assert isinstance(reply, CommandReply)
    return reply


def held(loop: ServiceLoop) -> dict[str, list[int]]:
    queues = loop.engine.hosted.by_name.items()
    return {
        name.rpartition("/")[2]: [each.original_identity.sequence_number for each in found.held]
        for name, found in queues
    }


def check(directory: Path, source: str, target: str, where: str) -> dict[str, list[int]]:
    """Each sample that outlives the process is in one queue, with its payload and without the flag."""
    loop = opened(directory)
    found = held(loop)
    assert not [each for each in loop.stores.damage if each.kind not in HARMLESS], where
    counts = Counter(number for numbers in found.values() for number in numbers)
    expected = {0, 1, 2} if "volatile" not in (source, target) else set(counts)
    assert counts == dict.fromkeys(expected, 1), f"{where}: {found}"
    for name, queue_ in loop.engine.hosted.by_name.items():
        for each in queue_.held:
            assert not each.redelivered
            payload = loop.stores.payloads(name, [each.position])[0] if each.payload is None else each.payload
            assert payload == b"%d" % each.original_identity.sequence_number
    loop.close()
    loop.stores.abandon()
    again = opened(directory)
    assert held(again) == found, "a second restart finds the same"
    again.close()
    again.stores.abandon()
    return found


def logs_of(loop: ServiceLoop) -> Sequence[WriteAheadLog]:
    return list(loop.stores.files.logs.values())


def cut_copies(loop: ServiceLoop, directory: Path, left: Path, before: tuple[int, int]) -> Iterator[str]:
    """Make a copy of the directory with each of the lengths that the log had while it was appended to."""
    for log in logs_of(loop):
        file, reached = log.last_file, log.extent.size_bytes
        if file < 0:
            continue
        start = before[1] if before[0] == file else 0
        for size in sorted({*range(start, reached, STEP_OCTETS), reached}):
            copy_tree(directory, left)
            path = left / log.path(file).name
            with path.open("r+b") as opened_file:
                length = path.stat().st_size
                opened_file.seek(size)
                opened_file.write(bytes(max(0, length - size)))
            yield f"the log has {size} of {reached} octets"


def copy_tree(directory: Path, left: Path) -> None:
    if left.exists():
        shutil.rmtree(left)
    shutil.copytree(directory, left)


@pytest.mark.campaign
@pytest.mark.parametrize(("source", "target"), MOVES, ids=["-".join(each) for each in MOVES])
def test_each_sample_is_in_one_queue_wherever_the_writes_of_a_move_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, target: str
) -> None:
    directory, left = tmp_path / "st", tmp_path / "left"
    directory.mkdir()
    loop = filled(directory, source)
    moments: list[str] = []
    seen: list[dict[str, list[int]]] = []
    real = Stores._begin
    (log,) = logs_of(loop)

    def write(
        self: Stores, names: Sequence[str], batch: dict[str, list[Record]], *, may_defer: bool = False
    ) -> Sync | None:
        if self is not loop.stores:
            return real(self, names, batch, may_defer=may_defer)
        before = (log.last_file, log.extent.size_bytes)
        copy_tree(directory, left)
        seen.append(check(left, source, target, f"before {names}"))
        sync = real(self, names, batch, may_defer=may_defer)
        if sync is not None:
            sync()
        for where in cut_copies(loop, directory, left, before):
            seen.append(check(left, source, target, f"{names}: {where}"))
        moments.extend(names)
        return None

    monkeypatch.setattr(Stores, "_begin", write)
    reply = move(loop, source, target)
    assert reply.reply.retcode is ReturnCode.OK, reply.reply.text
    monkeypatch.undo()
    kept = [name for name in (target, source) if name != "volatile"]
    assert moments == [f"P/S/{name}" for name in kept], "the target is written first"
    assert held(loop)[target] == [0, 1]
    assert held(loop)[source] == [2]
    if len(kept) == 2:
        assert any(each[source] == [0, 1, 2] for each in seen)
        assert seen[-1][target] == [0, 1]
    loop.close()
    loop.stores.close()
    assert check(directory, source, target, "at the end")[source] == ([2] if source != "volatile" else [])


@pytest.mark.parametrize("target", ["segments", "database"])
def test_an_import_is_completed_by_the_next_one_wherever_its_writes_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    directory, left = tmp_path / "st", tmp_path / "left"
    directory.mkdir()
    identities = [SampleIdentity(WRITER, number) for number in range(3)]
    samples = tuple(InsertedSample(each, b"%d" % each.sequence_number, redelivered=False) for each in identities)
    insert = CommandRequest(SampleIdentity(READER, 1), "*", InsertSamples(resource_of(target), samples))
    loop = opened(directory)
    seen: set[int] = set()
    real = Stores._begin
    (log,) = logs_of(loop)

    def look(where: str) -> None:
        again = opened(left)
        queue_ = again.engine.hosted.by_name[f"P/S/{target}"]
        before = [each.identity for each in queue_.held]
        seen.add(len(before))
        assert before == identities[: len(before)], f"{where}: a prefix"
        (reply,) = sent(again, insert)
        assert isinstance(reply, CommandReply)
        assert reply.reply.body == SamplesChanged(3, duplicate_count=len(before)), where
        assert [each.identity for each in queue_.held] == identities, where
        assert not any(each.redelivered for each in queue_.held)
        again.close()
        again.stores.abandon()

    def write(self: Stores, names: Sequence[str], batch: dict[str, list[Record]], **options: bool) -> Sync | None:
        if self is not loop.stores:
            return real(self, names, batch, **options)
        before = (log.last_file, log.extent.size_bytes)
        copy_tree(directory, left)
        look("before")
        sync = real(self, names, batch, **options)
        if sync is not None:
            sync()
        for where in cut_copies(loop, directory, left, before):
            look(where)
        copy_tree(directory, left)
        look("afterwards")
        return None

    monkeypatch.setattr(Stores, "_begin", write)
    (reply,) = sent(loop, insert)
    assert isinstance(reply, CommandReply)
    assert reply.reply.retcode is ReturnCode.OK
    assert {0, 3} <= seen
    monkeypatch.undo()
    loop.close()
    loop.stores.abandon()


def fail_writes(loop: ServiceLoop, patches: pytest.MonkeyPatch, name: str, *, at_sync: bool) -> None:
    """Let the disk refuse what is written next to the store of a queue."""
    store = loop.stores.queues[f"P/S/{name}"]
    if isinstance(store, SqliteStorage):
        store._connection.execute("PRAGMA query_only = ON")
    else:
        calls = "fdatasync" if at_sync else "pwrite"
        patches.setattr(os, calls, refusing(errno.EIO, calls=calls, only="QSlog@"))


FAILING = [(*each, name) for each in MOVES for name in each if name != "volatile"]


@pytest.mark.slow(beyond=11)
@pytest.mark.parametrize("at_sync", [False, True], ids=["write", "sync"])
@pytest.mark.parametrize(("source", "target", "failing"), FAILING, ids=["-".join(each) for each in FAILING])
def test_a_move_that_cannot_be_stored_is_undone_in_both_queues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, target: str, failing: str, at_sync: bool
) -> None:
    loop = filled(tmp_path, source)
    fail_writes(loop, monkeypatch, failing, at_sync=at_sync)
    reply = move(loop, source, target)
    assert reply.reply.retcode is ReturnCode.ERROR
    assert "could not be stored" in reply.reply.text
    monkeypatch.undo()
    until = time.monotonic() + PATIENCE_S
    while loop.recovery.is_needed:
        assert time.monotonic() < until
        loop.recovery.attempt(at_once=True)
        loop.turn()
    found = held(loop)
    counts = Counter(number for numbers in found.values() for number in numbers)
    assert counts == {0: 1, 1: 1, 2: 1}, found
    loop.close()
    loop.stores.close()
    if "volatile" not in (source, target):
        assert check(tmp_path, source, target, "after a restart") == found


def test_samples_that_cannot_be_inserted_are_not_answered_as_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = opened(tmp_path)
    fail_writes(loop, monkeypatch, "segments", at_sync=False)
    command = InsertSamples(
        SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "segments"),
        (InsertedSample(SampleIdentity(WRITER, 9), b"9"),),
    )
    (reply,) = sent(loop, CommandRequest(SampleIdentity(READER, 1), "*", command))
    assert isinstance(reply, CommandReply)
    assert reply.reply.retcode is ReturnCode.ERROR, "who moves a sample would remove it from where it was"
    loop.close()
    loop.stores.abandon()


def test_a_target_that_keeps_payloads_in_memory_asks_for_those_that_are_on_disk_only(tmp_path: Path) -> None:
    loop = filled(tmp_path, "database")
    held_there = [*loop.engine.hosted.by_name["P/S/database"].held]
    assert all(each.payload is None for each in held_there)
    names = tuple(HeldSample(each.position, each.identity) for each in held_there)

    def changed(target: str, *payloads: bytes) -> SamplesChanged:
        command = MoveSamples(resource_of("database"), resource_of(target), names, payloads=payloads)
        (reply,) = sent(loop, CommandRequest(SampleIdentity(READER, 1), "*", command))
        assert isinstance(reply, CommandReply)
        assert isinstance(reply.reply.body, SamplesChanged)
        return reply.reply.body

    assert changed("volatile") == SamplesChanged(0, without_payload=(0, 1, 2))
    assert changed("volatile", b"0", b"1", b"longer") == SamplesChanged(2, absent=(), without_payload=(2,))
    assert changed("database2") == SamplesChanged(1, absent=(0, 1)), "the service reads what it needs"
    (there,) = loop.engine.hosted.by_name["P/S/database2"].held
    assert loop.stores.payloads("P/S/database2", [there.position]) == [b"2"]
    loop.close()
    loop.stores.close()


def test_a_moved_record_is_read_whole_and_refused_by_versions_without_it() -> None:
    place = MovedFrom("P/S/dead", 7, Incarnation(2**62))
    record = Enqueued("P/S/orders", 2**40, SampleIdentity(WRITER, 5), 1, 2, flags=0x101, moved_from=place)
    encoded = QUEUE_CODEC.encode([record])
    (body,) = encoded.bodies
    assert list(QUEUE_CODEC.decode(body)) == [record]
    positions = Positions()
    QUEUE_CODEC.read_positions([body], positions)
    assert positions.begun == {2**40}
    with pytest.raises(msgspec.ValidationError, match="18"):  # as every version before reads it
        msgspec.msgpack.decode(body, type=Record | queue_codec._DeadLetterMetadata | queue_codec._SampleRun)


@pytest.mark.parametrize("target", ["segments2", "database2"])
def test_a_version_that_does_not_know_moves_refuses_the_files_that_have_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """As 0.2 does: by what the file says of itself, not by a record in it that looks damaged."""

    def opens_as_before(directory: Path) -> bool:
        with monkeypatch.context() as patches:
            patches.setattr(segment_file, "_MOVES", 0)
            patches.setattr(sqlite, "CURRENT_FORMATS", frozenset({3}))
            copy_tree(directory, tmp_path / "before")
            before = contents(tmp_path / "before")
            try:
                loop = opened(tmp_path / "before")
            except Refused as error:
                assert "that this version does not read" in error.message or "has format 4" in error.message
                assert contents(tmp_path / "before") == before
                return False
            loop.close()
            loop.stores.abandon()
            return True

    directory = tmp_path / "st"
    directory.mkdir()
    loop = filled(directory, "segments")
    assert opens_as_before(directory)
    move(loop, "segments", target)
    assert not opens_as_before(directory)
    sent(loop, *(Write("P", "Segments", SampleIdentity(WRITER, number), b"x") for number in range(10, 13)))
    assert not opens_as_before(directory)
    for name, store in loop.stores.queues.items():
        store.compact(loop.engine.snapshot_queue(name))
    loop.stores.make_room()
    loop.close()
    loop.stores.close()
    assert opens_as_before(directory), "nothing in it is of the new kind any more"
    assert held(opened(directory))[target] == [0, 1]


def test_checkpointed_records_of_a_move_are_marked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = filled(tmp_path, "segments")
    move(loop, "segments", "segments2")
    (log,) = logs_of(loop)
    store = loop.stores.queues["P/S/segments2"]
    assert isinstance(store, LoggedStorage)
    log.seal()
    for _ in store.checkpoint(log.last_file):
        pass
    flagged = [
        path.name.rpartition("_")[2]
        for path in sorted(tmp_path.glob("QS*_[wm]*.db"))
        if path.read_bytes()[5] & segment_file._MOVES
    ]
    assert flagged == ["m1.db", "w1.db"], "of the log and of the queue's own files those with moves, and no others"
    loop.close()
    loop.stores.abandon()


def test_samples_keep_their_order_where_only_some_of_their_payloads_are_needed(tmp_path: Path) -> None:
    """The target keeps small payloads in memory, and needs those; large ones are on the disk only in both."""
    payloads = [b"%d" % number * (1 if number % 3 == 1 else 1_000) for number in range(6)]
    loop = opened(tmp_path)
    writes = [Write("P", "Database", SampleIdentity(WRITER, at), each) for at, each in enumerate(payloads)]
    sent(loop, *writes)
    names = tuple(HeldSample(each.position, each.identity) for each in loop.engine.hosted.by_name["P/S/database"].held)

    def move_all(samples: Sequence[HeldSample], *octets: bytes) -> SamplesChanged:
        command = MoveSamples(resource_of("database"), resource_of("segments"), tuple(samples), payloads=octets)
        (reply,) = sent(loop, CommandRequest(SampleIdentity(READER, 1), "*", command))
        assert isinstance(reply, CommandReply)
        assert isinstance(reply.reply.body, SamplesChanged)
        return reply.reply.body

    first = move_all(names)
    assert first == SamplesChanged(1, without_payload=(1, 2, 3, 4, 5))
    left = first.without_payload
    assert move_all([names[at] for at in left], *(payloads[at] for at in left)) == SamplesChanged(5)
    there = loop.engine.hosted.by_name["P/S/segments"].held
    assert [each.identity.sequence_number for each in there] == list(range(6))
    loop.close()
