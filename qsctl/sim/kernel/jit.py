"""The decorators of all kernels, and the functions that kernels call on arrays: compiled, or run as plain Python.

A kernel call runs ready-made machine code where it exists for these sources and this processor (`ready_made`), else
code that numba compiles (`compiler`), which is imported only then.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt

from qsctl.sim.kernel.ready_made import ReadyMade, ready_made, types_of

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def _compiles() -> bool:
    try:
        return not int(os.environ.get("NUMBA_DISABLE_JIT") or 0)
    except ValueError:
        return True  # numba warns of it, and compiles


COMPILED: Final = _compiles()
"""False under `NUMBA_DISABLE_JIT=1`: the kernels are then plain Python, for coverage and debugging."""

KERNELS: Final[dict[str, Kernel]] = {}
"""The kernels of the modules imported so far, by module and name."""


class Function:
    """A function of arrays and numbers that is compiled into the kernels that call it."""

    is_part = True

    def __init__(self, function: Callable[..., Any], *, is_inlined: bool) -> None:
        self.__wrapped__ = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        self._is_inlined = is_inlined
        self._dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """Return numba's dispatcher, made at the first access."""
        if self._dispatcher is None:
            from qsctl.sim.kernel._compiler import dispatcher

            _known_to_numba()
            self._dispatcher = dispatcher(self.__wrapped__, is_part=self.is_part, is_inlined=self._is_inlined)
        return self._dispatcher

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call numba's dispatcher."""
        return self.dispatcher(*arguments, **named)


class Kernel(Function):
    """A function of arrays and numbers that Python calls."""

    is_part = False

    def __init__(self, function: Callable[..., Any], *, is_inlined: bool) -> None:
        super().__init__(function, is_inlined=is_inlined)
        self.name = f"{function.__module__}.{function.__qualname__}"
        self._ready: dict[tuple[str, ...], ReadyMade] | None = None
        KERNELS[self.name] = self

    @property
    def stats(self) -> Any:
        """Return numba's statistics of the function's disk cache, with its path."""
        return self.dispatcher.stats

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the ready-made code for these argument types, else numba's dispatcher."""
        ready = self._ready
        if ready is None:
            ready = self._ready = ready_made(self.name)
        if ready and not named and (found := ready.get(types_of(arguments))):
            return found(arguments)
        return self.dispatcher(*arguments, **named)


class Intrinsic:
    """A name in kernels for an instruction or two; Python cannot call it (TypeError) where kernels are compiled."""

    def __init__(self, name: str) -> None:
        self.name = name


_KNOWN: Final[list[type]] = []


def _known_to_numba() -> None:
    """Register functions and intrinsics with numba, so that kernels can name them."""
    if _KNOWN:
        return
    from qsctl.sim.kernel._compiler import INTRINSICS, stand_in_for

    _KNOWN.extend((Function, Intrinsic))
    stand_in_for(Function, lambda function: function.dispatcher)
    stand_in_for(Intrinsic, lambda named: INTRINSICS[named.name])


def as_records(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a structured array whose rows have attribute access in interpreted mode, too."""
    return array if COMPILED else array.view(np.recarray)


def address_of(array: npt.NDArray[Any]) -> Any:
    """Return the form in which kernels receive an array: its address, or in interpreted mode the array itself.

    An array passed to a compiled function is seven numbers, copied at each call from one kernel to the next; an address
    is one. The caller keeps the array alive, and passes the new address after replacing an array.
    """
    return array.ctypes.data if COMPILED else array


def _plain_bit_length(value: int) -> int:
    return int(value).bit_length()


def _plain_quotient(dividend: int, divisor: int) -> int:
    return dividend // divisor


def _plain_prefetch(_base: Any, _index: int, _dtype: Any) -> None:
    """Do nothing: the prefetch of interpreted mode."""


def _plain_row(base: Any, index: int, dtype: Any) -> Any:
    if not 0 <= index < len(base):
        raise IndexError(f"row {index} of an array of {len(base)} rows of {dtype.names}")
    if isinstance(base, np.ndarray) and base.dtype.names != dtype.names:
        return base.view(np.dtype((np.record, dtype)))[index]  # the same bytes by another layout
    return base[index]


row: Final = cast("Callable[[Any, int, Any], Any]", Intrinsic("row") if COMPILED else _plain_row)
"""`row(base, index, dtype)`: a record of the array that `address_of` gave, to read and write.

Not checked where compiled. Where kernels are plain Python an index outside of the array raises IndexError, so that a
run of the tests without the compiler shows what would otherwise damage memory."""

prefetch: Final = cast("Callable[[Any, int, Any], None]", Intrinsic("prefetch") if COMPILED else _plain_prefetch)
"""`prefetch(base, index, dtype)`: have the record in the caches when its turn comes; any index will do."""

bit_length: Final = cast("Callable[[int], int]", Intrinsic("bit_length") if COMPILED else _plain_bit_length)
"""Of a value ≥ 0, as `int.bit_length`."""

quotient: Final = cast("Callable[[int, int], int]", Intrinsic("quotient") if COMPILED else _plain_quotient)
"""`dividend // divisor`, of a dividend ≥ 0 and a divisor > 0."""

wide: Final = cast("Callable[[Any], int]", Intrinsic("wide") if COMPILED else int)
"""As a 64-bit integer: a narrower one would have each kernel that it reaches compiled again."""


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a module-level function of arrays and numbers, without the interpreter lock, cached on disk.

    A function made inside another one would be compiled anew in every process: numba cannot cache a closure.
    """
    return _compiled(function, Kernel)


def part(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function into each kernel that calls it; Python cannot call it where it is compiled (TypeError)."""
    return _compiled(function, Function)


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a kernel into each of its callers, for what every message does; elsewhere it costs compile time."""
    return _compiled(function, Kernel, is_inlined=True)


def inlined_part(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a part into each of its callers, as `inlined` does a kernel."""
    return _compiled(function, Function, is_inlined=True)


def _compiled(
    function: Callable[Parameters, Result], kind: type[Function], *, is_inlined: bool = False
) -> Callable[Parameters, Result]:
    if not COMPILED:
        return function
    return cast("Callable[Parameters, Result]", kind(function, is_inlined=is_inlined))
