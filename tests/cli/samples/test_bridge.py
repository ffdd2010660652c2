"""`qsctl bridge` between embedded services: what crosses, what is left, and what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from qsctl.errors import ExitStatus
from tests.cli.samples.moved import contents, error_of, held
from tests.cli.shell import Shell
from tests.patience import PATIENCE_S, eventually
from tests.processes import running

GUID = "0" * 31 + "7"


@pytest.fixture
def there(tmp_path: Path) -> Shell:
    """The other service, with the queues that samples are bridged to."""
    shell = Shell(tmp_path / "there")
    for name, *options in (
        ("Archive",),
        ("Small", "--max-count", "2"),
        ("Places",),
        ("Typed", "--type", "DDS::String"),
    ):
        assert shell("create-queue", name, "--persistent", *options).status == 0
    return shell


@pytest.fixture
def here(tmp_path: Path, there: Shell) -> Shell:
    """Five orders."""
    shell = Shell(tmp_path / "here")
    assert shell("create-queue", "Orders", "--persistent").status == 0
    assert shell("create-queue", "Octets", "--type", "DDS::Octets").status == 0
    produce(shell, "Orders", 1, 6)
    return shell


def produce(shell: Shell, queue: str, begin: int, end: int) -> None:
    texts = [f"--text={at}" for at in range(begin, end)]
    assert shell("produce", queue, *texts, "--writer-guid", GUID, "--first-sequence-number", str(begin)).status == 0


def to(tmp_path: Path) -> tuple[str, str]:
    return "--to-state-dir", str(tmp_path / "there")


def test_samples_are_moved_with_their_identity_and_the_flag(here: Shell, there: Shell, tmp_path: Path) -> None:
    done = here("bridge", "Orders", "Archive", *to(tmp_path), "--once", "-o", "json")
    assert done.status == ExitStatus.DONE, done.err
    assert (done.document["moved_count"], done.document["left_count"], done.document["obstacle"]) == (5, 0, "")
    assert not contents(here, "Orders")
    moved = held(there, "Archive")
    assert [each["identity"] for each in moved] == [f"{GUID}:{at}" for at in range(1, 6)]
    assert all(each["redelivered"] for each in moved), "a consumer of the source may have processed it"
    (first,) = there("peek", "Archive", "-o", "json").document
    assert first["flags"] == 0x1000 + 0x100, "inserted, over one bridge"


def test_exclusive_bridge_flags_no_first_copy(here: Shell, there: Shell, tmp_path: Path) -> None:
    assert here("bridge", "Orders", "Archive", *to(tmp_path), "--once", "--exclusive", "-n", "2").status == 0
    assert [each["redelivered"] for each in held(there, "Archive")] == [False, False]
    assert contents(here, "Orders") == ["3", "4", "5"]


def test_mirror_copies_each_sample_once_and_keeps_its_place_between_runs(
    here: Shell, there: Shell, tmp_path: Path
) -> None:
    mirror = ("bridge", "Orders", "Archive", *to(tmp_path), "--once", "--mirror", "--places", "Places", "-o", "json")
    assert here(*mirror).document["moved_count"] == 5
    assert there("consume", "Archive", "--count", "0").status == 0
    produce(here, "Orders", 6, 8)
    assert here(*mirror).document["moved_count"] == 2
    assert [(each["payload"], each["redelivered"]) for each in held(there, "Archive")] == [("6", False), ("7", False)]
    assert contents(here, "Orders") == [str(at) for at in range(1, 8)]
    assert len(contents(there, "Places")) == 1


def test_bridged_sample_does_not_come_back(here: Shell, there: Shell, tmp_path: Path) -> None:
    assert here("bridge", "Orders", "Archive", *to(tmp_path), "--once").status == 0
    back = ("bridge", "Archive", "Orders", "--to-state-dir", str(tmp_path / "here"), "--once")
    done = there(*back, "-o", "json")
    assert (done.status, done.document["moved_count"], done.document["left_count"]) == (ExitStatus.DONE, 0, 5)
    assert there(*back, "--bridges", "2", "-o", "json").document["moved_count"] == 5
    assert contents(here, "Orders") == ["1", "2", "3", "4", "5"]


def test_full_target_ends_a_single_run_and_the_rest_stays(here: Shell, there: Shell, tmp_path: Path) -> None:
    bridge = ("bridge", "Orders", "Small", *to(tmp_path), "--once")
    done = here(*bridge)
    assert done.status == ExitStatus.PARTLY_DONE
    assert "the queue is full" in done.out
    assert (contents(there, "Small"), contents(here, "Orders")) == (["1", "2"], ["3", "4", "5"])
    assert here(*bridge).status == ExitStatus.REFUSED


def test_trial_shows_the_number_and_changes_nothing(here: Shell, there: Shell, tmp_path: Path) -> None:
    before = held(here, "Orders")
    done = here("bridge", "Orders", "Archive", *to(tmp_path), "--dry-run")
    assert done.status == ExitStatus.DONE
    assert "5 samples would be moved" in done.out
    assert held(here, "Orders") == before
    assert not held(there, "Archive")


def test_only_selected_samples_cross(here: Shell, there: Shell, tmp_path: Path) -> None:
    selector = f"@original_sample_identity.writer_guid.value = &hex({GUID}) AND "
    selector += "@original_sample_identity.sequence_number = (0,2)"
    assert here("bridge", "Orders", "Archive", *to(tmp_path), "--once", "--select", selector).status == 0
    assert contents(there, "Archive") == ["2"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("Orders", "Orders"), ExitStatus.USAGE, "are one queue"),
        (("Orders", "None"), ExitStatus.NOT_FOUND, "there is no queue 'None'"),
        (("None", "Archive"), ExitStatus.NOT_FOUND, "there is no queue 'None'"),
        (("Octets", "Typed"), ExitStatus.USAGE, "of DDS::String"),
        (("Orders", "Archive", "--mirror"), ExitStatus.USAGE, "a mirror needs a queue for its place"),
        (("Orders", "Archive", "--places", "Places"), ExitStatus.USAGE, "there is no --mirror"),
        (("Orders", "Archive", "--name", "m"), ExitStatus.USAGE, "there is no --mirror"),
        (("Orders", "Archive", "--mirror", "--places", "Archive"), ExitStatus.USAGE, "is bridged itself"),
        (("Orders", "Archive", "--mirror", "--places", "Places", "--exclusive"), ExitStatus.USAGE, "are both given"),
        (("Orders", "Archive", "--to", "nowhere"), ExitStatus.USAGE, "is not a service location"),
        (("Orders", "Archive", "--metrics", "/nowhere/file"), ExitStatus.USAGE, "cannot be written"),
    ],
)
def test_bridge_that_cannot_be_is_refused_with_the_reason(
    here: Shell, tmp_path: Path, arguments: tuple[str, ...], status: ExitStatus, message: str
) -> None:
    place = () if arguments[1] == "Orders" else to(tmp_path)
    done = here("bridge", *arguments, *place, "--once")
    assert done.status == status, done.err
    assert message in error_of(done)


def test_service_in_use_is_no_answer(here: Shell, tmp_path: Path, there: Shell) -> None:
    from qsctl.service.directory.embedded import open_embedded

    with open_embedded(tmp_path / "there", wait_s=1.0):
        done = here("bridge", "Orders", "Archive", *to(tmp_path), "--once", "--timeout", "100ms")
    assert done.status == ExitStatus.NO_ANSWER


def test_metrics_have_the_counts_and_the_state(here: Shell, there: Shell, tmp_path: Path) -> None:
    file = tmp_path / "bridge.prom"
    assert here("bridge", "Orders", "Small", *to(tmp_path), "--once", "--metrics", str(file)).status == 3
    lines = file.read_text().splitlines()
    names = 'source="DomainParticipant/SharedSubscriber/Orders",target="DomainParticipant/SharedSubscriber/Small"'
    assert f"qsctl_bridge_moved_total{{{names}}} 2" in lines
    assert f'qsctl_bridge_state{{{names},state="ended"}} 1' in lines
    assert f'qsctl_bridge_state{{{names},state="running"}} 0' in lines


def test_standing_bridge_goes_on_when_there_is_room_reports_it_once_and_ends_at_sigterm(
    here: Shell, there: Shell, tmp_path: Path
) -> None:
    words = ("bridge", "Orders", "Small", *to(tmp_path), "--state-dir", str(tmp_path / "here"), "-o", "json")
    with running(
        [sys.executable, "-m", "qsctl", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        for expected in (["1", "2"], ["3", "4"], ["5"]):
            assert eventually(lambda expected=expected: contents(there, "Small") == expected, PATIENCE_S)
            assert there("consume", "Small", "--count", "0").status == 0
        os.kill(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == ExitStatus.DONE, err
    assert '"moved_count": 5' in out
    blocked, again = "Warning: the target accepts nothing: the queue is full. Waiting.", "Samples cross again."
    lines = err.splitlines()
    assert lines[0] == blocked
    assert all(before != after for before, after in pairwise(lines)), "once a state"
    assert set(lines) == {blocked, again}
