"""The temporary folder of a Spark session outlives a process that is killed until the next session begins."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from qsctl.summary.spark.private_folder import YOUNGEST_S, PrivateFolder, remove_abandoned
from tests.patience import PATIENCE_S, eventually
from tests.processes import end, start

HOLDER = """
import sys, time
from pathlib import Path
from qsctl.summary.spark.private_folder import PrivateFolder
folder = PrivateFolder()
(folder.path / "blocks").mkdir()
Path(sys.argv[1]).write_text(str(folder.path))
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path / "temporary"


def aged(folder: Path) -> None:
    """Make a folder look older than the youngest that is removed."""
    before = folder.stat().st_mtime - 2 * YOUNGEST_S
    os.utime(folder, (before, before))


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_running_one_stays(tmp_path: Path) -> None:
    named = tmp_path / "named"
    process = start([sys.executable, "-c", HOLDER, str(named)], env=dict(os.environ))
    try:
        assert eventually(lambda: named.exists() and named.read_text() != "")
        folder = Path(named.read_text())
        aged(folder)
        remove_abandoned()
        assert (folder / "blocks").is_dir(), "its process runs"
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)
        assert folder.is_dir()
        aged(folder)
        remove_abandoned()
        assert not folder.exists()
    finally:
        end(process)


def test_a_young_folder_and_one_of_another_program_stay(temporary: Path) -> None:
    young, other = temporary / "qsctl-spark-young", temporary / "qsctl-spark-other"
    for folder in (young, other):
        folder.mkdir()
    (young / "in-use.lock").touch()
    aged(other)
    remove_abandoned()
    assert young.is_dir()
    assert other.is_dir()
    aged(young)
    remove_abandoned()
    assert not young.exists()


def test_a_folder_goes_with_its_session() -> None:
    folder = PrivateFolder()
    assert folder.path.is_dir()
    folder.remove()
    assert not folder.path.exists()
