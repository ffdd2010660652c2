"""The output of `--out`: tables are written beside, then renamed, and by one command at a time.

A command that is killed leaves its folder of unpublished tables. The next one that writes to the same place removes it,
and returns an earlier table that was already moved away; in an object store, where the lock does not exclude other
machines, it is left alone.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qsctl.errors import InvalidInput, Refused
from qsctl.eventlog.location import Location, move, remove_tree, spark_path
from qsctl.summary.folder_lock import REMEDY, locked_folder
from qsctl.summary.spark.faults import text_of

_BESIDE: Final = re.compile(r"\.qsctl-[0-9a-f]{16}")
_EARLIER: Final = "earlier-"
_FULL: Final = re.compile(r"No space left on device\W+at org\.apache\.hadoop\.fs\.")
"""Spark's files of a table go through Hadoop's file system, and its temporary files do not."""


class TablesOutput:
    """The tables of one command on their way into a folder."""

    def __init__(self, beside: Location) -> None:
        self._beside = beside
        self._names: list[str] = []

    def write(self, name: str, frame: DataFrame, shape: StructType) -> DataFrame:
        """Write a table's rows, behind those of earlier runs, and return them as they were written."""
        before = set(self._parts(name))
        place = spark_path(self._beside / name)
        try:
            frame.write.mode("append").parquet(place)
        except (Py4JError, PySparkException) as error:
            if _FULL.search(text_of(error)):
                raise Refused(
                    f"the disk of {self._beside.parent} is full: the table {name} cannot be written",
                    remedy="Free some space there, or name a folder on a larger disk with --out.",
                ) from error
            raise
        if name not in self._names:
            self._names.append(name)
        added = sorted(set(self._parts(name)) - before)
        return frame.sparkSession.read.schema(shape).parquet(*added) if added else frame

    def _parts(self, name: str) -> list[str]:
        return [spark_path(part) for part in (self._beside / name).glob("part-*")]

    def publish(self, folder: Location) -> None:
        """Replace the earlier tables of the same names."""
        for name in self._names:
            if (folder / name).exists():
                move(folder / name, self._beside / f"{_EARLIER}{name}")
            move(self._beside / name, folder / name)


@contextmanager
def output_folder(folder: Location | None) -> Iterator[TablesOutput | None]:
    """Yield what writes tables: they are in the folder once the block ends well; after an error it is as it was.

    Raises:
        InvalidInput: the folder cannot be written, or another command is writing it.
    """
    if folder is None:
        yield None
        return
    with locked_folder(folder) as folder:
        try:
            _clear(folder)
            beside = folder / f".qsctl-{secrets.token_hex(8)}"
            beside.mkdir()
            try:
                output = TablesOutput(beside)
                yield output
                output.publish(folder)
            finally:
                with suppress(OSError):
                    remove_tree(beside)
        except OSError as error:
            reason = error.strerror or os.strerror(error.errno or 0)
            raise InvalidInput(f"{folder} cannot be written: {reason}", remedy=REMEDY) from None


def _clear(folder: Location) -> None:
    """Remove what commands that were killed have left; the lock excludes one that is still writing."""
    if not isinstance(folder, Path):
        return
    for beside in folder.iterdir():
        if not _BESIDE.fullmatch(beside.name):
            continue
        for earlier in beside.glob(f"{_EARLIER}*"):
            place = folder / earlier.name.removeprefix(_EARLIER)
            if not place.exists():
                move(earlier, place)
        remove_tree(beside)
