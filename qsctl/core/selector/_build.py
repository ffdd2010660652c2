"""The construction and type check of a selector's parts: numbers, names, types, nesting [QS 5.2.2].

Decides: which terms may be compared. The parser calls it for each part, from the inside out; a part that the grammar
accepts but that has no valid meaning raises `Misfit`.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from qsctl.core.selector.expression import (
    And,
    Boolean,
    Expression,
    Field,
    Integer,
    Not,
    Octets,
    Or,
    Relation,
    SequenceNumber,
    StatusMask,
    Term,
    TermComparison,
    Text,
)
from qsctl.identity import GUID_SIZE_BYTES, sequence_number_from_pair

if TYPE_CHECKING:
    from lark import Token

MAX_DEPTH: Final = 64

_FIELD_TYPES: Final[dict[Field, type]] = {
    Field.WRITER_GUID: Octets,
    Field.SEQUENCE_NUMBER: SequenceNumber,
    Field.STATUS: StatusMask,
}
_TYPE_NAMES: Final[dict[type, str]] = {
    Octets: "an octet array",
    SequenceNumber: "a sequence number",
    StatusMask: "a status",
    Integer: "an integer",
    Boolean: "TRUE or FALSE",
    Text: "a string",
}
_HOW_TO_WRITE: Final[dict[type, str]] = {
    Octets: "Write a GUID as &hex(…) with 32 digits.",
    SequenceNumber: "Write a sequence number as (high,low): number 7 is (0,7).",
    StatusMask: "Write a status such as SENT_MESSAGE_STATUS, or several with | between.",
}
_STATUSES: Final = {str(status.name): status for status in StatusMask}


class Misfit(Exception):
    """A part that the grammar accepts and that has no valid meaning."""

    def __init__(self, offset: int, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.offset = offset
        self.problem = problem
        self.remedy = remedy


class Built(NamedTuple):
    """A part of the tree: its node, its depth of nesting, and the offset of its text."""

    node: Any
    depth: int
    offset: int


class SelectorBuilder:
    """The builder of nodes; each method implements the grammar's rule of that name."""

    def any_of(self, operands: list[Built]) -> Built:
        """Join operands by OR."""
        return _joined(Or, operands)

    def all_of(self, operands: list[Built]) -> Built:
        """Join operands by AND."""
        return _joined(And, operands)

    def not_(self, children: list[Built]) -> Built:
        """Negate an operand."""
        return _deeper(children[0], Not(children[0].node))

    def group(self, children: list[Built]) -> Built:
        """Return the content of parentheses, which adds only to the depth."""
        return _deeper(children[0], children[0].node)

    def comparison(self, children: list[Any]) -> Built:
        """Compare two terms of one type."""
        left, relation, right = children
        left_type, right_type = _type_of(left.node), _type_of(right.node)
        if left_type is not right_type:
            # The field decides the expected type; without one, the left term does.
            odd, wanted = (left, right_type) if isinstance(right.node, Field) else (right, left_type)
            other = right if odd is left else left
            raise Misfit(
                odd.offset,
                f"{_spoken(odd.node)} cannot be compared with {_spoken(other.node)}",
                _HOW_TO_WRITE.get(wanted, "Compare terms of one type."),
            )
        for one, other in ((left, right), (right, left)):
            if one.node is Field.WRITER_GUID and isinstance(other.node, Octets):
                size = len(other.node.value)
                if size != GUID_SIZE_BYTES:
                    raise Misfit(
                        other.offset, f"a GUID has {GUID_SIZE_BYTES} octets, not {size}", _HOW_TO_WRITE[Octets]
                    )
        return Built(TermComparison(left.node, Relation(str(relation)), right.node), 0, left.offset)

    def field(self, children: list[Token]) -> Built:
        """Return a field by its name."""
        try:
            return _leaf(Field(str(children[0])), children[0])
        except ValueError:
            _unknown("field", children[0], list(Field))

    def statuses(self, children: list[Token]) -> Built:
        """Return the mask of one status, or of several with | between."""
        mask = StatusMask(0)
        for token in children:
            if str(token) not in _STATUSES:
                _unknown("status", token, [*_STATUSES, *Field])
            mask |= _STATUSES[str(token)]
        return _leaf(mask, children[0])

    def sequence_number(self, children: list[Token]) -> Built:
        """Return the 64-bit number of `(high, low)`."""
        high, low = (_integer(token) for token in children)
        if not -(2**31) <= high < 2**31:
            raise Misfit(
                _offset(children[0]), f"the high half {high} is out of range", "It is -2147483648 to 2147483647."
            )
        if not 0 <= low < 2**32:
            raise Misfit(_offset(children[1]), f"the low half {low} is out of range", "It is 0 to 4294967295.")
        return _leaf(SequenceNumber(sequence_number_from_pair(high, low)), children[0])

    def integer(self, children: list[Token]) -> Built:
        """Return a 32-bit integer, or a 64-bit one if L follows the digits."""
        token = children[0]
        value = _integer(token)
        bits = 64 if token[-1] in "lL" else 32
        # Hexadecimal digits are a bit pattern and may fill all bits; decimal ones leave one to the sign.
        limit = 2**bits if "x" in token.lower() else 2 ** (bits - 1)
        if not -(2 ** (bits - 1)) <= value < limit:
            remedy = "Write an L behind it: a long long has 64 bits." if bits == 32 else "A long long has 64 bits."
            raise Misfit(_offset(token), f"{token} does not fit in {bits} bits", remedy)
        return _leaf(Integer(value), token)

    def boolean(self, children: list[Token]) -> Built:
        """Return a boolean."""
        return _leaf(Boolean(children[0].lower() == "true"), children[0])

    def string(self, children: list[Token]) -> Built:
        """Return the characters between single quotes."""
        return _leaf(Text(str(children[0])[1:-1]), children[0])

    def octets(self, children: list[Token]) -> Built:
        """Return the octets of `&hex(…)`; white space between the digits is ignored."""
        token = children[0]
        digits = "".join(str(token)[len("&hex(") : -1].split())
        if len(digits) % 2:
            raise Misfit(_offset(token), f"{len(digits)} digits are no whole octets", "Write two digits an octet.")
        return _leaf(Octets(bytes.fromhex(digits)), token)


