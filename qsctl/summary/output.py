"""The output of `--out`: tables are written beside, then renamed, and by one command at a time."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qsctl.errors import InvalidInput
from qsctl.eventlog.location import Location, move, remove_tree, spark_path
from qsctl.summary.folder_lock import REMEDY, locked_folder


class TablesOutput:
    """The tables of one command on their way into a folder."""

    def __init__(self, beside: Location) -> None:
        self._beside = beside
        self._names: list[str] = []

    def write(self, name: str, frame: DataFrame, shape: StructType) -> DataFrame:
        """Write a table's rows, behind those of earlier runs, and return them as they were written."""
        before = set(self._parts(name))
        place = spark_path(self._beside / name)
        frame.write.mode("append").parquet(place)
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
                move(folder / name, self._beside / f"earlier-{name}")
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
