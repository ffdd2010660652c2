"""Copies of a state directory, however they were made: what is done in one is not done in the other."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from qsctl.config.settings import ServiceConfiguration
from qsctl.core.queue.settings import PersistenceSettings
from qsctl.errors import Damaged
from qsctl.eventlog.run_folder import Recording, RecordingEnd, read_run_info
from qsctl.service.directory.embedded import open_embedded
from tests.earlier_formats import contents
from tests.service.earlier_directories import run
from tests.service.embedded_commands import PERSISTENCE, create, messages, queue, write
from tests.service.traced_program import configuration

KINDS = pytest.mark.parametrize("persistence", PERSISTENCE.values(), ids=PERSISTENCE.keys())


def filled(directory: Path, persistence: PersistenceSettings) -> Path:
    with open_embedded(directory) as service:
        create(service, queue(persistence=persistence))
        write(service, b"one")
    return directory


def held(directory: Path) -> list[bytes]:
    with open_embedded(directory) as service:
        assert not service.damage
        return [each.payload for each in messages(service)]


@KINDS
def test_a_copy_by_hard_links_has_files_of_its_own_once_it_is_used(
    tmp_path: Path, persistence: PersistenceSettings
) -> None:
    original = filled(tmp_path / "st", persistence)
    before = contents(original)
    shutil.copytree(original, tmp_path / "copy", copy_function=os.link)
    with open_embedded(tmp_path / "copy") as service:
        write(service, b"two", start=1)
    assert contents(original) == before
    assert held(tmp_path / "copy") == [b"one", b"two"]
    with open_embedded(original) as service:
        write(service, b"three", start=2)
    assert held(original) == [b"one", b"three"]
    assert held(tmp_path / "copy") == [b"one", b"two"]


@KINDS
def test_a_state_directory_is_the_same_through_a_symbolic_link(
    tmp_path: Path, persistence: PersistenceSettings
) -> None:
    original = filled(tmp_path / "st", persistence)
    (tmp_path / "link").symlink_to(original)
    assert held(tmp_path / "link") == [b"one"]
    (tmp_path / "link").unlink()
    original.rename(tmp_path / "moved")
    assert held(tmp_path / "moved") == [b"one"]


def test_a_folder_with_files_in_a_relative_directory_is_copied_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = configuration("FULL", "DELETE")
    given = replace(given, filesystem=replace(given.filesystem, directory=Path("files")))
    project = tmp_path / "project"
    (project / "files").mkdir(parents=True)
    monkeypatch.chdir(project)
    with open_embedded(Path("st"), configuration=given) as service:
        create(service, queue(persistence=PERSISTENCE["in-memory"]))
        write(service, b"one")
    before = contents(project)
    shutil.copytree(project, tmp_path / "copy")
    with open_embedded(tmp_path / "copy" / "st") as service:
        write(service, b"two", start=1)
        assert [each.payload for each in messages(service)] == [b"one", b"two"]
    assert contents(project) == before


def test_a_copy_does_not_go_on_with_the_recording_of_its_original(tmp_path: Path) -> None:
    original = filled(tmp_path / "st", PERSISTENCE["volatile"])
    folder = tmp_path / "recorded"
    run("record", "start", str(folder), "--state-dir", str(original))
    shutil.copytree(original, tmp_path / "copy")
    before = contents(folder)
    shown = run("produce", "Orders", "--text", "two", "--state-dir", str(tmp_path / "copy"))
    assert "is a copy" in shown
    assert contents(folder) == before
    assert "is a copy" not in run("produce", "Orders", "--text", "three", "--state-dir", str(tmp_path / "copy"))
    original.rename(tmp_path / "moved")
    run("produce", "Orders", "--text", "two", "--state-dir", str(tmp_path / "moved"))
    assert contents(folder) != before
    run("record", "stop", "--state-dir", str(tmp_path / "moved"))


def test_a_recorded_folder_is_read_where_it_was_moved_to(tmp_path: Path) -> None:
    original = filled(tmp_path / "st", PERSISTENCE["volatile"])
    run("record", "start", str(tmp_path / "recorded"), "--state-dir", str(original))
    run("produce", "Orders", "--text", "two", "--state-dir", str(original))
    run("record", "stop", "--state-dir", str(original))
    (tmp_path / "recorded").rename(tmp_path / "moved")
    info = read_run_info(tmp_path / "moved")
    assert isinstance(info.recording, Recording)
    assert info.recording.end == RecordingEnd.STOPPED


def test_services_whose_names_make_one_file_name_do_not_share_it(tmp_path: Path) -> None:
    """`…@A_m0.db` is of application A with in-memory state, or of A_m0 without."""

    def named(name: str) -> ServiceConfiguration:
        given = configuration("FULL", "DELETE")
        return replace(
            given,
            service=replace(given.service, application_name=name),
            filesystem=replace(given.filesystem, directory=tmp_path),
        )

    with open_embedded(tmp_path / "st_A", configuration=named("A")) as service:
        create(service, queue(persistence=PERSISTENCE["in-memory"]))
        write(service, b"one")
    with pytest.raises(Damaged), open_embedded(tmp_path / "st_A_m0", configuration=named("A_m0")):
        pass
    assert held(tmp_path / "st_A") == [b"one"]
