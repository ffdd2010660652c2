"""Arrays that begin at a cache line, so that records of 64 bytes lie in one line each."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

CACHE_LINE: Final = 64


def zeros_in_lines(count: int, dtype: Any) -> npt.NDArray[Any]:
    """Return an array of zeros; of a large one a page costs memory once something is written there."""
    kind = np.dtype(dtype)
    memory = np.zeros(count * kind.itemsize + CACHE_LINE, np.uint8)
    begin = -memory.ctypes.data % CACHE_LINE
    return memory[begin : begin + count * kind.itemsize].view(kind)


def is_in_lines(array: npt.NDArray[Any]) -> bool:
    """Return whether an array begins at a cache line."""
    return bool(array.ctypes.data % CACHE_LINE == 0)


def longer(array: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Return a copy with zeros behind it, `count` in all, that begins at a cache line."""
    copy = zeros_in_lines(count, array.dtype)
    copy[: len(array)] = array
    return copy
