"""State directories and files of earlier versions: opened, copied, moved; all there, and the original untouched."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qsctl.config.filesystem import FilesystemSettings
from qsctl.config.load import load_configuration
from qsctl.core.records import Enqueued
from qsctl.service.replicas._replica_stores import RECORDS
from qsctl.service.run.open_service import DaemonOptions, open_service
from qsctl.storage.replicas.replica_log import ReplicaLog
from tests.campaigns import trials
from tests.commands import command_line
from tests.earlier_formats import COMMITS, CONFIGURATION, contents, note, note_directory, placed
from tests.service.earlier_directories import assert_all_there, location, run

KINDS = ("created", "configured")

each_commit = pytest.mark.parametrize("commit", COMMITS)
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_commit
@each_kind
def test_a_state_directory_of_an_earlier_version_opens_with_all_samples(tmp_path: Path, commit: str, kind: str) -> None:
    directory = placed(commit, kind, tmp_path / "st")
    for _ in range(2):
        assert_all_there(kind, directory)


@each_commit
@each_kind
def test_a_copy_of_one_works_on_its_own_files(tmp_path: Path, commit: str, kind: str) -> None:
    original = placed(commit, kind, tmp_path / "st")
    before = contents(original)
    shutil.copytree(original, tmp_path / "copy")
    run("produce", "InLog", "--text", "new", *location(kind, tmp_path / "copy"))
    assert contents(original) == before
    assert run("consume", "InLog", "-n", "9", "-o", "{{ payload }}", *location(kind, tmp_path / "copy")).endswith(
        "new\n"
    )
    assert_all_there(kind, original)
    assert str(original) not in (tmp_path / "copy" / "instance.json").read_text()


@each_commit
@each_kind
def test_one_that_was_moved_has_all_samples(tmp_path: Path, commit: str, kind: str) -> None:
    original = placed(commit, kind, tmp_path / "st")
    original.rename(tmp_path / "moved")
    assert_all_there(kind, tmp_path / "moved")
    assert not original.exists()


@each_commit
@each_kind
def test_no_file_has_the_path_of_its_state_directory_once_it_was_opened(tmp_path: Path, commit: str, kind: str) -> None:
    directory = placed(commit, kind, tmp_path / "st")
    assert_all_there(kind, directory)
    for each in directory.rglob("*"):
        assert not each.is_file() or str(directory.resolve()).encode() not in each.read_bytes(), each


@each_commit
def test_files_in_a_directory_that_the_configuration_names_are_found_from_a_copy(tmp_path: Path, commit: str) -> None:
    """It is the user's word where they are: the state directory has none of them."""
    directory = placed(commit, "created", tmp_path / "st")
    outside = tmp_path / "outside"
    outside.mkdir(0o700)
    for each in directory.glob("QS*"):
        each.rename(outside / each.name)
    note_directory(directory / "instance.json", str(outside), always=True)
    directory.rename(tmp_path / "moved")
    assert_all_there("created", tmp_path / "moved")
    assert not list((tmp_path / "moved").glob("QS*"))


@each_commit
def test_a_queue_created_at_run_time_is_no_other_configuration_after_an_upgrade(tmp_path: Path, commit: str) -> None:
    """The digests of a version whose settings have fewer fields are of something else."""
    directory = placed(commit, "configured", tmp_path / "st")
    note(directory / "instance.json", sources_digest="5" * 64, settings_digest="7" * 64)
    assert_all_there("configured", directory)
    run("delete-queue", "InDatabase", "--yes", *location("configured", directory))
    run("get", "status", *location("configured", directory))


@each_commit
def test_a_configuration_that_is_another_is_refused_after_an_upgrade_too(tmp_path: Path, commit: str) -> None:
    directory = placed(commit, "configured", tmp_path / "st")
    before = contents(directory)
    other = tmp_path / "other.xml"
    other.write_text(CONFIGURATION.read_text().replace(">InLog<", ">Elsewhere<"))
    shown = run("get", "status", "--service", f"embedded:{other}", "--state-dir", str(directory), status=7)
    assert "queue P/S/InLog is configured otherwise here" in shown
    assert contents(directory).keys() == before.keys()
    assert_all_there("configured", directory)


def served(directory: Path) -> dict[str, list[str]]:
    """Start a service on the files of one that was killed; return what its queues hold."""
    loaded = load_configuration(
        [str(CONFIGURATION)], configuration_name=None, variables={}, environment={}, working_directory=directory
    ).configuration
    participants = tuple(replace(each, domain_id=90) for each in loaded.service.participants)
    service = replace(loaded.service, application_name="Kept_served", participants=participants)
    options = DaemonOptions(storage_directory=directory)
    engine, stores = open_service(replace(loaded, service=service), options)
    try:
        assert not stores.damage
        records = {name: list(engine.snapshot_queue(name)) for name in stores.names}
        return {
            name: [
                (each.payload or stores.payloads(name, [each.position])[0]).decode()
                for each in found
                if isinstance(each, Enqueued)
            ]
            for name, found in records.items()
        }
    finally:
        stores.close()


