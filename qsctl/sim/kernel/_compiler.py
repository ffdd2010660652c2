"""Compilation of kernels by numba where no ready-made machine code fits, and its cache; the only importer of numba.

Imported when the first kernel has to be compiled, or loaded from numba's cache: its import costs half a second.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import filelock

from qsctl.sim.kernel.cache_directory import CACHE_DIRECTORY, SOURCES, opened
from qsctl.sim.kernel.compilations import ended, started
from qsctl.sim.kernel.ready_made import layout_of

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
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.compiler_machinery import register_pass
    from numba.core.event import Listener
    from numba.core.extending import intrinsic
    from numba.core.registry import cpu_target
    from numba.core.typed_passes import NativeLowering
    from numba.extending import typeof_impl
    from numba.np.arrayobj import populate_array
    from numba.np.numpy_support import as_dtype
finally:
    if _WITHOUT_SCIPY:
        del sys.modules["scipy"]

CACHED: Final = opened(CACHE_DIRECTORY)
"""True where compiled kernels are kept; without a writable directory every run compiles."""


class _Forwarded(Listener):
    """The listener that reports numba's compilations to `compilations`."""

    def on_start(self, _event: Any) -> None:
        started()

    def on_end(self, _event: Any) -> None:
        ended()


numba_event.register("numba:compile", _Forwarded())  # type: ignore[no-untyped-call]


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


INTRINSICS: Final[dict[str, Any]] = {
    "row": intrinsic(_row),
    "prefetch": intrinsic(_prefetch),
    "bit_length": intrinsic(_bit_length),
    "quotient": intrinsic(_quotient),
    "wide": intrinsic(_wide),
}


_LONGEST_WAIT_S: Final = 300.0
"""After which a process compiles for itself: the one that has the lock may hang."""


class _Turn:
    """The lock of the cache's directory: of concurrent processes one compiles, and the others load its result.

    It is held from a cache miss to the end of the kernel's compilation, nested compilations included. Where the file
    system does not support locks, each process compiles for itself.
    """

    def __init__(self, directory: Path) -> None:
        self._lock = filelock.FileLock(directory / "compiling.lock", thread_local=False)
        self._depth = 0

    def compiling(self, compile_kernel: Callable[[Any], Any], signature: Any) -> Any:
        """Return the code that numba compiles or loads; release the lock after the outermost one, also on errors."""
        with global_compiler_lock:  # numba's own: one thread of a process compiles
            self._depth += 1
            try:
                return compile_kernel(signature)
            finally:
                self._depth -= 1
                if not self._depth:
                    self._lock.release(force=True)

    def wait(self) -> None:
        """Wait until no other process compiles, and acquire the lock; a wait is reported as a compilation."""
        if self._lock.is_locked:
            return
        try:
            self._lock.acquire(blocking=False)
        except filelock.Timeout:
            with numba_event.trigger_event("numba:compile"), suppress(filelock.Timeout, OSError):
                self._lock.acquire(timeout=_LONGEST_WAIT_S)
        except (OSError, RuntimeError):  # of a file system without locks
            return


class _CodeLocator(_CacheLocator):
    """The cache folder of one function's compiled code, and the stamp of its source.

    `CACHE_DIRECTORY` depends on the text of the simulator's sources, and the folder on the module's name, so that all
    copies of the same sources (installations, checkouts, images) share the code. numba's own locators use a path and a
    time of modification. A function of another package, such as a test, is identified by its path and its file's text.
    """

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file = file  # the name by which numba's warnings have it
        self._line = function.__code__.co_firstlineno
        path = Path(file)
        self._is_ours = path.is_relative_to(SOURCES)
        name = (
            ".".join(path.relative_to(SOURCES).with_suffix("").parts)
            if self._is_ours
            else self.get_suitable_cache_subpath(file)  # type: ignore[no-untyped-call]
        )
        self._path = CACHE_DIRECTORY / name

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> _CodeLocator | None:
        """Return the locator of a function, or None where its folder cannot be created."""
        found = cls(function, file)
        try:
            found.ensure_cache_path()  # type: ignore[no-untyped-call]
        except OSError:
            return None
        return found

    def get_cache_path(self) -> str:
        """Return the folder of the function's module."""
        return os.fspath(self._path)

    def get_source_stamp(self) -> str:
        """Return a stamp that changes with the text of the function's file; for our own, the directory's name."""
        if self._is_ours:
            return CACHE_DIRECTORY.name
        return hashlib.blake2b(Path(self._py_file).read_bytes(), digest_size=16).hexdigest()

    def get_disambiguator(self) -> str:
        """Return a text that distinguishes functions of the same name in a file: the line number."""
        return str(self._line)