def _joined(kind: type[And] | type[Or], operands: list[Built]) -> Built:
    if len(operands) == 1:
        return operands[0]
    node = kind(tuple(each.node for each in operands))
    return Built(node, max(each.depth for each in operands), operands[0].offset)


def _deeper(inner: Built, node: Expression) -> Built:
    if inner.depth >= MAX_DEPTH:
        raise Misfit(inner.offset, f"more than {MAX_DEPTH} levels of parentheses and NOT", "Nest less deeply.")
    return Built(node, inner.depth + 1, inner.offset)


def _leaf(node: Term, token: Token) -> Built:
    return Built(node, 0, _offset(token))


def _offset(token: Token) -> int:
    return token.start_pos or 0


def _integer(token: Token) -> int:
    digits = str(token).rstrip("lL")
    return int(digits, 16) if "x" in digits.lower() else int(digits)


def _type_of(node: Term) -> type:
    return _FIELD_TYPES[node] if isinstance(node, Field) else type(node)


def _spoken(node: Term) -> str:
    return node.value if isinstance(node, Field) else _TYPE_NAMES[type(node)]


def _unknown(kind: str, token: Token, known: list[str]) -> NoReturn:
    name = str(token)
    by_case = {each.lower().lstrip("@"): str(each) for each in known}
    near = difflib.get_close_matches(name.lower().lstrip("@"), by_case, n=1)
    remedy = f"Did you mean {by_case[near[0]]}?" if near else f"There are {', '.join(map(str, known))}."
    raise Misfit(_offset(token), f"there is no {kind} {name!r}", remedy)
