"""Spark compares the pages that it reads with their checksums: a summary of a changed log is refused, or the true one.

`QSCTL_TEST_FLIPS=N` changes so many places instead of a few.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from qsctl.errors import Damaged, ExitStatus, Refused
from qsctl.eventlog.schema import MESSAGES
from qsctl.summary import _log_frames as log_frames
from qsctl.summary import job
from qsctl.summary.differences import compare_runs
from qsctl.summary.spark.session import SparkOptions
from tests.campaigns import trials
from tests.summary.conftest import MadeRun, message

pytestmark = pytest.mark.spark

FLIPS = trials("QSCTL_TEST_FLIPS", 6, 200)


def part_of(folder: Path) -> Path:
    return next(folder.glob("messages/*/part-*.parquet"))


def pages_end(content: bytes) -> int:
    """Where the pages of a Parquet file end and its footer begins."""
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def flip(part: Path, place: int, bit: int) -> None:
    content = bytearray(part.read_bytes())
    content[place] ^= 1 << bit
    part.write_bytes(content)
    # Spark's own filesystem on this machine keeps none, and Hadoop's would refuse a file by its own checksum first.
    assert not part.with_name(f".{part.name}.crc").exists()


@pytest.fixture
def spaced_run(make_run: Callable[..., MadeRun]) -> MadeRun:
    """A run whose folder's name has what Spark writes otherwise in a URI."""
    rows = [message(client_id=number % 3, enqueued_ns=number * 1000, wait_ns=number * 7 + 1) for number in range(400)]
    made = make_run(rows)
    folder = made.folder.with_name("a run 100%")
    made.folder.rename(folder)
    return MadeRun(folder, made.messages, made.counters, made.warm_up_ns, made.horizon_ns)


def figures_of(folder: Path, options: SparkOptions) -> Any:
    summary = job.summarize_run(folder, measures={"queues", "windows"}, options=options)
    return summary.queues, summary.tables


def change_a_wait(folder: Path) -> Path:
    """Change a bit in the page of the waits of a log, and return the file."""
    part = part_of(folder)
    waits = pq.read_metadata(part).row_group(0).column(MESSAGES.get_field_index("wait_ns"))
    flip(part, waits.dictionary_page_offset + 100, 0)
    return part


@pytest.mark.slow
@pytest.mark.campaign
def test_a_summary_of_a_changed_log_is_refused_or_the_true_one(spaced_run: MadeRun, options: SparkOptions) -> None:
    part = part_of(spaced_run.folder)
    content = part.read_bytes()
    truth = figures_of(spaced_run.folder, options)
    end = pages_end(content)
    refused = 0
    for number in range(FLIPS):
        place = number * end // FLIPS
        flip(part, place, number % 8)
        try:
            assert figures_of(spaced_run.folder, options) == truth, f"bit {number % 8} of byte {place}"
        except Damaged as damage:
            refused += 1
            assert damage.exit_status is ExitStatus.DAMAGED
            assert damage.message.startswith(f"{part} was changed after it was written"), damage.message
            assert damage.remedy
        part.write_bytes(content)
    assert refused >= FLIPS // 2, "most of a log is columns that these tables read"


@pytest.mark.slow
def test_without_the_options_a_changed_log_gives_other_figures(
    spaced_run: MadeRun, options: SparkOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why there are page checksums: Parquet decodes a number with another bit as another number."""
    truth = figures_of(spaced_run.folder, options)
    change_a_wait(spaced_run.folder)
    with pytest.raises(Damaged, match="a page of it does not have the checksum"):
        figures_of(spaced_run.folder, options)
    monkeypatch.setattr(log_frames, "PAGE_CHECKSUMS", {})
    assert figures_of(spaced_run.folder, options) != truth


@pytest.mark.slow
def test_compared_runs_are_without_one_that_was_changed_where_that_is_asked_for(
    spaced_run: MadeRun, make_run: Callable[..., MadeRun], options: SparkOptions
) -> None:
    runs = [spaced_run.folder, *(make_run(spaced_run.messages).folder for _ in range(5))]
    part = change_a_wait(runs[2])
    with pytest.raises(Damaged, match=part.name):
        compare_runs(runs, options=options)
    found = compare_runs(runs, options=options, skip_damaged=True)
    assert found.runs == 5
    (note,) = found.skipped
    assert str(runs[2]) in note
    assert note.endswith("the run was left out.")


def test_a_session_that_passes_over_damaged_files_does_not_pass_over_these(
    spaced_run: MadeRun, options: SparkOptions, spark: Any
) -> None:
    part = part_of(spaced_run.folder)
    flip(part, pages_end(part.read_bytes()) // 2, 3)
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(Damaged, match="was changed after it was written"):
            figures_of(spaced_run.folder, options)
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


@pytest.mark.parametrize("is_changed", [True, False])
def test_damage_that_breaks_spark_in_an_unknown_way_is_reported_as_damage(
    is_changed: bool, spaced_run: MadeRun, options: SparkOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 1,786 bits flipped in all pages and their headers one came out of Spark as an index out of bounds."""
    part = part_of(spaced_run.folder)
    if is_changed:
        flip(part, pages_end(part.read_bytes()) // 2, 3)

    def fail(*_: Any) -> Any:
        raise PySparkException("java.lang.ArrayIndexOutOfBoundsException: Index 97 out of bounds for length 64")

    monkeypatch.setattr(job, "_tables_of_batch", fail)
    expected = f"{re.escape(str(part))} was changed after it was written" if is_changed else "Spark failed: .*Index 97"
    with pytest.raises(Damaged if is_changed else Refused, match=expected):
        figures_of(spaced_run.folder, options)
