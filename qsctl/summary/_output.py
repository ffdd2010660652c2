"""The output of `--out`: tables are written beside, then renamed, and by one command at a time.

A command that is killed leaves its folder of unpublished tables. The next one that writes to the same place removes it,
and returns an earlier table that was already moved away; in an object store, where the lock does not exclude other
machines, it is left alone. Appended partitions are published by a list of them, which is written first: where a
command was killed behind that, the next one finishes what the list has.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import DateType, StringType, StructType

from qsctl.errors import InvalidInput, Refused, UsageError
from qsctl.eventlog.location import Location, move, path_within, remove_tree, spark_path, spark_pattern
from qsctl.summary._engine import SummaryEngine
from qsctl.summary._folder_lock import REMEDY, locked_folder
from qsctl.summary.spark.faults import full_disk_as_of_the_system

_BESIDE: Final = re.compile(r"\.qsctl-[0-9a-f]{16}")
_EARLIER: Final = "earlier-"
_PUBLISHED: Final = "published.json"

PARTITIONS: Final = {"date": DateType(), "scenario": StringType(), "run_id": StringType()}
"""The columns of appended tables that are folders' names, from the outermost; the date is that of the run's start, null
of a simulation."""


class TablesOutput:
    """The tables of one command on their way into a folder.

    Args:
        beside: the folder of what is not yet published.
        engine: makes the frames.
    """

    def __init__(self, beside: Location, engine: SummaryEngine) -> None:
        self._beside = beside
        self._engine = engine
        self._names: list[str] = []

    def write(self, name: str, frame: DataFrame, shape: StructType) -> DataFrame:
        """Write a table's rows, behind those of earlier runs, and return them as they were written."""
        before = set(self._parts(name))
        with self._named(name):
            self._engine.append(frame, self._beside / name)
        added = sorted(set(self._parts(name)) - before)
        return self._engine.files(added, shape) if added else frame

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        """Count a table among those that are published once it is written; a full disk is an error of its own."""
        try:
            yield
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise Refused(
                f"the disk of {self._beside.parent} is full: the table {name} cannot be written",
                remedy="Free some space there, or name a folder on a larger disk with --out.",
            ) from error
        if name not in self._names:
            self._names.append(name)

    def _parts(self, name: str) -> list[Location]:
        return list((self._beside / name).glob("part-*"))

    def publish(self, folder: Location) -> None:
        """Replace the earlier tables of the same names."""
        for name in self._names:
            if (folder / name).exists():
                move(folder / name, self._beside / f"{_EARLIER}{name}")
            move(self._beside / name, folder / name)


class AppendedTables(TablesOutput):
    """The tables of one command of Spark, in partitions by date, scenario and run.

    Args:
        beside: the folder of what is not yet published.
        engine: makes the frames.
        runs: `run_id`, `date` and `scenario` of each run; the ids differ.
    """

    def __init__(self, beside: Location, engine: SummaryEngine, runs: DataFrame) -> None:
        super().__init__(beside, engine)
        self._runs = runs

    def write(self, name: str, frame: DataFrame, shape: StructType) -> DataFrame:
        """Write a table's rows, a file a run, and return them as they were written."""
        before = set(self._parts(name))
        inside = [field.name for field in shape.fields if field.name not in PARTITIONS]
        placed = frame.sparkSession.sql(
            f"""select /*+ broadcast(runs) */ {", ".join(f"made.{column}" for column in inside)},
                runs.date, runs.scenario, made.run_id
            from {{made}} as made join {{runs}} as runs on made.run_id = runs.run_id""",
            made=frame,
            runs=self._runs,
        )
        place = spark_path(self._beside / name)
        with self._named(name), full_disk_as_of_the_system():
            placed.repartition("run_id").write.mode("append").partitionBy(*PARTITIONS).parquet(place)
        added = sorted(set(self._parts(name)) - before)
        if not added:
            return frame
        whole = StructType([field for field in shape.fields if field.name not in PARTITIONS])
        for column, kind in PARTITIONS.items():
            whole = whole.add(column, kind)
        read = frame.sparkSession.read.schema(whole).option("basePath", place)
        return read.parquet(*map(spark_pattern, added)).select(*shape.fieldNames())

    def _parts(self, name: str) -> list[Location]:
        return list((self._beside / name).rglob("part-*"))

    def publish(self, folder: Location) -> None:
        """Replace the partitions of these runs: a table without rows of a run loses what it had of it."""
        of_runs = self._beside / "runs"
        runs = sorted({path_within(of_runs, part.parent) for part in of_runs.rglob("part-*")})
        partitions = [f"{name}/{run}" for name in self._names for run in runs]
        unfinished = self._beside / f".{_PUBLISHED}"
        unfinished.write_bytes(msgspec.json.encode({each: _within(self._beside, each).exists() for each in partitions}))
        move(unfinished, self._beside / _PUBLISHED)
        _publish_partitions(self._beside, folder)


