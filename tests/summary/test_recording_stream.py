"""`spark.readStream.format("qsctl")`: the parts of a recording that goes on, each row once, whatever ends meanwhile."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import LongType, StringType, StructField, StructType

from qsctl.errors import Damaged, InvalidInput, NotFound, QsctlError, UsageError
from qsctl.eventlog.reader import batches_of, counters_of, open_run
from qsctl.eventlog.recording.story import RecordingEnded
from qsctl.eventlog.run_folder import RecordingEnd
from qsctl.eventlog.tables import LOG_TABLES
from qsctl.sim.run import run
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.summary import read_runs
from qsctl.summary.spark import _recording_stream as recording_stream
from qsctl.summary.spark._recording_stream import STREAMED, RecordingStream, stream_schema
from qsctl.summary.spark.data_source import QsctlDataSource, opened_stream
from tests import processes
from tests.campaigns import is_campaign, trials
from tests.documents import page, programs
from tests.patience import eventually
from tests.service.recorder_process import Recorded, steps
from tests.summary.copying_query import copying, environment_of_queries
from tests.summary.growing_recording import STARTED_AT_NS, GrowingRecording
from tests.summary.registered import register

MONDAY = Path(__file__).parents[2] / "fixtures/recordings/monday"


@pytest.fixture
def recording(tmp_path: Path) -> GrowingRecording:
    return GrowingRecording(tmp_path / "rec")


def stream_of(folder: Path, table: str = "messages") -> RecordingStream:
    return opened_stream(str(folder), table, stream_schema(table).names, None)


def latest(stream: RecordingStream) -> dict[str, Any]:
    """The offset after all parts, in every version of PySpark."""
    return stream._listed().offset()


def rows_between(stream: RecordingStream, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    batches: list[pa.RecordBatch] = []
    for each in stream.partitions(json.loads(json.dumps(start)), json.loads(json.dumps(end))):
        batches += stream.read(each)
    return [row for batch in batches for row in batch.to_pylist()]


# Offsets, without Spark.


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize("table", STREAMED)
def test_rows_between_offsets_are_those_of_the_table_with_times_of_day(table: str, tmp_path: Path) -> None:
    recording = GrowingRecording(tmp_path / "rec", level="events")
    stream = stream_of(recording.folder, table)
    offsets = [stream.initialOffset()]
    for count in (10, 20, 30):
        recording.grow(count)
        offsets.append(latest(stream))
    recording.finish()
    offsets.append(latest(stream))
    found = [rows_between(stream, *pair) for pair in pairwise(offsets)]
    every = rows_between(stream, offsets[0], offsets[-1])
    assert [row for rows in found for row in rows] == every
    run_of = open_run(recording.folder)
    expected = [
        {name: row[name] for name in LOG_TABLES[table].names}
        for batch in batches_of(recording.folder, run_of.info, table)
        for row in batch.to_pylist()
    ]
    assert [{name: row[name] for name in LOG_TABLES[table].names} for row in every] == expected
    if table == "messages":
        assert [len(rows) for rows in found] == [6, 14, 20, 20]  # those that stay in the queue come at the end
    for row in every:
        for name in row.keys() & {"enqueued_time", "at_time", "answered_time"}:
            instant = row[name.replace("_time", "_ns")]
            at = None if instant is None else (STARTED_AT_NS + instant) // 1000
            assert (None if row[name] is None else pa.scalar(row[name], pa.timestamp("us", "UTC")).value) == at


def test_an_earlier_format_of_a_recording_is_read_too() -> None:
    stream = stream_of(MONDAY)
    rows = rows_between(stream, stream.initialOffset(), latest(stream))
    assert len(rows) == 1608
    assert {row["outcome"] for row in rows} >= {"delivered"}


def test_large_part_is_read_by_several_tasks(recording: GrowingRecording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qsctl.eventlog.writer.ROW_GROUP_ROWS", 10)
    recording.grow(60)
    stream = stream_of(recording.folder)
    whole = rows_between(stream, stream.initialOffset(), latest(stream))
    monkeypatch.setattr(recording_stream, "ROWS_A_TASK", 15)
    slices = stream.partitions(stream.initialOffset(), latest(stream))
    sizes = [sum(batch.num_rows for batch in stream.read(each)) for each in slices]
    assert sizes == [20, 10, 10]
    assert sorted(map(str, rows_between(stream, stream.initialOffset(), latest(stream)))) == sorted(map(str, whole))


def test_small_parts_are_read_by_one_task(recording: GrowingRecording, monkeypatch: pytest.MonkeyPatch) -> None:
    recording.grow(*[9] * 10)
    stream = stream_of(recording.folder)
    monkeypatch.setattr(recording_stream, "ROWS_A_TASK", 20)
    tasks = stream.partitions(stream.initialOffset(), latest(stream))
    assert [sum(batch.num_rows for batch in stream.read(each)) for each in tasks] == [18, 18, 18, 6]
    assert len(rows_between(stream, stream.initialOffset(), latest(stream))) == 60
    assert stream.partitions(latest(stream), latest(stream)) == []


def test_a_part_that_is_not_listed_is_not_read(recording: GrowingRecording) -> None:
    """A recorder that was killed leaves a part in hand, or one that it closed and did not list."""
    recording.grow(10)
    stream = stream_of(recording.folder)
    before = latest(stream)
    parts = recording.folder / "messages/replication=0"
    shutil.copy(parts / "part-00000.parquet", parts / "part-00001.parquet")
    (parts / ".part-00002.parquet.tmp").write_bytes(b"PAR1")
    assert latest(stream) == before
    assert len(rows_between(stream, stream.initialOffset(), before)) == 6


def test_a_recording_that_was_moved_or_copied_goes_on(recording: GrowingRecording, tmp_path: Path) -> None:
    recording.grow(10, 10)
    start = latest(stream_of(recording.folder))
    copy = shutil.copytree(recording.folder, tmp_path / "older copy")
    recording.grow(9)
    moved = recording.folder.rename(tmp_path / "moved")
    stream = stream_of(moved)
    assert len(rows_between(stream, start, latest(stream))) == 6
    older = stream_of(copy)
    with pytest.raises(InvalidInput, match=r"lists 2 parts; this query has read 3 of this recording: .* older copy"):
        older.partitions(latest(stream), latest(stream))


def test_another_recording_of_the_same_name_is_refused(recording: GrowingRecording) -> None:
    recording.grow(10, 10)
    stream = stream_of(recording.folder)
    start = latest(stream)
    shutil.rmtree(recording.folder)
    with pytest.raises(NotFound):
        stream.partitions(start, start)
    again = GrowingRecording(recording.folder, started_at_ns=STARTED_AT_NS + 1)
    again.grow(10, 10, 10)
    with pytest.raises(InvalidInput, match=r"this query has read 2 parts of the recording \w+, which was there before"):
        stream.partitions(start, latest(stream))


def test_parts_that_were_exchanged_are_refused(recording: GrowingRecording, tmp_path: Path) -> None:
    """The same identifier is not enough: it is drawn from the settings and the beginning alone."""
    recording.grow(10, 10)
    start = latest(stream_of(recording.folder))
    other = GrowingRecording(tmp_path / "other")
    other.grow(11, 12, 13)
    stream = stream_of(other.folder)
    with pytest.raises(InvalidInput, match=r"the first 2 parts of .* are not those that this query has read"):
        stream.partitions(start, latest(stream))


@pytest.mark.parametrize("offset", [{}, {"parts": "2"}, {"parts": -1}, {"parts": True}, {"index": 4}])
def test_an_offset_of_another_source_is_refused(offset: dict[str, Any], recording: GrowingRecording) -> None:
    stream = stream_of(recording.folder)
    with pytest.raises(InvalidInput, match=r"the checkpoint's offset .* is not of a recording"):
        stream.partitions(offset, stream.initialOffset())


@pytest.mark.parametrize("damage", ["missing", "shorter", "footer", "page"])
def test_a_changed_part_is_damage_that_names_it(damage: str, recording: GrowingRecording) -> None:
    recording.grow(300)
    stream = stream_of(recording.folder)
    offsets = stream.initialOffset(), latest(stream)
    part = recording.folder / "messages/replication=0/part-00000.parquet"
    content = bytearray(part.read_bytes())
    if damage == "missing":
        part.unlink()
    else:
        place = {"shorter": len(content) - 1, "footer": len(content) - 100, "page": 100}[damage]
        content[place] ^= 4
        part.write_bytes(content[: -1 if damage == "shorter" else None])
    with pytest.raises(Damaged, match=r"part-00000\.parquet"):
        rows_between(stream, *offsets)


def test_limit_of_parts_and_trigger_available_now_are_obeyed(recording: GrowingRecording) -> None:
    limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="from PySpark 4.2 on")
    recording.grow(10, 10, 10)
    stream: Any = opened_stream(str(recording.folder), "messages", ["queue"], 2)
    assert stream.getDefaultReadLimit() == limits.ReadMaxFiles(2)
    start = stream.initialOffset()
    middle = stream.latestOffset(start, limits.ReadMaxFiles(2))
    assert middle["parts"] == 2
    assert stream.latestOffset(start, limits.ReadAllAvailable())["parts"] == 3
    stream.prepareForTriggerAvailableNow()
    recording.grow(10)
    assert stream.reportLatestOffset()["parts"] == 4
    assert stream.latestOffset(middle, limits.ReadMaxFiles(2))["parts"] == 3
    later = stream.reportLatestOffset()
    assert stream.latestOffset(later, limits.ReadMaxFiles(2)) == later, "an offset never goes back"
    assert opened_stream(str(recording.folder), "messages", ["queue"], None).getDefaultReadLimit() == (
        limits.ReadAllAvailable()
    )


def test_columns_are_those_that_are_asked_for(recording: GrowingRecording) -> None:
    recording.grow(10)
    for columns in (["enqueued_time", "queue"], ["replication"], ["started_at"], ["wait_ns", "run_id"]):
        stream = opened_stream(str(recording.folder), "messages", columns, None)
        rows = rows_between(stream, stream.initialOffset(), latest(stream))
        assert len(rows) == 6
        assert [*rows[0]] == columns
    assert stream_schema("messages", "queue, outcome,queue").names == ["queue", "outcome"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": ""}, "no scenario and no recording is named"),
        ({"table": "counters"}, "there is no stream of the table 'counters': they are written anew"),
        ({"table": "clients"}, "there is no stream of the table 'clients'"),
        ({"table": "events"}, "is a recording at level messages, which has no table events"),
        ({"columns": "queue,nothing"}, "the table messages has no column 'nothing'"),
        ({"columns": ","}, "the table messages has no column ''"),
        ({"maxPartsPerTrigger": "0"}, "option maxPartsPerTrigger is '0'"),
        ({"maxPartsPerTrigger": "some"}, "option maxPartsPerTrigger is 'some'"),
        ({"seed": "1"}, "there is no option 'seed' of a stream"),
        ({"path": "no-such"}, "no-such is not a folder"),
    ],
)
def test_a_wrong_option_is_one_error(options: dict[str, str], message: str, recording: GrowingRecording) -> None:
    source = QsctlDataSource(CaseInsensitiveDict({"path": str(recording.folder), **options}))
    with pytest.raises(QsctlError, match=message):
        source.streamReader(source.schema() if options.get("path") != "no-such" else stream_schema("messages"))


def test_folder_that_is_gone_is_named_and_not_taken_for_a_scenario(recording: GrowingRecording) -> None:
    shutil.rmtree(recording.folder)
    source = QsctlDataSource(CaseInsensitiveDict({"path": str(recording.folder)}))
    with pytest.raises(NotFound, match=f"{recording.folder} is not a folder"):
        source.streamReader(source.schema())


def test_a_schema_of_the_program_chooses_columns_and_is_checked(recording: GrowingRecording) -> None:
    source = QsctlDataSource({"path": str(recording.folder)})
    source.streamReader(StructType([StructField("queue", StringType()), StructField("wait_ns", LongType())]))
    for field, message in (
        (StructField("wait_ns", StringType()), "column wait_ns of the table messages is a bigint, .* a string"),
        (StructField("wait", LongType()), "the table messages has no column 'wait'"),
    ):
        with pytest.raises(UsageError, match=message):
            source.streamReader(StructType([field]))


def test_a_simulated_run_is_not_a_recording(tmp_path: Path) -> None:
    run(apply_overrides(read_scenario(find_scenario("burst")), {"horizon": "10ms"}), tmp_path / "run")
    with pytest.raises(InvalidInput, match="is a simulated run, which does not grow"):
        stream_of(tmp_path / "run")


# Queries, in Spark.


@pytest.fixture
def queries(spark: Any) -> Iterator[Any]:
    register(spark)
    yield spark
    for query in spark.streams.active:
        query.stop()


@pytest.mark.slow
@pytest.mark.spark
def test_each_row_is_written_once_though_the_query_fails_and_begins_again(
    queries: Any, recording: GrowingRecording, tmp_path: Path
) -> None:
    written: dict[int, list[str]] = {}
    fails_at = [1]

    def write(frame: Any, number: int) -> None:
        rows = [str(row.asDict()) for row in frame.collect()]
        if number in fails_at:
            fails_at.remove(number)
            raise OSError("the sink is full")
        written[number] = rows

    def go() -> Any:
        frame = queries.readStream.format("qsctl").option("columns", ",".join(columns)).load(str(recording.folder))
        return (
            frame.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True).start()
        )  # fmt: skip

    columns = ["enqueued_ns", "enqueued_time", "started_at", "run_id", "queue", "outcome", "wait_ns", "attempts"]
    recording.grow(30)
    go().awaitTermination()
    recording.grow(60)
    with pytest.raises(StreamingQueryException, match="the sink is full"):
        go().awaitTermination()
    recording.grow(90)
    recording.finish()
    go().awaitTermination()
    go().awaitTermination()
    assert [len(rows) for _, rows in sorted(written.items())] == [20, 40, 120]
    expected = read_runs(queries, [recording.folder]).select(*columns).collect()
    assert Counter(row for rows in written.values() for row in rows) == Counter(str(row.asDict()) for row in expected)


@pytest.mark.slow
@pytest.mark.spark
def test_a_query_whose_recording_was_begun_anew_ends_with_the_reason(
    queries: Any, recording: GrowingRecording, tmp_path: Path
) -> None:
    def go() -> Any:
        frame = queries.readStream.format("qsctl").load(str(recording.folder))
        return (
            frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True).start()
        )  # fmt: skip

    recording.grow(10)
    go().awaitTermination()
    shutil.rmtree(recording.folder)
    GrowingRecording(recording.folder, started_at_ns=STARTED_AT_NS + 1).grow(10, 10)
    with pytest.raises(StreamingQueryException, match=r"(?s)has read 1 parts of the recording.*a new checkpoint"):
        go().awaitTermination()


@pytest.mark.spark
def test_what_cannot_be_streamed_is_reported_before_the_query_begins(queries: Any, recording: GrowingRecording) -> None:
    with pytest.raises(
        AnalysisException, match=r"(?s)there is no stream of the table 'counters'.*Use one of messages, "
    ):
        queries.readStream.format("qsctl").option("table", "counters").load(str(recording.folder))


@pytest.mark.slow
@pytest.mark.spark
def test_windows_and_depth_of_the_page_are_those_of_the_counters(
    queries: Any, recording: GrowingRecording, capsys: pytest.CaptureFixture[str]
) -> None:
    (begin, look) = programs(page("live-tables"))[:2]
    begin = begin.replace("spark = spark_session()", "spark = given").replace('"10 seconds"', '"0 seconds"')
    names: dict[str, Any] = {"given": queries}
    begin = begin.replace('"/srv/queues/monday"', repr(str(recording.folder)))
    recording.grow(1000)
    exec(compile(begin, "live-tables.md", "exec"), names)
    for count in (0, 1500):
        if count:
            recording.grow(count)
        names["query"].processAllAvailable()
        exec(compile(look, "live-tables.md", "exec"), names)
        shown = capsys.readouterr().out
        info = open_run(recording.folder).info
        (counted,) = counters_of(recording.folder, info).to_pylist()
        rows = names["windows"].orderBy("until").collect()
        assert rows[-1]["depth"] == counted["length_messages"] > 0
        assert sum(row["entered"] for row in rows) == counted["arrived_messages"]
        assert sum(row["left"] for row in rows) == counted["delivered_messages"]
        assert len(rows) > 1
    (block,) = re.findall(r"```text\n(.*?)```", page("live-tables"), re.DOTALL)
    assert shown.strip() == block.strip()


@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(not is_campaign(), reason="starts three programs of Spark: -m campaign runs it")
def test_a_driver_that_is_killed_continues_beside_a_recorder_and_has_each_row_once(spark: Any, tmp_path: Path) -> None:
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    environment = environment_of_queries()
    recorder = Recorded(tmp_path / "rec", tmp_path, 0.5)
    reported = 0

    def batches_more_than(count: int) -> bool:
        nonlocal reported
        recorder.tell(steps(reported, 50))
        reported += 50
        return len([*checkpoint.glob("commits/[0-9]*")]) > count

    command = copying(recorder.folder, out, checkpoint)
    try:
        for kills in range(trials("QSCTL_TEST_KILLED_STREAMS", 1, 2)):
            done = len([*checkpoint.glob("commits/[0-9]*")])
            with (
                (tmp_path / f"driver-{kills}.log").open("wb") as log,
                processes.running([*command, "100 milliseconds"], stdout=log, stderr=log, env=environment),
            ):
                assert eventually(lambda done=done: batches_more_than(done + 2))  # type: ignore[misc]
        recorder.tell(RecordingEnded(1_000 * reported))
        assert recorder.last_words().end == RecordingEnd.STOPPED
    finally:
        recorder.socket.close()
        processes.end(recorder.process)
    for _ in range(2):
        assert processes.run([*command, "now"], env=environment, check=True).stdout.strip().endswith("ended")
    batch = read_runs(spark, [recorder.folder])
    copied = spark.read.parquet(str(out))
    columns = [name for name in copied.columns if name != "run_id"]
    assert copied.count() == batch.count() == reported
    assert copied.select(columns).exceptAll(batch.select(columns)).count() == 0
    assert copied.groupBy("queue").sum("wait_ns").collect() == batch.groupBy("queue").sum("wait_ns").collect()
