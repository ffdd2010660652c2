"""Constants of `<types>`: whole-number expressions such as `2 * MAX_LENGTH + 1`, evaluated without `eval`."""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

Constant: TypeAlias = int | float | str | bool

_CHARACTERS_MAX: Final = 256
_BITS_MAX: Final = 128
_BINARY: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
_UNARY: Final[dict[type[ast.unaryop], Callable[[int], int]]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
}


class ConstantForm(ValueError):
    """A text that is not an expression of whole numbers and constants."""


class Constants(Protocol):
    """A lookup of constants by name, as a dictionary offers it."""

    def get(self, name: str, /) -> Constant | None:
        """Return the constant, if there is one of the name."""


def evaluate(text: str, constants: Constants) -> int:
    """Return the whole number that an expression evaluates to.

    Raises:
        ConstantForm: a syntax error, an unknown constant, a division by zero, or a number out of all proportion.
    """
    if len(text) > _CHARACTERS_MAX:
        raise ConstantForm(f"an expression of at most {_CHARACTERS_MAX} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `1or 2` is odd Python and no expression here
            tree = ast.parse(text.replace("::", "__").strip(), mode="eval")
        return _value(tree.body, constants)
    except (SyntaxError, ZeroDivisionError, ValueError, OverflowError, MemoryError, RecursionError) as error:
        if isinstance(error, ConstantForm):
            raise
        raise ConstantForm("whole numbers and constants with + - * / % << >> | & ^ ~ and brackets") from None


def _value(node: ast.expr, names: Constants) -> int:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            result: int = number
        case ast.Name(id=name):
            found = names.get(name)
            if found is None:
                found = names.get(name.replace("__", "::"))
            if not isinstance(found, int):
                raise ConstantForm(f"a constant that is a whole number; {name.replace('__', '::')} is none")
            result = int(found)
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _UNARY:
            result = _UNARY[type(sign)](_value(operand, names))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            first, second = _value(left, names), _value(right, names)
            if isinstance(sign, ast.LShift | ast.RShift) and not 0 <= second <= _BITS_MAX:
                raise ConstantForm("a shift by 0 to 128 bits")
            result = _BINARY[type(sign)](first, second)
        case _:
            raise ConstantForm("whole numbers and constants with + - * / % << >> | & ^ ~ and brackets")
    if result.bit_length() > _BITS_MAX:
        raise ConstantForm("a number of at most 128 bits")
    return result
