"""`size` and `compare` with client profiles of a broker, simulated and summarized."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qsctl.cli.simulation.progress import watched_run as module
from qsctl.cli.simulation.progress.long_run import LongRun, RunCost
from qsctl.errors import ExitStatus
from qsctl.shipped import shipped
from qsctl.sim.replication import ReplicationProgress
from tests.commands import command_line

FIXTURES = shipped("fixtures/profiles")
THROTTLED = f"covered={FIXTURES / 'broker.cfg'}#guaranteed"
COVERED = f"covered={FIXTURES / 'guaranteed.json'}"


def test_two_profiles_under_one_load_differ_by_what_their_bursts_admit(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        command_line(),
        ["compare", "guaranteed", "--client-profile", COVERED, "--client-profile", THROTTLED, "--set", "horizon=2s",
         "--replications", "4", "--out", str(tmp_path), "-o", "json"],
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    (throughput,) = [row for row in document["differences"] if (row["queue"], row["measure"]) == ("G-1", "throughput")]
    assert throughput["paired"]
    assert throughput["better"] == "A"
    assert throughput["mean_a"] > 1.3 * throughput["mean_b"]
    assert f"{FIXTURES / 'guaranteed.json'} in place of profile 'covered'" in done.stderr


def test_a_long_comparison_that_the_user_declines_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    @contextmanager
    def declined(_: str, __: int, long_run: LongRun) -> Iterator[Callable[[ReplicationProgress], None]]:
        asked.append(long_run.yes)

        def show(_: ReplicationProgress) -> None:
            if not long_run.yes:
                long_run.cost, long_run.declined = RunCost(600.0, 1 << 30, None), True
                long_run.end()

        yield show

    monkeypatch.setattr(module, "run_progress", declined)
    words = [
        "compare",
        "guaranteed",
        "--client-profile",
        COVERED,
        "--client-profile",
        THROTTLED,
        "--set",
        "horizon=50ms",
    ]
    done = CliRunner().invoke(command_line(), [*words, "--out", str(tmp_path / "no")])
    assert done.exit_code == ExitStatus.NO
    assert "about 10 minutes, 1 GiB of memory were declined: nothing is kept" in done.stderr
    assert list((tmp_path / "no").glob("*")) == []
    done = CliRunner().invoke(command_line(), [*words, "--out", str(tmp_path / "yes"), "--yes"])
    assert done.exit_code == ExitStatus.DONE, done.stderr
    assert asked == [False, True, True]


@pytest.mark.slow
def test_size_begins_from_the_profile_and_finds_less_than_the_arithmetic(tmp_path: Path) -> None:
    """W3: the formula wants flows × window = 12; the load has ten messages in flight."""
    load = tmp_path / "load.xml"
    words = ["client-profile", "size", "--window", "12", "--message-size", "2048", "--round-trip", "100ms"]
    made = CliRunner().invoke(command_line(), [*words, "--scenario", str(load), "-o", "json"])
    assert json.loads(made.stdout)["burst_needed"] == 12
    done = CliRunner().invoke(
        command_line(),
        ["size", str(load), "--target", "waiting_messages(G-1)=0", "--vary", "min-msg-burst(G-1)=9,10,12",
         "--client-profile", THROTTLED.partition("=")[2], "--set", "profile[sized]/queue[G-1]/max-depth=2",
         "-o", "json"],
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert list(document["answer"]["settings"].values()) == [10]
    assert "'profile[sized]/queue[G-1]/max-depth=2'" in document["reproduce"]
