"""A recovery database is read while an engine writes it: what is read is a state that it had."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from qsctl.core.integration.database import stored
from qsctl.core.integration.message import Message, MessageId, State
from qsctl.core.integration.records import STREAM, CopyRemovalCause, CopyRemoved
from qsctl.errors import Damaged, Refused
from qsctl.sim.engine import _recovery_file as recovery_file
from qsctl.sim.engine.recovery_store import RecoveryStore, read_recovery_database


def message(serial: int) -> Message:
    mid = MessageId(0, 1, serial)
    return Message(
        serial, mid, mid, State.INBOUND_POST_TPS, serial, "p", "in", "in", "", payload=bytes([serial % 256]) * 3000
    )


class Busy:
    """An engine that replaces all its messages, and whose log begins anew, between two copies."""

    def __init__(self, path: Path, times: int) -> None:
        self.path = path
        self.store = RecoveryStore(path)
        self.store.append([stored(message(serial)) for serial in range(1, 20)])
        self._times = times
        self._serial = 20
        self._copyfile = shutil.copyfile

    def copyfile(self, source: Path, target: Path) -> object:
        done = self._copyfile(source, target)
        if source == self.path and self._times:
            self._times -= 1
            self._replace_all()
            other = sqlite3.connect(self.path)
            other.execute("PRAGMA wal_checkpoint(RESTART)")
            other.close()
            self.store.append([stored(message(self._serial))])
            self._serial += 1
        return done

    def _replace_all(self) -> None:
        gone = [CopyRemoved(STREAM, serial, CopyRemovalCause.DELIVERED) for serial in self.store.database.recovery]
        come = [stored(message(serial)) for serial in range(self._serial, self._serial + 19)]
        self._serial += 19
        self.store.append([*gone, *come])


def test_a_log_that_begins_anew_between_two_copies_is_copied_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Busy(tmp_path / "live", times=3)
    monkeypatch.setattr(recovery_file.shutil, "copyfile", engine.copyfile)
    content = read_recovery_database(engine.path)
    assert (content.damage, content.database.recovery) == ((), engine.store.database.recovery)
    engine.store.close()


def test_a_database_that_never_rests_is_refused_and_not_misread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Busy(tmp_path / "live", times=1000)
    monkeypatch.setattr(recovery_file.shutil, "copyfile", engine.copyfile)
    with pytest.raises(Refused, match="too fast"):
        read_recovery_database(engine.path)
    engine.store.close()


def test_a_file_that_is_something_else_is_no_database(tmp_path: Path) -> None:
    for content in (b"", b"Created  Message Id\n", b"SQLite"):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(Damaged, match="not a recovery database"):
            read_recovery_database(tmp_path / "file")
