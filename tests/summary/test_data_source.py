"""Tables for notebooks: `spark.read.format("qsctl")` simulates a scenario, a run folder is Parquet."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.types import StructType

from qsctl.eventlog.schema import LogLevel
from qsctl.sim.run import run, simulate_counters
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.summary._log_frames import READ
from qsctl.summary.measures import tables
from tests.documents import page, programs
from tests.summary.registered import register

pytestmark = pytest.mark.spark

PAGE = page("spark")
SMALL = {"horizon": "100ms", "group[desks]/count": "2"}


@pytest.fixture
def reader(spark: Any) -> Any:
    register(spark)
    return spark.read.format("qsctl")


@pytest.mark.slow
def test_a_scenario_gives_the_counters_of_the_simulator(reader: Any) -> None:
    scenario = apply_overrides(read_scenario(find_scenario("burst")), SMALL)
    options = {f"set.{path}": value for path, value in SMALL.items()}
    depth = "profile/queue[D-1]/max-depth"  # Spark makes the names of options lower-case
    scenario = apply_overrides(scenario, {depth: "50"})
    simulated = reader.options(**options, replications=2).option("set", f"{depth}=50;").load("burst")
    found = {
        (row["replication"], row["client"], row["queue"]): row["delivered_messages"] for row in simulated.collect()
    }
    assert found == {
        (number, row["client"], row["queue"]): row["delivered_messages"]
        for number in range(2)
        for row in simulate_counters(scenario, number).to_pylist()
    }


@pytest.mark.slow
def test_what_cannot_be_simulated_is_reported_when_it_is_loaded(reader: Any, spark: Any, tmp_path: Path) -> None:
    run(apply_overrides(read_scenario(find_scenario("burst")), SMALL), tmp_path / "run")
    for options, path, message in (
        ({"table": "messages"}, "burst", "there is no option 'table' of a simulated table"),
        ({"replications": "many"}, "burst", "option replications is 'many'"),
        ({"replications": "0"}, "burst", "option replications is '0'"),
        ({"set.horizon": "long"}, "burst", "horizon"),
        ({}, "no-such", "no-such"),
        ({"set": "horizon"}, "burst", "option set has 'horizon', which is not PATH=VALUE"),
        ({}, str(tmp_path / "run"), r"is a run folder.*qsctl\.summary\.read_runs"),
    ):
        with pytest.raises(AnalysisException, match=f"(?s){message}"):
            spark.read.format("qsctl").options(**options).load(path).collect()


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("table", ["messages", "counters", "events"])
def test_a_run_folder_is_parquet_in_the_declared_schema(table: str, spark: Any, tmp_path: Path) -> None:
    scenario = apply_overrides(read_scenario(find_scenario("neighbor")), {"horizon": "1s"})
    report = run(scenario, tmp_path / "run", replications=2, level=LogLevel.EVENTS)
    shape = {"messages": tables.MESSAGES, "counters": tables.COUNTERS, "events": tables.EVENTS}[table]
    found = spark.read.parquet(str(tmp_path / "run" / table))
    assert {field.name: field.dataType.typeName().replace("short", "integer") for field in found.schema} == {
        field.name: field.dataType.typeName() for field in shape
    }
    declared = spark.read.schema(shape).parquet(str(tmp_path / "run" / table))
    rows = {"messages": sum(each.message_rows for each in report.info.done), "counters": report.counters.num_rows,
            "events": sum(each.event_rows for each in report.info.done)}  # fmt: skip
    assert declared.count() == rows[table] > 0
    assert {row["replication"] for row in declared.select("replication").distinct().collect()} == {0, 1}


@pytest.mark.parametrize("table", READ)
def test_the_schema_file_has_the_columns_and_types_that_spark_reads(table: str) -> None:
    written = json.loads((Path(__file__).parent.parent.parent / "schemas/qsctl_event_log.json").read_text())
    found = [(field.name, field.dataType) for field in StructType.fromJson(written[table])]
    assert found == [(field.name, field.dataType) for field in READ[table]]


@pytest.mark.slow
def test_the_notebook_examples_of_the_page_run(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = programs(PAGE)
    assert len(blocks) == 4
    register(spark)  # an installation that was made before the module has it not
    monkeypatch.chdir(tmp_path)
    scenario = apply_overrides(read_scenario(find_scenario("burst")), {"horizon": "1s"})
    run(scenario, tmp_path / "qsctl-runs/burst-1", level=LogLevel.MESSAGES)
    for block in blocks:
        example = block.replace("spark = spark_session()", "spark = given").replace(
            '"qsctl-runs/', f'"{tmp_path}/qsctl-runs/'
        )
        exec(compile(example, "spark.md", "exec"), {"given": spark})
        shown = capsys.readouterr().out
        delivered = Counter[str]()
        for row in simulate_counters(scenario, 0).to_pylist():
            delivered[row["queue"]] += row["delivered_messages"]
        found = {cells[0]: int(cells[1]) for cells in re.findall(r"([A-Z]-\d)\W+(\d+)", shown)}
        assert found == {queue: count for queue, count in delivered.items() if queue in found}
        assert found
