"""The output of `--out`: tables are written under temporary names, then renamed, by one command at a time.

A command that is killed leaves a folder of unpublished tables. The next command that writes to the same place removes
that folder and restores tables that were already moved away; in an object store, where the lock does not exclude other
machines, it does not touch the folder. Appended partitions are published by a list that is written first: if a command
is killed after writing it, the next one publishes the listed partitions.
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
"""The columns of appended tables that are names of folders, from the outermost; the date is that of the run's start,
null for a simulation.
"""


class TablesOutput:
    """The unpublished tables of one command, which `publish` moves into their folder.

    Args:
        beside: folder of the unpublished tables.
        engine: creates the frames.
    """

    def __init__(self, beside: Location, engine: SummaryEngine) -> None:
        self._beside = beside
        self._engine = engine
        self._names: list[str] = []

    def write(self, name: str, frame: DataFrame, shape: StructType) -> DataFrame:
        """Write a table's rows after those of earlier runs of the command; return them as a frame of the written
        files.
        """
        before = set(self._parts(name))
        with self._named(name):
            self._engine.append(frame, self._beside / name)
        added = sorted(set(self._parts(name)) - before)
        return self._engine.files(added, shape) if added else frame

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        """Add a table to those that are published, once the block has written it; report a full disk as `Refused`."""
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
        """Replace the earlier tables of the same names in the folder."""
        for name in self._names:
            if (folder / name).exists():
                move(folder / name, self._beside / f"{_EARLIER}{name}")
            move(self._beside / name, folder / name)


class AppendedTables(TablesOutput):
    """The unpublished tables of one Spark command, in partitions by date, scenario and run.

    Args:
        beside: folder of the unpublished tables.
        engine: creates the frames.
        runs: `run_id`, `date` and `scenario` of each run; the ids differ.
    """

    def __init__(self, beside: Location, engine: SummaryEngine, runs: DataFrame) -> None:
        super().__init__(beside, engine)
        self._runs = runs

    def write(self, name: str, frame: DataFrame, shape: StructType) -> DataFrame:
        """Write a table's rows, a file for each run; return them as a frame of the written files."""
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
        """Replace the partitions of these runs; a table without rows of a run loses the run's earlier partition."""
        of_runs = self._beside / "runs"
        runs = sorted({path_within(of_runs, part.parent) for part in of_runs.rglob("part-*")})
        partitions = [f"{name}/{run}" for name in self._names for run in runs]
        unfinished = self._beside / f".{_PUBLISHED}"
        unfinished.write_bytes(msgspec.json.encode({each: _within(self._beside, each).exists() for each in partitions}))
        move(unfinished, self._beside / _PUBLISHED)
        _publish_partitions(self._beside, folder)


def _publish_partitions(beside: Location, folder: Location) -> None:
    """Move the listed partitions into place, except those that were moved before."""
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
    """Yield a writer whose tables are published in the folder if the block succeeds; after an error nothing changes.

    Args:
        folder: the folder; if it is None, None is yielded.
        engine: creates the frames; must be Spark for partitions.
        partitions: result of `partitions_of`, to add runs to existing tables; None: tables are replaced.

    Raises:
        InvalidInput: the folder cannot be written, another command is writing it, or its tables are of the other kind.
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
    """Return the partition (date and scenario) of each run, by its id.

    Args:
        engine: creates the frame.
        facts: result of `_run_batch.facts_of`.

    Raises:
        UsageError: two folders have the same run id, and thus the same partition.
    """
    for label, folder in zip(facts["run_id"].to_pylist(), facts["folder"].to_pylist(), strict=True):
        if " " in label:  # `labels_of` makes such labels from ids that are not unique
            raise UsageError(
                f"{folder} is the run {label.partition(' ')[0]}, which another of these folders is, too",
                remedy="Name one of them: a run has one partition.",
            )
    dates = pc.cast(facts["started_at"], pa.date32())
    return engine.frame(facts.select(["run_id", "scenario"]).append_column("date", dates))


def _require_kind(folder: Location, *, append: bool) -> None:
    """Raise an error if a folder's tables are of the other kind: replaced as a whole, or appended to by run."""
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
    """Complete or remove the remains of killed commands; the lock excludes commands that still write."""
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
