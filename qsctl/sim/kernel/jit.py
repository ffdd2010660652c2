"""The only file that imports numba: one decorator for every kernel, and where the compiled code is kept.

numba's disk cache notices an edit of the function's own file, never of one that it calls in another module, so the
cache directory carries a hash of every source of the simulator: an edit anywhere is a new directory. Directories of
other versions are removed when they were not used for weeks (`unused_caches`).
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, ParamSpec, TypeVar, cast

import filelock
import numpy as np
import numpy.typing as npt

from qsctl.sim.kernel.unused_caches import mark_used, remove_unused

_WITHOUT_SCIPY: Final = "scipy" not in sys.modules
if _WITHOUT_SCIPY:
    # numba looks for scipy's linear algebra, where scipy is installed: 0.2 s of imports that no kernel needs.
    sys.modules["scipy"] = None  # type: ignore[assignment]
try:
    import numba
    import numba.np.arraymath
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import config as numba_config
    from numba.core import event as numba_event
    from numba.core import types
    from numba.core.caching import FunctionCache
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.compiler_machinery import register_pass
    from numba.core.event import Listener, TimingListener, install_listener
    from numba.core.extending import intrinsic
    from numba.core.typed_passes import NativeLowering
finally:
    if _WITHOUT_SCIPY:
        del sys.modules["scipy"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

SOURCES: Final = Path(__file__).parent.parent


def cache_root() -> Path:
    """Return the user's cache: `NUMBA_CACHE_DIR` when set, else `XDG_CACHE_HOME` or `~/.cache`, and `qsctl` in it."""
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


def _opened(directory: Path) -> bool:
    """Make the directory, or mark it as used; return whether compiled kernels can be kept in it."""
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        mark_used(directory)
    except OSError:
        return False
    else:
        remove_unused(directory)
    return directory.is_dir() and os.access(directory, os.W_OK)


COMPILED: Final = not getattr(numba_config, "DISABLE_JIT")  # noqa: B009 - set at run time by numba
"""False under `NUMBA_DISABLE_JIT=1`: the kernels are then plain Python, for coverage and debugging."""

CACHE_DIRECTORY: Final = cache_root() / f"kernels-{source_hash()}"
CACHED: Final = COMPILED and _opened(CACHE_DIRECTORY)
"""Whether compiled kernels are kept; without a writable directory every run compiles."""


@contextmanager
def _own_cache() -> Iterator[None]:
    """Within the `with` statement, functions that are decorated keep their compiled code in `CACHE_DIRECTORY`.

    numba looks the directory up once, when it decorates: the caller's own functions keep theirs elsewhere, as before.
    """
    callers = getattr(numba_config, "CACHE_DIR")  # noqa: B009 - as above
    setattr(numba_config, "CACHE_DIR", str(CACHE_DIRECTORY))  # noqa: B010 - as above
    try:
        yield
    finally:
        setattr(numba_config, "CACHE_DIR", callers)  # noqa: B010 - as above