def _publish_partitions(beside: Location, folder: Location) -> None:
    """Move the partitions of a finished command to their places, those that are not there yet."""
    partitions = msgspec.json.decode((beside / _PUBLISHED).read_bytes(), type=dict[str, bool])
    for partition, has_rows in partitions.items():
        place, made = _within(folder, partition), _within(beside, partition)
        if place.exists() and (made.exists() or not has_rows):
            earlier = _within(beside, f"{_EARLIER}{partition}")
            earlier.parent.mkdir(parents=True, exist_ok=True)
            move(place, earlier)
        if made.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            move(made, place)


def _within(folder: Location, path: str) -> Location:
    for name in path.split("/"):
        folder = folder / name
    return folder


@contextmanager
def output_folder(
    folder: Location | None, engine: SummaryEngine, partitions: DataFrame | None = None
) -> Iterator[TablesOutput | None]:
    """Yield what writes tables: they are in the folder once the block ends well; after an error it is as it was.

    Args:
        folder: None is yielded where there is none.
        engine: makes the frames; Spark where there are partitions.
        partitions: of `partitions_of`, to add runs to the tables that are there; None: tables are replaced.

    Raises:
        InvalidInput: the folder cannot be written, another command is writing it, or it has tables of the other kind.
    """
    if folder is None:
        yield None
        return
    with locked_folder(folder) as folder:
        try:
            _clear(folder)
            _require_kind(folder, append=partitions is not None)
            beside = folder / f".qsctl-{secrets.token_hex(8)}"
            beside.mkdir()
            try:
                if partitions is None:
                    output = TablesOutput(beside, engine)
                else:
                    output = AppendedTables(beside, engine, partitions)
                yield output
                output.publish(folder)
            finally:
                with suppress(OSError):
                    remove_tree(beside)
        except OSError as error:
            reason = error.strerror or os.strerror(error.errno or 0)
            raise InvalidInput(f"{folder} cannot be written: {reason}", remedy=REMEDY) from None


def partitions_of(engine: SummaryEngine, facts: pa.Table) -> DataFrame:
    """Return the partition of each run, by its id.

    Args:
        engine: makes the frame.
        facts: of `run_batch.facts_of`.

    Raises:
        UsageError: two folders are of one run, which has one partition.
    """
    for label, folder in zip(facts["run_id"].to_pylist(), facts["folder"].to_pylist(), strict=True):
        if " " in label:  # which `labels_of` makes of ids that are not unique
            raise UsageError(
                f"{folder} is the run {label.partition(' ')[0]}, which another of these folders is, too",
                remedy="Name one of them: a run has one partition.",
            )
    dates = pc.cast(facts["started_at"], pa.date32())
    return engine.frame(facts.select(["run_id", "scenario"]).append_column("date", dates))


def _require_kind(folder: Location, *, append: bool) -> None:
    """Refuse to mix tables that are replaced and tables that runs are added to."""
    for table in folder.iterdir():
        if table.name.startswith(".") or not table.is_dir():
            continue
        names = {each.name for each in table.iterdir()}
        if append and any(name.startswith("part-") for name in names):
            raise InvalidInput(
                f"{table} was written without --append: runs cannot be added to it", remedy="Name another --out."
            )
        if not append and any(name.startswith("date=") for name in names):
            raise InvalidInput(
                f"{table} has runs that were added with --append: all of them would be replaced",
                remedy="Add --append, or name another --out.",
            )


def _clear(folder: Location) -> None:
    """Finish or remove what commands that were killed have left; the lock excludes one that is still writing."""
    if not isinstance(folder, Path):
        return
    for beside in folder.iterdir():
        if not _BESIDE.fullmatch(beside.name):
            continue
        if (beside / _PUBLISHED).exists():
            _publish_partitions(beside, folder)
            remove_tree(beside)
            continue
        for earlier in beside.glob(f"{_EARLIER}*"):
            place = folder / earlier.name.removeprefix(_EARLIER)
            if not place.exists():
                move(earlier, place)
        remove_tree(beside)
