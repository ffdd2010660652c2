"""`spark.read.format("qsctl")`: a run folder or a scenario as a table."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException

from qsctl.sim.overrides import apply_overrides
from qsctl.sim.run import run, simulate_counters
from qsctl.sim.scenario_xml import find_scenario, read_scenario
from qsctl.summary.data_source import QsctlDataSource

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

README = (Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8")
SMALL = {"horizon": "100ms", "group[desks]/count": "2"}


@pytest.fixture
def reader(spark: Any) -> Any:
    spark.dataSource.register(QsctlDataSource)
    return spark.read.format("qsctl")


def test_a_run_folder_and_its_scenario_give_the_counters_of_the_simulator(reader: Any, tmp_path: Path) -> None:
    scenario = apply_overrides(read_scenario(find_scenario("burst")), SMALL)
    report = run(scenario, tmp_path / "run", replications=2)
    logged = reader.option("table", "messages").load(str(tmp_path / "run"))
    assert logged.count() == report.info.arrived_messages
    options = {f"set.{path}": value for path, value in SMALL.items()}
    simulated = reader.option("table", "counters").options(**options, replications=2).load("burst")
    found = {
        (row["replication"], row["client"], row["queue"]): row["delivered_messages"] for row in simulated.collect()
    }
    assert found == {
        (number, row["client"], row["queue"]): row["delivered_messages"]
        for number in range(2)
        for row in simulate_counters(scenario, number).to_pylist()
    }


def test_what_cannot_be_read_is_told_when_it_is_loaded(reader: Any) -> None:
    for options, path, message in (
        ({"table": "messages"}, "burst", "messages are read from a run folder"),
        ({"table": "none"}, "burst", "no table 'none'"),
        ({}, "no-such", "no-such"),
    ):
        with pytest.raises(AnalysisException, match=message):
            reader.options(**{"table": "counters", **options}).load(path).collect()


@pytest.mark.parametrize("table", ["counters", "messages"])
def test_a_changed_missing_or_added_file_is_an_error(reader: Any, tmp_path: Path, table: str) -> None:
    scenario = apply_overrides(read_scenario(find_scenario("burst")), SMALL)
    run(scenario, tmp_path / "run", replications=2)
    part = tmp_path / f"run/{table}/replication=1/part-00000.parquet"
    whole = part.read_bytes()

    def refuses(message: str) -> None:
        with pytest.raises((AnalysisException, PythonException), match=message):
            reader.option("table", table).load(str(tmp_path / "run")).collect()

    part.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    refuses(r"part-00000\.parquet was changed after it was written")
    part.unlink()
    refuses(r"part-00000\.parquet is missing")
    part.write_bytes(whole)
    part.with_name("part-00001.parquet").write_bytes(whole)
    refuses(r"part-00001\.parquet does not belong to this run")


def test_the_readme_s_notebook_example_runs(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = [block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "spark.read" in block]
    example = example.replace("spark = spark_session()", "spark = given")
    exec(compile(example, "README.md", "exec"), {"given": spark})
    shown = capsys.readouterr().out
    scenario = apply_overrides(read_scenario(find_scenario("burst")), {"horizon": "1s"})
    delivered = Counter[str]()
    for row in simulate_counters(scenario, 0).to_pylist():
        delivered[row["queue"]] += row["delivered_messages"]
    assert {cells[0]: int(cells[1]) for cells in re.findall(r"([A-Z]-\d)\s*\|\s*(\d+)", shown)} == dict(delivered)
