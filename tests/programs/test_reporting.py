"""`qsctl.write_report` writes what `qsctl report` writes, and refuses what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

import qsctl
from qsctl.errors import NotFound, UsageError
from tests.cli.shell import Shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path / "state")


@pytest.fixture
def swept(shell: Shell) -> Path:
    """A folder of a sweep, in the shell's directory."""
    qsctl.sweep(
        "burst", grid={"max-depth(D-1)": [100, 5000]}, settings={"horizon": "20ms"}, replications=2, out="depths"
    )
    return Path("depths")


def test_a_report_is_the_command_s(shell: Shell, swept: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wanted = shell("report", str(swept), "--out", "command.md").out
    capfd.readouterr()
    found = qsctl.write_report(swept, out="function.md")
    assert capfd.readouterr() == ("", "")
    assert Path("function.md").read_text() == Path("command.md").read_text().replace("command", "function")
    assert all(sentence in " ".join(wanted.split()) for sentence in found[0]["verdict"])
    assert found[0]["file"] == "function.md"


@pytest.mark.slow
def test_the_form_is_the_ending_s_or_the_one_that_is_asked(swept: Path) -> None:
    qsctl.write_report(swept, out="a.svg")
    assert "<svg" in Path("a.svg").read_text()
    qsctl.write_report(swept, out="a.data", form="png")
    assert Path("a.data").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_reported_is_refused_and_writes_nothing(shell: Shell) -> None:
    with pytest.raises(NotFound):
        qsctl.write_report("nothing", out="a.html")
    with pytest.raises(UsageError, match="form 'pdf' is not one"):
        qsctl.write_report("nothing", out="a.pdf", form="pdf")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="--best and --front"):
        Path("empty").mkdir()
        qsctl.write_report("empty", out="a.html", best="discards(D-1)")
    assert not list(Path().glob("a.*"))
