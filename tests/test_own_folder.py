"""A user's own folder among temporary files: made once, and refused where another thing or user has its name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from qsctl.errors import Refused
from qsctl.own_folder import own_folder
from qsctl.summary.sweeps._carried import FOLDER_NAME, file_of


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_made_for_its_user_alone_and_found_again(temporary: Path) -> None:
    folder = own_folder("things")
    assert folder == temporary / f"things-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert own_folder("things") == folder


def test_a_link_that_a_stranger_made_is_refused(temporary: Path) -> None:
    """Its target may be a directory that the stranger writes to."""
    (temporary / "elsewhere").mkdir()
    (temporary / f"{FOLDER_NAME}-{os.getuid()}").symlink_to("elsewhere")
    with pytest.raises(Refused, match="is not a directory of this user"):
        file_of(b"time,client\n", ".csv")
    assert list((temporary / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a directory to another user")
def test_a_folder_of_another_user_is_refused(temporary: Path) -> None:
    os.chown(own_folder("things"), 12345, 12345)
    with pytest.raises(Refused, match="is not a directory of this user"):
        own_folder("things")
