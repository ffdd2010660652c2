"""Files of keys: what they may hold, who may have access to them, and how a key is replaced."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

import pytest

from qsctl.config import signing_keys
from qsctl.config.signing_keys import KEYS_MAX, create_keys, read_keys, retire_keys, rotate_keys
from qsctl.errors import InvalidInput, NotFound, QsctlError, Refused, UsageError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "admin.key"


def write(file: Path, text: str | bytes, mode: int = 0o600) -> Path:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    file.chmod(mode)
    return file


def test_a_new_key_is_random_and_its_owners_alone(file: Path, tmp_path: Path) -> None:
    (key,) = create_keys(file)
    assert read_keys(file) == (key,)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert create_keys(tmp_path / "other.key") != (key,)


def test_creation_keeps_a_file_that_exists(file: Path) -> None:
    keys = create_keys(file)
    with pytest.raises(UsageError, match="exists already"):
        create_keys(file)
    assert read_keys(file) == keys


def test_a_key_is_shown_by_its_number_alone(file: Path) -> None:
    (key,) = create_keys(file)
    digits = key.octets.hex()
    assert digits not in f"{key} {key!r} {[key]}"
    assert str(key) == key.number.hex()
    assert str(key) not in digits


def test_rotation_signs_with_the_new_key_and_accepts_the_former_until_it_is_retired(file: Path) -> None:
    (first,) = create_keys(file)
    second, former = rotate_keys(file)
    assert (former, second != first) == (first, True)
    third, former = rotate_keys(file)
    assert (former, read_keys(file)) == (second, (third, second))
    assert retire_keys(file) == read_keys(file) == (third,)


def test_rotation_keeps_mode_and_link_and_leaves_no_other_file(file: Path, tmp_path: Path) -> None:
    create_keys(file)
    file.chmod(0o400)
    link = tmp_path / "link.key"
    link.symlink_to(file.name)
    rotate_keys(link)
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o400
    assert sorted(each.name for each in tmp_path.iterdir()) == ["admin.key", "link.key"]
    assert len(read_keys(link)) == 2


def test_rotation_that_cannot_be_written_leaves_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = create_keys(file)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(signing_keys.os, "fsync", full)
    with pytest.raises(UsageError, match="No space left"):
        rotate_keys(file)
    assert read_keys(file) == keys
    assert [each.name for each in file.parent.iterdir()] == ["admin.key"]


def test_comments_and_empty_lines_are_no_keys(file: Path) -> None:
    text = f"# of the plant\n\n  {'aB' * 32}  \r\n# former\n{'01' * 32}\n"
    assert [each.octets.hex() for each in read_keys(write(file, text))] == ["ab" * 32, "01" * 32]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no key"),
        ("# only a comment\n", "holds no key"),
        ("correct horse battery staple\n", "line 1: this is not a key"),
        (f"{'ab' * 32}\n{'ab' * 31}\n", "line 2: this is not a key"),
        (f"{'ab' * 33}\n", "line 1: this is not a key"),
        (b"\xff\xfe" + b"ab" * 32, "line 1: this is not a key"),
        ("".join(f"{at:064x}\n" for at in range(KEYS_MAX + 1)), "holds 9 keys"),
        ("#" * 70_000, "more than 65536 octets"),
    ],
)
def test_a_file_of_something_else_is_refused_without_showing_it(file: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as raised:
        read_keys(write(file, text))
    shown = f"{raised.value.message} {raised.value.remedy}"
    assert str(file) in shown
    assert not re.search(r"horse|[0-9a-f]{32}", shown)


def test_a_missing_file_is_not_found(file: Path) -> None:
    with pytest.raises(NotFound, match=f"there is no key file {file}"):
        read_keys(file)


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o640, 0o620, 0o660, 0o644, 0o666, 0o777])
def test_a_file_that_others_have_access_to_is_refused(file: Path, mode: int) -> None:
    create_keys(file)
    file.chmod(mode)
    with pytest.raises(Refused, match=f"has mode {mode:04o}") as raised:
        read_keys(file)
    assert f"chmod 0600 {file}" in raised.value.remedy


@pytest.mark.parametrize(
    ("owner", "mode", "is_accepted"),
    [
        (0, 0o640, True),
        (0, 0o440, True),
        (0, 0o600, True),
        (0, 0o660, False),
        (0, 0o644, False),
        (1, 0o600, True),
        (1, 0o640, False),
        (2, 0o600, False),
    ],
)
def test_a_file_of_roots_may_be_readable_for_its_group(
    file: Path, monkeypatch: pytest.MonkeyPatch, owner: int, mode: int, is_accepted: bool
) -> None:
    """As user 1: the rule of PostgreSQL, with which credentials of systemd and secrets of Kubernetes work."""
    create_keys(file)
    found = file.stat()
    monkeypatch.setattr(signing_keys.os, "geteuid", lambda: 1)
    status = os.stat_result((stat.S_IFREG | mode, *found[1:4], owner, *found[5:10]))
    monkeypatch.setattr(signing_keys.os, "fstat", lambda _: status)
    if is_accepted:
        assert len(read_keys(file)) == 1
    else:
        with pytest.raises(Refused):
            read_keys(file)


def test_a_directory_and_a_pipe_are_refused_at_once(file: Path, tmp_path: Path) -> None:
    with pytest.raises(Refused):
        read_keys(tmp_path)
    os.mkfifo(file, 0o600)
    with pytest.raises(QsctlError, match="is not a regular file"):
        read_keys(file)


def test_a_disk_that_takes_no_key_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="cannot be written: No space left on device"):
        create_keys(tmp_path / "admin.key")
    assert list(tmp_path.iterdir()) == []
