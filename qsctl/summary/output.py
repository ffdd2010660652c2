"""Where `--out` writes its tables: beside, then renamed, and by one command at a time."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qsctl.errors import InvalidInput

_LOCK_FILE: Final = ".qsctl.lock"
_REMEDY: Final = "Name another folder with --out."


class Output:
    """The tables of one command on their way into a folder."""

    def __init__(self, beside: Path) -> None:
        self._beside = beside
        self._names: list[str] = []

    def write(self, name: str, frame: DataFrame, shape: StructType) -> DataFrame:
        """Write a table's rows, behind those of earlier runs, and return them as they were written."""
        before = set(self._parts(name))
        place = str(self._beside / name)
        frame.write.mode("append").parquet(place)
        if name not in self._names:
            self._names.append(name)
        added = sorted(set(self._parts(name)) - before)
        return frame.sparkSession.read.schema(shape).parquet(*added) if added else frame

    def _parts(self, name: str) -> list[str]:
        return [str(part) for part in (self._beside / name).glob("part-*")]

    def publish(self, folder: Path) -> None:
        """Let the tables take the place of earlier ones of their names."""
        for name in self._names:
            if (folder / name).exists():
                (folder / name).rename(self._beside / f"earlier-{name}")
            (self._beside / name).rename(folder / name)


@contextmanager
def output_folder(folder: Path | None) -> Iterator[Output | None]:
    """What to write tables with; they are in the folder once the block ends well, and else it is as it was.

    Raises:
        InvalidInput: the folder cannot be written, or another command is writing it.
    """
    if folder is None:
        yield None
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / _LOCK_FILE)
        lock.acquire(blocking=False)
    except Timeout:
        raise InvalidInput(f"{folder} is being written by another qsctl command", remedy=_REMEDY) from None
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror}", remedy=_REMEDY) from None
    try:
        beside = Path(tempfile.mkdtemp(prefix=".qsctl-", dir=folder))
        try:
            output = Output(beside)
            yield output
            output.publish(folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        reason = error.strerror or os.strerror(error.errno or 0)
        raise InvalidInput(f"{folder} cannot be written: {reason}", remedy=_REMEDY) from None
    finally:
        lock.release()
