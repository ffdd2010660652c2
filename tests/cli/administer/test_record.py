"""`qsctl record` from the command line, of an embedded service: exit statuses, and what it shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qsctl.cli.administer.recording_options import share, size_bytes
from qsctl.errors import ExitStatus, UsageError
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.run_folder import RunStatus
from qsctl.summary.job import summarize_run
from tests.cli.shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "state")


def test_a_recording_from_its_start_to_its_summary(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "rec"
    assert shell("record", "status").out == "There was no recording.\n"
    assert shell("create-queue", "Orders", "--topic", "Orders").status == ExitStatus.DONE
    started = shell("record", "start", str(folder), "--level", "events", "--max", "1GiB")
    assert started.status == ExitStatus.DONE
    assert started.out.split()[:3] == ["Recording", "into", f"{folder},"]
    assert shell("produce", "Orders", "--lines", stdin="1\n22\n333\n").status == ExitStatus.DONE
    assert shell("consume", "Orders", "--count", "2").status == ExitStatus.DONE
    shown = shell("record", "status", "-o", "json").document
    assert (shown["folder"], shown["level"], shown["max_bytes"], shown["end"]) == (str(folder), "events", 1 << 30, "")
    assert "has ended" in shell("record", "stop").out
    assert shell("record", "status", "-o", "json").document["message_rows"] == 3
    assert open_run(folder).info.status is RunStatus.COMPLETE
    (figures,) = summarize_run(folder).queues
    assert (figures.queue, figures.delivered_messages, figures.length_messages) == ("Orders", 2, 1)


def test_a_recording_is_for_its_user_alone(shell: Shell, tmp_path: Path) -> None:
    """It holds names and times of samples, as the state directory beside it does."""
    assert shell("record", "start", str(tmp_path / "rec")).status == ExitStatus.DONE
    for each in (tmp_path / "rec", *(each for each in (tmp_path / "rec").rglob("*") if each.is_dir())):
        assert each.stat().st_mode & 0o777 == 0o700, each
    assert (tmp_path / "rec" / "run.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("stop",), ExitStatus.REFUSED, "no recording is in progress"),
        (("start", "/proc/nowhere"), ExitStatus.REFUSED, "the folder cannot be created"),
        (("start", "x", "--max", "much"), ExitStatus.USAGE, "'much' is not a size"),
        (("start", "x", "--max", "5"), ExitStatus.REFUSED, "too small"),
        (("start", "x", "--sample", "0%"), ExitStatus.USAGE, "'0%' is not a fraction"),
        (("start", "x", "--level", "all"), ExitStatus.USAGE, "counters"),
    ],
)
def test_what_cannot_be_has_its_status(shell: Shell, arguments: tuple[str, ...], status: ExitStatus, text: str) -> None:
    ended = shell("record", *arguments)
    assert (ended.status, text in ended.err) == (status, True), ended.err


def test_a_second_start_is_refused(shell: Shell, tmp_path: Path) -> None:
    assert shell("record", "start", str(tmp_path / "one")).status == ExitStatus.DONE
    again = shell("record", "start", str(tmp_path / "two"))
    assert again.status == ExitStatus.REFUSED
    assert "a recording is in progress" in again.err


def test_a_folder_that_is_used_is_refused(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = shell("record", "start", str(tmp_path))
    assert ended.status == ExitStatus.REFUSED
    assert "is not an empty folder" in ended.err
    assert json.dumps(sorted(path.name for path in tmp_path.iterdir())) == '["file", "state"]'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1500", 1500),
        ("10GB", 10**10),
        ("2GiB", 2 << 30),
        ("1.5 MB", 1_500_000),
        ("3k", 3000),
        ("1KiB", 1024),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    assert size_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "-1", "GB", "1PB", "1 2", "ten"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError):
        size_bytes(text)


@pytest.mark.parametrize(("text", "expected"), [("10%", 0.1), ("0.25", 0.25), ("100%", 1.0), ("1", 1.0)])
def test_shares(text: str, expected: float) -> None:
    assert share(text) == expected


@pytest.mark.parametrize("text", ["", "0", "101%", "2", "-1", "nan", "a tenth"])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(UsageError):
        share(text)
