"""`qsctl replay`, and `--from` of `size` and `sweep`: what they print, refuse and exit with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import qsctl
from qsctl.cli.simulation.progress import watched_run as module
from qsctl.cli.simulation.progress.long_run import LongRun, RunCost
from qsctl.errors import ExitStatus, Interrupted
from qsctl.eventlog.run_folder import read_run_info
from qsctl.report._replay_report import replay_sentences, replay_tables
from qsctl.sim.replication import ReplicationProgress
from tests.commands import command_line

MONDAY = Path(__file__).parent.parent.parent.parent / "fixtures" / "recordings" / "monday"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command_line(), [*arguments])


def test_replay_prints_every_difference_and_measure_as_json(tmp_path: Path) -> None:
    done = run(
        "replay", str(MONDAY), "--set", "queue[Orders]/max-count=5", "--out", str(tmp_path / "now"), "-o", "json"
    )
    assert done.exit_code == ExitStatus.DONE, done.output
    document = json.loads(done.stdout)
    assert document["changes"] == {"queue[Orders]/max-count": "5"}
    assert not document["is_equal"]
    assert document["differences"] > 100
    measures = {(row["queue"], row["measure"]): row for row in document["measures"]}
    assert measures["Orders", "discarded"]["then"] == 0
    assert measures["Orders", "discarded"]["now"] > 0
    jobs = next(each for each in document["equality"] if each["queue"] == "P/S/Jobs")
    assert jobs["deliveries_equal"] == jobs["deliveries_then"]


def test_replay_of_another_configuration_names_it(tmp_path: Path) -> None:
    config = tmp_path / "other.xml"
    shutil.copy(MONDAY / "config.xml", config)
    config.write_text(config.read_text().replace("<max_count>60</max_count>", "<max_count>6</max_count>"))
    done = run("replay", str(MONDAY), "--config", str(config), "--out", str(tmp_path / "now"), "-o", "json")
    assert done.exit_code == ExitStatus.DONE, done.output
    document = json.loads(done.stdout)
    assert document["changes"] == {"config": str(config)}
    assert any(row["measure"] == "discarded" and row["now"] > 0 for row in document["measures"])


def test_page_of_a_replay_has_then_and_now_side_by_side(tmp_path: Path) -> None:
    out = tmp_path / "now"
    assert run("replay", str(MONDAY), "--set", "queue[Orders]/consumers=6", "--out", str(out)).exit_code == 0
    info = read_run_info(out)
    assert "queue[Orders]/consumers = 6" in replay_sentences(out, info)[0]
    (table,) = replay_tables(out, info)
    assert table.headings[2:] == ["Then", "Now"]
    row = next(row for row in table.rows if row[:2] == ["Orders", "wait p99"])
    assert row[2] != row[3]
    assert replay_tables(MONDAY, read_run_info(MONDAY)) == []


@pytest.mark.parametrize("model", ["replay", "solace"])
def test_a_long_replay_that_the_user_declines_leaves_nothing(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def declined(_: str, __: int, long_run: LongRun) -> Iterator[Callable[[ReplicationProgress], None]]:
        def show(_: ReplicationProgress) -> None:
            long_run.cost, long_run.declined = RunCost(600.0, 1 << 30, 1 << 20), True
            long_run.end()

        yield show

    monkeypatch.setattr(module, "run_progress", declined)
    done = run("replay", str(MONDAY), "--model", model, "--out", str(tmp_path / "now"))
    assert done.exit_code == ExitStatus.NO
    assert "about 10 minutes, 1 GiB of memory, 1 MiB on the disk were declined: nothing is kept" in done.output
    assert not (tmp_path / "now").exists()


def test_a_replay_that_ends_before_the_first_arrival_states_it(tmp_path: Path) -> None:
    with pytest.raises(Interrupted, match="before the first arrival"):
        qsctl.replay(MONDAY, out=tmp_path / "now", stop=lambda: True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("replay", "MONDAY", "--config-name", "Shop"), "Give --config FILE too"),
        (("replay", "MONDAY", "--client-profile", "x.json"), "Add --model solace"),
        (("replay", "MONDAY", "--model", "solace", "--config", "x.xml"), "--client-profile"),
        (("replay", "MONDAY", "--set", "queue[Orders]/max-counts=1"), "did you mean max-count"),
        (("sweep", "burst", "--from", "MONDAY", "--grid", "seed=1,2"), "are both given"),
        (("sweep", "--grid", "seed=1,2"), "SCENARIO is missing"),
        (
            (
                "size",
                "--from",
                "MONDAY",
                "--from",
                "MONDAY",
                "--model",
                "solace",
                "--target",
                "discards(G-1)=0",
                "--vary",
                "max-depth(G-1)=2..4",
            ),
            "several recordings are for the model replay",
        ),
        (("sweep", "burst", "--model", "tibco", "--grid", "seed=1,2"), "are for a recording"),
    ],
)
def test_what_does_not_fit_together_is_refused(arguments: tuple[str, ...], message: str) -> None:
    done = run(*(str(MONDAY) if each == "MONDAY" else each for each in arguments))
    assert done.exit_code == ExitStatus.USAGE
    assert message in " ".join(done.output.split())


@pytest.mark.slow
def test_a_size_for_several_recordings_has_one_run_for_each(tmp_path: Path) -> None:
    days = [MONDAY]
    for count in (5, 6):
        days.append(tmp_path / f"day-{count}")
        assert (
            run("replay", str(MONDAY), "--set", f"queue[Orders]/max-count={count}", "--out", str(days[-1])).exit_code
            == 0
        )
    options = [word for day in days for word in ("--from", str(day))]
    done = run(
        "size", *options, "--target", "P(discards(Orders)>0)<80%", "--vary", "max_count(Orders)=5,60", "-o", "json"
    )
    assert done.exit_code == ExitStatus.DONE, done.output
    document = json.loads(done.stdout)
    assert document["reproduce"].count("--from ") == 3
    assert {row["replications"] for row in document["candidates"]} == {3}
    assert "The first 3 runs had the loads of the 3 recordings, one each" in done.stdout


def test_a_recording_that_is_named_twice_is_not_two_days(tmp_path: Path) -> None:
    again = shutil.copytree(MONDAY, tmp_path / "again")
    done = run(
        "size",
        "--from",
        str(MONDAY),
        "--from",
        str(again),
        "--target",
        "discards(Orders)=0",
        "--vary",
        "max_count(Orders)=5,60",
    )
    assert done.exit_code == ExitStatus.NO
    assert f"{again} holds the same as {MONDAY} (allowed: each recording once)" in " ".join(done.output.split())


def test_few_recordings_are_too_few_for_a_small_share_of_runs(tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert run("replay", str(MONDAY), "--set", "queue[Orders]/max-count=5", "--out", str(other)).exit_code == 0
    target = "P(time_to_done_p99(Orders)>1ms)<20%"
    done = run(
        "size", "--from", str(MONDAY), "--from", str(other), "--target", target, "--vary", "consumers(Orders)=1..4"
    )
    assert done.exit_code == ExitStatus.USAGE
    assert f"2 recordings cannot show {target}: that less than 20 % of runs violate" in " ".join(done.output.split())
