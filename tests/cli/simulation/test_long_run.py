"""A long run is announced with its cost and asked about on a terminal; a script is never asked."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from qsctl.cli.confirmation import Declined
from qsctl.cli.simulation.progress import long_run as module
from qsctl.cli.simulation.progress.long_run import LongRun
from qsctl.sim.replication import ReplicationProgress

MEMORY = 300 << 20


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    made.mkdir()
    (made / "part").write_bytes(b"x" * 1000)
    return made


def begun(folder: Path, *, replications: int = 1, workers: int = 1, yes: bool = False) -> LongRun:
    return LongRun(folder, replications, workers, lambda: None, yes)


def report(of: LongRun, done: float, replication: int = 0) -> bool:
    return of.is_found(ReplicationProgress(replication, int(done * 1000), 1000, 5, memory_bytes=MEMORY))


def answering(monkeypatch: pytest.MonkeyPatch, answer: Callable[[], bool], *, terminal: bool = True) -> list[str]:
    asked: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(typer, "confirm", lambda text, **_: asked.append(text) or answer())
    return asked


def test_the_cost_is_extrapolated_from_the_first_seconds_once(clock: Clock, folder: Path) -> None:
    run = begun(folder, replications=4, workers=2)
    assert not report(run, 0.1)  # what came before, compiling perhaps, is no part of the rate
    clock.now_s += 1.0
    assert not report(run, 0.05, 1)
    clock.now_s += 1.0
    assert report(run, 0.1, 1)
    assert run.cost is not None
    clock.now_s += 1.0
    assert not report(run, 0.13)
    done_a_second = 0.1 / 2.0
    assert run.cost.seconds == pytest.approx((4 - 0.2) / done_a_second)
    assert run.cost.memory_bytes == 2 * MEMORY
    assert run.cost.disk_bytes == int(1000 * 4 / 0.2)


def test_a_short_run_is_not_found(clock: Clock, folder: Path) -> None:
    run = begun(folder)
    for done in (0.1, 0.2, 0.5, 0.9):
        assert not report(run, done)
        clock.now_s += 2.0
    assert run.cost is None


def long(clock: Clock, folder: Path, *, yes: bool = False) -> LongRun:
    run = begun(folder, yes=yes)
    report(run, 0.0)
    clock.now_s += 2.0
    assert report(run, 0.01)
    return run


def test_a_no_ends_the_run_and_keeps_nothing(
    clock: Clock, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = long(clock, folder)
    asked = answering(monkeypatch, lambda: False)
    ended: list[bool] = []
    run.end = lambda: ended.append(True)
    run.ask()
    assert (asked, ended) == (["Go on?"], [True])
    shown = capsys.readouterr().err
    assert "About 3 minutes, 300 MiB of memory, 97.66 KiB on the disk." in shown
    with pytest.raises(Declined, match="nothing is kept"):
        run.remove_declined()
    assert not folder.exists()


def test_ctrl_c_at_the_question_is_a_no(clock: Clock, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> bool:
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        raise typer.Abort

    run = long(clock, folder)
    answering(monkeypatch, interrupted)
    before = signal.getsignal(signal.SIGINT)
    run.ask()
    assert run.declined
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(("yes", "terminal", "questions"), [(False, True, 1), (True, True, 0), (False, False, 0)])
def test_the_question_needs_a_terminal_and_yes_skips_it(
    yes: bool, terminal: bool, questions: int, clock: Clock, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = long(clock, folder, yes=yes)
    asked = answering(monkeypatch, lambda: True, terminal=terminal)
    run.ask()
    assert len(asked) == questions
    assert not run.declined
    run.remove_declined()
    assert folder.exists()


def test_a_disk_that_is_too_small_is_named(
    clock: Clock, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "part").write_bytes(b"x")
    run = long(clock, folder, yes=True)
    assert run.cost is not None
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10})())
    run.ask()
    assert "The disk has only 10 B left." in capsys.readouterr().err
