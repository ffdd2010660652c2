"""Machine code of kernels that was made with the wheel, the image or by `qsctl compile`, for a common processor.

A folder of object files with an index. It is used if it was made from the same sources, for this system, and with
instructions that this processor has; else it is ignored, and numba compiles.
Neither numba nor its version matters here: llvmlite loads the object files, in a tenth of the time of numba's import.

Invariant: code whose digest differs from the index, or that requires a feature that the processor lacks or a function
that the C library lacks, is never loaded.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from qsctl.sim.kernel.cache_directory import CACHE_DIRECTORY, sources_digest
from qsctl.sim.kernel.processor import host_features

FORMAT: Final = 1
INDEX: Final = "index.json"
INSTALLED: Final = Path(__file__).parent.parent.parent / "_kernels"
"""In the installed package; a checkout has it after `python -m qsctl.sim.ready_kernels`."""


class KernelEntry(msgspec.Struct, frozen=True):
    """One kernel for one list of argument types, in an object file of its own."""

    kernel: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    symbol: str
    file: str
    digest: str
    needs: tuple[str, ...]
    """Functions of the C library that the code calls."""


class KernelIndex(msgspec.Struct, frozen=True):
    """The index of a folder of ready-made code: its sources, system, processor and object files."""

    format: int
    sources: str
    triple: str
    baseline: str
    features: tuple[str, ...]
    entries: tuple[KernelEntry, ...]


ReadyMade = Callable[[tuple[Any, ...]], Any]
"""Calls a loaded kernel with the arguments of a Python call."""


OWN: Final = CACHE_DIRECTORY / "ready-made"
"""Folder of the kernels that `qsctl compile` makes for a user, whose installation may not be writable."""


def folders() -> tuple[Path, ...]:
    """Return the folders of ready-made code in the order of search: that of the installed package, then `OWN`.

    `QSCTL_KERNELS`, when set, is the only one.
    """
    return (Path(chosen),) if (chosen := os.environ.get("QSCTL_KERNELS")) else (INSTALLED, OWN)


def first_usable() -> tuple[Path, KernelIndex] | None:
    """Return the folder whose code is used here, with its index; None: kernels are compiled."""
    for each in folders():
        index, _why = usable(each)
        if index is not None:
            return each, index
    return None


def damaged(found: Path, index: KernelIndex) -> list[str]:
    """Return the names of object files that are missing or not what the index lists: these kernels are compiled."""
    return [each.file for each in index.entries if _contents(found, each) is None]


def _contents(found: Path, entry: KernelEntry) -> bytes | None:
    try:
        data = (found / entry.file).read_bytes()
    except OSError:
        return None
    return data if digest_of(data) == entry.digest else None


def digest_of(data: bytes) -> str:
    """Return the digest of an object file that the index records."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


@lru_cache(maxsize=256)
def layout_of(dtype: np.dtype[Any]) -> str:
    """Return the layout of an array's rows as text: names, offsets and types of fields, size and alignment."""

    def described(each: np.dtype[Any]) -> object:
        if each.names is None:
            return each.str if each.subdtype is None else [described(each.subdtype[0]), list(each.subdtype[1])]
        fields: Mapping[str, Any] = each.fields or {}
        rows = [[name, fields[name][1], described(fields[name][0])] for name in each.names]
        return [rows, each.itemsize, each.isalignedstruct]

    return json.dumps(described(dtype), separators=(",", ":"))


_SCALARS: Final[dict[type, str]] = {
    bool: "bool",
    float: "float64",
    np.bool_: "bool",
    np.float64: "float64",
    np.int32: "int32",
    np.int64: "int64",
    np.uint64: "uint64",
}
_INT64_MAX: Final = 2**63 - 1
CONTIGUOUS: Final = "array "
"""Prefix of the type of an array in one dimension without gaps that may be written."""


def _type_of(value: Any) -> str:
    kind = type(value)
    if kind is int:
        return "int64" if -_INT64_MAX - 1 <= value <= _INT64_MAX else "int"
    if (scalar := _SCALARS.get(kind)) is not None:
        return scalar
    if kind is np.ndarray and value.ndim == 1:
        flags = value.flags
        if flags.c_contiguous and flags.aligned and flags.writeable:
            return CONTIGUOUS + layout_of(value.dtype)
    return "other"


