"""Arrivals that were drawn once and come again: of all candidates of a search, which see the same ones.

Drawing arrivals takes more time than a broker's queues do: two thirds of a run of `burst`. Arrivals are known by the
streams that draw them, laid out and started, so that a changed rate or seed is another load by itself. What is kept is
bounded by `MOST_BYTES` a process and never given up for something newer: a search goes through its replications again
and again in one order, in which the least recently used one is the next that is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy.typing as npt

from qsctl.instant import Nanoseconds

MOST_BYTES: Final = 512 << 20


@dataclass(frozen=True, slots=True)
class ArrivalWindow:
    """A window of arrivals: to where it goes, how wide the next one is, and its rows."""

    end_ns: Nanoseconds
    width_ns: Nanoseconds
    rows: npt.NDArray[Any]


@dataclass(slots=True)
class Memory:
    """The arrivals that a process keeps in memory."""

    most_bytes: int = MOST_BYTES
    windows: dict[bytes, list[ArrivalWindow]] = field(default_factory=dict)
    used_bytes: int = 0
    hits: int = 0

    def get(self, key: bytes) -> list[ArrivalWindow] | None:
        """Return the windows of a load; None: they are not there."""
        found = self.windows.get(key)
        self.hits += found is not None
        return found

    def has_room(self, size_bytes: int) -> bool:
        """Return whether the given number of further bytes may be kept."""
        return self.used_bytes + size_bytes <= self.most_bytes

    def keep(self, key: bytes, windows: list[ArrivalWindow]) -> None:
        """Keep the windows of a load, if there is room for them."""
        size_bytes = sum(each.rows.nbytes for each in windows)
        if key not in self.windows and self.has_room(size_bytes):
            self.windows[key] = windows
            self.used_bytes += size_bytes


_memory: Memory | None = None
_kept: Final = Memory()


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
