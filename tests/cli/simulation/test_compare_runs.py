"""`qsctl compare-runs`: the run that was made different is named, too few runs and wrong words are refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.simulation.small_runs import qsctl
from tests.summary.nights import record_night


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("nights")
    return [str(record_night(folder / f"n{at}", at, depth=200 if at == 4 else 2000, days=1)) for at in range(8)]


@pytest.mark.slow
def test_the_run_that_loses_more_is_named(nights: list[str]) -> None:
    answer = json.loads(qsctl("compare-runs", *nights, "-o", "json").stdout)
    assert (answer["runs"], answer["groups"], answer["false_alarm"]) == (8, {"burst": 8}, 0.01)
    stated = [row for row in answer["findings"] if row["score"] is not None]
    assert {row["run_id"] for row in stated if row["measure"] == "loss_ratio"} == {"night-004"}
    assert all(row["score"] > row["limit"] for row in stated if row["kind"] == "outlier")
    shown = qsctl("compare-runs", *nights).stdout
    assert "runs differ" in shown
    assert "night-004" in shown


@pytest.mark.slow
def test_groups_of_fewer_runs_are_named_and_not_compared(nights: list[str]) -> None:
    answer = json.loads(qsctl("compare-runs", *nights, "--group", "weekday", "-o", "json").stdout)
    assert sum(answer["groups"].values()) == 8
    assert {name.split(" on ")[0] for name in answer["groups"]} == {"burst"}
    assert answer["groups"]["burst on Monday"] == 2  # the recording that lends its start began on a Monday
    assert (answer["series"], answer["findings"]) == (0, [])
    assert "Of fewer than 5 runs nothing is stated" in qsctl("compare-runs", *nights, "--group", "weekday").stdout


@pytest.mark.slow
def test_a_damaged_run_is_an_error_or_left_out(nights: list[str], tmp_path: Path) -> None:
    damaged = Path(shutil.copytree(nights[0], tmp_path / "damaged"))
    part = next((damaged / "messages").rglob("*.parquet"))
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 0xFF
    part.write_bytes(content)
    refused = qsctl("compare-runs", *nights, str(damaged))
    assert refused.exit_code != 0
    assert part.name in refused.stderr
    answer = json.loads(qsctl("compare-runs", *nights, str(damaged), "--skip-damaged", "-o", "json").stdout)
    assert answer["runs"] == 8
    assert any("was left out" in note for note in answer["notes"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--group", "month"], "not a group"), (["--by", "topic"], "by client and queue"),
        (["--false-alarm", "0"], "out of range"),
    ],
)  # fmt: skip
def test_wrong_words_are_refused_before_anything_is_read(options: list[str], message: str) -> None:
    refused = qsctl("compare-runs", *("missing",) * 5, *options)
    assert refused.exit_code == 2
    assert message in refused.stderr


def test_two_runs_are_too_few(nights: list[str]) -> None:
    refused = qsctl("compare-runs", *nights[:2])
    assert refused.exit_code == 2
    assert "qsctl compare A B" in refused.stderr
