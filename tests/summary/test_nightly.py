"""The nightly job in `fixtures/nightly`: the tables of its SQL name the nights that were made worse, and no others."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from qsctl.shipped import shipped
from tests.campaigns import is_campaign
from tests.summary.nights import record_night

NIGHTS = 500 if is_campaign() else 12
WORSE = NIGHTS - 3
"""A night with a queue of a tenth of the length, so that it loses more."""

pytestmark = [pytest.mark.spark, pytest.mark.campaign] if is_campaign() else [pytest.mark.spark]


def nightly() -> Any:
    """The program, from its file."""
    path = Path(str(shipped("fixtures/nightly/nightly.py")))
    spec = importlib.util.spec_from_file_location("nightly", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_night_that_lost_more_is_in_the_table_of_regressions(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recordings = [
        str(record_night(tmp_path / f"night-{number}", number, depth=200 if number == WORSE else 2000))
        for number in range(NIGHTS)
    ]
    (tmp_path / "unfinished").mkdir()
    made = nightly().make_tables(spark, [*recordings, str(tmp_path / "unfinished")], str(tmp_path / "lake"))
    assert "unfinished" in capsys.readouterr().err
    queues = {row["queue"] for row in made["nights"].collect()}
    rows = made["nights"].count()
    assert rows == NIGHTS * len(queues)
    found = made["regressions"].where("queue = 'D-1' and measure = 'loss_ratio'").toArrow().to_pylist()
    assert f"night-{WORSE:03}" in {row["run_id"] for row in found if row["kind"] == "outlier"}
    # With a false alarm of 0.01 a series, of a handful of series hardly any other night is named.
    others = {row["run_id"] for row in made["regressions"].collect()} - {f"night-{WORSE:03}"}
    assert len(others) <= 1 + NIGHTS // 100
    # A second night of the job replaces the tables.
    again = nightly().make_tables(spark, recordings, str(tmp_path / "lake"))
    assert again["nights"].count() == rows
