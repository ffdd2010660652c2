"""Figures of summaries against the same figures computed in plain Python, to the message."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import LongType, StructField, StructType

from qsctl.errors import Damaged, InvalidInput, NotFound, Refused, UsageError
from qsctl.eventlog.run_folder import RunStatus, read_run_info, write_run_info
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import SECOND_NS
from qsctl.sim.run import run
from qsctl.sim.scenario.scenario import ClientGroup, PoissonArrivals, Port, Profile, Scenario, Traffic
from qsctl.sim.simulate import open_scenario
from qsctl.summary import job
from qsctl.summary._output import output_folder
from qsctl.summary.measures.tables import SCHEMAS
from qsctl.summary.read_rows import reported_to
from qsctl.summary.recorded_run import read_run
from qsctl.summary.run_summary import COUNTS, in_order
from qsctl.summary.spark.engine import SparkEngine
from qsctl.summary.spark.faults import spark_faults
from qsctl.summary.spark.session import SparkOptions

SUMS = COUNTS


def nearest_rank(values: list[int], part: int, whole: int) -> int:
    return sorted(values)[-(-len(values) * part // whole) - 1]


def sent_waits(run: Any, **of: Any) -> list[int]:
    return [
        row["wait_ns"] for row in run.messages
        if row["wait_ns"] is not None and row["enqueued_ns"] + row["wait_ns"] >= run.warm_up_ns
        and row["outcome"] == "delivered" and all(row[name] == value for name, value in of.items())
    ]  # fmt: skip


def test_figures_equal_the_simulator_s_own_counters_to_the_message(
    made_run: Any, computed: SparkOptions | None
) -> None:
    summary = job.summarize_run(made_run.folder, by=("client", "queue", "replication"), options=computed)
    assert len(summary.queues) == len(made_run.counters) == 27
    for counters in made_run.counters:
        figures = next(
            each for each in summary.queues
            if (each.client, each.queue, each.replication)
            == (counters["client"], counters["queue"], counters["replication"])
        )  # fmt: skip
        for name in (*SUMS, "first_discard_ns", "wait_max_ns", "high_water_mark_work_units", "observed_ns"):
            assert getattr(figures, name) == counters[name], name


def test_percentiles_are_the_exact_nearest_rank(made_run: Any, computed: SparkOptions | None) -> None:
    summary = job.summarize_run(made_run.folder, options=computed)
    for figures in summary.queues:
        waits = sent_waits(made_run, client_id=int(figures.client[-1]), queue=figures.queue)
        assert figures.percentile_error == 0.0
        assert figures.wait_p50_ns == nearest_rank(waits, 50, 100)
        assert figures.wait_p90_ns == nearest_rank(waits, 90, 100)
        assert figures.wait_p95_ns == nearest_rank(waits, 95, 100)
        assert figures.wait_p99_ns == nearest_rank(waits, 99, 100)
        assert figures.wait_p999_ns == nearest_rank(waits, 999, 1000)
        assert figures.wait_mean_ns == pytest.approx(sum(waits) / len(waits), rel=1e-12)


def test_counters_alone_give_the_same_counts_and_percentiles_within_the_stated_error(
    make_run: Callable[..., Any], made_run: Any, computed: SparkOptions | None
) -> None:
    with_log = job.summarize_run(made_run.folder, options=computed)
    alone = make_run(
        made_run.messages, warm_up_ns=made_run.warm_up_ns, horizon_ns=made_run.horizon_ns, level="counters"
    )
    without = job.summarize_run(alone.folder, options=computed, measures=job.ALL)
    assert set(without.tables) == {"delays", "times_to_done", "losses", "intervals"}
    assert any("no message log" in note for note in without.notes)
    for exact, rough in zip(with_log.queues, without.queues, strict=True):
        for name in SUMS:
            assert getattr(exact, name) == getattr(rough, name)
        for name in ("done_messages", "unfinished_messages", "done_mean_ns", "done_p99_ns", "done_max_ns"):
            assert getattr(exact, name) == getattr(rough, name), name
        assert exact.wait_p99_ns is not None
        assert rough.wait_p99_ns is not None
        assert rough.percentile_error > 0
        assert exact.wait_p99_ns <= rough.wait_p99_ns <= exact.wait_p99_ns * (1 + rough.percentile_error)


def test_a_message_log_without_rows_is_one_also_beside_others(
    tmp_path: Path, made_run: Any, computed: SparkOptions | None
) -> None:
    scenario = Scenario(
        name="quiet",
        horizon_ns=1,
        ports=(Port("p1"),),
        profiles=(Profile("default"),),
        groups=(ClientGroup("web", "p1", "default"),),
        traffic=(Traffic("web", "web", PoissonArrivals(1e-6)),),
    )
    quiet = run(scenario, tmp_path / "quiet", level=LogLevel.MESSAGES).folder
    assert read_run(quiet).message_rows == 0
    alone = job.summarize_run(quiet, by=("queue", "topic"), options=computed, measures=job.ALL)
    assert (alone.level, alone.queues, alone.notes) == ("messages", (), ())
    both = job.summarize_runs([made_run.folder, quiet], by=("queue", "topic"), options=computed)
    busy = job.summarize_run(made_run.folder, by=("queue", "topic"), options=computed)
    assert sum(each.arrived_messages for each in both.queues) == sum(each.arrived_messages for each in busy.queues)


@pytest.mark.spark
def test_every_table_is_written_with_its_declared_schema(
    made_run: Any, options: SparkOptions, spark: Any, tmp_path: Path
) -> None:
    summary = job.summarize_run(
        made_run.folder, options=options, measures=job.ALL, out=tmp_path / "out", window_ns=10 * SECOND_NS
    )
    of_events = {"connections"}  # this run has none of them; `test_duckdb` recomputes what other runs have
    assert set(summary.tables) | {"queues"} | of_events == set(SCHEMAS)
    for name, schema in SCHEMAS.items():
        if name in of_events:
            continue
        read = spark.read.parquet(str(tmp_path / "out" / name))
        assert [(field.name, field.dataType) for field in read.schema] == [
            (field.name, field.dataType) for field in schema
        ]
        if name != "queues":
            assert read.count() == len(summary.tables[name])


@pytest.mark.slow
def test_depth_over_time_is_what_waits_at_each_window_s_end(made_run: Any, computed: SparkOptions | None) -> None:
    window_ns = 7 * SECOND_NS
    summary = job.summarize_run(
        made_run.folder, by=("queue",), options=computed, measures={"depth", "windows"}, window_ns=window_ns
    )
    for row in summary.tables["depth"]:
        waiting = [
            each for each in made_run.messages
            if each["queue"] == row["queue"] and each["replication"] == row["replication"]
            and each["outcome"] != "waiting" and each["enqueued_ns"] < row["at_ns"]
            and (each["wait_ns"] is None or each["enqueued_ns"] + each["wait_ns"] >= row["at_ns"])
        ]  # fmt: skip
        assert row["depth_messages"] == len(waiting)
        assert row["depth_work_units"] == sum(each["work_units"] for each in waiting)
    assert sum(row["arrived_messages"] for row in summary.tables["windows"]) == len(made_run.messages)


@pytest.mark.spark
def test_two_commands_never_write_one_folder_and_a_failed_one_leaves_it_as_it_was(spark: Any, tmp_path: Path) -> None:
    shape = StructType([StructField("n", LongType())])

    def written() -> list[int]:
        return sorted(row["n"] for row in spark.read.parquet(str(tmp_path / "out/losses")).collect())

    with output_folder(tmp_path / "out", SparkEngine(spark)) as output:
        assert output is not None
        output.write("losses", spark.range(3).selectExpr("id as n"), shape)
        with (
            pytest.raises(InvalidInput, match="another qsctl command"),
            output_folder(tmp_path / "out", SparkEngine(spark)),
        ):
            pass
        assert not (tmp_path / "out/losses").exists()
    assert written() == [0, 1, 2]
    with pytest.raises(ZeroDivisionError), output_folder(tmp_path / "out", SparkEngine(spark)) as output:
        assert output is not None
        output.write("losses", spark.range(9).selectExpr("id as n"), shape)
        raise ZeroDivisionError
    assert written() == [0, 1, 2]
    with output_folder(tmp_path / "out", SparkEngine(spark)) as output:
        assert output is not None
        assert output.write("losses", spark.range(1).selectExpr("id as n"), shape).count() == 1
        assert output.write("losses", spark.range(2).selectExpr("id as n"), shape).count() == 2
    assert written() == [0, 0, 1]
    assert {path.name for path in (tmp_path / "out").iterdir()} <= {"losses", ".qsctl.lock"}


@pytest.mark.spark
def test_what_a_killed_command_left_is_removed_and_an_earlier_table_returns(tmp_path: Path, spark: Any) -> None:
    out = tmp_path / "out"
    left = out / ".qsctl-0123456789abcdef"
    for name in ("losses", "earlier-losses", "depth"):
        (left / name).mkdir(parents=True)
        (left / name / "part-0").write_text(name)
    (out / "depth").mkdir()
    (out / "depth" / "part-0").write_text("published")
    (out / ".qsctl-notes").mkdir()
    with output_folder(out, SparkEngine(spark)):
        assert not left.exists()
    assert (out / "losses" / "part-0").read_text() == "earlier-losses"
    assert (out / "depth" / "part-0").read_text() == "published"
    assert (out / ".qsctl-notes").is_dir()


FULL_OUTPUT = """[TASK_WRITE_FAILED] Task failed while writing rows to file:/out/x. SQLSTATE: 58030
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
\tat org.apache.hadoop.fs.RawLocalFileSystem$LocalFSFileOutputStream.write(RawLocalFileSystem.java:549)
"""
FULL_SPILL = """Job aborted due to stage failure: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\tat org.apache.spark.storage.DiskBlockObjectWriter.write(DiskBlockObjectWriter.scala:308)
\tat org.apache.hadoop.fs.RawLocalFileSystem.open(RawLocalFileSystem.java:1)
"""


@pytest.mark.spark
@pytest.mark.parametrize(("text", "remedy"), [(FULL_OUTPUT, "--out"), (FULL_SPILL, "spark.local.dir")])
def test_a_full_disk_names_the_folder_that_is_on_it(text: str, remedy: str, tmp_path: Path, spark: Any) -> None:
    class Full:
        """A frame whose rows find no room."""

        @property
        def write(self) -> Full:
            return self

        def mode(self, _: str) -> Full:
            return self

        def parquet(self, _: str) -> None:
            raise PySparkException(text)

    with (
        pytest.raises(Refused) as caught,
        spark_faults(),
        output_folder(tmp_path / "out", SparkEngine(spark)) as output,
    ):
        assert output is not None
        output.write("losses", Full(), StructType([]))  # type: ignore[arg-type]
    assert remedy in caught.value.remedy
    assert (str(tmp_path / "out") in caught.value.message) == (remedy == "--out")
    assert [path.name for path in (tmp_path / "out").iterdir() if path.is_dir()] == []


def test_rows_have_one_order_however_spark_gives_them() -> None:
    queues = ("C-1", "D-1", "G-1", "Orders")
    rows = [
        {"run_id": None, "client": client, "queue": queue, "at_ns": at, "depth": depth}
        for client in (None, "a", "b") for queue in queues for at in (2, 10) for depth in (None, 0.5)
    ]  # fmt: skip
    ordered = in_order(rows)
    assert ordered == in_order(rows[::-1])
    assert ordered == in_order(random.Random(1).sample(rows, len(rows)))
    assert [row["queue"] for row in ordered[::4]] == 3 * ["G-1", "D-1", "C-1", "Orders"]
    assert [row["at_ns"] for row in ordered[:4]] == [2, 2, 10, 10]


def test_a_topic_without_a_message_log_names_the_option_that_there_is(
    make_run: Callable[..., Any], made_run: Any, computed: SparkOptions | None
) -> None:
    alone = make_run(made_run.messages[:100], horizon_ns=made_run.horizon_ns, level="counters")
    with pytest.raises(UsageError, match="--by topic needs a message log") as caught:
        job.summarize_run(alone.folder, by=("topic",), options=computed)
    assert "--level messages" in caught.value.remedy


@pytest.mark.slow
@pytest.mark.spark
def test_the_public_function_works_on_a_session_of_the_caller_s_and_keeps_its_settings(
    made_run: Any, spark: Any, options: SparkOptions
) -> None:
    before = spark.conf.getAll
    mine = job.summarize(spark, [str(made_run.folder)], by=["queue"])
    assert spark.conf.getAll == before
    ours = job.summarize_run(made_run.folder, by=("queue",), measures=job.ALL, options=options)
    assert mine.queues == ours.queues
    assert {name: sorted(map(str, rows)) for name, rows in mine.tables.items()} == {
        name: sorted(map(str, rows)) for name, rows in ours.tables.items()
    }


def test_runs_of_the_same_scenario_and_seed_keep_their_own_names_and_facts(
    make_run: Callable[..., Any], made_run: Any, computed: SparkOptions | None
) -> None:
    runs = [
        make_run(made_run.messages[:500], horizon_ns=made_run.horizon_ns, warm_up_ns=seconds * SECOND_NS)
        for seconds in (0, 30)
    ]
    for each in runs:
        write_run_info(each.folder, msgspec.structs.replace(read_run_info(each.folder), run_id="same"))
    summary = job.summarize_runs([each.folder for each in runs], by=("queue",), options=computed)
    labels = [f"same {each.folder.name}" for each in runs]
    assert [facts.run_id for facts in summary.facts] == labels
    assert [facts.warm_up_ns for facts in summary.facts] == [0, 30 * SECOND_NS]
    arrived = {label: sum(each.arrived_messages for each in summary.queues if each.run_id == label) for label in labels}
    assert arrived == {
        label: sum(row["enqueued_ns"] >= each.warm_up_ns for row in each.messages)
        for label, each in zip(labels, runs, strict=True)
    }


def test_several_runs_are_distinguished(
    make_run: Callable[..., Any], made_run: Any, computed: SparkOptions | None
) -> None:
    parts = (made_run.messages[:500], made_run.messages[500:900])
    runs = [make_run(rows, horizon_ns=made_run.horizon_ns) for rows in parts]
    summary = job.summarize_runs([run.folder for run in runs], by=("queue",), options=computed)
    assert summary.by == ("run", "queue")
    totals = dict.fromkeys((run.folder.name for run in runs), 0)
    for figures in summary.queues:
        assert figures.run_id is not None
        totals[figures.run_id] += figures.arrived_messages
    assert list(totals.values()) == [500, 400]


def test_a_partial_run_is_marked(make_run: Callable[..., Any], made_run: Any, computed: SparkOptions | None) -> None:
    partial = make_run(made_run.messages[:100], horizon_ns=made_run.horizon_ns, status=RunStatus.PARTIAL)
    summary = job.summarize_run(partial.folder, options=computed, by=("queue",))
    assert not summary.complete
    assert any("interrupted" in note for note in summary.notes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": ("colour",)}, "'colour' cannot be grouped by"),
        ({"by": ()}, "cannot be grouped by"),
        ({"measures": ("speed",)}, "no measure 'speed'"),
        ({"window_ns": 0}, "longer than nothing"),
        ({"confidence": 1.0}, "not inside 0 and 1"),
    ],
)
def test_a_wrong_question_is_refused_before_spark_starts(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        job.summarize_run(tmp_path, **arguments)


def test_a_folder_that_is_no_run_and_a_run_without_figures_are_refused(tmp_path: Path, made_run: Any) -> None:
    with pytest.raises(NotFound, match="not a run folder"):
        job.summarize_run(tmp_path)
    nothing = msgspec.structs.replace(read_run_info(made_run.folder), status=RunStatus.RUNNING, done=(), files={})
    write_run_info(made_run.folder, nothing)
    with pytest.raises(Damaged, match="no counters"):
        job.summarize_run(made_run.folder)


def test_a_damaged_part_is_one_message(made_run: Any, computed: SparkOptions | None) -> None:
    part = next(made_run.folder.glob("messages/*/part-*.parquet"))
    part.write_bytes(b"PAR1 no such thing")
    with pytest.raises(Damaged, match=r"part-00000\.parquet"):
        job.summarize_run(made_run.folder, options=computed)


def test_a_folder_whose_name_is_a_pattern_is_read_as_it_is_named(made_run: Any, computed: SparkOptions | None) -> None:
    odd = made_run.folder.with_name("a[1]{b,c}*?")
    made_run.folder.rename(odd)
    summary = job.summarize_run(odd, measures={"windows"}, window_ns=1, options=computed)
    assert summary.tables["windows"]


def test_a_run_that_was_stopped_as_it_began_has_no_figures_and_is_no_fault(
    tmp_path: Path, computed: SparkOptions | None
) -> None:
    """Found by interrupts: "Must pass schema, or at least one RecordBatch" as an internal error."""
    folder = tmp_path / "stopped"
    run(open_scenario("burst", {}, {}), folder, stop=lambda: True, workers=1)
    summary = job.summarize_run(folder, by=("client", "queue"), options=computed)
    assert (summary.queues, summary.complete, summary.horizon_ns) == ((), False, 0)
    assert "The run was interrupted: these are the figures of its finished part." in summary.notes


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(
    ("measures", "exact", "is_on_spark"),
    [
        (job.ALL, True, False),
        (job.QUICK, False, False),
        ({"depth"}, True, False),
        pytest.param(job.QUICK, True, True, marks=pytest.mark.spark),
    ],
)
def test_progress_ends_when_all_passes_over_the_log_are_over(
    measures: frozenset[str], exact: bool, is_on_spark: bool, made_run: Any, options: SparkOptions
) -> None:
    found: list[tuple[int, int]] = []
    with reported_to(lambda done, total: found.append((done, total))):
        job.summarize_runs([made_run.folder], measures=measures, exact=exact, options=options if is_on_spark else None)
    rows = read_run(made_run.folder).message_rows
    passes = exact + 1 + (measures == job.ALL) if measures != {"depth"} else 1
    assert found[0] == (0, passes * rows)
    assert found[-1] == (passes * rows, passes * rows)
