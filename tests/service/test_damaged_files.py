"""Damaged, missing, exchanged and old files: refused with exit 9, and left as they are until the user says so."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qsctl.core.admin.command import CreateQueue, DeleteQueue, Shutdown
from qsctl.core.admin.reply import ReturnCode
from qsctl.core.queue.settings import PersistenceSettings
from qsctl.errors import Damaged
from qsctl.resource import ResourceKind
from qsctl.service.directory.embedded import open_embedded
from tests.campaigns import trials
from tests.earlier_formats import COMMITS, CONFIGURATION, FORMATS, contents, placed
from tests.processes import running
from tests.service.earlier_directories import assert_all_there, location, run
from tests.service.embedded_commands import IN_MEMORY, ON_DISK, PERSISTENCE, SUBSCRIBER, create, messages, queue, write

KINDS = pytest.mark.parametrize("persistence", [IN_MEMORY, ON_DISK], ids=["log", "database"])


def flip(path: Path, at: float) -> None:
    """Change the octet at a share of the file."""
    content = bytearray(path.read_bytes())
    content[int(at * (len(content) - 1))] ^= 0x55
    path.write_bytes(content)


def state_files(commit: str, kind: str) -> list[str]:
    directory = FORMATS / commit / kind
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


STATE_FILES = [
    (commit, kind, file)
    for commit in COMMITS
    for kind in ("created", "configured")
    for file in state_files(commit, kind)
    if file not in {"statistics.bin", "configuration.xml"}
]


PLACES = (0.0, 0.4, 1.0)
PLACES_EACH = trials("QSCTL_TEST_DAMAGED_PLACES", 1, len(PLACES))
"""How many places of each file are damaged, of those one after the other: files of a kind have all of them."""


@pytest.mark.slow(beyond=5)
@pytest.mark.campaign
@pytest.mark.parametrize("number", range(len(STATE_FILES)), ids=lambda number: "-".join(STATE_FILES[number]))
def test_a_damaged_file_of_an_earlier_version_is_refused_and_left_as_it_is(tmp_path: Path, number: int) -> None:
    commit, kind, file = STATE_FILES[number]
    first = number + COMMITS.index(commit)
    for at in (PLACES[(first + each) % len(PLACES)] for each in range(PLACES_EACH)):
        directory = placed(commit, kind, tmp_path / f"st{at}")
        flip(directory / file, at)
        before = contents(directory)
        where = location(kind, directory)
        try:
            run("get", "status", *where)
        except AssertionError:
            assert contents(directory) == before
            shown = run("get", "status", *where, status=9)
            assert str(directory.resolve() / file) in shown.replace("\n", "") or file == "instance.json"
            if file == "instance.json":
                continue  # it has the name of the service: nothing is known without it
            run("get", "status", "--discard-damaged", *where)
            run("get", "status", *where)
        else:
            assert file.endswith(".db"), "room that holds nothing, or a header of which there is a copy"
            assert at == 0.0 or "log@" not in file
            assert_all_there(kind, directory)


def filled(directory: Path, persistence: PersistenceSettings, *names: str) -> Path:
    with open_embedded(directory) as service:
        for name in names:
            create(service, queue(name, persistence))
            write(service, *(f"{name} {at}".encode() for at in range(3)), topic=name)
    return directory


def files_of(directory: Path, name: str) -> list[Path]:
    return sorted(directory.glob(f"QS{name}@*.db"))


def held(directory: Path, name: str) -> list[bytes]:
    with open_embedded(directory) as service:
        return [each.payload for each in messages(service, name)]


def assert_refused(directory: Path, match: str) -> None:
    before = contents(directory)
    with pytest.raises(Damaged, match=match) as caught, open_embedded(directory):
        pass
    assert "--discard-damaged" in caught.value.remedy
    assert contents(directory) == before


def exchange(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


@KINDS
def test_files_of_two_queues_that_were_exchanged_are_refused(tmp_path: Path, persistence: PersistenceSettings) -> None:
    directory = filled(tmp_path / "st", persistence, "Orders", "Bills")
    for one, other in zip(files_of(directory, "Orders"), files_of(directory, "Bills"), strict=True):
        exchange(one, other)
    assert_refused(directory, "of another store")
    for one, other in zip(files_of(directory, "Orders"), files_of(directory, "Bills"), strict=True):
        exchange(one, other)
    for name in ("Orders", "Bills"):
        assert held(directory, name) == [f"{name} {at}".encode() for at in range(3)]


@KINDS
def test_files_of_a_queue_that_was_deleted_are_not_its_successor_s(
    tmp_path: Path, persistence: PersistenceSettings
) -> None:
    """A backup of the files of one queue is put back over those of another creation of it."""
    directory = filled(tmp_path / "st", persistence, "Orders")
    backup = tmp_path / "backup"
    shutil.copytree(directory, backup)
    with open_embedded(directory) as service:
        service.request(DeleteQueue(SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "Orders")))
    filled(directory, persistence, "Orders")
    with open_embedded(directory) as service:
        write(service, *(b"more" for _ in range(9)), topic="Orders", start=50)
    for each in [*backup.glob("QSOrders@*.db"), *backup.glob("QSlog@*.db")]:
        shutil.copy(each, directory / each.name)
    assert_refused(directory, "of another creation of queue|missing")
    with open_embedded(directory, discard_damaged=True) as service:
        assert service.damage
    assert not (tmp_path / "st" / "aside").exists()
    with open_embedded(directory) as service:
        assert not service.damage


@KINDS
def test_files_that_belong_to_a_queue_deleted_at_once_with_a_crash_are_deleted(
    tmp_path: Path, persistence: PersistenceSettings
) -> None:
    directory = filled(tmp_path / "st", persistence, "Orders")
    saved = {path: path.read_bytes() for path in files_of(directory, "Orders")}
    with open_embedded(directory) as service:
        service.request(DeleteQueue(SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "Orders")))
    for path, content in saved.items():
        path.write_bytes(content)
    with open_embedded(directory) as service:
        assert not service.damage
    assert not files_of(directory, "Orders")


@pytest.mark.parametrize("kind", PERSISTENCE)
def test_a_whole_backup_that_is_put_back_is_what_it_was(tmp_path: Path, kind: str) -> None:
    directory = filled(tmp_path / "st", PERSISTENCE[kind], "Orders")
    backup = tmp_path / "backup"
    shutil.copytree(directory, backup)
    with open_embedded(directory) as service:
        service.request(DeleteQueue(SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, "Orders")))
    filled(directory, PERSISTENCE[kind], "Orders")
    shutil.rmtree(directory)
    shutil.copytree(backup, directory)
    assert held(directory, "Orders") == [f"Orders {at}".encode() for at in range(3)]


def test_create_refuses_a_queue_whose_files_an_earlier_run_left_damaged(tmp_path: Path) -> None:
    directory = filled(tmp_path / "st", ON_DISK, "Orders")
    with open_embedded(directory) as service:
        service.forget_configuration()
        service.request(Shutdown())
    (file,) = files_of(directory, "Orders")
    flip(file, 0.0)
    before = file.read_bytes()
    with open_embedded(directory) as service:
        (reply,) = service.request(CreateQueue(SUBSCRIBER, queue("Orders", ON_DISK)))
        assert reply.reply.retcode is ReturnCode.ERROR
        assert "damaged" in reply.reply.text
    assert file.read_bytes() == before
    with open_embedded(directory, discard_damaged=True) as service:
        assert create(service, queue("Orders", ON_DISK)) is ReturnCode.OK
    assert file.with_name(f"{file.name}.damaged").read_bytes() == before


def serve(directory: Path, *options: str) -> tuple[int, str]:
    """Run a service on files that were made in domain 90, and stop it once it is up; return its status and output."""
    command = [sys.executable, "-m", "qsctl", "serve", str(CONFIGURATION), "--domain-id-base", "90"]
    command += ["--app-name", "Kept_served", "--persistent-storage-path", str(directory), "--grace", "0s", *options]
    shown = ""
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            shown += line
            if " is up: " in line:
                process.terminate()
        process.wait()
    return process.returncode, shown


def test_serve_refuses_damaged_files_until_they_are_discarded_once(tmp_path: Path) -> None:
    directory = placed(COMMITS[-1], "served", tmp_path / "files")
    file = directory / "QSlog@Kept_served_w0.db"
    content = bytearray(file.read_bytes())
    content[1_000] ^= 1
    file.write_bytes(content)
    before = contents(directory)
    status, shown = serve(directory)
    assert status == 9
    assert f"{file}: offset" in shown
    assert contents(directory) == before
    assert serve(directory, "--discard-damaged")[0] == 0
    assert file.with_name(f"{file.name}.damaged").read_bytes() == bytes(content)
    status, shown = serve(directory)
    assert (status, "damaged" in shown) == (0, False)
