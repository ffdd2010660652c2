"""A cache of drawn arrivals for the candidates of a search, which all see the same ones.

Drawing arrivals takes more time than a broker's queues do: two thirds of a run of `burst`. The key is the streams that
draw them, laid out and started, so that a changed rate or seed has another key. The cache is bounded by `MOST_BYTES` a
process and evicts nothing: a search repeats its repetitions in the same order, in which the least recently used one is
the next that is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.instant import Nanoseconds

MOST_BYTES: Final = 512 << 20


@dataclass(frozen=True, slots=True)
class ArrivalWindow:
    """A window of arrivals: its end, the width of the next window, and its rows."""

    end_ns: Nanoseconds
    width_ns: Nanoseconds
    rows: npt.NDArray[Any]


@dataclass(slots=True)
class Memory:
    """The arrivals that a process keeps in memory, and those in a folder that it shares with others."""

    most_bytes: int = MOST_BYTES
    folder: Path | None = None
    windows: dict[bytes, list[ArrivalWindow]] = field(default_factory=dict)
    used_bytes: int = 0
    hits: int = 0

    def get(self, key: bytes) -> list[ArrivalWindow] | None:
        """Return the windows of a load, or None where they are not cached."""
        found = self.windows.get(key)
        if found is None and self.folder is not None and (found := _mapped(self.folder, key)) is not None:
            self.windows[key] = found
        self.hits += found is not None
        return found

    def has_room(self, size_bytes: int) -> bool:
        """Return whether this number of further bytes may be cached."""
        return self.used_bytes + size_bytes <= self.most_bytes

    def keep(self, key: bytes, windows: list[ArrivalWindow]) -> None:
        """Cache the windows of a load, if there is room for them."""
        size_bytes = sum(each.rows.nbytes for each in windows)
        if key not in self.windows and self.has_room(size_bytes):
            if self.folder is not None:
                windows = _shared(self.folder, key, windows)
            self.windows[key] = windows
            self.used_bytes += size_bytes


def _shared(folder: Path, key: bytes, windows: list[ArrivalWindow]) -> list[ArrivalWindow]:
    """Write windows into the folder and return them mapped; as they are where the disk is full or the folder gone.

    The rows first, then where each window is among them: what another process finds is whole.
    """
    rows, places = _files(folder, key)
    if not places.exists():
        with suppress(OSError):
            _write(rows, np.concatenate([each.rows for each in windows]))
            _write(places, np.array([(each.end_ns, each.width_ns, len(each.rows)) for each in windows], np.int64))
    return _mapped(folder, key) or windows


def _write(path: Path, array: npt.NDArray[Any]) -> None:
    with NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
        written = Path(file.name)
        try:
            np.save(file, array)
        except OSError:
            written.unlink()
            raise
    written.rename(path)


def _mapped(folder: Path, key: bytes) -> list[ArrivalWindow] | None:
    """Return the windows of a load that are in the folder; None: they are not there, or the folder is gone."""
    rows, places = _files(folder, key)
    try:
        windows = np.load(places).tolist()
        # An empty file cannot be mapped.
        mapped = np.load(rows, mmap_mode="r" if any(count for _, _, count in windows) else None)
    except (OSError, ValueError):
        return None
    found: list[ArrivalWindow] = []
    first = 0
    for end_ns, width_ns, count in windows:
        found.append(ArrivalWindow(end_ns, width_ns, mapped[first : first + count]))
        first += count
    return found


def _files(folder: Path, key: bytes) -> tuple[Path, Path]:
    return folder / f"{key.hex()}.rows.npy", folder / f"{key.hex()}.windows.npy"


_memory: Memory | None = None
_kept: Final = Memory()


def share_arrivals(folder: Path) -> None:
    """Have this process share what it remembers with others on this machine, by files in a folder, from now on."""
    _kept.folder = folder


def memory() -> Memory | None:
    """Return what remembers arrivals now; None: nothing does."""
    return _memory


@contextmanager
def remembering(kept: Memory = _kept) -> Iterator[Memory]:
    """Remember arrivals within the `with` statement, and use those that are remembered."""
    global _memory  # noqa: PLW0603 - a process has one
    before, _memory = _memory, kept
    try:
        yield kept
    finally:
        _memory = before
