"""A storage directory that is not there for a while, as when a file system is mounted again under a live service."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from qsctl.core.messages import AckResponse
from qsctl.errors import Refused
from tests.service.disk_trials import Trial, refusing, restarted, stores


@pytest.mark.parametrize("stand_in", ["nothing", "an empty directory"])
@pytest.mark.parametrize("comes_back_as", ["itself", "another mount"])
def test_a_directory_that_is_away_for_a_while_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_in: str, comes_back_as: str
) -> None:
    """What stands in its place is not written to, and what it held is not believed to be gone."""
    directory, away = tmp_path / "stores", tmp_path / "away"
    directory.mkdir()
    trial = Trial(directory)
    for _ in range(4):
        assert trial.write("segments") is AckResponse.ACCEPTED
    with monkeypatch.context() as failing:
        failing.setattr(os, "pwrite", refusing(errno.EROFS, calls="pwrite", only="@"))
        assert trial.write("segments") is AckResponse.REJECTED
        directory.rename(away)
    if stand_in != "nothing":
        directory.mkdir()
    for _ in range(3):
        trial.loop.recovery.attempt(at_once=True)
        assert trial.write("segments") is AckResponse.REJECTED
        assert trial.write("volatile") is AckResponse.ACCEPTED
    assert not directory.exists() or not list(directory.iterdir())
    if directory.exists():
        directory.rmdir()
    if comes_back_as == "itself":
        away.rename(directory)
    else:  # the same names and contents, other inodes
        shutil.copytree(away, directory)
    trial.recover()
    assert trial.write("segments") is AckResponse.ACCEPTED
    with pytest.raises(Refused, match="uses the stores"):
        stores(directory)  # which does not wait: that a service does is shown in test_one_writer.py
    trial.close()
    with restarted(directory) as after:
        assert not after.loop.stores.damage
        after.kept["segments"] = dict(trial.kept["segments"])
        assert after.consume("segments", 100) == 5
