"""The only file that imports numba: one decorator for every kernel, and where the compiled code is kept.

numba's disk cache notices an edit of the function's own file, never of one that it calls in another module, so the
cache directory carries a hash of every source of the simulator: an edit anywhere is a new directory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from numba.core import config as numba_config

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

SOURCES: Final = Path(__file__).parent.parent


def cache_root() -> Path:
    """The user's cache: `NUMBA_CACHE_DIR` when set, else `XDG_CACHE_HOME` or `~/.cache`, and `qsctl` in it."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qsctl"


def source_hash() -> str:
    """Of all that a kernel may call, and of what compiles it."""
    digest = hashlib.blake2b(f"numba {numba.__version__}".encode(), digest_size=8)
    for path in sorted(SOURCES.rglob("*.py")):
        digest.update(path.relative_to(SOURCES).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK)


COMPILED: Final = not getattr(numba_config, "DISABLE_JIT")  # noqa: B009 - set at run time by numba
"""False under `NUMBA_DISABLE_JIT=1`: the kernels are then plain Python, for coverage and debugging."""

CACHE_DIRECTORY: Final = cache_root() / f"kernels-{source_hash()}"
CACHED: Final = COMPILED and _writable(CACHE_DIRECTORY)
"""Whether compiled kernels are kept; without a writable directory every run compiles."""

if CACHED:
    setattr(numba_config, "CACHE_DIR", str(CACHE_DIRECTORY))  # noqa: B010 - as above


def as_records(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A structured array whose rows have their fields as attributes also where kernels are plain Python."""
    return array if COMPILED else array.view(np.recarray)


_OPTIONS: Final[dict[str, Any]] = {"cache": CACHED, "nogil": True, "error_model": "numpy", "_nrt": False}
"""Without numba's reference counting: kernels make no arrays, and counting cost half of their time."""


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a module-level function of arrays and numbers, without the interpreter lock, cached on disk.

    A function made inside another one would be compiled anew in every process: numba cannot cache a closure.
    """
    return cast("Callable[Parameters, Result]", numba.njit(**_OPTIONS)(function))


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A kernel that its callers take in whole: a call would copy the descriptors of all its arrays."""
    return cast("Callable[Parameters, Result]", numba.njit(**_OPTIONS, forceinline=True)(function))