def types_of(arguments: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the types of a call's arguments as texts, by which ready-made code is found."""
    return tuple([_type_of(each) for each in arguments])


def usable(found: Path) -> tuple[KernelIndex | None, str]:
    """Return the index of a folder, or None with the reason why its code cannot be used here."""
    try:
        index = msgspec.json.decode((found / INDEX).read_bytes(), type=KernelIndex)
    except FileNotFoundError:
        return None, "there is none"
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        return None, f"{found / INDEX} cannot be read: {error}"
    if index.format != FORMAT:
        return None, f"it has format {index.format}, not {FORMAT}"
    if index.sources != sources_digest():
        return None, "it was made of other sources"
    try:
        from llvmlite import binding  # type: ignore[import-untyped]

        triple = str(binding.get_process_triple())
    except (ImportError, OSError) as error:
        return None, f"llvmlite cannot be loaded: {error}"
    if index.triple != triple:
        return None, f"it was made for {index.triple}, and this is {triple}"
    if lacking := sorted(set(index.features) - host_features()):
        return None, f"it was made for {index.baseline}, and this processor lacks {', '.join(lacking)}"
    return index, ""


@cache
def _entries() -> tuple[Path, dict[str, list[KernelEntry]]]:
    chosen = first_usable()
    if chosen is None:
        return Path(os.devnull), {}
    found: dict[str, list[KernelEntry]] = {}
    for each in chosen[1].entries:
        found.setdefault(each.kernel, []).append(each)
    return chosen[0], found


def ready_made(kernel: str) -> dict[tuple[str, ...], ReadyMade]:
    """Return the ready-made code of a kernel by the types of its arguments; empty where there is none."""
    loaded = {}
    folder, entries = _entries()
    for each in entries.get(kernel, ()):
        if (address := _Engine.loaded(folder, each)) is not None:
            loaded[each.arguments] = _callable(each, address)
    return loaded


class _Engine:
    """The loader of object files into the process; they remain loaded until it ends."""

    _lock: Final = threading.Lock()
    _engine: Any = None

    @classmethod
    def loaded(cls, folder: Path, entry: KernelEntry) -> int | None:
        """Return the address of an entry's code, or None when it must not or cannot be loaded."""
        from llvmlite import binding

        if (data := _contents(folder, entry)) is None:
            return None
        with cls._lock:
            try:
                if cls._engine is None:
                    binding.initialize_native_target()
                    binding.initialize_native_asmprinter()
                    target = binding.Target.from_triple(binding.get_process_triple())
                    machine = target.create_target_machine(jit=True)
                    cls._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
                if any(not binding.address_of_symbol(each) for each in entry.needs):
                    return None
                cls._engine.add_object_file(binding.ObjectFileRef.from_data(data))
                cls._engine.finalize_object()
                return cls._engine.get_function_address(entry.symbol) or None
            except RuntimeError:  # LLVM does not take the file
                return None


_ARGUMENTS: Final[dict[str, Any]] = {
    "bool": ctypes.c_int64,
    "int32": ctypes.c_int64,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float64": ctypes.c_double,
}


def _callable(entry: KernelEntry, address: int) -> ReadyMade:
    """Return a function that calls the code by C conventions and returns its results.

    An array is two arguments, its first row and the number of rows. Each result has eight bytes; after them a word is
    not 0 if the kernel raised an exception.
    """
    kinds: list[Any] = []
    arrays = [each.startswith(CONTIGUOUS) for each in entry.arguments]
    for each, is_array in zip(entry.arguments, arrays, strict=True):
        kinds.extend((ctypes.c_void_p, ctypes.c_int64) if is_array else (_ARGUMENTS[each],))
    count = len(entry.results)
    call = ctypes.CFUNCTYPE(None, *kinds, ctypes.c_void_p)(address)
    words = ctypes.c_int64 * (count + 1)
    has_arrays = any(arrays)
    numbers = [(float if each == "float64" else int) for each in entry.arguments]

    def called(arguments: tuple[Any, ...]) -> Any:
        given: list[Any] = []
        if has_arrays:
            for value, is_array, number in zip(arguments, arrays, numbers, strict=True):
                if is_array:
                    given.extend((value.ctypes.data, len(value)))
                else:
                    given.append(number(value))
        else:
            given.extend([number(value) for value, number in zip(arguments, numbers, strict=True)])
        results = words()
        call(*given, ctypes.addressof(results))
        if results[count]:
            raise RuntimeError(f"{entry.kernel} raised an error")
        if not count:
            return None
        read = [_READ[kind](results, place) for place, kind in enumerate(entry.results)]
        return read[0] if count == 1 else tuple(read)

    return called


def _integer(results: Any, place: int) -> int:
    return int(results[place])


_READ: Final[dict[str, Callable[[Any, int], Any]]] = {
    "int64": _integer,
    "bool": lambda results, place: bool(results[place]),
    "uint64": lambda results, place: int(results[place]) & (2**64 - 1),
    "float64": lambda results, place: ctypes.c_double.from_buffer(results, 8 * place).value,
}
