"""What destroys: the trial, the question on a terminal, and that no script is asked."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest

from qsctl.errors import ExitStatus
from tests.cli.shell import Shell
from tests.patience import PATIENCE_S
from tests.processes import running

DESTROYING = [
    (("flush-queue", "Orders"), "queue DomainParticipant/SharedSubscriber/Orders with 2 samples would be emptied"),
    (("delete-queue", "Orders"), "queue DomainParticipant/SharedSubscriber/Orders with 2 samples would be deleted"),
    (
        ("delete-subscriber", "SharedSubscriber"),
        "queue DomainParticipant/SharedSubscriber/Orders with 2 samples would be deleted",
    ),
    (("shutdown",), "service qsctl with 1 queue and 2 samples would stop"),
]


@pytest.fixture
def qsctl(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path / "state")
    assert shell("create-queue", "Orders").status == 0
    assert shell("produce", "Orders", "--text", "1", "--text", "2").status == 0
    return shell


def held_count(qsctl: Shell) -> int:
    return len(qsctl("get", "messages", "Orders", "-o", "json").document)


@pytest.mark.parametrize(("command", "said"), DESTROYING)
def test_trial_names_what_would_be_hit_and_changes_nothing(qsctl: Shell, command: tuple[str, ...], said: str) -> None:
    done = qsctl(*command, "--dry-run")
    assert done.status == ExitStatus.DONE
    assert said in done.out
    assert held_count(qsctl) == 2
    assert qsctl(*command, "--dry-run", "-o", "json").document["return_code"] == "DRY_RUN"


def test_trial_counts_what_a_selector_matches(qsctl: Shell) -> None:
    done = qsctl("flush-queue", "Orders", "--select", "@sample_queue_status = SENT_MESSAGE_STATUS", "--dry-run")
    assert done.out == "DRY_RUN: nothing\n"
    done = qsctl("flush-queue", "Orders", "--select", "@sample_queue_status <> SENT_MESSAGE_STATUS", "--dry-run")
    assert "2 selected samples of queue" in done.out


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(("answer", "status", "left_count"), [("n", ExitStatus.NO, 2), ("y", ExitStatus.DONE, 0)])
def test_on_a_terminal_it_asks_first(
    qsctl: Shell, tmp_path: Path, answer: str, status: ExitStatus, left_count: int
) -> None:
    controller, terminal = pty.openpty()
    environment = os.environ | {"QSCTL_STATE_DIR": str(tmp_path / "state"), "TERM": "dumb", "COLUMNS": "200"}
    command = [sys.executable, "-m", "qsctl", "flush-queue", "Orders"]
    with running(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment) as process:
        os.close(terminal)
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(controller, 4096)
        assert b"Orders with 2 samples would be emptied" in shown
        os.write(controller, f"{answer}\n".encode())
        assert process.wait(PATIENCE_S) == status
    os.close(controller)
    assert held_count(qsctl) == left_count


def test_script_is_not_asked(qsctl: Shell) -> None:
    assert qsctl("flush-queue", "Orders").status == ExitStatus.DONE
    assert held_count(qsctl) == 0
