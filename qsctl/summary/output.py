"""Where `--out` writes its tables: beside, then renamed, and by one command at a time."""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from filelock import BaseFileLock, FileLock, Timeout
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from qsctl.errors import InvalidInput
from qsctl.eventlog.location import Location, move, remove_tree, spark_path

_LOCK_FILE: Final = ".qsctl.lock"
_REMEDY: Final = "Name another folder with --out."


class Output:
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
        """Let the tables take the place of earlier ones of their names."""
        for name in self._names:
            if (folder / name).exists():
                move(folder / name, self._beside / f"earlier-{name}")
            move(self._beside / name, folder / name)


def _lock(folder: Location) -> BaseFileLock:
    """A lock on the folder; one in a remote filesystem has none, and of two commands at once the later one wins."""
    if isinstance(folder, Path):
        return FileLock(folder / _LOCK_FILE)
    # Commands of this machine still exclude each other.
    name = hashlib.blake2b(str(folder).encode(), digest_size=8).hexdigest()
    return FileLock(Path(tempfile.gettempdir()) / f"{_LOCK_FILE}-{name}")


@contextmanager
def output_folder(folder: Location | None) -> Iterator[Output | None]:
    """What to write tables with; they are in the folder once the block ends well, and else it is as it was.

    Raises:
        InvalidInput: the folder cannot be written, or another command is writing it.
    """
    if folder is None:
        yield None
        return
    try:
        folder = folder.absolute()  # Java has a working directory of its own
        folder.mkdir(parents=True, exist_ok=True)
        lock = _lock(folder)
        lock.acquire(blocking=False)
    except Timeout:
        raise InvalidInput(f"{folder} is being written by another qsctl command", remedy=_REMEDY) from None
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror}", remedy=_REMEDY) from None
    try:
        beside = folder / f".qsctl-{secrets.token_hex(8)}"
        beside.mkdir()
        try:
            output = Output(beside)
            yield output
            output.publish(folder)
        finally:
            with suppress(OSError):
                remove_tree(beside)
    except OSError as error:
        reason = error.strerror or os.strerror(error.errno or 0)
        raise InvalidInput(f"{folder} cannot be written: {reason}", remedy=_REMEDY) from None
    finally:
        lock.release()
