"""`-heapSnapshotPeriod`: periodic reports of the memory allocated by a running service [QS Table 4.1]."""

from __future__ import annotations

import gc
import os
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from qsctl.errors import InvalidInput

LINES_MAX: Final = 50
"""Places of the program in one snapshot, the largest first."""


@contextmanager
def heap_snapshots(configuration_name: str, period_s: int, directory: Path) -> Iterator[None]:
    """Write `RTI_<configurationName><processId><index>.log` every `period_s` seconds; 0: never.

    Tracing allocations costs about a third of the throughput, so it is on only while snapshots are.

    Raises:
        InvalidInput: the directory does not exist.
    """
    if period_s == 0:
        yield
        return
    if not directory.is_dir():
        raise InvalidInput(f"-heapSnapshotDir {directory} is not a directory", remedy="Make it first.")
    ended = threading.Event()
    tracemalloc.start()
    writer = threading.Thread(
        target=_write_until, args=(ended, configuration_name, period_s, directory), name="heap snapshots", daemon=True
    )
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()
        tracemalloc.stop()


def _write_until(ended: threading.Event, configuration_name: str, period_s: int, directory: Path) -> None:
    index = 0
    while not ended.wait(period_s):
        path = directory / f"RTI_{configuration_name}{os.getpid()}{index}.log"
        path.write_text(snapshot_text(), encoding="utf-8")
        index += 1


def snapshot_text() -> str:
    """Return the bytes in use, the garbage collector's counts, and the largest allocation sites."""
    current, peak = tracemalloc.get_traced_memory()
    statistics = tracemalloc.take_snapshot().statistics("lineno")[:LINES_MAX]
    lines = [
        f"traced bytes: {current}, at most: {peak}",
        f"objects in the collector's generations: {gc.get_count()}",
        *(str(each) for each in statistics),
    ]
    return "\n".join(lines) + "\n"