@each_commit
def test_the_files_of_a_killed_service_of_an_earlier_version_are_restored_from_a_copy(
    tmp_path: Path, commit: str
) -> None:
    original = placed(commit, "served", tmp_path / "files")
    before = contents(original)
    shutil.copytree(original, tmp_path / "copy")
    for _ in range(2):
        found = served(tmp_path / "copy")
        letters = found.pop("P/S/Letters")
        assert sorted(letters) == ["refused of InDatabase", "refused of InLog"]
        assert found == {
            f"P/S/{queue}": [f"{text} of {queue}" for text in ("held", "second", "third")]
            for queue in ("InLog", "InDatabase", "Created")
        }
    assert contents(original) == before


@each_commit
def test_the_log_of_a_replica_of_an_earlier_version_is_read(tmp_path: Path, commit: str) -> None:
    directory = placed(commit, "replicated", tmp_path / "files")
    log = ReplicaLog(directory / "QSreplicas@Kept_replicated", FilesystemSettings(), RECORDS)
    (stream,) = log.pop_found().values()
    texts = [each.payload.decode() for each in stream.records if isinstance(each, Enqueued)]
    assert [each for each in texts if each] == [f"{text} of Replicated" for text in ("first", "second", "third")]
    assert not log.is_damaged
    log.close()


DAMAGED = trials("QSCTL_TEST_DAMAGED_UPGRADES", 1, 40)
"""Octets that are changed in the directories of each commit."""


@pytest.mark.campaign
@each_commit
@pytest.mark.parametrize("seed", range(DAMAGED))
def test_one_that_is_damaged_has_all_samples_or_is_refused_and_stays_as_it_is(
    tmp_path: Path, commit: str, seed: int
) -> None:
    chance = random.Random(f"{commit} {seed}")
    kind = chance.choice(KINDS)
    directory = placed(commit, kind, tmp_path / "st")
    path = chance.choice(sorted(each for each in directory.rglob("QS*.db") if each.stat().st_size))
    whole = path.read_bytes()
    at = chance.randrange(len(whole))
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :])
    before = contents(directory)
    shown = CliRunner().invoke(command_line(), ["peek", "InLog", "-n", "9", *location(kind, directory)])
    if shown.exit_code:
        assert shown.exit_code in (7, 9), shown.output
        assert path.name in shown.output
        assert contents(directory) == before, f"octet {at} of {path.name}"
        discarding = CliRunner().invoke(
            command_line(), ["get", "status", "--discard-damaged", *location(kind, placed_copy(directory))]
        )
        assert discarding.exit_code in (0, 7, 9), f"whatever is left of it is used: {discarding.output}"
        path.write_bytes(whole)
    assert_all_there(kind, directory)


def placed_copy(directory: Path) -> Path:
    return Path(shutil.copytree(directory, directory.with_name("copy")))


@each_commit
@each_kind
def test_one_that_is_put_back_from_a_backup_has_what_it_had(tmp_path: Path, commit: str, kind: str) -> None:
    """An upgrade that is taken back: the backup was made by the version before, and nothing else is left."""
    directory = placed(commit, kind, tmp_path / "st")
    shutil.copytree(directory, tmp_path / "backup")
    run("move", "InLog", "Volatile", "--limit", "1", *location(kind, directory))
    assert run("peek", "Volatile", "-n", "9", "-o", "{{ payload }}", *location(kind, directory)).endswith("of InLog\n")
    shutil.rmtree(directory)
    (tmp_path / "backup").rename(directory)
    assert_all_there(kind, directory)


@each_commit
@each_kind
def test_samples_move_in_one_step_after_an_upgrade(tmp_path: Path, commit: str, kind: str) -> None:
    """The queues of those versions have no incarnation: their positions say enough."""
    directory = placed(commit, kind, tmp_path / "st")
    where = location(kind, directory)
    for source, target in (("InLog", "InDatabase"), ("InDatabase", "Volatile"), ("Letters", "InLog")):
        before = run("peek", source, "-n", "99", "-o", "{{ payload }}", *where)
        run("move", source, target, *where)
        assert run("peek", target, "-n", "99", "-o", "{{ payload }}", *where).endswith(before)
        assert run("get", "messages", source, "-o", "json", *where).strip() == "[]"
