"""File names: the manual's, and nothing that leads out of the directory."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from qsctl.errors import InvalidInput
from qsctl.storage.names import allowed_part, inside, open_private, private_stem, queue_stem, service_file, unshare


def test_the_names_are_those_of_the_manual(tmp_path: Path) -> None:
    assert service_file(tmp_path, "QS", "app_1").name == "QSservice@app_1.db"
    assert service_file(tmp_path, "", "app").name == "service@app.db"
    assert queue_stem(tmp_path, "QS", "Order", "S", 7, "app").name == "QSOrder@S@7@app"


@pytest.mark.parametrize("part", ["", "..", "a/b", "a\\b", "a b", "a\0b", "a\n", "é", "a@b", "a:b", "../x", "$(X)"])
def test_a_part_with_another_character_is_refused(tmp_path: Path, part: str) -> None:
    if part == "..":
        assert queue_stem(tmp_path, "QS", part, "S", 0, "app").parent == tmp_path.resolve()
        return
    with pytest.raises(InvalidInput, match="cannot be part of a file name"):
        queue_stem(tmp_path, "QS", part, "S", 0, "app")
    with pytest.raises(InvalidInput, match="cannot be part of a file name"):
        service_file(tmp_path, "QS", part)


def test_an_empty_prefix_is_allowed_and_an_empty_name_is_not() -> None:
    assert allowed_part("the file prefix", "", may_be_empty=True) == ""
    with pytest.raises(InvalidInput):
        allowed_part("the topic name", "")


def test_a_directory_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        service_file(tmp_path / "nowhere", "QS", "app")


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is longer than 231 bytes"):
        queue_stem(tmp_path, "QS", "T" * 230, "S", 0, "app")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one=strategies.text(max_size=300), other=strategies.text(max_size=300))
def test_any_queue_name_has_a_private_file_of_its_own(tmp_path: Path, one: str, other: str) -> None:
    for name in (one, other):
        if name in {"", ".", ".."}:
            continue
        stem = private_stem(tmp_path, name)
        assert stem.parent == tmp_path.resolve()
        assert len(stem.name.encode()) < 255
    if one != other and not {one, other} & {"", ".", ".."}:
        assert private_stem(tmp_path, one) != private_stem(tmp_path, other)


@pytest.mark.parametrize("name", ["../x", "a/b", "/etc/passwd", ".", "..", ""])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput):
        inside(tmp_path, name)


def test_private_files_are_for_their_owner_and_links_are_refused(tmp_path: Path) -> None:
    descriptor = open_private(tmp_path / "a", os.O_RDWR)
    os.close(descriptor)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "c").mkdir()
    for name in "bc":
        with pytest.raises(InvalidInput, match="is not a plain file"):
            open_private(tmp_path / name, os.O_RDWR)


def shared_file(tmp_path: Path) -> Path:
    file = tmp_path / "original"
    file.write_bytes(b"content")
    os.link(file, tmp_path / "copy")
    return file


def test_a_file_under_several_names_gets_a_content_of_its_own(tmp_path: Path) -> None:
    file = shared_file(tmp_path)
    unshare(file)
    file.write_bytes(b"other")
    assert (tmp_path / "copy").read_bytes() == b"content"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "original"]


def test_a_file_whose_own_content_the_disk_refuses_is_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file = shared_file(tmp_path)
    with monkeypatch.context() as disk, pytest.raises(OSError, match="No space left"):
        disk.setattr(os, "fsync", refuse)
        unshare(file)
    assert os.path.samefile(file, tmp_path / "copy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "original"]
