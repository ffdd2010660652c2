"""Many runs as one frame, and the format that Spark finds by its name."""

from __future__ import annotations

import datetime
import importlib.util
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from qsctl.errors import Damaged, NotFound, UsageError
from qsctl.eventlog.reader import open_run
from qsctl.summary import read_runs
from qsctl.summary.spark import found_by_name
from qsctl.summary.spark.java import find_java
from tests import processes
from tests.summary.growing_recording import GrowingRecording

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "fixtures/recordings/monday"
SIMULATED = ROOT / "tests/eventlog/earlier_formats/format-3"

FOUND = """
import sys
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.sql.session.timeZone", "Asia/Tokyo").config("spark.sql.ansi.enabled", "true")
         .config("spark.sql.execution.arrow.pyspark.enabled", "false").config("spark.sql.caseSensitive", "true")
         .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate())
assert not any(name.startswith("qsctl") for name in sys.modules)
frame = spark.read.format("qsctl").option("set.horizon", "20ms").load("burst")
assert frame.columns[-1] == "replication"
assert frame.count() > 0
recording, out = sys.argv[1:]
rows = spark.readStream.format("qsctl").option("columns", "queue,enqueued_time").load(recording)
copying = rows.writeStream.format("parquet").option("checkpointLocation", out + ".state").trigger(availableNow=True)
copying.start(out).awaitTermination()
assert not any(name.startswith("qsctl") for name in sys.modules)
first = spark.read.parquet(out).selectExpr("min(unix_micros(enqueued_time))").first()[0]
assert first == int(__import__("json").load(open(recording + "/run.json"))["recording"]["started_at_ns"]) // 1000, first
assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
spark.stop()
print("found")
"""


@pytest.mark.slow
@pytest.mark.spark
def test_many_runs_are_one_frame_with_their_facts_and_times_of_day(spark: Any, tmp_path: Path) -> None:
    copy = shutil.copytree(SIMULATED, tmp_path / "a [copy] of it's")
    frame = read_runs(spark, [SIMULATED, str(copy), RECORDING])
    rows = frame.groupBy("folder", "scenario", "is_complete").count().collect()
    assert {(Path(row["folder"]).name, row["scenario"], row["count"]) for row in rows} == {
        ("format-3", "burst", 2008), (copy.name, "burst", 2008), ("monday", "Shop", 1608),
    }  # fmt: skip
    info = open_run(RECORDING).info
    assert info.recording
    (row,) = (
        frame.where("scenario = 'Shop' and enqueued_ns >= 0").orderBy("enqueued_ns")
        .selectExpr("enqueued_ns", "unix_micros(enqueued_time) as at", "unix_micros(started_at) as started").limit(1)
    ).collect()  # fmt: skip
    assert row["at"] == (info.recording.started_at_ns + row["enqueued_ns"]) // 1000
    assert row["started"] == info.recording.started_at_ns // 1000
    assert datetime.datetime.fromtimestamp(row["started"] / 1e6, datetime.UTC).year >= 2026
    assert frame.where("scenario = 'burst' and enqueued_time is not null").count() == 0
    assert read_runs(spark, [RECORDING], "events").count() == 0
    assert read_runs(spark, [SIMULATED], "counters").columns[-1] == "first_discard_time"


@pytest.mark.spark
def test_what_cannot_be_read_is_refused_before_anything_is_computed(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no table 'arrivals'"):
        read_runs(spark, [RECORDING], "arrivals")
    for none in ([], "run"):
        with pytest.raises(UsageError, match="no list of runs"):
            read_runs(spark, none)
    with pytest.raises(NotFound):
        read_runs(spark, [tmp_path])
    copy = shutil.copytree(SIMULATED, tmp_path / "copy")
    (copy / "messages/replication=1/part-00000.parquet").unlink()
    with pytest.raises(Damaged, match="is missing"):
        read_runs(spark, [SIMULATED, copy])


def test_the_build_copies_the_module_that_spark_finds() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = {target: ROOT / source for source, target in build["force-include"].items()}
    assert copied["pyspark_qsctl/__init__.py"].samefile(found_by_name.__file__)
    assert found_by_name.DefaultSource.name() == "qsctl"


def test_without_the_libraries_the_module_has_no_format_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qsctl.summary.spark.data_source", None)
    specification = importlib.util.spec_from_file_location("pyspark_qsctl", found_by_name.__file__)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    assert not hasattr(module, "DefaultSource")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("own java")
def test_session_of_others_without_registration_finds_the_format(tmp_path: Path) -> None:
    (tmp_path / "pyspark_qsctl").mkdir()
    shutil.copy(found_by_name.__file__, tmp_path / "pyspark_qsctl/__init__.py")
    environment = {
        "JAVA_HOME": str(find_java().home),
        "PATH": "/usr/bin:/bin",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(tmp_path),
    }
    recording = GrowingRecording(tmp_path / "rec")
    recording.grow(10)
    recording.finish()
    done = processes.run(
        [sys.executable, "-c", FOUND, str(recording.folder), str(tmp_path / "out")], env=environment
    )  # fmt: skip
    assert done.stdout.strip().endswith("found"), done.stderr
