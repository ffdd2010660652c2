"""A state directory elsewhere: moved with its folder, or put back from a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from qsctl.core.queue.settings import PersistenceSettings
from qsctl.service.directory.embedded import open_embedded
from tests.service.embedded_commands import PERSISTENCE, create, messages, queue, write


@pytest.fixture(params=PERSISTENCE)
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    directory = tmp_path / "here"
    persistence: PersistenceSettings = PERSISTENCE[request.param]
    with open_embedded(directory) as service:
        create(service, queue(persistence=persistence))
        write(service, b"one")
    return directory


def payloads(directory: Path) -> list[bytes]:
    with open_embedded(directory) as service:
        return [each.payload for each in messages(service)]


def test_a_moved_state_directory_is_the_same_service(filled: Path, tmp_path: Path) -> None:
    moved = tmp_path / "further" / "down"
    moved.parent.mkdir()
    filled.rename(moved)
    assert payloads(moved) == [b"one"]
    assert not filled.exists()


def test_a_copy_of_a_state_directory_is_a_service_of_its_own(filled: Path, tmp_path: Path) -> None:
    shutil.copytree(filled, tmp_path / "copy")
    with open_embedded(tmp_path / "copy") as service:
        write(service, b"two", start=1)
    assert payloads(tmp_path / "copy") == [b"one", b"two"]
    assert payloads(filled) == [b"one"]
