"""What a command answers from the note of the one before: never anything but what the restored service answers.

`QSCTL_TEST_AT_REST` is the number of random histories.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from qsctl.config.settings import ServiceConfiguration
from qsctl.core.admin.command import Command, DeleteQueue, FlushQueue, GetData, GetStatus, Shutdown, StartRecording
from qsctl.core.admin.reply import Reply, ReturnCode
from qsctl.core.messages import AckResponse
from qsctl.core.queue.settings import ResourceLimitSettings, SharedReaderQueueSettings
from qsctl.errors import Refused
from qsctl.resource import ResourceIdentifier, ResourceKind
from qsctl.service.directory import _at_rest as at_rest
from qsctl.service.directory._embedded_instance import EmbeddedInstance
from qsctl.service.directory._embedded_settings import DEFAULT_SETTINGS
from qsctl.service.directory.embedded import EmbeddedService, open_embedded
from qsctl.service.run.named_configuration import NamedConfiguration
from tests.campaigns import trials
from tests.service.embedded_commands import (
    FULL_NAME,
    PERSISTENCE,
    SUBSCRIBER,
    create,
    messages,
    queue,
    status,
    write,
)

SERVICE = ResourceIdentifier()
ORDERS = SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "Orders")
START_NS = 1_700_000_000_000_000_000
SECOND_NS = 1_000_000_000
READINGS: tuple[Command, ...] = (
    GetData(SERVICE.at(ResourceKind.DATA)),
    GetStatus(SERVICE.at(ResourceKind.STATUS)),
    GetStatus(ORDERS.at(ResourceKind.STATUS)),
    GetStatus(SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "Nowhere").at(ResourceKind.STATUS)),
    GetStatus(SUBSCRIBER.at(ResourceKind.STATUS)),
    GetData(ORDERS.at(ResourceKind.DATA)),
)


def answers_of(service: EmbeddedService) -> list[tuple[Reply, bool, str]]:
    return [
        (each.reply, each.intermediate, each.replying_service)
        for command in READINGS
        for each in service.request(command)
    ]


def is_at_rest(directory: Path, now: Callable[[], int] = time.time_ns) -> bool:
    """Whether the next command answers a reading without a sample being read."""

    def refuse(_instance: EmbeddedInstance) -> None:
        raise Refused("restored")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmbeddedInstance, "open", refuse)
        try:
            with open_embedded(directory, now=now) as service:
                return len(service.request(READINGS[0])) == 1
        except Refused:
            return False


@pytest.fixture(params=PERSISTENCE)
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    directory = tmp_path / "here"
    with open_embedded(directory) as service:
        create(service, queue(persistence=PERSISTENCE[request.param]))
        write(service, b"one", b"two")
    return directory


def test_a_reading_restores_nothing(filled: Path) -> None:
    assert is_at_rest(filled)
    assert is_at_rest(filled)
    with open_embedded(filled) as service:
        assert status(service).current_message_count == 2
        assert service.application_name == "qsctl"
        assert [each.name for each in service.settings.participants[0].subscribers[0].queues] == ["Orders"]
        assert service.request(READINGS[0], "another*") == []
        assert not (service.damage or service.warnings or service.warnings_of_failures)
    assert is_at_rest(filled)


def test_a_reading_imports_neither_the_stores_nor_the_engine(filled: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from qsctl.service.directory.embedded import open_embedded\n"
        "from qsctl.core.admin.command import GetStatus; from qsctl.resource import ResourceIdentifier, ResourceKind\n"
        f"with open_embedded(Path({str(filled)!r})) as service:\n"
        "    print(len(service.request(GetStatus(ResourceIdentifier().at(ResourceKind.STATUS)))))\n"
        "restored = {'qsctl.service.stores.stores', 'qsctl.core.engine', 'lxml', 'qsctl.config.live'}\n"
        "print(sorted(restored & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n[]\n"


def test_what_is_written_after_a_reading_is_there(filled: Path) -> None:
    with open_embedded(filled) as service:
        assert status(service).current_message_count == 2
        assert write(service, b"three", start=2) == [AckResponse.ACCEPTED]
        assert status(service).current_message_count == 3
        assert [each.payload for each in messages(service)] == [b"one", b"two", b"three"]
    with open_embedded(filled) as service:
        assert status(service).current_message_count == 3


def test_reading_starts_the_change_again_from_zero(filled: Path) -> None:
    changes = []
    for _ in range(3):
        with open_embedded(filled) as service:
            changes.append(status(service).change.received_message_count)
            changes.append(status(service).change.received_message_count)
        assert is_at_rest(filled)
    assert changes == [2, 0, 0, 0, 0, 0]
    with open_embedded(filled) as service:
        status(service)
        write(service, b"three", start=2)  # the restored service knows of the reading before
        assert status(service).change.received_message_count == 1


def test_a_moved_directory_is_answered_for_and_a_copy_is_restored(filled: Path, tmp_path: Path) -> None:
    shutil.copytree(filled, tmp_path / "copy")
    hard = tmp_path / "hard"
    subprocess.run(["cp", "-al", filled, hard], check=True)
    for each in (tmp_path / "copy", hard):
        assert not is_at_rest(each)
        with open_embedded(each) as service:
            assert status(service).current_message_count == 2
            write(service, b"three", start=2)
        with open_embedded(each) as service:
            assert status(service).current_message_count == 3
    with open_embedded(filled) as service:
        assert status(service).current_message_count == 2
    assert is_at_rest(filled)
    moved = tmp_path / "further" / "down"
    moved.parent.mkdir()
    filled.rename(moved)
    assert is_at_rest(moved)
    with open_embedded(moved) as service:
        assert status(service).current_message_count == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda index: index.unlink(),
        lambda index: index.write_bytes(b""),
        lambda index: index.write_bytes(index.read_bytes()[:-1]),
        lambda index: index.write_bytes(index.read_bytes()[:-1] + b"\0"),
        lambda index: index.write_bytes(b"QSIX"),
        lambda index: index.write_bytes(os.urandom(500)),
        lambda index: (index.unlink(), index.mkdir()),
    ],
    ids=["removed", "empty", "torn", "changed", "cut", "foreign", "folder"],
)
def test_a_note_that_is_not_whole_is_passed_over(change: Callable[[Path], object], tmp_path: Path) -> None:
    with open_embedded(tmp_path / "s") as service:
        create(service, queue())
        write(service, b"one")
    change(tmp_path / "s" / "index.bin")
    assert not is_at_rest(tmp_path / "s")
    with open_embedded(tmp_path / "s") as service:
        assert status(service).current_message_count == 1
        assert service.damage == []
        write(service, b"two", start=1)
    with open_embedded(tmp_path / "s") as service:
        assert status(service).current_message_count == 2


def test_a_note_of_an_earlier_state_is_passed_over(filled: Path, tmp_path: Path) -> None:
    shutil.copy2(filled / "index.bin", tmp_path / "earlier")
    with open_embedded(filled) as service:
        write(service, b"three", start=2)
    shutil.copy2(tmp_path / "earlier", filled / "index.bin")
    with open_embedded(filled) as service:
        assert status(service).current_message_count == 3


def test_a_note_is_passed_over_once_a_file_was_put_back_lost_or_written(filled: Path) -> None:
    files = [each for each in filled.rglob("*") if each.is_file() and not each.name.startswith(("lock", "index"))]
    assert len(files) >= 4
    for file in files:
        assert is_at_rest(filled)
        before = file.stat()
        content = file.read_bytes()
        file.write_bytes(content)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # as programs do that restore files
        assert not is_at_rest(filled)
        with open_embedded(filled) as service:
            assert len(messages(service)) == 2


def test_the_note_of_another_version_is_passed_over(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_rest, "__version__", "0.0.1")
    with open_embedded(filled) as service:
        assert len(messages(service)) == 2
    assert is_at_rest(filled)
    monkeypatch.undo()
    assert not is_at_rest(filled)
    with open_embedded(filled) as service:
        assert len(messages(service)) == 2
    assert is_at_rest(filled)


def test_a_disk_that_refuses_the_note_costs_nothing_but_the_note(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_directory: object, _octets: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("qsctl.service.directory.state_directory.StateDirectory.write_index", full)
    with open_embedded(filled) as service:
        write(service, b"three", start=2)
    monkeypatch.undo()
    assert not is_at_rest(filled)
    with open_embedded(filled) as service:
        assert status(service).current_message_count == 3


def test_a_note_that_was_half_written_is_not_kept(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(path: Path, data: bytes, **_: object) -> None:
        path.write_bytes(data[:100])
        raise OSError(28, "No space left on device")

    with open_embedded(filled) as service:
        write(service, b"three", start=2)
        assert not (filled / "index.bin").exists()
        monkeypatch.setattr("qsctl.service.directory.state_directory.StateDirectory.write_statistics", lambda *_: None)
        monkeypatch.setattr("qsctl.service.directory.state_directory._write", half)
    monkeypatch.undo()
    assert not [each for each in filled.iterdir() if each.name.startswith("index")]
    with open_embedded(filled) as service:
        assert status(service).current_message_count == 3


@pytest.mark.slow(beyond=1)
def test_a_command_that_was_killed_leaves_no_note(filled: Path) -> None:
    program = (
        "import os; from pathlib import Path; from qsctl.service.directory.embedded import open_embedded\n"
        "from tests.service.embedded_commands import write\n"
        f"with open_embedded(Path({str(filled)!r})) as service:\n"
        "    write(service, b'three', start=2)\n"
        f"    os._exit(Path({str(filled / 'index.bin')!r}).exists())"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
    with open_embedded(filled) as again:
        assert status(again).current_message_count == 3


def test_a_note_ends_at_the_first_deadline(tmp_path: Path) -> None:
    clock = [START_NS]

    def now() -> int:
        return clock[0]

    with open_embedded(tmp_path / "s", now=now) as service:
        create(service, replace(queue(), lifespan_ns=5 * SECOND_NS))
        write(service, b"one")
    clock[0] += 4 * SECOND_NS
    assert is_at_rest(tmp_path / "s", now)
    with open_embedded(tmp_path / "s", now=now) as service:
        assert status(service).current_message_count == 1
        clock[0] += SECOND_NS  # it expires while a command is here
        assert status(service).current_message_count == 0
        assert status(service).total.expired_message_count == 1
    clock[0] -= 3 * SECOND_NS
    assert not is_at_rest(tmp_path / "s", now)  # the clock was set back


def test_the_deadline_that_passed_between_two_commands_is_obeyed(tmp_path: Path) -> None:
    clock = [START_NS]
    with open_embedded(tmp_path / "s", now=lambda: clock[0]) as service:
        create(service, replace(queue(), lifespan_ns=5 * SECOND_NS))
        write(service, b"one")
    clock[0] += 5 * SECOND_NS
    with open_embedded(tmp_path / "s", now=lambda: clock[0]) as service:
        assert status(service).total.expired_message_count == 1


def test_nothing_is_noted_while_a_sample_is_with_a_consumer(filled: Path) -> None:
    with open_embedded(filled) as service:
        assert len(service.receive(FULL_NAME + "Orders", 1, 0.0)) == 1
    assert not is_at_rest(filled)
    with open_embedded(filled) as service:
        assert [each.redelivered for each in messages(service)] == [True, False]


def test_nothing_is_noted_while_a_recording_goes_on(filled: Path, tmp_path: Path) -> None:
    with open_embedded(filled) as service:
        service.request(StartRecording(str(tmp_path / "run")))
    assert not is_at_rest(filled)


def test_a_configuration_that_is_another_is_refused_all_the_same(tmp_path: Path) -> None:
    def named(name: str, digest: str) -> NamedConfiguration:
        given = ServiceConfiguration(name, replace(DEFAULT_SETTINGS, application_name=name))
        return NamedConfiguration(lambda: given, f"{name}.xml", digest)

    with open_embedded(tmp_path / "s", configuration=named("c", "1")) as service:
        create(service, queue())
        write(service, b"one")
    with open_embedded(tmp_path / "s", configuration=named("c", "1")) as service:
        assert service._at_rest is not None
        assert status(service).current_message_count == 1
    with open_embedded(tmp_path / "s", configuration=named("c", "2")) as service:  # other bytes, the same meaning
        assert service._at_rest is None
        assert status(service).current_message_count == 1
    other = ServiceConfiguration("c", DEFAULT_SETTINGS)
    wanted = replace(other, service=replace(other.service, participants=()))
    with (
        pytest.raises(Refused, match="is not what the service in"),
        open_embedded(tmp_path / "s", configuration=NamedConfiguration(lambda: wanted, "d.xml", "3")),
    ):
        pass


def test_a_shutdown_ends_the_note_with_the_instance(filled: Path) -> None:
    with open_embedded(filled) as service:
        assert status(service).current_message_count == 2
        service.request(Shutdown())
    assert not (filled / "index.bin").exists()


def test_a_service_that_could_not_be_restored_does_nothing_more(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_embedded(filled) as service:
        assert status(service).current_message_count == 2

        def refuse(_instance: EmbeddedInstance) -> None:
            raise Refused("restored")

        monkeypatch.setattr(EmbeddedInstance, "open", refuse)
        with pytest.raises(Refused, match="restored"):
            write(service, b"three")
        monkeypatch.undo()
        with pytest.raises(Refused, match="stopped at an earlier error"):
            status(service)
    with open_embedded(filled) as service:
        assert status(service).current_message_count == 2


def settings_of(chance: random.Random, name: str) -> SharedReaderQueueSettings:
    given = queue(name, chance.choice(list(PERSISTENCE.values())))
    if chance.random() < 0.3:
        given = replace(given, lifespan_ns=chance.choice([1, 5, 60]) * SECOND_NS)
    if chance.random() < 0.3:
        given = replace(given, limits=ResourceLimitSettings(max_count=chance.choice([1, 5])))
    if chance.random() < 0.3:
        given = replace(given, redelivery=replace(given.redelivery, max_delivery_retries=chance.choice([0, 1])))
    return given


@pytest.mark.slow(beyond=1)
@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(trials("QSCTL_TEST_AT_REST", 4, 100)))
def test_after_any_history_a_note_answers_as_the_restored_service(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    clock = [START_NS]
    written = 0

    def now() -> int:
        return clock[0]

    names = ("Orders", "Bills")
    with open_embedded(tmp_path / "s", now=now) as service:
        for name in names:
            create(service, settings_of(chance, name))
    noted_count = 0
    for _ in range(12):
        with open_embedded(tmp_path / "s", now=now) as service:
            for _ in range(chance.randrange(1, 4)):
                name = chance.choice(names)
                resource = SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, name)
                match chance.randrange(7):
                    case 0 | 1:
                        write(service, *[b"x" * chance.randrange(100)] * 3, topic=name, start=written)
                        written += 3
                    case 2 | 3:
                        found = service.receive(FULL_NAME + name, 2, 0.0)
                        for each in found:
                            if chance.random() < 0.9:
                                service.acknowledge(each, ok=chance.random() < 0.6)
                    case 4:
                        service.request(FlushQueue(resource, ""))
                    case 5:
                        service.request(DeleteQueue(resource))
                        assert create(service, settings_of(chance, name)) is ReturnCode.OK
                    case _:
                        service.request(GetStatus(SERVICE.at(ResourceKind.STATUS)))
        clock[0] += chance.choice([0, 0, SECOND_NS // 3, 2 * SECOND_NS])
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(tmp_path / "s", tmp_path / "copy")
        with open_embedded(tmp_path / "s", now=now) as service:
            was_noted = service._at_rest is not None
            answers = [answers_of(service), answers_of(service)]
        with open_embedded(tmp_path / "copy", now=now) as service:
            assert service._at_rest is None
            assert answers == [answers_of(service), answers_of(service)]
        noted_count += was_noted
        if was_noted:
            counted = (tmp_path / "s" / "statistics.bin").read_bytes()
            assert counted == (tmp_path / "copy" / "statistics.bin").read_bytes()
    assert noted_count >= 2
