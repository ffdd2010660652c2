"""Object files of kernels that numba has compiled in this process, as `ready_made` loads them.

Imported only to make them. In: kernels that were called. Out: for each list of argument types an object file without
anything of Python or numba: an entry with arguments by the C language, which calls the kernel's own code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from llvmlite import binding, ir  # type: ignore[import-untyped]

from qsctl.sim.kernel._compiler import array_value, layout_of_array, scalar_name, use_processor
from qsctl.sim.kernel.jit import KERNELS
from qsctl.sim.kernel.processor import Baseline
from qsctl.sim.kernel.ready_made import CONTIGUOUS, KernelEntry, digest_of

_WORD: Final = ir.IntType(64)
_DOUBLE: Final = ir.DoubleType()
_BYTE_POINTER: Final = ir.IntType(8).as_pointer()

_FREXP: Final = """
declare double @frexp(double, i32*)
define linkonce_odr double @numba_frexp(double %value, i32* %exponent) {
  store i32 0, i32* %exponent
  %found = call double @frexp(double %value, i32* %exponent)
  ret double %found
}
"""
"""The function of numba for `math.frexp`, which else only a process with numba has. Of a value that is not finite the C
library leaves the exponent open, and numba's is 0."""


def compile_for(baseline: Baseline) -> None:
    """Restrict this process's compilations to the instructions of a baseline; call it before the first kernel."""
    use_processor(baseline.name)


def made_kernels() -> Iterator[tuple[KernelEntry, bytes]]:
    """Yield an entry and its object file for every kernel that this process compiled and that an entry can call."""
    number = 0
    for name in sorted(KERNELS):
        for compiled in KERNELS[name].dispatcher.overloads.values():
            arguments = [_argument_of(each) for each in compiled.fndesc.argtypes]
            results = _results_of(compiled.fndesc.restype)
            if None in arguments or results is None:
                continue  # a form that only other kernels call
            symbol = f"qsctl_kernel_{number}"
            data, needs = _object_file(compiled, tuple(str(each) for each in arguments), results, symbol)
            file = f"{number:03}.o"
            yield (
                KernelEntry(
                    name, tuple(str(each) for each in arguments), results, symbol, file, digest_of(data), needs
                ),
                data,
            )
            number += 1


def _argument_of(numba_type: Any) -> str | None:
    if (layout := layout_of_array(numba_type)) is not None:
        return CONTIGUOUS + layout
    return scalar_name(numba_type)


def _results_of(numba_type: Any) -> tuple[str, ...] | None:
    if str(numba_type) == "none":
        return ()
    kinds = [scalar_name(each) for each in getattr(numba_type, "types", (numba_type,))]
    if len(kinds) == 1 and hasattr(numba_type, "types"):
        return None  # a tuple of one is no plain number
    return None if None in kinds or "int32" in kinds else tuple(str(each) for each in kinds)


def _object_file(
    compiled: Any, arguments: tuple[str, ...], results: tuple[str, ...], symbol: str
) -> tuple[bytes, tuple[str, ...]]:
    """Return an object file with a kernel and its entry, and the names of the C library's functions that it calls.

    Raises:
        RuntimeError: the code calls a function that is not of the C library.
    """
    codegen = compiled.target_context.codegen()
    module = binding.parse_bitcode(compiled.library._final_module.as_bitcode())
    module.link_in(binding.parse_assembly(str(_entry(compiled, arguments, results, symbol))))
    if any(each.name == "numba_frexp" and each.is_declaration for each in module.functions):
        module.link_in(binding.parse_assembly(_FREXP))
    for each in module.functions:
        if not each.is_declaration and each.name != symbol:
            each.linkage = "internal"
    _drop_unused(module, codegen._tm)
    needs = tuple(
        sorted(each.name for each in module.functions if each.is_declaration and not each.name.startswith("llvm."))
    )
    if foreign := [each for each in needs if each.startswith(("numba", "NRT", "Py", "_Z"))]:
        raise RuntimeError(f"{compiled.fndesc.qualname} calls {', '.join(foreign)}, which only numba and Python have")
    for each in module.global_variables:
        if each.is_declaration:
            raise RuntimeError(f"{compiled.fndesc.qualname} needs {each.name}, which is outside of its code")
    return bytes(codegen._tm.emit_object(module)), needs


def _drop_unused(module: Any, machine: Any) -> None:
    """Remove the wrappers for Python, and the functions that only these call."""
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=1))
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    passes.run(module, builder)


def _entry(compiled: Any, arguments: tuple[str, ...], results: tuple[str, ...], symbol: str) -> Any:
    """Return a module with the entry, which writes results as 64-bit words and, last, whether the kernel raised."""
    context, described = compiled.target_context, compiled.fndesc
    codegen = context.codegen()
    module = ir.Module(symbol)
    module.triple = codegen._llvm_module.triple
    module.data_layout = codegen._data_layout
    kinds: list[Any] = []
    for each in arguments:
        if each.startswith(CONTIGUOUS):
            kinds.extend((_WORD, _WORD))
        else:
            kinds.append(_DOUBLE if each == "float64" else _WORD)
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), [*kinds, _WORD.as_pointer()]), symbol)
    builder = ir.IRBuilder(entry.append_basic_block())
    given = iter(entry.args)
    values = []
    for each, numba_type in zip(arguments, described.argtypes, strict=True):
        if each.startswith(CONTIGUOUS):
            values.append(array_value(context, builder, numba_type, next(given), next(given)))
        elif each == "bool":
            values.append(builder.icmp_unsigned("!=", next(given), _WORD(0)))
        elif each == "int32":
            values.append(builder.trunc(next(given), ir.IntType(32)))
        else:
            values.append(next(given))
    function = context.declare_function(module, described)
    status, returned = context.call_conv.call_function(builder, function, described.restype, described.argtypes, values)
    for place, kind in enumerate(results):
        value = returned if len(results) == 1 else builder.extract_value(returned, place)
        where = builder.gep(entry.args[-1], [_WORD(place)])
        if kind == "float64":
            builder.store(value, builder.bitcast(where, _DOUBLE.as_pointer()))
        else:
            builder.store(builder.zext(value, _WORD) if kind == "bool" else value, where)
    builder.store(builder.zext(status.is_error, _WORD), builder.gep(entry.args[-1], [_WORD(len(results))]))
    builder.ret_void()
    return module
