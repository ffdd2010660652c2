"""Arrays aligned to cache lines, so that each record of 64 bytes occupies one line."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

CACHE_LINE: Final = 64


def zeros_in_lines(count: int, dtype: Any) -> npt.NDArray[Any]:
    """Return an aligned array of zeros; a page of a large one occupies memory only once it is written."""
    kind = np.dtype(dtype)
    memory = np.zeros(count * kind.itemsize + CACHE_LINE, np.uint8)
    begin = -memory.ctypes.data % CACHE_LINE
    return memory[begin : begin + count * kind.itemsize].view(kind)


def is_in_lines(array: npt.NDArray[Any]) -> bool:
    """Return whether an array is aligned to a cache line."""
    return bool(array.ctypes.data % CACHE_LINE == 0)


def longer(array: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Return an aligned copy of an array, extended with zeros to `count` rows."""
    copy = zeros_in_lines(count, array.dtype)
    copy[: len(array)] = array
    return copy