class _FoundByModule(CompileResultCacheImpl):
    _locator_classes = [_CodeLocator]  # noqa: RUF012 - as numba declares it


class _SharedCache(FunctionCache):
    """The cache of one function, which is searched again once this process has the lock to compile."""

    _impl_class = _FoundByModule
    turn = _Turn(CACHE_DIRECTORY)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the cached code, or None, after which numba compiles the function."""
        found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if found is None:
            self.turn.wait()
            found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        return found


class _PartCode(JITCodeLibrary):
    """The code of a part, linked with the parts that it calls, but neither optimized nor compiled to machine code.

    numba does both for each function, with all its callees, again for each of its callers, which took most of the
    compilation time.
    """

    codegen = SimpleNamespace(set_env=lambda _name, _environment: None)
    """A stub that sets no environment: parts raise no exception and use no object of the interpreter."""

    def finalize(self) -> None:
        """Link the callees' code; optimization and machine code are left to the kernel."""
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(self, "_reload_init"):  # numba 0.62 and newer
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._final_module.verify()
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int | None:
        """Return the address of a function that raises TypeError, since only kernels can call a part."""
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

_PART: Final[dict[str, Any]] = {"pipeline_class": _PartCompiler, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def dispatcher(function: Callable[..., Any], *, is_part: bool, is_inlined: bool) -> Any:
    """Return numba's dispatcher of a function, which compiles it for each combination of argument types."""
    options = dict(_PART if is_part else {})
    if is_inlined:
        options["forceinline"] = True
    compiled = numba.njit(**_OPTIONS, **options)(function)
    if CACHED and not is_part:
        with suppress(RuntimeError):  # its folder cannot be written: the function is compiled by each process
            compiled._cache = _SharedCache(function)  # type: ignore[no-untyped-call]
            compiled.compile = partial(_SharedCache.turn.compiling, compiled.compile)
    return compiled


def stand_in_for(kind: type, numbas_form: Callable[[Any], Any]) -> None:
    """Let numba replace a global of class `kind` in a kernel by the result of `numbas_form` for it."""
    typing_context = cpu_target.typing_context

    @typeof_impl.register(kind)
    def _type(value: Any, _context: Any) -> Any:
        return typing_context.resolve_value_type(numbas_form(value))


_SCALARS: Final[dict[Any, str]] = {
    types.boolean: "bool",
    types.int32: "int32",
    types.int64: "int64",
    types.uint64: "uint64",
    types.float64: "float64",
}


def scalar_name(numba_type: Any) -> str | None:
    """Return the name of a type of plain numbers, or None of any other type."""
    return _SCALARS.get(numba_type)


def layout_of_array(numba_type: Any) -> str | None:
    """Return the layout of the rows of an array in one dimension without gaps that may be written, else None."""
    if not isinstance(numba_type, types.Array) or (numba_type.ndim, numba_type.layout) != (1, "C"):
        return None
    return layout_of(as_dtype(numba_type.dtype)) if numba_type.mutable and numba_type.aligned else None


def array_value(context: Any, builder: Any, numba_type: Any, address: Any, rows: Any) -> Any:
    """Return the code of an array from the address of its first row and the number of its rows, 64-bit integers."""
    array = context.make_array(numba_type)(context, builder)
    row_bytes = context.get_abi_sizeof(context.get_data_type(numba_type.dtype))
    step = context.get_constant(types.intp, row_bytes)
    data = builder.inttoptr(address, context.get_data_type(numba_type.dtype).as_pointer())
    populate_array(array, data=data, shape=[rows], strides=[step], itemsize=step, meminfo=None)  # type: ignore[no-untyped-call]
    return array._getvalue()


def use_processor(name: str) -> None:
    """Let numba compile for the processor that LLVM calls `name`.

    Raises:
        RuntimeError: numba already compiles for this machine's processor.
    """
    setattr(numba_config, "CPU_NAME", name)  # noqa: B010 - numba declares no types of it
    setattr(numba_config, "CPU_FEATURES", "")  # noqa: B010 - numba declares no types of it
    _triple, used, features = cpu_target.target_context.codegen().magic_tuple()
    if (used, features) != (name, ""):
        raise RuntimeError(f"numba compiles for {used} {features}, not for {name}: it was asked too late")
