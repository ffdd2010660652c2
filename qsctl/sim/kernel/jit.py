"""The only file that imports numba: one decorator for every kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a module-level function of arrays and numbers, without the interpreter lock, cached on disk."""
    return cast("Callable[Parameters, Result]", numba.njit(cache=True, nogil=True)(function))
