"""Ctrl-C between the write and its answer: what a command states it has done is never less than what is held."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from qsctl.cli.samples import writer
from qsctl.client import transfer
from qsctl.client.administration import Administration
from qsctl.errors import ExitStatus
from qsctl.service.directory.embedded import EmbeddedService
from tests.cli.samples.moved import contents, error_of
from tests.cli.shell import Shell


@pytest.fixture
def qsctl(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path / "state")
    for name in ("Orders", "Copies"):
        assert shell("create-queue", name).status == 0
    return shell


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Callable[[type, str], None]:
    """Interrupts the second call of a method once it has done its work, before its caller hears of it."""

    def interrupt(owner: type, method: str) -> None:
        real, calls = getattr(owner, method), 0

        def done_and_interrupted(*arguments: object, **named: object) -> object:
            nonlocal calls
            calls += 1
            answer = real(*arguments, **named)
            if calls == 2:
                raise KeyboardInterrupt
            return answer

        monkeypatch.setattr(owner, method, done_and_interrupted)

    return interrupt


def test_produce_states_what_was_on_its_way(
    qsctl: Shell, interrupted: Callable[[type, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BATCH_SAMPLES", 2)
    interrupted(EmbeddedService, "write")
    done = qsctl("produce", "Orders", *(f"--text={at}" for at in range(5)))
    assert done.status == ExitStatus.INTERRUPTED
    assert "interrupted after 2 samples; 2 more were on their way and may be written" in error_of(done)
    assert contents(qsctl, "Orders") == ["0", "1", "2", "3"]


def test_import_states_what_was_on_its_way(
    qsctl: Shell, interrupted: Callable[[type, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert qsctl("produce", "Orders", *(f"--text={at}" for at in range(5))).status == 0
    exported = str(tmp_path / "orders.jsonl")
    assert qsctl("export", "Orders", exported).status == 0
    monkeypatch.setattr(transfer, "BATCH_COUNT", 2)
    interrupted(Administration, "insert_samples")
    done = qsctl("import", exported, "Copies")
    assert done.status == ExitStatus.INTERRUPTED
    assert "interrupted; 2 samples are imported; 2 more were on their way and may be" in error_of(done)
    assert contents(qsctl, "Copies") == ["0", "1", "2", "3"]


def test_move_states_how_many_may_be_moved_besides(
    qsctl: Shell, interrupted: Callable[[type, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert qsctl("produce", "Orders", *(f"--text={at}" for at in range(5))).status == 0
    monkeypatch.setattr(transfer, "BATCH_COUNT", 2)
    interrupted(Administration, "move_samples")
    done = qsctl("move", "Orders", "Copies")
    assert done.status == ExitStatus.INTERRUPTED
    assert error_of(done).endswith("interrupted; 2 samples are moved; 2 more at most are")
    assert (contents(qsctl, "Orders"), contents(qsctl, "Copies")) == (["4"], ["0", "1", "2", "3"])


def test_move_to_another_service_states_how_many_may_be_in_both_queues(
    qsctl: Shell, interrupted: Callable[[type, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert qsctl("produce", "Orders", *(f"--text={at}" for at in range(5))).status == 0
    monkeypatch.setattr(transfer, "BATCH_COUNT", 2)
    monkeypatch.setattr(Administration, "move_samples", lambda *_, **__: None)
    interrupted(Administration, "insert_samples")
    done = qsctl("move", "Orders", "Copies")
    assert done.status == ExitStatus.INTERRUPTED
    assert "interrupted; 2 samples are moved; 2 more at most are, or are in both queues" in error_of(done)
    assert (contents(qsctl, "Orders"), contents(qsctl, "Copies")) == (["2", "3", "4"], ["0", "1", "2", "3"])