def as_records(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a structured array whose rows have their fields as attributes also where kernels are plain Python."""
    return array if COMPILED else array.view(np.recarray)


def address_of(array: npt.NDArray[Any]) -> Any:
    """Return what kernels know an array by: its address, or the array itself where they are plain Python.

    An array handed to a compiled function is seven numbers, copied again at each call from one kernel to the next; an
    address is one. The caller that hands it over keeps the array alive, and hands over the new address of a new array.
    """
    return array.ctypes.data if COMPILED else array


def _row(_context: Any, _base: Any, _index: Any, dtype: Any) -> Any:
    """Return the typing and the code of `row`: a pointer and an offset."""
    record = dtype.dtype

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        first = builder.inttoptr(arguments[0], context.get_value_type(record))
        return builder.gep(first, [arguments[1]])

    return record(types.int64, types.int64, dtype), generate


def _bit_length(_context: Any, _value: Any) -> Any:
    """Return the typing and the code of `bit_length`: the leading zeros, counted by one instruction."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        zeros = builder.ctlz(arguments[0], context.get_constant(types.boolean, False))
        return builder.sub(context.get_constant(types.int64, 64), zeros)

    return types.int64(types.int64), generate


def _quotient(_context: Any, _dividend: Any, _divisor: Any) -> Any:
    """Return the typing and the code of `quotient`: one division, and nothing about signs."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.udiv(arguments[0], arguments[1])

    return types.int64(types.int64, types.int64), generate


def _wide(_context: Any, _value: Any) -> Any:
    """Return the typing and the code of `wide`: the argument, which the call has widened."""

    def generate(_context: Any, _builder: Any, _signature: Any, arguments: Any) -> Any:
        return arguments[0]

    return types.int64(types.int64), generate


def _prefetch(_context: Any, _base: Any, _index: Any, dtype: Any) -> Any:
    """Return the typing and the code of `prefetch`: one instruction that reads nothing and never faults."""
    record = dtype.dtype

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        first = builder.inttoptr(arguments[0], context.get_value_type(record))
        place = builder.bitcast(builder.gep(first, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(hint, [place, number(0), number(3), number(1)])  # to read, into every cache, data
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, dtype), generate


def _plain_bit_length(value: int) -> int:
    return int(value).bit_length()


def _plain_quotient(dividend: int, divisor: int) -> int:
    return dividend // divisor


def _plain_prefetch(_base: Any, _index: int, _dtype: Any) -> None:
    """Plain Python has no caches to fill."""


def _plain_row(base: Any, index: int, dtype: Any) -> Any:
    if not 0 <= index < len(base):
        raise IndexError(f"row {index} of an array of {len(base)} rows of {dtype.names}")
    if isinstance(base, np.ndarray) and base.dtype.names != dtype.names:
        return base.view(np.dtype((np.record, dtype)))[index]  # the same bytes by another layout
    return base[index]


row: Final = cast("Callable[[Any, int, Any], Any]", intrinsic(_row) if COMPILED else _plain_row)
"""`row(base, index, dtype)`: a record of the array that `address_of` gave, to read and write.

Not checked where compiled. Where kernels are plain Python an index outside of the array raises IndexError, so that a
run of the tests without the compiler shows what would otherwise damage memory."""

prefetch: Final = cast("Callable[[Any, int, Any], None]", intrinsic(_prefetch) if COMPILED else _plain_prefetch)
"""`prefetch(base, index, dtype)`: have the record in the caches when its turn comes; any index will do."""

bit_length: Final = cast("Callable[[int], int]", intrinsic(_bit_length) if COMPILED else _plain_bit_length)
"""Of a value ≥ 0, as `int.bit_length`."""

quotient: Final = cast("Callable[[int, int], int]", intrinsic(_quotient) if COMPILED else _plain_quotient)
"""`dividend // divisor`, of a dividend ≥ 0 and a divisor > 0."""

wide: Final = cast("Callable[[Any], int]", intrinsic(_wide) if COMPILED else int)
"""As a 64-bit integer: a narrower one would have each kernel that it reaches compiled again."""


class _OnCompilation(Listener):
    """Calls once, when numba begins to compile."""

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = [notify]

    def on_start(self, _event: Any) -> None:
        while self._notify:
            self._notify.pop()()

    def on_end(self, _event: Any) -> None:
        """Do nothing: only the beginning is reported."""


@contextmanager
def compilation_reported(notify: Callable[[], None]) -> Iterator[None]:
    """Within the `with` statement, call `notify` before the first kernel that the cache lacks is compiled, if any."""
    with install_listener("numba:compile", _OnCompilation(notify)):
        yield


@contextmanager
def compilation_timed() -> Iterator[Callable[[], float]]:
    """Within the `with` statement, count the seconds that compiling takes: the function given returns them."""
    listener = TimingListener()  # type: ignore[no-untyped-call]
    with install_listener("numba:compile", listener):
        yield lambda: listener.duration if listener.done else 0.0


_LONGEST_WAIT_S: Final = 300.0
"""After which a process compiles for itself: the one that has the lock may hang."""


class _Turn:
    """The lock of the cache's directory: of processes that start together one compiles, and the others take it over.

    Held from the miss of a kernel to the end of its compilation, and over those that this one needs meanwhile. Where
    the file system has no locks each process compiles for itself.
    """

    def __init__(self, directory: Path) -> None:
        self._lock = filelock.FileLock(directory / "compiling.lock", thread_local=False)
        self._depth = 0

    def compiling(self, compile_kernel: Callable[[Any], Any], signature: Any) -> Any:
        """Return what numba compiled, or found in the cache; however it ends, others may compile then."""
        with global_compiler_lock:  # numba's own: one thread of a process compiles
            self._depth += 1
            try:
                return compile_kernel(signature)
            finally:
                self._depth -= 1
                if not self._depth:
                    self._lock.release(force=True)

    def wait(self) -> None:
        """Wait until no other process compiles; to those who look at compilations the wait is one."""
        if self._lock.is_locked:
            return
        try:
            self._lock.acquire(blocking=False)
        except filelock.Timeout:
            with numba_event.trigger_event("numba:compile"), suppress(filelock.Timeout, OSError):
                self._lock.acquire(timeout=_LONGEST_WAIT_S)
        except (OSError, RuntimeError):  # of a file system without locks
            return


class _SharedCache(FunctionCache):
    """numba's cache of one function, which looks again when it is this process's turn to compile."""

    turn = _Turn(CACHE_DIRECTORY)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code, or None: it is compiled then."""
        found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if found is None:
            self.turn.wait()
            found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        return found


class _PartCode(JITCodeLibrary):
    """The code of a part: linked with that of the parts it calls, and neither optimized nor turned into machine code.

    numba does both for each function, with all its callees, again for each of its callers, which took most of the
    compilation time.
    """

    codegen = SimpleNamespace(set_env=lambda _name, _environment: None)
    """The environment of a part is that of its kernel: parts raise nothing, and have nothing of the interpreter's."""

    def finalize(self) -> None:
        """Link, and leave the rest to the kernel."""
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(self, "_reload_init"):  # numba 0.62 and newer
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._final_module.verify()
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int | None:
        """Return what raises TypeError: a part is called by kernels alone."""
        return ctypes.cast(ctypes.pythonapi.PyErr_BadArgument, ctypes.c_void_p).value


@register_pass(mutates_CFG=True, analysis_only=False)  # type: ignore[no-untyped-call]
class _PartLowering(NativeLowering):
    _name = "qsctl_part_lowering"

    def run_pass(self, state: Any) -> bool:
        library = _PartCode(state.targetctx.codegen(), state.func_id.func_qualname)  # type: ignore[no-untyped-call]
        state.library = library
        library.enable_object_caching()  # type: ignore[no-untyped-call]
        return bool(super().run_pass(state))  # type: ignore[no-untyped-call]


class _PartCompiler(Compiler):
    def define_pipelines(self) -> Any:
        pipelines = super().define_pipelines()  # type: ignore[no-untyped-call]
        for each in pipelines:
            each.passes = [(_PartLowering if made is NativeLowering else made, text) for made, text in each.passes]
            each._finalized = False
            each.finalize()
        return pipelines


_OPTIONS: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy", "_nrt": False}
"""Without numba's reference counting: kernels make no arrays, and counting cost half of their time."""

_KERNEL: Final[dict[str, Any]] = {"cache": CACHED}
_PART: Final[dict[str, Any]] = {"pipeline_class": _PartCompiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_INLINED: Final[dict[str, Any]] = {"forceinline": True}


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a module-level function of arrays and numbers, without the interpreter lock, cached on disk.

    A function made inside another one would be compiled anew in every process: numba cannot cache a closure.
    """
    return _compiled(function, _KERNEL)


def part(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function into each kernel that calls it; Python cannot call it where it is compiled (TypeError)."""
    return _compiled(function, _PART)


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a kernel into each of its callers, for what every message does; elsewhere it costs compile time."""
    return _compiled(function, _KERNEL | _INLINED)


def inlined_part(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a part into each of its callers, as `inlined` does a kernel."""
    return _compiled(function, _PART | _INLINED)


def _compiled(function: Callable[Parameters, Result], options: dict[str, Any]) -> Callable[Parameters, Result]:
    with _own_cache():
        compiled = numba.njit(**_OPTIONS, **options)(function)
        if options.get("cache"):
            compiled._cache = _SharedCache(function)  # type: ignore[no-untyped-call]
            compiled.compile = partial(_SharedCache.turn.compiling, compiled.compile)
        return cast("Callable[Parameters, Result]", compiled)
